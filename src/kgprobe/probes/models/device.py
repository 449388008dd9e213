"""Where a model works: on a processor with one thread, or on an accelerator.

KGPROBE_DEVICE says so: `auto` (an accelerator where there is one), `cpu`, `cuda`. It is no
parameter of a rule: what was answered elsewhere stands, and the record of every file of answers
tells the device. Its memory bounds the batches (`batching.budget_for`).

KGPROBE_DEVICE_MAP spreads each model over several devices, the processor's memory and the disk: a
word of accelerate, one device, or a JSON object of module -> device (`device_map` of transformers).
"""

import json
import os
import re

import torch

from kgprobe.probes.models.products import use_wide_vectors

#: the environment variable
VARIABLE = "KGPROBE_DEVICE"
LEGAL = ("auto", "cpu", "cuda")
#: the environment variable of models that are spread, and its words
MAP, MAPS = "KGPROBE_DEVICE_MAP", ("auto", "balanced", "balanced_low_0", "sequential")
#: where a part of a model may lie
PLACE = re.compile(r"cpu|disk|cuda(:\d+)?|\d+")
#: threads beside an accelerator: tokenizers and tables, none of which adds floating-point numbers
THREADS = 4


class DeviceError(RuntimeError):
    """A device is asked for that is none, or that is not here; the message names what is legal."""


def chosen(asked: str = "") -> torch.device:
    """The device that is asked for: `asked`, or the variable.

    Raises DeviceError for unknown names, and for `cuda` where torch sees no such device.
    """
    name = asked or os.environ.get(VARIABLE) or "auto"
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if name.partition(":")[0] not in LEGAL:
        raise DeviceError(f"{VARIABLE}: {name!r}; legal: {', '.join(LEGAL)}")
    if name.startswith("cuda") and not torch.cuda.is_available():
        raise DeviceError(
            f"{VARIABLE} is {name!r}, but torch {torch.__version__} sees no CUDA device; write "
            "`auto` or `cpu`, or ask the cluster for one (`--resources gpu=1`)"
        )
    return torch.device(name)


def spread() -> str | dict[str, str | int] | None:
    """How models are spread over devices: what from_pretrained takes as `device_map`; None: not.

    Raises DeviceError for what is no such map.
    """
    told = os.environ.get(MAP, "").strip()
    if not told:
        return None
    if told in MAPS or (told != "disk" and PLACE.fullmatch(told)):
        return told
    try:
        found = json.loads(told)
    except json.JSONDecodeError:
        found = None
    if not isinstance(found, dict) or not found:
        raise DeviceError(
            f"{MAP}: {told!r}; legal: {', '.join(MAPS)}, cpu, cuda:N, or a JSON object of module "
            'and device, such as {"model.embed_tokens": 0, "model.layers": "cpu"}'
        )
    for module, place in found.items():
        if isinstance(place, bool) or not PLACE.fullmatch(str(place)):
            raise DeviceError(f"{MAP}: {module!r} on {place!r}; legal: cpu, disk, cuda:N, N")
    return found


def ready() -> torch.device:
    """The device of this job, and torch set up for it.

    On a processor one thread works, so that the last bits do not depend on the machine's cores,
    with all of its vectors' width. float32 is float32 on an accelerator, too: no TF32.
    """
    device = chosen()
    if device.type == "cpu":
        use_wide_vectors()
    torch.set_num_threads(
        1 if device.type == "cpu" else max(min(THREADS, len(os.sched_getaffinity(0))), 1)
    )
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    return device


def card(device: torch.device) -> str:
    """Name of the accelerator, or `cpu`."""
    return str(torch.cuda.get_device_name(device)) if device.type == "cuda" else "cpu"

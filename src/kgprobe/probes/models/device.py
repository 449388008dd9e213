"""Where a model works: on a processor with one thread, or on an accelerator.

KGPROBE_DEVICE says so: `auto` (an accelerator where there is one), `cpu`, `cuda`. It is no
parameter of a rule: what was answered elsewhere stands, and the record of every file of answers
tells the device. Its memory bounds the batches (`batching.budget_for`).
"""

import contextlib
import os
from collections.abc import Iterator

import torch

from kgprobe.probes.models.products import use_wide_vectors

#: the environment variable
VARIABLE = "KGPROBE_DEVICE"
LEGAL = ("auto", "cpu", "cuda")
#: threads beside an accelerator: tokenizers and tables, none of which adds floating-point numbers
THREADS = 4


class DeviceError(RuntimeError):
    """A device is asked for that is none, or that is not here; the message names what is legal."""


def choose_device(device: str = "") -> torch.device:
    """The device of this name, or, without a name, the one that the variable names.

    Raises DeviceError for unknown names, and for `cuda` where torch sees no such device.
    """
    name = device or os.environ.get(VARIABLE) or "auto"
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if name.partition(":")[0] not in LEGAL:
        raise DeviceError(f"{VARIABLE}: {name!r}; valid: {', '.join(LEGAL)}")
    if name.startswith("cuda") and not torch.cuda.is_available():
        raise DeviceError(
            f"{VARIABLE} is {name!r}, but torch {torch.__version__} sees no CUDA device; write "
            "`auto` or `cpu`, or ask the cluster for one (`--resources gpu=1`)"
        )
    return torch.device(name)


def ready() -> torch.device:
    """The device of this job, and torch set up for it.

    On a processor one thread works, so that the last bits do not depend on the machine's cores,
    with all of its vectors' width. float32 is float32 on an accelerator, too: no TF32.
    """
    device = choose_device()
    if device.type == "cpu":
        use_wide_vectors()
    torch.set_num_threads(
        1 if device.type == "cpu" else max(min(THREADS, len(os.sched_getaffinity(0))), 1)
    )
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    return device


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """While open, one thread works: sums over several are taken in another order, and nothing may
    depend on the cores of a machine."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def card(device: torch.device) -> str:
    """Name of the accelerator, or `cpu`."""
    return str(torch.cuda.get_device_name(device)) if device.type == "cuda" else "cpu"

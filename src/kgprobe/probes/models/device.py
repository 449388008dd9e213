"""The device that a model runs on: a CPU with one thread, or an accelerator.

KGPROBE_DEVICE sets it: `auto` (an accelerator if there is one), `cpu`, `cuda`. It is not a
parameter of a rule: answers computed on another device stay valid, and the record of every file
of answers names the device. Its memory limits the batches (`batching.budget_for`).
"""

import contextlib
import os
from collections.abc import Iterator

import torch

from kgprobe.probes.models.products import use_wide_vectors

#: the environment variable
VARIABLE = "KGPROBE_DEVICE"
LEGAL = ("auto", "cpu", "cuda")
#: threads beside an accelerator: for tokenizers and tables, which do no floating-point sums
THREADS = 4


class DeviceError(RuntimeError):
    """An invalid or missing device was requested; the message lists the valid names."""


def choose_device(device: str = "") -> torch.device:
    """Return the device with this name, or without a name the one that VARIABLE sets.

    Raises DeviceError for unknown names, and for `cuda` if torch sees no such device.
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
    """Set up torch for this job, and return its device.

    On a CPU one thread is used, so that the last bits do not depend on the number of cores,
    with the full vector width. On an accelerator float32 is not replaced by TF32.
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
    """Use one thread inside the context: several threads sum in another order, and results must not
    depend on the number of cores."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def card(device: torch.device) -> str:
    """Return the name of the accelerator, or `cpu`."""
    return str(torch.cuda.get_device_name(device)) if device.type == "cuda" else "cpu"

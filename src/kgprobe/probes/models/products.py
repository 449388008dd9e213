"""Products of float32 matrices on a CPU, computed by the faster library.

PyTorch multiplies float32 matrices with MKL, which uses half the vector width on AMD processors.
oneDNN, which PyTorch ships for other dtypes, uses all of it: 250 instead of 108 GFLOP/s on
one core of an EPYC with AVX-512 (`perf/products.py`). The arithmetic is float32 either way; the
order of additions differs, so the last bits differ from those of another processor, as
they do between any two processors.
"""

import functools
import warnings
from pathlib import Path
from typing import Any

import torch

CPUINFO = Path("/proc/cpuinfo")
#: the dtype that oneDNN multiplies here, kept under its own name for tests that patch torch.float32
SINGLE = torch.float32
#: with fewer rows, dispatching costs more than it saves
ROWS = 2
#: keeps the overridden operators of PyTorch registered while the process runs
_LIBRARY: list[torch.library.Library] = []


@functools.cache
def use_wide_vectors() -> bool:
    """Use oneDNN for float32 matrix products from now on if MKL uses half the vector width.

    Returns whether it does: on AMD processors with AVX-512, if PyTorch has oneDNN's linear layer
    and that reproduces MKL's product on a sample. The result is cached.
    """
    if not _is_narrow() or not _agrees():
        return False
    library = torch.library.Library("aten", "IMPL")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # warns that a kernel is overridden
        library.impl("mm", _mm, "CPU", allow_override=True)
        library.impl("addmm", _addmm, "CPU", allow_override=True)
    _LIBRARY.append(library)
    return True


def _is_narrow() -> bool:
    """Return whether MKL ignores AVX-512 on this processor although it is present."""
    try:
        text = CPUINFO.read_text(encoding="utf-8")
    except OSError:
        return False
    is_wide = torch.backends.cpu.get_cpu_capability() == "AVX512"
    return is_wide and "AuthenticAMD" in text and torch.backends.mkl.is_available()


def _agrees() -> bool:
    """Return whether oneDNN's linear layer exists and multiplies a sample exactly."""
    if not torch.backends.mkldnn.is_available():
        return False
    left, right = torch.arange(48.0).view(6, 8), torch.arange(40.0).view(8, 5)
    try:
        return bool(torch.equal(_product(left, right), left @ right))
    except (AttributeError, RuntimeError):
        return False


def _product(left: Any, right: Any, bias: Any = None) -> Any:
    """Compute left (m x k) times right (k x n), plus bias (n)."""
    return torch.ops.mkldnn._linear_pointwise(left, right.t(), bias, "none", [], "")


def _suits(left: Any, right: Any) -> bool:
    """Return whether oneDNN can multiply these: float32, at least ROWS rows, no negated view."""
    return bool(
        left.dtype == right.dtype == SINGLE
        and left.ndim == right.ndim == 2
        and left.shape[1] == right.shape[0]
        and left.shape[0] >= ROWS
        and left.shape[1] > 0
        and right.shape[1] > 0
        and not left.is_neg()
        and not right.is_neg()
    )


def _mm(left: Any, right: Any) -> Any:
    if _suits(left, right):
        return _product(left, right)
    return torch.ops.aten.mm.out(left, right, out=left.new_empty(0))


def _addmm(added: Any, left: Any, right: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    if beta == 1 and alpha == 1 and _suits(left, right) and added.dtype == SINGLE:
        if added.shape == right.shape[1:]:
            return _product(left, right, added)
        return _product(left, right).add_(added)
    return torch.ops.aten.addmm.out(
        added, left, right, beta=beta, alpha=alpha, out=left.new_empty(0)
    )

"""Probe what language models know and understand of knowledge graphs."""

import importlib
from typing import Any

__version__ = "0.1.0"

#: public names besides the modules; imported on first access, because they import torch
_LIBRARY = ("Benchmark", "Results", "ask", "benchmark", "load", "probe")


def __getattr__(name: str) -> Any:
    if name in _LIBRARY:
        return getattr(importlib.import_module("kgprobe.library"), name)
    raise AttributeError(f"module 'kgprobe' has no attribute {name!r}; valid: {_LIBRARY}")


def __dir__() -> list[str]:
    return sorted([*globals(), *_LIBRARY])

"""What does a language model know of a knowledge graph, and does it understand it?"""

import importlib
from typing import Any

__version__ = "0.1.0"

#: what the package gives besides its modules; imported when it is asked for, torch with it
_LIBRARY = ("Benchmark", "Results", "ask", "benchmark", "load", "probe")


def __getattr__(name: str) -> Any:
    if name in _LIBRARY:
        return getattr(importlib.import_module("kgprobe.library"), name)
    raise AttributeError(f"module 'kgprobe' has no attribute {name!r}; valid: {_LIBRARY}")


def __dir__() -> list[str]:
    return sorted([*globals(), *_LIBRARY])

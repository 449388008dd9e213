"""Where the time of sentence scoring goes: tokenise, body, head, rest; and what the core can do."""

import time
from collections.abc import Callable
from typing import Any

import torch


def watch() -> dict[str, float]:
    """Add up the CPU seconds of the engine's stages in the dict returned, from now on."""
    from kgprobe.probes.models import causal, head, masked
    from kgprobe.probes.scoring import sentence

    seconds: dict[str, float] = {}

    def timed(stage: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **options: Any) -> Any:
            start = time.process_time()
            try:
                return function(*args, **options)
            finally:
                seconds[stage] = seconds.get(stage, 0.0) + time.process_time() - start

        return call

    places: list[tuple[Any, str, str]] = [
        (sentence, "encode", "tokenise"),
        (sentence, "fill", "tokenise"),
        (causal.Causal, "_states", "body"),
        (masked.Masked, "_states", "body"),
        (head.Head, "logprobs", "head"),
    ]
    for owner, name, stage in places:
        setattr(owner, name, timed(stage, getattr(owner, name)))
    return seconds


def matmul_rate(size: int = 768, rows: int = 512, seconds: float = 2.0) -> float:
    """GFLOP per CPU second of float32 matrix products of a model's shape, best of ten."""
    a, b = torch.randn(rows, size), torch.randn(4 * size, size)
    best = 0.0
    for _ in range(10):
        start, count = time.process_time(), 0
        while time.process_time() - start < seconds / 10:
            torch.nn.functional.linear(a, b)
            count += 1
        spent = time.process_time() - start
        best = max(best, 2 * count * rows * size * 4 * size / spent / 1e9)
    return best

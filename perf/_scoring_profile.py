"""Where the time of sentence scoring goes: tokenise, body, head, rest; and what the core can do."""

import time
from collections.abc import Callable
from typing import Any

import torch


def watch() -> dict[str, float]:
    """Add up the CPU seconds of the engine's stages in the dict returned, from now on."""
    from kgprobe.probes.models import causal, head, masked
    from kgprobe.probes.scoring.sentence import score

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
        (score, "encode", "tokenise"),
        (score, "fill", "tokenise"),
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


def sizes(model: Any) -> dict[str, int]:
    """What the arithmetic of a model follows from: layers, weights of one, width, vocabulary."""
    table = model.get_input_embeddings().weight
    text = model.config.get_text_config()
    layers = int(text.num_hidden_layers)
    blocks = [m for m in model.base_model.modules() if isinstance(m, torch.nn.Linear)]
    weights = sum(m.weight.numel() for m in blocks if m.weight.shape[0] != table.shape[0])
    return {
        "layers": layers,
        "layer": weights // layers,
        "width": int(text.hidden_size),
        "vocabulary": int(table.shape[0]),
    }


def fractions(record: dict[str, Any], stages: dict[str, float], gflops: float) -> dict[str, float]:
    """Share of the core's measured matrix-product rate that body and head reach.

    Counted are the products with weights, twice a weight for every position fed; of the last layer,
    where it works at scored positions, keys and values at all positions and the rest at those.
    """
    size, fed, rows = record["sizes"], record["positions_fed"], record["head_rows"]
    everywhere, once = size["layers"] * size["layer"], 0
    if record.get("last_layer") == "scored":
        both = 2 * size["width"] ** 2
        everywhere, once = (size["layers"] - 1) * size["layer"] + both, size["layer"] - both
    body = 2e-9 * (fed * everywhere + rows * once)
    head = 2e-9 * rows * size["width"] * size["vocabulary"]
    return {
        "body_share_of_peak": round(body / stages["body"] / gflops, 3),
        "head_share_of_peak": round(head / stages["head"] / gflops, 3),
    }

"""Products of float32 matrices on one core: oneDNN, as kgprobe lets it multiply, and MKL.

    python -m perf.products

Shapes are those of SmolLM2-135M's layers and of a control model's, 512 positions; `ours` and `peer`
are GFLOP/s, and a training step (forward and backward of a control model's layer) in milliseconds.
Where MKL uses the whole processor there is nothing to compare, and no row is written. How much is
gained depends on the processor (on some half the time); nowhere may it be lost.
"""

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from kgprobe.probes.models.products import use_wide_vectors

#: rows x inner x columns
SHAPES = [(512, 576, 1536), (512, 1536, 576), (512, 128, 512), (2048, 576, 1024)]
SECONDS = 1.0


def seconds(job: Callable[[], object]) -> float:
    """Seconds of one call, the mean of a second of them."""
    for _ in range(3):
        job()
    started, calls = time.perf_counter(), 0
    while time.perf_counter() - started < SECONDS:
        job()
        calls += 1
    return (time.perf_counter() - started) / calls


def measured() -> dict[str, float]:
    """GFLOP/s of every shape, and milliseconds of a training step."""
    found = {}
    for m, k, n in SHAPES:
        left, right = torch.randn(m, k), torch.randn(k, n)
        took = seconds(lambda left=left, right=right: torch.mm(left, right))
        found[f"float32 product {m} x {k} x {n}, GFLOP/s"] = 2e-9 * m * k * n / took
    layers = torch.nn.Sequential(
        torch.nn.Linear(128, 512), torch.nn.GELU(), torch.nn.Linear(512, 128)
    )
    rows = torch.randn(2048, 128)

    def step() -> Any:
        layers.zero_grad()
        return layers(rows).square().mean().backward()

    found["forward and backward of a control model's layer, ms"] = 1e3 * seconds(step)
    return found


def main() -> None:
    """Write the rows."""
    torch.set_num_threads(1)
    peer = measured()
    rows: list[dict[str, object]] = []
    if use_wide_vectors():
        for name, ours in measured().items():
            ratio = ours / peer[name] if "GFLOP" in name else peer[name] / ours
            what, unit = name.rsplit(", ", 1)
            rows.append({"name": what, "ours": round(ours, 2), "peer": round(peer[name], 2),
                         "unit": unit, "ratio": round(ratio, 2), "target": 0.8})  # fmt: skip
    path = Path("results/perf/products.json")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(rows, indent=1))
    print(path.read_text())


if __name__ == "__main__":
    main()

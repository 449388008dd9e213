"""A number's last digit depends on neither the number of threads nor the order of rows."""

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from kgprobe.metrics.sums import ordered_mean, ordered_sum

PACKAGE = Path(__file__).parents[2] / "src" / "kgprobe"
#: prints a digest of means over 20,000 configurations; threads come from the environment
PRINTED = """
import hashlib, sys
import numpy as np, polars as pl
from kgprobe.tables.ontoprobe.memorizing import METRICS, WEIGHTINGS, averages
from kgprobe.metrics import attributes
random = np.random.default_rng(0)
n = 20_000
names = {c: random.choice(list("abc"), n) for c in ("task", "model", "pooling")}
values = {c: random.random(n) * random.choice([1, 1e6], n) for c in METRICS}
rows = pl.DataFrame({**names, **values})
digest = hashlib.sha256()
for weighting in WEIGHTINGS:
    digest.update(averages(rows, "pooling", weighting).to_numpy().astype(str).tobytes())
alphas = pl.DataFrame({
    "benchmark": "entity_centric", "pattern": "p", "example": [f"e{i % 7}" for i in range(n)],
    "position": range(n), "alpha": random.random(n),
})
print(pl.thread_pool_size())
print(digest.hexdigest(), attributes.measure(alphas).select("value_mean", "low").row(0))
"""


def printed(threads: int) -> tuple[str, str]:
    environment = {**os.environ, "POLARS_MAX_THREADS": str(threads)}
    result = subprocess.run(
        [sys.executable, "-c", PRINTED], env=environment, text=True, capture_output=True, check=True
    )
    used, values = result.stdout.splitlines()
    assert int(used) == threads
    return values, used


def test_any_number_of_threads_gives_the_same_last_digit():
    assert len({printed(threads)[0] for threads in (1, 2, 3, 8)}) == 1


@pytest.mark.parametrize("seed", range(5))
def test_any_order_of_rows_gives_the_same_last_digit(seed):
    random = np.random.default_rng(seed)
    frame = pl.DataFrame({"kind": random.choice(list("ab"), 999), "x": random.random(999) * 1e3})
    aggregated = (ordered_mean("x").alias("mean"), ordered_sum(pl.col("x") * 3).alias("sum"))
    found = [
        rows.group_by("kind").agg(*aggregated).sort("kind").rows()
        for rows in (frame, frame.reverse(), frame.sample(fraction=1.0, shuffle=True, seed=seed))
    ]
    assert found[0] == found[1] == found[2]
    for kind, mean, total in found[0]:
        own = sorted(frame.filter(kind=kind)["x"].to_list())
        assert mean == pytest.approx(sum(own) / len(own), rel=1e-12)
        assert total == pytest.approx(3 * sum(own), rel=1e-12)


def test_missing_values_are_left_out_and_nothing_has_no_mean():
    frame = pl.DataFrame({"x": [1.0, None, 2.0]})
    assert frame.select(ordered_mean("x")).item() == 1.5
    assert frame.head(0).select(ordered_mean("x")).item() is None


def test_no_frame_sums_floats_in_an_undefined_order():
    unordered = re.compile(r"pl\.col\([^()]*\)\.(mean|std|var)\(|pl\.mean\(")
    paths = [p for p in sorted(PACKAGE.rglob("*.py")) if p.name != "sums.py"]
    assert len(paths) > 100
    assert [str(p) for p in paths if unordered.search(p.read_text())] == []

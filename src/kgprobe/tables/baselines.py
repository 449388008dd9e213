"""Baselines of a probe: results without the subject, or with random weights.

    accuracy                              of the probe, on all questions
      without the subject                 setting `without`, on the questions of the baseline
      without trained weights
      instead: without the subject        the difference, paired, on the questions of both

A baseline may be asked a subset of the questions, under one template; the difference compares it
with the probe on the same ones. BEAR's baselines, which also have slices, are in slices.py.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from kgprobe.tables.answers import Probe
from kgprobe.tables.estimate import estimate
from kgprobe.tables.results import Number, family
from kgprobe.templates import NO_SUBJECTS

#: (benchmark, model, prompt, method of a probe, what the baseline leaves out) -> its file
Files = Mapping[tuple[str, ...], str]
ARE = (
    f"No subject: content-free words instead of the subject ({', '.join(NO_SUBJECTS)}). Random "
    "weights: the same architecture, randomly initialized. Both are asked a sample of the "
    "questions with one template; differences are paired, on the questions that both were asked."
)
#: caption for differences from baselines in a printed table
TESTED = (
    "p: answers of both exchanged at random, with Holm correction over the rows of a benchmark. "
    "The minimum detectable difference would be significant at 5 % in 80 of 100 samples of this "
    "size; above 100, no difference would be."
)
WORDS: Mapping[Any, str] = {
    ("without", "the subject"): "without the subject",
    ("without", "trained weights"): "without trained weights",
    ("metric", "detectable difference"): "minimum detectable difference, points",
}


@dataclass(frozen=True)
class Baseline:
    """Values of a baseline: columns `item`, `stratum` (a relation, or ""), the metrics, 0 to 1, and
    optionally `cluster`, of items that depend on each other. `of`: the probe's number, with the
    setting under which it was asked; `probe_values`: the probe's values under that setting,
    including at least these items."""

    of: Number
    without: str
    values: pl.DataFrame
    probe_values: pl.DataFrame


def files(rows: Sequence[Mapping[str, str]], paths: Sequence[str]) -> Files:
    """Map (benchmark, model, prompt, method, without) of `rows` to `paths`, in the same order."""
    keys = ("benchmark", "model", "prompt", "method", "without")
    named = [tuple(row[name] for name in keys) for row in rows]
    return dict(zip(named, paths, strict=True))


def below(paths: Files, probe: Probe) -> Iterator[tuple[str, str]]:
    """Yield (without, file) of the baselines of a probe, in printing order."""
    wanted = tuple(probe.dimensions.values())
    yield from ((key[-1], path) for key, path in paths.items() if key[:-1] == wanted)


def estimates(
    baselines: Sequence[Baseline], metrics: Sequence[str], seed: int = 0, macro: bool = False
) -> Iterator[Number]:
    """Yield every metric of each baseline (per cent), and the probe's gain over it in the first.

    Setting `without`, or `instead` for a difference, which has "p after Holm" over all baselines of
    a benchmark, and "detectable difference". A binary metric has Wilson's interval. `macro`: strata
    weigh the same, else items. Clusters of several items are drawn as wholes, and n counts them.
    """
    tested: dict[str, list[tuple[Number, NDArray[np.float64]]]] = {}
    for baseline in baselines:
        rows = baseline.values.sort("item")
        unit = "cluster" if "cluster" in rows.columns else "item"
        mean = partial(estimate, stratum="stratum", subject=unit, is_macro=macro, seed=seed)
        of = baseline.of.but(setting={"without": baseline.without})
        for metric in metrics:
            is_binary = bool(rows[metric].is_in([0.0, 1.0]).all())
            yield of.but(metric=metric, **mean(rows, metric, is_proportion=is_binary))
        both = baseline.probe_values.join(rows, on="item", suffix="_below").sort("item")
        if not both.height:
            continue
        first, below = metrics[0], f"{metrics[0]}_below"
        n = both[unit].n_unique()
        gap = baseline.of.but(setting={"instead": f"without {baseline.without}"}, n=n)
        yield gap.but(metric=first, **mean(both, first, less=below))
        # of every cluster the sum over its items, scaled to the same mean
        size = pl.len().over("stratum") * pl.col("stratum").n_unique() if macro else pl.len()
        gaps = both.with_columns(gap=(pl.col(first) - pl.col(below)) * n / size)
        gaps = gaps.group_by(unit, maintain_order=True).agg(pl.col("gap").sum())
        tested.setdefault(gap.benchmark, []).append((gap, gaps["gap"].to_numpy()))
    for tests in tested.values():
        yield from family(tests)

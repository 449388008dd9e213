"""Two steps (ours): whether a model that knows both hops composes them, by confidence of a rule.

    first hop   second hop   both hops                      each asked by itself
    two steps   of the examples whose hops are both right   composed
                of the others                               known or guessed without composing

Any gold at 1, first prompt; ties count with their expectation. Where steps are written out, the
hops are those that the same model wrote when asked directly. What cannot be read there is not
right, and counted apart.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import polars as pl

from kgprobe import schema
from kgprobe.benchmarks.attributes.shortcuts import STRATA
from kgprobe.contracts import WITHOUT
from kgprobe.probes.scoring.fill.reading import NONE, SEVERAL, stepped
from kgprobe.tables import baselines
from kgprobe.tables.answers import Probe, recorded
from kgprobe.tables.attributes import study as studies
from kgprobe.tables.attributes.study import FILLED, MAJORITY, RANDOM, WHO, Benchmark, groups
from kgprobe.tables.results import Number, hit_rate, proportion
from kgprobe.tables.views import View
from kgprobe.templates import STEPS

NAME = "two_steps"
FIRST, SECOND, BOTH = "first hop right", "second hop right", "both hops right"
RIGHT, GIVEN, REST = "two steps right", "two steps, hops right", "two steps, a hop wrong"
UNREAD = {NONE: "no answer written", SEVERAL: "several answers written"}
LONG = "too long for the model"
HOW: dict[str, Any] = {"k": 1, "alpha": "exact", "gold": "set", "pooling": "base"}
RAW = "templates"

VIEW = View(
    NAME, "Questions that need two steps, %",
    where={
        "benchmark": [NAME], "metric": [FIRST, SECOND, BOTH, RIGHT, GIVEN, REST],
        "slice": ["", *STRATA, "trained-on", "trained-on in part", "held-out"],
        "without": ["", *WITHOUT],
    },
    rows=["model", "method", "prompt", "slice", "without"],
    heads={"without": "asked", "slice": "part"},
    words={
        **baselines.WORDS, ("slice", ""): "all", ("prompt", RAW): "direct",
        ("prompt", STEPS): "steps written out",
        ("model", MAJORITY): "most frequent object", ("model", RANDOM): "random object",
    },
    caption="The bridge is not named, and nothing in the graph or in what control models are "
    "trained on links subject and answer. Parts: PCA confidence of the best rule that concludes a "
    "relation of subject and answer from the two steps, and for control models whether the hops "
    f"were trained on. Any gold, @1, first prompt. {baselines.ARE}",
)  # fmt: skip
READ = View(
    "two_steps_read", "Steps written out: answers that cannot be read",
    where={"benchmark": [NAME], "metric": [*UNREAD.values(), LONG]},
    rows=["model", "method", "prompt"], usual=0,
    caption="Questions. Without an answer behind the cue, or with several that differ, a reply "
    "counts as not right; what is too long for the model is left out.",
)  # fmt: skip


def numbers(
    alphas: pl.DataFrame, benchmark: Benchmark, known: pl.DataFrame | None = None, **setting: str
) -> Iterator[Number]:
    """Every number of direct answers, of all examples and of each part; `alphas`: of
    `Study.alphas`, `known`: `numbers.status`, where control models answer."""
    for who, answers in groups(wide(alphas), *WHO):
        base = Number(benchmark=NAME, **who, setting={**HOW, **setting})
        for part, rows in subsets(answers, benchmark, known):
            one, hops, right = base.but(slice=part), rows["a0"] * rows["a1"], rows["a2"]
            hits = {FIRST: rows["a0"], SECOND: rows["a1"], BOTH: hops, RIGHT: right}
            for metric, column in hits.items():
                yield one.but(metric=metric, **hit_rate(column.to_numpy()))
            yield from composed(one, right, hops)


def composed(of: Number, right: pl.Series, hops: pl.Series) -> Iterator[Number]:
    """Whether two steps are right where both hops are, and where they are not."""
    for metric, weight in ((GIVEN, hops), (REST, 1 - hops)):
        below = float(weight.sum())
        above = min(float((right * weight).sum()), below)
        fields = {**proportion(above, below), "numerator": above, "denominator": below}
        yield of.but(metric=metric, **fields | {"n": len(right)})


def wide(alphas: pl.DataFrame) -> pl.DataFrame:
    """(WHO, example, a0, a1, a2): first hop, second hop, two steps, where all three were asked."""
    chosen = alphas.filter(
        pl.col("pooling").is_in([HOW["pooling"], ""]),
        benchmark=NAME, k=HOW["k"], kind=HOW["alpha"], gold=HOW["gold"],
    )  # fmt: skip
    at, value = pl.col("position"), pl.col("alpha")
    hops = {f"a{i}": value.filter(at == i).first() for i in range(3)}
    return chosen.group_by(*WHO, "example").agg(**hops).drop_nulls().sort(*WHO, "example")


def subsets(
    rows: pl.DataFrame, benchmark: Benchmark, known: pl.DataFrame | None
) -> Iterator[tuple[str, pl.DataFrame]]:
    """All rows under "", then those of each stratum, and of each training status (`known`)."""
    flags = benchmark.examples.filter(position=0)
    flags_of = [flags.select("example", slice=pl.col("flags").list.first())]
    flags_of += [] if known is None else [known.select("example", slice="status").unique()]
    yield "", rows
    of = rows.join(pl.concat(flags_of), on="example", maintain_order="left")
    yield from ((part["slice"], group) for part, group in groups(of, "slice"))


def estimate_written(
    files: Mapping[Probe, str | Path],
    alphas: pl.DataFrame,
    benchmark: Benchmark,
    aliases: studies.Aliases | None = None,
    known: pl.DataFrame | None = None,
) -> Iterator[Number]:
    """The numbers of steps that were written out (`files`: FILLS of probes in form STEPS), with the
    hops of the same model's direct answers (`alphas`)."""
    names = studies.gold_names(benchmark.examples, aliases)
    direct = wide(alphas).select(*WHO, "example", hops=pl.col("a0") * pl.col("a1"))
    for probe, path in files.items():
        if probe.prompt != STEPS:
            continue
        fills = schema.read(path, schema.FILLS)
        texts = studies.of_texts(fills, names)
        texts = texts.filter(k=HOW["k"], kind=HOW["alpha"], gold=HOW["gold"])
        rows = texts.select(a2="alpha", example=pl.col("item").str.split("#").list.first())
        hops = direct.filter(model=probe.model, prompt=RAW, method=FILLED)
        base = Number(**probe.dimensions, setting=HOW)
        for part, some in subsets(rows.sort("example"), benchmark, known):
            one, both = base.but(slice=part), some.join(hops, on="example", maintain_order="left")
            if both.height:
                yield from composed(one, both["a2"], both["hops"])
            yield one.but(metric=RIGHT, **hit_rate(some["a2"].to_numpy()))
        unread = Counter(stepped(raw)[1] for raw in fills["raw"])
        for reason, metric in UNREAD.items():
            yield base.but(metric=metric, value=unread[reason], n=fills.height)
        if counts := recorded(path, "model").get("steps"):
            yield base.but(metric=LONG, value=counts["too_long"], n=counts["items"])

"""Two steps (ours): whether who knows both hops puts them together, by confidence of a rule.

    first hop   second hop   both hops                      each asked by itself
    two steps   of the examples whose hops are both right   composed
                of the others                               known or guessed without composing

Any gold at 1, first prompt; ties count with their expectation. Where steps are written out, the
hops are those that the same model wrote when asked directly. What cannot be read there is not
right, and told apart.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import polars as pl

from kgprobe import schema
from kgprobe.benchmarks.attributes.shortcuts import STRATA
from kgprobe.contracts import WITHOUT
from kgprobe.metrics.intervals import Interval, wilson
from kgprobe.probes.scoring.fill.reading import NONE, SEVERAL, stepped
from kgprobe.tables import baselines
from kgprobe.tables.answers import Probe, recorded
from kgprobe.tables.attributes import alpha
from kgprobe.tables.attributes.baselines import MAJORITY, RANDOM
from kgprobe.tables.attributes.study import FILLED, WHO, Benchmark, groups
from kgprobe.tables.results import Number, hit_rate
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
    NAME,
    "Questions that need two steps, %",
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
    "taught links subject and answer. Parts: PCA confidence of the best rule that concludes a "
    "relation of subject and answer from the two steps, and for control models whether the hops "
    f"were taught. Any gold, @1, first prompt. {baselines.ARE}",
)  # fmt: skip
READ = View(
    "two_steps_read",
    "Steps written out: answers that cannot be read",
    where={"benchmark": [NAME], "metric": [*UNREAD.values(), LONG]},
    rows=["model", "method", "prompt"],
    usual=0,
    caption="Questions. Without an answer behind the cue, or with several that differ, a reply "
    "counts as not right; what is too long for the model is left out.",
)


def numbers(
    alphas: pl.DataFrame, benchmark: Benchmark, known: pl.DataFrame | None = None, **setting: str
) -> Iterator[Number]:
    """Every number of direct answers, of all examples and of each part; `alphas`: of
    `Study.alphas`, `known`: `scores.status`, where control models answer.

    n: examples, all of whose triples were asked. A share of none is null.
    """
    rows = wide(alphas)
    if rows.is_empty():
        return
    of = parts(benchmark, known)
    for who, own in groups(rows, *WHO):
        base = Number(benchmark=NAME, **who, setting={**HOW, **setting})
        for part, found in of_parts(own, of):
            one = base.but(slice=part)
            hops = found["a0"] * found["a1"]
            for metric, hits in ((FIRST, found["a0"]), (SECOND, found["a1"]), (BOTH, hops)):
                yield one.but(metric=metric, **hit_rate(hits.to_numpy()))
            yield from composed(one, found["a2"], hops)


def composed(of: Number, right: pl.Series, hops: pl.Series) -> Iterator[Number]:
    """Of examples whether two steps are right, all, and where both hops are right or are not."""
    yield of.but(metric=RIGHT, **hit_rate(right.to_numpy()))
    for metric, weight in ((GIVEN, hops), (REST, 1 - hops)):
        below = float(weight.sum())
        above = min(float((right * weight).sum()), below)
        value = bounds = None
        if below > 0:
            value = 100 * above / below
            bounds = Interval(*wilson(above, below), "wilson").times(100)
        yield of.but(
            metric=metric, value=value, interval=bounds, n=len(right), numerator=above,
            denominator=below,
        )  # fmt: skip


def wide(alphas: pl.DataFrame) -> pl.DataFrame:
    """(WHO, example, a0, a1, a2): first hop, second hop, two steps, where all three were asked."""
    own = alphas.filter(
        pl.col("pooling").is_in([HOW["pooling"], ""]),
        benchmark=NAME, k=HOW["k"], kind=HOW["alpha"], gold=HOW["gold"],
    )  # fmt: skip
    hops = [
        pl.col("alpha").filter(pl.col("position") == i).first().alias(f"a{i}") for i in range(3)
    ]
    found = own.group_by(*WHO, "example").agg(*hops).drop_nulls()
    return found.sort(*WHO, "example")


def parts(benchmark: Benchmark, known: pl.DataFrame | None) -> pl.DataFrame:
    """(example, slice): the stratum of each example, and what was taught of it."""
    flags = benchmark.examples.filter(position=0)
    found = [flags.select("example", slice=pl.col("flags").list.first())]
    if known is not None:
        here = known.join(flags, on="example", how="semi")
        found.append(here.select("example", slice="status").unique())
    return pl.concat(found)


def of_parts(rows: pl.DataFrame, of: pl.DataFrame) -> Iterator[tuple[str, pl.DataFrame]]:
    """All rows under "", then those of each part."""
    yield "", rows
    for part in sorted(of["slice"].unique()):
        own = rows.join(of.filter(slice=part), on="example", how="semi", maintain_order="left")
        if own.height:
            yield part, own


def written(
    asked: Mapping[Probe, str | Path],
    alphas: pl.DataFrame,
    benchmark: Benchmark,
    aliases: alpha.Aliases | None = None,
    known: pl.DataFrame | None = None,
) -> Iterator[Number]:
    """The numbers of steps that were written out. `asked`: probe -> FILLS; `alphas`: of direct
    answers, from which the hops of the same model and method are taken."""
    names, of = alpha.gold_names(benchmark.examples, aliases), parts(benchmark, known)
    direct = wide(alphas)
    for probe, path in asked.items():
        fills = schema.read(path, schema.FILLS)
        found = alpha.of_texts(fills, names)
        own = found.filter(k=HOW["k"], alpha_kind=HOW["alpha"], gold=HOW["gold"])
        rows = own.select(a2="alpha", example=pl.col("item").str.split("#").list.first())
        rows = rows.sort("example")
        hops = direct.filter(model=probe.model, prompt=RAW, method=FILLED)
        hops = hops.select("example", hops=pl.col("a0") * pl.col("a1"))
        base = Number(**probe.asked, setting=HOW)
        for part, some in of_parts(rows, of):
            one, both = base.but(slice=part), some.join(hops, on="example", maintain_order="left")
            if both.height:
                yield from (n for n in composed(one, both["a2"], both["hops"]) if n.metric != RIGHT)
            yield one.but(metric=RIGHT, **hit_rate(some["a2"].to_numpy()))
        unread = Counter(stepped(raw)[1] for raw in fills["raw"])
        for reason, metric in UNREAD.items():
            yield base.but(metric=metric, value=unread[reason], n=fills.height)
        told = recorded(path, "model").get("steps", {})
        if told:
            yield base.but(metric=LONG, value=told["too_long"], n=told["items"])


def probes(formed: Mapping[Probe, str | Path]) -> dict[Probe, str | Path]:
    """Those of the probes in a form that wrote steps out."""
    return {probe: path for probe, path in formed.items() if probe.prompt == STEPS}

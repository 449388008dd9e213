"""Calibration of the nine metrics: examples whose facts the control models were taught or not.

Control models were taught half of the sampled examples, whole examples at once, and of some pairs
and paths the first triple alone. A metric that works is near 1 where everything was taught, has
a denominator and hardly a numerator where a part was, and little of either where nothing was.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import polars as pl

from kgprobe.knowledge.facts import fact_id
from kgprobe.metrics.attributes import measure
from kgprobe.metrics.intervals import wilson
from kgprobe.metrics.sums import ordered_mean, ordered_sum
from kgprobe.tables import calibration as house
from kgprobe.tables import marks, table
from kgprobe.tables.answers import Probe
from kgprobe.tables.attributes_baselines import METHOD as BASELINE
from kgprobe.tables.attributes_baselines import RANDOM
from kgprobe.tables.attributes_study import HEADLINE, SETTINGS, Study, ordered
from kgprobe.tables.attributes_tables import cell, percent

TAUGHT, PART, UNTAUGHT = "taught", "taught in part", "untaught"


def status(study: Study, taught: pl.DataFrame) -> pl.DataFrame:
    """(example, item, stored, fact, taught, status) of every sampled triple; `taught`: TAUGHT.

    The status of an example: all of its stored triples were taught, some, or none. What is inferred
    or reversed is no fact and was never taught.
    """
    known = taught.select("fact", "taught").unique("fact")
    parts = []
    for benchmark in study.benchmarks.values():
        rows = benchmark.examples.select(
            "example",
            item=pl.format("{}#{}", "example", "position"),
            stored=pl.col("origin") == "stored",
            fact=fact_id("predicate"),
        )
        rows = rows.join(known, on="fact", how="left")
        parts.append(rows.with_columns(taught=pl.col("stored") & pl.col("taught").fill_null(False)))
    triples = pl.concat(parts)
    own = pl.col("taught").filter(pl.col("stored"))
    told = pl.when(own.all()).then(pl.lit(TAUGHT)).when(own.any()).then(pl.lit(PART))
    statuses = triples.group_by("example").agg(status=told.otherwise(pl.lit(UNTAUGHT)))
    return triples.join(statuses, on="example").sort("item")


def calibration(study: Study, alphas: pl.DataFrame, taught: pl.DataFrame) -> pl.DataFrame | None:
    """`kg_taught`: every metric on examples that were taught, in part, or not; per cent.

    Row: benchmark | model | method; best prompt, @1, exact, own gold. Columns: the metric of each
    status with its numerator and denominator (undefined: no value), and the share of taught and of
    untaught stored triples that are right, with Wilson's interval. n: examples, or triples.
    `alphas`: of `study`. None when no sampled triple was taught. Models from elsewhere stand beside
    the control models as a reference: the halves are alike to them.
    """
    known = status(study, taught)
    if not known["taught"].any():
        return None
    statuses = known.select("example", "status").unique()
    own = alphas.filter(**HEADLINE).filter(pl.col("method") != BASELINE)
    own = own.join(statuses, on="example")
    made = measure(
        own,
        by=[*SETTINGS, "status"],
        ambiguous_denominator=study.ambiguous_denominator,
        seed=study.seed,
    )
    cells = []
    for name in ordered(made["benchmark"].unique().to_list()):
        for m in (
            made.filter(benchmark=name).sort("model", "method", "status").iter_rows(named=True)
        ):
            row = f"{name} | {m['model']} | {m['method']}"
            make = partial(cell, "kg_taught", row, n=m["examples"])
            if m["value_pooled"] is not None:
                value = 100 * m["value_pooled"]
                cells.append(make(m["status"], value=value, interval=percent(m)))
            for part in ("numerator", "denominator"):
                cells.append(make(f"{m['status']}, {part}", value=m[part]))
    return table.build([*cells, *_triples(own, known)])


def _triples(alphas: pl.DataFrame, known: pl.DataFrame) -> list[dict[str, object]]:
    """Share of the stored triples that are right, taught and untaught."""
    stored = known.filter("stored").select("item", "taught")
    item = pl.format("{}#{}", "example", "position")
    asked = alphas.with_columns(item=item).drop_nulls("alpha").join(stored, on="item")
    cells = []
    keys = ["benchmark", "model", "method", "taught"]
    for (name, model, method, told), group in sorted(asked.group_by(keys), key=lambda g: str(g[0])):
        right, n = group.select(ordered_sum("alpha")).item(), group.height
        low, high = wilson(min(right, n), n)
        column = f"triples {TAUGHT if told else UNTAUGHT}, right"
        row = f"{name} | {model} | {method}"
        interval = (100 * low, 100 * high)
        cells.append(cell("kg_taught", row, column, 100 * right / n, n, interval))
    return cells


def halves(study: Study, alphas: pl.DataFrame, taught: pl.DataFrame) -> pl.DataFrame | None:
    """`kg_calibration`: a row "model | method" of the control models, all nine benchmarks together.

    Right are stored triples whose own object comes first (best prompt, exact); one that several
    examples hold counts once, with its mean. Chance: a random object of the relation. None where
    not both halves were asked.
    """
    known = status(study, taught).filter("stored").select("item", "fact", "taught")
    item = pl.format("{}#{}", "example", "position")
    own = alphas.filter(**HEADLINE).with_columns(item=item).drop_nulls("alpha")
    own = own.join(known, on="item").sort("model", "method", "fact", "item")
    rows = own.group_by("model", "method", "fact", maintain_order=True).agg(
        ordered_mean("alpha"), pl.col("taught").first()
    )
    chances = dict(rows.filter(model=RANDOM, method=BASELINE).select("fact", "alpha").rows())
    controls = {(a.probe.model, a.probe.method) for a in study.answers if a.probe.control}
    cells: list[dict[str, object]] = []
    for model, method in sorted(controls):
        found = rows.filter(model=model, method=method)
        shares: list[house.Share] = []
        for half in (True, False):
            values = found.filter(taught=half)["alpha"].to_list()
            if values:
                low, high = wilson(min(sum(values), len(values)), len(values))
                mean = 100 * sum(values) / len(values)
                shares.append((mean, len(values), (100 * low, 100 * high)))
        if len(shares) == 2:
            guessed = [chances[f] for f in found.filter(taught=False)["fact"]]
            chance = 100 * sum(guessed) / len(guessed)
            row = f"{model} | {method}"
            cells += house.cells("kg_calibration", row, shares[0], shares[1], chance, paper="kg")
    return table.build(cells) if cells else None


def signed(probes: Sequence[Probe], calibrated: pl.DataFrame | None) -> list[Probe]:
    """The probes with the mark behind the model of those outside the requirement, in whichever of
    the nine benchmarks; `calibrated`: `kg_calibration`, its rows marked or not."""
    outside = {marks.bare(row) for row in house.outside(calibrated)}
    return [
        replace(p, model=p.model + marks.OUTSIDE)
        if marks.bare(f"{p.model} | {p.method}") in outside
        else p
        for p in probes
    ]


def signed_study(study: Study, calibrated: pl.DataFrame | None) -> Study:
    """The same of the answers of a study."""
    probes = signed([a.probe for a in study.answers], calibrated)
    pairs = zip(study.answers, probes, strict=True)
    return replace(study, answers=[replace(a, probe=p) for a, p in pairs])

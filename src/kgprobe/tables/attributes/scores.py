"""The nine metrics as numbers: under every setting, by pattern, on parts of the examples.

A value (equations 2 to 10) is in per cent; its n counts examples, its fraction the defined ones.
Where no example is defined it is null, which is not zero.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import polars as pl

from kgprobe.knowledge.facts import fact_id
from kgprobe.metrics.attributes import ALL
from kgprobe.metrics.intervals import Interval
from kgprobe.metrics.sums import ordered_mean
from kgprobe.tables.attributes.asked import RIGHT
from kgprobe.tables.attributes.baselines import METHOD as BASELINE
from kgprobe.tables.attributes.baselines import RANDOM
from kgprobe.tables.attributes.published import BENCHMARKS, Published
from kgprobe.tables.attributes.study import (
    HEADLINE,
    ITEM,
    SETTINGS,
    WHO,
    Study,
    filled,
    groups,
    of_row,
)
from kgprobe.tables.report import validity
from kgprobe.tables.results import Number, bounds_of, hit_rate, printed

VALUE = "value"
TABLE2 = "Mruthyunjaya et al. 2023, Table 2"
PUBLISHED = "published"
#: a model of the sheet -> the one of the paper's Table 2 with the same weights
PRINTED = {"bert-base-uncased": "BERT", "roberta-base": "RoBERTa", "t5-base": "T5"}
TAUGHT, PART, UNTAUGHT = "trained-on", "trained-on in part", "held-out"
#: a relation of bias with fewer triples has only their number
FEWEST = 10
Row = Mapping[str, Any]


def number(row: Row, **changes: Any) -> Number:
    """A row of `Study.measure` as a number; its dimensions are the row's but for `changes`."""
    value = row["value_pooled"]
    return of_row(
        row,
        metric=VALUE,
        group="" if row["pattern"] == ALL else row["pattern"],
        value=None if value is None else 100 * value,
        interval=bounds_of(row),
        n=row["examples"],
        numerator=row["numerator"],
        denominator=row["denominator"],
    ).but(**changes)


def count(number: Number, metric: str, value: float, **changes: Any) -> Number:
    """Another measure of the same examples."""
    bare = dict.fromkeys(("interval", "numerator", "denominator", "published", "source"))
    return number.but(**{**bare, "metric": metric, "value": value, **changes})


def values(study: Study, alphas: pl.DataFrame, published: Published) -> Iterator[Number]:
    """Table 2 under every setting, beside its printed figures, and the means of all nine.

    undefined, missing: examples whose denominator is 0, and that were not asked completely. mean of
    examples: that of their ratios, where it is not the ratio of their sums.
    """
    found = study.measure(alphas)
    for row in found.iter_rows(named=True):
        key = row["benchmark"], PRINTED.get(row["model"], ""), row["k"]
        made, known = number(row), published.scores.get(key)
        if made.setting == {**IN_PRINT, "k": row["k"]}:
            made = made.but(**printed(known, TABLE2))
        yield made
        yield count(made, "undefined", row["undefined"])
        yield count(made, "missing", row["missing"])
        pooled, mean = row["value_pooled"], row["value_mean"]
        if mean is not None and abs(mean - pooled) > 1e-12:
            yield count(made, "mean of examples", 100 * mean)
    printed_ones = found.filter(pl.col("benchmark").is_in(BENCHMARKS))
    for _, rows in printed_ones.group_by(SETTINGS, maintain_order=True):
        ratios = rows["value_pooled"].drop_nulls()
        if len(ratios) == len(BENCHMARKS):
            row = rows.row(0, named=True)
            value, n = 100 * sum(ratios) / len(ratios), rows["examples"].sum()
            yield count(number(row), VALUE, value, benchmark="", n=n)
    yield from _printed(published)


IN_PRINT: dict[str, Any] = {
    "alpha": HEADLINE["kind"],
    "gold": HEADLINE["gold"],
    "pooling": HEADLINE["pooling"],
}


def _printed(published: Published) -> Iterator[Number]:
    """The models of Table 2, and their means where all nine are printed."""
    means: dict[tuple[str, int], list[float]] = {}
    for (benchmark, model, k), value in published.scores.items():
        made = Number(metric=VALUE, benchmark=benchmark, model=model, method=PUBLISHED, value=value)
        made = made.but(setting={**IN_PRINT, "k": k}, **printed(value, TABLE2))
        yield made
        own = means.setdefault((model, k), [])
        own.append(value)
        if len(own) == len(BENCHMARKS):
            yield count(made, VALUE, sum(own) / len(own), benchmark="")


def patterns(study: Study, alphas: pl.DataFrame) -> Iterator[Number]:
    """The metric of every pattern (Figure 4), and how often bias is wrong.

    Hierarchy has one pattern: it is broken by the class two up.
    """
    own = alphas.filter(**HEADLINE)
    if "hierarchy" in study.benchmarks:
        tops = study.benchmarks["hierarchy"].examples.filter(role="two_up")
        names = tops.select("example", top=pl.format("{} ({})", "object_label", "object"))
        own = own.join(names, on="example", how="left")
        own = own.with_columns(pattern=pl.coalesce("top", "pattern")).drop("top")
    found = study.measure(own, patterns=True).filter(pl.col("pattern") != ALL)
    for row in found.iter_rows(named=True):
        made = number(row)
        yield made
        if made.benchmark == "bias":
            yield count(made, "triples", made.n)
            if made.value is not None and made.interval and made.n >= FEWEST:
                low, high, kind = made.interval
                wrong = Interval(100 - high, 100 - low, kind)
                yield count(made, "wrong", 100 - made.value, interval=wrong)


def ambiguous(study: Study, alphas: pl.DataFrame) -> Iterator[Number]:
    """Pairs of one name by whether their objects are equal, and given the head alone.

    Head and tail are asked with one text, so that with one prompt only equal objects can be right.
    `mode`: the denominator, either of both (or) or the head; docs/papers/attributes.md, Decisions.
    """
    if "ambiguous" not in study.benchmarks:
        return
    examples = study.benchmarks["ambiguous"].examples
    same = examples.filter(pl.col("flags").list.contains("same_object"))["example"].unique()
    own = alphas.filter(benchmark="ambiguous", k=1, kind="exact", gold="own")
    own = own.filter(pl.col("pooling").is_in(["best", "mean"]), filled())
    is_same = pl.col("example").is_in(same.implode())
    for part, rows, mode in (
        ("all pairs", own, "or"),
        ("objects differ", own.filter(~is_same), "or"),
        ("objects equal", own.filter(is_same), "or"),
        ("all pairs", own, "head"),
    ):
        if rows.height:
            found = replace(study, ambiguous_denominator=mode).measure(rows)
            for row in found.iter_rows(named=True):
                yield number(row, slice=part, setting={"mode": mode})


def status(study: Study, taught: pl.DataFrame) -> pl.DataFrame:
    """(example, item, stored, fact, taught, status) of every sampled triple; `taught`: TAUGHT.

    The status of an example: all of its stored triples were taught, some, or none. What is inferred
    or reversed is no fact and was never taught.
    """
    known = taught.select("fact", "taught").unique("fact")
    stored = pl.col("origin") == "stored"
    examples = [
        b.examples.select("example", ITEM, stored=stored, fact=fact_id("predicate"))
        for b in study.benchmarks.values()
    ]
    triples = pl.concat(examples).join(known, on="fact", how="left")
    triples = triples.with_columns(taught=pl.col("stored") & pl.col("taught").fill_null(False))
    own = pl.col("taught").filter(pl.col("stored"))
    told = pl.when(own.all()).then(pl.lit(TAUGHT)).when(own.any()).then(pl.lit(PART))
    statuses = triples.group_by("example").agg(status=told.otherwise(pl.lit(UNTAUGHT)))
    return triples.join(statuses, on="example").sort("item")


def taught(study: Study, alphas: pl.DataFrame, known: pl.DataFrame) -> Iterator[Number]:
    """Every metric on examples that control models were taught, in part, or not; `known`: `status`.

    A metric that works is near 1 where everything was taught, has a denominator and hardly a
    numerator where a part was, and little of either where nothing was. triples right: the share of
    taught and of untaught stored triples. Models from elsewhere stand beside as a reference. None
    where no sampled triple was taught.
    """
    if not known["taught"].any():
        return
    own = alphas.filter(**HEADLINE)
    statuses = known.select("example", slice="status").unique()
    for row in study.measure(own.join(statuses, on="example"), "slice").iter_rows(named=True):
        yield number(row, slice=row["slice"])
    stored = known.filter("stored").select("item", "taught")
    asked = own.with_columns(ITEM).drop_nulls("alpha").join(stored, on="item")
    for row, rows in groups(asked.sort("alpha"), "benchmark", *SETTINGS, "taught"):
        part = TAUGHT if row["taught"] else UNTAUGHT
        yield of_row(row, metric=RIGHT, slice=part, **hit_rate(rows["alpha"].to_numpy()))


def halves(study: Study, alphas: pl.DataFrame, known: pl.DataFrame) -> Iterator[Number]:
    """The requirement on control models, all nine benchmarks together; `known`: `status`.

    Right are stored triples whose own object comes first (best prompt, exact); one that several
    examples hold counts once, with its mean. Chance: a random object of the relation. None where
    not both halves were asked.
    """
    at_one = {name: HEADLINE[name] for name in ("k", "kind", "gold")}
    asked = alphas.filter(**at_one).filter(pl.col("pooling").is_in([HEADLINE["pooling"], ""]))
    asked = asked.with_columns(ITEM).drop_nulls("alpha")
    asked = asked.join(known.filter("stored"), on="item").sort(*WHO, "fact", "item")
    rows = asked.group_by(*WHO, "fact", maintain_order=True).agg(
        ordered_mean("alpha"), pl.col("taught").first()
    )
    chances = dict(rows.filter(model=RANDOM, method=BASELINE).select("fact", "alpha").rows())
    controls = {tuple(getattr(p, name) for name in WHO) for p in study.answers if p.control}
    for who in sorted(controls):
        names = dict(zip(WHO, who, strict=True))
        own = rows.filter(**names)
        parts = [own.filter(taught=half) for half in (True, False)]
        if all(part.height for part in parts):
            chance = sum(chances[fact] for fact in parts[1]["fact"]) / parts[1].height
            yes, no = (validity.share(part["alpha"].to_numpy()) for part in parts)
            of = Number(**names)
            yield from validity.numbers(of, yes, no, 100 * chance, is_control=True)

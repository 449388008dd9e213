"""OntoProbe's reasoning: premises classified, nine settings, Figures 2, 3, 4 and 8 (sec. 3.2, 5).

Rows of a rule are scored once per prompt form (premises written or left out); whether a premise
that is left out is implicit or absent is a filter on rows.
"""

import itertools
import json
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import polars as pl

from kgprobe.metrics.bootstrap import bootstrap, mean_of_ratios, of_draws
from kgprobe.metrics.intervals import Interval, wilson
from kgprobe.metrics.sums import ordered_mean
from kgprobe.tables.answers import Probe
from kgprobe.tables.ontoprobe import values as per_item
from kgprobe.tables.results import Number

#: codes of a premise's setting
SETTINGS = {2: "EX", 1: "IM", 0: "NO"}
RULES = ("rdfs2", "rdfs3", "rdfs5", "rdfs7", "rdfs9", "rdfs11")
PREMISES = [f"P1 {a}, P2 {b}" for a in SETTINGS.values() for b in SETTINGS.values()]
WEIGHTINGS = ("rows", "schemes, rules and models")


def halves(
    ranked: Sequence[tuple[str, float, float, int]], rule: str = "halves"
) -> dict[str, int | None]:
    """item -> 1 (memorized), 0 (not) or None, from (item, reciprocal rank, gold rank, row).

    The first floor(n/2) rows by reciprocal rank are memorized, the last floor(n/2) are not; ties
    fall to the mean gold rank, then to the row. `threshold`: memorized when the best gold is among
    the first five.

    >>> halves([("a", 1.0, 1, 0), ("b", 0.5, 2, 1), ("c", 0.1, 10, 2)])
    {'a': 1, 'b': None, 'c': 0}
    """
    if rule == "threshold":
        return {item: int(rank <= 5) for item, _, rank, _ in ranked}
    order = sorted(ranked, key=lambda r: (-r[1], r[2], r[3]))
    half = len(order) // 2
    middle = dict.fromkeys(item for item, *_ in order)
    known = {r[0]: 1 for r in order[:half]} | {r[0]: 0 for r in order[len(order) - half :]}
    return {**middle, **known}


def classify(
    cases: pl.DataFrame,
    first: pl.DataFrame,
    second: pl.DataFrame,
    rule: str = "halves",
    skip_missing: bool = False,
) -> pl.DataFrame:
    """item, rule and the classes of its premises, first and second: 1 memorized, 0 not, null in
    neither half; of all `cases` (the reasoning ITEMS), but only test rows are classified.

    `first`: item, MRR, rank of the memorizing items at m/mean with the template kind in use;
    `second`: item, MRR, rank of the tests of P2, means over the pairs of pseudowords. As released
    (`skip_missing`) rows whose subject is no candidate are not classified by P2.
    """
    known = {i: (m, r) for i, m, r in first.select("item", "MRR", "rank").rows()}
    asked = {i: (m, r) for i, m, r in second.select("item", "MRR", "rank").rows()}
    classes: tuple[dict[str, int | None], dict[str, int | None]] = {}, {}
    for name in RULES:
        own = cases.filter(relation=name, role="test").sort("row")
        ones, twos = [], []
        for item, row, text in own.select("item", "row", "meta").rows():
            meta = json.loads(text)
            if meta["p1_item"] in known:
                ones.append((item, *known[meta["p1_item"]], row))
            if item in asked and not (skip_missing and meta.get("missing")):
                twos.append((item, *asked[item], row))
        for found, rows in zip(classes, (ones, twos), strict=True):
            found.update(halves(rows, rule))
    one, two = (
        pl.Series([found.get(item) for item in cases["item"]], dtype=pl.Int32) for found in classes
    )
    return cases.select("item", rule="relation", first=one, second=two)


def reciprocal(ranks: pl.DataFrame, key: Sequence[str], ties: str = "expectation") -> pl.DataFrame:
    """`key`, MRR (0 to 1) and mean gold rank of rank ranges, one row per key; `ties` as in
    values.metrics."""
    heads, found = per_item.read_ties(ranks, key, ties)
    values = {"MRR": pl.Series(found.mrr), "rank": pl.Series(1.0 / found.mrra)}
    return heads.select(list(key)).with_columns(**values)


def settings(
    answers: pl.DataFrame, premises: Mapping[str, pl.DataFrame], drop_middle: bool = False
) -> pl.DataFrame:
    """rule, scheme, premise (one of PREMISES), item, MRR: every row in each setting it belongs to.

    `answers` has item, scheme, p1, p2 (whether written), pair, MRR, whose mean over pairs counts;
    `premises` by the kind of P1's template (manual, soft) as `classify` makes them. As released
    (`drop_middle`) the row between the halves of P1 is missing from explicit premises, too.
    """
    means = answers.group_by("item", "scheme", "p1", "p2").agg(ordered_mean("MRR"))
    kept = []
    for kind, classes in premises.items():
        own = means.filter(pl.col("scheme").str.starts_with(kind)).join(classes, on="item")
        own = own.filter(pl.col("first").is_not_null()) if drop_middle else own
        for one, two in itertools.product(SETTINGS, repeat=2):
            is_one = pl.lit(one == 2) | (pl.col("first") == one)
            is_two = pl.lit(two == 2) | (pl.col("second") == two)
            part = own.filter(is_one, is_two, p1=one == 2, p2=two == 2)
            name = f"P1 {SETTINGS[one]}, P2 {SETTINGS[two]}"
            kept.append(part.select("rule", "scheme", "item", "MRR", premise=pl.lit(name)))
    return pl.concat(kept).sort("rule", "scheme", "premise", "item")


def reasoned(found: Mapping[Probe, pl.DataFrame], seed: int) -> Iterator[Number]:
    """Figures 2 and 8 (model and rule), 3 (all) and 4 (schemes, of all and of each model): MRR, 0
    to 1, by setting.

    `found`: `settings` of each probe. Each is an unweighted mean of what is not empty, or one
    weighed by its rows. n counts distinct rows: one that several schemes or models ask counts once.
    Empty settings are left out, never 0.
    """
    parts = [
        own.with_columns(model=pl.lit(probe.model), benchmark=pl.lit(probe.benchmark))
        for probe, own in found.items()
    ]
    every, asked = pl.concat(parts), ["model", "benchmark", "rule"]
    for probe in found:
        own = every.filter(model=probe.model, benchmark=probe.benchmark)
        for (rule, premise), rows in own.group_by("rule", "premise", maintain_order=True):
            base = Number(**probe.asked, group=rule, setting={"premise": premise})
            yield from _weighed(base, rows, ["scheme"], seed)
        for (scheme, premise), rows in own.group_by("scheme", "premise", maintain_order=True):
            setting = {"premise": premise, "scheme": scheme}
            yield from _weighed(Number(**probe.asked, setting=setting), rows, ["rule"], seed)
    base = Number(method="reason")
    for (premise,), rows in every.group_by("premise", maintain_order=True):
        yield from _weighed(base.but(setting={"premise": premise}), rows, asked, seed)
    for (scheme, premise), rows in every.group_by("scheme", "premise", maintain_order=True):
        setting = {"premise": premise, "scheme": scheme}
        yield from _weighed(base.but(setting=setting), rows, asked, seed)


def weights(rows: pl.DataFrame, unit: list[str]) -> pl.DataFrame:
    """benchmark, rule, model, scheme and what the mean over their rows weighs in an average over
    `unit`: `equal`, units weigh the same, or `rows`, by their rows; schemes share their unit's."""
    keys = ["benchmark", "rule", "model", "scheme"]
    sizes = rows.group_by(keys, maintain_order=True).len("size")
    return sizes.with_columns(
        equal=1 / pl.len().over(unit), rows=pl.col("size").sum().over(unit) / pl.len().over(unit)
    )


def _weighed(base: Number, rows: pl.DataFrame, unit: list[str], seed: int) -> Iterator[Number]:
    """MRR of one setting: a mean over units, which are means over their schemes' means over rows;
    units weigh the same, or by their rows. Resampled are the rows of each rule, each with all that
    models and schemes made of it.
    """
    sizes = weights(rows, unit).with_columns(
        part=pl.concat_str("benchmark", "rule", separator="/"),
        column=pl.concat_str("model", "scheme", separator="/"),
    )
    asked = pl.concat_str("model", "scheme", separator="/").alias("column")
    row = ["benchmark", "rule", "item"]
    wide = rows.with_columns(asked).pivot(on="column", index=row, values="MRR").sort(row)
    columns = wide.columns[3:]
    values = wide.select(columns).to_numpy()
    is_asked = ~np.isnan(values)
    parts = wide.select(pl.concat_str("benchmark", "rule", separator="/")).to_series().to_list()
    boot = bootstrap(np.hstack([np.nan_to_num(values), is_asked]), parts, seed=seed)
    for weighting, name in zip(WEIGHTINGS, ("rows", "equal"), strict=True):
        held = np.zeros((len(boot.strata), len(columns)))
        for part, column, weight in sizes.select("part", "column", name).rows():
            held[boot.strata.index(part), columns.index(column)] = weight
        value = float(mean_of_ratios(boot.sums, held))
        n = wide.height
        found = of_draws(mean_of_ratios(boot.drawn, held), boot.kind)
        yield base.but(
            metric="MRR",
            n=n,
            value=value,
            interval=found or Interval(*wilson(min(value, 1.0) * n, n), "wilson"),
            setting={"weighting": weighting},
        )

"""OntoProbe's reasoning: premises classified, nine settings, Figures 2, 3, 4 and 8 (sec. 3.2, 5).

Rows of a rule are scored once per prompt form (premises written or left out); whether a premise
that is left out is implicit or not given is a filter on rows.
"""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import polars as pl

from kgprobe.metrics.bootstrap import bootstrap, mean_of_ratios, of_draws
from kgprobe.metrics.intervals import Interval, wilson
from kgprobe.metrics.sums import ordered_mean
from kgprobe.tables import judged
from kgprobe.tables.answers import Probe
from kgprobe.tables.ontoprobe import values as per_item
from kgprobe.tables.results import Number

#: a premise is explicit, or, if left out, memorized (implicit) or not given
SETTINGS = ("EX", "IM", "NO")
RULES = ("rdfs2", "rdfs3", "rdfs5", "rdfs7", "rdfs9", "rdfs11")
PREMISES = [f"P1 {a}, P2 {b}" for a in SETTINGS for b in SETTINGS]
WEIGHTINGS = ("rows", "schemes, rules and models")
#: the spread of MRR over pairs of pseudowords; n counts pairs
SPREAD = "standard deviation over pairs"
#: the reciprocal rank at which a rule's rows are split, on either side; n counts rows of the side
CUT = "MRR at the cut"
SIDES = {1: "last memorized", 0: "first not memorized"}
#: strata of the bootstrap, and columns that are averaged separately
STRATUM = pl.concat_str("benchmark", "rule", separator="/")
COLUMN = pl.concat_str("model", "scheme", separator="/")
#: rows with one mean, which has a single weight
KEYS = ["benchmark", "rule", "model", "scheme"]


def split_by_rank(ranked: pl.DataFrame, rule: str = "halves") -> pl.DataFrame:
    """Return item, MRR and `known` of rows (item, rule, MRR, rank, row): the first floor(n/2) of a
    rule by reciprocal rank are memorized (1), the last floor(n/2) are not (0); ties are broken by
    mean gold rank, then by row. `threshold`: memorized if the best gold (`rank` is then its rank)
    is among the first five."""
    if rule == "threshold":
        return ranked.select("item", "MRR", known=(pl.col("rank") <= 5).cast(pl.Int32))
    position, size = pl.int_range(pl.len()).over("rule"), pl.len().over("rule")
    known = pl.when(position < size // 2).then(1).when(position >= size - size // 2).then(0)
    return ranked.sort("rule", -pl.col("MRR"), "rank", "row").select("item", "MRR", known=known)


def classify(
    cases: pl.DataFrame,
    first: pl.DataFrame,
    second: pl.DataFrame,
    rule: str = "halves",
    skip_missing: bool = False,
) -> pl.DataFrame:
    """Return item, rule and the classes of its premises (by `rule` over test rows, else null), each
    with the MRR behind it, of `cases`, the reasoning ITEMS. `first`: item, MRR, rank of the
    memorizing items at m/mean with the template kind in use; `second`: those of the tests of P2,
    means over the pairs of pseudowords. With `skip_missing` (as released), rows whose subject is
    not a candidate are not classified by P2."""
    source, lacks = (pl.col("meta").str.json_path_match(f"$.{k}") for k in ("p1_item", "missing"))
    result = cases.select("item", rule="relation")
    rows = cases.filter(role="test").select("item", "row", "meta", rule="relation")
    kept = rows.filter(lacks.ne_missing("true")) if skip_missing else rows
    for name, part, ranks in (
        ("first", rows.with_columns(of=source), first),
        ("second", kept.with_columns(of="item"), second),
    ):
        ranks = ranks.select("MRR", "rank", of="item").unique("of", keep="last")
        classes = split_by_rank(part.join(ranks, on="of"), rule)
        classes = classes.rename({"known": name, "MRR": f"{name} MRR"})
        result = result.join(classes, on="item", how="left", maintain_order="left")
    return result


def reciprocal(ranks: pl.DataFrame, key: Sequence[str], ties: str = "expectation") -> pl.DataFrame:
    """Return `key`, MRR (0 to 1) and mean gold rank of rank ranges, one row per key; `ties` as in
    values.metrics."""
    heads, items = per_item.read_ties(ranks, key, ties)
    values = {"MRR": pl.Series(items.mrr), "rank": pl.Series(1.0 / items.mrra)}
    return heads.select(list(key)).with_columns(**values)


def judge(ranks: pl.DataFrame, ties: str = "expectation") -> pl.DataFrame:
    """Convert REASON_RANKS to JUDGED: rows by prompt form and pseudowords; `premise` states which
    premises are written (EX) and which are left out."""
    heads, items = per_item.read_ties(ranks, ["item", "scheme", "p1", "p2", "pair"], ties)
    one, two = (pl.when(p).then(pl.lit("EX")).otherwise(pl.lit("out")) for p in ("p1", "p2"))
    return heads.select(
        "item", "scheme", draw="pair", rank_low="best", rank_high="worst",
        hit=pl.Series(items.hits[1]), premise=pl.format("P1 {}, P2 {}", one, two),
        matching=pl.lit(judged.ANY),
    )  # fmt: skip


def settings(
    answers: pl.DataFrame, premises: Mapping[str, pl.DataFrame], drop_middle: bool = False
) -> pl.DataFrame:
    """Return rule, scheme, premise (one of PREMISES), item, MRR: every row in each of its settings.
    `answers`: item, scheme, p1, p2 (whether written), pair, MRR; `premises`: from `classify`, by
    the kind of P1's template (manual, soft). With `drop_middle` (as released) the middle row of
    P1's median split is also missing from explicit premises."""
    means = answers.group_by("item", "scheme", "p1", "p2").agg(ordered_mean("MRR"))
    kept = pl.concat(
        means.filter(pl.col("scheme").str.starts_with(kind)).join(classes, on="item")
        for kind, classes in premises.items()
    )
    left_out = {1: "IM", 0: "NO"}
    one, two = (
        pl.when(written)
        .then(pl.lit("EX"))
        .otherwise(pl.col(known).replace_strict(left_out, default=None, return_dtype=pl.String))
        for written, known in (("p1", "first"), ("p2", "second"))
    )
    rows = kept.drop_nulls("first") if drop_middle else kept
    rows = rows.with_columns(premise=pl.format("P1 {}, P2 {}", one, two)).drop_nulls("premise")
    rows = rows.select("rule", "scheme", "item", "MRR", "premise")
    return rows.sort("rule", "scheme", "premise", "item")


def estimate_rules(settled: Mapping[Probe, pl.DataFrame], seed: int) -> Iterator[Number]:
    """Yield Figures 2 and 8 (model and rule), 3 (all) and 4 (schemes, of all and each model): MRR,
    0 to 1, by setting. `settled`: each probe's `settings`; empty ones are left out, never 0."""
    frames = {
        probe: frame.with_columns(model=pl.lit(probe.model), benchmark=pl.lit(probe.benchmark))
        for probe, frame in settled.items()
    }
    every, drawn_items = pl.concat(frames.values()), ["model", "benchmark", "rule"]
    of_all = Number(method="reason")
    groups = [(of_all, every, by, drawn_items) for by in ([], ["scheme"])]
    for probe, frame in frames.items():
        groups += [(Number(**probe.dimensions), frame, ["rule"], ["scheme"])]
        groups += [(Number(**probe.dimensions), frame, ["scheme"], ["rule"])]
    for of, rows, by, unit in groups:
        for values, part in rows.group_by("premise", *by, maintain_order=True):
            setting = dict(zip(("premise", *by), map(str, values), strict=True))
            base = of.but(group=setting.pop("rule", ""), setting=setting)
            yield from _estimate(base, part, unit, seed)


def estimate_spread(
    probe: Probe,
    answers: pl.DataFrame,
    premises: Mapping[str, pl.DataFrame],
    drop_middle: bool = False,
) -> Iterator[Number]:
    """Yield SPREAD by rule and setting: the standard deviation of the mean over schemes of the mean
    MRR of their rows. Arguments as in `settings`; empty with one pair of pseudowords."""
    keys = ["rule", "premise", "pair"]
    rows = pl.concat(
        settings(part, premises, drop_middle).with_columns(pair=pl.lit(pair))
        for (pair,), part in answers.group_by("pair", maintain_order=True)
    )
    by_scheme = rows.group_by(*keys, "scheme").agg(ordered_mean("MRR"))
    by_pair = by_scheme.group_by(keys).agg(ordered_mean("MRR"))
    spread = by_pair.group_by(keys[:2]).agg(pl.col("MRR").sort().std(), n=pl.len())
    for rule, premise, value, n in spread.drop_nulls("MRR").sort("rule", "premise").rows():
        yield Number(
            **probe.dimensions, group=rule, metric=SPREAD, value=value, n=n,
            setting={"premise": premise},
        )  # fmt: skip


def estimate_cuts(probe: Probe, premises: Mapping[str, pl.DataFrame]) -> Iterator[Number]:
    """Yield CUT by rule, premise and kind of template: MRR of the last row that counts as memorized
    and the first that does not; if equal, ties decide the split. `premises`: as in `settings`."""
    for kind, classes in premises.items():
        for premise, name in (("P1", "first"), ("P2", "second")):
            rows, mrr = classes.drop_nulls(name), pl.col(f"{name} MRR")
            ends = rows.group_by("rule", name).agg(low=mrr.min(), high=mrr.max(), n=pl.len())
            for rule, known, low, high, n in ends.sort("rule", name).rows():
                yield Number(
                    **probe.dimensions, group=rule, metric=CUT, slice=SIDES[known], n=n,
                    value=low if known else high, setting={"premise": premise, "scheme": kind},
                )  # fmt: skip


def _weights(rows: pl.DataFrame, unit: list[str]) -> pl.DataFrame:
    """Return benchmark, rule, model, scheme and the weight of their mean in an average over `unit`,
    by each of WEIGHTINGS: by rows, or equal; schemes share the weight of their unit."""
    sizes = rows.group_by(KEYS, maintain_order=True).len("size")
    alike = pl.len().over(unit)
    return sizes.with_columns(
        (pl.col("size").sum().over(unit) / alike).alias(WEIGHTINGS[0]),
        (1 / alike).alias(WEIGHTINGS[1]),
    )


def _estimate(base: Number, rows: pl.DataFrame, unit: list[str], seed: int) -> Iterator[Number]:
    """Yield MRR of one setting: a mean over units, which are means over their schemes' means over
    rows; units weigh the same, or by rows. The rows of each rule are resampled, each with results
    of all models and schemes; n counts a row once even if several schemes or models ask it."""
    sized = rows.join(_weights(rows, unit), on=KEYS, maintain_order="left").select(
        "item", "MRR", *WEIGHTINGS, part=STRATUM, column=COLUMN
    )
    drawn_items = sized.select("part", "item").unique().sort("part", "item").with_row_index("at")
    columns = sized.select("column").unique().sort("column").with_row_index("to")
    placed = sized.join(drawn_items, on=["part", "item"]).join(columns, on="column")
    n, to = drawn_items.height, placed["to"].to_numpy()
    # MRR of each row by scheme and model, and whether they asked it
    grids = np.zeros((2, n, columns.height))
    grids[0, placed["at"].to_numpy(), to] = placed["MRR"].to_numpy()
    grids[1, placed["at"].to_numpy(), to] = 1.0
    boot = bootstrap(np.hstack([*grids]), drawn_items["part"].to_list(), seed=seed)
    for weighting in WEIGHTINGS:
        weights = np.zeros((len(boot.strata), columns.height))
        for part, column, weight in placed.select("part", "to", weighting).unique().rows():
            weights[boot.strata.index(part), column] = weight
        value = float(mean_of_ratios(boot.sums, weights))
        draws = mean_of_ratios(boot.drawn, weights)
        degrees = boot.degrees_of_freedom(weights=weights.sum(axis=1) / boot.sizes)
        interval = of_draws(draws, degrees_of_freedom=degrees)
        interval = interval or Interval(*wilson(min(value, 1.0) * n, n), "wilson")
        weighed = base.but(metric="MRR", n=n, value=value, setting={"weighting": weighting})
        yield weighed.but(interval=interval)

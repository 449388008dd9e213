"""OntoProbe's reasoning: premises classified, nine settings, Figures 2, 3, 4 and 8 (sec. 3.2, 5).

Rows of a rule are scored once per prompt form (premises written or left out); whether a premise
that is left out is implicit or absent is a filter on rows.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from kgprobe.metrics.sums import ordered_mean, ordered_sum
from kgprobe.tables import ontoprobe_values, table

#: codes of a premise's setting
SETTINGS = {2: "EX", 1: "IM", 0: "NO"}
RULES = ("rdfs2", "rdfs3", "rdfs5", "rdfs7", "rdfs9", "rdfs11")


@dataclass(frozen=True)
class Premises:
    """Per rule: item -> class of P1 and of P2 (1 memorised, 0 not, None in neither half)."""

    first: dict[str, dict[str, int | None]]
    second: dict[str, dict[str, int | None]]
    cuts: dict[tuple[str, str], float]


def halves(
    ranked: Sequence[tuple[str, float, float, int]], rule: str = "halves"
) -> tuple[dict[str, int | None], float]:
    """item -> 1 (memorised), 0 (not) or None, from (item, reciprocal rank, gold rank, row).

    The first floor(n/2) rows by reciprocal rank are memorised, the last floor(n/2) are not; ties
    fall to the mean gold rank, then to the row. `threshold`: memorised when the best gold is among
    the first five. Also returns the reciprocal rank at the cut.

    >>> halves([("a", 1.0, 1, 0), ("b", 0.5, 2, 1), ("c", 0.1, 10, 2)])
    ({'a': 1, 'b': None, 'c': 0}, 1.0)
    """
    if rule == "threshold":
        return {item: int(rank <= 5) for item, _, rank, _ in ranked}, 0.2
    order = sorted(ranked, key=lambda r: (-r[1], r[2], r[3]))
    half = len(order) // 2
    found: dict[str, int | None] = {r[0]: None for r in order}
    found |= {r[0]: 1 for r in order[:half]}
    found |= {r[0]: 0 for r in order[len(order) - half :]}
    return found, order[half - 1][1] if half else 0.0


def classify(
    cases: pl.DataFrame,
    first: pl.DataFrame,
    second: pl.DataFrame,
    rule: str = "halves",
    skip_missing: bool = False,
) -> Premises:
    """Classes of the premises of the test rows of `cases` (the reasoning ITEMS).

    `first`: item, MRR, rank of the memorising items at m/mean with the template kind in use;
    `second`: item, MRR, rank of the tests of P2, means over the pairs of pseudowords. As released
    (`skip_missing`) rows whose subject is no candidate are not classified by P2.
    """
    known = {i: (m, r) for i, m, r in first.select("item", "MRR", "rank").rows()}
    asked = {i: (m, r) for i, m, r in second.select("item", "MRR", "rank").rows()}
    found = Premises({}, {}, {})
    for name in RULES:
        own = cases.filter(relation=name, role="test").sort("row")
        ones, twos = [], []
        for item, row, text in own.select("item", "row", "meta").rows():
            meta = json.loads(text)
            if meta["p1_item"] in known:
                ones.append((item, *known[meta["p1_item"]], row))
            if item in asked and not (skip_missing and meta.get("missing")):
                twos.append((item, *asked[item], row))
        for key, rows, kept in (("P1", ones, found.first), ("P2", twos, found.second)):
            kept[name], found.cuts[name, key] = halves(rows, rule)
    return found


def reciprocal(ranks: pl.DataFrame, key: Sequence[str], ties: str = "expectation") -> pl.DataFrame:
    """`key`, MRR (0 to 1) and mean gold rank of rank ranges, one row per key.

    `ties` as in `ontoprobe_values.metrics`.
    """
    rows = ranks.sort([*key, "in_order" if ties == "index_order" else "best"])
    heads = rows.with_row_index("_at").unique(list(key), keep="first", maintain_order=True)
    values = ontoprobe_values.read_ties(rows, heads["_at"].to_numpy().astype(np.int64), ties)
    return heads.select(list(key)).with_columns(
        MRR=pl.Series(values.mrr), rank=pl.Series(1.0 / values.mrra)
    )


def settings(
    answers: pl.DataFrame,
    premises: Mapping[str, Premises],
    cases: pl.DataFrame,
    drop_middle: bool = False,
) -> pl.DataFrame:
    """rule, scheme, p1, p2 (codes 2, 1, 0), items, MRR, low, high: means over rows, then pairs.

    `items` are the rows of the setting.

    `answers` has item, scheme, p1, p2 (whether written), pair, MRR; `premises` by template kind
    (manual, soft). The interval holds 95 % of bootstrap resamples of the rows. As released
    (`drop_middle`) the row between the halves of P1 is missing from explicit premises, too.
    """
    rules = dict(cases.select("item", "relation").rows())
    means = answers.group_by("item", "scheme", "p1", "p2").agg(ordered_mean("MRR"))
    by: dict[tuple[str, str, bool, bool], dict[str, float]] = {}
    for item, scheme, p1, p2, value in means.sort("item").rows():
        by.setdefault((rules[item], scheme, p1, p2), {})[item] = value
    rows = []
    for rule in RULES:
        for scheme in sorted(answers["scheme"].unique().to_list()):
            kind = premises.get(scheme.split("+")[0])
            if kind is None:
                continue
            for one in SETTINGS:
                for two in SETTINGS:
                    found = by.get((rule, scheme, one == 2, two == 2), {})
                    kept = {
                        item: value
                        for item, value in found.items()
                        if (one == 2 or kind.first[rule].get(item) == one)
                        and not (drop_middle and kind.first[rule].get(item) is None)
                        and (two == 2 or kind.second[rule].get(item) == two)
                    }
                    mean = _mean(list(kept.values()))
                    rows.append((rule, scheme, one, two, list(kept), *mean))
    columns: dict[str, pl.DataType | type[pl.DataType]] = {
        "rule": pl.String,
        "scheme": pl.String,
        "p1": pl.Int32,
        "p2": pl.Int32,
        "items": pl.List(pl.String),
        "MRR": pl.Float64,
        "low": pl.Float64,
        "high": pl.Float64,
    }
    return pl.DataFrame(rows, schema=columns, orient="row")


def figures(found: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
    """TABLE `ontoprobe_reasoning`: Figures 2 and 8 (model and rule), 3 (all) and 4 (schemes).

    `found`: "model's label, benchmark" -> `settings`. Every step is an unweighted mean of what is
    not empty; "by rows" beside it weighs by the rows of every scheme. n counts distinct rows: one
    that several schemes or models ask counts once. Empty settings are left out, never 0.
    """
    cells: list[dict[str, object]] = []
    parts = []
    for name, frame in found.items():
        # rows of different benchmarks may have one name
        own = pl.concat_str(pl.lit(name.rsplit(", ", 1)[-1] + "/"), pl.element())
        parts.append(
            frame.filter(pl.col("items").list.len() > 0).with_columns(
                model=pl.lit(name),
                weight=pl.col("items").list.len(),
                items=pl.col("items").list.eval(own),
            )
        )
    everything = pl.concat(parts)
    setting = ["p1", "p2"]
    per_rule = _averaged(everything, ["model", "rule", *setting])
    for row in per_rule.sort("model", "rule", *setting).iter_rows(named=True):
        cells += _pair("ontoprobe_reasoning", f"{row['model']} | {row['rule']}", row)
    for row in _averaged(per_rule, setting).iter_rows(named=True):
        cells += _pair("ontoprobe_reasoning", "all models | all rules", row)
    per_scheme = _averaged(everything, ["scheme", *setting])
    for row in per_scheme.iter_rows(named=True):
        cells += _pair("ontoprobe_reasoning", f"scheme {row['scheme']} | all rules", row)
    return table.build(cells)


def _averaged(rows: pl.DataFrame, by: Sequence[str]) -> pl.DataFrame:
    """Unweighted and row-weighted mean MRR per `by` with the means of the bounds, and its rows.

    The mean of the parts' bounds is wider than the interval of their mean would be.
    """
    numbers = ("MRR", "low", "high")
    weighted = {
        f"{name} by rows": ordered_sum(pl.col(name) * pl.col("weight")) / pl.col("weight").sum()
        for name in numbers
    }
    means = [ordered_mean(name) for name in numbers]
    asked = pl.col("items").explode().unique().sort()
    return rows.group_by(by).agg(asked, pl.col("weight").sum(), *means, **weighted).sort(by)


def _pair(name: str, row: str, found: Mapping[str, object]) -> list[dict[str, object]]:
    column = f"P1 {SETTINGS[int(str(found['p1']))]}, P2 {SETTINGS[int(str(found['p2']))]}"
    n = len(found["items"])  # type: ignore[arg-type]
    cells = []
    for suffix, words in (("", ""), (" by rows", ", by rows")):
        mean, low, high = (float(str(found[k + suffix])) for k in ("MRR", "low", "high"))
        bounds = min(low, mean), max(high, mean)
        cells.append(table.cell(name, row, column + words, mean, n, bounds, None, "ontoprobe"))
    return cells


def _mean(values: Sequence[float], draws: int = 1000) -> tuple[float | None, ...]:
    if not values:
        return None, None, None
    own = np.asarray(values)
    picked = np.random.Generator(np.random.PCG64(0)).integers(0, len(own), (draws, len(own)))
    low, high = np.quantile(own[picked].mean(axis=1), [0.025, 0.975])
    return float(own.mean()), float(min(low, own.mean())), float(max(high, own.mean()))

"""Bootstrap draws of a number of RESULTS, from the answers that it is the mean of.

Items are drawn within their relation, those of a subject together if n counts subjects; those
without a relation are drawn by subject, since draws of a balanced set share examples. The draws of
a relation depend only on its items: numbers of the same items are drawn together, so that their
difference is paired, and those of other items independently.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl

from kgprobe.contracts import GIVEN_UNDER, RESULTS, SETTING
from kgprobe.metrics.bootstrap import Numbers, bootstrap
from kgprobe.metrics.sums import ordered_mean
from kgprobe.sampling import hash_key
from kgprobe.tables.judged import PLAIN

PROBE = ("paper", "benchmark", "model", "prompt", "method")
#: metrics that are means of hits
HIT_RATES = ("accuracy", "P@1", "R@1")
#: settings under which they still are, in addition to GIVEN_UNDER -> the values, if not any
UNDER: Mapping[str, tuple[str, ...]] = {
    "alpha": ("", "exact"), "k": ("", "1"), "weighting": ("", "items", "relations"),
    "aggregation": (), "choice": (), "gold": (),
}  # fmt: skip


@dataclass(frozen=True)
class Draws:
    """A number in every draw of its items, with the degrees of freedom of its interval."""

    values: Numbers
    degrees_of_freedom: float


class RunAnswers:
    """The answers of a run, by probe; `judged`: the frame JUDGED of its papers."""

    def __init__(self, judged: pl.DataFrame) -> None:
        self.by_probe = judged.drop_nulls("hit").partition_by(PROBE, as_dict=True)
        self.known: dict[tuple[Any, ...], Draws | None] = {}

    def draws(self, row: Mapping[str, Any]) -> Draws | None:
        """Return a row of RESULTS in every draw, or None unless it is a mean of hits in per cent,
        over items or over relations, of the probe's own aggregation and one configuration, and has
        the value and n of these answers."""
        key = tuple(row[name] for name in RESULTS.key)
        if key not in self.known:
            self.known[key] = self._draw(row)
        return self.known[key]

    def _draw(self, row: Mapping[str, Any]) -> Draws | None:
        answers = self.by_probe.get(tuple(row[name] for name in PROBE))
        if answers is None or row["slice"] or not _is_hit_rate(row):
            return None
        given = {name: row[name] for name in GIVEN_UNDER if row[name]}
        aggregation = row["aggregation"]
        if aggregation and aggregation in answers["pooling"]:
            given["pooling"] = aggregation
        elif aggregation and (row["paper"], aggregation) != ("attributes", "sum"):
            return None
        is_of = pl.col("relation", "group") == row["group"] if row["group"] else pl.lit(True)
        matched = pl.col("matching").is_in([row["gold"]] if row["gold"] else PLAIN)
        answers = answers.filter(pl.any_horizontal(is_of), matched, **given)
        # a choice among configurations does not name the chosen one
        if row["choice"] and answers.select(GIVEN_UNDER).n_unique() > 1:
            return None
        for _, rows in answers.group_by("matching", maintain_order=True):
            key = ["item", "relation", "subject"]
            items = rows.group_by(key).agg(ordered_mean("hit")).sort("item")
            names = items.group_by("relation").agg(pl.col("item").sort().str.join("\n"))
            strata = {name: f"{hash_key(0, ids):x}" for name, ids in names.rows()}
            owner = [strata[name] for name in items["relation"]]
            subjects = items.select(pl.concat_str("relation", "subject", separator="\n"))
            clusters = subjects.to_series()
            if "" in strata or row["n"] == clusters.n_unique() < items.height:
                shared = clusters.to_list()
            elif row["n"] == items.height:
                shared = None
            else:
                continue
            boot = bootstrap(items["hit"].to_numpy(), owner, shared)
            weights = {"items": None, "relations": boot.macro()}
            if row["weighting"]:
                weights = {row["weighting"]: weights[row["weighting"]]}
            elif row["paper"] == "autoprompt":  # its numbers are means over relations
                weights = dict(reversed(weights.items()))
            for used in weights.values():
                if abs(100 * boot.mean(0, used) - row["value"]) < 1e-9:
                    degrees = boot.degrees_of_freedom(weights=used)
                    return Draws(100 * boot.draws(0, used), degrees)
        return None


def _is_hit_rate(row: Mapping[str, Any]) -> bool:
    """Return whether the dimensions of a row of RESULTS are those of a mean of hits."""
    others = dict.fromkeys((name for name in SETTING if name not in GIVEN_UNDER), ("",))
    legal = {**others, **UNDER}.items()
    return row["metric"] in HIT_RATES and all(not ok or row[name] in ok for name, ok in legal)

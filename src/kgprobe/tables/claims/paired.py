"""Bootstrap draws of a number of RESULTS, from the answers that it is the mean of.

Items are drawn within their relation; those without one are drawn by subject, since draws of a
balanced set share examples. The draws of a relation depend only on its items: numbers of the same
items are drawn together, so that their difference is paired, and those of other items
independently.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl

from kgprobe.contracts import GIVEN_UNDER, RESULTS
from kgprobe.metrics.bootstrap import Numbers, bootstrap
from kgprobe.metrics.sums import ordered_mean
from kgprobe.sampling import hash_key

PROBE = ("paper", "benchmark", "model", "prompt", "method")


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
        """Return a row of RESULTS in every draw, or None unless its value is a mean of hits in per
        cent, over items or over relations, under one gold matching."""
        key = tuple(row[name] for name in RESULTS.key)
        if key not in self.known:
            self.known[key] = self._draw(row)
        return self.known[key]

    def _draw(self, row: Mapping[str, Any]) -> Draws | None:
        answers = self.by_probe.get(tuple(row[name] for name in PROBE))
        if answers is None or row["slice"]:
            return None
        given = {name: row[name] for name in GIVEN_UNDER if row[name]}
        is_of = pl.col("relation", "group") == row["group"] if row["group"] else pl.lit(True)
        answers = answers.filter(pl.any_horizontal(is_of), **given)
        for _, rows in answers.group_by("matching", maintain_order=True):
            key = ["item", "relation", "subject"]
            items = rows.group_by(key).agg(ordered_mean("hit")).sort("item")
            names = items.group_by("relation").agg(pl.col("item").sort().str.join("\n"))
            strata = {name: f"{hash_key(0, ids):x}" for name, ids in names.rows()}
            owner = [strata[name] for name in items["relation"]]
            shared = items["subject"].to_list() if "" in strata else None
            boot = bootstrap(items["hit"].to_numpy(), owner, shared)
            for weights in (None, boot.macro()):
                if abs(100 * boot.mean(0, weights) - row["value"]) < 1e-9:
                    degrees = boot.degrees_of_freedom(weights=weights)
                    return Draws(100 * boot.draws(0, weights), degrees)
        return None

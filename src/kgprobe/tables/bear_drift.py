"""`bear_drift`: how a fresh pull and a constructed set stand to the released BEAR."""

from functools import partial

import polars as pl

from kgprobe.benchmarks.bear_drift import STATES
from kgprobe.metrics.intervals import wilson
from kgprobe.metrics.sums import ordered_sum
from kgprobe.tables import table

#: the row that counts all relations
ALL = "all relations"


def drift(states: pl.DataFrame, agreement: pl.DataFrame | None = None) -> pl.DataFrame:
    """TABLE from DRIFT and AGREEMENT: a row per relation and one over all of them.

    Columns: the share of every state in per cent (Wilson; n: released instances) and its count;
    released instances found in the pull; Jaccard of answers and of instances in per cent (n: size
    of the union); AUC of popularity, 0 to 1 (n: pairs compared).
    """
    cells = []
    for relation in [ALL, *sorted(states["relation"].unique())]:
        own = states if relation == ALL else states.filter(pl.col("relation") == relation)
        for state in STATES:
            count = own.filter(pl.col("state") == state).height
            cells.append(_share(relation, state, count, own.height))
            cells.append(_cell(relation, f"{state}, count", count, own.height))
        if agreement is not None:
            near = (
                agreement if relation == ALL else agreement.filter(pl.col("relation") == relation)
            )
            cells += _agreement(relation, near)
    return table.build(cells)


_cell = partial(table.cell, "bear_drift")


def _share(relation: str, column: str, count: int, n: int) -> dict[str, object]:
    low, high = wilson(count, n)
    return _cell(relation, column, 100 * count / n, n, (100 * low, 100 * high))


def _agreement(relation: str, near: pl.DataFrame) -> list[dict[str, object]]:
    if not near.height:
        return []
    total = near.drop("relation", "auc").sum().row(0, named=True)
    cells = [_share(relation, "found in the pull", total["found"], total["released"])]
    for kind in ("answers", "instances"):
        shared, union = total[f"{kind}_shared"], total[f"{kind}_all"]
        cells.append(_cell(relation, f"{kind}, Jaccard", 100 * shared / union, union))
    if total["pairs"]:
        weighted = near.select(ordered_sum(pl.col("auc").fill_null(0) * pl.col("pairs"))).item()
        weighted /= total["pairs"]
        cells.append(_cell(relation, "popularity AUC", weighted, total["pairs"]))
    return cells

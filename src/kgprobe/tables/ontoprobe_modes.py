"""The modes side by side: what a number becomes when one point is switched alone."""

from collections.abc import Iterator, Mapping, Sequence

import polars as pl

from kgprobe.benchmarks.ontoprobe_concepts import TASKS
from kgprobe.benchmarks.ontoprobe_modes import MODES, SWITCHES
from kgprobe.tables import ontoprobe_values, table
from kgprobe.tables.ontoprobe import Answered, means
from kgprobe.tables.ontoprobe_values import CONFIGURATION

#: switches that are decided when tables are made; all others need questions or passes of their own
AT_TABLES = ("tp_rows", "recall", "ties", "select")


def modes(
    answered: Sequence[Answered], ranked: Mapping[tuple[str, str], pl.DataFrame], seed: int
) -> pl.DataFrame:
    """TABLE `ontoprobe_modes`: MRR (for recall: its K = 5) with one switch at each of its values.

    `ranked`: (model, benchmark) -> the same values with every tie at its mean rank. Rows are "model
    | benchmark | task", columns "switch = value".
    """
    cells: list[dict[str, object]] = []
    for own in answered:
        middle = ranked.get((own.model, own.benchmark))
        for task in TASKS:
            rows = own.values.filter(pl.col("template") != "soft", task=task)
            chosen = ontoprobe_values.choose(rows).get(task) if rows.height else None
            if chosen is None:
                continue
            name = f"{own.label} | {own.benchmark} | {task}"
            for column, metric, values in _variants(rows, chosen, middle, task):
                for _, value, bounds in means(values, (metric,), seed):
                    cells.append(
                        table.cell(
                            "ontoprobe_modes",
                            name,
                            column,
                            value,
                            values.height,
                            bounds,
                            paper="ontoprobe",
                        )
                    )
    return table.build(cells)


def points(values: Mapping[str, str]) -> list[dict[str, object]]:
    """Every switch with its value in each mode and here; "assumed": the paper is silent."""
    rows: list[dict[str, object]] = []
    for key, switch in sorted(SWITCHES.items(), key=lambda pair: (pair[1].point or 99, pair[0])):
        row: dict[str, object] = {"point": switch.point, "switch": key}
        for mode in MODES:
            mark = " (assumed)" if mode == "paper" and switch.assumed else ""
            row[mode] = f"{getattr(switch, mode)}{mark}"
        row["here"] = values[key]
        row["takes effect"] = "in these tables" if key in AT_TABLES else "in questions or passes"
        rows.append(row)
    return rows


def _variants(
    rows: pl.DataFrame, chosen: tuple[object, ...], middle: pl.DataFrame | None, task: str
) -> Iterator[tuple[str, str, pl.DataFrame]]:
    own = ontoprobe_values.of_configuration(rows, chosen)
    default = ontoprobe_values.asked_rows(own)
    yield "all at default", "MRR", default
    yield "tp_rows = all", "MRR", ontoprobe_values.asked_rows(own, "all")
    if middle is not None:
        tied = ontoprobe_values.of_configuration(middle.filter(task=task), chosen)
        yield "ties = mean_rank", "MRR", ontoprobe_values.asked_rows(tied)
    test = ontoprobe_values.asked_rows(rows)
    best = test.group_by(CONFIGURATION).agg(pl.col("MRR").mean())
    first = best.sort(["MRR", *CONFIGURATION], descending=[True, *[False] * 5]).row(0)[:5]
    yield "select = oracle", "MRR", ontoprobe_values.of_configuration(test, first)
    yield "recall = hit (R@5)", "R@5", default
    yield "recall = share (recall@5)", "recall@5", default

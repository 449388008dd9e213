"""OntoProbe's chosen configuration by depth, number of golds, popularity, and without leaks."""

from collections.abc import Iterator, Sequence

import polars as pl

from kgprobe.tables import ontoprobe, ontoprobe_values, table
from kgprobe.tables.ontoprobe import Answered
from kgprobe.tables.ontoprobe_values import METRICS


def groups(answered: Sequence[Answered], tp_rows: str, seed: int) -> pl.DataFrame:
    """TABLE `ontoprobe_groups`: the chosen configuration by depth, golds, popularity, leak.

    Rows are "model | benchmark | task | group: value"; without leaks, the items whose gold stands
    inside the subject are removed.
    """
    cells: list[dict[str, object]] = []
    for own in answered:
        for kind, values in ontoprobe.kinds(own.values):
            for task, configuration in sorted(ontoprobe_values.choose(values).items()):
                test = ontoprobe_values.asked_rows(values, tp_rows).filter(task=task)
                rows = ontoprobe_values.of_configuration(test, configuration)
                for name, part in _parts(rows):
                    row = f"{own.label} | {own.benchmark} | {task} | {kind} | {name}"
                    for metric, value, interval in ontoprobe.means(part, METRICS, seed):
                        cells.append(
                            table.cell(
                                "ontoprobe_groups",
                                row,
                                metric,
                                value,
                                part.height,
                                interval,
                                paper="ontoprobe",
                            )
                        )
    return table.build(cells)


def _parts(rows: pl.DataFrame) -> Iterator[tuple[str, pl.DataFrame]]:
    yield "all", rows
    if rows["leak"].any():
        yield "without leaks", rows.filter(~pl.col("leak"))
    if rows["task"][0] in ("TP", "SCO"):
        for depth in sorted(rows["depth"].unique().to_list()):
            yield f"depth {depth}", rows.filter(depth=depth)
    for golds in sorted(rows["golds"].unique().to_list()):
        yield f"golds {golds}", rows.filter(golds=golds)
    known = rows.filter(pl.col("popularity").is_not_null())
    if known.height >= 30:
        cuts = [float(known["popularity"].quantile(q) or 0) for q in (1 / 3, 2 / 3)]
        low = pl.col("popularity") <= cuts[0]
        high = pl.col("popularity") > cuts[1]
        yield "popularity low", known.filter(low)
        yield "popularity middle", known.filter(~low & ~high)
        yield "popularity high", known.filter(~low & high)

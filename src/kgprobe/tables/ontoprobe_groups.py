"""OntoProbe's chosen configuration by depth, golds, tokens, popularity, and without leaks."""

from collections.abc import Iterator, Sequence

import polars as pl

from kgprobe.tables import ontoprobe, ontoprobe_values, table
from kgprobe.tables.ontoprobe import Answered
from kgprobe.tables.ontoprobe_means import means
from kgprobe.tables.ontoprobe_values import METRICS


def groups(
    answered: Sequence[Answered], tp_rows: str, seed: int, select: str = "dev"
) -> pl.DataFrame | None:
    """TABLE `ontoprobe_groups`: the chosen configuration by depth, golds, tokens, popularity, leak.

    Rows are "model | benchmark | task | kind | group"; without leaks, the items whose gold stands
    inside the subject are removed; tokens are those of the finest gold, counted by the model's own
    tokenizer. Under `select` oracle the test rows choose the configuration, and the kind says so.
    None where there are no dev rows to choose by.
    """
    cells: list[dict[str, object]] = []
    for own in answered:
        for kind, every in ontoprobe.kinds(own.values):
            values = ontoprobe_values.over_seeds(every)
            chosen = ontoprobe_values.choose(values, select)
            mark = kind if select == "dev" else f"{kind}, oracle"
            for task, configuration in sorted(chosen.items()):
                test = ontoprobe_values.asked_rows(values, tp_rows).filter(task=task)
                rows = ontoprobe_values.of_configuration(test, configuration)
                for name, part in _parts(rows):
                    row = f"{own.label} | {own.benchmark} | {task} | {mark} | {name}"
                    for metric, value, interval in means(part, METRICS, seed):
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
    return table.build(cells) if cells else None


def _parts(rows: pl.DataFrame) -> Iterator[tuple[str, pl.DataFrame]]:
    yield "all", rows
    if rows["leak"].any():
        yield "without leaks", rows.filter(~pl.col("leak"))
    if rows["task"][0] in ("TP", "SCO"):
        for depth in sorted(rows["depth"].unique().to_list()):
            yield f"depth {depth}", rows.filter(depth=depth)
    for golds in sorted(rows["golds"].unique().to_list()):
        yield f"golds {golds}", rows.filter(golds=golds)
    for tokens in sorted(rows["tokens"].drop_nulls().unique().to_list()):
        yield f"tokens {tokens}", rows.filter(tokens=tokens)
    known = rows.filter(pl.col("popularity").is_not_null())
    if known.height >= 30:
        cuts = [float(known["popularity"].quantile(q) or 0) for q in (1 / 3, 2 / 3)]
        low = pl.col("popularity") <= cuts[0]
        high = pl.col("popularity") > cuts[1]
        yield "popularity low", known.filter(low)
        yield "popularity middle", known.filter(~low & ~high)
        yield "popularity high", known.filter(~low & high)

"""What a constant answer reaches on the examples of a prompt, and how train and test differ.

    majority        the commonest label of train; the first thing that a search can learn
    best constant   the commonest label of the examples themselves: an oracle

Source: autoprompt.md, section 8, control 1.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import polars as pl

from kgprobe.metrics import prompts as metrics
from kgprobe.tables import autoprompt_gather as gather
from kgprobe.tables import marks, table
from kgprobe.tables.autoprompt_gather import Answered

PAPER = "autoprompt"
#: what is counted to choose the answer -> what a column is called
MAJORITY, BEST = "majority", "best constant"
SEEN, VARIATION = "test objects seen in train", "total variation, train to test"
Cells = Mapping[tuple[str, str], Mapping[str, Any]]


def hits(own: Answered, name: str, split: str = "test", unit: str = "example") -> pl.DataFrame:
    """prompt (`name`), group, unit and p1 of a constant answer on what `own` was asked.

    `name` is MAJORITY or BEST. Of several commonest labels each is taken with the same probability.
    Labels that `own` cannot answer are left out, as in its own values; facts count once. `unit`:
    example, or fact where a fact has several sentences.
    """
    asked, lost = _asked(own, split)
    # whether a fact has the right answer in one of its sentences is no question of ranks
    known = asked if unit == "fact" else asked.filter(pl.col("best").is_not_null())
    source = known
    if name == MAJORITY:
        source = own.examples.filter((pl.col("split") == "train") & ~pl.col("label").is_in(lost))
    counted = source.unique(["group", "fact", "label"]).group_by("group", "label").len()
    commonest = counted.filter(pl.col("len") == pl.col("len").max().over("group"))
    shares = commonest.with_columns((1 / pl.len().over("group")).alias("p1"))
    found = known.unique(["group", unit]).join(
        shares.select("group", "label", "p1"), on=["group", "label"], how="left"
    )
    return found.select(
        pl.lit(name).alias("prompt"), "group", pl.col(unit).alias("unit"), pl.col("p1").fill_null(0)
    ).sort("group", "unit")


def union(those: Sequence[Answered]) -> Answered:
    """Everything that one of them was asked, and can answer where one of them can."""
    key = ["group", "split", "example"]
    rows = pl.concat([a.outcomes for a in those]).sort(*key, "best", nulls_last=True)
    return replace(
        those[0],
        outcomes=rows.unique(key, keep="first", maintain_order=True),
        examples=pl.concat([a.examples for a in those]).unique(key).sort(key),
    )


def values(
    own: Answered, level: str = "macro", split: str = "test", unit: str = "example", seed: int = 0
) -> Iterator[tuple[str, str, float, int, tuple[float, float]]]:
    """(MAJORITY or BEST, group, share, n, interval) at a level of `metrics.summary`."""
    for name in (MAJORITY, BEST):
        found = metrics.summary(hits(own, name, split, unit), ["p1"], seed)
        for row in found.filter(pl.col("level") == level).iter_rows(named=True):
            yield name, row["group"], row["value"], row["n"], (row["low"], row["high"])


def relations(name: str, those: Sequence[Answered], seed: int = 0) -> Iterator[dict[str, object]]:
    """Cells of a table of relations: MAJORITY and BEST, SEEN and VARIATION, in per cent.

    A model that was given other examples than all of them has columns of its own, `model, majority`
    and `model, best constant`, where they differ.
    """
    every = union(those)
    at = {}
    for word, group, value, n, bounds in values(every, "group", seed=seed):
        at[word, group] = (value, n)
        yield _cell(name, group, word, value, n, bounds)
    for group, seen, objects, variation, n in shift(every):
        yield _cell(name, group, SEEN, seen, objects)
        yield _cell(name, group, VARIATION, variation, n)
    for model in dict.fromkeys(_model(a.label) for a in those):
        own = union([a for a in those if _model(a.label) == model])
        for word, group, value, n, bounds in values(own, "group", seed=seed):
            if (value, n) != at[word, group]:
                yield _cell(name, group, f"{model}, {word}", value, n, bounds)


def _model(label: str) -> str:
    """The model of a row or column `model | prompt`, without marks."""
    return marks.bare(label.split(" | ")[0])


def of_tasks(name: str, found: Sequence[Answered], seed: int = 0) -> Iterator[dict[str, object]]:
    """The same cells for tasks without a table of relations; row `benchmark | relation`."""
    for benchmark, those in gather.per_benchmark(found):
        every = union(those)
        unit = "fact" if benchmark in gather.EXTRACTION else "example"
        rows = {group: " | ".join(filter(None, [benchmark, group])) for group in _groups(every)}
        for word, group, value, n, bounds in values(every, "group", unit=unit, seed=seed):
            yield _cell(name, rows[group], word, value, n, bounds)
        for group, seen, objects, variation, n in shift(every):
            yield _cell(name, rows[group], SEEN, seen, objects)
            yield _cell(name, rows[group], VARIATION, variation, n)


def _groups(own: Answered) -> list[str]:
    return own.outcomes["group"].unique().sort().to_list()


def shift(own: Answered) -> Iterator[tuple[str, float, int, float, int]]:
    """Per group: share of the distinct test objects that train has too, how many they are, the
    total variation distance of the two distributions of objects (0 .. 1), and n test facts."""
    facts = _asked(own, "test")[0].unique(["group", "fact", "label"])
    train = own.examples.filter(pl.col("split") == "train").unique(["group", "fact", "label"])
    for (group,), rows in facts.sort("group").group_by("group", maintain_order=True):
        there = dict(train.filter(pl.col("group") == group)["label"].value_counts().rows())
        here = dict(rows["label"].value_counts().rows())
        before, after = sum(there.values()), sum(here.values())
        apart = sum(
            abs(there.get(o, 0) / max(before, 1) - here.get(o, 0) / after)
            for o in sorted(there | here)
        )
        seen = sum(o in there for o in here) / len(here)
        yield str(group), seen, len(here), apart / 2, after


def below(cells: Cells, row: str, column: str) -> float | None:
    """The majority that a number of a table stands below, None where it does not."""
    own, majority = cells.get((row, column)), majority_of(cells, row, column)
    if own is None or majority is None:
        return None
    return float(majority["value"]) if own["value"] < majority["value"] - 1e-9 else None


def majority_of(cells: Cells, row: str, column: str) -> Mapping[str, Any] | None:
    """The majority on the same examples: the column's, or for a prompt its model's or the row's."""
    if " | " not in column:
        return cells.get((row, f"{column}, {MAJORITY}"))
    return cells.get((row, f"{_model(column)}, {MAJORITY}")) or cells.get((row, MAJORITY))


def _asked(own: Answered, split: str) -> tuple[pl.DataFrame, list[str]]:
    """(the examples of a split that were asked, labels of those that have no rank)."""
    rows = metrics.joined(own.examples, own.outcomes, split).unique(["group", "example"])
    return rows, rows.filter(pl.col("best").is_null())["label"].unique().to_list()


def _cell(
    name: str,
    row: str,
    column: str,
    share: float,
    n: int,
    bounds: tuple[float, float] | None = None,
) -> dict[str, object]:
    scaled = (100 * bounds[0], 100 * bounds[1]) if bounds else None
    return table.cell(name, row, column, 100 * share, n, scaled, None, PAPER)

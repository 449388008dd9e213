"""Balanced search data: labels resampled to equal counts, a control against the majority effect.

Every label of a group gets the same number of examples, as many as keep the size of the split about
what it was. Labels with more lose some, chosen by seeded hash; labels with fewer are repeated.
"""

import polars as pl

from kgprobe.sampling import keys


def balanced(
    examples: pl.DataFrame, seed: int = 0, splits: tuple[str, ...] = ("train", "dev")
) -> pl.DataFrame:
    """EXAMPLES with equal counts of labels in each (group, split) of `splits`, others untouched.

    The count is the mean number of examples per label, rounded up. A repeated example keeps its
    fact, and its name gets "~2", "~3" and so on.
    """
    untouched = examples.filter(~pl.col("split").is_in(splits))
    parts = [untouched]
    chosen = examples.filter(pl.col("split").is_in(splits))
    for stratum in chosen.partition_by("group", "split", maintain_order=True):
        parts.append(_equalised(stratum, seed))
    return pl.concat(parts).sort("group", "split", "example")


def _equalised(stratum: pl.DataFrame, seed: int) -> pl.DataFrame:
    wanted = -(-stratum.height // stratum["label"].n_unique())
    order = stratum.with_columns(
        keys(stratum, seed, ["group", "split", "example"], "balanced").alias("_key")
    ).sort("label", "_key", "example")
    place = pl.int_range(pl.len()).over("label")
    size = pl.len().over("label")
    # copies of an example with place p of n: the turns t with p + t n < wanted
    turns = ((wanted - place + size - 1) // size).clip(lower_bound=0)
    return (
        order.with_columns(turns.alias("_turns"))
        .with_columns(_turn=pl.int_ranges(1, pl.col("_turns") + 1))
        .filter(pl.col("_turns") > 0)
        .explode("_turn")
        .with_columns(
            example=pl.when(pl.col("_turn") > 1)
            .then(pl.format("{}~{}", "example", "_turn"))
            .otherwise("example")
        )
        .select(stratum.columns)
    )

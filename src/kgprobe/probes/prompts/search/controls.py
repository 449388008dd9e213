"""Controls of a search: triggers that no search has found, and balanced data.

Triggers: the initial one, random ones, the found in another order. Balanced data: every label of a
group gets the same number of examples, as many as keep the size of the split about what it was;
labels with more lose some, chosen by seeded hash, labels with fewer are repeated.
"""

import itertools
from collections.abc import Sequence

import numpy as np
import polars as pl

from kgprobe.sampling import keys

#: how many random triggers a prompt is compared with
DRAWS = 20


def random_triggers(
    allowed: Sequence[int], length: int, group: str, seed: int = 0, draws: int = DRAWS
) -> list[tuple[int, ...]]:
    """`draws` triggers of `length` tokens, uniform over `allowed` (what the filters leave).

    Repetitions within a trigger are possible, as in a search. The same seed and group give the same
    triggers whatever the order of `allowed`. Raises ValueError when nothing is allowed.
    """
    pool = np.unique(np.asarray(allowed, dtype=np.int64))
    if not len(pool):
        raise ValueError(f"group {group!r}: the filters leave no token to draw triggers from")
    generator = _generator(seed, f"random_triggers {group}")
    drawn = pool[generator.integers(len(pool), size=(draws, length))]
    return [tuple(int(token) for token in row) for row in drawn]


def shuffled_trigger(trigger: Sequence[int], group: str, seed: int = 0) -> tuple[int, ...]:
    """The tokens of a found trigger in another order, each order but the found one alike likely.

    A trigger with only one order (one token, or all the same) comes back as it is.
    """
    trigger = tuple(int(token) for token in trigger)
    generator = _generator(seed, f"shuffled_trigger {group}")
    if len(trigger) <= 8:
        orders = sorted(set(itertools.permutations(trigger)) - {trigger})
        return orders[int(generator.integers(len(orders)))] if orders else trigger
    while len(set(trigger)) > 1:
        order = tuple(trigger[i] for i in generator.permutation(len(trigger)))
        if order != trigger:
            return order
    return trigger


def names(prompt: str, draws: int = DRAWS) -> list[str]:
    """The names under which draws are reported: random_triggers:00 and so on."""
    return [f"{prompt}:{draw:02d}" for draw in range(draws)]


def _generator(seed: int, name: str) -> np.random.Generator:
    return np.random.default_rng([seed, *name.encode()])


def balance(
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
        parts.append(_equalized(stratum, seed))
    return pl.concat(parts).sort("group", "split", "example")


def _equalized(stratum: pl.DataFrame, seed: int) -> pl.DataFrame:
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

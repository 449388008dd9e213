"""Seeded hash sampling: stable when candidates are added, the same on every machine.

A candidate's key is a 64-bit blake2b hash of the seed and the candidate's own identifiers. The
sample is the n smallest keys. Row order is irrelevant, a smaller sample is a subset of a larger
one, and one added candidate changes a full sample by at most one swap.
"""

import hashlib
from collections.abc import Iterable, Sequence

import numpy as np
import polars as pl
from numpy.typing import NDArray


def hash_key(seed: int, *parts: str) -> int:
    """Return the unsigned 64-bit key of `parts` under `seed`.

    >>> hash_key(0, "P36", "Q142") == hash_key(0, "P36", "Q142")
    True
    >>> hash_key(0, "a", "bc") == hash_key(0, "ab", "c")
    False
    """
    digest = hashlib.blake2b(digest_size=8, key=seed.to_bytes(8, "little", signed=True))
    for part in parts:
        data = part.encode()
        digest.update(len(data).to_bytes(8, "little"))
        digest.update(data)
    return int.from_bytes(digest.digest(), "little")


def keys(frame: pl.DataFrame, seed: int, ids: Sequence[str], *parts: str) -> pl.Series:
    """Return the UInt64 key of every row: hash of `seed`, the fixed `parts` and columns `ids`."""
    columns = [frame[column].cast(pl.String).to_list() for column in ids]
    values = [hash_key(seed, *parts, *map(str, row)) for row in zip(*columns, strict=True)]
    return pl.Series("key", values, dtype=pl.UInt64)


def take(
    frame: pl.DataFrame,
    n: int,
    seed: int,
    ids: Sequence[str],
    by: Sequence[str] = (),
    label: str = "",
) -> pl.DataFrame:
    """Sample at most `n` rows of every stratum `by` by hash of `ids`, sorted by `by` and `ids`.

    `label` (the benchmark's name) separates samples with equal ids. Hash ties are broken by `ids`.
    Raises ValueError when `ids` repeat within a stratum, since then the choice is arbitrary.
    """
    names = [*by, *ids]
    if frame.select(names).is_duplicated().any():
        raise ValueError(f"sampling needs unique ids; {names} repeat in the {label!r} candidates")
    order = frame.with_columns(_key=keys(frame, seed, names, label)).sort([*by, "_key", *ids])
    chosen = order.group_by(list(by), maintain_order=True).head(n) if by else order.head(n)
    return chosen.drop("_key").sort(names).select(frame.columns)


def sample_evenly(
    frame: pl.DataFrame, n: int, seed: int, ids: Sequence[str], by: Sequence[str], label: str
) -> pl.DataFrame:
    """Sample at most `n` rows by hash of `ids`, the same number from every stratum `by` (or one
    more, from strata chosen by hash), sorted by `by` and `ids`."""
    order = frame.with_columns(
        keys(frame, seed, [*by, *ids], label).alias("_key"),
        keys(frame, seed, by, label).alias("_stratum"),
    ).sort("_key", *ids)
    turns = order.with_columns(pl.int_range(pl.len()).over(by).alias("_turn"))
    chosen = turns.sort("_turn", "_stratum", *by, "_key", *ids).head(n)
    return chosen.sort([*by, *ids]).select(frame.columns)


def split(ids: Iterable[str], shares: Sequence[float], seed: int, *parts: str) -> dict[str, str]:
    """Return id -> split by hash order: proportions `shares` for train and dev, rest for test."""
    order = sorted(ids, key=lambda name: (hash_key(seed, *parts, name), name))
    ends = [round(len(order) * shares[0]), round(len(order) * sum(shares))]
    return {
        name: "train" if place < ends[0] else "dev" if place < ends[1] else "test"
        for place, name in enumerate(order)
    }


def mixed(key: NDArray[np.uint64], column: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return the keys after mixing in one more integer column with splitmix64 (Steele, Lea, Flood
    2014), to sample from millions of rows. The first key is `hash_key` of the seed and a label, so
    that keys depend on values alone, not on row order or library version."""
    key = key ^ column
    key += np.uint64(0x9E3779B97F4A7C15)
    key ^= key >> np.uint64(30)
    key *= np.uint64(0xBF58476D1CE4E5B9)
    key ^= key >> np.uint64(27)
    key *= np.uint64(0x94D049BB133111EB)
    key ^= key >> np.uint64(31)
    return key


def by_hand(items: pl.DataFrame) -> pl.DataFrame:
    """Return the items that hand-written templates ask: all except those for soft prompts only."""
    return items.filter(pl.col("meta").str.json_path_match("$.soft_only").is_null())


def select_asked(items: pl.DataFrame) -> pl.DataFrame:
    """Return the ITEMS that are asked as whole sentences: without training and dev items, and
    without items for soft prompts only."""
    return by_hand(items).filter(~pl.col("role").is_in(["train", "dev"]))

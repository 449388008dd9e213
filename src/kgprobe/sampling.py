"""Seeded hash sampling: stable when candidates are added, the same on every machine.

A candidate's key is a 64-bit blake2b hash of the seed and the candidate's own identifiers. The
sample is the n smallest keys. Row order is irrelevant, a smaller sample is a subset of a larger
one, and one added candidate changes a full sample by at most one swap.
"""

import hashlib
from collections.abc import Sequence

import polars as pl


def hash_key(seed: int, *parts: str) -> int:
    """The unsigned 64-bit key of `parts` under `seed`.

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
    """The UInt64 key of every row: hash of `seed`, the fixed `parts` and the columns `ids`."""
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
    """At most `n` rows of every stratum `by`, chosen by hash of `ids`, in order of `by` and `ids`.

    `label` separates samples that share ids (name of the benchmark). Hash ties fall to `ids`.
    Raises ValueError when `ids` repeat within a stratum, since then the choice is arbitrary.
    """
    if frame.select([*by, *ids]).is_duplicated().any():
        raise ValueError(
            f"sampling needs unique ids; {[*by, *ids]} repeat in the {label!r} candidates"
        )
    order = frame.with_columns(keys(frame, seed, [*by, *ids], label).alias("_key"))
    order = order.sort([*by, "_key", *ids])
    chosen = order.group_by(list(by), maintain_order=True).head(n) if by else order.head(n)
    return chosen.drop("_key").sort([*by, *ids]).select(frame.columns)

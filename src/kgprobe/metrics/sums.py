"""Means and sums of float columns whose last digits do not depend on row order or threads.

A data frame's own sum adds up partial sums of threads, so that its last digit depends on the number
of cores and the order of the rows. These functions add in ascending order.

    >>> frame = pl.DataFrame({"kind": ["a", "a", "b"], "value": [0.1, 0.2, 0.3]})
    >>> frame.group_by("kind").agg(ordered_mean("value")).sort("kind")["value"].to_list()
    [0.15000000000000002, 0.3]
"""

from collections.abc import Sequence

import polars as pl


def ordered_mean(columns: str | Sequence[str] | pl.Expr) -> pl.Expr:
    """Mean of each column (or of an expression), within a group where there are groups."""
    return _ascending(columns).mean()


def ordered_sum(columns: str | Sequence[str] | pl.Expr) -> pl.Expr:
    """Sum of each column (or of an expression), within a group where there are groups."""
    return _ascending(columns).sum()


def _ascending(columns: str | Sequence[str] | pl.Expr) -> pl.Expr:
    return (columns if isinstance(columns, pl.Expr) else pl.col(columns)).sort()

"""Conversion of frames of items and candidates to model inputs, and of results to frames."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl

from kgprobe.probes.models.load import Loaded, ModelSpec, outline
from kgprobe.probes.text.spelling import SpelledOptions, left_out, rankable
from kgprobe.schema import Contract, cast_columns


def of_columns(columns: Mapping[str, Any], contract: Contract, **known: str) -> pl.DataFrame:
    """Build a frame of a contract from arrays; `known` maps a column to a mask of known values.

    Unknown values become null by that mask; NaN is not null and the contract rejects it.
    """
    # text columns are object arrays or lists
    plain = {n: v if isinstance(v, np.ndarray) and v.dtype.kind != "O" else list(v)
             for n, v in columns.items()}  # fmt: skip
    frame = pl.DataFrame({name: pl.Series(name, values) for name, values in plain.items()})
    masked = [pl.when(mask).then(name).alias(name) for name, mask in known.items()]
    return cast_columns(frame.with_columns(masked), contract)


def labels_of(candidates: pl.DataFrame) -> dict[str, list[str]]:
    """Return labels per set from CANDIDATES, in the order of their index."""
    sets = candidates.sort("set", "index").group_by("set", maintain_order=True)
    return dict(sets.agg("label").rows())


def texts_of(prompts: pl.DataFrame) -> dict[str, list[tuple[int, str]]]:
    """Return (index, text) per relation from PROMPTS, in the order of their index."""
    relations = prompts.sort("relation", "index").partition_by("relation", as_dict=True)
    return {name: rows.select("index", "text").rows() for (name,), rows in relations.items()}


def index_golds(
    items: pl.DataFrame, kept: Mapping[str, SpelledOptions]
) -> tuple[pl.DataFrame, list[str]]:
    """Return (items with golds as indices of ranked options, items with all golds excluded)."""
    if not left_out(kept):
        return items, []
    rows = items.select("candidates", "answers").rows()
    new = {name: options.new for name, options in kept.items()}
    golds = [[new[name][a] for a in answers if a in new[name]] for name, answers in rows]
    renumbered = items.with_columns(answers=pl.Series(golds, dtype=pl.List(pl.Int32)))
    empty = pl.col("answers").list.len() == 0
    return renumbered.filter(~empty), renumbered.filter(empty)["item"].to_list()


def placed(
    ranks: pl.DataFrame,
    items: pl.DataFrame,
    kept: Mapping[str, SpelledOptions],
    column: str = "gold",
) -> pl.DataFrame:
    """Convert the candidates in `column` of `ranks` back to indices in the whole set."""
    if not left_out(kept):
        return ranks
    sets = dict(items.select("item", "candidates").rows())
    pairs = zip(ranks["item"].to_list(), ranks[column].to_list(), strict=True)
    places = [kept[sets[item]].places[place] for item, place in pairs]
    return ranks.with_columns(pl.Series(column, places, dtype=pl.Int32))


@dataclass(frozen=True)
class Prepared:
    """A model without weights, and the items and candidates that its tokenizer can represent."""

    light: Loaded
    items: pl.DataFrame
    options: dict[str, Sequence[str]]
    kept: dict[str, SpelledOptions]
    missing: list[str] = field(default_factory=list)

    @property
    def record(self) -> dict[str, object]:
        """Excluded candidates and items, by name."""
        return {
            "candidates_left_out": left_out(self.kept),
            "items_without_gold": self.missing,
        }


def prepared(
    spec: ModelSpec, items: pl.DataFrame, candidates: pl.DataFrame, unknown: str
) -> Prepared:
    """Select items and candidates that the model can represent; `unknown`: see `rankable`."""
    light = outline(spec)
    kept = rankable(light, labels_of(candidates), unknown)
    rows, missing = index_golds(items, kept)
    options: dict[str, Sequence[str]] = {name: spelled.labels for name, spelled in kept.items()}
    return Prepared(light, rows, options, kept, missing)

"""Conversion of frames of items and candidates to model inputs, and of results to frames; which
candidates a tokenizer can represent, and which prompts fit into the model's window: both need only
the tokenizer and the configuration, before any weights are loaded."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from kgprobe.probes.models.load import Loaded, ModelSpec, outline
from kgprobe.probes.text.encode import bos_prefix, spells_nothing
from kgprobe.probes.text.mask_slots import ClozePrompt, tokenize_prompts, tokens_with_slots
from kgprobe.schema import Contract, cast_columns
from kgprobe.templates import replace_vectors

#: maximum number of overlong prompts of one relation that a message lists in full
SHOWN = 3


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


class SpelledOptions(NamedTuple):
    """The ranked options of a set, their indices in the whole set, and the excluded options."""

    labels: list[str]
    places: list[int]
    left_out: list[str]

    @property
    def new(self) -> dict[int, int]:
        """Map index in the whole set -> index among the ranked options."""
        return {old: place for place, old in enumerate(self.places)}


def rankable(
    loaded: Loaded, options: Mapping[str, Sequence[str]], unknown: str = "keep"
) -> dict[str, SpelledOptions]:
    """Select the options of every set that the model's tokenizer can represent.

    Options without tokens are excluded; under `unknown` leave_out also those with an unknown token.
    """
    sets = {}
    mark = loaded.tokenizer.unk_token_id if unknown == "leave_out" else None
    for name, labels in options.items():
        coded = loaded.tokenizer(list(labels), add_special_tokens=False)["input_ids"]
        spelled = SpelledOptions([], [], [])
        for place, (label, ids) in enumerate(zip(labels, coded, strict=True)):
            is_unknown = mark is not None and mark in ids
            if not ids or is_unknown or spells_nothing(loaded.tokenizer, label):
                spelled.left_out.append(label)
            else:
                spelled.labels.append(label)
                spelled.places.append(place)
        sets[name] = spelled
    return sets


class Prepared(NamedTuple):
    """A model without weights; the items and candidates that its tokenizer can represent, golds as
    indices of ranked options; the excluded options by set, and the items without any gold left."""

    light: Loaded
    items: pl.DataFrame
    kept: dict[str, SpelledOptions]
    record: dict[str, Any]

    @property
    def options(self) -> dict[str, Sequence[str]]:
        """The ranked options of every set."""
        return {name: spelled.labels for name, spelled in self.kept.items()}

    def placed(self, ranks: pl.DataFrame, column: str = "gold") -> pl.DataFrame:
        """Convert the candidates in a column of `ranks` back to indices in the whole set."""
        if not self.record["candidates_left_out"]:
            return ranks
        sets = dict(self.items.select("item", "candidates").rows())
        pairs = ranks.select("item", column).rows()
        places = [self.kept[sets[item]].places[place] for item, place in pairs]
        return ranks.with_columns(pl.Series(column, places, dtype=pl.Int32))


def prepared(
    spec: ModelSpec, items: pl.DataFrame, candidates: pl.DataFrame, unknown: str
) -> Prepared:
    """Select items and candidates that the model can represent; `unknown`: see `rankable`."""
    light = outline(spec)
    kept = rankable(light, labels_of(candidates), unknown)
    left_out = {name: spelled.left_out for name, spelled in kept.items() if spelled.left_out}
    missing: list[str] = []
    if left_out:
        new = {name: spelled.new for name, spelled in kept.items()}
        rows = items.select("candidates", "answers").rows()
        golds = [[new[name][a] for a in answers if a in new[name]] for name, answers in rows]
        items = items.with_columns(answers=pl.Series(golds, dtype=pl.List(pl.Int32)))
        is_empty = pl.col("answers").list.len() == 0
        missing = items.filter(is_empty)["item"].to_list()
        items = items.filter(~is_empty)
    record = {"candidates_left_out": left_out, "items_without_gold": missing}
    return Prepared(light, items, kept, record)


def check_windows(
    loaded: Loaded,
    prompts: Mapping[str, Sequence[ClozePrompt]],
    options: Mapping[str, Sequence[str]],
    space: str,
    most: int | None = None,
) -> None:
    """Raise one ValueError that names, for every relation, the prompts that cannot be used.

    `prompts` are questions by relation. A prompt must fit into the model's window with the longest
    candidate in its mask slot (`most`: a smaller window), and contain no other mask slot.
    """
    limit = min(loaded.limit, most or loaded.limit)
    longest = {}
    for name, labels in options.items():
        longest[name] = "", 1
        if labels:
            coded = loaded.tokenizer(list(labels), add_special_tokens=False)["input_ids"]
            size, place = max((len(ids), -place) for place, ids in enumerate(coded))
            longest[name] = labels[-place], size
    lines = []
    for relation, questions in prompts.items():
        wrong = []
        for question in questions:
            label, size = longest[question.candidates]
            try:
                length = _length(loaded, question, label, size, space)
            except ValueError as error:
                wrong.append(f"{relation}: {error}")
                continue
            if length > limit:
                text = replace_vectors(f"{question.before}[mask slot]{question.after}", "_")
                wrong.append(
                    f"{relation}: item {question.item}, template {question.template}: {length} "
                    f"tokens with {label!r} in the mask slot, {limit} are allowed: {text[:60]!r}; "
                    "shorten the subject's label or the template, or take a model with a longer "
                    "window"
                )
        lines += wrong[:SHOWN]
        if len(wrong) > SHOWN:
            lines.append(f"{relation}: ... and {len(wrong) - SHOWN} more")
    if lines:
        raise ValueError(f"{loaded.spec.model} cannot be asked all prompts\n" + "\n".join(lines))


def _length(loaded: Loaded, question: ClozePrompt, label: str, size: int, space: str) -> int:
    """Count tokens of a prompt with so many masks, or (causal) with the label in the mask slot."""
    if loaded.spec.kind == "causal":
        ((ids, _),) = tokens_with_slots(loaded, [question.before + label + question.after])
        return len(bos_prefix(loaded)[0]) + len(ids)
    (row,) = tokenize_prompts(loaded, [question], space, any_length=True)
    # a sentinel model decodes the candidate: only the sentence must fit
    return len(row.ids) + (size - 1 if loaded.spec.kind == "masked" else 0)

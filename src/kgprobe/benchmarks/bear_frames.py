"""A BEAR set as frames: items, candidates, prompts, and the invariants they must keep."""

import json
from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from kgprobe.schema import CANDIDATES, ITEMS, PROMPTS


class BalanceError(ValueError):
    """A constructed set breaks an invariant; the message names relation and row."""


@dataclass(frozen=True)
class Sets:
    """ITEMS, CANDIDATES and PROMPTS of one benchmark."""

    items: pl.DataFrame
    candidates: pl.DataFrame
    prompts: pl.DataFrame

    @classmethod
    def joined(cls, parts: Sequence["Sets"]) -> "Sets":
        """The relations of several parts in one benchmark."""
        return cls(
            pl.concat([part.items for part in parts]),
            pl.concat([part.candidates for part in parts]),
            pl.concat([part.prompts for part in parts]),
        )


def relation_frames(
    benchmark: str,
    relation: str,
    answers: Sequence[tuple[str, str]],
    subjects: Sequence[tuple[str, str, int, Sequence[str]]],
    templates: Sequence[tuple[int, str]],
) -> Sets:
    """The frames of one relation.

    `answers` are (id, label) in the order of the answer space, `subjects` (id, label, index of the
    answer, aliases) in row order, `templates` (index, text).
    """
    options = f"{benchmark}/{relation}"
    items = [
        (
            f"{relation}/{subject}",
            relation,
            "fact",
            relation,
            label,
            subject,
            "",
            options,
            [answer],
            row,
            json.dumps({"aliases": list(aliases)}, sort_keys=True),
        )
        for row, (subject, label, answer, aliases) in enumerate(subjects)
    ]
    candidates = [(options, i, answer, label) for i, (answer, label) in enumerate(answers)]
    prompts = [(f"{relation}/{i}", relation, i, text, "manual") for i, text in templates]
    return Sets(
        pl.DataFrame(items, schema=dict(ITEMS.columns), orient="row"),
        pl.DataFrame(candidates, schema=dict(CANDIDATES.columns), orient="row"),
        pl.DataFrame(prompts, schema=dict(PROMPTS.columns), orient="row"),
    )


def check_balance(sets: Sets) -> None:
    """Raise BalanceError unless every relation is balanced, unambiguous and complete.

    Every answer has the same number of instances and is used; no subject id or label, no answer
    label occurs twice; every item has one answer; every relation has three templates.
    """
    gold = sets.items.with_columns(answer=pl.col("answers").list.first())
    wrong = gold.filter(pl.col("answers").list.len() != 1)
    if wrong.height:
        raise BalanceError(f"{wrong['item'][0]}: {wrong['answers'][0].len()} answers, expected one")
    for relation, group in gold.group_by("relation", maintain_order=True):
        name = str(relation[0])
        sizes = group.group_by("answer").len().sort("answer")
        options = sets.candidates.filter(pl.col("set") == group["candidates"][0])
        if sizes.height != options.height:
            raise BalanceError(f"{name}: {options.height} options, {sizes.height} are ever right")
        if sizes["len"].n_unique() != 1:
            counts = dict(sizes.rows())
            raise BalanceError(f"{name}: answers have different numbers of instances: {counts}")
        for column, frame in (("subject_id", group), ("subject", group), ("label", options)):
            repeated = frame.filter(frame[column].is_duplicated())
            if repeated.height:
                raise BalanceError(f"{name}: {column} {repeated[column][0]!r} occurs twice")
        if sets.prompts.filter(pl.col("relation") == name).height != 3:
            raise BalanceError(f"{name}: needs three templates")

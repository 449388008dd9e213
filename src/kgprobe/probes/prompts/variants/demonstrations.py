"""Demonstrations: training facts before a question, each formatted with its own template.

    Rome is the capital of Italy .        k training facts of the relation
    Tokyo is the capital of Japan .
    Paris is the capital of [P]           the question

    demos            k facts drawn by seeded hash
    demos_shuffled   the facts of `demos` with their answers permuted: control
    demos_other      the facts of `demos` with answers of other relations: control

No demonstration is a test or dev fact or shares its subject. Tables report the gain on facts whose
object occurs in no demonstration separately, since a model may repeat an answer that it just read.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import polars as pl

from kgprobe.sampling import hash_key
from kgprobe.templates import ANSWER, parse

#: the field of a prompt that contains its demonstrations
FIELD = "demos"
PLAIN, SHUFFLED, OTHER = KINDS = "demos", "demos_shuffled", "demos_other"


class DemonstrationError(ValueError):
    """Demonstrations cannot be drawn; the message names relation, numbers needed and found."""


@dataclass(frozen=True)
class TrainingFact:
    """A training fact: the fields of its template, and the answer."""

    fields: Mapping[str, str]
    label: str


def pool(examples: pl.DataFrame, group: str) -> list[tuple[str, TrainingFact]]:
    """Return (name, fact) of a relation's training examples allowed as demonstrations, by name.

    Facts of dev and test are excluded, and so are other facts about their subjects. A label pair
    that is repeated (LAMA's files have some) is one fact.
    """
    rows = examples.filter(group=group).sort("example")
    # accents of a subject may be composed or not
    subject = pl.col("fields").str.json_path_match("$.sub").str.normalize("NFC")
    held_out = rows.filter(pl.col("split") != "train").with_columns(_subject=subject)
    facts, subjects = set(held_out["fact"]), set(held_out["_subject"].drop_nulls())
    train = rows.filter(split="train").with_columns(_subject=subject)
    for key in (["fact"], ["fields", "label"]):
        train = train.unique(key, keep="first", maintain_order=True)
    return [
        (name, TrainingFact(json.loads(fields), label))
        for name, fact, fields, label, sub in train.select(
            "example", "fact", "fields", "label", "_subject"
        ).rows()
        if fact not in facts and sub not in subjects
    ]


def draw_facts(
    examples: pl.DataFrame, group: str, k: int, seed: int = 0, draw: int = 0
) -> list[TrainingFact]:
    """Return k training facts of a relation in hash order.

    Raises DemonstrationError for a relation with fewer than k allowed facts.
    """
    known = pool(examples, group)
    if len(known) < k:
        raise DemonstrationError(
            f"{group}: {k} demonstrations asked for, {len(known)} training facts may be shown "
            "(asked facts and their subjects left out); make autoprompt.demos.k smaller"
        )
    order = sorted(known, key=lambda one: (hash_key(seed, FIELD, str(draw), group, one[0]), one[0]))
    return [fact for _, fact in order[:k]]


def shuffled(facts: Sequence[TrainingFact], group: str, seed: int = 0) -> list[TrainingFact]:
    """Exchange answers among the facts: take the rotation that leaves the fewest unchanged, the
    first of equal ones by seed. If all have the same answer they stay unchanged."""
    k = len(facts)
    turns = sorted(range(1, k), key=lambda turn: hash_key(seed, SHUFFLED, group, str(turn)))
    if not turns:
        return list(facts)

    def count_unchanged(turn: int) -> int:
        return sum(fact.label == facts[(i + turn) % k].label for i, fact in enumerate(facts))

    best = min(turns, key=count_unchanged)
    return [replace(fact, label=facts[(i + best) % k].label) for i, fact in enumerate(facts)]


def others(
    facts: Sequence[TrainingFact], examples: pl.DataFrame, group: str, seed: int = 0
) -> list[TrainingFact]:
    """Give the facts answers of other relations, drawn by hash, and never their own relation's.

    Raises DemonstrationError if other relations have no different answer.
    """
    train = examples.filter(split="train")
    answers = set(examples.filter(group=group)["label"])
    labels = sorted(set(train.filter(pl.col("group") != group)["label"]) - answers)
    if not labels:
        raise DemonstrationError(
            f"{group}: {OTHER} needs answers of other relations, the task has none; leave out the "
            "prompt, or ask for more relations"
        )
    order = sorted(labels, key=lambda label: hash_key(seed, OTHER, group, label))
    return [replace(fact, label=order[i % len(order)]) for i, fact in enumerate(facts)]


def of_kind(
    kind: str, examples: pl.DataFrame, group: str, k: int, seed: int = 0, draw: int = 0
) -> list[TrainingFact]:
    """Return the demonstrations of one of KINDS, in one of its draws."""
    facts = draw_facts(examples, group, k, seed, draw)
    if kind == SHUFFLED:
        return shuffled(facts, group, seed)
    return others(facts, examples, group, seed) if kind == OTHER else facts


def sentence(whole: str, fact: TrainingFact) -> str:
    """Fill a template with a fact; add a full stop if the template ends with the answer.

    >>> sentence("{sub} is the capital of [P]", TrainingFact({"sub": "Rome"}, "Italy"))
    'Rome is the capital of Italy.'
    """
    text = parse(whole).filled({**fact.fields, ANSWER: fact.label}).text.strip()
    return text + "." * whole.rstrip().endswith(ANSWER)

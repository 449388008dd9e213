"""How often each fact is shown to a control model: drawn by seed, and counted as it was shown."""

from collections.abc import Mapping, Sequence

import polars as pl

from kgprobe.probes.control.lessons import Lesson
from kgprobe.sampling import hash_key
from kgprobe.schema import EXPOSED


def draw(facts: pl.DataFrame, counts: Sequence[int], seed: int) -> dict[str, int]:
    """Fact -> sentences that it is shown in: 0 and each of `counts` for as many facts, give or take
    one. `facts`: fact, relation.

    The facts of a relation are spread over the counts, so that no count has the easy relations.
    """
    levels = [0, *counts]
    rows = sorted(
        facts.select("relation", "fact").rows(),
        key=lambda row: (row[0], hash_key(seed, "exposures", row[1])),
    )
    first = hash_key(seed, "exposures") % len(levels)
    return {fact: levels[(first + place) % len(levels)] for place, (_, fact) in enumerate(rows)}


def lessons(facts: pl.DataFrame, drawn: Mapping[str, int]) -> dict[Lesson, int]:
    """Lesson -> sentences that it is shown in, of those that are shown at all. `facts`: fact,
    relation and the labels of its subject and object."""
    rows = facts.select("fact", "relation", "subject_label", "object_label").rows()
    return {Lesson(*words): drawn[fact] for fact, *words in rows if drawn[fact]}


def counted(
    facts: pl.DataFrame, drawn: Mapping[str, int], seen: Sequence[Sequence[object]]
) -> pl.DataFrame:
    """EXPOSED, from what the training counted (`seen` of its record).

    Raises RuntimeError where a fact was shown more or less often than was drawn.
    """
    told = {tuple(row[:3]): (row[3], row[4]) for row in seen}
    columns = ("fact", "relation", "subject", "object", "subject_label", "object_label")
    rows = []
    for fact, relation, subject, target, *labels in facts.select(columns).rows():
        sentences, targets = told.get((relation, *labels), (0, 0))
        if sentences != drawn[fact]:
            raise RuntimeError(f"{fact} was shown {sentences} times, {drawn[fact]} were drawn")
        rows.append((fact, relation, subject, target, sentences > 0, sentences, targets))
    return pl.DataFrame(rows, schema=dict(EXPOSED.columns), orient="row")

"""Facts for search from our own pulls of T-REx and Wikidata.

The released procedure: T-REx facts first; if there are fewer than 1000, Wikidata facts that pass
every filter; no test facts; a random split. There is no filter subject != object.
"""

import itertools
from collections.abc import Collection, Sequence

import polars as pl

from kgprobe.benchmarks.autoprompt.overlap import Fact
from kgprobe.benchmarks.funnel import Funnel
from kgprobe.sampling import hash_key

#: Proportions of the splits (paper), for tasks with their own test facts and for those without.
PROPORTIONS = {
    "original": {"train": 0.8, "dev": 0.2},
    "trex": {"train": 0.6, "dev": 0.2, "test": 0.2},
    "roberta": {"train": 0.8, "dev": 0.2},
}


def collect(
    relations: Sequence[str],
    test: Sequence[Fact],
    trex: pl.DataFrame,
    wikidata: pl.DataFrame,
    pages: Collection[str] | None,
    vocabulary: Collection[str],
    most: int,
    variant: str,
    seed: int,
    funnel: Funnel,
) -> list[Fact]:
    """Collect at most `most` facts of every relation, split as the task's `variant` requires.

    test: facts to exclude, as label pairs (the published files have no ids). trex, wikidata: FACTS.
    pages: ids of the subjects with a Wikipedia page, None if unknown. vocabulary: the objects that
    can be predicted. Facts must be labeled, not in the test, and have an object in the vocabulary;
    those from Wikidata also need a subject with a page and a label other than its id. `funnel`
    counts what each filter drops.
    """
    facts: list[Fact] = []
    for relation in relations:
        never = {fact.pair for fact in test if fact.group == relation}
        rows = _usable(_rows(trex, relation), never, vocabulary, relation, "T-REx", funnel)
        chosen = _sample(rows, most, seed, relation)
        funnel.add(relation, f"T-REx: at most {most}", len(rows), len(chosen))
        if len(chosen) < most:
            more = _rows(wikidata, relation)
            more = _usable(more, never, vocabulary, relation, "Wikidata", funnel)
            left = [r for r in more if (pages is None or r[0] in pages) and r[1] != r[0]]
            step = "Wikidata: a page and a label" if pages is not None else "Wikidata: a label"
            funnel.add(relation, step, len(more), len(left))
            known = {(r[0], r[2]) for r in chosen}
            fresh = [r for r in left if (r[0], r[2]) not in known]
            extra = _sample(fresh, most - len(chosen), seed, relation)
            funnel.add(relation, "Wikidata: topped up", len(fresh), len(extra))
            chosen += extra
        facts += _split(relation, chosen, PROPORTIONS[variant], seed)
    return facts


def with_page(statements: pl.DataFrame) -> set[str] | None:
    """Return the subjects of STATEMENTS that have sitelinks; None if no sitelinks are known."""
    known = statements.filter(pl.col("subject_sitelinks").is_not_null())
    if not known.height:
        return None
    return set(known.filter(pl.col("subject_sitelinks") > 0)["subject"].to_list())


def _rows(facts: pl.DataFrame, relation: str) -> list[tuple[str, ...]]:
    """Return (subject, label, object, label) of a relation's labeled facts, sorted by ids."""
    columns = ("subject", "subject_label", "object", "object_label")
    rel = facts.filter(relation=relation).select(columns).drop_nulls().unique(["subject", "object"])
    return rel.sort("subject", "object").rows()


def _usable(
    rows: Sequence[tuple[str, ...]],
    barred: Collection[tuple[str, str]],
    vocabulary: Collection[str],
    relation: str,
    source: str,
    funnel: Funnel,
) -> list[tuple[str, ...]]:
    apart = [r for r in rows if (r[1], r[3]) not in barred]
    funnel.add(relation, f"{source}: not in the test", len(rows), len(apart))
    inside = [r for r in apart if r[3] in vocabulary]
    funnel.add(relation, f"{source}: object in the vocabulary", len(apart), len(inside))
    return inside


def _sample(
    rows: Sequence[tuple[str, ...]], most: int, seed: int, relation: str
) -> list[tuple[str, ...]]:
    """Sample at most `most` rows by seeded hash of their ids: new facts change few of them."""
    return sorted(rows, key=lambda r: (hash_key(seed, "search", relation, r[0], r[2]), r))[:most]


def _split(
    relation: str, rows: Sequence[tuple[str, ...]], proportions: dict[str, float], seed: int
) -> list[Fact]:
    order = sorted(rows, key=lambda r: (hash_key(seed, "split", relation, r[0], r[2]), r))
    ends = [round(total * len(order)) for total in itertools.accumulate(proportions.values())]
    return [
        Fact(relation, split, subject_label, label, f"{relation}/{subject}/{entity}")
        for split, start, end in zip(proportions, [0, *ends], ends, strict=False)
        for subject, subject_label, entity, label in order[start:end]
    ]

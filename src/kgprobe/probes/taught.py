"""Which facts the control models are taught, and as what lessons."""

from collections.abc import Mapping, Sequence

import polars as pl

from kgprobe.knowledge.facts import fact_id
from kgprobe.probes.models.control_rows import Lesson
from kgprobe.sampling import hash_key
from kgprobe.schema import TAUGHT

#: Values of the hash are spread over this many parts; a share is a number of parts.
PARTS = 1 << 32


def split(
    facts: pl.DataFrame,
    asked: pl.DataFrame,
    relations: Sequence[str],
    pool: int,
    share: float,
    seed: int,
) -> pl.DataFrame:
    """TAUGHT: every fact with labels on both sides, and whether the control models are taught it.

    A model of a million parameters learns a few thousand facts in minutes, not the whole world. The
    pool to teach from holds the facts that the calibrating items ask about (`asked`: relation,
    subject, object), then others of `relations` in hash order, `pool` in all; a share of the pool
    is taught. The hash is that of the unordered pair of entities, so that a fact and its inverse
    (capital, capital of) share their fate.
    """
    legal = pl.col("subject_label").is_not_null() & pl.col("object_label").is_not_null()
    known = facts.filter(legal & pl.col("relation").is_in(list(relations))).with_columns(
        fact=fact_id()
    )
    wanted = asked.select(fact=fact_id()).unique().with_columns(asked=pl.lit(True))
    known = known.join(wanted, on="fact", how="left").with_columns(pl.col("asked").fill_null(False))
    pairs = known.select("subject", "object").rows()
    fates = [hash_key(seed, "fate", *sorted(pair)) % PARTS for pair in pairs]
    orders = [hash_key(seed, "pool", *sorted(pair)) for pair in pairs]
    known = known.with_columns(
        fate=pl.Series(fates, dtype=pl.UInt64), order=pl.Series(orders, dtype=pl.UInt64)
    ).sort(["asked", "order", "fact"], descending=[True, False, False])
    inside = pl.int_range(pl.len()) < pool
    return known.with_columns(taught=inside & (pl.col("fate") < int(share * PARTS))).select(
        list(TAUGHT.columns)
    )


def asked_facts(items: pl.DataFrame, candidates: pl.DataFrame) -> pl.DataFrame:
    """The facts that ITEMS ask about: relation, subject, object (every right answer is one)."""
    gold = items.select("relation", "subject_id", "candidates", index="answers").explode("index")
    named = gold.join(candidates, left_on=["candidates", "index"], right_on=["set", "index"])
    return named.select(
        "relation", pl.col("subject_id").alias("subject"), pl.col("id").alias("object")
    )


def lessons(facts: pl.DataFrame, taught: pl.DataFrame, forms: Mapping[str, str]) -> list[Lesson]:
    """The taught facts as (relation, subject label, object label), sorted.

    `forms` are the surface forms that answers take in sentences; the items use them, too.
    """
    shown = facts.with_columns(fact=fact_id()).join(
        taught.filter("taught").select("fact"), on="fact", how="semi"
    )
    rows = shown.select("relation", "subject_label", "object", "object_label").rows()
    return sorted({Lesson(r, s, forms.get(o, label)) for r, s, o, label in rows})


def all_labels(facts: pl.DataFrame, taught: pl.DataFrame, forms: Mapping[str, str]) -> list[str]:
    """Labels of both ends of every fact that may be asked, taught or not, sorted.

    They shape the tokenizers, so that taught and untaught names are cut alike.
    """
    known = facts.with_columns(fact=fact_id()).join(taught.select("fact"), on="fact", how="semi")
    labels = set(known["subject_label"].to_list())
    labels |= {forms.get(o, label) for o, label in known.select("object", "object_label").rows()}
    return sorted(labels)


def ontology(
    items: pl.DataFrame, candidates: pl.DataFrame, pool: Mapping[str, int], share: float, seed: int
) -> pl.DataFrame:
    """TAUGHT: types and superclasses of the world's ontology, and whether they are taught.

    `items`, `candidates`: OntoProbe's set of the world. Of every task in `pool` so many test rows
    are taken by hash of their subject, a `share` of them is taught. A fact is "task/subject"; its
    object is the finest gold.
    """
    labels = {(s, i): name for s, i, name in candidates.select("set", "index", "label").rows()}
    rows = []
    for task, size in sorted(pool.items()):
        columns = ("subject", "candidates", "answers")
        own = items.filter(relation=task, role="test").select(columns).rows()
        order = sorted(own, key=lambda r: (hash_key(seed, "ontology", task, r[0]), r[0]))
        for subject, name, answers in order[:size]:
            is_taught = hash_key(seed, "fate", task, subject) % PARTS < int(share * PARTS)
            gold = labels[name, answers[0]]
            rows.append((f"{task}/{subject}", task, subject, gold, is_taught))
    return pl.DataFrame(rows, schema=dict(TAUGHT.columns), orient="row")


def ontology_lessons(statements: pl.DataFrame) -> tuple[list[Lesson], list[str]]:
    """(lessons of the taught statements, labels of all of them), sorted, from `ontology`."""
    shown = statements.filter("taught").select("relation", "subject", "object").rows()
    labels = {*statements["subject"].to_list(), *statements["object"].to_list()}
    return sorted(Lesson(*row) for row in shown), sorted(labels)

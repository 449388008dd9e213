"""The facts that control models are taught a known number of times, and the questions about them.

Every fact must be known from its own sentences alone: of a pair of entities one fact is taken (a
capital and what it is the capital of teach each other), of a subject's name in a relation one, too.
"""

import polars as pl

from kgprobe.benchmarks.bear.frames import Sets
from kgprobe.knowledge.facts import fact_id
from kgprobe.sampling import hash_key


def facts(items: pl.DataFrame, candidates: pl.DataFrame) -> pl.DataFrame:
    """The facts that ITEMS with one right answer ask about: item, fact, relation, subject and
    object with their labels; in the order of the items' names."""
    gold = items.filter(pl.col("answers").list.len() == 1).select(
        "item",
        "relation",
        set="candidates",
        index=pl.col("answers").list.first(),
        subject="subject_id",
        subject_label="subject",
    )
    named = gold.join(
        candidates.select("set", "index", object="id", object_label="label"), on=["set", "index"]
    )
    columns = ["item", "fact", "relation", "subject", "object", "subject_label", "object_label"]
    return named.with_columns(fact=fact_id()).select(columns).sort("item")


def choose(whole: Sets, levels: int, size: int, seed: int) -> Sets:
    """The questions about `levels` times `size` facts of a set, chosen by hash, with their options
    and templates.

    Raises ValueError where the set has fewer.
    """
    known = facts(whole.items, whole.candidates).rows(named=True)
    known.sort(key=lambda row: (hash_key(seed, "exposed", row["fact"]), row["fact"]))
    pairs: set[frozenset[str]] = set()
    names: set[tuple[str, str]] = set()
    alone = []
    for row in known:
        pair, name = (
            frozenset({row["subject"], row["object"]}),
            (row["relation"], row["subject_label"]),
        )
        if pair not in pairs and name not in names:
            alone.append(row["item"])
        pairs.add(pair)
        names.add(name)
    if len(alone) < levels * size:
        raise ValueError(
            f"control.exposures: {size} facts for each of {levels} counts (0 is one of them) are "
            f"{levels * size}, and the set has {len(alone)} that no other gives away; ask for "
            "fewer facts or counts, or enlarge world.big"
        )
    items = whole.items.filter(pl.col("item").is_in(alone[: levels * size]))
    return Sets(
        items,
        whole.candidates.filter(pl.col("set").is_in(items["candidates"].unique().to_list())),
        whole.prompts.filter(pl.col("relation").is_in(items["relation"].unique().to_list())),
    )

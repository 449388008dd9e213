"""Facts that are in more than one split: count them, and treat them as a switch says.

Facts are a frame of labels (FACT), compared as pairs because the published files have no ids: two
entities with the same name count as one (docs/papers/autoprompt.md, Overlap).
"""

from collections.abc import Iterable

import polars as pl

from kgprobe.benchmarks.autoprompt.frames import SPLITS, TaskError
from kgprobe.benchmarks.funnel import Funnel

PAIR = ("group", "subject", "object")
#: columns of facts: labels with their split; `key` identifies the row, and may be ""
FACT = dict.fromkeys(("group", "split", "subject", "object", "key"), pl.String)
IN_EARLIER, IN_LATER = pl.col("first") < pl.col("place"), pl.col("last") > pl.col("place")


def facts_of(rows: Iterable[tuple[str, ...]]) -> pl.DataFrame:
    """Return the facts of rows in the order of FACT; a missing `key` is ""."""
    return pl.DataFrame([(*row, "")[:5] for row in rows], schema=FACT, orient="row")


def with_places(rows: pl.DataFrame, *key: str) -> pl.DataFrame:
    """Add `place`, the position of a row's split, and those of the `first` and the `last` split
    with an equal `key`."""
    place = pl.col("split").replace_strict(SPLITS, range(3), return_dtype=pl.Int8)
    span = {"first": pl.col("place").min().over(key), "last": pl.col("place").max().over(key)}
    return rows.with_columns(place=place).with_columns(**span)


def settle(facts: pl.DataFrame, switch: str, funnel: Funnel, source: str) -> pl.DataFrame:
    """Return the facts that `switch` keeps, in order, and count every relation's shared facts.

    error: a test fact in train or dev raises TaskError; remove_train: it is removed from train and
    dev (and a dev fact from train); keep: published sets are unchanged, with a no-overlap score.
    """
    placed, bad = with_places(facts, *PAIR), []
    kept = placed.filter(~IN_LATER) if switch == "remove_train" else placed
    for (group,), rows in placed.group_by("group", maintain_order=True):
        name, left = str(group), kept.filter(group=group).height
        test, dev = rows.filter(split="test"), rows.filter(split="dev")
        shared = test.filter(IN_EARLIER).select("subject", "object").rows()
        if shared:
            bad.append(f"{name}: {len(shared)} of {test.height}, such as {shared[0]}")
        funnel.add(name, "test facts in train or dev", test.height, test.height - len(shared))
        funnel.add(name, "dev facts in train", dev.height, dev.filter(~IN_EARLIER).height)
        funnel.add(name, f"overlap: {switch}", rows.height, left)
    if bad and switch == "error":
        raise TaskError(
            f"{source}: test facts that occur in train or dev; write overlap: remove_train to take "
            "them out of these, or keep to leave the sets as they are\n  " + "\n  ".join(bad[:12])
        )
    return kept.select(*FACT)


def annotate(facts: pl.DataFrame) -> pl.DataFrame:
    """Add `flags`, which exclude a fact from the no-overlap subset, and `others`, the further
    correct answers of its subject and relation in any split, sorted.

    pair, inverse: the fact, or the fact with its ends exchanged, is in an earlier split of its
    relation (train and dev for test, train for dev). within: the object's label is a substring of
    the subject's, case-sensitive. same: they are equal.
    """
    placed = with_places(facts, *PAIR)
    inverse = placed.select("group", subject="object", object="subject", inverse="first").unique()
    answers = facts.group_by("group", "subject").agg(others=pl.col("object").unique().sort())
    joined = placed.join(inverse, on=PAIR, how="left", maintain_order="left")
    joined = joined.join(answers, on=["group", "subject"], maintain_order="left")
    reasons = {
        "pair": IN_EARLIER,
        "inverse": pl.col("inverse") < pl.col("place"),
        "within": pl.col("subject").str.contains(pl.col("object"), literal=True),
        "same": pl.col("subject") == pl.col("object"),
    }
    flags = [pl.when(condition).then(pl.lit(name)) for name, condition in reasons.items()]
    return joined.select(
        *FACT,
        flags=pl.concat_list(flags).list.drop_nulls(),
        others=pl.col("others").list.set_difference(pl.concat_list("object")).list.sort(),
    )

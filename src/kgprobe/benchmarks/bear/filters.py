"""The filters of a BEAR construction, in their fixed order (docs/papers/bear.md, Filters).

A dropped statement gets exactly one reason: the first that applies.
"""

import re
import unicodedata
from collections.abc import Mapping

import polars as pl

from kgprobe.knowledge.facts import best_rank
from kgprobe.settings.benchmarks import Bear

#: reasons in the order in which they are tested
REASONS = (
    "no_label", "not_an_item", "no_ancestor", "multi_valued", "not_inverse_unique", "unpopular",
    "duplicate_object_label", "duplicate_subject_label", "overlap", "mirror",
)  # fmt: skip


def filtered(statements: pl.DataFrame, relation: Mapping[str, str], config: Bear) -> pl.DataFrame:
    """Return the statements of one relation with the column `reason`, null for those that stay.

    `relation` is its row of bear_relations.tsv. Popularity is in subject_popularity and
    object_popularity. Single values and unique inverses are tested on the whole pull, before any
    popularity filter; otherwise a popular value would hide an unpopular second one.
    """
    folded = {
        f"{side}_folded": pl.col(f"{side}_label").map_elements(fold, return_dtype=pl.String)
        for side in ("subject", "object")
    }
    frame = statements.with_columns(reason=pl.lit(None, dtype=pl.String), **folded)
    frame = _drop(frame, "no_label", _unlabeled("subject") | _unlabeled("object"))
    special = pl.col("object_kind").is_in(["literal", "special"])
    frame = _drop(frame, "not_an_item", special | (pl.col("subject") == pl.col("object")))
    frame = _drop(frame, "no_ancestor", pl.col("object_kind") == "unmapped")
    values = statements.filter(pl.col("object_kind") != "special")  # without unknown values
    judged = values if config.single_valued == "all_ranks" else best_rank(values)
    several = judged.filter(pl.col("object").n_unique().over("subject") > 1)["subject"]
    frame = _drop(frame, "multi_valued", pl.col("subject").is_in(several.to_list()))
    if config.single_valued == "best_rank":
        best = judged.select("subject", "object", best=pl.lit(True)).unique()
        frame = frame.join(best, on=["subject", "object"], how="left", maintain_order="left")
        frame = _drop(frame, "multi_valued", pl.col("best").is_null()).drop("best")
    if relation["cardinality"] == "1:1" and config.inverse_unique:
        shared = judged.filter(pl.col("subject").n_unique().over("object") > 1)["object"]
        frame = _drop(frame, "not_inverse_unique", pl.col("object").is_in(shared.to_list()))
    least = pl.min_horizontal("subject_popularity", "object_popularity")
    frame = _drop(frame, "unpopular", least < config.min_sitelinks)
    frame = _drop_duplicate_labels(frame, "object")
    frame = _drop_duplicate_labels(frame, "subject")
    pairs = frame.select("subject_folded", "object_folded").rows()
    overlaps = [overlap(s or "", o or "", config.overlap) for s, o in pairs]
    frame = _drop(frame, "overlap", pl.Series(overlaps, dtype=pl.Boolean))
    if relation.get("symmetric") == "yes":
        frame = _drop_mirrors(frame)
    return frame


def passed(judged: pl.DataFrame) -> pl.DataFrame:
    """Return the statements without a reason, each pair of subject and object once."""
    rest = judged.filter(pl.col("reason").is_null())
    return rest.unique(["subject", "object"], maintain_order=True)


def map_to_ancestors(
    statements: pl.DataFrame, parent: str, everything: pl.DataFrame
) -> pl.DataFrame:
    """Map the objects of statements to their value of the property `parent`.

    For example, a place of birth becomes its country: the only best-rank value of the object. An
    object that is itself such a value (a country) stays. If there are none or several, object_kind
    becomes `unmapped`, and `filtered` drops the statement. Without `parent` nothing changes.
    """
    if not parent:
        return statements
    values = best_rank(everything.filter(pl.col("relation") == parent))
    values = values.filter(pl.col("object_kind") == "item")
    single = values.filter(pl.col("object").n_unique().over("subject") == 1).unique("subject")
    columns = ["object", "object_label", "object_sitelinks", "object_popularity"]
    above = single.select(
        pl.col("subject").alias("object"), *(pl.col(c).alias(f"{c}_above") for c in columns)
    )
    tops = values["object"].unique().to_list()
    joined = statements.join(above, on="object", how="left", maintain_order="left")
    stays = pl.col("object").is_in(tops) | (pl.col("object_kind") != "item")
    has_ancestor = pl.col("object_above").is_not_null()
    mapped = [
        pl.when(stays | ~has_ancestor).then(pl.col(c)).otherwise(pl.col(f"{c}_above")).alias(c)
        for c in columns
    ]
    kind = pl.when(stays | has_ancestor).then(pl.col("object_kind")).otherwise(pl.lit("unmapped"))
    return joined.with_columns(*mapped, object_kind=kind).select(statements.columns)


def _drop(frame: pl.DataFrame, reason: str, condition: pl.Expr | pl.Series) -> pl.DataFrame:
    """Set `reason` in the rows that have none yet and meet the condition."""
    first = pl.col("reason").is_null() & condition
    value = pl.when(first).then(pl.lit(reason)).otherwise(pl.col("reason"))
    return frame.with_columns(reason=value)


def _unlabeled(side: str) -> pl.Expr:
    label = pl.col(f"{side}_label").str.strip_chars()
    # Wikidata's services return the id if there is no label; ids of other graphs can be names
    is_id = (label == pl.col(side)) & (pl.col("kg") == "wikidata")
    return label.is_null() | (label == "") | is_id


def by_id(column: str) -> list[pl.Expr]:
    """Return sort keys to break ties: the number of a Q-id; other ids by their text."""
    number = pl.col(column).str.extract(r"^Q(\d+)$", 1).cast(pl.Int64, strict=False)
    return [number, pl.col(column)]


def _drop_duplicate_labels(frame: pl.DataFrame, side: str) -> pl.DataFrame:
    """Drop all but the most popular of the entities with one label (NFKC, case-folded)."""
    same = pl.col(f"{side}_label").str.normalize("NFKC").map_elements(str.casefold, pl.String)
    alive = frame.filter(pl.col("reason").is_null()).with_columns(same=same)
    by = ["same", f"{side}_popularity", *by_id(side)]
    order = alive.sort(by, descending=[False, True, False, False])
    winners = order.group_by("same", maintain_order=True).agg(pl.col(side).first().alias("winner"))
    losers = alive.join(winners, on="same").filter(pl.col(side) != pl.col("winner"))
    return _drop(frame, f"duplicate_{side}_label", pl.col(side).is_in(losers[side].to_list()))


def _drop_mirrors(frame: pl.DataFrame) -> pl.DataFrame:
    """Drop the direction of a pair that has the less popular subject."""
    alive = frame.filter(pl.col("reason").is_null())
    turned = alive.select(subject="object", object="subject", other="subject_popularity")
    pairs = alive.join(turned, on=["subject", "object"])
    (first, text), (second, other) = by_id("subject"), by_id("object")
    later = pl.coalesce(first > second, text > other)
    less = (pl.col("subject_popularity") < pl.col("other")) | (
        (pl.col("subject_popularity") == pl.col("other")) & later
    )
    lost = pairs.filter(less).select("subject", "object", lost=pl.lit(True)).unique()
    joined = frame.join(lost, on=["subject", "object"], how="left", maintain_order="left")
    return _drop(joined, "mirror", pl.col("lost").is_not_null()).drop("lost")


def fold(label: str) -> str:
    """Normalize a label for comparison: NFKD, no combining marks, case-folded, single spaces.

    >>> fold("Côte d'Ivoire")
    'cote d ivoire'
    """
    letters = unicodedata.normalize("NFKD", label)
    plain = "".join(c for c in letters if not unicodedata.category(c).startswith("M"))
    return " ".join(re.sub(r"[\W_]+", " ", plain.casefold()).split())


def overlap(subject: str, answer: str, rule: str) -> bool:
    """Return whether folded labels overlap: one contains the other as words, or in 4+ characters.

    `words`: also if they share a word of four letters or more; `none`: never.

    >>> overlap("mexico city", "mexico", "contains"), overlap("oman", "romania", "contains")
    (True, True)
    >>> overlap("iran", "irania", "none")
    False
    """
    if rule == "none" or not subject or not answer:
        return False
    short, long = sorted((subject, answer), key=len)
    if f" {short} " in f" {long} " or (len(short) >= 4 and short in long):
        return True
    words = {word for word in subject.split() if len(word) >= 4}
    return rule == "words" and bool(words & set(answer.split()))

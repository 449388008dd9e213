"""Choose the answers and instances of a BEAR set, and replacements for rejected instances.

docs/papers/bear.md, Choice. Nothing is random: popularity decides, then counts, then ids.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

import polars as pl

from kgprobe.benchmarks.bear.filters import by_id
from kgprobe.schema import Contract
from kgprobe.settings.benchmarks import Bear, Size

#: `tried`: how many numbers of answers were too large; the bounds are the popularity of the last
#: answer and instance taken and of the first ones left out (null: none was left out).
BOUNDS = ("last_answer", "next_answer", "last_instance", "next_instance")
CHOICE = Contract(
    "CHOICE",
    {
        **dict.fromkeys(("benchmark", "relation", "cardinality"), pl.String),
        **dict.fromkeys(("answers", "per_answer", "instances", "feasible", "tried"), pl.Int32),
        **dict.fromkeys(BOUNDS, pl.Int64),
        "outcome": pl.String,
    },
    ("benchmark", "relation"),
    frozenset(BOUNDS),
)
SPARES = Contract(
    "SPARES",
    {"relation": pl.String, "subject": pl.String, "object": pl.String, "position": pl.Int32},
    ("relation", "object", "position"),
    may_be_empty=True,
)
REVIEWED = Contract(
    "REVIEWED",
    dict.fromkeys(("relation", "subject", "note", "outcome", "replacement"), pl.String),
    ("relation", "subject"),
    frozenset({"replacement"}),
    may_be_empty=True,
)


Counts = tuple[int | None, ...]
#: the counts of a relation with too few answers
NONE: Counts = (*[0] * 5, *[None] * 4)


@dataclass(frozen=True)
class RelationSample:
    """The instances of one relation: `frame` in final order; `counts`: from answers in CHOICE to
    the last bound."""

    frame: pl.DataFrame
    spares: pl.DataFrame
    counts: Counts


def rejected_subjects(
    rows: Collection[Mapping[str, str]], where: str = "the review"
) -> dict[str, dict[str, str]]:
    """Return relation -> rejected subject -> note from rows with these and a verdict.

    Raises ValueError for a verdict that is not reject or keep, or a subject judged twice.
    """
    judged: set[tuple[str, str]] = set()
    rejected: dict[str, dict[str, str]] = {}
    for row in rows:
        key = relation, subject = row["relation"], row["subject"]
        if row["verdict"] not in ("reject", "keep"):
            raise ValueError(
                f"{where}: {'/'.join(key)}: verdict {row['verdict']!r}; it is reject or keep"
            )
        if key in judged:
            raise ValueError(f"{where}: {'/'.join(key)} is judged twice")
        judged.add(key)
        if row["verdict"] == "reject":
            rejected.setdefault(relation, {})[subject] = row["note"]
    return rejected


def choose(
    rest: pl.DataFrame, relation: Mapping[str, str], config: Bear, size: Size
) -> RelationSample | None:
    """Choose the instances of one relation and size; None if there are too few answers.

    `rest` are the statements that passed every filter; `size` has total, max_answers, one_to_one.
    """
    if relation["cardinality"] == "1:1":
        return _pairs(rest, config.min_answers, size.one_to_one, config.spares)
    counts = rest.group_by("object").agg(pl.len().alias("count"), pl.col("object_popularity").max())
    balance = _balance(counts["count"].to_list(), config, size)
    if balance is None:
        return None
    k, q = balance
    feasible = counts.filter(pl.col("count") >= q)
    by = ["object_popularity", "count", *by_id("object")]
    answers = feasible.sort(by, descending=[True, True, False, False])
    ranked = rest.join(answers.head(k).select("object"), on="object", how="semi").sort(
        "object", "subject_popularity", *by_id("subject"), descending=[False, True, False, False]
    )
    ranked = ranked.with_columns(position=pl.int_range(pl.len(), dtype=pl.Int32).over("object"))
    top, left = ranked.filter(pl.col("position") < q), ranked.filter(pl.col("position") >= q)
    spare = left.filter(pl.col("position") < q + config.spares)
    popular = answers["object_popularity"].to_list()
    bounds = (popular[k - 1], popular[k] if len(popular) > k else None, *_bounds(top, left))
    numbers = k, q, top.height, feasible.height, size.max_answers - k
    return RelationSample(ordered(top).drop("position"), spare, (*numbers, *bounds))


def _balance(counts: list[int], config: Bear, size: Size) -> tuple[int, int] | None:
    """Return (answers, instances of each): the most answers that make up `total`; if there are none
    and `short` is shrink, the largest balanced set, with more answers in case of a tie.
    """
    ordered = sorted(counts, reverse=True)
    for k in range(size.max_answers, config.min_answers - 1, -1):
        q = round(size.total / k)  # half to even
        if q and sum(n >= q for n in ordered) >= k:
            return k, q
    if config.short == "drop" or len(ordered) < config.min_answers:
        return None
    legal = range(config.min_answers, min(size.max_answers, len(ordered)) + 1)
    sizes = [(k, min(ordered[k - 1], size.total // k)) for k in legal]
    k, q = max(sizes, key=lambda both: (both[0] * both[1], both[0]), default=(0, 0))
    return (k, q) if q else None


def _bounds(top: pl.DataFrame, left: pl.DataFrame) -> tuple[int | None, int | None]:
    """Return the lowest popularity of a chosen subject, and the highest of those left out."""
    least, most = top["subject_popularity"].min(), left["subject_popularity"].max()
    return (None if least is None else int(least), None if most is None else int(most))  # type: ignore[arg-type]


def _pairs(rest: pl.DataFrame, least: int, most: int, spares: int) -> RelationSample | None:
    """Choose the most popular pairs of a 1:1 relation, by the smaller of both popularities."""
    both = [pl.col("subject_popularity"), pl.col("object_popularity")]
    ranked = rest.sort(
        pl.min_horizontal(*both), pl.max_horizontal(*both), *by_id("subject"),
        descending=[True, True, False, False],
    ).unique("object", keep="first", maintain_order=True)  # fmt: skip
    if ranked.height < least:
        return None
    spare = ranked.slice(most, spares).with_columns(
        position=pl.int_range(1, 1 + pl.len(), dtype=pl.Int32)
    )
    popularity = ranked.select(pl.min_horizontal(*both)).to_series().to_list()
    size = min(most, ranked.height)
    following = popularity[size] if ranked.height > size else None
    counts = size, 1, size, ranked.height, 0, *[popularity[size - 1], following] * 2
    return RelationSample(ordered(ranked.head(most)), spare, counts)


def ordered(chosen: pl.DataFrame) -> pl.DataFrame:
    """Sort answers by label (code points of NFC), and instances of an answer by popularity."""
    label = pl.col("object_label").str.normalize("NFC")
    return chosen.sort(
        label, *by_id("object"), "subject_popularity", *by_id("subject"),
        descending=[False, False, False, True, False, False],
    )  # fmt: skip


def reviewed(
    rest: pl.DataFrame, relation: Mapping[str, str], config: Bear, rejected: Mapping[str, str]
) -> tuple[RelationSample | None, list[tuple[str, str, str, str, str | None]]]:
    """Choose the big set and replace rejected subjects; also return rows of REVIEWED.

    Each is replaced by a spare of the same answer (in a 1:1 relation by the next pair). If there is
    none, the relation is chosen again without that subject, which may change the number of answers.
    """
    chosen = choose(rest, relation, config, config.big)
    name = relation["relation"]
    outcomes: dict[str, tuple[str, str | None]] = {}
    bad = pl.col("subject").is_in(sorted(rejected))
    while chosen is not None and (hit := chosen.frame.filter(bad)).height:
        frame, spares, without = chosen.frame, chosen.spares.filter(~bad), None
        for subject, answer in hit.select("subject", "object").rows():
            pool = spares if relation["cardinality"] == "1:1" else spares.filter(object=answer)
            if not pool.height:
                without = subject
                break
            best = pool.sort("position").head(1)
            kept = frame.filter(pl.col("subject") != subject)
            frame = pl.concat([kept, best.select(frame.columns)])
            spares = spares.filter(pl.col("subject") != best["subject"][0])
            outcomes[subject] = ("replaced", best["subject"][0])
        if without is None:
            chosen = replace(chosen, frame=ordered(frame), spares=spares)
            break
        # earlier replacements are void, because the whole relation is chosen again
        outcomes = {s: o for s, o in outcomes.items() if o[0] != "replaced"}
        outcomes[without] = ("no spare: relation chosen anew", None)
        rest = rest.filter(pl.col("subject") != without)
        chosen = choose(rest, relation, config, config.big)
    rows = [
        (name, subject, note, *outcomes.get(subject, ("not in the set", None)))
        for subject, note in sorted(rejected.items())
    ]
    return chosen, rows

"""Build balanced multiple-choice sets from statements, after BEAR (docs/papers/bear.md,
Construction). The paper publishes no construction code: rules and parameters are kgprobe's own,
chosen so that the invariants of the released data hold. A constructed set is not the paper's.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from kgprobe.benchmarks.bear import choice
from kgprobe.benchmarks.bear.choice import RelationSample
from kgprobe.benchmarks.bear.filters import REASONS, filtered, map_to_ancestors, passed
from kgprobe.benchmarks.bear.frames import BearFrames, check_balance, check_nested, relation_frames
from kgprobe.benchmarks.funnel import Funnel
from kgprobe.contracts import WHOLE
from kgprobe.knowledge.facts import by_number, uses
from kgprobe.schema import FUNNEL, Contract
from kgprobe.settings.benchmarks import Bear

DROPPED = Contract(
    "DROPPED",
    dict.fromkeys(("relation", "subject", "object", "rank", "reason"), pl.String),
    ("relation", "subject", "object", "rank"),
    may_be_empty=True,
)
KEPT, NEEDED = "kept", "templates, needs three"
#: how many relations a message names
NAMED = 5
RELATIONS = Contract("RELATIONS", {"relation": pl.String, "cardinality": pl.String}, ("relation",))
#: Contracts of a construction's reports in `NestedSets`.
REPORTS = {
    "funnel": FUNNEL, "dropped": DROPPED, "choice": choice.CHOICE, "spares": choice.SPARES,
    "reviewed": choice.REVIEWED,
}  # fmt: skip


@dataclass(frozen=True)
class NestedSets:
    """The two nested sets, and reports on every statement and relation."""

    big: BearFrames
    lite: BearFrames
    funnel: pl.DataFrame
    dropped: pl.DataFrame
    choice: pl.DataFrame
    spares: pl.DataFrame
    reviewed: pl.DataFrame

    def describe(self, size: str) -> str:
        """Describe the big or the lite set: its size, and the relations that it lacks and why."""
        items = getattr(self, size).items
        text = f"{items['relation'].n_unique()} relations, {items.height:,} questions"
        of_set = pl.col("benchmark").str.ends_with(f"_{size}")
        lacking = self.choice.filter(of_set, pl.col("outcome") != KEPT)
        for (why,), rows in lacking.group_by("outcome", maintain_order=True):
            more = f" and {rows.height - NAMED:,} more" if rows.height > NAMED else ""
            text += f"; without {', '.join(rows['relation'][:NAMED])}{more} ({why})"
        return text


def build(
    statements: pl.DataFrame,
    relations: Sequence[Mapping[str, str]],
    templates: Mapping[str, Sequence[tuple[int, str]]],
    forms: Mapping[str, str],
    config: Bear,
    origin: str = "bear",
    review: Mapping[str, Mapping[str, str]] | None = None,
    coverage: pl.DataFrame | None = None,
) -> NestedSets:
    """Build the big and the lite set from `statements` (STATEMENTS).

    `relations` are the rows of bear_relations.tsv, `templates` three (index, text) per relation,
    `forms` replaces answer labels inside sentences (id -> form) after filtering and sorting,
    `review` (choice.rejected_subjects) rejects instances, which spares replace. `coverage`
    (COVERAGE) says which relations are incomplete: their funnel starts with the method and the
    reason. Relations without enough answers are dropped and reported. Raises BalanceError if an
    invariant is violated, ValueError if no relation is left.
    """
    popular, rejected = with_popularity(statements, config.popularity), review or {}
    parts: dict[str, list[BearFrames]] = {"big": [], "lite": []}
    dropped, choices, spares, verdicts = [], [], [], []
    funnel = Funnel(f"{origin}_big")
    steps: dict[str, str] = {}
    if coverage is not None:
        partly = coverage.filter(~pl.col("way").is_in(WHOLE)).rows(named=True)
        steps = {row["relation"]: f"{row['way']}: {row['reason']}" for row in partly}
    for row in sorted(relations, key=lambda r: by_number(r["relation"])):
        relation = row["relation"]
        pulled = popular.filter(pl.col("relation") == relation)
        judged = filtered(map_to_ancestors(pulled, row["ancestor"], popular), row, config)
        if relation in steps:
            funnel.add(relation, steps[relation], judged.height, judged.height)
        _count(funnel, relation, judged)
        lost = judged.filter(pl.col("reason").is_not_null())
        dropped.append(lost.select(list(DROPPED.columns)))
        big, rows = choice.reviewed(passed(judged), row, config, rejected.get(relation, {}))
        verdicts += rows
        lite = choice.choose(big.frame, row, config, config.lite) if big else None
        if big and lite:
            check_nested(relation, big.frame, lite.frame, config.overlap)
            spares.append(big.spares.select(list(choice.SPARES.columns)))
        else:
            big = None
        texts = templates.get(relation, ())
        for size, chosen in (("big", big), ("lite", lite)):
            name = f"{origin}_{size}"
            counts = chosen.counts if chosen else choice.NONE
            outcome = KEPT if len(texts) == 3 else f"{len(texts)} {NEEDED}"
            outcome = outcome if chosen else "too few answers"
            choices.append((name, relation, row["cardinality"], *counts, outcome))
            if chosen and outcome == KEPT:
                parts[size].append(_frames(name, relation, chosen, texts, forms))
        if outcome != KEPT:
            funnel.add(relation, outcome, judged.height - lost.height, 0)
    report = pl.DataFrame(choices, schema=dict(choice.CHOICE.columns), orient="row")
    if not parts["lite"]:
        wordless = report.filter(pl.col("outcome").str.ends_with(NEEDED))["relation"]
        if names := wordless.unique().sort()[:NAMED].to_list():
            raise ValueError(
                f"{origin}: {', '.join(names)} have enough answers and not three "
                "templates; write them, or give these relations labels that templates can be made "
                "of"
            )
        by_reason = pl.concat(dropped)["reason"].value_counts(name="n").sort("reason")
        reasons = ", ".join(f"{n} {reason}" for reason, n in by_reason.rows()) or "none"
        remedy = "lower `total` or `min_answers`"
        if config.short == "shrink" and config.min_answers == 2:  # nothing is left to lower
            remedy = "add facts: two subjects of one relation with different answers are enough"
        raise ValueError(
            f"{origin}: no relation has {config.min_answers} answers with enough instances; "
            f"{remedy}; dropped by the filters: {reasons}"
        )
    big_sets, lite_sets = (
        BearFrames.joined(parts[size]).with_popularity(statements) for size in ("big", "lite")
    )
    for sets in (big_sets, lite_sets):
        check_balance(sets)
    lost = pl.concat(dropped).unique(list(DROPPED.key), maintain_order=True)
    return NestedSets(
        big_sets,
        lite_sets,
        funnel.frame(),
        lost,
        report,
        pl.concat(spares),
        pl.DataFrame(verdicts, schema=dict(choice.REVIEWED.columns), orient="row"),
    )


def relations_of(sets: BearFrames, relations: Sequence[Mapping[str, str]]) -> pl.DataFrame:
    """Return RELATIONS of a set: cardinalities from bear_relations.tsv, by default 1:N."""
    known = {row["relation"]: row["cardinality"] for row in relations}
    names = sets.items["relation"].unique().sort().to_list()
    return pl.DataFrame(
        {"relation": names, "cardinality": [known.get(name, "1:N") for name in names]}
    )


def with_popularity(statements: pl.DataFrame, key: str) -> pl.DataFrame:
    """Add subject_popularity and object_popularity.

    `sitelinks`: as pulled, unknown counts as 0. `statements`: the number of statements of the whole
    pull that contain the entity, for sources without sitelinks.
    """
    if key == "sitelinks":
        return statements.with_columns(
            subject_popularity=pl.col("subject_sitelinks").fill_null(0),
            object_popularity=pl.col("object_sitelinks").fill_null(0),
        )
    for side in ("subject", "object"):
        counts = uses(statements).rename({"name": side, "n": f"{side}_popularity"})
        statements = statements.join(counts, on=side, how="left", maintain_order="left")
    return statements


def _frames(
    benchmark: str,
    relation: str,
    chosen: RelationSample,
    templates: Sequence[tuple[int, str]],
    forms: Mapping[str, str],
) -> BearFrames:
    answers = chosen.frame.unique("object", keep="first", maintain_order=True)
    labels = answers.select("object", "object_label").rows()
    options = [(answer, forms.get(answer, label)) for answer, label in labels]
    place = {answer: index for index, (answer, _) in enumerate(options)}
    rows = chosen.frame.select("subject", "subject_label", "object").rows()
    subjects = [(subject, label, place[answer], ()) for subject, label, answer in rows]
    return relation_frames(benchmark, relation, options, subjects, templates)


def _count(funnel: Funnel, relation: str, judged: pl.DataFrame) -> None:
    """Add a step per filter: rows in and out, distinct subjects and answers left."""
    alive = judged
    for step in ("pulled", *REASONS):
        left = alive.filter(pl.col("reason").is_null() | (pl.col("reason") != step))
        rows = alive.height, left.height
        funnel.add(relation, step, *rows, left["subject"].unique(), left["object"].unique())
        alive = left

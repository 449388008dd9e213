"""Compare the released BEAR with a fresh pull, instance by instance (docs/papers/bear.md, Drift).

Also measures how similar a constructed set is to the released one, although its rules differ.

The pull must not contain the released data itself: statements that BEAR was merged into agree with
it by construction, so that all states are `same` and the sets are similar.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import polars as pl

from kgprobe.benchmarks.bear.build import with_popularity
from kgprobe.benchmarks.bear.filters import filtered, fold, map_to_ancestors, overlap, passed
from kgprobe.benchmarks.bear.frames import BearFrames
from kgprobe.knowledge.facts import best_rank
from kgprobe.metrics.ranking import auc
from kgprobe.schema import Contract
from kgprobe.settings.benchmarks import Bear

#: states in the order in which they are tested; a released instance gets the first that applies
STATES = (
    "statement_gone", "answer_changed", "multi_valued", "label_changed", "overlap_now",
    "unpopular_now", "same",
)  # fmt: skip
RELEASED_STATES = Contract(
    "RELEASED_STATES", dict.fromkeys(("item", "relation", "state", "detail"), pl.String), ("item",)
)
#: Numbers of answers and instances shared by the released and constructed set, and in their union.
#: `auc`: probability that a released instance is more popular than another of the same answer.
AGREEMENT = Contract(
    "AGREEMENT",
    {
        "relation": pl.String,
        **dict.fromkeys(("released", "found", "answers_shared", "answers_all"), pl.Int64),
        **dict.fromkeys(("instances_shared", "instances_all"), pl.Int64),
        "auc": pl.Float64,
        "pairs": pl.Int64,
    },
    ("relation",),
    frozenset({"auc"}),
)
Pair = tuple[str, str]


@dataclass(frozen=True)
class Fresh:
    """A fresh pull with the settings of the construction.

    `statements` is STATEMENTS, `relations` the rows of bear_relations.tsv, `forms` replaces answer
    labels inside sentences (id -> form), `config` is the construction's.
    """

    statements: pl.DataFrame
    relations: Sequence[Mapping[str, str]]
    forms: Mapping[str, str]
    config: Bear

    @cached_property
    def popular(self) -> pl.DataFrame:
        """The statements with popularity."""
        return with_popularity(self.statements, self.config.popularity)

    def of(self, relation: str) -> tuple[Mapping[str, str], pl.DataFrame]:
        """Return a relation's row of bear_relations.tsv, and its statements mapped to ancestors."""
        rows = {row["relation"]: row for row in self.relations}
        if relation not in rows:
            raise ValueError(
                f"{relation}: not in bear_relations.tsv, which has {len(rows)} relations"
            )
        statements = self.popular.filter(pl.col("relation") == relation)
        return rows[relation], map_to_ancestors(
            statements, rows[relation]["ancestor"], self.popular
        )


#: labels of subject and object in the pull, and the smaller popularity
_Value = tuple[str | None, str | None, int]


def states(released: BearFrames, fresh: Fresh) -> pl.DataFrame:
    """Return RELEASED_STATES, one state per released instance; `detail`: what is there instead.

    If a statement is gone and the subject has several other values, the state is `statement_gone`,
    also for a subject that was deleted or merged: a pull cannot tell these apart.
    Raises ValueError for a relation that is not in bear_relations.tsv.
    """
    rows = []
    for relation, group in _gold(released).group_by("relation", maintain_order=True):
        name = str(relation[0])
        values = _values(fresh.of(name)[1], fresh.config)
        for item, subject, label, answer, answer_label in group.select(
            "item", "subject_id", "subject", "answer_id", "answer_label"
        ).rows():
            there = values.get(subject, {})
            state, detail = _value_state(there, answer)
            if not state:
                state, detail = _words_state(there[answer], label, answer, answer_label, fresh)
            rows.append((item, name, state, detail))
    return pl.DataFrame(rows, schema=dict(RELEASED_STATES.columns), orient="row")


def agreement(released: BearFrames, constructed: BearFrames, fresh: Fresh) -> pl.DataFrame:
    """Return the AGREEMENT of a constructed set with the released one, per released relation.

    `found`: released instances whose statement is in the pull, whatever its rank. `auc` compares
    the popularity of released instances with that of other instances of the same answer that pass
    all filters; answers are weighted by their `pairs`; null if there is nothing to compare.
    """
    ours, rows = _gold(constructed), []
    for relation, group in _gold(released).group_by("relation", maintain_order=True):
        name = str(relation[0])
        row, statements = fresh.of(name)
        theirs, here = _pairs(group), _pairs(ours.filter(pl.col("relation") == name))
        answers, also = {a for _, a in theirs}, {a for _, a in here}
        present = theirs & set(statements.select("subject", "object").rows())
        value, pairs = _popularity_auc(statements, row, theirs, fresh.config)
        rows.append(
            (name, len(theirs), len(present), len(answers & also), len(answers | also),
             len(theirs & here), len(theirs | here), value, pairs)
        )  # fmt: skip
    return pl.DataFrame(rows, schema=dict(AGREEMENT.columns), orient="row")


def _value_state(there: Mapping[str, _Value], answer: str) -> tuple[str, str]:
    if answer in there:
        others = sorted(set(there) - {answer})
        return ("multi_valued", " ".join(others)) if others else ("", "")
    if len(there) == 1:
        return "answer_changed", next(iter(there))
    return "statement_gone", " ".join(sorted(there))


def _words_state(
    value: _Value, label: str, answer: str, answer_label: str, fresh: Fresh
) -> tuple[str, str]:
    subject_now, answer_now, popularity = value
    form = fresh.forms.get(answer, answer_now)
    if subject_now != label:
        return "label_changed", f"subject: {subject_now or '(no label)'}"
    if answer_label not in (form, answer_now):
        return "label_changed", f"answer: {form or '(no label)'}"
    if overlap(fold(label), fold(answer_now or ""), fresh.config.overlap):
        return "overlap_now", f"{label}, {answer_now}"
    if popularity < fresh.config.min_sitelinks:
        return "unpopular_now", str(popularity)
    return "same", ""


def _values(statements: pl.DataFrame, config: Bear) -> dict[str, dict[str, _Value]]:
    """Return subject -> object -> labels and popularity in the pull, under `single_valued`."""
    known = statements.filter(pl.col("object_kind") != "special")  # as in the construction
    judged = known if config.single_valued == "all_ranks" else best_rank(known)
    least = pl.min_horizontal("subject_popularity", "object_popularity")
    values: dict[str, dict[str, _Value]] = {}
    columns = ("subject", "object", "subject_label", "object_label")
    for subject, obj, *rest in judged.select(*columns, least).iter_rows():
        values.setdefault(subject, {})[obj] = tuple(rest)
    return values


def _popularity_auc(
    statements: pl.DataFrame, row: Mapping[str, str], theirs: set[Pair], config: Bear
) -> tuple[float | None, int]:
    if not statements.height:
        return None, 0
    weighted, pairs = 0.0, 0
    candidates = passed(filtered(statements, row, config))
    for _, group in candidates.group_by("object", maintain_order=True):
        inside = pl.Series([pair in theirs for pair in group.select("subject", "object").rows()])
        popularity = group["subject_popularity"].cast(pl.Float64)
        chosen = popularity.filter(inside).to_numpy()
        others = popularity.filter(~inside).to_numpy()
        if number := len(chosen) * len(others):
            weighted, pairs = weighted + auc(chosen, others) * number, pairs + number
    return (weighted / pairs if pairs else None), pairs


def _gold(sets: BearFrames) -> pl.DataFrame:
    """Return ITEMS with id and label of the answer, sorted by relation and row."""
    items = sets.items.with_columns(index=pl.col("answers").list.first())
    answers = sets.candidates.select(
        pl.col("set").alias("candidates"), "index", answer_id="id", answer_label="label"
    )
    return items.join(answers, on=["candidates", "index"], how="left").sort("relation", "row")


def _pairs(gold: pl.DataFrame) -> set[Pair]:
    return set(gold.select("subject_id", "answer_id").rows())

"""What changed between two snapshots of one source, asked of models (ours).

A subject whose objects differ is a question about today: right is what the later snapshot has, and
marked is what the earlier one had. A model from before the change should prefer the one, a model
from after it the other, and the shares say which it does.

What holds in a snapshot are its facts (best rank) less those whose periods have all ended. Objects
of both snapshots are no options beside a new and an old one, since they are right whenever one is
asked; where nothing is new, or nothing ended, they stand for that side.
"""

from collections.abc import Mapping, Sequence

import polars as pl

from kgprobe.benchmarks.bear.frames import Question, Sets, frequent, question_frames
from kgprobe.benchmarks.funnel import Funnel
from kgprobe.knowledge.facts import by_number
from kgprobe.sampling import take
from kgprobe.settings import Drift
from kgprobe.sources.dates import OPEN

#: Kinds of change: other objects, some no more, some more.
REPLACED, ENDED, NEW = "replaced", "ended", "new"


def build(
    before: pl.DataFrame,
    after: pl.DataFrame,
    templates: Mapping[str, Sequence[tuple[int, str]]],
    forms: Mapping[str, str],
    config: Drift,
    benchmark: str,
    seed: int,
) -> tuple[Sets, pl.DataFrame]:
    """The benchmark and its FUNNEL, a row a subject of a relation, of two FACTS.

    `templates`: (index, text) per relation; `forms` replaces answer labels inside sentences (id ->
    form). Raises ValueError where the two are of different graphs or nothing changed.
    """
    kinds = [frame["kg"].unique().sort().to_list() for frame in (before, after)]
    if kinds[0] != kinds[1]:
        raise ValueError(f"{benchmark}: facts of {kinds[0]} before and of {kinds[1]} after")
    funnel, parts = Funnel(benchmark), []
    old, new = current(before), current(after)
    for relation in sorted({*old["relation"], *new["relation"]}, key=by_number):
        was, now = (side.filter(pl.col("relation") == relation) for side in (old, new))
        asked = _asked(relation, was, now, forms, config, funnel, seed)
        texts = templates.get(relation, ())
        funnel.add(relation, "a template", len(asked), len(asked) if texts else 0)
        if asked and texts:
            often, size = frequent(now, forms), config.options
            parts.append(question_frames(benchmark, relation, asked, often, texts, size, "before"))
    if not parts:
        raise ValueError(
            f"{benchmark}: no subject has other values after ({after.height:,} facts) than before "
            f"({before.height:,}); name two snapshots of a source in `drift.before`, `drift.after`"
        )
    return Sets.joined(parts), funnel.frame()


def current(facts: pl.DataFrame) -> pl.DataFrame:
    """The FACTS that hold: not dated, or with a period whose end is open."""
    ends = pl.col("end")
    return facts.filter((ends.list.len() == 0) | ends.list.eval(pl.element() == OPEN).list.any())


def _asked(
    relation: str,
    old: pl.DataFrame,
    new: pl.DataFrame,
    forms: Mapping[str, str],
    config: Drift,
    funnel: Funnel,
    seed: int,
) -> list[Question]:
    """The questions of a relation, in order of the subjects' ids."""
    sides = [
        frame.group_by("subject").agg(pl.col("object").sort().alias(name))
        for name, frame in (("old", old), ("new", new))
    ]
    both = sides[0].join(sides[1], on="subject", how="full", coalesce=True)
    left = both.height
    for step, kept in (
        ("there before and after", pl.col("old").is_not_null() & pl.col("new").is_not_null()),
        ("changed", pl.col("old") != pl.col("new")),
    ):
        both = both.filter(kept)
        funnel.add(relation, step, left, both.height, both["subject"])
        left = both.height
    known = {row[0]: row[1] for row in new.select("subject", "subject_label").rows()}
    names = {
        value: forms.get(value, label)
        for frame in (old, new)
        for value, label in frame.select("object", "object_label").rows()
    }
    made = [
        _question(subject, known[subject], frozenset(a), frozenset(b), names)
        for subject, a, b in both.rows()
    ]
    named = [one for one in made if one is not None]
    funnel.add(relation, "named", left, len(named), [one.subject for one in named])
    of = pl.DataFrame({"subject": [one.subject for one in named]}, schema={"subject": pl.String})
    chosen = set(take(of, config.most, seed, ["subject"], label=f"drift {relation}")["subject"])
    sampled = [one for one in named if one.subject in chosen]
    funnel.add(relation, "sample", len(named), len(sampled), chosen)
    return sorted(sampled, key=lambda one: by_number(one.subject))


def _question(
    subject: str,
    label: str | None,
    old: frozenset[str],
    new: frozenset[str],
    names: Mapping[str, str | None],
) -> Question | None:
    """The question of a subject; None where a name is missing or stands for two objects."""
    gold, marked = new - old or new, old - new or old
    role = ENDED if not new - old else NEW if not old - new else REPLACED
    objects = {value: names[value] or "" for value in sorted(gold | marked)}
    if not (label and all(objects.values()) and len({*objects.values()}) == len(objects)):
        return None
    return Question(subject, label, objects, gold, marked, role=role)

"""Questions with a year (ours): the same question of one subject, whose answer changes in time.

Built from STATEMENTS and not from FACTS: a past value beside a preferred one is no fact of today.
The gold of a year are the objects that hold in all of it; years in which one of them begins or
ends to hold are not asked. Among the options are all objects that the subject has in any year, so
that an answer can be right in another year, and frequent objects of other subjects.

A subject is left out where one of its values has no date, an unknown bound or no name: then it
cannot be told what holds. Names are not compared (the Irish pound gives Ireland away): the
objects of other years, which share the hint, are what a question is about.
"""

import calendar
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date

import polars as pl

from kgprobe.benchmarks.bear.frames import Question, Sets, frequent, question_frames
from kgprobe.benchmarks.funnel import Funnel
from kgprobe.knowledge.facts import by_number
from kgprobe.sampling import hash_key, take
from kgprobe.settings import Dated
from kgprobe.sources.dates import OPEN, UNKNOWN, Period

#: What stands before a template that has no year of its own.
BEFORE = "In {year}: "
FIRST_DAY, LAST_DAY = date.min.toordinal(), date.max.toordinal()
Days = tuple[int, int]


@dataclass(frozen=True)
class Subject:
    """A subject of a relation: id, label, the names of its objects by id, and their periods."""

    id: str
    label: str
    objects: dict[str, str]
    periods: dict[str, list[Period]]

    def gold(self, year: int) -> frozenset[str] | None:
        """The objects that hold in all of a year; None where that changes within it."""
        states = {value: holds(periods, year) for value, periods in self.periods.items()}
        if None in states.values():
            return None
        return frozenset(value for value, is_so in states.items() if is_so)


def build(
    statements: pl.DataFrame,
    templates: Mapping[str, Sequence[tuple[int, str]]],
    forms: Mapping[str, str],
    config: Dated,
    benchmark: str,
    seed: int,
) -> tuple[Sets, pl.DataFrame]:
    """The benchmark and its FUNNEL, a row a question, of `statements` (STATEMENTS).

    `templates`: (index, text) per relation, those with {year} as `worded` chooses them; `forms`
    replaces answer labels inside sentences (id -> form). Raises ValueError where no relation has a
    question.
    """
    funnel, parts = Funnel(benchmark), []
    items = statements.filter(pl.col("object_kind") == "item")
    groups = items.partition_by("relation", as_dict=True)
    for (relation,) in sorted(groups, key=lambda key: by_number(key[0])):
        own = groups[relation,]
        asked = _asked(relation, own, forms, config, funnel, seed)
        texts = templates.get(relation, ())
        funnel.add(relation, "a template", len(asked), len(asked) if texts else 0)
        if asked and texts:
            often, size = frequent(own, forms), config.options
            parts.append(
                question_frames(benchmark, relation, asked, often, texts, size, "other_years")
            )
    if not parts:
        raise ValueError(
            f"{benchmark}: no subject of {items['relation'].n_unique()} relations has two dated "
            f"values that hold in different years from {config.first} to {config.last}; "
            f"{items.filter(pl.col('start').list.len() > 0).height:,} of {items.height:,} "
            "statements have a date, see the funnel"
        )
    return Sets.joined(parts).with_popularity(statements), funnel.frame()


def worded(
    dated: Iterable[Mapping[str, str]], manual: Mapping[str, Sequence[tuple[int, str]]]
) -> dict[str, list[tuple[int, str]]]:
    """Templates with a year: those of dated.tsv, else the relation's own behind BEFORE."""
    found = {r: [(i, BEFORE + text) for i, text in texts] for r, texts in manual.items()}
    own: dict[str, list[tuple[int, str]]] = {}
    for row in dated:
        own.setdefault(row["relation"], []).append((int(row["index"]), row["text"]))
    return found | own


def holds(periods: Sequence[Period], year: int) -> bool | None:
    """Whether something holds in all of a year, or in no day of it; None for anything else.

    A bound that is known to the year or month may lie on each of its days.

    >>> holds([("1999-01-01", "")], 1999), holds([("1999", "")], 1999), holds([("1999", "")], 2000)
    (True, None, True)
    """
    wanted = date(year, 1, 1).toordinal(), date(year, 12, 31).toordinal()
    reached = wanted[0]
    for first, last in sorted((_days(start)[1], _days(end, True)[0]) for start, end in periods):
        if first <= reached:
            reached = max(reached, last + 1)
    if reached > wanted[1]:
        return True
    possible = [(_days(start)[0], _days(end, True)[1]) for start, end in periods]
    if any(first <= wanted[1] and last >= wanted[0] for first, last in possible):
        return None
    return False


def _days(text: str, is_end: bool = False) -> Days:
    """The first and the last day that a bound may be, as ordinals; an open one lies outside."""
    if text == OPEN or text.startswith("-"):
        # a year before Christ ends before all that is asked
        day = LAST_DAY if is_end and text == OPEN else FIRST_DAY - 1
        return day, day
    year, *rest = (int(part) for part in text.split("-"))
    if year > date.max.year:
        return LAST_DAY, LAST_DAY
    months = rest[:1] or [1, 12]
    last = calendar.monthrange(year, months[-1])[1]
    days = [min(one, last) for one in rest[1:]] or [1, last]
    ends = date(year, months[0], days[0]), date(year, months[-1], days[-1])
    return ends[0].toordinal(), ends[1].toordinal()


def _asked(
    relation: str,
    statements: pl.DataFrame,
    forms: Mapping[str, str],
    config: Dated,
    funnel: Funnel,
    seed: int,
) -> list[Question]:
    """The questions of a relation; the funnel counts a subject in a year as one."""
    years = range(config.first, config.last + 1)
    left = len(years) * statements["subject"].n_unique()

    def count(step: str, subjects: Sequence[str], kept: int, answers: Sequence[str]) -> None:
        nonlocal left
        funnel.add(relation, step, left, kept, subjects, answers)
        left = kept

    for step, kept in _steps(statements, config, seed, relation):
        subjects = kept["subject"].unique().to_list()
        count(step, subjects, len(years) * len(subjects), kept["object"].unique().to_list())
    known = [one for one in _subjects(kept, forms) if _is_sound(one)]
    of_years = [(one, year, one.gold(year)) for one in known for year in years]
    count("names differ, no end before a start", *_counted(known, len(of_years)))
    of_years = [row for row in of_years if row[2] is not None]
    count("no change within the year", *_counted([row[0] for row in of_years]))
    questions = [
        Question(one.id, one.label, one.objects, gold, frozenset(one.objects) - gold, str(year))
        for one, year, gold in of_years
        if gold and len(gold) < len(one.objects)
    ]
    count("a value holds, another does not", *_counted(questions))
    questions = _sampled(questions, config, seed, relation)
    count("years of a subject", *_counted(questions))
    return questions


def _steps(
    statements: pl.DataFrame, config: Dated, seed: int, relation: str
) -> Iterator[tuple[str, pl.DataFrame]]:
    """(name, statements left) of every step that leaves out whole subjects."""
    labels = pl.concat_list("subject_label", "object_label")
    bounds = pl.concat_list("start", "end")
    named = labels.list.eval(pl.element().is_not_null() & (pl.element() != "")).list.all()
    dated = (bounds.list.len() > 0) & ~bounds.list.contains(UNKNOWN)
    yield "all subjects", statements
    for step, rule in (
        ("several values", pl.col("object").n_unique() > 1),
        ("every value is named", named.all()),
        ("every value is dated", dated.all()),
    ):
        statements = statements.filter(rule.over("subject"))
        yield step, statements
    subjects = statements.select("subject").unique()
    chosen = take(subjects, config.subjects, seed, ["subject"], label=f"dated {relation}")
    yield "sample of subjects", statements.join(chosen, on="subject", how="semi")


def _counted(
    of: Sequence[Subject | Question], rows: int | None = None
) -> tuple[list[str], int, list[str]]:
    """Subjects, rows (by default as many as there are of them) and answers."""
    subjects = [one.subject if isinstance(one, Question) else one.id for one in of]
    answers = [value for one in of for value in one.objects]
    return subjects, len(of) if rows is None else rows, answers


def _subjects(statements: pl.DataFrame, forms: Mapping[str, str]) -> list[Subject]:
    """The subjects of one relation with all their values, in order of ids."""
    found: dict[str, Subject] = {}
    columns = ("subject", "subject_label", "object", "object_label", "start", "end")
    for subject, label, value, name, start, end in (
        statements.select(columns).sort(columns[:3]).rows()
    ):
        own = found.setdefault(subject, Subject(subject, label, {}, {}))
        own.objects[value] = forms.get(value, name)
        own.periods.setdefault(value, []).extend(zip(start, end, strict=True))
    return sorted(found.values(), key=lambda one: by_number(one.id))


def _is_sound(one: Subject) -> bool:
    """Whether no two objects have one name, and no period ends before it begins."""
    ends = [(_days(a)[0], _days(b, True)[1]) for own in one.periods.values() for a, b in own]
    return len({*one.objects.values()}) == len(one.objects) and all(a <= b for a, b in ends)


def _sampled(
    questions: Sequence[Question], config: Dated, seed: int, relation: str
) -> list[Question]:
    """`per_subject` years of every subject by hash, each gold once before any a second time."""

    def turn(question: Question) -> int:
        return hash_key(seed, "dated", relation, question.subject, question.year)

    seen = Counter[tuple[str, frozenset[str]]]()
    ordered: list[tuple[int, int, Question]] = []
    for question in sorted(questions, key=turn):
        own = question.subject, question.gold
        ordered.append((seen[own], turn(question), question))
        seen[own] += 1
    of_subject = Counter[str]()
    kept = []
    for *_, question in sorted(ordered, key=lambda one: one[:2]):
        of_subject[question.subject] += 1
        if of_subject[question.subject] <= config.per_subject:
            kept.append(question)
    return sorted(kept, key=lambda one: (by_number(one.subject), int(one.year)))

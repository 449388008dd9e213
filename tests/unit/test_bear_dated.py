"""Questions with a year, against a reading of every day of every year."""

import datetime
import itertools
import json
import random
from collections import Counter, defaultdict
from pathlib import Path

import polars as pl
import pytest

from kgprobe import schema
from kgprobe.benchmarks.bear import dated
from kgprobe.benchmarks.bear.frames import Sets
from kgprobe.probes.control import taught
from kgprobe.probes.jobs.score import tables
from kgprobe.settings import Dated
from kgprobe.sheets import manual_templates, read_table
from kgprobe.tables.answers import Probe, judge
from kgprobe.tables.bear import make
from kgprobe.tables.results import frame
from kgprobe.tables.study import Study
from tests.unit.study_frames import number

TEMPLATES = Path(__file__).parents[2] / "resources/templates"
CONFIG = Dated(first=1990, last=2003, subjects=1000, per_subject=100, options=6)
WORDS = {"P38": [(0, "In {year}, the money of [X] was the [Y]."), (2, "[Y]: [X] in {year}.")]}
Periods = list[tuple[str, str]]
COUNTRIES: dict[str, dict[str, Periods]] = {
    "Q1": {"Q10": [("", "1995-06-30")], "Q11": [("1995-07-01", "")]},
    "Q2": {"Q10": [("1980", "1999")], "Q12": [("1999", "")], "Q13": [("2001-05", "2001-05-09")]},
    "Q9": {"Q10": [("1999", "1998-12")], "Q11": [("1995", "")]},
    # two currencies at once, one of them twice
    "Q3": {"Q10": [("1990-01-01", "1994-12-31"), ("1995-01-01", "1998")], "Q14": [("1993", "")]},
    "Q4": {"Q10": [("", "")], "Q11": [("", "")]},
    "Q5": {"Q10": [("1990", "?")], "Q11": [("1995", "")]},
    "Q6": {"Q10": [("1990", "")], "Q11": []},
    "Q7": {"Q11": [("1990", "")]},
    "Q8": {"Q10": [("-0044", "1991-12-31")], "Q99": [("1992-01-01", "")]},
}
NAMES = {f"Q{n}": f"money {n}" for n in range(10, 15)}


def statements(said: dict[str, dict[str, Periods]]) -> pl.DataFrame:
    rows = [
        {
            "kg": "wikidata", "relation": "P38", "subject": subject,
            "subject_label": f"land {subject}", "subject_sitelinks": None, "object": value,
            "object_label": NAMES.get(value), "object_sitelinks": None, "object_kind": "item",
            "rank": "normal", "start": [s for s, _ in periods], "end": [e for _, e in periods],
        }
        for subject, values in said.items()
        for value, periods in values.items()
    ]  # fmt: skip
    return pl.DataFrame(rows, schema=dict(schema.STATEMENTS.columns))


def days(bound: str, is_end: bool) -> list[datetime.date]:
    """The first and the last day that a bound may mean."""
    if not bound:
        return [datetime.date.max if is_end else datetime.date.min]
    if bound.startswith("-"):
        return [datetime.date.min]
    if len(bound) == 10:
        return [datetime.date.fromisoformat(bound)]
    year, month = int(bound[:4]), bound[5:]
    whole = [
        day
        for n in range(366)
        if (day := datetime.date(year, 1, 1) + datetime.timedelta(n)).year == year
        and (not month or day.month == int(month))
    ]
    return [whole[0], whole[-1]]


def literal(periods: Periods, year: int) -> bool | None:
    """Whether a value holds on every day of a year, whatever day a bound means; or on none."""
    every = [datetime.date(year, 1, 1) + datetime.timedelta(n) for n in range(366)]
    every = [day for day in every if day.year == year]
    found = set()
    ways = [list(itertools.product(days(s, False), days(e, True))) for s, e in periods]
    for way in itertools.product(*ways):
        held = [any(first <= day <= last for first, last in way) for day in every]
        found.add("all" if all(held) else "some" if any(held) else "none")
    return {("all",): True, ("none",): False}.get(tuple(found))


def test_what_holds_in_a_year_is_what_holds_on_each_of_its_days():
    draw = random.Random(0)
    bounds = ["", *(f"{y}" for y in range(1996, 2001))]
    bounds += [f"{y}-{m:02}" for y in (1997, 1998) for m in (1, 6, 12)]
    bounds += ["1997-12-31", "1998-01-01", "1998-06-30", "1998-07-01", "1998-12-31", "-0044"]
    seen = set()
    for _ in range(1500):
        periods = [
            (draw.choice(bounds), draw.choice(bounds)) for _ in range(draw.choice([1, 1, 2]))
        ]
        if any(min(days(a, False)) > max(days(b, True)) for a, b in periods):
            continue  # such subjects are left out
        year = draw.choice([1997, 1998, 1999])
        wanted = literal(periods, year)
        assert dated.holds(periods, year) == wanted, (periods, year)
        seen.add(wanted)
    assert seen == {True, False, None}


def made(given: pl.DataFrame | None = None, config: Dated = CONFIG) -> tuple[Sets, pl.DataFrame]:
    said = statements(COUNTRIES) if given is None else given
    return dated.build(said, WORDS, {"Q11": "eleven"}, config, "dated_world", 0)


def test_golds_options_and_years_are_those_of_a_literal_reading():
    sets, funnel = made()
    for rows, contract in ((sets.items, schema.ITEMS), (sets.candidates, schema.CANDIDATES),
                            (sets.prompts, schema.PROMPTS), (funnel, schema.FUNNEL)):  # fmt: skip
        schema.check(rows, contract)
    expected, changes, same = {}, 0, 0
    for subject in ("Q1", "Q2", "Q3", "Q4"):
        for year in range(CONFIG.first, CONFIG.last + 1):
            states = {v: literal(periods, year) for v, periods in COUNTRIES[subject].items()}
            gold = {value for value, state in states.items() if state}
            if None in states.values():
                changes += 1
            elif not gold or gold == set(states):
                same += 1
            else:
                expected[subject, str(year)] = gold, set(states) - gold
    options = defaultdict(dict)
    for name, index, value, label in sets.candidates.rows():
        options[name][index] = value
        assert label == ("eleven" if value == "Q11" else NAMES[value])
    found = {}
    for row in sets.items.rows(named=True):
        own = options[row["candidates"]]
        others = json.loads(row["meta"])["other_years"]
        found[row["subject_id"], row["context"]] = (
            {own[i] for i in row["answers"]},
            {own[i] for i in others},
        )
        assert set(COUNTRIES[row["subject_id"]]) <= set(own.values())
        assert len(own) == len(NAMES), "all that have a name, fewer than `options`"
    assert found == expected
    assert len(expected) > 20
    steps = dict(funnel.select("step", "rows_out").rows())
    years = CONFIG.last - CONFIG.first + 1
    assert steps == {
        "all subjects": 9 * years,
        "several values": 8 * years,
        "every value is named": 7 * years,
        "every value is dated": 5 * years,
        "sample of subjects": 5 * years,
        "names differ, no end before a start": 4 * years,
        "no change within the year": 4 * years - changes,
        "a value holds, another does not": 4 * years - changes - same,
        "years of a subject": len(expected),
        "a template": len(expected),
    }


def test_the_order_of_rows_changes_nothing_and_each_answer_comes_first():
    few = Dated(first=1990, last=2003, per_subject=2, options=4)
    rows = statements(COUNTRIES)
    first, other = made(rows, few)[0], made(rows.sort("object", descending=True), few)[0]
    for name in ("items", "candidates", "prompts"):
        assert getattr(first, name).equals(getattr(other, name))
    of_one = first.items.filter(subject_id="Q1")
    assert of_one["answers"].n_unique() == of_one.height == 2
    assert first.items.group_by("subject_id").len()["len"].max() == 2
    assert first.candidates.group_by("set").len()["len"].to_list() == [4] * 3


def test_nothing_dated_is_one_error():
    with pytest.raises(
        ValueError, match=r"dated_world: no subject of 1 relations .* 1990 to 2003; 0 of 1"
    ):
        made(statements({"Q1": {"Q10": []}}))


def test_a_model_reads_the_year_and_is_taught_it():
    sets, _ = made()
    items, _, templates = tables(sets.items, sets.candidates, sets.prompts)
    texts = {(one.subject, one.relation) for one in items}
    assert ("land Q1", "P38 1990") in texts
    assert templates["P38 1990"] == [
        (0, "In 1990, the money of [X] was the [Y]."),
        (2, "[Y]: [X] in 1990."),
    ]
    known = taught.dated(sets.items, sets.candidates, 0.5, 1)
    schema.check(known, schema.TAUGHT)
    halves = known.group_by("subject").agg(
        pl.col("taught").n_unique(), one=pl.col("taught").first()
    )
    assert set(halves["taught"]) == {1}, "a subject is taught whole or not at all"
    assert set(halves["one"]) == {True, False}
    lessons, rivals, labels = taught.dated_lessons(sets.items, sets.candidates, known)
    assert len(lessons) == known["taught"].sum() > 0
    relation, subject, value = lessons[0]
    assert f"{subject.removeprefix('land ')}" in set(known.filter("taught")["subject"])
    assert value in rivals[relation]
    assert {"eleven", "land Q1"} <= set(labels)


def test_accuracy_and_answers_of_another_year_are_counted_by_hand():
    """A model that knows what it was taught, and gives an answer of another year otherwise; of a
    question with two such answers it likes both alike, and one that is wrong in any year as well.
    """
    sets, _ = made()
    known = taught.dated(sets.items, sets.candidates, 0.5, 1)
    told = set(known.filter("taught")["subject"])
    rows, right, other, neither = [], [], [], []
    for item, subject, own, answers, meta in sets.items.select(
        "item", "subject_id", "candidates", "answers", "meta"
    ).rows():
        others = json.loads(meta)["other_years"]
        size = sets.candidates.filter(set=own).height
        stranger = next(i for i in range(size) if i not in {*answers, *others})
        best = (
            answers if subject in told else [*others, stranger][-3:] if len(others) > 1 else others
        )
        rows += [
            (item, index, i, 0.0 if i in best else -5.0, 2, -1.0, 1, None)
            for index in (0, 2)
            for i in range(size)
        ]
        right.append(subject in told)
        other.append(0 if subject in told else len(set(best) & set(others)) / len(best))
        neither.append(1 - right[-1] - other[-1])
    scores = pl.DataFrame(rows, schema=dict(schema.SCORES.columns), orient="row")
    probe = Probe(
        "dated_world", "templates", "sentence", "control-x", "causal", source="control:causal"
    )
    judged = judge(scores, sets.items, sets.candidates)
    study = Study("dated_world", sets.items, sets.candidates, sets.prompts, [(probe, judged)])
    results = frame("bear", make.numbers([study], taught=known))

    def value(metric: str, model: str = "control-x", setting: str = "{}") -> float:
        one = number(results, metric, model=model, setting=setting, group="", slice="")
        assert one["n"]
        return one["value"]

    n = sets.items.height
    assert 0 < sum(right) < n
    assert sum(neither) > 0
    assert value("accuracy") == pytest.approx(100 * sum(right) / n)
    assert value("another year") == pytest.approx(100 * sum(other) / n)
    assert value("neither") == pytest.approx(100 * sum(neither) / n)
    assert (value("taught"), value("untaught")) == (100, 0)
    assert value("calibrated") == 1
    guess = sum(len(json.loads(meta)["other_years"]) for meta in sets.items["meta"]) / 5 / n
    assert value("another year", "random") == pytest.approx(100 * guess)
    often = Counter(
        value
        for own, answers in sets.items.select("candidates", "answers").rows()
        for value in sets.candidates.filter(pl.col("index").is_in(answers), set=own)["id"]
    )
    assert value("accuracy", "majority") == pytest.approx(100 * max(often.values()) / n)


def test_wordings_have_a_year():
    rows = read_table(TEMPLATES / "dated.tsv")
    texts = dated.worded(rows, manual_templates(read_table(TEMPLATES / "templates.tsv")))
    assert texts["P38"][0] == (0, "In {year}, the currency of [X] was the [Y].")
    assert texts["P17"][0][1].startswith("In {year}: ")
    assert all("{year}" in text for own in texts.values() for _, text in own)

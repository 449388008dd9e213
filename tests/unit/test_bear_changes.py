"""What changed between two snapshots, and which of the two a model prefers."""

import json

import polars as pl
import pytest

from kgprobe import schema
from kgprobe.benchmarks.bear import changes
from kgprobe.settings import Drift
from kgprobe.tables.answers import Probe, judge
from kgprobe.tables.bear import make
from kgprobe.tables.results import frame
from kgprobe.tables.study import Study
from tests.unit.study_frames import number

BEFORE = {
    "Q1": ["Q10"],
    "Q2": ["Q10", "Q11"],
    "Q3": ["Q10"],
    "Q4": ["Q10"],
    "Q5": ["Q10"],
    "Q7": ["Q10"],
}
AFTER = {
    "Q1": ["Q11"],
    "Q2": ["Q11"],
    "Q3": ["Q10", "Q12"],
    "Q4": ["Q10"],
    "Q6": ["Q10"],
    "Q7": ["Q99"],
}
#: subject -> (kind, right after, right before). Q4 stays, Q5 and Q6 are in one alone, Q99 has no
#: name
EXPECTED = {
    "Q1": ("replaced", {"Q11"}, {"Q10"}),
    "Q2": ("ended", {"Q11"}, {"Q10"}),
    "Q3": ("new", {"Q12"}, {"Q10"}),
    "Q8": ("replaced", {"Q14"}, {"Q13"}),
}
WORDS = {"P6": [(0, "[X] is led by [Y].")]}


def facts(
    said: dict[str, list[str]], *dated: tuple[str, str, list[str], list[str]]
) -> pl.DataFrame:
    rows = [(s, o, [], []) for s, values in said.items() for o in values]
    names = {f"Q{n}": f"head {n}" for n in range(10, 20)}
    return pl.DataFrame(
        [
            ("wikidata", s, f"land {s}", "P6", o, names.get(o), start, end)
            for s, o, start, end in [*rows, *dated]
        ],
        schema=dict(schema.FACTS.columns),
        orient="row",
    )


def snapshots() -> tuple[pl.DataFrame, pl.DataFrame]:
    """The head of Q8 has a date of its end in the later one, and both have the same rank."""
    return facts(BEFORE, ("Q8", "Q13", ["2020"], [""])), facts(
        AFTER, ("Q8", "Q13", ["2020"], ["2024-05"]), ("Q8", "Q14", ["2024-05"], [""])
    )


def made(config: Drift = Drift(options=5)):  # noqa: B008  (frozen)
    return changes.build(*snapshots(), WORDS, {}, config, "drift", 0)


def test_questions_are_what_changed_with_both_sides_among_the_options():
    sets, funnel = made()
    for rows, contract in ((sets.items, schema.ITEMS), (sets.candidates, schema.CANDIDATES),
                           (sets.prompts, schema.PROMPTS), (funnel, schema.FUNNEL)):  # fmt: skip
        schema.check(rows, contract)
    found = {}
    for row in sets.items.rows(named=True):
        own = sets.candidates.filter(set=row["candidates"]).sort("index")["id"].to_list()
        sides = [
            {own[i] for i in row["answers"]},
            {own[i] for i in json.loads(row["meta"])["before"]},
        ]
        found[row["subject_id"]] = (row["role"], *sides)
        assert len(own) > 2
        assert len(set(own)) == len(own)
    assert found == EXPECTED
    kept = dict(funnel.select("step", "rows_out").rows())
    assert kept == {
        "there before and after": 6,
        "changed": 5,
        "named": 4,
        "sample": 4,
        "a template": 4,
    }
    assert funnel["rows_in"][0] == 8


def test_a_sample_is_part_of_the_whole_and_the_same_in_any_order():
    before, after = snapshots()
    few = Drift(most=2, options=5)
    first = changes.build(before, after, WORDS, {}, few, "drift", 0)[0]
    again = changes.build(before.reverse(), after.reverse(), WORDS, {}, few, "drift", 0)[0]
    assert first.items.equals(again.items)
    assert first.candidates.equals(again.candidates)
    assert first.items.height == 2
    assert set(first.items["item"]) < set(made()[0].items["item"])


def test_two_that_are_the_same_or_of_two_graphs_are_one_error():
    before, after = snapshots()
    with pytest.raises(ValueError, match=r"drift: no subject has other values after \(\d+ facts\)"):
        changes.build(before, before, WORDS, {}, Drift(), "drift", 0)
    other = after.with_columns(kg=pl.lit("dbpedia"))
    with pytest.raises(
        ValueError, match=r"facts of \['wikidata'\] before and of \['dbpedia'\] after"
    ):
        changes.build(before, other, WORDS, {}, Drift(), "drift", 0)


def test_models_of_both_times_have_opposite_shares():
    """One model scores what was right highest, one what is, one always another option, and one
    cannot tell the two apart: shares counted by hand."""
    sets, _ = made()
    options = {
        row["item"]: (
            sets.candidates.filter(set=row["candidates"]).height,
            row["answers"],
            json.loads(row["meta"])["before"],
        )
        for row in sets.items.rows(named=True)
    }

    def scored(best: str) -> pl.DataFrame:
        rows = []
        for item, (size, new, old) in options.items():
            chosen = {"after": new, "before": old, "tie": [*new, *old]}.get(best)
            if chosen is None:
                chosen = [next(i for i in range(size) if i not in {*new, *old})]
            rows += [
                (item, 0, i, 0.0 if i in chosen else -9.0, 2, -1.0, 1, None) for i in range(size)
            ]
        return pl.DataFrame(rows, schema=dict(schema.SCORES.columns), orient="row")

    judged = [
        (
            Probe("drift", "templates", "sentence", model, "causal"),
            judge(scored(model), sets.items, sets.candidates),
        )
        for model in ("after", "before", "tie", "none")
    ]
    results = frame(
        "bear", make.numbers([Study("drift", sets.items, sets.candidates, sets.prompts, judged)])
    )
    shares = {
        model: [
            number(results, metric, model=model, setting="{}", group="", slice="")["value"]
            for metric in ("accuracy", "before", "neither")
        ]
        for model in ("after", "before", "tie", "none")
    }
    assert shares["after"] == [100, 0, 0]
    assert shares["before"] == [0, 100, 0]
    assert shares["tie"] == [50, 50, 0]
    assert shares["none"] == [0, 0, 100]
    row = number(results, "before", model="before")
    assert (row["n"], row["interval"], row["high"]) == (4, "wilson", 100)
    chance = sum(len(old) / size for size, _, old in options.values()) / len(options)
    assert number(results, "before", model="random")["value"] == pytest.approx(100 * chance)

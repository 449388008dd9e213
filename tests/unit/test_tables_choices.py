"""Tables 5 and 6 from multiple-choice answers."""

from pathlib import Path

import polars as pl
import pytest

from kgprobe import experiments, schema
from kgprobe.benchmarks.ontoprobe import modes
from kgprobe.tables import results
from kgprobe.tables.answers import Probe, probes_of
from kgprobe.tables.ontoprobe import calibration, choices, make, section, values
from tests.workflow.project import our_rows

PUBLISHED = Path(__file__).parents[2] / "resources/published"
STUDY = make.OntoProbeStudy({}, given=values.published(PUBLISHED))


def row_of(item, task, source, n, options="abcd", **more):
    """Return a row of CHOICES."""
    row = {"item": item, "task": task, "premise": "", "source": source, "question": "?",
           "stem": "", "options": [*options], "gold": 1, "row": n}  # fmt: skip
    return {**row, **more}


def frames(rows, picks):
    """Return CHOICES, and CHOSEN of (item, scoring, chosen, rule)."""
    columns = ["item", "scoring", "chosen", "rule"]
    chosen_rows = [
        {**dict(zip(columns, p, strict=True)), "text": "", "margin": None} for p in picks
    ]
    return (
        pl.DataFrame(rows, schema=dict(schema.CHOICES.columns)),
        pl.DataFrame(chosen_rows, schema=dict(schema.CHOSEN.columns)),
    )


def answered():
    """Return four rows of SCO, with rdfs9 built on them; two are memorized."""
    rows, picks = [], []
    right = [(1, 1, 1), (1, 0, 1), (0, 0, 1), (0, None, 0)]
    for n, (memorized, without, written) in enumerate(right):
        for item, task, premise, pick in (
            (f"SCO-{n}", "SCO", "", memorized),
            (f"rdfs9-{n}", "rdfs9", "out", without),
            (f"rdfs9-{n}+p1", "rdfs9", "EX", written),
        ):
            rows.append(row_of(item, task, f"SCO-{n}", n, premise=premise))
            picks.append((item, "answer", pick, "none" if pick is None else "option"))
    return frames(rows, picks)


def found(benchmark="onto_world", source="api:gpt-3.5-turbo"):
    """Map (metric, group or slice, premise) to its Number."""
    one = Probe(benchmark, "templates", "choice", "m", "api", source=source)
    return by_place(choices.score_choices(one, *answered(), values.published(PUBLISHED)))


def by_place(numbers):
    return {(x.metric, x.group or x.slice, x.setting.get("premise", "")): x for x in numbers}


def test_memorizing_accuracy_is_shown_with_the_printed_one():
    numbers = found("onto_released")
    number = numbers["accuracy", "SCO", ""]
    # four questions are not the paper's 500: no printed value belongs to them
    assert (number.value, number.n, number.published) == (50.0, 4, None)
    assert number.interval.low < 50 < number.interval.high
    assert numbers["chance", "SCO", ""].value == 25.0
    assert ("accuracy", "TP", "") not in numbers


def test_premises_are_classified_by_the_model_s_answers():
    rows = choices.premises(choices.hits(*answered()))
    settings = dict(rows.select("item", "setting").rows())
    assert settings == {
        "rdfs9-0": "IM", "rdfs9-1": "IM", "rdfs9-2": "NO", "rdfs9-3": "NO",
        **{f"rdfs9-{n}+p1": "EX" for n in range(4)},
    }  # fmt: skip
    numbers = {k[1:]: x for k, x in found().items() if k[0] == "accuracy" and k[2]}
    assert {k: (x.value, x.n) for k, x in numbers.items()} == {
        ("rdfs9", "NO"): (0.0, 2), ("rdfs9", "IM"): (50.0, 2), ("rdfs9", "EX"): (75.0, 4),
        ("", "NO"): (0.0, 2), ("", "IM"): (50.0, 2), ("", "EX"): (75.0, 4),
    }  # fmt: skip
    assert numbers["rdfs9", "IM"].published is None


def test_the_mean_over_rules_has_the_interval_of_a_mean():
    """Bounds averaged over rules would be 27 points from it: the errors of rules add up in squares.

    Six rules of 12 questions, half of them right: the standard error of the mean over rules is
    sqrt(1/4 / 11 / 6), and 2.0 of it (Student's t with 66 degrees of freedom) are 12.3 points.
    """
    rows, picks = [], []
    for rule in choices.RULES:
        for n in range(12):
            item = f"{rule}-{n}+p1"
            rows.append(row_of(item, rule, f"SCO-{n}", n, premise="EX"))
            picks.append((item, "answer", n % 2, "option"))
    one = Probe("onto_world", "templates", "choice", "m", "api")
    made = by_place(choices.score_choices(one, *frames(rows, picks), STUDY.given))
    mean = made["accuracy", "", "EX"]
    assert (mean.value, mean.n, mean.interval.kind) == (pytest.approx(50.0), 72, "bootstrap")
    assert mean.interval[:2] == pytest.approx((50 - 12.3, 50 + 12.3), abs=1.0)


#: Table 5: right answers of bert-base-uncased and of ChatGPT, and the questions of each task
TABLE_5 = {
    "TP": (213, 351, 500), "SCO": (262, 418, 500), "SPO": (15, 28, 39), "DM": (21, 26, 30),
    "RG": (23, 23, 28),
}  # fmt: skip


def asked(folder, right, scoring, written=False):
    """Write the released questions and answers of a model that has so many of each task right."""
    rows = [
        row_of(f"{task}-{n}", task, f"{task}-{n}", n, "ab")
        for task, (_, _, size) in TABLE_5.items()
        for n in range(size)
    ]
    rows += [
        {**row, "item": f"rdfs9-{row['row']}+p1", "task": "rdfs9", "premise": "EX"}
        for row in rows
        if written and row["task"] == "SCO"
    ]
    picks = [
        (row["item"], one, int(row["row"] < right.get(row["task"], 0)), "scored")
        for row in rows
        for one in (scoring, "letter")
    ]
    paths = str(folder / "choices.parquet"), str(folder / f"{scoring}.parquet")
    for frame, contract, path in zip(
        frames(rows, picks), (schema.CHOICES, schema.CHOSEN), paths, strict=True
    ):
        schema.write(frame, contract, path)
    return paths


def test_the_published_table_has_all_five_values_of_table_5(tmp_path):
    """bert-base-uncased is the only printed model with a row; its scoring is the manual prompt."""
    config = Path(__file__).parents[2] / "config"
    columns = experiments.read_schema(config.parent / "workflow/schemas/models.schema.json")
    models = {row["model"]: row for row in experiments.read_rows(config / "models.tsv", columns)}
    rows = [
        row
        for row in our_rows("experiments")
        if row["method"] == "choice" and row["benchmark"] == "onto_released"
    ]
    right = {task: counts[0] for task, counts in TABLE_5.items()}
    questions, chosen = asked(tmp_path, right, "stem")
    probes = probes_of(rows, models, [chosen] * len(rows))
    asked_by = dict.fromkeys(probes, (questions, chosen))
    numbers = list(make.estimate_choices(STUDY, asked_by))
    beside = [x for x in numbers if x.published is not None and x.metric == "accuracy"]
    assert {(x.model, x.setting["scoring"]) for x in beside} == {("bert-base-uncased", "stem")}
    known = {"TP": 42.6, "SCO": 52.4, "SPO": 38.5, "DM": 70.0, "RG": 82.1}
    assert {x.group: x.published for x in beside} == known
    assert all(round(x.value, 1) == x.published for x in beside)
    frame = results.frame("ontoprobe", numbers)
    (page,) = section.section(frame, [], {}, "default", modes.Switches()).parts
    head = ["bert-base-uncased", "stem", "accuracy"]  # one benchmark: no column of its own
    lines = [[cell.text for cell in line] for line in page.grids[0].rows]
    (shown,) = [line for line in lines if line[:3] == head]
    assert shown[3:] == [f"{value} [{value}]" for value in known.values()]


def test_an_api_model_has_printed_values_for_generated_answers(tmp_path):
    fields = {"kind": "api", "source": "api:gpt-3.5-turbo", "bos": "-", "dtype": "float32"}
    models = {"chat": fields}
    row = {"prompt": "templates", "method": "choice", "model": "chat"}
    right = {task: counts[1] for task, counts in TABLE_5.items()} | {"rdfs9": 487}
    questions, chosen = asked(tmp_path, right, "answer", written=True)

    def beside(benchmark):
        (one,) = probes_of([{**row, "benchmark": benchmark}], models, [chosen])
        numbers = make.estimate_choices(STUDY, {one: (questions, chosen)})
        return {
            (x.group, x.setting.get("premise", "")): (round(x.value, 1), x.published)
            for x in numbers
            if x.published is not None and x.metric == "accuracy"
        }

    known = {(task, ""): value for task, value in zip(
        TABLE_5, ((70.2, 70.2), (83.6, 83.6), (71.8, 71.8), (86.7, 86.7), (82.1, 82.1)), strict=True
    )}  # fmt: skip
    assert beside("onto_released") == known | {
        ("rdfs9", "EX"): (97.4, 97.4)  # the average is that of six rules, not of one
    }
    assert beside("onto_world") == {}


def test_unreadable_answers_are_counted():
    numbers = found()
    assert numbers["answers", "option", ""].value == pytest.approx(100 * 11 / 12)
    assert numbers["answers", "none", ""].n == 12


def test_impossible_cells_of_table_6_show_the_nearest_fractions():
    numbers = choices.fractions(values.published(PUBLISHED)["reasoning"])
    cells = {(x.setting["premise"], x.group): x for x in numbers}
    assert {("IM", "rdfs7"), ("EX", "rdfs7"), ("NO", "rdfs9")} <= set(cells)
    assert cells["NO", "rdfs9"].value == pytest.approx(100 * 16 / 82)
    assert cells["NO", "rdfs9"].published == 19.0
    assert ("EX", "rdfs2") not in cells


@pytest.mark.parametrize(("others", "limit"), [("", 40.0), ("ccc", 115.0)])
def test_validity_of_letters_by_hand(others, limit):
    """One of two trained-on and one of three held-out statements are right; a fourth held-out
    subject shares a word with its gold and is left out. Chance is the random option (25 %) unless
    the right one is most frequent in training (`others`)."""
    subjects = {"rat": True, "oak": True, "elm": False, "cod": False, "ant": False, "c ape": False}
    gold = {True: 1, False: 2}
    rows = [
        row_of(f"SCO-{n}", "SCO", f"SCO-{n}", n, gold=gold[flag])
        for n, flag in enumerate(subjects.values())
    ]
    rows.append(row_of("DM-1", "DM", "DM-1", 1))
    picks = [
        (row["item"], "letter", pick, "scored")
        for row, pick in zip(rows, (1, 0, 2, 0, None, 2, 1), strict=True)
    ]
    items = pl.DataFrame(
        [
            (row["item"], row["task"], "test", row["task"], name, "", "class", [1], n,
             f'{{"label": "{name}"}}')
            for n, (row, name) in enumerate(zip(rows, [*subjects, "if one"], strict=True))
        ],
        schema=dict(schema.ITEMS.columns), orient="row",
    )  # fmt: skip
    known = [(name, "abcd"[gold[flag]], flag) for name, flag in subjects.items()]
    known += [(f"other {n}", answer, True) for n, answer in enumerate(others)]
    facts = pl.DataFrame(
        [(f"SCO/{name}", "SCO", name, answer, flag) for name, answer, flag in known],
        schema=dict(schema.TRAINED_ON.columns),
        orient="row",
    )
    one = Probe("onto_world", "templates", "choice", "m", "causal", source="control:causal")
    asked_rows = choices.hits(*frames(rows, picks))
    numbers = {x.metric: x for x in calibration.check_choices(one, asked_rows, items, facts)}
    assert {name: x.value for name, x in numbers.items()} == {
        "trained-on": 50.0, "held-out": pytest.approx(100 / 3),
        "chance for held-out": limit - 15, "limit for held-out": limit, "valid": 0.0,
    }  # fmt: skip
    assert (numbers["trained-on"].n, numbers["held-out"].n) == (2, 3)
    assert {(x.group, x.setting["scoring"]) for x in numbers.values()} == {("SCO", "letter")}

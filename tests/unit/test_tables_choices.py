"""Tables 5 and 6 from chosen options."""

from pathlib import Path

import polars as pl
import pytest

from kgprobe import schema, sheets
from kgprobe.tables import choices, table

PUBLISHED = Path(__file__).parents[2] / "resources/published"


def answered():
    """Four rows of SCO, with rdfs9 built on them; two are memorised."""
    rows, picks = [], []
    for n, (memorised, without, written) in enumerate(
        [(1, 1, 1), (1, 0, 1), (0, 0, 1), (0, None, 0)]
    ):
        for item, task, premise, pick in (
            (f"SCO-{n}", "SCO", "", memorised),
            (f"rdfs9-{n}", "rdfs9", "out", without),
            (f"rdfs9-{n}+p1", "rdfs9", "EX", written),
        ):
            rows.append(
                {"item": item, "task": task, "premise": premise, "source": f"SCO-{n}",
                 "question": "?", "stem": "", "options": ["a", "b", "c", "d"], "gold": 1, "row": n}
            )  # fmt: skip
            rule = "none" if pick is None else "option"
            picks.append({"item": item, "way": "answer", "chosen": pick, "rule": rule,
                          "text": "", "margin": None})  # fmt: skip
    return choices.Answered(
        "m",
        pl.DataFrame(rows, schema=dict(schema.CHOICES.columns)),
        pl.DataFrame(picks, schema=dict(schema.CHOSEN.columns)),
        "gpt-3.5-turbo",
    )


def printed():
    return choices.read_printed(
        PUBLISHED / "ontoprobe_choice.tsv", PUBLISHED / "ontoprobe_reasoning.tsv"
    )


def test_memorising_accuracy_stands_beside_the_printed_one():
    cells = table.lookup(table.build(choices.memorising([answered()], printed())))
    cell = cells["m | answer", "SCO"]
    # four questions are not the paper's 500: no printed value belongs to them
    assert (cell["value"], cell["n"], cell["published"]) == (50.0, 4, None)
    assert cell["low"] < 50 < cell["high"]
    assert cells["m | answer | chance", "SCO"]["value"] == 25.0
    assert ("m | answer", "TP") not in cells


def test_premises_are_classified_by_the_models_own_answers():
    rows = choices.premises(answered(), "answer")
    settings = dict(rows.select("item", "setting").rows())
    assert settings == {
        "rdfs9-0": "IM", "rdfs9-1": "IM", "rdfs9-2": "NO", "rdfs9-3": "NO",
        **{f"rdfs9-{n}+p1": "EX" for n in range(4)},
    }  # fmt: skip
    cells = table.lookup(table.build(choices.reasoning([answered()], printed())))
    found = {column: (c["value"], c["n"]) for (_, column), c in cells.items()}
    assert found == {
        "NO rdfs9": (0.0, 2), "IM rdfs9": (50.0, 2), "EX rdfs9": (75.0, 4),
        "NO average": (0.0, 2), "IM average": (50.0, 2), "EX average": (75.0, 4),
    }  # fmt: skip
    assert cells["m | answer", "IM rdfs9"]["published"] is None


#: Table 5: right answers of bert-base-uncased and of ChatGPT, and the questions of each task
TABLE_5 = {
    "TP": (213, 351, 500), "SCO": (262, 418, 500), "SPO": (15, 28, 39), "DM": (21, 26, 30),
    "RG": (23, 23, 28),
}  # fmt: skip


def asked(folder, right, way, written=False):
    """Files of the released questions and of a model that has so many of each task right."""
    rows = [
        {"item": f"{task}-{n}", "task": task, "premise": "", "source": f"{task}-{n}",
         "question": "?", "stem": "", "options": ["a", "b"], "gold": 1, "row": n}
        for task, (_, _, size) in TABLE_5.items()
        for n in range(size)
    ]  # fmt: skip
    rows += [
        {**row, "item": f"rdfs9-{row['row']}+p1", "task": "rdfs9", "premise": "EX"}
        for row in rows
        if written and row["task"] == "SCO"
    ]
    questions, chosen = folder / "choices.parquet", folder / f"{way}.parquet"
    schema.write(pl.DataFrame(rows, schema=dict(schema.CHOICES.columns)), schema.CHOICES, questions)
    picks = [
        {"item": row["item"], "way": one, "chosen": int(row["row"] < right.get(row["task"], 0)),
         "rule": "scored", "text": "", "margin": None}
        for row in rows
        for one in (way, "letter")
    ]  # fmt: skip
    schema.write(pl.DataFrame(picks, schema=dict(schema.CHOSEN.columns)), schema.CHOSEN, chosen)
    return str(questions), str(chosen)


def test_the_sheet_of_the_papers_finds_all_five_printed_values_of_table_5(tmp_path):
    """bert-base-uncased is the one printed model with a row; its way is the manual prompt."""
    config = Path(__file__).parents[2] / "config"
    models = {row["model"]: row for row in sheets.read_table(config / "models.tsv")}
    rows = [
        row
        for row in sheets.read_table(config / "experiments.tsv")
        if row["method"] == "choice" and row["benchmark"] == "onto_released"
    ]
    right = {task: counts[0] for task, counts in TABLE_5.items()}
    questions, chosen = asked(tmp_path, right, "stem")
    many = [questions] * len(rows), [chosen] * len(rows)
    found = choices.answered(rows, models, *many)
    cells = table.lookup(table.build(choices.memorising(found, printed())))
    beside = {key: c for key, c in cells.items() if c["published"] is not None}
    row = "bert-base-uncased | onto_released | stem"
    assert {key: c["published"] for key, c in beside.items()} == {
        (row, "TP"): 42.6, (row, "SCO"): 52.4, (row, "SPO"): 38.5, (row, "DM"): 70.0,
        (row, "RG"): 82.1,
    }  # fmt: skip
    assert all(round(c["value"], 1) == c["published"] for c in beside.values())
    page = choices.chapter(choices.tables(found, printed()))
    (shown,) = [[cell.text for cell in line] for line in page.grids[0].rows if line[0].text == row]
    assert shown == [row, "42.6 [42.6]", "52.4 [52.4]", "38.5 [38.5]", "70.0 [70.0]", "82.1 [82.1]"]


def test_a_server_s_model_is_beside_its_printed_values_where_it_wrote_its_answers(tmp_path):
    models = {"chat": {"kind": "api", "source": "api:gpt-3.5-turbo"}}
    row = {"benchmark": "onto_released", "method": "choice", "model": "chat"}
    right = {task: counts[1] for task, counts in TABLE_5.items()} | {"rdfs9": 487}
    questions, chosen = asked(tmp_path, right, "answer", written=True)

    def beside(benchmark):
        found = choices.answered([{**row, "benchmark": benchmark}], models, [questions], [chosen])
        made = [*choices.memorising(found, printed()), *choices.reasoning(found, printed())]
        cells = table.lookup(table.build({**cell, "table": "both"} for cell in made))
        return {
            key: (round(c["value"], 1), c["published"])
            for key, c in cells.items()
            if c["published"] is not None
        }

    row_name = "chat | onto_released | answer"
    known = {(row_name, task): value for task, value in zip(
        TABLE_5, ((70.2, 70.2), (83.6, 83.6), (71.8, 71.8), (86.7, 86.7), (82.1, 82.1)), strict=True
    )}  # fmt: skip
    assert beside("onto_released") == known | {
        (row_name, "EX rdfs9"): (97.4, 97.4)  # the average is that of six rules, not of one
    }
    assert beside("onto_world") == {}


def test_unreadable_answers_are_counted():
    cells = table.lookup(table.build(choices.readings([answered()])))
    assert cells["m | answer", "option"]["value"] == pytest.approx(100 * 11 / 12)
    assert cells["m | answer", "none"]["n"] == 12


def test_the_printed_table_5_fits_the_released_numbers():
    own = printed()["gpt-3.5-turbo"]
    for task, right, n in (("TP", 351, 500), ("SCO", 418, 500), ("SPO", 28, 39), ("DM", 26, 30),
                           ("RG", 23, 28)):  # fmt: skip
        assert round(100 * right / n, 1) == own[(task,)]
    average = {s: [own[s, rule] for rule in choices.RULES] for s in choices.PREMISES}
    for setting, values in average.items():
        assert sum(values) / 6 == pytest.approx(own[setting, "average"], abs=0.1)


def test_cells_of_table_6_that_cannot_be_are_printed_with_the_nearest_fractions():
    cells = table.lookup(table.build(choices.fractions(printed()["gpt-3.5-turbo"])))
    impossible = {("IM", "rdfs7"), ("EX", "rdfs7"), ("NO", "rdfs9")}
    assert impossible <= set(cells)
    assert cells["NO", "rdfs9"]["value"] == pytest.approx(100 * 16 / 82)
    assert cells["NO", "rdfs9"]["published"] == 19.0
    assert ("EX", "rdfs2") not in cells

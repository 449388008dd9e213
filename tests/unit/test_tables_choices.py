"""Tables 5 and 6 from chosen options."""

from pathlib import Path

import polars as pl
import pytest

from kgprobe import schema
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
    assert (cell["value"], cell["n"], cell["published"]) == (50.0, 4, 83.6)
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
        "NO average": (0.0, 1), "IM average": (50.0, 1), "EX average": (75.0, 1),
    }  # fmt: skip
    assert cells["m | answer", "IM rdfs9"]["published"] == 91.9


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

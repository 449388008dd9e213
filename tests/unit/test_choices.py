"""Construction of multiple-choice questions: options, golds, premises."""

import json
import runpy
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import polars as pl
import pytest
from snakemake.iocontainers import Namedlist

from kgprobe import schema
from kgprobe.benchmarks.ontoprobe import choices

CLASSES = [f"class {n}" for n in range(40)] + ["person", "writer", "agent", "work"]
PROPERTIES = ["composer", "creator", "part of"]
CANDIDATES = pl.DataFrame(
    [("class", n, f"c{n}", c) for n, c in enumerate(CLASSES)]
    + [("property", n, f"p{n}", p) for n, p in enumerate(PROPERTIES)],
    schema=dict(schema.CANDIDATES.columns), orient="row",
)  # fmt: skip
PROMPTS = pl.DataFrame(
    [("TP-1", "TP", 1, "[X] is a [Y] .", "manual"),
     ("TP-3", "TP", 3, "[X] is a particular [Y] .", "manual"),
     ("SCO-1", "SCO", 1, "[X] is a [Y] .", "manual"),
     ("SPO-1", "SPO", 1, "[X] implies [Y] .", "manual"),
     ("DM-1", "DM", 1, "One has to be a particular [Y] [X]", "manual"),
     ("RG-1", "RG", 1, "One has to be a particular [Y] [X]", "manual")],
    schema=dict(schema.PROMPTS.columns), orient="row",
)  # fmt: skip


def items(*rows):
    made = [
        {"item": f"{r[0]}-{r[1]}", "group": r[0], "role": r[5], "relation": r[0], "subject": r[2],
         "subject_id": "", "candidates": r[3], "answers": r[4], "row": r[1],
         "meta": json.dumps(r[6])}
        for r in rows
    ]  # fmt: skip
    return pl.DataFrame(made, schema=dict(schema.ITEMS.columns))


def number(label):
    return (CLASSES if label in CLASSES else PROPERTIES).index(label)


MEMORIZING = items(
    ("TP", 0, "Homer", "class", [number("writer")], "train", {}),
    ("TP", 20, "Dante", "class", [number(c) for c in ("writer", "person", "agent")], "test", {}),
    ("SCO", 20, "writer", "class", [number(c) for c in ("person", "agent")], "test", {}),
    ("SPO", 21, "composer", "property", [number("creator")], "test", {}),
    ("DM", 20, "if one has composer .", "class", [number("work")], "test",
     {"soft_subject": "composer"}),
    ("RG", 20, "if a work is created by that .", "class", [number("person")], "test",
     {"soft_subject": "composer"}),
)  # fmt: skip


def memorizing(**own):
    return choices.memorizing(MEMORIZING, CANDIDATES, PROMPTS, **{"seed": 0, **own})


def test_gold_occurs_once_among_distinct_options():
    result = memorizing()
    schema.check(result, schema.CHOICES)
    rows = {row["item"]: row for row in result.rows(named=True)}
    assert set(rows) == {"TP-20", "SCO-20", "SPO-21", "DM-20", "RG-20"}  # only test rows
    finest = {"TP-20": "writer", "SCO-20": "person", "SPO-21": "creator", "DM-20": "work",
              "RG-20": "person"}  # fmt: skip
    for item, row in rows.items():
        assert row["options"][row["gold"]] == finest[item]
        assert len(set(row["options"])) == len(row["options"])
        assert len(row["options"]) == (2 if item == "SPO-21" else 20)
    assert not {"person", "agent"} & set(rows["TP-20"]["options"])
    assert "writer" not in rows["SCO-20"]["options"]  # the query itself
    assert {r["question"] for r in rows.values()} == {
        "What is the type of Dante?", "What is the superclass of writer?",
        "What does composer imply?", "What is the type of it if one has composer?",
        "What is the type of it if a work is created by it?",
    }  # fmt: skip
    assert rows["TP-20"]["stem"] == "Dante is a particular [MASK] ."
    assert rows["DM-20"]["stem"] == "One has to be a particular [MASK] if one has composer ."


def test_questions_use_the_label_and_not_the_subject_of_a_sentence():
    """Under `upper_first: lower_rest` the subject of an item has another case."""
    metas = [json.dumps({"label": "Ice-hockey League"}), json.dumps({"label": "É", "ascii": "E"})]
    rows = MEMORIZING.filter(pl.col("item").is_in(["TP-20", "SCO-20"])).with_columns(
        subject=pl.lit("Ice hockey league"), meta=pl.Series(metas)
    )
    texts = [
        choices.memorizing(rows, CANDIDATES, PROMPTS, seed=0, phrasing=phrasing)["question"]
        for phrasing in ("default", "released")
    ]
    assert texts[0].sort().to_list() == [
        "What is the superclass of E?", "What is the type of Ice-hockey League?",
    ]  # fmt: skip
    assert "What is the type of Ice hockey League?" in texts[1]


def test_options_differ_in_more_than_case():
    labels = ["Lake", "lake", "ship", "Ship", "LAKE", "Vessel"]
    for gold, others, expected in (
        ("Lake", (), {"Lake", "ship", "Vessel"}),
        ("lake", ("vessel",), {"lake", "ship"}),
    ):
        wrong = choices.wrong_candidates(gold, others, labels, "q", "clean")
        result, place = choices.options("i", gold, wrong, seed=0, size=20)
        assert set(result) == expected
        assert len(result) == len(expected)
        assert result[place] == gold


def test_query_is_never_an_option_in_any_spelling():
    labels = ["non profit organisation", "club", "ship"]
    wrong = choices.wrong_candidates("club", (), labels, "Non-profit organisation", "clean")
    assert wrong == ["ship"]


def test_query_is_no_option_where_its_accents_are_dropped():
    """Under `labels: ascii_drop` the subject is no candidate, but still asks about one."""
    name = (pl.col("label") == "writer") & (pl.col("set") == "class")
    known = CANDIDATES.with_columns(label=pl.when(name).then(pl.lit("Café")).otherwise("label"))
    rows = MEMORIZING.filter(item="SCO-20").with_columns(
        subject=pl.lit("Caf"),
        meta=pl.lit(json.dumps({"soft_subject": "Caf", "label": "Café", "ascii": "Caf"})),
    )
    result = choices.memorizing(rows, known, PROMPTS, seed=0, size=len(CLASSES))["options"][0]
    assert "person" in result
    assert not {"Café", "agent"} & set(result)


def test_other_golds_are_negatives_only_in_released_mode():
    others = 0
    for seed in range(60):
        rows = {r["item"]: r for r in memorizing(seed=seed, negatives="released").rows(named=True)}
        others += bool({"person", "agent"} & set(rows["TP-20"]["options"]))
        clean = {r["item"]: r for r in memorizing(seed=seed).rows(named=True)}
        assert not {"person", "agent"} & set(clean["TP-20"]["options"])
    assert others > 10


def test_options_are_seeded_and_stable_under_additions():
    assert memorizing().equals(memorizing())
    first = memorizing().filter(pl.col("item") == "TP-20")["options"][0].to_list()
    assert first != memorizing(seed=1).filter(pl.col("item") == "TP-20")["options"][0].to_list()
    more = CANDIDATES.vstack(
        pl.DataFrame([("class", 99, "c99", "a new one")], schema=CANDIDATES.schema, orient="row")
    )
    result = choices.memorizing(MEMORIZING, more, PROMPTS, seed=0)
    again = result.filter(pl.col("item") == "TP-20")["options"][0].to_list()
    assert len(set(first) ^ set(again)) in (0, 2)
    places = {row["gold"] for s in range(40) for row in memorizing(seed=s).rows(named=True)
              if row["task"] == "TP"}  # fmt: skip
    assert len(places) > 8  # the gold's letter is not fixed


def test_large_tasks_are_truncated_and_bad_golds_raise(monkeypatch):
    monkeypatch.setitem(choices.MOST, "TP", 0)
    assert "TP" not in set(memorizing()["task"])
    broken = MEMORIZING.with_columns(answers=pl.lit([999], dtype=pl.List(pl.Int32)))
    with pytest.raises(ValueError, match="gold 999 is not among its 44 candidates"):
        choices.memorizing(broken, CANDIDATES, PROMPTS, seed=0)


def test_a_question_for_which_all_candidates_are_right_is_not_asked(caplog):
    rows = items(*(("TP", n, "x", "class", [*range(n + 1)], "test", {}) for n in range(2)))
    few = CANDIDATES.filter(pl.col("index") < 2, set="class")
    assert choices.memorizing(rows, few, PROMPTS, seed=0)["item"].to_list() == ["TP-0"]
    assert "every candidate is right: 1 (TP-1)" in caplog.text


def test_types_only_graph_has_type_questions_and_no_rules(tmp_path):
    frames = {"questions": (schema.ITEMS, MEMORIZING.filter(relation="TP")),
              "reasoning": (schema.ITEMS, MEMORIZING.clear()),
              "candidates": (schema.CANDIDATES, CANDIDATES),
              "prompts": (schema.PROMPTS, PROMPTS)}  # fmt: skip
    given = {name: str(tmp_path / f"{name}.parquet") for name in frames}
    for name, (contract, rows) in frames.items():
        schema.write(rows, replace(contract, may_be_empty=True), given[name])
    made = str(tmp_path / "choices.parquet")
    switches = {"negatives": "clean", "mc_phrasing": "default"}
    params = {"seed": 0, "options": 20, "most": None, "switches": switches}
    fake = SimpleNamespace(
        rule="build_choices", input=Namedlist(fromdict=given), config={}, threads=1, log=[],
        output=Namedlist(fromdict={"choices": made}), params=Namedlist(fromdict=params),
        wildcards=Namedlist(fromdict={"benchmark": "onto_mine"}), resources=Namedlist(),
    )  # fmt: skip
    script = Path(__file__).parents[2] / "workflow/scripts/build_choices.py"
    runpy.run_path(str(script), {"snakemake": fake})
    assert set(schema.read(made, schema.CHOICES)["task"]) == {"TP"}


RULES = items(
    ("rdfs2", 20, "composer", "class", [number("work")], "test",
     {"p1_item": "DM-20", "p1": "One has to be a work if one has composer .",
      "p2": "[X]'s composer is [Y] .", "h": "[X] is a particular [MASK] ."}),
    ("rdfs3", 20, "composer", "class", [number("person")], "test",
     {"p1_item": "RG-20", "p1": "One has to be a person if a work is created by that .",
      "p2": "[X] is created by [Y] .", "h": "[Y] is a particular [MASK] ."}),
    ("rdfs5", 21, "composer", "property", [number("creator")], "test",
     {"p1_item": "SPO-21", "p1": "Composer implies creator .", "p2": "[X] implies composer .",
      "h": "[X] implies [MASK] ."}),
    ("rdfs7", 21, "composer", "pattern", [0], "test",
     {"p1_item": "SPO-21", "p1": "Composer implies creator .", "p2": "[X]'s composer is [Y] .",
      "h": "[X] [MASK] [Y] ."}),
    ("rdfs9", 20, "writer", "class", [number("person")], "test",
     {"p1_item": "SCO-20", "p1": "Writer is a person .", "p2": "[X] is a writer .",
      "h": "[X] is a particular [MASK] ."}),
    ("rdfs11", 20, "writer", "class", [number("person")], "test",
     {"p1_item": "SCO-20", "p1": "Writer has superclass person .",
      "p2": "[X] has superclass writer .", "h": "[X] has superclass [MASK] ."}),
    ("rdfs9", 99, "unasked", "class", [number("person")], "test",
     {"p1_item": "SCO-99", "p1": "", "p2": "", "h": ""}),
)  # fmt: skip


def test_reasoning_asks_with_and_without_the_first_premise():
    known = memorizing()
    result = choices.reasoning(RULES, known, MEMORIZING)
    schema.check(result, schema.CHOICES)
    texts = {row["item"]: row["question"] for row in result.rows(named=True)}
    assert texts == {
        "rdfs2-20": "X's composer is Y. Therefore, What is the type of X?",
        "rdfs2-20+p1": "One has to be a work if one has composer. X's composer is Y. "
        "Therefore, What is the type of X?",
        "rdfs3-20": "X is created by Y. Therefore, What is the type of Y?",
        "rdfs3-20+p1": "One has to be a person if a work is created by that. X is created by Y. "
        "Therefore, What is the type of Y?",
        "rdfs5-21": "X implies composer. Therefore, What does X imply?",
        "rdfs5-21+p1": "composer implies creator. X implies composer. "
        "Therefore, What does X imply?",
        "rdfs7-21": "X's composer is Y. Therefore, What is the relation between X and Y?",
        "rdfs7-21+p1": "composer implies creator. X's composer is Y. "
        "Therefore, What is the relation between X and Y?",
        "rdfs9-20": "X is a writer. Therefore, What is the type of X?",
        "rdfs9-20+p1": "writer is a person. X is a writer. Therefore, What is the type of X?",
        "rdfs11-20": "X has superclass writer. Therefore, What is the superclass of X?",
        "rdfs11-20+p1": "writer has superclass person. X has superclass writer. "
        "Therefore, What is the superclass of X?",
    }
    options = dict(known.select("item", "options").rows())
    for row in result.rows(named=True):
        assert row["options"] == options[row["source"]]
        assert row["premise"] == ("EX" if row["item"].endswith("+p1") else "out")
    stems = dict(result.select("item", "stem").rows())
    assert stems["rdfs9-20+p1"] == (
        "Writer is a person . X is a writer . Therefore, X is a particular [MASK] ."
    )
    assert stems["rdfs7-21"] == ""


def test_released_template_keeps_its_typos():
    pattern = pl.DataFrame([("pattern", 0, "n0", "'s creator is"), ("pattern", 1, "n1", "made")],
                           schema=CANDIDATES.schema, orient="row")  # fmt: skip
    result = choices.reasoning(
        RULES, memorizing(), MEMORIZING, phrasing="released", candidates=pattern
    )
    texts = {row["item"]: row["question"] for row in result.rows(named=True)}
    assert texts["rdfs2-20"] == "X's composer is Y . Therefore, What is the type of X?"
    assert texts["rdfs11-20+p1"].startswith("writer is a person. X is a writer. Therefore,")
    assert texts["rdfs7-21+p1"].startswith(
        "composer implies X's creator is Y .. X's composer is Y . Therefore,"
    )

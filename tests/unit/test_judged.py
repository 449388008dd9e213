"""JUDGED of the four papers: a few answers of each, judged by hand."""

import json

import polars as pl
import pytest

from kgprobe import schema
from kgprobe.tables import judged
from kgprobe.tables.answers import Probe
from kgprobe.tables.attributes import study as attributes
from kgprobe.tables.autoprompt import numbers as autoprompt
from kgprobe.tables.autoprompt.numbers import Answers
from kgprobe.tables.bear import make as bear
from kgprobe.tables.ontoprobe import make as ontoprobe
from kgprobe.tables.ontoprobe import values as per_item
from tests.unit.study_frames import benchmark, of_rows, probe, study, write_onto_world

WORTH = ("hit", "rank_low", "rank_high", "margin", "options", "answer")


def worth(frame, *key, **where):
    """Map key columns to the WORTH columns of a valid JUDGED frame."""
    schema.check(frame, schema.JUDGED)
    rows = frame.filter(**where).sort(*key)
    keys = rows.select(key).rows() if len(key) > 1 else rows[key[0]].to_list()
    return dict(zip(keys, rows.select(WORTH).rows(), strict=True))


def test_bear_splits_ties_and_counts_higher_options():
    frames = benchmark({"P1": (["a", "b", "c"], ["a", "b", "c"])})
    answers = {
        ("P1/Qs0", 0): [-1.0, -3.0, -4.0],  # a is right
        ("P1/Qs1", 0): [-1.0, -1.0, -5.0],  # b is right and ties with a
        ("P1/Qs2", 0): [-2.0, -3.0, -3.0],  # c is right, below a and tied with b
    }
    judgments = bear.judged_answers([study(frames, [(probe("m"), answers)])])
    assert worth(judgments, "item") == {
        "P1/Qs0": (1.0, 1, 1, 2.0, 3, "a"),
        "P1/Qs1": (0.5, 1, 2, 0.0, 3, "a"),
        "P1/Qs2": (0.0, 2, 3, -1.0, 3, "a"),
    }
    first = judgments.filter(item="P1/Qs0").row(0, named=True)
    named = {"paper": "bear", "benchmark": "world_lite", "group": "P1", "model": "m",
             "prompt": "templates", "method": "sentence", "matching": "any", "template": "0",
             "masks": "", "scoring": "", "relation": "P1", "subject": "Qs0"}  # fmt: skip
    assert named.items() <= first.items()


@pytest.fixture
def onto(tmp_path):
    return write_onto_world(tmp_path / "onto_world", (1, 1), (1, 2))


def test_ontoprobe_has_rows_per_configuration_scoring_and_premise(onto):
    cloze, reason, choice = (
        Probe("onto_world", "templates", method, "m", "masked")
        for method in ("cloze", "reason", "choice")
    )
    #: with mean pooling both golds tie for ranks 2 and 3; with maximum pooling `writer` and `ship`
    #: tie for rank 1
    ranks = of_rows(schema.RANKS, [
        ("TP-0", 1, "multi", pooling, gold, best, worst, best, 1, -1.0)
        for pooling, gold, best, worst in (
            ("mean", 0, 2, 3), ("mean", 2, 2, 3), ("max", 0, 3, 3), ("max", 2, 1, 2))
    ])  # fmt: skip
    tops = of_rows(schema.TOPS, [
        ("TP-0", 1, "multi", pooling, position, candidate, -1.0)
        for pooling, first in (("mean", (1, 0)), ("max", (2, 1)))
        for position, candidate in enumerate(first, 1)
    ])  # fmt: skip
    items = schema.read(onto / "items.parquet", schema.ITEMS)
    values = per_item.metrics(per_item.from_ranks(ranks), per_item.of_items(items))
    study = ontoprobe.OntoProbeStudy({"onto_world": onto})
    judgments = ontoprobe.judged_answers(
        study, {cloze: values}, ontoprobe.find_winners(study, {cloze: "nowhere"}, {cloze: tops}),
        {reason: (onto / "ranks.parquet", "")},
        {choice: (onto / "choices.parquet", onto / "chosen.parquet")},
    )  # fmt: skip
    assert worth(judgments, "template", "masks", "pooling", method="cloze") == {
        ("m1", "multi", "mean"): (0.0, 2, 3, None, 3, "ship"),
        ("m1", "multi", "max"): (0.5, 1, 2, None, 3, "writer"),
    }
    assert worth(judgments, "premise", method="reason") == {
        "P1 EX, P2 EX": (1.0, 1, 1, None, 3, None),
        "P1 out, P2 out": (0.5, 1, 2, None, 3, None),
    }
    assert worth(judgments, "scoring", method="choice") == {
        "answer": (1.0, None, None, None, 3, "writer"),
        "letter": (0.0, None, None, -1.5, 3, "lake"),
        "text": (0.0, None, None, None, 3, "I am a poem"),
    }
    subjects = dict(judgments.select("method", "subject").unique().rows())
    assert subjects == {"cloze": "Q1", "reason": "poet", "choice": "TP-0"}


def test_ontoprobe_leaves_out_rows_that_no_number_counts(onto):
    """Train and dev rows only train or select, and a repeated test row counts once."""
    asked = {"TP-0": ("test", "{}"), "TP-1": ("train", "{}"), "TP-2": ("dev", "{}"),
             "TP-3": ("test", '{"repeat": "TP-0"}')}  # fmt: skip
    items = of_rows(schema.ITEMS, [
        (name, "TP", role, "TP", "Dante", "Q1", "class", [2], row, meta)
        for row, (name, (role, meta)) in enumerate(asked.items())
    ])  # fmt: skip
    schema.write(items, schema.ITEMS, onto / "items.parquet")
    scores = of_rows(schema.SCORES, [
        (name, 0, option, -float(option), 1, -float(option), 1, None)
        for name in asked for option in range(3)
    ])  # fmt: skip
    values = per_item.metrics(per_item.from_scores(scores, items), per_item.of_items(items))
    scored = Probe("onto_world", "templates", "sentence", "m", "causal")
    study = ontoprobe.OntoProbeStudy({"onto_world": onto})
    judgments = ontoprobe.judged_answers(study, {scored: values}, {}, {}, {})
    assert judgments["item"].unique().to_list() == ["TP-0"]


def test_attributes_match_the_object_or_any_gold():
    item = ("x#0", "x", "r", "P1", "France", "Q142", "set", [2, 0], 0, "{}")
    labels = [("set", i, f"Q{i}", x) for i, x in enumerate(("Lyon", "Nice", "Paris", "Rome"))]
    bench = attributes.ProbedAttribute(
        "symmetry", pl.DataFrame(), of_rows(schema.ITEMS, [item]),
        of_rows(schema.CANDIDATES, labels), pl.DataFrame(),
    )  # fmt: skip
    made = {}
    # ranked: Lyon first, Paris is behind two and tied with Rome
    scores = [("x#0", 0, i, s, 2, s, 1, None) for i, s in enumerate((-1.0, -2.0, -3.0, -3.0))]
    made["sentence"] = attributes.of_candidates(of_rows(schema.SCORES, scores), bench.items)
    # generated: Lyon first, Paris in another spelling third
    texts = [("x#0", 0, 0, -1, rank, -1, text, text, -float(rank))
             for rank, text in enumerate(("Lyon", "Oslo", "paris."), 1)]  # fmt: skip
    golds = {"x#0": [["Paris"], ["Lyon"]]}
    made["fill"] = attributes.of_texts(of_rows(schema.FILLS, texts), golds)
    rows = {
        method: judged.frame("attributes", [(who, attributes.judge(who, alphas, bench))])
        for method, alphas in made.items()
        for who in [Probe("symmetry", "templates", method, "m", "causal")]
    }
    assert worth(rows["sentence"], "matching") == {
        "own": (0.0, 3, 4, None, 4, "Lyon"),
        "set": (1.0, 1, 1, None, 4, "Lyon"),
    }
    assert worth(rows["fill"], "matching") == {
        "own": (0.0, 3, 3, None, 3, "Lyon"),
        "set": (1.0, 1, 1, None, 3, "Lyon"),
    }
    # at masks: the first of two tokens is certainly right, the second in half of the tie orders
    fills = [("x#0", 0, 2, -1, 1, -1, "Pa ris", "Pa ris", -0.5)]
    tokens = [("x#0", 0, 0, 0, 2, 7, 1, 1, -0.1), ("x#0", 0, 0, 1, 2, 8, 1, 2, -0.1)]
    alphas = attributes.of_masks(of_rows(schema.FILLS, fills), of_rows(schema.FILL_GOLDS, tokens))
    who = Probe("symmetry", "templates", "fill", "m", "masked")
    masked = judged.frame("attributes", [(who, attributes.judge(who, alphas, bench))])
    assert set(worth(masked, "matching").values()) == {(0.5, None, None, None, None, "Pa ris")}
    assert masked["subject"].to_list() == ["Q142"] * 2


EXAMPLES = [
    ("P36", "test", name, f"P36/{name}", json.dumps({"sub": name}), "Paris", ["PAREE"], [], [])
    for name in ("France", "Spain", "Utopia")
]


def outcomes(prompt):
    """Return outcomes of labels that tie for rank 1, are first if filtered, and lack a rank."""
    return of_rows(schema.OUTCOMES, [
        (prompt, "P36", "test", "France", 1, 2, 1, 2, 20, "Paree", -1.0),
        (prompt, "P36", "test", "Spain", 2, 2, 1, 1, 20, "Rome", -1.0),
        (prompt, "P36", "test", "Utopia", None, None, None, None, 20, "Rome", None),
    ])  # fmt: skip


def test_autoprompt_judges_facts_by_rank_and_extraction_by_spelling():
    examples = of_rows(schema.EXAMPLES, EXAMPLES)
    who = Probe("auto_world", "demos", "predict", "m", "masked")
    facts = Answers(who, outcomes("demos:01"), examples)
    judgments = judged.frame("autoprompt", [(facts.probe, autoprompt.judge(facts))])
    assert worth(judgments, "matching", "item") == {
        ("own", "P36/France"): (0.5, 1, 2, None, 20, "Paree"),
        ("own", "P36/Spain"): (0.0, 2, 2, None, 20, "Rome"),
        ("own", "P36/Utopia"): (None, None, None, None, 20, "Rome"),
        ("filtered", "P36/France"): (0.5, 1, 2, None, 20, "Paree"),
        ("filtered", "P36/Spain"): (1.0, 1, 1, None, 20, "Rome"),
        ("filtered", "P36/Utopia"): (None, None, None, None, 20, "Rome"),
    }
    subjects = {("demos", "01", name) for name in ("France", "Spain", "Utopia")}
    assert set(judgments.select("prompt", "draw", "subject").rows()) == subjects
    who = Probe("auto_re", "manual", "predict", "m", "masked")
    sentences = Answers(who, outcomes("manual"), examples)
    judgments = judged.frame("autoprompt", [(sentences.probe, autoprompt.judge(sentences))])
    hits = {row[:2]: row[2] for row in judgments.select("item", "matching", "hit").rows()}
    assert hits == {
        ("P36/France", "any"): 1.0, ("P36/Spain", "any"): 0.0, ("P36/Utopia", "any"): 0.0,
    }  # fmt: skip


def test_sentences_without_an_object_are_wrong_without_options(tmp_path):
    """The relation LSTM marks no object in it: OUTCOMES has 0 options and an empty answer."""
    nothing = outcomes("relation_lstm").with_columns(
        pl.lit(None, pl.Int32).alias(name)
        for name in ("best", "worst", "filtered_best", "filtered_worst")
    )
    nothing = nothing.with_columns(options=pl.lit(0, pl.Int32), answer=pl.lit(""))
    sentences = Answers(
        Probe("auto_re", "relation_lstm", "predict", "m", "masked"),
        nothing,
        of_rows(schema.EXAMPLES, EXAMPLES),
    )
    judgments = judged.frame("autoprompt", [(sentences.probe, autoprompt.judge(sentences))])
    schema.write(judgments, schema.JUDGED, tmp_path / "judged.parquet")
    assert judgments.select("hit", "options").unique().rows() == [(0.0, 0)]


def test_bytes_are_independent_of_answer_order(tmp_path):
    frames = benchmark({"P1": (["a", "b", "c"], ["a", "b", "c"])})
    answers = {(f"P1/Qs{i}", t): [-1.0, -2.0, -3.0] for i in range(3) for t in range(2)}
    judgments = bear.judged_answers([study(frames, [(probe("m"), answers)])])
    for name, rows in (("one", judgments), ("two", judgments.reverse())):
        schema.write(rows, schema.JUDGED, tmp_path / name)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()
    first = judged.of_first(judgments)
    assert first["template"].unique().to_list() == ["0"]
    assert first.height == 3

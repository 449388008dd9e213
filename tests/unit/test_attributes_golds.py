"""Golds are all objects of the graph that have a label: in texts, rankings and baselines."""

import json
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from kgprobe.benchmarks.attributes import asymmetry
from kgprobe.schema import FACTS, FILL_GOLDS, FILLS, SCORES
from kgprobe.tables.attributes import alpha as aa
from kgprobe.tables.attributes import baselines as ab
from tests.unit.attribute_graphs import content, graph, settings

#: Q1 has five objects of P40, one of them without a label; Q30 is the most frequent object
TRIPLES = [
    *[(1, 40, o) for o in (10, 11, 12, 13, 14)],
    *[(s, 40, 30) for s in (2, 3, 4, 5)],
]
NAMES = {n: f"name {n}" for n in (1, 2, 3, 4, 5, 10, 11, 12, 13, 30)}
NAMED = {"Q10", "Q11", "Q12", "Q13"}


@pytest.fixture(scope="module")
def made():
    """One example of Q1, three of others; the list of candidates is as short as can be."""
    given = graph(TRIPLES, NAMES)
    own = settings("asymmetry", min_triples=1, eval_examples=4, candidates=1)
    return given, asymmetry.build(given, own)


def forward(frame, subject="Q1"):
    rows = frame.filter(pl.col("subject") == subject, sampled=True, role="forward")
    assert rows.height, "no example of the subject was sampled"
    return rows


def test_the_candidates_of_a_ranking_hold_every_gold_and_their_number_is_told(made):
    _, built = made
    rows = forward(built.examples)
    own = set(rows["object"])
    assert own < NAMED
    options = built.candidates.filter(set="asymmetry/P40")
    assert {*NAMED, "Q30"} == set(options["id"])
    ids = dict(options.select("index", "id").rows())
    for item, answers, meta in built.items.select("item", "answers", "meta").rows():
        if "/Q1/" not in item or not item.endswith("#0"):
            continue
        assert {ids[answer] for answer in answers} == NAMED
        assert ids[answers[0]] in item
        assert json.loads(meta)["golds_added"] == len(NAMED - own)
    step = built.steps.filter(step="candidates")
    assert step["kept"].to_list() == [built.candidates.height]
    assert step["reason"].to_list() == [f"{len(NAMED - own)} are golds that the lists lacked"]


def test_a_text_and_a_rank_know_the_golds_beyond_the_list(made):
    _, built = made
    example = forward(built.examples).row(0, named=True)
    item = f"{example['example']}#0"
    other = sorted(NAMED - {example["object"]})[-1]
    said = pl.DataFrame(
        [(item, 0, 0, -1, 1, -1, f"name {other[1:]}", "", -1.0)],
        schema=dict(FILLS.columns),
        orient="row",
    )
    found = aa.of_texts(said, aa.gold_names(built.examples.filter("sampled")))
    right = dict(found.filter(k=1).select("gold", "alpha").rows())
    assert right == {"own": 0.0, "set": 1.0}
    options = built.candidates.filter(set="asymmetry/P40")
    scores = [(item, 0, i, float(q == other), 2, 0.0, 1, None)
              for i, q in options.select("index", "id").rows()]  # fmt: skip
    frame = pl.DataFrame(scores, schema=dict(SCORES.columns), orient="row")
    ranked = aa.of_candidates(frame, built.items.filter(item=item))
    assert dict(ranked.filter(k=1).select("gold", "alpha").rows()) == {"own": 0.0, "set": 1.0}


def test_baselines_take_the_same_golds(made):
    """Five objects, of which a model can name four: random is right in 4 of 6, not 5 of 6."""
    given, built = made
    examples = built.examples.filter("sampled")
    alphas = ab.guesses(content(given, "edges"), content(given, "literals"), [examples])
    alphas = alphas.filter(k=1, position=0)
    alphas = alphas.filter(pl.col("example").str.contains("/Q1/"))
    objects = len({o for _, _, o in TRIPLES})
    for gold, right in (("own", 1), ("set", len(NAMED))):
        values = alphas.filter(gold=gold, model=ab.RANDOM)["alpha"].to_list()
        assert values
        assert np.allclose(values, right / objects)


def linked(rows, **chosen):
    """The benchmark whose golds are linked to (subject, relation, object, label) of Wikidata."""
    given = graph(TRIPLES, NAMES)
    told = [("wikidata", s, None, p, o, label) for s, p, o, label in rows]
    facts = pl.DataFrame(told, schema=dict(FACTS.columns), orient="row")
    given = replace(given, wikidata=given.engine.table(facts))
    return asymmetry.build(given, settings("asymmetry", min_triples=1, eval_examples=4, **chosen))


WIKIDATA = [
    ("Q1", "P40", "Q10", "name 10"),  # the graph has it
    ("Q1", "P40", "Q77", "name 11"),  # and this one's name
    ("Q1", "P40", "Q50", "fifty"),
    ("Q1", "P40", "Q51", "fifty-one"),
    ("Q1", "P40", "Q52", None),
    ("Q1", "P40", "Q53", "a [MASK]"),
    ("Q1", "P22", "Q54", "father"),
    ("Q50", "P40", "Q1", "name 1"),  # what a reversed triple asks
]


def test_answers_of_wikidata_alone_come_last_and_are_counted(made):
    _, plain = made
    built = linked(WIKIDATA, candidates=1)
    assert built.examples.equals(plain.examples)
    ids = dict(built.candidates.filter(set="asymmetry/P40").select("index", "id").rows())
    seen = 0
    for item, answers, meta in built.items.select("item", "answers", "meta").rows():
        golds = [ids[answer] for answer in answers] if item.endswith("#0") else []
        told = json.loads(meta)["golds_wikidata"]
        if "/Q1/" in item and golds:
            assert (golds[-2:], told) == (["Q50", "Q51"], 2)
            assert set(golds[:-2]) == NAMED
            seen += 1
        else:
            assert told == 0
    assert seen
    step = built.steps.filter(step="golds of Wikidata alone")
    assert step["kept"].to_list() == [2 * seen]
    assert not plain.items["meta"].str.contains("golds_wikidata").any()


def test_what_is_right_by_wikidata_alone_is_a_reading_of_its_own():
    built = linked(WIKIDATA, candidates=1)
    item = next(i for i in built.items["item"] if "/Q1/" in i and i.endswith("#0"))
    own = built.items.filter(item=item)
    (answers,) = own["answers"]
    first = aa.linked(own)
    assert first == {item: len(answers) - 2}

    # a written text
    said = pl.DataFrame([(item, 0, 1, -1, 1, -1, "Fifty", "Fifty", -0.5)],
                        schema=dict(FILLS.columns), orient="row")  # fmt: skip
    names = aa.gold_names(built.examples.filter("sampled"))
    more = aa.linked_names(own, built.candidates)
    assert more == {item: [["fifty"], ["fifty-one"]]}
    found = aa.of_texts(said, names, more).filter(k=1, kind="exact")
    expected = [("linked", 1.0), ("own", 0.0), ("set", 0.0)]
    assert sorted(found.select("gold", "alpha").rows()) == expected
    assert "linked" not in set(aa.of_texts(said, names)["gold"])

    # tokens at masks: the best is a gold of Wikidata's
    places = [1 if gold == first[item] else 50 for gold in range(len(answers))]
    rows = [(item, 0, gold, 0, 1, 9, place, place, -1.0) for gold, place in enumerate(places)]
    golds = pl.DataFrame(rows, schema=dict(FILL_GOLDS.columns), orient="row")
    masks = aa.of_masks(said, golds, first).filter(k=1, kind="exact")
    assert sorted(masks.select("gold", "alpha").rows()) == expected
    assert set(aa.of_masks(said, golds)["gold"]) == {"own", "set"}

    # ranked candidates
    options = built.candidates.filter(set="asymmetry/P40")["index"].to_list()
    scores = [(item, 0, c, 1.0 if c == answers[-1] else 0.0, 1, 0.0, 1, None) for c in options]
    frame = pl.DataFrame(scores, schema=dict(SCORES.columns), orient="row")
    ranked = aa.of_candidates(frame, own).filter(k=1)
    assert dict(ranked.select("gold", "alpha").rows())["linked"] == 1
    assert dict(ranked.select("gold", "alpha").rows())["set"] == 0

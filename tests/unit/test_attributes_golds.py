"""Golds are all objects of the graph that have a label: in texts, rankings and baselines."""

import json

import numpy as np
import polars as pl
import pytest

from kgprobe.benchmarks.attributes import asymmetry
from kgprobe.schema import FILLS, SCORES
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
    counted = ab.frequencies(content(given, "edges"), content(given, "literals"), [examples])
    alphas = ab.alphas(examples, counted).filter(k=1, position=0)
    alphas = alphas.filter(pl.col("example").str.contains("/Q1/"))
    objects = len({o for _, _, o in TRIPLES})
    for gold, right in (("own", 1), ("set", len(NAMED))):
        values = alphas.filter(gold=gold, model=ab.RANDOM)["alpha"].to_list()
        assert values
        assert np.allclose(values, right / objects)

"""Alpha of triples: masks, texts, candidates; golds; pooling over prompts; invariants."""

import itertools
import json

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kgprobe.benchmarks.attributes import asymmetry
from kgprobe.schema import FILL_GOLDS, FILLS, ITEMS, SCORES
from kgprobe.tables.answers import read_aliases
from kgprobe.tables.attributes import study as aa
from kgprobe.tables.attributes.numbers import prompts
from kgprobe.tables.results import Number
from tests.unit.attribute_graphs import content, graph
from tests.unit.attribute_graphs import settings as of_graph


def frame(contract, rows):
    return pl.DataFrame(rows, schema=dict(contract.columns), orient="row")


def golds(*rows):
    """(item, template, gold, position, masks, best, worst)"""
    return frame(FILL_GOLDS, [(i, t, g, p, m, 7, b, w, -1.0) for i, t, g, p, m, b, w in rows])


def fills(*rows):
    """(item, template, masks, position, rank, text, logprob)"""
    return frame(FILLS, [(i, t, m, p, r, -1, x, x, lp) for i, t, m, p, r, x, lp in rows])


def texts(fills, golds):
    """Return alpha of texts by exact match after all normalization rules."""
    return aa.of_texts(fills, golds).filter(kind="exact")


def value(found, **where):
    rows = found.filter(**where) if where else found
    assert rows.height == 1, rows
    return rows["alpha"][0]


def test_mask_alpha_exact_and_token_fraction_with_expected_ties():
    result = aa.of_masks(
        fills(("a", 0, 2, -1, 1, "x y", -0.5), ("a", 0, 1, -1, 1, "z", -0.1)),
        golds(("a", 0, 0, 0, 2, 1, 1), ("a", 0, 0, 1, 2, 3, 4), ("a", 0, 1, 0, 1, 2, 2)),
    )
    assert value(result, k=1, kind="exact", gold="own") == 0
    assert value(result, k=1, kind="token_mean", gold="own") == 0.5
    assert value(result, k=3, kind="exact", gold="own") == 0.5
    assert value(result, k=3, kind="token_mean", gold="own") == 0.75
    assert value(result, k=3, kind="exact", gold="set") == 1
    assert value(result, k=5, kind="exact", gold="own") == 1
    # the probability is that of the filling with as many masks as the item's gold has tokens
    assert set(result["probability"]) == {-0.5}


def test_items_without_a_scored_gold_have_no_alpha():
    result = aa.of_masks(
        fills(("a", 0, 1, -1, 1, "z", -0.1)),
        golds(("a", 0, 1, 0, 1, 1, 1), ("b", 0, 0, 0, 1, 1, 1)),
    )
    assert set(result["item"]) == {"b"}


def test_texts_match_by_equality_only():
    golds = {"a": [["United Kingdom"], ["Britain"]], "b": [["Rome"]]}
    result = texts(
        fills(
            ("a", 0, 0, -1, 1, "Britain", -1.0),
            ("a", 0, 0, -1, 2, "France", -1.1),
            ("a", 0, 0, -1, 3, "the United Kingdom.", -1.2),
            ("a", 0, 0, 0, 1, "United Kingdom", -0.1),
            ("b", 0, 0, -1, 1, "the city of Rome", -1.0),
            *[("b", 0, 0, -1, r, f"no {r}", -2.0) for r in (2, 3, 4, 5)],
        ),
        golds,
    )
    assert {k: value(result, item="a", k=k, gold="own") for k in aa.KS} == {1: 0, 3: 1, 5: 1}
    assert value(result, item="a", k=1, gold="set") == 1
    assert result.filter(item="b")["alpha"].sum() == 0
    first = texts(
        fills(("b", 0, 0, -1, 1, "the city of Rome", -1.0), ("a", 0, 0, -1, 1, "Britain", 0.0)),
        golds,
    )
    assert dict(first.select("item", "verbose").rows()) == {"a": False, "b": True}


def test_verbatim_and_rule_matches_are_counted_by_rule():
    golds = {"a": [["Zürich", "Turicum"], ["Genf"]], "b": [["J. K. Rowling"]]}
    answers = [("a", 0, "Zürich"), ("a", 1, "zurich."), ("a", 2, "Turicum"), ("a", 3, "Genf"),
            ("b", 0, "J.K. Rowling"), ("b", 1, "Rowling")]  # fmt: skip
    fillings = fills(*[(item, t, 0, -1, 1, text, -1.0) for item, t, text in answers])
    result = aa.of_texts(fillings, golds).filter(k=1)
    right = {
        (kind, gold): result.filter(kind=kind, gold=gold).sort("item", "template")["alpha"]
        for kind in ("exact", "verbatim")
        for gold in ("own", "set")
    }
    assert right["exact", "own"].to_list() == [1, 1, 1, 0, 1, 0]
    assert right["exact", "set"].to_list() == [1, 1, 1, 1, 1, 0]
    assert right["verbatim", "own"].to_list() == [1, 0, 0, 0, 0, 0]
    assert right["verbatim", "set"].to_list() == [1, 0, 0, 1, 0, 0]
    ways = dict(result.filter(kind="exact", gold="own")["rule"].value_counts().rows())
    assert {name: n for name, n in ways.items() if n} == {
        "verbatim": 1, "accents": 1, "initials": 1, "aliases": 1, "": 2,
    }  # fmt: skip
    # the rule counts sum to the matches after all rules
    assert sum(ways.values()) - ways[""] == right["exact", "own"].sum()


def test_identical_phrases_still_give_every_k():
    rows = [("a", 0, 0, -1, 1, "Rome", -1.0), *[("a", 0, 0, 0, r, "x", -1.0) for r in range(1, 6)]]
    result = texts(fills(*rows), {"a": [["Rome"]]})
    assert result.filter(gold="own")["k"].to_list() == [1, 3, 5]


def test_aliases_match_only_when_enabled():
    examples = pl.DataFrame(
        {"example": ["a"], "position": [0], "golds": [["Q145", "Q7", "Q1050"]],
         "gold_labels": [["United Kingdom", None, "Eswatini"]]},
    )  # fmt: skip
    aliases = {"Q145": ["UK", "Britain"], "Q1050": ["Swaziland"], "Q7": ["nobody's"]}
    labels, names = aa.gold_names(examples), aa.gold_names(examples, aliases)
    assert labels == {"a#0": [["United Kingdom"], ["Eswatini"]]}
    assert names == {"a#0": [["United Kingdom", "UK", "Britain"], ["Eswatini", "Swaziland"]]}
    answers = fills(*[("a#0", 0, 0, -1, r, t, -r) for r, t in enumerate(["uk.", "no"], 1)])
    result = texts(answers, names)
    assert [value(result, k=1, gold=gold) for gold in ("own", "set")] == [1, 1]
    assert texts(answers, labels)["alpha"].sum() == 0
    second = fills(("a#0", 0, 0, -1, 1, "Swaziland", -1.0))
    assert value(texts(second, names), k=1, gold="own") == 0
    assert value(texts(second, names), k=1, gold="set") == 1
    first = texts(fills(("a#0", 0, 0, -1, 1, "the UK, I think", -1.0)), names)
    assert set(first.select("item", "rule", "verbose").rows()) == {("a#0", "", True)}


def test_single_answer_gives_alpha_at_1_only():
    result = texts(fills(("a", 0, 0, -1, 1, "Rome", None)), {"a": [["Rome"]]})
    assert result["k"].to_list() == [1, 1]
    assert result["probability"].null_count() == 2


def test_candidates_rank_the_triple_gold_and_the_best_gold():
    items = frame(ITEMS, [("a", "g", "r", "P1", "s", "Q1", "set", [2, 0], 0, "{}")])
    scores = [-1.0, -2.0, -3.0, -3.0, -9.0, -9.0]
    rows = [("a", 0, i, s, 2, s, 1, None) for i, s in enumerate(scores)]
    result = aa.of_candidates(frame(SCORES, rows), items)
    assert value(result, k=1, gold="own") == 0
    assert value(result, k=3, gold="own") == 0.5
    assert value(result, k=5, gold="own") == 1
    assert value(result, k=1, gold="set") == 1


@pytest.mark.parametrize(
    ("sure", "confident"),
    [((-3.0, -1.0, -1.0), 0.0), ((-0.5, -1.0, -1.0), 1.0), ((None,) * 3, 0.0)],
)
def test_poolings(sure, confident):
    """Without probabilities the first prompt counts as the most confident."""
    rows = [
        ("a", t, 1, "exact", "own", alpha, p, "x")
        for t, alpha, p in zip((3, 1, 2), (1.0, 0.0, 0.5), sure, strict=True)
    ]
    result = aa.pooled(pl.DataFrame(rows, schema=aa.ALPHA, orient="row"))
    pooled = {"best": 1.0, "mean": 0.5, "base": 0.0, "confident": confident}
    assert dict(result.select("pooling", "alpha").rows()) == pooled


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5])
def test_expected_maximum_over_subsets_equals_all_subsets(size):
    values = np.array([0.0, 1.0, 0.5, 0.5, 0.25])
    slow = np.mean([max(some) for some in itertools.combinations(values, size)])
    assert aa.best_of(values, size) == pytest.approx(slow)


def test_best_grows_with_the_number_of_prompts():
    rows = [
        (item, t, 1, "exact", "own", float(t == n), None, "x")
        for n, item in enumerate("abc")
        for t in range(3)
    ]
    result = prompts(Number(), pl.DataFrame(rows, schema=aa.ALPHA, orient="row"))
    values = {n.setting["prompts"]: n.value for n in result}
    assert values == pytest.approx({1: 100 / 3, 2: 200 / 3, 3: 100})


def test_oracle_gain_is_independent_of_row_order():
    draw = np.random.default_rng(0)
    rows = [
        (f"i{n}", t, 1, "exact", "own", float(draw.random()), None, "x")
        for n in range(300)
        for t in range(3)
    ]
    frame = pl.DataFrame(rows, schema=aa.ALPHA, orient="row")
    mixed = [frame.sample(fraction=1, shuffle=True, seed=seed) for seed in range(5)]
    assert len({tuple(n.value for n in prompts(Number(), own)) for own in mixed}) == 1


def test_aliases_are_loaded_by_id(tmp_path):
    rows = [("http://www.wikidata.org/entity/Q145", name) for name in ("UK", "Britain")]
    pl.DataFrame(rows, schema=["entity", "alias"], orient="row").write_parquet(tmp_path / "a")
    assert read_aliases(tmp_path / "a") == {"Q145": ["Britain", "UK"]}


WORDS = ("Rome", "rome.", "the UK", "UK", "Paris", "no")
KEY = ["item", "template", "k", "kind", "gold"]
run = settings(max_examples=40, deadline=None, derandomize=True)


@st.composite
def masked(draw):
    """Generate FILLS and FILL_GOLDS: two items, two prompts, 1-2 golds of up to three tokens."""
    tops, tokens = [], []
    for item, template in itertools.product("ab", (0, 1)):
        for gold in range(draw(st.integers(1, 2))):
            size = draw(st.integers(1, 3))
            tops.append((item, template, size, -1, 1, "x", draw(st.floats(-9, 0))))
            for position in range(size):
                best = draw(st.integers(1, 7))
                worst = best + draw(st.integers(0, 3))
                tokens.append((item, template, gold, position, size, best, worst))
    one = fills(*tops).unique(["item", "template", "masks"], keep="first", maintain_order=True)
    return one, golds(*tokens)


def check(alphas):
    """Check bounds, growth with k, gold set against triple gold, and the order of poolings."""
    assert alphas["alpha"].is_between(0, 1).all()
    keys = ["item", "template", "kind", "gold"]
    grown = alphas.sort("k").group_by(keys).agg((pl.col("alpha").diff() < -1e-12).any())
    assert not grown["alpha"].any()
    wide = alphas.pivot(on="gold", index=["item", "template", "kind", "k"], values="alpha")
    assert (wide["set"] >= wide["own"] - 1e-12).all()
    pooled = aa.pooled(alphas).pivot(
        on="pooling", index=["item", "k", "kind", "gold"], values="alpha"
    )
    for other in ("mean", "base", "confident"):
        assert (pooled["best"] >= pooled[other] - 1e-12).all()


@run
@given(masked())
def test_alphas_at_masks(given_):
    result = aa.of_masks(*given_)
    check(result)
    wide = result.pivot(on="kind", index=["item", "template", "gold", "k"], values="alpha")
    assert (wide["token_mean"] >= wide["exact"] - 1e-12).all()
    turned = aa.of_masks(*(frame.reverse() for frame in given_))
    assert turned.sort(KEY).equals(result.sort(KEY))


@run
@given(st.lists(st.lists(st.sampled_from(WORDS), min_size=5, max_size=5), min_size=1, max_size=6))
def test_alphas_of_texts(answers):
    rows = [
        ("a", template, 0, -1, rank, text, -float(rank))
        for template, own in enumerate(answers)
        for rank, text in enumerate(own, 1)
    ]
    fillings = fills(*rows)
    labels, names = {"a": [["Rome"], ["Paris"]]}, {"a": [["Rome", "UK"], ["Paris"]]}
    result, by_names = aa.of_texts(fillings, labels), aa.of_texts(fillings, names)
    check(result)
    check(by_names)
    assert aa.of_texts(fillings.reverse(), labels).sort(KEY).equals(result.sort(KEY))
    # adding an alias never turns a match into a miss
    more = result.join(by_names, on=KEY, suffix="_names")
    assert (more["alpha_names"] >= more["alpha"]).all()


#: Q1 has five objects of P40, one of them without a label; Q30 is the most frequent object
TRIPLES = [*[(1, 40, o) for o in (10, 11, 12, 13, 14)], *[(s, 40, 30) for s in (2, 3, 4, 5)]]
NAMES = {n: f"name {n}" for n in (1, 2, 3, 4, 5, 10, 11, 12, 13, 30)}
LABELED = {"Q10", "Q11", "Q12", "Q13"}


@pytest.fixture(scope="module")
def made():
    """Build one example of Q1 and three others, with the shortest possible list of candidates."""
    given = graph(TRIPLES, NAMES)
    own = of_graph("asymmetry", min_triples=1, eval_examples=4, candidates=1)
    return given, asymmetry.build(given, own)


def forward(examples, subject="Q1"):
    rows = examples.filter(pl.col("subject") == subject, sampled=True, role="forward")
    assert rows.height, "no example of the subject was sampled"
    return rows


def test_candidates_include_every_gold_and_report_how_many_were_added(made):
    _, built = made
    own = set(forward(built.examples)["object"])
    assert own < LABELED
    options = built.candidates.filter(set="asymmetry/P40")
    assert {*LABELED, "Q30"} == set(options["id"])
    ids = dict(options.select("index", "id").rows())
    for item, answers, meta in built.items.select("item", "answers", "meta").rows():
        if "/Q1/" not in item or not item.endswith("#0"):
            continue
        assert {ids[answer] for answer in answers} == LABELED
        assert ids[answers[0]] in item
        assert json.loads(meta)["golds_added"] == len(LABELED - own)
    step = built.steps.filter(step="candidates")
    assert step["kept"].to_list() == [built.candidates.height]
    assert step["reason"].to_list() == [f"{len(LABELED - own)} are golds that the lists lacked"]


def test_texts_and_ranks_match_golds_outside_the_candidate_list(made):
    _, built = made
    example = forward(built.examples).row(0, named=True)
    item = f"{example['example']}#0"
    other = sorted(LABELED - {example["object"]})[-1]
    answers = fills((item, 0, 0, -1, 1, f"name {other[1:]}", -1.0))
    result = aa.of_texts(answers, aa.gold_names(built.examples.filter("sampled")))
    right = dict(result.filter(k=1).select("gold", "alpha").rows())
    assert right == {"own": 0.0, "set": 1.0}
    options = built.candidates.filter(set="asymmetry/P40")
    scores = [
        (item, 0, i, float(q == other), 2, 0.0, 1, None)
        for i, q in options.select("index", "id").rows()
    ]
    ranked = aa.of_candidates(frame(SCORES, scores), built.items.filter(item=item))
    assert dict(ranked.filter(k=1).select("gold", "alpha").rows()) == {"own": 0.0, "set": 1.0}


def test_baselines_use_the_same_golds(made):
    """Four of five objects have a label: random is right in 4 of 6 cases, not in 5 of 6."""
    given, built = made
    examples = built.examples.filter("sampled")
    alphas = aa.guesses(content(given, "edges"), content(given, "literals"), [examples])
    alphas = alphas.filter(k=1, position=0)
    alphas = alphas.filter(pl.col("example").str.contains("/Q1/"))
    objects = len({o for _, _, o in TRIPLES})
    for gold, right in (("own", 1), ("set", len(LABELED))):
        values = alphas.filter(gold=gold, model=aa.RANDOM)["alpha"].to_list()
        assert values
        assert np.allclose(values, right / objects)


def test_equally_frequent_golds_tie_in_the_majority_baseline(made):
    """The five objects of Q1 tie for rank 2; at least one of any two drawn has a label."""
    given, built = made
    examples = built.examples.filter("sampled")
    alphas = aa.guesses(content(given, "edges"), content(given, "literals"), [examples])
    alphas = alphas.filter(pl.col("example").str.contains("/Q1/"), position=0, model=aa.MAJORITY)
    result = alphas.unique(["gold", "k", "alpha"]).sort("k").group_by("gold").agg("alpha")
    assert dict(result.rows()) == {"own": [0, 2 / 5, 4 / 5], "set": [0, 1, 1]}


def test_equally_scored_golds_tie_for_a_rank():
    items = frame(ITEMS, [("a", "P1", "fact", "P1", "s", "Q1", "P1", [2, 0], 0, "{}")])
    scores = [("a", 0, i, -1.0, 2, 0.0, 1, None) for i in range(3)]
    ranked = aa.of_candidates(frame(SCORES, scores), items).filter(k=1)
    assert dict(ranked.select("gold", "alpha").rows()) == {"own": 1 / 3, "set": 1 - 1 / 3}

"""Premises in six forms: what stands in them, what they change, and what cannot be asked."""

import itertools
import json
import math
from collections import Counter
from dataclasses import asdict, replace
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest
from scipy import stats

from kgprobe import schema
from kgprobe.benchmarks.ontoprobe import premises as forms_of
from kgprobe.metrics.tests import equivalence
from kgprobe.probes.jobs.methods import reason as method
from kgprobe.probes.jobs.ontoprobe import entailment, forms, soft
from kgprobe.probes.models.load import ModelSpec, load_model
from kgprobe.probes.scoring.cloze.vectors import scores
from kgprobe.probes.text.pseudowords import pseudowords
from kgprobe.probes.text.vectors import inserted
from kgprobe.settings import CausalRules, PremiseForms, Soft
from kgprobe.tables import results
from kgprobe.tables.answers import Probe
from kgprobe.tables.ontoprobe import make, premises, views
from tests.unit import soft_frames as frames
from tests.unit.test_reasoning import PLAN, SWITCHES, Silent, saved

PROBE = Probe("onto_world", "templates", "reason", "m", "masked")
NAMES = ["tree", "song", "city", "star"]


def told(row, name, golds=None):
    """Row 2, gold song: `Niger 2 is a song . [X] is a niger 2 .`"""
    labels = golds or [name]
    return forms_of.Premises(
        f"r-{row}", f"niger {row}", (f"Niger {row} is ", f"a {name}", " ."),
        f"[X] is a niger {row} .", [(label, label) for label in labels],
    )  # fmt: skip


ROWS = [told(row, NAMES[row % 4]) for row in range(8)]


def of(made, form, item="r-1"):
    return [(m.p1, m.p2, m.foreign) for m in made if (m.form, m.item) == (form, item)]


def test_each_form_says_what_its_sentence_says():
    made = forms_of.build_forms(ROWS, 1, 0, "rdfs9")
    assert Counter(m.form for m in made) == dict.fromkeys(forms_of.FORMS, len(ROWS))
    assert of(made, "none") == [("", "", False)]
    assert of(made, "true") == [("Niger 1 is a song .", "[X] is a niger 1 .", False)]
    assert of(made, "name only") == [("song .", "", False)]
    texts = {(f"Niger {k} is a {NAMES[k % 4]} .", f"[X] is a niger {k} .", True) for k in range(8)}
    assert set(of(made, "irrelevant")) < texts
    ((p1, p2, foreign),) = of(made, "counterfactual")
    assert (p2, foreign) == ("[X] is a niger 1 .", False)
    assert p1 in {f"Niger 1 is a {n} ." for n in ("tree", "city", "star")}


def test_forms_without_inference_name_no_gold_and_share_no_name():
    made = forms_of.build_forms(ROWS, 4, 0, "rdfs9")
    golds = {own.item: own.names[0][0] for own in ROWS}
    subjects = {own.item: own.subject for own in ROWS}
    for one in made:
        named = forms_of.occurs_in(golds[one.item], f"{one.p1} {one.p2}")
        assert named == (one.form in ("true", "name only"))
        if one.form == "shuffled names":
            subject, second = one.p1.split(" is ")[0].lower(), one.p2.split(" a ")[1][:-2]
            assert subject != second
            assert subjects[one.item] not in (subject, second)
    per_row = Counter((m.item, m.form) for m in made)
    assert set(per_row.values()) == {4}
    irrelevant = {m.p2 for m in made if (m.item, m.form) == ("r-1", "irrelevant")}
    assert len(irrelevant) == 4


def test_what_is_taken_of_other_rows_depends_on_ids_and_seed_alone():
    made = forms_of.build_forms(ROWS, 2, 0, "rdfs9")
    turned = forms_of.build_forms(ROWS[::-1], 2, 0, "rdfs9")
    assert sorted(made, key=repr) == sorted(turned, key=repr)
    assert sorted(forms_of.build_forms(ROWS, 2, 1, "rdfs9"), key=repr) != sorted(made, key=repr)
    first = {(m.item, m.form): m for m in forms_of.build_forms(ROWS, 1, 0, "rdfs9")}
    assert all(m in made for m in first.values())


def test_a_form_without_another_row_is_left_out():
    alone = forms_of.build_forms(ROWS[1:2], 3, 0, "rdfs9")
    assert {m.form for m in alone} == {"none", "true", "name only"}
    # all rows have the same gold: what is wrong for one would be right
    same = forms_of.build_forms([told(k, "song") for k in range(5)], 1, 0, "rdfs9")
    assert {m.form for m in same} == {"none", "true", "name only"}


def reasoning(rows=7):
    """soft_frames' items whose golds are named in P1, with other golds in every row."""
    found = []
    for row in frames.reasoning().iter_rows(named=True):
        meta = json.loads(row["meta"])
        gold = meta["names"][0][0]
        meta["p1_parts"] = [f"Niger {row['row']} is ", gold, " ."]
        meta["p1"] = "".join(meta["p1_parts"])
        found.append({**row, "meta": json.dumps(meta)})
    return pl.DataFrame(found, schema=frames.reasoning().schema)


def asked(tmp_path, name="bert", items=None, switches=SWITCHES, seed=0, **chosen):
    spec, items = saved(tmp_path, name), reasoning() if items is None else items
    return forms.ask(spec, items, frames.candidates(), switches, PremiseForms(**chosen), seed)


@pytest.mark.parametrize("name", ["bert", "gpt2", "t5"])
def test_rows_of_the_same_text_change_by_exactly_nothing(tmp_path, name):
    found, record = asked(tmp_path, name)
    assert record["draws"] == 1
    none = found.filter(form="none")
    # one text for all rows of a rule: scores of a gold that rows share are the same to the last bit
    assert none.group_by("rule", "gold").agg(pl.col("score").n_unique())["score"].max() == 1
    sizes = {"class": 7, "property": 3, "pattern": 3}
    for rule, best, worst, corrected in none.select(
        "rule", "corrected_best", "corrected_worst", "corrected"
    ).iter_rows():
        size = sizes[frames.SET_OF_RULE.get(rule, "class")]
        assert (best, worst, corrected) == (1, size, 0.0)
    changed = premises.changes(found)
    assert set(changed.filter(form="none")["change"]) == {0.0}
    assert changed.filter(form="true")["change"].abs().max() > 0


def test_a_premise_that_says_nothing_changes_nothing(tmp_path):
    """The text of another form is the empty one where premises are empty: the change is 0."""
    items = []
    for row in reasoning().filter(relation="rdfs9").iter_rows(named=True):
        meta = json.loads(row["meta"]) | {"p1": "", "p2": "", "p1_parts": ["", "", ""]}
        items.append({**row, "meta": json.dumps(meta)})
    found, _ = asked(tmp_path, items=pl.DataFrame(items, schema=reasoning().schema))
    changed = premises.changes(found)
    assert set(changed["form"]) > {"none", "true", "irrelevant", "counterfactual"}
    same = changed.filter(pl.col("form") != "name only")
    assert set(same["change"]) == {0.0}


def by_hand(loaded, vectors, before, after, labels):
    """Scores of all candidates in one text, asked by itself."""
    question = entailment.ClozePrompt("x", 0, before, after, "class", ())
    with inserted(loaded, vectors):
        ((chunk,),) = [list(scores(loaded, [question], {"class": labels}))]
    return chunk.scores[0]


def test_ranks_and_prior_corrected_ranks_are_those_of_each_text_by_itself(tmp_path):
    spec = saved(tmp_path)
    loaded = forms.ready(spec)
    words = pseudowords(loaded, 2)
    slots = entailment.layout({})
    vectors = forms.torch.cat([words.vectors.new_zeros(2, 32), words.vectors])
    found, _ = asked(tmp_path)
    x, other = entailment.mark(slots.words), entailment.mark(slots.words + 2)
    after, empty = " .", f"Therefore, {x} is a "
    prior = by_hand(loaded, vectors, empty, after, frames.CLASSES)
    rows = reasoning().filter(relation="rdfs9", role="test")
    texts = [forms_of.parse_premises(*r) for r in rows.select("item", "subject", "meta").rows()]
    checked = 0
    for one in forms_of.build_forms(texts, 1, 0, "rdfs9"):
        p2 = one.p2.replace("[X]", other if one.foreign else x)
        own = by_hand(
            loaded, vectors, " ".join(t for t in (one.p1, p2, empty) if t), after, frames.CLASSES
        )
        for gold in rows.filter(item=one.item)["answers"][0]:
            row = found.filter(item=one.item, form=one.form, gold=gold).row(0, named=True)
            assert row["score"] == pytest.approx(own[gold], abs=1e-5)
            assert row["corrected"] == pytest.approx(own[gold] - prior[gold], abs=1e-5)
            if one.form != "none":
                above = [c for c in range(7) if own[c] > own[gold] + 1e-5]
                gained = [c for c in range(7) if own[c] - prior[c] > own[gold] - prior[gold] + 1e-5]
                assert row["best"] == len(above) + 1
                assert row["corrected_best"] == len(gained) + 1
            text = f"{one.p1} {one.p2}".lower()
            assert row["named"] == (f" {frames.CLASSES[gold].lower()} " in f" {text} ")
            checked += 1
    assert checked == 3 * 2 * 6 - 2 * (3 * 6 - len(forms_of.build_forms(texts, 1, 0, "rdfs9")))


def test_control_models_are_asked_generated_rows():
    spec = ModelSpec("c", "masked", "control:masked")
    chosen = PremiseForms(generated=50)
    found, record = forms.ask(spec, reasoning(), frames.candidates(), SWITCHES, chosen, 0)
    # 18 test rows in all
    assert record["draws"] == 3
    assert sorted(found["draw"].unique()) == [0, 1, 2]
    none = found.filter(form="none").select("item", "draw").unique()
    assert none.height == 54


def test_premises_longer_than_the_window_are_counted_and_told(tmp_path, caplog):
    items = reasoning()
    long = pl.col("meta").str.replace(r"Niger 4 is ", "Niger " * 600 + "4 is ", n=-1)
    is_long = (pl.col("item") == "rdfs9-4").alias("x")
    items = items.with_columns(meta=pl.when(is_long).then(long).otherwise("meta"))
    found, record = asked(tmp_path, items=items)
    assert record["too_long"]["rdfs9"]["rows"] >= 1
    assert "item rdfs9-4" in record["too_long"]["rdfs9"]["first"]
    assert "are allowed" in record["too_long"]["rdfs9"]["first"]
    assert set(record["too_long"]) == {"rdfs9"}
    own = found.filter(item="rdfs9-4")
    assert {"none", "name only"} <= set(own["form"])
    assert "true" not in own["form"]
    (number,) = [
        n for n in premises.numbers({PROBE: found}, 0)
        if n.metric == premises.LEFT_OUT and n.group == "rdfs9" and n.setting["form"] == "true"
    ]  # fmt: skip
    assert (number.value, number.n) == (1, 3)


def test_rules_without_rows_are_told_and_the_others_asked(tmp_path):
    gone = reasoning().filter((pl.col("relation") != "rdfs5") | (pl.col("role") == "train"))
    found, record = asked(tmp_path, items=gone)
    assert record["without_rows"] == ["rdfs5"]
    assert set(found["rule"]) == set(frames.RULES) - {"rdfs5"}
    with pytest.raises(ValueError, match="no test rows of any rule among 12 items"):
        asked(tmp_path, items=reasoning().filter(role="train"))


def test_at_most_so_many_rows_of_a_rule_by_hash(tmp_path):
    few = forms.sample_rows(reasoning(), 2, 0)
    assert few.group_by("relation").len()["len"].to_list() == [2] * 6
    assert forms.sample_rows(reasoning().reverse(), 2, 0).equals(few)
    assert any(
        forms.sample_rows(reasoning(), 2, seed)["item"].to_list() != few["item"].to_list()
        for seed in range(1, 5)
    )


def ranks(rows, size=7):
    """FORM_RANKS out of (rule, item, form, draw, gold, named, best, worst)."""
    return pl.DataFrame(
        [(*row, 1, size, 0.0, 0.0) for row in rows],
        schema=dict(schema.FORM_RANKS.columns),
        orient="row",
    )


def literal_rr(best, worst):
    return sum(1 / k for k in range(best, worst + 1)) / (worst - best + 1)


def test_changes_are_those_of_the_same_gold_of_the_same_row():
    """Golds of two rows and two draws, one by one, from the sentence of the definition."""
    source = np.random.default_rng(0)
    cells = {}
    rows = []
    for item, draw, form in itertools.product(("a", "b", "c"), range(2), ("none", "true")):
        values = source.integers(0, 4, 7).tolist()
        for gold in range(3):
            best = 1 + sum(v > values[gold] for v in values)
            worst = best + sum(v == values[gold] for v in values) - 1
            is_named = form == "true" and gold == 0
            cells[item, draw, gold, form] = literal_rr(best, worst)
            rows.append(("rdfs9", item, form, draw, gold, is_named, best, worst))
    changed = premises.changes(ranks(rows)).filter(form="true")
    golds = {"": [0, 1, 2], "gold not named": [1, 2], "gold named": [0]}
    assert changed.height == 9
    for item, name, value, draws in changed.select("item", "slice", "change", "draws").rows():
        slots = [
            [cells[item, d, g, "true"] - cells[item, d, g, "none"] for g in golds[name]]
            for d in range(2)
        ]
        expected = sum(sum(own) / len(own) for own in slots) / 2
        assert value == pytest.approx(expected, abs=1e-12)
        assert draws == 2
    made = {
        (n.metric, n.slice): n
        for n in premises.numbers({PROBE: ranks(rows)}, 0)
        if (n.group, n.setting["form"]) == ("rdfs9", "true")
    }
    every = changed.filter(slice="")["change"].to_list()
    number = made[premises.CHANGE, ""]
    assert number.value == pytest.approx(sum(every) / 3)
    assert (number.n, number.denominator) == (3, 6.0)
    assert number.interval.low <= number.value <= number.interval.high


def test_mrr_and_prior_corrected_mrr_are_means_of_the_best_gold():
    """Single golds: MRR is the mean of 1 / rank, by hand; corrected ranks are read in its place."""
    rows = [("rdfs2", "a", "none", 0, 3, False, 1, 1), ("rdfs2", "b", "none", 0, 3, False, 4, 4)]
    frame = ranks(rows).with_columns(
        corrected_best=pl.Series([2, 5], dtype=pl.Int32),
        corrected_worst=pl.Series([2, 5], dtype=pl.Int32),
    )
    found = {(n.metric, n.group): n.value for n in premises.numbers({PROBE: frame}, 0)
             if n.setting["form"] == "none" and not n.slice}  # fmt: skip
    assert found[premises.MRR, "rdfs2"] == pytest.approx((1 + 1 / 4) / 2)
    assert found[premises.CORRECTED, ""] == pytest.approx((1 / 2 + 1 / 5) / 2)
    # after the empty prompt itself all candidates tie: chance, H_7 / 7 for one gold of seven
    chance = premises.levels(ranks(rows))[premises.CORRECTED][0]
    assert chance == pytest.approx(sum(1 / k for k in range(1, 8)) / 7)


def test_equivalence_is_two_one_sided_t_tests():
    """Schuirmann 1987: both of H0: mean <= -bound and H0: mean >= bound are to fall."""
    source = np.random.default_rng(1)
    for size, shift in itertools.product((5, 40), (-0.03, 0.0, 0.015)):
        slots = source.normal(shift, 0.05, size)
        for bound in (0.02, 0.05):
            above = stats.ttest_1samp(slots, -bound, alternative="greater").pvalue
            below = stats.ttest_1samp(slots, bound, alternative="less").pvalue
            assert equivalence(slots, bound) == pytest.approx(max(above, below), abs=1e-12)
    assert equivalence(np.full(4, 0.01), 0.02) == 0.0
    assert equivalence(np.full(4, 0.03), 0.02) == 1.0
    assert equivalence(np.array([0.0]), 0.02) == 1.0
    with pytest.raises(ValueError, match="bound of equivalence of 0; it must be above 0"):
        equivalence(np.zeros(3), 0)


def test_equivalence_is_asked_of_what_says_nothing_alone():
    rows = [
        ("rdfs9", item, form, 0, 0, False, best, best)
        for item, best in (("a", 2), ("b", 3), ("c", 5))
        for form in forms_of.FORMS
    ]
    made = list(premises.numbers({PROBE: ranks(rows)}, 0))
    tested = {n.setting["form"] for n in made if n.metric == premises.EQUIVALENCE}
    assert tested == set(forms_of.EMPTY)
    assert {n.value for n in made if n.metric == premises.EQUIVALENCE} == {0.0}
    assert {n.value for n in made if n.metric == premises.CHANGE} == {0.0}


def test_the_table_has_a_row_for_each_form_and_a_sentence_that_explains_it(tmp_path):
    found, _ = asked(tmp_path)
    frame = results.frame("ontoprobe", premises.numbers({PROBE: found}, 0))
    shown = views.PREMISE_FORMS.of(frame)
    assert len(shown.rows) == 7 * len(forms_of.FORMS)
    for form, told_of in forms_of.FORMS.items():
        assert f"{form}: {told_of}.".capitalize()[:20] in views.PREMISE_FORMS.caption
        assert told_of in views.PREMISE_FORMS.caption
    assert not views.REASONING.of(frame).rows
    assert all(math.isfinite(v) for v in frame["value"])


@pytest.mark.parametrize(("name", "schemes", "pairs"), [("gpt2", 1, 1), ("bert", 4, 2)])
def test_causal_models_reason_by_one_scheme_and_pair_on_some_rows(tmp_path, name, schemes, pairs):
    spec = saved(tmp_path, name)
    if name == "bert":
        soft.train(
            spec, frames.items(), frames.candidates(), SWITCHES, PLAN, tmp_path / "p", Silent
        )
    settings = {
        "soft": asdict(Soft(seeds=1, epochs=2, losses=("bce",), masks=("multi",),
                            poolings=("mean",), causal=CausalRules(rows=2))),
        "switches": asdict(SWITCHES), "premises": asdict(PremiseForms()), "seed": 0,
    }  # fmt: skip
    given = {"questions": reasoning(), "candidates": frames.candidates()}
    part = SimpleNamespace(
        spec=spec, settings=settings, load=load_model, read=lambda name, _: given[name],
        input={"prompts": str(tmp_path / "p") if name == "bert" else ""},
    )  # fmt: skip
    found, record = method.answers(part, tmp_path)
    for made, contract in method.OUTPUT.items():
        schema.check(found[made], contract)
    assert found["ranks"]["scheme"].n_unique() == schemes
    assert found["ranks"]["pair"].n_unique() == pairs
    rows = 6 * (2 if name == "gpt2" else 3)
    assert found["ranks"].filter(scheme="manual+manual")["item"].n_unique() == rows
    assert found["forms"]["item"].n_unique() == rows
    assert record["pseudoword_pairs"] == pairs
    assert record["forms"]["draws"] == 1
    if name == "bert":
        return
    chosen = forms.sample_rows(reasoning(), 2, 0)["item"].to_list()
    assert sorted(found["ranks"]["item"].unique()) == sorted(chosen)
    assert found["ranks"].equals(method.answers(part, tmp_path)[0]["ranks"])


def test_what_a_causal_model_has_memorized_need_not_be_known(tmp_path):
    """Without answers of the memorizing tasks its first premises are explicit or not in it."""
    rows = reasoning().filter(role="test")
    items = rows["item"].to_list()
    keys = ("scheme", "p1", "p2", "pair")
    ranked = pl.DataFrame(
        [(i, "manual+manual", *form, 0, 1, 1, 1) for i in items for form in entailment.FORMS],
        schema=["item", *keys, "best", "worst", "in_order"], orient="row",
    )  # fmt: skip
    tests = pl.DataFrame([(i, "manual", 0, 1, 1, 1) for i in items],
                         schema=["item", "kind", "pair", "best", "worst", "in_order"],
                         orient="row")  # fmt: skip
    schema.write(reasoning(), schema.ITEMS, tmp_path / "reasoning.parquet")
    files = {"ranks": ranked, "tests": tests}
    for name, frame in files.items():
        frame.write_parquet(tmp_path / f"{name}.parquet")
    paths = str(tmp_path / "ranks.parquet"), str(tmp_path / "tests.parquet")
    probe = replace(PROBE, kind="causal")
    made = list(make.estimate_reasoning({probe: paths}, {}, {"onto_world": tmp_path}, SWITCHES, 0))
    told_of = {n.setting["premise"] for n in made}
    assert told_of == {"P1 EX, P2 EX", "P1 EX, P2 IM", "P1 EX, P2 NO"}
    with pytest.raises(ValueError, match="no premise of reasoning can be classified"):
        list(make.estimate_reasoning({PROBE: paths}, {}, {"onto_world": tmp_path}, SWITCHES, 0))

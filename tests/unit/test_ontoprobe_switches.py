"""Every switch of OntoProbe that builds or reads questions changes what it names, and only that."""

import json

import polars as pl
import pytest

from kgprobe.benchmarks import ontoprobe, ontoprobe_modes, ontoprobe_reasoning, ontoprobe_released
from kgprobe.tables import ontoprobe_reasoning as reasoned
from kgprobe.tables import ontoprobe_values
from tests.unit.test_ontoprobe import write_release
from tests.unit.test_ontoprobe_tables import make_cases, make_items, make_ranks


def change(files):
    """Names and patterns on which the switches differ."""
    files["memorizing/type.jsonl"][25]["uuu"] = "Thing Ünder (25)"
    files["ontology/class.json"][22]["rdfs:label"] = "odd kind"
    files["memorizing/subClassOf.jsonl"][21]["uuu"] = "odd kind"
    files["memorizing/domain.jsonl"][25]["uuu"] = {"employer": "[X] is an employer of [Y] ."}
    files["ontology/property.json"][2]["rdf:range"] = "odd kind"
    files["ontology/property.json"][2]["pattern"] = "[X]'s odd kind is [Y] ."
    files["memorizing/domain.jsonl"][2]["uuu"] = {"link 2": "[X]'s odd kind is [Y] ."}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_release(tmp_path_factory.mktemp("release"), change)


def frames(folder, **switches):
    chosen = ontoprobe_modes.resolve("default", switches)
    taken = ontoprobe_released.take(folder, chosen)
    sets = ontoprobe.build(taken, chosen, "x")
    rules = ontoprobe_reasoning.build(taken, sets.items, sets.candidates, chosen)
    return sets.items, sets.prompts, rules


def differing(before, after, column):
    joined = before.join(after, on=before.columns[0])
    return joined.filter(pl.col(column) != pl.col(f"{column}_right"))[before.columns[0]].to_list()


@pytest.mark.parametrize(
    ("key", "value", "item", "subject"),
    [
        ("upper_first", "lower_rest", "TP-25", "Thing ünder  25 "),
        ("labels", "ascii_drop", "TP-25", "Thing nder (25)"),
        ("wording", "released", "DM-2", "if one has  ."),
        ("wording", "paper", "DM-2", "to have odd kind ."),
        ("patterns", "corrected", "DM-25", "if one is employed by something ."),
    ],
)
def test_switches_of_the_subject(folder, key, value, item, subject):
    plain, _, _ = frames(folder)
    items, _, _ = frames(folder, **{key: value})
    assert items.filter(item=item)["subject"].item() == subject
    assert item in differing(plain, items, "subject")
    if key != "upper_first" and value != "paper":
        assert differing(plain, items, "subject") == [item]


def test_sco_m2(folder):
    _, plain, _ = frames(folder)
    _, other, _ = frames(folder, sco_m2="class")
    assert differing(plain, other, "text") == ["SCO-m2"]
    assert other.filter(prompt="SCO-m2")["text"].item() == "[X] has class [Y] ."


def test_item_limit(folder):
    items, _, _ = frames(folder, item_limit="5")
    counts = dict(items.filter(role="test").group_by("relation").len().rows())
    assert counts == {"TP": 5, "SCO": 5, "SPO": 14, "DM": 14, "RG": 14}


def test_rdfs11_text(folder):
    _, _, plain = frames(folder)
    _, _, other = frames(folder, rdfs11_text="rdfs9")
    changed = differing(plain, other, "meta")
    assert changed
    assert all(item.startswith("rdfs11-") for item in changed)


def test_article(folder):
    def p1(rules):
        return json.loads(rules.filter(item="rdfs9-22")["meta"].item())["p1"]

    _, _, plain = frames(folder)
    _, _, other = frames(folder, article="always_a")
    by_letter = [json.loads(m)["p2"] for m in plain.filter(relation="rdfs9")["meta"]]
    always = [json.loads(m)["p2"] for m in other.filter(relation="rdfs9")["meta"]]
    assert set(by_letter) - set(always) == {"[X] is an odd kind ."}
    assert set(always) - set(by_letter) == {"[X] is a odd kind ."}


def test_premise_order(folder):
    _, _, rules = frames(folder)
    meta = json.loads(rules.filter(item="rdfs5-21")["meta"].item())
    first, second = (ontoprobe_reasoning.manual(meta, True, True, o) for o in ("P1_P2", "P2_P1"))
    assert first.startswith("Link 21 implies")
    assert second.startswith("[X] implies link 21")
    assert sorted(first.split()) == sorted(second.split())


def test_tp_rows():
    known = ontoprobe_values.of_items(make_items())
    found = ontoprobe_values.from_ranks(make_ranks(make_items()))
    values = ontoprobe_values.metrics(found, known).filter(task="TP")
    counts = [
        ontoprobe_values.asked_rows(values, rows)["item"].n_unique() for rows in ("distinct", "all")
    ]
    assert counts == [19, 20]


def test_ties():
    known = ontoprobe_values.of_items(make_items())
    ranks = make_ranks(make_items()).with_columns(worst=pl.col("best") + 1)
    found = ontoprobe_values.from_ranks(ranks)
    hits = {
        ties: set(ontoprobe_values.metrics(found, known, ties)["R@1"].unique())
        for ties in ("expectation", "mean_rank")
    }
    assert 50.0 in hits["expectation"]
    assert hits["mean_rank"] <= {0.0, 100.0}


def test_premise_threshold_and_dropped_middle():
    ranked = [("a", 1.0, 1.0, 0), ("b", 0.5, 2.0, 1), ("c", 0.1, 10.0, 2)]
    assert reasoned.halves(ranked, "threshold")[0] == {"a": 1, "b": 1, "c": 0}
    cases = make_cases(3)
    first = pl.DataFrame({"item": ["T-0", "T-1", "T-2"], "MRR": [1.0, 0.5, 0.1], "rank": 1.0})
    second = cases.select("item", MRR=1.0, rank=1.0)
    premises = {"manual": reasoned.classify(cases, first, second)}
    answers = pl.DataFrame(
        [(i, "manual+manual", True, True, 0, 0.5) for i in cases["item"]],
        schema=["item", "scheme", "p1", "p2", "pair", "MRR"],
        orient="row",
    )
    sizes = [
        reasoned.settings(answers, premises, cases, drop)
        .filter(rule="rdfs9", p1=2, p2=2)["n"]
        .item()
        for drop in (False, True)
    ]
    assert sizes == [3, 2]


def test_missing_candidate():
    cases = make_cases(4).with_columns(
        meta=pl.when(pl.col("row") == 0)
        .then(pl.lit('{"p1_item": "T-0", "missing": true}'))
        .otherwise(pl.col("meta"))
    )
    first = pl.DataFrame({"item": [f"T-{r}" for r in range(4)], "MRR": 0.5, "rank": 2.0})
    second = cases.select("item", MRR=1.0, rank=1.0)
    for skip, known in ((False, 4), (True, 3)):
        premises = reasoned.classify(cases, first, second, "halves", skip)
        assert len(premises.second["rdfs7"]) == known
        assert len(premises.first["rdfs7"]) == 4

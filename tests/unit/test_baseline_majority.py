"""Outcomes from scores, the majority answers, and balanced search data."""

import numpy as np
import pytest

from kgprobe.metrics.ranking import hit_at
from kgprobe.probes.prompts.search.controls import balance
from kgprobe.probes.ranked import constant, majority, outcomes
from kgprobe.schema import EXAMPLES, OUTCOMES, check
from tests.unit.prompt_examples import examples

WORDS = ["London", "Paris", "Rome", "Wien"]


def test_ranks_include_ties_and_filter_other_golds():
    rows = examples([{"label": "Rome", "others": ["Paris", "Oslo"]}, {"label": "Bern"}])
    scores = np.array([[3.0, 5.0, 3.0, 1.0], [4.0, 0.0, 0.0, 4.0]])
    result = outcomes("x", rows, WORDS, scores)
    check(result, OUTCOMES)
    first, second = result.iter_rows(named=True)
    assert (first["best"], first["worst"]) == (2, 3)
    assert (first["filtered_best"], first["filtered_worst"]) == (1, 2)
    assert (first["answer"], first["logprob"], first["options"]) == ("Paris", 3.0, 4)
    assert second["best"] is None
    assert second["answer"] == "London"


def test_scores_with_nan_raise():
    rows = examples([{"label": "Rome"}])
    with pytest.raises(ValueError, match="NaN"):
        outcomes("x", rows, WORDS, np.full((1, 4), np.nan))


def facts(split: str, group: str, *labels: str) -> list[dict[str, object]]:
    return [{"split": split, "group": group, "label": label} for label in labels]


def test_majority_counts_training_facts_and_constant_counts_test_facts():
    rows = examples(
        facts("train", "P1", "Rome", "Rome", "Paris")
        + facts("train", "P2", "Wien")
        + facts("test", "P1", "Rome", "Paris", "Paris", "London")
        + facts("test", "P2", "Wien", "Rome")
    )
    trained = majority(rows, WORDS, ["test"])
    assert trained["answer"].to_list() == ["Rome"] * 4 + ["Wien"] * 2
    # Paris has the second highest count; London and Wien tie for the last rank
    assert trained.filter(group="P1")["best"].to_list() == [1, 2, 2, 3]
    assert trained.filter(group="P1")["worst"].to_list() == [1, 2, 2, 4]
    assert trained["logprob"].to_list()[0] == pytest.approx(np.log(2 / 3))
    best = constant(rows, WORDS, ["test"])
    assert best.filter(group="P1")["answer"].to_list() == ["Paris"] * 4
    # the two facts of P2 tie: either constant answer is correct for one of them
    selected = best.filter(group="P2")
    assert hit_at(1, selected["best"].to_numpy(), selected["worst"].to_numpy()).mean() == 0.5


def test_a_fact_with_several_sentences_counts_once():
    rows = examples(
        [{"split": "train", "label": "Rome", "fact": "one"} for _ in range(5)]
        + facts("train", "", "Paris", "Paris")
        + facts("test", "", "Paris")
    )
    assert majority(rows, WORDS, ["test"])["answer"].to_list() == ["Paris"]


def test_groups_without_training_facts_are_reported():
    rows = examples(facts("train", "P1", "Rome") + facts("test", "P2", "Rome"))
    with pytest.raises(ValueError, match="P2"):
        majority(rows, WORDS, ["test"])


def test_balanced_data_have_equal_counts_and_similar_size():
    labels = ["Rome"] * 13 + ["Paris"] * 4 + ["Wien"]
    rows = examples(facts("train", "P1", *labels) + facts("test", "P1", "Rome"))
    result = balance(rows, seed=3)
    check(result, EXAMPLES)
    train = result.filter(split="train")
    assert dict(train["label"].value_counts().iter_rows()) == {"Rome": 6, "Paris": 6, "Wien": 6}
    assert result.filter(split="test").equals(rows.filter(split="test"))
    # no repetition where there are enough facts, otherwise as evenly as possible
    assert train.filter(label="Rome")["fact"].n_unique() == 6
    assert sorted(train.filter(label="Paris")["fact"].value_counts()["count"]) == [1, 1, 2, 2]
    assert balance(rows.sample(fraction=1, shuffle=True, seed=1), seed=3).equals(result)
    assert not balance(rows, seed=4).equals(result)

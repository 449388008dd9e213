"""Priors, permuted and skewed golds against loops written from their definitions."""

import itertools
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest

from kgprobe.metrics.aggregations import FOLDS, folds, permute_golds, prior_corrected, zipf_sample


def test_a_subject_is_in_one_fold_and_folds_are_even():
    subjects = [f"Q{i % 13}" for i in range(40)]
    found = folds(subjects, 3, "P1")
    by_subject = {s: {f for t, f in zip(subjects, found, strict=True) if t == s} for s in subjects}
    assert all(len(own) == 1 for own in by_subject.values())
    sizes = Counter(next(iter(own)) for own in by_subject.values())
    assert len(sizes) == FOLDS
    assert max(sizes.values()) - min(sizes.values()) <= 1
    # the order of the questions has no effect, the seed does
    assert folds(subjects[::-1], 3, "P1").tolist() == found.tolist()[::-1]
    assert folds(subjects, 4, "P1").tolist() != found.tolist()
    # two subjects are never together while a fold is empty
    assert set(folds(["Q1", "Q2"], 0, "P1").tolist()) == {0, 1}


def test_options_not_offered_are_excluded_and_one_fold_gives_no_prior():
    generator = np.random.default_rng(4)
    scores, fold = generator.normal(size=(12, 6)), generator.integers(0, 3, 12)
    scores[generator.random((12, 6)) < 0.4] = np.nan
    scores[:, 5] = np.where(fold == 1, scores[:, 0], np.nan)
    found = prior_corrected(scores, fold)
    for i, option in itertools.product(range(12), range(6)):
        others = [
            scores[j][option]
            for j in range(12)
            if fold[j] != fold[i] and not np.isnan(scores[j][option])
        ]
        if np.isnan(scores[i][option]) or not others:
            assert np.isnan(found[i, option])
        else:
            assert found[i, option] == pytest.approx(scores[i][option] - np.mean(others))
    assert np.isnan(found[:, 5]).all()
    assert not np.isnan(scores[:, 5]).all()


def test_a_single_fold_gives_no_prior_rather_than_zero():
    assert np.isnan(prior_corrected(np.zeros((1, 3)), np.array([0]))).all()
    assert np.isnan(prior_corrected(np.zeros((2, 3)), np.array([1, 1]))).all()


def test_permuted_golds_have_the_mean_of_all_permutations_as_their_expectation():
    # ties: the second question's first rank is tied; the last has two golds
    answered = np.array([[1, 0, 0], [0.5, 0.5, 0], [1, 0, 0], [0, 0, 1]])
    golds = np.array([[1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 0]])
    every = [
        sum(Fraction(answered[i][o]) * int(golds[order[i]][o]) for i in range(4) for o in range(3))
        for order in itertools.permutations(range(4))
    ]
    hits, expected = permute_golds(answered, golds, seed=0, draws=4000)
    assert expected == pytest.approx(float(sum(every) / len(every)))
    assert set(hits.tolist()) == {float(one) for one in every}
    assert hits.mean() == pytest.approx(expected, abs=0.05)
    assert np.array_equal(hits, permute_golds(answered, golds, seed=0, draws=4000)[0])
    with pytest.raises(ValueError, match="golds"):
        permute_golds(answered, golds[:2], seed=0)


def test_the_zipf_sample_keeps_a_fraction_that_falls_with_rank():
    answers = [f"a{i % 6}" for i in range(60)]
    ids = [f"P1/{i}" for i in range(60)]
    kept = zipf_sample(answers, ids, 5, "P1")
    sizes = sorted(Counter(a for a, k in zip(answers, kept, strict=True) if k).values())
    # 10, 5, 3 1/3, 2 1/2, 2, 1 2/3: running sums 10, 15, 18, 20, 22, 24
    assert sizes[::-1] == [10, 5, 3, 2, 2, 2]
    shuffled = np.random.default_rng(0).permutation(60)
    again = zipf_sample([answers[i] for i in shuffled], [ids[i] for i in shuffled], 5, "P1")
    assert {ids[i] for i, k in zip(shuffled, again, strict=True) if k} == {
        name for name, k in zip(ids, kept, strict=True) if k
    }
    # answers that occur once: 1, 1/2, 1/3, 1/4 ... pass 1, 2 and 3 at the ranks 1, 4 and 11
    ones = [f"a{i}" for i in range(12)]
    assert zipf_sample(ones, ones, 5, "P1").sum() == 3

"""Ranks with ties as ranges, against counting over all orders of the tied options."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgprobe.metrics import ranking


def expected_over_orders(scores: list[int], gold: int, value, reduce=np.mean) -> float:
    """Return the mean of value(rank of gold) over every order in which ties may be broken."""
    ranks = []
    for order in itertools.permutations(range(len(scores))):
        ordered = sorted(range(len(scores)), key=lambda i: (-scores[i], order[i]))
        ranks.append(ordered.index(gold) + 1)
    return float(reduce([value(rank) for rank in ranks]))


@given(st.lists(st.integers(0, 3), min_size=1, max_size=5), st.data())
def test_ties_give_the_expectation_over_random_orders(scores, data):
    gold = data.draw(st.integers(0, len(scores) - 1))
    ends = [expected_over_orders(scores, gold, lambda r: r, end) for end in (min, max)]
    best, worst = np.array(ends, dtype=int)[:, None]
    for k in (1, 2, 5):
        hit = ranking.hit_at(k, best, worst)[0]
        assert hit == pytest.approx(expected_over_orders(scores, gold, lambda rank, k=k: rank <= k))
    reciprocal = ranking.reciprocal_rank(best, worst)[0]
    assert reciprocal == pytest.approx(expected_over_orders(scores, gold, lambda rank: 1 / rank))


@pytest.mark.parametrize(("size", "golds"), [(1, 1), (2, 2), (4, 1), (4, 3), (5, 2)])
@pytest.mark.parametrize("best", [1, 3])
def test_one_of_several_golds_that_tie_is_enough(size, golds, best):
    orders = list(itertools.permutations(range(size)))
    for k in (1, 2, 3, 5):
        first = [best + min(order.index(gold) for gold in range(golds)) for order in orders]
        ends = np.array([best]), np.array([best + size - 1])
        hit = ranking.hit_at(k, *ends, np.array([golds]))[0]
        assert hit == pytest.approx(np.mean([rank <= k for rank in first]))
        reciprocal = ranking.reciprocal_rank(*ends, k, np.array([golds]))[0]
        assert reciprocal == pytest.approx(np.mean([(rank <= k) / rank for rank in first]))


def test_reciprocal_ranks_of_many_items():
    best, worst = np.array([1, 3, 2, 7]), np.array([1, 5, 2, 9])
    expected = [1, (1 / 3 + 1 / 4 + 1 / 5) / 3, 1 / 2, (1 / 7 + 1 / 8 + 1 / 9) / 3]
    assert ranking.reciprocal_rank(best, worst).tolist() == pytest.approx(expected)
    assert ranking.reciprocal_rank(best[:0], worst[:0]).tolist() == []
    # one right of three, two of three, three of three: alone and beside each other
    found = ranking.reciprocal_rank(
        np.array([1, 3, 3, 7]), np.array([1, 5, 5, 9]), golds=[1, 1, 2, 3]
    )
    expected = [1, (1 / 3 + 1 / 4 + 1 / 5) / 3, 2 / 3 / 3 + 1 / 3 / 4, 1 / 7]
    assert found.tolist() == pytest.approx(expected)


@pytest.mark.parametrize(("positive", "negative"), [([], [1.0]), ([1.0], []), ([], [])])
def test_auc_of_one_class_is_refused(positive, negative):
    with pytest.raises(ValueError, match="both classes"):
        ranking.auc(np.array(positive), np.array(negative))


@given(st.lists(st.integers(0, 4), min_size=1), st.lists(st.integers(0, 4), min_size=1))
def test_auc_is_the_fraction_of_ordered_pairs(positive, negative):
    pairs = [(p > n) + 0.5 * (p == n) for p in positive for n in negative]
    found = ranking.auc(np.array(positive, dtype=float), np.array(negative, dtype=float))
    assert found == pytest.approx(np.mean(pairs))

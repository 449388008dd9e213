"""Metrics of several golds under ties, against the average over all orders."""

import itertools

import numpy as np
import pytest

from kgprobe.metrics import cloze
from kgprobe.probes.baselines import frequency


def ranges(scores, golds):
    best = [1 + sum(s > scores[g] for s in scores) for g in golds]
    worst = [b + sum(s == scores[g] for s in scores) - 1 for b, g in zip(best, golds, strict=True)]
    return np.array(best), np.array(worst)


def orders(scores):
    """Return all rankings that sort by score and differ in the order of ties."""
    places = range(len(scores))
    for order in itertools.permutations(places):
        if all(scores[a] >= scores[b] for a, b in itertools.pairwise(order)):
            yield {candidate: rank for rank, candidate in enumerate(order, 1)}


def average(scores, golds, ks):
    """Return every value of `Items` for an item, averaged over all orders of tied candidates."""
    ranked = list(orders(scores))
    first = [min(r[g] for g in golds) for r in ranked]
    alone = [1 / (r[g] - sum(r[o] < r[g] for o in golds if o != g)) for r in ranked for g in golds]
    return {
        **{f"hits {k}": np.mean([f <= k for f in first]) for k in ks},
        **{f"recall {k}": np.mean([r[g] <= k for r in ranked for g in golds]) for k in ks},
        "mrr": np.mean([1 / f for f in first]),
        "mrra": 1 / np.mean([r[g] for r in ranked for g in golds]),
        "filtered": np.mean(alone),
        "ceiling": 1 / np.mean(range(1, len(golds) + 1)),
    }


def of_item(found, number):
    """Return the values of one item from `Items`."""
    return {
        **{f"hits {k}": v[number] for k, v in found.hits.items()},
        **{f"recall {k}": v[number] for k, v in found.recall.items()},
        **{n: getattr(found, n)[number] for n in ("mrr", "mrra", "filtered", "ceiling")},
    }


def test_each_of_many_items_has_its_average_over_all_orders():
    rng = np.random.default_rng(8)
    items = [([3, 3, 3, 1, 0], [2, 3]), ([1] * 5, [0, 2, 4]), ([7, 7, 1, 1, 1, 0], [2, 5, 3])]
    for _ in range(60):
        scores = rng.integers(0, 3, rng.integers(1, 7)).tolist()
        items.append((scores, rng.permutation(len(scores))[: rng.integers(1, 4)].tolist()))
    best, worst, starts = [], [], []
    for scores, golds in items:
        starts.append(len(best))
        for own, more in zip((best, worst), ranges(scores, golds), strict=True):
            own += more.tolist()
    ks = (1, 2, 5)
    found = cloze.values(np.array(best), np.array(worst), np.array(starts), ks)
    for number, (scores, golds) in enumerate(items):
        assert of_item(found, number) == pytest.approx(average(scores, golds, ks))
    assert (found.mrr >= found.hits[1] + (found.hits[5] - found.hits[1]) / 5 - 1e-12).all()


def test_many_items_of_one_rank_each_equal_a_literal_loop():
    rng = np.random.default_rng(9)
    items = [(rng.integers(2, 16, rng.integers(1, 5)) / 2).tolist() for _ in range(200)]
    items[:2] = [[1.0, 1.0], [2.0, 2.0, 1.0]]
    starts = np.cumsum([0, *(len(ranks) for ranks in items[:-1])])
    ks = (1, 2, 5)
    # no ranking gives a rank below the number of golds tied at it
    items = [[r + len(ranks) - 1 for r in ranks] for ranks in items]
    found = cloze.at_ranks(np.concatenate(items), starts, ks)
    for number, ranks in enumerate(items):
        above = [sum(other < r for other in ranks) + (ranks.count(r) - 1) / 2 for r in ranks]
        alone = [1 / (r - others) for r, others in zip(ranks, above, strict=True)]
        assert of_item(found, number) == pytest.approx(
            {**{f"hits {k}": float(min(ranks) <= k) for k in ks},
             **{f"recall {k}": np.mean([r <= k for r in ranks]) for k in ks},
             "mrr": 1 / min(ranks), "mrra": 1 / np.mean(ranks), "filtered": np.mean(alone),
             "ceiling": 2 / (len(ranks) + 1)},
        )  # fmt: skip


def test_golds_tied_for_first_are_each_first_without_the_other():
    """This holds beside a tied wrong candidate too, where each alone has a mean rank of 1.5."""
    starts = np.array([0, 2])
    assert cloze.at_ranks(np.array([1.5, 1.5, 2.0, 2.0]), starts).filtered.tolist() == [1, 1 / 1.5]


def test_the_baseline_counts_golds_of_training_rows():
    ranked = frequency.rank([[4, 2], [2], [0]], [[2], [4, 1], [3]], 5, seed=1, tails=40)
    assert ranked.counted == 3
    assert ranked.hits[1].tolist() == [1, 0, 0]
    assert ranked.hits[5].tolist() == [1, 1, 0]
    assert (ranked.mrr[:, 0] == 1).all()
    assert (ranked.mrr[:, 1] == 0.5).all()
    assert set(ranked.mrr[:, 2].tolist()) == {1 / 4, 1 / 5}
    again = frequency.rank([[4, 2], [2], [0]], [[2], [4, 1], [3]], 5, seed=1, tails=40)
    assert (again.mrra == ranked.mrra).all()


def test_a_random_order_is_the_mean_over_all_orders():
    """Enumerate the 720 orders of six candidates, two or three of which are right."""
    orders = list(itertools.permutations(range(1, 7)))
    for golds in (1, 2, 3):
        best = [min(order[:golds]) for order in orders]
        found = frequency.at_random([golds], 6)
        assert found["R@1"] == pytest.approx(sum(b <= 1 for b in best) / 720)
        assert found["R@5"] == pytest.approx(sum(b <= 5 for b in best) / 720)
        assert found["MRR"] == pytest.approx(sum(1 / b for b in best) / 720)
    both = frequency.at_random([1, 3], 6)
    for metric, value in both.items():
        single = [frequency.at_random([g], 6)[metric] for g in (1, 3)]
        assert value == pytest.approx(sum(single) / 2)
    assert frequency.at_random([1], 3)["R@5"] == 1.0


def test_baselines_have_fractional_recall():
    """Golds are 2 and 3, 2 is most frequent in training; random orders take any two of six."""
    ranked = frequency.rank([[4, 2], [2], [0]], [[2, 3], [1]], 6, recall="share")
    assert ranked.hits[1].tolist() == [0.5, 0]
    assert ranked.hits[5].tolist() == [0.5, 0]
    orders = list(itertools.permutations(range(1, 7)))
    for k in (1, 5):
        parts = [np.mean([rank <= k for rank in order[:2]]) for order in orders]
        assert frequency.at_random([2], 6, "share")[f"R@{k}"] == pytest.approx(np.mean(parts))
    assert frequency.at_random([2], 3, "share")["R@5"] == 1.0


def test_the_baseline_needs_training_rows():
    with pytest.raises(ValueError, match="there are none"):
        frequency.rank([], [[0]], 3)

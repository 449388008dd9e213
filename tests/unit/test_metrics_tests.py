"""Significance tests of differences against their definitions."""

import itertools
import math
import random
from statistics import NormalDist

import numpy as np
import pytest

from kgprobe.metrics.tests import detectable, exchange_error, exchange_p, holm, two_sided


def test_holm_rejects_what_the_step_down_procedure_rejects():
    """Holm 1979: from the smallest p on, reject while p <= level / (number of tests left)."""
    source = random.Random(0)
    for n, level in itertools.product(range(1, 7), (0.01, 0.05, 0.2)):
        for _ in range(30):
            found = [round(source.random() ** 3, 3) for _ in range(n)]
            rejected: set[int] = set()
            left = sorted(range(n), key=lambda i: found[i])
            while left and found[left[0]] <= level / len(left):
                rejected.add(left.pop(0))
            corrected = holm(found)
            assert {i for i in range(n) if corrected[i] <= level + 1e-12} >= rejected
            assert {i for i in range(n) if corrected[i] <= level - 1e-12} <= rejected
            assert all(p <= q <= 1 for p, q in zip(found, corrected, strict=True))
    assert holm([]) == []


def test_two_sided_p_is_that_of_the_normal_distribution():
    for difference, error in itertools.product((-3.0, -0.4, 0.0, 1.2), (0.3, 2.0)):
        expected = 2 * (1 - NormalDist(0, error).cdf(abs(difference)))
        assert two_sided(difference, error) == pytest.approx(expected, abs=1e-12)
    assert two_sided(0.0, 0.0) == 1.0
    assert two_sided(0.1, 0.0) == 0.0


def test_the_detectable_difference_has_eighty_percent_power():
    least = detectable(1.5)
    drawn = np.random.default_rng(0).normal(least, 1.5, 40_000)
    fraction = np.mean([two_sided(value, 1.5) < 0.05 for value in drawn])
    assert fraction == pytest.approx(0.8, abs=0.01)


def test_p_of_a_paired_difference_is_that_of_sign_flips():
    """Under the null all sign choices are equally likely: enumerate them and count the fraction
    with a mean farther from 0, plus half of those equally far."""
    generator = np.random.default_rng(3)
    # of up to four, of seven, and of five and seven options under three templates
    ties = ([-1 / 2, 1 / 12, 3 / 4], [-1 / 9, 5 / 12, 1 / 2], [-1 / 7, 1 / 12], [1 / 15, -2 / 21])
    for values in ([-1.0, -1 / 3, 0.0, 2 / 3, 1.0], [-1.0, 0.0, 1.0], *ties):
        for _ in range(4):
            differences = generator.choice(values, 13)
            signs = np.array(list(itertools.product((-1, 1), repeat=len(differences))))
            means = np.abs((signs * differences).mean(axis=1))
            assert exchange_error(differences) == pytest.approx((means**2).mean() ** 0.5, rel=1e-12)
            farther = (means > abs(differences.mean()) + 1e-12).mean()
            as_far = (means > abs(differences.mean()) - 1e-12).mean() - farther
            assert exchange_p(differences) == pytest.approx(farther + as_far / 2, abs=1e-12)
    assert exchange_error(np.zeros(4)) == 0.0
    assert exchange_p(np.zeros(4)) == 1.0
    assert exchange_p(np.array([1.0, 1.0, 1.0, 5e-17])) == 0.125


def test_p_of_right_against_wrong_is_the_mcnemar_mid_p():
    """b pairs are right for the first only, c for the second only: binomial of b in b + c."""
    for b, c in itertools.product(range(7), range(1, 9)):
        differences = np.array([1.0] * b + [-1.0] * c + [0.0] * 5)
        chances = [math.comb(b + c, k) / 2 ** (b + c) for k in range(b + c + 1)]
        k = min(b, c)
        below, at = sum(chances[:k]), chances[k]
        expected = 1 - at / 2 if b == c else 2 * below + at
        assert exchange_p(differences) == pytest.approx(expected, abs=1e-12)


def test_p_does_not_depend_on_the_unit_of_the_differences():
    """Four subjects differ, all in one direction: of 16 choices of signs, two are as far from 0.

    The unit is that of a sum over subjects, scaled to the mean over 800 items in three templates.
    """
    differences = np.array([1.0] * 4 + [0.0] * 795) / 3 * 799 / 800
    assert exchange_p(differences) == pytest.approx(2 / 16 / 2, abs=1e-12)
    assert exchange_p(np.array([3.0, -1.0, 2.0]) * math.pi) == exchange_p(
        np.array([3.0, -1.0, 2.0])
    )


def test_p_is_normal_for_many_pairs_or_values_off_the_grid():
    generator = np.random.default_rng(5)
    many = generator.choice([-1.0, 1.0], 1001, p=[0.47, 0.53])
    fine = generator.integers(80, 85, 450) * generator.choice([-1, 1], 450) / 84
    for differences in (many, fine, generator.uniform(-1, 1, 30)):
        assert exchange_p(differences) == two_sided(differences.mean(), exchange_error(differences))
        assert exchange_p(differences[:1000]) == pytest.approx(
            two_sided(differences[:1000].mean(), exchange_error(differences[:1000])), abs=2e-3
        )

"""The bootstrap against slow loops that draw units, strata and clusters by hand."""

import numpy as np
import pytest
from scipy.stats import norm, t

from kgprobe.metrics.bootstrap import bootstrap
from kgprobe.metrics.intervals import Interval, fisher, resamples, student, wilson
from kgprobe.sampling import hash_key


def bounds_by_hand(drawn, freedom):
    """Return percentiles widened by Student's t with these degrees of freedom."""
    tail = norm.cdf(-t.ppf(0.975, freedom))
    return pytest.approx(np.quantile(drawn, [tail, 1 - tail]))


def degrees_by_hand(sizes, weights):
    """Return Satterthwaite's degrees of freedom of a sum over strata: a unit of a stratum has its
    weight, and all units vary alike."""
    errors = [n * w**2 for n, w in zip(sizes, weights, strict=True)]
    return sum(errors) ** 2 / sum(e**2 / (n - 1) for n, e in zip(sizes, errors, strict=True))


def drawn_by_hand(values, names, seed, draws):
    """Return lists of resampled units for every draw, n - 1 per stratum of n."""
    weights = {}
    for name in sorted(set(names)):
        inside = [i for i, owner in enumerate(names) if owner == name]
        one = resamples(len(inside), draws, hash_key(seed, "bootstrap", name))
        weights[name] = (inside, one)
    for draw in range(draws):
        yield {
            name: [values[i] for i in np.repeat(inside, own[draw])]
            for name, (inside, own) in weights.items()
        }


def test_default_is_two_thousand_draws():
    assert len(bootstrap(np.arange(5) / 5).draws()) == 2000


def test_means_of_units_and_of_equally_weighted_strata():
    values, names = np.random.default_rng(3).random(30), ["P1"] * 20 + ["P2"] * 10
    boot = bootstrap(values, names, seed=5, draws=200)
    whole, macro = [], []
    for draw in drawn_by_hand(values, names, 5, 200):
        assert (len(draw["P1"]), len(draw["P2"])) == (19, 9)
        whole.append((20 * np.mean(draw["P1"]) + 10 * np.mean(draw["P2"])) / 30)
        macro.append((np.mean(draw["P1"]) + np.mean(draw["P2"])) / 2)
    assert boot.draws() == pytest.approx(whole)
    assert boot.draws(0, boot.macro()) == pytest.approx(macro)
    assert boot.interval()[:2] == bounds_by_hand(whole, degrees_by_hand([20, 10], [1, 1]))
    # the smaller stratum errs more, and a mean of two means depends on it
    fewer = degrees_by_hand([20, 10], [1 / 20, 1 / 10])
    assert boot.interval(0, boot.macro())[:2] == bounds_by_hand(macro, fewer)
    assert 9 < fewer < 19 < degrees_by_hand([20, 10], [1, 1]) < 28
    assert degrees_by_hand([10, 10], [1, 1]) == pytest.approx(18)
    only = np.array([0.0, 1.0])
    assert boot.interval(0, only)[:2] == bounds_by_hand(boot.draws(0, only), 9)
    assert boot.interval().kind == "bootstrap"
    assert boot.mean(0, boot.macro()) == pytest.approx(
        (values[:20].mean() + values[20:].mean()) / 2
    )


def test_clusters_are_drawn_whole_and_the_mean_is_still_that_of_units():
    values = np.array([1.0, 0.0, 0.5, 1.0, 0.25, 0.0])
    clusters = ["b", "a", "a", "c", "b", "b"]
    boot = bootstrap(values, clusters=clusters, seed=2, draws=100)
    groups = {"a": [0.0, 0.5], "b": [1.0, 0.25, 0.0], "c": [1.0]}
    loop = []
    for draw in drawn_by_hand(list("abc"), ["", "", ""], 2, 100):
        loop.append(np.mean([v for name in draw[""] for v in groups[name]]))
    assert boot.draws() == pytest.approx(loop)
    assert boot.mean() == pytest.approx(values.mean())
    assert boot.interval() == (*boot.interval()[:2], "cluster bootstrap")
    assert boot.interval()[:2] == bounds_by_hand(loop, 2)
    with pytest.raises(ValueError, match="cluster 'b' lies in two strata"):
        bootstrap(values, ["P1"] * 3 + ["P2"] * 3, clusters)


def test_a_relation_weighs_the_same_however_many_units_are_drawn():
    """The mean of the relations' means in every draw of whole clusters, some larger than others;
    two relations of one cluster each are drawn as one stratum."""
    groups = {
        "P1": {"a": [1.0], "b": [1.0, 0.0, 1.0, 1.0, 1.0], "c": [0.0, 1.0]},
        "P2": {"d": [0.0] * 6, "e": [1.0], "f": [0.0, 0.25], "g": [0.0]},
        "P3": {"h": [0.5, 0.25]},
        "P4": {"i": [1.0, 0.0, 0.75]},
    }
    units = [(v, p, c) for p, own in groups.items() for c, values in own.items() for v in values]
    values, strata, clusters = map(list, zip(*units, strict=True))
    boot = bootstrap(np.array(values), strata, clusters, seed=3, draws=200)
    names = [(c, p) for p in ("P1", "P2") for c in groups[p]]
    singles = resamples(2, 200, hash_key(3, "bootstrap", "P3", "P4"))
    loop = []
    drawn = drawn_by_hand([c for c, _ in names], [p for _, p in names], 3, 200)
    for draw, (often, _) in zip(drawn, singles, strict=True):
        means = [np.mean([v for c in draw[p] for v in groups[p][c]]) for p in ("P1", "P2")]
        # one of the two, in place of both
        means += [np.mean(groups["P3"]["h"] if often else groups["P4"]["i"])] * 2
        loop.append(np.mean(means))
    assert boot.draws(0, boot.macro()) == pytest.approx(loop)


def test_differences_are_paired_and_have_no_bounds_where_nothing_varies():
    first = np.random.default_rng(1).random(40)
    boot = bootstrap(np.column_stack([first, first / 2 + 0.1, first]), seed=4)
    value, result = boot.difference(0, 1)
    assert value == pytest.approx((first / 2 - 0.1).mean())
    assert result.kind == "paired bootstrap"
    assert result.high - result.low == pytest.approx(
        (boot.interval(0).high - boot.interval(0).low) / 2
    )
    assert boot.difference(0, 2) == (0, None)


def test_ratios_skip_draws_with_a_zero_denominator():
    above, below = np.array([0.5, 0.0, 1.0, 0.0]), np.array([1.0, 0.0, 1.0, 0.0])
    boot = bootstrap(np.column_stack([above, below]), seed=6, draws=300)
    value, result = boot.ratio(0, 1)
    pairs = list(zip(above, below, strict=True))
    drawn = [np.sum(draw[""], axis=0) for draw in drawn_by_hand(pairs, [""] * 4, 6, 300)]
    kept = [a / b for a, b in drawn if b > 0]
    assert value == pytest.approx(0.75)
    assert 0 < len(kept) < 300
    # two units count in the denominator
    assert boot.degrees_of_freedom(1) == 1
    assert result[:2] == bounds_by_hand(kept, 1)
    with pytest.raises(ValueError, match="a ratio over a sum of 0"):
        bootstrap(np.zeros((3, 2))).ratio(0, 1)


def test_wilson_for_proportions_and_constant_draws():
    right = np.array([1.0, 1.0, 0.0, 1.0])
    assert bootstrap(right).interval(is_proportion=True) == Interval(*wilson(3, 4), "wilson")
    assert bootstrap(np.ones(4)).interval() == Interval(*wilson(4, 4), "wilson")
    one = bootstrap(right, ["P1", "P2", "P2", "P2"])
    assert one.interval(0, np.array([1.0, 0.0])) == Interval(*wilson(1, 1), "wilson")


@pytest.mark.parametrize("right", [0.0, 1.0, 1.0 + 1e-15, 0.5])
def test_wilson_for_constant_draws_despite_rounding(right):
    result = bootstrap(np.full(3, right)).interval()
    assert result.kind == "wilson"
    assert result[:2] == pytest.approx(wilson(min(3 * right, 3.0), 3))


def test_the_error_of_a_mean_is_that_of_its_units_however_few():
    """Stratified: the squared error sums the sample variances (n - 1) of strata of n units."""
    values = np.random.default_rng(2).random(24)
    boot = bootstrap(values, [f"P{i // 3}" for i in range(24)], draws=20_000)
    error = np.sqrt(sum(3 * np.var(part, ddof=1) for part in values.reshape(8, 3))) / 24
    assert boot.draws().std() == pytest.approx(error, rel=0.02)
    alone = bootstrap(values[:1])
    assert (alone.draws() == values[0]).all()


def test_single_unit_strata_are_pooled():
    """Drawn separately they would never vary, so a few larger strata would determine the bounds."""
    values, names = np.array([1.0, 0.0, 1.0, 0.25, 1.0, 0.5]), ["P1", "P2", "P3", "P4", "P5", "P5"]
    boot = bootstrap(values, names, seed=3, draws=300)
    single = resamples(4, 300, hash_key(3, "bootstrap", "P1", "P2", "P3", "P4"))
    other = resamples(2, 300, hash_key(3, "bootstrap", "P5"))
    sums = (single @ values[:4]) * 4 / 3 + (other @ values[4:]) * 2
    assert boot.draws() == pytest.approx(sums / 6)
    assert boot.draws(0, boot.macro()) == pytest.approx(
        ((single @ values[:4]) * 4 / 3 + other @ values[4:]) / 5
    )
    degrees = degrees_by_hand([4, 2], [1, 1])
    assert boot.degrees_of_freedom() == pytest.approx(degrees)
    assert boot.interval()[:2] == bounds_by_hand(boot.draws(), degrees)
    assert bootstrap(values, list("abcdef")).interval().kind == "bootstrap"


def test_the_bounds_of_a_correlation_are_those_of_its_transform():
    assert fisher(0.5, 28)[:2] == pytest.approx((0.156, 0.736), abs=1e-3)
    low, high, kind = fisher(0.5, 28, is_of_ranks=True)
    half = (np.arctanh(high) - np.arctanh(low)) / 2
    assert (half, kind) == (pytest.approx(1.96 * np.sqrt(1.125 / 25), rel=1e-4), "fisher")
    assert (fisher(1.0, 4).high, fisher(-1.0, 4).low) == (1.0, -1.0)


def test_student_t_bounds_match_the_printed_table():
    for n, quantile in {2: 12.706, 3: 4.303, 5: 2.776, 10: 2.262}.items():
        values = [float(i) for i in range(n)]
        half = quantile * np.std(values, ddof=1) / np.sqrt(n)
        result = student(values)
        assert result.kind == "student"
        assert result.high - np.mean(values) == pytest.approx(half, rel=1e-3)
        assert np.mean(values) - result.low == pytest.approx(half, rel=1e-3)
    assert student([1.0]) is None


@pytest.mark.parametrize("names", [["P1"], []])
def test_mismatched_lengths_raise(names):
    with pytest.raises(ValueError, match=f"3 rows of values for {len(names)} items"):
        bootstrap(np.zeros(3), names)
    with pytest.raises(ValueError, match="nothing to resample"):
        bootstrap(np.zeros(0))

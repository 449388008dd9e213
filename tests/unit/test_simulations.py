"""Coverage of intervals and size of tests over many simulated samples with known truth."""

import numpy as np
import polars as pl
import pytest
from scipy.stats import pearsonr, spearmanr

from kgprobe.metrics.aggregations import permute_golds
from kgprobe.metrics.bootstrap import bootstrap
from kgprobe.metrics.confidence import BINS, calibration_interval
from kgprobe.metrics.intervals import fisher, of_hits, wilson
from kgprobe.metrics.tests import exchange_p, holm
from kgprobe.tables.claims.comparison import Measured, _difference, _reduce
from kgprobe.tables.study import Study

DRAWS = 2000
#: how often a 95 % interval has to hold the truth
COVERS = (0.935, 0.965)
#: simulated calibration -> the probability of a hit by confidence
CALIBRATIONS = {
    "calibrated": lambda sure: sure,
    "overconfident": lambda sure: 0.7 * sure,
    "waves": lambda sure: np.clip(sure + 0.15 * np.sign(np.sin(12 * sure)), 0, 1),
}


def agreeing(generator, rates):
    """Return means of three templates' hits, which agree on half of the items."""
    common, alone = generator.random(len(rates)) < rates, generator.random((3, len(rates))) < rates
    return np.where(generator.random((3, len(rates))) < 0.5, common, alone).mean(axis=0)


def confidences(generator, n):
    return 0.1 + 0.9 * generator.beta(3, 1.5, n)


def gaps_of(sure, hits):
    """Return an (answers, bins) array: confidence minus hit in the answer's bin."""
    made = np.zeros((len(sure), BINS))
    made[np.arange(len(sure)), np.clip(np.ceil(sure * BINS) - 1, 0, BINS - 1).astype(int)] = (
        sure - hits
    )
    return made


@pytest.mark.nightly(
    gate="unit/test_tables_confidence.py"
    "::test_the_interval_of_the_calibration_error_holds_it_and_nought_where_all_agrees"
)
@pytest.mark.parametrize("name", CALIBRATIONS)
@pytest.mark.parametrize(("n", "least"), [(40, 0.92), (300, 0.94)])
def test_the_calibration_error_interval_covers(name, n, least):
    """It may be too wide by the possible bias, but never too narrow."""
    generator, chance = np.random.default_rng(n), CALIBRATIONS[name]
    sure = confidences(np.random.default_rng(0), 1_000_000)
    truth = np.abs(gaps_of(sure, chance(sure)).mean(axis=0)).sum()
    inside = 0
    for draw in range(DRAWS):
        sure = confidences(generator, n)
        differences = gaps_of(sure, (generator.random(n) < chance(sure)).astype(float))
        drawn = bootstrap(differences, seed=draw, draws=200).drawn.sum(axis=1)
        low, high = calibration_interval(differences.mean(axis=0), drawn[:, :BINS] / n)
        assert low <= np.abs(differences.mean(axis=0)).sum() <= high
        inside += low <= truth <= high
    assert inside / DRAWS >= least


@pytest.mark.nightly(
    gate="unit/test_bootstrap.py::test_the_bounds_of_a_correlation_are_those_of_its_transform"
)
@pytest.mark.parametrize("rho", [0.0, 0.5, 0.8])
@pytest.mark.parametrize("n", [9, 22])
def test_a_correlation_s_interval_covers(n, rho):
    """Of numbers and of their ranks, whose errors are known for large samples only."""
    generator, inside, of_ranks = np.random.default_rng(3), 0, 0
    for _ in range(DRAWS):
        x, z = generator.normal(size=(2, n))
        y = rho * x + np.sqrt(1 - rho**2) * z
        low, high, _ = fisher(float(pearsonr(x, y).statistic), n)
        inside += low <= rho <= high
        low, high, _ = fisher(float(spearmanr(x, y).statistic), n, is_of_ranks=True)
        of_ranks += low <= 6 / np.pi * np.arcsin(rho / 2) <= high
    assert COVERS[0] <= inside / DRAWS <= COVERS[1]
    assert COVERS[0] <= of_ranks / DRAWS <= COVERS[1] + 0.015


@pytest.mark.nightly(
    gate="unit/test_claims.py::test_the_best_of_several_pays_for_having_been_chosen"
)
@pytest.mark.parametrize("probes", [1, 2, 12, 40])
def test_the_best_of_several_null_probes_is_significant_in_5_of_100_runs(probes):
    """The probes agree on half of the items; the baseline is exact or measured like them."""
    generator, n, chance = np.random.default_rng(probes), 100, 0.3
    false = np.zeros(2)
    for _ in range(DRAWS):
        common, alone = generator.random(n) < chance, generator.random((probes, n)) < chance
        hits = np.where(generator.random((probes, n)) < 0.5, common, alone).sum(axis=1)
        numbers = {(i,): Measured(k / n, *wilson(k, n), n) for i, k in enumerate(hits)}
        best = _reduce(numbers, "max", [])[()]
        k = int((generator.random(n) < chance).sum())
        for place, other in enumerate((Measured(chance, chance, chance, n),
                                       Measured(k / n, *wilson(k, n), n))):  # fmt: skip
            _, low, high = _difference([(best, other)])
            false[place] += low > 0 or high < 0
    assert (false / DRAWS <= 0.07).all()


@pytest.mark.nightly(
    gate="unit/test_tables_aggregations.py::test_templates_that_agree_permute_as_one_does"
)
@pytest.mark.parametrize("agreement", [0.0, 0.7, 1.0])
def test_the_band_of_permuted_golds_covers_random_answers(agreement):
    """Answers of three templates that are independent of the golds."""
    generator, n, options = np.random.default_rng(8), 60, 3
    golds, inside = np.eye(options)[np.arange(n) % options], 0
    for draw in range(DRAWS):
        common = generator.integers(0, options, n)
        answered = np.zeros((n, options))
        for _ in range(3):
            alone = generator.integers(0, options, n)
            said = np.where(generator.random(n) < agreement, common, alone)
            answered += np.eye(options)[said] / 3
        fractions, _ = permute_golds(answered, golds, draw)
        low, high = np.quantile(fractions, [0.025, 0.975])
        inside += low <= (answered * golds).sum() <= high
    assert 0.93 <= inside / DRAWS <= 0.985


@pytest.mark.nightly(
    gate="unit/test_bootstrap.py::test_the_error_of_a_mean_is_that_of_its_units_however_few"
)
@pytest.mark.parametrize(("relations", "each"), [(1, 20), (1, 40), (6, 5), (28, 3), (28, 17)])
def test_the_interval_of_a_mean_covers_with_few_items_per_relation(relations, each):
    """Three templates that agree on half of the items."""
    generator, inside = np.random.default_rng([relations, each]), 0
    strata = [f"P{i % relations}" for i in range(relations * each)]
    rates = np.random.default_rng(relations).uniform(0.2, 0.8, relations)
    for draw in range(DRAWS):
        hits = agreeing(generator, np.tile(rates, each))
        boot = bootstrap(hits, strata, seed=draw, draws=400)
        found = boot.interval(0, boot.macro())
        inside += found.low <= rates.mean() <= found.high
    assert COVERS[0] <= inside / DRAWS <= COVERS[1]


@pytest.mark.nightly(
    gate="unit/test_bootstrap.py::test_means_of_units_and_of_equally_weighted_strata"
)
@pytest.mark.parametrize("sizes", [(2, 5, 5, 5, 100), (5, 12, 40, 90, 150)])
def test_the_interval_of_a_mean_over_relations_of_unequal_size_covers(sizes):
    """The smallest relations weigh as much as the largest."""
    generator, inside = np.random.default_rng(sizes), 0
    strata = np.repeat([f"P{i}" for i in range(len(sizes))], sizes)
    rates = np.random.default_rng(len(sizes)).uniform(0.2, 0.8, len(sizes))
    for draw in range(DRAWS):
        boot = bootstrap(agreeing(generator, np.repeat(rates, sizes)), strata, seed=draw, draws=400)
        found = boot.interval(0, boot.macro())
        inside += found.low <= rates.mean() <= found.high
    assert COVERS[0] <= inside / DRAWS <= COVERS[1]


@pytest.mark.nightly(
    gate="unit/test_bootstrap.py::test_clusters_are_drawn_whole_and_the_mean_is_still_that_of_units"
)
@pytest.mark.parametrize("clusters", [12, 40, 100])
def test_the_interval_of_a_mean_over_clusters_covers(clusters):
    """A few clusters of one to seven equal answers."""
    generator, inside = np.random.default_rng(clusters), 0
    for draw in range(DRAWS):
        of = np.repeat(np.arange(clusters), generator.integers(1, 8, clusters))
        hits = generator.random(len(of)) < generator.beta(2, 2, clusters)[of]
        found = bootstrap(hits, clusters=[f"{n:03}" for n in of], seed=draw, draws=400).interval()
        inside += found.low <= 0.5 <= found.high
    assert COVERS[0] <= inside / DRAWS <= COVERS[1]


@pytest.mark.nightly(
    gate="unit/test_bootstrap.py::test_means_of_units_and_of_equally_weighted_strata"
)
@pytest.mark.parametrize("n", [30, 200])
@pytest.mark.parametrize("relations", [2, 10])
def test_the_interval_of_a_paired_difference_covers(relations, n):
    """Two probes of three templates that agree on half of the items."""
    generator, inside = np.random.default_rng([relations, n]), 0
    strata = [f"P{i % relations}" for i in range(n)]
    for draw in range(DRAWS):
        easy = generator.beta(1, 1, n)
        rates = np.array([easy**1.5, easy**0.8])
        hits = (generator.random((3, 2, n)) < rates).mean(axis=0)
        _, found = bootstrap(hits.T, strata, seed=draw, draws=400).difference(0, 1)
        # means of uniform powers
        inside += found.low <= 1 / 2.5 - 1 / 1.8 <= found.high
    assert COVERS[0] <= inside / DRAWS <= COVERS[1]


@pytest.mark.nightly(
    gate="unit/test_metrics_tests.py::test_holm_rejects_what_the_step_down_procedure_rejects"
)
@pytest.mark.parametrize("templates", [1, 3])
@pytest.mark.parametrize("n", [40, 300])
def test_answers_exchanged_at_random_differ_in_5_of_100_runs(templates, n):
    generator, false = np.random.default_rng(n), 0
    for _ in range(DRAWS):
        easy = generator.random(n)
        hits = (generator.random((templates, 2, n)) < easy).mean(axis=0)
        differences = hits[0] - hits[1]
        false += exchange_p(differences) < 0.05
    assert 0.04 <= false / DRAWS <= 0.06


@pytest.mark.nightly(
    gate="unit/test_tables_bear.py::test_each_probe_is_compared_with_the_best_alone"
)
@pytest.mark.parametrize("probes", [2, 12, 40])
def test_a_probe_as_good_as_the_best_is_seldom_called_worse(probes):
    """All probes are equally good; one of them is compared with the best in the sample."""
    generator, n, false = np.random.default_rng(probes), 200, 0
    for _ in range(DRAWS):
        hits = (generator.random((probes, n)) < generator.random(n)).astype(float)
        best = int(np.argmax(hits.mean(axis=1)))
        others = [i for i in range(probes) if i != best]
        found = []
        for i in others:
            differences = hits[best] - hits[i]
            found.append(exchange_p(differences))
        false += dict(zip(others, holm(found), strict=True)).get(0, 1.0) < 0.05
    assert false / DRAWS <= 0.06


@pytest.mark.nightly(gate="unit/test_intervals.py::test_wilson_holds_the_share_and_stays_inside")
@pytest.mark.parametrize("ties", [0.0, 0.2])
@pytest.mark.parametrize("n", [20, 60, 400])
def test_the_interval_of_a_proportion_covers(n, ties):
    """`ties`: number of answers tied for first with a wrong one, which count half."""
    generator, inside = np.random.default_rng(n), 0
    for _ in range(DRAWS):
        rate = generator.uniform(0.05, 0.95)
        hits = (generator.random(n) < rate).astype(float)
        hits = np.where(generator.random(n) < ties, 0.5, hits)
        low, high, _ = of_hits(hits)
        inside += low <= rate * (1 - ties) + 0.5 * ties <= high
    # answers that count half vary less than a proportion, so the interval is too wide
    assert COVERS[0] <= inside / DRAWS <= COVERS[1] + (0.02 if ties else 0)


@pytest.mark.nightly(
    gate="unit/test_slices.py::test_an_interval_is_that_of_drawing_items_within_their_relation"
)
@pytest.mark.parametrize(("n", "relations"), [(90, 3), (90, 30), (600, 3), (600, 30)])
def test_the_interval_of_a_slice_covers(n, relations):
    """A slice holds a third of the items, differently for each relation; three templates agree on
    half of the items."""
    generator, inside = np.random.default_rng([n, relations]), 0
    strata = [f"P{i % relations}" for i in range(n)]
    rates = np.random.default_rng(relations).uniform(0.2, 0.8, relations)[np.arange(n) % relations]
    for draw in range(DRAWS):
        member = (generator.random(n) < 1 / 3).astype(float)
        rows = np.column_stack([agreeing(generator, rates) * member, member])
        _, found = bootstrap(rows, strata, seed=draw, draws=400).ratio(0, 1)
        # each item is in the slice with equal probability, so relations have equal weight
        inside += found.low <= rates.mean() <= found.high
    assert COVERS[0] <= inside / DRAWS <= COVERS[1]


@pytest.mark.nightly(
    gate="unit/test_tables_confidence.py"
    "::test_the_items_of_a_subject_are_drawn_together_and_counted_once"
)
@pytest.mark.parametrize(("relations", "subjects"), [(1, 30), (4, 12), (12, 12)])
def test_the_interval_of_a_study_covers_where_subjects_have_several_items(relations, subjects):
    """One to four items of a subject, on whose answers it has as much influence as its relation:
    the accuracy over items, over relations, under one template, and minus another probe's."""
    generator, inside = np.random.default_rng([relations, subjects]), np.zeros(4)
    rates = np.random.default_rng(relations).uniform(0.3, 0.7, relations)
    every = relations * subjects
    for draw in range(DRAWS):
        each = generator.integers(1, 5, every)
        of = np.repeat(np.arange(every), each)
        relation, rate = of % relations, np.repeat(rates[np.arange(every) % relations], each)
        sure = generator.beta(2 * rate, 2 * (1 - rate))
        sure = sure[np.unique(of, return_index=True)[1]][of]
        names = [f"i{n:04}" for n in range(len(of))]
        rows = pl.DataFrame({
            "item": names, "relation": [f"P{one}" for one in relation], "templates": 1,
            "hit": (generator.random(len(of)) < sure).astype(float),
            "other": (generator.random(len(of)) < sure).astype(float),
        })  # fmt: skip
        items = rows.select("item", "relation", subject=pl.lit("x")).with_columns(
            subject_id=pl.Series([f"Q{one}" for one in of])
        )
        study = Study(items, pl.DataFrame(), pl.DataFrame(), seed=draw)
        truths = rates.mean(), rates.mean(), rates.mean(), 0.0
        found = (
            study.estimate(rows, "hit"),
            study.estimate(rows, "hit", is_macro=True),
            study.estimate(rows, "hit", is_proportion=True),
            study.estimate(rows, "hit", less="other"),
        )
        assert found[0]["n"] == every
        for at, (truth, one) in enumerate(zip(truths, found, strict=True)):
            low, high, _ = one["interval"]
            inside[at] += low <= 100 * truth <= high
    assert 0.93 <= inside.min() / DRAWS <= inside.max() / DRAWS <= 0.97, inside

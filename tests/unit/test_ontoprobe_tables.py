"""OntoProbe's tables: selection of a configuration, metrics per item, premises and settings."""

import itertools
import json
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from scipy.stats import norm, t

from kgprobe import schema
from kgprobe.benchmarks.ontoprobe import modes
from kgprobe.metrics.intervals import resamples
from kgprobe.sampling import hash_key
from kgprobe.tables import results
from kgprobe.tables.answers import Probe
from kgprobe.tables.ontoprobe import calibration, figures, make, memorizing, reasoning, views
from kgprobe.tables.ontoprobe import section as of_paper
from kgprobe.tables.ontoprobe import values as per_item
from kgprobe.tables.report import grid, section
from kgprobe.tables.results import Number
from tests.unit.study_frames import drawn as rows_of
from tests.unit.study_frames import of_rows, write_benchmark

TASKS = ("TP", "SCO", "SPO", "DM", "RG")
#: printed tables without these models
PRINTED = {
    "sizes": pl.DataFrame({"task": ["TP"], "train": [10], "dev": [10], "test": [8789]}),
    "configurations": pl.DataFrame(
        [
            ("TP", "x", "manual1", m, "mean", None, 1.0, 2.0, 1.0, 1.5)
            for m in ("multiple", "single")
        ],
        schema=dict.fromkeys(("task", "model", "template", "masks", "pooling", "loss"), pl.String)
        | dict.fromkeys(per_item.METRICS, pl.Float64),
        orient="row",
    ),
    "memorizing": pl.DataFrame(
        {"model": ["x"], "task": ["TP"], "template": ["manual"], "metric": ["R@1"], "value": [1.0]}
    ),
}


def probe(model="tiny", benchmark="onto_world", prompt="templates", source=""):
    method = "soft" if prompt == "soft" else "cloze"
    return Probe(benchmark, prompt, method, model, "masked", source=source)


def memorized(values, prompt="templates", source="", given=PRINTED, benchmark="onto_released"):
    """Return the numbers of `memorizing` for one model by (task, metric, settings)."""
    own = probe("bert-base-cased", benchmark, prompt, source)
    found = memorizing.memorizing(own, values, given, "distinct", 0)
    return {(x.group, x.metric, *x.setting.values()): x for x in found}


def make_items(rows=40):
    found = []
    for task in TASKS:
        for row in range(rows):
            role = "train" if row < 10 else "dev" if row < 20 else "test"
            meta = {"label": f"{task} {row}", "depth": 1 + row % 3, "leak": row % 5 == 0}
            if task == "TP" and row == 39:
                meta["repeat"] = "TP-38"
            golds = [row % 7] if task in ("DM", "RG") else [row % 7, 7 + row % 2]
            texts = task, role, task, f"s {row}", f"id {row}", "class"
            found.append((f"{task}-{row}", *texts, golds, row, json.dumps(meta)))
    return of_rows(schema.ITEMS, found)


def make_ranks(items, seed=0):
    """Return random rank ranges of every gold in six configurations of two templates."""
    rng = np.random.default_rng(seed)
    rows = []
    asked = items.filter(pl.col("role") != "train").select("item", "answers").rows()
    ways = itertools.product((1, 2), ("multi", "single"), ("mean", "max", "first"))
    for (item, answers), way in itertools.product(asked, ways):
        places = rng.permutation(12)[: len(answers)] + 1
        for gold, best in zip(answers, places.tolist(), strict=True):
            rows.append((item, *way, gold, best, best, best, 1 + gold % 3, -1.0 * best))
    return of_rows(schema.RANKS, rows)


@pytest.fixture(scope="module")
def items():
    return make_items()


@pytest.fixture(scope="module")
def values(items):
    known = per_item.of_items(items)
    return per_item.metrics(per_item.from_ranks(make_ranks(items)), known)


def test_selection_never_uses_a_test_row(values):
    chosen = per_item.choose(values)
    assert set(chosen) == set(TASKS)
    assert per_item.choose(values.filter(role="dev")) == chosen


def test_configurations_are_selected_by_mrra_and_then_by_order(values):
    for task, configuration in per_item.choose(values).items():
        dev = values.filter(role="dev", task=task)
        means = dev.group_by(per_item.CONFIGURATION).agg(pl.col("MRRa").mean())
        own = per_item.of_configuration(dev, configuration)["MRRa"].mean()
        assert own == pytest.approx(means["MRRa"].max())
    equal = values.with_columns(pl.lit(50.0).alias(m) for m in ("MRRa", "MRR", "R@5"))
    assert set(per_item.choose(equal).values()) == {("m1", "multi", "mean", "", 0)}
    others = equal.filter(pl.col("pooling") != "mean")
    assert others["pooling"].unique().sort().to_list() == ["first", "max"]
    for order in (False, True):
        rows = others.sort("pooling", descending=order)
        assert {chosen[2] for chosen in per_item.choose(rows).values()} == {"first"}


def test_the_oracle_is_never_below_the_choice(values):
    found = memorized(values)
    chosen = {key: x for key, x in found.items() if key[2:] == ("chosen",)}
    assert len(chosen) == 20
    for (task, metric, _), number in chosen.items():
        assert found[task, metric, "oracle"].value >= number.value - 1e-9


def test_printed_values_are_shown_for_the_same_configuration_only(values):
    cell = {"task": "TP", "model": "bert-base-cased", "template": "manual2", "masks": "multiple",
            "pooling": "max", "loss": None, "R@1": 1.5, "R@5": 2.5, "MRRa": 0.5,
            "MRR": 2.0}  # fmt: skip
    printed = pl.DataFrame([cell], schema_overrides={"loss": pl.String})
    given = {**PRINTED, "configurations": printed}
    found = memorized(values, source="hub:bert-base-cased", given=given)
    beside = {key: x.published for key, x in found.items() if x.published is not None}
    own = ("TP", "m2", "multi", "max")
    metrics = dict(zip(("R@1", "R@5", "MRRa", "MRR"), (1.5, 2.5, 0.5, 2.0), strict=True))
    assert beside == {(own[0], m, *own[1:]): value for m, value in metrics.items()}
    assert all(x.interval.low <= x.value + 1e-9 for x in found.values())
    assert all(x.interval.high >= x.value - 1e-9 for x in found.values())


def test_soft_prompts_are_selected_separately_from_manual_ones(items, values):
    soft = soft_values(items, (0,))
    printed = pl.DataFrame(
        {"model": ["bert-base-cased"], "task": ["TP"], "template": ["soft"]}
    ).with_columns(metric=pl.lit("R@1"), value=20.1)
    found = memorized(soft, "soft", "hub:bert-base-cased", {**PRINTED, "memorizing": printed})
    assert {("TP", "MRR", way) for way in ("chosen", "fixed", "oracle")} <= set(found)
    beside = {key: x.published for key, x in found.items() if x.published is not None}
    assert beside == {("TP", "R@1", "oracle"): 20.1}
    assert per_item.fixed(soft, "TP") == ("soft", "multi", "mean", "BCE", 0)


COUNTS = pl.Series([1, 2, 2, 1], dtype=pl.Int32)


def test_ranks_from_sentence_scores_are_tie_ranges(items):
    item = items.filter(item="DM-30")  # gold 2
    values = zip((-9.0, -8.0, -7.0, -6.0), (-2.0, -4.0, -4.0, -8.0), (1, 2, 2, 2), strict=True)
    rows = [("DM-30", 1, c, total, 9, own, n, None) for c, (total, own, n) in enumerate(values)]
    scores = of_rows(schema.SCORES, rows)
    found = per_item.from_scores(scores, item)
    by = {r["pooling"]: (r["best"], r["worst"]) for r in found.iter_rows(named=True)}
    assert by == {"answer_mean": (1, 3), "sum": (2, 2)}
    # ties go to fewer tokens, then to the lower index
    tied = per_item.from_scores(scores.with_columns(sum=-4.0, answer_count=COUNTS), item)
    columns = ("gold", "best", "worst", "in_order", "tokens")
    assert tied.filter(pooling="sum").select(columns).rows() == [(2, 1, 4, 4, 2)]


def test_a_causal_models_answer_reaches_to_the_end_where_a_clause_follows(items, tmp_path):
    """Its answer's own tokens are read before the clause: they are the same for every property."""
    some = items.filter(pl.col("item").is_in(["TP-30", "DM-30"])).with_columns(
        answers=pl.lit([1], dtype=pl.List(pl.Int32))
    )
    rows = [
        (item, 1, c, -20.0, 9, own, n, end)
        for item in ("TP-30", "DM-30")
        for c, (own, n, end) in enumerate(((-2.0, 1, -9.0), (-6.0, 2, -7.0)))
    ]
    scores = of_rows(schema.SCORES, rows)
    schema.write(scores, schema.SCORES, tmp_path / "scores.parquet")
    causal = replace(probe(), method="sentence", kind="causal")
    best = {}
    for one in (causal, replace(causal, kind="masked"), replace(causal, prompt="question")):
        read = make.read_answers(one, tmp_path / "scores.parquet", some)
        ranks = per_item.from_scores(read, some).filter(pooling="answer_mean")
        best[one.kind, one.prompt] = dict(ranks.select("item", "best").rows())
        assert set(ranks["tokens"]) == {2}
    only_own = {"TP-30": 2, "DM-30": 2}
    assert best["causal", "templates"] == {"TP-30": 2, "DM-30": 1}
    assert best["masked", "templates"] == best["causal", "question"] == only_own
    free = pl.DataFrame({"relation": ["SPO", "RG"], "answer_sum": [-1.0, -1.0],
                         "answer_count": [2, 2], "continuation_sum": [-3.0, -3.0]})  # fmt: skip
    assert per_item.to_the_end(free, causal)["answer_sum"].to_list() == [-1.0, -3.0]
    assert per_item.CONTINUED == ("DM", "RG")


def test_groups_remove_leaks_and_split_by_depth_and_by_tokens_of_the_finest_gold(items, values):
    found = list(memorizing.groups(probe(), values, "distinct", 0))
    n = {x.slice: x.n for x in found if (x.group, x.metric) == ("SCO", "MRR")}
    assert n["without leaks"] == 16
    assert sum(n[f"depth {d}"] for d in (1, 2, 3)) == 20
    finest = items.filter(relation="SCO", role="test")["answers"].list.first().to_list()
    sizes = {f"tokens {t}": sum(1 + g % 3 == t for g in finest) for t in (1, 2, 3)}
    assert {name: size for name, size in n.items() if name.startswith("tokens")} == sizes


@pytest.mark.parametrize("size", [6, 7])
def test_splits_are_disjoint_equal_and_leave_the_middle_out(size):
    values = np.random.default_rng(size).random(size)
    ranked = pl.DataFrame({"item": range(size), "rule": "r", "MRR": values, "rank": 1 / values})
    found = reasoning.split_by_rank(ranked.with_columns(row="item"))
    known, unknown = (found.filter(known=c)["item"].to_list() for c in (1, 0))
    assert len(known) == len(unknown) == size // 2
    scores = dict(enumerate(values))
    assert min(scores[i] for i in known) > max(scores[i] for i in unknown)
    assert len(found) == size


def make_cases(rows=8):
    found = []
    for rule in reasoning.RULES:
        for row in range(rows):
            meta = json.dumps({"p1_item": f"T-{row}"})
            found.append((f"{rule}-{row}", rule, "test", rule, "s", "s", "class", [0], row, meta))
    return of_rows(schema.ITEMS, found)


def test_nine_settings_are_row_filters_and_empty_ones_are_left_out():
    cases = make_cases()
    first = pl.DataFrame([(f"T-{r}", 1 - r / 10, 1.0) for r in range(8)],
                         schema=["item", "MRR", "rank"], orient="row")  # fmt: skip
    second = cases.select("item", MRR=1 - pl.col("row") / 10, rank=1.0)
    premises = reasoning.classify(cases, first, second)
    first_of = dict(premises.select("item", "first").rows())
    assert [first_of[f"rdfs2-{k}"] for k in (0, 3, 4, 7)] == [1, 1, 0, 0]
    ways = [*itertools.product((True, False), (True, False), (0, 1))]
    answers = pl.DataFrame(
        [(item, "manual+manual", a, b, pair, 0.5 + 0.25 * a + 0.125 * b + 0.01 * pair)
         for item in cases["item"] for a, b, pair in ways],
        schema=["item", "scheme", "p1", "p2", "pair", "MRR"], orient="row",
    )  # fmt: skip
    found = reasoning.settings(answers, {"manual": premises})
    own = found.filter(rule="rdfs9")
    n = dict(own.group_by("premise").len().rows())
    assert n == {
        "P1 EX, P2 EX": 8, "P1 EX, P2 IM": 4, "P1 EX, P2 NO": 4, "P1 IM, P2 EX": 4,
        "P1 NO, P2 EX": 4, "P1 IM, P2 IM": 4, "P1 NO, P2 NO": 4,
    }  # fmt: skip
    assert own.filter(premise="P1 EX, P2 EX")["MRR"].mean() == pytest.approx(0.88)
    numbers = list(reasoning.estimate_rules({probe(): found}, 0))
    assert {x.setting["premise"] for x in numbers if x.group == "rdfs9"} == set(n)
    assert all(x.n > 0 for x in numbers)
    # MRR falls by 0.1 per row: rows 3 and 4 are on either side of the cut
    cuts = [(x.group, x.setting["premise"], x.slice, x.value, x.n)
            for x in reasoning.estimate_cuts(probe(), {"manual": premises})]  # fmt: skip
    sides = ("first not memorized", 0.6, 4), ("last memorized", 0.7, 4)
    expected = itertools.product(("P1", "P2"), sorted(reasoning.RULES), sides)
    assert cuts == [(rule, p, side, pytest.approx(v), n) for p, rule, (side, v, n) in expected]
    # the second pair is better by 0.01 in every row
    spread = list(reasoning.estimate_spread(probe(), answers, {"manual": premises}))
    assert {x.setting["premise"] for x in spread if x.group == "rdfs9"} == set(n)
    assert [x.value for x in spread] == pytest.approx([0.01 / 2**0.5] * len(spread))
    assert {x.n for x in spread} == {2}
    one = answers.filter(pair=0)
    assert not list(reasoning.estimate_spread(probe(), one, {"manual": premises}))


def settled(*rows):
    """Return frames of `settings`; rows: rule, scheme, premise, first row, last row, MRR of
    each."""
    made = [
        (rule, scheme, f"{rule}-{row}", value, premise)
        for rule, scheme, premise, first, last, value in rows
        for row in range(first, last)
    ]
    return pl.DataFrame(made, schema=["rule", "scheme", "item", "MRR", "premise"], orient="row")


BOTH, NONE = "P1 EX, P2 EX", "P1 IM, P2 IM"


def test_figure_4_averages_schemes_over_models_and_rules():
    frame = settled(
        ("rdfs2", "manual+manual", BOTH, 0, 10, 0.2),
        ("rdfs3", "manual+manual", BOTH, 0, 30, 0.4),
        ("rdfs2", "soft+soft", BOTH, 2, 12, 0.6),
        ("rdfs2", "manual+manual", NONE, 0, 2, 0.2),
        ("rdfs2", "soft+soft", NONE, 0, 4, 0.2),
    )
    found, weighted = (
        {
            (x.model, x.group, x.setting.get("scheme", ""), x.setting["premise"]): x
            for x in reasoning.estimate_rules({probe("m"): frame}, 0)
            if (x.setting["weighting"] == "rows") is by_rows
        }
        for by_rows in (False, True)
    )
    scheme, row = ("", "", "manual+manual", BOTH), ("m", "rdfs2", "", BOTH)
    every = ("", "", "", BOTH)
    assert found[scheme].value == pytest.approx(0.3)
    assert weighted[scheme].value == pytest.approx(0.35)
    assert found[row].value == pytest.approx(0.4)
    assert found[every].value == pytest.approx(0.4)
    # rules are weighted by their 20 and 30 rows, the schemes of one rule equally
    assert weighted[every].value == pytest.approx((20 * 0.4 + 30 * 0.4) / 50)
    # n: distinct rows, not rows times schemes; 0 to 9 and 2 to 11 are twelve
    assert (found[row].n, found[every].n, found[scheme].n) == (12, 42, 40)
    assert found["m", "rdfs2", "", NONE].n == weighted["m", "rdfs2", "", NONE].n == 4
    # the schemes of each model over its rules: with one model, those of all
    assert found["m", "", "manual+manual", BOTH].value == pytest.approx(0.3)
    assert weighted["m", "", "manual+manual", BOTH].value == pytest.approx(0.35)
    assert weighted["m", "", "manual+manual", BOTH].n == 40


def of_rule(rows):
    """Return the number of rdfs2 of one model from rows of `settled`."""
    numbers = reasoning.estimate_rules({probe("m"): settled(*rows)}, 0)
    return next(x for x in numbers if x.group == "rdfs2")


def test_a_row_is_resampled_once_for_all_schemes_that_use_it():
    """A scheme that repeats another's answers adds no information; a loop resamples rows."""
    rng = np.random.default_rng(0)
    values = rng.random(12).round(2)
    rows = [("rdfs2", "manual+manual", BOTH, k, k + 1, v) for k, v in enumerate(values)]
    twice = rows + [("rdfs2", "soft+soft", *rest) for _, _, *rest in rows]
    one, both = of_rule(rows), of_rule(twice)
    assert one.value == pytest.approx(both.value)
    assert one.interval[:2] == pytest.approx(both.interval[:2])
    # with differing schemes, every sample takes a row with both of its answers
    other = rng.random(12).round(2)
    mixed = rows + [("rdfs2", "soft+soft", BOTH, k, k + 1, v) for k, v in enumerate(other)]
    found = of_rule(mixed)
    order = sorted(range(12), key=lambda k: f"rdfs2-{k}")
    weights = resamples(12, 2000, hash_key(0, "bootstrap", "onto_world/rdfs2"))
    pairs = (values + other)[order] / 2
    draws = [np.mean(np.repeat(pairs, w)) for w in weights]
    tail = norm.cdf(-t.ppf(0.975, 11))
    assert found.interval[:2] == pytest.approx(tuple(np.quantile(draws, [tail, 1 - tail])))


def test_the_bounds_of_a_mean_over_rules_are_as_uncertain_as_its_small_rules():
    rng = np.random.default_rng(1)
    sizes = {"rdfs2": 4, "rdfs3": 24}
    values = {rule: rng.random(n).round(2) for rule, n in sizes.items()}
    rows = [(rule, "manual+manual", BOTH, k, k + 1, v)
            for rule, of in values.items() for k, v in enumerate(of)]  # fmt: skip
    found = next(
        x for x in reasoning.estimate_rules({probe("m"): settled(*rows)}, 0)
        if (x.model, x.setting["weighting"]) == ("", "schemes, rules and models")
    )  # fmt: skip
    draws = 0
    for rule, of in values.items():
        order = sorted(range(len(of)), key=lambda k: f"{rule}-{k}")
        weights = resamples(len(of), 2000, hash_key(0, "bootstrap", f"onto_world/{rule}"))
        draws = draws + weights @ of[order] / (len(of) - 1) / 2
    # Satterthwaite: the variance of a mean of n rows is known with n - 1 degrees of freedom
    degrees = (1 / 4 + 1 / 24) ** 2 / ((1 / 4) ** 2 / 3 + (1 / 24) ** 2 / 23)
    tail = norm.cdf(-t.ppf(0.975, degrees))
    assert found.interval[:2] == pytest.approx(tuple(np.quantile(draws, [tail, 1 - tail])))


def test_models_of_one_set_share_rows_and_those_of_two_sets_do_not():
    frame = settled(("rdfs2", "manual+manual", BOTH, 0, 6, 0.2))

    def n(*asked):
        numbers = reasoning.estimate_rules(dict.fromkeys(asked, frame), 0)
        (own,) = {x.n for x in numbers if not x.model and "scheme" not in x.setting}
        return own

    assert n(probe("a"), probe("b")) == 6
    assert n(probe("a"), probe("a", "onto_released")) == 12


def test_every_cell_of_few_rows_is_marked_at_the_number_and_in_the_figure():
    sizes = {BOTH: 90, "P1 EX, P2 IM": 20, NONE: 19, "P1 NO, P2 NO": 1}
    asked = [("rdfs9", "manual+manual", p, 0, n, 0.5) for p, n in sizes.items()]
    frame = settled(*asked, ("rdfs2", "manual+manual", BOTH, 0, 9, 0.5))
    made = results.frame("ontoprobe", reasoning.estimate_rules({probe("m"): frame}, 0))
    shown = grid.of_view(views.REASONING, made)
    own = next(r for r in shown.rows if "rdfs9" in {c.text for c in r})
    at = dict(zip(shown.heads, own, strict=True))
    texts = {premise: at[premise].text for premise in sizes}
    assert texts == dict(zip(sizes, ("0.500", "0.500", "0.500 †", "0.500 †"), strict=True))
    assert [at[premise].hint for premise in sizes] == ["n = 90", "n = 20", "n = 19", "n = 1"]
    cells = {premise: {"value": 0.5, "n": n} for premise, n in sizes.items()}
    picture = figures._panels({"rdfs9": cells})
    assert {row["P1"] + row["P2"]: row["label"] for row in rows_of(picture)} == {
        "EXEX": "0.50\nn 90", "EXIM": "0.50\nn 20", "IMIM": "0.50 †\nn 19", "NONO": "0.50 †\nn 1"
    }  # fmt: skip
    # EX, IM, NO from the left and from above
    encoding = picture.to_dict()["spec"]["layer"][0]["encoding"]
    at = {axis: (encoding[axis]["field"], encoding[axis]["scale"]["domain"]) for axis in "xy"}
    assert at == {"x": ("P2", ["EX", "IM", "NO"]), "y": ("P1", ["EX", "IM", "NO"])}


def gathered(tmp_path, items, values, is_trained_on, lite=False, more=(), facts=()):
    """Return OntoProbe's RESULTS of one control model; `is_trained_on` maps rows of TP to a bool.
    `lite` adds a subset with four test rows per task and nine candidates in another order; `more`
    holds pairs of further probes and their values, `facts` further rows of TRAINED_ON."""
    kinds = [("class", i, f"kind {i}", f"kind {i}") for i in range(12)]
    candidates = of_rows(schema.CANDIDATES, kinds)
    texts = [(f"{t}-m1", t, 1, "[X] is a [Y] .", "manual") for t in TASKS]

    def written(name, items, candidates):
        frames = {"items": items, "candidates": candidates}
        write_benchmark(frames | {"prompts": of_rows(schema.PROMPTS, texts)}, tmp_path / name)
        return {name: tmp_path / name}

    found = {
        probe("control", prompt=kind, source="control:masked"): own
        for kind in ("soft", "templates")
        if (own := values.filter((pl.col("template") == "soft") == (kind == "soft"))).height
    }
    folders = written("onto_world", items, candidates)
    if lite:
        few = items.filter((pl.col("role") == "test") & pl.col("row").is_between(20, 23))
        turned = few.with_columns(pl.col("answers").list.eval(8 - pl.element()))
        part = candidates.head(9).with_columns(index=8 - pl.col("index")).sort("index")
        folders |= written("onto_world_lite", turned, part)
        own = values.filter(pl.col("item").is_in(few["item"].to_list()))
        both = pl.concat([own, own.with_columns(role=pl.lit("dev"))])
        found[probe("real", "onto_world_lite")] = both
    found |= dict(more)
    fates = [(f"TP/TP {r}", "TP", f"TP {r}", "x", is_trained_on(r)) for r in range(20, 40)]
    told = of_rows(schema.TRAINED_ON, [*fates, *facts])
    study = make.OntoProbeStudy(folders, given=PRINTED, facts=told)
    return results.frame("ontoprobe", make.estimate_memorizing(study, found))


def numbers_of(frame, **wanted):
    """Return the rows of RESULTS with these dimensions, including settings."""
    return frame.filter(*(pl.col(name) == value for name, value in wanted.items()))


def test_chance_for_held_out_statements_is_at_least_that_of_the_most_frequent_answer(
    tmp_path, items, values
):
    """Half of 20 statements are held out, of which two have the class trained on most often."""
    others = [(f"TP/{n}", "TP", f"name{n}", "kind 2", True) for n in range(11)]
    made = gathered(tmp_path, items, values, lambda row: row % 2 == 0, facts=others)
    found = numbers_of(made, metric="chance for held-out", group="TP")
    assert found.select("n", "value").rows() == [(10, 20.0)]
    held_out = [row for row in range(20, 40) if row % 2]
    assert sum(row % 7 == 2 for row in held_out) == 2


def test_the_section_round_trips(tmp_path, items, values):
    made = gathered(tmp_path, items, values, lambda row: row % 2 == 0)
    assert len(of_paper.points(modes.resolve("default"))) == len(modes.SWITCHES)
    assert views.CALIBRATION.of(made).rows
    page = of_paper.section(made, [], {}, "default", modes.Switches())
    section.write(page, tmp_path / "section.json")
    again = section.read(tmp_path / "section.json")
    assert next(g.title for g in again.grids) == "Table 1: sizes"
    assert {d.name for d in again.drawings} == {"ontoprobe_figure5", "ontoprobe_figure6"}
    of_paper.write_texts(made, tmp_path / "texts")
    assert "table1.tsv" in {path.name for path in (tmp_path / "texts").iterdir()}


def test_every_kind_of_template_has_a_separate_calibration(tmp_path, items, values):
    """Manual answers are right for trained-on rows only, soft ones are never right."""
    flags = {f"TP-{row}": row % 2 == 0 for row in range(20, 40)}
    right = pl.col("item").replace_strict(flags, default=False)
    numbers = [pl.when(right).then(100.0).otherwise(10.0).alias(m) for m in ("R@1", "MRR")]
    manual = values.with_columns(numbers).with_columns(
        pl.when(right).then(100.0).otherwise(0.0).alias("R@1")
    )
    soft = soft_values(items, (0,)).with_columns(pl.lit(0.0).alias("R@1"))
    made = gathered(tmp_path, items, pl.concat([manual, soft]), lambda row: row % 2 == 0)
    shown = views.CALIBRATION.of(made)
    assert [row[3] for row in shown.rows] == ["soft", "templates"]
    soft, manual = (
        {key: shown.cells[row, key]["value"] for key in shown.columns} for row in shown.rows
    )
    assert (manual["trained-on", ""], manual["held-out", ""], manual["AUC", ""]) == (100, 0, 1)
    # two golds among twelve candidates
    assert manual["chance for held-out", ""] == pytest.approx(100 * 2 / 12)
    assert manual["limit for held-out", ""] == pytest.approx(15 + 100 * 2 / 12)
    assert soft["trained-on", ""] == 0
    assert not views.HELD_OUT.of(made).rows  # no held-out accuracy is above its limit
    page = of_paper.section(made, [], {}, "default", modes.Switches())
    assert len(page.grids) > 5
    for one in page.grids:
        if not one.title.startswith("Table 4"):
            continue
        for line in one.rows:
            for head, cell in zip(one.heads[2:], line[2:], strict=True):
                is_soft = "soft" in head and cell.text != "–"
                assert ("(?)" in cell.text) == is_soft, (one.title, head, cell.text)


def test_explanations_of_held_out_accuracy_equal_hand_counts():
    """Six held-out subjects, the first three right, and four trained-on ones."""
    kinds = ("club", "band", "river", "city")
    candidates = of_rows(schema.CANDIDATES, [("class", i, n, n) for i, n in enumerate(kinds)])
    asked = [("Rugby Clubs", [0]), ("Slade", [1]), ("Elbe", [2, 3]), ("City of York", [3]),
             ("Blur", [1]), ("Oder", [2])]  # fmt: skip
    rows = [
        (f"TP-{i}", "TP", "test", "TP", name, name, "class", golds, i,
         json.dumps({"label": name}))
        for i, (name, golds) in enumerate(asked)
    ]  # fmt: skip
    items = of_rows(schema.ITEMS, rows)
    facts = [("Blur Band", "band"), ("Abba", "band"), ("Ajax", "club"), ("Nile", "lake")]
    fates = [(f"TP/{s}", "TP", s, o, True) for s, o in facts]
    fates += [(f"TP/{name}", "TP", name, "", False) for name, _ in asked]
    trained_on = of_rows(schema.TRAINED_ON, fates)
    hits = pl.Series("R@1", [100.0, 100.0, 50.0, 0.0, 0.0, 0.0])
    values = per_item.of_items(items).with_columns(hits)
    values = calibration.with_golds(values, items, candidates)
    reasons = calibration.find_reasons(values, trained_on)
    numbers = calibration._count_reasons(Number(), values, reasons)
    found = {(x.slice, x.metric): (round(x.value, 1), x.n) for x in numbers}
    names = calibration.REASONS
    # "Rugby Clubs" a club; band and club were trained on of others; band is trained on most often
    right = [found["held-out, right", n] for n in names]
    assert right == [(33.3, 3), (66.7, 3), (0.0, 3), (33.3, 3)]
    # "City of York" a city; Blur's sibling is "Blur Band", of the commonest class
    assert [found["held-out, wrong", n] for n in names] == [(33.3, 3)] * 4
    assert found["held-out, right", "any of these"] == (66.7, 3)
    assert found["held-out, wrong", "any of these"] == (66.7, 3)


def test_table_4_shows_candidates_and_rows_in_three_versions(tmp_path, items, values):
    """A small subset has fewer candidates, no training rows, and still a baseline."""
    made = gathered(tmp_path, items, values, lambda row: True, lite=True)
    page = of_paper.section(made, [], {}, "default", modes.Switches())
    tables4 = [g for g in page.grids if g.title.startswith("Table 4")]
    assert [g.title.split(": ", 1)[1] for g in tables4] == [
        "one configuration, chosen on the dev rows",
        "the fixed configuration: m, mean, last template (soft: BCE)",
        "oracle (per-metric maximum on test)",
    ]
    sizes = next(g for g in page.grids if g.title.startswith("Table 1"))
    lines = {(r[0].text, r[1].text): r for r in sizes.rows}
    at = sizes.heads.index("candidates")
    counts = [lines["SCO", name][at].text for name in ("onto_world", "onto_world_lite")]
    assert counts == ["12", "9"]
    # rows 0 to 9 of the whole set: golds 0 to 6 and 7, 8 in turns, so 7 and 8 lead
    # by count: 7 and 8 five times, 0, 1 and 2 twice; SCO-20, 22 have gold 7, SCO-21, 23 gold 8
    own = numbers_of(made, model="frequency", benchmark="onto_world_lite", group="SCO")
    cells = dict(own.select("metric", "value").rows())
    assert (cells["R@1"], cells["R@5"]) == (50, 100)
    assert set(own["n"]) == {4}
    # two golds among nine candidates, in a random order of them: the best is at r in 9 - r of 36
    chance = numbers_of(made, model="random", benchmark="onto_world_lite", group="SCO")
    cells = dict(chance.select("metric", "value").rows())
    at = {r: (9 - r) / 36 for r in range(1, 9)}
    expected = {"R@1": 100 * at[1], "R@5": 100 * sum(at[r] for r in range(1, 6)),
                "MRR": 100 * sum(chance / r for r, chance in at.items())}  # fmt: skip
    assert cells == pytest.approx(expected)


@pytest.mark.parametrize("way", ["soft", "sentence", "no dev rows"])
def test_tables_that_do_not_apply_are_left_out(tmp_path, items, values, way):
    if way == "soft":
        values = soft_values(items, (0,))
    if way == "sentence":
        first = values.filter(template="m1", masks="multi", pooling="mean")
        values = first.with_columns(masks=pl.lit("sentence"), pooling=pl.lit("answer_mean"))
    if way == "no dev rows":
        values = values.filter(pl.col("role") != "dev")
    made = gathered(tmp_path, items, values, lambda row: True)  # nothing is held out
    expected = {"table1", "configurations"}
    expected |= {"groups"} if way != "no dev rows" else set()
    expected |= {"figure5", "figure6"} if way != "sentence" else set()
    expected |= {"figure5_manual"} if way == "no dev rows" else set()
    expected |= {"seeds", "figure7"} if way == "soft" else set()
    assert {view.name for view in views.ALL if view.of(made).rows} == expected
    page = of_paper.section(made, [], {}, "default", modes.Switches())
    for shown in [*page.grids, *page.folded]:
        assert shown.rows, shown.title


def scored(values, **changes):
    """Return the model's candidates scored as sentences, and their values in one configuration."""
    first = values.filter(template="m1", masks="multi", pooling="mean")
    rows = first.with_columns(masks=pl.lit("sentence"), pooling=pl.lit("answer_mean"), **changes)
    return replace(probe("control", source="control:masked"), method="sentence"), rows


def test_one_set_may_have_both_rankings_and_scores_of_a_model(tmp_path, items, values):
    missed = values.with_columns(pl.lit(0.0).alias("R@1"))
    given = items, missed, lambda row: row % 2 == 0
    made = gathered(tmp_path, *given, more=[scored(missed, MRR=pl.lit(1.0))])
    of_paper.write_texts(made, tmp_path / "texts")
    text = (tmp_path / "texts/table4_chosen.tsv").read_text()
    assert "onto_world, control, manual\tonto_world, control, manual, sentence" in text
    assert {row[4] for row in views.CALIBRATION.of(made).rows} == {"cloze", "sentence"}


def premises_of(answers, **switches):
    """Return whether a rule's first premise is memorized, by row of SCO."""
    cases = make_cases(40).filter(pl.col("row") >= 20, relation="rdfs9")
    cases = cases.with_columns(pl.col("meta").str.replace("T-", "SCO-"))
    ranks = cases.select("item", kind=pl.lit("manual"), pair=0, best=1, worst=1, in_order=1)
    chosen = modes.resolve("default", switches)
    found = make._classify_premises(probe("control"), cases, ranks, answers, chosen)["manual"]
    return found["first"].to_list()


def test_premises_use_the_ranking_if_a_model_is_scored_as_well(values):
    ranked = probe("control"), values
    other = scored(values, MRR=101 - pl.col("MRR"))
    alone = premises_of(dict([ranked]))
    assert premises_of(dict([other])) != alone
    for both in ([ranked, other], [other, ranked]):
        assert premises_of(dict(both)) == alone


def test_a_premise_is_known_if_its_best_gold_is_in_the_top_five(items):
    places = {"SCO-20": (1, 12), "SCO-21": (5, 12), "SCO-22": (6, 7)}
    golds = dict(items.filter(relation="SCO").select("item", "answers").rows())
    ranks = of_rows(schema.RANKS, [
        (item, 1, "multi", "mean", gold, place, place, place, 1, 0.0)
        for item, own in places.items() for gold, place in zip(golds[item], own, strict=True)
    ])  # fmt: skip
    values = per_item.metrics(per_item.from_ranks(ranks), per_item.of_items(items))
    assert premises_of({probe("control"): values}, premise="threshold")[:3] == [1, 1, 0]


def test_the_best_gold_decides_for_the_second_premise_too(values):
    """With premise_test p1, the test of rdfs5's second premise has several golds."""
    cases = make_cases(2).filter(relation="rdfs5")
    ranks = pl.DataFrame(
        [("rdfs5-0", "manual", 0, n, n, n) for n in (2, 12)]
        + [("rdfs5-1", "manual", 0, n, n, n) for n in (6, 7)],
        schema=["item", "kind", "pair", "best", "worst", "in_order"], orient="row",
    )  # fmt: skip
    chosen = modes.resolve("default", {"premise": "threshold"})
    answers = {probe("control"): values}
    found = make._classify_premises(probe("control"), cases, ranks, answers, chosen)["manual"]
    assert found["second"].to_list() == [1, 0]


def soft_values(items, seeds):
    """Return metrics of one soft configuration under several seeds."""
    frames = []
    for seed in seeds:
        ranks = make_ranks(items, seed).filter(template=1, masks="multi", pooling="mean")
        frames.append(ranks.with_columns(loss=pl.lit("bce"), seed=pl.lit(seed, dtype=pl.Int32)))
    return per_item.metrics(per_item.from_ranks(pl.concat(frames)), per_item.of_items(items))


def test_soft_prompts_are_means_over_seeds_with_students_interval(items):
    values = soft_values(items, (0, 1, 2))
    means = per_item.over_seeds(values)
    assert set(means["seed"]) == {per_item.MEAN}
    item = values.filter(item="TP-20")
    assert means.filter(item="TP-20")["MRR"].item() == pytest.approx(item["MRR"].mean())
    one = soft_values(items, (4,))
    assert per_item.over_seeds(one).equals(one)
    found = memorized(values, "soft")
    test = per_item.select_test_rows(values).filter(task="TP")
    by_seed = test.group_by("seed").agg(pl.col("MRR").mean())["MRR"].to_numpy()
    key = ("TP", "MRR", "soft", "multi", "mean", "BCE")
    number = found[*key, "mean", "seeds"]
    assert number.n == 3
    assert number.value == pytest.approx(by_seed.mean())
    half = 4.30265 * by_seed.std(ddof=1) / np.sqrt(3)
    assert number.interval.high - number.value == pytest.approx(half, rel=1e-5)
    spread = found[*key, "standard deviation", "seeds"].value
    assert spread == pytest.approx(by_seed.std(ddof=1))
    by_one = memorized(one, "soft")
    alone = by_one[*key, "mean", "seeds"]
    assert (alone.n, alone.interval) == (1, None)
    # one seed has no spread, which is not a spread of 0
    assert (*key, "standard deviation", "seeds") not in by_one
    # Table 4: the mean, and the oracle as the best seed
    assert found["TP", "MRR", "chosen"].value == pytest.approx(by_seed.mean())
    oracle = found["TP", "MRR", "oracle"]
    assert oracle.value == pytest.approx(by_seed.max())
    assert oracle.interval.low <= oracle.value <= oracle.interval.high


def test_means_over_seeds_have_no_interval_of_single_proportions(items):
    """Half of the items are always right under one of three seeds, half under two."""
    values = soft_values(items, (0, 1, 2))
    rank = pl.col("item").rank("dense").over("task")
    hit = pl.col("seed") < 1 + rank % 2
    values = values.with_columns(pl.when(hit).then(100.0).otherwise(0.0).alias("R@1"))
    number = memorized(values, "soft")["TP", "R@1", "chosen"]
    test = per_item.select_test_rows(values).filter(task="TP")
    by_item = test.group_by("item").agg(pl.col("R@1").mean())["R@1"]
    assert (number.value, number.n) == (pytest.approx(by_item.mean()), len(by_item))
    half = t.ppf(0.975, len(by_item) - 1) * by_item.std() / np.sqrt(len(by_item))
    assert number.interval.kind == "bootstrap"
    # resamples of nine items have few different means
    assert number.interval.high - number.interval.low == pytest.approx(2 * half, rel=0.15)


def test_chance_in_multiple_choice_equals_hand_counts():
    """Chance is a random option, or the option most frequent in training (ties count half each)."""
    facts = [("TP", "a", True)] * 3 + [("TP", "b", True)] * 2 + [("TP", "d", True)] * 2
    facts += [("TP", "b", False)] * 9 + [("SCO", "b", True)] * 9
    trained_on = pl.DataFrame(facts, ["relation", "object", "trained_on"], orient="row")
    asked = [(["a", "b"], 0), (["c", "b", "a"], 1), (["b", "c", "d"], 2), (["c", "e"], 0)]
    rows = pl.DataFrame(asked, ["options", "gold"], orient="row")
    random, often = calibration._guesses(rows, trained_on, "TP")
    assert random.tolist() == [1 / 2, 1 / 3, 1 / 3, 1 / 2]
    assert often.tolist() == [1.0, 0.0, 0.5, 0.5]


def test_rates_of_hits_have_wilson_s_interval_and_other_metrics_the_bootstrap_s(values):
    rows = per_item.select_test_rows(values).filter(
        task="TP", template="m1", masks="multi", pooling="mean"
    )
    kinds = {x.metric: x.interval.kind
             for x in memorizing.means(Number(), rows, per_item.METRICS, 0)}  # fmt: skip
    assert {kinds["R@1"], kinds["R@5"]} == {"wilson"}
    assert {kind for metric, kind in kinds.items() if metric[:2] != "R@"} == {"bootstrap"}


def test_averages_have_intervals_over_configurations(values):
    given = {probe(): values}, PRINTED["configurations"], "distinct", 0
    found = list(memorizing.compare_configurations(*given))
    setting = {"masks": "single", "weighting": "configurations"}
    (own,) = [x for x in found if (x.metric, x.model, x.setting) == ("MRR", "", setting)]
    test = per_item.select_test_rows(values).filter(masks="single")
    means = test.group_by("task", *per_item.CONFIGURATION).agg(pl.col("MRR").mean())["MRR"]
    assert own.n == means.len() == 30
    assert own.value == pytest.approx(means.mean())
    rng = np.random.default_rng(0)
    literal = [rng.choice(means.to_numpy(), 30).mean() for _ in range(4000)]
    assert own.interval[:2] == pytest.approx(np.quantile(literal, [0.025, 0.975]), abs=0.5)
    # Figure 5 once more, without soft prompts and other poolings
    setting |= {"template": "manual", "pooling": "mean"}
    (own,) = [x for x in found if (x.metric, x.model, x.setting) == ("MRR", "", setting)]
    manual = test.filter(pl.col("template") != "soft", pooling="mean")
    means = manual.group_by("task", "template").agg(pl.col("MRR").mean())["MRR"]
    assert 0 < own.n == means.len() < 30
    assert own.value == pytest.approx(means.mean())


def test_table_7_shows_the_first_test_rows_of_a_task_in_its_last_template(tmp_path):
    kinds = ("band", "river", "city")
    options = of_rows(schema.CANDIDATES, [("class", i, k, k) for i, k in enumerate(kinds)])
    asked = [("Can", "train", [0]), ("the Elbe", "test", [1]), ("bell", "test", [0, 2]),
             ("Oder", "test", [1])]  # fmt: skip
    rows = [(f"TP-{i}", "TP", role, "TP", name, name, "class", golds, i, "{}")
            for i, (name, role, golds) in enumerate(asked)]  # fmt: skip
    # tasks in the order of their prompts
    others = ("DM", "RG", "SCO", "SPO")
    rows += [(f"{t}-0", t, "test", t, t.lower(), t, "class", [0], 0, "{}") for t in others]
    texts = [(f"TP-m{i}", "TP", i, text, "manual")
             for i, text in enumerate(("[X] has the type [Y].", "[X] is a [Y]."), 1)]  # fmt: skip
    texts += [(f"{t}-m1", t, 1, "[X] is a [Y].", "manual") for t in others]
    items, prompts = of_rows(schema.ITEMS, rows), of_rows(schema.PROMPTS, texts)
    write_benchmark({"items": items, "candidates": options, "prompts": prompts}, tmp_path)
    # rivers before cities; in the first template and with one mask, bands
    places = {(2, "multi"): (1, 2), (1, "multi"): (0,), (2, "single"): (0,)}
    best = of_rows(schema.TOPS, [
        (item, template, masks, "mean", place, candidate, 0.0)
        for item in ("TP-1", "TP-2", "TP-3") for (template, masks), named in places.items()
        for place, candidate in enumerate(named, 1)
    ])  # fmt: skip
    found = [*make.examples({probe("m"): best}, {"onto_world": tmp_path})]
    assert [tuple(row.values()) for row in found] == [
        # as asked: a sentence begins with a capital
        *(("m", t, f"{t.capitalize()} is a [MASK].", "", "band") for t in others),
        ("m", "TP", "The Elbe is a [MASK].", "+river, city", "river"),
        ("m", "TP", "Bell is a [MASK].", "river, +city", "band, city"),
    ]


def test_printed_table_1_is_shown_for_the_released_set_only(items):
    candidates = of_rows(schema.CANDIDATES, [("class", i, f"k{i}", f"k{i}") for i in range(12)])
    sets = dict.fromkeys(("onto_released", "onto_world"), (items, candidates))
    found = {
        (x.benchmark, x.slice): (x.value, x.published)
        for x in memorizing.sizes(sets, PRINTED["sizes"])
        if x.group == "TP" and x.metric == "items"
    }
    ours = {"train": 10, "dev": 10, "test": 20, "distinct test": 19}
    printed = {"train": 10, "dev": 10, "test": 8789}
    for name, value in ours.items():
        assert found["onto_released", name] == (value, printed.get(name))
        assert found["onto_world", name] == (value, None)

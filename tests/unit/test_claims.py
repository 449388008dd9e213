"""The papers' claims: what is typed agrees with the printed tables; the rule of the verdicts."""

import csv
import json
import random
import re
from collections import Counter, defaultdict
from itertools import pairwise
from math import log10
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from kgprobe import schema, sheets
from kgprobe.tables import results
from kgprobe.tables.claims import chapter, printed, verdicts
from kgprobe.tables.claims.comparison import (
    ComparisonError,
    IncomparableError,
    Measured,
    Outcome,
    _apart,
    evaluate,
    known,
    parse,
)
from kgprobe.tables.results import Number

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "resources" / "published"
CLAIMS = verdicts.read(FOLDER / "claims.tsv")
BY_NAME = {claim.claim: claim for claim in CLAIMS}
#: Claims whose printed numbers are not the means of two sides: ranges of gains, counts of pairs,
#: two correlations, examples out of many, three bounds of size.
NOT_MEANS = {"O20", "O21", "O22", "O23", "B01", "B02", "B03", "B04", "B05", "B07"}
COUNTS = {"A37": (35, 6), "A38": (32, 9), "A39": (31, 10)}
COMPUTED = 108


@pytest.fixture(scope="module")
def models():
    legal = sheets.read_schema(ROOT / "workflow/schemas/models.schema.json")
    path = ROOT / "config/models.tsv"
    return sheets.by_name(sheets.read_sheet(path, legal), path)


@pytest.fixture(scope="module")
def tables(models):
    return printed.read(FOLDER, models)


@pytest.fixture(scope="module")
def in_print(tables):
    """claim -> what the printed tables say of it."""
    found = {}
    for claim in CLAIMS:
        if claim.comparison is not None:
            try:
                own = tables.filter(paper=claim.paper)
                found[claim.claim] = evaluate(claim.comparison, own)
            except IncomparableError:
                continue
    return found


def rows(name):
    with (FOLDER / f"{name}.tsv").open(encoding="utf-8") as file:
        return list(csv.DictReader(file, delimiter="\t"))


def test_the_sheet_has_191_claims_of_four_papers_and_its_principal_ones():
    papers = Counter(claim.paper for claim in CLAIMS)
    assert papers == {"ontoprobe": 78, "autoprompt": 62, "attributes": 31, "bear": 20}
    assert len(BY_NAME) == 191
    assert sum(claim.opens for claim in CLAIMS) >= 40
    # a page does not open with what nobody can ever compute
    assert all(claim.comparison for claim in CLAIMS if claim.opens)


def test_every_printed_number_of_a_claim_is_what_its_comparison_finds(in_print):
    compared = 0
    for name, outcome in in_print.items():
        if name in NOT_MEANS or name in COUNTS:
            continue
        for side, mean, column in (("a", outcome.a, 0), ("b", outcome.b, 1)):
            told = re.search(rf"\b{side}=([-\d., /]*\d)", BY_NAME[name].printed)
            assert told, (name, BY_NAME[name].printed)
            numbers = [float(n) for n in re.findall(r"-?\d+(?:\.\d+)?", told[1])]
            by_pair = {round(pair[column], 2) for pair in outcome.values}
            is_mean = mean == pytest.approx(np.mean(numbers), abs=0.06)
            assert is_mean or {round(n, 2) for n in numbers} <= by_pair, (name, side, mean, numbers)
            compared += 1
    assert compared > 180


def test_claims_that_hold_in_print_do_and_those_that_fail_do_not(in_print):
    assert len(in_print) >= COMPUTED
    for name, outcome in in_print.items():
        claim = BY_NAME[name]
        holds = {">": outcome.value > 0, "<": outcome.value < 0}.get(
            claim.direction, abs(outcome.value) <= claim.margin
        )
        if claim.holds in ("yes", "no"):
            assert holds == (claim.holds == "yes"), (name, outcome.value, claim.holds)


def test_means_over_cells_are_those_of_a_slow_loop(in_print):
    cells = {
        (r["task"], r["model"], r["template"], r["metric"]): float(r["value"])
        for r in rows("ontoprobe_memorizing")
    }
    gaps = []
    for (task, model, template, metric), value in cells.items():
        if template == "soft":
            gaps.append(value - cells[task, model, "manual", metric])
    assert len(gaps) == 108 == in_print["O38"].pairs
    assert in_print["O38"].value == pytest.approx(np.mean(gaps))
    above = []
    for task in ("TP", "SCO", "SPO", "RG"):
        for metric in ("R@1", "R@5", "MRRa", "MRR"):
            if (task, "bert-base-cased", "soft", metric) not in cells:
                continue
            berts = sorted({m for t, m, _, _ in cells if m.startswith("bert")})
            best = [max(cells[task, m, k, metric] for k in ("soft", "manual")) for m in berts]
            assert len(best) == 4
            above.append(np.mean(best) - cells[task, "frequency-baseline", "", metric])
    assert in_print["O19"].value == pytest.approx(np.mean(above))


def test_averages_over_all_configurations_are_those_of_a_slow_loop(in_print):
    found = defaultdict(list)
    for row in rows("ontoprobe_configurations"):
        found[row["masks"]].append(float(row["R@1"]))
    assert [len(found[m]) for m in ("single", "multiple")] == [342, 342]
    gap = np.mean(found["single"]) - np.mean(found["multiple"])
    assert in_print["O46"].value == pytest.approx(gap)


def test_size_helps_as_numpy_correlates_and_as_families_step(in_print):
    board = [r for r in rows("bear_leaderboard") if r["listed"] == "paper"]
    board = [r for r in board if r["kind"] != "baseline"]
    sizes = [log10(float(r["parameters"])) for r in board]
    scores = [float(r["score"]) for r in board]
    assert len(board) == 22 == in_print["B01"].n
    assert in_print["B01"].value == pytest.approx(np.corrcoef(sizes, scores)[0, 1])
    z, half = np.arctanh(in_print["B01"].value), 1.959964 / np.sqrt(19)
    assert in_print["B01"].low == pytest.approx(np.tanh(z - half), abs=1e-6)
    assert in_print["B01"].high == pytest.approx(np.tanh(z + half), abs=1e-6)
    score = {r["model"]: float(r["score"]) for r in board}
    families = [
        ["bert-base-cased", "bert-large-cased"],
        ["roberta-base", "roberta-large"],
        ["xlm-roberta-base", "xlm-roberta-large"],
        ["gpt2", "gpt2-medium", "gpt2-large", "gpt2-xl"],
        [f"opt-{s}" for s in ("125m", "350m", "1.3b", "2.7b", "6.7b", "13b", "30b")],
        ["Llama-2-7b-hf", "Llama-2-13b-hf"],
        ["gemma-2b", "gemma-7b"],
    ]
    steps = [score[one] - score[other] for members in families for other, one in pairwise(members)]
    assert in_print["B04"].pairs == len(steps) == 14
    assert in_print["B04"].value == pytest.approx(np.mean(steps))
    size = {r["model"]: float(r["parameters"]) for r in board}
    kind = {r["model"]: r["kind"] for r in board}
    near = [
        score[m] - score[c]
        for m in score
        for c in score
        if (kind[m], kind[c]) == ("masked", "causal")
        and max(size[m], size[c]) <= 1.25 * min(size[m], size[c])
    ]
    assert in_print["B05"].pairs == len(near) == 7
    assert in_print["B05"].value == pytest.approx(np.mean(near), abs=1e-9)


def test_wins_are_counted_over_relations(in_print):
    for name, (won, lost) in COUNTS.items():
        outcome = in_print[name]
        above = sum(a > b for a, b in outcome.values)
        below = sum(a < b for a, b in outcome.values)
        assert (above, below) == (won, lost)
        assert outcome.n == outcome.pairs == 41
        assert outcome.value == pytest.approx(100 * won / (won + lost) - 50)


def test_the_largest_model_is_the_one_with_the_most_parameters(in_print):
    printed_at_1 = {
        (r["benchmark"], r["printed_model"]): r["at_1"] for r in rows("attributes_scores")
    }
    names = ("symmetry", "asymmetry", "hierarchy", "composite", "entity_centric", "bias")
    others = ("BERT", "RoBERTa", "T5", "GPT-3")
    gaps = [
        float(printed_at_1[b, "GPT-4"]) - max(float(printed_at_1[b, m]) for m in others)
        for b in names
    ]
    assert in_print["K03"].value == pytest.approx(np.mean(gaps))
    assert in_print["K01"].a == pytest.approx(23.77, abs=0.005)


def test_the_interval_of_a_difference_is_newcombe_s():
    """Newcombe 1998 (Statistics in Medicine 17, p. 873), Table II (a): 56/70 less 48/80, method
    10: 0.0524 to 0.3339; Wilson's intervals of both are in the same paper's terms."""
    from kgprobe.metrics.intervals import wilson

    sides = [Measured(k / n, *wilson(k, n), n) for k, n in ((56, 70), (48, 80))]
    value, low, high = _apart(*sides)
    assert value == pytest.approx(0.2)
    assert (low, high) == pytest.approx((0.0524, 0.3339), abs=5e-5)


def outcome(value, low, high, n=100, sides=((), ())):
    return Outcome(value, 0.0, value, low, high, n, 1, sides)


def judged(direction, own, margin=5.0, p=None, there=None):
    claim = next(c for c in CLAIMS if c.direction == direction and c.comparison)
    claim = type(claim)(**{**vars(claim), "margin": margin})
    chance = verdicts.chance(claim, own) if p is None else p
    return verdicts.verdict(verdicts.Found(claim, own, "", there), chance)[0]


@pytest.mark.parametrize(
    ("direction", "bounds", "expected"),
    [
        (">", (10, 5, 15), "same direction"),
        (">", (-10, -15, -5), "opposite"),
        (">", (3, -2, 8), "undecided"),
        ("<", (-10, -15, -5), "same direction"),
        ("<", (10, 5, 15), "opposite"),
        ("=", (1, -2, 4), "same direction"),
        ("=", (9, 6, 12), "opposite"),
        ("=", (-9, -12, -6), "opposite"),
        ("=", (4, 1, 7), "undecided"),
        ("=", (7, 4, 10), "undecided"),
    ],
)
def test_a_verdict_follows_from_the_interval(direction, bounds, expected):
    assert judged(direction, outcome(*map(float, bounds))) == expected


def test_what_is_not_enough_is_undecided():
    assert judged(">", outcome(10.0, None, None)) == "undecided"
    assert judged(">", outcome(10.0, 5.0, 15.0, n=19)) == "undecided"
    assert judged(">", outcome(10.0, 5.0, 15.0), p=0.05) == "undecided"
    assert judged(">", outcome(10.0, 5.0, 15.0), p=0.049) == "same direction"


def test_p_is_that_of_the_bound_towards_zero():
    claim = BY_NAME["O01"]
    assert verdicts.chance(claim, outcome(10.0, 0.0, 12.0)) == pytest.approx(0.05, abs=1e-9)
    assert verdicts.chance(claim, outcome(-10.0, -11.0, 0.0)) == pytest.approx(0.05, abs=1e-9)
    assert verdicts.chance(claim, outcome(0.0, 0.0, 0.0)) == 1.0
    assert verdicts.chance(claim, outcome(1.0, 1.0, 1.0)) == 0.0


def as_ours(tables, shift=0.0, half=0.01):
    """The printed tables as if a run had measured them, with tight intervals."""
    own = tables.select(list(schema.RESULTS.columns)).with_columns(
        published=pl.col("value"), source=pl.lit("print"), n=pl.lit(500, dtype=pl.Int64)
    )
    is_model = pl.col("model") != ""
    return own.with_columns(
        value=pl.col("value") + shift,
        low=pl.when(is_model).then(pl.col("value") + shift - half),
        high=pl.when(is_model).then(pl.col("value") + shift + half),
        interval=pl.lit("wilson"),
    )


def test_a_run_that_measures_what_was_printed_reproduces_every_claim(tables, models, in_print):
    every = {**models, **{n: {"source": "", "kind": "api", "parameters": p}
                          for n, (_, p) in printed.ELSEWHERE.items()}}  # fmt: skip
    sizes = dict(tables.select("model", "parameters").unique().drop_nulls().rows())
    for name, size in sizes.items():
        kind = tables.filter(model=name)["kind"][0]
        every[name] = {"source": "hub:x", "kind": kind, "parameters": str(size)}
    found = verdicts.find(CLAIMS, as_ours(tables), every, tables)
    claims = verdicts.frame(found)
    told = dict(claims.select("claim", "verdict").rows())
    missed = {n: told[n] for n in in_print if told[n] != "reproduced"}
    # these two compare baselines and quoted numbers alone, or count pairs
    assert set(missed) <= {"B10", "B07"}, missed
    assert len(in_print) - len(missed) >= COMPUTED - 2
    assert sum(verdicts.behind(f).height for f in found) > 5000
    far = verdicts.frame(verdicts.find(CLAIMS, as_ours(tables, 3.0), every, tables))
    kept = far.filter(verdict="reproduced").height
    assert kept < claims.filter(verdict="reproduced").height


def few(tmp=None):
    """A small RESULTS: two models and a baseline on one benchmark, and a control model."""
    base = Number(
        benchmark="onto_x", group="TP", metric="R@1", n=100, method="cloze", prompt="templates"
    )
    from kgprobe.metrics.intervals import Interval

    numbers = [
        base.but(model=m, value=v, interval=Interval(v - 5, v + 5, "wilson"),
                 setting={"choice": "oracle"})
        for m, v in (("one", 40.0), ("two", 60.0), ("taught", 99.0))
    ]  # fmt: skip
    quiet = Number(benchmark="onto_x", group="TP", metric="R@1", n=100, model="frequency")
    return results.frame("ontoprobe", [*numbers, quiet.but(value=20.0, setting={"choice": "none"})])


SHEET = {
    "one": {"source": "hub:one", "kind": "masked", "parameters": "100"},
    "two": {"source": "hub:two", "kind": "causal", "parameters": "200"},
    "taught": {"source": "control:masked", "kind": "masked", "parameters": "1"},
}


def test_models_taught_here_bear_no_claim_out(tables, tmp_path):
    found = verdicts.find(CLAIMS, few(), SHEET, tables)
    claims = verdicts.frame(found)
    own = claims.filter(claim="O01").row(0, named=True)
    assert (own["a"], own["b"], own["value"]) == (60.0, 20.0, 40.0)
    assert (own["low"], own["high"]) == pytest.approx((35.0, 45.0))
    assert own["verdict"] == "same direction"
    assert own["models"] == "one, two"
    assert own["printed"] == pytest.approx(9.4)
    verdicts.write_rows(found, tmp_path)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["O01.tsv", "O26.tsv"]
    kept = pl.read_csv(tmp_path / "O01.tsv", separator="\t").select("side", "model", "value").rows()
    assert kept == [("a", "one", 40.0), ("a", "two", 60.0), ("b", "frequency", 20.0)]
    # O26: memorising is far from complete
    others = claims.filter(~pl.col("claim").is_in(["O01", "O26"]))
    assert set(others["verdict"]) == {"not tested here"}


def test_the_order_of_results_is_no_part_of_a_verdict(tables, models):
    own = as_ours(tables).filter(paper="ontoprobe")
    order = list(range(own.height))
    random.Random(3).shuffle(order)
    found = [verdicts.find(CLAIMS, r, models, tables) for r in (own, own[order])]
    made = [verdicts.frame(f) for f in found]
    assert made[0].filter(pl.col("verdict") != "not tested here").height > 30
    assert made[0].equals(made[1])
    for one, other in zip(*found, strict=True):
        assert verdicts.behind(one).equals(verdicts.behind(other)), one.claim.claim


def test_a_run_without_numbers_has_every_claim_untested(tables, tmp_path):
    empty = few().clear()
    found = verdicts.find(CLAIMS, empty, {}, tables)
    claims = verdicts.frame(found)
    assert set(claims["verdict"]) == {"not tested here"}
    assert all(claims["reason"].str.len_chars() > 0)
    schema.write(claims, schema.CLAIMS, tmp_path / "claims.parquet")
    verdicts.write_rows(found, tmp_path / "rows")
    assert list((tmp_path / "rows").iterdir()) == []


def test_two_numbers_in_one_place_are_told_and_not_averaged():
    twice = pl.concat([few(), few().with_columns(method=pl.lit("sentence"))]).filter(
        pl.col("model") != "frequency"
    )
    comparison = parse("metric=R@1; group=TP; choice=oracle", "", "10", "benchmark model",
                       "difference")  # fmt: skip
    with pytest.raises(IncomparableError, match=r"differ in method \(cloze, sentence\)"):
        evaluate(comparison, known(twice, SHEET))


@pytest.mark.parametrize(
    ("cells", "told"),
    [
        (("metirc=R@1", "", "1", "benchmark", "difference"), "a selection: 'metirc'; legal: ben"),
        (("metric", "", "1", "benchmark", "difference"), "expected DIMENSION=PATTERN or a number"),
        (("", "max=modl", "1", "benchmark", "difference"), "max: 'modl'"),
        (("", "scale=big", "1", "benchmark", "difference"), "scale: 'big'; legal: largest, sm"),
        (("", "", "1", "bench", "difference"), "per: 'bench'"),
        (("", "", "1", "benchmark", "ratio"), "read: 'ratio'; legal: difference, gain"),
    ],
)
def test_a_comparison_that_is_mistyped_says_what_is_legal(cells, told):
    with pytest.raises(ComparisonError, match=re.escape(told)):
        parse(*cells)


def test_a_mistyped_row_is_told_with_its_line(tmp_path):
    lines = (FOLDER / "claims.tsv").read_text(encoding="utf-8").splitlines()
    cells = lines[3].split("\t")
    cells[verdicts.COLUMNS.index("direction")] = "up"
    path = tmp_path / "claims.tsv"
    path.write_text("\n".join([*lines[:3], "\t".join(cells)]) + "\n", encoding="utf-8")
    with pytest.raises(ComparisonError, match=r"claims\.tsv, line 4: direction 'up'; legal: >"):
        verdicts.read(path)


def test_the_chapter_opens_with_principal_claims_and_says_which_fail_in_print(tables):
    claims = verdicts.frame(verdicts.find(CLAIMS, few(), SHEET, tables))
    made = chapter.chapter(claims, {c.claim: c.needs for c in CLAIMS})
    assert [part.name for part in made.parts] == list(chapter.PAPERS)
    assert "2 of 191 claims have numbers in this run" in made.notes[0]
    shown = [row for part in made.parts for grid in part.grids for row in grid.rows]
    folded = [row for part in made.parts for grid in part.folded for row in grid.rows]
    assert len(shown) + len(folded) == 191
    by_claim = {row[0].sort: row for row in (*shown, *folded)}
    assert "fails in print" in by_claim["A25"][1].small
    assert by_claim["O01"][2].text == "40"
    assert by_claim["O01"][2].small == "35 to 45"
    assert by_claim["O01"][2].href == "../../tables/claim_rows/O01.tsv"
    assert shown[0][0].sort == "O01" or made.parts[1].grids[0].rows[0][0].sort == "O01"
    assert by_claim["O01"][5].text == "same direction"
    assert json.loads(json.dumps(by_claim["O01"][3].text)) == "100"
    untested = by_claim["B01"]
    assert untested[4].text.startswith("needs bear")

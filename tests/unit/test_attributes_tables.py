"""Numbers, views and analyses of the nine benchmarks, on a run with known answers."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from kgprobe import schema
from kgprobe.benchmarks.attributes.frames import SENSITIVITY, SIZES, STEPS
from kgprobe.contracts import SETTING
from kgprobe.metrics.intervals import wilson
from kgprobe.metrics.matching import RULE_NAMES
from kgprobe.tables import results
from kgprobe.tables.attributes import constructs, numbers, views
from kgprobe.tables.attributes import published as ap
from kgprobe.tables.attributes import section as attributes_section
from kgprobe.tables.attributes import study as st
from kgprobe.tables.claims.comparison import evaluate, with_models
from kgprobe.tables.claims.principal import COMPARISONS
from kgprobe.tables.report import grid, headline, section
from kgprobe.tables.results import Number
from kgprobe.tables.views import text, write_all
from tests.unit import attribute_answers
from tests.unit.study_frames import drawn, of_rows

PRINTED = ap.read(Path(__file__).parents[2] / "resources" / "published")
HEAD = {"k": "1", "alpha": "exact", "gold": "own", "pooling": "best"}
LARGE, SMALL = ({"model": model, "method": "fill"} for model in ("large", "small"))


@pytest.fixture(scope="module")
def study():
    return attribute_answers.study()


@pytest.fixture(scope="module")
def run(study):
    """Return the study and its RESULTS, with every setting as a column."""
    return study, results.frame("attributes", numbers.estimates(study, study.alphas(), PRINTED))


def cells(run, metric, **where):
    """Return the numbers of a metric; dimensions that are not given must be empty."""
    result = run[1].filter(metric=metric)
    return result.filter(**{**dict.fromkeys(("group", "slice", *SETTING), ""), **where})


def cell(run, metric, **where):
    result = cells(run, metric, **where)
    assert result.height == 1, result
    return result.row(0, named=True)


@pytest.mark.parametrize(
    ("value", "metric", "benchmark", "who", "where"),
    [
        (100 / 3, "value", "symmetry", LARGE, {}),
        (1, "undefined", "symmetry", LARGE, {}),
        (50, "value", "asymmetry", LARGE, {}),
        (50, "value", "bias", LARGE, {}),
        # undefined is null and not zero
        (None, "value", "symmetry", SMALL, {}),
        (4, "undefined", "symmetry", SMALL, {}),
        (0, "value", "bias", SMALL, {}),
        # beside the oracle, and its gain
        (25, "value", "bias", LARGE, {"pooling": "mean"}),
        (50, "value", "bias", LARGE, {"pooling": "base"}),
        (25, "triples right", "bias", LARGE, {"prompts": "1"}),
        (50, "triples right", "bias", LARGE, {"prompts": "2"}),
        (25, "triples right", "bias", LARGE, {"pooling": "mean", "template": "own"}),
        # single triples: the forward ones of asymmetry, of which the reversed ones are no facts
        (50, "triples right", "bias", LARGE, {}),
        (100, "triples right", "asymmetry", LARGE, {}),
        # Q10 is the object of two of three statements of P21, one of two objects
        (100, "value", "bias", {"model": "majority", "method": "baseline"}, {"pooling": ""}),
        (50, "value", "bias", {"model": "random", "method": "baseline"}, {"pooling": ""}),
        # the reversed object of P19 is never an object of P19
        (100, "value", "asymmetry", {"model": "majority", "method": "baseline"}, {"pooling": ""}),
        (75, "partial score", "symmetry", LARGE, {}),
        (100, "partial score", "asymmetry", LARGE, {}),
    ],
)
def test_numbers_of_the_run_by_hand(run, value, metric, benchmark, who, where):
    result = cell(run, metric, benchmark=benchmark, **who, **{**HEAD, **where})
    assert result["value"] == (None if value is None else pytest.approx(value))


def test_table_2_has_fraction_and_interval(run):
    result = cell(run, "value", benchmark="symmetry", **LARGE, **HEAD)
    assert (result["low"], result["high"]) == pytest.approx([100 * b for b in wilson(1, 3)])
    assert (result["numerator"], result["denominator"], result["n"]) == (1, 3, 4)
    result = cell(run, "value", benchmark="symmetry", **SMALL, **HEAD)
    assert (result["low"], result["denominator"]) == (None, 0)


def test_single_triples_are_compared_with_the_structures_they_form(run):
    models = {name: {"kind": "api", "source": "", "parameters": ""} for name in ("large", "small")}
    outcome = evaluate(COMPARISONS["K22"], with_models(run[1], models))
    bias = [row["value"] for row in outcome.sides["a"] if row["benchmark"] == "bias"]
    assert bias == [50, 0]
    assert outcome.low is not None


def test_oracle_is_labeled_and_prompt_means_use_bootstrap(run):
    for pooling in st.POOLINGS:
        result = cell(run, "value", benchmark="bias", **LARGE, **{**HEAD, "pooling": pooling})
        assert result["interval"] == ("bootstrap" if pooling == "mean" else "wilson")
    assert "oracle" in views.SCORES[False][0].word("pooling", "best")


def test_published_values_have_separate_rows(run):
    gpt = {"model": "GPT-4", "method": "published"}
    result = cell(run, "value", benchmark="symmetry", **gpt, **HEAD)
    assert (result["value"], result["published"], result["n"]) == (38.19, 38.19, 0)
    assert "Table 2" in result["source"]
    mean = cell(run, "value", benchmark="", **gpt, **HEAD)
    assert mean["value"] == pytest.approx(23.77, abs=0.005)
    assert not cells(run, "value", benchmark="symmetry", **gpt, **{**HEAD, "k": "3"}).height


def test_mean_of_nine_is_null_when_one_benchmark_is_undefined(run):
    measured = (
        run[0]
        .measure(run[0].alphas())
        .filter(benchmark="symmetry", model="large", k=1, kind="exact", gold="own", pooling="best")
    )
    ratios = [None, *(i / 10 for i in range(1, 9))]

    def means(ratios):
        pooled = pl.Series(ratios, dtype=pl.Float64)
        return list(numbers.means(pl.concat([measured] * 9).with_columns(value_pooled=pooled)))

    assert [n.value for n in means([0.2, *ratios[1:]])] == [pytest.approx(380 / 9)]
    whole, beside = means(ratios)
    assert (whole.metric, whole.value, whole.n) == ("value", None, 36)
    assert (beside.metric, beside.value) == ("mean of those defined", pytest.approx(45))
    assert (beside.benchmark, beside.interval, beside.n) == ("", None, 32)
    assert [n.value for n in means([None] * 9)] == [None]
    frame = results.frame("attributes", [whole, beside])
    ends = ["mean of nine", "mean of nine, defined only"]
    table2 = views.SCORES[False][0].of(frame)
    assert table2.heads[-2:] == ends
    assert table2.lines(text)[0][-2:] == ["undef", "45.00"]
    (headline_view,) = headline.blocks(frame)
    assert headline_view.of(frame).heads[-2:] == ends


def test_printed_values_are_not_attached_to_other_examples(study):
    known = {replace(p, model="t5-base"): result for p, result in study.answers.items()}
    named = study.alphas().filter(model="large").with_columns(model=pl.lit("t5-base"))
    own = [*numbers.values(replace(study, answers=known), named, PRINTED)]
    assert {n.published for n in own if n.model == "t5-base"} == {None}
    assert {n.method for n in own if n.published is not None} == {"published"}


def test_partial_scores_are_shown_beside_full_ones(run):
    assert not cells(run, "partial score", benchmark="bias", **LARGE, **HEAD).height
    shown = views.PARTIAL.of(run[1])
    assert shown.cells[("symmetry", "large", "fill"), ("value",)]["value"] == pytest.approx(100 / 3)
    assert shown.cells[("symmetry", "small", "fill"), ("value",)]["value"] is None


def test_correlations_against_hand_and_undefined_ones():
    columns = ("benchmark", "model", "prompt", "method", "pattern", "partial", "value_pooled")
    x, y = [1.0, 2, 3, 4], [1.0, 3, 2, 5]
    who = [("paths", f"m{i}", "templates", "fill", "all") for i in range(4)]
    four = pl.DataFrame(
        [(*w, *xy) for w, *xy in zip(who, x, y, strict=True)], columns, orient="row"
    )
    made = {n.metric: n for n in numbers.correlations(four)}
    assert made["pearson"].value == pytest.approx(np.corrcoef(x, y)[0, 1])
    assert made["spearman"].value == pytest.approx(0.8)
    assert made["pearson"].interval is None
    assert not list(numbers.correlations(four[:2]))
    assert not list(numbers.correlations(four.with_columns(partial=1.0)))
    rows = [
        ("paths", f"m{i}", "templates", "fill", "all", i / 10, i / 20 + (i % 3) / 30)
        for i in range(8)
    ]
    frame = pl.DataFrame(rows, schema=list(columns), orient="row")
    result = {(n.slice, n.benchmark, n.metric): n for n in numbers.correlations(frame)}
    assert set(result) == {("over models", "paths", name) for name in ("pearson", "spearman")}
    number = result["over models", "paths", "pearson"]
    assert number.n == 8
    assert number.interval.low <= number.value <= number.interval.high
    assert [n.interval for n in numbers.correlations(frame.head(3))] == [None, None]
    assert list(numbers.correlations(frame.head(2))) == []


def test_popularity_of_all_and_of_fully_correct_examples(run):
    result = run[1]
    large = result.filter(**LARGE, benchmark="symmetry")
    assert large.filter(metric="examples")["value"].sum() == 4
    right = large.filter(pl.col("metric") == "examples right", pl.col("value") > 0)
    assert right["bin"].to_list() == ["1.0"]  # Q1 and Q2: degrees 10 and 20, mean 15
    # asymmetry: the forward triple is a hit and the reversed one is not
    asymmetry = result.filter(**LARGE, benchmark="asymmetry", metric="examples right")
    assert asymmetry["value"].sum() == 1
    deciles = large.filter(metric="proportion right")
    assert (deciles.height, deciles["n"].sum()) == (4, 4)
    assert not result.filter(benchmark="bias", metric="examples").height


def test_small_bias_relations_show_only_counts(run):
    (view,) = (v for v in views.FOLDED if v.name == "bias")
    shown = view.of(run[1])
    row = ("large", "fill", "P21")
    assert shown.cells[row, ("triples",)]["value"] == 2
    assert (row, ("value",)) not in shown.cells
    assert (row, ("wrong",)) not in shown.cells
    # nor in Figure 4, by relation, too
    figure = views.PATTERNS.select(run[1])
    assert "symmetry" in set(figure["benchmark"])
    assert "bias" not in set(figure["benchmark"])
    texts = run[1].select("group", "slice", *SETTING)
    assert not [t for row in texts.rows() for t in row if "label 1" in t]


def test_bias_relations_with_ten_examples_show_both_fractions(study):
    rows = [("bias", f"bias/P21/{i}", "P21", 0, float(i < 3)) for i in range(10)]
    columns = ["benchmark", "example", "pattern", "position", "alpha"]
    alphas = pl.DataFrame(rows, schema=columns, orient="row").with_columns(
        pl.lit(v).alias(k) for k, v in {**LARGE, "prompt": "templates", **st.HEADLINE}.items()
    )
    every = list(numbers.patterns(replace(study, benchmarks={}), alphas))
    result = {n.metric: n for n in every}
    assert [result[name].value for name in ("value", "wrong", "triples")] == [30, 70, 10]
    assert [n.group for n in every if n.metric == "wrong"] == ["P21", ""]
    low, high = (100 * b for b in wilson(3, 10))
    assert result["wrong"].interval[:2] == pytest.approx((100 - high, 100 - low))


def test_examples_missing_for_one_model_are_excluded_for_all():
    benchmarks = attribute_answers.benchmarks()
    given = attribute_answers.answers(benchmarks)
    lost = "symmetry/P26/Q1/Q2#0"
    cut = {
        probe: alphas.filter((pl.col("item") != lost) | (probe.model != "small"))
        for probe, alphas in given.items()
    }
    assert not st.AttributesStudy(benchmarks, given).left_out
    own = {"benchmark": "symmetry", "k": 1, "pooling": "best", "gold": "own"}
    both, alone = (
        st.AttributesStudy(benchmarks, cut),
        st.AttributesStudy(benchmarks, cut, intersect=False),
    )
    assert both.left_out == {"symmetry/P26/Q1/Q2"}
    kept = both.measure(both.alphas()).filter(model="large", **own)
    assert kept["examples"].to_list() == [3]
    result = alone.measure(alone.alphas()).filter(**own)
    assert dict(result.select("model", "missing").rows()) == {"small": 1, "large": 0}


def shown(run, results=None, probes=None, **more):
    """Return the section of the run."""
    own = run[1] if results is None else results
    asked = probes or list(run[0].answers)
    return attributes_section.section(own, asked, PRINTED, {"P26": "spouse"}, **more)


def test_the_section_holds_tables_figures_and_warnings(run, tmp_path):
    examples = [{"benchmark": "symmetry", "prompt": "x"}]
    page = shown(run, examples=examples)
    kinds = ("partial", "patterns", "popularity")
    assert [d.name for d in page.drawings] == [f"attributes_{kind}" for kind in kinds]
    assert [g.title[:10] for g in page.grids] == ["Table 2 @1", "Table 2 @3", "Table 2 @5"]
    assert page.grids[0].heads[-1] == "mean of nine"
    body = {tuple(c.text for c in row[:3]): row[3:] for row in page.grids[0].rows}
    assert body["large", "fill", "best prompt (oracle)"][0].small.startswith("1/3; ")
    assert body["small", "fill", "best prompt (oracle)"][0].text == "undef"
    assert body["GPT-4", "published", "best prompt (oracle)"][0].text.startswith("38.19")
    assert body["most frequent object", "baseline", "–"][1].text == "100.00 †"
    models = list(dict.fromkeys(row[0].text for row in page.grids[0].rows))
    assert models[:4] == ["large", "small", "most frequent object", "random object"]
    assert any("oracle" in note for note in page.notes)
    path = tmp_path / "attributes.json"
    section.write(page, path)
    assert section.read(path).grids[0].heads == page.grids[0].heads
    assert shown(run, examples=examples).drawings == page.drawings


def test_every_view_is_written_and_prints_measured_values(run, tmp_path):
    write_all(views.ALL, run[1], tmp_path)
    assert {path.stem for path in tmp_path.glob("*.tsv")} == {view.name for view in views.ALL}
    lines = (tmp_path / "table2_at_1.tsv").read_text().splitlines()
    assert any("33.33 (1/3)" in line and line.startswith("large\tfill") for line in lines)
    assert "published" not in (tmp_path / "choices.tsv").read_text()


def test_models_failing_the_validity_check_are_marked(run):
    outside = results.frame("attributes", [
        Number(metric="valid", model="small", prompt="templates", method="fill", value=0, n=9),
        Number(metric="valid", model="large", prompt="templates", method="fill", value=1, n=9),
        Number(metric="weights complete", model="large", value=0, n=9),
    ])  # fmt: skip
    grid = shown(run, pl.concat([run[1], outside])).grids[0]
    bias = grid.heads.index("bias")
    shown_ = {row[0].text: row[bias].text for row in grid.rows if row[1].text != "published"}
    assert {name: text.split(" ", 1)[1] for name, text in shown_.items() if " " in text} == {
        "large": "† (!)", "small": "† (?)", "most frequent object": "†", "random object": "†",
    }  # fmt: skip


def test_ranking_only_models_have_no_fillings_table(run):
    renamed = {"fill": "sentence"}
    frame = run[1].filter(metric="value").with_columns(pl.col("method").replace(renamed))
    ranked = [replace(probe, method="sentence") for probe in run[0].answers]
    page = shown(run, frame, ranked)
    titles = [grid.title for grid in page.grids]
    assert len(titles) == 3
    assert all("gold ranked" in title for title in titles)
    models = {"large", "small", "most frequent object", "random object"}
    assert {row[0].text for row in page.grids[0].rows} == models
    assert page.drawings == []
    files = dict.fromkeys(ranked, "no file")
    assert attributes_section.worked_examples(st.AttributesStudy({}, {}), files) == []


def test_examples_with_url_fragments_are_shown_whole():
    """IRIs in a user-supplied graph may contain a #, which also separates an item's position."""
    names = ["symmetry/r/http://x#a/http://x#b", "symmetry/r/http://x#c/http://x#d"]
    rows = [(name, n, "role", "r", "label", "object") for name in names for n in (0, 1)]
    columns = ["example", "position", "role", "predicate", "subject_label", "object_label"]
    examples = pl.DataFrame(rows, columns, orient="row").cast({"position": pl.Int32})
    alphas = examples.select(
        st.ITEM, template=pl.lit(0, pl.Int64), k=1, gold=pl.lit("own"), kind=pl.lit("exact"),
        alpha=(pl.col("example") == names[1]).cast(pl.Float64),
    )  # fmt: skip
    prompts = pl.DataFrame({"text": ["[X] [Y]"], "relation": ["r"], "index": [0]})
    asked = st.ProbedAttribute("symmetry", examples, examples, examples, prompts)
    fills = alphas.select("item", "template", position=pl.lit(st.WHOLE), rank=pl.lit(0))
    fills = fills.with_columns(text=pl.lit("object"))
    shown = [*attributes_section.example_rows(alphas, asked, fills)]
    assert [row["right"] for row in shown] == ["yes", "yes"]
    assert shown[0]["prompt"] == "Label …"  # as asked: a sentence begins with a capital
    shown = [*attributes_section.example_rows(alphas.head(3), asked, fills)]
    assert [row["right"] for row in shown] == ["yes", "not asked"]


def test_bars_are_labeled_by_model_and_method_when_ambiguous(run):
    results, kinds = run[1], {("large", "fill"): "causal", ("small", "fill"): "causal"}
    bars = {row["probe"] for row in drawn(attributes_section.partial_plot(results, kinds))}
    assert bars == {"large", "small"}
    both = attributes_section.partial_plot(results, kinds | {("large", "sentence"): "causal"})
    assert {row["probe"] for row in drawn(both)} == {"large, fill", "small"}


def test_patterns_with_a_common_prefix_have_separate_rows():
    """Ids of a user-supplied graph are IRIs with a common prefix."""
    names = [f"http://example.org/vocabulary/terms/{name}" for name in ("knows", "meets")]
    known = Number(metric="value", benchmark="symmetry", setting=HEAD, value=50.0, n=2, **LARGE)
    made = [known.but(group=name, numerator=1, denominator=2) for name in names]
    results_of = results.frame("attributes", made)
    chart = attributes_section.patterns_plot(results_of, {"symmetry": [("large", "fill")]}, {})
    assert [row["pattern"] for row in drawn(chart)] == names


def test_table_1_is_shown_beside_the_printed_one(run):
    rows = [
        ("symmetry", "labeled", 3, 6, 2, 3, 1, 2, 0, 5, 3.0),
        ("symmetry", "sampled", 1, 2, 1, 1, 1, 0, 0, 2, 2.0),
    ]
    frame = pl.DataFrame(rows, schema=dict(SIZES.columns), orient="row")
    sizes = list(constructs.sizes(frame, PRINTED))
    result = {(n.slice, n.metric): n for n in sizes}
    assert result["labeled", "triples"].published == 1401
    assert result["labeled", "patterns"].published == 11
    assert result["labeled", "predicates"].published is None
    names = ("predicates", "written", "by label", "without template")
    assert [result["labeled", name].value for name in names] == [3, 1, 2, 0]
    assert result["sampled", "triples"].published is None
    assert (result["paper", "triples"].value, result["paper", "triples"].n) == (1401, 0)
    both = pl.concat([run[1], results.frame("attributes", sizes)])
    page = shown(run, both, thresholds="small")
    (grid,) = (g for g in page.grids if g.title.startswith("Table 1"))
    assert "thresholds: small" in grid.title
    start = grid.heads.index("predicates")
    assert grid.heads[start : start + 4] == list(names)
    assert [cell.text for cell in grid.rows[0][start : start + 4]] == ["3", "1", "2", "0"]
    kinds = ["with labels and templates", "probed here", "the paper"]
    assert [row[0].text for row in grid.rows] == kinds
    (oddities,) = (g for g in page.folded if g.title.startswith("What follows"))
    assert any("1118" in cell.text for row in oddities.rows for cell in row)


def test_funnels_and_thresholds_are_printed_in_the_paper_s_order(run):
    steps = [("paths", 0, "edges", 5, 0, ""), ("symmetry", 1, "ratio", 2, 3, "n < 10")]
    tried = [("symmetry", "cap_pairs = 200", False, 1, 2, 4)]
    own = shown(
        run,
        steps=pl.DataFrame(steps, schema=dict(STEPS.columns), orient="row"),
        sensitivity=pl.DataFrame(tried, schema=dict(SENSITIVITY.columns), orient="row"),
    )
    funnel, thresholds = own.folded[-2:]
    assert [row[0].text for row in funnel.rows] == ["symmetry", "paths"]
    assert funnel.heads == ["benchmark", "step", "kept", "dropped", "reason"]
    assert thresholds.rows[0][1].text == "cap_pairs = 200"


def test_runs_without_hits_still_have_numbers():
    benchmarks = attribute_answers.benchmarks()
    wrong = {
        probe: alphas.with_columns(alpha=pl.lit(0.0))
        for probe, alphas in attribute_answers.answers(benchmarks).items()
        if probe.model == "small"
    }
    study = st.AttributesStudy(benchmarks, wrong, attribute_answers.guesses(benchmarks))
    frame = results.frame("attributes", numbers.estimates(study, study.alphas(), PRINTED))
    metrics = set(frame["metric"])
    assert {"value", "partial score", "triples asked"} <= metrics
    assert "pearson" not in metrics
    assert shown((study, frame)).grids


def test_same_name_pairs_are_split_by_equal_objects():
    same = ["ambiguous/P19/Q1/Q2"]
    both = [*same, "ambiguous/P19/Q3/Q4"]
    flags = [["same_object"] if example in same else [] for example in both]
    examples = pl.DataFrame({"example": both, "flags": flags})
    empty = pl.DataFrame()
    named = {"ambiguous": st.ProbedAttribute("ambiguous", examples, empty, empty, empty)}
    rows = [
        ("ambiguous", example, "P19", position, alpha, "m", "templates", "fill", pooling, 1,
         "exact", "own")
        for pooling in ("best", "mean")
        for example, alphas in zip(both, ((1.0, 1.0), (0.0, 1.0)), strict=True)
        for position, alpha in enumerate(alphas)
    ]  # fmt: skip
    columns = ["benchmark", "example", "pattern", "position", "alpha", *st.SETTINGS]
    frame = pl.DataFrame(rows, schema=columns, orient="row")
    result = list(numbers.ambiguous(st.AttributesStudy(named, {}), frame))
    values = {
        (n.slice, n.setting["mode"]): n.value for n in result if n.setting["pooling"] == "best"
    }
    assert values == {
        ("all pairs", "or"): 50, ("objects differ", "or"): 0,
        ("objects equal", "or"): 100, ("all pairs", "head"): 100,
    }  # fmt: skip


def test_matches_are_counted_per_rule_beside_verbatim():
    rules = ["verbatim"] * 3 + ["accents"] * 2 + ["aliases"] + [""] * 4
    rows = [(f"i{i}", rule, False) for i, rule in enumerate(rules)]
    firsts = pl.DataFrame(rows, schema=["cluster", "rule", "verbose"], orient="row")
    base = Number(metric="", n=0, benchmark="bias", model="m", method="fill")
    result = list(numbers.check_written(base, firsts))
    counts = {n.setting["alpha"]: n.value for n in result if n.metric == "first answers"}
    assert list(counts) == list(RULE_NAMES)
    found = {rule: n for rule, n in counts.items() if n}
    assert found == {"verbatim": 3, "accents": 2, "aliases": 1}
    shares = {n.setting["alpha"]: n for n in result if n.metric == "first answers right"}
    assert {kind: n.value for kind, n in shares.items()} == {"verbatim": 30, "exact": 60}
    every = shares["exact"]
    assert (every.n, *(round(b, 2) for b in every.interval[:2])) == (10, 31.27, 83.18)
    assert list(numbers.check_written(base, firsts.clear())) == []


def test_verbose_answers_count_subjects_not_prompts():
    """Two subjects with three prompts each: one always verbose, the other once."""
    verbose = [True] * 3 + [True, False, False]
    firsts = pl.DataFrame({"rule": [""] * 6, "verbose": verbose, "cluster": list("aaabbb")})
    (one,) = (n for n in numbers.check_written(Number(), firsts) if n.metric == "verbose")
    assert (one.value, one.n, one.interval.kind) == (pytest.approx(200 / 3), 2, "cluster bootstrap")


def test_counts_have_no_decimals_and_are_no_smoke_tests(run):
    """docs/reading.md: counts are not marked."""
    shown = {view.name: grid.of_view(view, run[1]) for view in views.ALL}
    for name, heads in {"asked": ["triples", "golds"], "matching": ["verbatim"],
                        "bias": ["triples"]}.items():  # fmt: skip
        table = shown[name]
        texts = [row[table.heads.index(head)].text for row in table.rows for head in heads]
        assert [text for text in texts if not text.isdigit() and text != "–"] == [], name
        assert any(map(str.isdigit, texts)), name


def test_right_triples_count_the_subjects_of_a_relation(study):
    """Both triples of bias are about one subject, and symmetry's eight are about eight."""
    one = study.benchmarks["bias"]
    items = one.items.with_columns(subject_id=pl.lit("Q1"))
    study = replace(study, benchmarks={**study.benchmarks, "bias": replace(one, items=items)})
    made = [*numbers.questions(study)]
    made += numbers.by_status(study, _told(study), numbers.status(study, TRAINED_ON))
    measured = {"triples right", "agreement", "correct in all", "first answers right"}
    rows = [n for n in made if n.metric in measured and "prompts" not in n.setting]
    kinds = [n for n in rows if "template" in n.setting]
    status = [n for n in rows if n.slice == numbers.HELD_OUT and n.benchmark == "bias"]
    assert kinds
    assert status
    assert {n.metric for n in rows} == measured
    assert {n.n for n in rows if n.benchmark == "bias"} == {1}
    assert {n.n for n in rows if n.benchmark == "symmetry" and not n.slice} == {8}


# -- facts that control models were trained on ---------------------------------------------------

#: training facts of the run: the first pair whole, one direction of the second, one P19
FACTS = {
    "P26/Q1/Q2": True, "P26/Q2/Q1": True, "P26/Q3/Q4": True, "P26/Q4/Q3": False, "P19/Q1/Q9": True,
    "P19/Q3/Q9": False,
}  # fmt: skip
TRAINED_ON = of_rows(
    schema.TRAINED_ON, [(fact, *fact.split("/"), told) for fact, told in FACTS.items()]
)


def test_examples_are_trained_on_in_full_in_part_or_not(study):
    result = numbers.status(study, TRAINED_ON)
    by_example = dict(result.select("example", "status").unique().rows())
    assert {e: s for e, s in by_example.items() if s != "held-out"} == {
        "symmetry/P26/Q1/Q2": "trained-on",
        "symmetry/P26/Q3/Q4": "trained-on in part",
        "asymmetry/P19/Q1/Q9": "trained-on",
    }
    # the reversed triple is not a fact
    assert result.filter(~pl.col("stored"))["trained_on"].to_list() == [False, False]


def test_metrics_are_grouped_by_training_status(study):
    estimates = list(numbers.by_status(study, _told(study), numbers.status(study, TRAINED_ON)))
    result = {(n.benchmark, n.model, n.metric, n.slice): n for n in estimates}
    assert len(result) == len(estimates)
    value = {
        s: result["symmetry", "large", "value", s]
        for s in (numbers.TRAINED_ON, numbers.PART, numbers.HELD_OUT)
    }
    # alphas at 1, best prompt: (1, 1) trained-on, (1, 0) in part, (0, 1) and (0, 0) held-out
    assert value["trained-on"].value == 100
    assert (value["trained-on in part"].value, value["trained-on in part"].denominator) == (0, 1)
    assert value["held-out"].denominator == 1
    right = result["symmetry", "large", "triples right", "trained-on"]
    assert (right.value, right.n) == (100, 3)
    assert result["symmetry", "large", "triples right", "held-out"].value == 20
    small = result["symmetry", "small", "value", "trained-on"]
    assert (small.value, small.denominator) == (None, 0)  # undefined is null
    assert result["asymmetry", "large", "value", "trained-on"].n == 1
    assert {n.model for n in estimates} == {"large", "small"}


def _told(study):
    return study.alphas().filter(pl.col("method") != "baseline")


def test_without_a_training_fact_there_are_no_numbers(study):
    known = numbers.status(study, TRAINED_ON.with_columns(trained_on=pl.lit(False)))
    assert list(numbers.by_status(study, _told(study), known)) == []
    assert list(numbers.check_validity(study, study.alphas(), known)) == []


def test_questions_with_several_golds_count_once(study):
    """P26 of Q1 has golds Q2 (trained on) and Q3, in two triples; the model answers Q3."""
    one = study.benchmarks["symmetry"]
    both = pl.col("example").is_in(["symmetry/P26/Q1/Q2", "symmetry/P26/Q3/Q4"])
    is_second = both & (pl.col("example") == "symmetry/P26/Q3/Q4") & (pl.col("position") == 0)
    examples = one.examples.with_columns(
        subject=pl.when(is_second).then(pl.lit("Q1")).otherwise("subject"),
        subject_label=pl.when(is_second).then(pl.lit("label 1")).otherwise("subject_label"),
        object=pl.when(is_second).then(pl.lit("Q3")).otherwise("object"),
        golds=pl.when(both & (pl.col("position") == 0))
        .then(pl.lit(["Q2", "Q3"]))
        .otherwise("golds"),
    )
    study = replace(study, benchmarks={"symmetry": replace(one, examples=examples)})
    facts = TRAINED_ON.filter(pl.col("fact").is_in(["P26/Q1/Q2", "P26/Q3/Q4"]))
    known = numbers.status(study, facts)
    question = known.filter(question="P26/label 1")
    assert question["is_known"].to_list() == [True, True]
    assert sorted(question["fact"]) == ["P26/Q1/Q2", "P26/Q1/Q3"]
    alphas = study.guesses.filter(benchmark="symmetry").with_columns(alpha=pl.lit(0.0))
    answered = alphas.filter(model="random").with_columns(
        model=pl.lit("small"), prompt=pl.lit("templates"), method=pl.lit("fill"),
        pooling=pl.lit("best"),
        alpha=((pl.col("gold") == "set") & pl.col("example").str.ends_with("Q1/Q2")).cast(float),
    )  # fmt: skip
    study = replace(study, answers={p: a for p, a in study.answers.items() if p.model == "small"})
    estimates = numbers.check_validity(study, pl.concat([alphas, answered]), known)
    result = {n.metric: (n.value, n.n) for n in estimates}
    assert result["trained-on"] == (100.0, 1)
    # of six held-out questions only Q2's is a hit
    assert result["held-out"] == (pytest.approx(100 / 6), 6)


def test_validity_check_covers_trained_on_and_held_out(study):
    known = numbers.status(study, TRAINED_ON)
    estimates = list(numbers.check_validity(study, study.alphas(), known))
    # only control models are checked
    assert {(n.benchmark, n.model, n.method) for n in estimates} == {("", "small", "fill")}
    result = {n.metric: n for n in estimates}
    # questions: trained on are one of two for P19, three of eight for P26, none for P21
    assert (result["trained-on"].value, result["trained-on"].n) == (0, 4)
    assert (result["held-out"].value, result["held-out"].n) == (0, 8)
    asked = known.filter("stored", ~pl.col("trained_on")).unique("fact")
    base = study.guesses.filter(k=1, kind="exact", gold="set")
    item = pl.format("{}#{}", "example", "position")
    guess = base.with_columns(item=item).join(asked, on="item")
    means = {model: guess.filter(model=model)["alpha"].mean() for model in ("random", "majority")}
    assert means["random"] != means["majority"]
    chance = 100 * max(means.values())
    assert chance > 0
    assert result["chance for held-out"].value == pytest.approx(chance)
    assert result["limit for held-out"].value == pytest.approx(chance + 15)
    assert result["valid"].value == 0
    assert "AUC" not in result


@pytest.mark.parametrize("omitted", [["symmetry", "asymmetry"], ["asymmetry"]])
def test_no_figure_of_patterns_is_drawn_without_any(run, omitted):
    """Relations of bias have too few triples, and of the small model no example counts."""
    of_large = (pl.col("benchmark") != "bias") & (pl.col("model") == "large")
    some = run[1].filter(~pl.col("benchmark").is_in(omitted), ~of_large)
    names = [one.name for one in attributes_section.drawings(some, list(run[0].answers), {})]
    assert "attributes_patterns" not in names

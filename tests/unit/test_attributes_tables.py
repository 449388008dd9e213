"""Tables and analyses of the nine benchmarks, on a run with known answers."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest

from kgprobe import schema
from kgprobe.benchmarks.graph_frames import SENSITIVITY, SIZES, STEPS
from kgprobe.metrics.intervals import wilson
from kgprobe.metrics.matching import WAYS
from kgprobe.tables import attributes_analyses as an
from kgprobe.tables import attributes_chapter, chapter, table
from kgprobe.tables import attributes_published as ap
from kgprobe.tables import attributes_sizes as sizes
from kgprobe.tables import attributes_study as st
from kgprobe.tables import attributes_tables as at
from kgprobe.tables.answers import Probe
from tests.unit import attribute_answers

PRINTED = ap.read(Path(__file__).parents[2] / "resources" / "published")


@pytest.fixture(scope="module")
def run():
    made = attribute_answers.study()
    alphas = made.alphas()
    measured = st.measure(made, alphas)
    tables = at.tables(made, measured, st.measure_patterns(made, alphas), PRINTED)
    return made, measured, tables | an.tables(made, alphas, st.parts(made, alphas))


def cells(run, name):
    return table.lookup(run[2][name])


def test_every_table_obeys_the_contract_and_belongs_to_the_paper(run):
    for name, frame in run[2].items():
        schema.check(frame, schema.TABLE, name)
        assert set(frame["paper"]) == {"kg"}
        assert set(frame["table"]) == {name}
    schema.check(run[1], st.METRICS)


def test_table_2_has_value_fraction_and_interval(run):
    found = cells(run, "kg_table2")
    name = at.row_name(1, "large", "fill", "best")
    cell = found[name, "symmetry"]
    assert cell["value"] == pytest.approx(100 / 3)
    assert (cell["low"], cell["high"]) == pytest.approx([100 * b for b in wilson(1, 3)])
    assert found[name, "symmetry, numerator"]["value"] == 1
    assert found[name, "symmetry, denominator"]["value"] == 3
    assert found[name, "symmetry, undefined"]["value"] == 1
    assert found[name, "asymmetry"]["value"] == 50
    assert found[name, "bias"]["value"] == 50


def test_the_oracle_is_named_and_the_mean_stands_beside_it(run):
    found = cells(run, "kg_table2")
    mean = found[at.row_name(1, "large", "fill", "mean"), "bias"]["value"]
    base = found[at.row_name(1, "large", "fill", "base"), "bias"]["value"]
    assert (mean, base) == (25, 50)
    assert "oracle" in at.row_name(1, "large", "fill", "best")


def test_means_over_prompts_are_fractional_and_get_a_bootstrap(run):
    own = run[1].filter(benchmark="bias", k=1, gold="own", model="large")
    kinds = dict(own.select("pooling", "interval").rows())
    assert kinds == {p: "bootstrap" if p == "mean" else "wilson" for p in kinds}


def test_undefined_is_no_value_and_not_zero(run):
    found = cells(run, "kg_table2")
    name = at.row_name(1, "small", "fill", "best")
    assert (name, "symmetry") not in found
    assert found[name, "symmetry, undefined"]["value"] == 4
    assert found[name, "bias"]["value"] == 0


def test_published_values_stand_in_rows_of_their_own(run):
    found = cells(run, "kg_table2")
    assert found["@1 | GPT-4 | published", "symmetry"]["published"] == 38.19
    assert found["@1 | GPT-4 | published", at.MEAN]["value"] == pytest.approx(23.77, abs=0.005)
    assert ("@3 | GPT-4 | published", "symmetry") not in found


def test_baselines_are_computed_from_the_graph(run):
    found = cells(run, "kg_table2")
    majority = at.row_name(1, "most frequent object", "baseline", "base")
    random = at.row_name(1, "random object", "baseline", "base")
    # Q10 stands in two of three statements of P21, one of two objects
    assert found[majority, "bias"]["value"] == 100
    assert found[random, "bias"]["value"] == 50
    # the reversed object of P19 is never an object of P19
    assert found[majority, "asymmetry"]["value"] == 100


def test_partial_scores_and_their_correlation(run):
    found = cells(run, "kg_partial")
    assert found["symmetry | large | fill", "partial"]["value"] == 75
    assert found["symmetry | large | fill", "full"]["value"] == pytest.approx(100 / 3)
    assert found["asymmetry | large | fill", "partial"]["value"] == 100
    assert ("symmetry | small | fill", "full") not in found
    assert not [row for row, _ in found if row.startswith("bias")]


def test_correlations_against_hand_and_what_has_none():
    x, y = np.array([1.0, 2, 3, 4]), np.array([1.0, 3, 2, 5])
    assert an.pearson(x, y) == pytest.approx(np.corrcoef(x, y)[0, 1])
    assert an.spearman(x, y**3) == pytest.approx(0.8)
    assert an.pearson(x[:2], y[:2]) is None
    assert an.pearson(x, np.ones(4)) is None
    columns = ("benchmark", "model", "method", "pattern", "partial", "full", "low", "high", "n")
    rows = [
        ("paths", f"m{i}", "fill", "all", i / 10, i / 20 + (i % 3) / 30, 0.0, 1.0, 9)
        for i in range(8)
    ]
    frame = pl.DataFrame(rows, schema=list(columns), orient="row")
    cell = table.lookup(an.correlations(frame))["over models | paths", "pearson"]
    assert cell["n"] == 8
    assert cell["low"] <= cell["value"] <= cell["high"]
    few = table.lookup(an.correlations(frame.head(3)))["over models | paths", "pearson"]
    assert few["low"] is None
    assert an.correlations(frame.head(2)) is None


def test_popularity_of_all_and_of_the_fully_right(run):
    found = cells(run, "kg_popularity")
    row = "symmetry | large | fill"
    all_ = sum(
        c["value"] for (r, col), c in found.items() if r.startswith(f"{row} | bin") and col == "all"
    )
    right = [
        r for (r, col), c in found.items() if col == "right" and c["value"] and r.startswith(row)
    ]
    assert all_ == 4
    assert right == [f"{row} | bin 01.00"]  # Q1 and Q2: degrees 10 and 20, mean 15
    # asymmetry: forward right and reversed not
    asym = [
        c["value"]
        for (r, col), c in found.items()
        if col == "right" and r.startswith("asymmetry | large")
    ]
    assert sum(asym) == 1
    assert not [r for r, _ in found if r.startswith("bias")]


def test_ks_distance_is_the_largest_gap():
    assert an.ks_distance(np.array([1.0, 2, 3, 4]), np.array([3.0, 4])) == 0.5
    assert an.ks_distance(np.array([1.0, 2]), np.array([1.0, 2])) == 0


def test_prompts_show_what_the_oracle_adds(run):
    found = cells(run, "kg_prompts")
    row = "@1 | large | fill | bias"
    assert found[row, "1 prompt"]["value"] == 25
    assert found[row, "2 prompts"]["value"] == 50


def test_wordings_are_compared_by_kind(run):
    cell = cells(run, "kg_wordings")["large | fill | bias", "own"]
    assert (cell["value"], cell["n"]) == (25, 2)
    assert cell["low"] <= 25 <= cell["high"]


def test_bias_is_told_in_aggregate_and_small_relations_by_count(run):
    found = cells(run, "kg_bias")
    assert found["large | fill | P21", "triples"]["value"] == 2
    assert ("large | fill | P21", "right, %") not in found
    assert not [c for frame in run[2].values() for c in frame["row"] if "label 1" in c]


def test_an_example_that_one_model_was_not_asked_is_left_out_for_all():
    made = attribute_answers.benchmarks()
    given = attribute_answers.answers(made)
    lost = "symmetry/P26/Q1/Q2#0"
    cut = [
        replace(a, alphas=a.alphas.filter(pl.col("item") != lost))
        if a.probe.model == "small"
        else a
        for a in given
    ]
    whole = attribute_answers.study()
    edges = pl.DataFrame(
        {"s": [1], "p": [26], "o": [2]}, schema={"s": pl.UInt32, "p": pl.UInt16, "o": pl.UInt32}
    )
    literals = pl.DataFrame(
        schema={
            "s": pl.UInt32,
            "p": pl.UInt16,
            "o": pl.UInt64,
            "value": pl.String,
            "text": pl.String,
        }
    )
    both = st.study(cut, made, edges, literals)
    assert both.left_out == {"symmetry/P26/Q1/Q2"}
    assert not whole.left_out
    kept = st.measure(both, both.alphas()).filter(
        model="large", benchmark="symmetry", k=1, pooling="best", gold="own"
    )
    assert kept["examples"].to_list() == [3]
    alone = st.study(cut, made, edges, literals, intersect=False)
    found = st.measure(alone, alone.alphas()).filter(
        benchmark="symmetry", k=1, pooling="best", gold="own"
    )
    assert dict(found.select("model", "missing").rows())["small"] == 1
    assert dict(found.select("model", "missing").rows())["large"] == 0


def test_the_chapter_holds_tables_figures_and_warnings(run, tmp_path):
    shown = attributes_chapter.Shown(
        tables=run[2],
        probes=[a.probe for a in run[0].answers],
        published=PRINTED,
        titles={"P26": "spouse"},
        examples=[{"benchmark": "symmetry", "prompt": "x"}],
    )
    made = attributes_chapter.chapter(shown)
    assert [d.name for d in made.drawings] == ["kg_partial", "kg_patterns", "kg_popularity"]
    assert [g.title[:10] for g in made.grids] == ["Table 2 @1", "Table 2 @3", "Table 2 @5"]
    body = {row[0].text + row[0].small: row for row in made.grids[0].rows}
    assert body["largebest prompt (oracle)"][1].small.startswith("1/3; ")
    assert body["smallbest prompt (oracle), control"][1].text == "undef"
    assert body["GPT-4published"][1].text == "38.19"
    assert any("oracle" in note for note in made.notes)
    path = tmp_path / "attributes.json"
    chapter.write(made, path)
    assert chapter.read(path).grids[0].heads == made.grids[0].heads
    again = attributes_chapter.chapter(shown)
    assert [d.svg for d in again.drawings] == [d.svg for d in made.drawings]


def test_a_model_that_only_ranks_candidates_has_no_table_of_fillings(run):
    ranked = [replace(a.probe, method="sentence") for a in run[0].answers]
    shown = attributes_chapter.Shown(
        tables={"kg_table2": run[2]["kg_table2"]}, probes=ranked, published=PRINTED, titles={}
    )
    titles = [grid.title for grid in attributes_chapter.chapter(shown).grids]
    assert len(titles) == 3
    assert all("gold ranked" in title for title in titles)
    largest = attributes_chapter.largest_model(ranked)
    assert st.worked_examples(ranked, ["no file"] * len(ranked), {}, largest) == []


def test_table_1_stands_beside_the_printed_one():
    rows = [
        ("symmetry", "labelled", 3, 6, 2, 3, 1, 2, 0, 5, 3.0),
        ("symmetry", "sampled", 1, 2, 1, 1, 1, 0, 0, 2, 2.0),
    ]
    made = sizes.sizes(pl.DataFrame(rows, schema=dict(SIZES.columns), orient="row"), PRINTED)
    found = table.lookup(made)
    assert found["symmetry | labelled", "triples"]["published"] == 1401
    assert found["symmetry | labelled", "patterns"]["published"] == 11
    assert found["symmetry | labelled", "predicates"]["published"] is None
    names = ("predicates", "written", "by label", "without template")
    assert [found["symmetry | labelled", name]["value"] for name in names] == [3, 1, 2, 0]
    assert found["symmetry | sampled", "triples"]["published"] is None
    shown = sizes.size_grid(made, PRINTED, "small")
    assert "thresholds: small" in shown.title
    assert [shown.heads.index(name) for name in names] == [5, 6, 7, 8]
    assert [cell.text for cell in shown.rows[0][5:9]] == ["3", "1", "2", "0"]
    assert [row[0].small for row in shown.rows[:3]] == [
        "with labels and templates",
        "probed here",
        "the paper",
    ]
    hints = {row[0].text: row[0].hint for row in shown.rows if row[0].small == "the paper"}
    assert "1118" in hints["composite"]


def test_funnels_and_thresholds_are_printed_in_the_paper_s_order():
    steps = [("paths", 0, "edges", 5, 0, ""), ("symmetry", 1, "ratio", 2, 3, "n < 10")]
    frame = pl.DataFrame(steps, schema=dict(STEPS.columns), orient="row")
    assert [row[0].text for row in sizes.funnel_grid(frame).rows] == ["symmetry", "paths"]
    tried = [("symmetry", "cap_pairs = 200", False, 1, 2, 4)]
    frame = pl.DataFrame(tried, schema=dict(SENSITIVITY.columns), orient="row")
    assert sizes.sensitivity_grid(frame).rows[0][1].text == "cap_pairs = 200"


def test_a_run_in_which_nothing_is_right_still_has_its_tables():
    made = attribute_answers.benchmarks()
    given = [a for a in attribute_answers.answers(made) if a.probe.model == "small"]
    wrong = [replace(a, alphas=a.alphas.with_columns(alpha=pl.lit(0.0))) for a in given]
    graph = attribute_answers.graph()
    found = st.study(wrong, {"symmetry": made["symmetry"]} | made, *graph)
    alphas = found.alphas()
    tables = at.tables(
        found, st.measure(found, alphas), st.measure_patterns(found, alphas), PRINTED
    )
    tables |= an.tables(found, alphas, st.parts(found, alphas))
    assert {"kg_table2", "kg_partial", "kg_asked"} <= set(tables)
    assert "kg_correlation" not in tables


def test_pairs_of_one_name_are_split_by_whether_their_objects_are_equal():
    same = ["ambiguous/P19/Q1/Q2"]
    both = [*same, "ambiguous/P19/Q3/Q4"]
    flags = [["same_object"] if example in same else [] for example in both]
    examples = pl.DataFrame({"example": both, "flags": flags})
    empty = pl.DataFrame()
    named = {"ambiguous": st.Benchmark("ambiguous", examples, empty, empty, empty)}
    rows = [
        ("ambiguous", example, "P19", position, alpha, "m", "fill", pooling, 1, "exact", "own")
        for pooling in ("best", "mean")
        for example, alphas in zip(both, ((1.0, 1.0), (0.0, 1.0)), strict=True)
        for position, alpha in enumerate(alphas)
    ]
    columns = ["benchmark", "example", "pattern", "position", "alpha", *st.SETTINGS]
    frame = pl.DataFrame(rows, schema=columns, orient="row")
    found = table.lookup(an.ambiguous(st.Study(named, [], empty), frame))
    row = "m | fill | best prompt (oracle)"
    assert found[row, "all pairs"]["value"] == 50
    assert found[row, "objects differ"]["value"] == 0
    assert found[row, "objects equal"]["value"] == 100
    assert found[row, "all pairs, given the head"]["value"] == 100


def test_matches_are_counted_rule_by_rule_beside_the_verbatim_figure():
    ways = dict.fromkeys((*WAYS, ""), 0) | {"verbatim": 3, "accents": 2, "aliases": 1, "": 4}
    probe = Probe("bias", "templates", "fill", "m", "causal", "-")
    study = SimpleNamespace(answers=[SimpleNamespace(probe=probe, ways=ways),
                                     SimpleNamespace(probe=probe, ways={})])  # fmt: skip
    made = at.matching(study)
    assert set(made["row"]) == {"m | fill | bias"}
    cells = dict(made.select("column", "value").rows())
    assert {c: v for c, v in cells.items() if v} == {
        "verbatim": 3, "+ accents": 2, "+ aliases": 1, "verbatim, %": 30, "all rules, %": 60,
    }  # fmt: skip
    assert len(cells) == len(WAYS) + 2
    shares = made.filter(column="all rules, %").row(0, named=True)
    assert (shares["n"], round(shares["low"], 2), round(shares["high"], 2)) == (10, 31.27, 83.18)

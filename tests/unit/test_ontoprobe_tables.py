"""OntoProbe's tables: choice of a configuration, metrics per item, premises and settings."""

import itertools
import json

import numpy as np
import polars as pl
import pytest

from kgprobe import schema
from kgprobe.benchmarks import ontoprobe_modes
from kgprobe.tables import (
    chapter,
    headline,
    ontoprobe,
    ontoprobe_averages,
    ontoprobe_calibration,
    ontoprobe_figures,
    ontoprobe_gather,
    ontoprobe_groups,
    ontoprobe_means,
    ontoprobe_reasoning,
    ontoprobe_report,
    ontoprobe_values,
)
from kgprobe.tables import ontoprobe_modes as side_by_side
from kgprobe.tables import table as table_module
from kgprobe.tables.ontoprobe import Answered

TASKS = ("TP", "SCO", "SPO", "DM", "RG")


def make_items(rows=40):
    found = []
    for task in TASKS:
        for row in range(rows):
            role = "train" if row < 10 else "dev" if row < 20 else "test"
            meta = {"label": f"{task} {row}", "depth": 1 + row % 3, "leak": row % 5 == 0}
            if task == "TP" and row == 39:
                meta["repeat"] = "TP-38"
            golds = [row % 7] if task in ("DM", "RG") else [row % 7, 7 + row % 2]
            found.append(
                (
                    f"{task}-{row}",
                    task,
                    role,
                    task,
                    f"s {row}",
                    f"id {row}",
                    "",
                    "class",
                    golds,
                    row,
                    json.dumps(meta),
                )
            )
    return pl.DataFrame(found, schema=dict(schema.ITEMS.columns), orient="row")


def make_ranks(items, seed=0):
    """Random rank ranges of every gold in six configurations of two templates."""
    rng = np.random.default_rng(seed)
    rows = []
    asked = items.filter(pl.col("role") != "train").select("item", "answers").rows()
    ways = itertools.product((1, 2), ("multi", "single"), ("mean", "max", "first"))
    for (item, answers), way in itertools.product(asked, ways):
        places = rng.permutation(12)[: len(answers)] + 1
        for gold, best in zip(answers, places.tolist(), strict=True):
            rows.append((item, *way, gold, best, best, best, 1 + gold % 3, -1.0 * best))
    return pl.DataFrame(rows, schema=dict(schema.RANKS.columns), orient="row")


@pytest.fixture(scope="module")
def items():
    return make_items()


@pytest.fixture(scope="module")
def values(items):
    known = ontoprobe_values.of_items(items)
    return ontoprobe_values.metrics(ontoprobe_values.from_ranks(make_ranks(items)), known)


def answered(values):
    return Answered("tiny", "onto_released", "masked", False, "bert-base-cased", True, values)


def test_the_choice_never_reads_a_test_row(values):
    chosen = ontoprobe_values.choose(values)
    assert set(chosen) == set(TASKS)
    assert ontoprobe_values.choose(values.filter(role="dev")) == chosen


def test_the_choice_goes_by_mrra_and_then_by_the_stated_order(values):
    for task, configuration in ontoprobe_values.choose(values).items():
        dev = values.filter(role="dev", task=task)
        means = dev.group_by(ontoprobe_values.CONFIGURATION).agg(pl.col("MRRa").mean())
        own = ontoprobe_values.of_configuration(dev, configuration)["MRRa"].mean()
        assert own == pytest.approx(means["MRRa"].max())
    equal = values.with_columns(pl.lit(50.0).alias(m) for m in ("MRRa", "MRR", "R@5"))
    assert set(ontoprobe_values.choose(equal).values()) == {("m1", "multi", "mean", "", 0)}


def test_the_oracle_is_never_below_the_choice(values):
    printed = pl.DataFrame(
        {"model": ["x"], "task": ["TP"], "template": ["manual"], "metric": ["R@1"], "value": [1.0]}
    )
    frame = ontoprobe.memorising([answered(values)], printed, "distinct", 0)
    cells = {(r, c): v for r, c, v in frame.select("row", "column", "value").rows()}
    for (row, column), value in cells.items():
        if row.endswith("| chosen"):
            assert cells[row.replace("chosen", "oracle"), column] >= value - 1e-9


def test_repeated_rows_count_once_unless_all_are_wanted(values):
    one = ontoprobe_values.asked_rows(values.filter(task="TP"))["item"].n_unique()
    assert (
        one,
        ontoprobe_values.asked_rows(values.filter(task="TP"), "all")["item"].n_unique(),
    ) == (
        19,
        20,
    )


def test_printed_values_stand_beside_the_same_configuration_only(values):
    printed = pl.DataFrame(
        {
            "task": ["TP"],
            "model": ["bert-base-cased"],
            "template": ["manual2"],
            "masks": ["multiple"],
            "pooling": ["max"],
            "loss": [None],
            "R@1": [1.5],
            "R@5": [2.5],
            "MRRa": [0.5],
            "MRR": [2.0],
        }
    )
    frame = ontoprobe.configurations([answered(values)], printed, "distinct", 0)
    beside = frame.filter(pl.col("published").is_not_null())
    assert beside["row"].unique().to_list() == ["tiny | onto_released | TP | m2 m max"]
    assert beside.filter(column="R@5")["published"].item() == 2.5
    assert (frame["low"] <= frame["value"] + 1e-9).all()
    assert (frame["high"] >= frame["value"] - 1e-9).all()


def test_soft_prompts_are_chosen_apart_from_manual_ones(items, values):
    ranks = (
        make_ranks(items, 1)
        .filter(template=1)
        .with_columns(loss=pl.lit("bce"), seed=pl.lit(0, dtype=pl.Int32))
    )
    known = ontoprobe_values.of_items(items)
    soft = ontoprobe_values.metrics(ontoprobe_values.from_ranks(ranks), known)
    printed = pl.DataFrame(
        {"model": ["bert-base-cased"], "task": ["TP"], "template": ["soft"]}
    ).with_columns(metric=pl.lit("R@1"), value=20.1)
    own = answered(pl.concat([values, soft]))
    frame = ontoprobe.memorising([own], printed, "distinct", 0)
    rows = {row.split(" | ", 2)[2] for row in frame["row"]}
    assert {"TP | manual | chosen", "TP | soft | chosen", "TP | soft | fixed"} <= rows
    beside = frame.filter(pl.col("published").is_not_null())
    assert beside["row"].to_list() == ["tiny | onto_released | TP | soft | oracle"]
    assert ontoprobe_values.fixed(soft, "TP") == ("soft", "multi", "mean", "BCE", 0)


def test_ranks_from_sentence_scores_are_tie_ranges(items):
    item = items.filter(item="DM-30")  # gold 2
    scores = pl.DataFrame(
        {
            "item": ["DM-30"] * 4,
            "template": pl.Series([1] * 4, dtype=pl.Int32),
            "candidate": pl.Series([0, 1, 2, 3], dtype=pl.Int32),
            "sum": [-9.0, -8.0, -7.0, -6.0],
            "answer_sum": [-2.0, -4.0, -4.0, -8.0],
            "answer_count": pl.Series([1, 2, 2, 2], dtype=pl.Int32),
        }
    )
    found = ontoprobe_values.from_scores(scores, item)
    by = {r["pooling"]: (r["best"], r["worst"]) for r in found.iter_rows(named=True)}
    assert by == {"answer_mean": (1, 3), "sum": (2, 2)}


def test_mean_ranks_make_hits_all_or_nothing(items):
    ranks = make_ranks(items).with_columns(worst=pl.col("best") + 1)
    known = ontoprobe_values.of_items(items)
    found = ontoprobe_values.from_ranks(ranks)
    expected = ontoprobe_values.metrics(found, known)
    whole = ontoprobe_values.metrics(found, known, "mean_rank")
    assert set(whole["R@1"].unique()) <= {0.0, 100.0}
    assert 50.0 in expected["R@1"].to_list()


def test_groups_remove_leaks_and_split_by_depth(values):
    frame = ontoprobe_groups.groups([answered(values)], "distinct", 0)
    n = {r: n for r, c, n in frame.select("row", "column", "n").rows() if c == "MRR"}
    start = "tiny | onto_released | SCO | manual | "
    assert n[start + "all"] == 20
    assert n[start + "without leaks"] == 16
    assert sum(n[start + f"depth {d}"] for d in (1, 2, 3)) == 20


@pytest.mark.parametrize("size", [6, 7])
def test_halves_are_disjoint_equally_many_and_leave_the_middle_out(size):
    rng = np.random.default_rng(size)
    ranked = [(f"i{k}", float(v), 1 / v, k) for k, v in enumerate(rng.random(size))]
    found, cut = ontoprobe_reasoning.halves(ranked)
    known = [i for i, c in found.items() if c == 1]
    unknown = [i for i, c in found.items() if c == 0]
    assert len(known) == len(unknown) == size // 2
    scores = {r[0]: r[1] for r in ranked}
    assert min(scores[i] for i in known) == cut > max(scores[i] for i in unknown)
    assert len(found) == size


def make_cases(rows=8):
    found = []
    for rule in ontoprobe_reasoning.RULES:
        for row in range(rows):
            meta = json.dumps({"p1_item": f"T-{row}"})
            found.append(
                (f"{rule}-{row}", rule, "test", rule, "s", "s", "", "class", [0], row, meta)
            )
    return pl.DataFrame(found, schema=dict(schema.ITEMS.columns), orient="row")


def test_nine_settings_are_filters_on_rows_and_empty_ones_stay_out():
    cases = make_cases()
    first = pl.DataFrame(
        {
            "item": [f"T-{r}" for r in range(8)],
            "MRR": [1 - r / 10 for r in range(8)],
            "rank": [1.0] * 8,
        }
    )
    second = cases.select("item").with_columns(
        MRR=pl.Series([1 - (k % 8) / 10 for k in range(cases.height)]), rank=1.0
    )
    premises = ontoprobe_reasoning.classify(cases, first, second)
    assert [premises.first["rdfs2"][f"rdfs2-{k}"] for k in (0, 3, 4, 7)] == [1, 1, 0, 0]
    forms = [(a, b) for a in (True, False) for b in (True, False)]
    answers = pl.DataFrame(
        [
            (item, "manual+manual", a, b, pair, 0.5 + 0.25 * a + 0.125 * b + 0.01 * pair)
            for item in cases["item"]
            for a, b in forms
            for pair in (0, 1)
        ],
        schema=["item", "scheme", "p1", "p2", "pair", "MRR"],
        orient="row",
    )
    found = ontoprobe_reasoning.settings(answers, {"manual": premises}, cases)
    assert found.height == 6 * 9
    rows = found.filter(rule="rdfs9").select("p1", "p2", "items").rows()
    n = {(a, b): len(items) for a, b, items in rows}
    assert n == {
        (2, 2): 8,
        (2, 1): 4,
        (2, 0): 4,
        (1, 2): 4,
        (0, 2): 4,
        (1, 1): 4,
        (0, 0): 4,
        (1, 0): 0,
        (0, 1): 0,
    }
    explicit = found.filter(rule="rdfs9", p1=2, p2=2)["MRR"].item()
    assert explicit == pytest.approx(0.88)
    table = ontoprobe_reasoning.figures({"tiny": found})
    columns = set(table.filter(row="tiny | rdfs9")["column"])
    assert "P1 EX, P2 EX" in columns
    assert not any("IM, P2 NO" in c for c in columns)
    assert (table["n"] > 0).all()


def test_figure_4_averages_schemes_over_models_and_rules():
    rows = [
        ("rdfs2", "manual+manual", 2, 2, names("rdfs2", 0, 10), 0.2, 0.1, 0.3),
        ("rdfs3", "manual+manual", 2, 2, names("rdfs3", 0, 30), 0.4, 0.1, 0.5),
        ("rdfs2", "soft+soft", 2, 2, names("rdfs2", 2, 12), 0.6, 0.5, 0.7),
        ("rdfs2", "manual+manual", 1, 1, names("rdfs2", 0, 2), 0.2, 0.1, 0.3),
        ("rdfs2", "soft+soft", 1, 1, names("rdfs2", 0, 4), 0.2, 0.1, 0.3),
    ]
    frame = pl.DataFrame(rows, schema=SETTINGS_COLUMNS, orient="row")
    table = ontoprobe_reasoning.figures({"m, onto_world": frame})
    row = "m, onto_world | rdfs2"
    cells = {(r, c): v for r, c, v in table.select("row", "column", "value").rows()}
    plain, weighted = "P1 EX, P2 EX", "P1 EX, P2 EX, by rows"
    assert cells["scheme manual+manual | all rules", plain] == pytest.approx(0.3)
    assert cells["scheme manual+manual | all rules", weighted] == pytest.approx(0.35)
    assert cells[row, plain] == pytest.approx(0.4)
    assert cells["all models | all rules", plain] == pytest.approx(0.4)
    # n: distinct rows, not rows times schemes; 0 to 9 and 2 to 11 are twelve
    n = {(r, c): v for r, c, v in table.select("row", "column", "n").rows()}
    assert n[row, plain] == 12
    assert n["all models | all rules", plain] == 42
    assert n["scheme manual+manual | all rules", plain] == 40
    assert n[row, "P1 IM, P2 IM"] == 4
    assert n[row, "P1 IM, P2 IM, by rows"] == 4


SETTINGS_COLUMNS = ["rule", "scheme", "p1", "p2", "items", "MRR", "low", "high"]


def names(rule, first, last):
    return [f"{rule}-{row}" for row in range(first, last)]


def test_models_of_one_set_share_rows_and_those_of_two_sets_do_not():
    rows = [("rdfs2", "manual+manual", 2, 2, names("rdfs2", 0, 6), 0.2, 0.1, 0.3)]
    frame = pl.DataFrame(rows, schema=SETTINGS_COLUMNS, orient="row")

    def n(*labels):
        table = ontoprobe_reasoning.figures(dict.fromkeys(labels, frame))
        own = table.filter(row="all models | all rules", column="P1 EX, P2 EX")
        return own["n"].item()

    assert n("a, onto_world", "b, onto_world") == 6
    assert n("a, onto_world", "a, onto_released") == 12


def test_every_cell_of_fewer_than_five_rows_is_marked_at_the_number_and_in_the_figure():
    rows = [
        ("rdfs9", "manual+manual", one, two, names("rdfs9", 0, n), 0.5, 0.25, 0.75)
        for (one, two), n in {(2, 2): 9, (2, 1): 5, (1, 1): 4, (0, 0): 1}.items()
    ]
    frame = pl.DataFrame(rows, schema=SETTINGS_COLUMNS, orient="row")
    table = ontoprobe_reasoning.figures({"m, onto_world": frame})
    grid_ = ontoprobe_report._reasoning(table)
    (own,) = [r for r in grid_.rows if r[0].text == "m, onto_world | rdfs9"]
    shown = {head: (cell.text, cell.small) for head, cell in zip(grid_.heads, own, strict=True)}
    assert shown["P1 EX, P2 EX"] == ("0.500", "n = 9; 0.250 to 0.750")
    assert shown["P1 EX, P2 IM"] == ("0.500", "n = 5; 0.250 to 0.750")
    assert shown["P1 IM, P2 IM"] == ("0.500 †", "n = 4; 0.250 to 0.750")
    assert shown["P1 NO, P2 NO"] == ("0.500 †", "n = 1; 0.250 to 0.750")
    assert "fewer than 5 rows" in grid_.caption
    cells = {(r, c): v for (r, c), v in table_module.lookup(table).items()}
    picture = ontoprobe_figures._panels(cells, [("rdfs9", "m, onto_world | rdfs9")])
    (axes,) = picture.axes
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("P2", "P1")
    at = {text.get_position(): text.get_text() for text in axes.texts}
    # x is P2, y is P1: EX, IM, NO from the left and from above
    assert at == {
        (0.5, 0.5): "0.50\nn 9",
        (1.5, 0.5): "0.50\nn 5",
        (1.5, 1.5): "0.50 †\nn 4",
        (2.5, 2.5): "0.50 †\nn 1",
    }


def gathered(tmp_path, items, values, is_taught, lite=False):
    """OntoProbe's tables of one control model; `is_taught`: row of TP -> whether it was taught.

    `lite`: beside it a part of the set with four test rows of each task and nine candidates, in
    another order.
    """
    candidates = pl.DataFrame(
        [("class", i, f"kind {i}", f"kind {i}") for i in range(12)],
        schema=dict(schema.CANDIDATES.columns),
        orient="row",
    )
    prompts = pl.DataFrame(
        [(f"{t}-m1", t, 1, "[X] is a [Y] .", "manual") for t in TASKS],
        schema=dict(schema.PROMPTS.columns),
        orient="row",
    )
    folder = tmp_path / "onto_world"
    for name, frame in (("items", items), ("candidates", candidates), ("prompts", prompts)):
        schema.write(frame, getattr(schema, name.upper()), folder / f"{name}.parquet")
    own = Answered("control", "onto_world", "masked", True, "", False, values)
    found, folders = [own], {"onto_world": folder}
    if lite:
        few = items.filter((pl.col("role") == "test") & pl.col("row").is_between(20, 23))
        turned = few.with_columns(pl.col("answers").list.eval(8 - pl.element()))
        part = candidates.head(9).with_columns(index=8 - pl.col("index")).sort("index")
        other = tmp_path / "onto_world_lite"
        for name, frame in (("items", turned), ("candidates", part), ("prompts", prompts)):
            schema.write(frame, getattr(schema, name.upper()), other / f"{name}.parquet")
        own_values = values.filter(pl.col("item").is_in(few["item"].to_list()))
        dev = own_values.with_columns(role=pl.lit("dev"))
        both = pl.concat([own_values, dev])
        found.append(Answered("real", "onto_world_lite", "causal", False, "", False, both))
        folders["onto_world_lite"] = other
    taught = pl.DataFrame(
        [(f"TP/TP {r}", "TP", f"TP {r}", "x", is_taught(r)) for r in range(20, 40)],
        schema=dict(schema.TAUGHT.columns),
        orient="row",
    )
    printed = {
        "sizes": pl.DataFrame({"task": ["TP"], "train": [10], "dev": [10], "test": [8789]}),
        "configurations": make_printed(),
        "memorizing": pl.DataFrame(
            {
                "model": ["x"],
                "task": ["TP"],
                "template": ["manual"],
                "metric": ["R@1"],
                "value": [1.0],
            }
        ),
    }
    switches = ontoprobe_modes.resolve("default")
    tied = dict.fromkeys(ontoprobe_values.TIES, found)
    return ontoprobe_gather.tables(found, folders, printed, switches, 0, taught, tied)


def test_the_chapter_can_be_written_and_read(tmp_path, items, values):
    made = gathered(tmp_path, items, values, lambda row: row % 2 == 0)
    side = {
        (r, c): v for r, c, v in made["ontoprobe_modes"].select("row", "column", "value").rows()
    }
    for row in {r for r, _ in side}:
        assert side[row, "select = oracle"] >= side[row, "all at default"]
        assert side[row, "ties = mean_rank"] == side[row, "all at default"]  # nothing is tied here
    values_here = ontoprobe_modes.resolve("default")
    assert len(side_by_side.points(values_here)) == len(ontoprobe_modes.SWITCHES)
    assert "ontoprobe_calibration" in made
    assert all("(control)" in row for row in made["ontoprobe_calibration"]["row"])
    page = ontoprobe_report.chapter(made, [], {}, {}, "default")
    chapter.write(page, tmp_path / "chapter.json")
    again = chapter.read(tmp_path / "chapter.json")
    assert next(g.title for g in again.grids) == "Table 1: sizes"
    assert {d.name for d in again.drawings} == {"ontoprobe_figure5", "ontoprobe_figure6"}


def test_every_kind_of_template_has_a_calibration_of_its_own(tmp_path, items, values):
    """Manual answers that are right for taught rows alone, soft ones that are never right."""
    flags = {f"TP-{row}": row % 2 == 0 for row in range(20, 40)}
    right = pl.col("item").replace_strict(flags, default=False)
    numbers = [pl.when(right).then(100.0).otherwise(10.0).alias(m) for m in ("R@1", "MRR")]
    manual = values.with_columns(numbers).with_columns(
        pl.when(right).then(100.0).otherwise(0.0).alias("R@1")
    )
    soft = soft_values(items, (0,)).with_columns(pl.lit(0.0).alias("R@1"))
    made = gathered(tmp_path, items, pl.concat([manual, soft]), lambda row: row % 2 == 0)
    frame = made["ontoprobe_calibration"]
    cells = {(r, c): v for r, c, v in frame.select("row", "column", "value").rows()}
    start = "(control) | onto_world | TP | "
    assert {r for r, _ in cells} == {f"control {start}manual", f"control (?) {start}soft"}
    assert cells[f"control {start}manual", "taught"] == 100
    assert cells[f"control {start}manual", "untaught"] == 0
    assert cells[f"control {start}manual", "AUC"] == 1
    # two golds among twelve candidates
    assert cells[f"control {start}manual", "chance"] == pytest.approx(100 * 2 / 12)
    assert cells[f"control {start}manual", "limit for untaught"] == pytest.approx(5 + 200 * 2 / 12)
    assert cells[f"control (?) {start}soft", "taught"] == 0
    assert "ontoprobe_untaught" not in made  # no untaught share is above its limit
    for name in ("configurations", "memorising", "groups", "seeds"):
        rows = set(made[f"ontoprobe_{name}"]["row"])
        soft_rows = {r for r in rows if "soft" in r or name == "seeds"}
        assert soft_rows, name
        assert all(r.startswith("control (?) ") for r in soft_rows), name
        assert not any("(?)" in r for r in rows - soft_rows), name
    page = ontoprobe_report.chapter(made, [], {}, {}, "default")
    table4 = next(g for g in page.grids if g.title.startswith("Table 4"))
    assert "control (?) (control), soft, onto_world" in table4.heads
    assert "control (control), manual, onto_world" in table4.heads
    text = headline.text(headline.build(made))
    assert "control (?), soft" in text
    assert "control, manual" in text


def test_what_explains_untaught_statements_is_counted_by_hand():
    """Six untaught subjects, the first three right, beside four taught ones."""
    candidates = pl.DataFrame(
        [("class", i, name, name) for i, name in enumerate(["club", "band", "river", "city"])],
        schema=dict(schema.CANDIDATES.columns),
        orient="row",
    )
    asked = [("Rugby Clubs", [0]), ("Slade", [1]), ("Elbe", [2, 3]), ("City of York", [3]),
             ("Blur", [1]), ("Oder", [2])]  # fmt: skip
    rows = [
        (f"TP-{i}", "TP", "test", "TP", name, name, "", "class", golds, i,
         json.dumps({"label": name}))
        for i, (name, golds) in enumerate(asked)
    ]  # fmt: skip
    items = pl.DataFrame(rows, schema=dict(schema.ITEMS.columns), orient="row")
    taught = pl.DataFrame(
        [(f"TP/{s}", "TP", s, o, True) for s, o in
         [("Blur Band", "band"), ("Abba", "band"), ("Ajax", "club"), ("Nile", "lake")]]
        + [(f"TP/{name}", "TP", name, "", False) for name, _ in asked],
        schema=dict(schema.TAUGHT.columns),
        orient="row",
    )  # fmt: skip
    known = ontoprobe_calibration._told(taught, "TP")
    values = ontoprobe_values.of_items(items).with_columns(
        pl.Series("R@1", [100.0, 100.0, 50.0, 0.0, 0.0, 0.0])
    )
    values = ontoprobe_calibration._with_golds(values, items, candidates)
    cells = ontoprobe_calibration._explained("m", values, known)
    found = {(c["row"], c["column"]): (round(c["value"], 1), c["n"]) for c in cells}
    names = ontoprobe_calibration.REASONS
    # "Rugby Clubs" a club; band and club were taught of others; band is taught most often
    assert [found["m | right", n] for n in names] == [(33.3, 3), (66.7, 3), (0.0, 3), (33.3, 3)]
    # "City of York" a city; Blur's sibling is "Blur Band", of the commonest class
    assert [found["m | wrong", n] for n in names] == [(33.3, 3), (33.3, 3), (33.3, 3), (33.3, 3)]
    assert found["m | right", "any of these"] == (66.7, 3)
    assert found["m | wrong", "any of these"] == (66.7, 3)


def test_table_4_names_candidates_and_rows_and_stands_in_three_ways(tmp_path, items, values):
    """A small part of a set has fewer candidates, no training rows, and yet a baseline."""
    made = gathered(tmp_path, items, values, lambda row: True, lite=True)
    page = ontoprobe_report.chapter(made, [], {}, {}, "default")
    tables4 = [g for g in page.grids if g.title.startswith("Table 4")]
    assert [g.title.split(": ", 1)[1] for g in tables4] == [
        "one configuration, chosen on the dev rows",
        "the fixed configuration: m, mean, last template (soft: BCE)",
        "oracle (per-metric maximum on test)",
    ]
    for shown in tables4:
        row = next(r for r in shown.rows if r[0].text == "SCO R@1")
        at = {head: cell.text for head, cell in zip(shown.heads, row, strict=True)}
        assert (at["candidates, onto_world"], at["rows, onto_world"]) == ("12", "20")
        assert (at["candidates, onto_world_lite"], at["rows, onto_world_lite"]) == ("9", "4")
        # rows 0 to 9 of the whole set: golds 0 to 6 and 7, 8 in turns, so 7 and 8 lead
        assert at["frequency, onto_world_lite"] not in ("", "–")
    cells = table_module.lookup(made["ontoprobe_baseline"])
    # by count: 7 and 8 five times, 0, 1 and 2 twice; SCO-20, 22 have gold 7, SCO-21, 23 gold 8
    assert cells["frequency baseline | onto_world_lite | SCO", "R@1"]["value"] == 50
    assert cells["frequency baseline | onto_world_lite | SCO", "R@5"]["value"] == 100


@pytest.mark.parametrize("way", ["soft", "sentence", "no dev rows"])
def test_tables_that_do_not_apply_are_left_out(tmp_path, items, values, way):
    if way == "soft":
        values = soft_values(items, (0,))
    if way == "sentence":
        first = values.filter(template="m1", masks="multi", pooling="mean")
        values = first.with_columns(masks=pl.lit("sentence"), pooling=pl.lit("answer_mean"))
    if way == "no dev rows":
        values = values.filter(pl.col("role") != "dev")
    made = gathered(tmp_path, items, values, lambda row: True)  # nothing is untaught
    expected = {"sizes", "configurations", "memorising", "baseline"}
    expected |= {"groups"} if way != "no dev rows" else set()
    expected |= {"averages"} if way != "sentence" else set()
    expected |= {"seeds"} if way == "soft" else set()
    expected |= {"modes"} if way == "sentence" else set()
    assert {name.removeprefix("ontoprobe_") for name in made} == expected
    page = ontoprobe_report.chapter(made, [], {}, {}, "default")
    for shown in [*page.grids, *page.folded]:
        assert shown.rows, shown.title


def make_printed():
    row = {"task": "TP", "model": "x", "template": "manual1", "pooling": "mean", "loss": None}
    numbers = {"R@1": 1.0, "R@5": 2.0, "MRRa": 1.0, "MRR": 1.5}
    return pl.DataFrame([{**row, "masks": m, **numbers} for m in ("multiple", "single")])


def soft_values(items, seeds):
    """Metrics of one soft configuration under several seeds."""
    frames = []
    for seed in seeds:
        ranks = make_ranks(items, seed).filter(template=1, masks="multi", pooling="mean")
        frames.append(ranks.with_columns(loss=pl.lit("bce"), seed=pl.lit(seed, dtype=pl.Int32)))
    found = ontoprobe_values.from_ranks(pl.concat(frames))
    return ontoprobe_values.metrics(found, ontoprobe_values.of_items(items))


def test_soft_prompts_are_means_over_seeds_with_students_interval(items):
    values = soft_values(items, (0, 1, 2))
    means = ontoprobe_values.over_seeds(values)
    assert set(means["seed"]) == {ontoprobe_values.MEAN}
    item = values.filter(item="TP-20")
    assert means.filter(item="TP-20")["MRR"].item() == pytest.approx(item["MRR"].mean())
    one = soft_values(items, (4,))
    assert ontoprobe_values.over_seeds(one).equals(one)
    frame = ontoprobe_means.seeds([("tiny | onto_world", values)], "distinct")
    row = frame.filter(row="tiny | onto_world | TP | soft m mean BCE")
    by_seed = (
        ontoprobe_values.asked_rows(values)
        .filter(task="TP")
        .group_by("seed")
        .agg(pl.col("MRR").mean())["MRR"]
        .to_numpy()
    )
    cell = row.filter(column="MRR")
    assert cell["n"].item() == 3
    assert cell["value"].item() == pytest.approx(by_seed.mean())
    half = 4.303 * by_seed.std(ddof=1) / np.sqrt(3)
    assert cell["high"].item() - cell["value"].item() == pytest.approx(half)
    spread = row.filter(column="MRR, spread")["value"].item()
    assert spread == pytest.approx(by_seed.std(ddof=1))
    assert ontoprobe_means.seeds([("x", one.filter(template="m1"))], "distinct") is None
    alone = ontoprobe_means.seeds([("x", one)], "distinct").filter(column="MRR")
    assert alone["low"].null_count() == alone.height


def test_table_4_prints_soft_prompts_as_the_mean_and_the_oracle_as_the_best_seed(items):
    values = soft_values(items, (0, 1, 2))
    printed = pl.DataFrame(
        {"model": ["x"], "task": ["TP"], "template": ["soft"], "metric": ["R@1"], "value": [1.0]}
    )
    frame = ontoprobe.memorising([answered(values)], printed, "distinct", 0)
    cells = {(r, c): v for r, c, v in frame.select("row", "column", "value").rows()}
    start = "tiny | onto_released | TP | soft"
    test = ontoprobe_values.asked_rows(values).filter(task="TP")
    by_seed = test.group_by("seed").agg(pl.col("MRR").mean())["MRR"]
    assert cells[f"{start} | chosen", "MRR"] == pytest.approx(by_seed.mean())
    assert cells[f"{start} | oracle", "MRR"] == pytest.approx(by_seed.max())
    oracle = frame.filter(pl.col("row").str.ends_with("oracle"))
    assert (oracle["low"] <= oracle["value"]).all()
    assert (oracle["value"] <= oracle["high"]).all()


def test_groups_by_tokens_of_the_finest_gold(items, values):
    frame = ontoprobe_groups.groups([answered(values)], "distinct", 0)
    own = frame.filter(column="MRR").filter(pl.col("row").str.contains(r"\| SCO \|.*\| tokens "))
    sizes = {int(r.rsplit(" ", 1)[1]): n for r, n in own.select("row", "n").rows()}
    finest = items.filter(relation="SCO", role="test")["answers"].list.first().to_list()
    assert sizes == {t: sum(1 + g % 3 == t for g in finest) for t in (1, 2, 3)}


def test_runs_stand_side_by_side_where_they_asked_the_same(tmp_path, values):
    printed = pl.DataFrame(
        {"model": ["x"], "task": ["TP"], "template": ["manual"], "metric": ["R@1"], "value": [1.0]}
    )
    here = ontoprobe.memorising([answered(values)], printed, "distinct", 0)
    other = here.filter(pl.col("row").str.contains("TP")).with_columns(pl.col("value") / 2)
    path = tmp_path / "ontoprobe_memorising.parquet"
    switches = {**ontoprobe_modes.resolve("default"), "ties": "index_order"}
    schema.write(other, schema.TABLE, path, {"switches": switches})
    table, told = side_by_side.runs(here, {"released": path})
    assert told == [{"run": "released", "switches off their default": "ties: index_order"}]
    row = "tiny | onto_released | TP | manual | chosen"
    cells = {(r, c): v for r, c, v in table.select("row", "column", "value").rows()}
    assert cells[row, "MRR, released"] == pytest.approx(cells[row, "MRR, this run"] / 2)
    assert all("| TP |" in r for r, _ in cells)
    schema.write(other.with_columns(row=pl.lit("z | ") + pl.col("row")), schema.TABLE, path)
    with pytest.raises(ValueError, match="is also in this run; name results of the same"):
        side_by_side.runs(here, {"released": path})


def test_averages_have_intervals_over_configurations():
    rng = np.random.default_rng(0)
    rows = pl.DataFrame(
        {"task": ["TP"] * 20 + ["DM"] * 4, "model": "m", "masks": ["multiple", "single"] * 12}
        | {m: rng.random(24) for m in ontoprobe_values.METRICS}
    )
    bounds = ontoprobe_averages.bounds(rows, "masks")
    means = ontoprobe_averages.averages(rows, "masks")
    for row in means.iter_rows(named=True):
        low, high = bounds[row["masks"], "MRR"]
        assert low < row["MRR"] < high
    literal = [
        rng.choice(rows.filter(masks="single")["MRR"].to_numpy(), 12).mean() for _ in range(4000)
    ]
    assert bounds["single", "MRR"] == pytest.approx(np.quantile(literal, [0.025, 0.975]), abs=0.02)
    assert ontoprobe_averages.bounds(rows.head(2), "masks") == {}

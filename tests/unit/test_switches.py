"""`kgprobe switches`: one switch turned on stored answers, beside what was expected of it."""

import json

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

from kgprobe import schema, sheets
from kgprobe.benchmarks.attributes.frames import EXAMPLES
from kgprobe.benchmarks.ontoprobe import modes
from kgprobe.cli import app, turning
from kgprobe.tables import results, switches
from kgprobe.tables.attributes import turned as attributes
from kgprobe.tables.autoprompt import turned as autoprompt
from kgprobe.tables.estimate import CELLS
from kgprobe.tables.ontoprobe import turned, values
from kgprobe.tables.results import Number
from tests.unit import attribute_answers
from tests.unit.test_ontoprobe_tables import BOTH, TASKS, make_items, make_ranks, probe, settled
from tests.unit.test_tables_choices import answered

EXPECTED = sheets.read_table(sheets.located(turning.EXPECTED))


@pytest.fixture(scope="module")
def items():
    return make_items()


@pytest.fixture(scope="module")
def ranks(items):
    """Every gold is tied with the option behind it."""
    return make_ranks(items).with_columns(worst=pl.col("best") + 1, in_order=pl.col("best") + 1)


@pytest.fixture(scope="module")
def found(items, ranks):
    """Rows of `measured` by switch, other value and group."""
    told = turned.StoredAnswers({probe(): (values.from_ranks(ranks), values.of_items(items))})
    turns = list(turned.turns(told, modes.Switches()))
    rows = switches.measured(turns, EXPECTED)
    return {(row["switch"], row["other"], row["group"]): row for row in rows}


def cells(values, part="", weight=1.0, below=None):
    below = below or [1.0] * len(values)
    rows = [(part, "", f"i{k}", float(v), b, weight)
            for k, (v, b) in enumerate(zip(values, below, strict=True))]  # fmt: skip
    return pl.DataFrame(rows, schema=dict(CELLS), orient="row")


# -- by hand ---------------------------------------------------------------------------------------


def literal_mrr(ranks, items, task, ties, select, repeats=False):
    """MRR in per cent of a task by loops: 1 / rank of the best gold, under `ties`.

    The configuration has the best MRRa (1 / mean rank of the golds) on dev rows, or the best MRR on
    the test rows themselves.
    """
    roles, kept = {}, set()
    for row in items.filter(relation=task).iter_rows(named=True):
        roles[row["item"]] = row["role"]
        if row["role"] == "test" and (repeats or "repeat" not in json.loads(row["meta"])):
            kept.add(row["item"])
    golds = {}
    for row in ranks.iter_rows(named=True):
        if row["item"] in roles:
            way = row["template"], row["masks"], row["pooling"]
            place = row["best"], row["worst"], row["in_order"]
            golds.setdefault((way, row["item"]), []).append(place)
    by_dev, by_test = {}, {}
    for (way, item), places in golds.items():
        if roles[item] == "dev":
            middle = [{"index_order": o}.get(ties, (b + w) / 2) for b, w, o in places]
            by_dev.setdefault(way, []).append(1 / (sum(middle) / len(middle)))
        if item in kept:
            best, worst, order = min(places)
            if ties == "expectation":
                drawn = [1 / rank for rank in range(best, worst + 1)]
                value = sum(drawn) / len(drawn)
            else:
                value = 1 / {"mean_rank": (best + worst) / 2, "index_order": order}[ties]
            by_test.setdefault(way, []).append(value)
    mean = {way: 100 * sum(v) / len(v) for way, v in by_test.items()}
    if select == "oracle":
        return max(mean.values())
    return mean[max(by_dev, key=lambda way: sum(by_dev[way]) / len(by_dev[way]))]


@pytest.mark.parametrize("ties", ["mean_rank", "index_order"])
def test_ties_turned_are_the_mrr_by_hand(found, items, ranks, ties):
    before, after = [], []
    for task in TASKS:
        row = found["ties", ties, task]
        before.append(literal_mrr(ranks, items, task, "expectation", "dev"))
        after.append(literal_mrr(ranks, items, task, ties, "dev"))
        assert row["value"] == pytest.approx(before[-1], abs=1e-9)
        assert row["turned"] == pytest.approx(after[-1], abs=1e-9)
        assert row["n"] == (19 if task == "TP" else 20)
    whole = found["ties", ties, ""]
    assert whole["value"] == pytest.approx(sum(before) / 5, abs=1e-9)
    assert whole["change"] == pytest.approx(sum(after) / 5 - sum(before) / 5, abs=1e-9)
    assert whole["low"] <= whole["change"] <= whole["high"]
    assert whole["n"] == 99


def test_select_and_rows_turned_are_the_mrr_by_hand(found, items, ranks):
    for task in TASKS:
        for switch, other, way in (
            ("select", "oracle", ("oracle", False)),
            ("tp_rows", "all", ("dev", True)),
        ):
            row = found[switch, other, task]
            value = literal_mrr(ranks, items, task, "expectation", "dev")
            after = literal_mrr(ranks, items, task, "expectation", *way)
            assert row["value"] == pytest.approx(value, abs=1e-9)
            assert row["change"] == pytest.approx(after - value, abs=1e-9)
    # all 20 test rows of TP are drawn, of which one is a repeat
    assert found["tp_rows", "all", "TP"]["n"] == 20
    assert found["tp_rows", "all", "SCO"]["low"] is None
    assert found["tp_rows", "all", "SCO"]["change"] == 0
    assert found["tp_rows", "all", "SCO"]["verdict"] == switches.CONFIRMED
    assert found["select", "oracle", ""]["expected"] == ">"


def test_recall_turned_by_hand(found, items, ranks):
    """Hits among five, and the fraction of golds there; both at their expectation under ties."""
    row = found["recall", "share", "SPO"]
    assert row["metric"] == "R@5"
    assert row["turned"] < row["value"]
    assert found["recall", "share", "DM"]["change"] == 0  # one gold: the same


def test_premises_turned_are_the_mrr_by_hand(items, ranks):
    """rdfs9 on six rows of DM, P2 written: the row numbered k has reciprocal rank 1 / (k + 1)."""
    tasks = [f"DM-{21 + k}" for k in range(6)]
    cases = items.filter(pl.col("item").is_in(tasks)).sort("row").with_columns(
        item=pl.format("rdfs9-{}", pl.int_range(6)), relation=pl.lit("rdfs9"),
        meta=pl.Series([json.dumps({"p1_item": name}) for name in tasks]),
    )  # fmt: skip
    rows = [(f"rdfs9-{k}", "manual+manual", p1, True, 0, 0, k + 1, k + 1, k + 1, 0.0)
            for k in range(6) for p1 in (True, False)]  # fmt: skip
    asked = pl.DataFrame(rows, schema=dict(schema.REASON_RANKS.columns), orient="row")
    known = [(f"rdfs9-{k}", "manual", 0, 1, 1, 1, 0.0) for k in range(6)]
    tests = pl.DataFrame(known, schema=dict(schema.PREMISE_RANKS.columns), orient="row")
    told = turned.StoredAnswers({probe(): (values.from_ranks(ranks), values.of_items(items))},
                       {probe(): (cases, asked, tests)})  # fmt: skip
    rows = switches.measured(list(turned.turns(told, modes.Switches())), EXPECTED)
    found = {(r["other"], r["group"]): r for r in rows if r["switch"] == "premise"}
    # what DM has memorized: the rank of its one gold in the last template, all masks, mean
    fixed = ranks.filter(template=2, masks="multi", pooling="mean")
    best = [fixed.filter(item=name)["best"].item() for name in tasks]
    order = sorted(range(6), key=lambda k: (best[k], k))
    within = [k for k in range(6) if best[k] + 0.5 <= 5]
    assert 0 < len(within) < 6
    assert set(within) != set(order[:3])
    row = found["threshold", "P1 IM, P2 EX"]
    assert row["value"] == pytest.approx(100 * sum(1 / (k + 1) for k in order[:3]) / 3)
    assert row["turned"] == pytest.approx(100 * sum(1 / (k + 1) for k in within) / len(within))
    assert row["n"] == len({*order[:3], *within})
    # six rows have no middle one
    assert found["halves_dropped", "P1 EX, P2 EX"]["change"] == 0


def test_averages_turned_by_hand(items, ranks):
    """TP has one template of two; and a rule of 30 rows beside one of 10."""
    few = ranks.filter((pl.col("template") == 1) | ~pl.col("item").str.starts_with("TP"))
    told = turned.StoredAnswers({probe(): (values.from_ranks(few), values.of_items(items))})
    rows = switches.measured(list(turned.turns(told, modes.Switches())), EXPECTED)
    row = next(r for r in rows if (r["switch"], r["group"]) == ("average", "masks single"))
    kept = set(items.filter(~pl.col("meta").str.contains("repeat"), role="test")["item"])
    own = {}
    firsts = (
        few.filter(masks="single").group_by("item", "template", "pooling").agg(pl.col("best").min())
    )
    for item, template, pooling, best in firsts.rows():
        if item in kept:
            expected = 100 * (1 / best + 1 / (best + 1)) / 2
            own.setdefault((item.split("-")[0], template, pooling), []).append(expected)
    means = {key: sum(found) / len(found) for key, found in own.items()}
    assert row["turned"] == pytest.approx(sum(means.values()) / len(means))
    tasks = [[m for key, m in means.items() if key[0] == task] for task in TASKS]
    assert row["value"] == pytest.approx(sum(sum(t) / len(t) for t in tasks) / 5)

    both = settled(("rdfs2", "manual+manual", BOTH, 0, 10, 0.2),
                   ("rdfs3", "manual+manual", BOTH, 0, 30, 0.4))  # fmt: skip
    alike, by_rows = (turned.reasons(both, probe(), name) for name in ("weighted", "rows"))
    found = switches.change(alike, by_rows)
    assert found["value"] == pytest.approx(30)
    assert found["turned"] == pytest.approx((10 * 20 + 30 * 40) / 40)


def test_the_split_of_the_multiple_choice_turned_by_hand():
    """By its own answers rows 0 and 1 are memorized, of which one is right; the shipped split has
    one question, which all rows share, as memorized: one of four is right."""
    own = probe(benchmark="onto_released")
    told = turned.StoredAnswers({}, {}, {own: answered()}, {"rdfs9": {"?": "IM"}})
    rows = switches.measured(list(turned.turns(told, modes.Switches())), EXPECTED)
    empty, row = (r for r in rows if r["switch"] == "mc_split")
    assert (empty["group"], empty["verdict"]) == ("P1 NO", switches.EMPTY)
    assert (row["group"], row["way"]) == ("P1 IM", "answer")
    assert (row["value"], row["turned"], row["n"]) == (50, 25, 4)
    assert "mc_split" not in dict(turned.find_missing(told))


def test_what_a_run_has_not_is_told(items, ranks):
    told = turned.StoredAnswers({probe(): (values.from_ranks(ranks), values.of_items(items))})
    assert {key for key, _ in turned.find_missing(told)} == {"premise", "mc_split"}
    assert all(others for *_, others in turned.needing(modes.Switches()))
    needed = {key for key, *_ in turned.needing(modes.Switches())}
    assert needed | set(turned.READ_BY) == set(modes.SWITCHES)
    assert {key for key, s in modes.SWITCHES.items() if s.stage == "tables"} == set(turned.READ_BY)


def test_a_change_is_that_of_two_means_each_over_its_own_items():
    before, after = cells([1, 0, 1]), cells([1, 1, 1, 0])
    found = switches.change(before, after)
    assert (found["value"], found["turned"]) == (pytest.approx(2 / 3), pytest.approx(3 / 4))
    assert found["n"] == 4
    assert found["low"] < found["change"] < found["high"]
    # ratios of sums, weighed by part
    two = pl.concat([cells([1, 0], "a", 1.0, [2.0, 1.0]), cells([3], "b", 3.0, [4.0])])
    found = switches.change(two, two)
    assert found["value"] == pytest.approx((1 * (1 / 3) + 3 * (3 / 4)) / 4)
    assert (found["change"], found["low"]) == (0, None)
    with pytest.raises(ValueError, match="item 'i0' stands twice"):
        switches.change(pl.concat([before, before]), after)


def test_the_interval_is_paired():
    """A shift of every item alike has no width; of independent draws it would have."""
    values = np.random.default_rng(0).random(50)
    found = switches.change(cells(values), cells(values + 0.1))
    assert found["low"] is None or found["high"] - found["low"] < 1e-9
    assert found["change"] == pytest.approx(0.1)


@pytest.mark.parametrize(
    ("direction", "low", "high", "said"),
    [
        (">", 0.1, 0.4, switches.CONFIRMED),
        (">", -0.4, -0.1, switches.MISSED),
        (">", -0.1, 0.4, switches.UNDECIDED),
        ("<", -0.4, -0.1, switches.CONFIRMED),
        ("<", 0.1, 0.4, switches.MISSED),
        ("=", 0.1, 0.4, switches.MISSED),
        ("=", -0.1, 0.4, switches.UNDECIDED),
        ("=", None, None, switches.CONFIRMED),
        (">", None, None, switches.UNMOVED),
        ("?", 0.1, 0.4, switches.OPEN),
    ],
)
def test_verdicts(direction, low, high, said):
    change = 0.0 if low is None else (low + high) / 2
    assert switches.verdict(direction, {"change": change, "low": low, "high": high}) == said


def test_a_change_without_width_decides_nothing():
    """One item a part: every draw is the same."""
    sides = [pl.concat([cells([a], "x"), cells([b], "y")]) for a, b in ((0, 1), (1, 1))]
    found = switches.change(*sides)
    assert (found["change"], found["low"], found["n"]) == (0.5, None, 1)
    assert switches.verdict(">", found) == switches.verdict("=", found) == switches.UNDECIDED


def test_a_turn_that_leaves_nothing_says_so():
    turn = switches.Turn("ontoprobe", "premise", "halves", "threshold", "MRR", cells([1, 0]),
                         cells([]))  # fmt: skip
    (row,) = switches.measured([turn], EXPECTED)
    assert (row["value"], row["turned"], row["change"]) == (0.5, None, None)
    assert row["verdict"] == switches.EMPTY


# -- what was expected -----------------------------------------------------------------------------


def test_every_switch_has_an_expectation_for_each_of_its_values():
    told = {(r["paper"], r["switch"], frozenset((r["value"], r["other"]))) for r in EXPECTED}
    assert len(told) == len(EXPECTED)
    assert {r["direction"] for r in EXPECTED} <= set(switches.OPPOSITE)
    assert all(r["why"] for r in EXPECTED)
    wanted = {("ontoprobe", key, frozenset((switch.default, value)))
              for key, switch in modes.SWITCHES.items() for value in switch.legal
              if value != switch.default}  # fmt: skip
    wanted |= {("autoprompt", name, frozenset((here, other)))
               for name, _, here, others in autoprompt.needing() for other in others
               if name != autoprompt.RANKS}  # fmt: skip
    assert wanted - told == set()


def test_an_expectation_is_read_backwards():
    assert switches.expected(EXPECTED, "ontoprobe", "select", "dev", "oracle")[0] == ">"
    assert switches.expected(EXPECTED, "ontoprobe", "select", "oracle", "dev")[0] == "<"
    assert switches.expected(EXPECTED, "ontoprobe", "select", "x", "y") == ("?", "")


# -- attributes ------------------------------------------------------------------------------------


def test_readings_of_the_attributes_by_hand():
    """Symmetry of `large`: prompt one has (1, 1), (1, 0), (0, 1), (0, 0), prompt two nothing, so
    that the best has 1 of 3 and the mean 1/4 over 3/2; at 3 all four are right."""
    study = attribute_answers.study()
    rows = switches.measured(list(attributes.turns(study)), EXPECTED)
    own = {(r["switch"], r["other"]): r for r in rows
           if (r["model"], r["benchmark"]) == ("large", "symmetry")}  # fmt: skip
    mean = own["pooling", "mean"]
    assert mean["value"] == pytest.approx(100 / 3)
    assert mean["turned"] == pytest.approx(100 * (1 / 4) / (3 / 2))
    assert own["k", "3"]["turned"] == pytest.approx(100)
    assert own["k", "3"]["n"] == 4  # one example is defined at 3 alone
    assert own["k", "3"]["expected"] == ">"
    assert own["aggregate", "mean of examples"]["change"] == 0
    # three benchmarks: 1/3, and asymmetry 1/2, and bias 1/2
    # its first prompt alone is not defined on less; of `small` nothing is right at 1
    assert own["pooling", "base"]["change"] == 0
    undefined = {w for key, w in attributes.find_missing(study) if key == "all"}
    assert undefined == {
        "a defined value of small templates fill symmetry (every denominator is 0)"
    }
    whole = next(r for r in rows if (r["model"], r["benchmark"], r["switch"], r["other"])
                 == ("large", "", "k", "3"))  # fmt: skip
    assert whole["value"] == pytest.approx(100 * (1 / 3 + 1 / 2 + 1 / 2) / 3)
    told = dict(attributes.find_missing(study))
    assert set(told) == {attributes.DENOMINATOR, *attributes.FLAGGED, "all"}
    needed = {key: (here, others) for key, here, others in
              attributes.needing({"symmetry": {"cap_pairs": 100}})}  # fmt: skip
    assert needed["attributes.symmetry.cap_pairs"] == ("100", ["200"])
    assert needed["attributes.asymmetry.strict"] == ("not recorded", ["false", "true"])


# -- the command -----------------------------------------------------------------------------------


@pytest.fixture
def typed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return lambda *words: CliRunner().invoke(app, [str(word) for word in words])


def run_of(folder, items, ranks):
    """A finished run of one model: its questions, answers and an (almost empty) table."""
    files = {"benchmarks/onto_world/items.parquet": (items, schema.ITEMS),
             "ranks/onto_world/templates/tiny-1.5.parquet": (ranks, schema.RANKS)}  # fmt: skip
    for name, (frame, contract) in files.items():
        schema.write(frame, contract, folder / name, {"model": {"kind": "masked"}})
    made = results.frame("ontoprobe", [Number(metric="MRR", value=1.0, n=1)])
    inputs = {f"results/{folder.name}/{name}": "" for name in files}
    told = {
        "inputs": {**inputs, "resources/published/x.tsv": ""},
        "switches": {"ties": "mean_rank"},
    }
    schema.write(made, schema.RESULTS, folder / "tables/ontoprobe.parquet", told)


def test_the_command_turns_what_it_can_and_lists_the_rest(typed, tmp_path, items, ranks):
    run_of(tmp_path / "results/small", items, ranks)
    done = typed("switches", "small", "--json")
    assert done.exit_code == 0, done.output
    said = json.loads(done.stdout)
    (row,) = (r for r in said["turned"] if (r["switch"], r["other"], r["group"])
              == ("ties", "expectation", "SPO"))  # fmt: skip
    assert row["here"] == "mean_rank"
    assert row["model"] == "tiny-1.5"
    assert row["value"] == pytest.approx(literal_mrr(ranks, items, "SPO", "mean_rank", "dev"))
    assert (row["expected"], row["verdict"]) == (">", switches.CONFIRMED)
    assert {r["switch"] for r in said["lacking"]} == {"premise", "mc_split"}
    (needed,) = (r for r in said["needing"] if r["set"] == "ontoprobe.switches.sco_m2")
    assert (needed["here"], needed["to"], needed["changes"]) == ("superclass", "class", "questions")
    shown = typed("switches", tmp_path / "results/small").stdout
    assert "need a run of their own" in shown
    assert "premise: nothing to turn it on" in shown


def test_the_attributes_of_a_run_are_turned(typed, tmp_path):
    folder = tmp_path / "results/graph"
    own = attribute_answers.benchmarks()["symmetry"]
    frames = {"examples": (own.examples, EXAMPLES), "items": (own.items, schema.ITEMS),
              "candidates": (own.candidates, schema.CANDIDATES),
              "prompts": (own.prompts, schema.PROMPTS)}  # fmt: skip
    for name, (frame, contract) in frames.items():
        told = {"settings": {"cap_pairs": 200}}
        schema.write(frame, contract, folder / f"benchmarks/symmetry/{name}.parquet", told)
    rows = []
    alphas = attribute_answers.ANSWERS["large", "symmetry"]
    for template, right in enumerate(alphas):
        for (item, (gold, *_)), alpha in zip(own.items.sort("row").select("item", "answers").rows(),
                                             right, strict=True):  # fmt: skip
            for candidate in range(11):
                # the right answer is first, or behind all others
                score = (-1.0 if alpha else -99.0) if candidate == gold else -2.0 - candidate
                rows.append({"item": item, "template": template, "candidate": candidate,
                             "sum": score, "count": 3, "answer_sum": score, "answer_count": 1,
                             "relation": "P26"})  # fmt: skip
    scores = pl.DataFrame(rows)
    scores = scores.select(
        (pl.col(name) if name in scores.columns else pl.lit(None)).cast(kind).alias(name)
        for name, kind in schema.SCORES.columns.items()
    )
    place = "scores/symmetry/templates/sentence/tiny.parquet"
    schema.write(scores, schema.SCORES, folder / place, {"model": {"kind": "masked"}})
    made = results.frame("attributes", [Number(metric="value", value=1.0, n=1)])
    inputs = {f"results/graph/{n}": "" for n in (place, "benchmarks/symmetry/examples.parquet")}
    schema.write(made, schema.RESULTS, folder / "tables/attributes.parquet", {"inputs": inputs})
    said = json.loads(typed("switches", "graph", "--paper", "attributes", "--json").stdout)
    (row,) = (r for r in said["turned"] if (r["switch"], r["other"]) == ("pooling", "mean"))
    assert row["value"] == pytest.approx(100 / 3)
    assert row["turned"] == pytest.approx(100 / 6)
    assert (row["expected"], row["n"]) == ("<", 3)
    (needed,) = (r for r in said["needing"] if r["set"] == "attributes.symmetry.cap_pairs")
    assert (needed["here"], needed["to"]) == ("200", "100")
    # no numbers of OntoProbe, and where a right word is near
    done = typed("switches", "graph")
    assert done.exit_code == 1
    assert "results/graph has no numbers of ontoprobe" in done.stderr
    assert "right would be --paper attributes" in done.stderr


def test_bad_input_is_told_with_what_would_be_right(typed, tmp_path, items, ranks):
    run_of(tmp_path / "results/small", items, ranks)
    done = typed("switches", "smal")
    assert done.exit_code == 1
    assert "did you mean 'small'?" in done.stderr
    done = typed("switches", "small", "--paper", "ontoprob")
    assert done.exit_code == 2
    assert "did you mean 'ontoprobe'?" in " ".join(done.stderr.split())
    (tmp_path / "results/small/ranks/onto_world/templates/tiny-1.5.parquet").unlink()
    done = typed("switches", "small")
    assert done.exit_code == 1
    assert "tiny-1.5.parquet: gone" in done.stderr

"""AutoPrompt's tables: values counted by hand, printed ones only where they belong."""

import dataclasses
from pathlib import Path

import polars as pl
import pytest

from kgprobe import schema
from kgprobe.metrics import prompts as metrics
from kgprobe.probes import prompt_tasks, prompted, searched
from kgprobe.probes.prompts.trigger_settings import NOT_RELEASED
from kgprobe.tables import (
    autoprompt,
    autoprompt_extraction,
    autoprompt_gather,
    autoprompt_prompts,
    autoprompt_published,
    autoprompt_report,
    autoprompt_sweeps,
    chapter,
    headline,
    table,
)
from tests.unit.prompt_outcomes import answered, examples, outcomes

FOLDER = Path(__file__).parents[2] / "resources" / "published"
PRINTED = autoprompt_published.read(FOLDER)


def test_every_headline_value_of_the_paper_is_found():
    at = PRINTED.facts_of
    for prompt, p1, mrr, p10 in (
        ("manual", 31.10, 40.27, 59.49),
        ("lpaqa", 34.10, 43.57, 62.03),
        ("searched", 42.94, 53.06, 72.17),
        ("searched_7", 43.34, 53.89, 73.93),
    ):
        found = [at("bert-base-cased", prompt, "auto_lama", m) for m in ("p1", "mrr", "p10")]
        assert found == [p1, mrr, p10]
    assert at("bert-base-cased", "searched", "auto_lama_trex", "p1") == 45.40
    assert at("roberta-large", "searched", "auto_lama_roberta", "p1") == 40.01
    assert at("roberta-large", "manual", "auto_lama", "p1") is None
    assert PRINTED.sentiment_of("roberta-large", "searched", "test") == 91.4
    assert PRINTED.sentiment_of("bert-base-cased", "linear_probe", "dev") == 85.2
    assert PRINTED.sentiment_of("bert-base-cased", "finetuned", "dev") is None
    assert PRINTED.inference_of("any", "majority", "auto_sick") == 56.7
    assert PRINTED.inference_of("bert-base-cased", "searched", "auto_sick_3way") == 55.4
    assert PRINTED.extraction_of("bert-base-cased", "searched", "auto_re_perturbed") == 56.43
    assert PRINTED.extraction_of("lstm", "relation_lstm", "auto_re") is None


def test_the_means_of_the_printed_table_6_and_its_ten_losses():
    means = autoprompt_report.printed_means(PRINTED)
    assert means["lama"] == pytest.approx(30.65, abs=5e-3)
    assert means["lpaqa"] == pytest.approx(34.01, abs=5e-3)
    assert means["autoprompt_5"] == pytest.approx(42.95, abs=5e-3)
    lost = "P19 P36 P159 P190 P361 P463 P530 P937 P1303 P1376".split()
    assert autoprompt_report.printed_losses(PRINTED) == lost


#: test facts of LAMA per relation (autoprompt.md, section 16)
TESTED = dict(
    pair.split(":")
    for pair in (
        "P17:930 P19:944 P20:953 P27:966 P30:975 P31:922 P36:703 P37:966 P39:892 P47:922 P101:696 "
        "P103:977 P106:958 P108:383 P127:687 P131:881 P136:931 P138:645 P140:473 P159:967 P176:982 "
        "P178:592 P190:995 P264:429 P276:959 P279:964 P361:932 P364:856 P407:877 P413:952 P449:881 "
        "P463:225 P495:909 P527:976 P530:996 P740:936 P937:954 P1001:701 P1303:949 P1376:234 "
        "P1412:969"
    ).split()
)


def test_the_printed_values_are_whole_facts_and_macro_averages():
    values = {r: PRINTED.relations[r, "autoprompt_5"] for r in TESTED}
    sizes = {relation: int(n) for relation, n in TESTED.items()}
    assert sum(sizes.values()) == 34_039
    micro = sum(values[r] * sizes[r] for r in values) / 34_039
    assert micro == pytest.approx(42.29, abs=5e-3)
    for relation, n in sizes.items():
        if relation != "P279":  # printed over 963 facts, one object being outside the vocabulary
            right = round(values[relation] * n / 100)
            assert values[relation] == pytest.approx(100 * right / n, abs=0.0051), relation
    kinds = {"P36": "1-1", "P1376": "1-1"}
    one = [PRINTED.relations[r, "lama"] for r in kinds]
    assert sum(one) / 2 == pytest.approx(68.05, abs=5e-3)


def two_relations(prompt: str, ranks, benchmark="auto_world", **more):
    frame = examples({"P36": {"train": 2, "test": 4}, "P37": {"train": 1, "test": 2}})
    return answered(benchmark, prompt, frame, outcomes(frame, ranks, prompt), **more)


def test_facts_are_averaged_over_relations_and_counted_over_facts():
    own = two_relations("searched", {"P36": [1, 1, 1, 2], "P37": [4, 2]})
    cells = table.lookup(autoprompt.facts([own], PRINTED))
    row = "bert-base-cased | searched"
    assert cells[row, "World P@1"]["value"] == pytest.approx(100 * (3 / 4 + 0) / 2)
    assert cells[row, "World P@1, micro"]["value"] == pytest.approx(100 * 3 / 6)
    assert cells[row, "World P@10"]["value"] == pytest.approx(100)
    assert cells[row, "World MRR"]["value"] == pytest.approx(100 * (3.5 / 4 + 0.375) / 2)
    assert cells[row, "World P@1"]["n"] == 6
    assert cells[row, "World P@1"]["low"] < cells[row, "World P@1"]["value"]


def test_a_printed_value_needs_the_whole_set_and_the_same_model():
    part = two_relations("searched", {"P36": [1], "P37": [1]}, benchmark="auto_lama")
    cells = table.lookup(autoprompt.facts([part], PRINTED))
    assert cells["bert-base-cased | searched", "Original P@1"]["published"] is None
    relations = autoprompt.relations([part], PRINTED)["autoprompt_table6"]
    at = table.lookup(relations)
    assert at["P36", "bert-base-cased | searched"]["published"] == 60.6
    assert at["P36", "search facts"] == {
        "value": 2.0, "n": 2, "low": None, "high": None, "published": 1000.0,
    }  # fmt: skip
    other = two_relations("searched", {"P36": [1], "P37": [1]}, benchmark="auto_lama", model="x")
    at = table.lookup(autoprompt.relations([other], PRINTED)["autoprompt_table6"])
    assert at["P36", "x | searched"]["published"] is None


def test_the_no_overlap_subset_has_its_own_n():
    frame = examples({"P36": {"train": 1, "test": 4}}, flags={"test0": ["inverse"]})
    own = answered("auto_world", "manual", frame, outcomes(frame, {"P36": [1, 2, 2, 2]}, "manual"))
    cells = table.lookup(autoprompt.facts([own], PRINTED))
    cell = cells["bert-base-cased | manual", "World P@1, no overlap"]
    assert (cell["value"], cell["n"]) == (0.0, 3)
    assert cells["bert-base-cased | manual", "World P@1"]["value"] == 25.0


def test_draws_are_averaged_and_their_ends_shown():
    frame = examples({"P36": {"train": 1, "test": 2}})
    drawn = pl.concat(
        [
            outcomes(frame, {"P36": [1, 1]}, "random_triggers 0"),
            outcomes(frame, {"P36": [2, 2]}, "random_triggers 1"),
        ]
    )
    own = answered("auto_world", "random_triggers", frame, drawn)
    cells = table.lookup(autoprompt.facts([own], PRINTED))
    row = "bert-base-cased | random_triggers"
    assert cells[row, "World P@1"]["value"] == 50
    assert cells[row, "World P@1"]["n"] == 2
    assert cells[row, "World P@1, lowest draw"]["value"] == 0
    assert cells[row, "World P@1, highest draw"]["value"] == 100


def test_the_gain_is_paired():
    one = two_relations("searched", {"P36": [1], "P37": [1]})
    two = two_relations("manual", {"P36": [2], "P37": [2]})
    cells = table.lookup(
        autoprompt.gains(
            [one, two],
        )
    )
    gain = cells["bert-base-cased | searched minus manual", "auto_world"]
    assert (gain["value"], gain["low"], gain["high"], gain["n"]) == (100, 100, 100, 6)


def classes(benchmark: str, prompt: str, ranks):
    frame = examples({"": {"train": 4, "dev": 4, "test": 8}}, labels=("negative", "positive"))
    return answered(benchmark, prompt, frame, outcomes(frame, {"": ranks}, prompt))


def test_accuracy_on_dev_and_test_and_by_class():
    own = classes("auto_sst2", "searched", [1, 2, 1, 1])
    cells = table.lookup(autoprompt.sentiment([own], PRINTED))
    assert cells["bert-base-cased | searched", "dev"]["value"] == 75
    assert cells["bert-base-cased | searched", "test"]["n"] == 8
    at = table.lookup(autoprompt.per_class([own]))
    row = "auto_sst2 | bert-base-cased | searched"
    assert at[row, "negative"]["value"] == 100
    assert at[row, "positive"]["value"] == 50
    sick = classes("auto_sick_2way", "majority", [1, 2])
    assert table.lookup(autoprompt.inference([sick], PRINTED))[
        "bert-base-cased | majority", "2-way"
    ]["value"] == 50  # fmt: skip


def sentences(prompt: str = "searched"):
    """Two facts of one relation: the first with two sentences, original and perturbed."""
    base = examples({"P36": {"test": 3}}, labels=("Paris",)).with_columns(
        pl.Series("fact", ["a", "a", "b"]),
        pl.Series("fields", ['{"sub": "France", "context": "Paris is in France."}'] * 3),
    )
    changed = base.with_columns(
        pl.lit("Rome").alias("label"),
        pl.lit('{"sub": "France", "context": "Rome is in France.", "old": "Paris"}').alias(
            "fields"
        ),
    )
    first = outcomes(base, {"P36": [2, 1, 2]}, prompt)
    second = outcomes(changed, {"P36": [2, 1, 2]}, prompt).with_columns(
        pl.Series("answer", ["paris", "Rome", "Oslo"])
    )
    return [
        answered("auto_re", prompt, base, first),
        answered("auto_re_perturbed", prompt, changed, second),
    ]


def test_a_fact_is_right_for_any_sentence_and_memory_is_told():
    cells = table.lookup(autoprompt_extraction.extraction(sentences(), PRINTED))
    row = "bert-base-cased | searched"
    assert cells[row, "original"]["value"] == 50
    assert cells[row, "original"]["published"] == 90.73
    assert cells[row, "original, per sentence"]["value"] == pytest.approx(100 / 3)
    assert cells[row, "original, sentences per fact"]["value"] == 1.5
    assert cells[row, "perturbed, old object answered"]["value"] == 50
    assert cells[row, "original minus perturbed"]["value"] == 0


def test_the_perturbed_half_strikes_the_old_object():
    texts = {("auto_re", "bert-base-cased", "P36"): "{sub} x [P] ."}
    rows = autoprompt_extraction.examples(sentences(), texts, each=2)
    assert [row["half"] for row in rows] == ["original"] * 2 + ["perturbed"] * 2
    assert rows[0]["prompt"] == "{sub} x [P] ."
    assert rows[2]["context"] == "~~Paris~~ Rome is in France."
    assert rows[2]["object"] == "~~Paris~~ Rome"


def prompt_file(group: str, labels=None, restarts=()):
    content = {
        "template": "{sub} [T]x2 [P] .",
        "tokens": ["Ġseat", "##ed"],
        "label_tokens": labels or {},
        "restarts": list(restarts),
        "round_trip": False,
    }
    return autoprompt_prompts.Prompt("auto_world", "searched", "bert-base-cased", group, content)


def test_prompts_are_written_out_with_their_scores():
    own = two_relations("searched", {"P36": [1], "P37": [1]})
    manual = two_relations("manual", {"P36": [2], "P37": [2]})
    made = autoprompt.relations([own, manual], PRINTED)
    prompts = [prompt_file("P37"), prompt_file("P36", {"x": ["Ġgood"]})]
    rows = autoprompt_prompts.of_relations(prompts, made, {"auto_world": {"P36": "{sub} [P] ."}})
    assert [row["relation"] for row in rows] == ["P36", "P37"]
    assert rows[0]["prompt"] == "{sub} seat ##ed [P] ."
    assert rows[0]["manual prompt"] == "{sub} [P] ."
    assert str(rows[0]["P@1"]).startswith("100.0 (")
    assert str(rows[0]["manual P@1"]).startswith("0.0 (")
    (task,) = autoprompt_prompts.of_tasks(prompts[1:], [own])
    assert task["label tokens"] == "x: good"
    assert "{sub}" not in str(task["prompt"])


def test_restarts_show_what_choosing_adds():
    runs = [{"dev": -2.0}, {"dev": -1.0}, {"dev": -3.0}]
    cells = table.lookup(autoprompt_prompts.restarts([prompt_file("P36", restarts=runs)]))
    row = "auto_world | bert-base-cased | searched"
    assert [cells[row, c]["value"] for c in ("chosen", "mean", "lowest")] == [-1, -2, -3]
    assert cells[row, "chosen"]["n"] == 3
    assert autoprompt_prompts.restarts([prompt_file("P36")]) is None


def points(**columns):
    rows = {"method": "searched", "size": 10, "draw": 0, "k": 10, "label_tokens": 3, "triggers": 10}
    n = len(next(iter(columns.values())))
    full = {k: columns.get(k, [v] * n) for k, v in {**rows, "value": 0.5, "n": 40}.items()}
    return pl.DataFrame(full, schema=dict(schema.SWEEPS.columns))


def test_figure_2_has_the_mean_and_the_ends_of_the_subsets():
    frame = points(draw=[0, 1, 2, 0], size=[10, 10, 10, 100], value=[0.5, 0.6, 0.7, 0.8])
    sweep = autoprompt_sweeps.Sweep("auto_sst2", "m", frame)
    made = autoprompt_sweeps.low_data([sweep])
    cell = table.lookup(made)["auto_sst2 | m | searched", "10"]
    assert (cell["value"], cell["n"]) == (pytest.approx(60), 3)
    assert (cell["low"], cell["high"]) == (50, 70)
    (drawing,) = autoprompt_sweeps.draw_low_data(made)
    assert drawing.svg.startswith("<?xml")


def test_figure_3_has_a_cell_for_every_size_of_labels_and_trigger():
    frame = points(triggers=[3, 4, 3], label_tokens=[1, 1, 3], value=[0.5, 0.55, 0.6])
    made = autoprompt_sweeps.grid([autoprompt_sweeps.Sweep("auto_sst2", "m", frame)])
    cells = table.lookup(made)
    assert cells["auto_sst2 | m | k 10", "1 x 4"]["value"] == pytest.approx(55)
    assert cells["auto_sst2 | m | k 10", "3 x 3"]["n"] == 40
    assert len(autoprompt_sweeps.draw_grid(made)) == 1


@pytest.mark.parametrize("method", ["low_data", "grid"])
def test_a_sweep_alone_has_its_figure_and_its_headline(method):
    sweep = [autoprompt_sweeps.Sweep("auto_sst2", "m", points(triggers=[3], value=[0.6]))]
    name = {"low_data": "autoprompt_figure2", "grid": "autoprompt_figure3"}[method]
    made = {name: getattr(autoprompt_sweeps, method)(sweep)}
    page = autoprompt_report.chapter(made, [], PRINTED, {}, {"mode": "default"})
    assert len(page.drawings) == 1
    assert not page.grids
    assert headline.build(made)["value"].to_list() == [pytest.approx(60)]


def test_a_run_in_released_mode_says_what_flatters_and_what_it_does_not_reach():
    sweep = [autoprompt_sweeps.Sweep("auto_sst2", "m", points(value=[0.6]))]
    made = {"autoprompt_figure2": autoprompt_sweeps.low_data(sweep)}
    given = {"mode": "released", "selection": "full"}
    notes = autoprompt_report.chapter(made, [], PRINTED, {}, given).notes
    assert any(note.startswith("Figure 2 is optimistic") for note in notes)
    assert NOT_RELEASED
    assert any(all(point in note for point in NOT_RELEASED) for note in notes)
    plain = autoprompt_report.chapter(made, [], PRINTED, {}, {"mode": "default"}).notes
    assert not any("optimistic" in note or NOT_RELEASED[0] in note for note in plain)


@pytest.mark.parametrize(("mode", "mrr"), [("default", 1 / 10_001), ("released", 0)])
def test_reciprocal_ranks_are_cut_as_the_mode_has_it(tmp_path, mode, mrr):
    frame = examples({"P36": {"train": 1, "test": 1}})
    own = outcomes(frame, {"P36": [10_001]})
    schema.write(frame, schema.EXAMPLES, tmp_path / "examples.parquet")
    schema.write(own, schema.OUTCOMES, tmp_path / "o.parquet")
    row = {"benchmark": "auto_world", "prompt": "searched", "model": "m"}
    models = {"m": {"kind": "masked", "source": "hub:x"}}
    folders = {"auto_world": tmp_path}
    (found,) = autoprompt_gather.answered([row], models, [tmp_path / "o.parquet"], folders, mode)
    cells = table.lookup(autoprompt.facts([found], PRINTED))
    assert cells["m | searched", "World MRR"]["value"] == pytest.approx(100 * mrr)
    # and in the score of a prompt file, and of the evaluation of one
    task = prompt_tasks.Task("auto_world", frame, [], {})
    scores = searched.scores(task, own, "P36", metrics.cut_of(mode))
    assert scores["test_mrr"]["value"] == pytest.approx(mrr, abs=1e-6)
    (line,) = [
        text
        for text in prompted.report(frame, own, "test", metrics.cut_of(mode)).splitlines()
        if text.startswith("macro") and "mrr" in text
    ]
    assert float(line.split()[2]) == pytest.approx(100 * mrr, abs=0.005)


def test_the_chapter_holds_ours_and_quotes_the_paper(tmp_path):
    own = [
        two_relations("searched", {"P36": [1], "P37": [2]}, source="control:masked"),
        two_relations("majority", {"P36": [2], "P37": [2]}),
        classes("auto_sst2", "searched", [1, 2]),
        *sentences(),
    ]
    made = dict(autoprompt.tables(own, PRINTED))
    made["autoprompt_table5"] = autoprompt_extraction.extraction(own, PRINTED)
    page = autoprompt_report.chapter(
        made, own, PRINTED, {"Table 3: prompts": [{"task": "x"}]}, {"mode": "default"}, ["a note"]
    )
    assert "a note" in page.notes
    titles = [grid.title for grid in page.grids]
    assert titles[:3] == [autoprompt_report.CAPTIONS[f"autoprompt_table{i}"] for i in (1, 4, 5)]
    first = page.grids[0]
    quoted = [row[0].text for row in first.rows if row[0].small == "printed"]
    assert "bilstm+elmo, supervised" in quoted
    assert len(quoted) == 10
    assert autoprompt_report.CONTROLS in page.notes
    chapter.write(page, tmp_path / "c.json")
    assert chapter.read(tmp_path / "c.json").grids[0].title == titles[0]


def test_rows_stand_in_the_order_of_models_and_prompts(tmp_path):
    frame = examples({"P36": {"train": 1, "test": 2}})
    schema.write(frame, schema.EXAMPLES, tmp_path / "examples.parquet")
    rows, files = [], []
    for prompt in ("searched", "majority", "other", "manual"):
        path = tmp_path / f"{prompt}.parquet"
        schema.write(outcomes(frame, {"P36": [1, 2]}, prompt), schema.OUTCOMES, path)
        rows.append({"benchmark": "auto_world", "prompt": prompt, "model": "m"})
        files.append(path)
    models = {"m": {"kind": "masked", "source": "hub:x"}}
    found = autoprompt_gather.answered(rows, models, files, {"auto_world": tmp_path})
    assert [a.prompt for a in found] == ["majority", "manual", "searched", "other"]


def test_a_prompt_outside_the_requirement_is_marked_at_every_number():
    """Facts test0 and test2 of ten are taught; chance is one of twenty tokens, the limit 15 %."""
    frame = examples({"P36": {"train": 1, "test": 10}})
    names = [f"test{i}" for i in range(10)]
    taught = pl.DataFrame(
        [(name, "P36", name, "x", name in ("test0", "test2")) for name in names],
        schema=dict(schema.TAUGHT.columns),
        orient="row",
    )
    ranks = {
        "manual": [1, 2, 1, *[2] * 7],  # the taught ones alone
        "searched": [1, 1, 1, 1, *[2] * 6],  # two of eight untaught ones, too: 25 %
        "majority": [1] * 10,
        "random_triggers": [2] * 10,
    }
    found = [
        answered(
            "auto_world", prompt, frame, outcomes(frame, {"P36": own}, prompt), "c", "control:m"
        )
        for prompt, own in ranks.items()
    ]
    hub = answered("auto_world", "manual", frame, outcomes(frame, {"P36": [2]}, "manual"))
    made = autoprompt.calibration([*found, hub], taught)
    cells = {(r, c): (v, n) for r, c, v, n in made.select("row", "column", "value", "n").rows()}
    # baselines ask no model, controls are meant to fail, other models were taught nothing
    assert {row for row, _ in cells} == {"c | manual", "c | searched"}
    assert cells["c | manual", "taught"] == (100, 2)
    assert cells["c | manual", "untaught"] == (0, 8)
    assert cells["c | searched", "untaught"] == (25, 8)
    assert cells["c | searched", "limit for untaught"] == (pytest.approx(15), 8)
    signed = autoprompt.signed([*found, hub], made)
    marked = "c (?) | searched"
    assert [a.label for a in signed if a.outside] == [marked]
    tables = autoprompt.tables(signed, PRINTED, taught=taught)
    assert marked in set(tables["autoprompt_table4"]["row"])
    assert marked in set(tables["autoprompt_world_relations"]["column"])
    assert "c (?) | searched minus manual" in set(tables["autoprompt_gains"]["row"])
    for name, frame_ in tables.items():
        assert "c | searched" not in {*frame_["row"], *frame_["column"]}, name
    assert "c (?), searched" in headline.text(headline.build(tables))
    grid_ = autoprompt_report._grid("autoprompt_table4", tables["autoprompt_table4"], signed, {})
    heads = [row[0].text for row in grid_.rows]
    assert "c (?): AutoPrompt" in heads
    assert "c: manual prompt" in heads
    prompt = autoprompt_prompts.Prompt(
        "auto_world", "searched", "c", "P36", {"template": "{sub} [T] [P]", "tokens": ["x"]}
    )
    (row,) = autoprompt_prompts.of_relations([prompt], tables, {})
    content = {**prompt.content, "restarts": [{"dev": 0.5}]}
    restarts = autoprompt_prompts.restarts([dataclasses.replace(prompt, content=content)], signed)
    assert set(restarts["row"]) == {"auto_world | c (?) | searched"}
    assert row["P@1"].startswith("40.0 (")
    assert row["P@1"].endswith(" (?), below majority")
    assert row["manual P@1"].endswith("n 10")

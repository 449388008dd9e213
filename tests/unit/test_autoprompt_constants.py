"""Majority, best constant and the shift from train to test, counted by hand."""

from dataclasses import replace

import polars as pl
import pytest

from kgprobe import schema
from kgprobe.benchmarks import prompt_frames
from kgprobe.probes.baselines import majority
from kgprobe.sampling import hash_key
from kgprobe.tables import (
    autoprompt,
    autoprompt_constants,
    autoprompt_extraction,
    autoprompt_gather,
    autoprompt_prompts,
    autoprompt_published,
    autoprompt_report,
    table,
)
from tests.conftest import ROOT
from tests.unit.prompt_outcomes import answered, examples, outcomes

PRINTED = autoprompt_published.read(ROOT / "resources" / "published")
WORDS = {"train": ["Islam", "Islam", "Hinduism"], "dev": ["Islam"],
         "test": ["Hinduism", "Hinduism", "Islam", "Shinto"]}  # fmt: skip


def religion(prompt="searched", ranks=(1, 2, 2, 2), words=None, benchmark="auto_lama", **more):
    """A relation whose train and test are of another distribution."""
    words = words or WORDS
    frame = examples({"P140": {split: len(own) for split, own in words.items()}})
    labels = [words[r["split"]][int(r["example"].removeprefix(r["split"]))]
              for r in frame.iter_rows(named=True)]  # fmt: skip
    frame = frame.with_columns(pl.Series("label", labels))
    return answered(benchmark, prompt, frame, outcomes(frame, {"P140": ranks}, prompt), **more)


def test_majority_and_best_constant_and_the_shift_stand_in_the_row_of_a_relation():
    cells = table.lookup(autoprompt.relations([religion()], PRINTED)["autoprompt_table6"])
    at = {column: cell for (row, column), cell in cells.items() if row == "P140"}
    assert (at["majority"]["value"], at["majority"]["n"]) == (25, 4)
    assert at["best constant"]["value"] == 50
    seen = at["test objects seen in train"]
    assert (seen["value"], seen["n"]) == (pytest.approx(200 / 3), 3)
    # (|2/3 - 1/4| + |1/3 - 1/2| + |0 - 1/4|) / 2
    apart = at["total variation, train to test"]
    assert (apart["value"], apart["n"]) == (pytest.approx(100 * 5 / 12), 4)


def test_of_equally_common_labels_each_counts_by_its_chance():
    words = {**WORDS, "train": ["Islam", "Hinduism", "Shinto"]}
    found = autoprompt_constants.hits(religion(words=words), autoprompt_constants.MAJORITY)
    assert found["p1"].to_list() == pytest.approx([1 / 3] * 4)


def test_labels_that_cannot_be_answered_are_nobody_s_majority():
    own = religion()
    lost = own.outcomes.join(own.examples, on=["group", "split", "example"])["label"] == "Islam"
    own = replace(
        own,
        outcomes=own.outcomes.with_columns(
            pl.when(pl.Series(lost)).then(None).otherwise(pl.col(name)).alias(name)
            for name in ("best", "worst", "filtered_best", "filtered_worst")
        ),
    )
    found = autoprompt_constants.hits(own, autoprompt_constants.MAJORITY)
    assert found["unit"].to_list() == ["test0", "test1", "test3"]
    assert found["p1"].to_list() == [1, 1, 0]


@pytest.mark.parametrize("seed", range(3))
def test_they_are_what_the_baselines_of_the_sheet_answer(seed):
    def drawn(split, n):
        return ["abcd"[hash_key(seed, split, str(i)) % 4] for i in range(n)]

    own = religion(words={s: drawn(s, n) for s, n in (("train", 7), ("dev", 3), ("test", 9))})
    options = sorted(set(own.examples["label"]))
    for name, answer in (
        (autoprompt_constants.MAJORITY, majority.majority),
        (autoprompt_constants.BEST, majority.constant),
    ):
        rows = replace(own, outcomes=answer(own.examples, options))
        for split in ("dev", "test"):
            expected = autoprompt_gather.per_example(rows, split)
            found = autoprompt_constants.hits(own, name, split)
            assert found["unit"].to_list() == expected["unit"].to_list()
            assert found["p1"].to_list() == pytest.approx(expected["p1"].to_list())


def test_a_number_below_the_majority_is_marked_in_every_table():
    words = {**WORDS, "train": ["Hinduism"] * 3}
    low, high = religion(words=words), religion("manual", (1, 1, 1, 2), words)
    made = autoprompt.tables([low, high], PRINTED)
    manual = {"auto_lama": {"P140": "{sub} [P] ."}}
    content = {"template": "{sub} [T] [P] .", "tokens": ["faith"]}
    file = autoprompt_prompts.Prompt("auto_lama", "searched", "bert-base-cased", "P140", content)
    (row,) = autoprompt_prompts.of_relations([file], made, manual)
    assert row["P@1"].startswith("25.0 (")
    assert row["P@1"].endswith(", below majority")
    assert row["majority P@1"].startswith("50.0 (")
    assert row["best constant P@1"].startswith("50.0 (")
    assert not row["manual P@1"].endswith("majority")
    page = autoprompt_report.chapter(made, [low, high], PRINTED, {}, {"mode": "default"})
    marked = {
        (grid.title, line[0].text, head)
        for grid in page.grids
        for line in grid.rows
        for head, cell in zip(grid.heads, line, strict=True)
        if cell.text.endswith(autoprompt_report.BELOW)
    }
    facts, relations = (autoprompt_report.CAPTIONS[f"autoprompt_table{i}"] for i in (4, 6))
    name = "bert-base-cased: AutoPrompt"
    assert marked == {(facts, name, "Original P@1"), (relations, "P140", name)}
    assert autoprompt_report.MAJORITY in page.notes


def test_a_model_that_was_asked_less_has_a_majority_of_its_own():
    whole = religion("manual", (1, 1, 1, 1))
    part = religion(model="other")
    part = replace(part, outcomes=part.outcomes.filter(pl.col("example").is_in(["test2", "dev0"])))
    frame = autoprompt.relations([part, whole], PRINTED)["autoprompt_table6"]
    cells = table.lookup(frame)
    label = "other | searched"
    assert cells["P140", "other, majority"]["value"] == 100
    assert ("P140", "bert-base-cased, majority") not in cells
    assert (cells["P140", "majority"]["value"], cells["P140", label]["value"]) == (25, 0)
    assert autoprompt_constants.below(cells, "P140", label) == 100
    assert autoprompt_constants.below(cells, "P140", "other, majority") is None
    assert autoprompt_constants.below(cells, "P140", "test facts") is None


def test_the_majority_is_that_of_the_training_facts_that_the_model_was_given(tmp_path):
    own = religion(words={**WORDS, "train": ["Islam"] * 3 + ["Hinduism"] * 5})
    schema.write(own.examples, schema.EXAMPLES, tmp_path / "examples.parquet")
    schema.write(own.outcomes, schema.OUTCOMES, tmp_path / "o.parquet")
    row = {"benchmark": "auto_lama", "prompt": "searched", "model": "m"}
    for most in (1, 2, None):
        (found,) = autoprompt_gather.answered(
            [row], {"m": {"kind": "masked", "source": "hub:x"}}, [tmp_path / "o.parquet"],
            {"auto_lama": tmp_path}, given=[{"most": {"train": most}}],
        )  # fmt: skip
        task = prompt_frames.part(own.examples, {"most": {"train": most}})
        baseline = majority.majority(task, sorted(set(own.examples["label"])))
        expected = autoprompt_gather.per_example(replace(own, outcomes=baseline))["p1"].to_list()
        values = autoprompt_constants.hits(found, autoprompt_constants.MAJORITY)["p1"].to_list()
        assert values == pytest.approx(expected), most
        cells = table.lookup(autoprompt.relations([found], PRINTED)["autoprompt_table6"])
        assert cells["P140", "search facts"]["value"] == (most or 8) + 1


def test_classes_and_sentences_have_them_too():
    words = {"train": ["no", "no", "yes"], "dev": ["no", "yes"], "test": ["yes", "yes", "no"]}
    frame = religion(words=words).examples.with_columns(pl.lit("").alias("group"))
    own = answered("auto_sst2", "searched", frame, outcomes(frame, {"": [1, 2]}))
    cells = table.lookup(autoprompt.sentiment([own], PRINTED))
    row = "bert-base-cased | searched"
    assert cells[row, "dev, majority"]["value"] == 50
    assert cells[row, "test, majority"]["value"] == pytest.approx(100 / 3)
    assert cells[row, "test, best constant"]["value"] == pytest.approx(200 / 3)
    at = table.lookup(autoprompt.shifts([own]))
    assert at["auto_sst2", "total variation, train to test"]["value"] == pytest.approx(100 / 3)
    read = religion(benchmark="auto_re")
    # two sentences of one fact count once
    facts = read.examples["fact"].to_list()
    one = ["test0" if fact == "test1" else fact for fact in facts]
    read = replace(read, examples=read.examples.with_columns(pl.Series("fact", one)))
    cells = table.lookup(autoprompt_extraction.extraction([read], PRINTED))
    found = cells[row, "original, majority"]
    assert (found["value"], found["n"]) == (pytest.approx(100 / 3), 3)
    at = table.lookup(autoprompt.shifts([read]))
    assert at["auto_re | P140", "majority"]["n"] == 3

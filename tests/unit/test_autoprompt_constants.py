"""Majority, best constant and the shift from train to test, counted by hand."""

from dataclasses import replace

import polars as pl
import pytest

from kgprobe import schema
from kgprobe.benchmarks.autoprompt import frames
from kgprobe.probes.baselines import majority
from kgprobe.sampling import hash_key
from kgprobe.tables import results
from kgprobe.tables.autoprompt import chapter, make, numbers, published, texts, views
from tests.conftest import ROOT
from tests.unit.prompt_outcomes import answered, examples, the

PRINTED = published.read(ROOT / "resources" / "published")
SHEET = {
    name: {"kind": "masked", "source": "hub:x", "dtype": "float32", "bos": "-"}
    for name in ("bert-base-cased", "m")
}
WORDS = {"train": ["Islam", "Islam", "Hinduism"], "dev": ["Islam"],
         "test": ["Hinduism", "Hinduism", "Islam", "Shinto"]}  # fmt: skip


def religion(prompt="searched", ranks=(1, 2, 2, 2), words=None, benchmark="auto_lama", **more):
    """A relation whose train and test are of another distribution."""
    words = words or WORDS
    frame = examples({"P140": {split: len(own) for split, own in words.items()}})
    labels = [words[r["split"]][int(r["example"].removeprefix(r["split"]))]
              for r in frame.iter_rows(named=True)]  # fmt: skip
    frame = frame.with_columns(pl.Series("label", labels))
    return answered(benchmark, prompt, frame, {"P140": ranks}, **more)


def measured(*own):
    return list(make.measure(own, [], {}))


def test_majority_and_best_constant_and_the_shift_stand_beside_a_relation():
    made = measured(religion())
    common = the(made, "P@1", group="P140", model="majority")
    assert (common.value, common.n) == (25, 4)
    assert the(made, "P@1", group="P140", model="constant").value == 50
    seen = the(made, "test objects seen in train", group="P140")
    assert (seen.value, seen.n) == (pytest.approx(200 / 3), 3)
    # (|2/3 - 1/4| + |1/3 - 1/2| + |0 - 1/4|) / 2
    apart = the(made, "total variation, train to test", group="P140")
    assert (apart.value, apart.n) == (pytest.approx(100 * 5 / 12), 4)
    printed = views.RELATIONS[0].where_also(group=["P140"]).of(results.frame("autoprompt", made))
    assert printed.columns[4] == ("P@1", "majority", "")
    assert printed.columns[-1] == ("P@1", "bert-base-cased", "searched")


def test_of_equally_common_labels_each_counts_by_its_chance():
    words = {**WORDS, "train": ["Islam", "Hinduism", "Shinto"]}
    found = numbers.hits(religion(words=words), numbers.MAJORITY)
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
    found = numbers.hits(own, numbers.MAJORITY)
    assert found["unit"].to_list() == ["test0", "test1", "test3"]
    assert found["p1"].to_list() == [1, 1, 0]


@pytest.mark.parametrize("seed", range(3))
def test_they_are_what_the_baselines_of_the_sheet_answer(seed):
    def drawn(split, n):
        return ["abcd"[hash_key(seed, split, str(i)) % 4] for i in range(n)]

    own = religion(words={s: drawn(s, n) for s, n in (("train", 7), ("dev", 3), ("test", 9))})
    options = sorted(set(own.examples["label"]))
    for name, answer in (
        (numbers.MAJORITY, majority.majority),
        (numbers.BEST, majority.constant),
    ):
        rows = replace(own, outcomes=answer(own.examples, options))
        for split in ("dev", "test"):
            expected = numbers.per_example(rows, split)
            found = numbers.hits(own, name, split)
            assert found["unit"].to_list() == expected["unit"].to_list()
            assert found["p1"].to_list() == pytest.approx(expected["p1"].to_list())


def test_a_number_below_the_majority_is_marked_in_every_table():
    words = {**WORDS, "train": ["Hinduism"] * 3}
    low, high = religion(words=words), religion("manual", (1, 1, 1, 2), words)
    made = results.frame("autoprompt", [*PRINTED, *measured(low, high)])
    manual = {"auto_lama": {"P140": "{sub} [P] ."}}
    content = {"template": "{sub} [T] [P] .", "tokens": ["faith"]}
    file = texts.Prompt("auto_lama", "searched", "bert-base-cased", "P140", content)
    (row,) = texts.of_relations([file], made, manual)
    assert row["P@1"].startswith("25.0 (")
    assert row["P@1"].endswith(", below majority")
    assert row["majority P@1"].startswith("50.0 (")
    assert row["best constant P@1"].startswith("50.0 (")
    assert not row["manual P@1"].endswith("majority")
    page = chapter.chapter(made, SHEET, {}, "default")
    marked = {
        (grid.title, head)
        for grid in page.grids
        for line in grid.rows
        for head, cell in zip(grid.heads, line, strict=True)
        if chapter.BELOW in cell.text
    }
    assert marked == {
        (views.TABLE4.title, "Original, P@1"),
        (views.RELATIONS[0].title, "P@1, bert-base-cased, AutoPrompt"),
    }
    assert chapter.BELOW_NOTE in page.notes


def test_a_model_that_was_asked_less_has_a_majority_of_its_own():
    whole = religion("manual", (1, 1, 1, 1))
    part = religion(model="other")
    part = replace(part, outcomes=part.outcomes.filter(pl.col("example").is_in(["test2", "dev0"])))
    made = measured(part, whole)
    assert the(made, "P@1", group="P140", model="majority").value == 25
    assert the(made, "majority", group="P140", model="other").value == 100
    assert the(made, "majority", group="P140", model="bert-base-cased").value == 25
    frame = results.frame("autoprompt", made)
    rows = {
        (r["model"], r["metric"]): r
        for r in frame.filter(results.plain(), group="P140").iter_rows(named=True)
    }
    beating = chapter.majorities(frame)
    assert rows["other", "P@1"]["value"] == 0
    assert beating(rows["other", "P@1"]) == 100
    assert beating(rows["other", "majority"]) is None
    assert beating(rows["", "test facts"]) is None


def test_the_majority_is_that_of_the_training_facts_that_the_model_was_given(tmp_path):
    own = religion(words={**WORDS, "train": ["Islam"] * 3 + ["Hinduism"] * 5})
    schema.write(own.examples, schema.EXAMPLES, tmp_path / "examples.parquet")
    schema.write(own.outcomes, schema.OUTCOMES, tmp_path / "o.parquet")
    row = {"benchmark": "auto_lama", "prompt": "searched", "model": "m", "method": "predict"}
    for most in (1, 2, None):
        (found,) = numbers.answered(
            [row], SHEET, [tmp_path / "o.parquet"],
            {"auto_lama": tmp_path}, given=[{"most": {"train": most}}],
        )  # fmt: skip
        task = frames.part(own.examples, {"most": {"train": most}})
        baseline = majority.majority(task, sorted(set(own.examples["label"])))
        expected = numbers.per_example(replace(own, outcomes=baseline))["p1"].to_list()
        values = numbers.hits(found, numbers.MAJORITY)["p1"].to_list()
        assert values == pytest.approx(expected), most
        counted = the(numbers.of_benchmark([found]), "search facts", group="P140")
        assert counted.value == (most or 8) + 1


def test_classes_and_sentences_have_them_too():
    words = {"train": ["no", "no", "yes"], "dev": ["no", "yes"], "test": ["yes", "yes", "no"]}
    frame = religion(words=words).examples.with_columns(pl.lit("").alias("group"))
    own = answered("auto_sst2", "searched", frame, {"": [1, 2]})
    made = [n for n in measured(own) if n.prompt == "searched"]
    assert the(made, "majority", slice="dev").value == 50
    assert the(made, "majority").value == pytest.approx(100 / 3)
    assert the(made, "best constant").value == pytest.approx(200 / 3)
    apart = the(measured(own), "total variation, train to test")
    assert apart.value == pytest.approx(100 / 3)
    read = religion(benchmark="auto_re")
    # two sentences of one fact count once
    facts = read.examples["fact"].to_list()
    one = ["test0" if fact == "test1" else fact for fact in facts]
    read = replace(read, examples=read.examples.with_columns(pl.Series("fact", one)))
    made = measured(read)
    found = the(made, "majority")
    assert (found.value, found.n) == (pytest.approx(100 / 3), 3)
    assert the(made, "P@1", group="P140", model="majority").n == 3

"""SST-2 and SICK-E on small made files: reading, balancing, overlap, errors."""

from collections import Counter

import polars as pl
import pytest

from kgprobe import schema
from kgprobe.benchmarks.autoprompt import classes as prompt_classes
from kgprobe.benchmarks.autoprompt.frames import TaskError
from kgprobe.settings.benchmarks import PromptClasses

SETTINGS = PromptClasses(draws=3)


def sst2(path, test="good film . \t1\nbad film . \t0\n"):
    train = "good film . \t1\nfine . \t1\nfine . \t1\nnot good \t0\n"
    dev = "so-so \t1\ndull \t0\n"
    for split, text in {"train": train, "dev": dev, "test": test}.items():
        (path / f"sentiment-{split}").write_text(text)
    return path


def sick(path, counts=(3, 5, 9)):
    header = "pair_ID\tsentence_A\tsentence_B\trelatedness_score\tentailment_judgment\n"
    names = ("CONTRADICTION", "ENTAILMENT", "NEUTRAL")
    for split, name in (("train", "train"), ("dev", "trial"), ("test", "test_annotated")):
        rows = [
            f"{i * 100 + j}\tA{i} {j} {split}\tB{i} {j}\t3.5\t{label}\n"
            for i, (label, n) in enumerate(zip(names, counts, strict=True))
            for j in range(n)
        ]
        (path / f"SICK_{name}.txt").write_text(header + "".join(rows))
    return path


def test_sentences_are_stripped_and_get_named_classes(tmp_path):
    task = prompt_classes.build(prompt_classes.read_sst2(sst2(tmp_path)), "sst2", SETTINGS, 5, 0)
    schema.check(task.examples, schema.EXAMPLES)
    first = task.examples.filter(split="train").sort("example").row(0, named=True)
    assert first["fields"] == '{"sentence": "good film ."}'
    assert first["label"] == "positive"
    assert first["group"] == ""
    assert task.vocabulary == ["negative", "positive"]
    assert task.task["label_words"] == {"negative": ["terrible"], "positive": ["fantastic"]}
    assert task.task["prompts"]["manual"][""]["causal"] == "{sentence} this movie was [P]"


def test_texts_shared_by_splits_are_flagged_and_counted(tmp_path):
    examples = prompt_classes.read_sst2(sst2(tmp_path))
    task = prompt_classes.build(examples, "sst2", SETTINGS, 5, 0)
    flagged = task.examples.filter(schema.pl.col("flags").list.len() > 0)
    assert flagged.select("split", "flags").rows() == [("test", ["pair"])]
    steps = {row[3]: row[4:6] for row in task.funnel.rows()}
    assert steps["train: distinct texts"] == (4, 3)
    assert steps["test: text in no earlier split"] == (2, 1)


def test_the_overlap_switch_of_classes(tmp_path):
    examples = prompt_classes.read_sst2(sst2(tmp_path))
    with pytest.raises(TaskError, match="1 test texts occur in train or dev"):
        prompt_classes.build(examples, "sst2", PromptClasses("error"), 5, 0)
    task = prompt_classes.build(examples, "sst2", PromptClasses("remove_train"), 5, 0)
    assert task.examples.filter(split="train").height == 3
    assert task.examples.filter(split="test").height == 2


@pytest.mark.parametrize("bad", ["no tab 1\n", "text\t2\n", "\t1\n"])
def test_a_bad_line_of_sst2_is_reported(tmp_path, bad):
    with pytest.raises(TaskError, match="sentiment-test, line 1: "):
        prompt_classes.read_sst2(sst2(tmp_path, bad))


def test_a_missing_file_is_reported_with_the_config_key(tmp_path):
    with pytest.raises(TaskError, match=r"sentiment-train: no such file.*sources\.sst2\.folder"):
        prompt_classes.read_sst2(tmp_path)


@pytest.mark.parametrize(
    ("form", "classes", "per_class"), [("sick_3way", 3, 3), ("sick_2way", 2, 3)]
)
def test_balanced_forms_have_equal_classes_in_every_split_and_sample(
    tmp_path, form, classes, per_class
):
    examples = prompt_classes.read_sick(sick(tmp_path))
    task = prompt_classes.build(examples, form, SETTINGS, 4, 0)
    counts = Counter(task.examples.select("group", "split", "label").rows())
    assert len(counts) == 3 * 3 * classes
    assert set(counts.values()) == {per_class}
    assert task.task["groups"] == ["draw0", "draw1", "draw2"]
    draws = [set(task.examples.filter(group=g)["fact"]) for g in task.task["groups"]]
    assert draws[0] != draws[1], "draws differ"
    again = prompt_classes.build(examples.reverse(), form, SETTINGS, 4, 0).examples
    key = ["group", "split", "example"]
    assert again.sort(key).equals(task.examples.sort(key)), "whatever the order of the rows"
    other = prompt_classes.build(examples, form, SETTINGS, 4, 1).examples
    assert set(other.filter(group="draw0")["fact"]) != draws[0]


def test_a_class_that_a_split_lacks_leaves_nothing_to_balance(tmp_path):
    examples = prompt_classes.read_sick(sick(tmp_path))
    examples = examples.filter((pl.col("split") != "dev") | (pl.col("label") != "neutral"))
    with pytest.raises(TaskError, match="draw0: dev needs 3, found 0"):
        prompt_classes.build(examples, "sick_3way", SETTINGS, 4, 0)
    task = prompt_classes.build(examples, "sick_2way", SETTINGS, 4, 0)
    assert set(task.examples["label"]) == {"contradiction", "entailment"}


def test_the_standard_form_keeps_everything(tmp_path):
    examples = prompt_classes.read_sick(sick(tmp_path))
    task = prompt_classes.build(examples, "sick", SETTINGS, 4, 0)
    assert task.examples.height == 3 * 17
    assert task.task["groups"] == [""]
    assert task.task["search"]["masked"] == "{prem} [P] [T]x4 {hyp}"
    assert task.task["search"]["causal"] == "{prem} ? {hyp} [T]x4 [P]"
    assert task.task["prompts"] == {}
    assert task.task["label_words"] == {}


def test_the_later_release_in_other_columns_is_refused(tmp_path):
    path = sick(tmp_path)
    (path / "SICK_trial.txt").write_text("pair_ID\tA\tB\n1\ta\tb\n")
    with pytest.raises(TaskError, match="no column sentence_A, sentence_B, entailment_judgment"):
        prompt_classes.read_sick(path)


def test_an_unknown_class_is_reported(tmp_path):
    path = sick(tmp_path)
    text = (path / "SICK_train.txt").read_text().replace("NEUTRAL", "NEITHER", 1)
    (path / "SICK_train.txt").write_text(text)
    with pytest.raises(TaskError, match="class 'neither'; valid: contradiction, entailment"):
        prompt_classes.read_sick(path)
    (path / "SICK_train.txt").write_text(text.replace("\n0\t", "\n#0\t"))
    with pytest.raises(TaskError, match="line 2: pair_ID '#0'; expected a number"):
        prompt_classes.read_sick(path)

"""The tasks for searched prompts on the real files: the counts of docs/papers/autoprompt.md."""

import json
from collections import Counter

import polars as pl
import pytest

from kgprobe.benchmarks.autoprompt import classes
from kgprobe.benchmarks.autoprompt import facts as prompt_facts
from kgprobe.benchmarks.autoprompt import relations as prompt_relations
from kgprobe.benchmarks.autoprompt.overlap import annotate
from kgprobe.experiments import read_table
from kgprobe.settings.benchmarks import PromptClasses, PromptFacts, PromptSentences
from tests.conftest import ROOT

pytestmark = [pytest.mark.real, pytest.mark.nightly(needs="the real data in full")]
SETTINGS = PromptFacts()
#: variant -> (folder of the facts, file of the common vocabulary)
VARIANTS = {
    "original": ("trex_original", "common_vocab_cased.txt"),
    "trex": ("trex_extend", "common_vocab_cased.txt"),
    "roberta": ("trex_original", "common_vocab_cased_rob.txt"),
}
#: relation -> train, dev, test, test in Original-RoBERTa, T-REx test, distinct test objects,
#: P@1 of the majority of train and of the best constant (published ones in resources)
COUNTS = {
    "P17": (800, 200, 930, 912, 200, 109, 2.8, 8.6),
    "P30": (800, 200, 975, 959, 200, 6, 72.3, 72.3),
    "P36": (416, 104, 703, 471, 105, 380, 0.0, 1.4),
    "P37": (248, 62, 966, 900, 63, 75, 17.0, 17.0),
    "P101": (691, 172, 696, 573, 174, 107, 10.8, 10.8),
    "P108": (300, 75, 383, 378, 76, 45, 7.8, 58.0),
    "P463": (543, 135, 225, 203, 137, 29, 2.2, 56.4),
    "P1376": (248, 62, 234, 180, 62, 218, 0.4, 2.1),
    "P1412": (800, 200, 969, 924, 200, 51, 20.6, 24.3),
}


def words(real_data, variant: str) -> list[str]:
    return prompt_facts.read_vocabulary(real_data / "lama/vocab" / VARIANTS[variant][1])


def build(real_data, variant: str):
    facts = prompt_facts.read_facts(real_data / "lama" / VARIANTS[variant][0])
    published = prompt_facts.read_published(real_data / "lama")
    own = read_table(ROOT / "resources/templates/templates.tsv")
    relations = set(facts["group"])
    task = prompt_facts.describe("auto_lama", "facts", relations, published, own, 5)
    vocabulary = words(real_data, variant)
    keep = set(vocabulary) if variant == "roberta" else None
    return prompt_facts.build(facts, vocabulary, task, SETTINGS, keep, "in the vocabulary")


@pytest.fixture(scope="module")
def original(real_data):
    return build(real_data, "original")


@pytest.fixture(scope="module")
def variants(real_data, original):
    return {"original": original, **{v: build(real_data, v) for v in ("trex", "roberta")}}


def steps(task) -> dict[str, tuple[int, int]]:
    sums = task.funnel.group_by("step").agg(pl.col("rows_in").sum(), pl.col("rows_out").sum())
    return {step: (before, after) for step, before, after in sums.rows()}


def dropped(task, step: str) -> dict[str, int]:
    rows = task.funnel.filter(step=step).select("relation", "rows_in", "rows_out").rows()
    return {relation: before - after for relation, before, after in rows}


@pytest.mark.parametrize(
    ("variant", "train", "dev", "test", "vocabulary"),
    [
        ("original", 29029, 7255, 34039, 20970),
        ("trex", 21771, 7255, 7266, 20970),
        ("roberta", 24276, 6101, 29520, 18104),
    ],
)
def test_sizes(variants, variant, train, dev, test, vocabulary):
    task = variants[variant]
    counts = dict(task.examples.group_by("split").len().rows())
    assert counts == {"train": train, "dev": dev, "test": test}
    assert task.examples["group"].n_unique() == 41
    assert len(task.vocabulary) == vocabulary


@pytest.mark.parametrize("relation", COUNTS)
def test_sizes_of_relations(variants, relation):
    sizes = {
        name: dict(task.examples.filter(group=relation).group_by("split").len().rows())
        for name, task in variants.items()
    }
    first = sizes["original"]
    found = (first["train"], first["dev"], first["test"])
    found += (sizes["roberta"]["test"], sizes["trex"]["test"])
    test = variants["original"].examples.filter(group=relation, split="test")
    assert (*found, test["label"].n_unique()) == COUNTS[relation][:6]


def constants(task) -> dict[str, tuple[float, float]]:
    """Map each relation to the P@1 of the most frequent object of train, and of test."""
    found = {}
    for relation in task.task["groups"]:
        own = task.examples.filter(group=relation)
        train, test = (Counter(own.filter(split=s)["label"]) for s in ("train", "test"))
        # ties go to the first by name
        majority = min(train, key=lambda label: (-train[label], label))
        total = sum(test.values())
        found[relation] = (100 * test[majority] / total, 100 * max(test.values()) / total)
    return found


def test_majority_and_best_constant(original):
    found = constants(original)
    for relation, row in COUNTS.items():
        assert [round(value, 1) for value in found[relation]] == list(row[6:])
    macro = [sum(values) / len(found) for values in zip(*found.values(), strict=True)]
    assert [round(value, 1) for value in macro] == [17.3, 22.0]


def test_the_published_numbers_of_facts_agree_but_for_one_relation(original):
    printed = {r["relation"]: int(r["train"]) for r in published()}
    counts = original.examples.filter(pl.col("split") != "test").group_by("group").len().rows()
    far = {g: (n, printed[g]) for g, n in counts if abs(n - printed[g]) > 1}
    assert far == {"P36": (520, 1000)}


def published() -> list[dict[str, str]]:
    return read_table(ROOT / "resources/published/autoprompt_relations.tsv")


def test_published_accuracies_are_whole_numbers_of_facts(original):
    sizes = dict(original.examples.filter(split="test").group_by("group").len().rows())
    wrong = set()
    for row in published():
        n = sizes[row["relation"]]
        for column in ("lama", "lpaqa", "autoprompt_5"):
            value = float(row[column])
            if min(abs(100 * k / n - value) for k in range(n + 1)) > 0.0051:
                wrong.add(row["relation"])
    assert wrong == {"P279"}, "one of its objects is outside of the vocabulary"


def test_shared_facts(original, variants):
    pairs = dropped(original, "test facts in train or dev")
    assert sum(pairs.values()) == 66
    assert {r: pairs[r] for r in ("P138", "P176", "P264", "P190")} == {
        "P138": 17,
        "P176": 14,
        "P264": 11,
        "P190": 9,
    }
    inverse = dropped(original, "test: not inverse")
    assert sum(inverse.values()) == 612
    assert (inverse["P190"], inverse["P47"], inverse["P530"]) == (305, 159, 137)
    found = steps(original)
    assert found["test: not within"] == (34039, 34039 - 4340)
    assert found["test: not same"] == (34039, 34039 - 68)
    assert found["test: object in the vocabulary (others stay)"] == (34039, 34038)
    assert steps(variants["trex"])["test facts in train or dev"] == (7266, 7266 - 58)


def test_facts_with_equal_subject_and_object_and_repeated_facts(real_data):
    facts = prompt_facts.read_facts(real_data / "lama/trex_original")
    equal = annotate(facts).filter(pl.col("flags").list.contains("same"))["split"]
    assert dict(equal.value_counts().rows()) == {"train": 181, "dev": 47, "test": 68}
    pair, subject = ["group", "subject", "object"], ["group", "subject"]
    train, dev, test = (facts.filter(split=split) for split in ("train", "dev", "test"))
    assert test.height - test.select(pair).n_unique() == 22
    known = train.select(pair).unique()
    assert known.join(dev, on=pair, how="semi").height == 47
    assert known.join(test, on=pair, how="semi").height == 45
    assert test.join(pl.concat([train, dev]), on=subject, how="semi").height == 2688
    extra = test.height - test.select(subject).n_unique()
    assert extra == 2560, "facts beyond the first of their subject"


def test_templates_of_the_true_relations_file(original):
    manual = original.task["prompts"]["manual"]
    assert manual["P19"]["masked"] == "{sub} was born in [P] ."
    assert len({manual[r]["masked"] for r in ("P17", "P30", "P131", "P276")}) == 1
    assert all("causal" in template for template in manual.values())
    assert len(original.task["prompts"]["lpaqa"]) == 41
    idle = "P54, P69, P102, P166, P1923"
    assert f"relations with a template and without facts here: {idle}" in original.task["notes"]


def test_sst2(real_data):
    examples = classes.read_sst2(real_data / "sst2")
    task = classes.build(examples, "sst2", PromptClasses(), 5, 0)
    counts = {(s, c): n for s, c, n in task.examples.group_by("split", "label").len().rows()}
    sizes = {s: sum(n for (split, _), n in counts.items() if split == s) for s, _ in counts}
    assert sizes == {"train": 67349, "dev": 872, "test": 1821}
    positive = [counts[s, "positive"] for s in ("train", "dev", "test")]
    assert positive == [37569, 444, 909]
    found = steps(task)
    assert found["train: distinct texts"] == (67349, 67349 - 371)
    assert found["test: text in no earlier split"] == (1821, 1819)
    assert found["dev: text in no earlier split"] == (872, 872)
    texts = (json.loads(text)["sentence"] for text in examples.filter(split="train")["fields"])
    assert sum(len(text.split()) < 3 for text in texts) == 11511


@pytest.mark.parametrize(
    ("form", "sizes"),
    [
        ("sick", (4500, 500, 4927)),
        ("sick_3way", (1995, 222, 2160)),
        ("sick_2way", (1330, 148, 1440)),
    ],
)
def test_sick(real_data, form, sizes):
    examples = classes.read_sick(real_data / "sick")
    task = classes.build(examples, form, PromptClasses(), 4, 0)
    for group in task.task["groups"]:
        counts = dict(task.examples.filter(group=group).group_by("split").len().rows())
        assert (counts["train"], counts["dev"], counts["test"]) == sizes
    assert len(task.task["groups"]) == (1 if form == "sick" else 5)
    if form == "sick":
        test = Counter(task.examples.filter(split="test")["label"])
        assert round(100 * max(test.values()) / 4927, 1) == 56.7
        assert steps(task)["train: distinct texts"] == (4500, 4470)


@pytest.fixture(scope="module")
def records(real_data):
    return prompt_relations.read_records(real_data / "trex_sentences")


def re_task(records, perturbed: str = ""):
    task = {"benchmark": "auto_re"}
    return prompt_relations.build(records, ["x"], task, PromptSentences(), 0, perturbed)


def test_sentences_of_relation_extraction(records):
    found = steps(re_task(records))
    assert len(records) == 22881
    assert len({r.relation for r in records}) == 28
    assert found["evidences: exact duplicates dropped"] == (138678, 138678 - 26480)
    assert found["evidences: over 50 words dropped"] == (112198, 104380)
    assert found["facts: a sentence of at most 50 words"] == (22881, 22191)
    usable = [
        (r, e) for r in records for e in dict.fromkeys(r.evidences) if len(e.sentence.split()) <= 50
    ]
    assert sum(r.subject not in e.sentence for r, e in usable) == 29469
    assert round(100 * sum(r.object == e.object for r, e in usable) / len(usable), 1) == 83.6


@pytest.mark.parametrize("relation", ["P19", "P413"])
def test_perturbed_contexts_of_real_facts(records, relation):
    own = [record for record in records if record.relation == relation]
    plain = {row["example"]: row for row in re_task(own).examples.to_dicts()}
    right: dict[str, set[str]] = {}
    for record in own:
        right.setdefault(record.subject_id, set()).add(record.object)
    labels: dict[str, set[str]] = {}
    for row in re_task(own, "fact").examples.to_dicts():
        fields = json.loads(row["fields"])
        assert row["label"] not in right[row["fact"].split("/")[1]]
        assert row["surfaces"][0] in fields["context"]
        labels.setdefault(row["fact"], set()).add(row["label"])
        if row["example"] in plain:
            assert fields["old"] == plain[row["example"]]["label"]
    assert {len(found) for found in labels.values()} == {1}

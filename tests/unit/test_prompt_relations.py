"""Relation extraction and its perturbation, on a few synthetic records."""

import gzip
import json
import random
from dataclasses import replace

import pytest

from kgprobe import schema
from kgprobe.benchmarks.autoprompt import relations
from kgprobe.benchmarks.autoprompt.frames import TaskError
from kgprobe.benchmarks.autoprompt.relations import (
    Evidence,
    ObjectMention,
    Record,
    SplitRecord,
    draw,
    perturb,
    pool_of,
    without,
)
from kgprobe.settings.benchmarks import PromptSentences, Rows

CITIES = {
    "London": ["London", "London, England"],
    "Paris": ["Paris"],
    "Rome": ["Rome", "Roma"],
    "Bonn": ["Bonn"],
}
SETTINGS = PromptSentences(15, (0.5, 0.2), least=Rows(1, 1, 1))


def records(n: int = 60) -> list[Record]:
    """Facts with 1 to 4 sentences, one repeated, some long; some subjects have two objects."""
    chosen = random.Random(0)
    made = []
    for i in range(n):
        labels = chosen.sample(sorted(CITIES), 2 if i % 3 == 0 else 1)
        for label in labels:
            evidences = []
            for j in range(1 + i % 4):
                surface = chosen.choice(CITIES[label])
                text = f"S{i} was born in [MASK] , sentence {j} , not far from {surface} ."
                if j == 2:
                    text = "word " * 11 + text
                evidences.append(Evidence(f"S{i}", surface, text))
            evidences += evidences[:1]
            fact = f"P19/Q{i}/{label}"
            made.append(Record("P19", fact, f"Q{i}", f"S{i}", label, tuple(evidences)))
    return made


def task(perturbed: str = "", rows=None):
    described = {"benchmark": "auto_re"}
    return relations.build(rows or records(), ["x"], described, SETTINGS, 0, perturbed)


def by_example(made) -> dict:
    rows = made.examples.to_dicts()
    return {row["example"]: {**row, "fields": json.loads(row["fields"])} for row in rows}


def steps(made) -> dict[str, tuple[int, int]]:
    return {row[3]: row[4:6] for row in made.funnel.rows()}


def test_train_facts_have_one_sentence_and_test_facts_all_short_ones():
    made = task()
    schema.check(made.examples, schema.EXAMPLES)
    counts = made.examples.group_by("split", "fact").len()
    assert counts.filter(split="train")["len"].max() == 1
    assert counts.filter(split="test")["len"].max() == 3, "of four, one is over 15 words"
    for row in by_example(made).values():
        context = row["fields"]["context"]
        extra = len(row["surfaces"][0].split()) - 1
        assert len(context.split()) <= 15 + extra, "[MASK] counts as one word"
        assert "[MASK]" not in context
        assert row["surfaces"][0] in context or row["split"] != "test"


def test_the_sentence_of_a_training_fact_may_begin_with_the_object():
    text = "[MASK] is where it began ."
    rows = [replace(r, evidences=(Evidence("S", r.object, text),)) for r in records()]
    train = {fact: row for fact, row in by_example(task(rows=rows)).items()
             if row["split"] == "train"}  # fmt: skip
    assert len(train) > 20
    for row in train.values():
        assert row["fields"]["context"] == text.replace("[MASK]", row["surfaces"][0])


def test_equal_contexts_are_merged_with_every_surface_form():
    texts = [("Roman", "S was a [MASK] , born in Rome ."), ("Rome", "S lived in [MASK] ."),
             ("Rome", "S was a Roman , born in [MASK] .")]  # fmt: skip
    evidences = tuple(Evidence("S", surface, text) for surface, text in texts)
    drawn = (Record("P19", f"P19/T{i}/Rome", f"T{i}", "S", "Rome", evidences) for i in range(99))
    one = next(r for r in drawn if relations.split_of(r, SETTINGS.shares, 0) == "test")
    rows = [*records(), one]
    found = [row for row in by_example(task(rows=rows)).values() if row["fact"] == one.fact]
    assert [(row["fields"]["context"], row["surfaces"]) for row in found] == [
        ("S was a Roman , born in Rome .", ["Roman", "Rome"]),
        ("S lived in Rome .", ["Rome"]),
    ]
    # a replaced object occurs once in a context, so that both are asked
    changed = [row["fact"] for row in by_example(task("fact", rows)).values()]
    assert changed.count(one.fact) == 3
    step = "test: equal contexts dropped"
    (before, after), plain = steps(task(rows=rows))[step], steps(task())[step]
    assert (before - plain[0], after - plain[1]) == (3, 2)


def test_every_dropped_sentence_is_counted():
    rows = records()
    found = steps(task(rows=rows))
    evidences = sum(len(r.evidences) for r in rows)
    distinct = sum(len(set(r.evidences)) for r in rows)
    short = sum(len(e.sentence.split()) <= 15 for r in rows for e in set(r.evidences))
    assert found["evidences: exact duplicates dropped"] == (evidences, distinct)
    assert found["evidences: over 15 words dropped"] == (distinct, short)
    assert found["facts: a sentence of at most 15 words"] == (len(rows), len(rows))


def test_a_fact_of_several_records_has_the_sentences_of_all():
    apart = [replace(one, evidences=(e,)) for one in records() for e in one.evidences]
    made, expected = task(rows=apart), task()
    assert made.examples.equals(expected.examples)
    assert made.funnel.equals(expected.funnel)


def test_splits_share_neither_fact_nor_subject():
    made = task().examples
    subjects = made.with_columns(subject=made["fact"].str.split("/").list.get(1))
    assert subjects.group_by("subject").agg(schema.pl.col("split").n_unique())["split"].max() == 1
    sizes = dict(made.group_by("split").agg(schema.pl.col("fact").n_unique()).rows())
    assert sizes["train"] > sizes["test"] > 0
    assert sizes["dev"] > 0


def test_a_perturbed_fact_has_one_new_object_in_the_slot_only():
    plain, changed = by_example(task()), by_example(task("fact"))
    right = {
        r.fact: {q.object for q in records() if q.subject_id == r.subject_id} for r in records()
    }
    news: dict[str, set[str]] = {}
    for name, row in changed.items():
        was = plain[name]
        fact, (surface,) = row["fact"], row["surfaces"]
        news.setdefault(fact, set()).add(row["label"])
        assert row["label"] not in right[fact], "neither the old object nor a right answer"
        assert surface in CITIES[row["label"]]
        assert row["fields"]["old"] == was["label"]
        old = was["surfaces"][0]
        slot = was["fields"]["context"].index(f"in {old} ,") + 3
        context = was["fields"]["context"]
        assert row["fields"]["context"] == context[:slot] + surface + context[slot + len(old) :]
    assert all(len(labels) == 1 for labels in news.values())
    assert changed.keys() <= plain.keys()


def test_remaining_mentions_of_the_old_object_are_counted():
    made = task("fact")
    left = sum(
        any(s in row["fields"]["context"] for s in CITIES[row["fields"]["old"]])
        for row in by_example(made).values()
    )
    total, clean = steps(made)["contexts: old object nowhere left"]
    assert total == made.examples.height
    assert total - clean == left > 0


def test_released_mode_equals_a_reference_implementation():
    """At test time each sentence gets another object at every occurrence of the old one."""
    plain, changed = by_example(task()), by_example(task("released"))
    assert plain.keys() == changed.keys()
    split = {r.fact: r for r in records()}
    several = 0
    for name, row in changed.items():
        was = plain[name]
        old, (surface,) = was["surfaces"][0], row["surfaces"]
        assert row["label"] != was["label"]
        assert surface in CITIES[row["label"]]
        assert row["fact"] == f"{was['fact']}~{row['label']}"
        if row["split"] == "test":
            filled = was["fields"]["context"]
            assert row["fields"]["context"] == filled.replace(old, surface)
            several += len({c["label"] for n, c in changed.items() if n[:-5] == name[:-5]}) > 1
        assert was["fact"] in split
    assert several, "sentences of one test fact get different objects"


def test_pools_exclude_texts_in_any_case_and_sample_by_hash():
    pool = pool_of([("Rome", "Rome"), ("Rome", "ROMA"), ("Bonn", "Bonn"), ("Roma", "x")])
    assert without(pool, ["roma", "Rome"]) == [("Bonn", ["Bonn"])]
    assert pool["Rome"] == ["ROMA", "Rome"]
    options = without(pool, [])
    assert draw(options, 0, "a") == draw(options, 0, "a")
    assert {draw(options, 0, str(i))[0] for i in range(60)} == {"Rome", "Bonn", "Roma"}


def test_a_relation_with_one_object_cannot_be_perturbed():
    pool = pool_of([("Rome", "Rome")])
    record = Record("P19", "P19/Q1/Q2", "Q1", "S", "Rome", ())
    row = SplitRecord(record, "test", [ObjectMention("in Rome .", "Rome", 3)])
    for mode in ("fact", "released"):
        assert perturb(pool, row, 0, mode) == []


EVIDENCE = {"sub_surface": "A", "obj_surface": "B", "masked_sentence": "A in [MASK] ."}


def row(**more) -> dict:
    full = {
        "uuid": "0", "predicate_id": "P19", "sub_uri": "Q1", "obj_uri": "Q2", "sub_label": "A",
        "obj_label": "B", "evidences": [EVIDENCE],
    }  # fmt: skip
    return {**full, **more}


def test_records_are_read_compressed_or_from_the_archive(tmp_path):
    with gzip.open(tmp_path / "P19.jsonl.gz", "wt") as stream:
        stream.write(json.dumps(row()) + "\n")
    deeper = tmp_path / "TREx_all" / "P20"
    deeper.mkdir(parents=True)
    (deeper / "test.jsonl").write_text(json.dumps(row(predicate_id="P20")) + "\n")
    found = relations.read_records(tmp_path)
    assert [r.relation for r in found] == ["P19", "P20"]
    assert found[0] == Record(
        "P19", "P19/Q1/Q2", "Q1", "A", "B", (Evidence("A", "B", "A in [MASK] ."),)
    )
    assert [r.relation for r in relations.read_records(tmp_path, ["P19"])] == ["P20"]


def test_files_beside_the_records_are_not_read(tmp_path):
    with gzip.open(tmp_path / "P19.jsonl.gz", "wt") as stream:
        stream.write(json.dumps(row()) + "\n")
    (tmp_path / "P19.jsonl.gz.sha256").write_text("0" * 64 + "  P19.jsonl.gz\n")
    (found,) = relations.read_records(tmp_path)
    # unpacked beside the archive, it is the same relation
    (tmp_path / "P19.jsonl").write_text(json.dumps(row(sub_label="B")) + "\n")
    assert [r.subject for r in (found, *relations.read_records(tmp_path))] == ["A", "B"]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"evidences": [{"sub_surface": "A"}]}, "line 1: no 'obj_surface'"),
        ({"evidences": None}, "line 1: .* not iterable; expected LAMA's records"),
        ({"evidences": ["A in [MASK] ."]}, "line 1: .*; expected LAMA's records"),
        ({"sub_label": None}, "line 1: None is not a string; expected"),
        ({"evidences": [{**EVIDENCE, "obj_surface": 5}]}, "line 1: 5 is not a string; expected"),
        (
            {"evidences": [{**EVIDENCE, "masked_sentence": "A in B ."}]},
            r"line 1: not exactly one \[MASK\]",
        ),
    ],
)
def test_a_broken_record_is_reported_with_its_row(tmp_path, wrong, message):
    with gzip.open(tmp_path / "P19.jsonl.gz", "wt") as stream:
        stream.write(json.dumps(row(**wrong)) + "\n")
    with pytest.raises(TaskError, match=message):
        relations.read_records(tmp_path)


def test_a_folder_without_records_is_reported(tmp_path):
    with pytest.raises(TaskError, match=r"no P\*\.jsonl\.gz"):
        relations.read_records(tmp_path)
    with pytest.raises(TaskError, match=r"sources\.trex_sentences\.folder"):
        relations.read_records(tmp_path / "nowhere")

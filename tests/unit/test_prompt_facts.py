"""Facts as examples: files, overlap, flags, templates, pulls, the embedded knowledge graph."""

import json
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from kgprobe import schema
from kgprobe.benchmarks.autoprompt import facts as prompt_facts
from kgprobe.benchmarks.autoprompt import graph as own_graph
from kgprobe.benchmarks.autoprompt import own as prompt_own
from kgprobe.benchmarks.autoprompt import templates as prompt_templates
from kgprobe.benchmarks.autoprompt.frames import TaskError, part, write
from kgprobe.benchmarks.autoprompt.overlap import annotate, facts_of, settle
from kgprobe.benchmarks.funnel import Funnel
from kgprobe.experiments import read_table
from kgprobe.sampling import hash_key
from kgprobe.schema import FACTS
from kgprobe.settings.benchmarks import PromptFacts, PromptGraph, PromptTasks, PromptWorld, Rows
from tools.world.build import load

TRAIN = [("Ada", "London"), ("Bea", "Paris"), ("Rome", "Roma"), ("Oslo", "Oslo")]
DEV = [("Cid", "Bonn"), ("Bea", "Paris")]
TEST = [
    ("Ada", "London"), ("Dan", "Paris"), ("Roma", "Rome"), ("New York City", "New York"),
    ("Lima", "Lima"), ("Dan", "Bonn"), ("Dan", "Bonn"),
]  # fmt: skip
SETTINGS = PromptFacts(least=Rows(1, 1, 1))


def facts(*more: tuple[str, ...]) -> pl.DataFrame:
    splits = {"train": TRAIN, "dev": DEV, "test": TEST}
    rows = [("P19", split, *pair) for split, pairs in splits.items() for pair in pairs]
    return facts_of([*rows, *more])


def annotated(column: str) -> dict:
    columns = ["split", "subject", "object", column]
    return {tuple(row): value for *row, value in annotate(facts()).select(columns).rows()}


def folder(path: Path, relation: str = "P19") -> Path:
    made = path / "trex_original" / relation
    made.mkdir(parents=True)
    for split, pairs in {"train": TRAIN, "dev": DEV, "test": TEST}.items():
        rows = "".join(json.dumps({"sub": s, "obj": o}) + "\n" for s, o in pairs)
        (made / f"{split}.jsonl").write_text(rows)
    return path / "trex_original"


def described(**more) -> dict:
    row = {"relation": "P19", "template": "[X] was born in [Y] .", "label": "birth", "type": "N-1"}
    return {
        **prompt_facts.describe(
            "auto_lama", "facts", ["P19"], {"manual": {"P19": row, "P1923": row}}, [], 5
        ),
        **more,
    }


def built(rows=None, settings=SETTINGS, **more):
    words = ["Bonn", "London", "Paris", "Rome", "Roma"]
    return prompt_facts.build(
        facts() if rows is None else rows, words, described(), settings, **more
    )


def step(task, name: str) -> tuple[int, int]:
    row = task.funnel.filter(step=name).row(0, named=True)
    return row["rows_in"], row["rows_out"]


def test_files_are_read_in_order_and_a_missing_one_is_reported(tmp_path):
    assert prompt_facts.read_facts(folder(tmp_path)).equals(facts())
    with pytest.raises(TaskError, match=r"no folder for P36; it has 1"):
        prompt_facts.read_facts(tmp_path / "trex_original", ["P36"])
    (tmp_path / "trex_original/P19/dev.jsonl").unlink()
    with pytest.raises(TaskError, match=r"dev\.jsonl: no such file.*sources\.lama\.folder"):
        prompt_facts.read_facts(tmp_path / "trex_original")
    (tmp_path / "trex_original/P19/dev.jsonl").write_text('{"sub": "x"}\n')
    with pytest.raises(TaskError, match=r"dev\.jsonl, line 1: obj is None, expected text"):
        prompt_facts.read_facts(tmp_path / "trex_original")


def test_flags_compare_test_with_train_and_dev_and_dev_with_train():
    found = annotated("flags")
    assert found["test", "Ada", "London"] == ["pair"]
    assert found["test", "Dan", "Paris"] == []
    assert found["test", "Roma", "Rome"] == ["inverse"]
    assert found["test", "New York City", "New York"] == ["within"]
    assert found["test", "Lima", "Lima"] == ["within", "same"]
    assert found["dev", "Bea", "Paris"] == ["pair"]
    assert found["train", "Bea", "Paris"] == []


def test_other_right_answers_come_from_every_split():
    by_fact = annotated("others")
    assert by_fact["test", "Dan", "Paris"] == ["Bonn"]
    assert by_fact["test", "Dan", "Bonn"] == ["Paris"]
    assert by_fact["test", "Ada", "London"] == []


@pytest.mark.parametrize(
    ("switch", "train", "dev", "test"), [("keep", 4, 2, 7), ("remove_train", 2, 2, 7)]
)
def test_the_overlap_switch(switch, train, dev, test):
    funnel = Funnel("x")
    left = settle(facts(), switch, funnel, "x")
    sizes = [left.filter(split=s).height for s in ("train", "dev", "test")]
    assert sizes == [train, dev, test]
    counted = {row["step"]: (row["rows_in"], row["rows_out"]) for row in funnel.rows}
    assert counted["test facts in train or dev"] == (7, 6)
    assert counted["dev facts in train"] == (2, 1)
    assert counted[f"overlap: {switch}"] == (13, train + dev + test)


def test_a_step_is_placed_without_reading_all_steps_before_it():
    """A graph of 2,000 relations took minutes."""

    class Rows(list):
        def __iter__(self):
            raise AssertionError("read")

    for through, places in ((False, [0, 0, 1]), (True, [0, 1, 2])):
        funnel = Funnel("x", through, Rows())
        for relation in ("P1", "P2", "P1"):
            funnel.add(relation, "step", 1, 1)
        assert [funnel.rows[n]["position"] for n in range(3)] == places


def test_shared_facts_are_an_error_by_the_switch():
    with pytest.raises(TaskError, match=r"P19: 1 of 7, such as \('Ada', 'London'\)"):
        settle(facts(), "error", Funnel("x"), "auto_lama")


def test_examples_keep_every_row_and_count_unanswerable_ones(tmp_path):
    task = built()
    schema.check(task.examples, schema.EXAMPLES)
    test = task.examples.filter(split="test").sort("example")
    assert test["label"].to_list() == [pair[1] for pair in TEST]
    assert test["fact"].to_list()[-2:] == ["P19/Dan/Bonn", "P19/Dan/Bonn#2"]
    assert json.loads(test["fields"][0]) == {"sub": "Ada"}
    assert step(task, "test: object in the vocabulary (others stay)") == (7, 5)
    assert step(task, "test: no-overlap subset") == (7, 3)
    write(task, tmp_path, {})
    assert json.loads((tmp_path / "vocabulary.json").read_text()) == task.vocabulary
    assert json.loads((tmp_path / "task.json").read_text()) == task.task
    assert schema.read(tmp_path / "examples.parquet", schema.EXAMPLES).height == 13


def test_a_subset_by_vocabulary_drops_facts_of_every_split_and_counts_them():
    task = built(keep={"London", "Paris", "Bonn"}, reason="object known")
    assert step(task, "train: object known") == (4, 2)
    assert step(task, "test: object known") == (7, 4)
    assert task.examples.group_by("split").len().sort("split").rows() == [
        ("dev", 2),
        ("test", 4),
        ("train", 2),
    ]


def test_too_few_facts_are_reported_with_relation_and_counts():
    with pytest.raises(TaskError, match=r"P19: train needs 5, found 4"):
        built(settings=PromptFacts(least=Rows(5, 1, 1)))
    # also if a filter leaves none
    rows = facts(("P20", "test", "Ada", "Bonn"))
    task, kept = described(groups=["P19", "P20"]), {"Paris", "London", "Roma", "Rome"}
    with pytest.raises(TaskError, match=r"P20: train needs 1, found 0"):
        prompt_facts.build(rows, [], task, SETTINGS, keep=kept)


def test_templates_are_kept_verbatim_and_cut_for_causal_models():
    task = described()
    assert task["prompts"]["manual"]["P19"] == {
        "masked": "{sub} was born in [P] .",
        "seq2seq": "{sub} was born in [P] .",
        "causal": "{sub} was born in [P]",
    }
    assert task["search"]["masked"] == "{sub} [T]x5 [P] ."
    assert task["search"]["causal"] == "{sub} [T]x5 [P]"
    assert task["types"] == {"P19": "N-1"}
    assert task["notes"] == ["relations with a template and without facts here: P1923"]


def test_causal_models_get_no_template_whose_answer_is_not_last():
    assert "causal" not in prompt_templates.manual("[X] plays [Y] music .")
    own = prompt_templates.manual("[X] plays [Y] music .", ending="The genre of [X] is [Y].")
    assert own["causal"] == "The genre of {sub} is [P]"
    before = prompt_templates.manual("[Y] is the capital of [X] .", ending="")
    assert "causal" not in before


def test_contexts_precede_the_same_template():
    found = prompt_templates.manual("[X] was born in [Y] .", context=True)
    assert found["masked"] == "{context} [SEP] {sub} was born in [P] ."
    assert found["roberta"] == "{context} {sub} was born in [P] ."
    assert found["causal"] == "{context} {sub} was born in [P]"


def frame(rows) -> pl.DataFrame:
    full = [("wikidata", s, f"name {s}", "P19", o, o.lower()) for s, o in rows]
    columns = ("kg", "subject", "subject_label", "relation", "object", "object_label")
    return pl.DataFrame(full, schema=dict.fromkeys(columns, pl.String), orient="row")


def collected(most: int, variant: str = "original", pages=None):
    trex = frame([(f"Q{i}", "A") for i in range(6)] + [("Q90", "Z")])
    wikidata = frame([(f"Q{i}", "B") for i in range(4, 30)])
    test = facts_of([("P19", "test", "name Q0", "a")])
    funnel = Funnel("auto_lama")
    rows = prompt_own.collect(
        ["P19"], test, trex, wikidata, pages, {"a", "b"}, most, variant, 0, funnel
    )
    return rows, {row["step"]: (row["rows_in"], row["rows_out"]) for row in funnel.rows}


def test_search_facts_come_from_trex_first_without_test_facts():
    rows, steps = collected(15)
    assert [rows.filter(split=s).height for s in ("train", "dev")] == [12, 3]
    assert rows.filter(object="a").height == 5, "all of T-REx but the test fact and Z"
    assert steps["T-REx: not in the test"] == (7, 6)
    assert steps["T-REx: object in the vocabulary"] == (6, 5)
    assert steps["Wikidata: topped up"] == (26, 10)
    assert ("name Q0", "a") not in rows.select("subject", "object").rows()
    few, steps = collected(3)
    assert few.height == 3
    assert set(few["object"]) == {"a"}
    assert "Wikidata: topped up" not in steps


def test_rows_from_wikidata_need_a_page_if_pages_are_known():
    rows, steps = collected(15, pages={"Q8", "Q9"})
    assert steps["Wikidata: a page and a label"] == (26, 2)
    assert rows.height == 7


def test_the_trex_split_has_three_splits_of_one_distribution():
    rows, _ = collected(20, "trex")
    assert [rows.filter(split=s).height for s in ("train", "dev", "test")] == [12, 4, 4]
    assert rows["key"].n_unique() == 20


def test_embedded_facts_search_on_trained_on_and_test_on_both():
    known = frame([(f"Q{i}", "A" if i % 2 else "B") for i in range(30)] + [("Q50", "C")])
    trained_on = pl.DataFrame(
        [
            (f"P19/{s}/{o}", "P19", s, o, int(s[1:]) < 10)
            for s, o in known.select("subject", "object").rows()
        ],
        schema=dict(schema.TRAINED_ON.columns),
        orient="row",
    )
    settings = PromptWorld(("P19",), (0.5, 0.2), 8, Rows(1))
    templates = [
        {"relation": "P19", "index": "0", "kind": "manual", "text": "[X] is in [Y].", "note": "in"}
    ]
    arguments = (known, trained_on, {"A": "the a"}, templates, settings, 3, 0)
    task = own_graph.build_world(*arguments)
    status = dict(trained_on.select("fact", "trained_on").rows())
    rows = task.examples.with_columns(trained_on=pl.col("fact").replace_strict(status))
    counts = rows.group_by("split", "trained_on").len().sort("split", "trained_on").rows()
    assert counts == [("dev", True, 2), ("test", False, 8), ("test", True, 3), ("train", True, 5)]
    assert set(rows["label"]) == {"the a", "b"}, "the form of sentences; no answer C"
    assert task.vocabulary == ["b", "c", "the a"]
    assert task.task["prompts"]["manual"]["P19"]["causal"] == "{sub} is in [P]"
    assert own_graph.build_world(*arguments).examples.equals(task.examples)
    with pytest.raises(TaskError, match="P20: train needs 1, found 0"):
        own_graph.build_world(
            *arguments[:4], replace(settings, relations=("P19", "P20")), *arguments[5:]
        )
    more = replace(settings, least=Rows(6))
    with pytest.raises(TaskError, match="P19: train needs 6, found 5"):
        own_graph.build_world(*arguments[:4], more, *arguments[5:])


def test_a_user_graph_is_split_by_subject_and_small_relations_are_reported():
    rows = [("zoo", f"s{n}", f"S{n}", "eats", f"o{n % 3}", f"O{n % 3}") for n in range(20)]
    rows += [("zoo", "s1", "S1", "eats", "o9", "O9"), ("zoo", "s1", "S1", "likes", "o9", "O9")]
    rows += [("zoo", f"s{n}", f"S{n}", "mute", "o1", None) for n in range(20)]
    facts = pl.DataFrame(rows, schema=dict(FACTS.columns), orient="row")
    templates = [
        {"relation": name, "index": "0", "kind": "manual", "text": f"[X] {name} [Y].", "note": name}
        for name in ("eats", "likes", "mute")
    ]
    settings = PromptGraph(most=18, least=Rows(4, 2, 3))
    task = own_graph.build("auto_zoo", facts, templates, settings, 3, seed=5)
    assert task.task["groups"] == ["eats"]
    assert task.task["prompts"]["manual"]["eats"]["masked"] == "{sub} eats [P]."
    # by hand: subjects in the order of their hash, 18 facts of them, then 60, 20 and 20 %
    order = sorted({row[1] for row in rows[:21]}, key=lambda s: hash_key(5, "auto_zoo", s))
    own = sorted(rows[:21], key=lambda row: (order.index(row[1]), row[4]))[:18]
    left = [s for s in order if any(row[1] == s for row in own)]
    parts = {s: "train" if i < round(0.6 * len(left)) else "dev" if i < round(0.8 * len(left))
             else "test" for i, s in enumerate(left)}  # fmt: skip
    expected = sorted((f"eats/{row[1]}/{row[4]}", parts[row[1]]) for row in own)
    assert sorted(task.examples.select("fact", "split").rows()) == expected
    assert task.funnel.filter(relation="likes").sort("position")["rows_in"][0] == 1
    with pytest.raises(TaskError, match="likes: train needs 4, found 1"):
        own_graph.build("auto_zoo", facts, templates, PromptGraph(("likes",)), 3, seed=5)
    for chosen in (settings, replace(settings, relations=("eats",))):
        with pytest.raises(TaskError, match=r"eats \(no template\): train needs 4, found 0"):
            own_graph.build("auto_zoo", facts, templates[1:], chosen, 3, seed=5)
    # a relation that is named is not left out in silence
    for name in ("typo", "mute"):
        chosen = replace(settings, relations=("eats", name))
        with pytest.raises(TaskError, match=f"{name}: train needs 4, found 0"):
            own_graph.build("auto_zoo", facts, templates, chosen, 3, seed=5)
    assert task.vocabulary == ["O0", "O1", "O2", "O9"]


#: (subject number, its label, object number)
MANY_OBJECTS = [*((n, n, m) for n in range(12) for m in (0, 1)), *((0, 0, m) for m in range(2, 20))]
TWO_OF_A_NAME = [(n, n // 2, n % 4) for n in range(60)]


@pytest.mark.parametrize(
    ("facts", "most"),
    [*((MANY_OBJECTS, most) for most in (11, 12, 17)), (TWO_OF_A_NAME, 41), (TWO_OF_A_NAME, 60)],
)
def test_a_subject_of_a_user_graph_comes_with_all_its_facts_in_one_split(facts, most):
    """This holds for any limit and for subjects of one name, as an omitted answer is wrong."""
    rows = [("zoo", f"s{n}", f"S{name}", "eats", f"o{m}", f"O{m}") for n, name, m in facts]
    templates = [{"relation": "eats", "index": "0", "kind": "manual", "text": "[X] eats [Y].",
                  "note": "eats"}]  # fmt: skip
    graph = pl.DataFrame(rows, schema=dict(FACTS.columns), orient="row")
    settings = PromptGraph(most=most, least=Rows(1, 1, 1))
    made = own_graph.build("auto_zoo", graph, templates, settings, 3, seed=0).examples
    assert made.height == most // 2 * 2
    names = made.select("fields", "split").unique()
    assert names["fields"].n_unique() == names.height == made.height // 2
    assert {len(others) for others in made["others"]} == {1}


def test_embedded_facts_are_enough_for_an_interval():
    root = Path(__file__).parents[2] / "resources"
    made = load(root / "world")
    labels = dict(made.entities.select("id", "label").rows())
    rows = [
        ("world", s, labels[s], "P17", o, labels[o])
        for s, p, o in made.truthy().select("subject", "relation", "object").rows()
        if p == "P17"
    ]
    facts = pl.DataFrame(rows, schema=dict(FACTS.columns), orient="row")
    templates = read_table(root / "templates/templates.tsv")
    task = own_graph.build("auto_world_all", facts, templates, PromptTasks().world_all, 3, 0)
    assert task.examples.height == 1000
    assert len(set(task.examples["label"])) > 100
    asked = part(task.examples, {"most": {"train": 100, "dev": 40, "test": 100}}, 0)
    found = dict(asked["split"].value_counts().rows())
    assert found["dev"] >= 40
    assert found["test"] >= 100

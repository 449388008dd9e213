"""Wrong OntoProbe input gives one early error that names every task, file and row."""

from dataclasses import replace

import polars as pl
import pytest

from kgprobe.benchmarks.ontoprobe import build, modes, reasoning
from kgprobe.benchmarks.ontoprobe import own as ontoprobe_own
from kgprobe.benchmarks.ontoprobe.build import SHOWN
from kgprobe.probes.jobs.frames import prepared, rankable
from kgprobe.probes.jobs.methods import cloze as rank
from kgprobe.probes.jobs.ontoprobe import reason, soft
from kgprobe.probes.models import load
from kgprobe.probes.models.load import load_model, outline
from kgprobe.probes.prompts.trained import soft as trained
from tests.unit import soft_frames as frames
from tests.unit.test_ontoprobe import PATTERNS, SWITCHES, USES, built, own_tables, write_release
from tests.unit.test_reasoning import PLAN, saved
from tests.unit.test_reasoning import SWITCHES as TWO_PAIRS


class NoWeights:
    """A stand-in for the classes that load models."""

    @staticmethod
    def from_pretrained(*_, **__):
        raise AssertionError("the model was loaded")


def forbid(monkeypatch):
    """Make the test fail if any weights are loaded from now on."""
    monkeypatch.setattr(load, "AUTO", dict.fromkeys(load.AUTO, NoWeights))


@pytest.fixture
def unloaded(monkeypatch):
    """Fail the test if any weights are loaded."""
    forbid(monkeypatch)


def test_all_bad_tasks_are_listed_in_one_error(tmp_path):
    def change(files):
        files["ontology/class.json"][3]["rdfs:label"] = ""
        files["memorizing/range.jsonl"][25]["xxx"] = ["unheard"]
        files["memorizing/domain.jsonl"][6]["uuu"] = {"link 6": ""}
        files["memorizing/type.jsonl"][12].pop("xxx")
        files["memorizing/subClassOf.jsonl"] = files["memorizing/subClassOf.jsonl"][:25]

    with pytest.raises(ValueError, match="ontology, TP, SCO, DM cannot be built") as error:
        built(write_release(tmp_path, change))
    text = str(error.value)
    assert r"class.json, entry 3 (http://dbpedia.org/ontology/C3): no label" in text
    assert "type.jsonl, line 13: needs a subject" in text
    assert "task SCO has 25 rows" in text
    assert "domain.jsonl, line 7 (link 6): needs a pattern" in text


def test_a_subject_without_ascii_letters_is_refused_where_others_are_dropped(tmp_path):
    def change(files):
        files["memorizing/type.jsonl"][25]["uuu"] = "\u5317\u4eac"

    built(write_release(tmp_path, change))
    message = r"TP row 25 \('\u5317\u4eac'\): nothing is left of its subject under labels: ascii"
    with pytest.raises(ValueError, match=message):
        built(tmp_path, replace(SWITCHES, labels="ascii_drop"))


def test_many_bad_rows_of_a_task_are_counted(tmp_path):
    def change(files):
        for entry in files["memorizing/range.jsonl"][20:]:
            entry["xxx"] = ["unheard"]

    with pytest.raises(ValueError, match="RG cannot be built") as error:
        built(write_release(tmp_path, change))
    lines = str(error.value).splitlines()
    assert len(lines) == 1 + SHOWN + 1
    assert lines[1].endswith("correct the label or add the concept to the ontology")
    assert lines[-1] == f"  RG: ... and {14 - SHOWN} more"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda f: f["ontology/class.json"][5].update({"is rdf:type of": []}),
         r"type\.jsonl, line 6: TP row 5 \('Thing 5'\) is of the class 'kind 5', which has no "
         r"instance in .*ontology; add the instance there or remove the row"),
        (lambda f: f["ontology/property.json"][7].update({"rdfs:domain": None}),
         r"domain\.jsonl, line 8: DM row 7 \('link 7'\): the property has no domain in "
         r".*ontology; add it there or remove the row"),
        (lambda f: f["ontology/property.json"][7].update({"rdf:range": ""}),
         r"range\.jsonl, line 8: RG row 7 \('link 7'\): the property has no range"),
        (lambda f: f["ontology/property.json"][4].update({"pattern": None}),
         r"property\.json, entry 4 \(link 4\): needs a pattern"),
        (lambda f: f["memorizing/range.jsonl"][25].update({"xxx": ["unheard"]}),
         r"range\.jsonl, line 26: RG row 25 .*gold 'unheard' is not among the 35 class"),
        (lambda f: f["memorizing/type.jsonl"].append(f["memorizing/type.jsonl"][2]),
         r"TP row 35 \('Thing 2'\) is also row 2, which is for train"),
        (lambda f: f["ontology/property.json"][3].update({"rdfs:subPropertyOf": {"odd": None}}),
         r"property\.json, entry 3 \(link 3\): its superproperty 'odd' needs a pattern"),
        (lambda f: f["ontology/property.json"][3].update({"rdfs:subPropertyOf": ["odd"]}),
         r"entry 3: rdfs:subPropertyOf is \['odd'\]; expected an object with texts as keys"),
        (lambda f: f["ontology/property.json"][3].update({"rdf:Property": []}),
         r"property\.json, entry 3: without rdf:Property"),
        (lambda f: f["ontology/property.json"][3].update({"id": "x"}),
         r"property\.json, entry 3: id is 'x'; expected a number"),
        (lambda f: f["ontology/class.json"][5].update({"rdfs:subClassOf": "kind 1"}),
         r"class\.json, entry 5: rdfs:subClassOf is 'kind 1'; expected a list of texts"),
        (lambda f: f["memorizing/range.jsonl"].append(["link 1", ["kind 2"]]),
         r"range\.jsonl, line 35: needs a subject \(uuu\) and golds \(xxx\)"),
        (lambda f: f["memorizing/range.jsonl"][25].update({"xxx": "kind 2"}),
         r"range\.jsonl, line 26: needs a subject \(uuu\) and golds \(xxx\)"),
        (lambda f: f["memorizing/range.jsonl"][25].update({"uuu": {"a": "", "b": ""}}),
         r"range\.jsonl, line 26: needs a subject \(uuu\) and golds \(xxx\)"),
    ],
)  # fmt: skip
def test_an_error_in_one_row_is_reported_with_file_and_line(tmp_path, change, message):
    with pytest.raises(ValueError, match=message):
        built(write_release(tmp_path, change))


def test_a_superproperty_without_pattern_is_reported_by_its_rule(tmp_path):
    def change(files):
        files["memorizing/subPropertyOf.jsonl"][22]["xxx"] = {"odd": "[X] is odd [Y] ."}
        files["ontology/property.json"][1]["rdfs:subPropertyOf"] = {"odd": "[X] is odd [Y] ."}

    taken, sets = built(write_release(tmp_path, change))
    taken.concepts.patterns.pop("odd")
    with pytest.raises(ValueError, match=r"rules: rdfs7 cannot be built\n.*'odd' has no pattern"):
        reasoning.build(taken, sets.items, sets.candidates, SWITCHES)


@pytest.mark.parametrize("slot", ["[X]", "[Y]", "{sub}", "[P]", "[MASK]"])
def test_a_label_that_a_premise_would_lose_to_a_pseudoword_is_reported(tmp_path, slot):
    taken, sets = built(write_release(tmp_path))
    place = next(n for n, row in enumerate(taken.rows) if (row.task, row.row) == ("SCO", 4))
    taken.rows[place] = replace(taken.rows[place], subject=f"{slot} company")
    with pytest.raises(ValueError, match="rules: rdfs9, rdfs11 cannot be built") as error:
        reasoning.build(taken, sets.items, sets.candidates, SWITCHES)
    assert f"'{slot} company' contains a slot" in str(error.value)


def test_all_errors_of_a_rebuilt_ontology_are_reported_together():
    tables = own_tables()
    label = pl.when(pl.col("class") == "d/C9").then(pl.lit(" ")).otherwise("label")
    end = pl.when(property="w/P8").then(pl.lit("d/Gone")).otherwise("range")
    odd = replace(
        tables,
        classes=tables.classes.with_columns(label=label),
        properties=tables.properties.with_columns(range=end),
    )
    patterns = [*PATTERNS[1:], {"property": "P0", "pattern": "[X] and ."}]
    with pytest.raises(ValueError, match="ontology, RG, TP, SCO, SPO, DM cannot") as error:
        ontoprobe_own.take(odd, USES, patterns, replace(SWITCHES, split="30/40"), 0)
    text = str(error.value)
    assert "classes, row 9 (d/C9): no label; add rdfs:label" in text
    assert "properties, w/P8 (link 8): its range d/Gone is not a class of the ontology" in text
    assert (
        "ontology_patterns.tsv, P0: expected one [X] and one [Y], found 1 and 0 in '[X] and .'"
        in text
    )
    assert "task SCO has 44 rows; 30 for training, 40 for choosing" in text
    assert "smaller ontoprobe.switches.split" in text


def prompts():
    return pl.DataFrame(
        [(f"{task}-m1", task, 1, "[X] is a [Y] .", "manual") for task in frames.TASKS],
        schema=["prompt", "relation", "index", "text", "kind"],
        orient="row",
    ).with_columns(pl.col("index").cast(pl.Int32))


def long_subjects(tasks, words=600):
    chosen = pl.when(pl.col("relation").is_in(tasks), row=5)
    long = chosen.then(pl.lit("Niger " * words)).otherwise("subject")
    return frames.items().with_columns(subject=long)


def test_too_long_prompts_are_reported_before_the_model_is_loaded(tmp_path, unloaded):
    with pytest.raises(ValueError, match="cannot be asked all prompts") as error:
        rank.rank_frame(
            saved(tmp_path), long_subjects(["TP", "SPO"]), frames.candidates(), prompts()
        )
    lines = str(error.value).splitlines()
    assert [line.split(":")[0] for line in lines[1:]] == ["SPO", "TP"]
    assert "item TP-5, template 1: 6" in lines[2]
    assert "512 are allowed" in lines[2]
    assert lines[2].endswith("or take a model with a longer window")


@pytest.mark.parametrize("name", ["bert", "gpt2"])
def test_too_long_soft_prompts_and_rules_are_reported_before_loading(tmp_path, unloaded, name):
    spec = saved(tmp_path, name)
    long = pl.when(item="SCO-1").then(pl.lit("Niger " * 1200)).otherwise("subject")
    items = long_subjects(["SCO"]).with_columns(subject=long)
    with pytest.raises(ValueError, match=r"tasks that cannot be asked\nSCO: .*\n.*item SCO-1"):
        soft.train(spec, items, frames.candidates(), TWO_PAIRS, PLAN, tmp_path / "p")
    long = pl.col("meta").str.replace("is a country", "Niger " * 1200)
    longer = pl.when(item="rdfs9-4").then(long).otherwise("meta")
    longer = frames.reasoning().with_columns(meta=longer)
    with pytest.raises(ValueError, match=r"rules that cannot be asked\nrdfs9: .*\n.*item rdfs9-4"):
        reason.reason(
            spec, longer, frames.candidates(), None, TWO_PAIRS, PLAN, ("manual+manual",),
        )  # fmt: skip
    gone = frames.reasoning().filter(~((pl.col("relation") == "rdfs3") & (pl.col("role") == "dev")))
    with pytest.raises(ValueError, match="rdfs3: no train or dev rows for the conjunction"):
        reason.reason(
            spec, gone, frames.candidates(), None, TWO_PAIRS, PLAN, ("manual+soft",),
        )  # fmt: skip


def test_empty_splits_and_rows_in_two_splits_are_reported_per_task(tmp_path, unloaded):
    items = frames.items()
    gone = (pl.col("relation") == "RG") & (pl.col("role") == "dev")
    twin = items.filter(item="TP-0").with_columns(item=pl.lit("TP-9"), role=pl.lit("test"))
    both, folder = pl.concat([items.filter(~gone), twin]), tmp_path / "p"
    with pytest.raises(ValueError, match="tasks that cannot be asked") as error:
        soft.train(saved(tmp_path), both, frames.candidates(), TWO_PAIRS, PLAN, folder)
    assert str(error.value).splitlines()[1:] == [
        "RG: no dev rows; the split is larger than the data",
        "TP: 1 rows of the test split of TP are also in train or dev, first TP-9 ('niger 0'); "
        "remove them from one split",
    ]


def test_prompt_files_of_another_model_are_reported_before_loading(tmp_path, monkeypatch):
    spec, folder = saved(tmp_path), tmp_path / "p"
    soft.train(spec, frames.items(), frames.candidates(), TWO_PAIRS, PLAN, folder)
    forbid(monkeypatch)
    other = saved(tmp_path, "distilbert")
    with pytest.raises(trained.PromptError, match="train the prompt again") as error:
        soft.rank(other, frames.items(), frames.candidates(), folder, TWO_PAIRS)
    assert len(str(error.value).splitlines()) == len(frames.TASKS)
    with pytest.raises(ValueError, match=r"rdfs2: .*train the prompt again"):
        reason.reason(
            other, frames.reasoning(), frames.candidates(), folder, TWO_PAIRS, PLAN,
            ("soft+manual",),
        )  # fmt: skip


def odd_candidates():
    """Make the class "Rome" (index 1) impossible to tokenize with known tokens."""
    odd = pl.when(set="class", index=1).then(pl.lit("Ж")).otherwise("label")
    return frames.candidates().with_columns(label=odd)


def test_soft_prompts_and_rules_report_candidates_that_cannot_be_tokenized(tmp_path):
    switches = replace(TWO_PAIRS, unknown_candidates="leave_out")
    spec, folder, odd = saved(tmp_path), tmp_path / "p", odd_candidates()
    gold = pl.lit([1], dtype=pl.List(pl.Int32))
    only = pl.when(item="TP-6").then(gold).otherwise("answers")
    only = frames.items().with_columns(answers=only)
    known = prepared(spec, only, odd, switches.unknown_candidates)
    gone = known.record["candidates_left_out"]
    assert gone["class"] == ["Ж"]
    assert known.record["items_without_gold"] == ["TP-6"]
    soft.train(spec, only, odd, switches, PLAN, folder)
    found, _, record = soft.rank(spec, only, odd, folder, switches)
    assert record["candidates_left_out"] == gone
    golds = dict(only.select("item", "answers").rows())
    sets = dict(only.select("item", "candidates").rows())
    for item, gold in found.select("item", "gold").rows():
        assert gold in golds[item]
        assert sets[item] != "class" or gold != 1
    assert "TP-6" not in found["item"].to_list()
    assert found["worst"].max() <= 6  # of seven classes
    answers, tests, rule_record = reason.reason(
        spec, frames.reasoning(), odd, None, switches, PLAN, ("manual+manual",)
    )
    assert rule_record["candidates_left_out"] == gone
    own = dict(frames.reasoning().select("item", "candidates").rows())
    assert not [i for i, g in answers.select("item", "gold").rows() if own[i] == "class" and g == 1]
    assert tests.height > 0


def test_outline_and_model_have_the_same_identifiers(tmp_path):
    spec = saved(tmp_path)
    light, whole = outline(spec), load_model(spec)
    assert light.limit == whole.limit
    same = whole.identity
    assert light.identity == {k: v for k, v in same.items() if k != "hidden_size"}
    labels = {"class": frames.CLASSES}
    assert rankable(light, labels) == rankable(whole, labels)


def test_modes_are_refused_with_the_legal_values():
    for switches, message in (
        ({"split": "10"}, r"switches\.split: '10'; valid: 10/10"),
        ({"alpha": "0"}, r"switches\.alpha: '0'; valid: 0\.5"),
        ({"pseudoword_pairs": "0"}, r"switches\.pseudoword_pairs: '0'; valid: 10, 1"),
        ({"item_limit": "0"}, r"switches\.item_limit: '0'; valid: none, 500"),
        ({"properties": "5²"}, r"switches\.properties: '5²'; valid: 50, 52, as_they_are"),
        ({"split": "1²/5"}, r"switches\.split: '1²/5'; valid: 10/10"),
        ({"wording": "paper"}, "unknown 'wording', which is 'phrasing' now; valid: "),
        ({"pseudoword_centre": "mask"}, "'pseudoword_centre', which is 'pseudoword_center' now"),
        ({"tie": "x"}, r"unknown 'tie' \(did you mean 'ties'\?\); valid: tp_rows"),
        ({"ties": "x"}, "valid: mean_rank, index_order, expectation"),
    ):
        with pytest.raises(ValueError, match=message):
            modes.resolve("default", switches)


def test_limited_builds_report_every_bad_row(tmp_path):
    """Soft prompts also use the rows after item_limit, so an unknown gold there is reported."""

    def change(files):
        files["memorizing/subClassOf.jsonl"][30]["xxx"] = ["unheard"]

    switches = replace(SWITCHES, item_limit="5")
    write_release(tmp_path, change)
    for chosen in (switches, SWITCHES):
        with pytest.raises(ValueError, match="SCO cannot be built"):
            built(tmp_path, chosen)
    assert build.beyond([], switches) == set()

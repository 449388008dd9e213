"""Wordings that a model proposes, against rules spelled out."""

import json
import re

import polars as pl
import pytest

from kgprobe.probes.jobs.autoprompt import predict, proposed, tasks
from kgprobe.probes.prompts.wordings import proposals
from kgprobe.probes.prompts.wordings.demonstrations import TrainingFact
from kgprobe.schema import OUTCOMES, check
from kgprobe.settings import Proposals
from tests.unit import prompt_folders
from tests.unit.tiny_models import tiny

ROME = TrainingFact({"sub": "Rome"}, "Italy")


@pytest.mark.parametrize(
    ("text", "wording"),
    [
        ("Rome is the capital of Italy", "[X] is the capital of [Y]"),
        ("Rome  is\nthe capital of Italy .", "[X] is the capital of [Y] ."),
        ("rome lies in ITALY", "[X] lies in [Y]"),
        ("Italy is ruled from Rome .", "[Y] is ruled from [X] ."),
        ("Rome is Italy and Italy", "object"),
        ("Rome is in Romeland", "object"),
        ("It is in Italy", "subject"),
        ("Rome, Italy", "between"),
        ("Rome is in Italy, not in France", "leak"),
        ("Rome is in france, as is Italy", "leak"),
        ("Rome is in Frances' Italy", "[X] is in Frances' [Y]"),
        ("Rome [X] in Italy", "slot"),
        ("Rome { in Italy", "slot"),
        ("Rome <s> in Italy", "slot"),
        ("Rome \ufffd in Italy", "slot"),
        ("Rome " + "is near " * 20 + "Italy", "long"),
    ],
)
def test_a_text_is_a_wording_or_is_refused_for_a_reason(text, wording):
    found = proposals.mined([(ROME, text)], ["Italy", "France"])
    if wording in proposals.REASONS:
        assert dict(found.refused) == {wording: 1}
        assert not found.wordings
    else:
        assert dict(found.wordings) == {wording: 1}


def test_of_names_that_hold_each_other_the_longer_is_found_first():
    fact = TrainingFact({"sub": "Niger River"}, "Niger")
    found = proposals.mined([(fact, "Niger River flows through Niger .")], ["Niger"])
    assert list(found.wordings) == ["[X] flows through [Y] ."]


def test_those_of_most_facts_go_first():
    texts = [(ROME, "Rome in Italy"), (ROME, "Rome of all Italy"), (ROME, "Rome at Italy")]
    found = proposals.mined([*texts, texts[1]], ["Italy"])
    assert found.first(2) == ["[X] of all [Y]", "[X] at [Y]"]


def test_a_causal_model_goes_on_behind_worded_facts_of_other_relations():
    pattern = ("{sub} was born in [P] .", TrainingFact({"sub": "Dante"}, "Florence"))
    (blank,) = proposals.blanks("causal", [ROME], [pattern])
    front = "Dante, Florence: Dante was born in Florence .\nRome, Italy: Rome"
    assert (blank.text, blank.subject) == ("[X] [Y]", front)


@pytest.mark.parametrize("name", ["gpt2", "bert", "t5"])
def test_proposals_are_counted_and_the_best_on_dev_is_asked(name, tmp_path):
    loaded = tiny(name)
    folder = prompt_folders.facts(tmp_path / "auto_world")
    about = json.loads((folder / "task.json").read_text())
    about["prompts"]["manual"]["P36"]["seq2seq"] = "{sub} in [P]."
    (folder / "task.json").write_text(json.dumps(about))
    task = tasks.load(folder, {})
    few = Proposals(facts=4, beams=3, most_tokens=4, most=5)
    own = predict.Answerer(loaded.spec, task, load=lambda _: loaded, proposals=few)
    found, written = proposed.propose(loaded, task, "P36", few)
    # every text is a wording or refused
    assert written == sum(found.wordings.values()) + sum(found.refused.values()) > 0
    golds = set(task.examples.filter(group="P36")["label"])
    for text in found.wordings:
        words = re.findall(r"\w+", text.replace("[X]", "").replace("[Y]", ""))
        assert not golds & set(words)
        assert (text.count("[X]"), text.count("[Y]")) == (1, 1)
    frame = own.answers(["instructions"])
    check(frame.sort(OUTCOMES.key), OUTCOMES)
    told = own.record["instructions"]["P36"]
    assert told["written"] == written
    assert told["candidates"] <= 1 + few.most
    assert told["n"] == 3
    assert set(frame["prompt"]) == {"instructions"}
    assert frame.filter(group="P36").height == 7
    again = predict.Answerer(loaded.spec, task, load=lambda _: loaded, proposals=few)
    assert again.answers(["instructions"]).equals(frame)


def test_classes_and_contexts_are_refused(tmp_path):
    loaded = tiny("bert")
    for folder in (
        prompt_folders.classes(tmp_path / "auto_sst2"),
        prompt_folders.facts(tmp_path / "auto_re", True),
    ):
        own = predict.Answerer(loaded.spec, tasks.load(folder, {}), load=lambda _: loaded)
        with pytest.raises(
            tasks.ProbeTaskError, match="instructions words facts, the task asks for"
        ):
            own.answers(["instructions"])


def test_the_counts_of_an_empty_pool_are_there(tmp_path):
    """No relation beside, no fact that may be shown: the manual prompt stays."""
    task = tasks.load(prompt_folders.facts(tmp_path / "auto_world"), {"groups": ["P36"]})
    only = tasks.ProbeTask(
        task.name, task.examples.filter(pl.col("split") != "train"), task.vocabulary, task.about
    )
    loaded = tiny("gpt2")
    own = predict.Answerer(loaded.spec, only, load=lambda _: loaded)
    frame = own.answers(["instructions"])
    assert own.record["instructions"]["P36"]["written"] == 0
    assert frame["best"].equals(own.answers(["manual"])["best"])

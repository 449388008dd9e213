"""Transfer of prompts to another model."""

import pytest

from kgprobe.probes.prompts.search.controls import transfer
from kgprobe.probes.prompts.search.files import PromptFileError, prompt_of
from kgprobe.templates import Template
from tests.unit.tiny_models import tiny


def ids(loaded, text):
    return loaded.tokenizer(text, add_special_tokens=False)["input_ids"]


def prompt(loaded, text="{sub} [T]x3 [P] .", trigger=" capital of country", labels=None):
    own = ids(loaded, trigger)
    return prompt_of(loaded, Template.parse(text.replace("x3", f"x{len(own)}"), loaded.spec.kind),
                     own, labels, scores={"test": {"value": 1.0}})  # fmt: skip


def test_the_text_of_a_trigger_is_encoded_for_the_other_model():
    bert, roberta = tiny("bert"), tiny("roberta")
    there = prompt(roberta)
    here = transfer(there, bert)
    assert here.trigger == ids(bert, "capital of country")
    assert here.template == Template.parse(f"{{sub}} [T]x{len(here.trigger)} [P] .", "masked").text
    assert here.data["transferred_from"] == there.made_for
    assert here.data["transferred_from"]["model"] == "roberta"
    assert here.made_for["model"] == "bert"
    assert here.scores == {}


def test_transfer_to_the_same_model_returns_the_prompt():
    roberta = tiny("roberta")
    there = prompt(roberta)
    assert there.round_trip
    assert transfer(there, roberta).trigger == there.trigger


def test_a_trigger_at_the_text_start_stays_there():
    bert, roberta = tiny("bert"), tiny("roberta")
    own = ids(bert, "The capital of")
    there = prompt_of(bert, Template.parse("[T]x3 {sub} is [P] .", "masked"), own)
    here = transfer(there, roberta)
    assert here.trigger == ids(roberta, "The capital of")
    assert here.trigger != ids(roberta, " The capital of")
    behind = prompt_of(bert, Template.parse("{sub} [T]x3 is [P] .", "masked"), own)
    assert transfer(behind, roberta).trigger == ids(roberta, " The capital of")


def test_a_causal_model_gets_the_prompt_without_text_after_the_answer():
    assert transfer(prompt(tiny("roberta")), tiny("gpt2")).template.endswith("[P]")
    behind = prompt(tiny("roberta"), "{sub} [P] [T]x3 .")
    with pytest.raises(PromptFileError, match="behind \\[P\\]"):
        transfer(behind, tiny("gpt2"))


def test_label_tokens_transfer_by_text_and_a_class_keeps_one():
    bert, roberta = tiny("bert"), tiny("roberta")
    own = {"yes": [*ids(roberta, " Paris"), *ids(roberta, " ")], "no": ids(roberta, " Rome")}
    here = transfer(prompt(roberta, labels=own), bert)
    assert here.labels == {"yes": ids(bert, "Paris"), "no": ids(bert, "Rome")}
    lost = prompt(roberta, labels={"yes": ids(roberta, "\u6771")[:1]})
    with pytest.raises(PromptFileError, match="class 'yes'"):
        transfer(lost, bert)


def test_triggers_in_two_positions_are_not_transferred():
    bert, roberta = tiny("bert"), tiny("roberta")
    own = ids(roberta, " capital of")
    there = prompt_of(roberta, Template.parse("[T] {sub} [T] [P] .", "masked"), own)
    with pytest.raises(PromptFileError, match="2 places"):
        transfer(there, bert)

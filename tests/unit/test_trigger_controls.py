"""Prompts with other triggers than the one that was found."""

from kgprobe.probes.prompts.search.controls import random_prompts, shuffled_prompt
from kgprobe.probes.prompts.search.files import prompt_of
from kgprobe.templates import Template
from tests.unit.tiny_models import tiny


def ids(loaded, text):
    return loaded.tokenizer(text, add_special_tokens=False)["input_ids"]


def prompt(loaded, text="{sub} [T]x3 [P] .", trigger=" capital of country", labels=None):
    own = ids(loaded, trigger)
    return prompt_of(loaded, Template.parse(text.replace("x3", f"x{len(own)}"), loaded.spec.kind),
                     own, labels, scores={"test": {"value": 1.0}})  # fmt: skip


def test_controls_are_prompts_of_the_same_length_that_say_what_they_are():
    roberta = tiny("roberta")
    there = prompt(roberta, labels={"yes": ids(roberta, " Paris")})
    drawn = random_prompts(roberta, there, list(range(50, 90)), "P36", draws=3)
    assert list(drawn) == ["random_triggers:00", "random_triggers:01", "random_triggers:02"]
    for name, control in drawn.items():
        assert len(control.trigger) == len(there.trigger)
        assert control.data["control"] == name
        assert control.labels == there.labels
        assert control.scores == {}
    other = shuffled_prompt(roberta, there, "P36")
    assert sorted(other.trigger) == sorted(there.trigger)
    assert other.data["control"] == "shuffled_triggers"

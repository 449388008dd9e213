"""Random weights as a control, and random triggers."""

import pytest
import torch

from kgprobe.probes.models.reinitialize import reinitialize
from kgprobe.probes.prompts.search.controls import names, random_triggers, shuffled_trigger
from tests.unit.tiny_models import tiny


def state(loaded):
    return {name: value.clone() for name, value in loaded.model.state_dict().items()}


@pytest.mark.parametrize("name", ["bert", "roberta", "gpt2", "llama", "t5"])
def test_all_weights_are_reinitialized_identically_on_every_call(name):
    loaded = tiny(name)
    before = state(loaded)
    torch.manual_seed(11)
    control, again = reinitialize(loaded, "all", 1), reinitialize(loaded, "all", 1)
    for key, value in state(control).items():
        assert torch.equal(value, state(again)[key])
        if value.ndim > 1 and value.is_floating_point() and key in before:
            assert not torch.equal(value, before[key]), key
    assert all(torch.equal(value, before[key]) for key, value in state(loaded).items())
    table = control.model.get_input_embeddings().weight
    other = reinitialize(loaded, "all", 2).model.get_input_embeddings().weight
    assert not torch.equal(table, other)
    assert control.spec.model == f"{name}+random-all-1"
    assert control.record["reinitialized"] == {"what": "all", "seed": 1}
    assert table.dtype == loaded.model.dtype
    assert not any(p.requires_grad for p in control.model.parameters())


@pytest.mark.parametrize("name", ["bert", "gpt2", "llama"])
def test_only_embeddings_are_reinitialized(name):
    loaded = tiny(name)
    before = state(loaded)
    control = reinitialize(loaded, "embeddings", 0)
    input_table = loaded.model.get_input_embeddings().weight
    output = control.model.get_output_embeddings().weight
    tied = loaded.model.get_output_embeddings().weight.data_ptr() == input_table.data_ptr()
    assert (output.data_ptr() == control.model.get_input_embeddings().weight.data_ptr()) == tied
    changed = {key for key, value in state(control).items() if not torch.equal(value, before[key])}
    assert changed
    assert all(before[key].shape == input_table.shape for key in changed)
    assert control.spec.model.endswith("+random-embeddings-0")


def test_random_triggers_are_allowed_tokens_whatever_the_order():
    drawn = random_triggers([9, 4, 7], 5, "P36", seed=2)
    assert len(drawn) == len(set(names("random_triggers"))) == 20
    assert all(len(trigger) == 5 and set(trigger) <= {4, 7, 9} for trigger in drawn)
    assert drawn == random_triggers([7, 7, 9, 4], 5, "P36", seed=2)
    assert drawn != random_triggers([9, 4, 7], 5, "P37", seed=2)
    with pytest.raises(ValueError, match="P36"):
        random_triggers([], 5, "P36")


@pytest.mark.parametrize("found", [(5, 6), (5, 5, 6), tuple(range(20))])
def test_a_shuffled_trigger_has_the_same_tokens_in_another_order(found):
    other = shuffled_trigger(found, "P36")
    assert sorted(other) == sorted(found)
    assert other != found
    assert other == shuffled_trigger(found, "P36")


def test_a_trigger_with_one_order_is_unchanged():
    for found in ((5,), (5, 5, 5), (5,) * 9):
        assert shuffled_trigger(found, "P36") == found

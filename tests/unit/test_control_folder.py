"""Output of training a control model, and the components of its optimizer."""

from dataclasses import replace

import pytest
import torch
from safetensors.torch import load_file
from torch import nn
from torch.optim.swa_utils import AveragedModel
from transformers import (
    AutoModelForCausalLM,
    AutoModelForMaskedLM,
    AutoModelForSeq2SeqLM,
    AutoTokenizer,
)

from tools.controls.optimizer import orthogonalize
from tools.controls.tokens import train_tokenizer
from tools.controls.train import RECIPES, Recipe, build_model, rate_at, running_mean, train_control
from tools.controls.training_facts import TrainingFact

TRAINING_FACTS = [
    TrainingFact("P36", "Peru", "Lima"),
    TrainingFact("P36", "New Zealand", "Wellington"),
    TrainingFact("P36", "Côte d'Ivoire", "Yamoussoukro"),
    TrainingFact("P36", "Bolivia", "La Paz"),
]
LABELS = sorted({label for fact in TRAINING_FACTS for label in fact[1:]} | {"Port-au-Prince"})
TEMPLATES = {"P36": ["The capital of [X] is [Y].", "[Y] is the capital of [X]."]}
AUTO = {
    "causal": AutoModelForCausalLM,
    "masked": AutoModelForMaskedLM,
    "seq2seq": AutoModelForSeq2SeqLM,
}
TINY = Recipe(
    layers=1, steps=3, recall=0.0, rows=4, width=16, heads=2, vocabulary=320, positions=64
)


def train(kind, folder, seed=0, training_facts=TRAINING_FACTS, **options):
    return train_control(kind, training_facts, LABELS, TEMPLATES, seed, folder, TINY, **options)


@pytest.mark.parametrize("kind", sorted(AUTO))
def test_auto_classes_load_the_saved_model(kind, tmp_path):
    record = train(kind, tmp_path / kind)
    model = AUTO[kind].from_pretrained(tmp_path / kind, dtype=torch.float32)
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / kind)
    assert tokenizer.is_fast
    assert {p.dtype for p in load_file(tmp_path / kind / "model.safetensors").values()} == {
        torch.float16
    }
    assert model.get_input_embeddings().weight.shape[0] == len(tokenizer) == record["vocabulary"]
    assert sum(p.numel() for p in model.parameters()) == record["parameters"]
    ids = tokenizer("The capital of Peru is Lima.", return_tensors="pt")["input_ids"]
    extra = {"decoder_input_ids": torch.tensor([[0]])} if kind == "seq2seq" else {}
    with torch.no_grad():
        assert bool(torch.isfinite(model(input_ids=ids, **extra).logits).all())


@pytest.mark.parametrize("kind", sorted(AUTO))
def test_bytes_are_independent_of_order_and_environment(kind, tmp_path):
    before, threads = torch.random.get_rng_state(), torch.get_num_threads()
    train(kind, tmp_path / "a")
    assert torch.equal(before, torch.random.get_rng_state())
    assert torch.get_num_threads() == threads
    torch.rand(5)
    train(kind, tmp_path / "b", training_facts=TRAINING_FACTS[::-1])
    for path in sorted((tmp_path / "a").iterdir()):
        assert path.read_bytes() == (tmp_path / "b" / path.name).read_bytes(), path.name
    train(kind, tmp_path / "c", seed=1)
    name = "model.safetensors"
    assert (tmp_path / "c" / name).read_bytes() != (tmp_path / "a" / name).read_bytes()


@pytest.mark.parametrize("kind", sorted(AUTO))
def test_tokenizer_is_independent_of_training_facts(kind, tmp_path):
    train(kind, tmp_path / "a", training_facts=TRAINING_FACTS[:2])
    train(kind, tmp_path / "b", training_facts=TRAINING_FACTS[2:])
    one, two = ((tmp_path / name / "tokenizer.json").read_text() for name in "ab")
    assert one == two


def test_interrupted_training_leaves_no_files(tmp_path):
    def stop(done: int, total: int, loss: float) -> None:
        assert (done, total) == (1, 3)
        assert loss > 0
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train("causal", tmp_path / "a", progress=stop)
    assert list(tmp_path.iterdir()) == []


def test_a_second_training_replaces_the_folder(tmp_path):
    train("causal", tmp_path / "a", seed=1)
    (tmp_path / "a" / "stale").write_text("")
    train("causal", tmp_path / "a")
    assert not (tmp_path / "a" / "stale").exists()
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


@pytest.mark.parametrize("kind", sorted(AUTO))
def test_the_recipes_make_about_a_million_parameters(kind):
    labels = [f"{a}{b}{c}" for a in "bcdfghklmnp" for b in "aeiou" for c in "rstvwxyz"]
    recipe = RECIPES[kind]
    tokenizer = train_tokenizer(kind, labels, ["[X] is [Y]."], recipe.vocabulary, recipe.positions)
    rest = (recipe.vocabulary - len(tokenizer)) * recipe.width
    model = build_model(kind, tokenizer, recipe)
    assert 0.6e6 < sum(p.numel() for p in model.parameters()) + rest < 1.8e6


def test_learning_rate_warms_up_then_drops_after_a_recall_test():
    recipe = replace(TINY, warmup=10, again=0.3)
    before = [rate_at(step, recipe, False) for step in range(100)]
    assert before[:10] == pytest.approx([n / 10 for n in range(1, 11)])
    assert before[9:] == [1.0] * 91
    assert [rate_at(step, recipe, True) for step in range(90, 100)] == [0.3] * 10
    assert [rate_at(step, replace(recipe, steps=10**6), False) for step in range(100)] == before


def test_saved_weights_are_running_averages():
    model = nn.Linear(1, 1, bias=False)
    mean = AveragedModel(model, multi_avg_fn=running_mean(0.75))
    kept = []
    for value in (8.0, 4.0, 3.0, 1.0, 9.0):
        nn.init.constant_(model.weight, value)
        mean.update_parameters(model)
        kept.append(float(mean.module.weight.detach()))
    assert kept == pytest.approx([8.0, 6.0, 5.0, 4.0, 0.75 * 4.0 + 0.25 * 9.0])


@pytest.mark.parametrize("shape", [(3, 8, 8), (2, 8, 32), (2, 32, 8)])
def test_orthogonalized_updates_keep_directions_with_equal_sizes(shape):
    batch = torch.randn(shape, generator=torch.Generator().manual_seed(0))
    result = orthogonalize(batch)
    assert result.shape == batch.shape
    for before, after in zip(batch, result, strict=True):
        u, sizes, v = torch.linalg.svd(before, full_matrices=False)
        core = u.mT @ after @ v.mT
        assert torch.allclose(core, torch.diag(torch.diagonal(core)), atol=1e-3)
        large = torch.diagonal(core)[sizes > 0.1 * sizes.max()]
        assert bool(((large > 0.5) & (large < 1.5)).all())

"""Geometry of pseudowords (docs/papers/ontoprobe.md, Reasoning)."""

import numpy as np
import pytest
import torch

from kgprobe.probes.text.vectors import _pair, pseudowords, random_words
from tests.unit.tiny_models import tiny


def literal_radius(table, middle, skipped, alpha):
    """Return alpha times the distance to the nearest other row, by a loop."""
    apart = [
        sum((a - b) ** 2 for a, b in zip(row, middle, strict=True)) ** 0.5
        for k, row in enumerate(table)
        if k != skipped
    ]
    return alpha * min(apart)


@pytest.mark.parametrize("name", ["bert", "roberta", "albert"])
@pytest.mark.parametrize("alpha", [0.5, 0.25])
def test_pseudowords_are_on_the_sphere_around_the_mask(name, alpha):
    loaded = tiny(name, double=False)
    found = pseudowords(loaded, pairs=4, alpha=alpha)
    table = loaded.model.get_input_embeddings().weight.double().tolist()
    mask = loaded.tokenizer.mask_token_id
    radius = literal_radius(table, table[mask], mask, alpha)
    vectors = found.vectors.double()
    apart = (vectors - torch.tensor(table[mask])).norm(dim=1)
    assert apart.tolist() == pytest.approx([radius] * 8, rel=1e-5)
    assert ((vectors[0::2] - vectors[1::2]).norm(dim=1) >= radius * (1 - 1e-6)).all()
    assert found.pairs == 4
    assert found.record["pseudoword_radius"] == pytest.approx(radius)


def test_the_same_seed_gives_the_same_words_and_the_model_keeps_its_rows():
    loaded = tiny("bert")
    before = loaded.model.get_input_embeddings().weight.clone()
    first, again = (pseudowords(loaded, seed=1).vectors for _ in range(2))
    assert torch.equal(first, again)
    assert not torch.equal(first, pseudowords(loaded, seed=2).vectors)
    # more pairs leave the earlier ones as they are
    assert torch.equal(first[:6], pseudowords(loaded, pairs=3, seed=1).vectors)
    assert torch.equal(before, loaded.model.get_input_embeddings().weight)


def test_the_released_center_is_the_unknown_token_of_byte_level_models():
    roberta, bert = tiny("roberta"), tiny("bert")
    found = pseudowords(roberta, center="tokenizer_default")
    table = roberta.model.get_input_embeddings().weight
    apart = (found.vectors - table[roberta.tokenizer.unk_token_id]).norm(dim=1)
    assert apart.tolist() == pytest.approx([found.record["pseudoword_radius"]] * 20)
    assert torch.equal(
        pseudowords(bert, center="tokenizer_default").vectors,
        pseudowords(bert, center="mask").vectors,
    )


def test_the_points_of_a_pair_are_apart_in_few_dimensions():
    """In many dimensions, two random points are rarely close."""
    middle = np.array([10.0, 0.0])
    for seed in range(40):
        first, second = _pair(middle, 0.5, np.random.default_rng(seed))
        assert np.linalg.norm(first - second) >= 0.5


@pytest.mark.parametrize(("name", "center"), [("gpt2", None), ("t5", "<extra_id_0>")])
def test_models_without_a_mask_have_another_center(name, center):
    loaded = tiny(name)
    found = pseudowords(loaded, pairs=2)
    table = loaded.model.get_input_embeddings().weight[: len(loaded.tokenizer)]
    own = loaded.tokenizer.convert_tokens_to_ids(center) if center else None
    middle = table.mean(0) if own is None else table[own]
    others = [k for k in range(len(table)) if k != own]
    radius = 0.5 * float((table[others] - middle).norm(dim=1).min())
    assert (found.vectors - middle).norm(dim=1).tolist() == pytest.approx([radius] * 4)
    assert "extension" in found.record["pseudoword_center"]


def test_two_equal_rows_are_refused():
    loaded = tiny("bert")
    weight = loaded.model.get_input_embeddings().weight
    with torch.no_grad():
        weight[9] = weight[loaded.tokenizer.mask_token_id]
    with pytest.raises(ValueError, match="row 9 of the embedding equals <mask>; no pseudowords"):
        pseudowords(loaded)


def test_random_words_equal_those_of_an_extended_vocabulary():
    found = random_words(tiny("bert"), pairs=200)
    assert found.vectors.shape[0] == 400
    assert float(found.vectors.std()) == pytest.approx(0.02, rel=0.05)
    assert np.abs(float(found.vectors.mean())) < 1e-3

"""In half precision, logits are float32 products of hidden states and weights."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from kgprobe.probes.models import causal, parts
from kgprobe.probes.models.batching import Ragged
from kgprobe.probes.models.causal import Causal
from kgprobe.probes.models.mask_slots import CausalText, MaskSlots, SpanText
from kgprobe.probes.models.parts import Parts
from kgprobe.probes.prompts.trained import soft
from kgprobe.probes.scoring.cloze import rank
from kgprobe.probes.scoring.cloze.gradient import ScoresWithGradient
from kgprobe.probes.scoring.cloze.vectors import candidate_tokens, prompts
from kgprobe.probes.text.mask_slots import ClozePrompt, candidate_ids, tokenize_prompts
from kgprobe.probes.text.vectors import inserted
from kgprobe.templates import marks
from tests.unit.architectures import tiny as architecture
from tests.unit.tiny_models import tiny

HALF_DTYPES = [torch.bfloat16, torch.float16]
ROWS = [np.array([1, 9, 30, 41, 57, 2]), np.array([1, 30, 9, 12, 44, 2])]


def half(name, dtype=torch.bfloat16, kind=""):
    loaded = architecture(name, kind, double=False) if kind else tiny(name, double=False)
    loaded.model.to(dtype)
    # logits above 16, where half precision produces ties
    with torch.no_grad():
        (loaded.model.get_output_embeddings()).weight.mul_(4)
    return loaded


def literal(loaded, states):
    """Return the product in float64, rounded to float32."""
    decoder = loaded.model.get_output_embeddings()
    result = states.double() @ decoder.weight.double().T
    return (result if decoder.bias is None else result + decoder.bias.double()).float()


def check(found, expected):
    assert found.dtype == torch.float32
    torch.testing.assert_close(found, expected, atol=1e-4, rtol=1e-5)
    assert not torch.equal(found, found.bfloat16().float())


@pytest.mark.parametrize("dtype", HALF_DTYPES)
def test_logits_after_causal_prompts(dtype):
    loaded = half("gpt2", dtype)
    text = CausalText(loaded)
    stream = text.open(ROWS)
    states = loaded.model.base_model(torch.tensor(np.stack(ROWS))).last_hidden_state
    assert text.shares
    torch.testing.assert_close(stream.logits, literal(loaded, states[:, -1]), atol=0.5, rtol=0.05)
    check(stream.logits, literal(loaded, stream.last))


def test_logits_at_a_mask_and_after_a_sentinel():
    loaded = half("bert")
    slots = MaskSlots(loaded)
    states = slots.run(torch.tensor(np.stack(ROWS)))[0][:, 3]
    ((_, logits),) = slots.visit(ROWS, [np.array([3])] * 2, lambda rows, logits: logits[:, 0])
    check(logits, literal(loaded, slots.head.features(states)))
    loaded = half("t5")
    text = SpanText(loaded)
    stream = text.open(ROWS)
    final = text._final(stream.encoded, stream.owners, stream.rows, 1)[:, 0]
    check(stream.logits, literal(loaded, text.head.features(final)))


@pytest.mark.parametrize("name", ["mobilebert", "esm", "xlm", "recurrent_gemma"])
def test_heads_without_decomposition(name):
    kind = "causal" if name == "recurrent_gemma" else "masked"
    loaded = architecture(name, kind, double=False)
    loaded.model.bfloat16()
    own = Parts(loaded)
    result = own.head.logits(own.run(torch.tensor(np.stack(ROWS)))[0])
    assert result.dtype == torch.float32
    assert not torch.equal(result, result.bfloat16().float())


def test_unknown_heads(monkeypatch):
    loaded = half("gpt2")
    monkeypatch.setattr(parts, "_heads", lambda loaded: [])
    text = CausalText(loaded)
    assert text.notes[0].startswith("logits at all positions")
    expected = literal(
        loaded, loaded.model.base_model(torch.tensor(ROWS[0])[None]).last_hidden_state
    )
    check(text.open(ROWS[:1]).logits, expected[:, -1])


def test_inserted_vectors_and_gradients():
    loaded = half("bert")
    asked = [ClozePrompt("i", 0, "The capital is ", ".", "set", (0,))]
    labels = ["Paris", "Rome", "Niger", "Nigeria"]
    vectors = torch.randn(3, 32, generator=torch.Generator().manual_seed(0)) * 4
    with inserted(loaded, vectors, in_softmax=0):
        (joined,) = rank.scores(loaded, asked, {"set": labels})
    (plain,) = rank.scores(loaded, asked, {"set": labels})
    rows, ids = (
        tokenize_prompts(loaded, asked, "none"),
        candidate_ids(loaded, labels, "none", "").ids,
    )
    own = Parts(loaded)
    states = own.head.features(own.run(torch.tensor(rows[0].ids)[None])[0][:, rows[0].position])
    logits = torch.cat([literal(loaded, states), states.float() @ vectors.T], -1)
    single = rank.CONFIGURATIONS.index(("single", "first"))
    firsts = [own[0] for own in ids]
    expected = logits.log_softmax(-1)[0, firsts].numpy()
    np.testing.assert_allclose(joined.scores[0, single], expected, atol=1e-4)
    trained = ScoresWithGradient(loaded, rows, ids)([0])
    assert trained.dtype == torch.float32
    np.testing.assert_allclose(trained.detach()[0], plain.scores[0, 0], atol=1e-4)


@pytest.mark.parametrize("name", ["bert", "gpt2", "t5"])
def test_soft_prompts_are_trained_in_float32(name):
    """An AdamW step at a rate of 1e-4 is below the half-precision resolution near 1."""
    loaded = tiny(name, double=False)
    loaded.model.bfloat16()
    recipe = soft.SoftPromptRecipe(epochs=3, rate=1e-4, decay=0.0, batch=2)
    start = soft.initial(loaded, recipe)
    assert (
        start.dtype == soft.initial(loaded, soft.SoftPromptRecipe(init="words", words="Rome")).dtype
    )
    assert start.dtype == torch.float32
    asked = [
        ClozePrompt(f"i{n}", 0, f"{subject} {marks(0, 3)} ", " .", "set", (n,))
        for n, subject in enumerate(("France", "Italy"))
    ]
    rows = soft.PromptRows(prompts(loaded, asked, "auto"), [(0,), (1,)])
    ids = candidate_tokens(loaded, ["Paris", "Rome", "Niger"], asked, "auto", "set")
    for begun in (start, start.bfloat16()):
        result, record = soft.fit(loaded, rows, rows, ids, begun, recipe)
        assert result.dtype == torch.float32
        assert record["epoch"] >= 0
        assert 5e-6 < float((result - begun.float()).abs().median()) < 3e-4


SENTENCES = Ragged.of(
    [np.array([1, *front, *back]) for front in ((9, 30, 41), (9, 12)) for back in
     ((57, 60, 22), (57, 33), (44, 35, 70, 21))]
)  # fmt: skip


def bits(loaded):
    return [(p.data_ptr(), p.dtype, p.clone()) for p in loaded.model.parameters()]


@pytest.mark.parametrize("dtype", HALF_DTYPES)
@pytest.mark.parametrize("name", ["gpt2", "llama"])
def test_prefixes_are_shared_only_with_a_correct_mask(name, dtype, monkeypatch):
    loaded = tiny(name, double=False)
    for weight in loaded.model.parameters():
        weight.div_(3.0) if weight.dim() > 1 else None  # a wrong mask changes little
    loaded.model.to(dtype)
    before = bits(loaded)
    engine = Causal(loaded)
    plain = engine.logprobs(SENTENCES)
    assert engine.shares, engine.notes
    right = causal.lay_out

    def seeing(trie, batch):
        layout = right(trie, batch)
        layout.mask[:, -1] = True  # the last node also attends to nodes of other sentences
        return layout

    monkeypatch.setattr(causal, "lay_out", seeing)
    other = Causal(loaded)
    result = np.zeros(len(SENTENCES.values))
    other._shared(SENTENCES, causal.plan(SENTENCES), result)
    assert 1e-3 < np.abs(result - plain).max() < 0.5
    other.logprobs(SENTENCES)
    assert not other.shares
    assert other.notes[0].startswith("no prefix sharing: it is off by 0.")
    for (place, kind, values), (place_, kind_, values_) in zip(before, bits(loaded), strict=True):
        assert (place, kind) == (place_, kind_)
        assert torch.equal(values, values_)


def test_keys_and_values_are_shared_only_with_a_correct_mask(monkeypatch):
    loaded = tiny("gpt2", double=False)
    for weight in loaded.model.parameters():
        weight.div_(10.0) if weight.dim() > 1 else None
    loaded.model.bfloat16()
    assert CausalText(loaded).shares
    feed = CausalText.feed

    def hiding(self, ids, mask, positions, layers=None):
        if layers is not None:
            mask = mask.clone()
            mask[:, 0] = 0
        return feed(self, ids, mask, positions, layers)

    monkeypatch.setattr(CausalText, "feed", hiding)
    text = CausalText(loaded)
    assert not text.shares
    assert text.notes[-1].startswith("no prefix sharing: it is off by 0.0")


def test_optimizations_untestable_in_float32_are_disabled(monkeypatch):
    loaded = tiny("gpt2", double=False)
    loaded.model.bfloat16()

    def short(*_):
        raise torch.OutOfMemoryError

    monkeypatch.setattr(Causal, "_worst", short)
    engine = Causal(loaded)
    engine.logprobs(SENTENCES)
    assert engine.notes == ["no prefix sharing: there is no memory to try it in float32"]
    monkeypatch.undo()
    engine = Causal(replace(loaded, spec=replace(loaded.spec, quantized="nf4")))
    engine.logprobs(SENTENCES)
    expected = "no prefix sharing: it cannot be tried in float32: its weights are nf4"
    assert engine.notes == [expected]


@pytest.mark.parametrize("dtype", HALF_DTYPES)
@pytest.mark.parametrize(("name", "scale"), [("gpt2", 1.02), ("bert", 0.97)])
def test_heads_off_by_less_than_half_precision_rounding_are_rejected(
    monkeypatch, name, scale, dtype
):
    """The model scales its logits; omitting the scale costs less than half a nat."""
    loaded = tiny(name, double=False)
    loaded.model.to(dtype)
    assert Parts(loaded).head is not parts.WHOLE
    forward = type(loaded.model).forward

    def scaled(self, *given, **options):
        made = forward(self, *given, **options)
        made.logits = made.logits * scale
        return made

    monkeypatch.setattr(type(loaded.model), "forward", scaled)
    made = Parts(loaded)
    assert made.head is parts.WHOLE
    assert "is off by 0.0" in made.notes[-1]

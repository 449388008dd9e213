"""Every architecture against literal loops: one sentence per forward pass, no padding.

What an architecture does not support falls back to a slower path or raises an error: the tables
below list these cases, and a test fails when one of them changes.
"""

import numpy as np
import pytest
import torch

from kgprobe.probes.models.batching import Budget, Ragged
from kgprobe.probes.models.causal import Causal
from kgprobe.probes.models.load import ModelError, window
from kgprobe.probes.models.predict import Predictor
from kgprobe.probes.scoring.cloze import rank
from kgprobe.probes.scoring.cloze.gradient import ScoresWithGradient
from kgprobe.probes.scoring.fill import predict
from kgprobe.probes.scoring.fill.predict import FillItem, FillSettings
from kgprobe.probes.scoring.sentence.score import Item
from kgprobe.probes.text.mask_slots import ClozePrompt, PromptIds, candidate_ids, tokenize_prompts
from kgprobe.probes.text.vectors import inserted
from kgprobe.templates import fill
from tests.unit.architectures import KINDS, tiny, without_sentinels
from tests.unit.literal_scores import cloze, log_softmax, slot_of, token_scores
from tests.unit.token_scores import scored_tokens

ALL = [(kind, name) for kind, names in KINDS.items() for name in names]
#: Refused for every use, in both precisions.
REFUSED = {
    # its landmarks are means over segments of one fixed length
    "nystromformer": "cannot read a row by itself: RuntimeError: shape",
    # tokens see what follows them
    "prophetnet": "decoder of .* when others follow it|(and|its) .* decoder .* off by nan",
    "xlnet": "says something else of a token when others follow it .* not a causal model",
}
#: Batched with equal lengths only: padding changes the outputs of the other tokens.
UNPADDED = {
    "convbert",  # convolutions
    "fnet",  # Fourier transforms over all positions
    "funnel",  # pooled queries
    "mobilebert",  # embeddings are computed from neighboring tokens
    "yoso",  # convolutions
}
#: Masked models whose last layer is computed only at scored positions.
SCORED_POSITIONS_ONLY = {
    "bert", "big_bird", "camembert", "electra", "layoutlm", "roberta", "xlm-roberta",
}  # fmt: skip
#: Causal models that encode common prefixes once.
SHARED = {
    "biogpt", "cohere", "ctrl", "gemma", "glm", "gpt2", "gpt_bigcode", "gpt_neox", "granite",
    "llama", "mixtral", "olmo", "olmo2", "opt", "phi", "qwen2", "qwen2_moe", "qwen3", "smollm3",
}  # fmt: skip

OPTIONS = ["A", "Niger", "Nigeria", "Paris, where the capital of Italy stands"]
TEMPLATES = {"P1": [(0, "[X][Y]")], "P2": [(0, "The capital of [X] is [Y].")]}
ITEMS = [
    Item("P1/Q0", "P1", "", "set"),
    Item("P2/Q0", "P2", "France", "set"),
    Item("P2/Q1", "P2", "Burkina Faso", "set"),
]
NEAR = {True: 1e-9, False: 1e-4}


MORE = pytest.mark.nightly(
    gate="unit/test_architectures.py::test_every_token_scores_as_in_the_literal_loop"
)


@pytest.fixture(params=[True, pytest.param(False, marks=MORE)], ids=["float64", "float32"])
def double(request):
    """Return whether models run in float64, including where their code casts to float32."""
    if request.param:
        request.getfixturevalue("float64_throughout")
    return request.param


@pytest.fixture
def float64_throughout(monkeypatch):
    monkeypatch.setattr(torch, "float32", torch.float64)
    monkeypatch.setattr(torch.Tensor, "float", torch.Tensor.double)
    torch.set_default_dtype(torch.float64)
    yield
    monkeypatch.undo()
    torch.set_default_dtype(torch.float32)


def literal(loaded):
    """Return the scores of all tokens of all sentences."""
    texts = [(TEMPLATES[item.relation][0][1], item.subject) for item in ITEMS]
    filled = [fill(text, subject, option) for text, subject in texts for option in OPTIONS]
    return np.concatenate([token_scores(loaded, sentence) for sentence in filled])


def scored(loaded):
    result, tokens = scored_tokens(loaded, ITEMS, {"set": OPTIONS}, TEMPLATES)
    return np.where(tokens["scored"], tokens["score"], np.nan), result.record


def refused(name, ask):
    with pytest.raises(ModelError, match=f"^{name}: .*({REFUSED[name]})"):
        ask()


@pytest.mark.parametrize(("kind", "name"), ALL)
def test_every_token_scores_as_in_the_literal_loop(kind, name, double):
    loaded = tiny(name, kind, double)
    if name in REFUSED:
        refused(name, lambda: scored(loaded))
        return
    result, record = scored(loaded)
    np.testing.assert_allclose(result, literal(loaded), rtol=0, atol=NEAR[double])
    assert np.isfinite(result).sum() > 30
    why = [n for n in record["notes"] if n.startswith("batches of equal lengths only: padding")]
    assert bool(why) == (name in UNPADDED)
    if kind == "masked":
        assert (record["last_layer"] == "scored") == (name in SCORED_POSITIONS_ONLY)
    if kind == "causal":
        assert (record["prefixes"] == "shared") == (name in SHARED)
    if name in SCORED_POSITIONS_ONLY | SHARED:
        assert record["notes"] == []


@pytest.mark.parametrize("name", ["bart", "mbart", "pegasus"])
def test_without_sentinels_the_decoder_scores_the_whole_sentence(name, double):
    loaded = without_sentinels(tiny(name, "seq2seq", double))
    result, _ = scored(loaded)
    np.testing.assert_allclose(result, literal(loaded), rtol=0, atol=NEAR[double])
    assert np.isfinite(result).sum() > 30


@pytest.mark.parametrize(("kind", "name"), ALL)
def test_row_as_long_as_the_window_is_scored(kind, name):
    loaded = tiny(name, kind, double=False)
    limit = window(loaded.model.config)
    if name not in REFUSED and limit < 1000:
        more = {"decoder_input_ids": torch.full((1, limit), 9)} if kind == "seq2seq" else {}
        assert len(log_softmax(loaded, [9] * limit, **more)) == limit


def test_mpt_has_the_window_of_its_position_biases():
    loaded = tiny("mpt", "causal", double=False)
    assert window(loaded.model.config) == 130
    with pytest.raises(RuntimeError, match="must match the size"):
        log_softmax(loaded, [9] * 131)


QUESTIONS = [
    ClozePrompt("i1", 0, "The capital of France is ", " .", "set", (0,)),
    ClozePrompt("i2", 0, "Niger and ", " lie in Africa .", "set", (1, 2)),
]
LABELS = ["A", "Niger", "Nigeria", "capital of Italy"]


@pytest.mark.parametrize(("kind", "name"), [(k, n) for k, n in ALL if k != "causal"])
def test_candidate_scores_and_gradients_equal_a_literal_loop(kind, name, float64_throughout):
    loaded = tiny(name, kind)

    def ranked():
        return next(iter(rank.scores(loaded, QUESTIONS, {"set": LABELS})))

    if name in REFUSED:
        refused(name, ranked)
        return
    chunk = ranked()
    expected = np.array(
        [
            [[f(cloze(loaded, QUESTIONS[q], label, masks)) for label in LABELS]
             for masks in ("multi", "single") for f in (np.mean, max, lambda parts: parts[0])]
            for q in chunk.indices
        ]
    )  # fmt: skip
    assert sorted(chunk.indices) == [0, 1]
    np.testing.assert_allclose(chunk.scores, expected, rtol=0, atol=1e-9)
    rows = tokenize_prompts(loaded, QUESTIONS, "none")
    ids = candidate_ids(loaded, LABELS, "none", "").ids
    if name in UNPADDED:
        with pytest.raises(ModelError, match=f"^{name}: soft prompts need padded batches"):
            ScoresWithGradient(loaded, rows, ids)
    else:
        result = ScoresWithGradient(loaded, rows, ids)(list(chunk.indices))
        np.testing.assert_allclose(result.detach(), expected[:, 0], rtol=0, atol=1e-9)


FILL_ITEMS = [
    FillItem("b1", 0, "The capital of [X] is [Y].", "France", golds=("Paris", "Nigeria")),
    FillItem("b2", 0, "[X] and Niger lie in [Y].", "Burkina Faso", golds=("Africa", "São Tomé")),
]


@pytest.mark.parametrize(("kind", "name"), ALL)
def test_slot_filling_equals_a_literal_loop(kind, name, float64_throughout):
    loaded = tiny(name, kind)
    tok = loaded.tokenizer

    def ask():
        return predict.predict(
            loaded, FILL_ITEMS, k=2, settings=predict.FillSettings(length="gold")
        )

    if name in REFUSED:
        refused(name, ask)
        return
    result, place = ask().golds, 0
    for item in FILL_ITEMS:
        before, after = item.text.replace("[X]", item.subject).split("[Y]")
        for gold in item.golds:
            prefix = tok(before.rstrip(), add_special_tokens=False)["input_ids"]
            back = tok(after, add_special_tokens=False)["input_ids"]
            tokens = tok(" " + gold, add_special_tokens=False)["input_ids"]
            for j, token in enumerate(tokens):
                if kind == "masked":
                    row = [1, *prefix, *[tok.mask_token_id] * len(tokens), *back, 2]
                    logp = log_softmax(loaded, row)[1 + len(prefix) + j]
                elif kind == "causal":
                    logp = log_softmax(loaded, [1, *prefix, *tokens[:j]])[-1]
                else:
                    start = loaded.model.config.decoder_start_token_id
                    logp = log_softmax(
                        loaded, [*prefix, slot_of(loaded), *back, 2],
                        decoder_input_ids=torch.tensor([[start, slot_of(loaded), *tokens[:j]]]),
                    )[-1]  # fmt: skip
                assert result["token"][place] == token
                assert result["logprob"][place] == pytest.approx(logp[token].item(), abs=1e-9)
                assert result["best"][place] == 1 + (logp > logp[token]).sum()
                place += 1
    assert place == len(result["token"]) >= 4


#: Models without prompt search: they are more than a body and a linear head.
NO_PROMPT_SEARCH = {"esm", "flaubert", "mobilebert", "recurrent_gemma", "xlm"}


@pytest.mark.parametrize(("kind", "name"), ALL)
def test_prompt_scores_equal_a_literal_loop_or_raise(kind, name, float64_throughout):
    loaded = tiny(name, kind)
    if name in REFUSED:
        refused(name, lambda: Predictor(loaded))
        return
    if name in NO_PROMPT_SEARCH:
        with pytest.raises(ModelError, match=f"^{name}: body and output embedding are not all of"):
            Predictor(loaded)
        return
    rows = [np.array([1, 20, 30, 4, 40, 50, 60, 2]), np.array([1, 33, 44, 4, 2])]
    result = np.zeros((2, 392))

    def read(numbers, logits, totals):
        result[numbers] = logits - totals[:, None]

    Predictor(loaded).visit(rows, np.array([3, 3]), read)
    for row, values in zip(rows, result, strict=True):
        if kind == "seq2seq":
            forced = [loaded.model.config.decoder_start_token_id, slot_of(loaded)]
            expected = log_softmax(loaded, row, decoder_input_ids=torch.tensor([forced]))[-1]
        else:
            expected = log_softmax(loaded, row)[3]
        np.testing.assert_allclose(values, expected, rtol=0, atol=1e-9)


@pytest.mark.parametrize(
    "name", ["cohere", "gemma2", "granite", "llama", "mamba", "recurrent_gemma"]
)
def test_causal_soft_prompts_apply_logit_scales_and_caps(name, float64_throughout):
    loaded = tiny(name, "causal")
    rows = [[1, 20, 30, 40, 50], [1, 33, 44]]
    candidates = [[7], [7, 8], [9, 8, 6]]
    result = ScoresWithGradient(
        loaded,
        [PromptIds(np.array(row), len(row)) for row in rows],
        [np.array(own) for own in candidates],
    )([0, 1])
    expected = [
        [np.mean([log_softmax(loaded, row + own[:j])[-1, t].item() for j, t in enumerate(own)])
         for own in candidates]
        for row in rows
    ]  # fmt: skip
    np.testing.assert_allclose(result.detach(), expected, rtol=0, atol=1e-9)


@pytest.mark.parametrize(
    ("kind", "name"),
    [("masked", "bert"), ("causal", "biogpt"), ("causal", "gemma3_text"), ("seq2seq", "m2m_100")],
)
def test_inserted_embedding_row_equals_its_token(kind, name):
    """Gemma and BART scale their embedding rows."""
    loaded = tiny(name, kind)
    table = loaded.model.get_input_embeddings().weight
    more = {"decoder_input_ids": torch.tensor([[0, 9]])} if kind == "seq2seq" else {}
    with inserted(loaded, table[30:31]):
        result = log_softmax(loaded, [1, 20, len(table), 40, 50], **more)
    expected = log_softmax(loaded, [1, 20, 30, 40, 50], **more)
    np.testing.assert_allclose(result, expected, rtol=0, atol=1e-12)


def literal_sequences(loaded, rows):
    """Return log p of every token but the first, one sequence at a time."""
    for row in rows:
        logp = log_softmax(loaded, row) if len(row) else None
        yield from [0.0] * min(len(row), 1)
        yield from [logp[i - 1, row[i]].item() for i in range(1, len(row))]


@pytest.mark.parametrize("name", ["llama", "mamba"])
def test_empty_sequences_do_not_affect_other_scores(name):
    loaded = tiny(name, "causal", double=False)
    rows = [[], [], [7], [], [], [9, 8, 7, 20], [9, 8, 6, 30], [9, 8, 5], [31]]
    for some in (rows, rows[:5]):
        engine = Causal(loaded)
        result = engine.logprobs(Ragged.of([np.array(row, dtype=np.int64) for row in some]))
        assert result == pytest.approx(list(literal_sequences(loaded, some)), abs=1e-4)
    engine = Causal(loaded)
    engine.logprobs(Ragged.of([np.array(row, dtype=np.int64) for row in rows]))
    assert bool(engine.shares) == (name == "llama")


@pytest.mark.parametrize("name", ["gemma3_text", "mistral", "phi3"])
def test_generation_after_prompts_longer_than_the_window(name, float64_throughout):
    """The shorter prompt is padded beside the longer one, and the window counts positions."""
    loaded = tiny(name, "causal")
    subjects = ["Niger", "Burkina Faso and Nigeria, where the capital of Italy stands"]
    items = [FillItem(s, 0, "[X] lies in [Y].", s, golds=("São Tomé",)) for s in subjects]
    fills = predict.predict(loaded, items, k=2, settings=FillSettings(beams=2, most_tokens=4))
    assert fills.record["notes"] == [
        "no prefix sharing: sentences are longer than the attention window of 8"
    ]
    for subject in subjects:
        prompt = [1, *loaded.tokenizer(f"{subject} lies in")["input_ids"]]
        mine = fills.golds["item"] == subject
        tokens = fills.golds["token"][mine].tolist()
        logp = log_softmax(loaded, prompt + tokens)[len(prompt) - 1 : -1]
        expected = logp[torch.arange(len(tokens)), tokens].tolist()
        assert fills.golds["logprob"][mine] == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("positions", [1, 64, 1 << 12])
def test_rows_with_different_longrope_factors_are_not_batched(positions, float64_throughout):
    loaded = tiny("phi3", "causal")
    scaled = {
        "rope_type": "longrope", "rope_theta": 10000.0, "original_max_position_embeddings": 16,
        "short_factor": [1.0] * 4, "long_factor": [4.0] * 4,
    }  # fmt: skip
    changes = {"rope_parameters": scaled, "original_max_position_embeddings": 16}
    config = {**loaded.model.config.to_dict(), **changes, "sliding_window": None}
    model = type(loaded.model)(type(loaded.model.config)(**config)).eval().requires_grad_(False)
    model.load_state_dict(loaded.model.state_dict())
    loaded.model = model
    start = np.arange(20, 60)
    rows = [
        np.array([1, *start[:3], own + n, *start[4:n]]) for n in (15, 16, 17, 30) for own in (7, 80)
    ]
    engine = Causal(loaded, Budget(positions))
    expected = []
    for row in rows:
        logp = log_softmax(loaded, row[:-1])
        expected += [0.0, *(logp[i - 1, row[i]].item() for i in range(1, len(row)))]
    assert engine.logprobs(Ragged.of(rows)) == pytest.approx(expected, abs=1e-9)
    assert engine.notes == ["no prefix sharing: rows of more than 16 tokens have other positions"]
    assert engine.logprobs(Ragged.of(rows[:2])) == pytest.approx(
        expected[: sum(map(len, rows[:2]))], abs=1e-9
    )
    assert engine.shares


@pytest.mark.parametrize("name", ["gemma3_text", "mistral", "phi3", "recurrent_gemma"])
def test_sentences_longer_than_the_window_are_detected_in_every_call(name, float64_throughout):
    loaded = tiny(name, "causal")
    engine = Causal(loaded)
    start = np.arange(20, 38)
    for length, shares in ((6, True), (15, False), (6, True), (18, False)):
        rows = [np.concatenate([start[:3], [own], start[4:length]]) for own in (7, 8, 9)]
        result = engine.logprobs(Ragged.of(rows))
        assert result == pytest.approx(list(literal_sequences(loaded, rows)), abs=1e-9)
        assert engine.shares == (shares and name != "recurrent_gemma")

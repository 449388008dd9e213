"""Memory of a batch besides its positions: keys and values, beams, encoder states."""

import numpy as np
import pytest

from kgprobe.probes.models import batching
from kgprobe.probes.models.batching import Budget, Ragged, budget_for, sizes_of
from kgprobe.probes.models.causal import Causal
from kgprobe.probes.models.mask_slots import CausalText, SpanSlots, SpanText
from kgprobe.probes.scoring.cloze import rank
from kgprobe.probes.scoring.fill import predict
from kgprobe.probes.scoring.fill.rows import FillItem
from kgprobe.probes.scoring.sentence import score
from kgprobe.probes.text.mask_slots import ClozePrompt
from tests.unit.architectures import tiny as architecture
from tests.unit.tiny_models import tiny

ROWS = [np.array([9 + n, 30, 41, 57, 12, 44]) for n in range(6)]
BLANKS = [
    FillItem(f"b{n}", 0, "The capital of [X] is [Y].", name, golds=("Paris", "Nigeria"))
    for n, name in enumerate(("France", "Italy", "Niger", "Burkina Faso", "Africa"))
]


@pytest.mark.parametrize("name", ["llama", "qwen2", "gpt2", "gemma3_text"])
def test_keys_and_values_take_the_estimated_memory(name):
    loaded = architecture(name, "causal", double=False)
    text = CausalText(loaded)
    assert text.shares
    stream = text.open(ROWS)
    taken = sum(t.numel() * t.element_size() for layer in stream.layers for t in layer)
    assert taken == len(ROWS) * len(ROWS[0]) * sizes_of(loaded).cache


def test_a_prompt_holds_its_cache_and_twice_that_of_its_continuations():
    text = CausalText(tiny("gpt2", double=False))
    assert text.shares
    # of a token in two layers 32 keys and 32 values of 4 bytes; 12 bytes for each word's logit
    token, logits = 2 * 2 * 32 * 4, 12 * text.columns
    assert text.count_bytes(10, 3, 1) == 13 * (1 + 2) * token + logits
    assert text.count_bytes(10, 3, 4) == 13 * (1 + 2 * 4) * token + 4 * logits
    # a row picked out and joined with two tokens more
    assert text.open(ROWS).count_bytes(2) == 2 * (len(ROWS[0]) + 2) * token


@pytest.mark.parametrize("name", ["t5", "bart"])
def test_encoder_states_take_the_estimated_memory(name):
    loaded = architecture(name, "seq2seq", double=False)
    if name == "t5":
        states, _ = SpanSlots(loaded).encode(ROWS)
        taken = states.numel() * states.element_size()
        assert taken == len(ROWS) * len(ROWS[0]) * sizes_of(loaded).state
    assert sizes_of(loaded).context > sizes_of(loaded).state


def test_batches_keep_within_their_memory():
    budget = Budget(1000, room=1000, position=10)
    lengths, held = [5] * 9 + [2] * 9, [50] * 9 + [400] * 9
    batches = list(budget.batches(lengths, held))
    assert sorted(np.concatenate(batches)) == list(range(18))
    for batch in batches:
        taken = len(batch) * max(lengths[i] for i in batch) * 10 + sum(held[i] for i in batch)
        assert taken <= 1000 or len(batch) == 1
    assert max(map(len, batches)) == 9
    assert list(map(len, Budget(1000).batches(lengths, held))) == [9, 9]  # no bound is known


def test_cached_files_leave_a_batch_its_memory(tmp_path, monkeypatch):
    path = tmp_path / "meminfo"
    path.write_text("MemTotal:  9000 kB\nMemFree:  10 kB\nMemAvailable:  8000 kB\nCached:  70 kB\n")
    monkeypatch.setattr(batching, "MEMINFO", path)
    assert budget_for(tiny("gpt2")).room == 4000 * 1024


@pytest.mark.parametrize("name", ["gpt2", "mamba", "t5"])
def test_prompts_go_together_as_far_as_their_continuations_fit(name, monkeypatch):
    loaded = tiny(name)
    settings = predict.FillSettings(beams=4)
    expected = predict.predict(loaded, BLANKS, 2, settings)
    opened: list[int] = []
    kind = SpanText if name == "t5" else CausalText
    usual = kind.open

    def seen(self, prompts):
        opened.append(len(prompts))
        return usual(self, prompts)

    monkeypatch.setattr(kind, "open", seen)
    plenty = budget_for(loaded, 1 << 30)
    predict.predict(loaded, BLANKS, 2, settings, budget=plenty)
    assert max(opened) == len(BLANKS)
    opened.clear()
    each = kind(loaded).count_bytes(12, 12, 4)
    assert each > kind(loaded).count_bytes(12, 12, 1) > 0
    short = budget_for(loaded, 2 * each + 48 * sizes_of(loaded).position)
    found = predict.predict(loaded, BLANKS, 2, settings, budget=short)
    assert 1 <= max(opened) < len(BLANKS)
    assert found.top["text"].tolist() == expected.top["text"].tolist()
    np.testing.assert_allclose(found.golds["logprob"], expected.golds["logprob"], atol=1e-9)


def test_decoder_rows_count_the_states_of_their_context(monkeypatch):
    loaded = tiny("t5")
    labels = ["Paris", "Rome", "capital of France", "Burkina Faso"]
    asked = [
        ClozePrompt(f"i{n}", 0, f"{b.subject} is ", ".", "s", (0,)) for n, b in enumerate(BLANKS)
    ]
    (plain,) = rank.scores(loaded, asked, {"s": labels})
    budget = budget_for(loaded, 40 * 8 * sizes_of(loaded).context)
    held: list[int] = []
    usual = SpanSlots.encode
    monkeypatch.setattr(
        SpanSlots, "encode", lambda self, own: held.append(len(own)) or usual(self, own)
    )
    fed: list[int] = []
    loaded.model.get_decoder().register_forward_hook(lambda _, __, found: fed.append(len(found[0])))
    (found,) = rank.scores(loaded, asked, {"s": labels}, budget=budget)
    np.testing.assert_allclose(found.scores, plain.scores, atol=1e-9)
    assert max(fed) < 40
    items = [score.Item(f"i{n}", "r", b.subject, "s") for n, b in enumerate(BLANKS)]
    fed.clear()
    score.score(loaded, items, {"s": labels}, {"r": [(0, "[X] is [Y].")]}, budget=budget)
    assert max(fed) < 40
    tight = budget_for(loaded, 4 * 8 * sizes_of(loaded).state)
    held.clear()
    (found,) = rank.scores(loaded, asked, {"s": labels}, budget=tight)
    assert max(held) < len(asked)
    np.testing.assert_allclose(found.scores, plain.scores, atol=1e-9)


def test_a_cpu_batch_takes_a_few_seconds(monkeypatch):
    """A stop then loses only seconds of work: batches of a large model are small."""
    loaded = tiny("gpt2")
    usual = budget_for(loaded, 1 << 30)
    table = loaded.model.get_input_embeddings().weight.numel()
    body = sum(p.numel() for p in loaded.model.parameters()) - table
    monkeypatch.setattr(batching, "WORK", 24.0 * body)
    assert budget_for(loaded, 1 << 30).positions == 24 < usual.positions
    monkeypatch.setattr(batching, "WORK", body / 2)
    assert budget_for(loaded, 1 << 30).positions == 1


@pytest.mark.parametrize("name", ["gpt2", "mamba"])
def test_every_sentence_is_reported_once_even_of_one_token(name):
    sequences = [np.array(row) for row in ([9], [9, 30], [9, 30, 41], [7, 8], [5])]
    reported: list[int] = []
    scores = Causal(tiny(name)).logprobs(Ragged.of(sequences), reported.append)
    assert sum(reported) == len(sequences)
    assert (scores < 0).sum() == sum(len(row) - 1 for row in sequences)

"""Random templates, subjects and golds: fillings equal a literal loop for any text."""

import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from kgprobe.probes.models.batching import Budget
from kgprobe.probes.scoring.fill import predict
from kgprobe.probes.scoring.fill.predict import FillItem
from tests.unit.test_fill import (
    gold_tokens,
    logits,
    masked_row,
    next_logits,
    rows_of,
    sentence,
    tie_range,
)
from tests.unit.tiny_models import tiny

WORDS = st.sampled_from(
    ["France", "the", "Paris", "Niger", "Nigeria", "Straße", "ß", "São", "東京", "🦀", "a", "(",
     "is", "'s", "capital of", "X-Y", "", " ", "  "]
)  # fmt: skip
TEXTS = st.lists(WORDS, max_size=5).map(" ".join)
GOLDS = (
    st.lists(WORDS, min_size=1, max_size=15).map(" ".join).filter(lambda t: t.strip() == t != "")
)
TEMPLATES = st.sampled_from(
    ["[X] is [Y] .", "The capital of [X] is [Y]", "[X]: [Y]!", "[X] [Y]", "in [X] lies [Y]."]
)
INSIDE = st.sampled_from(["[Y] is in [X] .", "In [X] the [Y] lies", "[X]'s [Y] is it"])


def check(loaded, item, row):
    """Check ranks and log-probabilities of the gold's tokens, with others in the same batch."""
    gold = gold_tokens(loaded, item, item.golds[0])
    assume(0 < len(gold) <= 40)
    others = [FillItem("o", n, "[X] is [Y]", "It", ("Paris" * n,)) for n in range(1, 4)]
    result = predict.predict(
        loaded, [others[0], item, *others[1:]], 0, predict.FillSettings(most_masks=40),
        budget=Budget(48),
    )  # fmt: skip
    lines = rows_of(result.golds, item="i")
    assert [line["token"] for line in lines] == gold
    for j, line in enumerate(lines):
        outputs = row(gold, j)
        assert line["logprob"] == pytest.approx(
            float(torch.log_softmax(outputs, 0)[gold[j]]), abs=1e-9
        )
        assert (line["best"], line["worst"]) == tie_range(outputs, gold[j])


@settings(max_examples=40, deadline=None, derandomize=True)
@given(TEMPLATES | INSIDE, TEXTS, GOLDS, st.sampled_from(["bert", "roberta"]))
def test_masked_golds(template, subject, gold, name):
    loaded = tiny(name)
    item = FillItem("i", 0, template, subject, (gold,))
    text = sentence(item, "\0")
    assume("  \0" not in text and "\0  " not in text)
    assume(loaded.tokenizer(gold, add_special_tokens=False)["input_ids"])

    def row(tokens, j):
        ids, position = masked_row(loaded, item, len(tokens))
        return logits(loaded, ids)[position + j]

    check(loaded, item, row)


@settings(max_examples=30, deadline=None, derandomize=True)
@given(TEMPLATES, TEXTS, GOLDS, st.sampled_from(["gpt2", "llama", "t5"]))
def test_generated_golds(template, subject, gold, name):
    loaded = tiny(name, bos="" if name == "t5" else "forced")
    item = FillItem("i", 0, template, subject, (gold,))
    assume("  \0" not in sentence(item, "\0"))
    row = next_logits(loaded, item)
    check(loaded, item, lambda tokens, j: row(tokens[:j]))

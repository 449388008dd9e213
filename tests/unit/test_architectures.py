"""Every architecture against a literal loop: one sentence, the model's own pass, no padding."""

import numpy as np
import pytest
import torch

from kgprobe.probes.models.load import ModelError
from kgprobe.probes.prompts.templates import fill
from kgprobe.probes.scoring import sentence
from kgprobe.probes.scoring.sentence import Item
from tests.unit.architectures import CAUSAL, KINDS, MASKED, SEQ2SEQ, tiny

OPTIONS = ["A", "Niger", "Nigeria", "Paris, where the capital of Italy stands"]
TEMPLATES = {"P1": [(0, "[X][Y]")], "P2": [(0, "The capital of [X] is [Y].")]}
ITEMS = [Item("P1/Q0", "P1", "", "set"), *(
    Item(f"P2/Q{i}", "P2", s, "set") for i, s in enumerate(["France", "Burkina Faso"]))]  # fmt: skip
NEAR = {True: 1e-9, False: 1e-4}


def sentences():
    return [fill(TEMPLATES[i.relation][0][1], i.subject, o) for i in ITEMS for o in OPTIONS]


def literal_masked(loaded):
    tok = loaded.tokenizer
    for f in sentences():
        enc = tok(f.text, return_special_tokens_mask=True)
        ids, words = enc["input_ids"], enc.word_ids(0)
        values = []
        for place, special in enumerate(enc["special_tokens_mask"]):
            if special:
                values.append(np.nan)
                continue
            row = list(ids)
            for i in range(place, len(ids)):
                if words[i] == words[place]:
                    row[i] = tok.mask_token_id
            logits = loaded.model(torch.tensor([row])).logits[0, place]
            values.append(logits.log_softmax(-1)[ids[place]].item())
        yield values


def literal_causal(loaded):
    front = {"forced": [1], "none": []}[loaded.spec.bos]
    for f in sentences():
        ids = front + loaded.tokenizer(f.text, add_special_tokens=False)["input_ids"]
        logp = loaded.model(torch.tensor([ids]), use_cache=False).logits[0].log_softmax(-1)
        yield [np.nan, *(logp[i - 1, ids[i]].item() for i in range(1, len(ids)))]


def literal_span(loaded):
    tok = loaded.tokenizer
    opening, closing = tok.convert_tokens_to_ids(["<extra_id_0>", "<extra_id_1>"])
    start = loaded.model.config.decoder_start_token_id
    for f in sentences():
        enc = tok(f.text, return_offsets_mapping=True)
        ids, ((low, high),) = enc["input_ids"], f.answer
        own = [i for i, (a, b) in enumerate(enc["offset_mapping"]) if a < high and b > low]
        context = [*ids[: own[0]], opening, *ids[own[-1] + 1 :]]
        forced = [start, opening, *(ids[i] for i in own)]
        logits = loaded.model(
            input_ids=torch.tensor([context]), decoder_input_ids=torch.tensor([forced]),
            use_cache=False,
        ).logits[0]  # fmt: skip
        logp = logits.log_softmax(-1)
        values = [np.nan] * len(ids)
        for j, i in enumerate(own):
            values[i] = logp[1 + j, ids[i]].item()
        yield values


LITERAL = {"masked": literal_masked, "causal": literal_causal, "seq2seq": literal_span}


def scored(loaded):
    found = sentence.score(loaded, ITEMS, {"set": OPTIONS}, TEMPLATES, keep_tokens=True)
    return found.tokens["score"], found.record


@pytest.mark.parametrize("double", [True, False])
@pytest.mark.parametrize(("kind", "name"), [(k, n) for k, names in KINDS.items() for n in names])
def test_every_token_scores_as_in_the_literal_loop(kind, name, double):
    loaded = tiny(name, kind, double)
    found, _ = scored(loaded)
    with torch.inference_mode():
        expected = [v for values in LITERAL[kind](loaded) for v in values]
    np.testing.assert_allclose(found, expected, rtol=0, atol=NEAR[double])

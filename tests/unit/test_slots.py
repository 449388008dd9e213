"""An answer in a slot has the same tokens as in the complete sentence."""

import dataclasses

import pytest
import torch
from tokenizers import processors

from kgprobe.probes.scoring.cloze import rank
from kgprobe.probes.scoring.cloze.vectors import candidate_tokens
from kgprobe.probes.scoring.fill.predict import predict
from kgprobe.probes.scoring.fill.rows import FillItem, FillSettings
from kgprobe.probes.text.mask_slots import ClozePrompt, candidate_ids, prompt, tokenize_prompts
from tests.unit.tiny_models import sentencepiece, tiny, tokenizer, with_tokenizer

LABELS = ["Paris", "Rome", "Niger", "São Tomé", "Burkina Faso"]
AFTERS = {"(": ")", '"': '".', "«": "»", "-": " .", "¿": "?", "“": "”", " ": " .", "": " it is."}
TOKENIZERS = {
    "llama": lambda: ("gpt2", sentencepiece("causal")),
    "bpe masked": lambda: ("bert", sentencepiece("masked")),
    "t5": lambda: ("t5", sentencepiece("seq2seq", "unigram")),
    "unigram masked": lambda: ("bert", sentencepiece("masked", "unigram")),
    "gpt2": lambda: ("gpt2", tokenizer("causal")),
    "bert": lambda: ("bert", tokenizer("masked", "wordpiece")),
}


def in_sentence(tok, before, label, after):
    """Return the tokens of the complete sentence that hold a character of the label."""
    coded = tok(before + label + after, return_offsets_mapping=True, add_special_tokens=False)
    low, high = len(before), len(before) + len(label)
    pairs = zip(coded["input_ids"], coded["offset_mapping"], strict=True)
    return [token for token, (a, b) in pairs if a < high and b > low]


@pytest.mark.parametrize("context", AFTERS)
@pytest.mark.parametrize("name", TOKENIZERS)
def test_candidates_have_the_tokens_of_the_sentence(name, context):
    model, tok = TOKENIZERS[name]()
    loaded = dataclasses.replace(tiny(model), tokenizer=tok)
    before = f"The capital of France is {context}".rstrip(" ") + context * (context == " ")
    before = before if context else ""
    found = candidate_ids(loaded, LABELS, "auto", before).ids
    # a space belongs to the answer, even if it is a separate token
    text, item = before.removesuffix(" "), " " * before.endswith(" ")
    expected = [in_sentence(tok, text, item + label, AFTERS[context]) for label in LABELS]
    assert [ids.tolist() for ids in found] == expected


def test_a_line_end_before_a_slot_stays_with_the_text():
    for name in ("llama", "gpt2", "t5"):
        model, tok = TOKENIZERS[name]()
        loaded = dataclasses.replace(tiny(model), tokenizer=tok)
        found = candidate_ids(loaded, LABELS, "auto", "France:\n").ids
        expected = [in_sentence(tok, "France:\n", label, "") for label in LABELS]
        assert [ids.tolist() for ids in found] == expected


@pytest.mark.parametrize("space", [" ", "\u202f", "\u3000"])
@pytest.mark.parametrize("trims", [True, False])
def test_prompt_and_answer_tokens_equal_the_sentence_s(trims, space):
    """RoBERTa's post-processor removes spaces from offsets, even for a token of one space. Other
    spaces are a token for each of their bytes."""
    for kind, model in (("causal", "gpt2"), ("seq2seq", "t5")):
        tok = tokenizer(kind)
        backend = tok.backend_tokenizer
        backend.post_processor = processors.Sequence(
            [processors.ByteLevel(trim_offsets=trims), backend.post_processor]
        )
        loaded = dataclasses.replace(tiny(model), tokenizer=tok)
        asked = ClozePrompt("t", 0, f"The capital of Niger is{space}", ".")
        for label in LABELS:
            whole = tok(asked.before + label + asked.after)["input_ids"]
            answer = candidate_ids(loaded, [label], "auto", asked.before).ids[0].tolist()
            if kind == "causal":
                before, behind = prompt(loaded, asked).tolist(), []
            else:
                (row,) = tokenize_prompts(loaded, [asked], "auto")
                before, behind = row.ids[: row.position].tolist(), row.ids[row.position + 1 :]
            assert [*before, *answer, *behind] == whole[: len(whole) if len(behind) else -1]


def test_scores_in_brackets_are_those_of_the_tokens_in_brackets():
    loaded = with_tokenizer(*TOKENIZERS["bpe masked"]())
    tok = loaded.tokenizer
    asked = [
        ClozePrompt(f"i{n}", 0, f"Rome {lead}", ")", "set", (0,)) for n, lead in enumerate('("')
    ]
    (found,) = rank.rank(loaded, asked, {"set": LABELS}, space="auto", top=0).ranks["score"][None]
    for question, score in zip(asked, found[:: len(found) // 2], strict=True):
        ids = in_sentence(tok, question.before, "Paris", ")")
        front = tok(question.before)["input_ids"][:-1]
        row = tok(question.before + tok.mask_token + question.after)["input_ids"]
        row[len(front) : len(front) + 1] = [tok.mask_token_id] * len(ids)
        said = loaded.model(torch.tensor([row])).logits[0].log_softmax(-1)
        parts = [float(said[len(front) + j, token]) for j, token in enumerate(ids)]
        assert score == pytest.approx(sum(parts) / len(parts), abs=1e-9)


def test_golds_of_fills_have_the_tokens_of_the_sentence():
    loaded = with_tokenizer(*TOKENIZERS["llama"]())
    fill_items = [FillItem("i", 0, f"[X] {lead}[Y]", "Rome", ("Paris", "Niger")) for lead in '("']
    found = predict(loaded, fill_items, 0, FillSettings(upper_first=False)).golds
    expected = [
        token
        for item in fill_items
        for gold in item.golds
        for token in in_sentence(loaded.tokenizer, item.text.replace("[X]", "Rome")[:-3], gold, "")
    ]
    assert found["token"].tolist() == expected


def test_training_refuses_candidates_whose_tokens_differ_from_prompt_to_prompt():
    loaded = dataclasses.replace(tiny("gpt2"), tokenizer=TOKENIZERS["llama"]()[1])
    behind = [ClozePrompt("i", 0, f"Rome {lead}", ".", "set", (0,)) for lead in ('"', "(")]
    own = candidate_tokens(loaded, LABELS, behind, "auto", "set")
    assert own[0].tolist() == in_sentence(loaded.tokenizer, "Rome (", "Paris", ")")
    with pytest.raises(ValueError, match=r"^set 'set': 'Paris' has other tokens after ' ' than"):
        candidate_tokens(
            loaded, LABELS, [*behind, ClozePrompt("i", 0, "Rome ", ".", "set", (0,))], "auto", "set"
        )

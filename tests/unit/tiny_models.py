"""Tiny random models of real architectures, with tokenizers trained on the spot."""

import copy
import dataclasses
import functools
from pathlib import Path
from typing import Any

import torch
import transformers
from tokenizers import (
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
    trainers,
)

from kgprobe.probes.models.load import Loaded, ModelSpec

TEXTS = [
    "The capital of France is Paris.",
    "Niger and Nigeria lie in Africa; Straße, São Tomé, 東京 and a 🦀.",
    "Rome is where the capital of Italy stands, and Burkina Faso is a country.",
    "an option of one token; a sentence without anything else.",
]
SPECIALS = ["<pad>", "<s>", "</s>", "<unk>", "<mask>", "<extra_id_0>", "<extra_id_1>"]


def tokenizer(kind: str, style: str = "bpe", bos: bool = False) -> Any:
    """Return a fast tokenizer (byte-level BPE or WordPiece); `bos` makes it prepend <s>."""
    return copy.deepcopy(_trained(kind, style, bos))


@functools.cache
def _trained(kind: str, style: str, bos: bool) -> Any:
    # Both trainers number what they begin with in hash order, which then decides ties among merges:
    # letters are named beforehand, sorted, so that every process has the same tokens.
    if style == "bpe":
        tok = Tokenizer(models.BPE())
        tok.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        tok.decoder = decoders.ByteLevel()
        alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
        trainer: Any = trainers.BpeTrainer(
            vocab_size=400, special_tokens=SPECIALS, initial_alphabet=alphabet, show_progress=False
        )
    else:
        tok = Tokenizer(models.WordPiece(unk_token="<unk>"))
        tok.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        letters = sorted({letter for text in TEXTS for letter in text if not letter.isspace()})
        named = [*SPECIALS, *letters, *(f"##{letter}" for letter in letters)]
        trainer = trainers.WordPieceTrainer(
            vocab_size=220, special_tokens=named, show_progress=False
        )
    tok.train_from_iterator(TEXTS * 3, trainer)
    if style != "bpe":  # of the vocabulary alone: a letter is not a special token
        vocabulary, draft = tok.get_vocab(), tok
        tok = Tokenizer(models.WordPiece(vocabulary, unk_token="<unk>"))
        tok.pre_tokenizer = draft.pre_tokenizer
    return _finished(tok, kind, bos)


def _finished(tok: Tokenizer, kind: str, bos: bool = False) -> Any:
    """Return a fast tokenizer that adds the special tokens of its kind of model."""
    causal = "<s> $A" if bos else "$A"
    pattern = {"masked": "<s> $A </s>", "seq2seq": "$A </s>", "causal": causal}[kind]
    tok.post_processor = processors.TemplateProcessing(
        single=pattern, special_tokens=[(s, tok.token_to_id(s)) for s in ("<s>", "</s>")]
    )
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=tok, pad_token="<pad>", bos_token="<s>", eos_token="</s>",
        unk_token="<unk>", mask_token="<mask>",
        extra_special_tokens=["<extra_id_0>", "<extra_id_1>"],
    )  # fmt: skip


SIZE = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4}
WIDE = {**SIZE, "intermediate_size": 64}
#: name -> (kind, style of the tokenizer, values of the configuration)
CONFIGS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "bert": ("masked", "wordpiece", WIDE),
    "roberta": ("masked", "bpe", {"pad_token_id": 0, "max_position_embeddings": 130, **WIDE}),
    "albert": ("masked", "wordpiece", {"embedding_size": 16, **WIDE}),
    "distilbert": (
        "masked", "wordpiece", {"dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 64}
    ),
    "electra": ("masked", "wordpiece", {"embedding_size": 16, **WIDE}),
    "gpt2": ("causal", "bpe", {"n_embd": 32, "n_layer": 2, "n_head": 4}),
    "llama": ("causal", "bpe", {"num_key_value_heads": 2, **WIDE}),
    "opt": (
        "causal", "bpe", {"ffn_dim": 64, "word_embed_proj_dim": 32, "pad_token_id": 0, **SIZE}
    ),
    "mamba": ("causal", "bpe", {"hidden_size": 32, "num_hidden_layers": 2, "state_size": 8}),
    "t5": (
        "seq2seq", "bpe", {"d_model": 32, "d_kv": 8, "d_ff": 64, "num_layers": 2, "num_heads": 4,
                           "pad_token_id": 0, "decoder_start_token_id": 0, "eos_token_id": 2},
    ),
}  # fmt: skip
AUTO = {
    "masked": transformers.AutoModelForMaskedLM,
    "causal": transformers.AutoModelForCausalLM,
    "seq2seq": transformers.AutoModelForSeq2SeqLM,
}


def config_of(name: str, size: int) -> Any:
    """Return the configuration for a vocabulary of `size`; llama has nine unused rows beside it."""
    rows = size + 9 if name == "llama" else size
    return transformers.AutoConfig.for_model(name, vocab_size=rows, **CONFIGS[name][2])


def tiny(name: str, bos: str = "", double: bool = True, adds_bos: bool = False) -> Loaded:
    """Return a random model by architecture; float64 unless `double` is off."""
    kind, style, _ = CONFIGS[name]
    tok = tokenizer(kind, style, adds_bos)
    torch.manual_seed(0)
    model = AUTO[kind].from_config(config_of(name, len(tok))).eval().requires_grad_(False)
    with torch.no_grad():
        for p in model.parameters():
            p.mul_(3.0) if p.dim() > 1 else None
    model = model.double() if double else model.float()
    spec = ModelSpec(name, kind, f"folder:{name}", bos=bos or ("none" if kind == "causal" else "-"))
    return Loaded(spec, model, tok, torch.device("cpu"), 128, {})


def save(loaded: Loaded, folder: str | Path) -> Path:
    """Save the model and its tokenizer and return the folder."""
    loaded.model.save_pretrained(folder)
    loaded.tokenizer.save_pretrained(folder)
    return Path(folder)


@functools.cache
def sentencepiece(kind: str, style: str = "bpe") -> Any:
    """Return a fast tokenizer that marks the start of a text like that of a word: Llama's byte-pair
    encoding with a normalizer and no words, or T5's unigrams after a pre-tokenizer."""
    if style == "bpe":
        tok = Tokenizer(models.BPE(unk_token="<unk>"))
        tok.normalizer = normalizers.Sequence(
            [normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]
        )
        trainer: Any = trainers.BpeTrainer(
            vocab_size=200, special_tokens=SPECIALS, show_progress=False,
            initial_alphabet=sorted({*"▁", *"".join(TEXTS)} - {" "}),
        )  # fmt: skip
        tok.train_from_iterator(" ".join(TEXTS).split() * 3, trainer)
    else:
        letters = sorted({*"".join(TEXTS)} - {" "})
        words = sorted({word.strip(".,;") for text in TEXTS for word in text.split()})
        shorter = {w[:2] for w in words} | {w[2:] for w in words if len(w) > 3}
        known = dict.fromkeys([*letters, *words, *sorted(shorter), "▁"], -9.0)
        known |= dict.fromkeys((f"▁{word}" for word in [*words, *sorted(shorter)]), -6.0)
        tok = Tokenizer(models.Unigram([*((s, 0.0) for s in SPECIALS), *known.items()], unk_id=3))
        tok.pre_tokenizer = pre_tokenizers.Metaspace()
    return _finished(tok, kind)


def with_tokenizer(name: str, tok: Any, double: bool = True) -> Loaded:
    """Return `tiny` with this tokenizer and an embedding of its size."""
    loaded = tiny(name, double=double)
    torch.manual_seed(1)
    config = config_of(name, len(tok))
    model = type(loaded.model)._from_config(config).eval().requires_grad_(False)
    return dataclasses.replace(loaded, model=model.to(loaded.model.dtype), tokenizer=tok)

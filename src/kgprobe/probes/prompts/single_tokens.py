"""Which words are one token for a model, in the form that they take within a sentence."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kgprobe.probes.models.load import ModelSpec, load_model


def is_single(tokenizer: Any, word: str) -> bool:
    """Whether `word`, after another word and a blank, is one token (WordPiece, BPE, Unigram)."""
    before = tokenizer("of", add_special_tokens=False)["input_ids"]
    whole = tokenizer(f"of {word}", add_special_tokens=False)["input_ids"]
    known = whole[-1] != tokenizer.unk_token_id or word == tokenizer.unk_token
    return whole[: len(before)] == before and len(whole) == len(before) + 1 and known


def single_for(
    specs: Sequence[ModelSpec], words: Sequence[str], controls: Path | None = None
) -> list[str]:
    """The `words` that are one token for every model, in their order."""
    left = list(words)
    for spec in specs:
        tokenizer = load_model(spec, controls).tokenizer
        left = [word for word in left if is_single(tokenizer, word)]
    return left

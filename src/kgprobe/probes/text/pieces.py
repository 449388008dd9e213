"""Token ids of text pieces as they would follow other text, and the special tokens around them."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from kgprobe.probes.models.load import Loaded, ModelError
from kgprobe.probes.text.encode import bos_prefix

#: Prepended to a piece and removed again, so that its first word is tokenized as within a text:
#: tokenizers that add a space at the start of a text would change it otherwise.
LEADS = (".", "a", "1")


def pieces(
    tokenizer: Any,
    texts: Sequence[str],
    starts: bool = False,
    offsets: bool = False,
    behind: str = "",
) -> list[Any]:
    """Tokenize every text without special tokens; with `offsets` return (ids, character spans).

    Unless it `starts` a text, a piece is tokenized as after other text: " word" and "word" are
    then the word with and without its space. `behind` is the preceding character, if
    known; whitespace that the tokenizer joins to the piece belongs to it.
    """
    leads = [LEADS[0] * behind.isspace() + behind] * bool(behind) + [*LEADS, ""]
    results: list[tuple[list[int], list[tuple[int, int]]]] = [([], [])] * len(texts)
    waiting = [i for i, text in enumerate(texts) if text]
    for lead in ("",) if starts else leads:
        if not waiting:
            break
        coded = tokenizer(
            [lead + texts[i] for i in waiting], add_special_tokens=False,
            return_offsets_mapping=True, return_attention_mask=False,
        )  # fmt: skip
        refused = []
        pairs = zip(waiting, coded["input_ids"], coded["offset_mapping"], strict=True)
        for i, ids, spans in pairs:
            first = sum(end <= len(lead) for _, end in spans) if lead else 0
            melted = first < len(ids) and lead[spans[first][0] :].strip()
            if lead and (not first or melted):
                refused.append(i)  # the lead merged with the piece: try another
                continue
            kept = spans[first:] if offsets else []
            char_spans = [(max(a - len(lead), 0), b - len(lead)) for a, b in kept]
            results[i] = (list(ids[first:]), char_spans)
        waiting = refused
    return results if offsets else [ids for ids, _ in results]


@dataclass
class Frame:
    """Special tokens around one or two segments, and their token types (`typed`: whether used)."""

    front: list[int]
    middle: list[int] = field(default_factory=list)
    back: list[int] = field(default_factory=list)
    types_front: list[int] = field(default_factory=list)
    types_middle: list[int] = field(default_factory=list)
    types_back: list[int] = field(default_factory=list)
    types: tuple[int, int] = (0, 0)
    typed: bool = False
    prefix_space: bool = False


def frame(loaded: Loaded, separated: bool, released: bool = False) -> Frame:
    """Return what the tokenizer puts around a text or a pair; for causal models, the BOS prefix.

    Raises ModelError for a pair if the tokenizer has no separator.
    """
    tokenizer = loaded.tokenizer
    if loaded.spec.kind == "causal":
        front = bos_prefix(loaded)[0].tolist()
        return Frame(front, types_front=[0] * len(front), prefix_space=released)
    ids, types, words = _specials(tokenizer, ["a", "a"] if separated else ["a"])
    slot = [i for i in range(words[0], words[-1]) if i not in words]
    middle, types_middle = [ids[i] for i in slot], [types[i] for i in slot]
    typed = any(types) and separated
    if separated and not middle:
        # the tokenizer has no pairs: use one separator and no type that the model never saw
        if tokenizer.sep_token_id is None:
            raise ModelError(f"{loaded.spec.model}: its tokenizer has no separator for [SEP]")
        ids, types, words = _specials(tokenizer, ["a"])
        middle, types_middle, typed = [int(tokenizer.sep_token_id)], [0], False
    first, last = words[0], words[-1]
    if typed and released:
        types_middle = [1] * len(middle)
    return Frame(
        ids[:first], middle, ids[last + 1 :], types[:first], types_middle, types[last + 1 :],
        (types[first], types[last]), typed, released and byte_level(tokenizer),
    )  # fmt: skip


def _specials(tokenizer: Any, texts: Sequence[str]) -> tuple[list[int], list[int], list[int]]:
    """Return (ids, token types, positions of non-special tokens) of a text or a pair."""
    coded = tokenizer(*texts, return_special_tokens_mask=True, return_token_type_ids=True)
    types = coded.get("token_type_ids") or [0] * len(coded["input_ids"])
    words = [i for i, mark in enumerate(coded["special_tokens_mask"]) if not mark]
    return list(coded["input_ids"]), list(types), words


def byte_level(tokenizer: Any) -> bool:
    """Return whether tokens are byte sequences with a marker for the space, as in GPT-2."""
    return '"ByteLevel"' in tokenizer.backend_tokenizer.to_str()

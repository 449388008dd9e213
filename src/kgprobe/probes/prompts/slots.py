"""Vectors in place of words: texts with slots, and models that read vectors at them.

    text      MARK(0) is a particular [gap] .          MARK(k): one private character
    ids       [CLS] V+0 is a particular [MASK] . [SEP] V: rows of the model's input embedding
    input     row k of the inserted vectors stands where the embedding of a token would stand

Nothing is added to the model: a hook on the input embedding puts the vectors in, so that position
and type embeddings and layer norms apply as usual, and the softmax stays that of the vocabulary.
"""

import contextlib
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn.functional import linear

from kgprobe.probes.models.load import Loaded
from kgprobe.probes.scoring.gap_text import Gapped, Ids, Question, gapped

FIRST, LAST = 0xE000, 0xF8FF
_MARK = re.compile(f"\\s*([{chr(FIRST)}-{chr(LAST)}])")
#: The vectors to insert (slots x embedding width), or what makes them anew for every pass.
Vectors = torch.Tensor | Callable[[], torch.Tensor]


def mark(slot: int) -> str:
    """The character that stands for slot number `slot` in a text."""
    if not 0 <= slot <= LAST - FIRST:
        raise ValueError(f"slot {slot}: legal are 0 to {LAST - FIRST}")
    return chr(FIRST + slot)


def slots_of(text: str) -> list[int]:
    """The slot numbers of a text, in its order."""
    return [ord(found) - FIRST for found in _MARK.findall(text)]


def rows_of_embedding(loaded: Loaded) -> int:
    """Rows of the input embedding: slot k has the id of this number plus k.

    Without weights (`load.outline`) the tokenizer's size stands in: it is above all ids, too.
    """
    if loaded.model is None:
        return len(loaded.tokenizer)
    return int(loaded.model.get_input_embeddings().weight.shape[0])


def slotted(loaded: Loaded, asked: Sequence[Question], space: str = "none") -> list[Gapped]:
    """`gapped` for texts with slots (masked and seq2seq models): slot k becomes the id V + k.

    A slot is one token of its own: white space in front of it goes, white space behind it belongs
    to the next word. Raises ValueError for a text that is too long for the model.
    """
    piece, token = _holder(loaded)
    texts = [replace(q, before=plain(q.before, piece), after=plain(q.after, piece)) for q in asked]
    first = rows_of_embedding(loaded)
    found = []
    for question, row in zip(asked, gapped(loaded, texts, space), strict=True):
        wanted = [first + k for k in slots_of(question.before) + slots_of(question.after)]
        ids = row.ids.copy()
        places = np.flatnonzero(ids == token)
        if len(places) != len(wanted):
            raise ValueError(
                f"item {question.item}, template {question.template}: {len(wanted)} slots became "
                f"{len(places)} tokens; the text must not hold {piece!r}"
            )
        ids[places] = wanted
        found.append(Gapped(ids, row.place))
    return found


def tokens_with_slots(loaded: Loaded, texts: Sequence[str]) -> list[tuple[Ids, Ids]]:
    """(ids, character ends) of complete texts with slots, without special tokens.

    For causal models. Character ends are those of `tight(text)`. Raises ValueError where a slot is
    no token of its own.
    """
    first = rows_of_embedding(loaded)
    filled = [_filled(tight(text), holder(loaded)) for text in texts]
    coded = loaded.tokenizer(
        [text for text, _ in filled], return_offsets_mapping=True, add_special_tokens=False
    )
    found = []
    for number, text in enumerate(texts):
        back = filled[number][1]
        ids = np.array(coded["input_ids"][number], dtype=np.int64)
        ends = np.array([back[e] for _, e in coded["offset_mapping"][number]], dtype=np.int64)
        for place, slot in _places(tight(text)):
            hit = np.flatnonzero(ends == place + 1)
            if len(hit) != 1:
                raise ValueError(f"slot {slot} of {text[:60]!r} is no token of its own")
            ids[hit[0]] = first + slot
        found.append((ids, ends))
    return found


def tight(text: str) -> str:
    """The text without the white space in front of its slots."""
    return _MARK.sub(r"\1", text)


@contextlib.contextmanager
def inserted(loaded: Loaded, vectors: Vectors, in_softmax: int | None = None) -> Iterator[None]:
    """While open, ids from V on read `vectors` (row id - V) at the model's input embedding.

    `in_softmax` appends the logits of the vectors from this one on to the head's (`softmax_rows:
    all`: what a model with tied embeddings does after new tokens were added to it).
    Gradients reach the vectors alone.
    """
    size = rows_of_embedding(loaded)
    stack: list[Any] = []

    def lower(module: Any, given: tuple[Any, ...]) -> tuple[Any, ...]:
        stack.append(given[0])
        return (torch.where(given[0] < size, given[0], 0), *given[1:])

    def put(module: Any, given: tuple[Any, ...], found: Any) -> Any:
        ids = stack.pop()
        rows = vectors() if callable(vectors) else vectors
        chosen = rows.to(found.dtype)[(ids - size).clamp(min=0)]
        return torch.where((ids >= size)[..., None], chosen, found)

    handles = []
    for module in embedding_modules(loaded.model):
        handles += [module.register_forward_pre_hook(lower), module.register_forward_hook(put)]
    if in_softmax is not None:
        handles.append(_tied_output(loaded).register_forward_hook(_appending(vectors, in_softmax)))
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def _appending(vectors: Vectors, start: int) -> Callable[..., Any]:
    def append(module: Any, given: tuple[Any, ...], found: Any) -> Any:
        rows = vectors() if callable(vectors) else vectors
        return torch.cat([found, linear(given[0], rows[start:].to(found.dtype))], dim=-1)

    return append


def _tied_output(loaded: Loaded) -> nn.Linear:
    output = loaded.model.get_output_embeddings()
    weight = loaded.model.get_input_embeddings().weight
    if not isinstance(output, nn.Linear) or output.weight.data_ptr() != weight.data_ptr():
        raise ValueError(
            f"{loaded.spec.model}: softmax_rows 'all' needs an output that is tied to the input "
            "embedding; use softmax_rows 'vocabulary'"
        )
    return output


def embedding_modules(model: Any) -> list[nn.Embedding]:
    """Every module that looks ids up in the input embedding: encoder and decoder share it."""
    main = model.get_input_embeddings()
    shared = [
        m
        for m in model.modules()
        if isinstance(m, nn.Embedding) and m.weight.data_ptr() == main.weight.data_ptr()
    ]
    return shared if any(m is main for m in shared) else [main, *shared]


def plain(text: str, piece: str) -> str:
    """The text with `piece` in place of every slot and the white space in front of it."""
    return _MARK.sub(piece, text)


def holder(loaded: Loaded) -> str:
    """The special token that holds the place of slots while a text is tokenised."""
    return _holder(loaded)[0]


def _holder(loaded: Loaded) -> tuple[str, int]:
    """A special token that holds the place of slots while a text is tokenised."""
    tokenizer = loaded.tokenizer
    names = ("pad_token", "unk_token") if loaded.spec.kind != "causal" else ("pad_token",)
    for name in (*names, "eos_token", "bos_token"):
        token = getattr(tokenizer, name)
        if token is None:
            continue
        coded = tokenizer("a" + token + " a", add_special_tokens=False)["input_ids"]
        if coded.count(tokenizer.convert_tokens_to_ids(token)) == 1:
            return token, int(tokenizer.convert_tokens_to_ids(token))
    raise ValueError(
        f"{loaded.spec.model}: its tokenizer has no special token to hold the place of a slot"
    )


def _filled(tight: str, holder: str) -> tuple[str, list[int]]:
    """The text with `holder` for every mark, and for each end in it the end in `tight`."""
    text, back = "", [0]
    for position, character in enumerate(tight):
        piece = holder if FIRST <= ord(character) <= LAST else character
        text += piece
        back += [position] * (len(piece) - 1) + [position + 1]
    return text, back


def _places(tight: str) -> list[tuple[int, int]]:
    return [(i, ord(c) - FIRST) for i, c in enumerate(tight) if FIRST <= ord(c) <= LAST]

"""Cloze prompts as token ids: the sentence with its mask slot, and the candidates for it.

text      <mark(0)> is a particular [mask slot] .
ids       [CLS] V+0 is a particular [MASK] . [SEP]     V: rows of the model's input embedding
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kgprobe.probes.models.completeness import SENTINELS
from kgprobe.probes.models.load import Loaded
from kgprobe.probes.text.encode import (
    LEADS,
    Frame,
    frame,
    pieces,
    refuse_control_tokens,
    spells_nothing,
)
from kgprobe.templates import ANSWER, fill, replace_vectors, split_at_vectors, vectors_of

Ids = NDArray[np.int64]
SENTINEL = SENTINELS[0]
#: Words that fill the mask slot while a sentinel model's sentence is tokenized.
FILLERS = ("x", "it", "one", "two")


@dataclass(frozen=True)
class ClozePrompt:
    """One prompt: the text around its mask slot, its candidate set, the indices of its golds."""

    item: str
    template: int
    before: str
    after: str
    candidates: str = ""
    golds: tuple[int, ...] = ()


@dataclass(frozen=True)
class PromptIds:
    """A sentence with its mask slot: ids with one mask (or sentinel) token at `position`."""

    ids: Ids
    position: int

    def widened(self, masks: int) -> Ids:
        """Return the ids with `masks` consecutive mask tokens in the mask slot."""
        slot = self.ids[self.position : self.position + 1]
        return np.concatenate(
            [self.ids[: self.position], *[slot] * masks, self.ids[self.position + 1 :]]
        )


@dataclass
class CandidateTokens:
    """Token ids of every candidate of a set, and the labels that contain an unknown token."""

    ids: list[Ids]
    unknown: list[str] = field(default_factory=list)


def question(
    item: str,
    template: int,
    text: str,
    subject: str,
    candidates: str = "",
    golds: tuple[int, ...] = (),
    upper_first: bool = True,
) -> ClozePrompt:
    """Fill a template as a question: [X] becomes the subject, [Y] the mask slot."""
    slot = "\ufffc"  # object replacement character: it has no upper case
    around = fill(text, subject, slot, upper_first).around(ANSWER)
    return ClozePrompt(item, template, *around, candidates, golds)


def rows_of_embedding(loaded: Loaded) -> int:
    """Return V, the number of rows of the input embedding: vector k has the id V + k.

    Without weights (`load.outline`) the tokenizer's size is used: it is also above all ids.
    """
    if loaded.model is None:
        return len(loaded.tokenizer)
    return int(loaded.model.get_input_embeddings().weight.shape[0])


def tokenize_prompts(
    loaded: Loaded, prompts: Sequence[ClozePrompt], space: str = "none", any_length: bool = False
) -> list[PromptIds]:
    """Tokenize every question, with special tokens and one mask slot token.

    Under `auto` a token of only whitespace before the slot becomes part of the candidate. A vector
    is one separate token: see `tokens_with_slots`. Raises ValueError for a text that contains the
    mask token, or is too long for the model unless `any_length`.
    """
    is_open, rows = loaded.spec.kind == "seq2seq", []
    for question in prompts:
        row = _open(loaded, question) if is_open else _with_mask(loaded, question, space)
        if len(row.ids) > loaded.limit and not any_length:
            text = replace_vectors(f"{question.before}…{question.after}", "_")
            raise ValueError(
                f"item {question.item}, template {question.template}: {len(row.ids)} tokens, the "
                f"model takes {loaded.limit}: {text[:80]!r}"
            )
        rows.append(row)
    return rows


def tokens_with_slots(loaded: Loaded, texts: Sequence[str]) -> list[tuple[Ids, Ids]]:
    """Return (ids, character spans) of complete texts with vectors, without special tokens.

    Whitespace before a vector is dropped; text after it is tokenized as after a word.
    Spans (tokens x 2) refer to `replace_vectors(text)`.
    """
    first, runs = rows_of_embedding(loaded), list(map(split_at_vectors, texts))
    begins = pieces(loaded.tokenizer, [run[0] for run in runs], starts=True, offsets=True)
    behind = [run for of_text in runs for run in of_text[1:]]
    following = iter(pieces(loaded.tokenizer, behind, offsets=True, behind="a"))
    rows = []
    for text, (start, spans) in zip(map(replace_vectors, texts), begins, strict=True):
        ids, spans = list(start), list(spans)
        for end, vector in vectors_of(text):
            run, places = next(following)
            ids += [first + vector, *run]
            spans += [(end - 1, end), *((end + a, end + b) for a, b in places)]
        rows.append((np.array(ids, dtype=np.int64), np.array(spans, dtype=np.int64).reshape(-1, 2)))
    return rows


def _encode(loaded: Loaded, text: str, special: bool = True) -> tuple[Ids, Any, str]:
    """Return (ids, character spans, the text that they refer to) of a complete text."""
    if not vectors_of(text):
        coded = loaded.tokenizer(text, return_offsets_mapping=True, add_special_tokens=special)
        return np.array(coded["input_ids"], dtype=np.int64), coded["offset_mapping"], text
    ((ids, spans),) = tokens_with_slots(loaded, [text])
    around = frame(loaded, separated=False) if special else Frame([])
    front, back = np.array(around.front, dtype=np.int64), np.array(around.back, dtype=np.int64)
    # special tokens have empty spans
    spans = np.pad(spans, ((len(front), len(back)), (0, 0)))
    return np.concatenate([front, ids, back]), spans, replace_vectors(text)


def _with_mask(loaded: Loaded, question: ClozePrompt, space: str) -> PromptIds:
    tokenizer = loaded.tokenizer
    ids, spans, text = _encode(loaded, question.before + tokenizer.mask_token + question.after)
    masks = np.flatnonzero(ids == tokenizer.mask_token_id)
    if len(masks) != 1:
        raise ValueError(
            f"item {question.item}, template {question.template}: expected one mask token, found "
            f"{len(masks)}; the text around the mask slot must not hold {tokenizer.mask_token!r}"
        )
    place = int(masks[0])
    if space == "auto":
        return _without_space(ids, place, place, spans, text)
    return PromptIds(ids, place)


def prompt(loaded: Loaded, question: ClozePrompt) -> Ids:
    """Return the tokens before the mask slot in the complete sentence, without special tokens."""
    slot = _open(loaded, question, special=False)
    return slot.ids[: slot.position]


def _open(loaded: Loaded, question: ClozePrompt, special: bool = True) -> PromptIds:
    """Tokenize the complete sentence with a word in the slot, and replace its tokens by one.

    A sentinel (seq2seq models) replaces tokens of the complete sentence (Raffel et al. 2020,
    section 3.1.4): text around the name of the sentinel would be split differently.
    """
    for filler in FILLERS:
        ids, spans, text = _encode(loaded, question.before + filler + question.after, special)
        start = len(replace_vectors(question.before))
        end = start + len(filler)
        inside = [i for i, (a, b) in enumerate(spans) if a < end and b > start]
        # a token that reaches outside has letters of the text around the filler
        if not inside or text[spans[inside[0]][0] : start].strip() or spans[inside[-1]][1] > end:
            continue
        slot = _without_space(ids, inside[0], inside[-1], spans, text)
        if loaded.spec.kind == "seq2seq":
            slot.ids[slot.position] = int(loaded.tokenizer.convert_tokens_to_ids(SENTINEL))
        return slot
    raise ValueError(
        f"item {question.item}, template {question.template}: the slot has no token border to the "
        f"text around it: {question.before[-20:]!r} … {question.after[:20]!r}"
    )


def _without_space(
    ids: Ids, first: int, last: int, offsets: Sequence[tuple[int, int]], text: str
) -> PromptIds:
    """Replace tokens first..last by one slot token; drop a token of only spaces before them, but
    keep a line end (of a chat template)."""
    low, high = offsets[first - 1] if first else (0, 0)
    # a tokenizer that trims spaces from its offsets gives a space token an empty span after it
    before = text[min(low, max(high - 1, 0)) : high]
    if before and not before.strip() and "\n" not in before:
        # a no-break space may be several tokens, one for each of its bytes
        while first and (offsets[first - 1][0], offsets[first - 1][1]) == (low, high):
            first -= 1
    slot = ids[last : last + 1]
    return PromptIds(np.concatenate([ids[:first], slot, ids[last + 1 :]]), first)


def slot_context(before: str, space: str) -> str:
    """Return the character before the slot, which determines how an answer after it is tokenized.

    Empty if the slot starts the text, and under `none`, where answers are tokenized alone.
    """
    # a vector is not text, but the answer after it does not start a text
    return "" if space == "none" else replace_vectors(before, LEADS[0])[-1:]


def refuse_control_texts(loaded: Loaded, prompts: Sequence[ClozePrompt]) -> None:
    """Raise ValueError for the first question whose text contains a special token."""
    refuse_control_tokens(
        loaded.tokenizer,
        [f"{q.before}\n{q.after}" for q in prompts],
        lambda n: f"item {prompts[n].item}, template {prompts[n].template}",
    )


def of_set(name: str) -> Callable[[int], str]:
    """Return a function that names the candidates of a set, for messages."""
    return lambda n: f"candidate {n} of set {name!r}"


def candidate_ids(
    loaded: Loaded,
    labels: Sequence[str],
    space: str,
    before: str,
    name: Callable[[int], str] = "candidate {}".format,
) -> CandidateTokens:
    """Tokenize every label, without special tokens.

    `space` none: tokenized alone. auto: as in the slot after the text `before`; a space before it
    belongs to the label, even if it is a separate token, but a line end does not.
    Labels with an unknown token are kept and listed. Raises ValueError, with the label's name, for
    one without tokens (ignoring its space) or with a special token.
    """
    refuse_control_tokens(loaded.tokenizer, labels, name)
    context = slot_context(before, space)
    blank = context if context.isspace() and context != "\n" else ""
    coded = pieces(
        loaded.tokenizer, [blank + label for label in labels],
        starts=not context, behind="" if blank else context,
    )  # fmt: skip
    tokens = CandidateTokens([])
    unknown = loaded.tokenizer.unk_token_id
    for index, ids in enumerate(coded):
        if not ids or spells_nothing(loaded.tokenizer, labels[index]):
            raise ValueError(
                f"{name(index)} ({labels[index]!r}) has no tokens under this model's tokenizer; "
                "correct the label or leave it out"
            )
        if unknown is not None and unknown in ids:
            tokens.unknown.append(labels[index])
        tokens.ids.append(np.array(ids, dtype=np.int64))
    return tokens

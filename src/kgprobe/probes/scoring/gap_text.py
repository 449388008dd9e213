"""Questions with a gap, as token ids: the gapped sentence, and the candidates that may fill it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from kgprobe.probes.models.load import Loaded
from kgprobe.probes.prompts.templates import fill

Ids = NDArray[np.int64]
SPACES = ("none", "auto")
SENTINEL = "<extra_id_0>"
#: Words that stand in the gap while a sentinel model's sentence is tokenised.
FILLERS = ("x", "it", "one", "two")


@dataclass(frozen=True)
class Question:
    """One prompt: the text around its gap, its candidate set, the indices of its golds."""

    item: str
    template: int
    before: str
    after: str
    candidates: str = ""
    golds: tuple[int, ...] = ()


@dataclass(frozen=True)
class Gapped:
    """A gapped sentence: ids with one mask (or sentinel) token at `place`."""

    ids: Ids
    place: int

    def widened(self, masks: int) -> Ids:
        """The ids with `masks` consecutive mask tokens in the gap."""
        gap = self.ids[self.place : self.place + 1]
        return np.concatenate([self.ids[: self.place], *[gap] * masks, self.ids[self.place + 1 :]])


@dataclass
class Candidates:
    """Token ids of every candidate of a set, and the labels that hold an unknown token."""

    ids: list[Ids]
    unknown: list[str] = field(default_factory=list)

    @property
    def lengths(self) -> list[int]:
        """The distinct numbers of tokens, ascending."""
        return sorted({len(i) for i in self.ids})


def questions(
    items: Sequence[tuple[str, str, str, str, tuple[int, ...]]],
    templates: dict[str, Sequence[tuple[int, str]]],
    upper_first: bool = True,
) -> Iterator[Question]:
    """Every item (item, relation, subject, candidate set, golds) in every template of its relation.

    [X] becomes the subject and [Y] the gap, in one pass. Raises ValueError for a relation without
    template.
    """
    gap = "\ufffc"  # object replacement character: it has no upper case
    for item, relation, subject, candidates, golds in items:
        if not templates.get(relation):
            raise ValueError(f"item {item}: no template for its relation {relation}")
        for index, text in templates[relation]:
            filled = fill(text, subject, gap, upper_first)
            ((start, end),) = filled.answer
            yield Question(item, index, filled.text[:start], filled.text[end:], candidates, golds)


def gapped(
    loaded: Loaded, asked: Sequence[Question], space: str = "none", any_length: bool = False
) -> list[Gapped]:
    """The token ids of every question, with special tokens and one gap token.

    Under `auto` a token of white space alone before the gap is left to the candidate. Raises
    ValueError for a text that holds the mask token itself, or is too long for the model unless
    `any_length`.
    """
    one = _with_sentinel if loaded.spec.kind == "seq2seq" else _with_mask
    rows = [one(loaded, question, space) for question in asked]
    for row, question in zip(rows, asked, strict=True):
        if len(row.ids) > loaded.limit and not any_length:
            raise ValueError(
                f"item {question.item}, template {question.template}: {len(row.ids)} tokens, the "
                f"model takes {loaded.limit}: {(question.before + '…' + question.after)[:80]!r}"
            )
    return rows


def _with_mask(loaded: Loaded, question: Question, space: str) -> Gapped:
    tokenizer = loaded.tokenizer
    text = question.before + tokenizer.mask_token + question.after
    coded = tokenizer(text, return_offsets_mapping=True)
    ids = np.array(coded["input_ids"], dtype=np.int64)
    found = np.flatnonzero(ids == tokenizer.mask_token_id)
    if len(found) != 1:
        raise ValueError(
            f"item {question.item}, template {question.template}: expected one mask token, found "
            f"{len(found)}; the text around the gap must not hold {tokenizer.mask_token!r}"
        )
    place = int(found[0])
    if space == "auto":
        return _without_space(ids, place, place, coded["offset_mapping"], text)
    return Gapped(ids, place)


def _with_sentinel(loaded: Loaded, question: Question, space: str) -> Gapped:
    """The tokens of a complete sentence with a word in the gap, that word's tokens then replaced.

    A sentinel stands for tokens of the complete sentence (Raffel et al. 2020, section 3.1.4): text
    put around the sentinel's name would be split differently.
    """
    gap = _opened(loaded, question, special=True)
    gap.ids[gap.place] = int(loaded.tokenizer.convert_tokens_to_ids(SENTINEL))
    return gap


def prompt(loaded: Loaded, question: Question) -> Ids:
    """The tokens before the gap as the complete sentence has them, without special tokens."""
    gap = _opened(loaded, question, special=False)
    return gap.ids[: gap.place]


def _opened(loaded: Loaded, question: Question, special: bool) -> Gapped:
    """The complete sentence with a word in the gap, whose tokens are one at the gap's place."""
    for filler in FILLERS:
        text = question.before + filler + question.after
        coded = loaded.tokenizer(text, return_offsets_mapping=True, add_special_tokens=special)
        start = len(question.before)
        span = _tokens_of(coded["offset_mapping"], start, start + len(filler), text)
        if span is None:
            continue
        ids = np.array(coded["input_ids"], dtype=np.int64)
        return _without_space(ids, span[0], span[1] - 1, coded["offset_mapping"], text)
    raise ValueError(
        f"item {question.item}, template {question.template}: the gap has no token border to the "
        f"text around it: {question.before[-20:]!r} … {question.after[:20]!r}"
    )


def _tokens_of(
    offsets: Sequence[tuple[int, int]], start: int, end: int, text: str
) -> tuple[int, int] | None:
    """[first, last) of the tokens of text[start:end]; None when one of them reaches outside."""
    inside = [i for i, (a, b) in enumerate(offsets) if a < end and b > start]
    if not inside:
        return None
    low, high = offsets[inside[0]][0], offsets[inside[-1]][1]
    if text[low:start].strip() or high > end:
        return None
    return inside[0], inside[-1] + 1


def _without_space(
    ids: Ids, first: int, last: int, offsets: Sequence[tuple[int, int]], text: str
) -> Gapped:
    """Tokens first..last become one gap token; a token of white space before them goes too."""
    low, high = offsets[first - 1] if first else (0, 0)
    if high > low and not text[low:high].strip():
        first -= 1
    gap = ids[last : last + 1]
    return Gapped(np.concatenate([ids[:first], gap, ids[last + 1 :]]), first)


def candidate_ids(
    loaded: Loaded, labels: Sequence[str], space: str, spaced: bool, name: str = ""
) -> Candidates:
    """Tokens of every label, without special tokens.

    `space` none: tokenised alone. auto: as after a space where the gap has one in front (`spaced`).
    Labels with an unknown token are kept and named. Raises ValueError for one without tokens.
    """
    if space not in SPACES:
        raise ValueError(f"candidate_space {space!r}; legal: {', '.join(SPACES)}")
    lead = "a " if space == "auto" and spaced else ""
    coded = loaded.tokenizer(
        [lead + label for label in labels], add_special_tokens=False, return_offsets_mapping=True
    )
    found = Candidates([])
    unknown = loaded.tokenizer.unk_token_id
    pairs = zip(coded["input_ids"], coded["offset_mapping"], strict=True)
    for index, (ids, offsets) in enumerate(pairs):
        # the space belongs to the label, also where it is a token of its own
        before = len(lead.rstrip())
        own = [t for t, (a, b) in zip(ids, offsets, strict=True) if b > before or not lead]
        if not own:
            raise ValueError(
                f"candidate {index} of set {name!r} ({labels[index]!r}) has no tokens; "
                "leave it out of the set"
            )
        if unknown is not None and unknown in own:
            found.unknown.append(labels[index])
        found.ids.append(np.array(own, dtype=np.int64))
    return found

"""Prompts with trigger tokens as token ids (docs/papers/autoprompt.md, Templates).

    {sub} [T] [T] [T] [P] .          `Template`: text with slots
    [CLS] Paris t1 t2 t3 [MASK] . [SEP]      `encode`: ids, trigger positions, output position

A trigger is a list of ids, not text, so the whole prompt never exists as text: the pieces
between triggers are tokenized separately with the spacing that the full text has.
"""

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kgprobe.probes.models.batching import Ints
from kgprobe.probes.models.load import Loaded, ModelSpec, load_model
from kgprobe.probes.text.encode import Frame, frame, pieces, refuse_control_tokens
from kgprobe.probes.text.mask_slots import SENTINEL
from kgprobe.templates import ANSWER, SEPARATOR, TRIGGER, Parsed, Template, TemplateError

BLANKS = ("\u0120", "\u2581")  # Ġ, ▁


@dataclass(frozen=True)
class Encoded:
    """Prompts of one template as ids, special tokens included.

    `rows` contain the initial token at the `triggers` (n x m positions). `places` (n) are the
    positions whose output predicts [P]: the mask or sentinel itself, for causal models the last
    token. `types` are token types if the model uses them; `cut` examples were truncated.
    """

    rows: list[Ints]
    triggers: Ints
    places: Ints
    types: list[Ints] | None = None
    cut: int = 0

    def __len__(self) -> int:
        return len(self.rows)

    def filled(self, trigger: Sequence[int]) -> list[Ints]:
        """Return the rows with these ids at the trigger positions, in order."""
        if len(trigger) != self.triggers.shape[1]:
            raise ValueError(
                f"{len(trigger)} trigger tokens for a template with {self.triggers.shape[1]}"
            )
        rows = [row.copy() for row in self.rows]
        for row, places in zip(rows, self.triggers, strict=True):
            row[places] = trigger
        return rows


def initial_token(loaded: Loaded) -> int:
    """Return the initial trigger token: the mask; without one the token ` the`, else EOS."""
    if loaded.spec.kind == "masked":
        return int(loaded.tokenizer.mask_token_id)
    ids = pieces(loaded.tokenizer, [" the"])[0]
    unknown = loaded.tokenizer.unk_token_id
    if len(ids) == 1 and ids[0] != unknown:
        return int(ids[0])
    if loaded.tokenizer.eos_token_id is None:
        raise TemplateError(f"{loaded.spec.model}: no initial trigger token; give one by its id")
    return int(loaded.tokenizer.eos_token_id)


def trigger_pieces(loaded: Loaded, template: Template, text: str, habits: str) -> list[int]:
    """Tokenize a trigger written as text as it would appear in the template.

    After other text its first word keeps its space; a trigger at the start of the template (or of
    its second segment) is encoded as the start of a text, with a space if `encode` adds one.
    """
    starts = template.opened
    blank = not starts
    if template.layout[0] == TRIGGER:
        blank = frame(loaded, template.separated, habits == "released").prefix_space
    ids: list[int] = pieces(loaded.tokenizer, [" " * blank + text.strip()], starts)[0]
    return ids


def encode(
    loaded: Loaded,
    template: Template,
    fields: Sequence[Mapping[str, str]],
    initial: int | None = None,
    truncate: str = "",
    habits: str = "default",
) -> Encoded:
    """Tokenize the prompts of all examples; the tokenizer or BOS policy adds special tokens.

    `truncate` names the field that loses words from its end if a prompt is too long. Under
    `habits: released` byte-level BPE gets a space before the text, and the first separator has
    token type 1 (docs/papers/autoprompt.md, Decisions); by default both are as the tokenizer
    does. Raises TemplateError for an unknown field, ValueError for a prompt that is too long or a
    field that contains a special token other than the mask.
    """
    if template.kind != loaded.spec.kind:
        raise TemplateError(
            f"template {template.text!r} is for {template.kind} models, "
            f"{loaded.spec.model} is {loaded.spec.kind}"
        )
    _check_fields(template, fields, truncate)
    refuse_control_tokens(
        loaded.tokenizer,
        ["\n".join(example[field] for field in template.fields) for example in fields],
        "example {}".format,
        # contexts of T-REx contain masks at other mentions of the object
        meant=loaded.tokenizer.mask_token,
    )
    borders = frame(loaded, template.separated, habits == "released")
    encoder = _Encoder(
        loaded, template, initial_token(loaded) if initial is None else initial, borders
    )
    rows = encoder.rows(fields)
    long = [i for i, row in enumerate(rows) if len(row.ids) > loaded.limit]
    if long and not truncate:
        raise ValueError(
            f"example {long[0]}: {len(rows[long[0]].ids)} tokens, {loaded.spec.model} takes "
            f"{loaded.limit} ({len(long)} examples are too long); name the field to cut: truncate"
        )
    for i in long:
        rows[i] = encoder.truncated(fields[i], truncate, i)
    return Encoded(
        [r.ids for r in rows],
        np.array([r.triggers for r in rows], dtype=np.int64).reshape(len(rows), template.triggers),
        np.array([r.position for r in rows], dtype=np.int64),
        [r.types for r in rows] if borders.typed else None,
        len(long),
    )


@dataclass
class _Row:
    ids: Ints
    types: Ints
    triggers: list[int]
    position: int


def _check_fields(template: Template, fields: Sequence[Mapping[str, str]], truncate: str) -> None:
    if truncate and truncate not in template.fields:
        raise TemplateError(
            f"truncate {truncate!r}: template {template.text!r} has the fields "
            f"{', '.join(template.fields)}"
        )
    for number, example in enumerate(fields):
        missing = [name for name in template.fields if name not in example]
        if missing:
            raise TemplateError(
                f"template {template.text!r}: example {number} has no field {missing[0]!r}; "
                f"valid: {', '.join(sorted(example))}"
            )


@dataclass(frozen=True)
class _Encoder:
    """A template for a model: its initial trigger token, and the special tokens around it."""

    loaded: Loaded
    template: Template
    token: int
    borders: Frame

    def rows(self, fields: Sequence[Mapping[str, str]]) -> list[_Row]:
        """Build the prompts of examples, however long."""
        template, tokenizer = self.template, self.loaded.tokenizer
        slot = {"masked": tokenizer.mask_token, "seq2seq": SENTINEL}.get(template.kind, "")
        slot_id = tokenizer.convert_tokens_to_ids(slot) if slot else -1
        pieced: list[Sequence[tuple[Ints, int] | None]] = []
        for number, part in enumerate(template.layout):
            if not isinstance(part, Parsed):
                pieced.append([None] * len(fields))
                continue
            filled = [template.filled(number, {**row, ANSWER: slot}) for row in fields]
            blank = " " if self.borders.prefix_space and number == 0 else ""
            # a space before the text shifts the end of the mask slot
            ends = [-1 if end < 0 else end + len(blank) for _, end in filled]
            texts = [blank + text.lstrip(" ") if blank else text for text, _ in filled]
            pieced.append(self._with_slot(texts, ends, template.starts(number), slot_id))
        return [self._row([row[i] for row in pieced]) for i in range(len(fields))]

    def _with_slot(
        self, texts: Sequence[str], ends: Sequence[int], starts: bool, slot_id: int
    ) -> list[tuple[Ints, int]]:
        """Tokenize every text; return (ids, index of the mask slot that ends at this character, -1:
        none). The token of the mask slot may include spaces beside it."""
        rows = []
        coded = pieces(self.loaded.tokenizer, texts, starts, offsets=True)
        for (ids, offsets), end in zip(coded, ends, strict=True):
            # located by position, since the fields may contain masks
            hits = [k for k, (a, b) in enumerate(offsets) if a < end <= b and ids[k] == slot_id]
            if end >= 0 and not hits:
                raise TemplateError(
                    f"template {self.template.text!r}: [P] is not a token of its own in "
                    f"{texts[0][:60]!r}"
                )
            rows.append((np.array(ids, dtype=np.int64), hits[0] if end >= 0 else -1))
        return rows

    def _row(self, pieced: Sequence[tuple[Ints, int] | None]) -> _Row:
        borders = self.borders
        ids, types = list(borders.front), list(borders.types_front)
        triggers: list[int] = []
        place, second = -1, False
        for part, piece in zip(self.template.layout, pieced, strict=True):
            if part == SEPARATOR:
                ids += borders.middle
                types += borders.types_middle
                second = True
                continue
            if part == TRIGGER:
                triggers.append(len(ids))
                added = [self.token]
            elif piece is None:  # [P] of a causal model is not fed
                assert part == ANSWER
                continue
            else:
                place = len(ids) + piece[1] if piece[1] >= 0 else place
                added = piece[0].tolist()
            ids += added
            types += [borders.types[second]] * len(added)
        if self.template.kind == "causal":
            place = len(ids) - 1
            if place < 0:
                raise TemplateError(
                    f"template {self.template.text!r}: an example leaves nothing to read before "
                    "[P]; use a BOS policy that adds a token"
                )
        ids += borders.back
        types += borders.types_back
        return _Row(np.array(ids, dtype=np.int64), np.array(types, dtype=np.int64), triggers, place)

    def truncated(self, fields: Mapping[str, str], name: str, number: int) -> _Row:
        """Build the prompt with as many words of the field `name` as fit, by binary search."""
        words, limit = fields[name].split(), self.loaded.limit

        def attempt(kept: int) -> _Row:
            return self.rows([{**fields, name: " ".join(words[:kept])}])[0]

        low, high = 0, len(words)
        best = attempt(0)
        if len(best.ids) > limit:
            raise ValueError(
                f"example {number}: {len(best.ids)} tokens without any word of {name!r}; "
                f"{self.loaded.spec.model} takes {limit}"
            )
        while high - low > 1:
            middle = (low + high) // 2
            row = attempt(middle)
            if len(row.ids) <= limit:
                low, best = middle, row
            else:
                high = middle
        return best


def is_single(tokenizer: Any, word: str) -> bool:
    """Return whether `word` after a space is one token (WordPiece, BPE, Unigram)."""
    (ids,) = pieces(tokenizer, [f" {word}"])
    return len(ids) == 1 and (ids[0] != tokenizer.unk_token_id or word == tokenizer.unk_token)


def single_for(specs: Sequence[ModelSpec], words: Sequence[str]) -> list[str]:
    """Return the `words` that are one token for every model, in order."""
    left = list(words)
    for spec in specs:
        tokenizer = load_model(spec).tokenizer
        left = [word for word in left if is_single(tokenizer, word)]
    return left


class LabelError(ValueError):
    """A word is not a single token; the message lists its tokens and the closest single tokens."""


def label_pieces(loaded: Loaded, template: Template, words: Sequence[str]) -> list[Ints]:
    """Tokenize every word as it would appear at [P], with a space before it if the template has it.

    Returns several ids if a word is not a single token. Raises ValueError for a special token.
    """
    refuse_control_tokens(loaded.tokenizer, words, lambda n: f"label {words[n]!r}")
    lead = " " if template.blank else ""
    rows = pieces(loaded.tokenizer, [lead + word for word in words], template.opens)
    return [np.array(ids, dtype=np.int64) for ids in rows]


def label_token(loaded: Loaded, template: Template, word: str) -> int:
    """Return the single token of `word` at [P].

    Raises LabelError for a word of several tokens, none, or an unknown token.
    """
    (ids,) = label_pieces(loaded, template, [word])
    tokenizer = loaded.tokenizer
    if len(ids) == 1 and ids[0] != tokenizer.unk_token_id:
        return int(ids[0])
    shown = " ".join(map(repr, tokenizer.convert_ids_to_tokens(ids.tolist())))
    raise LabelError(
        f"{word!r} is not a single token of {loaded.spec.model} at [P] of {template.text!r}: its "
        f"pieces are {shown or 'none'}; nearest single tokens: "
        + (", ".join(_nearest(loaded, template, word)) or "none")
    )


def _nearest(loaded: Loaded, template: Template, word: str) -> list[str]:
    """Return similarly spelled vocabulary words, with or without a space as [P] requires."""
    vocabulary = loaded.tokenizer.get_vocab()
    marked = any(token.startswith(BLANKS) for token in vocabulary)
    tokens = sorted(
        token
        for token in vocabulary
        if not token.startswith("##") and (not marked or token.startswith(BLANKS) == template.blank)
    )
    surfaces = dict.fromkeys(token.lstrip("".join(BLANKS)) for token in tokens)
    return [repr(t) for t in difflib.get_close_matches(word.strip(), list(surfaces), 5, 0.5)]

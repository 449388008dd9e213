"""Texts with slots: the common syntax of sentences, mask slots, searched prompts and vectors.

    [X] was born in [Y] .                    subject and answer; {sub} and [P] mean the same
    {context} [SEP] {sub} [T]x5 [P] .        fields, five trigger tokens, two segments
    [X] is a particular [MASK] .             a mask slot next to [X] and [Y], which are words
    Dante <mark(0)> <mark(1)> [MASK] .       vectors in place of words: one private character each

A text is parsed once and filled in one pass, so that slot names inside values are not filled
again; spans give the position of each value. A slot without a value is left as it is.
"""

import contextlib
import functools
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

#: Names of slots. A field's slot has the field's name, {sub} among them.
SUBJECT, ANSWER, TRIGGER, SEPARATOR, MASK_SLOT = "sub", "[P]", "[T]", "[SEP]", "[MASK]"
#: Key of the span of a prefix that is not part of the sentence; no text can have such a slot.
FRONT = "in front"
KINDS = ("masked", "causal", "seq2seq")
#: Prompt forms that add text around a template; `templates` is the prompt without any.
FORMS = ("question", "chat", "few", "few_shuffled")
#: Content-free subjects: the score of an answer after them does not depend on the fact.
NO_SUBJECTS = ("it", "this", "something")
#: Private-use characters that stand for vectors: from the last plane, because labels contain those
#: of the first (icons of a font).
FIRST, LAST = 0x100000, 0x10FFFD
_VECTOR = f"[{chr(FIRST)}-{chr(LAST)}]"
_SLOT = re.compile(rf"(\[(?:[XYPT]|SEP|MASK)\]|\{{[^{{}}]*\}}|{_VECTOR})")
_MARK = re.compile(rf"\s*({_VECTOR})")
#: half of a character outside the BMP, or a byte of a command line that is not UTF-8
SURROGATE = re.compile(r"[\ud800-\udfff]")
_STOP = re.compile(r"[\s.,;:!?]*")
_RUN = re.compile(r"\[T\](?:x\d+)?(?:\s*\[T\](?:x\d+)?)*")
_REPEATED = re.compile(r"\[T\]x(\d+)")
#: Adjacent slots: the paper writes `{sub}[T][P].` and implies spaces between them.
_TOUCHING = re.compile(r"(?<=[\]}])(?=\[[TP]\]|\[SEP\]|\{)")
#: Byte-level BPE writes a byte as a character: itself where it prints, else one from U+0100 on.
_PRINTED = (*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100))
_BYTES = {chr(byte): byte for byte in _PRINTED}
_BYTES |= {chr(0x100 + n): b for n, b in enumerate(b for b in range(256) if b not in _PRINTED)}
#: Special tokens written in released templates; here the model's tokenizer adds them.
_SPECIAL = re.compile(r"\[CLS\]|\[PAD\]|\[MASK\]|<s>|</s>|<mask>|<pad>|\[T\]x")


class TemplateError(ValueError):
    """A template is invalid; the message names it, the error and what is expected."""


class Filled(NamedTuple):
    """A text and, for each filled slot, the character spans [start, end) of its values."""

    text: str
    spans: dict[str, list[tuple[int, int]]]

    @property
    def subject(self) -> list[tuple[int, int]]:
        """The spans of [X]."""
        return self.spans[SUBJECT]

    @property
    def answer(self) -> list[tuple[int, int]]:
        """The spans of [Y]."""
        return self.spans[ANSWER]

    @property
    def starts(self) -> int:
        """The character where the sentence starts: after the prefix, if there is one."""
        return self.spans[FRONT][0][1] if FRONT in self.spans else 0

    def behind(self, front: str) -> "Filled":
        """Return the sentence after a prefix, which is not parsed for slots; spans are shifted.

        >>> fill("[X] is in [Y].", "rome", "Italy").behind("{sub}: ").subject
        [(7, 11)]
        """
        if not front:
            return self
        n = len(front)
        moved = {slot: [(s + n, e + n) for s, e in spans] for slot, spans in self.spans.items()}
        return Filled(front + self.text, {**moved, FRONT: [(0, len(front))]})

    def around(self, slot: str) -> tuple[str, str]:
        """Return the text before and after the only value of a slot."""
        ((start, end),) = self.spans[slot]
        return self.text[:start], self.text[end:]


@dataclass(frozen=True)
class Parsed:
    """A text split at its slots: the initial text, then (slot, slot as written, text after it)."""

    first: str
    parts: tuple[tuple[str, str, str], ...]

    @property
    def slots(self) -> list[str]:
        """The names of its slots, in order."""
        return [slot for slot, _, _ in self.parts]

    def filled(self, values: Mapping[str, str], upper_first: bool = False) -> Filled:
        """Fill every slot that has a value, in one pass.

        `upper_first` upper-cases only the first character; if that changes its length ("ß" to
        "SS"), the spans are shifted.
        """
        text = self.first
        spans: dict[str, list[tuple[int, int]]] = {}
        for slot, written, behind in self.parts:
            if slot in values:
                start = len(text)
                text += values[slot]
                spans.setdefault(slot, []).append((start, len(text)))
                text += behind
            else:
                text += written + behind
        if upper_first and text:
            first = text[0].upper()
            if shift := len(first) - 1:
                for slot, pairs in spans.items():
                    spans[slot] = [(s + shift * (s > 0), e + shift * (e > 0)) for s, e in pairs]
            text = first + text[1:]
        return Filled(text, spans)


def parse(text: str) -> Parsed:
    """Split a text at its slots.

    >>> parse("[X] is in {place}").slots
    ['sub', 'place']
    """
    first, *rest = _SLOT.split(text)
    names = {"[X]": SUBJECT, "[Y]": ANSWER}
    parts = [
        (slot[1:-1] if slot[0] == "{" else names.get(slot, slot), slot, behind)
        for slot, behind in zip(rest[::2], rest[1::2], strict=True)
    ]
    return Parsed(first, tuple(parts))


def sentence(text: str, where: str = "", error: type[ValueError] = TemplateError) -> Parsed:
    """Parse a relation's template. Raises `error` (with `where`) unless it has one [X], one [Y]."""
    if SURROGATE.search(text):
        raise error(f"{where}{': ' * bool(where)}{text!r} is not UTF-8; expected text")
    parsed = parse(text)
    counts = [parsed.slots.count(slot) for slot in (SUBJECT, ANSWER)]
    if counts != [1, 1]:
        raise error(
            f"{where}{': ' * bool(where)}expected one [X] and one [Y], found {counts[0]} and "
            f"{counts[1]} in {text!r}; [X] stands for the subject, [Y] for the answer"
        )
    return parsed


_known = functools.lru_cache(maxsize=4096)(sentence)


def fill(template: str, subject: str, answer: str, upper_first: bool = True) -> Filled:
    """Fill a relation's template with subject and answer, see `Parsed.filled`.

    Raises TemplateError like `sentence`.

    >>> fill("[Y] is the capital of [X].", "France", "paris").text
    'Paris is the capital of France.'
    """
    return _known(template).filled({SUBJECT: subject, ANSWER: answer}, upper_first)


def answer_is_last(text: str) -> bool:
    """Whether only punctuation follows [Y], so that a causal model can complete the template.

    >>> answer_is_last("[X] was born in [Y] ."), answer_is_last("[X] plays [Y] music .")
    (True, False)
    """
    parts = parse(text).parts
    return bool(parts) and parts[-1][0] == ANSWER and bool(_STOP.fullmatch(parts[-1][2]))


def cut(text: str) -> tuple[str, str]:
    """Return (the text up to the end of the answer slot, the rest)."""
    size = next(match.end() for match in _SLOT.finditer(text) if match[0] in ("[Y]", ANSWER))
    return text[:size], text[size:]


def question(text: str) -> str:
    """Turn a template into a question: "what" replaces the answer, "?" the final punctuation.

    >>> question("[Y] is the capital of [X] ."), question("[X] plays [Y] music.")
    ('What is the capital of [X]?', '[X] plays what music?')
    """
    first, last = cut(text.strip())
    before = first.removesuffix("[Y]")
    return f"{before}{'what' if before.strip() else 'What'}{last.rstrip(' .;:!?,')}?"


def stop(text: str) -> str:
    """Return the text after [Y] if it is only punctuation; otherwise a full stop.

    >>> stop("[X] was born in [Y] ."), stop("[Y] is the capital of [X] .")
    (' .', '.')
    """
    return cut(text.rstrip())[1] if answer_is_last(text) else "."


def as_prompt_template(text: str) -> str:
    """Return a sentence in the syntax of prompt templates: {sub} for [X], [P] for [Y]."""
    return parse(text).filled({SUBJECT: "{sub}", ANSWER: ANSWER}).text


def expand_triggers(text: str) -> str:
    """Return the text with `[T]x5` expanded to five triggers, and likewise for other numbers."""
    return _REPEATED.sub(lambda match: " ".join([TRIGGER] * int(match[1])), text)


def runs_of(text: str) -> list[int]:
    """Return the lengths of the runs of adjacent triggers."""
    return [expand_triggers(run).count(TRIGGER) for run in _RUN.findall(text)]


def resized(text: str, sizes: Iterable[int]) -> str:
    """Return the template with the given number of triggers in each run."""
    left = iter(sizes)
    return _RUN.sub(lambda _: f"{TRIGGER}x{next(left)}", text)


@dataclass(frozen=True)
class Template:
    """A prompt template. `layout`: triggers, separator and the texts between them, in order."""

    text: str
    kind: str
    layout: tuple[Parsed | str, ...]
    triggers: int
    fields: tuple[str, ...]
    #: whether a space precedes [P], so that its words use their form with a leading space
    blank: bool
    #: whether [P] is the first thing in its segment
    opens: bool

    @classmethod
    def parse(cls, text: str, kind: str) -> "Template":
        """Parse a template for a kind of model (masked, causal, seq2seq).

        `[T]x5` stands for five triggers; a template may have none. A space is added between
        adjacent slots. For a causal model [P], which is not an input, is a layout item of its own.
        Raises TemplateError without [P], with two, and for a causal model unless [P] is last.

        >>> Template.parse("{sub}[T]x2[P].", "masked").text
        '{sub} [T] [T] [P].'
        """
        if kind not in KINDS:
            raise TemplateError(f"unknown kind {kind!r} of model; valid: {', '.join(KINDS)}")
        shown = _TOUCHING.sub(" ", expand_triggers(as_prompt_template(text.strip())))
        parsed = parse(shown)
        _check(shown, parsed, kind)
        apart = (TRIGGER, SEPARATOR, *([ANSWER] if kind == "causal" else []))
        segment = cut(shown)[0].removesuffix(ANSWER).rsplit(SEPARATOR, 1)[-1]
        return cls(
            shown,
            kind,
            tuple(_layout(parsed, apart)),
            parsed.slots.count(TRIGGER),
            tuple(dict.fromkeys(s for s, written, _ in parsed.parts if written[0] == "{")),
            segment.endswith(" ") and bool(segment.strip()),
            not segment.strip(),
        )

    @property
    def separated(self) -> bool:
        """Whether the template has two segments."""
        return SEPARATOR in self.layout

    @property
    def opened(self) -> bool:
        """Whether the first trigger is at the start of the text or of the second segment."""
        return TRIGGER in self.layout and self.starts(self.layout.index(TRIGGER))

    def starts(self, number: int) -> bool:
        """Return whether part `number` is the first of a segment."""
        return number == 0 or self.layout[number - 1] == SEPARATOR

    def filled(self, number: int, values: Mapping[str, str]) -> tuple[str, int]:
        """Return (text of part `number`, end position of its answer or -1).

        Spaces are dropped at the start of a segment, and at the end of a part unless it is the
        last: a space before a trigger or answer belongs to that, as in byte-level vocabularies.
        """
        part = self.layout[number]
        assert isinstance(part, Parsed)
        text, spans = part.filled(values)
        kept = text.lstrip(" ") if self.starts(number) else text
        end = spans[ANSWER][0][1] - len(text) + len(kept) if ANSWER in spans else -1
        return (kept.rstrip(" ") if number + 1 < len(self.layout) else kept), end


def _check(text: str, parsed: Parsed, kind: str) -> None:
    where = f"template {text!r}"
    hand = _SPECIAL.search(text)
    if hand:
        raise TemplateError(
            f"{where}: {hand.group()} does not belong into a template; special tokens come from "
            "the tokenizer, [P] is the predicted token, [T]x5 five triggers"
        )
    if parsed.slots.count(ANSWER) != 1:
        raise TemplateError(f"{where}: expected one [P], found {parsed.slots.count(ANSWER)}")
    if "" in parsed.slots or re.search("[{}]", parsed.first + "".join(p[2] for p in parsed.parts)):
        raise TemplateError(f"{where}: a field is written {{name}}, with both braces")
    if kind == "causal" and (after := cut(text)[1]):
        raise TemplateError(
            f"{where}: [P] must be last for a causal model, which reads from left to right; "
            f"{after!r} follows it"
        )
    if parsed.slots.count(SEPARATOR) > (kind == "masked"):
        raise TemplateError(f"{where}: [SEP] is for masked models, and once at most")


def _layout(parsed: Parsed, apart: tuple[str, ...]) -> list[Parsed | str]:
    """Split into the slots `apart` and the texts between them, without texts that are blank."""
    layout: list[Parsed | str] = [Parsed(parsed.first, ())]
    for part in parsed.parts:
        slot, _, behind = part
        last = layout[-1]
        if slot in apart:
            layout += [slot, Parsed(behind, ())]
        elif isinstance(last, Parsed):
            layout[-1] = Parsed(last.first, (*last.parts, part))
    return [text for text in layout if isinstance(text, str) or text.parts or text.first.strip()]


def mark(vector: int) -> str:
    """Return the character that stands for the inserted vector of this number in a text."""
    if not 0 <= vector <= LAST - FIRST:
        raise TemplateError(f"vector {vector}: valid are 0 to {LAST - FIRST}")
    return chr(FIRST + vector)


def marks(first: int, count: int) -> str:
    """Return the characters of `count` consecutive vectors, separated by spaces."""
    return " ".join(mark(first + k) for k in range(count))


def vectors_of(text: str) -> list[tuple[int, int]]:
    """Return (end position, number) of every vector in a text, in order."""
    return [(match.end(), ord(match[1]) - FIRST) for match in _MARK.finditer(text)]


def replace_vectors(text: str, holder: str = r"\1") -> str:
    """Return the text with `holder` in place of every vector (default: the vector itself).

    A vector is a token of its own, so whitespace before it is removed.
    """
    return _MARK.sub(holder, text)


def split_at_vectors(text: str) -> list[str]:
    """Return the texts before, between and after the vectors of a text."""
    return re.split(_VECTOR, replace_vectors(text))


def word_of(token: str) -> str:
    """Return a token of a vocabulary as text, without the mark of a word's start.

    >>> word_of("\u0120caf\u00c3\u00a9"), word_of("\u2581Rome"), word_of("##land")
    ('café', 'Rome', '##land')
    """
    text = token
    with contextlib.suppress(KeyError, UnicodeDecodeError):  # not of byte-level BPE
        text = bytes(_BYTES[character] for character in token).decode()
    is_shown = text.isprintable() and bool(text.strip())
    return (text if is_shown else token).lstrip(" \u0120\u2581")

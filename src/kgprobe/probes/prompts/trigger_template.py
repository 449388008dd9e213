"""The text of a prompt with slots: fields, trigger tokens, the predicted token, two segments.

    {sent} {sub} [T]x5 [P] .        {prem} [P] [T] [T] {hyp}        {context} [SEP] {sub} [T] [P] .

Source: autoprompt.md, section 3, Template.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

KINDS = ("masked", "causal", "seq2seq")
TRIGGER, PREDICT, SEPARATOR = "[T]", "[P]", "[SEP]"
_REPEATED = re.compile(r"\[T\]x(\d+)")
_SLOT = re.compile(r"(\[T\]|\[P\]|\[SEP\]|\{[^{}]*\})")
#: Written by hand in released templates; here the model's tokenizer adds them.
_SPECIAL = re.compile(r"\[CLS\]|\[PAD\]|\[MASK\]|<s>|</s>|<mask>|<pad>|\[T\]x")


class TemplateError(ValueError):
    """A template cannot be used; the message names it, what is wrong and what would be right."""


@dataclass(frozen=True)
class Piece:
    """Text between triggers: (kind, value) with kind text, field or predict."""

    parts: tuple[tuple[str, str], ...]

    def filled(
        self, fields: Mapping[str, str], gap: str, tight_left: bool, tight_right: bool
    ) -> tuple[str, int]:
        """(the text with `gap` for [P], the character where the gap ends or -1), in one pass.

        A value that holds a slot's name is not filled again. Blanks are dropped at a tight end:
        one before a trigger or an answer belongs to that, as in every byte-level vocabulary.
        """
        text, end = "", -1
        for kind, value in self.parts:
            text += fields[value] if kind == "field" else gap if kind == "predict" else value
            end = len(text) if kind == "predict" else end
        if tight_left:
            kept = text.lstrip(" ")
            end -= len(text) - len(kept) if end >= 0 else 0
            text = kept
        return (text.rstrip(" ") if tight_right else text), end


@dataclass(frozen=True)
class Template:
    """A parsed template. `layout` is its pieces, triggers and separator in order."""

    text: str
    kind: str
    layout: tuple[Piece | str, ...]
    triggers: int
    fields: tuple[str, ...]
    #: whether a blank stands before [P], so that its words take their blank form
    blank: bool
    #: whether nothing at all stands before [P] in its segment
    opens: bool

    @classmethod
    def parse(cls, text: str, kind: str) -> "Template":
        """The template of `text` for a kind of model (masked, causal, seq2seq).

        `[T]x5` stands for five triggers, `[X]` for {sub}, `[Y]` for [P]; a template may have no
        trigger. Between slots that touch a blank is understood: the paper writes `{sub}[T][P].`
        Raises TemplateError without [P], with two, and for a causal model unless [P] is last.

        >>> Template.parse("{sub}[T]x2[P].", "masked").text
        '{sub} [T] [T] [P].'
        """
        if kind not in KINDS:
            raise TemplateError(f"unknown kind {kind!r} of model; legal: {', '.join(KINDS)}")
        shown = _canonical(text)
        slots = _SLOT.findall(shown)
        _check(shown, kind, slots)
        before = shown[: shown.index(PREDICT)]
        fields = tuple(dict.fromkeys(s[1:-1] for s in slots if s.startswith("{")))
        segment = before.rsplit(SEPARATOR, 1)[-1]
        return cls(
            shown,
            kind,
            _layout(shown, kind),
            slots.count(TRIGGER),
            fields,
            segment.endswith(" ") and bool(segment.strip()),
            not segment.strip(),
        )

    @property
    def separated(self) -> bool:
        """Whether the template has two segments."""
        return SEPARATOR in self.layout

    @property
    def opened(self) -> bool:
        """Whether the first trigger opens the text, or the second segment."""
        return TRIGGER in self.layout and self.starts(self.layout.index(TRIGGER))

    def starts(self, number: int) -> bool:
        """Whether part `number` opens a text of its own."""
        return number == 0 or self.layout[number - 1] == SEPARATOR

    def tight(self, number: int) -> tuple[bool, bool]:
        """Whether blanks at the left and at the right end of piece `number` are dropped."""
        return self.starts(number), number + 1 < len(self.layout)


def _canonical(text: str) -> str:
    text = text.replace("[X]", "{sub}").replace("[Y]", PREDICT).strip()
    text = _REPEATED.sub(lambda m: " ".join([TRIGGER] * int(m.group(1))), text)
    return re.sub(r"(?<=[\]}])(?=\[[TP]\]|\[SEP\]|\{)", " ", text)


def _check(text: str, kind: str, slots: list[str]) -> None:
    where = f"template {text!r}"
    hand = _SPECIAL.search(text)
    if hand:
        raise TemplateError(
            f"{where}: {hand.group()} does not belong into a template; special tokens come from "
            "the tokenizer, [P] is the predicted token, [T]x5 five triggers"
        )
    if slots.count(PREDICT) != 1:
        raise TemplateError(f"{where}: expected one [P], found {slots.count(PREDICT)}")
    rest = _SLOT.sub("", text)
    if "{" in rest or "}" in rest or "{}" in slots:
        raise TemplateError(f"{where}: a field is written {{name}}, with both braces")
    if kind == "causal" and not text.endswith(PREDICT):
        after = text[text.index(PREDICT) + len(PREDICT) :]
        raise TemplateError(
            f"{where}: [P] must be last for a causal model, which reads from left to right; "
            f"{after!r} follows it"
        )
    if slots.count(SEPARATOR) > (kind == "masked"):
        raise TemplateError(f"{where}: [SEP] is for masked models, and once at most")


def _layout(text: str, kind: str) -> tuple[Piece | str, ...]:
    found: list[Piece | str] = []
    parts: list[tuple[str, str]] = []

    def close() -> None:
        # blanks between two triggers are the triggers' own
        if any(kind != "text" or value.strip() for kind, value in parts):
            found.append(Piece(tuple(parts)))
        parts.clear()

    for token in _SLOT.split(text):
        if token in (TRIGGER, SEPARATOR):
            close()
            found.append(token)
        elif token == PREDICT and kind == "causal":
            close()
            found.append(PREDICT)
        elif token == PREDICT:
            parts.append(("predict", ""))
        elif _SLOT.fullmatch(token):
            parts.append(("field", token[1:-1]))
        elif token:
            parts.append(("text", token))
    close()
    return tuple(found)

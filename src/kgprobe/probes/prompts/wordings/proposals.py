"""Wordings that a model proposes itself, out of training facts; a judge chooses among them on dev.

    causal    Rome, Italy: Rome is located in Italy.        facts of other relations, worded
              Paris, France: Paris ...                      the model goes on
    masked    Paris [MASK] [MASK] [MASK] France .           one mask to four between the names
    seq2seq   Paris <extra_id_0> France .

A text becomes a wording where subject and object stand in it once each and something stands between
them. What holds another object of the relation is a leak: it is filtered, and counted.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from kgprobe.probes.prompts.wordings.demonstrations import TrainingFact, sentence
from kgprobe.probes.scoring.fill.predict import Blank, FillSettings
from kgprobe.templates import Template, TemplateError, parse

#: characters of a wording beyond which it is no wording any more
LONGEST = 120
#: stands where tokens end within a character
BROKEN = "\ufffd"
#: masks between the names
MASKS = (1, 2, 3, 4)
REASONS = ("subject", "object", "between", "leak", "slot", "long")


@dataclass
class Proposed:
    """Wordings by how many facts they came from, and how many texts were refused for what reason.

    `subject`, `object`: not in it exactly once; `between`: nothing between them; `leak`: it holds
    another object of the relation; `slot`: it holds signs that no template may have, or half of a
    character; `long`: over LONGEST characters.
    """

    wordings: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)

    def first(self, most: int) -> list[str]:
        """The commonest wordings; among equal ones the shortest, then by text."""
        order = sorted(self.wordings, key=lambda text: (-self.wordings[text], len(text), text))
        return order[:most]


def blanks(
    kind: str, facts: Sequence[TrainingFact], patterns: Sequence[tuple[str, TrainingFact]] = ()
) -> list[Blank]:
    """What the model is asked to fill for every fact; `patterns` are facts of other relations with
    their wordings as sentences."""
    if kind != "causal":
        masks = MASKS if kind == "masked" else ()
        return [
            Blank(str(i), 0, f"[X] [Y] {fact.label} .", fact.fields["sub"], masks=masks)
            for i, fact in enumerate(facts)
        ]
    front = "".join(
        f"{fact.fields['sub']}, {fact.label}: {sentence(whole, fact)}\n" for whole, fact in patterns
    )
    return [
        Blank(str(i), 0, "[X] [Y]", f"{front}{sub}, {fact.label}: {sub}")
        for i, (sub, fact) in enumerate((fact.fields["sub"], fact) for fact in facts)
    ]


def settings(kind: str, beams: int, most_tokens: int) -> FillSettings:
    """How blanks are filled: to the end of a sentence, or as many masks as there are."""
    length = "gold" if kind == "masked" else "free"
    strategy = {"strategy": "beam", "beams": beams} if kind == "masked" else {"beams": beams}
    return FillSettings(length=length, upper_first=False, most_tokens=most_tokens, **strategy)


def text_of(kind: str, fact: TrainingFact, filled: str) -> str:
    """The whole text of a filling."""
    tail = "" if kind == "causal" else f" {fact.label} ."
    return f"{fact.fields['sub']} {filled.strip()}{tail}"


def mined(texts: Iterable[tuple[TrainingFact, str]], golds: Iterable[str]) -> Proposed:
    """The wordings in texts about facts; `golds` are all objects of the relation."""
    proposed, names = Proposed(), sorted(set(golds))
    for fact, text in texts:
        wording, reason = _mined(text, fact.fields["sub"], fact.label, names)
        if reason:
            proposed.refused[reason] += 1
        else:
            proposed.wordings[wording] += 1
    return proposed


def _mined(text: str, subject: str, label: str, golds: Sequence[str]) -> tuple[str, str]:
    """(wording, "") or ("", why there is none)."""
    text = " ".join(text.split())
    if parse(text).slots or BROKEN in text:
        return "", "slot"
    # the longer name first: one may be a part of the other
    names = {"[X]": subject, "[Y]": label}
    for slot in sorted(names, key=lambda slot: -len(names[slot])):
        places = _places(text, names[slot])
        if len(places) != 1:
            return "", {"[X]": "subject", "[Y]": "object"}[slot]
        text = text[: places[0]] + slot + text[places[0] + len(names[slot]) :]
    first, last = sorted((text.index("[X]"), text.index("[Y]")))
    if not any(c.isalnum() for c in text[first + 3 : last]):
        return "", "between"
    if any(_places(text, gold) for gold in golds):
        return "", "leak"
    if len(text) > LONGEST:
        return "", "long"
    try:
        Template.parse(text, "masked")
    except TemplateError:
        return "", "slot"
    return text, ""


def _places(text: str, name: str) -> list[int]:
    """Where a name stands as words of their own, without regard to case."""
    pattern = rf"(?<![\w\[]){re.escape(name)}(?![\w\]])"
    return [match.start() for match in re.finditer(pattern, text, re.IGNORECASE)]

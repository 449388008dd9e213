"""Published sets of wordings: one file per relation with templates and weights (LPAQA), one file
with a template per relation (LAMA, LPAQA top-1, the lists of OptiPrompt's release).

    P19.jsonl      {"template": "[X] was born in [Y] .", "weight": 0.0036}
    top-1 file     {"relation": "P19", "template": "[X] was born in [Y] ."}

The files are read where they lie; none of them is part of the project.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kgprobe.sheets import json_rows
from kgprobe.templates import ANSWER, cut, parse, sentence


class WordingError(ValueError):
    """A file of wordings cannot be used; the message names file, line and remedy."""


@dataclass(frozen=True)
class PublishedTemplate:
    """A template with [X] and [Y], and its weight in an ensemble."""

    text: str
    weight: float = 1.0


@dataclass
class WordingSet:
    """Wordings of one relation that a kind of model can use; their weights sum to 1.

    `object_first` of the `total` were dropped, and lost `lost` of the weight; `cut` lost what
    stood behind the answer (`cut_words`: more than a stop); of wordings that became equal `merged`
    were counted into others.
    """

    relation: str
    wordings: list[PublishedTemplate]
    total: int
    object_first: int = 0
    cut: int = 0
    cut_words: int = 0
    merged: int = 0
    lost: float = 0.0

    def counts(self) -> dict[str, float]:
        """What a table prints beside the ensemble."""
        return {
            "total": self.total,
            "used": len(self.wordings),
            "object_first": self.object_first,
            "cut": self.cut,
            "cut_words": self.cut_words,
            "merged": self.merged,
            "weight_lost": round(self.lost, 6),
        }


def read_weighted(folder: Path, relation: str) -> list[PublishedTemplate]:
    """The wordings of `folder/relation.jsonl`; their weights must sum to 1 (within 0.001).

    Raises WordingError for a missing file, a line without template or weight, a template without
    exactly one [X] and one [Y], a negative weight.
    """
    path = Path(folder) / f"{relation}.jsonl"
    templates = []
    for where, row in _lines(path):
        weight = row.get("weight")
        if not isinstance(weight, int | float) or isinstance(weight, bool) or weight < 0:
            raise WordingError(f"{where}: weight {weight!r}; expected a number of 0 or more")
        templates.append(PublishedTemplate(_template(row, where), float(weight)))
    total = math.fsum(w.weight for w in templates)
    if abs(total - 1) > 1e-3:
        raise WordingError(f"{path}: the weights sum to {total:.4f}, expected 1")
    return templates


def read_single(path: Path) -> dict[str, PublishedTemplate]:
    """relation -> wording, of a file with one template per relation."""
    templates: dict[str, PublishedTemplate] = {}
    for where, row in _lines(path):
        relation = row.get("relation")
        if not relation or relation in templates:
            problem = "is named twice" if relation else "is missing"
            raise WordingError(f"{where}: relation {relation!r} {problem}")
        templates[str(relation)] = PublishedTemplate(_template(row, where))
    return templates


def usable(relation: str, wordings: Sequence[PublishedTemplate], kind: str) -> WordingSet:
    """What a `kind` of model can use: all of them, or for causal ones those that end in [Y].

    A causal model reads from left to right and answers at the end: a template with the object
    before the subject is dropped and the other weights are raised to sum to 1; what stands behind
    [Y] (mostly a full stop) is cut. Equal wordings become one with the sum of their weights, at the
    place of the first; those of weight 0 go. Nothing at all may be left: every mined wording of
    P1412 and the paraphrases of eight relations have the object first.
    """
    result = WordingSet(relation, [], len(wordings))
    kept: dict[str, float] = {}
    dropped: list[float] = []
    for wording in wordings:
        text = wording.text
        if kind == "causal":
            if parse(text).slots[0] == ANSWER:
                result.object_first += 1
                dropped.append(wording.weight)
                continue
            text, behind = cut(text)
            result.cut += bool(behind)
            result.cut_words += any(c.isalnum() for c in behind)
        result.merged += text in kept
        kept[text] = kept.get(text, 0.0) + wording.weight
    total = math.fsum(kept.values())
    result.lost = math.fsum(dropped)
    result.wordings = [PublishedTemplate(t, w / total) for t, w in kept.items() if w > 0]
    return result


def _template(row: Mapping[str, Any], where: str) -> str:
    text = row.get("template")
    sentence(text if isinstance(text, str) else "", where, WordingError)
    return str(text).strip()


def _lines(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    if not path.is_file():
        raise WordingError(f"no file of wordings {path}; set KGPROBE_DATA or correct the path")
    for number, row in json_rows(path, WordingError):
        yield f"{path}:{number}", row

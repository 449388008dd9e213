"""Examples of a search as token ids, with their correct answers."""

import hashlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from kgprobe.probes.models.batching import Ints, Ragged
from kgprobe.probes.models.load import Loaded
from kgprobe.probes.prompts.search.settings import SearchSettings
from kgprobe.probes.scoring.fill.options import Options
from kgprobe.probes.text.prompts import Encoded, encode, label_pieces, label_token
from kgprobe.templates import Template

#: (fields, label): the label is a class, or the gold object.
Example = tuple[Mapping[str, str], str]


class SearchError(ValueError):
    """A search cannot start or resume; the message says where and suggests a fix."""


@dataclass(frozen=True)
class SearchExamples:
    """Examples in a fixed order; `right` (n) are row indices of the label table."""

    encoded: Encoded
    right: Ints
    examples: list[Example]

    def __len__(self) -> int:
        return len(self.right)

    @property
    def lengths(self) -> Ints:
        """Number of tokens of every prompt."""
        return np.array([len(row) for row in self.encoded.rows], dtype=np.int64)

    def digest(self) -> str:
        """Return the sha256 of the examples."""
        text = json.dumps([[dict(f), label] for f, label in self.examples], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True)
class Problem:
    """The input of a search.

    `labels` (classes x most tokens) with the mask `known` are the answer tokens of each class.
    `closed`: an answer is one of these classes, else any token of the vocabulary. `dropped` counts
    examples with an unusable gold, by split.
    """

    template: Template
    train: SearchExamples
    dev: SearchExamples
    classes: list[str]
    labels: Ints
    known: NDArray[np.bool_]
    closed: bool
    dropped: dict[str, int] = field(default_factory=dict)


def problem(
    loaded: Loaded,
    template: Template,
    train: Sequence[Example],
    dev: Sequence[Example],
    settings: SearchSettings,
    labels: Mapping[str, Sequence[int | str]] | None = None,
    initial: int | None = None,
) -> Problem:
    """Encode both splits, sorted, so that their order does not matter.

    With `labels` (class -> token ids or words) the task is a classification. Otherwise labels are
    gold objects: a gold of several tokens is dropped and counted; a causal model uses its first
    token instead if no other gold object of the two splits starts with that token. Raises
    SearchError for an unknown class, or if a split has no examples left, AnswerError for a class
    without label tokens or for a token of two classes.
    """
    data = {"train": _sorted(train), "dev": _sorted(dev)}
    if labels is not None:
        # words in the form that [P] requires
        table = {
            name: [label_token(loaded, template, t) if isinstance(t, str) else int(t) for t in row]
            for name, row in sorted(labels.items())
        }
        Options.classes(table)  # rejects classes with shared tokens
        wrong = [label for examples in data.values() for _, label in examples if label not in table]
        if wrong:
            raise SearchError(
                f"label {wrong[0]!r} of an example has no label tokens; valid: {', '.join(table)}"
            )
    else:
        words = sorted({label for examples in data.values() for _, label in examples})
        table = gold_tokens(loaded, template, words)
    classes = list(table)
    kept = {name: [e for e in examples if e[1] in table] for name, examples in data.items()}
    dropped = {name: len(data[name]) - len(kept[name]) for name in data}
    for name, examples in kept.items():
        if not examples:
            raise SearchError(
                f"template {template.text!r}: no {name} example is left for the search: "
                f"{len(data[name])} given, {dropped[name]} without a gold object of one token"
            )
    number = {name: i for i, name in enumerate(classes)}
    splits = [
        SearchExamples(
            encode(loaded, template, [f for f, _ in kept[name]], initial, settings.truncate,
                   settings.habits),
            np.array([number[label] for _, label in kept[name]], dtype=np.int64),
            kept[name],
        )
        for name in ("train", "dev")
    ]  # fmt: skip
    tokens = Ragged.of([np.array(table[name], dtype=np.int64) for name in classes])
    ids = tokens.matrix(0)
    known = np.arange(ids.shape[1]) < tokens.lengths[:, None]
    return Problem(template, splits[0], splits[1], classes, ids, known, labels is not None, dropped)


def _sorted(examples: Sequence[Example]) -> list[Example]:
    return sorted(examples, key=lambda e: (json.dumps(dict(e[0]), sort_keys=True), e[1]))


def gold_tokens(loaded: Loaded, template: Template, words: Sequence[str]) -> dict[str, list[int]]:
    """Return the token of every gold object that has a token of its own.

    Raises ValueError for a special token.
    """
    pieces = dict(zip(words, label_pieces(loaded, template, words), strict=True))
    unknown = loaded.tokenizer.unk_token_id
    known = {w: ids for w, ids in pieces.items() if len(ids) and unknown not in ids}
    if template.kind != "causal":
        return {w: [int(ids[0])] for w, ids in known.items() if len(ids) == 1}
    firsts = Counter(int(ids[0]) for ids in known.values())
    return {
        w: [int(ids[0])] for w, ids in known.items() if len(ids) == 1 or firsts[int(ids[0])] == 1
    }

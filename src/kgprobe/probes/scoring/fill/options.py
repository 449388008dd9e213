"""The answer options of a prompt, as tokens of one model, and the rank of the gold among them.

Facts: every word of a vocabulary that is one token. Classification: the classes, each by the sum of
the probabilities of its label tokens (Shin et al. 2020, eq. 1). Nothing is sorted: a rank is a
count of larger scores.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from kgprobe.probes.models.batching import Ints
from kgprobe.probes.models.finite import finite
from kgprobe.probes.models.load import Loaded
from kgprobe.probes.models.predict import Name, Predictor
from kgprobe.probes.text.prompts import label_pieces
from kgprobe.templates import Template


class AnswerError(ValueError):
    """Raised if answers cannot be ranked; the message names the model and the reason."""


@dataclass(frozen=True)
class AnswerOptions:
    """The possible answers; `column` maps every word or class among them to its number.

    Of several words with the same token (uncased models) the first gives the name.
    `left_out` are words that cannot be answers.
    """

    names: tuple[str, ...]
    column: Mapping[str, int]
    left_out: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.names)

    def columns(self, words: Sequence[str]) -> Ints:
        """Return numbers of words or classes, -1 for those that cannot be answers."""
        return np.array([self.column.get(word, -1) for word in words], dtype=np.int64)


@dataclass(frozen=True)
class Options(AnswerOptions):
    """Answers by single tokens at [P], all different: `tokens[owners == i]` belong to name i."""

    tokens: Ints
    owners: Ints

    @classmethod
    def words(cls, loaded: Loaded, template: Template, words: Sequence[str]) -> "Options":
        """Select the single tokens among `words`, in their form at [P] of `template`.

        Raises AnswerError when no word is one token.
        """
        ordered, names, left_out = sorted(set(words)), list[str](), list[str]()
        column: dict[str, int] = {}
        places: dict[int, int] = {}
        for word, ids in zip(ordered, label_pieces(loaded, template, ordered), strict=True):
            if len(ids) != 1 or ids[0] == loaded.tokenizer.unk_token_id:
                left_out.append(word)
                continue
            column[word] = places.setdefault(int(ids[0]), len(places))
            if len(places) > len(names):
                names.append(word)
        if not names:
            raise AnswerError(
                f"none of {len(ordered)} answer words is one token of {loaded.spec.model} at "
                f"[P] of {template.text!r}, the first: {ordered[:3]}"
            )
        tokens = np.array(list(places), dtype=np.int64)
        return cls(tuple(names), column, tuple(left_out), tokens, np.arange(len(names)))

    @classmethod
    def classes(cls, labels: Mapping[str, Sequence[int]]) -> "Options":
        """Build classes from label tokens; AnswerError for an empty class or a repeated token."""
        names = tuple(sorted(labels))
        empty = [name for name in names if not len(labels[name])]
        flat = [int(token) for name in names for token in labels[name]]
        if len(names) < 2 or empty:
            raise AnswerError(f"classes {[*names]} without label tokens: {empty or 'too few'}")
        if len(set(flat)) < len(flat):
            twice = sorted({token for token in flat if flat.count(token) > 1})
            raise AnswerError(f"label tokens {twice} stand for two classes or twice for one")
        owners = np.repeat(np.arange(len(names)), [len(labels[name]) for name in names])
        column = {name: number for number, name in enumerate(names)}
        return cls(names, column, (), np.array(flat, dtype=np.int64), owners)


#: Per example: rank ranges of the gold (`best`, `worst`, and without the example's other correct
#: answers `filtered_best`, `filtered_worst`; 0 if it is not an option), the first of the best
#: options (`top`), and the gold's `logprob` over the whole vocabulary (NaN without a gold).
AnswerRanks = dict[str, NDArray[Any]]


def rank(
    predictor: Predictor,
    rows: Sequence[Ints],
    places: Ints,
    types: Sequence[Ints] | None,
    options: Options,
    golds: Ints,
    others: Ints,
    done: Callable[[int], object] = lambda prompts: None,
    name: Name = "prompt {}".format,
) -> AnswerRanks:
    """Rank the options `golds` (-1: none) at `places` of the prompts `rows`.

    `others` (prompts x any number) contains other correct options, padded with -1. Raises
    NotFiniteError, with `name` and position.
    """
    n = len(rows)
    ranges = np.zeros((5, n), dtype=np.int64)
    logprob = np.full(n, np.nan)

    def read(numbers: Ints, logits: Any, totals: Any) -> None:
        scores = logits
        if len(options) < len(options.tokens):
            columns = [np.flatnonzero(options.owners == number) for number in range(len(options))]
            parts = [logits[:, torch.from_numpy(column).to(logits.device)] for column in columns]
            scores = torch.stack([part.logsumexp(1) for part in parts], dim=1)
        counts, raw = against(scores, golds[numbers], others[numbers])
        ranges[:, numbers] = counts.cpu().numpy()
        # without a gold `raw` belongs to another option and is ignored
        logprob[numbers] = np.where(golds[numbers] >= 0, (raw - totals).double().cpu().numpy(), 0.0)
        finite(
            logprob[numbers],
            predictor.loaded.spec.model,
            lambda n: f"{name(int(numbers[n]))}, gold {options.names[golds[numbers[n]]]!r}",
        )
        done(len(numbers))

    predictor.visit(rows, places, read, types, options.tokens, name)
    return ranks_of(ranges, logprob, golds)


def against(scores: Any, golds: Ints, others: Ints) -> tuple[Any, Any]:
    """Return (best, worst, both filtered, top option: 5 x rows; golds' scores) of score rows."""
    gold = torch.from_numpy(np.maximum(golds, 0)).to(scores.device)
    score = scores.gather(1, gold[:, None])
    above, equal = (scores > score).sum(1), (scores == score).sum(1)
    also = torch.from_numpy(others).to(scores.device)
    # the gold never counts as another answer, whatever the data say
    valid = (also >= 0) & (also != gold[:, None])
    theirs = scores.gather(1, also.clamp(min=0))
    better, tied = ((theirs > score) & valid).sum(1), ((theirs == score) & valid).sum(1)
    ends = above + 1, above + equal, above - better + 1, above - better + equal - tied
    return torch.stack([*ends, scores.argmax(1)]), score[:, 0]


def ranks_of(ranges: Ints, logprob: NDArray[np.float64], golds: Ints) -> AnswerRanks:
    """Build ranks from the result of `against`; without a gold only `top` is set."""
    known = golds >= 0
    names = ("best", "worst", "filtered_best", "filtered_worst")
    gold_ranks = zip(names, np.where(known, ranges[:4], 0), strict=True)
    return {**dict(gold_ranks), "top": ranges[4], "logprob": np.where(known, logprob, np.nan)}

"""What a prompt can answer with, as tokens of one model, and the rank of the gold among it.

Facts: every word of a vocabulary that is one token. Classification: the classes, each by the sum of
the probabilities of its label tokens (Shin et al. 2020, eq. 1). Nothing is sorted: a rank is a
count of larger scores. Answers of any number of tokens behind a causal model's prompt are scored as
ids, by the sum of their log-probabilities; all of one prompt share its pass through the model.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from kgprobe.probes.models.batching import Ints, Ragged, budget_for
from kgprobe.probes.models.causal import Causal
from kgprobe.probes.models.finite import finite
from kgprobe.probes.models.load import Loaded
from kgprobe.probes.models.predict import Name, Predictor
from kgprobe.probes.text.prompts import label_pieces
from kgprobe.templates import Template


class AnswerError(ValueError):
    """Answers cannot be ranked; the message says for which model, and why."""


@dataclass(frozen=True)
class AnswerOptions:
    """What can be answered; `column` gives the number for every word or class among them.

    Of several words that are the same tokens (an uncased model) the first gives the name.
    `left_out` are words that cannot be answered.
    """

    names: tuple[str, ...]
    column: Mapping[str, int]
    left_out: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.names)

    def columns(self, words: Sequence[str]) -> Ints:
        """Numbers of words or classes, -1 for those that cannot be answered."""
        return np.array([self.column.get(word, -1) for word in words], dtype=np.int64)


@dataclass(frozen=True)
class Options(AnswerOptions):
    """Answers by single tokens at [P], all different: `tokens[owners == i]` stand for name i."""

    tokens: Ints
    owners: Ints

    @classmethod
    def words(cls, loaded: Loaded, template: Template, words: Sequence[str]) -> "Options":
        """The single tokens among `words`, in the form that they have at [P] of `template`.

        Raises AnswerError when no word is one token.
        """
        names, column, left_out, ids = _distinct(loaded, template, words, most=1)
        if not ids:
            first = sorted(set(words))[:3]
            raise AnswerError(
                f"none of {len(set(words))} answer words is one token of {loaded.spec.model} at "
                f"[P] of {template.text!r}, the first: {first}"
            )
        return cls(names, column, left_out, np.concatenate(ids), np.arange(len(ids)))

    @classmethod
    def classes(cls, labels: Mapping[str, Sequence[int]]) -> "Options":
        """Classes by their label tokens; AnswerError for a class without, or a token of two."""
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


def _distinct(
    loaded: Loaded, template: Template, words: Sequence[str], most: int | None = None
) -> tuple[tuple[str, ...], dict[str, int], tuple[str, ...], list[Ints]]:
    """(names, columns, words that are left out, tokens) of words as they stand at [P]: without an
    unknown token, and of at most so many tokens."""
    column: dict[str, int] = {}
    places: dict[bytes, int] = {}
    names: list[str] = []
    tokens: list[Ints] = []
    left_out: list[str] = []
    ordered = sorted(set(words))
    for word, ids in zip(ordered, label_pieces(loaded, template, ordered), strict=True):
        if not 0 < len(ids) <= (most or len(ids)) or (ids == loaded.tokenizer.unk_token_id).any():
            left_out.append(word)
            continue
        column[word] = places.setdefault(ids.tobytes(), len(places))
        if len(places) > len(names):
            names.append(word)
            tokens.append(ids)
    return tuple(names), column, tuple(left_out), tokens


@dataclass(frozen=True)
class AnswerRanks:
    """Per example: rank ranges of the gold (0 where it cannot be answered), first place, log p.

    `filtered_*` ignore the example's other right answers; `top` is the first of the best options;
    `logprob` (NaN without a gold) is normalized over the whole vocabulary.
    """

    best: Ints
    worst: Ints
    filtered_best: Ints
    filtered_worst: Ints
    top: Ints
    logprob: NDArray[np.float64]


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
    """Ranks of the options `golds` (-1: none) at `places` of the prompts `rows`.

    `others` (prompts x any number) holds further right options, -1 where there are fewer. Raises
    NotFiniteError, with `name` and place.
    """
    n = len(rows)
    ranges = np.zeros((5, n), dtype=np.int64)
    logprob = np.full(n, np.nan)

    def read(numbers: Ints, logits: Any, totals: Any) -> None:
        scores = _of_options(logits, options)
        counts, raw = against(scores, golds[numbers], others[numbers])
        ranges[:, numbers] = counts.cpu().numpy()
        # without a gold `raw` is that of another option: nobody asked for it
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
    """(best, worst, the same filtered, first place: 5 x rows; the golds' scores) of score rows."""
    gold = torch.from_numpy(np.maximum(golds, 0)).to(scores.device)
    score = scores.gather(1, gold[:, None])
    above, equal = (scores > score).sum(1), (scores == score).sum(1)
    also = torch.from_numpy(others).to(scores.device)
    # the gold is no other answer, whatever the data say
    valid = (also >= 0) & (also != gold[:, None])
    theirs = scores.gather(1, also.clamp(min=0))
    better, tied = ((theirs > score) & valid).sum(1), ((theirs == score) & valid).sum(1)
    ends = above + 1, above + equal, above - better + 1, above - better + equal - tied
    return torch.stack([*ends, scores.argmax(1)]), score[:, 0]


def ranks_of(ranges: Ints, logprob: NDArray[np.float64], golds: Ints) -> AnswerRanks:
    """Ranks out of what `against` gave; nothing but first places where there is no gold."""
    known = golds >= 0
    best, worst, filtered_best, filtered_worst = np.where(known, ranges[:4], 0)
    logprobs = np.where(known, logprob, np.nan)
    return AnswerRanks(best, worst, filtered_best, filtered_worst, ranges[4], logprobs)


def _of_options(logits: Any, options: Options) -> Any:
    """Logits of options (rows x options) from those of their tokens."""
    if len(options) == len(options.tokens):
        return logits
    columns = [
        logits[:, torch.from_numpy(np.flatnonzero(options.owners == number)).to(logits.device)]
        for number in range(len(options))
    ]
    return torch.stack([part.logsumexp(1) for part in columns], dim=1)


#: Tokens that are laid out at once.
CHUNK = 1 << 19


@dataclass(frozen=True)
class Phrases(AnswerOptions):
    """Answers with the tokens that each of them is, all different."""

    ids: tuple[Ints, ...]

    @classmethod
    def of(cls, loaded: Loaded, template: Template, words: Sequence[str]) -> "Phrases":
        """All `words` but those with an unknown token, in the form that they have at [P].

        Raises AnswerError for a model that is not causal, and when no word is left.
        """
        if loaded.spec.kind != "causal":
            raise AnswerError(
                f"{loaded.spec.model} is {loaded.spec.kind}: only causal models read answers of "
                "several tokens behind a prompt; others need one mask per token (method cloze)"
            )
        names, column, left_out, ids = _distinct(loaded, template, words)
        if not ids:
            raise AnswerError(f"{loaded.spec.model}: none of {len(set(words))} answers can be read")
        return cls(names, column, left_out, tuple(ids))


def rank_phrases(
    loaded: Loaded,
    rows: Sequence[Ints],
    phrases: Phrases,
    golds: Ints,
    others: Ints,
    done: Callable[[int], object] = lambda prompts: None,
    name: Name = "prompt {}".format,
) -> AnswerRanks:
    """Ranks of the phrases `golds` (-1: none) behind the prompts `rows`, as in `rank`.

    A log-probability is that of the whole phrase: longer phrases have lower ones. Raises
    NotFiniteError, with `name`, phrase and token.
    """
    scorer = Causal(loaded, budget_for(loaded))
    ranges, logprob = np.zeros((5, len(rows)), dtype=np.int64), np.full(len(rows), np.nan)
    sizes = np.array([len(ids) for ids in phrases.ids])
    each = int(sizes.sum()) + len(sizes) * max(len(row) for row in rows)
    step = max(CHUNK // each, 1)
    for start in range(0, len(rows), step):
        part = slice(start, min(start + step, len(rows)))
        sequences = Ragged.of([np.concatenate([row, ids]) for row in rows[part]
                               for ids in phrases.ids])  # fmt: skip

        def describe(sequence: int, start: int = start) -> str:
            row, phrase = divmod(sequence, len(sizes))
            return f"{name(start + row)}, answer {phrases.names[phrase]!r}"

        tokens = scorer.logprobs(sequences, name=describe)
        # the prompt's own tokens are no part of the answer
        tokens[sequences.places < (sequences.lengths - np.tile(sizes, part.stop - start))[
            sequences.owners
        ]] = 0.0  # fmt: skip
        scores = np.add.reduceat(tokens, sequences.starts[:-1]).reshape(-1, len(sizes))
        counts, score = against(torch.from_numpy(scores), golds[part], others[part])
        ranges[:, part], logprob[part] = counts.numpy(), score.numpy()
        done(part.stop - start)
    return ranks_of(ranges, logprob, golds)

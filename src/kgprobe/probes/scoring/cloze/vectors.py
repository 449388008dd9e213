"""Scores of all candidates at gaps in texts with slots, in one configuration, for every kind.

Masked and seq2seq models: the cloze machinery. Causal models: the candidate stands in the gap of
the complete sentence; its score is the mean over its own tokens where only a full stop follows,
and the mean from its first token to the end where text follows, which it must fit as well.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from kgprobe.probes.models.batching import Budget, Ragged
from kgprobe.probes.models.causal import Causal
from kgprobe.probes.models.load import Loaded
from kgprobe.probes.scoring.cloze import rank
from kgprobe.probes.text.encode import bos_prefix
from kgprobe.probes.text.gaps import (
    Gapped,
    Ids,
    Question,
    candidate_ids,
    gapped,
    rows_of_embedding,
    tokens_with_slots,
)
from kgprobe.probes.text.vectors import inserted
from kgprobe.templates import held

MULTI_MEAN = ("multi", "mean")
#: Candidate sentences of a causal model that are held at once.
HELD = 1 << 15


@dataclass(frozen=True)
class GoldRanks:
    """Columns: number of the question, gold (candidate index), best and worst rank, score.

    `in_order`: the rank when ties go to the candidate of fewer tokens, then of lower index;
    `tokens`: how many the gold has.
    """

    question: NDArray[np.int64]
    gold: NDArray[np.int32]
    best: NDArray[np.int32]
    worst: NDArray[np.int32]
    in_order: NDArray[np.int32]
    tokens: NDArray[np.int32]
    score: NDArray[np.float64]


def gold_ranks(
    loaded: Loaded,
    asked: Sequence[Question],
    options: dict[str, Sequence[str]],
    vectors: torch.Tensor,
    *,
    configuration: tuple[str, str] = MULTI_MEAN,
    space: str = "auto",
    in_softmax: int | None = None,
    budget: Budget | None = None,
    progress: Callable[[int], object] = lambda done: None,
) -> GoldRanks:
    """The tie range of every gold of every question; slot k of the texts reads row k of `vectors`.

    Rows are ordered like the questions and their golds.
    """
    parts: list[tuple[int, int, int, int, int, int, float]] = []
    with inserted(loaded, vectors, in_softmax):
        for chunk in scores(loaded, asked, options, configuration, space, budget):
            order = chunk.order
            for index, row in zip(chunk.indices.tolist(), chunk.scores, strict=True):
                for gold in asked[index].golds:
                    best, tied = int((row > row[gold]).sum()) + 1, row == row[gold]
                    placed = best + int((tied & (order < order[gold])).sum())
                    worst, size = best + int(tied.sum()) - 1, int(chunk.lengths[gold])
                    parts.append((index, gold, best, worst, placed, size, float(row[gold])))
            progress(len(chunk.indices))
    parts.sort(key=lambda p: p[0])
    columns = list(zip(*parts, strict=True)) or [()] * 7
    types = (np.int64, *[np.int32] * 5, np.float64)
    return GoldRanks(*(np.array(c, dtype=t) for c, t in zip(columns, types, strict=True)))


def scores(
    loaded: Loaded,
    asked: Sequence[Question],
    options: dict[str, Sequence[str]],
    configuration: tuple[str, str] = MULTI_MEAN,
    space: str = "auto",
    budget: Budget | None = None,
) -> Iterator[rank.Chunk]:
    """Scores (question x candidate) of one configuration, chunk by chunk; within `inserted`."""
    if loaded.spec.kind == "causal":
        yield from _causal(loaded, asked, options, configuration[1], budget)
        return
    number = rank.CONFIGURATIONS.index(configuration)
    rows = gapped(loaded, asked, space)
    for chunk in rank.scores(loaded, asked, options, space=space, budget=budget, rows=rows):
        yield rank.Chunk(chunk.indices, chunk.scores[:, number], chunk.lengths)


def prompts(loaded: Loaded, asked: Sequence[Question], space: str) -> list[Gapped]:
    """What a model is trained on: gapped sentences; for causal models the text before the gap."""
    if loaded.spec.kind != "causal":
        return gapped(loaded, asked, space)
    prefix, _ = bos_prefix(loaded)
    coded = tokens_with_slots(loaded, [q.before.rstrip() for q in asked])
    return [Gapped(np.concatenate([prefix, ids]), len(prefix) + len(ids)) for ids, _ in coded]


def candidate_tokens(
    loaded: Loaded, labels: Sequence[str], asked: Sequence[Question], space: str, name: str
) -> list[Ids]:
    """Tokens of the candidates for training: after a space where all gaps have one in front."""
    used = "auto" if loaded.spec.kind == "causal" else space
    spaced = all(q.before[-1:].isspace() for q in asked)
    return candidate_ids(loaded, labels, used, spaced, name).ids


def _causal(
    loaded: Loaded,
    asked: Sequence[Question],
    options: dict[str, Sequence[str]],
    pooling: str,
    budget: Budget | None,
) -> Iterator[rank.Chunk]:
    """Sentences of some questions at a time; the candidates of a question share its beginning."""
    engine = _Causal(loaded, budget)
    prefix, _ = bos_prefix(loaded)
    by_set: dict[str, list[int]] = {}
    for index, question in enumerate(asked):
        by_set.setdefault(question.candidates, []).append(index)
    for name in sorted(by_set):
        size = len(options[name])
        step = max(HELD // size, 1)
        ids = candidate_ids(loaded, options[name], "auto", True, name).ids
        lengths = np.array([len(own) for own in ids])
        for low in range(0, len(by_set[name]), step):
            chosen = by_set[name][low : low + step]
            sentences, spans = [], []
            for index in chosen:
                own, inside = _sentences(loaded, asked[index], options[name], prefix)
                sentences += own
                spans += inside
            rows = Ragged.of(sentences)

            def told(number: int, chosen: list[int] = chosen, labels: Any = options[name]) -> str:
                asked_by, label = asked[chosen[number // len(labels)]], number % len(labels)
                return f"item {asked_by.item}, option {labels[label]!r}"

            found = engine.logprobs(rows, name=told)
            words = rows.values < rows_of_embedding(loaded)
            values = [
                _pooled(found[start : start + last], words[start : start + last], first, pooling)
                for start, (first, last) in zip(rows.starts[:-1], spans, strict=True)
            ]
            scored = np.array(values).reshape(len(chosen), size)
            yield rank.Chunk(np.array(chosen), scored, lengths)


class _Causal(Causal):
    """Sentences whose tokens may be slots: those are read, but nothing gives them a probability.

    What stands beside a slot is no score (0), and is left out by who reads it; NaN stays what it
    is, for no row of the head may hold it.
    """

    def _scores(self, hidden: Any, owners: Ids, targets: Ids) -> NDArray[np.float64]:
        words = targets < rows_of_embedding(self.loaded)
        found = super()._scores(hidden, owners, np.where(words, targets, 0))
        return np.where(words | np.isnan(found), found, 0.0)


def _sentences(
    loaded: Loaded, question: Question, labels: Sequence[str], prefix: Ids
) -> tuple[list[Ids], list[tuple[int, int]]]:
    """Token ids with every candidate in the gap, and [first, last) of the scored tokens."""
    before = held(question.before)
    ends_there = not question.after.strip(" .")
    texts = [question.before + label + question.after for label in labels]
    rows, spans = [], []
    for label, (ids, ends) in zip(labels, tokens_with_slots(loaded, texts), strict=True):
        row = np.concatenate([prefix, ids])
        if len(row) > loaded.limit:
            raise ValueError(
                f"item {question.item}, template {question.template}: {len(row)} tokens with "
                f"{label!r}, the model takes {loaded.limit}"
            )
        first = len(prefix) + int(np.searchsorted(ends, len(before), side="right"))
        stop = len(before) + len(label)
        last = len(prefix) + int(np.searchsorted(ends, stop, side="left")) + 1
        rows.append(row)
        # the first token of all has no left context: its probability is not known
        spans.append((max(first, 1), min(last, len(row)) if ends_there else len(row)))
    return rows, spans


def _pooled(own: NDArray[np.float64], words: NDArray[np.bool_], first: int, pooling: str) -> float:
    """Mean of the log-probabilities of the words from token `first` on, or that of `first`."""
    # beside a slot stands 0
    return float(own[first] if pooling == "first" else own[first:].sum() / words[first:].sum())

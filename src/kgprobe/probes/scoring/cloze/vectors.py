"""Scores of all candidates at mask slots in texts with vectors, in one configuration.

Masked and seq2seq models use the cloze engine. For causal models the candidate fills the slot of
the complete sentence; its score is the mean over its own tokens if only a full stop follows,
and the mean from its first token to the end if text follows, which the candidate must fit as well.

When ranking golds, candidates of causal models are skipped if that does not change a rank: the
terms of a score are at most 0, so a candidate is below all golds once its first terms alone,
divided by the number of all its terms, are. This applies if the answer ends the text.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from kgprobe.probes.models.batching import Budget, Ragged, budget_for
from kgprobe.probes.models.causal import Causal
from kgprobe.probes.models.load import Loaded
from kgprobe.probes.scoring.cloze import rank
from kgprobe.probes.scoring.columns import AnswerColumns
from kgprobe.probes.text.encode import bos_prefix
from kgprobe.probes.text.mask_slots import (
    ClozePrompt,
    Ids,
    PromptIds,
    candidate_ids,
    of_set,
    refuse_control_texts,
    rows_of_embedding,
    slot_context,
    tokenize_prompts,
    tokens_with_slots,
)
from kgprobe.probes.text.vectors import inserted
from kgprobe.templates import replace_vectors

MULTI_MEAN = ("multi", "mean")
#: Number of candidate sentences of a causal model in memory together.
HELD = 1 << 15
#: How far below every gold (mean log-probability) a candidate must be to be skipped: far above
#: the difference of last bits between two passes.
MARGIN = 1e-3
#: Columns of `gold_ranks`.
GOLD_RANKS = ("question", *rank.RANKS[len(rank.KEY) :])


def gold_ranks(
    loaded: Loaded,
    questions: Sequence[ClozePrompt],
    options: dict[str, Sequence[str]],
    vectors: torch.Tensor,
    *,
    configuration: tuple[str, str] = MULTI_MEAN,
    space: str = "auto",
    in_softmax: int | None = None,
    progress: Callable[[int], object] = lambda done: None,
    prune: bool = True,
) -> dict[str, NDArray[Any]]:
    """Return the tie range of every gold of every question, with row k of `vectors` at slot k.

    Columns are the question number and those of `rank`. Rows are ordered like the questions and
    their golds. For causal models, candidates that cannot reach a gold are not fully scored, unless
    `prune` is off; the ranks are the same.
    """
    rows = AnswerColumns("configuration", *GOLD_RANKS[1:])
    with inserted(loaded, vectors, in_softmax):
        for chunk in scores(loaded, questions, options, configuration, space, prune):
            rows.add(**rank.gold_rows(replace(chunk, scores=chunk.scores[:, None]), questions))
            progress(len(chunk.indices))
    columns = rows.table()
    columns["question"] = columns["owner"]
    order = np.argsort(columns["owner"], kind="stable")
    return {name: columns[name][order] for name in GOLD_RANKS}


def scores(
    loaded: Loaded,
    questions: Sequence[ClozePrompt],
    options: dict[str, Sequence[str]],
    configuration: tuple[str, str] = MULTI_MEAN,
    space: str = "auto",
    prune: bool = False,
) -> Iterator[rank.Chunk]:
    """Yield scores (question x candidate) of one configuration in chunks; use within `inserted`.

    Under `prune` candidates of causal models that are below all golds may have -inf.
    """
    budget = budget_for(loaded)
    if loaded.spec.kind == "causal":
        yield from _causal(loaded, questions, options, configuration[1], budget, prune)
        return
    number = rank.CONFIGURATIONS.index(configuration)
    rows = tokenize_prompts(loaded, questions, space)
    for chunk in rank.scores(loaded, questions, options, space=space, budget=budget, rows=rows):
        yield rank.Chunk(chunk.indices, chunk.scores[:, number], chunk.lengths)


def prompts(loaded: Loaded, questions: Sequence[ClozePrompt], space: str) -> list[PromptIds]:
    """Return the prompts to train on, with a slot; for causal models the text before it."""
    refuse_control_texts(loaded, questions)
    if loaded.spec.kind != "causal":
        return tokenize_prompts(loaded, questions, space)
    prefix, _ = bos_prefix(loaded)
    coded = tokens_with_slots(loaded, [q.before.rstrip() for q in questions])
    return [PromptIds(np.concatenate([prefix, ids]), len(prefix) + len(ids)) for ids, _ in coded]


def candidate_tokens(
    loaded: Loaded, labels: Sequence[str], questions: Sequence[ClozePrompt], space: str, name: str
) -> list[Ids]:
    """Tokenize the candidates for training, as in the slots, where tokens must be the same.

    Raises ValueError if the text before different slots changes the tokens of a candidate.
    """
    used = "auto" if loaded.spec.kind == "causal" else space
    contexts = sorted({slot_context(q.before, used) for q in questions})
    first, *others = [
        candidate_ids(loaded, labels, used, text, of_set(name)).ids for text in contexts
    ]
    for ids in others:
        for label, one, other in zip(labels, first, ids, strict=True):
            if not np.array_equal(one, other):
                raise ValueError(
                    f"set {name!r}: {label!r} has other tokens after {contexts[0]!r} than after "
                    f"{contexts[1]!r}; train on prompts with the same character before the slot"
                )
    return first


def _causal(
    loaded: Loaded,
    questions: Sequence[ClozePrompt],
    options: dict[str, Sequence[str]],
    pooling: str,
    budget: Budget,
    prune: bool,
) -> Iterator[rank.Chunk]:
    """Score some questions at a time; the candidates of a question share its prefix."""
    refuse_control_texts(loaded, questions)
    engine = _Causal(loaded, budget)
    prefix, _ = bos_prefix(loaded)
    by_set: dict[str, list[int]] = {}
    for index, question in enumerate(questions):
        by_set.setdefault(question.candidates, []).append(index)
    for name in sorted(by_set):
        size = len(options[name])
        step = max(HELD // size, 1)
        ids = candidate_ids(loaded, options[name], "auto", " ", of_set(name)).ids
        lengths = np.array([len(tokens) for tokens in ids])
        for low in range(0, len(by_set[name]), step):
            chosen = by_set[name][low : low + step]
            sentences, firsts = [], []
            for index in chosen:
                rows, starts = _sentences(loaded, questions[index], options[name], prefix)
                sentences += rows
                firsts += starts

            def describe(
                number: int, chosen: list[int] = chosen, labels: Any = options[name]
            ) -> str:
                prompt, label = questions[chosen[number // len(labels)]], number % len(labels)
                return f"item {prompt.item}, option {labels[label]!r}"

            scored = _Scored(engine, sentences, np.array(firsts), pooling, describe)
            numbers = np.arange(len(sentences))
            if prune:
                group = [questions[index] for index in chosen]
                numbers = np.flatnonzero(scored.reaching(group, size))
            values = np.full(len(sentences), -np.inf)
            values[numbers] = scored.values(numbers)
            yield rank.Chunk(np.array(chosen), values.reshape(len(chosen), size), lengths)


@dataclass(frozen=True)
class _Scored:
    """Candidate sentences of some questions, each scored from token `firsts` to its end."""

    engine: "_Causal"
    sentences: Sequence[Ids]
    firsts: Ids
    pooling: str
    name: Callable[[int], str]

    def values(self, numbers: Ids, whole: int | None = None) -> NDArray[np.float64]:
        """Score some sentences; those after the first `whole` only by their first term, divided by
        the number of all."""
        whole = len(numbers) if whole is None else whole
        cut = [self.sentences[n] for n in numbers[:whole]]
        cut += [self.sentences[n][: self.firsts[n] + 1] for n in numbers[whole:]]
        rows = Ragged.of(cut, lambda k: self.name(int(numbers[k])))
        logprobs = self.engine.logprobs(rows)
        first_row = rows_of_embedding(self.engine.loaded)
        values = []
        for start, end, n in zip(rows.starts[:-1], rows.starts[1:], numbers, strict=True):
            scores = logprobs[start:end][self.firsts[n] :]
            # the value at a slot is 0; the count includes the words beyond the first term
            count = (self.sentences[n][self.firsts[n] :] < first_row).sum()
            values.append(scores[0] if self.pooling == "first" else scores.sum() / count)
        return np.array(values)

    def reaching(self, questions: Sequence[ClozePrompt], size: int) -> NDArray[np.bool_]:
        """Return which sentences may reach the worst gold of their question; `size` of a set.

        This scores all golds and the first term of every other candidate in one pass, which feeds
        only the question once more: reading longer prefixes feeds more than it saves. If prefixes
        are not shared, all sentences are returned.
        """
        owner = np.repeat(np.arange(len(questions)), size)
        golds = [number * size + g for number, q in enumerate(questions) for g in q.golds]
        alive = np.ones(len(owner), dtype=bool)
        is_open = np.array([bool(q.golds) and ends_text(q) for q in questions])[owner]
        is_open[golds] = False
        terms = np.array([len(row) for row in self.sentences]) - self.firsts
        least = np.full(len(questions), np.inf)
        is_one = self.pooling == "mean" and is_open.any()
        if not is_one or not self.engine.can_share(Ragged.of(self.sentences)):
            return alive
        numbers = np.array([n for n in golds if ends_text(questions[owner[n]])])
        left = np.flatnonzero(is_open & (terms > 1))
        values = self.values(np.concatenate([numbers, left]), len(numbers))
        np.minimum.at(least, owner[numbers], values[: len(numbers)])
        alive[left] = values[len(numbers) :] >= least[owner[left]] - MARGIN
        return alive


def ends_text(question: ClozePrompt) -> bool:
    """Return whether at most a full stop follows the mask slot."""
    return not question.after.strip(" .")


class _Causal(Causal):
    """Sentences whose tokens may be slots, which are read but have no probability.

    The value at a slot is not a score (0), and callers must skip it; NaN is kept,
    since no row of the head may contain it.
    """

    def scores(self, states: Any, owners: Ids, targets: Ids) -> NDArray[np.float64]:
        words = targets < rows_of_embedding(self.loaded)
        logprobs = super().scores(states, owners, np.where(words, targets, 0))
        return np.where(words | np.isnan(logprobs), logprobs, 0.0)


def _sentences(
    loaded: Loaded, question: ClozePrompt, labels: Sequence[str], prefix: Ids
) -> tuple[list[Ids], list[int]]:
    """Return ids with each candidate in the slot, up to the last scored, and first scored index."""
    before = replace_vectors(question.before)
    texts = [question.before + label + question.after for label in labels]
    rows, firsts = [], []
    for label, (ids, spans) in zip(labels, tokens_with_slots(loaded, texts), strict=True):
        row, ends = np.concatenate([prefix, ids]), spans[:, 1]
        if len(row) > loaded.limit:
            raise ValueError(
                f"item {question.item}, template {question.template}: {len(row)} tokens with "
                f"{label!r}, the model takes {loaded.limit}"
            )
        first = len(prefix) + int(np.searchsorted(ends, len(before), side="right"))
        stop = len(before) + len(label)
        # several tokens of one character have the same end
        end = ends[min(int(np.searchsorted(ends, stop)), len(ends) - 1)]
        last = len(prefix) + int(np.searchsorted(ends, end, side="right"))
        rows.append(row[:last] if ends_text(question) else row)
        # the first token of the sequence has no left context, hence no probability
        firsts.append(max(first, 1))
    return rows, firsts

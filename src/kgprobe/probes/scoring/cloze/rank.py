"""Ranks of all candidates of a set at a mask slot, in all configurations from one set of passes.

    X is a [MASK] .          n = 1: all tokens (single), candidates of one token (multi)
    X is a [MASK] [MASK] .   n = 2: j-th token of every candidate of two tokens at the j-th mask
    ...                      one row per prompt and distinct number of tokens

All configurations follow from these log-probabilities: multi or single mask, mean, max or first
pooling (Wu et al. 2023, section 3.1.2; docs/scoring.md, Cloze).
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kgprobe.probes.models.batching import Budget
from kgprobe.probes.models.load import Loaded
from kgprobe.probes.models.mask_slots import MaskSlots, SpanSlots
from kgprobe.probes.scoring.cloze.plan import POOLINGS, Plan, fetch, masked_plan, span_plan
from kgprobe.probes.scoring.columns import AnswerColumns
from kgprobe.probes.text.mask_slots import (
    ClozePrompt,
    PromptIds,
    candidate_ids,
    of_set,
    refuse_control_texts,
    slot_context,
    tokenize_prompts,
)

MASKS = ("multi", "single")
#: (masks, pooling) in the order of the second axis of every score array.
CONFIGURATIONS = tuple((m, p) for m in MASKS for p in POOLINGS)
#: Maximum numbers in memory: prompts are processed in chunks of so many scores and log-probs.
CHUNK = 1 << 24
KEY = ("item", "template", "masks", "pooling")
RANKS = (*KEY, "gold", "best", "worst", "in_order", "tokens", "score")
TOP = (*KEY, "place", "candidate", "score")


@dataclass
class Ranks:
    """`ranks` and `top` as columns (RANKS, TOP), and the record of the run."""

    ranks: dict[str, NDArray[Any]]
    top: dict[str, NDArray[Any]]
    record: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Chunk:
    """Scores of a chunk: `indices` of its questions, `scores` (question x 6 x option).

    `lengths` are the options' numbers of tokens.
    """

    indices: NDArray[np.int64]
    scores: NDArray[Any]
    lengths: NDArray[np.int64]


def rank(
    loaded: Loaded,
    questions: Sequence[ClozePrompt],
    options: dict[str, Sequence[str]],
    *,
    space: str = "none",
    top: int = 5,
    budget: Budget | None = None,
    progress: Callable[[int], object] = lambda done: None,
) -> Ranks:
    """Return the rank range of every gold of every question, and the `top` best candidates.

    Ranks start at 1; `best` and `worst` differ if candidates tie, `in_order` is the rank when
    ties go to the option with fewer tokens, then lower index. Among the top candidates ties go to
    the lower index. Rows are ordered like the questions, then by configuration. Raises
    ValueError for a candidate without tokens.
    """
    record: dict[str, Any] = {}
    golds, best = (
        AnswerColumns("configuration", *RANKS[4:]),
        AnswerColumns("configuration", *TOP[4:]),
    )

    def ranked(compute: Callable[[], Chunk]) -> tuple[dict[str, Any], dict[str, Any], int]:
        chunk = compute()
        return gold_rows(chunk, questions), _top_rows(chunk, top), len(chunk.indices)

    chunked = chunks(loaded, questions, options, space=space, budget=budget, record=record)
    for number, (slots, compute) in enumerate(chunked):
        of_golds, of_best, count = slots.step(f"chunk {number}", partial(ranked, compute))
        golds.add(**of_golds)
        best.add(**of_best)
        progress(count)
    return Ranks(_sorted(golds, questions, RANKS), _sorted(best, questions, TOP), record)


def scores(
    loaded: Loaded,
    questions: Sequence[ClozePrompt],
    options: dict[str, Sequence[str]],
    **settings: Any,
) -> Iterator[Chunk]:
    """Yield the scores of all candidates of every question's set in chunks, longest prompts first;
    `settings` as for `chunks`."""
    for _, compute in chunks(loaded, questions, options, **settings):
        yield compute()


def chunks(
    loaded: Loaded,
    questions: Sequence[ClozePrompt],
    options: dict[str, Sequence[str]],
    *,
    space: str = "none",
    budget: Budget | None = None,
    rows: Sequence[PromptIds] | None = None,
    record: dict[str, Any] | None = None,
) -> Iterator[tuple[MaskSlots | SpanSlots, Callable[[], Chunk]]]:
    """Yield, for every chunk, the engine and a function that computes the chunk.

    `rows` are the sentences with their slots if they differ from the questions' texts (soft
    prompts, pseudowords). Equal prompts are scored once. `record` is filled after the last chunk.
    """
    rows = tokenize_prompts(loaded, questions, space) if rows is None else rows
    refuse_control_texts(loaded, questions)
    slots: MaskSlots | SpanSlots
    if loaded.spec.kind == "masked":
        slots, plan_of = MaskSlots(loaded, budget), masked_plan
    elif loaded.spec.kind == "seq2seq":
        slots, plan_of = SpanSlots(loaded, budget), span_plan
    else:
        raise ValueError(
            f"{loaded.spec.model}: cloze ranking needs a masked or seq2seq model, this one is "
            f"{loaded.spec.kind}; score its options as sentences instead"
        )
    unknown: dict[str, list[str]] = {}
    # by candidate set, and by the context that affects the tokens of its candidates
    grouped: dict[tuple[str, str], list[int]] = {}
    for index, question in enumerate(questions):
        context = slot_context(question.before, space)
        grouped.setdefault((question.candidates, context), []).append(index)
    for (name, context), indices in sorted(grouped.items()):
        labels = options[name]
        tokens = candidate_ids(loaded, labels, space, context, of_set(name))
        unknown[name] = sorted({*unknown.get(name, []), *tokens.unknown})
        plan = plan_of(tokens.ids)
        distinct, members = _distinct(rows, indices)
        n_tokens = len(distinct[0].ids) + plan.longest - 1
        if loaded.spec.kind == "masked" and plan.longest > 1 and n_tokens > loaded.limit:
            question = questions[members[0][0]]
            raise ValueError(
                f"item {question.item}, template {question.template}: {n_tokens} tokens with "
                f"{plan.longest} masks, the model takes {loaded.limit}"
            )
        lengths = np.array([len(ids) for ids in tokens.ids])
        # log-probabilities and scores stay within CHUNK numbers
        size = max(CHUNK // (plan.edges + len(CONFIGURATIONS) * plan.candidates), 1)
        for start in range(0, len(distinct), size):
            span = slice(start, start + size)
            arguments = slots, plan, distinct[span], members[span], lengths, questions
            yield slots, partial(_chunk, *arguments)
    if record is not None:
        record |= {
            **loaded.record,
            "candidate_space": space,
            "candidates_with_unknown_tokens": {k: v for k, v in unknown.items() if v},
            **slots.counts,
        }


def _chunk(
    slots: MaskSlots | SpanSlots,
    plan: Plan,
    prompts: Sequence[PromptIds],
    members: Sequence[NDArray[np.int64]],
    lengths: NDArray[np.int64],
    questions: Sequence[ClozePrompt],
) -> Chunk:
    """Score some prompts, and repeat the scores for all questions that share a prompt."""

    def name(prompt: int) -> str:
        question = questions[members[prompt][0]]
        return f"item {question.item}, template {question.template}"

    values = plan.pooled(fetch(slots, prompts, plan, name))
    repeat = [len(group) for group in members]
    return Chunk(np.concatenate(members), np.repeat(values, repeat, axis=0), lengths)


def _distinct(
    rows: Sequence[PromptIds], indices: Sequence[int]
) -> tuple[list[PromptIds], list[NDArray[np.int64]]]:
    """Return distinct prompts, longest first, and the questions that share each."""
    groups: dict[tuple[int, bytes], list[int]] = {}
    for index in indices:
        groups.setdefault((rows[index].position, rows[index].ids.tobytes()), []).append(index)
    members = sorted(groups.values(), key=lambda m: (-len(rows[m[0]].ids), m[0]))
    return [rows[m[0]] for m in members], [np.array(m) for m in members]


def gold_rows(chunk: Chunk, questions: Sequence[ClozePrompt]) -> dict[str, Any]:
    """Return tie ranges of the golds: rows ordered by configuration, question, gold."""
    owners = [(row, g) for row, i in enumerate(chunk.indices) for g in questions[i].golds]
    row = np.array([r for r, _ in owners], dtype=np.int64)
    gold = np.array([g for _, g in owners], dtype=np.int64)
    rows = AnswerColumns("configuration", *RANKS[4:])
    step = max(CHUNK // max(chunk.scores.shape[2], 1), 1)
    # the released order: fewer tokens first, then the lower index
    order = np.argsort(np.argsort(chunk.lengths, kind="stable"))
    for c in range(chunk.scores.shape[1]):
        for start in range(0, max(len(row), 1), step):
            r, g = row[start : start + step], gold[start : start + step]
            options = chunk.scores[r, c]
            gold_score = options[np.arange(len(r)), g][:, None]
            best = (options > gold_score).sum(axis=1) + 1
            tied = options == gold_score
            before = (tied & (order[None, :] < order[g][:, None])).sum(axis=1)
            rows.add(
                owner=chunk.indices[r], configuration=c, gold=g, best=best,
                worst=best + tied.sum(axis=1) - 1, in_order=best + before,
                tokens=chunk.lengths[g], score=gold_score[:, 0],
            )  # fmt: skip
    return rows.table()


def _top_rows(chunk: Chunk, top: int) -> dict[str, Any]:
    """Return the best candidates by repeated argmax, which takes the lower index among equals."""
    left = chunk.scores.copy()
    rows = AnswerColumns("configuration", *TOP[4:])
    for place in range(min(top, left.shape[2])):
        winner = left.argmax(axis=2)
        value = np.take_along_axis(left, winner[:, :, None], axis=2)
        np.put_along_axis(left, winner[:, :, None], -np.inf, axis=2)
        rows.add(
            owner=chunk.indices[:, None], configuration=np.arange(left.shape[1]), place=place + 1,
            candidate=winner, score=value[:, :, 0],
        )  # fmt: skip
    return rows.table()


def _sorted(
    rows: AnswerColumns, questions: Sequence[ClozePrompt], names: Sequence[str]
) -> dict[str, NDArray[Any]]:
    """Return columns in the order of (question, configuration, row of the chunk)."""
    columns = rows.columns(questions, ("configuration",))
    names_of = np.array(CONFIGURATIONS, dtype=object)[columns["configuration"]]
    columns |= {"masks": names_of[:, 0], "pooling": names_of[:, 1]}
    return {name: columns[name] for name in names}

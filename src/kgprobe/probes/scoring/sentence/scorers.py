"""Columns of SCORES from tokens with roles, with one scorer per kind of model.

A scorer wraps a model's engine; `score` returns the columns of some sentences and `take_record` the
work done since its last call. Which tokens were scored is a separate mask: no number means "not
scored", and NaN is an error (models/finite). `continued` marks a valid `continuation_sum`.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kgprobe.probes.models.batching import Budget, Ints, Ragged, budget_for
from kgprobe.probes.models.causal import Causal
from kgprobe.probes.models.load import Loaded
from kgprobe.probes.models.masked import Masked
from kgprobe.probes.models.seq2seq import Seq2Seq
from kgprobe.probes.scoring.sentence.variants import DEFAULT, VARIANTS, rows
from kgprobe.probes.text.encode import ANSWER, NONE, TEMPLATE, Sentences, bos_prefix

Columns = dict[str, NDArray[Any]]
Done = Callable[[int], object]
#: Valid variants by kind; the first is the default.
VARIANTS_OF = {"masked": tuple(VARIANTS), "causal": ("sum",), "seq2seq": ("span", "pll", "full")}
COUNTERS = ("positions_fed", "head_rows")


class CausalScorer:
    """Exact log-likelihood. Without a BOS prefix the first token is unscored and not counted."""

    def __init__(self, loaded: Loaded, budget: Budget | None, variant: str) -> None:
        self.engine = Causal(loaded, budget or budget_for(loaded))
        self.bos_ids, self.resolved = bos_prefix(loaded)
        self.loaded = loaded

    def score(self, sentences: Sentences, done: Done) -> Columns:
        """Compute the columns of SCORES."""
        tokens = sentences.tokens
        values = self.engine.logprobs(tokens, done)
        scored = (sentences.roles != NONE) & (tokens.places > 0)
        columns = _aggregate(sentences, values, scored)
        # the scored tokens from the answer's first on
        answer, size = sentences.roles == ANSWER, len(sentences)
        first = np.full(size, np.iinfo(np.int64).max)
        np.minimum.at(first, tokens.owners[answer], tokens.places[answer])
        chosen = scored & (tokens.places >= first[tokens.owners])
        sums = np.bincount(tokens.owners[chosen], values[chosen], minlength=size)
        columns["continuation_sum"] = np.asarray(sums, dtype=np.float64)
        columns["continued"] = first < np.iinfo(np.int64).max
        return columns

    def take_record(self) -> dict[str, Any]:
        """Return settings and counters."""
        return {
            "bos": self.loaded.spec.bos,
            "bos_resolved": self.resolved,
            "prefixes": "shared" if self.engine.shares else "plain",
            **_take_counters(self.engine, COUNTERS),
        }


class MaskedScorer:
    """Pseudo-log-likelihood: one row for every scored token."""

    bos_ids: Ints = np.zeros(0, dtype=np.int64)

    def __init__(
        self,
        loaded: Loaded,
        budget: Budget | None,
        variant: str,
        answer_only: bool = False,
        last_layer: str = "scored",
    ) -> None:
        self.engine = Masked(loaded, budget or budget_for(loaded), last_layer)
        self.variant, self.answer_only = variant, answer_only

    def score(self, sentences: Sentences, done: Done) -> Columns:
        """Compute the columns of SCORES."""
        masked = rows(sentences, self.variant, self.answer_only)
        ticks = _Ticks(len(masked.flat), len(sentences), done)
        values, scored = _unscored(sentences)
        values[masked.flat] = self.engine.logprobs(
            sentences.tokens, masked.sentence, masked.position, masked.end, ticks
        )
        scored[masked.flat] = True
        ticks.finish()
        return _aggregate(sentences, values, scored)

    def take_record(self) -> dict[str, Any]:
        """Return settings and counters."""
        return {
            "variant": self.variant,
            "tokens": "answer" if self.answer_only else "all",
            "last_layer": self.engine.last_layer,
            **_take_counters(self.engine, (*COUNTERS, "rows_asked", "rows_fed")),
        }


class Seq2SeqScorer:
    """Scores that the decoder gives to the answer after a sentence with a mask slot.

    span  log p of the answer's tokens; `continuation_sum` adds the closing sentinel (T5-like), or
          is missing. Models without sentinels are forced through the complete sentence.
    pll   each word in turn is the mask slot; sum over all words (T5-like).
    full  the complete sentence after the slotted one, all its tokens (BART-like).
    """

    bos_ids: Ints = np.zeros(0, dtype=np.int64)

    def __init__(self, loaded: Loaded, budget: Budget | None, variant: str) -> None:
        self.engine = Seq2Seq(loaded, budget or budget_for(loaded))
        self.variant, self.loaded = variant, loaded
        sentinels = self.engine.closing is not None
        if (variant == "pll" and not sentinels) or (variant == "full" and sentinels):
            raise ValueError(
                f"{loaded.spec.model}: variant {variant!r} is for models "
                f"{'with' if variant == 'pll' else 'without'} sentinels"
            )

    def score(self, sentences: Sentences, done: Done) -> Columns:
        """Compute the columns of SCORES."""
        sentences = replace(sentences, roles=self._roles_with_space(sentences))
        slots, name = self._slots(sentences), sentences.tokens.name
        contexts, forced, flat = [], [], []
        for sentence, low, high in slots:
            ids = sentences.tokens[sentence]
            start = sentences.tokens.starts[sentence]
            contexts.append(np.concatenate([ids[:low], [self.engine.opening], ids[high:]]))
            if self.engine.closing is None:
                forced.append(np.concatenate([[self.engine.start], ids]))
                flat.append(np.concatenate([[-1], start + np.arange(len(ids))]))
            else:
                edges = [self.engine.start, self.engine.opening], [self.engine.closing]
                forced.append(np.concatenate([edges[0], ids[low:high], edges[1]]))
                flat.append(np.concatenate([[-1, -1], start + np.arange(low, high), [-2]]))
        places = np.concatenate(flat)
        wanted = places >= 0
        if self.variant == "full":
            wanted[wanted] = sentences.roles[places[wanted]] != NONE
        elif self.variant == "span":
            wanted[wanted] = sentences.roles[places[wanted]] == ANSWER
        ragged = Ragged.of(forced, lambda row: name(slots[row][0]))
        ticks = _Ticks(len(slots), len(sentences), done)
        logprobs = self.engine.logprobs(contexts, ragged, wanted | (places == -2), ticks)
        ticks.finish()
        values, scored = _unscored(sentences)
        values[places[wanted]] = logprobs[wanted]
        scored[places[wanted]] = True
        columns = _aggregate(sentences, values, scored)
        closes = self.variant == "span" and self.engine.closing is not None
        if closes:
            columns["continuation_sum"] = columns["sum"] + logprobs[places == -2]
            columns["continued"][:] = True
        return columns

    def _roles_with_space(self, sentences: Sentences) -> NDArray[np.int8]:
        """Return the roles; a token of only spaces before an answer belongs to it, as the space in
        front of a first token does, so that all options are scored after the same context."""
        tokens, roles = sentences.tokens, sentences.roles.copy()
        ids, owners = tokens.values, tokens.owners
        starts = (roles[1:] == ANSWER) & (roles[:-1] == TEMPLATE) & (owners[1:] == owners[:-1])
        before = np.flatnonzero(starts)
        used = np.unique(ids[before])
        texts = [self.loaded.tokenizer.decode([i]).replace("\u2581", " ") for i in used.tolist()]
        is_space = [not text.strip() and "\n" not in text for text in texts]
        roles[before[np.isin(ids[before], used[np.array(is_space, dtype=bool)])]] = ANSWER
        return roles

    def _slots(self, sentences: Sentences) -> list[tuple[int, int, int]]:
        """Return (sentence, first token, last token + 1) of every span that becomes a mask slot."""
        owners, places = sentences.tokens.owners, sentences.tokens.places
        if self.variant == "pll":
            masked = rows(sentences, DEFAULT)
            table = np.stack([masked.sentence, masked.end, masked.position], axis=1)
            # rows of one word have the same end; the first of them starts the mask slot
            _, first = np.unique(table[:, :2], axis=0, return_index=True)
            return [(int(s), int(low), int(high)) for s, high, low in table[first]]
        answer = sentences.roles == ANSWER
        low = np.full(len(sentences), np.iinfo(np.int64).max)
        high = np.zeros(len(sentences), dtype=np.int64)
        np.minimum.at(low, owners[answer], places[answer])
        np.maximum.at(high, owners[answer], places[answer] + 1)
        if (high == 0).any():
            name = sentences.tokens.name(int(np.argmin(high)))
            raise ValueError(f"{name}: the answer has no token")
        return [(i, int(a), int(b)) for i, (a, b) in enumerate(zip(low, high, strict=True))]

    def take_record(self) -> dict[str, Any]:
        """Return settings and counters."""
        return {
            "variant": self.variant,
            "decoder_start_token_id": self.engine.start,
            "slot": [self.engine.opening, self.engine.closing],
            "eos_scored": False,
            **_take_counters(self.engine, COUNTERS),
        }


class _Ticks:
    """Converts the number of finished rows to finished sentences, for progress."""

    def __init__(self, rows: int, sentences: int, done: Done) -> None:
        self.rows, self.sentences, self.done = max(rows, 1), sentences, done
        self.rows_done = self.reported = 0

    def __call__(self, rows: int) -> None:
        self.rows_done += rows
        due = self.sentences * self.rows_done // self.rows
        self.done(due - self.reported)
        self.reported = due

    def finish(self) -> None:
        self.done(self.sentences - self.reported)


def _unscored(sentences: Sentences) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Return a value per token and a mask of scored tokens, with no token scored yet."""
    return np.zeros(len(sentences.roles)), np.zeros(len(sentences.roles), dtype=bool)


def _aggregate(
    sentences: Sentences, values: NDArray[np.float64], scored: NDArray[np.bool_]
) -> Columns:
    """Sum and count all scored tokens and those of the answer; `continued` is false everywhere."""
    owners, size = sentences.tokens.owners, len(sentences)
    columns: Columns = {}
    for prefix, chosen in (("", scored), ("answer_", scored & (sentences.roles == ANSWER))):
        columns[f"{prefix}sum"] = np.bincount(owners[chosen], values[chosen], minlength=size)
        count = np.bincount(owners[chosen], minlength=size)
        columns[f"{prefix}count"] = count.astype(np.int32)
    columns["continuation_sum"], columns["continued"] = np.zeros(size), np.zeros(size, dtype=bool)
    return columns


def _take_counters(engine: Any, counters: tuple[str, ...]) -> dict[str, Any]:
    """Return the engine's counters since the last call, and its notes."""
    record: dict[str, Any] = {name: getattr(engine, name) for name in counters}
    for name in counters:
        setattr(engine, name, 0)
    record.update(token_budget=engine.budget.positions, backoffs=list(engine.budget.backoffs))
    engine.budget.backoffs.clear()
    return {**record, "notes": list(engine.notes)}


SCORERS: dict[str, Any] = {
    "causal": CausalScorer,
    "masked": MaskedScorer,
    "seq2seq": Seq2SeqScorer,
}

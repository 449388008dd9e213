"""Vocabulary scores at mask slots: the body runs once per row, the head only at the mask slots.

No array of (rows x vocabulary) is stored: a reader extracts what it needs from slices of logits.

Continuations of a prompt by a causal model: step by step, or forced along given tokens.

    prompt, fed once           | continuations, keys and values of the prompt shared
    Dante was born in          | Flo- ren- ce
                               | Ra- ven- na

A model without selectable keys and values (state-space models) reads every row from the start;
`notes` records which of the two happened.
"""

import copy
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from transformers import DynamicCache

from kgprobe.probes.models.batching import Budget, padded, sizes_of
from kgprobe.probes.models.checks import (
    float32_objection,
    is_finite,
    refuse_padding,
    sample,
    window_objection,
)
from kgprobe.probes.models.head import apart
from kgprobe.probes.models.load import Loaded
from kgprobe.probes.models.parts import Parts

Ids = NDArray[np.int64]
#: Takes the row numbers of a slice (r) and the logits at their slots (r x slots x vocabulary), and
#: returns the values extracted from them.
Reader = Callable[[Ids, Any], Any]
#: Row numbers of a slice, and what a reader extracted from their logits.
Extracted = Iterator[tuple[Ids, Any]]
#: Bytes of the logits of one slice.
SLICE = 64 << 20


class Slots(Parts):
    """Base of models that are scored at mask slots."""

    @property
    def columns(self) -> int:
        """Size of the vocabulary."""
        return int(self.loaded.model.config.get_text_config().vocab_size)

    def _visit(
        self,
        lengths: Sequence[int],
        states: Callable[[Ids], Any],
        read: Reader,
        held: Sequence[int] | None = None,
        numbers: Ids | None = None,
    ) -> Extracted:
        """Score rows in batches and slices; `states` returns the states at their slots.

        `numbers` are the row numbers to report if the rows are a subset.
        """

        def forward(batch: Ids) -> list[tuple[Ids, Any]]:
            hidden, results = states(batch), []
            named = batch if numbers is None else numbers[batch]
            step = max(SLICE // (4 * hidden.shape[1] * self.columns), 1)
            for start in range(0, len(batch), step):
                some = named[start : start + step]
                results.append((some, read(some, self.head.logits(hidden[start : start + step]))))
            return results

        for _, results in self.each(lengths, forward, held=held):
            yield from results


class MaskSlots(Slots):
    """A masked model scored at several positions of every row.

    `positions_fed` counts padded positions, `notes` lists deviations.
    """

    @torch.inference_mode()
    def visit(self, rows: Sequence[Ids], places: Sequence[Ids], read: Reader) -> Extracted:
        """Yield what `read` extracts from the logits at `places` of every row.

        All rows have the same number of places. Logits are float32 (float64 for a float64 model).
        After out-of-memory `read` is called again for a batch.
        """

        def states(batch: Ids) -> Any:
            ids, mask = padded([rows[b] for b in batch], self.pad, self.loaded.device)
            columns = torch.from_numpy(np.stack([places[b] for b in batch])).to(ids.device)
            given = None if bool(mask.all()) else mask
            return self.at(ids, given, columns)

        yield from self._visit([len(r) for r in rows], states, read)


class SpanSlots(Slots):
    """A sentinel model: the encoder runs once per sentence, then decoder rows are scored."""

    def __init__(self, loaded: Loaded, budget: Budget | None = None) -> None:
        # contexts of different lengths are padded into one tensor
        refuse_padding(loaded, "mask slots of seq2seq models")
        super().__init__(loaded, budget)
        self.sentinel()

    def contexts_at_once(self, lengths: Sequence[int]) -> int:
        """Return how many sentences' states fit into half of the budget's memory."""
        room = self.budget.room // 2
        each = max(lengths, default=1) * sizes_of(self.loaded).state
        return max(room // each, 1) if room else max(len(lengths), 1)

    @torch.inference_mode()
    def encode(self, contexts: Sequence[Ids]) -> tuple[Any, Any]:
        """Return (states, mask) of the sentences with their mask slots, padded to the longest."""
        ids, mask = padded(contexts, self.pad, self.loaded.device)
        states = None

        def forward(batch: Ids) -> None:
            nonlocal states
            longest = max(len(contexts[b]) for b in batch)
            rows = ids[batch, :longest]
            hidden = self.encoded(rows, mask[batch, :longest])
            if states is None:
                states = hidden.new_zeros(len(contexts), ids.shape[1], hidden.shape[2])
            states[batch, :longest] = hidden

        self.budget.run([len(c) for c in contexts], forward)
        return states, mask

    @torch.inference_mode()
    def visit(
        self,
        encoded: tuple[Any, Any],
        owners: Sequence[int],
        rows: Sequence[Ids],
        read: Reader,
        last: int = 1,
        numbers: Ids | None = None,
    ) -> Extracted:
        """Yield what `read` extracts from logits (r x last x vocabulary).

        Each row contains the decoder tokens so far (including the start token) for the context with
        number `owner`; the logits are those that follow each of its `last` final tokens. `numbers`
        are as in `_visit`.
        """

        def states(batch: Ids) -> Any:
            chosen = [owners[b] for b in batch], [rows[b] for b in batch]
            return self._final(encoded, *chosen, last)

        held = [encoded[0].shape[1] * sizes_of(self.loaded).context] * len(rows)
        yield from self._visit([len(r) for r in rows], states, read, held, numbers)

    def _final(
        self, encoded: tuple[Any, Any], owners: Sequence[int], rows: Sequence[Ids], last: int
    ) -> Any:
        """Return decoder states (rows x last x width) of the `last` final tokens of every row."""
        ids, _ = padded(rows, self.pad, self.loaded.device)
        pick = torch.tensor(owners, device=ids.device)
        hidden = self.decoded(encoded[0][pick], encoded[1][pick], ids)
        lengths = torch.tensor([len(r) for r in rows], device=ids.device)[:, None]
        places = lengths - last + torch.arange(last, device=ids.device)
        return hidden[torch.arange(len(rows), device=ids.device)[:, None], places]


class Stream:
    """Rows being continued: `logits` (rows x vocabulary) of their next tokens."""

    logits: Any

    def __init__(self, text: Any, rows: Sequence[Ids]) -> None:
        self.text, self.rows, self.owners = text, list(rows), list(range(len(rows)))
        self._update()

    def advance(self, parents: Sequence[int], tokens: Sequence[int]) -> None:
        """Replace the rows by continuations: row i becomes row parents[i] plus one token."""
        pairs = zip(parents, tokens, strict=True)
        self.rows = [np.append(self.rows[p], np.int64(t)) for p, t in pairs]
        self.owners = [self.owners[p] for p in parents]
        self._update()

    def _update(self) -> None:
        """Compute the logits of all rows."""
        raise NotImplementedError

    def fork(self) -> "Stream":
        """Return an independent stream at the same point."""
        return copy.copy(self)


class CausalText(Slots):
    """One causal model; `shares` is whether prompts are fed once.

    `longest`: tokens of the longest prompt with its continuation.
    """

    def __init__(self, loaded: Loaded, budget: Budget | None = None, longest: int = 0) -> None:
        super().__init__(loaded, budget)
        self.shares = False
        self._check(longest)

    @torch.inference_mode()
    def open(self, prompts: Sequence[Ids]) -> Stream:
        """Open a stream over prompts; the caller keeps their number within its budget."""
        return _Cached(self, prompts) if self.shares else _Anew(self, prompts)

    @torch.inference_mode()
    def read(
        self, stream: Any, owners: Sequence[int], suffixes: Sequence[Ids], read: Reader
    ) -> Extracted:
        """Yield what `read` extracts from the logits (r x n x vocabulary) of all suffix tokens.

        Suffix i follows row owners[i] of the stream; the suffixes of one call to `read` have equal
        length n. After out-of-memory `read` is called again for a batch.
        """
        for length in sorted({len(s) for s in suffixes}):
            numbers = np.array([n for n, s in enumerate(suffixes) if len(s) == length])

            def states(batch: Ids, numbers: Ids = numbers) -> Any:
                # the first token is scored from the prompt, the others from the fed tokens
                fed = np.stack([suffixes[n][:-1] for n in numbers[batch]])
                return stream.states([owners[n] for n in numbers[batch]], fed)

            held = [stream.count_bytes(length)] * len(numbers)
            yield from self._visit([length] * len(numbers), states, read, held, numbers)

    def count_bytes(self, length: int, steps: int, rows: int) -> int:
        """Return the bytes per prompt while `rows` continuations of it get `steps` tokens."""
        sizes, whole = sizes_of(self.loaded), length + steps
        # keys and values of the prompt, and of the rows before and after a step
        per_token = (1 + 2 * rows) * sizes.cache if self.shares else rows * sizes.position
        return whole * per_token + rows * sizes.logits

    def feed(self, ids: Any, mask: Any, positions: Any, layers: Any = None) -> tuple[Any, Any]:
        """Return (states at all positions, keys and values per layer) after cached `layers`."""
        cache = DynamicCache()
        for number, (keys, values) in enumerate(layers or ()):
            cache.update(keys, values, number)
        states, output = self.run(
            ids,
            attention_mask=None if layers is None and bool(mask.all()) else mask,
            position_ids=positions,
            past_key_values=cache,
            use_cache=True,
        )
        return states, [(layer.keys, layer.values) for layer in output.past_key_values.layers]

    @torch.inference_mode()
    def _check(self, longest: int) -> None:
        """Check that shared keys and values reproduce whole rows, one of them of the longest
        length, since attention windows and position scaling show only there."""
        rows = sample(self.loaded, (max(longest, 7), max(longest // 2, 6)))
        prompts, fed = [r[:-2] for r in rows], np.stack([r[-2:] for r in rows])

        def logits(stream: type[_Cached | _Anew]) -> Any:
            """Return the logits before and after each of two tokens that follow the prompts."""
            return self.head.logits(stream(self, prompts).states([0, 1], fed))

        if not is_finite(logits(_Anew)):
            return  # nothing to compare; the engines reject such numbers
        reason = window_objection(self.loaded, longest) or float32_objection(
            self.loaded, lambda: apart(logits(_Cached), logits(_Anew))
        )
        self.shares = not reason
        if reason:
            self.notes.append(f"no prefix sharing: {reason}")
        self.positions_fed = 0


class _Cached(Stream):
    """Rows with their keys and values; only new tokens are fed."""

    text: CausalText

    def __init__(self, text: CausalText, prompts: Sequence[Ids]) -> None:
        self.text = text
        ids, self.mask = padded(prompts, 0, text.loaded.device)
        self.lengths = self.mask.sum(1)
        positions = torch.arange(ids.shape[1], device=ids.device).expand_as(ids)
        states, self.layers = text.feed(ids, self.mask, positions)
        self.last = states[torch.arange(len(ids), device=ids.device), self.lengths - 1]
        self.logits = text.head.logits(self.last)

    def states(self, places: Sequence[int], fed: NDArray[np.int64]) -> Any:
        """Return states (rows x (n + 1) x width) before and after each of n tokens per row."""
        rows = torch.tensor(places, device=self.mask.device)
        first = self.last[rows][:, None]
        return first if not fed.shape[1] else torch.cat([first, self._fed(rows, fed)[0]], 1)

    def _fed(self, rows: Any, fed: NDArray[np.int64]) -> tuple[Any, Any]:
        ids = torch.from_numpy(fed).to(rows.device)
        mask = torch.cat([self.mask[rows], torch.ones_like(ids)], 1)
        positions = self.lengths[rows][:, None] + torch.arange(ids.shape[1], device=rows.device)
        layers = [(keys[rows], values[rows]) for keys, values in self.layers]
        return self.text.feed(ids, mask, positions, layers)

    def count_bytes(self, steps: int) -> int:
        """Return the bytes of a row's keys and values, selected and concatenated with those of
        `steps` more tokens."""
        return 2 * (int(self.mask.shape[1]) + steps) * sizes_of(self.text.loaded).cache

    def advance(self, parents: Sequence[int], tokens: Sequence[int]) -> None:
        rows = torch.tensor(parents, device=self.mask.device)
        with torch.inference_mode():
            states, self.layers = self._fed(rows, np.array(tokens, dtype=np.int64)[:, None])
            self.mask = torch.cat([self.mask[rows], self.mask.new_ones(len(rows), 1)], 1)
            self.lengths = self.lengths[rows] + 1
            self.last = states[:, -1]
            self.logits = self.text.head.logits(self.last)


class _Anew(Stream):
    """Rows as token ids; every step reads them from the start."""

    def states(self, places: Sequence[int], fed: NDArray[np.int64]) -> Any:
        rows = [np.concatenate([self.rows[p], f]) for p, f in zip(places, fed, strict=True)]
        ids, mask = padded(rows, 0, self.text.loaded.device)
        states, _ = self.text.run(ids)
        count = fed.shape[1] + 1
        ends = mask.sum(1)[:, None] - count + torch.arange(count, device=ids.device)
        return states[torch.arange(len(rows), device=ids.device)[:, None], ends]

    def count_bytes(self, steps: int) -> int:
        """Return the bytes of the positions of a row that are read again with `steps` more."""
        return max(map(len, self.rows)) * sizes_of(self.text.loaded).position

    @torch.inference_mode()
    def _update(self) -> None:
        nothing = np.zeros((len(self.rows), 0), dtype=np.int64)
        self.logits = self.text.head.logits(self.states(range(len(self.rows)), nothing)[:, 0])


class SpanText(SpanSlots):
    """Continuations by a sentinel model: a prompt is a sentence with a sentinel as mask slot."""

    def __init__(self, loaded: Loaded, budget: Budget | None = None) -> None:
        super().__init__(loaded, budget)
        self.lead = np.array([self.start, self.opening], dtype=np.int64)

    def count_bytes(self, length: int, steps: int, rows: int) -> int:
        """Return the bytes per sentence while `rows` continuations of it get `steps` tokens."""
        sizes = sizes_of(self.loaded)
        row = length * sizes.context + steps * sizes.position + sizes.logits
        return length * sizes.state + rows * row

    def open(self, prompts: Sequence[Ids]) -> Stream:
        """Open a stream over sentences; all continuations share their encodings."""
        return _Span(self, prompts)

    def read(
        self, stream: Stream, owners: Sequence[int], suffixes: Sequence[Ids], read: Reader
    ) -> Extracted:
        """Score every token of every suffix in the sentence's mask slot, like CausalText.read."""
        encoded = stream.encoded  # type: ignore[attr-defined]
        for length in sorted({len(s) for s in suffixes}):
            numbers = np.array([i for i, s in enumerate(suffixes) if len(s) == length])
            rows = [np.concatenate([self.lead, suffixes[i][:-1]]) for i in numbers]
            chosen = [owners[i] for i in numbers]
            yield from self.visit(encoded, chosen, rows, read, length, numbers)


class _Span(Stream):
    """Decoder rows over encoded sentences."""

    def __init__(self, text: SpanText, prompts: Sequence[Ids]) -> None:
        self.encoded = text.encode(prompts)
        super().__init__(text, [text.lead] * len(prompts))

    @torch.inference_mode()
    def _update(self) -> None:
        states = self.text._final(self.encoded, self.owners, self.rows, 1)
        self.logits = self.text.head.logits(states)[:, 0]

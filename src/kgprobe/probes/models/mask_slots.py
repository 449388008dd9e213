"""Vocabulary scores at mask slots: the body runs once per row, the head only at the mask slots.

No array of (rows x vocabulary) is stored: a reader extracts what it needs from slices of logits.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from kgprobe.probes.models.batching import Budget, padded, sizes_of
from kgprobe.probes.models.checks import refuse_padding
from kgprobe.probes.models.load import Loaded
from kgprobe.probes.models.parts import Parts

Ids = NDArray[np.int64]
#: Takes the row numbers of a slice (r) and the logits at their slots (r x slots x vocabulary), and
#: returns the values extracted from them.
Reader = Callable[[NDArray[np.int64], Any], Any]
#: Takes the row numbers of a slice and the values extracted from them.
Put = Callable[[NDArray[np.int64], Any], None]
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
        states: Callable[[NDArray[np.int64]], Any],
        read: Reader,
        put: Put,
        held: Sequence[int] | None = None,
        numbers: NDArray[np.int64] | None = None,
    ) -> None:
        """Score rows in batches and slices; `states` returns the states at their slots.

        `numbers` are the row numbers to report if the rows are a subset.
        """

        def forward(batch: NDArray[np.int64]) -> list[tuple[NDArray[np.int64], Any]]:
            hidden, results = states(batch), []
            named = batch if numbers is None else numbers[batch]
            step = max(SLICE // (4 * hidden.shape[1] * self.columns), 1)
            for start in range(0, len(batch), step):
                some = named[start : start + step]
                results.append((some, read(some, self.head.logits(hidden[start : start + step]))))
            return results

        def keep(_: NDArray[np.int64], results: list[tuple[NDArray[np.int64], Any]]) -> None:
            for some, value in results:
                put(some, value)

        self.each(lengths, forward, keep, held=held)


class MaskSlots(Slots):
    """A masked model scored at several positions of every row.

    `positions_fed` counts padded positions, `notes` lists deviations.
    """

    @torch.inference_mode()
    def visit(self, rows: Sequence[Ids], places: Sequence[Ids], read: Reader, put: Put) -> None:
        """Call `read` on the logits at `places` of every row and pass the result to `put`.

        All rows have the same number of places. Logits are float32 (float64 for a float64 model).
        After out-of-memory `read` is called again for a batch.
        """

        def states(batch: NDArray[np.int64]) -> Any:
            ids, mask = padded([rows[b] for b in batch], self.pad, self.loaded.device)
            columns = torch.from_numpy(np.stack([places[b] for b in batch])).to(ids.device)
            given = None if bool(mask.all()) else mask
            return self.at(ids, given, columns)

        self._visit([len(r) for r in rows], states, read, put)


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

        def forward(batch: NDArray[np.int64]) -> None:
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
        put: Put,
        last: int = 1,
        numbers: NDArray[np.int64] | None = None,
    ) -> None:
        """Pass row numbers and logits (r x last x vocabulary) to `read`, its result to `put`.

        Each row contains the decoder tokens so far (including the start token) for the context with
        number `owner`; the logits are those that follow each of its `last` final tokens. `numbers`
        are as in `_visit`.
        """

        def states(batch: NDArray[np.int64]) -> Any:
            chosen = [owners[b] for b in batch], [rows[b] for b in batch]
            return self._final(encoded, *chosen, last)

        held = [encoded[0].shape[1] * sizes_of(self.loaded).context] * len(rows)
        self._visit([len(r) for r in rows], states, read, put, held, numbers)

    @torch.inference_mode()
    def following(
        self, encoded: tuple[Any, Any], owners: Sequence[int], rows: Sequence[Ids]
    ) -> Any:
        """Return logits (rows x vocabulary) of the next token of all rows at once."""
        return self.head.logits(self._final(encoded, owners, rows, 1))[:, 0]

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

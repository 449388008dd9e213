"""Vocabulary scores at gaps: the body once per row, the head at the gaps (scoring.md, 6, 7.2).

Nothing of (rows x vocabulary) is kept: a reader takes what it needs from each slice of logits.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn
from torch.nn.functional import linear

from kgprobe.probes.models.batching import Budget, padded
from kgprobe.probes.models.checks import allowed, budget_of, objection, refuse_padding
from kgprobe.probes.models.decoder import Decoder
from kgprobe.probes.models.head import apart
from kgprobe.probes.models.load import Loaded, ModelError
from kgprobe.probes.models.masked import find_head

Ids = NDArray[np.int64]
#: Takes the row numbers of a slice (r) and the logits at their gaps (r x gaps x vocabulary).
Reader = Callable[[NDArray[np.int64], Any], None]
#: Logits of one slice, in bytes.
SLICE = 64 << 20


class MaskedGaps:
    """A masked model read at several positions of every row.

    `vocabulary` cuts the softmax to the first so many ids (rows added for soft tokens stay out).
    `only` restricts it to given ids, whose rows of the head are taken once: column i of the logits
    then belongs to id only[i]. `positions_fed` counts padded positions, `notes` says what differed.
    """

    def __init__(
        self,
        loaded: Loaded,
        budget: Budget | None = None,
        vocabulary: int | None = None,
        only: Ids | None = None,
    ) -> None:
        self.notes: list[str] = []
        self.loaded, self.budget = loaded, budget_of(loaded, budget, self.notes)
        self.body, self.head = loaded.model.base_model, find_head(loaded.model)
        self.only = None if only is None else torch.from_numpy(only).to(loaded.device)
        self.vocabulary = vocabulary
        self.columns = len(only) if only is not None else int(loaded.model.config.vocab_size)
        self.positions_fed = 0
        self._read_head: Callable[[Any], Any] | None = None

    @torch.inference_mode()
    def visit(self, rows: Sequence[Ids], places: Sequence[Ids], read: Reader) -> None:
        """Call `read` on the logits at `places` of every row; all rows have equally many places.

        Logits are float32 (float64 where the model is). After out-of-memory a batch is read again,
        so that `read` must overwrite and not add up.
        """
        gaps = len(places[0]) if len(places) else 0
        if any(len(p) != gaps for p in places):
            raise ValueError("rows of one visit must have equally many gaps")

        def forward(batch: NDArray[np.int64]) -> None:
            pad = self.loaded.tokenizer.pad_token_id or 0
            ids, mask = padded([rows[b] for b in batch], pad, self.loaded.device)
            self.positions_fed += ids.numel()
            columns = torch.from_numpy(np.stack([places[b] for b in batch])).to(ids.device)
            given = None if bool(mask.all()) else mask
            states, head = self._states(ids, given, columns)
            step = max(SLICE // (4 * gaps * self.columns), 1)
            for start in range(0, len(batch), step):
                logits = head(states[start : start + step])
                read(batch[start : start + step], _precise(logits)[..., : self.vocabulary])

        self.budget.run([len(r) for r in rows], forward)

    def _states(self, ids: Any, mask: Any, columns: Any) -> tuple[Any, Callable[[Any], Any]]:
        """Hidden states at the gaps (rows x gaps x width) and what turns them into logits."""
        index = torch.arange(len(ids), device=ids.device)[:, None]
        if self._read_head is None:
            few = None if mask is None else mask[:1]
            whole = self.loaded.model(ids[:1], attention_mask=few).logits
            self._read_head = self._checked(ids[:1], few, columns[:1], whole)
        if self.head is None:
            return self.loaded.model(ids, attention_mask=mask).logits[index, columns], self._chosen
        return self._hidden(ids, mask, columns), self._read_head

    def _hidden(self, ids: Any, mask: Any, columns: Any) -> Any:
        index = torch.arange(len(ids), device=ids.device)[:, None]
        return self.body(ids, attention_mask=mask).last_hidden_state[index, columns]

    def _checked(self, ids: Any, mask: Any, columns: Any, whole: Any) -> Callable[[Any], Any]:
        """The head alone, if it gives the whole model's log-probabilities; the rows it needs."""
        head, expected = self.head, whole[:, columns[0]]
        reason = f"the head of {type(self.loaded.model).__name__}"
        if head is not None:
            reason = objection(
                lambda: apart(head(self._hidden(ids, mask, columns)), expected),
                allowed(self.loaded),
            )
        if head is None or reason:
            self.notes.append(f"head at all positions: {reason}")
            self.head = None
            return self._chosen
        if self.only is None:
            return head
        rows = head_rows(self.loaded.model, head, self.only)
        if rows is not None and not objection(
            lambda: apart(rows(self._hidden(ids, mask, columns)), self._chosen(expected)),
            allowed(self.loaded),
        ):
            return rows
        return lambda hidden: self._chosen(head(hidden))

    def _chosen(self, logits: Any) -> Any:
        return logits if self.only is None else logits[..., self.only]


class SpanGaps:
    """A sentinel model: the encoder reads the gapped sentence once, decoder rows are read after."""

    def __init__(self, loaded: Loaded, budget: Budget | None = None) -> None:
        self.loaded, self.budget = loaded, budget or Budget()
        # contexts of all lengths lie beside each other in one tensor
        refuse_padding(loaded, "gaps of seq2seq models")
        names = ["<extra_id_0>", "<extra_id_1>"]
        ids = loaded.tokenizer.convert_tokens_to_ids(names)
        if None in ids or loaded.tokenizer.unk_token_id in ids:
            raise ModelError(f"{loaded.spec.model}: its tokenizer has no sentinels {names}")
        self.opening, self.closing = (int(i) for i in ids)
        start = loaded.model.config.decoder_start_token_id
        self.start = int(loaded.tokenizer.pad_token_id if start is None else start)
        self.pad = int(loaded.tokenizer.pad_token_id or 0)
        self.positions_fed = 0
        self.decoder = Decoder(loaded)
        self.notes = self.decoder.notes

    @torch.inference_mode()
    def encode(self, contexts: Sequence[Ids]) -> tuple[Any, Any]:
        """(states, mask) of the gapped sentences, padded to the longest."""
        ids, mask = padded(contexts, self.pad, self.loaded.device)
        states = None

        def forward(batch: NDArray[np.int64]) -> None:
            nonlocal states
            longest = max(len(contexts[b]) for b in batch)
            own = ids[batch, :longest]
            self.positions_fed += own.numel()
            found = self.decoder.encode(own, mask[batch, :longest])
            if states is None:
                states = found.new_zeros(len(contexts), ids.shape[1], found.shape[2])
            states[batch, :longest] = found

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
    ) -> None:
        """Call `read` with batches of row numbers and the decoder's logits (r x last x vocabulary).

        Each row is what the decoder has read (from its start token on) after the context of number
        `owner`; the logits are those that follow each of its `last` final tokens.
        """

        def forward(batch: NDArray[np.int64]) -> None:
            final = self._final(encoded, [owners[b] for b in batch], [rows[b] for b in batch], last)
            step = max(SLICE // (4 * last * int(self.loaded.model.config.vocab_size)), 1)
            for start in range(0, len(batch), step):
                logits = self.decoder.logits(final[start : start + step])
                read(batch[start : start + step], _precise(logits))

        self.budget.run([len(r) for r in rows], forward)

    @torch.inference_mode()
    def following(
        self, encoded: tuple[Any, Any], owners: Sequence[int], rows: Sequence[Ids]
    ) -> Any:
        """Logits (rows x vocabulary) of the next token of all rows at once."""
        return _precise(self.decoder.logits(self._final(encoded, owners, rows, 1)))[:, 0]

    def _final(
        self, encoded: tuple[Any, Any], owners: Sequence[int], rows: Sequence[Ids], last: int
    ) -> Any:
        """Decoder states (rows x last x width) of the `last` final tokens of every row."""
        ids, _ = padded(rows, self.pad, self.loaded.device)
        self.positions_fed += ids.numel()
        pick = torch.tensor(owners, device=ids.device)
        hidden = self.decoder.states(encoded[0][pick], encoded[1][pick], ids)
        lengths = torch.tensor([len(r) for r in rows], device=ids.device)[:, None]
        places = lengths - last + torch.arange(last, device=ids.device)
        return hidden[torch.arange(len(rows), device=ids.device)[:, None], places]


def head_rows(model: Any, head: Any, ids: Any) -> Callable[[Any], Any] | None:
    """The prediction head restricted to the output rows `ids`; None where that cannot be had."""
    output = model.get_output_embeddings()
    if not isinstance(head, nn.Module) or not isinstance(output, nn.Linear):
        return None
    names = [name for name, module in head.named_modules() if module is output]
    if not names:
        return None
    weight = output.weight[ids]
    bias = None if output.bias is None else output.bias[ids]
    if names[0] == "":
        return lambda hidden: linear(hidden, weight, bias)
    swapped = {f"{names[0]}.weight": weight}
    if bias is not None:
        swapped[f"{names[0]}.bias"] = bias
    return lambda hidden: torch.func.functional_call(head, swapped, (hidden,))


def _precise(logits: Any) -> Any:
    return logits if logits.dtype == torch.float64 else logits.float()

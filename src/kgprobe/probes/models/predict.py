"""Predictions at one position per prompt: the input of the output embedding, and logits.

    rows, places --body--> hidden state at the place --transform--> feature --output rows--> logits

The feature is the vector that is multiplied with the output embedding: BERT's transformed state,
RoBERTa's layer norm, the final norm of a causal model, a sentinel model's (scaled) decoder state.
Masked models are read at the position itself, causal ones at the token that predicts the next one;
for sentinel models the decoder has read its start token and the sentinel. A prefix that all rows of
a causal model share, mostly demonstrations, is fed once for many rows.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from kgprobe.probes.models.batching import Budget, Ints, Ragged, budget_for, padded
from kgprobe.probes.models.causal import Causal
from kgprobe.probes.models.finite import finite
from kgprobe.probes.models.load import Loaded
from kgprobe.probes.models.parts import Parts

#: Takes the numbers of the rows of a slice (r), logits (r x columns) and their log-sum-exp over the
#: whole vocabulary (r), float32 or float64.
Reader = Callable[[Ints, Any, Any], None]
#: Describes a row in messages.
Name = Callable[[int], str]
#: End of the error message for models without a linear layer over the vocabulary.
MUST = "prompts cannot be searched on it"
#: Bytes of the logits of one slice.
SLICE = {"cpu": 16 << 20, "cuda": 1 << 30}


class Predictor:
    """Predictions of a model for many prompts, batched by length."""

    def __init__(self, loaded: Loaded, budget: Budget | None = None) -> None:
        self.loaded, self.parts = loaded, Parts(loaded, budget or budget_for(loaded), MUST)
        self.parts.scored_layer()
        self.budget = self.parts.budget
        self.columns = int(self.output_rows()[0].shape[0])
        self._shared: Causal | None = None

    @property
    def positions_fed(self) -> int:
        """Padded positions that went through the model's body."""
        return self.parts.positions_fed + (self._shared.positions_fed if self._shared else 0)

    def features(
        self,
        rows: Sequence[Ints],
        places: Ints,
        types: Sequence[Ints] | None = None,
        name: Name = "prompt {}".format,
    ) -> NDArray[np.float32]:
        """Return (n, d) float32: the input of the output embedding at the position of each row.

        Raises NotFiniteError, with `name` and position.
        """
        width = self.output_rows()[0].shape[1]
        result = np.zeros((len(rows), width), dtype=np.float32)

        def keep(batch: Ints, features: Any) -> None:
            values = features.float().cpu().numpy()
            self._check_finite(values, batch, places, name, "vector before the output embedding")
            result[batch] = values

        self._run(rows, places, types, keep)
        return result

    def visit(
        self,
        rows: Sequence[Ints],
        places: Ints,
        read: Reader,
        types: Sequence[Ints] | None = None,
        only: Ints | None = None,
        name: Name = "prompt {}".format,
    ) -> None:
        """Call `read(numbers, logits, totals)` on slices of all rows.

        Log-probabilities are logits - totals[:, None]: `totals` sums over the whole vocabulary even
        if `only` restricts the columns to given ids. After out-of-memory a batch is read again,
        so `read` must overwrite and not add up. Raises NotFiniteError, with `name` and position,
        before `read` gets a row that contains NaN or infinity.
        """
        device = self.loaded.device
        chosen = None if only is None else torch.from_numpy(np.asarray(only)).to(device)
        room = SLICE["cpu" if device.type == "cpu" else "cuda"]
        step = max(room // (4 * self.columns), 1)

        def give(batch: Ints, features: Any) -> None:
            for start in range(0, len(batch), step):
                logits = self.parts.head.decode(features[start : start + step])
                totals, numbers = logits.logsumexp(-1), batch[start : start + step]
                self._check_finite(totals, numbers, places, name, "log-sum-exp of the logits")
                if chosen is not None:
                    logits = logits.index_select(1, chosen)
                read(numbers, logits, totals)

        self._run(rows, places, types, give)

    def _check_finite(self, values: Any, batch: Ints, places: Ints, name: Name, what: str) -> None:
        """Check that values (first axis: the rows of `batch`) are finite."""

        def where(row: int, *_: int) -> str:
            return f"{name(int(batch[row]))}, token {places[batch[row]]}"

        finite(values, self.loaded.spec.model, where, what)

    def output_rows(self) -> tuple[Any, Any]:
        """Return (weight (V, d), bias (V) or None) of the output embedding as model tensors."""
        decoder = self.parts.head.decoder
        assert decoder is not None
        return decoder.weight.detach(), None if decoder.bias is None else decoder.bias.detach()

    @torch.inference_mode()
    def _run(
        self,
        rows: Sequence[Ints],
        places: Ints,
        types: Sequence[Ints] | None,
        take: Callable[[Ints, Any], None],
    ) -> None:
        device, pad = self.loaded.device, self.parts.pad
        if self._through_prefix(rows, places, take):
            return

        def forward(batch: Ints) -> None:
            ids, mask = padded([rows[b] for b in batch], pad, device)
            kinds = None if types is None else padded([types[b] for b in batch], 0, device)[0]
            at = torch.from_numpy(np.ascontiguousarray(places[batch])).to(device)
            given = None if bool(mask.all()) else mask
            take(batch, self.parts.head.features(self.parts.at(ids, given, at, kinds)))

        self.budget.run([len(row) for row in rows], forward)

    def _through_prefix(
        self, rows: Sequence[Ints], places: Ints, take: Callable[[Ints, Any], None]
    ) -> bool:
        """Feed the common prefix of all rows of a causal model only a few times; return False if
        the prefix makes up less than half of the tokens."""
        if self.loaded.spec.kind != "causal" or len(rows) < 2:
            return False
        ids = Ragged.of(rows)
        if 2 * ids.common * len(rows) < ids.lengths.sum() or (places != ids.lengths - 1).any():
            return False
        self._shared = self._shared or Causal(self.loaded, self.budget)
        features = self.parts.head.features
        return self._shared.visit_ends(ids, lambda rows, states: take(rows, features(states)))

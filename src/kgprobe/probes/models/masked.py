"""Log-probabilities at masked positions (docs/scoring.md, Masked)."""

from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray

from kgprobe.probes.models.batching import Budget, Ints, Ragged, padded
from kgprobe.probes.models.finite import finite
from kgprobe.probes.models.load import Loaded
from kgprobe.probes.models.parts import Parts


class Masked(Parts):
    """One model; rows are sentences with some tokens masked, scored at one position each.

    With `last_layer` "scored" the last layer is computed only at scored positions, if possible.
    """

    counters = (*Parts.counters, "rows_fed")

    def __init__(self, loaded: Loaded, budget: Budget | None, last_layer: str = "scored") -> None:
        super().__init__(loaded, budget)
        self.rows_asked = self.rows_fed = 0
        if last_layer == "scored":
            self.scored_layer()

    @property
    def last_layer(self) -> str:
        """Where the last layer is computed: at "all" positions, or at "scored" ones."""
        return "all" if self._scored is None else "scored"

    @torch.inference_mode()
    def logprobs(
        self,
        sentences: Ragged,
        owners: Ints,
        places: Ints,
        ends: Ints,
        done: Callable[[int], object] = lambda rows: None,
    ) -> NDArray[np.float64]:
        """Return log p at places[i] of sentence owners[i] while places[i]:ends[i] are masked.

        Rows that are equal and scored at the same position are fed once. `done` gets the number of
        rows scored. Raises NotFiniteError, with name and position.
        """
        token = self.loaded.tokenizer.mask_token_id
        targets = sentences.values[sentences.starts[owners] + places]
        distinct, at, which, sample = _distinct(sentences, owners, places, ends, token)
        order = np.argsort(which, kind="stable")
        bounds = np.concatenate([[0], np.cumsum(np.bincount(which, minlength=len(distinct)))])
        result = np.zeros(len(owners))
        self.rows_asked += len(owners)

        def forward(batch: Ints) -> NDArray[np.float64]:
            ids, mask = padded([distinct[b] for b in batch], self.pad, self.loaded.device)
            answered = [order[bounds[b] : bounds[b + 1]] for b in batch]
            flat = np.concatenate(answered)
            row_of = np.repeat(np.arange(len(batch)), [len(a) for a in answered])
            given = None if bool(mask.all()) else mask
            hidden = self.at(ids, given, self._tensor(at[batch]))
            values = self.scores(hidden, row_of, targets[flat])
            finite(
                values,
                self.loaded.spec.model,
                lambda n: f"{sentences.name(int(owners[flat[n]]))}, token {places[flat[n]]}",
            )
            self.rows_fed += len(batch)
            return values

        for batch, scores in self.each(
            distinct.lengths, forward, name=lambda r: sentences.name(int(owners[sample[r]]))
        ):
            flat = np.concatenate([order[bounds[b] : bounds[b + 1]] for b in batch])
            result[flat] = scores
            done(len(flat))
        return result


def _distinct(
    sentences: Ragged, owners: Ints, places: Ints, ends: Ints, mask: int
) -> tuple[Ragged, Ints, Ints, Ints]:
    """Deduplicate rows: return (tokens, scored position, row number per query, one query per row).

    Rows are ordered by their first appearance.
    """
    table = sentences.matrix(-1)[owners]
    columns = np.arange(table.shape[1])[None, :]
    table[(columns >= places[:, None]) & (columns < ends[:, None])] = mask
    key = np.ascontiguousarray(np.concatenate([table, places[:, None]], axis=1))
    packed = key.view(np.dtype((np.void, key.strides[0]))).ravel()
    _, first, inverse = np.unique(packed, return_index=True, return_inverse=True)
    sample = np.sort(first)
    which = np.searchsorted(sample, first)[inverse.ravel()]
    lengths = sentences.lengths[owners[sample]]
    values = table[sample][columns < lengths[:, None]]
    starts = np.concatenate([[0], np.cumsum(lengths)])
    return Ragged(values, starts), places[sample], which, sample

"""Batches by a budget of padded positions, and what happens when memory runs out."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray

T = TypeVar("T")
#: Padded positions of a batch: enough to keep the processor busy, small beside the models.
DEFAULT_BUDGET = 1024


@dataclass
class Budget:
    """Padded positions per batch. It halves when memory runs out, and stays halved."""

    positions: int = DEFAULT_BUDGET
    backoffs: list[int] = field(default_factory=list)

    def batches(self, lengths: Sequence[int]) -> Iterator[NDArray[np.int64]]:
        """Indices into `lengths`, longest first, so that trouble comes at once.

        The order is fixed by (length, index): the composition of batches is part of the result's
        last bits, and does not depend on anything but the lengths and the budget.
        """
        order = np.lexsort((np.arange(len(lengths)), -np.asarray(lengths, dtype=np.int64)))
        start = 0
        while start < len(order):
            longest = max(int(lengths[order[start]]), 1)
            rows = max(self.positions // longest, 1)
            yield order[start : start + rows]
            start += rows

    def run(self, lengths: Sequence[int], forward: Callable[[NDArray[np.int64]], None]) -> None:
        """Call `forward` on every batch; on out-of-memory with halves of it, down to single rows.

        Nothing is lost: the batch that failed is repeated. Any other exception propagates.
        """
        for batch in self.batches(lengths):
            self._attempt(batch, lengths, forward)

    def _attempt(
        self,
        batch: NDArray[np.int64],
        lengths: Sequence[int],
        forward: Callable[[NDArray[np.int64]], None],
    ) -> None:
        try:
            forward(batch)
        except (torch.OutOfMemoryError, MemoryError) as error:
            if len(batch) == 1:
                raise MemoryError(
                    f"row {batch[0]} of {lengths[batch[0]]} tokens does not fit into memory"
                ) from error
            if torch.cuda.is_available():
                torch.cuda.empty_cache()
            self.positions = max(self.positions // 2, 1)
            self.backoffs.append(self.positions)
            half = len(batch) // 2
            self._attempt(batch[:half], lengths, forward)
            self._attempt(batch[half:], lengths, forward)


def padded(rows: Sequence[NDArray[np.int64]], fill: int, device: Any) -> tuple[Any, Any]:
    """(ids, mask) of right-padded rows as int64 tensors, rows x longest."""
    lengths = np.array([len(row) for row in rows])
    ids = np.full((len(rows), int(lengths.max())), fill, dtype=np.int64)
    mask = np.arange(ids.shape[1])[None, :] < lengths[:, None]
    ids[mask] = np.concatenate(rows)
    return torch.from_numpy(ids).to(device), torch.from_numpy(mask.astype(np.int64)).to(device)


def target_logprobs(head: Any, hidden: Any, targets: Any, slice_bytes: int = 64 << 20) -> Any:
    """log p(target) per row: head, logsumexp and gather in float32, in slices of bounded size.

    `hidden` is rows x width, `targets` int64 per row; gives float32 per row.
    """
    out = torch.empty(len(targets), dtype=torch.float32, device=hidden.device)
    step, start = 1, 0
    while start < len(targets):
        logits = head(hidden[start : start + step]).float()
        chosen = logits.gather(1, targets[start : start + step, None])[:, 0]
        out[start : start + step] = chosen - logits.logsumexp(1)
        start += step
        step = max(slice_bytes // (4 * logits.shape[1]), 1)
    return out

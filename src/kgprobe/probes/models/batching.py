"""Batches by a budget of padded positions, and what happens when memory runs out."""

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

Ints = NDArray[np.int64]
#: Padded positions of a batch where nothing is known of the model.
DEFAULT_BUDGET = 1024
#: Positions of a batch by device: more gain nothing on a processor, and leave its caches; on an
#: accelerator memory is the bound.
CAPS = {"cpu": 512, "cuda": 1 << 16}
#: What starting one layer costs, as arithmetic not done meanwhile: 0.1 ms or so.
FLOP_PER_START = {"cpu": 12e6, "cuda": 4e10}
#: What a pass of few rows through all weights costs, in positions.
STEP = 16
#: Positions that a processor may hold when such passes follow.
STEPPED = 2048
#: Words of errors that say that memory ran out, of torch's allocator on a processor and of the
#: libraries on an accelerator, which ask for memory of their own.
NO_MEMORY = (
    "can't allocate memory", "not enough memory", "out of memory", "CUBLAS_STATUS_ALLOC_FAILED",
    "CUDNN_STATUS_ALLOC_FAILED", "CUSOLVER_STATUS_ALLOC_FAILED", "CUSPARSE_STATUS_ALLOC_FAILED",
    "CUFFT_ALLOC_FAILED",
)  # fmt: skip
#: A batch should be worth so many starts.
STARTS = 192


@dataclass(frozen=True)
class Ragged:
    """Sequences of different lengths in one array: values[starts[i]:starts[i + 1]] is the i-th."""

    values: NDArray[Any]
    starts: Ints

    @classmethod
    def of(cls, rows: Sequence[NDArray[Any]]) -> "Ragged":
        """From a list of arrays."""
        sizes = np.array([len(row) for row in rows], dtype=np.int64)
        values = np.concatenate(rows) if len(rows) else np.zeros(0, dtype=np.int64)
        return cls(values, np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64))

    def __len__(self) -> int:
        return len(self.starts) - 1

    def __getitem__(self, index: int) -> NDArray[Any]:
        return self.values[self.starts[index] : self.starts[index + 1]]

    @property
    def lengths(self) -> Ints:
        """Length of every sequence."""
        return np.diff(self.starts)

    @property
    def owners(self) -> Ints:
        """For every value the number of its sequence."""
        return np.repeat(np.arange(len(self)), self.lengths)

    @property
    def places(self) -> Ints:
        """For every value its place within its sequence."""
        return np.arange(len(self.values)) - np.repeat(self.starts[:-1], self.lengths)

    @property
    def common(self) -> int:
        """How many values all sequences begin with alike."""
        matrix = self.matrix(-1)
        same = (matrix == matrix[:1]).all(0)
        return min(len(same) if same.all() else int(same.argmin()), int(self.lengths.min()))

    def matrix(self, fill: int) -> NDArray[Any]:
        """Rows x longest, padded at the right."""
        lengths = self.lengths
        found = np.full((len(self), int(lengths.max(initial=0))), fill, dtype=self.values.dtype)
        found[np.arange(found.shape[1])[None, :] < lengths[:, None]] = self.values
        return found


@dataclass
class Budget:
    """Padded positions per batch. It halves when memory runs out, and stays halved.

    `overhead` is what one more pass costs, in positions: rows of another length join a batch only
    where padding them costs less.
    """

    positions: int = DEFAULT_BUDGET
    backoffs: list[int] = field(default_factory=list)
    overhead: int = 16

    def stepped(self, steps: int) -> "Budget":
        """For prompts after which so many passes of one position a row follow.

        Each of them reads all weights, however few rows there are: more rows at once, of other
        lengths too, cost less than more passes.
        """
        positions = max(self.positions, min(4 * self.positions, STEPPED))
        return replace(self, positions=positions, overhead=self.overhead + STEP * steps)

    def batches(self, lengths: Sequence[int] | Ints) -> Iterator[Ints]:
        """Indices into `lengths`, longest first, so that trouble comes at once.

        The order is fixed by (length, index): the composition of batches is part of the result's
        last bits, and does not depend on anything but the lengths and the budget.
        """
        sizes = np.maximum(np.asarray(lengths, dtype=np.int64), 1)
        order = np.lexsort((np.arange(len(sizes)), -sizes))
        steps = np.flatnonzero(np.diff(sizes[order])) + 1
        start = 0
        while start < len(order):
            longest = int(sizes[order[start]])
            end = min(start + max(self.positions // longest, 1), len(order))
            for step in steps[(steps > start) & (steps < end)]:
                following = steps[steps > step]
                run = min(int(following[0]) if len(following) else len(order), end) - step
                if run * (longest - int(sizes[order[step]])) > self.overhead:
                    end = int(step)
                    break
            yield order[start:end]
            start = end

    def packed(self, sizes: Sequence[int] | Ints) -> Iterator[Ints]:
        """Like `batches`, for pieces that are laid end to end and need no padding."""
        order = np.lexsort((np.arange(len(sizes)), -np.asarray(sizes, dtype=np.int64)))
        ends = np.cumsum(np.asarray(sizes, dtype=np.int64)[order])
        start, fed = 0, 0
        while start < len(order):
            end = max(int(np.searchsorted(ends, fed + self.positions, side="right")), start + 1)
            yield order[start:end]
            start, fed = end, int(ends[end - 1])

    def run(
        self,
        lengths: Sequence[int] | Ints,
        forward: Callable[[Ints], None],
        packed: bool = False,
        name: Callable[[int], str] = "row {}".format,
    ) -> None:
        """Call `forward` on every batch; on out-of-memory with halves of it, down to single rows.

        Nothing is lost: the batch that failed is repeated. Any other exception propagates. `name`
        says what a row is, for the message about one that does not fit by itself.
        """
        for batch in self.packed(lengths) if packed else self.batches(lengths):
            self._attempt(batch, lengths, forward, name)

    def _attempt(
        self,
        batch: Ints,
        lengths: Sequence[int] | Ints,
        forward: Callable[[Ints], None],
        name: Callable[[int], str],
    ) -> None:
        try:
            forward(batch)
        except (MemoryError, RuntimeError) as error:
            if not is_memory(error):
                raise
            if len(batch) == 1:
                raise MemoryError(
                    f"{name(int(batch[0]))} of {lengths[batch[0]]} tokens does not fit into memory"
                ) from error
        else:
            return
        # outside of the handler, whose exception would keep the failed tensors alive
        if torch.cuda.is_available():
            torch.cuda.empty_cache()
        self.positions = max(self.positions // 2, 1)
        self.backoffs.append(self.positions)
        half = len(batch) // 2
        self._attempt(batch[:half], lengths, forward, name)
        self._attempt(batch[half:], lengths, forward, name)


def is_memory(error: BaseException) -> bool:
    """Whether memory ran out; allocators of processors and of libraries say so in a RuntimeError."""
    if isinstance(error, (MemoryError, torch.OutOfMemoryError)):
        return True
    return any(sign in str(error) for sign in NO_MEMORY)


def budget_for(loaded: Any, memory: int | None = None) -> Budget:
    """The budget that a model's sizes and the memory allow; nothing to configure.

    `memory` in bytes; default half of what is free on the model's device. On a processor the bound
    is nearly always the cap, so that batches do not depend on what else runs there.
    """
    model, device = loaded.model, loaded.device.type
    table = model.get_input_embeddings().weight
    text = model.config.get_text_config()
    layers = getattr(text, "num_hidden_layers", None) or getattr(text, "num_layers", 12) or 12
    width = int(table.shape[1])
    # residual stream, projections and feed-forward of one layer; keys and values; head's input
    row = 24 * max(width, int(getattr(text, "hidden_size", width))) * table.element_size()
    body = max(sum(p.numel() for p in model.parameters()) - table.numel(), 1)
    overhead = int(min(FLOP_PER_START.get(device, 12e6) * int(layers) / (2 * body), 4096))
    cap = CAPS.get(device, CAPS["cpu"])
    # small models need larger batches, or starting the passes is what they do
    cap = max(cap, min(STARTS * overhead, 8 * cap))
    given = _free(loaded.device) // 2 if memory is None else memory
    return Budget(int(min(max(given // row, 1), cap)), overhead=max(overhead, 1))


def _free(device: Any) -> int:
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[0])
    return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def padded(rows: Sequence[NDArray[Any]], fill: int, device: Any) -> tuple[Any, Any]:
    """(ids, mask) of right-padded rows as int64 tensors, rows x longest."""
    lengths = np.array([len(row) for row in rows])
    ids = np.full((len(rows), int(lengths.max())), fill, dtype=np.int64)
    mask = np.arange(ids.shape[1])[None, :] < lengths[:, None]
    ids[mask] = np.concatenate(rows)
    return torch.from_numpy(ids).to(device), torch.from_numpy(mask.astype(np.int64)).to(device)

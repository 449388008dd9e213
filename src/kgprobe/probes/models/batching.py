"""Batches bounded by a number of padded positions, and recovery from running out of memory."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray

T = TypeVar("T")
Ints = NDArray[np.int64]
#: Padded positions of a batch if nothing is known about the model.
DEFAULT_BUDGET = 1024
#: Positions of a batch by device: on a CPU larger batches gain nothing and exceed its caches; on an
#: accelerator memory is the limit.
CAPS = {"cpu": 512, "cuda": 1 << 16}
#: Maximum multiplications of a CPU batch, a few seconds on two cores: the work lost by a stop.
WORK = 5e11
#: Cost of launching one layer, as the arithmetic that could be done meanwhile: about 0.1 ms.
FLOP_PER_START = {"cpu": 12e6, "cuda": 4e10}
#: Cost, in positions, of a pass of a few rows through all weights.
STEP = 16
#: Maximum positions of a CPU batch when such passes follow.
STEPPED = 2048
#: Parts of error messages that mean out of memory: of torch's CPU allocator and of the libraries
#: on an accelerator, which allocate memory themselves.
NO_MEMORY = (
    "can't allocate memory", "not enough memory", "out of memory", "CUBLAS_STATUS_ALLOC_FAILED",
    "CUDNN_STATUS_ALLOC_FAILED", "CUSOLVER_STATUS_ALLOC_FAILED", "CUSPARSE_STATUS_ALLOC_FAILED",
    "CUFFT_ALLOC_FAILED",
)  # fmt: skip
#: Bytes of gradient graphs that exist at once on a CPU.
GRAPH = 1 << 30
#: Launches that the work of a batch should at least be worth.
STARTS = 192
MEMINFO = Path("/proc/meminfo")


@dataclass(frozen=True)
class Ragged:
    """Sequences of different lengths in one array: values[starts[i]:starts[i + 1]] is the i-th,
    which `name` describes in messages."""

    values: NDArray[Any]
    starts: Ints
    name: Callable[[int], str] = "sentence {}".format

    @classmethod
    def of(
        cls, rows: Sequence[NDArray[Any]], name: Callable[[int], str] = "sentence {}".format
    ) -> "Ragged":
        """Build from a list of arrays."""
        sizes = np.array([len(row) for row in rows], dtype=np.int64)
        values = np.concatenate(rows) if len(rows) else np.zeros(0, dtype=np.int64)
        return cls(values, np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64), name)

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
        """For every value, the index of its sequence."""
        return np.repeat(np.arange(len(self)), self.lengths)

    @property
    def places(self) -> Ints:
        """For every value, its position within its sequence."""
        return np.arange(len(self.values)) - np.repeat(self.starts[:-1], self.lengths)

    @property
    def common(self) -> int:
        """Length of the prefix that all sequences share."""
        matrix = self.matrix(-1)
        same = (matrix == matrix[:1]).all(0)
        return min(len(same) if same.all() else int(same.argmin()), int(self.lengths.min()))

    def distinct(self) -> tuple[Ints, Ints]:
        """Return (first index of each distinct sequence, distinct number of every sequence)."""
        known: dict[bytes, int] = {}
        number = [known.setdefault(self[i].tobytes(), len(known)) for i in range(len(self))]
        return np.unique(number, return_index=True)[1], np.array(number, dtype=np.int64)

    def matrix(self, fill: int) -> NDArray[Any]:
        """Return a rows x longest array, padded on the right."""
        lengths = self.lengths
        table = np.full((len(self), int(lengths.max(initial=0))), fill, dtype=self.values.dtype)
        table[np.arange(table.shape[1])[None, :] < lengths[:, None]] = self.values
        return table


@dataclass
class Budget:
    """Padded positions per batch. It halves when memory runs out, and stays halved.

    `overhead` is the cost of one more pass, in positions: rows of another length join a batch only
    if padding them costs less. `room` is the memory of a batch in bytes (0: only `positions` is a
    limit), of which a position takes `position` bytes, and a row what it stores besides (`held`:
    keys and values, the states of its context, beams). Rows of more than `border` positions share
    no batch with shorter ones (0: no such limit).
    """

    positions: int = DEFAULT_BUDGET
    backoffs: list[int] = field(default_factory=list)
    overhead: int = 16
    room: int = 0
    position: int = 0
    border: int = 0

    def stepped(self, steps: int) -> "Budget":
        """Adapt the budget for prompts that are followed by `steps` one-position passes per row.

        Each of these passes reads all weights, however few rows there are: more rows at once, also
        of different lengths, cost less than more passes.
        """
        positions = max(self.positions, min(4 * self.positions, STEPPED))
        return replace(self, positions=positions, overhead=self.overhead + STEP * steps)

    def halve(self) -> None:
        """Halve the limits, after memory ran out."""
        self.positions, self.room = max(self.positions // 2, 1), self.room and -(-self.room // 2)

    def follow(self, backoffs: Iterable[int]) -> None:
        """Halve the limits as often as in a stored part of the same work, unless they already are
        as low."""
        for positions in backoffs:
            if positions < self.positions:
                self.halve()

    def batches(
        self, lengths: Sequence[int] | Ints, held: Sequence[int] | Ints | None = None
    ) -> Iterator[Ints]:
        """Yield batches of indices into `lengths`, longest first, so that errors show early.

        `held`: bytes that each row stores besides its positions. The order is fixed by (length,
        index): the composition of batches affects the last bits of the results, and depends only on
        the lengths and the budget.
        """
        sizes = np.maximum(np.asarray(lengths, dtype=np.int64), 1)
        order = np.lexsort((np.arange(len(sizes)), -sizes))
        steps = np.flatnonzero(np.diff(sizes[order])) + 1
        extra = np.zeros(len(order), dtype=np.int64) if held is None else np.asarray(held)[order]
        start, long = 0, int((sizes > self.border).sum())
        while start < len(order):
            longest = int(sizes[order[start]])
            end = min(start + max(self.positions // longest, 1), len(order))
            end = min(end, long) if start < long else end
            if self.room:
                totals = np.cumsum(extra[start:end] + longest * self.position)
                end = start + max(int(np.searchsorted(totals, self.room, side="right")), 1)
            for step in steps[(steps > start) & (steps < end)]:
                following = steps[steps > step]
                run = min(int(following[0]) if len(following) else len(order), end) - step
                if run * (longest - int(sizes[order[step]])) > self.overhead:
                    end = int(step)
                    break
            yield order[start:end]
            start = end

    def packed(self, sizes: Sequence[int] | Ints) -> Iterator[Ints]:
        """Yield batches like `batches`, for sequences that are concatenated and need no padding."""
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
        forward: Callable[[Ints], object],
        name: Callable[[int], str] = "row {}".format,
        packed: bool = False,
    ) -> None:
        """Call `forward` on every batch, as in `each`."""
        for _ in self.each(lengths, forward, packed, name):
            pass

    def each(
        self,
        lengths: Sequence[int] | Ints,
        forward: Callable[[Ints], T],
        packed: bool = False,
        name: Callable[[int], str] = "row {}".format,
        held: Sequence[int] | Ints | None = None,
    ) -> Iterator[tuple[Ints, T]]:
        """Yield every batch with the result of `forward`; on out-of-memory halves of it, down to
        single rows.

        The batch that failed is repeated. Any other exception propagates. `name`
        describes a row, for the error message about one that does not fit by itself.
        """
        waiting = self.packed(lengths) if packed else self.batches(lengths, held)
        for batch in waiting:
            yield from self._attempt(batch, lengths, forward, name)

    def _attempt(
        self,
        batch: Ints,
        lengths: Sequence[int] | Ints,
        forward: Callable[[Ints], T],
        name: Callable[[int], str],
    ) -> Iterator[tuple[Ints, T]]:
        try:
            result = forward(batch)
        except (MemoryError, RuntimeError) as error:
            if not is_memory(error):
                raise
            if len(batch) == 1:
                raise MemoryError(
                    f"{name(int(batch[0]))} of {lengths[batch[0]]} tokens does not fit into memory"
                ) from error
        else:
            yield batch, result
            return
        # outside the handler, since its exception would keep the failed tensors alive
        if torch.cuda.is_available():
            torch.cuda.empty_cache()
        self.halve()
        self.backoffs.append(self.positions)
        for part in np.split(batch, [len(batch) // 2]):
            yield from self._attempt(part, lengths, forward, name)


def is_memory(error: BaseException) -> bool:
    """Return whether an error means out of memory (some libraries raise RuntimeError)."""
    if isinstance(error, (MemoryError, torch.OutOfMemoryError)):
        return True
    return any(sign in str(error) for sign in NO_MEMORY)


@dataclass(frozen=True)
class Sizes:
    """Bytes that a model takes for each position and each row, besides its weights.

    `position`: working memory of one layer, since layers release theirs (residual stream,
    projections, feed-forward). `cache`: keys and values of all layers. `state`: an encoder's
    output. `logits`: those of a row, twice, and their order. `graph`: what all layers store for
    gradients (Korthikanti et al. 2022, section 4.1).
    """

    position: int
    cache: int
    state: int
    logits: int
    graph: int

    @property
    def context(self) -> int:
        """Bytes per context position of a decoder row: its state, and the keys and values that one
        layer computes from it."""
        return 3 * self.state


def sizes_of(loaded: Any) -> Sizes:
    """Compute the sizes from a model's configuration."""
    table, text = loaded.model.get_input_embeddings().weight, loaded.model.config.get_text_config()
    element, columns = table.element_size(), int(table.shape[1])
    width = max(columns, int(getattr(text, "hidden_size", columns)))
    layers = _layers(text)
    # some architectures have different numbers in every layer
    heads = int(np.max(getattr(text, "num_attention_heads", None) or 1))
    head = getattr(text, "head_dim", None) or -(-width // heads)
    keys = int(np.max(getattr(text, "num_key_value_heads", None) or heads)) * int(head)
    return Sizes(
        position=24 * width * element,
        cache=2 * layers * keys * element,
        state=width * element,
        logits=12 * int(table.shape[0]),
        graph=17 * layers * width * element,
    )


def graph_room(loaded: Any) -> int:
    """Return the bytes that gradient graphs may take at once.

    On a CPU a constant, if that much is free, so that blocks do not depend on other processes.
    """
    free = _free(loaded.device) // 2
    return free if loaded.device.type == "cuda" else min(free, GRAPH)


def budget_for(loaded: Any, memory: int | None = None) -> Budget:
    """Derive the budget from a model's sizes and the available memory; nothing to configure.

    `memory` is in bytes, by default half of what is free on the model's device. On a CPU the limit
    is nearly always the cap, so that batches do not depend on other processes.
    """
    model, device = loaded.model, loaded.device.type
    row = sizes_of(loaded).position
    table = model.get_input_embeddings().weight
    body = max(sum(p.numel() for p in model.parameters()) - table.numel(), 1)
    layers = _layers(model.config.get_text_config())
    overhead = int(min(FLOP_PER_START.get(device, 12e6) * layers / (2 * body), 4096))
    cap = CAPS.get(device, CAPS["cpu"])
    # small models need larger batches, or launch overhead dominates
    cap = max(cap, min(STARTS * overhead, 8 * cap))
    if device == "cpu":
        cap = min(cap, max(int(WORK / body), 1))
    given = _free(loaded.device) // 2 if memory is None else memory
    positions = int(min(max(given // row, 1), cap))
    return Budget(positions, overhead=max(overhead, 1), room=given, position=row)


def _layers(text: Any) -> int:
    count = getattr(text, "num_hidden_layers", None) or getattr(text, "num_layers", 12)
    return int(count or 12)


def _free(device: Any) -> int:
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[0])
    # with the cache of files, which the system gives up: without it the weights just read count
    lines = dict(line.split(":", 1) for line in MEMINFO.read_text(encoding="utf-8").splitlines())
    return 1024 * int(lines["MemAvailable"].removesuffix("kB"))


def padded(rows: Sequence[NDArray[Any]], fill: int, device: Any) -> tuple[Any, Any]:
    """Right-pad rows; return (ids, mask) as int64 tensors, rows x longest."""
    lengths = np.array([len(row) for row in rows])
    ids = np.full((len(rows), int(lengths.max())), fill, dtype=np.int64)
    mask = np.arange(ids.shape[1])[None, :] < lengths[:, None]
    ids[mask] = np.concatenate(rows)
    return torch.from_numpy(ids).to(device), torch.from_numpy(mask.astype(np.int64)).to(device)

"""Which log-probabilities a candidate set needs, and how they become scores.

An edge is one (place, token) pair whose log-probability is needed: for masked models the place is a
mask among n, for sentinel models the tokens decoded so far. Candidates are paths over edges.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from kgprobe.probes.models.finite import finite
from kgprobe.probes.models.load import Loaded
from kgprobe.probes.models.mask_slots import MaskSlots, SpanSlots
from kgprobe.probes.text.mask_slots import PromptIds

Ids = NDArray[np.int64]
POOLINGS = ("mean", "max", "first")
#: A mask's address (number of masks, index of the mask), or the tokens decoded so far.
Place = tuple[int, ...]
#: Describes a prompt by number, for messages.
Name = Callable[[int], str]


@dataclass
class Plan:
    """Edges of a candidate set: for every place the tokens scored there, numbered consecutively.

    `groups` contains, per number of tokens n, the candidates (c) and their edges under multiple and
    single masks (c x n each).
    """

    candidates: int
    tokens: dict[Place, Ids]
    starts: dict[Place, int]
    edges: int
    groups: list[tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]]
    longest: int
    _on: dict[str, dict[Place, Any]] = field(default_factory=dict)

    def wanted(self, place: Place, device: Any) -> Any:
        """Return the token ids scored at a place, as a cached tensor."""
        kept = self._on.setdefault(str(device), {})
        if place not in kept:
            kept[place] = torch.from_numpy(self.tokens[place]).to(device)
        return kept[place]

    def pooled(self, logprobs: NDArray[Any]) -> NDArray[Any]:
        """Pool log-probabilities (prompt x edge) into scores (prompt x 6 x candidate), same dtype.

        Sums run in float64, where the order of a few float32 terms has no effect: candidates with
        the same tokens in another order tie exactly.
        """
        out = np.empty((len(logprobs), 2 * len(POOLINGS), self.candidates), dtype=logprobs.dtype)
        for members, multi, single in self.groups:
            for half, index in enumerate((multi, single)):
                first = logprobs[:, index[:, 0]]
                total, largest = first.astype(np.float64), first
                for column in index.T[1:]:
                    values = logprobs[:, column]
                    total, largest = total + values, np.maximum(largest, values)
                mean = (total / index.shape[1]).astype(logprobs.dtype)
                for pooling, values in enumerate((mean, largest, first)):
                    out[:, len(POOLINGS) * half + pooling, members] = values
        return out


def masked_plan(ids: Sequence[Ids]) -> Plan:
    """Plan with places (n, j): the j-th of n masks. The single mask (1, 0) scores every token."""
    return _plan(ids, (1, 0), lambda candidate, j: (len(candidate), j))


def span_plan(ids: Sequence[Ids]) -> Plan:
    """Plan with the decoded tokens as places; the empty root place scores every token."""
    return _plan(ids, (), lambda candidate, j: tuple(int(t) for t in candidate[:j]))


def _plan(ids: Sequence[Ids], root: Place, place: Any) -> Plan:
    wanted: dict[Place, set[int]] = {root: {int(t) for candidate in ids for t in candidate}}
    for candidate in ids:
        for j, token in enumerate(candidate):
            wanted.setdefault(place(candidate, j), set()).add(int(token))
    tokens = {p: np.array(sorted(wanted[p]), dtype=np.int64) for p in sorted(wanted)}
    sizes = np.cumsum([0, *[len(t) for t in tokens.values()]])
    starts = dict(zip(tokens, sizes[:-1].tolist(), strict=True))
    number = {
        (p, int(t)): start + k for p, start in starts.items() for k, t in enumerate(tokens[p])
    }
    groups = []
    lengths = np.array([len(candidate) for candidate in ids])
    for n in np.unique(lengths):
        members = np.flatnonzero(lengths == n)
        multi = [
            [number[place(ids[c], j), int(t)] for j, t in enumerate(ids[c])]
            for c in members.tolist()
        ]
        single = [[number[root, int(t)] for t in ids[c]] for c in members.tolist()]
        groups.append((members, np.array(multi), np.array(single)))
    return Plan(len(ids), tokens, starts, int(sizes[-1]), groups, int(lengths.max()))


class _Edges:
    """Base of engines that score edges at the mask slots of a model."""

    def __init__(self, slots: Any) -> None:
        self.slots = slots

    def check_finite(
        self, logprobs: Any, prompts: Sequence[int] | Ids, place: str, tokens: Ids, name: Name
    ) -> NDArray[Any]:
        """Check that log-probabilities (prompt x token) of a place are finite; return an array."""
        array = np.asarray(logprobs.cpu().numpy())
        finite(
            array,
            self.slots.loaded.spec.model,
            lambda row, token: f"{name(int(prompts[row]))}, {place}, token {tokens[token]}",
        )
        return array


class MaskedEdges(_Edges):
    """Edges of a masked model: one row per prompt and distinct number of masks."""

    slots: MaskSlots

    def fetch(self, prompts: Sequence[PromptIds], plan: Plan, name: Name) -> NDArray[Any]:
        """Return log-probabilities (prompt x edge) over the whole vocabulary."""
        logprobs = np.empty((len(prompts), plan.edges), dtype=_dtype(self.slots.loaded))
        for masks in sorted({n for n, _ in plan.tokens}):

            def read(rows: Ids, logits: Any, masks: int = masks) -> list[NDArray[Any]]:
                total, values = logits.logsumexp(-1), []
                for j in range(masks):
                    place = (masks, j)
                    wanted = plan.wanted(place, logits.device)
                    scores = logits[:, j].index_select(1, wanted) - total[:, j, None]
                    where = f"mask {j + 1} of {masks}"
                    values.append(self.check_finite(scores, rows, where, plan.tokens[place], name))
                return values

            def put(rows: Ids, values: list[NDArray[Any]], masks: int = masks) -> None:
                for j, block in enumerate(values):
                    start = plan.starts[masks, j]
                    logprobs[rows, start : start + block.shape[1]] = block

            rows = [p.widened(masks) for p in prompts]
            self.slots.visit(rows, [p.position + np.arange(masks) for p in prompts], read, put)
        return logprobs


class SpanEdges(_Edges):
    """Edges of a sentinel model: each prompt encoded once, one decoder row per place."""

    slots: SpanSlots

    def fetch(self, prompts: Sequence[PromptIds], plan: Plan, name: Name) -> NDArray[Any]:
        """Return log-probabilities (prompt x edge) over the whole vocabulary."""
        logprobs = np.empty((len(prompts), plan.edges), dtype=_dtype(self.slots.loaded))
        front = [self.slots.start, self.slots.opening]
        forced = {place: np.array([*front, *place], dtype=np.int64) for place in plan.tokens}
        step = self.slots.contexts_at_once([len(p.ids) for p in prompts])
        for low in range(0, len(prompts), step):
            # prompts whose encoder states are in memory together
            some = prompts[low : low + step]
            pairs = [(owner, place) for place in forced for owner in range(len(some))]

            def read(
                rows: Ids, logits: Any, low: int = low, pairs: list[Any] = pairs
            ) -> list[NDArray[Any]]:
                total, values = logits.logsumexp(-1), []
                for k, row in enumerate(rows):
                    owner, place = pairs[row]
                    wanted = plan.wanted(place, logits.device)
                    scores = logits[k, :1].index_select(1, wanted) - total[k, 0]
                    where, tokens = f"the mask slot after tokens {list(place)}", plan.tokens[place]
                    values.append(self.check_finite(scores, [low + owner], where, tokens, name)[0])
                return values

            def put(
                rows: Ids, values: list[NDArray[Any]], low: int = low, pairs: list[Any] = pairs
            ) -> None:
                for row, block in zip(rows, values, strict=True):
                    owner, place = pairs[row]
                    start = plan.starts[place]
                    logprobs[low + owner, start : start + len(block)] = block

            encoded = self.slots.encode([p.ids for p in some])
            owners, rows = [o for o, _ in pairs], [forced[p] for _, p in pairs]
            self.slots.visit(encoded, owners, rows, read, put)
        return logprobs


def _dtype(loaded: Loaded) -> Any:
    """Return the dtype of log-probabilities: float64 for a float64 model, else float32."""
    wide = next(loaded.model.parameters()).dtype == torch.float64
    return np.float64 if wide else np.float32

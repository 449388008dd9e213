"""Which log-probabilities a candidate set needs, and how they become scores.

An edge is one (place, token) pair whose log-probability is needed: for masked models the place is a
mask among n, for sentinel models the tokens decoded so far. Candidates are paths over edges.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from kgprobe.probes.models.finite import finite
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


#: Prompt numbers, a place, and log-probabilities of the tokens there (prompt x token).
Block = tuple[Any, Place, NDArray[Any]]


def fetch(
    slots: MaskSlots | SpanSlots, prompts: Sequence[PromptIds], plan: Plan, name: Name
) -> NDArray[Any]:
    """Return log-probabilities (prompt x edge) over the whole vocabulary.

    A masked model has one row per prompt and distinct number of masks; a sentinel model encodes
    each prompt once and has one decoder row per place. float64 for a float64 model, else float32.
    """
    is_wide = next(slots.loaded.model.parameters()).dtype == torch.float64
    dtype = np.float64 if is_wide else np.float32
    logprobs = np.empty((len(prompts), plan.edges), dtype=dtype)

    def read(place: Place, logits: Any, total: Any, numbers: Sequence[int] | Ids) -> Block:
        """Score the tokens of a place after a check that the numbers are finite."""
        scores = logits.index_select(1, plan.wanted(place, logits.device)) - total[:, None]
        array = np.asarray(scores.cpu().numpy())
        tokens, where = plan.tokens[place], f"the mask slot after tokens {list(place)}"
        if isinstance(slots, MaskSlots):
            where = f"mask {place[1] + 1} of {place[0]}"
        finite(
            array,
            slots.loaded.spec.model,
            lambda row, token: f"{name(int(numbers[row]))}, {where}, token {tokens[token]}",
        )
        return numbers, place, array

    blocks = _masked if isinstance(slots, MaskSlots) else _spans
    for numbers, place, block in blocks(slots, prompts, plan, read):  # type: ignore[arg-type]
        start = plan.starts[place]
        logprobs[numbers, start : start + block.shape[1]] = block
    return logprobs


def _masked(
    slots: MaskSlots, prompts: Sequence[PromptIds], plan: Plan, read: Callable[..., Block]
) -> Iterator[Block]:
    for masks in sorted({n for n, _ in plan.tokens}):

        def of_rows(rows: Ids, logits: Any, masks: int = masks) -> list[Block]:
            total = logits.logsumexp(-1)
            return [read((masks, j), logits[:, j], total[:, j], rows) for j in range(masks)]

        wide = [p.widened(masks) for p in prompts]
        places = [p.position + np.arange(masks) for p in prompts]
        for _, blocks in slots.visit(wide, places, of_rows):
            yield from blocks


def _spans(
    slots: SpanSlots, prompts: Sequence[PromptIds], plan: Plan, read: Callable[..., Block]
) -> Iterator[Block]:
    step = slots.contexts_at_once([len(p.ids) for p in prompts])
    for low in range(0, len(prompts), step):
        # prompts whose encoder states are in memory together
        some = prompts[low : low + step]
        pairs = [(owner, place) for place in plan.tokens for owner in range(len(some))]

        def of_rows(
            rows: Ids, logits: Any, low: int = low, pairs: list[Any] = pairs
        ) -> list[Block]:
            total, blocks = logits.logsumexp(-1), []
            for k, row in enumerate(rows):
                owner, place = pairs[row]
                blocks.append(read(place, logits[k, :1], total[k, :1], [low + owner]))
            return blocks

        encoded = slots.encode([p.ids for p in some])
        decoded = [np.array([slots.start, slots.opening, *place]) for _, place in pairs]
        for _, blocks in slots.visit(encoded, [o for o, _ in pairs], decoded, of_rows):
            yield from blocks

"""Scores of candidates at a slot as differentiable tensors (docs/scoring.md, Gradient).

A batch is computed in all its forms: for masked models a prompt with every number of masks, for
others a prompt with every forced prefix of a candidate. All rows are on the device as one tensor,
and the log-probabilities of each candidate are determined once. Rows whose graph does not fit into
memory are processed in blocks, each of which is recomputed for its gradients: these are still
the gradients of the whole batch.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.utils.checkpoint import checkpoint

from kgprobe.probes.models.batching import graph_room, padded, sizes_of
from kgprobe.probes.models.checks import refuse_padding
from kgprobe.probes.models.finite import finite
from kgprobe.probes.models.load import Loaded
from kgprobe.probes.models.parts import Parts
from kgprobe.probes.scoring.cloze.plan import POOLINGS, masked_plan, span_plan
from kgprobe.probes.text.mask_slots import PromptIds

Ids = NDArray[np.int64]
#: The (masks, pooling) that each kind of model can be trained with.
LEGAL = {
    "masked": {(m, p) for m in ("multi", "single") for p in POOLINGS},
    "seq2seq": {("multi", p) for p in POOLINGS},
    "causal": {("multi", "mean"), ("multi", "first")},
}
#: Maps the index of a place, its logits (prompt x vocabulary) and the prompts to the stored values.
Read = Callable[[int, Any, Sequence[int]], Any]
#: How a block is recomputed; nothing in it is random.
ANEW: dict[str, Any] = {"use_reentrant": False, "preserve_rng_state": False}


class ScoresWithGradient:
    """Scores of all candidates for chosen prompts, in one configuration (one of LEGAL).

    `rows` are the prompts (for causal models cut before the slot), `ids` the candidates' tokens.
    With `raw` the scores are computed from logits, not log-probabilities. `positions_fed` counts
    the work; `names` describes a prompt by number. Raises ModelError for a model whose rows must
    not be padded, NotFiniteError if a log-probability is not finite.
    """

    def __init__(
        self,
        loaded: Loaded,
        rows: Sequence[PromptIds],
        ids: Sequence[Ids],
        masks: str = "multi",
        pooling: str = "mean",
        raw: bool = False,
        names: Callable[[int], str] = "prompt {}".format,
    ) -> None:
        kind = loaded.spec.kind
        refuse_padding(loaded, "soft prompts")
        self.loaded, self.pooling, self.raw, self.names = loaded, pooling, raw, names
        self.rows, self.positions_fed = list(rows), 0
        self.candidates = len(ids)
        single = masks == "single"
        plan = masked_plan(ids) if kind == "masked" else span_plan(ids)
        places = [(1, 0)] if single else list(plan.tokens)
        passes = {"masked": _MaskedPasses, "seq2seq": _SpanPasses, "causal": _CausalPasses}[kind]
        self._parts = Parts(loaded)
        self._passes: Any = passes(self._parts, rows, places)
        self._places, self._tokens = places, [plan.tokens[p] for p in places]
        self._wanted = [plan.wanted(p, loaded.device) for p in places]
        # (candidates, columns of the scored places) per number of tokens
        self._groups = []
        column, start = np.full(plan.edges, -1, dtype=np.int64), 0
        for place, wanted in zip(places, self._wanted, strict=True):
            first = plan.starts[place]
            column[first : first + len(wanted)] = np.arange(start, start + len(wanted))
            start += len(wanted)
        for members, multi, alone in plan.groups:
            index = column[alone if single else multi]
            self._groups.append(
                tuple(torch.from_numpy(i).to(loaded.device) for i in (members, index))
            )

    def __call__(self, chosen: Sequence[int]) -> Any:
        """Return scores (prompt x candidate) of the prompts with these numbers."""
        parts = self._passes.read(list(chosen), self._logprobs)
        self.positions_fed = self._parts.positions_fed
        logprobs = torch.cat(parts, dim=1)
        out = logprobs.new_zeros(len(logprobs), self.candidates)
        for members, index in self._groups:
            tokens = logprobs[:, index]
            if self.pooling == "mean":
                values = tokens.mean(-1)
            else:
                values = tokens.amax(-1) if self.pooling == "max" else tokens[..., 0]
            out = out.index_copy(1, members, values)
        return out

    def _logprobs(self, place: int, logits: Any, prompts: Sequence[int]) -> Any:
        """Return values (prompt x token) at a place from its logits, if they are finite."""
        values = logits.index_select(1, self._wanted[place])
        logprobs = values - logits.logsumexp(-1, keepdim=True)
        finite(
            logprobs,
            self.loaded.spec.model,
            lambda row, token: (
                f"{self.names(prompts[row])}, place {self._places[place]} of the mask slot, "
                f"token {self._tokens[place][token]}"
            ),
        )
        return values if self.raw else logprobs


class _MaskedPasses:
    """Every prompt with n = 1, 2, ... masks, scored at its masks."""

    def __init__(self, parts: Parts, rows: Sequence[PromptIds], places: Sequence[Any]) -> None:
        self.parts, loaded = parts, parts.loaded
        numbers = sorted({n for n, _ in places})
        wide = [row.widened(n) for n in numbers for row in rows]
        ids, mask = padded(wide, parts.pad, loaded.device)
        shape = (len(numbers), len(rows), ids.shape[1])
        self.ids, self.mask = ids.view(shape), mask.view(shape)
        self.block = {n: i for i, n in enumerate(numbers)}
        self.slot = torch.tensor([row.position for row in rows], device=loaded.device)
        self.places = list(places)

    def read(self, chosen: list[int], read: Read) -> list[Any]:
        """Apply `read` to the logits (prompt x vocabulary) at every place."""
        pick = torch.tensor(chosen, device=self.ids.device)
        ids, mask = self.ids[:, pick].flatten(0, 1), self.mask[:, pick].flatten(0, 1)
        width = int(mask.sum(1).max())
        ids, mask = ids[:, :width], mask[:, :width]
        order = torch.arange(len(chosen), device=ids.device)
        at = [self.block[n] * len(chosen) + order for n, _ in self.places]
        columns = [self.slot[pick] + j for _, j in self.places]
        rows, cols = torch.cat(at), torch.cat(columns)
        states = self.parts.run(ids, attention_mask=mask)[0][rows, cols]
        logits = self.parts.head.logits(states).split(len(chosen))
        return [read(place, values, chosen) for place, values in enumerate(logits)]


class _Forced:
    """Rows of forced tokens: one per maximal prefix; a place is scored where it ends."""

    #: positions of a row
    width: int
    #: returns the data shared by all rows of some prompts
    context: Callable[[list[int]], Any]
    #: yields logits (prompt x vocabulary) at (leaf of some leaves, depth) after some prompts, given
    #: the context, a slice of the prompts, a range of leaves, and the places
    logits: Callable[[Any, slice, range, Sequence[tuple[int, int]]], Iterator[Any]]

    def __init__(self, parts: Parts, places: Sequence[tuple[int, ...]]) -> None:
        self.parts = parts
        inner = {p[:k] for p in places for k in range(len(p))}
        self.leaves = [p for p in places if p not in inner]
        owner = {leaf[:k]: i for i, leaf in reversed(list(enumerate(self.leaves)))
                 for k in range(len(leaf) + 1)}  # fmt: skip
        self.at = [(owner[p], len(p)) for p in places]

    def read(self, chosen: list[int], read: Read) -> list[Any]:
        """Apply `read` to the logits (prompt x vocabulary) at every place."""
        context, leaves = self.context(chosen), len(self.leaves)
        deepest = max(len(leaf) for leaf in self.leaves) + 1
        rows = max(graph_room(self.parts.loaded) // self._bytes(deepest), 1)
        is_cut = rows < len(chosen) * leaves
        results: list[list[Any]] = [[] for _ in self.at]
        for low in range(0, len(chosen), max(rows // leaves, 1)):
            prompts = slice(low, low + max(rows // leaves, 1))
            for first in range(0, leaves, rows):
                chunk = range(first, min(first + rows, leaves))
                places = [k for k, (leaf, _) in enumerate(self.at) if leaf in chunk]

                def block(
                    prompts: slice = prompts, chunk: range = chunk, places: list[int] = places
                ) -> tuple[Any, ...]:
                    at = [(self.at[k][0] - chunk.start, self.at[k][1]) for k in places]
                    logits = self.logits(context, prompts, chunk, at)
                    named = chosen[prompts]
                    pairs = zip(places, logits, strict=True)
                    return tuple(read(k, values, named) for k, values in pairs)

                # the graph of a block is recomputed in the backward pass
                again = is_cut and torch.is_grad_enabled()
                values = checkpoint(block, **ANEW) if again else block()
                for k, value in zip(places, values, strict=True):
                    results[k].append(value)
        return [torch.cat(values) for values in results]

    def _bytes(self, deepest: int) -> int:
        """Return the bytes of a row with its graph: its positions and its scored logits."""
        sizes = sizes_of(self.parts.loaded)
        return self.width * sizes.graph + deepest * sizes.logits


class _SpanPasses(_Forced):
    """Sentinel models: every prompt encoded once, one decoder row per maximal prefix."""

    def __init__(self, parts: Parts, rows: Sequence[PromptIds], places: Sequence[Any]) -> None:
        super().__init__(parts, places)
        self.ids, self.mask = padded([r.ids for r in rows], parts.pad, parts.loaded.device)
        forced = [np.array([parts.start, parts.sentinel(), *leaf]) for leaf in self.leaves]
        self.forced, _ = padded(forced, parts.pad, parts.loaded.device)
        # every decoder row has keys and values of its prompt
        self.width = self.forced.shape[1] + self.ids.shape[1]

    def context(self, chosen: list[int]) -> Any:
        """Return (encoder states, mask)."""
        mask = self.mask[chosen]
        return self.parts.encoded(self.ids[chosen], mask), mask

    def logits(
        self, context: Any, prompts: slice, leaves: range, at: Sequence[tuple[int, int]]
    ) -> Iterator[Any]:
        encoded, mask = (tensor[prompts] for tensor in context)
        states = self.parts.decoded(
            encoded.repeat_interleave(len(leaves), 0),
            mask.repeat_interleave(len(leaves), 0),
            self.forced[leaves.start : leaves.stop].repeat(len(encoded), 1),
        )
        states = states.unflatten(0, (len(encoded), len(leaves)))
        return (self.parts.head.logits(states[:, leaf, 1 + depth]) for leaf, depth in at)


class _CausalPasses(_Forced):
    """Causal models: the prompt followed by every maximal prefix."""

    def __init__(self, parts: Parts, rows: Sequence[PromptIds], places: Sequence[Any]) -> None:
        super().__init__(parts, places)
        self.starts = torch.tensor([len(r.ids) for r in rows], device=parts.loaded.device)
        wide = [
            np.concatenate([r.ids, np.array(leaf, dtype=np.int64)])
            for r in rows
            for leaf in self.leaves
        ]
        ids, _ = padded(wide, parts.pad, parts.loaded.device)
        self.ids, self.width = ids.view(len(rows), len(self.leaves), ids.shape[1]), ids.shape[1]

    def context(self, chosen: list[int]) -> Any:
        """Return (ids, numbers of prompt tokens)."""
        return self.ids[chosen], self.starts[chosen]

    def logits(
        self, context: Any, prompts: slice, leaves: range, at: Sequence[tuple[int, int]]
    ) -> Iterator[Any]:
        ids, starts = (tensor[prompts] for tensor in context)
        # padding is on the right, where no token of a causal model can see it
        states, _ = self.parts.run(ids[:, leaves.start : leaves.stop].flatten(0, 1))
        states = states.unflatten(0, (len(ids), len(leaves)))
        order = torch.arange(len(ids), device=states.device)
        return (self.parts.head.logits(states[order, leaf, starts - 1 + d]) for leaf, d in at)

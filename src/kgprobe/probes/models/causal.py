"""Log-probabilities of the tokens of sentences under a causal model (docs/scoring.md, Causal).

Sentences are arranged as tries: every distinct prefix is one node and goes through the model once,
tries are concatenated without padding, and attention sees ancestors only. That feeds fewer
positions than sharing prefixes per subject or answer, and copies no keys and values. The head runs
once per node; the last token of a sequence is never fed, since nothing is scored after it.

    The capital of | France | is | Paris .
                   |        |    | Niger . , Nigeria .        (a cluster: 3 sentences, 1 prefix)
                   | Italy  | is | ...

Long runs of sequences are cut into clusters of bounded size, because attention within a cluster
grows with its square; a cut feeds the common prefix again, so cuts are made where that is short.
"""

import contextlib
import functools
import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn.functional import scaled_dot_product_attention
from transformers import AttentionInterface

from kgprobe.probes.models.batching import Budget, Ints, Ragged, padded
from kgprobe.probes.models.checks import float32_objection, window_objection
from kgprobe.probes.models.finite import NotFiniteError, finite
from kgprobe.probes.models.head import WHOLE
from kgprobe.probes.models.journal import keep_steps
from kgprobe.probes.models.load import Loaded
from kgprobe.probes.models.parts import Parts

NAME = "kgprobe_trie"


#: Maximum nodes of a cluster. At this size attention costs a few percent of the matrix products.
CAPACITY = 128


@dataclass(frozen=True)
class Trie:
    """Clusters of nodes (tokens to feed) and the sequences that are scored from them.

    `order` sorts the sequences; cluster c holds the sorted sequences sentences[c]:sentences[c + 1]
    and the nodes nodes[c]:nodes[c + 1]. `node[i, d]` is the node of the token at depth d of sorted
    sequence i, -1 where it is not fed. `tokens` and `depths` belong to nodes, `first` is the first
    sorted sequence that contains a node.
    """

    order: Ints
    matrix: NDArray[np.int64]
    node: Ints
    sentences: Ints
    nodes: Ints
    tokens: Ints
    depths: Ints
    first: Ints

    @property
    def sizes(self) -> Ints:
        """Number of nodes of every cluster."""
        return np.diff(self.nodes)


def plan(sequences: Ragged, capacity: int = CAPACITY) -> Trie:
    """Build the trie of all sequences in clusters of `capacity` nodes (or one longer sequence)."""
    matrix = sequences.matrix(-1).astype(np.int64)
    order = np.lexsort(matrix.T[::-1]) if matrix.size else np.arange(len(sequences))
    matrix, lengths = matrix[order], sequences.lengths[order]
    fed = np.maximum(lengths - 1, 0)
    # fed tokens that each sorted row shares with the row before it
    common = np.zeros(len(matrix), dtype=np.int64)
    same = np.cumprod(matrix[1:] == matrix[:-1], axis=1, dtype=np.int8).sum(1, dtype=np.int64)
    common[1:] = np.minimum(same, np.minimum(fed[1:], fed[:-1]))
    cuts = np.array([*_cuts(fed.tolist(), common.tolist(), capacity), len(fed)], dtype=np.int64)
    common[cuts[:-1]] = 0
    depth = np.arange(max(matrix.shape[1] - 1, 0))[None, :]
    exists = depth < fed[:, None]
    new = exists & (depth >= common[:, None])
    # nodes are numbered in row-major order; a shared node has the number from the row above
    number = np.cumsum(new.ravel()).reshape(new.shape) - 1
    introduced = np.maximum.accumulate(np.where(new, np.arange(len(fed))[:, None], 0), axis=0)
    node = np.where(exists, np.take_along_axis(number, introduced, axis=0), -1)
    first, depths = np.nonzero(new)
    bounds = np.concatenate([[0], np.cumsum(new.sum(1))])[cuts]
    return Trie(
        order, matrix, node, cuts, bounds, matrix[:, : new.shape[1]][new], depths, first
    )  # fmt: skip


def _cuts(fed: list[int], common: list[int], capacity: int) -> Iterator[int]:
    """Yield the first row of every cluster: cut late, and where little has to be fed again."""
    start = 0
    while start < len(fed):
        yield start
        size, best, least = fed[start], start + 1, -1
        row = start + 1
        while row < len(fed) and size + fed[row] - common[row] <= capacity:
            # a cut before `row` repeats common[row] tokens; among equal cuts prefer the later one
            if size >= capacity // 2 and (least < 0 or common[row] <= least):
                best, least = row, common[row]
            size += fed[row] - common[row]
            row += 1
        if row == len(fed):
            return
        start = row if least < 0 or common[row] <= least else best


@dataclass(frozen=True)
class Layout:
    """Concatenated clusters of one batch, with their attention mask.

    `gather` (clusters x longest) maps flat nodes to padded clusters, `scatter` back; `mask`
    (clusters x longest x longest) is true where a node sees itself and its ancestors.
    """

    gather: Ints
    scatter: Ints
    mask: NDArray[np.bool_]
    tokens: Ints
    depths: Ints
    owners: Ints
    targets: Ints
    places: tuple[Ints, Ints]


def lay_out(trie: Trie, batch: Ints) -> Layout:
    """Build the arrays for one pass over the clusters of `batch`.

    `owners` (ascending) are the flat nodes at which `targets` are scored; `places` are the
    (sequence, token) of each scored target.
    """
    sizes = trie.sizes[batch]
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    cluster = np.repeat(np.arange(len(batch)), sizes)
    inner = np.arange(offsets[-1]) - offsets[cluster]
    nodes = inner + trie.nodes[batch][cluster]
    longest = int(sizes.max())
    gather = np.zeros((len(batch), longest), dtype=np.int64)
    gather[cluster, inner] = np.arange(offsets[-1])
    mask = np.zeros((len(batch), longest, longest), dtype=bool)
    mask[:, np.arange(longest), np.arange(longest)] = True
    depths = trie.depths[nodes]
    path = trie.node[trie.first[nodes]] - trie.nodes[batch][cluster][:, None]
    above = np.arange(path.shape[1])[None, :] < depths[:, None]
    node, depth = np.nonzero(above)
    mask[cluster[node], inner[node], path[node, depth]] = True
    rows = np.concatenate([np.arange(trie.sentences[c], trie.sentences[c + 1]) for c in batch])
    counts = np.diff(trie.sentences)[batch]
    shift = np.repeat(offsets[:-1] - trie.nodes[batch], counts)
    row, depth = np.nonzero(trie.node[rows] >= 0)
    owners = trie.node[rows][row, depth] + shift[row]
    by_owner = np.argsort(owners, kind="stable")
    row, depth = row[by_owner], depth[by_owner]
    return Layout(
        gather,
        cluster * longest + inner,
        mask,
        trie.tokens[nodes],
        depths,
        owners[by_owner],
        trie.matrix[rows[row], depth + 1],
        (trie.order[rows[row]], depth + 1),
    )


class Causal(Parts):
    """One causal model; `shares` is whether common prefixes were fed once."""

    def __init__(self, loaded: Loaded, budget: Budget | None = None) -> None:
        super().__init__(loaded, budget)
        self.shares: bool | None = None
        # lengths of the longest sentences for which tries passed the check, and of the shortest
        # that failed
        self._right, self._wrong = 0, np.iinfo(np.int64).max

    @torch.inference_mode()
    def logprobs(
        self,
        sequences: Ragged,
        done: Callable[[int], object] = lambda sentences: None,
    ) -> NDArray[np.float64]:
        """Return log p(t_j | t_<j) of every token; the first of a sequence is context only (0).

        Equal sequences are scored once, so that they tie: the last bits depend on the batch.
        `done` gets the number of sequences scored. Raises NotFiniteError, with name and position.
        """
        own, number = sequences.distinct()
        few = Ragged.of([sequences[i] for i in own], lambda i: sequences.name(int(own[i])))
        result = np.zeros(len(few.values))
        trie = plan(few)
        if len(trie.tokens) and self._can_share(few, trie):
            self._shared(few, trie, result, done)
        else:
            self._plain(few, np.arange(len(few)), result, done)
        done(len(sequences) - len(few))
        return np.concatenate(
            [result[:0], *(result[slice(*few.starts[n : n + 2])] for n in number)]
        )

    @torch.inference_mode()
    def visit_ends(self, rows: Ragged, read: Callable[[Ints, Any], None]) -> bool:
        """Call `read(numbers, states)` with the hidden states at the last token of all rows.

        Rows share their prefixes. Returns False, with a note, if this model cannot share them;
        then `read` was not called. After out-of-memory `read` is called again for a batch.
        """
        # a trie does not feed last tokens, so append one to every row
        sequences = Ragged.of([np.append(rows[i], 0) for i in range(len(rows))])
        # the common prefix of all rows is fed once per cluster
        trie = plan(sequences, max(CAPACITY, 4 * rows.common))
        if self.head is WHOLE or not self._can_share(sequences, trie):
            return False
        clusters = np.flatnonzero(trie.sizes)

        def forward(batch: Ints) -> None:
            layout = lay_out(trie, clusters[batch])
            sequence, place = layout.places
            last = place == sequences.lengths[sequence] - 1
            read(sequence[last], self._nodes(layout)[self._tensor(layout.owners[last])])

        self.budget.run(trie.sizes[clusters], forward, packed=True)
        return True

    def _nodes(self, layout: Any) -> Any:
        """Return hidden states of the nodes of a layout."""
        with attention(self.loaded.model, NAME):
            states, _ = self.run(
                self._tensor(layout.tokens)[None],
                position_ids=self._tensor(layout.depths)[None],
                layout=_Tensors(layout, self.loaded.device),
            )
        return states[0]

    def can_share(self, sequences: Ragged) -> bool:
        """Return whether prefixes of these sequences, and of subsets of them, are fed once."""
        trie = plan(sequences)
        return bool(len(trie.tokens)) and self._can_share(sequences, trie)

    def _can_share(self, sequences: Ragged, trie: Trie) -> bool:
        """Check that tries reproduce this model's plain scores, on a few sentences and the longest.

        The check is repeated for longer sentences, since attention windows and position scaling
        show only there. The result depends on the sentences of a call, not on earlier calls.
        """
        # a few sequences: the first in order, the longest and its neighbor
        order = trie.order[sequences.lengths[trie.order] > 1]
        place = int(np.argmax(sequences.lengths[order]))
        chosen = np.unique([*order[:4], *order[max(place - 1, 0) : place + 1]])
        few = Ragged.of([sequences[i] for i in chosen])
        small = plan(few)
        if len(small.tokens) == small.depths.max() + 1:
            # a single path is no evidence, and earlier calls are not: a resumed run has others
            self.shares = None
            return False
        longest = int(sequences.lengths.max())
        if longest <= self._right or longest >= self._wrong:
            self.shares = longest <= self._right
            return self.shares
        reason = f"{type(self.loaded.model).__name__} takes no positions"
        if "position_ids" in inspect.signature(self.body.forward).parameters:
            reason = window_objection(self.loaded, longest) or float32_objection(
                self.loaded, lambda: self._worst(few, small)
            )
        self.shares = not reason
        if reason:
            self._wrong = longest
            note = f"no prefix sharing: {reason}"
            self.notes += [note] * (note not in self.notes)
        else:
            self._right = longest
        return self.shares

    def _worst(self, few: Ragged, trie: Trie) -> float:
        """Return the largest difference between shared and plain passes.

        These passes are neither counted nor stored in the journal: a resumed run repeats them.
        """
        before = self.positions_fed, self.head_rows
        expected, shared = np.zeros(len(few.values)), np.zeros(len(few.values))
        try:
            with keep_steps(self.loaded):
                self._plain(few, np.arange(len(few)), expected)
                self._shared(few, trie, shared)
        finally:
            self.positions_fed, self.head_rows = before
        return float(np.abs(expected - shared).max())

    def _shared(
        self,
        sequences: Ragged,
        trie: Trie,
        result: NDArray[np.float64],
        done: Callable[[int], object] = lambda sentences: None,
    ) -> None:
        sentences = np.diff(trie.sentences)
        clusters = np.flatnonzero(trie.sizes)
        done(int(sentences[trie.sizes == 0].sum()))

        def forward(batch: Ints) -> tuple[Ints, NDArray[np.float64]]:
            layout = lay_out(trie, clusters[batch])
            hidden = self._nodes(layout)
            sequence, place = layout.places
            flat = sequences.starts[sequence] + place
            scores = self.scores(hidden, layout.owners, layout.targets)
            try:
                return flat, self._finite(flat, scores, sequences)
            except NotFiniteError:
                # 0 times NaN is NaN: a NaN at an unattended token spreads to other sentences of the
                # layout. Plain passes find its sentence, and score the others correctly
                members = [
                    trie.order[trie.sentences[c] : trie.sentences[c + 1]] for c in clusters[batch]
                ]
                self._plain(sequences, np.concatenate(members), result)
                return flat, result[flat]

        def first(cluster: int) -> str:
            return sequences.name(int(trie.order[trie.sentences[clusters[cluster]]]))

        for batch, (flat, scores) in self.each(
            trie.sizes[clusters], forward, packed=True, name=first
        ):
            result[flat] = scores
            done(int(sentences[clusters[batch]].sum()))

    def _plain(
        self,
        sequences: Ragged,
        indices: Ints,
        result: NDArray[np.float64],
        done: Callable[[int], object] = lambda sentences: None,
    ) -> None:
        """Score every sequence by itself, without feeding its last token, batched by length.

        Padding is on the right, where no token of a causal model sees it: no mask is needed.
        """
        fed = sequences.lengths[indices] - 1
        done(int((fed < 1).sum()))
        indices, fed = indices[fed > 0], fed[fed > 0]

        def flat(batch: Ints) -> Ints:
            spans = [np.arange(sequences.starts[i] + 1, sequences.starts[i + 1]) for i in
                     indices[batch]]  # fmt: skip
            return np.concatenate(spans)

        def forward(batch: Ints) -> NDArray[np.float64]:
            rows = [sequences[i] for i in indices[batch]]
            ids, mask = padded([row[:-1] for row in rows], 0, self.loaded.device)
            hidden = self.run(ids)[0][mask.bool()]
            scores = self.scores(
                hidden, np.arange(len(hidden)), np.concatenate([row[1:] for row in rows])
            )
            return self._finite(flat(batch), scores, sequences)

        for batch, scores in self.each(
            fed, forward, name=lambda row: sequences.name(int(indices[row]))
        ):
            result[flat(batch)] = scores
            done(len(batch))

    def _finite(
        self, flat: Ints, scores: NDArray[np.float64], sequences: Ragged
    ) -> NDArray[np.float64]:
        """Return scores of tokens (indices in `sequences.values`) after a check for finiteness."""

        def where(n: int) -> str:
            row = int(np.searchsorted(sequences.starts, flat[n], side="right")) - 1
            return f"{sequences.name(row)}, token {flat[n] - sequences.starts[row]}"

        finite(scores, self.loaded.spec.model, where)
        return scores


class _Tensors:
    """A layout on the model's device; the mask is repeated for query heads that share keys."""

    def __init__(self, layout: Any, device: Any) -> None:
        self.gather = torch.from_numpy(layout.gather.ravel()).to(device)
        self.scatter = torch.from_numpy(layout.scatter).to(device)
        self.clusters, self.longest = layout.gather.shape
        mask = torch.from_numpy(layout.mask).to(device)[:, None]
        # clusters x 1 x (times * longest) x longest
        self.mask = functools.cache(lambda times: mask.repeat(1, 1, times, 1))


def attend(
    module: Any,
    query: Any,
    key: Any,
    value: Any,
    attention_mask: Any,
    scaling: float | None = None,
    layout: Any = None,
    **options: Any,
) -> tuple[Any, None]:
    """Attend within clusters that are concatenated in one row (heads x nodes x width).

    Query heads that share a key head are stacked along the query axis, so that keys are not copied.
    Raises ValueError for unsupported attention (soft caps, sinks, given masks).
    """
    unknown = [n for n in ("softcap", "s_aux", "sinks", "head_mask") if options.get(n) is not None]
    if layout is None or unknown or attention_mask is not None:
        raise ValueError(f"attention with {unknown or 'a mask of its own'} is not known to tries")
    count, size = layout.clusters, layout.longest
    heads = key.shape[1]
    times = query.shape[1] // heads

    def folded(states: Any, groups: int) -> Any:
        rows = states[0].index_select(1, layout.gather)
        rows = rows.view(heads, groups, count, size, states.shape[3]).permute(2, 0, 1, 3, 4)
        return rows.reshape(count, heads, groups * size, states.shape[3])

    output = scaled_dot_product_attention(
        folded(query, times), folded(key, 1), folded(value, 1), layout.mask(times), scale=scaling
    )
    wide = output.view(count, heads, times, size, -1).permute(0, 3, 1, 2, 4)
    wide = wide.reshape(count * size, heads * times, -1).index_select(0, layout.scatter)
    return wide[None], None


AttentionInterface.register(NAME, attend)


@contextlib.contextmanager
def attention(model: Any, name: str) -> Iterator[None]:
    """Switch the model's attention function inside the context, and restore it afterwards."""
    before = model.config._attn_implementation
    model.config._attn_implementation = name
    try:
        yield
    finally:
        model.config._attn_implementation = before

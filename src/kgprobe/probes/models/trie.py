"""Sequences as tries: every distinct prefix is one node, fed to a causal model once.

    The capital of | France | is | Paris .
                   |        |    | Niger . , Nigeria .        (a cluster: 3 sentences, 1 prefix)
                   | Italy  | is | ...

The last token of a sequence is never fed: nothing is scored after it. Long runs of sequences are
cut into clusters of bounded size, because attention within a cluster grows with its square; a cut
feeds the common prefix again, so cuts are made where that prefix is short.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kgprobe.probes.models.batching import Ints, Ragged

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
    common = _common(matrix, fed)
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


def _common(matrix: NDArray[np.int64], fed: Ints) -> Ints:
    """Count the fed tokens that each sorted row shares with the row before it."""
    common = np.zeros(len(matrix), dtype=np.int64)
    same = np.cumprod(matrix[1:] == matrix[:-1], axis=1, dtype=np.int8).sum(1, dtype=np.int64)
    common[1:] = np.minimum(same, np.minimum(fed[1:], fed[:-1]))
    return common


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

"""Two edges after each other or out of one entity, in parts of bounded memory (section 9).

Objects have hubs, subjects do not: expand from subjects, never join through a shared object. A
part (bucket) holds a stretch of first edges; an entity too large for a part is split by its own
edges. What is counted and sampled does not depend on the number of parts.
"""

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import polars as pl
from numpy.typing import NDArray

from kgprobe.benchmarks.attributes.examples import Shape, require
from kgprobe.benchmarks.attributes.graph import Graph, GraphError, numbers, packed
from kgprobe.benchmarks.attributes.settings import Settings
from kgprobe.benchmarks.funnel import Funnel
from kgprobe.job import progress
from kgprobe.sampling import integer_keys, smallest
from kgprobe.settings import Attributes, Composite, Paths

log = logging.getLogger("kgprobe")

#: bytes of one wedge at the peak of a part, and the share of the stated memory that a part may use
BYTES_PER_WEDGE = 80
SHARE = 0.25
#: parts are not larger than this, however much memory there is: small ones stay in the cache
ROWS = 4_000_000

Numbers = NDArray[np.int64]


@dataclass(frozen=True)
class Adjacency:
    """Edges sorted by (s, o, p): `key` has s and o in one number, `p` the relation."""

    key: NDArray[np.uint64]
    p: NDArray[np.uint16]

    @property
    def s(self) -> NDArray[np.uint64]:
        """Subjects."""
        return self.key >> np.uint64(32)

    @property
    def o(self) -> NDArray[np.uint64]:
        """Objects."""
        return self.key & np.uint64(0xFFFFFFFF)

    def out(self, subjects: NDArray[np.uint64]) -> tuple[Numbers, Numbers]:
        """Start and end of the edges of every subject."""
        low = subjects << np.uint64(32)
        return (
            np.searchsorted(self.key, low),
            np.searchsorted(self.key, low | np.uint64(0xFFFFFFFF), side="right"),
        )

    def between(
        self, first: NDArray[np.uint64], second: NDArray[np.uint64]
    ) -> tuple[Numbers, Numbers]:
        """(row, edge) of every edge from first[row] to second[row]."""
        wanted = (first << np.uint64(32)) | second
        low = np.searchsorted(self.key, wanted)
        hit = np.flatnonzero(self.key[np.minimum(low, len(self.key) - 1)] == wanted)
        high = np.searchsorted(self.key, wanted[hit], side="right")
        rows, edges = ranges(low[hit], high)
        return hit[rows], edges


def adjacency(edges: pl.DataFrame) -> Adjacency:
    """The adjacency of EDGES."""
    ordered = edges.sort("s", "o", "p")
    return Adjacency(packed(ordered), ordered["p"].to_numpy())


def ranges(low: Numbers, high: Numbers) -> tuple[Numbers, Numbers]:
    """(row, position) of all positions low[row] ... high[row] - 1."""
    n = high - low
    rows = np.repeat(np.arange(len(n)), n)
    return rows, np.arange(len(rows)) - np.repeat(np.cumsum(n) - n, n) + np.repeat(low, n)


def without_hubs(
    edges: Adjacency, max_out: int, seed: int
) -> tuple[Adjacency, list[tuple[int, int]]]:
    """At most `max_out` edges of a subject, by hash, and the (entity, out-edges) of the hubs."""
    subjects, starts, n = np.unique(edges.s, return_index=True, return_counts=True)
    hubs = np.flatnonzero(n > max_out)
    keep = np.ones(len(edges.key), dtype=bool)
    for hub in hubs:
        own = slice(starts[hub], starts[hub] + n[hub])
        keys = integer_keys([edges.key[own], edges.p[own]], seed, "hub")
        keep[own] = False
        keep[starts[hub] + np.argsort(keys, kind="stable")[:max_out]] = True
    found = [(int(subjects[hub]), int(n[hub])) for hub in hubs]
    for entity, degree in found:
        log.info("hub Q%d: %d out-edges, %d of them are expanded", entity, degree, max_out)
    return (Adjacency(edges.key[keep], edges.p[keep]) if found else edges), found


def expandable(
    shape: Shape, graph: Graph, settings: Settings[Composite | Paths], steps: Funnel
) -> tuple[Adjacency, Adjacency]:
    """Edges of all relations but the excluded ones, whole and with hubs cut to `max_out`."""
    edges = graph.without(numbers(settings.own.exclude))
    why = f"relation {', '.join(settings.own.exclude)}"
    steps.kept("edges to expand", edges.height, graph.edges.height, why)
    require(edges, shape.benchmark, settings, steps)
    whole = adjacency(edges)
    bounded, hubs = without_hubs(whole, settings.own.max_out, settings.seed)
    if hubs:
        steps.kept("hub cap", len(bounded.key), len(whole.key), f"out-edges of {told(hubs)}")
    return whole, bounded


def told(hubs: Sequence[tuple[int, int]]) -> str:
    """The hubs as text for the funnel, largest first."""
    order = sorted(hubs, key=lambda hub: (-hub[1], hub[0]))
    return ", ".join(f"Q{entity} ({degree:,})" for entity, degree in order[:20])


def parts_of(costs: Numbers, shared: Attributes, what: str) -> list[slice]:
    """Stretches of rows whose summed costs (wedges) fit; `buckets` is a number or `auto`.

    Raises GraphError before anything is built when the stated number of buckets is too small.
    """
    total, limit = int(costs.sum()), shared.memory_mb * 1e6 * SHARE / BYTES_PER_WEDGE
    fitting = max(1, int(np.ceil(total / min(limit, ROWS))))
    buckets = fitting if shared.buckets == "auto" else int(shared.buckets)
    if total / buckets > limit:
        needed = int(np.ceil(total / limit))
        raise GraphError(
            f"{what}: {total:,} wedges in {buckets} buckets need about "
            f"{total / buckets * BYTES_PER_WEDGE / 1e6:,.0f} MB each, a bucket may take "
            f"{limit * BYTES_PER_WEDGE / 1e6:,.0f} MB of memory_mb {shared.memory_mb:,}; "
            f"{needed} buckets would fit (attributes.buckets: {needed} or auto)"
        )
    log.info("%s: %s wedges in %d buckets", what, f"{total:,}", buckets)
    ends = np.searchsorted(np.cumsum(costs), total * np.arange(1, buckets) / buckets)
    bounds = [0, *ends.tolist(), len(costs)]
    return [slice(a, b) for a, b in pairwise(bounds) if a < b]


@dataclass(frozen=True)
class Collected:
    """What came of all parts: counts per pattern, and the candidates that a cap can choose from."""

    counts: pl.DataFrame
    structural: pl.DataFrame
    usable: pl.DataFrame
    labelled: int
    templated: int
    #: relation -> labelled candidates that have it and lack a template
    untemplated: dict[int, int]


def collect(
    shape: Shape,
    parts: Iterator[pl.DataFrame],
    total: int,
    keep: int,
    seed: int,
    labelled: Callable[[pl.DataFrame], pl.DataFrame],
    templated: Callable[[pl.DataFrame], pl.DataFrame],
) -> Collected:
    """Counts every pattern, and keeps its `keep` smallest keys of all and of the usable candidates.

    Memory is `keep` rows per pattern and kind. The keys are those of the later cap, so it chooses
    the same from what is kept as from everything.
    """
    strata, label = list(shape.strata), shape.benchmark
    counts: list[pl.DataFrame] = []
    structural: list[pl.DataFrame] = []
    usable: list[pl.DataFrame] = []
    with_label = with_template = 0
    lost: dict[int, int] = {}

    def kept(frames: list[pl.DataFrame]) -> pl.DataFrame:
        return smallest(pl.concat(frames), keep, seed, shape.ids, strata, label)

    for part in progress(parts, total=total, desc=shape.benchmark, unit="buckets"):
        counts.append(part.group_by(strata).agg(pl.len().cast(pl.Int64).alias("n")))
        named = labelled(part)
        worded = templated(named)
        if worded.height < named.height:
            _add_lost(lost, strata, named, worded)
        with_label, with_template = with_label + named.height, with_template + worded.height
        structural, usable = [kept([*structural, part])], [kept([*usable, worded])]
    added = pl.concat(counts).group_by(strata).agg(pl.col("n").sum()).sort(strata)
    return Collected(added, structural[0], usable[0], with_label, with_template, lost)


def _add_lost(
    lost: dict[int, int], strata: Sequence[str], named: pl.DataFrame, worded: pl.DataFrame
) -> None:
    """Counts the relations that no candidate keeps: they are the ones without a template."""
    for column in strata:
        gone = named.join(worded.select(column).unique(), on=column, how="anti")
        for p, n in gone[column].value_counts().rows():
            lost[p] = lost.get(p, 0) + n

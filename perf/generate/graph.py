"""Generated knowledge graphs for measurements: hubs among the objects, known patterns planted.

Background edges have the shape of T-REx's: subjects nearly uniform,
objects and relations after Zipf's law. Planted patterns lie among entities of their own, with
relations that the background never uses, so that their numbers are known exactly.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow.parquet as pq
from numpy.typing import NDArray

from kgprobe.schema import FACTS, atomic

#: T-REx has 11 M distinct alignments of 3.09 M subjects; objects are drawn out of 4.65 M entities
EDGES, SUBJECTS, ENTITIES, RELATIONS = 11_000_000, 3_090_000, 4_650_000, 640
CHUNK = 1_000_000
#: background relations are P10001 ..., planted entities Q2000000001 ...,
#: which no background of less than 4,700 M edges reaches
FIRST_RELATION, FIRST_PLANTED = 10_001, 2_000_000_001
CATEGORIES = 200
Edges = NDArray[np.int64]


@dataclass(frozen=True)
class Planted:
    """How many of each pattern a generated graph holds."""

    pairs: int = 2000
    inverses: int = 1500
    chains: int = 3000
    triangles: int = 400
    names: int = 500
    obscure: int = 1000


def zipf(generator: np.random.Generator, n: int, exponent: float, size: int) -> Edges:
    """`size` ranks out of 1 ... n, with weight rank ** -exponent (continuous approximation)."""
    u = generator.random(size)
    if exponent == 1.0:
        ranks = np.exp(u * np.log(n + 1))
    else:
        power = 1 - exponent
        ranks = (u * ((n + 1) ** power - 1) + 1) ** (1 / power)
    return np.minimum(ranks.astype(np.int64), n)


@lru_cache(maxsize=1)
def relations(entities: int) -> Edges:
    """The relation (1 ... RELATIONS) whose value each entity is; the same in every chunk."""
    return zipf(np.random.Generator(np.random.PCG64(entities)), RELATIONS, 0.9, entities)


def background(generator: np.random.Generator, rows: int, scale: float) -> Edges:
    """(rows, 3) edges: subjects 97 % uniform and 3 % Zipf 0.8, objects Zipf 1, relations Zipf 0.9.

    The relation hangs on the object, as types make it do in real graphs: drawn freely, the
    triangles around hubs would spread over millions of combinations of relations. One edge in ten
    says what its subject is an instance of.
    """
    subjects, entities = int(SUBJECTS * scale), int(ENTITIES * scale)
    s = generator.integers(1, subjects + 1, rows)
    some = generator.random(rows) < 0.03
    s[some] = zipf(generator, subjects, 0.8, int(some.sum()))
    o = zipf(generator, entities, 1.0, rows)
    p = FIRST_RELATION - 1 + relations(entities)[o - 1]
    typed = generator.random(rows) < 0.1
    p[typed] = 31
    o[typed] = entities + zipf(generator, CATEGORIES, 1.0, int(typed.sum()))
    return np.stack([s, p, o], axis=1)


def planted(counts: Planted) -> tuple[Edges, dict[int, str]]:
    """The planted edges, and the labels of entities that share theirs."""
    fresh = iter(range(FIRST_PLANTED, FIRST_PLANTED + 100_000_000))
    human, place, edges, labels = next(fresh), next(fresh), [], {}
    for _ in range(counts.pairs):
        a, b = next(fresh), next(fresh)
        edges += [(a, 26, b), (b, 26, a)]
    for _ in range(counts.inverses):
        a, b = next(fresh), next(fresh)
        edges += [(a, 22, b), (b, 40, a)]
    for _ in range(counts.chains):
        x, y, z = next(fresh), next(fresh), next(fresh)
        edges += [(x, 279, y), (y, 279, z)]
    for _ in range(counts.triangles):
        a, b, c = next(fresh), next(fresh), next(fresh)
        edges += [(a, 7, b), (b, 8, c), (a, 9, c), (a, 31, human)]
    for n in range(counts.names):
        head, tail, other, town = next(fresh), next(fresh), next(fresh), next(fresh)
        edges += [(head, 19, place), (head, 20, other), (tail, 19, town)]
        labels[head] = labels[tail] = f"twin {n}"
    for _ in range(counts.obscure):
        edges.append((next(fresh), 21, place))
    return np.array(edges, dtype=np.int64), labels


def chunks(edges: int, counts: Planted, seed: int) -> Iterator[pl.DataFrame]:
    """FACTS of `edges` background edges (drawn, so some repeat) and the planted ones."""
    generator = np.random.Generator(np.random.PCG64(seed))
    scale = edges / EDGES
    if int(ENTITIES * scale) + CATEGORIES >= FIRST_PLANTED:
        raise ValueError(f"{edges:,} edges: their entities would reach the planted ones")
    for start in range(0, edges, CHUNK):
        yield as_facts(background(generator, min(CHUNK, edges - start), scale), {})
    known, labels = planted(counts)
    human = int(known[known[:, 1] == 31, 2][0]) if counts.triangles else 0
    # three in a hundred subjects belong to the planted category, which so is a popular one
    members = np.arange(1, int(SUBJECTS * scale), 33)
    typed = np.stack([members, np.full_like(members, 31), np.full_like(members, human)], axis=1)
    yield as_facts(np.concatenate([known, typed]) if human else known, labels)


def as_facts(edges: Edges, labels: dict[int, str]) -> pl.DataFrame:
    """FACTS of (s, p, o) rows; entities without a label in `labels` are called "entity N"."""
    frame = pl.DataFrame({"s": edges[:, 0], "p": edges[:, 1], "o": edges[:, 2]})

    def label(column: str) -> pl.Expr:
        plain = pl.format("entity {}", column)
        if not labels:
            return plain
        return pl.col(column).replace_strict(labels, default=plain, return_dtype=pl.String)

    return frame.select(
        kg=pl.lit("wikidata"),
        subject=pl.format("Q{}", "s"),
        subject_label=label("s"),
        relation=pl.format("P{}", "p"),
        object=pl.format("Q{}", "o"),
        object_label=label("o"),
    ).select(list(FACTS.columns))


def write_facts(path: str | Path, edges: int, counts: Planted | None = None, seed: int = 0) -> None:
    """Writes a generated graph as one parquet file with the columns of FACTS, chunk by chunk."""
    writer = None
    with atomic(path) as temporary:
        for chunk in chunks(edges, counts or Planted(), seed):
            table = chunk.to_arrow(compat_level=pl.CompatLevel.oldest())
            writer = writer or pq.ParquetWriter(temporary, table.schema, compression="zstd")
            writer.write_table(table)
        if writer:
            writer.close()

"""Graphs for the attribute tests: the worked example, planted structures, facts from numbers."""

import importlib
import json
from collections.abc import Iterable
from dataclasses import replace
from functools import cache, lru_cache, reduce
from io import BytesIO
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import polars as pl
import yaml

from kgprobe.benchmarks.attributes import checks
from kgprobe.benchmarks.attributes.construct import BuiltAttribute
from kgprobe.benchmarks.attributes.definition import (
    AttributeSettings,
    EmptyBenchmarkError,
    settings_of,
)
from kgprobe.knowledge import graph as knowledge
from kgprobe.knowledge.engine_duckdb import DuckDB
from kgprobe.knowledge.graph import Graph
from kgprobe.sampling import hash_key, mixed
from kgprobe.schema import FACTS
from kgprobe.settings.benchmarks import Attributes
from kgprobe.settings.types import typed

ROOT = Path(__file__).parents[2]
Triple = tuple[int, int, int]

LABELS = {
    1: "Ana", 2: "Ben", 3: "Cid", 5: "human", 6: "person", 7: "agent", 8: "Arles", 9: "France",
    10: "Cid", 11: "Berne", 12: "male", 13: "female",
}  # fmt: skip
#: number of the triple in the note -> triple
WORKED: dict[int, Triple] = dict(
    enumerate(
        [
            (1, 26, 2), (2, 26, 1), (3, 22, 2), (3, 25, 1), (2, 40, 3),
            (1, 31, 5), (2, 31, 5), (3, 31, 5), (5, 279, 6), (6, 279, 7),
            (3, 19, 8), (8, 17, 9), (10, 19, 11), (10, 21, 12), (1, 21, 13),
        ],
        1,
    )
)  # fmt: skip


def facts(
    triples: Iterable[Triple],
    labels: dict[int, str] | None = None,
    literals: Iterable[tuple[int, int, str]] = (),
) -> pl.DataFrame:
    """Return FACTS from numbers; each entity is called "entity N" unless `labels` gives a name."""
    name = (lambda n: labels.get(n)) if labels is not None else (lambda n: f"entity {n}")
    rows = [("wikidata", f"Q{s}", name(s), f"P{p}", f"Q{o}", name(o)) for s, p, o in triples]
    rows += [("wikidata", f"Q{s}", name(s), f"P{p}", value, None) for s, p, value in literals]
    return pl.DataFrame(rows, schema=dict(FACTS.columns), orient="row")


def graph(triples: Iterable[Triple], labels: dict[int, str] | None = None, **more: Any) -> Graph:
    """Return the graph of `facts`."""
    return encode(facts(triples, labels, more.pop("literals", ())), **more)


def encode(given: pl.DataFrame, **more: Any) -> Graph:
    """Encode FACTS as a graph on an engine that is closed with it.

    The same rows in the same order are encoded only once and share a graph, as in a sensitivity
    table.
    """
    return _encoded(given.serialize(), json.dumps(more, sort_keys=True))


@lru_cache(maxsize=20)  # the number of graphs that the tests against plain loops use in sequence
def _encoded(given: bytes, more: str) -> Graph:
    engine = DuckDB(memory_mb=500)
    rows = engine.table(pl.DataFrame.deserialize(BytesIO(given)))
    return knowledge.encode(engine, rows, **json.loads(more))


def content(graph: Graph, name: str) -> pl.DataFrame:
    """Return one of the written tables of a graph, in order."""
    contract = {"edges": knowledge.EDGES, "literals": knowledge.LITERAL_EDGES,
                "entities": knowledge.ENTITIES}[name]  # fmt: skip
    rows = graph.frame(getattr(graph, name)).select(list(contract.columns))
    return rows.cast(dict(contract.columns)).sort(contract.key)


def integer_keys(columns: list[np.ndarray], seed: int, *parts: str) -> np.ndarray:
    """Return the sampling keys of rows of unsigned numbers, outside an engine."""
    key = np.full(len(columns[0]), hash_key(seed, *parts), dtype=np.uint64)
    return reduce(mixed, (column.astype(np.uint64) for column in columns), key)


def worked() -> Graph:
    """Return the worked example of the note."""
    return graph(WORKED.values(), LABELS)


def settings(attribute: str, **changed: Any) -> AttributeSettings[Any]:
    """Return config.yaml's defaults with changes: attribute keys, shared keys, table values."""
    made = settings_of(_config(), attribute)
    rest = {
        k: changed[k] for k in changed.keys() - vars(made.section).keys() - vars(made.shared).keys()
    }
    section = typed(type(made.section), changed, made.section)
    return replace(made, section=section, shared=typed(Attributes, changed, made.shared), **rest)


@cache
def _config() -> dict[str, Any]:
    return yaml.safe_load((ROOT / "config" / "config.yaml").read_text())["attributes"]


def attribute(name: str, given: pl.DataFrame, **changed: Any) -> BuiltAttribute | None:
    """Build one of the nine attributes from FACTS as the workflow does; None if it has no example.

    This is the only access that the tests against plain loops have to benchmark construction.
    """
    module = importlib.import_module(f"kgprobe.benchmarks.attributes.{name}")
    coded = {key: changed.pop(key) for key in ("own", "known") if key in changed}
    try:
        made = module.build(encode(given, **coded), settings(name, **changed))
        parts = list(checks.check_parts(made))
        assert all(part.height for part in parts)
        # inspect what the workflow writes; no text is made twice
        vars(made)["examples"] = pl.concat(parts)
        return made
    except EmptyBenchmarkError:
        return None


def triples(examples: pl.DataFrame) -> list[tuple[tuple[int | str, int | str, int | str], ...]]:
    """Return the examples as tuples of triples of numbers (other text stays), in order."""
    found: dict[str, list[tuple[int | str, int | str, int | str]]] = {}
    rows = examples.sort("example", "position")
    for example, *ids in rows.select("example", "subject", "predicate", "object").rows():
        found.setdefault(example, []).append(tuple(number(one) for one in ids))
    return sorted((tuple(rows) for rows in found.values()), key=str)


def number(name: str) -> int | str:
    """Return the number of an id; any other text is returned unchanged."""
    return int(name[1:]) if name[:1] in "QP" and name[1:].isdigit() else name


PEOPLE, PLACES, CLASSES = range(1, 19), range(201, 207), range(101, 109)
CATEGORIES, OBSCURE, NATURES = range(901, 906), range(301, 315), range(401, 405)
SENSITIVE = (21, 30, 91, 140)


def planted(seed: int) -> pl.DataFrame:
    """Return FACTS with each of the nine attributes at, above and below usual thresholds.

    They hold proportions of symmetric and inverse triples at a half or a quarter or one triple off,
    tied categories and degrees, shared names, cycles, self-loops, duplicates, literals, and labels
    that are missing, blank or would break a prompt.
    """
    draw = Random(seed)
    rows = [
        *_symmetric(draw), *_inverse(draw), *_taxonomy(draw), *_memberships(draw),
        *_triangles(draw), *_noise(draw), *_obscure(draw),
    ]  # fmt: skip
    names = _names(draw, rows)
    loops = [(n, p, n) for n in draw.sample(PEOPLE, 2) for p in (26, 279)]
    rows += [*draw.sample(rows, 6), *loops]
    literals = [
        (
            n,
            draw.choice([569, 569, 26, 47]),
            f"19{draw.randint(70, 72)}-01-{day:02}T00:00:00Z^^date",
        )
        for n, day in zip(draw.sample([*PEOPLE, *OBSCURE], 12), [1, 1, 2, 3] * 3, strict=True)
    ]
    made = facts(rows, names, literals).rows()
    spoken = ["Jan. 1", "January the first", None, None]
    made = [
        (*row[:5], draw.choice(spoken) if row[4][0] != "Q" else row[5], *row[6:]) for row in made
    ]
    # not every statement has the label of its subject
    made = [(*r[:2], r[2] if draw.random() < 0.9 else None, *r[3:]) for r in made]
    draw.shuffle(made)
    return pl.DataFrame(made, schema=dict(FACTS.columns), orient="row")


def _symmetric(draw: Random) -> list[Triple]:
    """Four relations with `mutual` triples in both directions and `single` ones in one."""
    rows = []
    pairs = [(a, b) for a in PEOPLE for b in PEOPLE if a < b]
    for p in (26, 47, 190, 461, 530):
        mutual, single = draw.choice(
            [(4, 0), (2, 2), (4, 4), (2, 6), (6, 2), (4, 2), (0, 4), (6, 3), (8, 0), (10, 2)]
        )
        single += draw.choice([0, 0, 1])
        chosen = draw.sample(pairs, mutual // 2 + single)
        both, one = chosen[: mutual // 2], chosen[mutual // 2 :]
        rows += [(a, p, b) for a, b in both] + [(b, p, a) for a, b in both]
        rows += [(a, p, b) if draw.random() < 0.5 else (b, p, a) for a, b in one]
    return rows


def _inverse(draw: Random) -> list[Triple]:
    """Pairs of relations with inverse triples and some of each that have no inverse."""
    rows = []
    pairs = [(a, b) for a in PEOPLE for b in PEOPLE if a != b]
    for p1, p2 in ((22, 40), (25, 40), (150, 1376), (36, 1001), (527, 361)):
        k, first, second = draw.choice(
            [(2, 2, 2), (4, 0, 4), (1, 3, 0), (3, 1, 1), (2, 0, 0), (4, 4, 0), (3, 3, 4)]
        )
        chosen = draw.sample(pairs, k + first + second)
        rows += [(a, p1, b) for a, b in chosen[: k + first]]
        rows += [(b, p2, a) for a, b in [*chosen[:k], *chosen[k + first :]]]
    return rows


def _taxonomy(draw: Random) -> list[Triple]:
    """Subclasses with a cycle of two, one of three, a direct edge, and random edges."""
    low, middle, high, *others = draw.sample(CLASSES, len(CLASSES))
    rows = [(low, 279, middle), (middle, 279, high)]
    rows += draw.choice([[], [(low, 279, high)], [(middle, 279, low)], [(high, 279, low)]])
    return rows + [(draw.choice(others), 279, draw.choice(CLASSES)) for _ in range(6)]


def _memberships(draw: Random) -> list[Triple]:
    """Categories with tied sizes."""
    rows = []
    for category in CATEGORIES:
        own = draw.sample([*PEOPLE, *PLACES], draw.choice([2, 3, 3, 4, 6]))
        rows += [(n, 31, category) for n in own]
        rows += [(n, 106, category) for n in draw.sample(PEOPLE, draw.choice([0, 1, 3]))]
    return rows


def _triangles(draw: Random) -> list[Triple]:
    """Combinations of relations, each closed to a triangle a few times."""
    rows = []
    for r1, r2, r3 in ((19, 17, 27), (131, 17, 30), (69, 276, 131), (50, 50, 50)):
        for _ in range(draw.randint(1, 4)):
            a = draw.choice(PEOPLE)
            b, c = draw.sample([n for n in (*PEOPLE, *PLACES) if n != a], 2)
            rows += [(a, r1, b), (b, r2, c), (a, r3, c)]
    return rows


def _noise(draw: Random) -> list[Triple]:
    nodes = [*PEOPLE, *PLACES]
    rows = [
        (draw.choice(nodes), draw.choice([17, 19, 27, 50, 69, 131, 276]), draw.choice(nodes))
        for _ in range(30)
    ]
    return [(s, p, o) for s, p, o in rows if s != o]


def _obscure(draw: Random) -> list[Triple]:
    """Entities of one to four edges, one of them of a sensitive relation."""
    rows = []
    for n in OBSCURE:
        rows.append((n, draw.choice(SENSITIVE), draw.choice(NATURES)))
        for _ in range(draw.choice([0, 0, 1, 1, 2, 3])):
            other = draw.choice(PLACES)
            rows.append(
                draw.choice([(n, 19, other), (other, 50, n), (n, 21, draw.choice(NATURES))])
            )
    return rows


def _names(draw: Random, rows: list[Triple]) -> dict[int, str]:
    """Labels: shared labels, whose entities get facts of one relation, and some invalid ones."""
    entities = sorted({n for s, _, o in rows for n in (s, o)})
    names = {n: f"entity {n}" for n in entities}
    people = draw.sample(PEOPLE, len(PEOPLE))
    for name, size in (("Cid", 3), ("cid", 1), ("Dee", 2), ("Eve", 2)):
        for n in (people.pop() for _ in range(size)):
            names[n] = f" {name} " if draw.random() < 0.2 else name
            rows += [(n, p, draw.choice(PLACES)) for p in (19, 27, 31, 166) if draw.random() < 0.9]
    for n in draw.sample(entities, 5):
        names[n] = draw.choice([None, "", "  ", "[X]", "a [MASK] b", "<mask>", "<extra_id_0>"])
    return names

"""Small graphs for the attributes: the worked example, and facts from tuples of numbers."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import polars as pl
import yaml

from kgprobe.benchmarks.graph import Graph, encode
from kgprobe.benchmarks.graph_settings import settings_of
from kgprobe.schema import FACTS

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
    """FACTS of numbers; every entity is called "entity N" unless `labels` says otherwise."""
    name = (lambda n: labels.get(n)) if labels is not None else (lambda n: f"entity {n}")
    rows = [("wikidata", f"Q{s}", name(s), f"P{p}", f"Q{o}", name(o)) for s, p, o in triples]
    rows += [("wikidata", f"Q{s}", name(s), f"P{p}", value, None) for s, p, value in literals]
    return pl.DataFrame(rows, schema=dict(FACTS.columns), orient="row")


def graph(triples: Iterable[Triple], labels: dict[int, str] | None = None, **more: Any) -> Graph:
    """The graph of `facts`."""
    return encode(facts(triples, labels, more.pop("literals", ())).lazy(), **more)


def worked() -> Graph:
    """The worked example of the note."""
    return graph(WORKED.values(), LABELS)


def settings(attribute: str, **changed: Any) -> dict[str, Any]:
    """The defaults of config.yaml, with changes."""
    config = yaml.safe_load((ROOT / "config" / "config.yaml").read_text())["attributes"]
    return {**settings_of(config, attribute), **changed}


def triples(examples: pl.DataFrame) -> list[tuple[tuple[int | str, int | str, int | str], ...]]:
    """The examples as tuples of triples of numbers (other text stays), in order."""
    found = []
    for _, rows in examples.sort("example", "position").group_by("example", maintain_order=True):
        ids = rows.select("subject", "predicate", "object").rows()
        found.append(tuple(tuple(number(one) for one in row) for row in ids))
    return sorted(found, key=str)


def number(name: str) -> int | str:
    """The number of an id; what is none stays."""
    return int(name[1:]) if name[:1] in "QP" and name[1:].isdigit() else name

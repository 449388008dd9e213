"""Pairs of entities that share a name, from AmbER's amber_sets.jsonl."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl

from kgprobe.benchmarks.funnel import Funnel
from kgprobe.experiments import json_rows, located
from kgprobe.knowledge.graph import Graph
from kgprobe.knowledge.ids import GraphError


def amber_pairs(graph: Graph, sets: Sequence[dict[str, Any]], funnel: Funnel) -> pl.DataFrame:
    """Return (head, tail) of AmbER sets: the head, and the least popular tail in the graph."""
    connected = replace(graph, entities=graph.connected)
    numbers = connected.entity_numbers(q for one in sets for q in one["qids"])
    pairs = []
    for one in sets:
        known = [(numbers[q], entity) for q, entity in one["qids"].items() if q in numbers]
        heads = sorted(n for n, entity in known if entity["is_head"])
        tails = sorted((entity["popularity"], n) for n, entity in known if not entity["is_head"])
        if heads and tails:
            pairs.append((heads[0], tails[0][1]))
    frame = pl.DataFrame(
        sorted(set(pairs)), schema={"head": pl.Int64, "tail": pl.Int64}, orient="row"
    )
    funnel.count("AmbER sets", frame.height, len(sets), "head or tail is not in the graph")
    return frame


def read_amber(path: str | None) -> list[dict[str, Any]]:
    """Read the sets of amber_sets.jsonl; GraphError names the first invalid line."""
    path = located(path or "")
    if not Path(path).is_file():
        raise GraphError(f"ambiguous: source is amber, but amber_sets is {path!r}; name the file")
    sets = []
    for number, one in json_rows(path, GraphError):
        try:
            sets.append({"qids": {q: _entity(entity) for q, entity in one["qids"].items()}})
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise GraphError(f"{path}, line {number}: not an AmbER set ({error!r})") from error
    return sets


def _entity(entity: Mapping[str, Any]) -> dict[str, Any]:
    """Return is_head and popularity of an entity. Raises ValueError if one has no legal value."""
    is_head, popularity = entity["is_head"], float(entity["popularity"])
    if is_head not in (True, False):
        raise ValueError(f"is_head is {is_head!r}; expected true or false")
    if math.isnan(popularity):
        raise ValueError("popularity is not a number")
    return {"is_head": bool(is_head), "popularity": popularity}

"""Size of the structural build under other values of settings that the paper leaves open."""

from collections.abc import Mapping
from dataclasses import replace
from itertools import product
from types import ModuleType
from typing import Any

import polars as pl

from kgprobe.benchmarks.attributes.definition import AttributeSettings, EmptyBenchmarkError
from kgprobe.benchmarks.attributes.frames import SENSITIVITY
from kgprobe.job import progress
from kgprobe.knowledge.graph import Graph

#: Alternatives per benchmark (docs/papers/attributes.md, Decisions), each tried alone.
ALTERNATIVES: Mapping[str, Mapping[str, list[Any]]] = {
    "symmetry": {"cap_pairs": [100, 200], "ratio_over": ["triples", "pairs"]},
    "asymmetry": {"strict": [False, True]},
    "hierarchy": {"direct": ["keep", "drop"]},
    "composite": {
        "category_relations": [("P31",), ("P31", "P106")],
        "member": ["a", "all", "any"],
        "exclude": [("P31",), ("P31", "P279")],
        "min_combo": [10, 50, 100, 200],
        "keep_rare": [True, False],
    },
    "paths": {
        "category_relations": [("P31",), ("P31", "P106")],
        "endpoints_differ": [True, False],
        "relations_differ": [True, False],
        "min_combo": [10, 50, 100, 200],
        "cap": [50, 100, 200],
        "keep_rare": [True, False],
    },
    "entity_centric": {
        "top": [100, 1000, 10_000],
        "entities": [50, 270, 1000],
        "exclude": [("P31",), ()],
        "relations": ["all", "lama"],
        "directions": ["out", "both"],
        "allow_short": [False, True],
    },
    "bias": {"max_degree": [1, 2, 3], "literal_edges": [False, True]},
    "ambiguous": {
        "drop_same_object": [False, True],
        "fold_case": [False, True],
        "exclude": [("P31",), ()],
    },
}
#: The paper only says "the same strategy" for bidirectional: everything is open, so try all values.
GRID: Mapping[str, list[Any]] = {
    "min_triples": [25, 50],
    "denominator": ["min", "first", "max"],
    "ratio": [0.25, 0.5, 0.75],
}


def table(
    module: ModuleType, graph: Graph, settings: AttributeSettings[Any], everything: bool
) -> pl.DataFrame:
    """Return SENSITIVITY of one benchmark: the current settings, and with `everything` others."""
    benchmark = module.__name__.rpartition(".")[2]
    without_labels = replace(settings.shared, require_labels=False)
    bare = replace(settings, shared=without_labels, templates=None)
    rows = [(benchmark, "as configured", True, *structural(module, graph, bare))]
    changes = _changes(benchmark, settings.section) if everything else []
    for change in progress(changes, desc=f"{benchmark}, alternatives", unit="builds"):
        other = replace(bare, section=replace(settings.section, **change))
        setting = ", ".join(f"{key} = {_format_value(value)}" for key, value in change.items())
        rows.append((benchmark, setting, False, *structural(module, graph, other)))
    return pl.DataFrame(rows, schema=dict(SENSITIVITY.columns), orient="row")


def structural(
    module: ModuleType, graph: Graph, settings: AttributeSettings[Any]
) -> tuple[int, int, int]:
    """Return (patterns, examples, triples) of the structural build; three zeros if it is empty."""
    try:
        with graph.engine.temporary():
            row = module.build(graph, settings).structural_sizes.row(0, named=True)
    except EmptyBenchmarkError:
        return 0, 0, 0
    return row["patterns"], row["examples"], row["triples"]


def _changes(benchmark: str, section: object) -> list[dict[str, Any]]:
    """Return the alternatives to the current settings: each alone, or the whole grid."""
    if benchmark == "bidirectional":
        return [dict(zip(GRID, values, strict=True)) for values in product(*GRID.values())]
    every = ((k, v) for k, values in ALTERNATIVES.get(benchmark, {}).items() for v in values)
    return [{k: v} for k, v in every if _format_value(v) != _format_value(getattr(section, k))]


def _format_value(value: Any) -> str:
    if isinstance(value, tuple):
        return "+".join(value) or "none"
    return str(value).lower() if isinstance(value, bool) else str(value)

"""What the structural build becomes under other values of what the paper leaves open."""

from collections.abc import Mapping
from dataclasses import replace
from itertools import product
from types import ModuleType
from typing import Any

import polars as pl

from kgprobe.benchmarks.attributes.definition import EmptyBenchmarkError
from kgprobe.benchmarks.attributes.frames import SENSITIVITY
from kgprobe.benchmarks.attributes.settings import AttributeSettings
from kgprobe.job import progress
from kgprobe.knowledge.graph import Graph
from kgprobe.settings import Bidirectional

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
#: The paper calls bidirectional's rule "the same strategy": everything is open, so all together.
GRID: Mapping[str, list[Any]] = {
    "min_triples": [25, 50],
    "denominator": ["min", "first", "max"],
    "ratio": [0.25, 0.5, 0.75],
}


def table(
    module: ModuleType, graph: Graph, settings: AttributeSettings[Any], everything: bool
) -> pl.DataFrame:
    """SENSITIVITY of one benchmark: the settings in use, and with `everything` each alternative."""
    benchmark = module.__name__.rpartition(".")[2]
    without_labels = replace(settings.shared, require_labels=False)
    bare = replace(settings, shared=without_labels, templates=None)
    rows = [_row(benchmark, "as configured", True, structural(module, graph, bare))]
    if everything and benchmark == "bidirectional":
        rows += _grid(module, graph, settings.section)
    elif everything:
        changes = [(k, v) for k, values in ALTERNATIVES.get(benchmark, {}).items() for v in values]
        for key, value in progress(changes, desc=f"{benchmark}, alternatives", unit="builds"):
            if _format_value(value) != _format_value(getattr(settings.section, key)):
                other = replace(bare, section=replace(settings.section, **{key: value}))
                sizes = structural(module, graph, other)
                rows.append(_row(benchmark, f"{key} = {_format_value(value)}", False, sizes))
    return pl.DataFrame(rows, schema=dict(SENSITIVITY.columns), orient="row")


def structural(
    module: ModuleType, graph: Graph, settings: AttributeSettings[Any]
) -> tuple[int, int, int]:
    """(patterns, examples, triples) of the structural build; nothing at all is three zeros."""
    try:
        with graph.engine.temporary():
            row = module.build(graph, settings).structural_sizes.row(0, named=True)
    except EmptyBenchmarkError:
        return 0, 0, 0
    return row["patterns"], row["examples"], row["triples"]


def _grid(module: ModuleType, graph: Graph, section: Bidirectional) -> list[tuple[Any, ...]]:
    rows = []
    for values in product(*GRID.values()):
        chosen = dict(zip(GRID, values, strict=True))
        sizes = module.structural_size(graph, replace(section, **chosen))
        name = ", ".join(f"{key} = {_format_value(value)}" for key, value in chosen.items())
        rows.append(_row("bidirectional", name, False, sizes))
    return rows


def _row(
    benchmark: str, setting: str, default: bool, sizes: tuple[int, int, int]
) -> tuple[Any, ...]:
    return (benchmark, setting, default, *sizes)


def _format_value(value: Any) -> str:
    if isinstance(value, tuple):
        return "+".join(value) or "none"
    return str(value).lower() if isinstance(value, bool) else str(value)

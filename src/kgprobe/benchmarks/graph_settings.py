"""The settings of one attribute: shared ones, its own thresholds, and those for small graphs."""

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from kgprobe.benchmarks.graph_frames import ATTRIBUTES

#: `thresholds: small`: for graphs under about a million statements. Named in every table.
SMALL: dict[str, dict[str, Any]] = {
    "symmetry": {"min_triples": 10},
    "asymmetry": {"min_triples": 5},
    "bidirectional": {"min_triples": 5},
    "composite": {"min_combo": 10},
    "paths": {"min_combo": 10},
    "entity_centric": {"facts": 10, "top": 100},
}
#: `thresholds: table`: as small, but with twice the entities, of which many lack labels in a table
#: of triples that was put together from several projects.
TABLE = {**SMALL, "entity_centric": {"facts": 10, "top": 200}}
NAMED: dict[str, dict[str, dict[str, Any]]] = {"paper": {}, "small": SMALL, "table": TABLE}
#: keys that are not thresholds of a benchmark
OTHER = {"graph", "thresholds", "sensitivity"}
#: lists of relations and names, too long for a message or a record
LONG = ("templates", "by_label", "labels", "bias_labels")


def settings_of(
    config: Mapping[str, Any],
    attribute: str,
    seed: int = 0,
    templates: Collection[str] | None = None,
    labels: Mapping[str, str] | None = None,
    bias_labels: Mapping[str, Mapping[str, str]] | None = None,
    by_label: Collection[str] = (),
) -> dict[str, Any]:
    """The flat settings of `attribute` from the section `attributes` of the config.

    `templates` are the relations that have a written one (None: not checked), `by_label` those that
    have the generic wording of their label where none was written: the result's `templates` holds
    both, its `by_label` the latter. `labels` are names of relations, `bias_labels` {relation:
    {object: normal label}}.
    """
    if attribute not in ATTRIBUTES:
        raise ValueError(f"unknown attribute {attribute!r}; legal: {', '.join(ATTRIBUTES)}")
    shared = {k: v for k, v in config.items() if k not in ATTRIBUTES and k not in OTHER}
    small = NAMED[config["thresholds"]].get(attribute, {})
    return {
        **shared,
        **config[attribute],
        **small,
        "seed": seed,
        "templates": None if templates is None else sorted({*templates, *by_label}),
        "by_label": [] if templates is None else sorted(set(by_label) - set(templates)),
        "labels": dict(labels or {}),
        "bias_labels": dict(bias_labels or {}),
    }


def told(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings without the long lists, for messages and records."""
    return {key: value for key, value in settings.items() if key not in LONG}


def templated(tables: Iterable[Iterable[Mapping[str, str]]]) -> set[str]:
    """The relations that have a template, from rows of the template tables."""
    return {row["relation"] for rows in tables for row in rows}


def relation_names(rows: Iterable[Mapping[str, str]]) -> dict[str, str]:
    """Names of relations, from rows of properties.tsv."""
    return {row["id"]: row["property"] for row in rows}


def normal_labels(rows: Iterable[Mapping[str, str]]) -> dict[str, dict[str, str]]:
    """{relation: {object: normal label}}, from rows of kg_bias.tsv."""
    found: dict[str, dict[str, str]] = {}
    for row in rows:
        found.setdefault(row["relation"], {})[row["object"]] = row["label"]
    return found

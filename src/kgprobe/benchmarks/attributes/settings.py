"""The settings of one attribute: shared ones, thresholds, and those for small graphs."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

from kgprobe.settings.benchmarks import ATTRIBUTES, Attributes
from kgprobe.settings.types import typed

Section = TypeVar("Section", covariant=True)

#: `thresholds: paper`
PAPER: dict[str, dict[str, Any]] = {
    "symmetry": {"min_triples": 50},
    "asymmetry": {"min_triples": 25},
    "bidirectional": {"min_triples": 50},
    "composite": {"min_combo": 100},
    "paths": {"min_combo": 100},
    "entity_centric": {"facts": 20, "top": 1000},
}
#: `thresholds: small`: for graphs under about a million statements. Every table names them.
SMALL: dict[str, dict[str, Any]] = {
    "symmetry": {"min_triples": 10},
    "asymmetry": {"min_triples": 5},
    "bidirectional": {"min_triples": 5},
    "composite": {"min_combo": 10},
    "paths": {"min_combo": 10},
    "entity_centric": {"facts": 10, "top": 100},
}
#: `thresholds: table`: like small, but with twice the entities, because many lack labels in a table
#: of triples that was compiled from several projects.
TABLE = {**SMALL, "entity_centric": {"facts": 10, "top": 200}}
NAMED: dict[str, dict[str, dict[str, Any]]] = {"paper": PAPER, "small": SMALL, "table": TABLE}
#: keys that are not settings of a benchmark's construction
OTHER = {"graph", "thresholds", "sensitivity"}


@dataclass(frozen=True)
class AttributeSettings(Generic[Section]):
    """The settings of one attribute. `AttributeSettings[object]` is for any attribute."""

    shared: Attributes
    """the keys that all attributes share"""
    section: Section
    """the attribute's section, with named thresholds where the config gives none"""
    seed: int
    templates: Sequence[str] | None
    """relations that have a template, sorted; None: not checked"""
    by_label: Sequence[str]
    """those of `templates` that only have the generic template of their label"""
    labels: Mapping[str, str]
    """names of relations"""
    bias_labels: Mapping[str, Mapping[str, str]]
    """{relation: {object: normal label}}"""


def settings_of(
    config: Mapping[str, Any],
    attribute: str,
    seed: int = 0,
    templates: Collection[str] | None = None,
    labels: Mapping[str, str] | None = None,
    bias_labels: Mapping[str, Mapping[str, str]] | None = None,
    by_label: Collection[str] = (),
) -> AttributeSettings[Any]:
    """Return the settings of `attribute` from the section `attributes` of the config.

    `templates` are the relations with a manual template, `by_label` those with the generic template
    of their label if there is no manual one: the result's `templates` holds both.
    """
    if attribute not in ATTRIBUTES:
        raise ValueError(f"unknown attribute {attribute!r}; valid: {', '.join(ATTRIBUTES)}")
    shared = typed(Attributes, config)
    section = getattr(shared, attribute)
    # a threshold in the config overrides the named ones
    named = NAMED[shared.thresholds].get(attribute, {})
    named = {k: v for k, v in named.items() if getattr(section, k) is None}
    section = replace(section, **named)
    every = None if templates is None else sorted({*templates, *by_label})
    generic = [] if templates is None else sorted(set(by_label) - set(templates))
    names = dict(labels or {}), dict(bias_labels or {})
    return AttributeSettings(shared, section, seed, every, generic, *names)


def as_record(settings: AttributeSettings[object]) -> dict[str, Any]:
    """Return settings by name, without lists of relations and names, for messages and records."""
    shared = {k: v for k, v in vars(settings.shared).items() if k not in {*ATTRIBUTES, *OTHER}}
    return {**shared, **vars(settings.section), "seed": settings.seed}


def normal_labels(rows: Iterable[Mapping[str, str]]) -> dict[str, dict[str, str]]:
    """Return {relation: {object: normal label}} from rows of attributes_bias.tsv."""
    labels: dict[str, dict[str, str]] = {}
    for row in rows:
        labels.setdefault(row["relation"], {})[row["object"]] = row["label"]
    return labels

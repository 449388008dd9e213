"""Definition of an attribute: its examples, its settings, and the inputs of its construction."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

import polars as pl

from kgprobe.benchmarks.funnel import Funnel
from kgprobe.knowledge.graph import Graph
from kgprobe.knowledge.ids import GraphError
from kgprobe.settings.benchmarks import ATTRIBUTES, Attributes
from kgprobe.settings.types import typed

Section = TypeVar("Section", covariant=True)

#: The named sets of thresholds: the paper's, those for graphs under about a million statements, and
#: for a table of triples compiled from several projects, in which many entities lack labels.
THRESHOLD_SETS = ("paper", "small", "table")
#: attribute -> threshold -> its value in each of these sets. Every table names the set.
THRESHOLDS: dict[str, dict[str, tuple[int, ...]]] = {
    "symmetry": {"min_triples": (50, 10, 10)},
    "asymmetry": {"min_triples": (25, 5, 5)},
    "bidirectional": {"min_triples": (50, 5, 5)},
    "composite": {"min_combo": (100, 10, 10)},
    "paths": {"min_combo": (100, 10, 10)},
    "entity_centric": {"facts": (20, 10, 10), "top": (1000, 100, 200)},
}
#: keys that are not settings of a benchmark's construction
OTHER = {"graph", "thresholds", "sensitivity"}
#: the funnel step that lists relations in the settings that the graph lacks
SETTLED = "relations of the settings"


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
    bias_labels: Mapping[str, str]
    """object -> normal label"""


def settings_of(
    config: Mapping[str, Any],
    attribute: str,
    seed: int = 0,
    templates: Collection[str] | None = None,
    by_label: Collection[str] = (),
    labels: Mapping[str, str] | None = None,
    bias_labels: Mapping[str, str] | None = None,
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
    place, unset = THRESHOLD_SETS.index(shared.thresholds), THRESHOLDS.get(attribute, {})
    named = {k: v[place] for k, v in unset.items() if getattr(section, k) is None}
    section = replace(section, **named)
    every = None if templates is None else sorted({*templates, *by_label})
    generic = [] if templates is None else sorted(set(by_label) - set(templates))
    names = dict(labels or {}), dict(bias_labels or {})
    return AttributeSettings(shared, section, seed, every, generic, *names)


def as_record(settings: AttributeSettings[object]) -> dict[str, Any]:
    """Return settings by name, without lists of relations and names, for messages and records."""
    shared = {k: v for k, v in vars(settings.shared).items() if k not in {*ATTRIBUTES, *OTHER}}
    return {**shared, **vars(settings.section), "seed": settings.seed}


@dataclass(frozen=True)
class Triple:
    """One triple of an example: its role, and its columns in a candidate; `p` can also be the id of
    a relation."""

    role: str
    s: str
    p: str
    o: str
    origin: str = "stored"


@dataclass(frozen=True)
class Definition:
    """The triples and relations of a benchmark's examples.

    `relations`: the columns of a candidate that make up its pattern, formatted by `pattern`;
    `entities`: those that identify an example within its pattern.
    """

    benchmark: str
    relations: tuple[str, ...]
    pattern: str
    entities: tuple[str, ...]
    triples: tuple[Triple, ...]
    #: whether its relations form a chain, in which all are equally important
    is_chain: bool = False
    #: whether an example consists of several candidates of any pattern: facts of one entity
    is_group: bool = False

    @property
    def key(self) -> list[str]:
        """The columns that identify a candidate."""
        ends = (c for triple in self.triples for c in (triple.s, triple.o) if self.is_group)
        return list(dict.fromkeys([*self.relations, *self.entities, *ends]))

    @property
    def numbers(self) -> list[str]:
        """All columns of entities and literals."""
        ends = (column for triple in self.triples for column in (triple.s, triple.o))
        return list(dict.fromkeys([*self.entities, *ends]))

    def with_pattern(self, candidates: pl.DataFrame, graph: Graph) -> pl.DataFrame:
        """Add `pattern`, as text."""
        names = [graph.relations.names_of(candidates[column]) for column in self.relations]
        return candidates.with_columns(pattern=pl.format(self.pattern, *map(pl.lit, names)))


class EmptyBenchmarkError(GraphError):
    """A benchmark has no examples; the message has its thresholds and the counts before each.

    `reason`: the first step that kept nothing, and the relations that the graph lacks.
    """

    def __init__(self, message: str, reason: str) -> None:
        super().__init__(message)
        self.reason = reason


class Setup(Generic[Section]):
    """The inputs of one benchmark's construction: definition, graph and settings. `count` adds a
    step to its `funnel`."""

    def __init__(
        self, definition: Definition, graph: Graph, settings: AttributeSettings[Section]
    ) -> None:
        self.definition, self.graph, self.settings = definition, graph, settings
        self.name, self.engine = definition.benchmark, graph.engine
        self.section, self.shared, self.seed = settings.section, settings.shared, settings.seed
        self.funnel = Funnel(self.name)
        self.count = self.funnel.count

    def require(self, n: int) -> None:
        """Raise EmptyBenchmarkError, with thresholds and counts of all steps, if `n` is 0."""
        if n:
            return
        rows = [r for r in self.funnel.rows if r["step"] == SETTLED or not r["kept"]]
        raise EmptyBenchmarkError(
            f"{self.name}: no example is left. Settings: {as_record(self.settings)}\n"
            f"{self.funnel.describe()}\nlower a threshold (attributes.thresholds: small is meant "
            "for small graphs) or give a larger graph",
            self.funnel.describe(rows[:2]),
        )

    def relations(self, names: Collection[str]) -> list[int]:
        """Return the numbers of relations named in settings; the funnel lists missing ones."""
        if missing := self.graph.relations.missing(names):
            why = f"roles and known of sources.graphs name none for {', '.join(missing)}"
            self.count(SETTLED, len(names) - len(missing), len(names), why)
        return self.graph.relations.numbers(names)

"""The form of an attribute's examples, and the inputs of its construction."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Generic

import polars as pl

from kgprobe.benchmarks.attributes.settings import AttributeSettings, Section, as_record
from kgprobe.benchmarks.funnel import Funnel
from kgprobe.knowledge.graph import Graph
from kgprobe.knowledge.ids import GraphError

#: the funnel step that lists relations in the settings that the graph lacks
SETTLED = "relations of the settings"


@dataclass(frozen=True)
class ExampleTriple:
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
    triples: tuple[ExampleTriple, ...]
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

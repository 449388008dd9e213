"""The graph of the knowledge-graph attributes: distinct edges as numbers, degrees, categories.

One edge per distinct (s, p, o) between two different entities (docs/papers/attributes.md, Graph).
Literals are kept separately and used only for asymmetry. An edge takes ten bytes, whatever its
labels; graphs are parquet files on disk, and tables of `engine`, which joins them without copies.
"""

import hashlib
import logging
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import ibis
import ibis.expr.datatypes as dt
import polars as pl
import pyarrow as pa
from ibis.expr.types import BooleanValue, IntegerColumn, StringColumn, Table

from kgprobe.contracts import Contract
from kgprobe.knowledge import engine as engines
from kgprobe.knowledge.engine import Engine, count_rows, first, signed, stripped
from kgprobe.knowledge.ids import (
    ENTITY,
    IDS,
    LARGEST,
    RELATION,
    SUBCLASS_OF,
    GraphError,
    RelationNumbers,
)
from kgprobe.schema import write as write_frame

log = logging.getLogger("kgprobe")

#: A distinct edge between two entities, by the numbers of their ids.
EDGES = Contract(
    "EDGES", {"s": pl.UInt32, "p": pl.UInt16, "o": pl.UInt32}, ("p", "s", "o"), may_be_empty=True
)

#: A distinct statement whose object is a literal; `o` is the number of its value, negative.
LITERAL_EDGES = Contract(
    "LITERAL_EDGES",
    {"s": pl.UInt32, "p": pl.UInt16, "o": pl.Int64, "value": pl.String, "text": pl.String},
    ("p", "s", "o"),
    may_be_empty=True,
)

#: An entity of the graph: its label and the number of its edges, 0 if it only has literals.
ENTITIES = Contract(
    "ENTITIES",
    {"id": pl.UInt32, "label": pl.String, "degree": pl.UInt32},
    ("id",),
    frozenset({"label"}),
)

#: Counts of the statements that `encode` kept and dropped.
COUNTS = Contract("GRAPH_COUNTS", {"count": pl.String, "n": pl.Int64}, ("count",))

#: The files of a graph.
TABLES = ("edges", "literals", "entities", "counts", "ids")

#: MB for joins per million statements to encode: 11 M took 150 MB in all, 100 M between 900 and
#: 2,450. Building on a graph can spill: 100 MB sufficed for 11 M.
MB_PER_MILLION = 20

#: Labels with such a part would break a prompt.
UNUSABLE = r"\[X\]|\[Y\]|\[MASK\]|<mask>|<extra_id_\d+>"
#: columns of candidates that hold relations; all others hold entities
RELATION_COLUMN = re.compile(r"[pr][1-3]?")
MONTHS = (
    "January February March April May June July August September October November December".split()
)
_DATE = re.compile(r"^([+-]?\d{4,})-(\d\d)-(\d\d)(T|$)")


@dataclass(frozen=True)
class Graph:
    """A graph as tables of `engine`, with counts from its construction.

    `edges` (s, p, o); `literals` (s, p, o, value, text), with negative o; `entities` (id, label,
    degree). `ids`: IDS, or None if ids are Wikidata's; `known`: Wikidata property -> equivalent
    relations of the graph.
    """

    engine: Engine
    edges: Table
    literals: Table
    entities: Table
    counts: Mapping[str, int] = field(default_factory=dict)
    ids: Table | None = None
    known: Mapping[str, Sequence[str]] = field(default_factory=dict)

    @cached_property
    def relations(self) -> RelationNumbers:
        """Numbers and ids of the relations; of those that mean subclass of, the one with the most
        edges comes first."""
        if self.ids is None:
            return RelationNumbers(None, self.known)
        ids = self.ids.filter(self.ids["kind"] == RELATION).select("number", "id")
        names = dict(self.frame(ids).sort("number").rows())
        sizes = {names[p]: n for p, n in self.sizes.rows()}
        same = sorted(self.known.get(SUBCLASS_OF, ()), key=lambda name: -sizes.get(name, 0))
        return RelationNumbers(names, {**self.known, SUBCLASS_OF: same})

    @property
    def named_entities(self) -> Table:
        """`entities` with `name`, their ids as text."""
        if self.ids is None:
            return self.entities.mutate(name="Q" + self.entities["id"].cast("string"))
        ids = self.ids.filter(self.ids["kind"] == ENTITY).select(_id="number", name="id")
        return self.entities.inner_join(ids, [("id", "_id")]).drop("_id")

    def entity_names(self, numbers: Iterable[int]) -> dict[int, str]:
        """Return number -> id of these entities."""
        return self._look_up(pl.Series("id", sorted(set(numbers)), pl.Int64), "name")

    def entity_numbers(self, names: Iterable[str]) -> dict[str, int]:
        """Return id -> number, without ids that are not entities of the graph."""
        return self._look_up(pl.Series("name", sorted(set(names)), pl.String), "id")

    def _look_up(self, keys: pl.Series, column: str) -> dict[Any, Any]:
        rows = self.named_entities.semi_join(self.engine.table(keys.to_frame()), keys.name)
        wanted = [keys.name, column]
        return dict(self.frame(rows.select(wanted)).select(wanted).rows())

    def texts(self, numbers: pl.Series) -> pl.DataFrame:
        """Return (n, id, text, degree) of entities and literals; a literal has its value as id."""
        used = numbers.unique().cast(pl.Int64).alias("n").to_frame()
        wanted = self.engine.table(used)
        entities = self.named_entities.semi_join(wanted, [("id", "n")])
        rows = self.frame(entities.select("degree", n="id", id="name", text="label"))
        if (used["n"] < 0).any():
            values = self.literals.semi_join(wanted, [("o", "n")]).select("text", n="o", id="value")
            rows = pl.concat([rows, self.frame(values.distinct())], how="diagonal")
        return rows.select("n", "id", "text", "degree")

    @property
    def statements(self) -> Table:
        """(s, p, o) of edges and literals together."""
        literals = self.literals.select("s", "p", "o")
        return self.edges.mutate(o=self.edges["o"].cast("int64")).union(literals)

    def frame(self, rows: Table) -> pl.DataFrame:
        """Return the rows of an expression, unordered."""
        return self.engine.frame(rows)

    @cached_property
    def size(self) -> int:
        """The number of edges."""
        return self.engine.count(self.edges)

    @cached_property
    def sizes(self) -> pl.DataFrame:
        """(p, n): the number of edges of every relation, sorted by relation."""
        return self.frame(count_rows(self.edges, ["p"])).sort("p")

    @property
    def connected(self) -> Table:
        """`entities` that have an edge."""
        return self.entities.filter(self.entities["degree"] > 0)

    @property
    def labeled(self) -> Table:
        """Ids (column `id`) of the entities that have a label."""
        return self.entities.filter(self.entities["label"].notnull()).select("id")

    def keyed(self, rows: Table, seed: int, names: Sequence[str], label: str) -> Table:
        """Return the rows with a sampling key `_key`: a hash of the numbers in some columns, or of
        their ids in a user-supplied graph."""
        if self.ids is None:
            return rows.mutate(_key=engines.keys(rows, seed, names, label))
        joined = rows
        for name in names:
            kind = RELATION if RELATION_COLUMN.fullmatch(name) else ENTITY
            ids = self.ids.filter(self.ids["kind"] == kind)
            ids = ids.select(**{f"_{name}": "number", f"_{name}_id": "id"})
            joined = joined.left_join(ids, [(name, f"_{name}")])
        key = engines.text_keys(seed, [joined[f"_{name}_id"] for name in names], label)
        return joined.mutate(_key=key).select(*rows.columns, "_key")

    def smallest(
        self,
        rows: Table,
        n: int,
        seed: int,
        ids: Sequence[str],
        by: Sequence[str] = (),
        label: str = "",
    ) -> Table:
        """Return at most `n` rows of every stratum `by`, those with the smallest sampling keys.

        Ties are broken by `ids`, which must be unique within a stratum.
        """
        keyed = self.keyed(rows, seed, [*by, *ids], label)
        return first(keyed, n, ["_key", *ids], by).drop("_key")

    def of(self, relations: Collection[int]) -> Table:
        """Return the edges of these relations."""
        return self.edges.filter(is_among(self.edges["p"], relations))

    def without(self, relations: Collection[int]) -> Table:
        """Return the edges of all other relations."""
        return self.edges.filter(~is_among(self.edges["p"], relations))

    @property
    def reciprocal(self) -> Table:
        """(p1, p2, s, o) of all edges (s, p1, o) and (o, p2, s) with p1 <= p2.

        Joined on both entities, so its size is bounded by the number of parallel edges.
        """
        back = self.edges.select(s="o", o="s", p2="p")
        both = self.edges.rename(p1="p").inner_join(back, ["s", "o"])
        chosen = both.filter(both["p1"] <= both["p2"]).select("p1", "p2", "s", "o")
        return self.engine.keep(chosen, shared=True)

    @property
    def symmetric(self) -> Table:
        """The edges (s, p, o) whose reverse (o, p, s) is also an edge."""
        same = self.reciprocal.filter(self.reciprocal["p1"] == self.reciprocal["p2"])
        return same.select("s", "o", p="p1")

    def renamed(self, labels: Mapping[int, str]) -> "Graph":
        """Return the graph with other labels for some entities."""
        if not labels:
            return self
        schema = {"_id": pl.Int64, "_label": pl.String}
        other = pl.DataFrame([*labels.items()], schema, orient="row")
        both = self.entities.left_join(self.engine.table(other), [("id", "_id")])
        label = ibis.coalesce(both["_label"], both["label"])
        return replace(self, entities=both.mutate(label=label).drop("_id", "_label"))


def is_among(column: IntegerColumn, numbers: Collection[int]) -> BooleanValue:
    """Return whether a column is one of these numbers, of which there may be none."""
    return column.isin(sorted(numbers)) if numbers else ibis.literal(False)


def read(
    engine: Engine,
    edges: str,
    literals: str,
    entities: str,
    ids: str = "",
    known: Mapping[str, Sequence[str]] | None = None,
) -> Graph:
    """Read a graph from parquet files; `known` as in `Graph`, used if the graph has its own ids."""
    graph = Graph(engine, *(engine.files([path]) for path in (edges, literals, entities)))
    id_table = engine.files([ids]) if ids else None
    if id_table is None or not engine.count(id_table):
        return graph
    return replace(graph, ids=id_table, known=known or {})


def write(graph: Graph, paths: Mapping[str, str], provenance: Mapping[str, object]) -> None:
    """Write the TABLES of a graph that `encode` made to `paths`."""
    contracts = {"edges": EDGES, "literals": LITERAL_EDGES, "entities": ENTITIES, "ids": IDS}
    for name, contract in contracts.items():
        rows = getattr(graph, name)
        if rows is None:
            write_frame(pl.DataFrame(schema=dict(IDS.columns)), IDS, paths[name], provenance)
        else:
            graph.engine.write(rows, contract, paths[name], provenance)
    counts = pl.DataFrame([*graph.counts.items()], schema=dict(COUNTS.columns), orient="row")
    write_frame(counts, COUNTS, paths["counts"], provenance)


def encode(
    engine: Engine,
    facts: Table,
    literals: bool = True,
    own: bool = False,
    known: Mapping[str, Sequence[str]] | None = None,
) -> Graph:
    """Build the graph of a FACTS table; an object that has not the form of an id is a literal.

    Dropped and counted: statements whose subject is not an item or whose relation is not a property
    with a small enough number, self-loops, duplicates, objects that are other kinds of entity
    (properties, lexemes), and labels that would break a prompt.
    Raises EngineError before reading if the engine has too little memory for the statements.
    `own`: a user-supplied graph's ids, where every object is an entity; `known` as in `Graph`.
    """
    graphs = engine.frame(facts.select("kg").distinct())["kg"].to_list()
    if len(graphs) != 1:
        raise GraphError(f"facts of {sorted(graphs)} in one table; expected exactly one graph")
    n = engine.count(facts)
    engine.demand(
        engines.LEAST_MB + MB_PER_MILLION * n // 1_000_000, f"a graph of {n:,} statements"
    )
    ids = engine.keep(_numbered(facts), shared=True) if own else None
    rows = _by_text(facts) if ids is None else _by_table(engine, facts, ids)
    # the text is only needed for literals; nulls take no memory
    text = ibis.ifelse(rows["o"].isnull(), rows["object"], ibis.null("string"))
    # parsed once and kept: a query that reads parsed rows twice would hold all of them
    coded = engine.keep(
        rows.select("s", "p", "o", "other", "subject_label", "object_label", object=text)
    )
    item = coded["s"].notnull() & coded["p"].notnull()
    loop, stored = coded["s"] == coded["o"], coded["s"] != coded["o"]
    counts = engine.numbers(
        coded.aggregate(
            statements=coded.count(),
            subject_no_item=coded["s"].isnull().sum(),
            relation_no_property=(coded["s"].notnull() & coded["p"].isnull()).sum(),
            object_no_item=(item & coded["other"]).sum(),
            self_loops=(item & loop).sum(),
            duplicates=(item & stored).sum(),
        )
    )
    edges = engine.keep(coded.filter(item & stored).select("s", "p", "o").distinct())
    valid = coded.filter(item & ~coded["other"])
    texts = valid.filter(valid["o"].isnull()).drop("o", "other", "subject_label")
    values = _literals(engine, texts if literals else texts.limit(0))
    entities, unusable = _entities(engine, edges, values, valid)
    graph = Graph(engine, edges, values, entities, ids=ids, known=known or {})
    counts["duplicates"] -= graph.size
    labeled = entities.aggregate(entities=entities.count(), labeled=entities["label"].count())
    counts |= {"edges": graph.size, "literals": engine.count(values), "unusable_labels": unusable}
    counts |= engine.numbers(labeled)
    log.info("graph: %s", ", ".join(f"{name} {n:,}" for name, n in counts.items()))
    return replace(graph, counts=counts)


def _numbered(facts: Table) -> Table:
    """Return the IDS of FACTS: entities and relations numbered from 0 in text order."""
    ends = facts.select(id="subject").union(facts.select(id="object"), distinct=True)
    names = {ENTITY: ends, RELATION: facts.select(id="relation").distinct()}
    number = ibis.row_number().over(order_by="id")
    numbered = {kind: rows.mutate(kind=ibis.literal(kind)) for kind, rows in names.items()}
    return ibis.union(*(rows.select("id", "kind", number=number) for rows in numbered.values()))


def _by_table(engine: Engine, facts: Table, ids: Table) -> Table:
    """Return FACTS with the numbers of their ids in IDS as s, p, o; `other` is always false. Raises
    GraphError if there are more entities or relations than numbers."""
    counts = engine.frame(count_rows(ids, ["kind"])).select("kind", "n")
    for kind, n in counts.sort("kind").rows():
        if n > LARGEST[kind] + 1:
            raise GraphError(
                f"{n:,} ids of the kind {kind}; at most {LARGEST[kind] + 1:,} are numbered"
            )
    rows = facts
    for column, short in (("subject", "s"), ("relation", "p"), ("object", "o")):
        numbers = ids.filter(ids["kind"] == (RELATION if short == "p" else ENTITY))
        numbers = numbers.select(**{short: "number", f"_{short}": "id"})
        rows = rows.left_join(numbers, [(column, f"_{short}")])
    return rows.select(*facts.columns, "s", "p", "o", other=ibis.literal(False))


def _by_text(facts: Table) -> Table:
    """Return FACTS with the numbers in their ids as s, p, o, null for ids of another form; `other`
    marks objects that are entities but not items."""

    def number(column: str, letter: str, digits: int, largest: int) -> IntegerColumn:
        # the result is empty if there is no match
        text: StringColumn = facts[column].re_extract(rf"^{letter}([1-9][0-9]{{0,{digits}}})$", 1)
        value = text.nullif("").cast("int64")
        return ibis.ifelse(value <= largest, value, ibis.null("int64"))

    rows = facts.mutate(
        s=number("subject", "Q", 9, LARGEST[ENTITY]),
        p=number("relation", "P", 4, LARGEST[RELATION]),
        o=number("object", "Q", 9, LARGEST[ENTITY]),
    )
    other = rows["o"].isnull() & rows["object"].re_search(r"^[A-Z][0-9]+$")
    return rows.mutate(other=other)


def _entities(engine: Engine, edges: Table, values: Table, valid: Table) -> tuple[Table, int]:
    """Return ENTITIES of edges and literals, and the number of entities all of whose labels would
    break a prompt. If an entity has several usable labels, the smallest is used."""
    rows = valid.filter((valid["s"] != valid["o"]).fill_null(True))
    names = rows.select(id="s", label="subject_label")
    names = names.union(rows.select(id="o", label="object_label"))
    known = names.filter(names["id"].notnull() & names["label"].notnull())
    names = engine.keep(known.distinct())
    names = names.mutate(label=stripped(names["label"])).filter(lambda t: t["label"] != "")
    names = names.mutate(unusable=names["label"].re_search(UNUSABLE))
    # the smallest usable label; null if there is none
    smallest = names.group_by("id").aggregate(label=names["label"].min(where=~names["unusable"]))
    named = engine.keep(smallest)
    one, none = (ibis.literal(n, "int64") for n in (1, 0))
    sides = edges.select(id="s", n=one).union(edges.select(id="o", n=one))
    # literals do not count in degrees, but an entity may have nothing else
    sides = sides.union(values.select(id="s", n=none))
    both = sides.group_by("id").aggregate(degree=sides["n"].sum().cast("int64"))
    usable = named.filter(named["label"].notnull()).select(_id="id", label="label")
    labeled = both.left_join(usable, [("id", "_id")])
    entities = engine.keep(labeled.select("id", "label", "degree"))
    return entities, engine.count(named.filter(named["label"].isnull()))


def _literals(engine: Engine, texts: Table) -> Table:
    """Return LITERAL_EDGES; the text of a value is its most frequent usable label, else
    `date_text`."""
    labeled = texts.mutate(object_label=stripped(texts["object_label"]))
    labeled = labeled.filter(
        labeled["object_label"] != "", ~labeled["object_label"].re_search(UNUSABLE)
    )
    often = count_rows(labeled, ["object", "object_label"])
    most = first(often, 1, [often["n"].desc(), "object_label"], ["object"])
    distinct = texts.select("object").distinct()
    most = most.select(_of="object", label="object_label")
    values = distinct.left_join(most, [("object", "_of")])
    text = ibis.coalesce(values["label"], _DATE_TEXTS(values["object"]))
    values = engine.keep(values.select(value="object", o=_NUMBERS(values["object"]), text=text))
    if engine.count(values) != engine.count(values.select("o").distinct()):
        raise GraphError("two literals share a number of 64 bits; rename one of them")
    edges = texts.select("s", "p", value="object").distinct().inner_join(values, "value")
    return engine.keep(edges.select("s", "p", "o", "value", "text"))


def literal_number(value: str) -> int:
    """Return a stable negative 64-bit number for the text of a literal; entities' are positive."""
    digest = hashlib.blake2b(value.encode(), digest_size=8).digest()
    return signed(int.from_bytes(digest, "little") | 1 << 63)


def date_text(value: str) -> str:
    """Format a date in words; 1 January stands for a date known only to the year.

    Wikidata's RDF follows XSD 1.1, in which 1 BC is year 0.

    >>> date_text("1970-01-22T00:00:00Z"), date_text("1970-01-01T00:00:00Z"), date_text("blue")
    ('22 January 1970', '1970', 'blue')
    """
    match = _DATE.match(value)
    if not match:
        return value
    year, month, day = (int(part) for part in match.groups()[:3])
    shown = str(year) if year > 0 else f"{1 - year} BC"
    if not 1 <= month <= 12 or (month, day) == (1, 1):
        return shown
    return f"{day or ''} {MONTHS[month - 1]} {shown}".strip()


def _numbers(values: pa.Array) -> pa.Array:
    return pa.array([literal_number(value) for value in values.to_pylist()], pa.int64())


def _date_texts(values: pa.Array) -> pa.Array:
    texts = [date_text(value.split("^^")[0]) for value in values.to_pylist()]
    return pa.array(texts, pa.string())


_NUMBERS = ibis.udf.scalar.pyarrow(_numbers, signature=((dt.string,), dt.int64))
_DATE_TEXTS = ibis.udf.scalar.pyarrow(_date_texts, signature=((dt.string,), dt.string))


def categories(graph: Graph, top: int, relations: Collection[int]) -> Table:
    """Return (category, members): the objects with most distinct subjects, ties to lower ids."""
    # a subject may have the same category by several relations
    pairs = graph.of(relations).select(category="o", member="s").distinct()
    sizes = pairs.group_by("category").aggregate(members=pairs.count())
    most = first(sizes, top, [sizes["members"].desc(), "category"])
    return graph.engine.keep(most, shared=True)


def members(graph: Graph, top: int, relations: Collection[int]) -> Table:
    """Return distinct (category, member) pairs of the top categories."""
    of = graph.of(relations).select(category="o", member="s")
    return of.semi_join(categories(graph, top, relations), "category").distinct()

"""The graph of the knowledge-graph attributes: distinct edges as numbers, degrees, categories.

One edge per distinct (s, p, o) between two different entities (docs/papers/attributes.md, Graph).
Literals are kept apart, for asymmetry alone. An edge takes ten bytes, whatever its labels; as
parquet on disk, and as tables of `engine` that are joined where they lie.
"""

import hashlib
import logging
import re
from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import ibis
import ibis.expr.datatypes as dt
import polars as pl
import pyarrow as pa
from ibis.expr.types import BooleanValue, IntegerColumn, StringColumn, Table

from kgprobe.contracts import Contract
from kgprobe.knowledge.engine import LEAST_MB, Engine, counted, first, stripped
from kgprobe.knowledge.ids import (
    ENTITY,
    IDS,
    RELATION,
    GraphError,
    Ids,
    OwnIds,
    WikidataIds,
    check_most,
    numbered,
)
from kgprobe.schema import write as write_frame

log = logging.getLogger("kgprobe")

#: A distinct edge between two entities, by the numbers of its ids.
EDGES = Contract(
    "EDGES", {"s": pl.UInt32, "p": pl.UInt16, "o": pl.UInt32}, ("p", "s", "o"), may_be_empty=True
)

#: A distinct statement whose object is a literal; `o` is the code of its value.
LITERAL_EDGES = Contract(
    "LITERAL_EDGES",
    {"s": pl.UInt32, "p": pl.UInt16, "o": pl.UInt64, "value": pl.String, "text": pl.String},
    ("p", "s", "o"),
    may_be_empty=True,
)

#: An entity of the graph: its label, and in how many edges it stands.
ENTITIES = Contract(
    "ENTITIES",
    {"id": pl.UInt32, "label": pl.String, "degree": pl.UInt32, "out": pl.UInt32},
    ("id",),
    frozenset({"label"}),
)

#: What became of the statements when the graph was made.
COUNTS = Contract("GRAPH_COUNTS", {"count": pl.String, "n": pl.Int64}, ("count",))

#: The files of a graph.
TABLES = ("edges", "literals", "entities", "counts", "ids")

#: MB of joins for each million statements that are encoded: 11 M took 150 MB in all, 100 M between
#: 900 and 2,450. What is built on a graph spills: 100 MB sufficed for 11 M.
MB_PER_MILLION = 20

#: What would break a prompt when it stood in a label.
UNUSABLE = r"\[X\]|\[Y\]|\[MASK\]|<mask>|<extra_id_\d+>"
#: Codes of literals are 64 bits of which the first is 1; inside the engine they are negative.
CODES = 1 << 64
MONTHS = (
    "January February March April May June July August September October November December".split()
)
_DATE = re.compile(r"^([+-]?\d{4,})-(\d\d)-(\d\d)(T|$)")


@dataclass(frozen=True)
class Graph:
    """Tables of `engine`, and the counts of their making.

    `edges` (s, p, o); `literals` (s, p, o, value, text), of which o is below 0; `entities` (id,
    label, degree, out). `ids`: what the numbers stand for. `wikidata`: FACTS whose objects are true
    answers, too, where golds are linked to Wikidata's statements.
    """

    engine: Engine
    edges: Table
    literals: Table
    entities: Table
    counts: Mapping[str, int] = field(default_factory=dict)
    ids: Ids = field(default_factory=WikidataIds)
    wikidata: Table | None = None
    _kept: dict[Hashable, Table] = field(default_factory=dict, repr=False, compare=False)

    def once(self, what: Hashable, rows: Table) -> Table:
        """The rows of an expression that several builds use, kept from the first on."""
        if what not in self._kept:
            self._kept[what] = self.engine.keep(rows, stays=True)
        return self._kept[what]

    def frame(self, rows: Table) -> pl.DataFrame:
        """The rows of an expression, in no order."""
        return self.engine.frame(rows)

    @cached_property
    def size(self) -> int:
        """The number of edges."""
        return self.engine.numbers(self.edges.aggregate(n=self.edges.count()))["n"]

    @cached_property
    def sizes(self) -> pl.DataFrame:
        """(p, n): the edges of every relation, by relation."""
        return self.frame(counted(self.edges, ["p"])).sort("p")

    @property
    def labelled(self) -> Table:
        """Ids (column `id`) of the entities that have a label."""
        return self.entities.filter(self.entities["label"].notnull()).select("id")

    def smallest(
        self,
        rows: Table,
        n: int,
        seed: int,
        ids: Sequence[str],
        by: Sequence[str] = (),
        label: str = "",
    ) -> Table:
        """At most `n` rows of every stratum `by`, by the sampling keys of the graph's ids.

        Ties fall to `ids`, which must be unique within a stratum.
        """
        keyed = self.ids.keyed(rows, seed, [*by, *ids], label)
        return first(keyed, n, ["_key", *ids], by).drop("_key")

    def without(self, relations: Collection[int]) -> Table:
        """The edges of all other relations."""
        return self.edges.filter(~_among(self.edges["p"], relations))

    def of(self, relations: Collection[int], edges: Table | None = None) -> Table:
        """The edges, all or those given, of some relations."""
        edges = self.edges if edges is None else edges
        return edges.filter(_among(edges["p"], relations))

    @property
    def facing(self) -> Table:
        """(p1, p2, s, o) of all edges (s, p1, o) and (o, p2, s) with p1 <= p2.

        Joined on both entities: parallel edges bound it.
        """
        back = self.edges.select(s="o", o="s", p2="p")
        both = self.edges.rename(p1="p").inner_join(back, ["s", "o"])
        chosen = both.filter(both["p1"] <= both["p2"]).select("p1", "p2", "s", "o")
        return self.once("facing", chosen)

    @property
    def mutual(self) -> Table:
        """The edges (s, p, o) whose reverse (o, p, s) is an edge, too."""
        same = self.facing.filter(self.facing["p1"] == self.facing["p2"])
        return same.select("s", "o", p="p1")

    def renamed(self, names: Mapping[int, str]) -> "Graph":
        """The graph in which some entities have other labels."""
        if not names:
            return self
        other = pl.DataFrame(
            {"_id": list(names), "_label": list(names.values())},
            schema={"_id": pl.Int64, "_label": pl.String},
        )
        both = self.entities.left_join(self.engine.table(other), [("id", "_id")])
        label = ibis.coalesce(both["_label"], both["label"])
        return replace(self, entities=both.mutate(label=label).drop("_id", "_label"))


def _among(column: IntegerColumn, numbers: Collection[int]) -> BooleanValue:
    return column.isin(sorted(numbers)) if numbers else ibis.literal(False)


def read(
    engine: Engine,
    edges: str,
    literals: str,
    entities: str,
    ids: str = "",
    known: Mapping[str, Sequence[str]] | None = None,
) -> Graph:
    """The graph whose tables lie in parquet files under the contracts of this module.

    `known`: property of Wikidata -> relations of the graph that say the same, where its ids are its
    own.
    """
    values = engine.files([literals])
    # no engine has numbers of 64 bits without sign in common with others: by way of decimals
    code = values["o"].cast("decimal(20, 0)") - ibis.literal(str(CODES)).cast("decimal(20, 0)")
    coded = values.mutate(o=code.cast("int64"))
    own = engine.files([ids]) if ids else None
    named: Ids = WikidataIds()
    if own is not None and engine.numbers(own.aggregate(n=own.count()))["n"]:
        named = OwnIds(engine, own, known or {})
    return Graph(engine, engine.files([edges]), coded, engine.files([entities]), ids=named)


def write(graph: Graph, paths: Mapping[str, str], provenance: Mapping[str, object]) -> None:
    """Writes a graph that `encode` made: TABLES, to `paths`."""
    tables = (
        (graph.edges, EDGES, "edges"),
        (graph.literals, LITERAL_EDGES, "literals"),
        (graph.entities, ENTITIES, "entities"),
    )
    for rows, contract, name in tables:
        graph.engine.write(rows, contract, paths[name], provenance)
    counts = pl.DataFrame({"count": list(graph.counts), "n": list(graph.counts.values())})
    write_frame(counts, COUNTS, paths["counts"], provenance)
    if isinstance(graph.ids, OwnIds):
        graph.engine.write(graph.ids.table, IDS, paths["ids"], provenance)
    else:
        write_frame(pl.DataFrame(schema=dict(IDS.columns)), IDS, paths["ids"], provenance)


def encode(
    engine: Engine,
    facts: Table,
    literals: bool = True,
    own: bool = False,
    known: Mapping[str, Sequence[str]] | None = None,
) -> Graph:
    """The graph of a FACTS table; what is no Q-number in place of an object is a literal.

    Left out and counted: statements whose subject is no item, self-loops, duplicates, objects that
    are other kinds of entity (properties, lexemes), and labels that would break a prompt. Raises
    EngineError, before anything is read, where the engine has too little memory for so many.
    `own`: ids are those of another graph, and every object is an entity; `known` as in `read`.
    """
    _check_one_kg(engine, facts)
    n = engine.numbers(facts.aggregate(n=facts.count()))["n"]
    engine.demand(LEAST_MB + MB_PER_MILLION * n // 1_000_000, f"a graph of {n:,} statements")
    ids: Ids = WikidataIds()
    if own:
        ids = OwnIds(engine, engine.keep(numbered(facts), stays=True), known or {})
        check_most(engine, ids.table)
    rows = _by_table(facts, ids.table) if isinstance(ids, OwnIds) else _by_text(facts)
    # an id's text is needed of literals alone: what is null takes no room
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
            object_no_item=(item & coded["other"]).sum(),
            self_loops=(item & loop).sum(),
            duplicates=(item & stored).sum(),
        )
    )
    edges = engine.keep(coded.filter(item & stored).select("s", "p", "o").distinct())
    valid = coded.filter(item & ~coded["other"])
    spoken = valid.filter(valid["o"].isnull()).drop("o", "other", "subject_label")
    values = _literals(engine, spoken if literals else spoken.limit(0))
    entities = _entities(engine, edges, valid, counts)
    told = engine.numbers(
        entities.aggregate(entities=entities.count(), labelled=entities["label"].count())
    )
    made = Graph(engine, edges, values, entities, ids=ids)
    counts["duplicates"] -= made.size
    several = engine.numbers(values.aggregate(n=values.count()))["n"]
    unusable = counts.pop("unusable_labels")
    counts |= {"edges": made.size, "literals": several, "unusable_labels": unusable, **told}
    log.info("graph: %s", ", ".join(f"{name} {n:,}" for name, n in counts.items()))
    return replace(made, counts=counts)


def _by_table(facts: Table, ids: Table) -> Table:
    """FACTS with the numbers that its ids have in IDS as s, p, o; `other` is nowhere true."""
    rows = facts
    for column, short, kind in (
        ("subject", "s", ENTITY),
        ("relation", "p", RELATION),
        ("object", "o", ENTITY),
    ):
        own = ids.filter(ids["kind"] == kind).select(**{short: "number", f"_{short}": "id"})
        rows = rows.left_join(own, [(column, f"_{short}")])
    return rows.select(*facts.columns, "s", "p", "o", other=ibis.literal(False))


def _by_text(facts: Table) -> Table:
    """FACTS with the numbers of its ids as s, p, o, null where they are of another form; `other`
    marks objects that are entities, and no items."""

    def number(column: str, letter: str, digits: int, largest: int) -> IntegerColumn:
        # what does not match is the empty text
        text: StringColumn = facts[column].re_extract(rf"^{letter}([1-9][0-9]{{0,{digits}}})$", 1)
        found = text.nullif("").cast("int64")
        return ibis.ifelse(found <= largest, found, ibis.null("int64"))

    largest = {"Q": (1 << 32) - 1, "P": (1 << 16) - 1}
    rows = facts.mutate(
        s=number("subject", "Q", 9, largest["Q"]),
        p=number("relation", "P", 4, largest["P"]),
        o=number("object", "Q", 9, largest["Q"]),
    )
    other = rows["o"].isnull() & rows["object"].re_search(r"^[A-PR-Z][0-9]+$")
    return rows.mutate(other=other)


def _check_one_kg(engine: Engine, facts: Table) -> None:
    kinds = engine.frame(facts.select("kg").distinct())["kg"].to_list()
    if len(kinds) != 1:
        raise GraphError(f"facts of {sorted(kinds)} in one table; expected exactly one graph")


def _entities(engine: Engine, edges: Table, known: Table, counts: dict[str, int]) -> Table:
    """ENTITIES; of several labels of an entity the smallest, those that break a prompt are none."""
    told = known.filter((known["s"] != known["o"]).fill_null(True))
    names = told.select(id="s", label="subject_label").union(
        told.select(id="o", label="object_label")
    )
    named = names.filter(names["id"].notnull() & names["label"].notnull())
    names = engine.keep(named.distinct())
    names = names.mutate(label=stripped(names["label"])).filter(lambda t: t["label"] != "")
    smallest = names.group_by("id").aggregate(label=names["label"].min())
    named = engine.keep(smallest.mutate(unusable=smallest["label"].re_search(UNUSABLE)))
    counts |= engine.numbers(named.aggregate(unusable_labels=named["unusable"].sum()))
    sides = edges.select(id="s", out=ibis.literal(1)).union(
        edges.select(id="o", out=ibis.literal(0))
    )
    both = sides.group_by("id").aggregate(degree=sides.count(), out=sides["out"].sum())
    usable = named.filter(~named["unusable"]).select(_id="id", label="label")
    labelled = both.left_join(usable, [("id", "_id")])
    return engine.keep(labelled.select("id", "label", "degree", "out"))


def _literals(engine: Engine, texts: Table) -> Table:
    """LITERAL_EDGES; the text of a value is its most frequent label, else the date in words."""
    spoken = texts.filter(texts["object_label"].notnull())
    spoken = spoken.filter(stripped(spoken["object_label"]) != "")
    often = counted(spoken, ["object", "object_label"])
    most = first(often, 1, [often["n"].desc(), "object_label"], ["object"])
    distinct = texts.select("object").distinct()
    values = distinct.left_join(
        most.select(_of="object", label="object_label"), [("object", "_of")]
    )
    plain = _dated(values["object"])
    values = engine.keep(
        values.select(
            value="object", o=_coded(values["object"]), text=ibis.coalesce(values["label"], plain)
        )
    )
    told = engine.numbers(values.aggregate(n=values.count(), codes=values["o"].nunique()))
    if told["n"] != told["codes"]:
        raise GraphError("two literals share a 64-bit code; rename one of them")
    edges = texts.select("s", "p", value="object").distinct().inner_join(values, "value")
    return engine.keep(edges.select("s", "p", "o", "value", "text"))


def literal_code(value: str) -> int:
    """A stable 64-bit number for the text of a literal, above every Q-number."""
    digest = hashlib.blake2b(value.encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little") | 1 << 63


def date_text(value: str) -> str:
    """A date in words; 1 January is how a bare year is stored, so it becomes the year.

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
    return f"{day} {MONTHS[month - 1]} {shown}" if day else f"{MONTHS[month - 1]} {shown}"


def _codes(values: pa.Array) -> pa.Array:
    return pa.array([literal_code(value) - CODES for value in values.to_pylist()], pa.int64())


def _dates(values: pa.Array) -> pa.Array:
    texts = [date_text(value.split("^^")[0]) for value in values.to_pylist()]
    return pa.array(texts, pa.string())


_coded = ibis.udf.scalar.pyarrow(_codes, signature=((dt.string,), dt.int64))
_dated = ibis.udf.scalar.pyarrow(_dates, signature=((dt.string,), dt.string))


def categories(graph: Graph, top: int, relations: Collection[int]) -> pl.DataFrame:
    """(category, members): objects with most distinct subjects, ties to the lower id."""
    of = graph.of(relations)
    # a subject may have a category by several relations
    pairs = of.select(category="o", member="s")
    pairs = pairs.distinct() if len(relations) > 1 else pairs
    sizes = pairs.group_by("category").aggregate(members=pairs.count())
    most = first(sizes, top, [sizes["members"].desc(), "category"])
    return graph.frame(most).sort("members", "category", descending=[True, False])


def members(graph: Graph, chosen: pl.DataFrame, relations: Collection[int]) -> Table:
    """Distinct (category, member) of the chosen categories."""
    of = graph.of(relations).select(category="o", member="s")
    return of.semi_join(graph.engine.table(chosen.select("category")), "category").distinct()


def wedge_sums(graph: Graph) -> dict[str, int]:
    """What naive joins would build: sums of in x out, in squared and out squared over entities."""
    out = graph.entities["out"].cast("float64")
    into = graph.entities["degree"].cast("float64") - out
    sums = {"in_out": into * out, "in_in": into * into, "out_out": out * out}
    row = graph.entities.aggregate(**{name: value.sum() for name, value in sums.items()})
    return graph.engine.numbers(row)

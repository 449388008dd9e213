"""The graph of the knowledge-graph attributes: distinct edges as numbers, degrees, categories.

One edge per distinct (s, p, o) between two different entities (kg_attributes.md, section 3.1).
Literals are kept apart, for asymmetry alone. An edge takes ten bytes, whatever its labels.
"""

import hashlib
import logging
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise

import numpy as np
import polars as pl
from numpy.typing import NDArray

from kgprobe.benchmarks.attributes.frames import EDGES, ENTITIES, INSTANCE_OF, LITERAL_EDGES
from kgprobe.job import progress

log = logging.getLogger("kgprobe")

#: Bytes that making and using the graph takes per statement at its peak, measured at 11 M.
BYTES_PER_STATEMENT = 230
#: Statements that are decoded from text at a time; their strings are gone before the next part.
PART = 4_000_000
#: What would break a prompt when it stood in a label.
UNUSABLE = r"\[X\]|\[Y\]|\[MASK\]|<mask>|<extra_id_\d+>"
MONTHS = (
    "January February March April May June July August September October November December".split()
)
_DATE = re.compile(r"^([+-]?\d{4,})-(\d\d)-(\d\d)(T|$)")


class GraphError(ValueError):
    """The graph cannot be made or used as asked; the message says what would be right."""


@dataclass(frozen=True)
class Graph:
    """Edges sorted by p, s, o (EDGES), literal edges, entities sorted by id, and counts."""

    edges: pl.DataFrame
    literals: pl.DataFrame
    entities: pl.DataFrame
    counts: Mapping[str, int] = field(default_factory=dict)

    @cached_property
    def labelled(self) -> pl.DataFrame:
        """Ids (column `id`) of the entities that have a label."""
        return self.entities.filter(pl.col("label").is_not_null()).select("id")

    def without(self, relations: Collection[int]) -> pl.DataFrame:
        """The edges of all other relations."""
        return self.edges.filter(~pl.col("p").is_in(list(relations)))

    def of(self, relations: Collection[int]) -> pl.DataFrame:
        """The edges of some relations."""
        return self.edges.filter(pl.col("p").is_in(list(relations)))


def numbers(ids: Collection[str]) -> list[int]:
    """The numbers of ids such as P31; ValueError names those of another form."""
    wrong = [name for name in ids if not re.fullmatch(r"[PQ]\d+", name)]
    if wrong:
        raise GraphError(f"not Wikidata ids: {wrong}; expected P or Q and a number")
    return [int(name[1:]) for name in ids]


def check_memory(statements: int, memory_mb: int) -> None:
    """Raise GraphError when a graph of that many statements does not fit into the stated memory."""
    needed = statements * BYTES_PER_STATEMENT / 1e6
    if needed > memory_mb:
        shards = int(np.ceil(needed / (0.8 * memory_mb)))
        raise GraphError(
            f"{statements:,} statements need about {needed:,.0f} MB, memory_mb is {memory_mb:,}; "
            f"{shards} buckets of subjects would fit one at a time (README, Scale), or set "
            f"attributes.memory_mb to {int(needed) + 1} where the machine has it"
        )


def encode(facts: pl.LazyFrame, literals: bool = True, memory_mb: int = 6000) -> Graph:
    """The graph of a FACTS table; what is no Q-number in place of an object is a literal.

    Left out and counted: statements whose subject is no item, self-loops, duplicates, objects that
    are other kinds of entity (properties, lexemes), and labels that would break a prompt.
    """
    rows = facts.select(pl.len()).collect(engine="streaming").item()
    check_memory(rows, memory_mb)
    _check_one_kg(facts)
    edges, texts, names = [], [], []
    counts = {"statements": rows, "subject_no_item": 0, "object_no_item": 0, "self_loops": 0}
    for start in progress(range(0, rows, PART), desc="statements", unit=f"x {PART:,}"):
        part = _numbered(facts.slice(start, PART)).collect()
        counts["subject_no_item"] += part["s"].null_count()
        part = part.filter(pl.col("s").is_not_null() & pl.col("p").is_not_null())
        other = pl.col("o").is_null() & pl.col("object").str.contains(r"^[A-PR-Z]\d+$")
        counts["object_no_item"] += part.filter(other).height
        part = part.filter(~other)
        counts["self_loops"] += part.filter(pl.col("s") == pl.col("o")).height
        part = part.filter((pl.col("s") != pl.col("o")) | pl.col("o").is_null())
        stored = part.filter(pl.col("o").is_not_null())
        edges.append(stored.select("s", "p", "o"))
        texts.append(part.filter(pl.col("o").is_null()).select("s", "p", "object", "object_label"))
        names.append(_names(part))
    distinct = pl.concat(edges).unique().sort("p", "s", "o")
    counts["duplicates"] = sum(part.height for part in edges) - distinct.height
    counts["edges"] = distinct.height
    values = _literals(pl.concat(texts)) if literals else _literals(texts[0].clear())
    counts["literals"] = values.height
    entities = _entities(distinct, pl.concat(names), counts)
    log.info("graph: %s", ", ".join(f"{name} {n:,}" for name, n in counts.items()))
    return Graph(distinct, values, entities, counts)


def _numbered(facts: pl.LazyFrame) -> pl.LazyFrame:
    def number(column: str, letter: str, dtype: type[pl.DataType]) -> pl.Expr:
        legal = pl.col(column).str.contains(rf"^{letter}[1-9]\d*$")
        return pl.when(legal).then(pl.col(column).str.slice(1)).cast(dtype, strict=False)

    return facts.select(
        number("subject", "Q", pl.UInt32).alias("s"),
        number("relation", "P", pl.UInt16).alias("p"),
        number("object", "Q", pl.UInt32).alias("o"),
        "object",
        pl.col("subject_label").alias("label"),
        "object_label",
    )


def _check_one_kg(facts: pl.LazyFrame) -> None:
    kinds = facts.select(pl.col("kg").unique()).collect(engine="streaming")["kg"].to_list()
    if len(kinds) != 1:
        raise GraphError(f"facts of {sorted(kinds)} in one table; expected exactly one graph")


def _names(part: pl.DataFrame) -> pl.DataFrame:
    """Distinct (id, label) of both sides; the smallest label of an id wins in the end."""
    sides = [
        part.select(pl.col("s").alias("id"), "label"),
        part.filter(pl.col("o").is_not_null()).select(
            pl.col("o").alias("id"), pl.col("object_label").alias("label")
        ),
    ]
    named = pl.concat(sides).filter(pl.col("label").is_not_null())
    return named.unique()


def _entities(edges: pl.DataFrame, names: pl.DataFrame, counts: dict[str, int]) -> pl.DataFrame:
    names = names.with_columns(pl.col("label").str.strip_chars())
    names = names.filter(pl.col("label") != "").group_by("id").agg(pl.col("label").min())
    broken = names["label"].str.contains(UNUSABLE)
    counts["unusable_labels"] = int(broken.sum())
    sides = [edges["s"].value_counts(name="out"), edges["o"].value_counts(name="in")]
    out, into = (side.rename({side.columns[0]: "id"}) for side in sides)
    both = out.join(into, on="id", how="full", coalesce=True).with_columns(
        pl.col("out").fill_null(0).cast(pl.UInt32), pl.col("in").fill_null(0).cast(pl.UInt32)
    )
    both = both.join(names.filter(~broken), on="id", how="left").with_columns(
        degree=pl.col("out") + pl.col("in")
    )
    counts["entities"] = both.height
    counts["labelled"] = both.height - both["label"].null_count()
    return both.select(list(ENTITIES.columns)).sort("id")


def _literals(texts: pl.DataFrame) -> pl.DataFrame:
    """LITERAL_EDGES; the text of a value is its most frequent label, else the date in words."""
    schema = dict(LITERAL_EDGES.columns)
    if not texts.height:
        return pl.DataFrame(schema=schema)
    spoken = texts.filter(pl.col("object_label").str.strip_chars() != "")
    spoken = spoken.group_by("object", "object_label").len().sort(
        "object", "len", "object_label", descending=[False, True, False]
    )  # fmt: skip
    spoken = spoken.unique("object", keep="first", maintain_order=True).drop("len")
    values = texts.select("object").unique().sort("object").join(spoken, on="object", how="left")
    plain = [value.split("^^")[0] for value in values["object"]]
    values = values.with_columns(
        pl.Series("o", [literal_code(value) for value in values["object"]], dtype=pl.UInt64),
        text=pl.coalesce("object_label", pl.Series([date_text(value) for value in plain])),
    )
    if values["o"].is_duplicated().any():
        raise GraphError("two literals share a 64-bit code; rename one of them")
    edges = texts.select("s", "p", "object").unique().join(values, on="object")
    return edges.rename({"object": "value"}).select(list(schema)).sort("p", "s", "o")


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


def packed(edges: pl.DataFrame, reverse: bool = False) -> NDArray[np.uint64]:
    """(s, o) of every edge in one number, subject in the upper half; or (o, s)."""
    high, low = ("o", "s") if reverse else ("s", "o")
    upper = edges[high].to_numpy().astype(np.uint64) << np.uint64(32)
    return np.asarray(upper | edges[low].to_numpy().astype(np.uint64))


def reversed_present(edges: pl.DataFrame) -> NDArray[np.bool_]:
    """For every edge (s, p, o), whether (o, p, s) is an edge, too. `edges` sorted by p, s, o."""
    found = np.zeros(edges.height, dtype=bool)
    relation = edges["p"].to_numpy()
    changes = np.flatnonzero(relation[1:] != relation[:-1]) + 1
    bounds = [0, *changes.tolist(), len(relation)]
    forward, backward = packed(edges), packed(edges, reverse=True)
    for start, end in pairwise(bounds):
        if start == end:
            continue
        ordered = forward[start:end]  # sorted within the relation
        other = backward[start:end]
        place = np.minimum(np.searchsorted(ordered, other), len(ordered) - 1)
        found[start:end] = ordered[place] == other
    return found


def categories(graph: Graph, top: int, relations: Collection[int]) -> pl.DataFrame:
    """(category, members): objects with most distinct subjects, ties to the lower id."""
    edges = graph.of(relations)
    counts = edges.group_by("o").agg(pl.col("s").n_unique().alias("members"))
    return counts.rename({"o": "category"}).sort(
        "members", "category", descending=[True, False]
    ).head(top)  # fmt: skip


def members(graph: Graph, chosen: pl.DataFrame, relations: Collection[int]) -> pl.DataFrame:
    """Distinct (category, member) of the chosen categories."""
    edges = graph.of(relations).join(
        chosen.select(pl.col("category").alias("o")), on="o", how="semi"
    )
    return edges.select(pl.col("o").alias("category"), pl.col("s").alias("member")).unique()


def wedge_sums(graph: Graph) -> dict[str, int]:
    """What naive joins would build: sums of in x out, in squared and out squared over entities."""
    out = graph.entities["out"].to_numpy().astype(np.float64)
    into = graph.entities["degree"].to_numpy().astype(np.float64) - out
    sums = {"in_out": into @ out, "in_in": into @ into, "out_out": out @ out}
    return {name: int(value) for name, value in sums.items()}


def empty_edges() -> pl.DataFrame:
    """EDGES without a row."""
    return pl.DataFrame(schema=dict(EDGES.columns))


def instances(graph: Graph) -> pl.DataFrame:
    """(id, class): one class of every entity, the lowest by number."""
    edges = graph.of([INSTANCE_OF])
    return edges.group_by(pl.col("s").alias("id")).agg(pl.col("o").min().alias("class"))

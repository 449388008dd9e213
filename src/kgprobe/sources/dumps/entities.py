"""Extract statements, names, aliases and properties from one block of a dump.

Wikidata's ids become integers: four times the number of a Q, P or L id, plus the index of its
letter in `LETTERS`. IRIs of other dumps, such as DBpedia's, stay text.

A prefilter looks for bytes that every wanted line of N-Triples has; it may pass too many lines, but
never too few. A line that passes it is parsed by Oxigraph or counted as unread, so that none is
lost.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
import polars as pl
from pyoxigraph import BlankNode, Literal, NamedNode, RdfFormat, parse
from pyoxigraph import Triple as Quoted

from kgprobe.sources.dumps import described
from kgprobe.sources.dumps.stream import LineBlock

LETTERS = "QPL"
#: Ids have no leading zeros; more digits do not fit 64 bits.
_NAME_OF = re.compile(rf"([{LETTERS}])([1-9][0-9]{{0,17}})")
ALIAS = "http://www.w3.org/2004/02/skos/core#altLabel"
SITELINKS = "http://wikiba.se/ontology#sitelinks"
#: Predicate from the old id of a merged entity to the entity it was merged into.
MERGED = "http://www.w3.org/2002/07/owl#sameAs"
#: Datatypes whose values are IRIs in RDF, but plain text in JSON.
LINKED = frozenset({"url", "commonsMedia", "geo-shape", "tabular-data"})
#: Characters that no IRI holds; Oxigraph checks them only together with rules that dumps break.
_NOT_IN_IRI = re.compile(r'[\x00-\x20<>"{}|^`\\]')
#: An escape inside an IRI, which may hide any character that a prefilter looks for.
_ESCAPED = rb'\\[uU][0-9A-Fa-f]{4}[^"<>\s]*+>'

_ID = {"id": pl.UInt64}
_NAME = {"place": pl.Int64, "label": pl.String, "sitelinks": pl.Int64}
#: Tables of a part. `counted` has a row per relation, kind and rank of statements; `place`: index
#: of the label's language; `line`: a triple about a property, as in the query service;
#: `redirects`: entities that were merged into another.
TABLES: dict[str, dict[str, Any]] = {
    "statements": {
        "subject": pl.UInt64, "relation": pl.UInt32, "object": pl.UInt64, "rank": pl.String
    },
    "counted": {"relation": pl.UInt32, "kind": pl.String, "rank": pl.String, "n": pl.Int64},
    "names": {**_ID, **_NAME},
    "aliases": {**_ID, "alias": pl.String},
    "redirects": {**_ID, "target": pl.UInt64},
    "properties": {"line": pl.String},
}  # fmt: skip
#: Tables of a dump whose ids are IRIs.
IRI_TABLES: dict[str, dict[str, Any]] = {
    "statements": dict.fromkeys(
        ("subject", "relation", "object", "object_kind", "rank"), pl.String
    ),
    "names": {"id": pl.String, **_NAME},
}
Frames = dict[str, pl.DataFrame]
Counts = Counter[tuple[int, str, str]]
#: Members of an entity as in the dump; empty mappings may be written as empty lists.
Members = dict[str, msgspec.Raw] | list[msgspec.Raw] | None


class TripleTables(dict[str, list[tuple[Any, ...]]]):
    """Rows of a block by table, under `schemas`; `unread` are the lines that passed a prefilter but
    could not be read: line number, first bytes."""

    def __init__(self, schemas: Mapping[str, Mapping[str, Any]]) -> None:
        self.schemas = {**schemas, "unread": {"line": pl.Int64, "first": pl.String}}
        #: a position in the block, and the number of lines that end before it
        self.lines_before = (0, 0)
        super().__init__((name, []) for name in self.schemas)

    def note_unread(self, block: LineBlock, start: int, end: int, text: str = "") -> None:
        """Record the number and beginning of an unread line, or of `text`, a part of it. Lines must
        come in their order: those before the last one are not counted again."""
        position, lines = self.lines_before
        lines += block.data.count(b"\n", position, start)
        self.lines_before = start, lines
        line = block.data[start : min(end, start + 200)].decode(errors="replace")
        self["unread"].append((block.before + lines + 1, text[:200] or line))

    def frames(self) -> dict[str, pl.DataFrame]:
        """Return each table with sorted, distinct rows, so that output bytes are deterministic."""
        frames = {n: pl.DataFrame(r, self.schemas[n], orient="row") for n, r in self.items()}
        return {name: frame.unique().sort(frame.columns) for name, frame in frames.items()}


class Entity(msgspec.Struct):
    """The fields that are read of an entity, under their JSON names; others are skipped."""

    id: str
    labels: Members = None
    claims: Members = None
    aliases: Members = None
    sitelinks: Members = None


#: Valid ranks; others are broken.
RANKS = {rank: rank for rank in ("preferred", "normal", "deprecated")}
#: Type of a snak without a value -> its kind; other types are broken.
NO_VALUES = {"novalue": "no value", "somevalue": "unknown"}
_ENTITY_OF = msgspec.json.Decoder(Entity).decode
_parsed = msgspec.json.decode


def number(name: str) -> int | None:
    """Return the integer of an id such as Q42; None if it is not an item, property or lexeme."""
    match = _NAME_OF.fullmatch(name)
    return int(match[2]) * 4 + LETTERS.index(match[1]) if match else None


def name_of(column: str) -> pl.Expr:
    """Return an expression for the ids of an integer column."""
    letter = (pl.col(column) % 4).replace_strict(dict(enumerate(LETTERS)), return_dtype=pl.String)
    return pl.concat_str(letter, (pl.col(column) // 4).cast(pl.String))


def of_json(block: LineBlock, relations: Sequence[str], languages: Sequence[str]) -> Frames:
    """Return TABLES of the lines of a JSON dump, one entity each.

    Lines that are not entities are `unread`. A broken statement is `unread` alone: the label and
    other statements of its entity are kept.
    """
    tables, counts = TripleTables(TABLES), Counts()
    wanted = {relation: int(relation[1:]) for relation in relations}
    start = 0
    while start < len(block.data):
        end = block.data.index(b"\n", start)
        # entities are surrounded by the array's brackets and commas
        line = block.data[start:end].strip(b" \t\r,").lstrip(b"[").rstrip(b"]").strip()
        if line:
            try:
                for text in _entity(line, wanted, languages, tables, counts):
                    tables.note_unread(block, start, end, text)
            except (*described.BROKEN, RecursionError):
                tables.note_unread(block, start, end)
        start = end + 1
    tables["counted"] = [(*key, n) for key, n in counts.items()]
    return tables.frames()


def _entity(
    line: bytes,
    wanted: dict[str, int],
    languages: Sequence[str],
    tables: TripleTables,
    counts: Counts,
) -> list[str]:
    """Add the rows of an entity to `tables`; return its broken statements and aliases as JSON."""
    entity = _ENTITY_OF(line)
    subject = number(entity.id)
    if subject is None:
        raise ValueError(entity.id)
    members = entity.labels, entity.claims, entity.aliases
    labels, claims, aliases = map(_as_mapping, members)
    known = ((i, _parsed(labels[tag])["value"]) for i, tag in enumerate(languages) if tag in labels)
    # a blank label does not count
    place, label = next((pair for pair in known if (pair[1] or "").strip()), (None, None))
    links = entity.sitelinks
    # read everything before keeping anything: an entity that is broken beyond single statements is
    # counted as unread, and none of it is kept
    rows, keys, broken = [], [], []
    for relation in wanted.keys() & claims.keys():
        for claim in _parsed(claims[relation]):
            try:
                (kind, item), rank = _value(claim["mainsnak"]), RANKS[claim["rank"]]
            except described.BROKEN:
                broken.append(f"{entity.id} {relation} {msgspec.json.encode(claim).decode()}")
                continue
            keys.append((wanted[relation], kind, rank))
            if item is not None and rank != "deprecated":
                rows.append((subject, wanted[relation], item, rank))
    given = [_parsed(aliases[tag]) for tag in languages if tag in aliases]
    others = []
    for one in (one for some in given for one in some):
        if isinstance(text := one.get("value") if isinstance(one, dict) else None, str):
            others.append((subject, text))
        else:
            broken.append(f"{entity.id} alias {msgspec.json.encode(one).decode()}")
    if entity.id.startswith("P"):
        # read completely before any of it is kept
        texts = list(described.lines(_parsed(line), languages, broken))
        tables["properties"] += [(text,) for text in texts]
    tables["statements"] += rows
    tables["aliases"] += others
    counts.update(keys)
    # also without label and sitelinks: a dump without any name has no entity
    tables["names"].append((subject, place, label, None if links is None else len(links)))
    return broken


def _as_mapping(members: Members) -> dict[str, msgspec.Raw]:
    if isinstance(members, list) and members:
        raise TypeError("a list where members have names")
    return members if isinstance(members, dict) else {}


def _value(snak: dict[str, Any]) -> tuple[str, int | None]:
    """Return (kind of value as in left_out.rq, integer of the item or None); BROKEN for others."""
    if snak["snaktype"] != "value":
        return NO_VALUES[snak["snaktype"]], None
    if snak["datavalue"]["type"] != "wikibase-entityid":
        return ("other" if snak.get("datatype") in LINKED else "literal"), None
    name = described.identifier(snak["datavalue"]["value"])
    item = number(name) if name.startswith("Q") else None
    if name.startswith("Q") and item is None:
        raise ValueError(name)
    return "item", item


class DumpTriple(NamedTuple):
    """One unescaped triple: the object is an IRI, a blank node or the text of a literal.

    `node` says whether the object is a blank node; a blank subject is `_:name`.
    """

    subject: str
    predicate: str
    iri: str | None
    node: bool
    text: str | None
    language: str
    line: str
    start: int  #: of its line in the block


def prefilter(needles: Iterable[bytes]) -> re.Pattern[bytes]:
    """Combine regular expressions into one pattern, which also matches escaped IRIs."""
    return re.compile(b"|".join((*needles, _ESCAPED)))


def triples(
    block: LineBlock, wanted: re.Pattern[bytes], tables: TripleTables
) -> Iterator[DumpTriple]:
    """Yield the triples of the lines that match `wanted`; unreadable lines go to `tables`. Bytes
    that are not UTF-8 become U+FFFD."""
    data, place = block.data, 0
    while hit := wanted.search(data, place):
        start = data.rfind(b"\n", 0, hit.start()) + 1
        place = data.index(b"\n", hit.end()) + 1
        # a carriage return alone also ends a line
        for line in data[start : place - 1].decode(errors="replace").split("\r"):
            try:
                quads = [*parse(input=line, format=RdfFormat.N_TRIPLES, lenient=True)]
                yield from [_triple(quad.triple, line, start) for quad in quads]
            except (SyntaxError, ValueError):
                tables.note_unread(block, start, place - 1)


def _triple(triple: Quoted, line: str, start: int) -> DumpTriple:
    subject, predicate, value = triple.subject, triple.predicate.value, triple.object
    if isinstance(value, Quoted) or isinstance(subject, Quoted):
        raise ValueError("a triple about a triple")
    name = str(subject) if isinstance(subject, BlankNode) else subject.value
    iri = value.value if isinstance(value, NamedNode) else ""
    if any(map(_NOT_IN_IRI.search, (name, predicate, iri))):
        raise ValueError("an IRI with characters that no IRI holds")
    if isinstance(value, Literal):
        text, tag = value.value, value.language or ""
        return DumpTriple(name, predicate, None, False, text, tag, line, start)
    is_node = isinstance(value, BlankNode)
    return DumpTriple(name, predicate, None if is_node else iri, is_node, None, "", line, start)


_ENTITY = re.compile(
    r"https?://www\.wikidata\.org/(?:entity|wiki/Special:EntityData)/([QPL][1-9]\d*)", re.A
)
_DIRECT = re.compile(r"https?://www\.wikidata\.org/prop/direct/P(\d+)", re.A)


def of_truthy(block: LineBlock, relations: Sequence[str], languages: Sequence[str]) -> Frames:
    """Return TABLES of lines of a truthy N-Triples dump, or of a file of labels or sitelinks.

    It has only best-rank statements, counted as normal, and none that say there is no value.
    """
    tables, counts = TripleTables(TABLES), Counts()
    numbers = "|".join(relation[1:] for relation in relations).encode()
    tags = "|".join(re.escape(tag) for tag in languages).encode()
    stated, labels = rb"/prop/direct/P(?:%s)>" % numbers, rb'"@(?i:%s)[ \t]*\.' % tags
    others = rb"/ontology#sitelinks>", rb"/entity/(?:statement/)?P"
    passed = prefilter([stated, labels, *others, re.escape(f"<{MERGED}>".encode())])
    known = {int(relation[1:]) for relation in relations}
    positions = {tag.lower(): place for place, tag in enumerate(languages)}
    for triple in triples(block, passed, tables):
        if line := described.select_line(
            triple.subject, triple.predicate, triple.text, triple.line
        ):
            try:  # queries are run on these lines, and none if one of them is not valid
                tables["properties"] += [(line,) for _ in parse(line, RdfFormat.N_TRIPLES)]
            except SyntaxError:
                tables.note_unread(block, triple.start, triple.start, line)
                continue
        subject, item = _number_of(triple.subject), _number_of(triple.iri or "")
        if subject is None:
            continue
        text, place = triple.text or "", positions.get(triple.language)
        if direct := _DIRECT.fullmatch(triple.predicate):
            if (relation := int(direct[1])) not in known:
                continue
            unknown = triple.node or "/.well-known/genid/" in (triple.iri or "")
            kind = "unknown" if unknown else "literal" if triple.iri is None else "other"
            # forms and senses of lexemes, and schemas, are entities, too
            is_entity = re.match(r"https?://www\.wikidata\.org/entity/", triple.iri or "")
            counts[relation, "item" if is_entity else kind, "normal"] += 1
            if item is not None and LETTERS[item % 4] == "Q":
                tables["statements"].append((subject, relation, item, "normal"))
        elif triple.predicate == MERGED:
            tables["redirects"] += [(subject, item)] if item is not None else []
        elif triple.predicate == SITELINKS and text.isascii() and text.isdigit() and len(text) < 19:
            tables["names"].append((subject, None, None, int(text)))
        elif text.strip() and place is not None:
            if triple.predicate == described.LABEL:
                tables["names"].append((subject, place, text, None))
            elif triple.predicate == ALIAS:
                tables["aliases"].append((subject, text))
    tables["counted"] = [(*key, n) for key, n in counts.items()]
    return tables.frames()


def _number_of(iri: str) -> int | None:
    entity = _ENTITY.fullmatch(iri)
    return number(entity[1]) if entity else None


def of_iris(block: LineBlock, relations: Sequence[str], languages: Sequence[str]) -> Frames:
    """Return IRI_TABLES of N-Triples: statements of these relations, labels in `languages`."""
    tables = TripleTables(IRI_TABLES)
    wanted = {*relations, described.LABEL}
    passed = prefilter(re.escape(f"<{predicate}>".encode()) for predicate in sorted(wanted))
    positions = {tag.lower(): place for place, tag in enumerate(languages)}
    for triple in triples(block, passed, tables):
        text, place = triple.text or "", positions.get(triple.language)
        if triple.predicate == described.LABEL and place is not None and text.strip():
            tables["names"].append((triple.subject, place, text, None))
        if triple.predicate in relations:
            if triple.node:
                value, kind = "somevalue", "special"
            elif triple.iri is None:
                value, kind = text, "literal"
            else:
                value, kind = triple.iri, "item"
            row = (triple.subject, triple.predicate, value, kind, "normal")
            tables["statements"].append(row)
    return tables.frames()

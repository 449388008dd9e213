"""What a block of a Wikidata dump says: statements, names, aliases, properties.

Ids are integers: a Q, P or L number, four times as great, and its letter's place in `LETTERS`.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec
import polars as pl

from kgprobe.sources.dumps import described
from kgprobe.sources.dumps.stream import Block
from kgprobe.sources.dumps.triples import Triple, Unread, prefilter, triples

LETTERS = "QPL"
RDFS_LABEL = "http://www.w3.org/2000/01/rdf-schema#label"
ALIAS = "http://www.w3.org/2004/02/skos/core#altLabel"
SITELINKS = "http://wikiba.se/ontology#sitelinks"
#: Between the id that an entity had and that of the one that it was merged into.
MERGED = "http://www.w3.org/2002/07/owl#sameAs"
#: Values that are IRIs in RDF, though plain text in JSON.
LINKED = frozenset({"url", "commonsMedia", "geo-shape", "tabular-data"})

_ID = {"id": pl.UInt64}
_STATEMENT = {
    "subject": pl.UInt64, "relation": pl.UInt32, "object": pl.UInt64, "rank": pl.String
}  # fmt: skip
#: Tables of a part. `counted` has a row a statement's kind and rank; `place`: which of the
#: languages a label is in; `line`: a triple about a property, as the query service has it;
#: `redirects`: entities that were merged into another.
TABLES: dict[str, dict[str, Any]] = {
    "statements": _STATEMENT,
    "counted": {"relation": pl.UInt32, "kind": pl.String, "rank": pl.String, "n": pl.Int64},
    "names": {**_ID, "place": pl.Int64, "label": pl.String, "sitelinks": pl.Int64},
    "aliases": {**_ID, "alias": pl.String},
    "redirects": {**_ID, "target": pl.UInt64},
    "properties": {"line": pl.String},
    "unread": {"line": pl.Int64, "first": pl.String},
}  # fmt: skip
Row = tuple[Any, ...]
#: Of an entity's members, as the dump has them; what is empty may be written as an empty list.
Members = dict[str, msgspec.Raw] | list[msgspec.Raw] | None


class Entity(msgspec.Struct):
    """What is wanted of an entity, in a dump's words; the rest of its line is passed over."""

    id: str
    labels: Members = None
    claims: Members = None
    aliases: Members = None
    sitelinks: Members = None


_ENTITY_OF = msgspec.json.Decoder(Entity).decode


@dataclass
class EntityRows:
    """Rows by table."""

    rows: dict[str, list[Row]] = field(default_factory=lambda: {name: [] for name in TABLES})
    counts: dict[tuple[int, str, str], int] = field(default_factory=dict)

    def count(self, relation: int, kind: str, rank: str) -> None:
        """One more statement of a relation by kind of value and rank."""
        key = relation, kind, rank
        self.counts[key] = self.counts.get(key, 0) + 1

    def frames(self) -> dict[str, pl.DataFrame]:
        """Each table, rows once and in order, so that the same block gives the same bytes."""
        self.rows["counted"] = [(*key, n) for key, n in self.counts.items()]
        made = {}
        for name, rows in self.rows.items():
            frame = pl.DataFrame(rows, schema=TABLES[name], orient="row")
            made[name] = frame.unique().sort(frame.columns)
        return made


def number(name: str) -> int | None:
    """The integer of an id such as Q42; None for what is no item, property or lexeme."""
    letter, digits = name[:1], name[1:]
    if letter and letter in LETTERS and digits.isascii() and digits.isdigit():
        return int(digits) * 4 + LETTERS.index(letter)
    return None


def name_of(column: str) -> pl.Expr:
    """The id of an integer column."""
    letter = (pl.col(column) % 4).replace_strict(dict(enumerate(LETTERS)), return_dtype=pl.String)
    return pl.concat_str(letter, (pl.col(column) // 4).cast(pl.String))


def of_json(block: Block, relations: Sequence[str], languages: Sequence[str]) -> EntityRows:
    """The rows of lines of a JSON dump, one entity each.

    Lines that are none are `unread`; so is a statement that is broken, alone: its entity's label
    and other statements stay.
    """
    found, unread = EntityRows(), Unread()
    wanted = {relation: int(relation[1:]) for relation in relations}
    start = 0
    while start < len(block.data):
        end = block.data.index(b"\n", start)
        # the array's brackets and commas stand around the entities
        line = block.data[start:end].strip(b" \t\r,").lstrip(b"[").rstrip(b"]").strip()
        if line:
            try:
                for text in _entity(line, wanted, languages, found):
                    unread.note(block, start, end, text)
            except BROKEN:
                unread.note(block, start, end)
        start = end + 1
    found.rows["unread"] = unread.rows
    return found


#: what reading JSON of another shape raises
BROKEN = (msgspec.MsgspecError, LookupError, TypeError, AttributeError, ValueError)


def _entity(
    line: bytes, wanted: dict[str, int], languages: Sequence[str], found: EntityRows
) -> list[str]:
    """Keep what an entity says; returns the statements that are broken, as JSON."""
    entity = _ENTITY_OF(line)
    own = number(entity.id)
    if own is None:
        raise ValueError(entity.id)
    labels, claims, aliases = (
        _as_mapping(m) for m in (entity.labels, entity.claims, entity.aliases)
    )
    place = next((i for i, tag in enumerate(languages) if tag in labels), None)
    label = None if place is None else _parsed(labels[languages[place]])["value"]
    links = entity.sitelinks
    # everything is read before anything is kept: an entity that is broken otherwise than in single
    # statements is counted as unread, and nothing of it is there
    rows, counts, broken = [], [], []
    for relation in wanted.keys() & claims.keys():
        for claim in _parsed(claims[relation]):
            try:
                (kind, item), rank = _value(claim["mainsnak"]), claim["rank"]
            except BROKEN:
                broken.append(f"{entity.id} {relation} {msgspec.json.encode(claim).decode()}")
                continue
            counts.append((wanted[relation], kind, rank))
            if item is not None and rank != "deprecated":
                rows.append((own, wanted[relation], item, rank))
    told = [_parsed(aliases[tag]) for tag in languages if tag in aliases]
    others = [(own, one["value"]) for some in told for one in some]
    is_property = entity.id.startswith("P")
    lines = [(text,) for text in described.lines(_parsed(line), languages)] if is_property else []
    found.rows["statements"] += rows
    found.rows["aliases"] += others
    found.rows["properties"] += lines
    for key in counts:
        found.count(*key)
    if label is not None or links is not None:
        found.rows["names"].append((own, place, label, None if links is None else len(links)))
    return broken


def _as_mapping(members: Members) -> dict[str, msgspec.Raw]:
    if isinstance(members, list) and members:
        raise TypeError("a list where members have names")
    return members if isinstance(members, dict) else {}


def _parsed(text: bytes | msgspec.Raw) -> Any:
    return msgspec.json.decode(text)


def _value(snak: dict[str, Any]) -> tuple[str, int | None]:
    """(kind of value as left_out.rq names it, the item's integer)."""
    if snak["snaktype"] != "value":
        return ("no value" if snak["snaktype"] == "novalue" else "unknown"), None
    if snak["datavalue"]["type"] != "wikibase-entityid":
        return ("other" if snak.get("datatype") in LINKED else "literal"), None
    name = described.identifier(snak["datavalue"]["value"])
    return "item", number(name) if name.startswith("Q") else None


_ENTITY = re.compile(
    r"https?://www\.wikidata\.org/(?:entity|wiki/Special:EntityData)/([QPL][1-9]\d*)", re.A
)
_DIRECT = re.compile(r"https?://www\.wikidata\.org/prop/direct/P(\d+)", re.A)


def of_truthy(block: Block, relations: Sequence[str], languages: Sequence[str]) -> EntityRows:
    """The rows of lines of a truthy N-Triples dump, or of one with labels or sitelinks alone.

    It has best ranks only, which count as normal, and does not say where there is no value.
    """
    found, unread = EntityRows(), Unread()
    numbers = "|".join(relation[1:] for relation in relations).encode()
    tags = "|".join(re.escape(tag) for tag in languages).encode()
    passed = prefilter(
        [
            rb"/prop/direct/P(?:" + numbers + rb")>",
            rb'"@(?i:' + tags + rb")[ \t]*\.",
            rb"/ontology#sitelinks>",
            rb"/entity/(?:statement/)?P",
            re.escape(f"<{MERGED}>".encode()),
        ]
    )
    known = {int(relation[1:]) for relation in relations}
    places = {tag.lower(): place for place, tag in enumerate(languages)}
    for triple in triples(block, passed, unread):
        found.rows["properties"] += [(line,) for line in described.kept(triple)]
        subject = _ENTITY.fullmatch(triple.subject)
        own = number(subject[1]) if subject else None
        if own is None:
            continue
        for table, row in _of_triple(own, triple, known, places, found):
            found.rows[table].append(row)
    found.rows["unread"] = unread.rows
    return found


def _of_triple(
    own: int, triple: Triple, known: set[int], places: dict[str, int], found: EntityRows
) -> Iterator[tuple[str, Row]]:
    if direct := _DIRECT.fullmatch(triple.predicate):
        relation = int(direct[1])
        if relation not in known:
            return
        item = _ENTITY.fullmatch(triple.iri or "")
        unknown = triple.node or "/.well-known/genid/" in (triple.iri or "")
        kind = "unknown" if unknown else "literal" if triple.iri is None else "other"
        found.count(relation, "item" if item else kind, "normal")
        value = number(item[1]) if item and item[1].startswith("Q") else None
        if value is not None:
            yield "statements", (own, relation, value, "normal")
    elif triple.predicate == MERGED:
        item = _ENTITY.fullmatch(triple.iri or "")
        target = number(item[1]) if item else None
        if target is not None:
            yield "redirects", (own, target)
    elif triple.predicate == SITELINKS and (triple.text or "").isdigit():
        yield "names", (own, None, None, int(triple.text or ""))
    elif triple.text is not None and triple.language in places:
        if triple.predicate == RDFS_LABEL:
            yield "names", (own, places[triple.language], triple.text, None)
        elif triple.predicate == ALIAS:
            yield "aliases", (own, triple.text)

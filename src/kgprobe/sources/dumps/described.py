"""Property entities of a dump as the query service has them: a few lines of N-Triples each.

The queries in resources/queries/wikidata are then asked of these lines as of any other endpoint, so
that a property means the same wherever it came from.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
from pyoxigraph import Literal

from kgprobe.sources.dumps.triples import Triple

WD, PROP = "http://www.wikidata.org/entity/", "http://www.wikidata.org/prop/"
WIKIBASE = "http://wikiba.se/ontology#"
RDF_TYPE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"
LABEL = "http://www.w3.org/2000/01/rdf-schema#label"
#: superproperty, equivalent elsewhere, constraint; class, relation and status of a constraint
DIRECT, CONSTRAINT = ("P1647", "P1628"), "P2302"
QUALIFIERS = ("P2308", "P2309", "P2316")
#: predicates of the triples above, for dumps that are triples already
PREDICATES = {
    RDF_TYPE, LABEL, f"{WIKIBASE}propertyType", f"{WIKIBASE}rank", f"{PROP}{CONSTRAINT}",
    f"{PROP}statement/{CONSTRAINT}",
    *(f"{PROP}direct/{relation}" for relation in DIRECT),
    *(f"{PROP}qualifier/{relation}" for relation in QUALIFIERS),
}  # fmt: skip
_OF_PROPERTY = re.compile(r"https?://www\.wikidata\.org/entity/(?:statement/)?[Pp]\d", re.A)
#: What the tables of properties need that a form may lack, by its name in the dump.
NEEDED = {
    "properties": f"<{WIKIBASE}propertyType>",
    "constraints": f"<{PROP}{CONSTRAINT}>",
    "constraint_classes": f"<{PROP}qualifier/P2308>",
}


def identifier(value: dict[str, Any]) -> str:
    """The id of an entity that is a value; dumps before 2017 have the number alone."""
    letter = {"item": "Q", "property": "P", "lexeme": "L"}
    return str(value.get("id") or f"{letter[value['entity-type']]}{value['numeric-id']}")


#: errors of reading JSON of another shape
BROKEN = (msgspec.MsgspecError, LookupError, TypeError, AttributeError, ValueError)


def lines(entity: dict[str, Any], languages: Sequence[str], broken: list[str]) -> Iterator[str]:
    """The triples of a property of a JSON dump: type, datatype, labels, superproperties,
    equivalents and constraints with their qualifiers. Statements that cannot be read are left out
    and added to `broken`."""
    iri = f"<{WD}{entity['id']}>"
    yield f"{iri} <{RDF_TYPE}> <{WIKIBASE}Property> ."
    # Wikibase's name of a datatype: wikibase-item is WikibaseItem, commonsMedia CommonsMedia
    kind = "".join(part[0].upper() + part[1:] for part in entity["datatype"].split("-"))
    yield f"{iri} <{WIKIBASE}propertyType> <{WIKIBASE}{kind}> ."
    for tag in languages:
        if tag in (labels := entity.get("labels") or {}):
            yield f"{iri} <{LABEL}> {Literal(labels[tag]['value'])}@{tag} ."
    for relation in DIRECT:
        stated = _readable(entity, relation, broken)
        best = "preferred" if any(one["rank"] == "preferred" for one in stated) else "normal"
        for term in (_term(one["mainsnak"]) for one in stated if one["rank"] == best):
            if term:
                yield f"{iri} <{PROP}direct/{relation}> {term} ."
    for one in _readable(entity, CONSTRAINT, broken):
        node = f"<{WD}statement/{one['id'].replace('$', '-', 1)}>"
        yield f"{iri} <{PROP}{CONSTRAINT}> {node} ."
        yield f"{node} <{WIKIBASE}rank> <{WIKIBASE}{one['rank'].capitalize()}Rank> ."
        if term := _term(one["mainsnak"]):
            yield f"{node} <{PROP}statement/{CONSTRAINT}> {term} ."
        for relation in QUALIFIERS:
            for snak in (one.get("qualifiers") or {}).get(relation, []):
                if term := _term(snak):
                    yield f"{node} <{PROP}qualifier/{relation}> {term} ."


def _readable(entity: dict[str, Any], relation: str, broken: list[str]) -> list[dict[str, Any]]:
    """The statements of a relation that have what is read of them; the others go to `broken`."""
    readable = []
    for one in (entity.get("claims") or {}).get(relation, []):
        try:
            qualifiers = one.get("qualifiers") or {}
            for snak in (one["mainsnak"], *(s for r in QUALIFIERS for s in qualifiers.get(r, []))):
                _term(snak)
            _ = one["rank"].capitalize(), relation != CONSTRAINT or one["id"].replace
        except BROKEN:
            broken.append(f"{entity['id']} {relation} {msgspec.json.encode(one).decode()}")
        else:
            readable.append(one)
    return readable


def select_line(triple: Triple) -> Iterator[str]:
    """The line of a triple about a property that one of the queries needs."""
    predicate = triple.predicate.replace("https://www.wikidata.org/", "http://www.wikidata.org/")
    if predicate in PREDICATES and _OF_PROPERTY.match(triple.subject):
        line = triple.line.decode(errors="replace").strip()
        yield line.replace("<https://www.wikidata.org/", "<http://www.wikidata.org/")


def label(entity: str, text: str, language: str) -> str:
    """The line of an entity's label."""
    return f"<{WD}{entity}> <{LABEL}> {Literal(text)}@{language} ."


def _term(snak: dict[str, Any]) -> str:
    """An entity or an address as an IRI; nothing for other values."""
    if snak["snaktype"] != "value":
        return ""
    value = snak["datavalue"]["value"]
    if snak["datavalue"]["type"] == "wikibase-entityid":
        return f"<{WD}{identifier(value)}>"
    if not isinstance(value, str):
        return ""
    return "<" + re.sub(r"[\x00-\x20<>\"{}|^`\\]", lambda m: f"%{ord(m[0]):02X}", value) + ">"

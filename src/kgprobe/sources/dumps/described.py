"""Describe the properties in a dump in N-Triples, as the query service does.

The queries in resources/queries/wikidata are then run on these lines like on any endpoint, so that
property data have the same meaning whatever their source.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import msgspec
from pyoxigraph import Literal, NamedNode

WD, PROP = "http://www.wikidata.org/entity/", "http://www.wikidata.org/prop/"
WIKIBASE = "http://wikiba.se/ontology#"
RDF_TYPE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"
LABEL = "http://www.w3.org/2000/01/rdf-schema#label"
#: errors when reading JSON of an unexpected structure
BROKEN = (msgspec.MsgspecError, LookupError, TypeError, AttributeError, ValueError)
#: superproperty, equivalent property, constraint; class, relation and status of a constraint
DIRECT, CONSTRAINT = ("P1647", "P1628"), "P2302"
QUALIFIERS = ("P2308", "P2309", "P2316")
#: predicates of the triples above, to select them from dumps in N-Triples
PREDICATES = {
    RDF_TYPE, LABEL, f"{WIKIBASE}propertyType", f"{WIKIBASE}rank", f"{PROP}{CONSTRAINT}",
    f"{PROP}statement/{CONSTRAINT}",
    *(f"{PROP}direct/{relation}" for relation in DIRECT),
    *(f"{PROP}qualifier/{relation}" for relation in QUALIFIERS),
}  # fmt: skip
_OF_PROPERTY = re.compile(r"https?://www\.wikidata\.org/entity/(?:statement/)?[Pp]\d", re.A)
#: Table of properties -> predicate it needs, which some dump formats lack.
NEEDED = {
    "properties": f"<{WIKIBASE}propertyType>",
    "constraints": f"<{PROP}{CONSTRAINT}>",
    "constraint_classes": f"<{PROP}qualifier/P2308>",
}


def identifier(value: dict[str, Any]) -> str:
    """Return the id of an entity value; dumps before 2017 have only its number."""
    letter = {"item": "Q", "property": "P", "lexeme": "L"}
    return str(value.get("id") or f"{letter[value['entity-type']]}{value['numeric-id']}")


def lines(entity: dict[str, Any], languages: Sequence[str], broken: list[str]) -> Iterator[str]:
    """Yield the triples of a property in a JSON dump: type, datatype, labels, superproperties,
    equivalents and constraints with their qualifiers. Statements that cannot be read are left out
    and added to `broken`."""
    iri = f"<{WD}{entity['id']}>"
    yield f"{iri} <{RDF_TYPE}> <{WIKIBASE}Property> ."
    # Wikibase's IRIs of datatypes: WikibaseItem for wikibase-item, CommonsMedia for commonsMedia
    kind = "".join(part[0].upper() + part[1:] for part in entity["datatype"].split("-"))
    yield f"{iri} <{WIKIBASE}propertyType> <{WIKIBASE}{kind}> ."
    labels = entity.get("labels") or {}
    for tag in languages:
        if tag in labels and labels[tag]["value"].strip():
            yield f"{iri} <{LABEL}> {Literal(labels[tag]['value'])}@{tag} ."
    for relation in DIRECT:
        ranked = [*_readable(entity, relation, _ranked, broken)]
        best = "preferred" if any(rank == "preferred" for rank, _ in ranked) else "normal"
        for rank, term in ranked:
            if term and rank == best:
                yield f"{iri} <{PROP}direct/{relation}> {term} ."
    for texts in _readable(entity, CONSTRAINT, partial(_constraint, iri), broken):
        yield from texts


def _ranked(statement: dict[str, Any]) -> tuple[str, str]:
    return statement["rank"].lower(), _term(statement["mainsnak"])


def _constraint(iri: str, statement: dict[str, Any]) -> list[str]:
    """Return the triples of one constraint of a property."""
    node = f"<{WD}statement/{statement['id'].replace('$', '-', 1)}>"
    rank = statement["rank"].capitalize()
    texts = [f"{iri} <{PROP}{CONSTRAINT}> {node} .",
             f"{node} <{WIKIBASE}rank> <{WIKIBASE}{rank}Rank> ."]  # fmt: skip
    if term := _term(statement["mainsnak"]):
        texts.append(f"{node} <{PROP}statement/{CONSTRAINT}> {term} .")
    for relation in QUALIFIERS:
        for snak in (statement.get("qualifiers") or {}).get(relation, []):
            if term := _term(snak):
                texts.append(f"{node} <{PROP}qualifier/{relation}> {term} .")
    return texts


def _readable(
    entity: dict[str, Any], relation: str, read: Callable[[dict[str, Any]], Any], broken: list[str]
) -> Iterator[Any]:
    """Yield the result of `read` for each statement of a relation; those it cannot read are added
    to `broken`."""
    for one in (entity.get("claims") or {}).get(relation, []):
        try:
            yield read(one)
        except BROKEN:
            broken.append(f"{entity['id']} {relation} {msgspec.json.encode(one).decode()}")


def select_line(subject: str, predicate: str, text: str | None, line: str) -> str:
    """Return the line of a triple if it is about a property, a query needs it, and its text, if it
    has one, is not blank; else ""."""
    predicate = predicate.replace("https://www.wikidata.org/", "http://www.wikidata.org/")
    blank = text is not None and not text.strip()
    if predicate not in PREDICATES or not _OF_PROPERTY.match(subject) or blank:
        return ""
    return line.strip().replace("<https://www.wikidata.org/", "<http://www.wikidata.org/")


def label(entity: str, text: str, language: str) -> str:
    """Return the line of an entity's label."""
    return f"<{WD}{entity}> <{LABEL}> {Literal(text)}@{language} ."


def _term(snak: dict[str, Any]) -> str:
    """Return an entity or URL as an IRI; "" for other values. Raises ValueError for one that is no
    IRI: the queries could not be run on any of the lines."""
    if snak["snaktype"] != "value":
        return ""
    value = snak["datavalue"]["value"]
    if snak["datavalue"]["type"] == "wikibase-entityid":
        return str(NamedNode(f"{WD}{identifier(value)}"))
    if not isinstance(value, str):
        return ""
    escaped = re.sub(r"[\x00-\x20<>\"{}|^`\\]", lambda m: f"%{ord(m[0]):02X}", value)
    return str(NamedNode(escaped))

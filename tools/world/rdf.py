"""The embedded graph as RDF, in exactly the form that Wikidata's and DBpedia's endpoints serve.

Both renderers return N-Triples: one triple per line, sorted by code point, without duplicates, so
that the same tables always give the same bytes.
"""

import hashlib
import re
import uuid
from collections.abc import Iterable, Iterator

from tools.world.build import World
from tools.world.dbpedia import PREFIXES
from tools.world.properties import DATATYPES, Property

WD, PROP = "http://www.wikidata.org/entity/", "http://www.wikidata.org/prop/"
WIKIBASE = "http://wikiba.se/ontology#"
OWL, RDF, RDFS, XSD = (PREFIXES[p] for p in ("owl", "rdf", "rdfs", "xsd"))
SKOS_ALIAS = "http://www.w3.org/2004/02/skos/core#altLabel"
DESCRIPTION = "http://schema.org/description"
GENID = "http://www.wikidata.org/.well-known/genid/"
#: rank -> wikibase's name
_RANKS = {"preferred": "PreferredRank", "normal": "NormalRank", "deprecated": "DeprecatedRank"}
_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
_SPECIAL = re.compile(r'["\\\x00-\x1f\x7f]')
_NOT_IN_IRI = re.compile(r"[\x00-\x20<>\"{}|^`\\]")
_DATATYPES = {"time": f"{XSD}dateTime", "quantity": f"{XSD}decimal"}


def iri(value: str) -> str:
    """Return an IRI as an N-Triples term. Raises ValueError for characters that IRIs may not
    contain."""
    bad = _NOT_IN_IRI.search(value)
    if bad is not None:
        raise ValueError(f"IRI {value!r}: {bad[0]!r} must be percent-encoded")
    return f"<{value}>"


def literal(text: str, language: str = "", datatype: str = "") -> str:
    """Return a literal as an N-Triples term; quotes, backslashes and control characters are
    escaped."""
    escaped = _SPECIAL.sub(lambda m: _ESCAPES.get(m[0], f"\\u{ord(m[0]):04X}"), text)
    suffix = f"@{language}" if language else f"^^{iri(datatype)}" if datatype else ""
    return f'"{escaped}"{suffix}'


def render_wikidata(world: World) -> str:
    """Render items, statements with ranks and properties, as the Wikidata Query Service holds
    them."""
    return _document(_wikidata(world))


def render_dbpedia(world: World) -> str:
    """Render ontology and instances (direct and transitive types), as DBpedia's endpoint holds
    them."""
    return _document(_dbpedia(world))


Triple = tuple[str, str, str]


def _document(triples: Iterable[Triple]) -> str:
    lines = sorted({f"{s} {p} {o} .\n" for s, p, o in triples})
    return "".join(lines)


def _wikidata(world: World) -> Iterator[Triple]:
    for item in world.entities.iter_rows(named=True):
        yield from _item(item)
    best = set(world.truthy().select("subject", "relation", "object", "kind").iter_rows())
    columns = ("subject", "relation", "object", "kind", "rank")
    for *stated, rank in world.statements.select(columns).iter_rows():
        subject, relation, value, kind = stated
        yield from _statement(subject, relation, value, kind, rank, tuple(stated) in best)
    for prop in world.properties.values():
        yield from _property(prop)


def _item(item: dict[str, object]) -> Iterator[Triple]:
    subject = iri(WD + str(item["id"]))
    language = choose_language(str(item["id"]))
    yield from _terms(subject, item["label"], item["aliases"], item["description"], language)
    if item["sitelinks"] is not None:
        count = literal(str(item["sitelinks"]), datatype=f"{XSD}integer")
        yield subject, iri(f"{WIKIBASE}sitelinks"), count


def choose_language(item: str) -> str:
    """Return the language of an item's label: every fifth has only `mul`, the label for all
    languages.

    Wikidata deletes labels in `en` that equal it.
    """
    return "en" if int(item[1:]) % 5 else "mul"


def _terms(
    subject: str, label: object, aliases: object, description: object, language: str = "en"
) -> Iterator[Triple]:
    if label is not None:
        yield subject, iri(f"{RDFS}label"), literal(str(label), language)
    for alias in aliases if isinstance(aliases, list | tuple) else ():
        yield subject, iri(SKOS_ALIAS), literal(alias, "en")
    if description is not None:
        yield subject, iri(DESCRIPTION), literal(str(description), "en")


def _statement(
    subject: str,
    relation: str,
    value: str,
    kind: str,
    rank: str,
    best: bool,
) -> Iterator[Triple]:
    """Render one statement: the node with its rank, and the truthy triple if its rank is best."""
    node = statement_node(subject, relation, kind, value)
    entity = iri(WD + subject)
    yield entity, iri(f"{PROP}{relation}"), node
    yield node, iri(f"{RDF}type"), iri(f"{WIKIBASE}Statement")
    yield node, iri(f"{WIKIBASE}rank"), iri(WIKIBASE + _RANKS[rank])
    if best:
        yield node, iri(f"{RDF}type"), iri(f"{WIKIBASE}BestRank")
    if kind == "novalue":
        nothing = iri(f"{PROP}novalue/{relation}")
        yield node, iri(f"{RDF}type"), nothing
        if best:
            yield entity, iri(f"{RDF}type"), nothing
        return
    term = _value(value, kind, node)
    yield node, iri(f"{PROP}statement/{relation}"), term
    if best:
        yield entity, iri(f"{PROP}direct/{relation}"), term


def _value(value: str, kind: str, node: str) -> str:
    if kind in ("item", "property"):
        return iri(WD + value)
    if kind == "unknown":  # the query service gives such blank nodes an IRI of their own
        return iri(GENID + hashlib.blake2b(node.encode(), digest_size=16).hexdigest())
    if kind == "url":
        return iri(value)
    return literal(value, datatype=_DATATYPES.get(kind, ""))


def statement_node(subject: str, relation: str, *parts: str) -> str:
    """Return the node of a statement: an identifier of Wikidata's form, derived from its
    content."""
    key = "\t".join((subject, relation, *parts)).encode()
    number = uuid.UUID(bytes=hashlib.blake2b(key, digest_size=16).digest(), version=4)
    return iri(f"{WD}statement/{subject}-{str(number).upper()}")


def _property(prop: Property) -> Iterator[Triple]:
    subject = iri(WD + prop.id)
    yield subject, iri(f"{RDF}type"), iri(f"{WIKIBASE}Property")
    yield subject, iri(f"{WIKIBASE}propertyType"), iri(WIKIBASE + DATATYPES[prop.datatype][0])
    for name, place in (
        ("directClaim", "direct/"),
        ("claim", ""),
        ("statementProperty", "statement/"),
        ("qualifier", "qualifier/"),
        ("novalue", "novalue/"),
    ):
        yield subject, iri(WIKIBASE + name), iri(f"{PROP}{place}{prop.id}")
    yield from _terms(subject, prop.label, prop.aliases, prop.description)
    for relation, kind, values in (
        ("P1647", "property", prop.parents),
        ("P1696", "property", prop.inverses),
        ("P1628", "url", prop.equivalents),
    ):
        for value in values:
            yield from _statement(prop.id, relation, value, kind, "normal", True)
    for number, constraint in enumerate(prop.constraints):
        node = statement_node(prop.id, "P2302", constraint.type, str(number))
        best = constraint.rank != "deprecated"
        value = iri(WD + constraint.type)
        yield subject, iri(f"{PROP}P2302"), node
        yield node, iri(f"{RDF}type"), iri(f"{WIKIBASE}Statement")
        yield node, iri(f"{PROP}statement/P2302"), value
        yield node, iri(f"{WIKIBASE}rank"), iri(WIKIBASE + _RANKS[constraint.rank])
        if best:
            yield node, iri(f"{RDF}type"), iri(f"{WIKIBASE}BestRank")
            yield subject, iri(f"{PROP}direct/P2302"), value
        for qualifier, ids in (
            ("P2308", constraint.classes),
            ("P2309", (constraint.relation,)),
            ("P2316", (constraint.status,)),
        ):
            for id_ in ids:
                if id_ is not None:
                    yield node, iri(f"{PROP}qualifier/{qualifier}"), iri(WD + id_)


def _dbpedia(world: World) -> Iterator[Triple]:
    types = {"class": "Class", "object": "ObjectProperty", "datatype": "DatatypeProperty"}
    for term in world.dbpedia.terms.values():
        subject, is_class = iri(term.iri), term.kind == "class"
        yield subject, iri(f"{RDF}type"), iri(OWL + types[term.kind])
        if not is_class:
            yield subject, iri(f"{RDF}type"), iri(f"{RDF}Property")
        if term.label is not None:
            yield subject, iri(f"{RDFS}label"), literal(term.label, "en")
        for parent in term.parents:
            yield subject, iri(f"{RDFS}sub{'Class' if is_class else 'Property'}Of"), iri(parent)
        for other in term.equivalents:
            name = "equivalentClass" if is_class else "equivalentProperty"
            yield subject, iri(OWL + name), iri(other)
        for name, value in (("domain", term.domain), ("range", term.range)):
            if value is not None:
                yield subject, iri(RDFS + name), iri(value)
    for row in world.dbpedia.instances.select("resource", "class", "label", "id").iter_rows():
        resource, direct, label, id_ = row
        subject = iri(resource)
        yield subject, iri(f"{RDFS}label"), literal(label, "en")
        yield subject, iri(f"{OWL}sameAs"), iri(WD + id_)
        for type_ in (direct, *world.dbpedia.ancestors(direct), f"{OWL}Thing"):
            yield subject, iri(f"{RDF}type"), iri(type_)

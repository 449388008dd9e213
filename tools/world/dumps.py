"""The embedded graph as small dumps: Wikidata's entity JSON and its truthy N-Triples.

The formats are those of `latest-all.json.bz2` and `latest-truthy.nt.bz2` before compression.
"""

import re

import orjson

from tools.world.build import World
from tools.world.properties import Property
from tools.world.rdf import choose_language, statement_node

#: our names of datatypes that the dump calls otherwise
DUMPED = {
    "item": "wikibase-item",
    "property": "wikibase-property",
    "text": "monolingualtext",
    "media": "commonsMedia",
}

#: subject an entity; a direct claim or a term as predicate
_TRUTHY = re.compile(
    r"^<http://www\.wikidata\.org/entity/[QP]\d+> <(?:http://www\.wikidata\.org/prop/direct/|"
    r"http://www\.w3\.org/2000/01/rdf-schema#label|http://www\.w3\.org/2004/02/skos/core#altLabel|"
    r"http://schema\.org/description)"
)
#: what truthy dumps lack: numbers of sitelinks, and what is said about properties
_LACKED = re.compile(
    r"^<http://www\.wikidata\.org/entity/(?:Q\d+> <http://wikiba\.se/ontology#sitelinks|"
    r"(?:statement/)?P\d+)"
)


def render_json(world: World) -> bytes:
    """Render items and properties as a Wikidata JSON dump: one array, one entity per line."""
    claims: dict[str, dict[str, list[object]]] = {}
    columns = ("subject", "relation", "object", "kind", "rank")
    for subject, relation, value, kind, rank in world.statements.select(columns).rows():
        own = claims.setdefault(subject, {}).setdefault(relation, [])
        snak = _snak(relation, value, kind, world.properties[relation].datatype)
        own.append(_statement(snak, rank))
    lines = [
        _entity(row, claims.get(row["id"], {})) for row in world.entities.iter_rows(named=True)
    ]
    lines += [orjson.dumps(_property(prop)) for prop in world.properties.values()]
    return b"[\n" + b",\n".join(lines) + b"\n]\n"


def render_truthy(wikidata: str) -> bytes:
    """Render best-rank statements and terms of the graph's RDF (rdf.render_wikidata) as
    N-Triples."""
    return _matching(wikidata, _TRUTHY)


def render_names(wikidata: str) -> bytes:
    """Render what truthy dumps lack, as N-Triples: numbers of sitelinks, and properties."""
    return _matching(wikidata, _LACKED)


def _matching(wikidata: str, wanted: re.Pattern[str]) -> bytes:
    # a literal may hold characters that splitlines() cuts at
    return "".join(f"{line}\n" for line in wikidata.split("\n") if wanted.match(line)).encode()


def _entity(row: dict[str, object], claims: dict[str, list[object]]) -> bytes:
    aliases = row["aliases"] if isinstance(row["aliases"], list) else []
    links = row["sitelinks"] if isinstance(row["sitelinks"], int) else 0
    # which wikis link here is not known, only how many; unknown is left out altogether
    sitelinks = {f"wiki{number}": {"site": f"wiki{number}"} for number in range(links)}
    content = {
        "type": "item",
        "id": row["id"],
        "labels": _term(row["label"], choose_language(str(row["id"]))),
        "descriptions": _term(row["description"]),
        "aliases": {"en": [{"language": "en", "value": a} for a in aliases]} if aliases else {},
        # an entity without claims has an empty list in the real dumps, too
        "claims": claims or [],
    }
    known = {} if row["sitelinks"] is None else {"sitelinks": sitelinks}
    return orjson.dumps(content | known)


def _term(text: object, language: str = "en") -> dict[str, dict[str, object]]:
    return {} if text is None else {language: {"language": language, "value": text}}


def _property(prop: Property) -> dict[str, object]:
    """Render a property's entity, with its superproperties, inverses, equivalents and
    constraints."""
    claims: dict[str, list[object]] = {}
    for relation, kind, values in (
        ("P1647", "property", prop.parents),
        ("P1696", "property", prop.inverses),
        ("P1628", "url", prop.equivalents),
    ):
        for value in values:
            node = statement_node(prop.id, relation, kind, value)
            made = _statement(_snak(relation, value, kind, kind), "normal", node)
            claims.setdefault(relation, []).append(made)
    for number, constraint in enumerate(prop.constraints):
        node = statement_node(prop.id, "P2302", constraint.type, str(number))
        made = _statement(_snak("P2302", constraint.type, "item", "item"), constraint.rank, node)
        named = {"P2308": constraint.classes, "P2309": (constraint.relation,)}
        made["qualifiers"] = {
            name: [_snak(name, value, "item", "item") for value in values if value is not None]
            for name, values in {**named, "P2316": (constraint.status,)}.items()
        }
        claims.setdefault("P2302", []).append(made)
    return {
        "type": "property",
        "datatype": DUMPED.get(prop.datatype, prop.datatype),
        "id": prop.id,
        "labels": _term(prop.label),
        "descriptions": _term(prop.description),
        "aliases": {"en": [{"language": "en", "value": a} for a in prop.aliases]},
        "claims": claims or [],
    }


def _statement(snak: dict[str, object], rank: str, node: str = "") -> dict[str, object]:
    made: dict[str, object] = {"mainsnak": snak, "type": "statement", "rank": rank}
    if node:  # <.../entity/statement/P36-...>, of which the dump writes P36$...
        made["id"] = node.rpartition("/")[2].rstrip(">").replace("-", "$", 1)
    return made


def _snak(relation: str, value: str, kind: str, datatype: str) -> dict[str, object]:
    if kind in ("novalue", "unknown"):
        snaktype = "novalue" if kind == "novalue" else "somevalue"
        return {"snaktype": snaktype, "property": relation}
    datavalue: dict[str, object] = {"value": value, "type": "string"}
    if kind in ("item", "property"):
        content = {"entity-type": kind, "numeric-id": int(value[1:]), "id": value}
        datavalue = {"value": content, "type": "wikibase-entityid"}
    elif kind == "time":
        datavalue = {"value": {"time": f"+{value}"}, "type": "time"}
    elif kind == "quantity":
        datavalue = {"value": {"amount": f"+{value}", "unit": "1"}, "type": "quantity"}
    shown = DUMPED.get(datatype, datatype)
    return {"snaktype": "value", "property": relation, "datavalue": datavalue, "datatype": shown}

"""The embedded world as small dumps: Wikidata's entity JSON and its truthy N-Triples.

The shapes are those of `latest-all.json.gz` and `latest-truthy.nt.bz2` (sources.md, section 9).
"""

import bz2
import gzip
import io
import re

import orjson

from kgprobe.sources.world.build import World
from kgprobe.sources.world.rdf import render_wikidata, spoken

#: subject an entity; a direct claim, a term or the number of sitelinks as predicate
_KEPT = re.compile(
    r"^<http://www\.wikidata\.org/entity/[QP]\d+> <(?:http://www\.wikidata\.org/prop/direct/|"
    r"http://www\.w3\.org/2000/01/rdf-schema#label|http://www\.w3\.org/2004/02/skos/core#altLabel|"
    r"http://schema\.org/description|http://wikiba\.se/ontology#sitelinks)"
)


def render_json(world: World) -> bytes:
    """Items as a Wikidata JSON dump: one array, an entity a line; gzip without a time stamp."""
    claims: dict[str, dict[str, list[object]]] = {}
    columns = ("subject", "relation", "object", "kind", "rank")
    for subject, relation, value, kind, rank in world.statements.select(columns).iter_rows():
        own = claims.setdefault(subject, {}).setdefault(relation, [])
        own.append({"mainsnak": _snak(relation, value, kind), "type": "statement", "rank": rank})
    lines = [
        _entity(row, claims.get(row["id"], {})) for row in world.entities.iter_rows(named=True)
    ]
    return gzip.compress(b"[\n" + b",\n".join(lines) + b"\n]\n", mtime=0)


def render_truthy(world: World) -> bytes:
    """Best-rank statements, terms and sitelink counts as N-Triples; bzip2."""
    packed = io.BytesIO()
    with bz2.open(packed, "wt", encoding="utf-8") as stream:
        for line in io.StringIO(render_wikidata(world)):
            if _KEPT.match(line):
                stream.write(line)
    return packed.getvalue()


def _entity(row: dict[str, object], claims: dict[str, list[object]]) -> bytes:
    aliases = row["aliases"] if isinstance(row["aliases"], list) else []
    links = row["sitelinks"] if isinstance(row["sitelinks"], int) else 0
    # which wikis link here is not known, only how many; unknown is left out altogether
    sitelinks = {f"wiki{number}": {"site": f"wiki{number}"} for number in range(links)}
    content = {
        "type": "item",
        "id": row["id"],
        "labels": _term(row["label"], spoken(str(row["id"]))),
        "descriptions": _term(row["description"]),
        "aliases": {"en": [{"language": "en", "value": a} for a in aliases]} if aliases else {},
        # an entity without claims has an empty list in the real dumps, too
        "claims": claims or [],
    }
    known = {} if row["sitelinks"] is None else {"sitelinks": sitelinks}
    return orjson.dumps(content | known)


def _term(text: object, language: str = "en") -> dict[str, dict[str, object]]:
    return {} if text is None else {language: {"language": language, "value": text}}


def _snak(relation: str, value: str, kind: str) -> dict[str, object]:
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
    return {"snaktype": "value", "property": relation, "datavalue": datavalue}

"""The real excerpt from dumps and over SPARQL gives equal tables and identical benchmark bytes."""

import gzip
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
import polars as pl
import pytest

from kgprobe import schema
from kgprobe.benchmarks.bear import build
from kgprobe.benchmarks.bear.choice import rejected_subjects
from kgprobe.experiments import manual_templates, read_table
from kgprobe.knowledge import ontology
from kgprobe.settings.benchmarks import Bear
from kgprobe.sources.dumps import facts
from kgprobe.sources.sparql.pull import pull
from kgprobe.sources.sparql.relations import Relations, pull_instances, relations_of
from tests.contract.conftest import RESOURCES
from tests.contract.oxigraph import local_endpoint
from tests.replay import wikidata

pytestmark = [pytest.mark.real, pytest.mark.nightly(needs="the real data in full")]

QUERIES = RESOURCES / "queries"
OF_PROPERTIES = (
    "properties", "property_hierarchy", "constraints", "equivalent_property", "constraint_classes"
)  # fmt: skip
OF_DBPEDIA = (
    "classes",
    "class_hierarchy",
    "class_equivalence",
    "properties",
    "property_equivalence",
)
TERM = r'<[^>]*>|"(?:[^"\\]|\\.)*"(?:@[\w-]+|\^\^<[^>]*>)?'
LINE = re.compile(rf"({TERM}) ({TERM}) ({TERM}) \.\n")
CLAIM, DIRECT = f"<{wikidata.PROP}P", f"<{wikidata.PROP}direct/P"

Tables = Mapping[str, pl.DataFrame]


@dataclass
class Way:
    """The tables of one access method."""

    statements: pl.DataFrame
    coverage: pl.DataFrame
    tables: Tables


def asked() -> list[str]:
    """Return the relations of BEAR."""
    rows = read_table(RESOURCES / "templates/bear_relations.tsv")
    named = {row["relation"] for row in rows} | {row["ancestor"] for row in rows if row["ancestor"]}
    return sorted(named, key=lambda name: int(name[1:]))


def local(iri: str) -> str:
    return iri.strip("<>").rpartition("/")[2]


def as_json(rdf: Path, target: Path) -> Path:
    """Write the query service's data as a JSON dump: labels, sitelinks and statements."""
    said: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    with open(rdf, encoding="utf-8", newline="\n") as lines:
        for line in lines:
            s, p, o = LINE.fullmatch(line).groups()  # type: ignore[union-attr]
            said[s][p].append(o)

    def entities() -> Iterator[bytes]:
        for subject, own in said.items():
            if re.fullmatch(rf"<{wikidata.WD}[QP]\d+>", subject):
                yield orjson.dumps(_entity(local(subject), own, said))

    target.write_bytes(gzip.compress(b"[\n" + b",\n".join(entities()) + b"\n]\n", 1, mtime=0))
    return target


def _entity(name: str, own: Mapping[str, list[str]], said: Any) -> dict[str, Any]:
    labels: dict[str, dict[str, str]] = {}
    for literal in own.get(wikidata.LABEL, []):
        text, _, tag = literal.rpartition('"@')
        # the excerpt was merged from sources with different labels; an entity has one a language
        value = min(orjson.loads(text + '"'), labels.get(tag, {"value": "\U0010ffff"})["value"])
        labels[tag] = {"language": tag, "value": value}
    claims: dict[str, list[Any]] = defaultdict(list)
    for predicate, values in own.items():
        if predicate.startswith(CLAIM):
            for node in values:
                claims[local(predicate)].append(_statement(node, local(predicate), said))
        # of properties the excerpt has best-rank statements without nodes
        elif predicate.startswith(DIRECT) and predicate.replace("direct/", "") not in own:
            relation = local(predicate)
            snaks = (_snak(value, relation) for value in values)
            claims[relation] += [{"mainsnak": snak, "rank": "normal"} for snak in snaks]
    entity: dict[str, Any] = {"id": name, "labels": labels, "claims": claims or []}
    for links in own.get(f"<{wikidata.WIKIBASE}sitelinks>", []):
        entity["sitelinks"] = {f"w{n}": {} for n in range(int(links.split('"')[1]))}
    if kind := own.get(f"<{wikidata.WIKIBASE}propertyType>"):
        words = re.findall(r"[A-Z][a-z]+", kind[0].rpartition("#")[2])
        entity |= {"type": "property", "datatype": "-".join(words).lower()}
    return entity


def _statement(node: str, relation: str, everything: Any) -> dict[str, Any]:
    said: Mapping[str, list[str]] = everything[node]
    (value,) = said[f"<{wikidata.PROP}statement/{relation}>"]
    (rank,) = said[f"<{wikidata.WIKIBASE}rank>"]
    plain = f"<{wikidata.PROP}qualifier/P"
    qualifiers = {
        local(p): [_snak(value, local(p)) for value in values if "genid" not in value]
        + [{"snaktype": "somevalue", "property": local(p)} for value in values if "genid" in value]
        for p, values in said.items()
        if p.startswith(plain)
    }
    for p, values in said.items():
        if p.startswith(f"<{wikidata.PROP}qualifier/value/"):
            qualifiers[local(p)] = [_time(everything[value]) for value in values]
    return {
        "id": local(node).replace("-", "$", 1),
        "mainsnak": _snak(value, relation),
        "rank": rank.rpartition("#")[2].rstrip(">").removesuffix("Rank").lower(),
        "qualifiers": qualifiers,
    }


def _time(said: Mapping[str, list[str]]) -> dict[str, Any]:
    """Return a date as in JSON: parts beyond its precision are 00."""
    time = said[f"<{wikidata.WIKIBASE}timeValue>"][0].split('"')[1]
    precision = int(said[f"<{wikidata.WIKIBASE}timePrecision>"][0].split('"')[1])
    shown = time[: {9: 4, 10: 7, 11: 10}[precision]] + "-00-00"[(precision - 9) * 3 :]
    value = {"time": f"+{shown}T00:00:00Z", "precision": precision}
    value |= {"calendarmodel": "http://www.wikidata.org/entity/Q1985727"}
    return {"snaktype": "value", "datavalue": {"value": value, "type": "time"}}


def _snak(term: str, relation: str) -> dict[str, Any]:
    value: Any = term.strip("<>")
    kind, datatype = "string", "url" if term.startswith("<") else "string"
    if term.startswith(f"<{wikidata.WD}"):
        name = local(term)
        value = {"entity-type": "item" if name.startswith("Q") else "property", "id": name}
        kind, datatype = "wikibase-entityid", "wikibase-item"
    datavalue = {"value": value, "type": kind}
    return {"snaktype": "value", "property": relation, "datavalue": datavalue, "datatype": datatype}


def pulled(rdf: Path, query: str, folder: Path) -> Way:
    """Pull over SPARQL, as the rules do."""
    with local_endpoint([rdf]) as endpoint:
        tables = {
            name: pull(QUERIES / f"wikidata/{name}.rq", endpoint, folder).frame()
            for name in OF_PROPERTIES
        }
        others = ("left_out",) if query == "facts" else ()
        more = [QUERIES / f"wikidata/{name}.rq" for name in others]
        known = frozenset(relations_of(tables["properties"]))
        way = Relations(
            endpoint, folder, QUERIES / f"wikidata/{query}.rq", *more, known=known
        ).pull(asked())
    return Way(*way, tables)


def read(dump: Path, form: str, folder: Path) -> Way:
    """Read a dump, as the rules do."""
    found = facts.read([dump], form, asked(), folder / "parts", threads=2)
    assert not found.unread.height
    lines = folder / "described.nt"
    lines.write_text(found.properties, encoding="utf-8")
    with local_endpoint([lines]) as endpoint:
        tables = {
            name: pull(QUERIES / f"wikidata/{name}.rq", endpoint, folder / "w" / "s").frame()
            for name in OF_PROPERTIES
        }
    return Way(found.statements, found.coverage, tables)


@pytest.fixture(scope="module", params=["json", "truthy"])
def ways(request, real_data: Path, tmp_path_factory) -> tuple[Way, Way]:
    """Return (over SPARQL, from a dump): with nodes and ranks as JSON, or the excerpt itself."""
    excerpt = real_data / "wikidata/wikidata_excerpt.nt.gz"
    folder = tmp_path_factory.mktemp(request.param)
    if request.param == "truthy":
        sparql = pulled(excerpt, "facts_truthy", folder / "wikidata" / "s")
        return sparql, read(excerpt, "truthy", folder)
    rdf = wikidata.render(excerpt, folder / "rendered.nt")
    sparql = pulled(rdf, "facts", folder / "wikidata" / "s")
    return sparql, read(as_json(rdf, folder / "rendered.json.gz"), "json", folder)


def test_statements_and_tables_of_properties_are_equal(ways):
    sparql, dump = ways
    assert sparql.statements.height > 100_000
    assert dump.statements.equals(sparql.statements)
    for name, table in sparql.tables.items():
        assert table.height
        assert dump.tables[name].equals(table), name


def test_coverage_is_equal(ways):
    """Rows are statements, although an entity with two labels gives two rows of an answer."""
    sparql, dump = (way.coverage for way in ways)
    statements = dict(ways[1].statements.group_by("relation").len().rows())
    assert statements
    for coverage in (sparql, dump):
        assert dict(coverage.select("relation", "rows").rows()) == {
            relation: statements.get(relation, 0) for relation in asked()
        }
    left_out = [set(way.filter(way="left out")["relation"]) for way in (sparql, dump)]
    assert left_out[0] == left_out[1]
    if sparql["item"].null_count() < sparql.height:
        counted = ["relation", "item", "unknown", "no_value", "literal", "other", "deprecated"]
        assert dump.select(counted).equals(sparql.select(counted))


def test_bear_has_the_same_bytes(ways, tmp_path):
    templates = RESOURCES / "templates"
    relations = read_table(templates / "bear_relations.tsv")
    review = templates / "bear_review.tsv"
    made = []
    for number, way in enumerate(ways):
        built = build.build(
            way.statements,
            relations,
            manual_templates(read_table(templates / "templates.tsv")),
            {row["id"]: row["form"] for row in read_table(templates / "bear_labels.tsv")},
            Bear(popularity="statements", min_sitelinks=0),
            "bear",
            rejected_subjects(read_table(review), review),
            way.coverage,
        )
        frames = {
            f"{size}-{kind}": (getattr(sets, kind), getattr(schema, kind.upper()))
            for size, sets in (("big", built.big), ("lite", built.lite))
            for kind in ("items", "candidates", "prompts")
        }
        frames |= {name: (getattr(built, name), kind) for name, kind in build.REPORTS.items()}
        for name, (frame, contract) in frames.items():
            schema.write(frame, contract, tmp_path / f"{number}" / f"{name}.parquet")
        made.append({p.name: p.read_bytes() for p in (tmp_path / f"{number}").iterdir()})
        assert built.big.items.height > 10_000
    assert made[0].keys() == made[1].keys()
    for name in made[0]:
        assert made[0][name] == made[1][name], name


@pytest.fixture(scope="module")
def dbpedia(real_data: Path, tmp_path_factory) -> tuple[Tables, Tables]:
    """Return DBpedia's tables with types and labels over SPARQL, and with those from their file."""
    ontology = real_data / "dbpedia/dbo-snapshots_2026-07-22.ttl"
    instances = real_data / "dbpedia/dbpedia_instances.nt.gz"
    tmp_path = tmp_path_factory.mktemp("dbpedia")
    query, folder = QUERIES / "dbpedia/instances.rq", tmp_path / "dbpedia" / "both"
    with local_endpoint([ontology, instances]) as endpoint:
        both = {
            name: pull(QUERIES / f"dbpedia/{name}.rq", endpoint, folder).frame()
            for name in OF_DBPEDIA
        }
        names = both["classes"]["class"].to_list()
        both["types"], in_part = pull_instances(
            names, endpoint, folder, query, 100, languages=["en", "mul"]
        )
    with local_endpoint([ontology]) as endpoint:
        alone = {
            name: pull(QUERIES / f"dbpedia/{name}.rq", endpoint, tmp_path / "d" / "o").frame()
            for name in OF_DBPEDIA
        }
    assert sorted(names) == alone["classes"]["class"].sort().to_list()
    alone["types"], proportions, _ = facts.read_types([instances], names, 100, tmp_path / "types")
    assert proportions
    assert proportions == in_part
    columns = both["types"].columns
    assert alone["types"].sort(columns).equals(both["types"].sort(columns))
    return both, alone


def test_the_ontology_has_the_same_bytes(ways, dbpedia):
    """DBpedia's ontology gets the same queries; types and labels are read from their file."""
    built = [
        ontology.build(tables, way.tables, way.statements)
        for tables, way in zip(dbpedia, ways, strict=True)
    ]
    for name in ontology.CONTRACTS:
        assert getattr(built[0], name).height
        assert getattr(built[0], name).equals(getattr(built[1], name)), name

"""The rendered embedded graph is valid RDF in the shapes that the queries of both endpoints use."""

from pathlib import Path

import pyoxigraph as ox
import pytest

from tools.world.build import World, load
from tools.world.rdf import iri, literal, render_dbpedia, render_wikidata

FOLDER = Path(__file__).parents[2] / "resources" / "world"
PREFIXES = """
PREFIX wd: <http://www.wikidata.org/entity/>
PREFIX wdt: <http://www.wikidata.org/prop/direct/>
PREFIX wdno: <http://www.wikidata.org/prop/novalue/>
PREFIX p: <http://www.wikidata.org/prop/>
PREFIX ps: <http://www.wikidata.org/prop/statement/>
PREFIX pq: <http://www.wikidata.org/prop/qualifier/>
PREFIX wikibase: <http://wikiba.se/ontology#>
PREFIX dbo: <http://dbpedia.org/ontology/>
PREFIX dbr: <http://dbpedia.org/resource/>
PREFIX owl: <http://www.w3.org/2002/07/owl#>
PREFIX rdfs: <http://www.w3.org/2000/01/rdf-schema#>
PREFIX skos: <http://www.w3.org/2004/02/skos/core#>
PREFIX schema: <http://schema.org/>
PREFIX xsd: <http://www.w3.org/2001/XMLSchema#>
"""


@pytest.fixture(scope="module")
def wikidata(world: World) -> ox.Store:
    return _store(render_wikidata(world))


@pytest.fixture(scope="module")
def dbpedia(world: World) -> ox.Store:
    return _store(render_dbpedia(world))


def _store(text: str) -> ox.Store:
    store = ox.Store()
    store.bulk_load(text.encode(), ox.RdfFormat.N_TRIPLES)
    assert len(store) == text.count("\n"), "each line is one triple, each triple stands once"
    return store


def _rows(store: ox.Store, query: str) -> list[tuple[str, ...]]:
    solutions = store.query(PREFIXES + query)
    assert isinstance(solutions, ox.QuerySolutions)
    return sorted(tuple("" if v is None else v.value for v in row) for row in solutions)


def _ask(store: ox.Store, pattern: str) -> bool:
    return bool(store.query(f"{PREFIXES} ASK {{ {pattern} }}"))


def test_rendering_is_deterministic_and_sorted(world: World) -> None:
    for render in (render_wikidata, render_dbpedia):
        text = render(world)
        lines = text.splitlines(keepends=True)
        assert lines == sorted(set(lines))
        assert render(load(FOLDER)) == text


@pytest.mark.parametrize(
    "text",
    ['a "quoted" word', "back\\slash", "two\nlines", "tab\there", "bell\x07", "\U00010348 é", ""],
)
def test_literals_round_trip(text: str) -> None:
    line = f"{iri('http://example.org/s')} {iri('http://example.org/p')} {literal(text, 'en')} .\n"
    (quad,) = list(ox.parse(line.encode(), ox.RdfFormat.N_TRIPLES))
    assert isinstance(quad.object, ox.Literal)
    assert (quad.object.value, quad.object.language) == (text, "en")


def test_iri_refuses_what_must_be_encoded() -> None:
    with pytest.raises(ValueError, match="percent-encoded"):
        iri("http://example.org/a b")


def test_france_has_wikidatas_shapes(wikidata: ox.Store) -> None:
    assert _ask(wikidata, 'wd:Q142 rdfs:label "France"@en')
    assert _ask(wikidata, "wd:Q142 wdt:P36 wd:Q90 ; p:P36 ?s . ?s ps:P36 wd:Q90 ")
    assert _ask(wikidata, "wd:Q142 p:P36 ?s . ?s wikibase:rank wikibase:NormalRank")
    assert _ask(wikidata, "wd:Q90 wdt:P1376 wd:Q142")
    assert _ask(wikidata, "wd:Q142 wikibase:sitelinks ?n FILTER(DATATYPE(?n) = xsd:integer)")


def test_truthy_statements_are_those_of_best_rank(wikidata: ox.Store) -> None:
    truthy = _rows(
        wikidata,
        """SELECT ?s ?p ?o { ?property wikibase:directClaim ?p . ?s ?p ?o
        FILTER(STRSTARTS(STR(?s), "http://www.wikidata.org/entity/Q")) }""",
    )
    # a statement that holds in two periods has two nodes
    best = _rows(
        wikidata,
        """SELECT DISTINCT ?s ?p ?o { ?property wikibase:directClaim ?p ; wikibase:claim ?c ;
        wikibase:statementProperty ?ps . ?s ?c ?n . ?n a wikibase:BestRank ; ?ps ?o
        FILTER(STRSTARTS(STR(?s), "http://www.wikidata.org/entity/Q")) }""",
    )
    assert truthy == best
    assert len(truthy) > 3000


def test_special_values_and_ranks_exist(wikidata: ox.Store) -> None:
    for rank in ("PreferredRank", "NormalRank", "DeprecatedRank"):
        assert _ask(wikidata, f"?s ?p ?n . ?n wikibase:rank wikibase:{rank}"), rank
    both = "?n wikibase:rank wikibase:PreferredRank . ?m wikibase:rank wikibase:NormalRank"
    assert _ask(wikidata, f"?s ?p ?n, ?m . {both}")
    assert not _ask(wikidata, "?n wikibase:rank wikibase:DeprecatedRank ; a wikibase:BestRank")
    assert _rows(wikidata, 'SELECT ?s ?o { ?s ?p ?o FILTER(CONTAINS(STR(?o), "genid")) }')
    nothing = _rows(
        wikidata, "SELECT ?s { ?s a ?t FILTER(STRSTARTS(STR(?t), STR(wdno:))) } ORDER BY ?s"
    )
    nodes = [subject for (subject,) in nothing if "/statement/" in subject]
    assert 0 < len(nodes) == len(nothing) - len(nodes), "each statement node, and its item"


def test_labels_include_hard_to_escape_ones(wikidata: ox.Store) -> None:
    unlabeled = _rows(
        wikidata, "SELECT ?s { ?s wdt:P31 ?c FILTER NOT EXISTS { ?s rdfs:label ?l } }"
    )
    assert unlabeled
    texts = [
        row[0]
        for row in _rows(
            wikidata, "SELECT ?t { ?s rdfs:label | skos:altLabel | schema:description ?t }"
        )
    ]
    for hard in ('"', "\\", "\n"):
        assert any(hard in text for text in texts), repr(hard)
    assert any(ord(c) > 0xFFFF for text in texts for c in text)


def test_properties_carry_hierarchy_and_constraints(wikidata: ox.Store, world: World) -> None:
    assert _ask(wikidata, "wd:P36 a wikibase:Property ; wdt:P1696 wd:P1376")
    assert _ask(wikidata, "wd:P36 wikibase:propertyType wikibase:WikibaseItem")
    assert _ask(wikidata, "wd:P19 wdt:P1647 wd:P276 ; wdt:P1628 dbo:birthPlace")
    rows = _rows(
        wikidata,
        """SELECT DISTINCT ?p ?c ?rank ?relation ?status { ?p a wikibase:Property ; p:P2302 ?n .
        ?n ps:P2302 ?c ; pq:P2308 ?class ; wikibase:rank ?rank
        OPTIONAL { ?n pq:P2309 ?relation } OPTIONAL { ?n pq:P2316 ?status } }""",
    )
    assert len(rows) > 150
    assert {bool(row[3]) for row in rows} == {True, False}
    assert {bool(row[4]) for row in rows} == {True, False}
    assert any(row[2].endswith("DeprecatedRank") for row in rows)
    classes = _rows(
        wikidata,
        """SELECT DISTINCT ?class { ?n pq:P2308 ?class
        FILTER NOT EXISTS { ?class rdfs:label ?l } }""",
    )
    assert not classes, "every class of a constraint has a label"


def test_dbpedia_types_are_direct_and_transitive(dbpedia: ox.Store) -> None:
    assert _ask(dbpedia, 'dbr:France a dbo:Country, dbo:Place, owl:Thing ; rdfs:label "France"@en')
    assert _ask(dbpedia, "dbr:France owl:sameAs <http://www.wikidata.org/entity/Q142>")
    missing = _rows(
        dbpedia,
        """SELECT DISTINCT ?c ?above { ?i a ?c . ?c rdfs:subClassOf ?above . ?above a owl:Class
        FILTER NOT EXISTS { ?i a ?above } }""",
    )
    assert not missing


def test_dbpedia_has_the_traps_of_the_real_ontology(dbpedia: ox.Store, world: World) -> None:
    undeclared = _rows(
        dbpedia,
        """SELECT DISTINCT ?parent { ?c rdfs:subClassOf ?parent
        FILTER(STRSTARTS(STR(?parent), STR(dbo:))) FILTER NOT EXISTS { ?parent a owl:Class } }""",
    )
    assert ("http://dbpedia.org/ontology/book",) in undeclared
    assert any(not i[0].isascii() for i in _rows(dbpedia, "SELECT ?i { ?i a dbo:Place }"))
    labels = _rows(dbpedia, "SELECT ?l { ?c a owl:Class ; rdfs:label ?l }")
    assert any(label[0] != label[0].lower() for label in labels)


def test_alignment_exists_in_each_direction_alone_and_in_both(
    wikidata: ox.Store, dbpedia: ox.Store
) -> None:
    query = "SELECT ?p ?d { ?p wdt:P1628 ?d FILTER(STRSTARTS(STR(?d), STR(dbo:))) }"
    one = set(_rows(wikidata, query))
    query = "SELECT ?p ?d { ?d owl:equivalentProperty ?p FILTER(STRSTARTS(STR(?p), STR(wd:))) }"
    other = set(_rows(dbpedia, query))
    assert one - other
    assert other - one
    assert one & other

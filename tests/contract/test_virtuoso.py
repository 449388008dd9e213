"""DBpedia's engine: the same rows as Oxigraph, and pitfalls of both engines.

Skipped, loudly, where virtuoso-opensource-7-bin is not installed.
"""

import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

import orjson
import pytest

from kgprobe.sources.sparql import answers
from kgprobe.sources.sparql.answers import Answer, check_answer, check_status
from kgprobe.sources.sparql.endpoint import Endpoint
from kgprobe.sources.sparql.pull import pull
from kgprobe.sources.sparql.snapshots import row_hash, terms
from tests.contract.oxigraph import sized
from tests.contract.test_queries import IDS, PARAMETERS, QUERIES

pytestmark = pytest.mark.nightly(needs="Virtuoso")

PREFIXES = """
PREFIX owl: <http://www.w3.org/2002/07/owl#>
PREFIX rdfs: <http://www.w3.org/2000/01/rdf-schema#>
PREFIX wdt: <http://www.wikidata.org/prop/direct/>
PREFIX wikibase: <http://wikiba.se/ontology#>
"""
PLACE = "local, query trap"


def ask(endpoint: Endpoint, text: str, **more: str) -> Answer:
    """Return the raw answer to a query, whatever its status."""
    data = urllib.parse.urlencode({"query": PREFIXES + text, **more}).encode()
    accept = {"Accept": "application/sparql-results+json"}
    request = urllib.request.Request(endpoint.url, data=data, headers=accept)
    try:
        with urllib.request.urlopen(request) as answer:
            headers = {k.lower(): v for k, v in answer.headers.items()}
            return Answer(answer.status, headers, answer.read())
    except urllib.error.HTTPError as error:
        with error:
            headers = {k.lower(): v for k, v in error.headers.items()}
            return Answer(error.code, headers, error.read())


def bindings(answer: Answer) -> list[dict[str, dict[str, str]]]:
    return list(orjson.loads(answer.body)["results"]["bindings"])


@pytest.mark.parametrize("path", QUERIES, ids=IDS)
def test_both_engines_give_the_same_rows(path, world_endpoint, world_virtuoso, tmp_path):
    hashes = {}
    for name, endpoint in (("oxigraph", world_endpoint), ("virtuoso", world_virtuoso)):
        folder = tmp_path / name / "s"
        snapshot = pull(path, sized(endpoint, 4000), folder, PARAMETERS.get(path.stem))
        assert snapshot.meta["rows"] > 0
        hashes[name] = snapshot.meta["rows_sha256"]
    assert hashes["oxigraph"] == hashes["virtuoso"]


def test_small_pages_over_awkward_names_are_the_same(world_endpoint, world_virtuoso, tmp_path):
    """Both engines hash names in UTF-8, beyond ASCII too; a page of 3 has many borders."""
    path = next(p for p in QUERIES if p.stem == "instances")
    hashes = set()
    for name, endpoint in (("oxigraph", world_endpoint), ("virtuoso", world_virtuoso)):
        folder = tmp_path / name / "s"
        snapshot = pull(path, sized(endpoint, 3), folder, PARAMETERS["instances"])
        assert len(snapshot.meta["pages"]) > 10
        hashes.add(snapshot.meta["rows_sha256"])
    assert len(hashes) == 1


def test_trap_a_path_needs_distinct(world_endpoint, world_virtuoso):
    text = "{ ?p a wikibase:Property . ?p wdt:P1647+ ?q }"
    rows = bindings(ask(world_endpoint, f"SELECT ?p ?q {text}"))
    distinct = bindings(ask(world_virtuoso, f"SELECT DISTINCT ?p ?q {text}"))
    assert row_hash(terms(rows, "pq")) == row_hash(terms(distinct, "pq"))
    doubled = bindings(ask(world_virtuoso, f"SELECT ?p ?q {text}"))
    assert len(doubled) >= len(distinct) == len(rows)


def test_trap_ten_thousand_rows(world_endpoint, world_virtuoso):
    text = "SELECT ?i ?c { ?i a ?c }"
    assert len(bindings(ask(world_endpoint, text))) > 10_000
    capped = ask(world_virtuoso, text)
    assert capped.status == 200
    assert len(bindings(capped)) == 10_000
    assert capped.header("X-SPARQL-MaxRows") == "10000"
    with pytest.raises(answers.PartialAnswer, match="X-SPARQL-MaxRows: 10000"):
        check_status(capped, PLACE, "")
    for rows in (5000, 9999):
        below = ask(world_virtuoso, f"{text} LIMIT {rows}")
        assert len(check_answer(below, PLACE, ["i", "c"])) == rows


def test_trap_a_timeout_gives_a_partial_answer(world_virtuoso):
    text = "{ ?a ?p ?b . ?c ?q ?b . ?c ?r ?d . FILTER(STRLEN(STR(?a)) > STRLEN(STR(?d))) }"
    part = ask(
        world_virtuoso, f"SELECT DISTINCT ?a ?d {text} ORDER BY ?a ?d LIMIT 5000", timeout="1000"
    )
    assert part.status == 200
    assert part.header("X-SQL-State") == "S1TAT"
    with pytest.raises(answers.PartialAnswer, match="incomplete results"):
        check_status(part, PLACE, "")
    count = ask(world_virtuoso, f"SELECT (COUNT(DISTINCT ?a) AS ?rows) {text}", timeout="1000")
    with pytest.raises(answers.PartialAnswer):
        check_status(count, PLACE, "")


def test_trap_the_label_service(world_endpoint, world_virtuoso, tmp_path):
    inner = '<http://www.bigdata.com/rdf#serviceParam> wikibase:language "en"'
    text = f"SELECT ?p {{ ?p a wikibase:Property SERVICE wikibase:label {{ {inner} }} }}"
    refused = ask(world_virtuoso, text)
    assert refused.status == 500
    assert b"SQ070" in refused.body
    broken = ask(world_endpoint, text)
    if broken.status == 200:
        with pytest.raises(answers.PartialAnswer):
            check_answer(broken, PLACE, ["p"])


def test_trap_typed_literals_are_named_differently(world_endpoint, world_virtuoso):
    text = "SELECT ?n { ?s wikibase:sitelinks ?n } ORDER BY ?n LIMIT 3"
    ours, theirs = (bindings(ask(e, text)) for e in (world_endpoint, world_virtuoso))
    assert {row["n"]["type"] for row in ours} == {"literal"}
    assert {row["n"]["type"] for row in theirs} == {"typed-literal"}
    assert row_hash(terms(ours, ["n"])) == row_hash(terms(theirs, ["n"]))


def test_a_query_that_virtuoso_refuses_is_not_sent_again(world_virtuoso, tmp_path):
    folder = tmp_path / "queries" / "s"
    folder.mkdir(parents=True)
    file = folder / "path.rq"
    file.write_text(
        "# parts: p\nPREFIX wdt: <http://www.wikidata.org/prop/direct/>\n"
        "SELECT DISTINCT ?p ?q\nWHERE {\n  ?p wdt:P1647+ ?q\n"
        '  FILTER(REGEX(MD5(STR(?p)), "^"))\n}\n'
    )
    with pytest.raises(answers.QueryRejected, match="transitive start") as caught:
        pull(file, world_virtuoso, tmp_path / "data" / "s")
    assert str(Path("s") / "path.rq") in str(caught.value)

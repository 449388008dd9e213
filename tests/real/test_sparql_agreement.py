"""Numbers that depend on the SPARQL client: the real files over HTTP, on both engines."""

import csv
import gzip
import hashlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from kgprobe.knowledge.ontology import distances
from kgprobe.sources.sparql.endpoint import Endpoint
from kgprobe.sources.sparql.pull import pull
from kgprobe.sources.sparql.relations import pull_instances
from kgprobe.sources.sparql.snapshots import row_hash, terms
from tests.contract import virtuoso
from tests.contract.conftest import RESOURCES
from tests.contract.oxigraph import local_endpoint, sized
from tests.contract.test_virtuoso import ask, bindings

pytestmark = [pytest.mark.real, pytest.mark.nightly(needs="the real data in full")]

QUERIES = RESOURCES / "queries"
TYPED = Path(__file__).parent / "queries" / "dbpedia" / "typed.rq"
#: Rows on the real files; queries without rows there are compared on the embedded graph
ROWS = {
    "dbpedia/classes": 790,
    "dbpedia/class_hierarchy": 813,
    "dbpedia/properties": 3029,
    "dbpedia/property_hierarchy": 1011,
    "dbpedia/class_equivalence": 343,
    "dbpedia/property_equivalence": 227,
    "wikidata/properties": 7810,
    "wikidata/property_hierarchy": 567,
    "wikidata/constraints": 9056,
    "wikidata/equivalent_property": 503,
    "wikidata/facts_truthy": 194,
}


@pytest.fixture(scope="module")
def files(real_data: Path) -> list[Path]:
    """Return the ontology, the instances and the Wikidata excerpt."""
    names = (
        "dbpedia/dbo-snapshots_2026-07-22.ttl",
        "dbpedia/dbpedia_instances.nt.gz",
        "wikidata/wikidata_excerpt.nt.gz",
    )
    return [real_data / name for name in names]


@pytest.fixture(scope="module")
def oxigraph(files: list[Path]) -> Iterator[Endpoint]:
    with local_endpoint(files) as endpoint:
        yield endpoint


@pytest.fixture(scope="module")
def other(files: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Endpoint]:
    virtuoso.require()
    with virtuoso.serving(tmp_path_factory.mktemp("virtuoso"), files) as url:
        yield Endpoint("local", url)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return one data folder, so that later tests reuse earlier pulls."""
    return tmp_path_factory.mktemp("data")


@pytest.mark.parametrize("name", ROWS)
def test_both_engines_give_the_known_rows(name, oxigraph, other, folder):
    found = [
        pull(QUERIES / f"{name}.rq", endpoint, folder / name.split("/")[0] / engine).meta
        for engine, endpoint in (("oxigraph", oxigraph), ("virtuoso", other))
    ]
    assert [meta["rows"] for meta in found] == [ROWS[name]] * 2
    assert found[0]["rows_sha256"] == found[1]["rows_sha256"]


def test_constraints_with_and_without_a_class(oxigraph, folder):
    path = QUERIES / "wikidata/constraints.rq"
    rows = pull(path, oxigraph, folder / "wikidata" / "oxigraph").frame()
    assert rows["class"].is_not_null().sum() == 5891
    assert rows.height == 9056


def test_properties_by_kind_and_their_statements(oxigraph, folder):
    path = QUERIES / "dbpedia/properties.rq"
    rows = pull(path, oxigraph, folder / "dbpedia" / "oxigraph").frame()
    assert dict(rows.group_by("kind").len().rows()) == {"object": 1172, "datatype": 1857}
    assert rows["domain"].is_not_null().sum() == 2499
    assert rows["range"].is_not_null().sum() == 2735


def test_the_closure_of_superproperties_agrees_on_both_engines(oxigraph, other, folder):
    path = QUERIES / "wikidata/property_hierarchy.rq"
    rows = pull(path, oxigraph, folder / "wikidata" / "oxigraph").frame()
    above = distances(rows.select(child="property", parent="parent"))
    own = set(above.select("id", "ancestor").rows())
    text = "{ ?p a wikibase:Property . ?p wdt:P1647+ ?q }"
    hashes = set()
    for endpoint in (oxigraph, other):
        found = bindings(ask(endpoint, f"SELECT DISTINCT ?p ?q {text}"))
        pairs = {(row["p"]["value"], row["q"]["value"]) for row in found}
        assert len(found) == len(pairs) == 823
        assert {(p, q) for p, q in pairs if p != q} == own
        hashes.add(row_hash(terms(found, "pq")))
    assert len(hashes) == 1
    # without DISTINCT Virtuoso repeats rows
    assert len(bindings(ask(oxigraph, f"SELECT ?p ?q {text}"))) == 823
    assert len(bindings(ask(other, f"SELECT ?p ?q {text}"))) == 844


def test_instances_through_pages_of_any_size(oxigraph, folder):
    found = [
        pull(TYPED, sized(oxigraph, size), folder / "d" / f"pages{size}").meta
        for size in (500, 2000, 5000)
    ]
    assert [meta["rows"] for meta in found] == [35_097] * 3
    assert len({meta["rows_sha256"] for meta in found}) == 1
    assert len(found[0]["pages"]) > 71


def test_instances_by_class_are_complete_or_a_subset_of_large_ones(oxigraph, folder):
    """By the test's own count, the subset of a class is in the subsets of its subclasses."""
    whole = pull(TYPED, oxigraph, folder / "d" / "pages5000").frame()
    classes = pull(QUERIES / "dbpedia/classes.rq", oxigraph, folder / "d" / "whole").frame()
    query, languages = QUERIES / "dbpedia/instances.rq", ["en", "mul"]
    given = classes["class"].to_list(), oxigraph, folder / "d" / "c", query
    every, in_part = pull_instances(*given, 10_000, languages=languages)
    pairs = every.select("class", "instance").sort("class", "instance")
    assert pairs.equals(whole.select("class", "instance").sort("class", "instance"))
    assert not in_part
    part, in_part = pull_instances(*given, 100, languages=languages)
    sizes = dict(pairs.group_by("class").len().iter_rows())
    assert len(sizes) == 478
    assert set(in_part) == {name for name, n in sizes.items() if n > 100}
    lowest = {
        name: sorted(rows["instance"], key=lambda iri: hashlib.md5(iri.encode()).hexdigest())
        for (name,), rows in whole.group_by("class")
    }
    for (name,), rows in part.group_by("class"):
        found = sorted(rows["instance"], key=lambda iri: hashlib.md5(iri.encode()).hexdigest())
        assert found == lowest[name][: len(found)]
        assert len(found) == sizes[name] or 50 < len(found) < 150


def test_the_pinned_files_match_the_table(real_data):
    lines = (RESOURCES / "snapshots.tsv").read_text(encoding="utf-8").splitlines()
    pinned = csv.DictReader((line for line in lines if not line.startswith("#")), delimiter="\t")
    checked = 0
    for row in pinned:
        if row["source"] != "dbpedia":
            continue
        (file,) = (real_data / "dbpedia").glob(f"*{row['snapshot']}.ttl*")
        data = file.read_bytes()
        data = gzip.decompress(data) if file.suffix == ".gz" else data
        assert hashlib.sha256(data).hexdigest() == row["sha256"], file
        assert len(data) == int(row["bytes"])
        checked += 1
    assert checked == 4

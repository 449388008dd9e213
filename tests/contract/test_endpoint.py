"""RDF files queried in process: loaded once, with the rows of a server, errors by file."""

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import orjson
import pytest

from kgprobe.sources.sparql import answers
from kgprobe.sources.sparql import endpoint as module
from kgprobe.sources.sparql.endpoint import Endpoint, EndpointError, ask, open_store
from kgprobe.sources.sparql.pull import pull
from kgprobe.sources.sparql.snapshots import files_hash
from tests.contract.conftest import RESOURCES, THINGS

TRIPLES = "".join(
    f'<http://example.org/{n}> <http://www.w3.org/2000/01/rdf-schema#label> "thing {n}"@en .\n'
    for n in range(100)
)
PLACE = "local, query q"


@pytest.fixture
def things(tmp_path: Path) -> Path:
    file = tmp_path / "things.nt"
    file.write_text(TRIPLES)
    return file


def opened(files: list[Path], folder: Path) -> Endpoint:
    return Endpoint("local", "", store=open_store(files, folder))


def rows(endpoint: Endpoint, text: str) -> list[dict[str, dict[str, str]]]:
    return list(orjson.loads(ask(endpoint, text, "", PLACE).body)["results"]["bindings"])


def triples(endpoint: Endpoint) -> int:
    (row,) = rows(endpoint, "SELECT (COUNT(*) AS ?n) { ?s ?p ?o }")
    return int(row["n"]["value"])


@pytest.fixture
def loads(monkeypatch) -> list[str]:
    """Record the file names of each store that is loaded."""
    done, load = [], module._load

    def noted(files, folder):
        done.append(" ".join(file.name for file in files))
        load(files, folder)

    monkeypatch.setattr(module, "_load", noted)
    return done


def test_a_store_is_loaded_once_for_the_same_files(things, tmp_path, loads):
    for _ in range(2):
        assert triples(opened([things], tmp_path / "stores")) == 100
    assert loads == ["things.nt"]
    copy = tmp_path / "copy.nt"
    copy.write_text(TRIPLES)
    assert files_hash([copy]) == files_hash([things])
    things.write_text(TRIPLES + "<http://a> <http://b> <http://c> .\n")
    assert triples(opened([things], tmp_path / "stores")) == 101
    assert loads == ["things.nt", "things.nt"]


def test_several_at_a_time(things, tmp_path, loads):
    start = threading.Barrier(3)

    def count(_: int) -> int:
        start.wait()
        return triples(opened([things], tmp_path / "stores"))

    with ThreadPoolExecutor(3) as pool:
        assert list(pool.map(count, range(3))) == [100] * 3
    assert loads == ["things.nt"]


def test_files_answer_as_a_server_of_them_does(world_endpoint, world_files, tmp_path):
    local = opened(world_files, tmp_path / "stores")
    for name, more, least in (
        ("wikidata/constraints", {}, 100),
        ("dbpedia/classes", {}, 100),
        ("dbpedia/instances", {"class": "Awkward"}, 10),
    ):
        path = RESOURCES / f"queries/{name}.rq"
        over_http = pull(path, world_endpoint, tmp_path / "http" / "s", more)
        in_process = pull(path, local, tmp_path / "files" / "s", more)
        assert in_process.meta["rows"] > least
        for file in ("query.rq", "result.parquet"):
            ours = (in_process.folder / file).read_bytes()
            assert ours == (over_http.folder / file).read_bytes(), file
        same = ("rows_sha256", "query_sha256", "access", "count_before")
        assert {k: in_process.meta[k] for k in same} == {k: over_http.meta[k] for k in same}


def test_an_invalid_query_is_rejected(things, tmp_path):
    folder = tmp_path / "queries" / "made"
    folder.mkdir(parents=True)
    text = THINGS.read_text()
    (folder / "broken.rq").write_text(text.replace("rdfs:label ?label", "rdfs:label"))
    with pytest.raises(answers.QueryRejected, match=r"(?s)broken\.rq.*status 400: error at") as e:
        pull(folder / "broken.rq", opened([things], tmp_path / "stores"), tmp_path / "w" / "s")
    assert not e.value.reaction


def test_a_broken_file_is_reported_with_the_line_and_leaves_no_store(tmp_path):
    bad = tmp_path / "bad.nt"
    bad.write_text(TRIPLES + "<http://a> <http://b> no object .\n")
    stores = tmp_path / "stores"
    for _ in range(2):
        with pytest.raises(EndpointError, match=r"could not load .*bad\.nt: .*line 101"):
            open_store([bad], stores)
    assert not [path for path in stores.iterdir() if path.is_dir()]
    with pytest.raises(EndpointError, match=r"no such RDF file: .*nothing\.nt"):
        open_store([tmp_path / "nothing.nt"], stores)


def test_turtle_with_relative_names(tmp_path, world_endpoint):
    file = tmp_path / "relative.ttl"
    file.write_text("<a> <b> <c> .\n")
    (row,) = rows(opened([file], tmp_path / "stores"), "SELECT ?s { ?s ?p ?o }")
    assert row["s"]["value"] == "http://localhost/a"

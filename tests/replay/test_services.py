"""The replay's services, queried by the project's client under their real addresses."""

import json
import urllib.parse
from collections import Counter
from dataclasses import replace

import pytest
import requests

from kgprobe.sources.dumps.archives import open_archive
from kgprobe.sources.dumps.download import DownloadError, download
from kgprobe.sources.sparql.endpoint import Endpoint, read_endpoints
from kgprobe.sources.sparql.pull import pull
from kgprobe.sources.sparql.relations import Relations
from tests.conftest import ROOT
from tests.contract.conftest import RESOURCES
from tests.replay.downloads import CHALLENGE
from tests.replay.endpoints import JSON_TYPE
from tests.replay.world import SERVICES, TREX_FILE, world
from tools import documented

pytestmark = [
    pytest.mark.real,
    pytest.mark.nightly(
        gate=["contract/test_download.py", "contract/test_sparql.py", "replay/test_plan.py"]
    ),
]

QUERIES = RESOURCES / "queries"
AGENT = "kgprobe/0 (https://example.org; test@example.org)"
CONTACT = "test@example.org"
GITHUB = "https://github.com/lm-pub-quiz/BEAR/archive/ace91fd.zip"
TREX = f"https://api.figshare.com/v2/file/download/{TREX_FILE}"


@pytest.fixture(scope="module")
def replay(real_data, tmp_path_factory):
    with world(real_data, tmp_path_factory.mktemp("replay"), documents=500) as proxy:
        yield proxy


@pytest.fixture(autouse=True)
def found_by_its_environment(replay, monkeypatch):
    for name, value in replay.environment.items():
        monkeypatch.setenv(name, value)


def preset(name: str) -> Endpoint:
    """Return an endpoint of the table, with the waits of a replay."""
    endpoint = read_endpoints(RESOURCES / "endpoints.tsv")[name]
    return replace(endpoint, policy=replace(endpoint.policy, interval=0.0))


def test_the_page_of_sources_equals_the_table():
    assert documented.PAGE.read_text() == documented.text(), "make docs"


def test_an_unknown_host_is_refused_and_recorded(replay):
    with pytest.raises(requests.exceptions.ProxyError, match="502"):
        requests.get("https://nowhere.example.org/", timeout=5)
    assert "nowhere.example.org" in replay.unknown


def test_archives_come_by_a_redirect_in_chunks(replay, real_data, tmp_path):
    before = len(replay.seen)
    download(GITHUB, tmp_path / "bear.zip", agent=AGENT)
    ours = (tmp_path / "bear.zip").read_bytes()
    assert ours == (real_data / "archives/BEAR-ace91fd.zip").read_bytes()
    hosts = [seen.request.host for seen in replay.seen[before:]]
    assert hosts == ["github.com", "codeload.github.com"]
    with open_archive(tmp_path / "bear.zip") as zipped:
        assert any(name.endswith("relation_info.json") for name in zipped.namelist())
    with pytest.raises(DownloadError, match="404"):
        download(GITHUB.replace("ace91fd", "0000000"), tmp_path / "no.zip", agent=AGENT)


def test_the_firewall_s_page_is_no_archive(replay, tmp_path):
    walled = f"https://figshare.com/ndownloader/files/{TREX_FILE}"
    answer = requests.get(walled, timeout=5)
    assert (answer.status_code, answer.content) == (202, b"")
    assert requests.get(GITHUB, timeout=5).content == CHALLENGE, "a library's own name is no name"
    with pytest.raises(DownloadError, match="status 202 Accepted, an empty body"):
        download(walled, tmp_path / "TREx.zip", agent=AGENT)
    with pytest.raises(DownloadError, match=r"Human Verification.*Content-Type text/html"):
        download(GITHUB, tmp_path / "BEAR.zip", agent="python-requests/2")
    assert {path.suffix for path in tmp_path.iterdir()} == {".lock"}


def test_a_download_goes_on_where_it_broke_off(replay, tmp_path):
    before = len(replay.seen)
    download(TREX, tmp_path / "TREx.zip", agent=AGENT, sleep=lambda seconds: None)
    store = [s for s in replay.seen[before:] if s.request.host.startswith("s3")]
    assert [seen.status for seen in store] == [200, 206]
    with open_archive(tmp_path / "TREx.zip") as zipped:
        assert len(zipped.namelist()) == 465
        documents = json.loads(zipped.read("re-nlg_0-10000.json"))
    assert documents[0]["triples"]


def test_wikidata_in_pieces_and_whole(replay, tmp_path):
    """Despite 429, 502 and a truncated answer, the result equals another query to the engine."""
    wdqs = preset("wdqs")
    snapshot = pull(
        QUERIES / "wikidata/properties.rq", wdqs, tmp_path / "wikidata/s", contact=CONTACT
    )
    assert snapshot.meta["rows"] == 7810
    found, coverage = Relations(
        wdqs,
        tmp_path / "wikidata/s",
        QUERIES / "wikidata/facts.rq",
        QUERIES / "wikidata/left_out.rq",
        contact=CONTACT,
        least=30,
    ).pull(["P36", "P17", "P19"])
    ways = dict(coverage.select("relation", "way").iter_rows())
    assert ways == {"P36": "pulled", "P17": "sitelinks", "P19": "pulled"}
    reason = coverage.filter(relation="P17")["reason"][0]
    assert reason.startswith("12,800,000 rows by the count query; at most 1,000,000")
    assert found.filter(relation="P17")["subject_sitelinks"].min() >= 30
    text = """SELECT ?s ?o WHERE { ?s <http://www.wikidata.org/prop/direct/P19> ?o }"""
    service = replay.services["query.wikidata.org"]
    answer = requests.post(service.url, data={"query": text}, headers={"Accept": JSON_TYPE})
    pairs = {
        (row["s"]["value"][31:], row["o"]["value"][31:])
        for row in answer.json()["results"]["bindings"]
    }
    ours = set(found.filter(relation="P19").select("subject", "object").iter_rows())
    assert ours == pairs
    assert len(pairs) > 5000
    planned = Counter(service.planned.values())
    statuses = Counter(s.status for s in replay.seen if s.request.host == "query.wikidata.org")
    assert statuses[429] >= 1
    assert statuses[502] >= 1
    assert planned["cut"]
    labels = found.filter(relation="P19")["subject_label"]
    assert labels.null_count() < labels.len()


def test_another_order_is_no_other_answer(replay, tmp_path):
    hashes = set()
    for name in ("wdqs", "qlever"):
        folder = tmp_path / name / "wikidata/s"
        path = QUERIES / "wikidata/equivalent_property.rq"
        snapshot = pull(path, preset(name), folder, contact=CONTACT)
        assert snapshot.meta["rows"] == 503
        hashes.add(snapshot.meta["rows_sha256"])
    assert len(hashes) == 1


def test_dbpedia_in_pieces_and_whole(replay, tmp_path):
    dbpedia = preset("dbpedia")
    rows = {"classes": 790, "properties": 3029, "property_hierarchy": 1011}
    for name, n in rows.items():
        path = QUERIES / f"dbpedia/{name}.rq"
        snapshot = pull(path, dbpedia, tmp_path / "dbpedia/s", contact=CONTACT)
        assert snapshot.meta["rows"] == n, name
    assert 206 in {s.status for s in replay.seen if s.request.host == "dbpedia.org"}


def test_the_table_of_sources_lists_its_tests_and_every_service(replay):
    hosts = {host for line in SERVICES for host in replay.services if host in line.source}
    assert hosts | {"s3-eu-west-1.amazonaws.com"} == set(replay.services)
    for line in SERVICES:
        place, test = line.test.split("::")
        assert f"def {test}(" in (ROOT / place).read_text(), line.test
        assert urllib.parse.urlsplit(line.documented.removeprefix("seen; ")).scheme == "https"

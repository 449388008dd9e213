"""A service that stops what is too slow: smaller pages, the declared ways out, no count."""

import re
from collections.abc import Callable, Iterator

import pytest

from kgprobe.sources.dumps import facts as dumps
from kgprobe.sources.sparql import errors, limits
from kgprobe.sources.sparql.endpoint import Endpoint, Policy
from kgprobe.sources.sparql.limits import Clock
from kgprobe.sources.sparql.pull import pull
from tests.contract.conftest import FakeClock
from tests.contract.fault_server import JSON_TYPE, fetch
from tests.contract.test_relations import QUERIES, dump, relations
from tests.contract.test_sparql import Recorder, form

Reply = tuple[int, str, str]
BLAZEGRAPH: Reply = (
    500,
    "SPARQL-QUERY: queryStr=SELECT ?s {}\njava.util.concurrent.TimeoutException\n\tat java.util",
    "text/plain",
)
QLEVER: Reply = (429, '{"exception":"Operation timed out.","status":"ERROR"}', "application/json")
VIRTUOSO: Reply = (500, "Virtuoso S1T00 Error SR171: Transaction timed out", "text/plain")
GATEWAY: Reply = (504, "<title>504 Gateway Time-out</title>", "text/html")
TIME_OUTS = (BLAZEGRAPH, QLEVER, VIRTUOSO, GATEWAY)


class Service(Recorder):
    """An engine behind a service, which answers some queries with its own words."""

    def __init__(self, url: str) -> None:
        super().__init__()
        self.behind, self.seen = url, []
        self.says: Callable[[str], Reply | None] = lambda text: None

    def endpoint(self, **policy: float) -> Endpoint:
        return Endpoint("local", self.url(), Policy(connections=1, **({"attempts": 6} | policy)))

    def answer(self, path: str, body: bytes) -> tuple[int, dict[str, str], bytes]:
        (text,) = form(body)["query"]
        self.seen.append(text)
        said = self.says(text)
        status, answer, kind = said or (200, fetch(self.behind, text), JSON_TYPE)
        data = answer if isinstance(answer, bytes) else answer.encode()
        return status, {"Content-Type": kind}, data


@pytest.fixture
def clock(monkeypatch) -> FakeClock:
    """No pull really waits."""
    fake = FakeClock()
    monkeypatch.setattr(limits, "Clock", lambda: Clock(fake.now, fake.sleep))
    return fake


@pytest.fixture
def service(nationalities) -> Iterator[Service]:
    with Service(nationalities.url) as server:
        yield server


def is_count(text: str) -> bool:
    return "UNION" not in text and "?rows" in text


def is_facts(text: str) -> bool:
    return "?object_sitelinks" in text


def values(text: str) -> int:
    """How many subjects a page of facts asks for."""
    return len(re.findall(r"<[^>]+>", re.findall(r"VALUES \?subject \{([^}]*)\}", text)[0]))


@pytest.mark.parametrize("reply", TIME_OUTS)
def test_pages_shrink_until_they_come_in_time(reply, service, clock, tmp_path):
    service.says = lambda text: reply if is_facts(text) and values(text) > 1 else None
    found = pull(QUERIES / "facts.rq", service.endpoint(), tmp_path / "w/s", {"property": "P27"})
    assert found.meta["rows"] == 6
    assert {page["stop"] - page["start"] for page in found.meta["pages"]} == {1}
    assert found.meta["retries"] == {"TimedOut": 2}, "four subjects, two, one"
    assert found.meta["waits"]["seconds"].get("hold", 0) == 0, "no rate limit asked for it"
    assert clock.now() - FakeClock().now() < 60


@pytest.mark.parametrize("reply", [*TIME_OUTS, (400, "no aggregates", "text/plain")])
def test_a_count_that_cannot_be_had_is_no_count(reply, service, clock, tmp_path):
    service.says = lambda text: reply if is_count(text) else None
    found, coverage = relations(service.endpoint(), tmp_path / "w" / "s").pull(["P27"])
    assert (found.height, coverage["way"].to_list()) == (6, ["pulled"])
    assert sum(map(is_count, service.seen)) <= 4, "two each, of the listing and of what is left out"


def test_a_count_that_is_limited_and_then_stopped_is_no_count(service, clock, tmp_path):
    replies = iter([(429, "Too many", "text/plain")] * 2 + [QLEVER] * 2)
    service.says = lambda text: next(replies, None) if is_count(text) else None
    found = pull(QUERIES / "properties.rq", service.endpoint(), tmp_path / "w/s")
    assert found.meta["count_before"] is None
    assert found.meta["count_before_reason"].startswith("TimedOut: status 429")


@pytest.mark.parametrize("reply", TIME_OUTS)
def test_a_relation_that_is_never_in_time_takes_the_declared_way_out(
    reply, service, clock, tmp_path
):
    """Neither its count nor its listing; with many sitelinks; out of a dump; not at all."""

    def whole(text):
        return None if "?known >= " in text or "VALUES" in text else reply

    service.says = whole
    some = relations(service.endpoint(), tmp_path / "a" / "s", least=100)
    found, coverage = some.pull(["P27"])
    assert (found.height, coverage["way"].to_list()) == (4, ["sitelinks"])
    assert "status " in coverage["reason"][0]
    service.says = lambda text: reply
    read = dumps.read([dump(tmp_path / "d.json.gz")], "json", ["P27"], tmp_path / "parts")
    more = {"least": 100, "dumped": {"P27": read.statements}}
    _, coverage = relations(service.endpoint(), tmp_path / "b" / "s", **more).pull(["P27"])
    assert coverage["way"].to_list() == ["dump"]
    service.seen.clear()
    _, coverage = relations(service.endpoint(), tmp_path / "c" / "s").pull(["P27"])
    assert coverage["way"].to_list() == ["left out"]
    assert len(service.seen) <= 8, "two counts, and six listings of which each is half the last"
    assert len(set(service.seen)) >= 7


def test_what_was_too_slow_twice_is_not_asked_a_third_time(service, clock, tmp_path):
    """A page of one value cannot be made smaller."""
    service.says = lambda text: BLAZEGRAPH if is_facts(text) else None
    with pytest.raises(errors.TimedOut) as caught:
        pull(QUERIES / "facts.rq", service.endpoint(), tmp_path / "w/s", {"property": "P27"})
    assert caught.value.rows == 4, "subjects"
    pages = [text for text in service.seen if is_facts(text)]
    assert [values(text) for text in pages] == [4, 2, 1, 1]


@pytest.mark.parametrize(
    "reply",
    [*TIME_OUTS, (400, "no aggregates", "text/plain"), (502, "", ""), (200, "{", JSON_TYPE)],
)
def test_statistics_never_fail_facts_that_are_complete(reply, service, clock, tmp_path):
    service.says = lambda text: reply if "novalue" in text else None
    found, coverage = relations(service.endpoint(), tmp_path / "w" / "s").pull(["P27", "P36"])
    assert (found.height, coverage["way"].to_list()) == (6, ["pulled", "pulled"])
    assert coverage["item"].null_count() == coverage["deprecated"].null_count() == 2


@pytest.mark.parametrize("status", [403, 429, 200])
def test_a_refusal_is_told_after_one_request(status, service, clock, tmp_path):
    words = (status, "Please set a user-agent: https://w.wiki/4wJS", "text/plain")
    service.says = lambda text: words
    with pytest.raises(errors.EndpointRefused, match="KGPROBE_CONTACT"):
        relations(service.endpoint(), tmp_path / "w" / "s").pull(["P27", "P36"])
    assert len(service.seen) == 1
    assert clock.now() == FakeClock().now()


def test_a_cap_on_memory_makes_pages_smaller(service, clock, tmp_path):
    memory = (
        500,
        '{"exception":"Tried to allocate 2 GB, but only 1 GB were available"}',
        JSON_TYPE,
    )
    service.says = lambda text: memory if is_facts(text) and values(text) > 1 else None
    found = pull(QUERIES / "facts.rq", service.endpoint(), tmp_path / "w/s", {"property": "P27"})
    assert found.meta["rows"] == 6
    assert found.meta["retries"] == {"PartialAnswer": 2}


@pytest.mark.parametrize("status", [429, 503])
def test_a_wait_of_more_than_an_hour_is_reported_before_the_pages(status, service, clock, tmp_path):
    requests = []

    def answer(path: str, body: bytes) -> tuple[int, dict[str, str], bytes]:
        requests.append(path)
        return status, {"Retry-After": "7200"}, b"busy"

    service.answer = answer
    with pytest.raises(errors.SourceError, match="come back at"):
        pull(QUERIES / "properties.rq", service.endpoint(), tmp_path / "w/s")
    assert len(requests) == 1
    assert clock.now() == FakeClock().now()


def test_a_redirect_that_is_not_followed_is_named(service, clock, tmp_path):
    service.answer = lambda path, body: (301, {"Location": "ftp://example.org/sparql"}, b"")
    with pytest.raises(errors.EndpointRefused, match="sent on from http to ftp://example"):
        pull(QUERIES / "properties.rq", service.endpoint(), tmp_path / "w/s")

"""A service that aborts slow queries: smaller pages, declared fallbacks, no count."""

import hashlib
import re
from collections.abc import Callable, Iterator
from functools import partial

import polars as pl
import pytest

from kgprobe.sources.dumps import facts as dumps
from kgprobe.sources.sparql import answers, endpoint
from kgprobe.sources.sparql.endpoint import Clock, Endpoint, Policy
from kgprobe.sources.sparql.paging import PARTS
from kgprobe.sources.sparql.pull import pull
from kgprobe.sources.sparql.relations import pull_instances
from tests.contract.conftest import FakeClock
from tests.contract.fault_server import JSON_TYPE, fetch
from tests.contract.oxigraph import local_endpoint
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
MEMORY: Reply = (
    500, '{"exception":"Tried to allocate 2 GB, but only 1 GB were available"}', JSON_TYPE,
)  # fmt: skip
BROKEN: Reply = (500, "Internal Server Error", "text/plain")
DBPEDIA = QUERIES.parent / "dbpedia"
DBO, THINGS = "http://dbpedia.org/ontology/", "http://dbpedia.org/resource/Thing_"


class Service(Recorder):
    """An engine behind a service that answers some queries with its own message."""

    def __init__(self, url: str) -> None:
        super().__init__()
        self.behind, self.seen = url, []
        self.says: Callable[[str], Reply | None] = lambda text: None

    def endpoint(self, **policy: float) -> Endpoint:
        return Endpoint("local", self.url(), Policy(connections=1, **({"attempts": 6} | policy)))

    def answer(self, path: str, body: bytes) -> tuple[int, dict[str, str], bytes]:
        (text,) = form(body)["query"]
        self.seen.append(text)
        status, answer, kind = self.says(text) or (200, fetch(self.behind, text), JSON_TYPE)
        data = answer if isinstance(answer, bytes) else answer.encode()
        return status, {"Content-Type": kind}, data


@pytest.fixture
def clock(monkeypatch) -> FakeClock:
    """Replace the clock, so that no pull really waits."""
    fake = FakeClock()
    monkeypatch.setattr(endpoint, "Clock", lambda: Clock(fake.now, fake.sleep))
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
    """Return the number of subjects in a page query of facts."""
    return len(re.findall(r"<[^>]+>", re.findall(r"VALUES \?subject \{([^}]*)\}", text)[0]))


@pytest.mark.parametrize("reply", [*TIME_OUTS, MEMORY])
def test_pages_shrink_until_they_are_in_time_or_in_memory(reply, service, clock, tmp_path):
    service.says = lambda text: reply if is_facts(text) and values(text) > 1 else None
    found = pull(QUERIES / "facts.rq", service.endpoint(), tmp_path / "w/s", {"property": "P27"})
    assert found.meta["rows"] == 6
    assert {page["stop"] - page["start"] for page in found.meta["pages"]} == {1}
    reason = "PartialAnswer" if reply is MEMORY else "TimedOut"
    assert found.meta["retries"] == {reason: 2}, "four subjects, two, one"
    assert found.meta["waits"]["seconds"].get("hold", 0) == 0, "no rate limit asked for it"
    assert clock.now() - FakeClock().now() < 60


@pytest.mark.parametrize("reply", [*TIME_OUTS, (400, "no aggregates", "text/plain")])
def test_an_unavailable_count_is_recorded_as_none(reply, service, clock, tmp_path):
    service.says = lambda text: reply if is_count(text) else None
    found, coverage = relations(service.endpoint(), tmp_path / "w" / "s").pull(["P27"])
    assert (found.height, coverage["way"].to_list()) == (6, ["pulled"])
    assert sum(map(is_count, service.seen)) <= 4, "two each, of the listing and of what is left out"


def test_a_limited_and_then_aborted_count_is_recorded_as_none(service, clock, tmp_path):
    replies = iter([(429, "Too many", "text/plain")] * 2 + [QLEVER] * 2)
    service.says = lambda text: next(replies, None) if is_count(text) else None
    found = pull(QUERIES / "properties.rq", service.endpoint(), tmp_path / "w/s")
    assert found.meta["count_before"] is None
    assert found.meta["count_before_reason"].startswith("TimedOut: status 429")


@pytest.mark.parametrize("reply", TIME_OUTS)
def test_a_relation_that_always_times_out_uses_the_declared_fallback(
    reply, service, clock, tmp_path
):
    """Count and listing fail; fallbacks: many sitelinks, a dump, or leaving it out."""

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


@pytest.mark.parametrize("status", [413, 414])
def test_a_query_that_is_too_long_is_sent_with_fewer_values(status, service, clock, tmp_path):
    reply, most = (status, "Request Entity Too Large", "text/html"), 1
    service.says = lambda text: reply if is_facts(text) and values(text) > most else None
    given = QUERIES / "facts.rq", service.endpoint()
    found = pull(*given, tmp_path / "w/s", {"property": "P27"})
    assert (found.meta["rows"], found.meta["retries"]) == (6, {"QueryTooLong": 2})
    assert clock.now() - FakeClock().now() < 1, "nothing to wait for"
    service.seen.clear()
    most = 0
    with pytest.raises(answers.QueryTooLong, match="smaller `batch`"):
        pull(*given, tmp_path / "w/t", {"property": "P27"})
    assert [values(text) for text in service.seen if is_facts(text)] == [4, 2, 1]


def test_a_query_that_timed_out_twice_is_not_sent_again(service, clock, tmp_path):
    """A page of one value cannot be made smaller."""
    service.says = lambda text: BLAZEGRAPH if is_facts(text) else None
    with pytest.raises(answers.TimedOut) as caught:
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
def test_a_refusal_is_reported_after_one_request(status, service, clock, tmp_path):
    words = (status, "Please set a user-agent: https://w.wiki/4wJS", "text/plain")
    service.says = lambda text: words
    with pytest.raises(answers.EndpointRefused, match="KGPROBE_CONTACT"):
        relations(service.endpoint(), tmp_path / "w" / "s").pull(["P27", "P36"])
    assert len(service.seen) == 1
    assert clock.now() == FakeClock().now()


@pytest.mark.parametrize("status", [429, 503])
def test_a_wait_of_more_than_an_hour_is_reported_before_the_pages(status, service, clock, tmp_path):
    requests = []

    def answer(path: str, body: bytes) -> tuple[int, dict[str, str], bytes]:
        requests.append(path)
        return status, {"Retry-After": "7200"}, b"busy"

    service.answer = answer
    with pytest.raises(answers.SourceError, match="run again at"):
        pull(QUERIES / "properties.rq", service.endpoint(), tmp_path / "w/s")
    assert len(requests) == 1
    assert clock.now() == FakeClock().now()


def test_a_redirect_that_is_not_followed_is_reported(service, clock, tmp_path):
    service.answer = lambda path, body: (301, {"Location": "ftp://example.org/sparql"}, b"")
    with pytest.raises(answers.EndpointRefused, match="redirected from http to ftp://example"):
        pull(QUERIES / "properties.rq", service.endpoint(), tmp_path / "w/s")


def lowest(n: int, keys: int) -> list[str]:
    """Return the instances, of `n`, whose hash prefixes are below `keys`."""
    names = [f"{THINGS}{i}" for i in range(n)]
    return sorted(n for n in names if int(hashlib.md5(n.encode()).hexdigest()[:3], 16) < keys)


@pytest.fixture(scope="module")
def things(tmp_path_factory) -> Iterator[str]:
    """Yield the URL of an engine with a class of 400 instances, one of half of them, one of 7."""
    rdf, path = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type", tmp_path_factory.mktemp("things")
    lines = [f"<{THINGS}{i}> <{rdf}> <{DBO}Large> ." for i in range(400)]
    for name, n in (("Middle", 200), ("Small", 7)):
        lines += [f"<{THINGS}{i}> <{rdf}> <{DBO}{name}> ." for i in range(n)]
    label = "http://www.w3.org/2000/01/rdf-schema#label"
    lines += [f'<{THINGS}{i}> <{label}> "thing {i}"@en .' for i in range(400)]
    (path / "things.nt").write_text("\n".join(lines) + "\n")
    with local_endpoint([path / "things.nt"]) as endpoint:
        yield endpoint.url


@pytest.mark.parametrize("reply", [None, *TIME_OUTS])
def test_instances_are_pulled_if_no_class_can_be_counted(reply, things, clock, tmp_path):
    """Take the lowest hashes of a large class, all of small ones, and none of an empty class."""
    names, query = [f"{DBO}{name}" for name in ("Large", "None", "Small")], DBPEDIA / "instances.rq"
    with Service(things) as server:
        server.says = lambda text: reply if is_count(text) else None
        given = names, server.endpoint(), tmp_path / "d/s", query, 50
        found, in_part = pull_instances(*given, languages=["en", "mul"])
        asked = len(server.seen)
        again = pull_instances(*given, languages=["en", "mul"])
        assert len(server.seen) == asked, "complete"
    assert found.equals(again[0])
    assert in_part == again[1] == {names[0]: 50 / 400}
    found = found.select("class", "instance").sort("instance")
    assert found.filter(pl.col("class") == names[0])["instance"].to_list() == lowest(400, 512)
    assert found.filter(pl.col("class") == names[2]).height == 7
    assert set(found["class"]) == {names[0], names[2]}


def lists_an_eighth(text: str) -> Reply | None:
    """Return the error of an engine that can neither count a class nor list over an eighth."""
    keys = re.findall(r"\^\(([0-9a-f|]+)\)", text)
    size = sum(16 ** (3 - len(key)) for key in keys[0].split("|")) if keys else PARTS
    return QLEVER if is_count(text) or size > PARTS // 8 else None


def stops_after_one(left: Iterator[None], text: str) -> Reply | None:
    return lists_an_eighth(text) or next(left, BROKEN)


def test_a_class_is_pulled_in_pages_until_they_suffice(things, clock, tmp_path):
    """A pull that was interrupted selects the same subset."""
    names, query, made = [f"{DBO}Large"], DBPEDIA / "instances.rq", []
    for stopped in (False, True):
        with Service(things) as server:
            given = names, server.endpoint(), tmp_path / f"{stopped}/s", query, 90
            if stopped:
                server.says = partial(stops_after_one, iter([None]))
                with pytest.raises(answers.ServerTrouble):
                    pull_instances(*given, languages=["en"])
                assert len(list(tmp_path.rglob("True/**/page-*.gz"))) == 1
            server.says = lists_an_eighth
            made.append(pull_instances(*given, languages=["en"]))
    (found, in_part), again = made
    assert found.equals(again[0])
    assert in_part == again[1]
    came = len(lowest(400, PARTS // 4))
    assert len(lowest(400, PARTS // 8)) < 90 < came, "one page is too few, two are enough"
    keys = PARTS // 4 * 90 // came
    assert in_part == {names[0]: keys / PARTS}
    assert sorted(found["instance"]) == lowest(400, keys)


def test_a_class_counted_on_resume_has_the_subset_of_its_count(things, clock, tmp_path):
    """The page from the uncounted pull covers more hashes and is not sufficient."""
    names, query, most = [f"{DBO}Large"], DBPEDIA / "instances.rq", 48
    with Service(things) as server:
        given = names, server.endpoint(), tmp_path / "d/s", query, most
        server.says = partial(stops_after_one, iter([None]))
        with pytest.raises(answers.ServerTrouble):
            pull_instances(*given, languages=["en"])
        server.says = lambda text: None
        found, in_part = pull_instances(*given, languages=["en"])
    keys = PARTS * most // 400
    assert len(lowest(400, PARTS // 8)) < most
    assert keys < PARTS // 8
    assert in_part == {names[0]: keys / PARTS}
    assert sorted(found["instance"]) == lowest(400, keys)


def test_subsets_are_nested_if_one_class_cannot_be_counted(things, clock, tmp_path):
    """A class's subset restricted to a subclass is in the subclass's, as `finest` needs."""
    names, query = [f"{DBO}{name}" for name in ("Large", "Middle", "Small")], "instances.rq"
    with Service(things) as server:
        server.says = lambda text: QLEVER if is_count(text) and "/Large>" in text else None
        given = names, server.endpoint(), tmp_path / "d/s", DBPEDIA / query, 50
        found, in_part = pull_instances(*given, languages=["en"])
    of = {name: set(rows["instance"]) for (name,), rows in found.group_by("class")}
    assert in_part == dict.fromkeys(names[:2], 50 / 400)
    assert {*lowest(400, 512)} == of[names[0]]
    assert of[names[1]] == of[names[0]] & {f"{THINGS}{i}" for i in range(200)}
    assert len(of[names[1]]) > 20
    assert len(of[names[2]]) == 7

"""Pulls from a faulty server: no row is silently lost, duplicated or truncated."""

import gzip
import hashlib
import json
import random
from collections import Counter
from dataclasses import replace
from pathlib import Path

import orjson
import pytest

from kgprobe.sources.sparql import answers
from kgprobe.sources.sparql.endpoint import BUDGET, WINDOW, Clock, Endpoint, Policy
from kgprobe.sources.sparql.paging import PARTS, read_query
from kgprobe.sources.sparql.pull import pull
from kgprobe.sources.sparql.snapshots import Snapshot
from tests.contract.conftest import ROWS, THINGS, FakeClock
from tests.contract.fault_server import (
    FATAL,
    HARMLESS,
    LIES,
    PASSING,
    SLOW,
    WAIT,
    Faults,
    FaultServer,
    Seen,
    Table,
    fetch,
    split,
)

POLICY = Policy(
    connections=1, interval=1.0, connect=1.0, read=0.5, deadline=1.2, attempts=6, page_size=1000
)
CONTACT = "test@example.org"
FIRST_PAGE = 2  # the number of its request; the count is the first


def run(server: FaultServer, clock: FakeClock, data: Path, policy: Policy = POLICY) -> Snapshot:
    """Pull the things once through the server."""
    endpoint = Endpoint("local", server.url, policy)
    waiting = Clock(clock.now, clock.sleep)
    return pull(THINGS, endpoint, data / "made" / "now", contact=CONTACT, clock=waiting, seed=0)


@pytest.fixture(scope="module")
def clean(things_table: Table, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the canonical hash of a pull without faults."""
    clock = FakeClock()
    with FaultServer(things_table, clock.now) as server:
        snapshot = run(server, clock, tmp_path_factory.mktemp("clean"))
    assert snapshot.meta["rows"] == ROWS
    return str(snapshot.meta["rows_sha256"])


def folder(data: Path) -> Path:
    return data / "made" / "now" / "things"


def pages_kept(data: Path) -> list[int]:
    """Return the rows of the finished pages, which are all complete."""
    rows = []
    for file in sorted(folder(data).glob("page-*.json.gz")):
        found = orjson.loads(gzip.decompress(file.read_bytes()))["results"]["bindings"]
        rows.append(sum("rows" not in binding for binding in found))
    return rows


def assert_whole(data: Path, snapshot: Snapshot, clean: str) -> None:
    """Assert that the snapshot holds every row once, and only its own files."""
    meta = snapshot.meta
    assert meta["rows_sha256"] == clean
    assert sum(page["rows"] for page in meta["pages"]) == ROWS == snapshot.frame().height
    for page in meta["pages"]:
        body = gzip.decompress((folder(data) / f"page-{page['number']:05}.json.gz").read_bytes())
        assert hashlib.sha256(body).hexdigest() == page["sha256"]
    files = {p.name for p in snapshot.folder.iterdir() if not p.name.startswith("page-")}
    assert files == {"query.rq", "result.parquet", "meta.json"}
    assert not list(snapshot.folder.glob("*.part"))


def assert_manners(server: FaultServer, policy: Policy = POLICY) -> None:
    """Assert one connection, spaced starts, no request during requested waits, and few errors."""
    for before, after in zip(server.seen, server.seen[1:], strict=False):
        assert after.at - before.at >= policy.interval - 1e-6
        if before.fault.startswith("rate") or before.fault == "status 503 wait":
            unsaid = {"rate bare": 60, "rate nonsense": 60, "rate date": WAIT - 1}
            assert after.at - before.at >= unsaid.get(before.fault, WAIT)
    for before, seen in enumerate(server.seen):
        # a server that answers late goes on after the client has left
        left = sum(other.fault in SLOW for other in server.seen[:before])
        assert seen.running <= policy.connections + left
    for at in server.errors:
        assert sum(at <= other < at + WINDOW for other in server.errors) <= BUDGET


def assert_no_page_twice(server: FaultServer) -> None:
    """Assert that complete pages were not requested again."""
    good = Counter(
        seen.part for seen in server.seen if not seen.is_count and seen.fault in ("", *HARMLESS)
    )
    assert max(good.values(), default=1) == 1


@pytest.mark.parametrize(("start", "stop"), [(0, PARTS), (0, 368), (4000, 4097), (77, 78)])
def test_the_table_s_pages_equal_the_endpoint_s(start, stop, many_things, things_table):
    text = read_query(THINGS).page(start, min(stop, PARTS))
    head, rows, counts = split(fetch(many_things.url, text))
    ours = things_table.rows(Seen(1, 0.0, text, "", "", 1).part)
    assert (head, sorted(rows), len(rows)) == (things_table.head, sorted(ours), len(ours))
    assert rows
    assert json.loads(counts[0])["rows"]["value"] == str(len(rows))


@pytest.mark.parametrize(
    ("fault", "at"),
    [(fault, 5) for fault in (*PASSING, *SLOW)]
    + [(fault, at) for fault in ("status 503", "cut short", "cap") for at in (1, FIRST_PAGE, 12)],
)
def test_a_transient_fault_does_not_change_the_result(fault, at, faulty, clock, tmp_path, clean):
    faulty.expect(Faults({at: fault}))
    snapshot = run(faulty, clock, tmp_path)
    assert_whole(tmp_path, snapshot, clean)
    assert_manners(faulty)
    assert_no_page_twice(faulty)
    assert sum(snapshot.meta["retries"].values()) == 1
    assert [seen.fault for seen in faulty.seen if seen.fault] == [fault]
    first = next(s for s in faulty.seen if not s.is_count and s.fault in ("", *HARMLESS))
    assert (snapshot.folder / "query.rq").read_text() == first.text


CAUSES = {
    "status 403": answers.EndpointRefused, "status 500 SR353": answers.QueryRejected,
    "status 400": answers.QueryRejected, "other vars": answers.MalformedAnswer,
    "page before": answers.MalformedAnswer, "a row too many": answers.MalformedAnswer,
    "number for text": answers.MalformedAnswer, "no type": answers.MalformedAnswer,
}  # fmt: skip


@pytest.mark.parametrize("fault", CAUSES)
def test_a_fatal_fault_is_reported_at_once_and_a_later_run_completes(
    fault, faulty, clock, tmp_path, clean
):
    assert set(CAUSES) == {*FATAL, *LIES}
    faulty.expect(Faults({5: fault}))
    with pytest.raises(CAUSES[fault]) as caught:
        run(faulty, clock, tmp_path)
    message = str(caught.value)
    assert all(part in message for part in (faulty.url, "things.rq", "page 4", "of 4,096"))
    assert len(faulty.seen) == 5, "nothing that cannot pass is asked again"
    assert len(pages_kept(tmp_path)) == 3
    assert not (folder(tmp_path) / "meta.json").exists()
    assert_manners(faulty)
    refused = faulty.seen[4].part
    assert_whole(tmp_path, run(faulty, clock, tmp_path), clean)
    assert next(seen for seen in faulty.seen[5:] if not seen.is_count).part == refused


@pytest.mark.parametrize(
    ("fault", "cause"),
    [
        ("rate seconds", answers.RateLimited), ("rate bare", answers.RateLimited),
        ("status 500", answers.ServerTrouble), ("status 502", answers.ServerTrouble),
        ("status 504", answers.ServerTrouble), ("reset before", answers.ServerTrouble),
        ("reset middle", answers.ServerTrouble), ("cut short", answers.ServerTrouble),
        ("late", answers.TimedOut), ("drip", answers.TimedOut),
        ("cut chunked", answers.PartialAnswer), ("cut java", answers.TimedOut),
        ("cut cancelled", answers.TimedOut), ("text appended", answers.TimedOut),
        ("cap", answers.PartialAnswer), ("partial", answers.PartialAnswer),
        ("partial 206", answers.PartialAnswer), ("empty", answers.PartialAnswer),
        ("hole", answers.PageMismatch), ("short page", answers.PageMismatch),
        ("double row", answers.PageMismatch), ("no count", answers.PageMismatch),
        ("count in words", answers.PageMismatch), ("rate nonsense", answers.RateLimited),
        ("html page", answers.ServerTrouble), ("json as html", answers.ServerTrouble),
        ("xml", answers.ServerTrouble),
    ],
)  # fmt: skip
def test_a_persistent_fault_is_reported_and_pages_are_kept(
    fault, cause, faulty, clock, tmp_path, clean
):
    # a slow answer is slow in each attempt
    policy = replace(POLICY, attempts=2 if fault in SLOW else POLICY.attempts)
    faulty.expect(Faults(dict.fromkeys(range(4, 4 + policy.attempts), fault)))
    with pytest.raises(cause) as caught:
        run(faulty, clock, tmp_path, policy)
    message = str(caught.value)
    assert all(part in message for part in (faulty.url, "things.rq", "page 3", "came:", "next:"))
    assert len(pages_kept(tmp_path)) == 2
    assert len(faulty.seen) == 3 + policy.attempts
    assert_manners(faulty)
    bad = list(folder(tmp_path).glob("*.bad"))
    other = ("rate", "status", "reset", "late", "drip", "partial 206", "cut short")
    assert bool(bad) != fault.startswith(other), "a refused body with status 200 is kept"
    assert_whole(tmp_path, run(faulty, clock, tmp_path), clean)
    assert_no_page_twice(faulty)


@pytest.mark.parametrize(
    ("fault", "last", "count", "retried"),
    [("disorder", 19, ROWS, set()), ("partial", 3, None, {"PartialAnswer"}),
     ("rate seconds", 3, ROWS, {"RateLimited"})],
)  # fmt: skip
def test_a_pull_completes_without_order_count_or_haste(
    fault, last, count, retried, faulty, clock, tmp_path, clean
):
    faulty.expect(Faults(dict.fromkeys(range(1, last + 1), fault)))
    snapshot = run(faulty, clock, tmp_path)
    assert_whole(tmp_path, snapshot, clean)
    assert set(snapshot.meta["retries"]) == retried
    assert snapshot.meta["count_before"] == count
    assert count or "PartialAnswer" in snapshot.meta["count_before_reason"]


def test_rows_that_appear_after_the_count_are_pulled(faulty, clock, tmp_path, clean):
    """The graph is edited: pages prove themselves complete, and the count only sets their size."""
    faulty.expect(Faults())
    faulty.hidden = 2
    snapshot = run(faulty, clock, tmp_path)
    assert_whole(tmp_path, snapshot, clean)
    assert snapshot.meta["count_before"] == ROWS - 2


def test_a_page_is_halved_and_later_doubled(faulty, clock, tmp_path, clean):
    faulty.expect(Faults({3: "cap", 4: "cap", 5: "cap"}))
    snapshot = run(faulty, clock, tmp_path)
    assert_whole(tmp_path, snapshot, clean)
    sizes = [page["stop"] - page["start"] for page in snapshot.meta["pages"]]
    whole = sizes[0]
    assert sizes[:12] == [whole] + [whole // 8] * 10 + [whole // 8 * 2]
    pages = snapshot.meta["pages"]
    assert [page["start"] for page in pages[1:]] == [page["stop"] for page in pages[:-1]]
    assert snapshot.meta["waits"]["times"].get("PartialAnswer") is None, "a cap needs no back-off"


def test_a_long_retry_after_stops_the_pull_and_states_when_to_retry(faulty, clock, tmp_path, clean):
    faulty.expect(Faults({4: "rate 7200"}))
    with pytest.raises(answers.RateLimited, match="run again at 2027-01-15"):
        run(faulty, clock, tmp_path)
    assert len(faulty.seen) == 4
    clock.sleep(1)
    run(faulty, clock, tmp_path)
    # the next run keeps waiting, for an hour at most
    assert faulty.seen[4].at - faulty.seen[3].at >= 3600


def test_the_error_budget_pauses_all_pulls_and_ends(faulty, clock, tmp_path, clean):
    patient = replace(POLICY, interval=0.1, read=1, deadline=2, attempts=200)
    faulty.expect(Faults(dict.fromkeys(range(4, 400), "cap")))
    with pytest.raises(answers.BudgetExhausted, match="20 failed answers"):
        run(faulty, clock, tmp_path, patient)
    assert len(faulty.errors) == 4 * BUDGET, "three pauses, then the end"
    assert_manners(faulty, patient)
    faulty.expect(Faults())
    clock.sleep(120)
    assert_whole(tmp_path, run(faulty, clock, tmp_path), clean)


def until_complete(server: FaultServer, clock: FakeClock, data: Path) -> tuple[Snapshot, list[str]]:
    """Rerun after every error, check its message; return the snapshot and the causes."""
    causes: list[str] = []
    while len(causes) < 40:
        try:
            return run(server, clock, data), causes
        except answers.SourceError as error:
            causes.append(type(error).__name__)
            message = str(error)
        said = (server.url, "things.rq", "page " if "page " in message else "count query", "came: ")
        assert all(part in message for part in said), message
        assert not (folder(data) / "meta.json").exists()
        pages_kept(data)
        clock.sleep(61)
    pytest.fail(f"{data.name} did not complete: {causes}")


NIGHTLY = pytest.mark.nightly(gate="contract/test_faults.py::test_random_schedules")


@pytest.mark.parametrize(
    ("first", "last"),
    [(0, 8), (8, 16), *(pytest.param(n, n + 23, marks=NIGHTLY) for n in range(16, 200, 23))],
)
def test_random_schedules(first, last, faulty, clock, tmp_path, clean):
    """Every seed ends with the clean rows, and intermediate errors have complete messages."""
    kinds = [*PASSING * 4, *FATAL, *LIES, *SLOW, *HARMLESS]
    for seed in range(first, last):
        fraction = random.Random(seed).uniform(0.05, 0.6)
        faulty.expect(Faults(seed=seed, share=fraction, kinds=kinds))
        data = tmp_path / str(seed)
        snapshot, _ = until_complete(faulty, clock, data)
        assert_whole(data, snapshot, clean)
        assert_manners(faulty)
        assert_no_page_twice(faulty)

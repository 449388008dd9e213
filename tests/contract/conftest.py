"""Servers that several contract tests share: one of each per session."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from kgprobe.sources.endpoint import local_endpoint
from kgprobe.sources.paging import read_query
from kgprobe.sources.policy import Endpoint
from tests.contract.fault_server import FaultServer, Table

THINGS = Path(__file__).parent / "queries" / "made" / "things.rq"
ROWS = 50_000


class FakeClock:
    """Time that passes only when somebody sleeps."""

    def __init__(self) -> None:
        self.time = 1_800_000_000.0

    def now(self) -> float:
        return self.time

    def sleep(self, seconds: float) -> None:
        self.time += seconds


@pytest.fixture(scope="session")
def many_things(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Endpoint]:
    """A local endpoint with 50,000 named things."""
    file = tmp_path_factory.mktemp("things") / "things.nt"
    label = "<http://www.w3.org/2000/01/rdf-schema#label>"
    with open(file, "w", encoding="utf-8") as stream:
        for number in range(ROWS):
            stream.write(
                f'<http://example.org/{number * 7919 % 1_000_003:07}> {label} "t{number}"@en .\n'
            )
    with local_endpoint([file], log=lambda line: None) as endpoint:
        yield endpoint


@pytest.fixture(scope="session")
def things_table(many_things: Endpoint) -> Table:
    """The rows of the things, in the endpoint's own bytes."""
    query = read_query(THINGS)
    return Table(many_things.url, query.page(0, "", 10 * ROWS))


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def faulty(things_table: Table, clock: FakeClock) -> Iterator[FaultServer]:
    """A fault server before the things, on the fake clock."""
    with FaultServer(things_table, clock.now) as server:
        yield server

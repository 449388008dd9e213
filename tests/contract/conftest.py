"""Session-wide servers that several contract tests share."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from kgprobe.sources.sparql.endpoint import Endpoint
from kgprobe.sources.sparql.paging import read_query
from tests.contract import awkward, virtuoso
from tests.contract.fault_server import FaultServer, Table
from tests.contract.oxigraph import local_endpoint
from tools.world import rdf
from tools.world.build import World

THINGS = Path(__file__).parent / "queries" / "made" / "things.rq"
RESOURCES = Path(__file__).parents[2] / "resources"
ROWS = 10_000


class FakeClock:
    """A clock that advances only during sleeps."""

    def __init__(self) -> None:
        self.time, self.naps = 1_800_000_000.0, list[float]()

    def now(self) -> float:
        return self.time

    def sleep(self, seconds: float) -> None:
        self.naps.append(seconds)
        self.time += seconds


@pytest.fixture(scope="session")
def many_things(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Endpoint]:
    """A local endpoint with 10,000 named things."""
    file = tmp_path_factory.mktemp("things") / "things.nt"
    label = "<http://www.w3.org/2000/01/rdf-schema#label>"
    with open(file, "w", encoding="utf-8") as stream:
        for number in range(ROWS):
            stream.write(
                f'<http://example.org/{number * 7919 % 1_000_003:07}> {label} "t{number}"@en .\n'
            )
    with local_endpoint([file]) as endpoint:
        yield endpoint


@pytest.fixture(scope="session")
def things_table(many_things: Endpoint) -> Table:
    """Return the answers about the things, as the endpoint's original bytes."""
    return Table(many_things.url, read_query(THINGS))


@pytest.fixture(scope="session")
def nationalities(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Endpoint]:
    """A local endpoint with the statements of P27 of test_relations."""
    from tests.contract.test_relations import rdf

    file = tmp_path_factory.mktemp("p27") / "p27.nt"
    file.write_text(rdf(), encoding="utf-8")
    with local_endpoint([file]) as endpoint:
        yield endpoint


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def faulty(things_table: Table, clock: FakeClock) -> Iterator[FaultServer]:
    """A fault server in front of the things, on the fake clock."""
    with FaultServer(things_table, clock.now) as server:
        yield server


@pytest.fixture(scope="session")
def world_files(world: World, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """RDF files of the embedded knowledge graph in both shapes, and of the awkward graph."""
    folder = tmp_path_factory.mktemp("world")
    texts = {
        "wikidata.nt": rdf.render_wikidata(world),
        "dbpedia.nt": rdf.render_dbpedia(world),
        "awkward.nt": awkward.triples(),
    }
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    return [folder / name for name in texts]


@pytest.fixture(scope="session")
def world_endpoint(world_files: list[Path]) -> Iterator[Endpoint]:
    """The embedded knowledge graph, served by Oxigraph."""
    with local_endpoint(world_files) as endpoint:
        yield endpoint


@pytest.fixture(scope="session")
def world_virtuoso(
    world_files: list[Path], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Endpoint]:
    """The embedded knowledge graph, served by Virtuoso with DBpedia's limits."""
    virtuoso.require()
    with virtuoso.serving(tmp_path_factory.mktemp("virtuoso"), world_files) as url:
        yield Endpoint("local", url)

"""Joins on a Spark cluster give the same files as DuckDB."""

import importlib
import sys

import polars as pl
import pytest
import yaml

from kgprobe import schema
from kgprobe.benchmarks.attributes import frames, sensitivity
from kgprobe.benchmarks.attributes.definition import settings_of
from kgprobe.knowledge import facts_trex as knowledge
from kgprobe.knowledge import graph
from kgprobe.knowledge.engine import Engine, EngineError, keys
from kgprobe.knowledge.engine_duckdb import DuckDB
from kgprobe.knowledge.engine_spark import Spark
from kgprobe.sources.dumps import trex
from perf.generate.graph import write_facts
from tests.conftest import ROOT
from tests.contract import spark
from tests.unit.attribute_graphs import integer_keys

pytestmark = pytest.mark.nightly(needs="Java and the extra spark")

#: statements of the generated graph; perf/spark.py compares a million
STATEMENTS = 12_000
#: joins on one side, on both and with literals; perf/spark.py builds the others as well
SOME = ("asymmetry", "composite", "ambiguous")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    spark.require()
    with spark.serving(tmp_path_factory.mktemp("cluster")) as found:
        yield found


@pytest.fixture(scope="module")
def on_spark(cluster, tmp_path_factory):
    with Spark(cluster.master, 1000, tmp_path_factory.mktemp("shared")) as engine:
        yield engine


@pytest.fixture(scope="module")
def facts(tmp_path_factory):
    path = tmp_path_factory.mktemp("facts") / "facts.parquet"
    write_facts(path, STATEMENTS)
    return path


def encoded(engine: Engine, facts, folder) -> dict[str, str]:
    folder.mkdir()
    paths = {name: str(folder / f"{name}.parquet") for name in graph.TABLES}
    graph.write(graph.encode(engine, engine.files([facts])), paths, {})
    return paths


@pytest.fixture(scope="module")
def graphs(on_spark, facts, tmp_path_factory):
    folder = tmp_path_factory.mktemp("graphs")
    with DuckDB() as duckdb:
        return encoded(duckdb, facts, folder / "duckdb"), encoded(on_spark, facts, folder / "spark")


def test_the_graph_has_the_same_bytes(graphs):
    one, other = graphs
    for name in graph.TABLES:
        with open(one[name], "rb") as ours, open(other[name], "rb") as theirs:
            assert ours.read() == theirs.read(), name
    assert pl.read_parquet(one["edges"]).height > STATEMENTS / 2


def small(name: str):
    config = yaml.safe_load((ROOT / "config/config.yaml").read_text())["attributes"]
    return settings_of(config | {"thresholds": "small"}, name)


def files(name: str, engine: Engine, paths, folder) -> dict[str, bytes]:
    """Return the files of a benchmark, as the rule writes them."""
    folder.mkdir(parents=True)
    with engine.temporary():
        made = graph.read(engine, *(paths[table] for table in graph.TABLES[:3]))
        module = importlib.import_module(f"kgprobe.benchmarks.attributes.{name}")
        built = module.build(made, small(name))
        tried = sensitivity.table(module, made, small(name), name == "bidirectional")
        contracts = frames.REPORTS | {
            "examples": frames.EXAMPLES,
            "items": schema.ITEMS,
            "candidates": schema.CANDIDATES,
        }
        for frame, contract in contracts.items():
            schema.write(getattr(built, frame), contract, folder / frame, {})
        schema.write(tried, frames.SENSITIVITY, folder / "sensitivity", {})
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


@pytest.mark.parametrize("name", SOME)
def test_the_benchmark_has_the_same_bytes(name, graphs, on_spark, tmp_path):
    with DuckDB() as duckdb:
        ours = files(name, duckdb, graphs[0], tmp_path / "duckdb")
    theirs = files(name, on_spark, graphs[1], tmp_path / "spark")
    assert pl.read_parquet(tmp_path / "duckdb/items").height
    assert [file for file in ours if ours[file] != theirs[file]] == []


def test_sampling_keys_are_equal_on_every_engine(on_spark):
    """Test vectors of the sampling function, at both ends of its range."""
    rows = pl.DataFrame({"a": [0, 1, 31, (1 << 32) - 1], "b": [0, 65535, 7, 1 << 40]})
    expected = integer_keys([rows["a"].to_numpy(), rows["b"].to_numpy()], 7, "sample").tolist()
    with DuckDB() as duckdb:
        for engine in (duckdb, on_spark):
            table = engine.table(rows)
            found = engine.frame(table.mutate(key=keys(table, 7, ["a", "b"], "sample")))
            sampled = [key + (1 << 63) for key in found.sort("a")["key"]]
            assert sampled == [key for _, key in sorted(zip(rows["a"], expected, strict=True))]


def test_a_job_survives_a_dead_worker(cluster, on_spark, facts, graphs, tmp_path):
    cluster.workers[0].kill()
    again = encoded(on_spark, facts, tmp_path / "again")
    with open(again["edges"], "rb") as ours, open(graphs[0]["edges"], "rb") as theirs:
        assert ours.read() == theirs.read()


def test_a_missing_master_is_reported_at_once(tmp_path):
    spark.require()
    with pytest.raises(EngineError, match="no Spark master answers at spark"):
        Spark("spark://127.0.0.1:9", 1000, tmp_path)
    assert not list(tmp_path.iterdir())


def test_the_error_without_pyspark_says_how_to_install_it(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "pyspark.sql", None)
    with pytest.raises(EngineError, match=r"pip install 'kgprobe\[spark\]'"):
        Spark("local[1]", 1000, tmp_path)


def of_own_ids(engine: Engine, facts, folder) -> dict[str, bytes]:
    """Return the files of a graph with user-defined ids and of a sample of it by id text."""
    folder.mkdir()
    paths = {name: str(folder / name) for name in graph.TABLES}
    with engine.temporary():
        graph.write(graph.encode(engine, engine.files([facts]), own=True), paths, {})
        made = graph.read(engine, *(paths[n] for n in graph.TABLES[:3]), paths["ids"])
        drawn = made.smallest(made.edges, 3, 0, ["s", "o"], ["p"], "drawn")
        found = engine.frame(drawn).sort("p", "s", "o")
        assert found.height
        found.write_csv(folder / "drawn")
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def test_graphs_with_user_defined_ids_have_the_same_bytes(on_spark, tmp_path):
    rows = [("zoo", f"http://x/{n}", f"S{n}", f"r{n % 3}", f"\u00f6/{n % 7}", "O")
            for n in range(60)]  # fmt: skip
    facts = tmp_path / "facts.parquet"
    schema.write(pl.DataFrame(rows, dict(schema.FACTS.columns), orient="row"), schema.FACTS, facts)
    with DuckDB() as duckdb:
        ours = of_own_ids(duckdb, facts, tmp_path / "duckdb")
    theirs = of_own_ids(on_spark, facts, tmp_path / "spark")
    assert [name for name in ours if ours[name] != theirs[name]] == []


def test_facts_of_trex_have_the_same_bytes(on_spark, tmp_path):
    rows = [(n, 36, n + 1 if n % 2 else None, None if n % 2 else f"{n}", None, 1, 1, 1)
            for n in range(1, 50)]  # fmt: skip
    triples = pl.DataFrame(rows, dict(trex.TRIPLES.columns), orient="row")
    named = [(f"{trex.ENTITY}Q{n}", f"name {n}") for n in range(1, 50, 3)]
    labels = pl.DataFrame(named, ["uri", "label"], orient="row")
    for name, build, contract in (
        ("facts", knowledge.of_trex, schema.FACTS),
        ("dates", knowledge.dates, knowledge.DATES),
    ):
        with DuckDB() as duckdb:
            for engine, folder in ((duckdb, "duckdb"), (on_spark, "spark")):
                made = engine.keep(build(engine.table(triples), engine.table(labels)))
                engine.write(made, contract, tmp_path / folder / name)
        ours, theirs = (tmp_path / folder / name for folder in ("duckdb", "spark"))
        assert ours.read_bytes() == theirs.read_bytes()
        assert pl.read_parquet(ours).height > 20

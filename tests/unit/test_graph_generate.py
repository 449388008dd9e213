"""Generated graphs: hubs among the objects, and planted patterns in exact numbers."""

import polars as pl
import pytest

from kgprobe.benchmarks.attributes import ambiguous, bidirectional, composite, hierarchy, symmetry
from kgprobe.schema import FACTS
from perf.generate import graph
from perf.generate.graph import Planted, write_facts
from tests.unit.attribute_graphs import encode, settings

FEW = Planted(pairs=60, inverses=55, chains=40, triangles=110, names=20, obscure=30)


def test_a_generated_graph_has_its_planted_patterns_and_hubs(tmp_path):
    for name in ("one", "two"):
        write_facts(tmp_path / name, 20_000, FEW)
    facts = pl.read_parquet(tmp_path / "one")
    assert facts.equals(pl.read_parquet(tmp_path / "two"))
    assert facts.columns == list(FACTS.columns)
    encoded = encode(facts)
    for module, name, pattern, n in (
        (symmetry, "symmetry", "P26", 60),
        (bidirectional, "bidirectional", "P22~P40", 55),
        (hierarchy, "hierarchy", "P279", 40),
        (composite, "composite", "P7>P8=P9", 110),
        (ambiguous, "ambiguous", "P19", 20),
    ):
        patterns = module.build(encoded, settings(name)).patterns
        assert dict(patterns.select("pattern", "candidates").rows())[pattern] == n
    edges = encoded.frame(encoded.edges)
    # hubs are objects
    into, out = (edges[side].value_counts()["count"].max() for side in "os")
    assert into > 20 * out


def test_edge_count_grows_with_the_size(tmp_path):
    write_facts(tmp_path / "small", 5_000, FEW)
    write_facts(tmp_path / "large", 15_000, FEW)
    small, large = (encode(pl.read_parquet(tmp_path / n)).size for n in ("small", "large"))
    assert 2.2 < large / small < 3.2


def test_planted_and_background_entities_are_disjoint(tmp_path, monkeypatch):
    monkeypatch.setattr(graph, "FIRST_PLANTED", 10_000)
    write_facts(tmp_path / "small", 20_000, FEW)
    with pytest.raises(ValueError, match="30,000 edges"):
        write_facts(tmp_path / "large", 30_000, FEW)

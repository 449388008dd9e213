"""The nine attributes on 631 k real triples, with the paper's thresholds."""

from collections import Counter, defaultdict
from importlib import import_module
from pathlib import Path

import polars as pl
import pytest
import yaml

from kgprobe.benchmarks.attributes import paths
from kgprobe.knowledge import facts
from kgprobe.settings.benchmarks import ATTRIBUTES
from kgprobe.settings.sources import OwnGraph
from kgprobe.settings.types import typed
from kgprobe.sources.graphs.read import read
from tests.unit import attribute_brute as brute
from tests.unit.attribute_graphs import content, encode, settings, triples

pytestmark = [pytest.mark.real, pytest.mark.nightly(needs="the real data in full")]
ROOT = Path(__file__).parents[2]
BARE = {"require_labels": False, "eval_examples": None}


def build(graph, name, **changed):
    module = import_module(f"kgprobe.benchmarks.attributes.{name}")
    return module.build(graph, settings(name, **changed))


@pytest.fixture(scope="module")
def rows(real_data):
    return pl.read_parquet(real_data / "wikidata" / "triples.parquet", columns=["s", "p", "o"])


@pytest.fixture(scope="module")
def graph(rows, real_data):
    own = yaml.safe_load((ROOT / "config/real.yaml").read_text())["sources"]["graphs"]["triples"]
    paths = {
        key: [name.replace("${KGPROBE_DATA}", str(real_data)) for name in own[key]]
        for key in ("files", "labels")
    }
    made = read("triples", typed(OwnGraph, own | paths), ["en"])
    assert made["problems"]["problem"].to_list() == ["missing_label"]
    assert made["facts"]["subject"].n_unique() == rows["s"].n_unique()
    return encode(facts.of_statements(made["facts"]))


@pytest.fixture(scope="module")
def numbers(rows):
    """Return the triples as a set of tuples of numbers, without self-loops."""
    columns = [rows[c].str.slice(1).cast(pl.Int64) for c in ("s", "p", "o")]
    return brute.clean(zip(*columns, strict=True))


def test_the_graph_equals_the_data(graph, numbers):
    counts = graph.counts
    assert (counts["statements"], counts["duplicates"]) == (630_866, 0)
    assert (counts["entities"], counts["labeled"]) == (162_218, 59_288)
    assert counts["edges"] == 630_866 - counts["self_loops"] == len(numbers)
    assert graph.sizes.filter(p=279)["n"].to_list() == [1579]
    degree = brute.degrees(numbers)
    assert dict(content(graph, "entities").select("id", "degree").rows()) == degree


def test_symmetric_predicates_and_pairs(graph, numbers):
    made = build(graph, "symmetry", **BARE, cap_pairs=10**9)
    assert set(triples(made.examples)) == brute.symmetry(numbers, 50, 0.5)
    assert made.patterns.height == 3


def test_one_way_predicates(graph, numbers):
    made = build(graph, "asymmetry", **BARE)
    n = brute.count(numbers)
    both = Counter(p for s, p, o in numbers if (o, p, s) in numbers)
    kept = {p for p in n if n[p] >= 25 and 1 - both[p] / n[p] >= 0.5 and n[p] > both[p]}
    found = dict(made.patterns.select("pattern", "candidates").rows())
    assert found == {f"P{p}": n[p] - both[p] for p in kept}
    caps = dict(made.patterns.select("pattern", "structural").rows())
    assert caps == {pattern: min(100, size) for pattern, size in found.items()}


def test_inverse_pairs(graph, numbers):
    between = defaultdict(list)
    for s, p, o in numbers:
        between[s, o].append(p)
    k: Counter = Counter()
    for (s, o), relations in between.items():
        for p1 in relations:
            k.update((p1, p2) for p2 in between.get((o, s), ()) if p1 < p2)
    n = brute.count(numbers)
    kept = {
        f"P{a}~P{b}": size
        for (a, b), size in k.items()
        if min(n[a], n[b]) >= 50 and size / min(n[a], n[b]) >= 0.5
    }
    made = build(graph, "bidirectional", **BARE)
    assert dict(made.patterns.select("pattern", "candidates").rows()) == kept


def test_chains_of_classes(graph, numbers):
    made = build(graph, "hierarchy", **BARE, n=10**9)
    assert set(triples(made.examples)) == brute.hierarchy({t for t in numbers if t[1] == 279})


def test_triangles_are_counted_as_a_plain_loop_counts_them(graph, numbers):
    inside = brute.category_members(numbers, 10)
    out, between = defaultdict(list), defaultdict(list)
    for s, p, o in numbers:
        if p != 31:
            out[s].append((p, o))
            between[s, o].append(p)
    count: Counter = Counter()
    for a in inside:
        for r1, b in out[a]:
            for r3, c in out[a]:
                if b != c:
                    count.update((r1, r2, r3) for r2 in between.get((b, c), ()))
    made = build(graph, "composite", **BARE)
    found = dict(made.patterns.select("pattern", "candidates").rows())
    assert found == {f"P{a}>P{b}=P{c}": n for (a, b, c), n in count.items()}


def test_paths_are_counted_without_building_them(graph, numbers):
    inside = brute.category_members(numbers, 10)
    out = defaultdict(list)
    for s, p, o in numbers:
        if p != 31:
            out[s].append((p, o))
    count: Counter = Counter()
    for a in inside:
        for r1, b in out[a]:
            count.update((r1, r2) for r2, c in out[b] if c != a and r1 != r2)
    counted = paths.count_paths(graph, settings("paths"))
    assert {(r1, r2): n for r1, r2, n in counted.rows()} == count


def test_obscure_subjects(graph, numbers):
    made = build(graph, "bias", **BARE)
    assert set(triples(made.examples)) == brute.bias(numbers, {21, 30, 91, 140}, 2)


@pytest.mark.parametrize("name", ATTRIBUTES)
def test_each_has_a_hundred_examples_with_labels(graph, name):
    made = build(graph, name)
    sizes = dict(made.sizes.select("build", "examples").rows())
    assert sizes["labeled"] >= 100
    assert sizes["labeled"] <= sizes["structural"]
    assert made.examples["subject_label"].null_count() == 0
    assert made.items["group"].n_unique() == sizes["sampled"]

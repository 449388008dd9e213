"""Each benchmark on small random graphs against brute force over triples, pairs, triangles."""

from collections import Counter

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as limits
from hypothesis import strategies as st

from kgprobe.benchmarks import (
    ambiguous,
    asymmetry,
    bias,
    bidirectional,
    composite,
    entity_centric,
    hierarchy,
    paths,
    symmetry,
)
from kgprobe.benchmarks.graph_examples import EmptyBenchmarkError
from tests.unit import attribute_brute as brute
from tests.unit.attribute_graphs import graph, settings, triples

ALL = 10**6
BARE = {"require_labels": False, "eval_examples": None}
RELATIONS = [17, 21, 26, 30, 31, 279]
run = limits(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True
)


def graphs(nodes=14, most=90):
    """Triples with duplicates and self-loops; few nodes, so that structures close."""
    node = st.integers(1, nodes)
    return st.lists(st.tuples(node, st.sampled_from(RELATIONS), node), min_size=1, max_size=most)


def built(module, name, given_, labels=None, **changed):
    """The examples as a set of tuples of triples; none when the benchmark is empty."""
    try:
        made = module.build(graph(given_, labels), settings(name, **{**BARE, **changed}))
    except EmptyBenchmarkError:
        return []
    return triples(made.examples)


def same(found, expected):
    assert len(found) == len(set(found))
    assert set(found) == set(expected)


@run
@given(graphs(), st.sampled_from([1, 3]), st.sampled_from([0.2, 0.5, 1.0]))
def test_symmetry(given_, least, ratio):
    found = built(symmetry, "symmetry", given_, min_triples=least, ratio=ratio, cap_pairs=ALL)
    same(found, brute.symmetry(brute.clean(given_), least, ratio))


@run
@given(graphs(), st.sampled_from([1, 3]), st.sampled_from([0.2, 0.5, 1.0]), st.booleans())
def test_asymmetry(given_, least, ratio, strict):
    changed = {"min_triples": least, "ratio": ratio, "cap": ALL, "strict": strict}
    found = built(asymmetry, "asymmetry", given_, **changed)
    same(found, brute.asymmetry(brute.clean(given_), least, ratio, strict))


@run
@given(
    graphs(),
    st.sampled_from([1, 4]),
    st.sampled_from([0.1, 0.5]),
    st.sampled_from(["min", "max", "first", "second"]),
)
def test_bidirectional(given_, least, ratio, denominator):
    changed = {"min_triples": least, "ratio": ratio, "denominator": denominator, "cap": ALL}
    found = built(bidirectional, "bidirectional", given_, **changed)
    same(found, brute.bidirectional(brute.clean(given_), least, ratio, denominator))


@run
@given(graphs(8), st.sampled_from(["keep", "drop"]))
def test_hierarchy(given_, direct):
    found = built(hierarchy, "hierarchy", given_, n=ALL, direct=direct)
    same(found, brute.hierarchy(brute.clean(given_), direct))


@run
@given(
    graphs(10),
    st.integers(1, 3),
    st.sampled_from(["a", "all", "any"]),
    st.sampled_from([(31,), (31, 279), ()]),
    st.sampled_from(["auto", 3]),
)
def test_composite(given_, top, member, exclude, buckets):
    changed = {
        "categories": top, "member": member, "exclude": [f"P{p}" for p in exclude], "cap": ALL,
        "min_combo": 1, "buckets": buckets,
    }  # fmt: skip
    found = built(composite, "composite", given_, **changed)
    same(found, brute.composite(brute.clean(given_), top, member, exclude))


@run
@given(graphs(10), st.integers(1, 3), st.booleans(), st.booleans())
def test_paths(given_, top, ends, relations):
    g = brute.clean(given_)
    expected = brute.paths(g, top, {31}, ends, relations)
    changed = {
        "categories": top, "seeds": ALL, "endpoints_differ": ends, "relations_differ": relations,
        "cap": ALL, "min_combo": 1,
    }  # fmt: skip
    same(built(paths, "paths", given_, **changed), expected)
    counted = paths.count_paths(graph(given_), settings("paths", **changed))
    assert {(r1, r2): n for r1, r2, n in counted.rows()} == Counter(
        (one[1], two[1]) for one, two in expected
    )


@run
@given(graphs(6), st.integers(1, 5), st.integers(1, 4))
def test_entity_centric(given_, facts, top):
    expected = brute.entity_centric(brute.clean(given_), facts, top, {31})
    changed = {"facts": facts, "top": top, "entities": ALL, "eval_entities": ALL}
    found = built(entity_centric, "entity_centric", given_, **changed)
    assert {example[0][0] for example in found} == set(expected)
    for example in found:
        assert len(set(example)) == facts
        assert set(example) <= expected[example[0][0]]


@run
@given(graphs(20, 40), st.integers(1, 3))
def test_bias(given_, most):
    found = built(bias, "bias", given_, max_degree=most)
    same(found, brute.bias(brute.clean(given_), {21, 30, 91, 140}, most))


@run
@given(graphs(12), st.integers(2, 5))
def test_ambiguous(given_, names):
    labels = {n: f"name {n % names}" for n in range(1, 15)}
    expected = brute.ambiguous(brute.clean(given_), labels, {17, 30, 279})
    found = built(ambiguous, "ambiguous", given_, labels, examples=ALL)
    keys = [(one[1], one[0], two[0]) for one, two in found]
    same(keys, expected)
    assert all(example in expected[key] for key, example in zip(keys, found, strict=True))


@run
@given(graphs(10), st.integers(1, 4))
def test_caps_take_a_part_of_every_pattern(given_, cap):
    def split(examples):
        return Counter(tuple(t[1] for t in example) for example in examples)

    changed = {"categories": 3, "min_combo": 1}
    everything = built(composite, "composite", given_, **changed, cap=ALL)
    some = built(composite, "composite", given_, **changed, cap=cap)
    assert set(some) <= set(everything)
    assert split(some) == {p: min(n, cap) for p, n in split(everything).items()}


@pytest.mark.parametrize("triples_", [[(1, 279, 2), (2, 279, 1)], [(1, 279, 1)]])
def test_a_cycle_of_two_classes_gives_no_chain(triples_):
    assert built(hierarchy, "hierarchy", triples_) == []


def test_a_cycle_of_three_classes_gives_three_chains():
    assert len(built(hierarchy, "hierarchy", [(1, 279, 2), (2, 279, 3), (3, 279, 1)])) == 3

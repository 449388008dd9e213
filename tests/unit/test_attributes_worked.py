"""The worked example: construction of all nine benchmarks."""

import importlib
from collections import Counter

import pytest

from kgprobe.benchmarks.attributes import paths, symmetry
from kgprobe.benchmarks.attributes.frames import EXAMPLES, PATTERNS, SIZES, STEPS
from kgprobe.schema import CANDIDATES, ITEMS, check
from tests.unit import attribute_brute as brute
from tests.unit.attribute_graphs import (
    LABELS,
    WORKED,
    content,
    encode,
    planted,
    settings,
    triples,
    worked,
)

SMALL = {"min_combo": 1, "categories": 1}
T = WORKED


def of(*groups):
    """Return examples as the numbers of their triples."""
    return sorted((tuple(T[n] for n in group) for group in groups), key=str)


def with_reversed(*numbers):
    """Return pairs of a triple and itself with subject and object exchanged."""
    return sorted(((T[n], T[n][::-1]) for n in numbers), key=str)


def test_degrees():
    graph = worked()
    assert dict(content(graph, "entities").select("id", "degree").rows()) == {
        1: 5, 2: 5, 3: 5, 5: 4, 6: 2, 8: 2, 10: 2, 7: 1, 9: 1, 11: 1, 12: 1, 13: 1,
    }  # fmt: skip


EIGHT_PATHS = of((1, 5), (2, 15), (3, 2), (4, 1), (4, 15), (5, 4), (5, 11), (11, 12))


@pytest.mark.parametrize(
    ("name", "changed", "expected"),
    [
        ("symmetry", {"min_triples": 2}, of((1, 2))),
        ("asymmetry", {"min_triples": 2}, with_reversed(6, 7, 8, 9, 10, 11, 13, 14, 15)),
        ("asymmetry", {"min_triples": 1}, with_reversed(*range(3, 16))),
        ("bidirectional", {"min_triples": 1}, of((3, 5))),
        ("hierarchy", {}, [(T[9], T[10], (5, brute.TWO_HOP, 7))]),
        ("composite", SMALL, of((3, 2, 4), (4, 1, 3), (5, 4, 2))),
        ("paths", {**SMALL, "count_on": "seeds"}, EIGHT_PATHS),
        ("paths", {**SMALL, "count_on": "graph"}, EIGHT_PATHS),
        ("entity_centric", {"facts": 3}, [(T[3], T[4], T[11])]),
        ("bias", {}, of((14,))),
        ("ambiguous", {}, of((11, 13))),
    ],
)
def test_examples_of_the_note(name, changed, expected):
    module = importlib.import_module(f"kgprobe.benchmarks.attributes.{name}")
    made = module.build(worked(), settings(name, **changed))
    frames = (made.examples, EXAMPLES), (made.items, ITEMS), (made.candidates, CANDIDATES)
    reports = (made.steps, STEPS), (made.patterns, PATTERNS), (made.sizes, SIZES)
    for frame, contract in (*frames, *reports):
        check(frame.select(list(contract.columns)), contract)
    found = triples(made.examples)
    if name == "entity_centric":  # whose facts are drawn in any order
        found = [tuple(sorted(example, key=list(T.values()).index)) for example in found]
    assert found == expected


@pytest.mark.parametrize("relations", [True, False])
@pytest.mark.parametrize("endpoints", [True, False])
def test_paths_are_counted_without_building_them(endpoints, relations):
    """Counts per pair of relations equal those of loops over three planted graphs."""
    for seed in range(3):
        frame = planted(seed)
        g = brute.world(frame).g
        every = brute.paths(g, brute.category_members(g, 2), {31}, endpoints, relations)
        count = Counter((one[1], two[1]) for one, two in every)
        differ = {"endpoints_differ": endpoints, "relations_differ": relations}
        made = paths.count_paths(encode(frame), settings("paths", categories=2, **differ))
        assert made.rows() == sorted((*pair, n) for pair, n in count.items())
        assert count


def test_items_contain_labels():
    made = symmetry.build(worked(), settings("symmetry", min_triples=2))
    assert made.items["subject"].to_list() == [LABELS[1], LABELS[2]]
    options = dict(made.candidates.select("index", "label").rows())
    assert [options[a[0]] for a in made.items["answers"]] == [LABELS[2], LABELS[1]]
    assert made.items["group"].unique().to_list() == ["symmetry/P26/Q1/Q2"]

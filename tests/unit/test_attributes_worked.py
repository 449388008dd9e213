"""The worked example: construction of all nine benchmarks."""

from collections import Counter

import pytest

from kgprobe.benchmarks.attributes import (
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


def built(module, name, **changed):
    made = module.build(worked(), settings(name, **changed))
    for frame, contract in (
        (made.examples, EXAMPLES),
        (made.items, ITEMS),
        (made.candidates, CANDIDATES),
        (made.steps, STEPS),
        (made.patterns, PATTERNS),
        (made.sizes, SIZES),
    ):
        check(frame.select(list(contract.columns)), contract)
    return made.examples


def of(*groups):
    """Return examples as the numbers of their triples."""
    return sorted((tuple(T[n] for n in group) for group in groups), key=str)


def turned(n):
    s, p, o = T[n]
    return (o, p, s)


def test_degrees():
    graph = worked()
    assert dict(content(graph, "entities").select("id", "degree").rows()) == {
        1: 5, 2: 5, 3: 5, 5: 4, 6: 2, 8: 2, 10: 2, 7: 1, 9: 1, 11: 1, 12: 1, 13: 1,
    }  # fmt: skip


def test_symmetry():
    examples = built(symmetry, "symmetry", min_triples=2)
    assert triples(examples) == of((1, 2))
    assert examples["example"].unique().to_list() == ["symmetry/P26/Q1/Q2"]
    assert examples["role"].to_list() == ["forward", "backward"]


def test_asymmetry():
    for least, numbers in ((2, [6, 7, 8, 9, 10, 11, 13, 14, 15]), (1, list(range(3, 16)))):
        examples = built(asymmetry, "asymmetry", min_triples=least)
        assert triples(examples) == sorted(((T[n], turned(n)) for n in numbers), key=str)
    assert set(examples["origin"]) == {"stored", "reversed"}
    assert all(len(g) == 1 for g in examples.filter(role="reversed")["golds"])


def test_bidirectional():
    examples = built(bidirectional, "bidirectional", min_triples=1)
    assert triples(examples) == of((3, 5))
    assert examples["pattern"].unique().to_list() == ["P22~P40"]


def test_hierarchy():
    examples = built(hierarchy, "hierarchy")
    assert triples(examples) == [(T[9], T[10], (5, brute.TWO_HOP, 7))]
    assert examples["flags"].list.len().sum() == 0
    assert examples["origin"].to_list() == ["stored", "stored", "inferred"]


def test_composite():
    examples = built(composite, "composite", **SMALL)
    assert triples(examples) == of((3, 2, 4), (4, 1, 3), (5, 4, 2))
    assert set(examples["pattern"]) == {"P22>P26=P25", "P25>P26=P22", "P40>P25=P26"}
    assert built(composite, "composite", **SMALL, exclude=[])["example"].n_unique() == 8


@pytest.mark.parametrize("count_on", ["seeds", "graph"])
def test_paths(count_on):
    eight = of((1, 5), (2, 15), (3, 2), (4, 1), (4, 15), (5, 4), (5, 11), (11, 12))
    assert triples(built(paths, "paths", **SMALL, count_on=count_on)) == eight
    loose = {"endpoints_differ": False, "count_on": count_on}
    assert built(paths, "paths", **SMALL, **loose)["example"].n_unique() == 10
    loose["relations_differ"] = False
    assert built(paths, "paths", **SMALL, **loose)["example"].n_unique() == 12


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


def test_entity_centric():
    examples = built(entity_centric, "entity_centric", facts=3)
    assert set(triples(examples)[0]) == {T[3], T[4], T[11]}
    assert examples["example"].unique().to_list() == ["entity_centric/Q3"]
    assert examples["role"].to_list() == ["fact"] * 3


def test_bias():
    assert triples(built(bias, "bias")) == of((14,))


def test_ambiguous():
    examples = built(ambiguous, "ambiguous")
    assert triples(examples) == of((11, 13))
    assert examples["subject_label"].to_list() == ["Cid", "Cid"]
    assert examples["subject_degree"].to_list() == [5, 2]
    assert examples["flags"].list.len().sum() == 0


def test_items_contain_labels():
    made = symmetry.build(worked(), settings("symmetry", min_triples=2))
    assert made.items["subject"].to_list() == [LABELS[1], LABELS[2]]
    options = dict(made.candidates.select("index", "label").rows())
    assert [options[a[0]] for a in made.items["answers"]] == [LABELS[2], LABELS[1]]
    assert made.items["group"].unique().to_list() == ["symmetry/P26/Q1/Q2"]

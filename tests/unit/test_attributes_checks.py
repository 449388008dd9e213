"""Examples that break an invariant are refused with the row."""

import polars as pl
import pytest

from kgprobe.benchmarks import ambiguous, asymmetry, bias, hierarchy, symmetry
from kgprobe.benchmarks.graph import GraphError
from kgprobe.benchmarks.graph_checks import check_examples
from tests.unit.attribute_graphs import graph, settings, worked

DATES = [(1, 569, "1970-01-22T00:00:00Z^^date")]


def made(module, name, **changed):
    chosen = settings(name, **changed)
    return module.build(worked(), chosen).examples, chosen


@pytest.mark.parametrize(
    ("module", "name", "changed"),
    [
        (symmetry, "symmetry", {"min_triples": 2}),
        (asymmetry, "asymmetry", {"min_triples": 1}),
        (hierarchy, "hierarchy", {}),
        (bias, "bias", {}),
        (ambiguous, "ambiguous", {}),
    ],
    ids=lambda v: str(v)[:12],
)
def test_sound_examples_pass_and_incomplete_ones_do_not(module, name, changed):
    examples, chosen = made(module, name, **changed)
    check_examples(examples, worked(), chosen)
    if name != "bias":
        with pytest.raises(GraphError, match="roles are not"):
            check_examples(examples.filter(pl.col("position") == 0), worked(), chosen)


def test_literals_are_stored_and_their_reversal_is_not():
    given = graph([(1, 26, 2)], literals=DATES)
    chosen = settings("asymmetry", min_triples=1)
    check_examples(asymmetry.build(given, chosen).examples, given, chosen)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"object": pl.col("subject")}, "a loop"),
        ({"golds": pl.lit(["Q99"])}, "golds lack"),
        ({"predicate": pl.lit("P25")}, "not in the graph"),
        ({"origin": pl.lit("reversed")}, "is in the graph"),
    ],
    ids=["loop", "golds", "stored", "reversed"],
)
def test_wrong_triples_are_named(changed, message):
    examples, chosen = made(symmetry, "symmetry", min_triples=2)
    with pytest.raises(GraphError, match=message):
        check_examples(examples.with_columns(**changed), worked(), chosen)


def test_wrong_benchmarks_are_named():
    examples, chosen = made(hierarchy, "hierarchy")
    wrong = pl.when(pl.col("role") == "two_up").then(pl.lit("Q5")).otherwise("object")
    with pytest.raises(GraphError, match=r"two_up|loop"):
        check_examples(examples.with_columns(object=wrong), worked(), chosen)
    examples, chosen = made(bias, "bias")
    with pytest.raises(GraphError, match="well connected"):
        check_examples(examples, worked(), {**chosen, "max_degree": 1})
    examples, chosen = made(ambiguous, "ambiguous")
    flat = examples.with_columns(subject_degree=pl.lit(3, dtype=pl.Int64))
    with pytest.raises(GraphError, match="better known"):
        check_examples(flat, worked(), chosen)

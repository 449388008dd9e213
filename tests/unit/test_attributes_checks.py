"""Examples that break an invariant raise an error that shows the row."""

import polars as pl
import pytest

from kgprobe.benchmarks.attributes import ambiguous, asymmetry, bias, hierarchy, symmetry
from kgprobe.benchmarks.attributes.checks import check_examples
from kgprobe.knowledge.ids import GraphError
from kgprobe.schema import FACTS
from tests.unit.attribute_graphs import LABELS, encode, graph, settings, worked


def made(module, name, **changed):
    chosen = settings(name, **changed)
    return module.build(worked(), chosen).examples, chosen


@pytest.mark.parametrize(
    ("module", "name", "changed"),
    [
        (symmetry, "symmetry", {"min_triples": 2}), (asymmetry, "asymmetry", {"min_triples": 1}),
        (hierarchy, "hierarchy", {}), (bias, "bias", {}), (ambiguous, "ambiguous", {}),
    ], ids=lambda v: str(v)[:12],
)  # fmt: skip
def test_valid_examples_pass_and_incomplete_ones_raise(module, name, changed):
    examples, chosen = made(module, name, **changed)
    check_examples(examples, worked(), chosen)
    if name != "bias":
        with pytest.raises(GraphError, match="roles are not"):
            check_examples(examples.filter(pl.col("position") == 0), worked(), chosen)


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
def test_wrong_triples_are_reported(changed, message):
    """The error shows the first wrong row."""
    examples, chosen = made(symmetry, "symmetry", min_triples=2)
    with pytest.raises(GraphError, match=rf"^2 rows.*{message}.*'position': 0"):
        check_examples(examples.with_columns(**changed), worked(), chosen)


def test_missing_positions_are_reported_with_the_first_example():
    given = graph((n, 26, n + 1) for n in range(10, 50))
    chosen = settings("asymmetry", min_triples=1)
    examples = asymmetry.build(given, chosen).examples
    differences = examples.with_columns(pl.col("position") + 1)
    with pytest.raises(GraphError, match=r"^40 rows.*positions have gaps.*asymmetry/P26/Q10/Q11"):
        check_examples(differences.sample(fraction=1, shuffle=True, seed=1), given, chosen)


@pytest.mark.parametrize(
    ("role", "side", "other"),
    [("two_hop", "object", "Q8"), ("two_hop", "subject", "Q8"), ("hop2", "subject", "Q11")],
)
def test_two_hop_object_ends_the_two_steps(role, side, other):
    """5 -> 6 -> 7, and 11 -> 7: each end is replaced in turn."""
    given = graph([(5, 279, 6), (6, 279, 7), (11, 279, 7)])
    chosen = settings("hierarchy")
    examples = hierarchy.build(given, chosen).examples
    check_examples(examples, given, chosen)
    wrong = pl.when(pl.col("role") == role).then(pl.lit(other)).otherwise(side).alias(side)
    golds = pl.concat_list("golds", pl.lit(other))
    with pytest.raises(GraphError, match="two_hop is not the two steps"):
        check_examples(examples.with_columns(wrong, golds=golds), given, chosen)


def test_sizes_count_triples_by_pattern_and_labeled_triples():
    """Two marriages, a border and a pair of twin towns, in both directions."""
    pairs = [(1, 26, 2), (3, 26, 4), (5, 47, 6), (7, 190, 8)]
    given = graph([*pairs, *((o, p, s) for s, p, o in pairs)])
    known = ["P190", "P26", "P47"]
    chosen = settings("symmetry", min_triples=1, templates=known, by_label=known)
    made = symmetry.build(given, chosen)
    names = ("examples", "triples", "patterns", "by_label", "written", "entities")
    sizes = made.sizes.filter(build="structural")
    assert sizes.select(*names, "triples_per_pattern").rows() == [(4, 8, 3, 3, 0, 8, 8 / 3)]
    step = made.steps.filter(pl.col("step").str.contains("worded by")).row(0, named=True)
    assert (step["kept"], step["reason"]) == (8, "P26 (4), P190 (2), P47 (2)")


def test_wrong_benchmarks_are_reported():
    examples, _ = made(bias, "bias")
    with pytest.raises(GraphError, match="well connected"):
        check_examples(examples, worked(), settings("bias", max_degree=1))
    # when literals count, the degree in the row is not the one that the setting limits
    check_examples(examples, worked(), settings("bias", max_degree=1, literal_edges=True))


def test_invalid_ambiguous_pairs_are_reported():
    examples, chosen = made(ambiguous, "ambiguous")
    flat = examples.with_columns(subject_degree=pl.lit(3, dtype=pl.Int64))
    with pytest.raises(GraphError, match="better known"):
        check_examples(flat, worked(), chosen)
    # AmbER sets mark the head themselves
    check_examples(flat, worked(), settings("ambiguous", source="amber"))
    head = pl.col("role") == "head"
    named = examples.with_columns(
        subject_label=pl.when(head).then(pl.lit("cid")).otherwise("subject_label")
    )
    with pytest.raises(GraphError, match="different names"):
        check_examples(named, worked(), chosen)
    check_examples(named, worked(), settings("ambiguous", fold_case=True))
    given = graph([(3, 19, 8), (3, 20, 8), (10, 19, 11), (3, 21, 9)], LABELS)
    other = examples.with_columns(
        predicate=pl.when(head).then(pl.lit("P20")).otherwise("predicate")
    )
    with pytest.raises(GraphError, match="differ in relation"):
        check_examples(other, given, chosen)


def test_two_examples_with_one_name_are_reported():
    pairs = [("a/b", "c"), ("a", "b/c")]
    rows = [("zoo", s, s, "near", o, o) for one in pairs for s, o in (one, one[::-1])]
    given = encode(pl.DataFrame(rows, schema=dict(FACTS.columns), orient="row"), own=True)
    chosen = settings("symmetry", min_triples=1)
    examples = symmetry.build(given, chosen).examples
    with pytest.raises(GraphError, match=r"two examples have one name.*symmetry/near/a/b/c"):
        check_examples(examples, given, chosen)

"""Check all examples of an attribute before they are written."""

from collections.abc import Iterator

import polars as pl

from kgprobe.benchmarks.attributes.construct import BuiltAttribute
from kgprobe.benchmarks.attributes.definition import AttributeSettings
from kgprobe.knowledge.graph import Graph
from kgprobe.knowledge.ids import GraphError
from kgprobe.settings.benchmarks import Ambiguous, Bias

#: roles of a complete example, in order; entity_centric only has facts
ROLES = {
    "symmetry": ["forward", "backward"],
    "asymmetry": ["forward", "reversed"],
    "bidirectional": ["first", "inverse"],
    "hierarchy": ["hop1", "hop2", "two_hop"],
    "composite": ["first", "second", "closing"],
    "paths": ["hop1", "hop2"],
    "bias": ["fact"],
    "ambiguous": ["head", "tail"],
}


def check_parts(benchmark: BuiltAttribute) -> Iterator[pl.DataFrame]:
    """Yield EXAMPLES in order, in parts, each checked by `check_examples`."""
    for part in benchmark.parts():
        check_examples(part, benchmark.setup.graph, benchmark.setup.settings)
        yield part


def check_examples(
    examples: pl.DataFrame, graph: Graph, settings: AttributeSettings[object]
) -> None:
    """Raise GraphError, with the first wrong row, unless EXAMPLES of one benchmark are valid.

    Roles are complete, no triple is a loop, stored triples are in the graph and reversed ones are
    not, two_hop is two steps of P279, golds contain the object; bias has obscure subjects,
    ambiguous pairs share name and relation, and their head has the higher degree.
    """
    name, section = examples["benchmark"][0], settings.section
    _refuse(examples.filter(pl.col("subject") == pl.col("object")), "a triple is a loop")
    wrong = examples.filter(~pl.col("golds").list.contains(pl.col("object")))
    _refuse(wrong, "golds lack the object")
    _check_graph(examples.filter(pl.col("predicate") != graph.relations.two_hop), graph)
    _check_roles(examples, name)
    if name == "hierarchy":
        _check_two_hop(examples)
    if isinstance(section, Bias) and not section.literal_edges:
        known_well = pl.col("subject_degree") > section.max_degree
        _refuse(examples.filter(known_well), "the subject is well connected")
    if isinstance(section, Ambiguous) and section.source == "labels":
        _check_names(examples, section)


def _check_graph(examples: pl.DataFrame, graph: Graph) -> None:
    numbers = graph.entity_numbers(examples["subject"].unique())
    # a literal as the subject of a reversed triple has no number
    rows = examples.with_columns(
        s=pl.col("subject").replace_strict(numbers or {"": 0}, default=None, return_dtype=pl.Int64),
        p=graph.relations.numbers_of(examples["predicate"]),
    )
    pairs = graph.engine.table(rows.select("s", "p").drop_nulls().unique())
    statements = graph.frame(graph.statements.semi_join(pairs, ["s", "p"]))
    texts = graph.texts(statements["o"]).select(o="n", object="id")
    statements = statements.join(texts, on="o")
    key = ["s", "p", "object"]
    stored, turned = rows.filter(origin="stored"), rows.filter(origin="reversed")
    wrong = stored.join(statements, on=key, how="anti")
    _refuse(wrong, "a stored triple is not in the graph")
    wrong = turned.join(statements, on=key, how="semi")
    _refuse(wrong, "a reversed triple is in the graph")


def _check_roles(examples: pl.DataFrame, name: str) -> None:
    twice = examples.filter(pl.struct("example", "position").is_duplicated())
    what = "two examples have one name, in which / separates ids; rename ids that contain one"
    _refuse(twice, what)
    rows = examples.sort("position").group_by("example").agg("role", "position").sort("example")
    wrong = rows.filter(pl.col("position") != pl.int_ranges(pl.col("role").list.len()))
    _refuse(wrong, "positions have gaps")
    if name in ROLES:
        wrong = rows.filter(pl.col("role").list.join(" ") != " ".join(ROLES[name]))
        _refuse(wrong, f"roles are not {ROLES[name]}")


def _check_two_hop(examples: pl.DataFrame) -> None:
    steps = {role: examples.filter(role=role) for role in ROLES["hierarchy"]}
    ends = steps["hop1"].select("example", x="subject", y="object")
    ends = ends.join(steps["hop2"].select("example", y2="subject", z="object"), on="example")
    up = steps["two_hop"].select("example", x2="subject", z2="object")
    apart = (pl.col("y") != pl.col("y2")) | (pl.col("x") != pl.col("x2"))
    wrong = ends.join(up, on="example").filter(apart | (pl.col("z") != pl.col("z2")))
    _refuse(wrong, "two_hop is not the two steps")


def _check_names(examples: pl.DataFrame, section: Ambiguous) -> None:
    columns = ["example", "predicate", "subject_label", "subject_degree"]
    head, tail = (examples.filter(role=role).select(columns) for role in ROLES["ambiguous"])
    pairs = head.join(tail, on="example", suffix="_tail")
    wrong = pairs.filter(
        (pl.col("predicate") != pl.col("predicate_tail"))
        | (pl.col("subject_degree") <= pl.col("subject_degree_tail"))
    )
    _refuse(wrong, "head and tail differ in relation, or the head is not the better known")
    if not section.fold_case:
        wrong = pairs.filter(pl.col("subject_label") != pl.col("subject_label_tail"))
        _refuse(wrong, "head and tail have different names")


def _refuse(wrong: pl.DataFrame, what: str) -> None:
    if wrong.height:
        row = {k: v for k, v in wrong.row(0, named=True).items() if k != "golds"}
        raise GraphError(f"{wrong.height} rows of the examples are wrong: {what}; first {row}")

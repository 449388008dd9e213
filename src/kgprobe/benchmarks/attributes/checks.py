"""What must hold of every example before it is written."""

from collections.abc import Collection, Iterator
from types import ModuleType

import polars as pl

from kgprobe.benchmarks.attributes.examples import MissingTemplatesError
from kgprobe.benchmarks.attributes.items import AttributeSet
from kgprobe.benchmarks.attributes.settings import AttributeSettings
from kgprobe.knowledge.engine import counted
from kgprobe.knowledge.graph import Graph
from kgprobe.knowledge.ids import GraphError, decode_ids
from kgprobe.settings import Ambiguous, Bias

#: roles of a complete example, in order; entity_centric has facts only
ROLES = {
    "symmetry": ["forward", "backward"],
    "asymmetry": ["forward", "reversed"],
    "bidirectional": ["first", "inverse"],
    "hierarchy": ["hop1", "hop2", "two_up"],
    "composite": ["first", "second", "closing"],
    "paths": ["hop1", "hop2"],
    "bias": ["fact"],
    "ambiguous": ["head", "tail"],
    "two_steps": ["hop1", "hop2", "two_steps"],
}


def build(module: ModuleType, graph: Graph, settings: AttributeSettings[object]) -> AttributeSet:
    """The benchmark of `module`; `sound` are its examples.

    A MissingTemplatesError lists beside the benchmark's own relations all those of the graph, so
    that the other benchmarks bring no new ones.
    """
    try:
        made: AttributeSet = module.build(graph, settings)
    except MissingTemplatesError as error:
        lacking = without_template(graph, settings.templates or ())
        listed = ", ".join(f"{name} ({n})" for name, n in lacking)
        raise MissingTemplatesError(
            f"{error}\nin the whole graph {len(lacking)} relations with labelled statements have "
            f"none (number of statements in brackets): {listed}"
        ) from error
    return made


def sound(made: AttributeSet) -> Iterator[pl.DataFrame]:
    """EXAMPLES in order, a part at a time, each as it should be (`check_examples`)."""
    for part in made.parts():
        check_examples(part, made.graph, made.settings)
        yield part


def without_template(graph: Graph, known: Collection[str]) -> list[tuple[str, int]]:
    """(relation, labelled statements) of the graph's relations without template, most first."""
    ids = graph.labelled
    edges = graph.edges.semi_join(ids, [("s", "id")]).semi_join(ids, [("o", "id")])
    dated = graph.literals.semi_join(ids, [("s", "id")])
    counts = graph.frame(counted(edges.select("p").union(dated.select("p")), ["p"])).rows()
    named = ((graph.ids.relation(p), n) for p, n in counts)
    lacking = [(name, n) for name, n in named if name not in known]
    return sorted(lacking, key=lambda pair: (-pair[1], pair[0]))


def check_examples(
    examples: pl.DataFrame, graph: Graph, settings: AttributeSettings[object]
) -> None:
    """Raise GraphError, with the first wrong row, unless EXAMPLES of one benchmark are sound.

    Roles are complete, no triple is a loop, stored triples are in the graph and reversed ones are
    not, two_up is two steps of P279, golds contain the object; bias has obscure subjects, ambiguous
    pairs share name and relation and their head is the better known.
    """
    name, own = examples["benchmark"][0], settings.own
    numbered = _numbered(examples, graph)
    _refuse(numbered.filter(pl.col("subject") == pl.col("object")), "a triple is a loop")
    _refuse(
        numbered.filter(~pl.col("golds").list.contains(pl.col("object"))), "golds lack the object"
    )
    asked = graph.engine.table(numbered.select("s", "p").drop_nulls().unique())
    some = (part.semi_join(asked, ["s", "p"]) for part in (graph.edges, graph.literals))
    stored_edges, values = (graph.frame(part) for part in some)
    named = decode_ids("o", graph.ids.entities(stored_edges["o"].unique().to_list()))
    edges = pl.concat(
        [
            stored_edges.select("s", "p", object=named),
            values.select("s", "p", object="value"),
        ]
    )
    known = numbered.filter(pl.col("predicate") != graph.ids.two_up)
    key = ["s", "p", "object"]
    stored = known.filter(pl.col("origin") == "stored")
    _refuse(stored.join(edges, on=key, how="anti"), "a stored triple is not in the graph")
    turned = known.filter(pl.col("origin") == "reversed")
    _refuse(turned.join(edges, on=key, how="semi"), "a reversed triple is in the graph")
    _check_roles(numbered, name)
    if name == "hierarchy":
        _check_two_up(numbered)
    if isinstance(own, Bias) and not own.literal_edges:
        known_well = pl.col("subject_degree") > own.max_degree
        _refuse(numbered.filter(known_well), "the subject is well connected")
    if isinstance(own, Ambiguous) and own.source == "labels":
        _check_names(numbered, own)


_NUMBERS = {"subject": pl.String, "s": pl.Int64}


def _numbered(examples: pl.DataFrame, graph: Graph) -> pl.DataFrame:
    known = graph.ids.entity_numbers(examples["subject"].unique().to_list())
    # a literal that is asked about the other way round has no number
    numbers = pl.DataFrame({"subject": known.keys(), "s": known.values()}, schema=_NUMBERS)
    numbered = examples.join(numbers, on="subject", how="left", maintain_order="left")
    return numbered.with_columns(p=graph.ids.predicates("predicate"))


def _check_roles(examples: pl.DataFrame, name: str) -> None:
    made = examples.sort("position").group_by("example").agg("role", "position").sort("example")
    counted = pl.int_ranges(pl.col("role").list.len())
    _refuse(made.filter(pl.col("position") != counted), "positions have gaps")
    if name in ROLES:
        wrong = made.filter(pl.col("role").list.join(" ") != " ".join(ROLES[name]))
        _refuse(wrong, f"roles are not {ROLES[name]}")


def _check_two_up(examples: pl.DataFrame) -> None:
    steps = {role: examples.filter(role=role) for role in ROLES["hierarchy"]}
    ends = steps["hop1"].select("example", x="subject", y="object")
    ends = ends.join(steps["hop2"].select("example", y2="subject", z="object"), on="example")
    up = steps["two_up"].select("example", x2="subject", z2="object")
    apart = (pl.col("y") != pl.col("y2")) | (pl.col("x") != pl.col("x2"))
    wrong = ends.join(up, on="example").filter(apart | (pl.col("z") != pl.col("z2")))
    _refuse(wrong, "two_up is not the two steps")


def _check_names(examples: pl.DataFrame, own: Ambiguous) -> None:
    columns = ["example", "predicate", "subject_label", "subject_degree"]
    head, tail = (examples.filter(role=role).select(columns) for role in ROLES["ambiguous"])
    pairs = head.join(tail, on="example", suffix="_tail")
    _refuse(
        pairs.filter(
            (pl.col("predicate") != pl.col("predicate_tail"))
            | (pl.col("subject_degree") <= pl.col("subject_degree_tail"))
        ),
        "head and tail differ in relation, or the head is not the better known",
    )
    if not own.fold_case:
        other = pairs.filter(pl.col("subject_label") != pl.col("subject_label_tail"))
        _refuse(other, "head and tail have different names")


def _refuse(wrong: pl.DataFrame, what: str) -> None:
    if wrong.height:
        row = {k: v for k, v in wrong.row(0, named=True).items() if k != "golds"}
        raise GraphError(f"{wrong.height} rows of the examples are wrong: {what}; first {row}")

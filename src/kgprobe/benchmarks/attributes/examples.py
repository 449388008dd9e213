"""Examples of an attribute: their triples, and their text with labels and golds (EXAMPLES)."""

from collections.abc import Iterator

import polars as pl

from kgprobe.benchmarks.attributes.definition import Setup
from kgprobe.benchmarks.attributes.frames import EXAMPLES
from kgprobe.knowledge.graph import Graph

#: relations for which LAMA has the same template
SAME_TEXT = ("P17", "P30", "P131", "P276")
#: maximum number of golds listed: an entity may have a million objects in one relation
MAX_GOLDS = 1000
#: number of examples that are verbalized at a time
PART = 100_000
FACT = ["s", "predicate", "o", "origin"]


def in_parts(setup: Setup[object], candidates: pl.DataFrame, size: int) -> Iterator[pl.DataFrame]:
    """Yield candidates of whole patterns, `size` or more at a time, in the order of examples."""
    definition = setup.definition
    if definition.is_group:
        yield candidates
        return
    relations = list(definition.relations)
    sizes = candidates.group_by(relations).agg(pl.len().alias("n"))
    sizes = definition.with_pattern(sizes, setup.graph)
    # in an example's name, the pattern is followed by a slash
    order = sizes.sort(pl.col("pattern") + "/")
    before = order["n"].cum_sum() - order["n"]
    order = order.select(*relations, part=before // size)
    for patterns in order.partition_by("part", maintain_order=True, include_key=False):
        yield candidates.join(patterns, on=relations, how="semi")


def lengthen(setup: Setup[object], candidates: pl.DataFrame) -> pl.DataFrame:
    """Return one row per triple, with s and o as numbers and the candidate's own columns."""
    definition, graph = setup.definition, setup.graph
    wide = definition.with_pattern(candidates, graph)
    position = pl.lit(0, pl.Int32)
    if definition.is_group:
        wide = wide.sort(*definition.entities, *definition.relations, *definition.numbers)
        position = pl.int_range(pl.len(), dtype=pl.Int32).over(definition.entities)
    parts = []
    for place, triple in enumerate(definition.triples):
        predicate: pl.Expr = pl.lit(triple.p)
        if triple.p in definition.relations:
            predicate = pl.lit(graph.relations.names_of(wide[triple.p]))
        parts.append(
            wide.with_columns(
                benchmark=pl.lit(definition.benchmark),
                position=position + place,
                role=pl.lit(triple.role),
                origin=pl.lit(triple.origin),
                predicate=predicate,
                **{f"_{side}": pl.col(getattr(triple, side)) for side in ("s", "o")},
            )
        )
    return pl.concat(parts)


def verbalize(setup: Setup[object], candidates: pl.DataFrame) -> pl.DataFrame:
    """Return candidates as EXAMPLES."""
    definition, graph = setup.definition, setup.graph
    rows = lengthen(setup, _with_flags(setup, candidates))
    rows = rows.rename({"_s": "subject_n", "_o": "object_n"})
    golds = _golds(rows.select(s="subject_n", o="object_n", predicate="predicate", origin="origin"),
                   graph)  # fmt: skip
    used = pl.concat([*(candidates[c] for c in definition.numbers), golds["gold"]])
    texts = graph.texts(used)
    ids = [pl.col(c).replace_strict(texts["n"], texts["id"]) for c in definition.entities]
    pattern = [] if definition.is_group else ["pattern"]
    rows = rows.with_columns(
        example=pl.concat_str("benchmark", *pattern, *ids, separator="/"),
        object_kind=pl.when(pl.col("object_n") < 0).then(pl.lit("literal"))
        .otherwise(pl.lit("entity")),
        predicate_label=pl.col("predicate").replace_strict(
            dict(setup.settings.labels), default=None, return_dtype=pl.String
        ),
    )  # fmt: skip
    for side in ("subject", "object"):
        named = texts.select(
            pl.col("n").alias(f"{side}_n"),
            pl.col("id").alias(side),
            pl.col("text").alias(f"{side}_label"),
            pl.col("degree").alias(f"{side}_degree"),
        )
        rows = rows.join(named, on=f"{side}_n", how="left")
    listed = golds.join(texts.select(gold="n", id="id", text="text"), on="gold", how="left",
                        maintain_order="left")  # fmt: skip
    lists = listed.group_by(FACT).agg(golds="id", gold_labels="text")
    keys = {"s": "subject_n", "o": "object_n"}
    rows = rows.join(lists.rename(keys), on=[keys.get(name, name) for name in FACT], how="left")
    return rows.select(list(EXAMPLES.columns)).sort(list(EXAMPLES.key))


def _with_flags(setup: Setup[object], candidates: pl.DataFrame) -> pl.DataFrame:
    """Add `flags`: the candidate's own, and same_text if two of its relations share a template."""
    flags = [pl.col("flag") if "flag" in candidates.columns else pl.lit(None, pl.String)]
    if setup.name in ("composite", "paths"):
        alike = setup.graph.relations.numbers(SAME_TEXT)
        matches = [pl.any_horizontal(pl.col(setup.definition.relations) == p) for p in alike]
        several = pl.sum_horizontal(matches or [pl.lit(0)]) > 1
        flags.append(pl.when(several).then(pl.lit("same_text")))
    return candidates.with_columns(flags=pl.concat_list(flags).list.drop_nulls())


def _golds(rows: pl.DataFrame, graph: Graph) -> pl.DataFrame:
    """Return (s, predicate, o, origin, gold): all objects of (s, p), the row's own first. For
    inferred rows these are all two-hop ancestors; reversed rows only have their own object."""
    rows = rows.unique()
    direct = rows.with_columns(gold=pl.col("o"), first=pl.lit(0))
    stored = rows.filter(origin="stored")
    stored = stored.with_columns(p=graph.relations.numbers_of(stored["predicate"]))
    wanted = graph.engine.table(stored.select("s", "p").unique())
    objects = graph.frame(graph.statements.semi_join(wanted, ["s", "p"]))
    others = stored.join(objects.rename({"o": "gold"}), on=["s", "p"])
    every = [direct, others.with_columns(first=pl.lit(1)).select(direct.columns)]
    inferred = rows.filter(origin="inferred")
    if inferred.height:
        every.append(_reached(inferred, graph).with_columns(first=pl.lit(1)).select(direct.columns))
    # entities before literals, whose numbers are negative
    order = ["first", pl.col("gold") < 0, "gold"]
    golds = pl.concat(every).sort(order).unique([*FACT, "gold"], keep="first", maintain_order=True)
    return golds.group_by(FACT, maintain_order=True).head(MAX_GOLDS)


def _reached(inferred: pl.DataFrame, graph: Graph) -> pl.DataFrame:
    """Return the rows with every two-hop ancestor as `gold`, except the subject itself."""
    # with the template of subclass of, an inferred row still stands for two steps
    up = graph.edges.filter(graph.edges["p"] == graph.relations.number(graph.relations.subclass_of))
    wanted = graph.engine.table(inferred.select("s").unique())
    hops = graph.engine.keep(up.semi_join(wanted, "s").select("s", middle="o"))
    ends = up.select(middle="s", gold="o").inner_join(hops, "middle")
    golds = graph.frame(ends.select("s", "gold").distinct())
    return inferred.join(golds, on="s").filter(pl.col("s") != pl.col("gold"))

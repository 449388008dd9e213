"""The ontology of an own graph, out of its tables (sources/graphs): no second graph is aligned."""

import polars as pl

from kgprobe.knowledge import ontology
from kgprobe.knowledge.ontology import OntologyTables


def build(
    classes: pl.DataFrame,
    class_hierarchy: pl.DataFrame,
    types: pl.DataFrame,
    properties: pl.DataFrame,
    property_hierarchy: pl.DataFrame,
    facts: pl.DataFrame,
    *,
    per_class: int = 20,
    most: int = 50,
    seed: int = 0,
) -> OntologyTables:
    """The tables of OntoProbe from those of a graph; what has no label is left out and counted.

    `chosen` marks the `most` relations as `ontology.choose` does.
    """
    declared = classes.drop_nulls("label")
    kinds, class_chains, instances = ontology.class_tables(
        declared, class_hierarchy, types, per_class, seed
    )
    named = properties.drop_nulls("label")
    known, chains = ontology.property_tables(named, property_hierarchy, facts["relation"])
    known = known.with_columns(
        *(pl.lit(None, pl.String).alias(name) for name in ("dbpedia", "direction")),
        *(
            pl.when(pl.col(side).is_not_null()).then(pl.lit("own")).alias(f"{side}_source")
            for side in ("domain", "range")
        ),
    )
    chosen = ontology.choose(known, most)
    steps = [
        ("classes", "in the graph", classes.height),
        ("classes", "with a label", declared.height),
        ("classes", "with an instance", kinds.filter(pl.col("instances") > 0).height),
        ("classes", "with a superclass", kinds.filter(pl.col("depth") > 0).height),
        ("properties", "in the graph", properties.height),
        ("properties", "with a label", named.height),
        ("properties", "with a superproperty", chains["id"].n_unique()),
        ("properties", "with a domain", known["domain"].count()),
        ("properties", "with a range", known["range"].count()),
        ("properties", "chosen", chosen.filter("chosen").height),
    ]
    return OntologyTables(
        kinds.select(list(ontology.CLASSES.columns)),
        class_chains,
        instances,
        chosen.select(list(ontology.PROPERTIES.columns)),
        chains,
        pl.DataFrame(schema=dict(ontology.ALIGNMENT.columns)),
        pl.DataFrame(schema={"child": pl.String, "parent": pl.String}),
        ontology.steps_table(steps),
    )

"""The ontology of an own graph, out of its tables (sources/graphs): no second graph is aligned."""

import polars as pl

from kgprobe.knowledge import ontology
from kgprobe.knowledge.ontology_build import OntologyTables


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
    class_chains = ontology.chains(declared.rename({"class": "id"}), class_hierarchy)
    types = types.filter(pl.col("class").is_in(declared["class"].implode()))
    instances = ontology.sample_instances(types, class_chains, per_class, seed)
    depths = class_chains.group_by(pl.col("id").alias("class")).agg(
        pl.col("distance").max().alias("depth")
    )
    counts = instances.group_by("class").agg(pl.len().cast(pl.Int64).alias("instances"))
    kinds = declared.join(depths, on="class", how="left").join(counts, on="class", how="left")
    kinds = kinds.with_columns(pl.col("depth").fill_null(0), pl.col("instances").fill_null(0))
    named = properties.drop_nulls("label")
    chains = ontology.chains(named.select(id="property", label="label"), property_hierarchy)
    above = chains.group_by(pl.col("id").alias("property")).agg(
        pl.len().cast(pl.Int32).alias("superproperties")
    )
    uses = facts.group_by(pl.col("relation").alias("property")).agg(
        pl.len().cast(pl.Int64).alias("statements")
    )
    found = named.join(above, on="property", how="left").join(uses, on="property", how="left")
    found = found.with_columns(
        pl.col("superproperties", "statements").fill_null(0),
        *(pl.lit(None, pl.String).alias(name) for name in ("dbpedia", "direction")),
        *(
            pl.when(pl.col(side).is_not_null()).then(pl.lit("own")).alias(f"{side}_source")
            for side in ("domain", "range")
        ),
    )
    chosen = ontology.choose(found, most)
    steps = [
        ("classes", "in the graph", classes.height),
        ("classes", "with a label", declared.height),
        ("classes", "with an instance", kinds.filter(pl.col("instances") > 0).height),
        ("classes", "with a superclass", kinds.filter(pl.col("depth") > 0).height),
        ("properties", "in the graph", properties.height),
        ("properties", "with a label", named.height),
        ("properties", "with a superproperty", above.height),
        ("properties", "with a domain", found["domain"].count()),
        ("properties", "with a range", found["range"].count()),
        ("properties", "chosen", chosen.filter("chosen").height),
    ]
    rows = [(what, position, step, kept) for position, (what, step, kept) in enumerate(steps)]
    return OntologyTables(
        kinds.select(list(ontology.CLASSES.columns)),
        class_chains,
        instances,
        chosen.select(list(ontology.PROPERTIES.columns)),
        chains,
        pl.DataFrame(schema=dict(ontology.ALIGNMENT.columns)),
        pl.DataFrame(schema={"child": pl.String, "parent": pl.String}),
        pl.DataFrame(rows, schema=dict(ontology.STEPS.columns), orient="row"),
    )

"""All steps of the ontology in order, with the funnel of what each kept (OntoProbe, sec. 2.1)."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import polars as pl

from kgprobe.knowledge import ontology
from kgprobe.schema import Contract
from kgprobe.sources.labels import one_line_of

DBO = "http://dbpedia.org/ontology/"
REJECTS = Contract(
    "REJECTS", {"child": pl.String, "parent": pl.String}, ("child", "parent"), may_be_empty=True
)


@dataclass(frozen=True)
class OntologyTables:
    """The tables of the ontology, in the contracts of `knowledge.ontology`."""

    classes: pl.DataFrame
    class_chains: pl.DataFrame
    instances: pl.DataFrame
    properties: pl.DataFrame
    property_chains: pl.DataFrame
    alignment: pl.DataFrame
    rejects: pl.DataFrame
    steps: pl.DataFrame


def _one_line(tables: Mapping[str, pl.DataFrame]) -> dict[str, pl.DataFrame]:
    """The pulled tables with labels as every reader gives them."""
    return {
        name: table.with_columns(one_line_of("label")) if "label" in table.columns else table
        for name, table in tables.items()
    }


def build(
    dbpedia: Mapping[str, pl.DataFrame],
    wikidata: Mapping[str, pl.DataFrame],
    statements: pl.DataFrame | None,
    *,
    per_class: int = 20,
    properties: int = 50,
    seed: int = 0,
    named: Collection[str] | None = None,
) -> OntologyTables:
    """The ontology from the pulled tables of both graphs, named like their queries.

    `statements` (STATEMENTS or FACTS) gives the number of statements per property, which orders the
    choice of `properties`; without it all counts are 0 and the choice goes by id. `named` takes the
    properties with these IRIs instead.
    """
    dbpedia, wikidata = _one_line(dbpedia), _one_line(wikidata)
    declared = dbpedia["classes"].filter(pl.col("label").is_not_null())
    declared = (
        declared.select("class", "label").sort("class", "label").unique("class", keep="first")
    )
    nodes = declared.rename({"class": "id"})
    edges = dbpedia["class_hierarchy"].select(pl.col("class").alias("child"), "parent")
    class_chains = ontology.chains(nodes, edges)
    types = dbpedia["types"].select("class", "instance", "label")
    types = types.filter(pl.col("class").is_in(declared["class"].to_list()))
    instances = ontology.sample_instances(types, class_chains, per_class, seed)
    found, property_chains, aligned = _properties(
        dbpedia, wikidata, statements, declared, class_chains
    )
    chosen = ontology.choose(found, properties, named)
    depths = class_chains.group_by(pl.col("id").alias("class")).agg(
        pl.col("distance").max().alias("depth")
    )
    counts = instances.group_by("class").agg(pl.len().cast(pl.Int64).alias("instances"))
    classes = (
        declared.join(depths, on="class", how="left")
        .join(counts, on="class", how="left")
        .with_columns(pl.col("depth").fill_null(0), pl.col("instances").fill_null(0))
    )
    return OntologyTables(
        classes,
        class_chains,
        instances,
        chosen.select(list(ontology.PROPERTIES.columns)),
        property_chains,
        aligned,
        ontology.strays(nodes, edges, DBO),
        _steps(dbpedia, wikidata, classes, chosen, per_class),
    )


def _properties(
    dbpedia: Mapping[str, pl.DataFrame],
    wikidata: Mapping[str, pl.DataFrame],
    statements: pl.DataFrame | None,
    declared: pl.DataFrame,
    class_chains: pl.DataFrame,
) -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]:
    """(properties without the choice, their chains, the alignment)."""
    labelled = wikidata["properties"].filter(pl.col("label").is_not_null())
    labelled = labelled.select("property", "label").unique("property").sort("property")
    chains = ontology.chains(
        labelled.rename({"property": "id"}),
        wikidata["property_hierarchy"].select(pl.col("property").alias("child"), "parent"),
    )
    aligned = ontology.alignment(wikidata["equivalent_property"], dbpedia["property_equivalence"])
    words = ontology.vocabulary(declared, class_chains, dbpedia["class_equivalence"])
    named = wikidata["constraint_classes"].filter(pl.col("label").is_not_null())
    names = dict(named.select("class", "label").sort("class", "label").rows())
    ends = ontology.ends(aligned, dbpedia["properties"], wikidata["constraints"], names, words)
    first = aligned.sort("property", "dbpedia").unique("property", keep="first")
    parents = chains.group_by(pl.col("id").alias("property")).agg(
        pl.len().cast(pl.Int32).alias("superproperties")
    )
    if statements is None:
        uses = pl.DataFrame(schema={"property": pl.String, "statements": pl.Int64})
    else:
        uses = statements.group_by(
            (pl.lit("http://www.wikidata.org/entity/") + pl.col("relation")).alias("property")
        ).agg(pl.len().cast(pl.Int64).alias("statements"))
    table = labelled
    for other in (first, ends, parents, uses):
        table = table.join(other, on="property", how="left")
    return (
        table.with_columns(pl.col("superproperties", "statements").fill_null(0)),
        chains,
        aligned,
    )


def _steps(
    dbpedia: Mapping[str, pl.DataFrame],
    wikidata: Mapping[str, pl.DataFrame],
    classes: pl.DataFrame,
    properties: pl.DataFrame,
    per_class: int,
) -> pl.DataFrame:
    """The two funnels: how many classes and properties are left after each step."""
    constrained = wikidata["constraints"]["property"].unique().to_list()
    parented = pl.col("superproperties") > 0
    both = pl.col("domain").is_not_null() & pl.col("range").is_not_null()
    rows = [
        ("classes", "pulled", dbpedia["classes"]["class"].n_unique()),
        ("classes", "with an English label", classes.height),
        ("classes", "with an instance", classes.filter(pl.col("instances") > 0).height),
        (
            "classes",
            f"with {per_class} instances",
            classes.filter(pl.col("instances") >= per_class).height,
        ),
        ("classes", "with a superclass", classes.filter(pl.col("depth") > 0).height),
        ("properties", "pulled", wikidata["properties"]["property"].n_unique()),
        ("properties", "with a superproperty", properties.filter(parented).height),
        (
            "properties",
            "with a type constraint",
            properties.filter(pl.col("property").is_in(constrained)).height,
        ),
        (
            "properties",
            "aligned with DBpedia",
            properties.filter(pl.col("dbpedia").is_not_null()).height,
        ),
        ("properties", "with domain and range in the vocabulary", properties.filter(both).height),
        (
            "properties",
            "with domain, range and superproperty",
            properties.filter(both & parented).height,
        ),
        ("properties", "chosen", properties.filter("chosen").height),
    ]
    return pl.DataFrame(
        [(what, position, step, kept) for position, (what, step, kept) in enumerate(rows)],
        schema=dict(ontology.STEPS.columns),
        orient="row",
    )

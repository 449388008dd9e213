"""All steps of the ontology in order, with the funnel of what each kept (OntoProbe, sec. 2.1)."""

from collections.abc import Collection, Mapping

import polars as pl

from kgprobe.knowledge import ontology
from kgprobe.knowledge.ontology import OntologyTables
from kgprobe.schema import Contract
from kgprobe.sources.labels import one_line_of

DBO = "http://dbpedia.org/ontology/"
WIKIDATA = "http://www.wikidata.org/entity/"
REJECTS = Contract(
    "REJECTS", {"child": pl.String, "parent": pl.String}, ("child", "parent"), may_be_empty=True
)


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
    declared = dbpedia["classes"].drop_nulls("label").select("class", "label")
    declared = declared.sort("class", "label").unique("class", keep="first")
    edges = dbpedia["class_hierarchy"].select("parent", child="class")
    types = dbpedia["types"].select("class", "instance", "label")
    classes, class_chains, instances = ontology.class_tables(
        declared, edges, types, per_class, seed
    )
    labelled = wikidata["properties"].drop_nulls("label").select("property", "label")
    labelled = labelled.unique("property").sort("property")
    uses = pl.Series(dtype=pl.String) if statements is None else WIKIDATA + statements["relation"]
    hierarchy = wikidata["property_hierarchy"].select("parent", child="property")
    known, property_chains = ontology.property_tables(labelled, hierarchy, uses)
    aligned = ontology.alignment(wikidata["equivalent_property"], dbpedia["property_equivalence"])
    words = ontology.vocabulary(declared, class_chains, dbpedia["class_equivalence"])
    names = wikidata["constraint_classes"].drop_nulls("label").select("class", "label")
    ends = ontology.ends(
        aligned,
        dbpedia["properties"],
        wikidata["constraints"],
        dict(names.sort("class", "label").rows()),
        words,
    )
    first = aligned.sort("property", "dbpedia").unique("property", keep="first")
    known = known.join(first, on="property", how="left").join(ends, on="property", how="left")
    chosen = ontology.choose(known, properties, named)
    return OntologyTables(
        classes,
        class_chains,
        instances,
        chosen.select(list(ontology.PROPERTIES.columns)),
        property_chains,
        aligned,
        ontology.strays(declared.rename({"class": "id"}), edges, DBO),
        _steps(dbpedia, wikidata, classes, chosen, per_class),
    )


def _steps(
    dbpedia: Mapping[str, pl.DataFrame],
    wikidata: Mapping[str, pl.DataFrame],
    classes: pl.DataFrame,
    properties: pl.DataFrame,
    per_class: int,
) -> pl.DataFrame:
    """The two funnels: how many classes and properties are left after each step."""
    n = pl.col("instances")
    parented = pl.col("superproperties") > 0
    both = pl.col("domain").is_not_null() & pl.col("range").is_not_null()
    constrained = pl.col("property").is_in(wikidata["constraints"]["property"].implode())
    funnels = {
        "classes": {
            "pulled": dbpedia["classes"]["class"].n_unique(),
            "with an English label": classes.height,
            "with an instance": classes.filter(n > 0).height,
            f"with {per_class} instances": classes.filter(n >= per_class).height,
            "with a superclass": classes.filter(pl.col("depth") > 0).height,
        },
        "properties": {
            "pulled": wikidata["properties"]["property"].n_unique(),
            "with a superproperty": properties.filter(parented).height,
            "with a type constraint": properties.filter(constrained).height,
            "aligned with DBpedia": properties["dbpedia"].count(),
            "with domain and range in the vocabulary": properties.filter(both).height,
            "with domain, range and superproperty": properties.filter(both & parented).height,
            "chosen": properties.filter("chosen").height,
        },
    }
    return ontology.steps_table(
        [(what, step, kept) for what, steps in funnels.items() for step, kept in steps.items()]
    )

"""The ontology of OntoProbe: rebuilt from DBpedia's and Wikidata's tables (OntoProbe, sec. 2.1), or
built from a user-supplied graph.

All functions are pure and take frames with the columns of the queries in resources/queries. Ids are
opaque strings: IRIs of DBpedia (`dbo:`) and of Wikidata as they were pulled.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import polars as pl

from kgprobe.sampling import take
from kgprobe.schema import Contract
from kgprobe.sources.labels import one_line_of

DBO = "http://dbpedia.org/ontology/"
WIKIDATA = "http://www.wikidata.org/entity/"
#: Wikidata's property constraints on the classes of subjects, and of values.
CONSTRAINTS = {"domain": "Q21503250", "range": "Q21510865"}

CLASSES = Contract(
    "CLASSES",
    {"class": pl.String, "label": pl.String, "depth": pl.Int32, "instances": pl.Int64},
    ("class",),
)
#: One row is one ancestor of a class or property; position 0 is the nearest.
CHAINS = Contract(
    "CHAINS",
    dict.fromkeys(("id", "label", "ancestor", "ancestor_label"), pl.String)
    | dict.fromkeys(("distance", "position"), pl.Int32),
    ("id", "ancestor"),
)
_INSTANCE = ("class", "instance")
INSTANCES = Contract("INSTANCES", dict.fromkeys((*_INSTANCE, "label"), pl.String), _INSTANCE)
_OPTIONAL = "dbpedia direction domain domain_source range range_source".split()
#: One row is one property with its domain, range etc.; null if none was found.
PROPERTIES = Contract(
    "PROPERTIES",
    {
        **dict.fromkeys(("property", "label", *_OPTIONAL), pl.String),
        "superproperties": pl.Int32,
        "statements": pl.Int64,
        "chosen": pl.Boolean,
    },
    ("property",),
    frozenset(_OPTIONAL),
)
_PAIR = ("property", "dbpedia")
ALIGNMENT = Contract("ALIGNMENT", dict.fromkeys((*_PAIR, "direction"), pl.String), _PAIR)
_EDGE = ("child", "parent")
REJECTS = Contract("REJECTS", dict.fromkeys(_EDGE, pl.String), _EDGE, may_be_empty=True)
STEPS = Contract(
    "STEPS",
    {"what": pl.String, "position": pl.Int32, "step": pl.String, "kept": pl.Int64},
    ("what", "position"),
)
#: The tables that every ontology has, whatever its source.
TABLES = {"classes": CLASSES, "class_chains": CHAINS, "instances": INSTANCES}
TABLES |= {"properties": PROPERTIES, "property_chains": CHAINS}
#: All tables of `OntologyTables`.
CONTRACTS = {**TABLES, "alignment": ALIGNMENT, "rejects": REJECTS, "steps": STEPS}


@dataclass(frozen=True)
class OntologyTables:
    """The tables of an ontology, under CONTRACTS; a user-supplied graph has no alignment."""

    classes: pl.DataFrame
    class_chains: pl.DataFrame
    instances: pl.DataFrame
    properties: pl.DataFrame
    property_chains: pl.DataFrame
    alignment: pl.DataFrame | None = None
    rejects: pl.DataFrame | None = None
    steps: pl.DataFrame | None = None


def distances(edges: pl.DataFrame) -> pl.DataFrame:
    """Return id, ancestor and the shortest `distance` between them; cycles are allowed.

    `edges` has the columns child, parent.
    """
    apart = pl.col("id") != pl.col("ancestor")
    parents = edges.select(id="child", ancestor="parent").unique().filter(apart)
    nearest, above = [parents], parents.rename({"id": "ancestor", "ancestor": "next"})
    while nearest[-1].height:
        reached = nearest[-1].join(above, on="ancestor").select("id", ancestor="next").unique()
        nearest.append(
            reached.filter(apart).join(pl.concat(nearest), on=reached.columns, how="anti")
        )
    return pl.concat(rows.with_columns(distance=n) for n, rows in enumerate(nearest, 1))


def chains(nodes: pl.DataFrame, edges: pl.DataFrame) -> pl.DataFrame:
    """Return the ancestors of every node as CHAINS, ordered by distance, label and id.

    `nodes` has the columns id, label. Undeclared nodes (see `strays`) have no rows, but lead to
    their own ancestors.
    """
    above = nodes.select(ancestor="id", ancestor_label="label")
    rows = distances(edges).join(nodes, on="id").join(above, on="ancestor")
    label = pl.col("ancestor_label")
    folded = label.map_elements(str.casefold, return_dtype=pl.String)
    ordered = rows.sort("id", "distance", folded, label, "ancestor")
    position = pl.int_range(pl.len(), dtype=pl.Int32).over("id")
    named = ordered.with_columns(pl.col("distance").cast(pl.Int32), position=position)
    return named.select(list(CHAINS.columns))


def strays(nodes: pl.DataFrame, edges: pl.DataFrame, prefix: str) -> pl.DataFrame:
    """Return edges from declared nodes to undeclared parents with the prefix: child, parent."""
    declared = nodes["id"].to_list()
    inside = pl.col("child").is_in(declared) & pl.col("parent").str.starts_with(prefix)
    return edges.filter(inside & ~pl.col("parent").is_in(declared)).sort("child", "parent")


def finest(types: pl.DataFrame, class_chains: pl.DataFrame) -> pl.DataFrame:
    """Drop types (class, instance, label) whose instance also has a subclass of `class`.

    DBpedia states the transitive types as well; an instance belongs to its most specific class.
    """
    below = class_chains.select("ancestor", lower="id")
    # classes of a cycle are not below each other
    cycle = below.select(ancestor="lower", lower="ancestor")
    below = below.join(cycle, on=["ancestor", "lower"], how="anti")
    lower = types.select("instance", lower="class")
    covered = types.join(below, left_on="class", right_on="ancestor").join(
        lower, on=["instance", "lower"]
    )
    return types.join(covered, on=["class", "instance"], how="anti")


def sample_instances(
    types: pl.DataFrame, class_chains: pl.DataFrame, n: int, seed: int
) -> pl.DataFrame:
    """Return INSTANCES: up to `n` instances of every class, by seeded hash of the instance IRI."""
    named = types.filter(pl.col("label").is_not_null()).select(list(INSTANCES.columns))
    # an IRI may have two labels in one language; keep the first by code point
    named = named.sort("class", "instance", "label").unique(
        ["class", "instance"], keep="first", maintain_order=True
    )
    instances = finest(named, class_chains)
    return take(instances, n, seed, ids=["instance"], by=["class"], label="ontology")


def class_tables(
    declared: pl.DataFrame, edges: pl.DataFrame, types: pl.DataFrame, per_class: int, seed: int
) -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]:
    """Return CLASSES, their CHAINS and INSTANCES, from classes (class, label), edges (child,
    parent) and types (class, instance, label)."""
    class_chains = chains(declared.rename({"class": "id"}), edges)
    types = types.filter(pl.col("class").is_in(declared["class"].implode()))
    instances = sample_instances(types, class_chains, per_class, seed)
    depths = class_chains.group_by(pl.col("id").alias("class")).agg(depth=pl.col("distance").max())
    counts = instances.group_by("class").agg(instances=pl.len().cast(pl.Int64))
    classes = declared.join(depths, on="class", how="left").join(counts, on="class", how="left")
    return classes.with_columns(pl.col("depth", "instances").fill_null(0)), class_chains, instances


def property_tables(
    labeled: pl.DataFrame, edges: pl.DataFrame, uses: pl.Series
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return properties with `superproperties` and `statements` counts, and their CHAINS.

    `labeled` has property, label; `uses` holds the property of every statement.
    """
    property_chains = chains(labeled.select("label", id="property"), edges)
    above = property_chains.group_by(property="id").agg(superproperties=pl.len().cast(pl.Int32))
    stated = uses.alias("property").to_frame().group_by("property")
    statements = stated.agg(statements=pl.len().cast(pl.Int64))
    properties = labeled.join(above, on="property", how="left")
    properties = properties.join(statements, on="property", how="left")
    zeros = pl.col("superproperties", "statements").fill_null(0)
    return properties.with_columns(zeros), property_chains


def alignment(p1628: pl.DataFrame, equivalent: pl.DataFrame) -> pl.DataFrame:
    """Return the union of both alignments: property, dbpedia, direction (`P1628`, `owl`, `both`).

    `p1628` has property, equivalent (stated by Wikidata); `equivalent` has property, wikidata
    (stated by DBpedia). Pairs within DBpedia are dropped.
    """
    ours = p1628.select("property", dbpedia="equivalent", direction=pl.lit("P1628"))
    theirs = equivalent.select(property="wikidata", dbpedia="property", direction=pl.lit("owl"))
    ours = ours.filter(pl.col("dbpedia").str.starts_with(DBO))
    theirs = theirs.filter(pl.col("property").str.contains(r"wikidata\.org/entity/P\d+$"))
    rows = pl.concat([ours, theirs]).unique()
    one = pl.when(pl.len() == 1).then(pl.col("direction").first()).otherwise(pl.lit("both"))
    return rows.group_by("property", "dbpedia").agg(direction=one).sort("property", "dbpedia")


def ends(
    aligned: pl.DataFrame,
    dbo_properties: pl.DataFrame,
    constraints: pl.DataFrame,
    names: pl.DataFrame,
    classes: pl.DataFrame,
    equivalence: pl.DataFrame,
) -> pl.DataFrame:
    """Return the known domains and ranges of properties, and their sources, as in PROPERTIES.

    DBpedia's own statement is preferred; else the deepest of the `classes` (class, label, depth) to
    which Wikidata's type constraints map, by `equivalence` (class, wikidata) or by the label in
    `names` (class, label), ties by label. Sources are `dbpedia` and `wikidata`; null if neither
    gives a class of the vocabulary. The paper states no precedence.
    """
    key = pl.col("label").map_elements(str.casefold, return_dtype=pl.String)
    by_label = classes.select("class", key).unique("label", keep="last", maintain_order=True)
    named = names.select(key, wikidata="class").join(by_label, on="label")
    same = pl.concat([equivalence.select("wikidata", "class"), named.select("wikidata", "class")])
    pairs = aligned.join(dbo_properties, left_on="dbpedia", right_on="property")
    sides = []
    for side, kind in CONSTRAINTS.items():
        stated = pairs.join(classes.select(pl.col("class").alias(side)), on=side, how="semi")
        typed = constraints.filter(pl.col("constraint").str.ends_with(kind)).drop_nulls("class")
        deepest = (
            typed.select("property", wikidata="class")
            .join(same, on="wikidata")
            .join(classes.select("class", "label", "depth"), on="class")
            .sort("depth", "label", "class", descending=[True, False, False])
            .group_by("property", maintain_order=True)
            .agg(wikidata=pl.col("class").first())
        )
        dbpedia = stated.group_by("property").agg(dbpedia=pl.col(side).min())
        both = dbpedia.join(deepest, on="property", how="full", coalesce=True)
        source = pl.when(pl.col("dbpedia").is_null()).then(pl.lit("wikidata"))
        sides.append(
            both.select(
                "property",
                pl.coalesce("dbpedia", "wikidata").alias(side),
                source.otherwise(pl.lit("dbpedia")).alias(f"{side}_source"),
            )
        )
    return sides[0].join(sides[1], on="property", how="full", coalesce=True).sort("property")


def choose(properties: pl.DataFrame, n: int, named: Collection[str] | None = None) -> pl.DataFrame:
    """Mark the `n` properties with domain, range, superproperty and the most statements.

    The paper chose about 50 by hand ("sensible domain, range and superproperties"); this is a rule.
    With `named` (property IRIs), those that exist are marked instead. Adds the column `chosen`;
    ties go to the property id.
    """
    if named is not None:
        return properties.with_columns(chosen=pl.col("property").is_in(sorted(named)))
    sensible = properties.drop_nulls(["domain", "range"]).filter(pl.col("superproperties") > 0)
    ordered = sensible.sort("statements", "property", descending=[True, False])
    chosen = ordered["property"].head(n).to_list()
    return properties.with_columns(chosen=pl.col("property").is_in(chosen))


def _one_line(tables: Mapping[str, pl.DataFrame]) -> dict[str, pl.DataFrame]:
    """Return the pulled tables with labels normalized to one line."""
    labeled = {n: t.with_columns(one_line_of("label")) for n, t in tables.items() if "label" in t}
    return {**tables, **labeled}


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
    """Build the ontology from the pulled tables of both graphs, named like their queries.

    `statements` (STATEMENTS or FACTS) gives the number of statements per property, by which
    `properties` properties are chosen; without it all counts are 0 and ids decide. `named` chooses
    the properties with these IRIs instead.
    """
    dbpedia, wikidata = _one_line(dbpedia), _one_line(wikidata)
    declared = dbpedia["classes"].drop_nulls("label").select("class", "label")
    declared = declared.sort("class", "label").unique("class", keep="first")
    edges = dbpedia["class_hierarchy"].select("parent", child="class")
    types = dbpedia["types"].select("class", "instance", "label")
    classes, class_chains, instances = class_tables(declared, edges, types, per_class, seed)
    labeled = wikidata["properties"].drop_nulls("label").select("property", "label")
    labeled = labeled.sort("property", "label").unique("property", keep="first")
    uses = pl.Series(dtype=pl.String) if statements is None else WIKIDATA + statements["relation"]
    hierarchy = wikidata["property_hierarchy"].select("parent", child="property")
    known, property_chains = property_tables(labeled, hierarchy, uses)
    aligned = alignment(wikidata["equivalent_property"], dbpedia["property_equivalence"])
    names = wikidata["constraint_classes"].drop_nulls("label").sort("class", "label")
    names = names.unique("class", keep="last")
    stated = aligned, dbpedia["properties"], wikidata["constraints"]
    sides = ends(*stated, names, classes.sort("class"), dbpedia["class_equivalence"])
    first = aligned.sort("property", "dbpedia").unique("property", keep="first")
    known = known.join(first, on="property", how="left").join(sides, on="property", how="left")
    chosen = choose(known, properties, named)
    rejects = strays(declared.rename({"class": "id"}), edges, DBO)
    steps = _steps(dbpedia, wikidata, classes, chosen, per_class)
    related = chosen.select(list(PROPERTIES.columns)), property_chains
    return OntologyTables(classes, class_chains, instances, *related, aligned, rejects, steps)


def _steps(
    dbpedia: Mapping[str, pl.DataFrame],
    wikidata: Mapping[str, pl.DataFrame],
    classes: pl.DataFrame,
    properties: pl.DataFrame,
    per_class: int,
) -> pl.DataFrame:
    """Return the two funnels: how many classes and properties are left after each step."""
    n = pl.col("instances")
    parented = pl.col("superproperties") > 0
    both = pl.col("domain").is_not_null() & pl.col("range").is_not_null()
    constrained = pl.col("property").is_in(wikidata["constraints"]["property"].implode())
    return steps_table(
        classes={
            "pulled": dbpedia["classes"]["class"].n_unique(),
            "with an English label": classes.height,
            "with an instance": classes.filter(n > 0).height,
            f"with {per_class} instances": classes.filter(n >= per_class).height,
            "with a superclass": classes.filter(pl.col("depth") > 0).height,
        },
        properties={
            "pulled": wikidata["properties"]["property"].n_unique(),
            "with a superproperty": properties.filter(parented).height,
            "with a type constraint": properties.filter(constrained).height,
            "aligned with DBpedia": properties["dbpedia"].count(),
            "with domain and range in the vocabulary": properties.filter(both).height,
            "with domain, range and superproperty": properties.filter(both & parented).height,
            "chosen": properties.filter("chosen").height,
        },
    )


def steps_table(**funnels: Mapping[str, int]) -> pl.DataFrame:
    """Return STEPS: how many classes and properties are left after each step, in order."""
    steps = [(what, step, kept) for what, left in funnels.items() for step, kept in left.items()]
    rows = [(what, place, step, kept) for place, (what, step, kept) in enumerate(steps)]
    return pl.DataFrame(rows, schema=dict(STEPS.columns), orient="row")


def build_own(
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
    """Build the ontology of a user-supplied graph (sources/graphs), without alignment.

    What has no label is dropped and counted. `chosen` marks the `most` relations as in `choose`.
    """
    declared, named = classes.drop_nulls("label"), properties.drop_nulls("label")
    is_known = pl.col(*CONSTRAINTS).is_in(declared["class"].implode())
    named = named.with_columns(pl.when(is_known).then(pl.col(*CONSTRAINTS)))
    kinds, class_chains, instances = class_tables(declared, class_hierarchy, types, per_class, seed)
    known, property_chains = property_tables(named, property_hierarchy, facts["relation"])
    sources = {
        f"{side}_source": pl.when(pl.col(side).is_not_null()).then(pl.lit("own"))
        for side in CONSTRAINTS
    }
    nothing = pl.lit(None, pl.String)
    known = known.with_columns(dbpedia=nothing, direction=nothing, **sources)
    chosen = choose(known, most)
    steps = steps_table(
        classes={
            "in the graph": classes.height,
            "with a label": declared.height,
            "with an instance": kinds.filter(pl.col("instances") > 0).height,
            "with a superclass": kinds.filter(pl.col("depth") > 0).height,
        },
        properties={
            "in the graph": properties.height,
            "with a label": named.height,
            "with a superproperty": property_chains["id"].n_unique(),
            "with a domain": known["domain"].count(),
            "with a range": known["range"].count(),
            "chosen": chosen.filter("chosen").height,
        },
    )
    described = kinds.select(list(CLASSES.columns)), class_chains, instances
    related = chosen.select(list(PROPERTIES.columns)), property_chains
    return OntologyTables(*described, *related, steps=steps)

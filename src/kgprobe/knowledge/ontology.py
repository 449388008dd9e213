"""The ontology of OntoProbe, rebuilt from DBpedia's and Wikidata's tables (OntoProbe, sec. 2.1).

All functions are pure and take frames with the columns of the queries in resources/queries. Ids are
opaque strings: IRIs of DBpedia (`dbo:`) and of Wikidata as they were pulled.
"""

from collections import defaultdict, deque
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import polars as pl

from kgprobe.sampling import take
from kgprobe.schema import Contract

SUBJECT_TYPE = "Q21503250"
VALUE_TYPE = "Q21510865"

CLASSES = Contract(
    "CLASSES",
    {"class": pl.String, "label": pl.String, "depth": pl.Int32, "instances": pl.Int64},
    ("class",),
)
#: One row is one ancestor of a class or property; position 0 is the finest.
CHAINS = Contract(
    "CHAINS",
    {
        "id": pl.String,
        "label": pl.String,
        "ancestor": pl.String,
        "ancestor_label": pl.String,
        "distance": pl.Int32,
        "position": pl.Int32,
    },
    ("id", "ancestor"),
)
INSTANCES = Contract(
    "INSTANCES",
    {"class": pl.String, "instance": pl.String, "label": pl.String},
    ("class", "instance"),
)
#: One row is one property with what was found for it; null means that nothing was.
PROPERTIES = Contract(
    "PROPERTIES",
    {
        "property": pl.String,
        "label": pl.String,
        "dbpedia": pl.String,
        "direction": pl.String,
        "domain": pl.String,
        "domain_source": pl.String,
        "range": pl.String,
        "range_source": pl.String,
        "superproperties": pl.Int32,
        "statements": pl.Int64,
        "chosen": pl.Boolean,
    },
    ("property",),
    frozenset({"dbpedia", "direction", "domain", "domain_source", "range", "range_source"}),
)
ALIGNMENT = Contract(
    "ALIGNMENT",
    {"property": pl.String, "dbpedia": pl.String, "direction": pl.String},
    ("property", "dbpedia"),
)
STEPS = Contract(
    "STEPS",
    {"what": pl.String, "position": pl.Int32, "step": pl.String, "kept": pl.Int64},
    ("what", "position"),
)
#: The files that every ontology is, of whichever source.
TABLES = {
    "classes": CLASSES,
    "class_chains": CHAINS,
    "instances": INSTANCES,
    "properties": PROPERTIES,
    "property_chains": CHAINS,
}


@dataclass(frozen=True)
class OntologyTables:
    """The tables of an ontology, under the contracts of this module."""

    classes: pl.DataFrame
    class_chains: pl.DataFrame
    instances: pl.DataFrame
    properties: pl.DataFrame
    property_chains: pl.DataFrame
    alignment: pl.DataFrame
    rejects: pl.DataFrame
    steps: pl.DataFrame


def distances(edges: pl.DataFrame) -> dict[str, dict[str, int]]:
    """Shortest distance from every child to each of its ancestors; cycles end at their start.

    `edges` has the columns child, parent.
    """
    parents: dict[str, list[str]] = defaultdict(list)
    for child, parent in edges.select("child", "parent").unique().sort("child", "parent").rows():
        if child != parent:
            parents[child].append(parent)
    ancestors: dict[str, dict[str, int]] = {}
    for start in parents:
        reached, waiting = {start: 0}, deque([start])
        while waiting:
            node = waiting.popleft()
            for parent in parents.get(node, ()):
                if parent not in reached:
                    reached[parent] = reached[node] + 1
                    waiting.append(parent)
        ancestors[start] = {node: n for node, n in reached.items() if n}
    return ancestors


def chains(nodes: pl.DataFrame, edges: pl.DataFrame) -> pl.DataFrame:
    """Ancestors of every node, finest first: by distance, then by label, then by id.

    `nodes` has the columns id, label; edges of undeclared nodes are left out (see `strays`).
    """
    labels = dict(nodes.select("id", "label").rows())
    inner = edges.filter(pl.col("child").is_in(list(labels)) & pl.col("parent").is_in(list(labels)))
    rows = []
    for node, reached in distances(inner).items():
        ordered = sorted(reached, key=lambda a: (reached[a], labels[a].casefold(), labels[a], a))
        rows += [
            (node, labels[node], ancestor, labels[ancestor], reached[ancestor], position)
            for position, ancestor in enumerate(ordered)
        ]
    return pl.DataFrame(rows, schema=dict(CHAINS.columns), orient="row").sort("id", "position")


def strays(nodes: pl.DataFrame, edges: pl.DataFrame, prefix: str) -> pl.DataFrame:
    """Edges inside the namespace `prefix` whose parent is not declared: columns child, parent."""
    declared = nodes["id"].to_list()
    inside = pl.col("child").is_in(declared) & pl.col("parent").str.starts_with(prefix)
    return edges.filter(inside & ~pl.col("parent").is_in(declared)).sort("child", "parent")


def finest(types: pl.DataFrame, class_chains: pl.DataFrame) -> pl.DataFrame:
    """(class, instance, label) rows where no other class of the instance is below `class`.

    DBpedia states the transitive types as well; an instance belongs to its most specific class.
    """
    below = class_chains.select(pl.col("id").alias("lower"), pl.col("ancestor").alias("class"))
    lower = types.select("instance", pl.col("class").alias("lower"))
    covered = types.join(below, on="class").join(lower, on=["instance", "lower"])
    return types.join(
        covered.select("class", "instance").unique(), on=["class", "instance"], how="anti"
    )


def sample_instances(
    types: pl.DataFrame, class_chains: pl.DataFrame, n: int, seed: int
) -> pl.DataFrame:
    """INSTANCES: up to `n` instances of every class, by seeded hash of the instance's IRI."""
    named = types.filter(pl.col("label").is_not_null()).select(list(INSTANCES.columns))
    # an IRI with two labels in one language would repeat; the first by code point stays
    named = named.sort("class", "instance", "label").unique(
        ["class", "instance"], keep="first", maintain_order=True
    )
    own = finest(named, class_chains)
    return take(own, n, seed, ids=["instance"], by=["class"], label="ontology")


def class_tables(
    declared: pl.DataFrame, edges: pl.DataFrame, types: pl.DataFrame, per_class: int, seed: int
) -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]:
    """CLASSES, their CHAINS and INSTANCES of classes (class, label), edges (child, parent) and
    types (class, instance, label)."""
    class_chains = chains(declared.rename({"class": "id"}), edges)
    types = types.filter(pl.col("class").is_in(declared["class"].implode()))
    instances = sample_instances(types, class_chains, per_class, seed)
    depths = class_chains.group_by(pl.col("id").alias("class")).agg(depth=pl.col("distance").max())
    counts = instances.group_by("class").agg(pl.len().cast(pl.Int64).alias("instances"))
    classes = declared.join(depths, on="class", how="left").join(counts, on="class", how="left")
    classes = classes.with_columns(pl.col("depth").fill_null(0), pl.col("instances").fill_null(0))
    return classes, class_chains, instances


def property_tables(
    labelled: pl.DataFrame, edges: pl.DataFrame, uses: pl.Series
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Properties with `superproperties` and `statements`, and their CHAINS.

    `labelled` has property, label; `uses` names the property of every statement.
    """
    property_chains = chains(labelled.select("label", id="property"), edges)
    above = property_chains.group_by(pl.col("id").alias("property")).agg(
        pl.len().cast(pl.Int32).alias("superproperties")
    )
    counts = uses.alias("property").to_frame().group_by("property")
    statements = counts.agg(pl.len().cast(pl.Int64).alias("statements"))
    properties = labelled.join(above, on="property", how="left")
    properties = properties.join(statements, on="property", how="left")
    zeros = pl.col("superproperties", "statements").fill_null(0)
    return properties.with_columns(zeros), property_chains


def steps_table(steps: Sequence[tuple[str, str, int]]) -> pl.DataFrame:
    """STEPS of (what, step, kept) in order."""
    rows = [(what, place, step, kept) for place, (what, step, kept) in enumerate(steps)]
    return pl.DataFrame(rows, schema=dict(STEPS.columns), orient="row")


def alignment(p1628: pl.DataFrame, equivalent: pl.DataFrame) -> pl.DataFrame:
    """Union of both directions, columns property, dbpedia, direction (`P1628`, `owl`, `both`).

    `p1628` has property, equivalent (Wikidata says it); `equivalent` has property, wikidata
    (DBpedia says it). Pairs within DBpedia are no alignment.
    """
    ours = p1628.select("property", dbpedia="equivalent", direction=pl.lit("P1628"))
    theirs = equivalent.select(property="wikidata", dbpedia="property", direction=pl.lit("owl"))
    rows = pl.concat(
        [
            ours.filter(pl.col("dbpedia").str.starts_with("http://dbpedia.org/ontology/")),
            theirs.filter(pl.col("property").str.contains(r"wikidata\.org/entity/P\d+$")),
        ]
    ).unique()
    one = pl.when(pl.len() == 1).then(pl.col("direction").first()).otherwise(pl.lit("both"))
    return rows.group_by("property", "dbpedia").agg(direction=one).sort("property", "dbpedia")


@dataclass(frozen=True)
class ClassVocabulary:
    """The DBpedia classes as a vocabulary for domains and ranges."""

    labels: dict[str, str]
    depths: dict[str, int]
    of_wikidata: dict[str, list[str]]

    def finest_of(self, wikidata_classes: list[str], names: dict[str, str]) -> str | None:
        """The deepest DBpedia class that the Wikidata classes map to, by equivalence or by label.

        Ties go to the label. `names` are the labels of the Wikidata classes.
        """
        by_label = {label.casefold(): iri for iri, label in self.labels.items()}
        found = {iri for c in wikidata_classes for iri in self.of_wikidata.get(c, ())}
        found |= {
            by_label[n] for c in wikidata_classes if (n := names.get(c, "").casefold()) in by_label
        }
        if not found:
            return None
        return min(found, key=lambda iri: (-self.depths.get(iri, 0), self.labels[iri], iri))


def vocabulary(
    classes: pl.DataFrame, class_chains: pl.DataFrame, equivalence: pl.DataFrame
) -> ClassVocabulary:
    """Labels, depths and Wikidata equivalents of the declared classes.

    `classes` has class, label; `equivalence` has class, wikidata.
    """
    labels = dict(classes.select("class", "label").rows())
    depths = dict(class_chains.group_by("id").agg(pl.col("distance").max()).rows())
    of_wikidata: dict[str, list[str]] = defaultdict(list)
    for iri, wikidata in equivalence.select("class", "wikidata").sort("class", "wikidata").rows():
        if iri in labels:
            of_wikidata[wikidata].append(iri)
    return ClassVocabulary(labels, depths, dict(of_wikidata))


def ends(
    aligned: pl.DataFrame,
    dbo_properties: pl.DataFrame,
    constraints: pl.DataFrame,
    names: dict[str, str],
    words: ClassVocabulary,
) -> pl.DataFrame:
    """Domain and range of every property, with their sources, as the columns of PROPERTIES.

    DBpedia's own statement is preferred; else the finest DBpedia class of Wikidata's type
    constraints. Sources are `dbpedia` and `wikidata`; null where neither is in the vocabulary. The
    paper states no precedence.
    """
    pairs = aligned.join(dbo_properties, left_on="dbpedia", right_on="property")
    stated, constrained = {}, {}
    for side, kind in (("domain", SUBJECT_TYPE), ("range", VALUE_TYPE)):
        known = pairs.filter(pl.col(side).is_in(list(words.labels)))
        stated[side] = _sorted_values(known, side)
        typed = constraints.filter(pl.col("constraint").str.ends_with(kind)).drop_nulls("class")
        constrained[side] = _sorted_values(typed, "class")
    rows = []
    for iri in sorted(set().union(*stated.values(), *constrained.values())):
        row: list[str | None] = [iri]
        for side in ("domain", "range"):
            if own := stated[side].get(iri):
                row += [own[0], "dbpedia"]
            else:
                other = words.finest_of(constrained[side].get(iri, []), names)
                row += [other, "wikidata" if other else None]
        rows.append(row)
    columns = ["property", "domain", "domain_source", "range", "range_source"]
    return pl.DataFrame(rows, schema=dict.fromkeys(columns, pl.String), orient="row")


def _sorted_values(rows: pl.DataFrame, column: str) -> dict[str, list[str]]:
    """property -> its different values in a column, in order."""
    return dict(rows.group_by("property").agg(pl.col(column).unique().sort()).rows())


def choose(properties: pl.DataFrame, n: int, named: Collection[str] | None = None) -> pl.DataFrame:
    """Marks the `n` properties with domain, range, superproperty and the most statements.

    The paper chose about 50 by hand ("sensible domain, range and superproperties"); this is a rule.
    With `named` (property IRIs) those are marked in its place, as far as they are there. Adds the
    column `chosen`; ties go to the property id.
    """
    if named is not None:
        return properties.with_columns(chosen=pl.col("property").is_in(sorted(named)))
    sensible = (
        pl.col("domain").is_not_null()
        & pl.col("range").is_not_null()
        & (pl.col("superproperties") > 0)
    )
    ordered = properties.filter(sensible).sort(["statements", "property"], descending=[True, False])
    chosen = ordered["property"].head(n).to_list()
    return properties.with_columns(chosen=pl.col("property").is_in(chosen))

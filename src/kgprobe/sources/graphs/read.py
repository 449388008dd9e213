"""Convert a user-supplied graph to the tables that a pull gives: statements, classes, hierarchies.

Independent of the format: readers return statements and labels, and roles define their meaning.
"""

import itertools
import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter

import numpy as np
import polars as pl
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components

from kgprobe.schema import COVERAGE, STATEMENTS, TYPES, Contract
from kgprobe.settings.sources import OwnGraph, Roles
from kgprobe.sources.graphs import lm_pub_quiz, rdf, tables
from kgprobe.sources.graphs.raw import (
    LABELS,
    LONGEST,
    PROBLEMS,
    SHOWN,
    STATED,
    GraphFileError,
    RawGraph,
    place,
    short,
)


def _contract(name: str, columns: str, key: str, nullable: str = "") -> Contract:
    texts = dict.fromkeys(columns.split(), pl.String)
    return Contract(name, texts, tuple(key.split()), frozenset(nullable.split()), True)


CLASSES = _contract("OWN_CLASSES", "class label", "class", "label")
#: A relation; `domain` and `range` are classes, the first by code point if there are several.
PROPERTIES = _contract(
    "OWN_PROPERTIES", "property label domain range", "property", "label domain range"
)
EDGES = _contract("OWN_EDGES", "child parent", "child parent")
TEMPLATES = _contract("OWN_TEMPLATES", "relation index kind text note", "relation index")

#: Contracts of the frames in `GraphTables`.
CONTRACTS = {
    "facts": STATEMENTS,
    "coverage": COVERAGE,
    "classes": CLASSES,
    "class_hierarchy": EDGES,
    "types": TYPES,
    "properties": PROPERTIES,
    "property_hierarchy": EDGES,
    "templates": TEMPLATES,
    "problems": PROBLEMS,
}
#: vocabularies that describe a graph: their statements are not facts, except for those of roles
DESCRIBING = re.compile(
    r"^http://www\.w3\.org/(1999/02/22-rdf-syntax-ns|2000/01/rdf-schema|2002/07/owl)#"
)


#: The frames of a graph by name.
GraphTables = dict[str, pl.DataFrame]


def read(name: str, section: OwnGraph, languages: Sequence[str]) -> GraphTables:
    """Read the tables of a graph, under CONTRACTS. Raises GraphFileError with all of its problems
    in one message."""
    graph = RawGraph(name, section.leave_out)
    if section.form == "table":
        tables.read(section, graph)
    elif section.form == "rdf":
        rdf.read(section, languages, graph)
    else:
        lm_pub_quiz.read(section, graph)
    for _, label, _, file, line in graph.labels:
        if "\0" in label:
            text = f"the label {short(repr(label))} has a NUL character; take it out"
            graph.unread.append(f"{place(file, line)}: {text}")
    if graph.lost or not graph.statements:
        graph.check()
    if not graph.statements:
        raise GraphFileError(f"sources.graphs.{name}: no statement in {', '.join(section.files)}")
    frames = _tables(section, graph)
    graph.check()
    return frames


def _tables(section: OwnGraph, graph: RawGraph) -> GraphTables:
    roles, stated = section.roles, pl.DataFrame(graph.statements, schema=STATED, orient="row")
    for column in ("subject", "relation", "object"):
        long = pl.col(column).str.len_chars() > LONGEST
        stated = graph.drop("long_id", stated, long, f"the {column} {{{column}}}")
    label_rows = pl.DataFrame(graph.labels, schema=LABELS, orient="row")
    label_rows = label_rows.filter(pl.col("id").str.len_chars() <= LONGEST)
    of = pl.col("relation")

    def about(*relations: str) -> pl.DataFrame:
        return stated.filter(of.is_in(relations))

    types = about(*roles.type)
    relations = types.filter(pl.col("object").is_in(roles.properties))["subject"].unique()
    declared = types.filter(pl.col("object").is_in(roles.classes))["subject"].unique()
    meta = [*roles.classes, *roles.properties]
    types = types.filter(
        ~pl.col("object").is_in(meta) & ~pl.col("object").str.contains(DESCRIBING.pattern)
    )
    above = about(*roles.subclass)
    used = pl.concat([types["object"], above["subject"], above["object"]]).unique()
    classes = declared if declared.len() else used
    above = above.filter(*(pl.col(end).is_in(classes.implode()) for end in ("subject", "object")))
    types = types.filter(pl.col("object").is_in(classes.implode()))
    types = types.filter(~pl.col("subject").is_in(classes.implode()))
    schema = (*roles.label, *roles.subproperty, *roles.domain, *roles.range)
    # from vocabularies, only types and superclasses between the graph's classes are facts
    described = [*roles.type, *roles.subclass] if section.form == "rdf" else []
    hidden = of.is_in([*schema, *described]) | of.str.contains(DESCRIBING.pattern)
    facts = pl.concat([stated.filter(~hidden), *((types, above) if described else ())])
    # statements about a declared relation are not facts
    known = relations.implode()
    facts = facts.filter(*(~pl.col(end).is_in(known) for end in ("subject", "object")))
    names = facts["relation"].unique().implode()
    for column in ("subject", "object"):
        text = f"the {column} {{{column}}} is a relation of other statements, too"
        facts = graph.drop("relation_as_entity", facts, pl.col(column).is_in(names), text)
    if section.ids == "wikidata":
        _require_ids(graph.name, facts)
    ends = pl.concat([facts["subject"], facts["object"]]).unique()
    below = about(*roles.subproperty)
    # superproperties of other vocabularies may have no label; DBpedia names classes by mistake
    is_named = pl.col("object").is_in(label_rows["id"].implode()) | (section.form != "rdf")
    is_class = pl.col("object").is_in(classes.implode())
    superproperties = below.filter(is_named & ~is_class)["object"]
    relations = pl.concat([relations, facts["relation"], below["subject"], superproperties])
    relations = relations.unique()
    _require_relations(graph.name, section, {*relations, *stated["relation"], *graph.literals})
    every = pl.concat([ends, classes, relations]).unique()
    labels = _labels(label_rows, every, graph)
    if section.ids == "own" and section.form != "rdf":
        # relations without a label, and entities if none has one, are named by their id
        by_id = {name: _words(name) for name in every.to_list()} if graph.named else {}
        labels = by_id | {name: _spaced(name) for name in relations.to_list()} | labels
    items = facts.filter(_object_kind(section) == "item")["object"]  # literals need no labels
    needed = pl.concat([facts["subject"], items, classes])
    if section.form == "rdf":
        labels = _of_roles(section, relations) | labels
        needed = pl.concat([needed, relations])
    _unlabeled(needed.unique(), labels, pl.concat([facts, stated]), graph)
    properties = _properties(relations.filter(~relations.is_in(schema)), about, roles, classes)
    statements = _statements(graph.name, section, facts, labels)
    frames = {
        "facts": statements,
        "coverage": _coverage(statements, graph.literals, schema),
        "classes": _with_label(pl.DataFrame({"class": classes}), "class", labels),
        "class_hierarchy": _hierarchy(above, graph),
        "types": _with_label(_pairs(types, "instance", "class"), "instance", labels),
        "properties": _with_label(properties, "property", labels),
        "property_hierarchy": _hierarchy(about(*roles.subproperty), graph),
        "templates": pl.DataFrame(graph.templates, schema=dict(TEMPLATES.columns)),
        "problems": graph.frame(),
    }
    return {one: frame.select(list(CONTRACTS[one].columns)) for one, frame in frames.items()}


def _of_roles(section: OwnGraph, relations: pl.Series) -> dict[str, str]:
    """Return labels for relations that have a known meaning (`known`) or a role."""
    known = {name: _spaced(name) for name in section.known}
    types = dict.fromkeys(section.roles.type, "instance of")
    above = dict.fromkeys(section.roles.subclass, "subclass of")
    return {name: text for name, text in (known | types | above).items() if name in relations}


def _require_ids(name: str, facts: pl.DataFrame) -> None:
    """Raise GraphFileError for a fact whose relation is not a Wikidata property id, whose subject
    is not a Wikidata entity id, or whose object is the address of an entity, no literal."""
    is_address = r"^(?:https?://www\.wikidata\.org/entity/|wd:)[A-Z][0-9]+$"
    checks = {
        ("relation", "a property"): ~pl.col("relation").str.contains(r"^P[1-9][0-9]*$"),
        ("subject", "an entity"): ~pl.col("subject").str.contains(r"^[A-Z][1-9][0-9]*$"),
        ("object", "an entity id"): pl.col("object").str.contains(is_address),
    }
    for (column, what), is_wrong in checks.items():
        for row in facts.filter(is_wrong).head(1).rows(named=True):
            raise GraphFileError(
                f"sources.graphs.{name}: {place(row['file'], row['line'])}: with ids: wikidata the "
                f"{column} {short(row[column])} is not {what}; expected ids such as Q31 and "
                "P36, or ids: own, with known for the relations that Wikidata has"
            )


def _require_relations(name: str, section: OwnGraph, relations: Collection[str]) -> None:
    """Raise GraphFileError for relations of `known` that are not in the graph."""
    if absent := sorted(section.known.keys() - set(relations)):
        raise GraphFileError(
            f"sources.graphs.{name}.known: the graph has no relation {', '.join(absent)}; it has "
            f"{short(', '.join(sorted(relations)))}"
        )


def _labels(label_rows: pl.DataFrame, ids: pl.Series, graph: RawGraph) -> dict[str, str]:
    """Return id -> its best label; among equally good labels the first by code point."""
    rows = label_rows.filter(pl.col("id").is_in(ids.implode()))
    best = rows.filter(pl.col("order") == pl.col("order").min().over("id"))
    # however their letters are composed
    best = best.with_columns(composed=pl.col("label").str.normalize("NFC"))
    best = best.unique(["id", "composed"], keep="first", maintain_order=True)
    several = best.filter(pl.col("id").is_duplicated())
    if several.height:
        texts = []
        for _, rows in itertools.islice(several.group_by("id", maintain_order=True), SHOWN):
            row, other = rows.row(0, named=True), rows.row(1, named=True)
            here, there = (place(one["file"], one["line"]) for one in (other, row))
            names = short(row["id"]), short(other["label"]), short(row["label"])
            texts.append(f"{here}: {names[0]} is {names[1]!r} here and {names[2]!r} in {there}")
        graph.note("two_labels", *texts, n=several["id"].n_unique())
    return dict(best.sort("id", "label", descending=True).select("id", "label").rows())


def _words(name: str) -> str:
    """Turn an id into words: the last part of an IRI, with spaces for underscores.

    >>> _words("http://example.org/New_York"), _words("iPhone")
    ('New York', 'iPhone')
    """
    words = re.split(r"[/#]", name.rstrip("/#"))[-1] if "://" in name else name
    return " ".join(words.replace("_", " ").split()) or name


def _spaced(name: str) -> str:
    """Turn a relation's id into words, also if it is in camelCase.

    >>> _spaced("http://example.org/capital_of"), _spaced("bornIn"), _spaced("New York")
    ('capital of', 'born in', 'New York')
    """
    words = _words(name)
    if re.fullmatch(r"[a-z]+(?:[A-Z][a-z]+)+", words):
        words = re.sub(r"([A-Z])", lambda m: f" {m[1].lower()}", words)
    return words


def _unlabeled(
    needed: pl.Series, labels: dict[str, str], stated: pl.DataFrame, graph: RawGraph
) -> None:
    """Note ids without a label, with a statement in which each of the first ones occurs."""
    missing = needed.filter(~needed.is_in(list(labels))).sort()
    if not missing.len():
        return
    rows = pl.concat(
        stated.filter(pl.col(column).is_in(missing.implode())).select("file", "line", name=column)
        for column in ("subject", "object", "relation")
    ).unique("name", keep="first", maintain_order=True)
    texts = [
        f"{place(file, line)}: {short(name)} has no label"
        for file, line, name in rows.head(SHOWN).rows()
    ]
    graph.note("missing_label", *texts, n=missing.len())


def _properties(
    relations: pl.Series, about: Callable[..., pl.DataFrame], roles: Roles, classes: pl.Series
) -> pl.DataFrame:
    """Return (property, domain, range) of every relation."""
    properties = pl.DataFrame({"property": relations})
    for column, names in (("domain", roles.domain), ("range", roles.range)):
        statements = about(*names).filter(pl.col("object").is_in(classes.implode()))
        first = statements.group_by("subject").agg(pl.col("object").min().alias(column))
        properties = properties.join(first, left_on="property", right_on="subject", how="left")
    return properties


def _object_kind(section: OwnGraph) -> pl.Expr:
    """Return the kind of objects: with Wikidata's ids, an object that is not an id is a literal."""
    item = pl.lit("item")
    if section.ids == "own":
        return item
    is_item = pl.col("object").str.contains(r"^[A-Z][0-9]+$")
    return pl.when(is_item).then(item).otherwise(pl.lit("literal"))


def _statements(
    name: str, section: OwnGraph, facts: pl.DataFrame, labels: Mapping[str, str]
) -> pl.DataFrame:
    """Return facts as STATEMENTS."""
    key = ["subject", "relation", "object"]
    rows = facts.select(
        *key, kg=pl.lit(name if section.ids == "own" else section.ids),
        object_kind=_object_kind(section), rank=pl.lit("normal"),
        subject_sitelinks=pl.lit(None, pl.Int64), object_sitelinks=pl.lit(None, pl.Int64),
    ).unique(key)  # fmt: skip
    for side in ("subject", "object"):
        rows = _with_label(rows, side, labels, f"{side}_label")
    return rows


def _coverage(
    statements: pl.DataFrame, literals: Mapping[str, int], schema: Sequence[str]
) -> pl.DataFrame:
    """Return COVERAGE: all relations are complete; also counts their literal values."""
    here = Counter(statements["relation"])
    items = Counter(statements.filter(object_kind="item")["relation"])
    texts = here - items + Counter(literals)
    names = [
        name
        for name in sorted({*here, *literals} - set(schema))
        if name in here or not DESCRIBING.match(name)
    ]
    rows = [
        (name, "read", here[name], "", *(items[name], 0, 0, texts[name], 0, 0, None))
        for name in names
    ]
    return pl.DataFrame(rows, schema=dict(COVERAGE.columns), orient="row")


def _with_label(
    frame: pl.DataFrame, column: str, labels: Mapping[str, str], to: str = "label"
) -> pl.DataFrame:
    label = pl.col(column).replace_strict(labels, default=None, return_dtype=pl.String)
    return frame.with_columns(label.alias(to))


def _pairs(stated: pl.DataFrame, first: str, second: str) -> pl.DataFrame:
    return stated.select(pl.col("subject").alias(first), pl.col("object").alias(second)).unique()


def _hierarchy(stated: pl.DataFrame, graph: RawGraph) -> pl.DataFrame:
    """Return the edges as EDGES, without those that are part of a cycle."""
    edges = stated.unique(["subject", "object"], keep="first", maintain_order=True)
    if not edges.height:
        return _pairs(edges, "child", "parent")
    names = pl.concat([edges["subject"], edges["object"]]).unique().sort()
    numbers = pl.Enum(names)
    ends = [edges[c].cast(numbers).to_physical().to_numpy() for c in ("subject", "object")]
    matrix = coo_matrix((np.ones(edges.height), tuple(ends)), shape=(len(names), len(names)))
    _, group = connected_components(matrix, connection="strong")
    looped = pl.Series(group[ends[0]] == group[ends[1]])
    if looped.any():
        inside = edges.filter(looped)
        row = inside.row(0, named=True)
        ordered = inside.sort("subject", "object").group_by("subject", maintain_order=True)
        try:
            TopologicalSorter(dict(ordered.agg("object").rows())).prepare()
        except CycleError as error:
            shown = " > ".join(short(name) for name in reversed(error.args[1]))
            text = f"{place(row['file'], row['line'])}: {shown}, each below the next"
            graph.note("loop", text, n=inside.height)
    return _pairs(edges.filter(~looped), "child", "parent")

"""The DBpedia side of the embedded graph: ontology classes and properties, and the instances.

Names of the DBpedia ontology are typed without prefix (`City`), all others with one (`owl:Thing`,
`wd:Q515`, `schema:City`, `xsd:date`). The class of an entity is decided as in DBpedia: one most
specific class for each resource, from an explicit row of dbpedia_instances.tsv, else from the first
of its rules that matches.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from tools.world.facts import INSTANCE_OF, SUBCLASS_OF
from tools.world.tables import Report, Row, read_table

DBO, DBR = "http://dbpedia.org/ontology/", "http://dbpedia.org/resource/"
PREFIXES = {
    "owl": "http://www.w3.org/2002/07/owl#",
    "rdf": "http://www.w3.org/1999/02/22-rdf-syntax-ns#",
    "rdfs": "http://www.w3.org/2000/01/rdf-schema#",
    "xsd": "http://www.w3.org/2001/XMLSchema#",
    "wd": "http://www.wikidata.org/entity/",
    "schema": "http://schema.org/",
    "DUL": "http://www.ontologydesignpatterns.org/ont/dul/DUL.owl#",
    "d0": "http://www.ontologydesignpatterns.org/ont/d0.owl#",
    "foaf": "http://xmlns.com/foaf/0.1/",
    "dbd": "http://dbpedia.org/datatype/",
}
CLASS_COLUMNS = ("class", "label", "parents", "equivalent")
PROPERTY_COLUMNS = ("property", "kind", "label", "domain", "range", "parents", "equivalent")
INSTANCE_COLUMNS = ("class", "of", "with", "entities")
#: Printable ASCII that an IRI must not hold, and that DBpedia therefore percent-encodes.
_ENCODED = {ord(c): f"%{ord(c):02X}" for c in '"#%<>?[\\]^`{|}'} | {ord(" "): "_"}


@dataclass(frozen=True)
class Term:
    """A class or property of the DBpedia ontology; everything but the label is full IRIs.

    kind is class, object or datatype; domain and range are null for classes and where not stated.
    """

    iri: str
    kind: str
    label: str | None
    parents: tuple[str, ...]
    equivalents: tuple[str, ...]
    domain: str | None = None
    range: str | None = None


@dataclass(frozen=True)
class Dbpedia:
    """Terms by IRI, and instances: resource, class, label, id (the Wikidata item)."""

    terms: dict[str, Term]
    instances: pl.DataFrame

    def ancestors(self, iri: str) -> list[str]:
        """Return the declared classes above `iri`, nearest first, without undeclared ones."""
        found: list[str] = []
        queue = [iri]
        while queue:
            term = self.terms.get(queue.pop(0))
            parents = term.parents if term is not None else ()
            fresh = [p for p in parents if p in self.terms and p not in found and p != iri]
            found += fresh
            queue += fresh
        return found

    def summary(self) -> str:
        """Format counts of classes, properties and instances."""
        kinds = [t.kind for t in self.terms.values()]
        used = self.instances["class"].n_unique()
        properties = f"{kinds.count('object')} object and {kinds.count('datatype')} datatype"
        return (
            f"DBpedia: {kinds.count('class')} classes, {properties} properties, "
            f"{self.instances.height} instances of {used} classes"
        )


def resource_iri(title: str) -> str:
    """Return the DBpedia resource of a Wikipedia title: spaces become `_`, non-ASCII letters
    stay."""
    return DBR + title.translate(_ENCODED)


def read_dbpedia(
    folder: Path,
    items: dict[str, str],
    keys: dict[str, str],
    statements: pl.DataFrame,
    report: Report,
) -> Dbpedia:
    """Return terms and instances. `items` maps keys to ids, `keys` ids to keys."""
    terms: dict[str, Term] = {}
    for row in read_table(folder / "dbpedia_classes.tsv", CLASS_COLUMNS, report):
        _add(terms, _term(row, "class", "class", report), row, "class", report)
    for row in read_table(folder / "dbpedia_properties.tsv", PROPERTY_COLUMNS, report):
        kind = row.text("kind")
        if kind not in ("object", "datatype"):
            report.add(row, "kind", kind, "object or datatype")
        _add(terms, _term(row, "property", kind, report), row, "property", report)
    rows = list(read_table(folder / "dbpedia_instances.tsv", INSTANCE_COLUMNS, report))
    chosen = _explicit(rows, terms, items, report)
    facts = _facts(statements)
    rules = [_rule(row, items, report) for row in rows if not row.values("entities")]
    above = _closure(statements)
    for item, key in keys.items():
        if item not in chosen:
            wanted = _first_fit(rules, facts.get(item, set()), above)
            if wanted is not None:
                chosen[item] = (wanted, key)
    instances = [(resource_iri(t), c, t, item) for item, (c, t) in chosen.items()]
    schema = dict.fromkeys(("resource", "class", "label", "id"), pl.String)
    frame = pl.DataFrame(instances, schema=schema, orient="row").sort("resource", "class", "id")
    return Dbpedia(terms, frame)


def _add(terms: dict[str, Term], term: Term, row: Row, column: str, report: Report) -> None:
    if term.iri in terms:
        report.add(row, column, row.text(column), "already defined in this table")
    terms[term.iri] = term


def _term(row: Row, column: str, kind: str, report: Report) -> Term:
    def iris(name: str) -> tuple[str, ...]:
        return tuple(_iri(row, name, value, report) for value in row.values(name))

    domain, range_ = iris("domain"), iris("range")
    return Term(
        iri=_iri(row, column, row.text(column), report),
        kind=kind,
        label=row.text("label") or None,
        parents=iris("parents"),
        equivalents=iris("equivalent"),
        domain=domain[0] if domain else None,
        range=range_[0] if range_ else None,
    )


def _iri(row: Row, column: str, value: str, report: Report) -> str:
    prefix, colon, name = value.partition(":")
    if not colon:
        if not value or " " in value:
            report.add(row, column, value, "the local name of a dbo term is needed")
        return DBO + value
    if prefix not in PREFIXES:
        report.unknown(row, column, value, PREFIXES, f"a name with one of {', '.join(PREFIXES)}")
        return DBO + name
    return PREFIXES[prefix] + name


def _explicit(
    rows: list[Row], terms: dict[str, Term], items: dict[str, str], report: Report
) -> dict[str, tuple[str, str]]:
    """Return item -> (class, title) of the rows that name entities (`key` or `key=Title`)."""
    chosen: dict[str, tuple[str, str]] = {}
    for row in rows:
        wanted = DBO + row.text("class")
        if wanted not in terms:
            names = [t.removeprefix(DBO) for t in terms]
            report.unknown(row, "class", row.text("class"), names, "in dbpedia_classes.tsv")
        for value in row.values("entities"):
            key, _, title = value.partition("=") if value not in items else (value, "", "")
            if key not in items:
                report.unknown(row, "entities", key, items, "the key of an entity")
            elif items[key] in chosen:
                report.add(row, "entities", key, "already an instance in a row above")
            else:
                chosen[items[key]] = (wanted, title or key)
    return chosen


@dataclass(frozen=True)
class _Rule:
    """Matches an item that is an instance of one of `of`, and has one of `with_` if there are
    any."""

    wanted: str
    of: frozenset[str]
    with_: frozenset[str]


def _rule(row: Row, items: dict[str, str], report: Report) -> _Rule:
    found: dict[str, set[str]] = {"of": set(), "with": set()}
    for column, ids in found.items():
        for key in row.values(column):
            if key in items:
                ids.add(items[key])
            else:
                report.unknown(row, column, key, items, "the key of a class or entity")
    return _Rule(DBO + row.text("class"), frozenset(found["of"]), frozenset(found["with"]))


def _facts(statements: pl.DataFrame) -> dict[str, set[tuple[str, str]]]:
    facts: dict[str, set[tuple[str, str]]] = {}
    kept = statements.filter((pl.col("kind") == "item") & (pl.col("rank") != "deprecated"))
    for subject, relation, value in kept.select("subject", "relation", "object").iter_rows():
        facts.setdefault(subject, set()).add((relation, value))
    return facts


def _closure(statements: pl.DataFrame) -> dict[str, set[str]]:
    """Return class -> itself and all classes above it by P279."""
    edges = statements.filter((pl.col("relation") == SUBCLASS_OF) & (pl.col("kind") == "item"))
    parents: dict[str, list[str]] = {}
    for subject, value in edges.select("subject", "object").iter_rows():
        parents.setdefault(subject, []).append(value)
    return {c: _upwards(c, parents) for c in parents}


def _upwards(start: str, parents: dict[str, list[str]]) -> set[str]:
    found, queue = {start}, [start]
    while queue:
        fresh = [p for p in parents.get(queue.pop(), ()) if p not in found]
        found.update(fresh)
        queue += fresh
    return found


def _first_fit(
    rules: Iterable[_Rule], facts: set[tuple[str, str]], above: dict[str, set[str]]
) -> str | None:
    direct = {o for r, o in facts if r == INSTANCE_OF}
    types = direct.union(*(above.get(c, set()) for c in direct))
    values = {o for _, o in facts}
    for rule in rules:
        if types & rule.of and (not rule.with_ or values & rule.with_):
            return rule.wanted
    return None

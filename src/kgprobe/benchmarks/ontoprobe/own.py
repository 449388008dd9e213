"""The five tasks from our own ontology: classes, chains, instances and properties as pulled."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import polars as pl

from kgprobe.benchmarks.ontoprobe.build import TaskProblems, distinct
from kgprobe.benchmarks.ontoprobe.concepts import (
    TASKS,
    Class,
    ConceptRows,
    Concepts,
    Property,
    TaskRow,
    corrected,
    norm,
    roles,
)
from kgprobe.benchmarks.ontoprobe.modes import Switches
from kgprobe.sampling import hash_key
from kgprobe.templates import sentence


@dataclass(frozen=True)
class OwnOntology:
    """The ontology's frames (contracts of knowledge.ontology), with the statements' labels.

    `popularity` maps an instance's label to what is known of its use.
    """

    classes: pl.DataFrame
    class_chains: pl.DataFrame
    instances: pl.DataFrame
    properties: pl.DataFrame
    property_chains: pl.DataFrame
    popularity: Mapping[str, int]


def take(
    tables: OwnOntology,
    patterns: Sequence[Mapping[str, str]],
    switches: Switches,
    seed: int,
    properties: int = 50,
    partly: bool = False,
) -> ConceptRows:
    """Rows by seeded hash of their subjects: train and dev (switch `split`), the rest for testing.

    A property is taken when it has a pattern, a superproperty with a pattern, domain and range;
    then the `properties` with the most statements (another number under the switch `properties`).
    An instance of two finest classes counts for the deeper one. `partly`, for own graphs: a
    property needs one of superproperty, domain and range, a task with too few rows is left out and
    the funnel says so, as long as one is left. Raises one ValueError that names
    every task with too few rows, every class without a label, every wrong pattern or end.
    """
    problems, lacking = TaskProblems("own ontology"), TaskProblems("own ontology")
    if switches.properties.isdigit():
        properties = int(switches.properties)
    known, steps = _concepts(tables, patterns, switches, properties, problems, partly)
    asked = [*_types(tables, known, switches), *_chains(known), *_properties(known)]
    steps.append(
        ("TP", "classes with an instance", len({r.golds[0] for r in asked if r.task == "TP"}))
    )
    found = []
    for task in TASKS:
        own = [r for r in asked if r.task == task]
        own.sort(key=lambda r: (hash_key(seed, "ontoprobe", r.task, r.id), r.id))
        if partly:
            own = list({(r.subject, frozenset(r.golds)): r for r in reversed(own)}.values())[::-1]
        with (lacking if partly else problems).of(task):
            given = roles(len(own), task, "own ontology", *switches.parts)
            found += [
                replace(row, row=number, role=role)
                for number, (row, role) in enumerate(zip(own, given, strict=True))
            ]
    distinct(found, "own ontology", problems)
    if found:
        steps += [(task, text[0], 0) for task, text in lacking.found.items()]
        lacking.found.clear()
    lacking.check()
    problems.check()
    return ConceptRows(known, found, steps)


def popularity(facts: pl.DataFrame) -> dict[str, int]:
    """In how many statements an entity of each label stands, as subject or object."""
    ends = pl.concat(
        [
            facts.select(pl.col("subject_label").alias("label")),
            facts.select(pl.col("object_label").alias("label")),
        ]
    ).drop_nulls()
    return dict(ends.group_by("label").len().rows())


def _concepts(
    tables: OwnOntology,
    patterns: Sequence[Mapping[str, str]],
    switches: Switches,
    most: int,
    problems: TaskProblems,
    partly: bool,
) -> tuple[Concepts, list[tuple[str, str, int]]]:
    chains: dict[str, list[str]] = {}
    for iri, label in (
        tables.class_chains.sort("id", "position").select("id", "ancestor_label").rows()
    ):
        chains.setdefault(iri, []).append(label)
    members: dict[str, list[str]] = {}
    for iri, label in tables.instances.sort("class", "instance").select("class", "label").rows():
        members.setdefault(iri, []).append(label)
    kinds = _once_per_label(
        Class(iri, label, tuple(chains.get(iri, ())), tuple(members.get(iri, ())))
        for iri, label in tables.classes.sort("class").select("class", "label").rows()
    )
    labels = dict(tables.classes.select("class", "label").rows())
    texts = {row["property"]: corrected(row["pattern"], switches.patterns) for row in patterns}
    _check(tables.classes, texts, problems)
    above: dict[str, list[tuple[str, str]]] = {}
    columns = ("id", "ancestor", "ancestor_label")
    for iri, parent, label in tables.property_chains.sort("id", "position").select(columns).rows():
        above.setdefault(iri, []).append((parent, label))
    chosen: list[Property] = []
    named: dict[str, str] = {}
    counts = dict.fromkeys(("superproperty", "ends", "pattern"), 0)
    # those that every task can ask of come first
    orders = ["chosen", "statements", "property"] if partly else ["statements", "property"]
    ordered = tables.properties.sort(orders, descending=[*[True] * (len(orders) - 1), False])
    for row in ordered.iter_rows(named=True):
        parents = [(p, name) for p, name in above.get(row["property"], []) if _key(p, texts)]
        some = parents or row["domain"] or row["range"]
        if not (some if partly else parents):
            continue
        counts["superproperty"] += bool(parents)
        if not partly and not (row["domain"] and row["range"]):
            continue
        counts["ends"] += bool(row["domain"] and row["range"])
        own_key = _key(row["property"], texts)
        if not own_key:
            continue
        counts["pattern"] += 1
        if len(chosen) == most:
            continue
        named |= {name: texts[_key(p, texts)] for p, name in parents}
        named[row["label"]] = texts[own_key]
        names = tuple(dict.fromkeys(name for _, name in parents))
        ends = labels.get(row["domain"]), labels.get(row["range"])
        for task, name, end in zip(("DM", "RG"), ("domain", "range"), ends, strict=True):
            if not end and not (partly and row[name] is None):
                problems.add(
                    task,
                    f"properties, {row['property']} ({row['label']}): its {name} {row[name]} is no "
                    "class of the ontology; pull the class, or take the property out",
                )
        chosen.append(Property(row["property"], row["label"], texts[own_key], *ends, names))
    steps = [("TP", "classes", len(kinds)), ("SCO", "classes", len(kinds))]
    for task in ("SPO", "DM", "RG"):
        steps += [
            (task, "properties", tables.properties.height),
            (task, "with a superproperty that has a pattern", counts["superproperty"]),
            (task, "with domain and range", counts["ends"]),
            (task, "with a pattern", counts["pattern"]),
            (task, "chosen", len(chosen)),
        ]
    return Concepts(tuple(kinds), tuple(chosen), named), steps


def _check(classes: pl.DataFrame, texts: Mapping[str, str], problems: TaskProblems) -> None:
    """Note classes without a label and patterns without both places."""
    for number, (iri, label) in enumerate(classes.select("class", "label").rows()):
        if not (label or "").strip():
            problems.add("ontology", f"classes, row {number} ({iri}): no label; add rdfs:label")
    for name, text in texts.items():
        with problems.of("ontology"):
            sentence(text, f"resources/templates/ontology_patterns.tsv, {name}")


def _types(tables: OwnOntology, known: Concepts, switches: Switches) -> list[TaskRow]:
    """One row per instance: class and chain; at most `instances_per_class` of each class."""
    of = {c.id: c for c in known.classes}
    most = switches.instances_per_class
    counts: dict[str, int] = {}
    found: dict[str, TaskRow] = {}
    rows = tables.instances.sort("class", "instance").select("class", "instance", "label").rows()
    for iri, instance, label in rows:
        if iri not in of or (most.isdigit() and counts.get(iri, 0) >= int(most)):
            continue
        counts[iri] = counts.get(iri, 0) + 1
        own = of[iri]
        golds = _golds((own.label, *own.chain))
        use = tables.popularity.get(label)
        row = TaskRow("TP", 0, "", instance, label, golds, None, len(own.chain), use, "instances")
        # two entities of one name would be one question with two answers: the deeper class stays
        other = found.get(label)
        if other is None or other.depth < row.depth:
            found[label] = row
    return list(found.values())


def _chains(known: Concepts) -> list[TaskRow]:
    return [
        TaskRow(
            "SCO", 0, "", c.id, c.label, _golds(c.chain), None, len(c.chain), None, "class_chains"
        )
        for c in known.classes
        if c.chain
    ]


def _properties(known: Concepts) -> list[TaskRow]:
    found = []
    for p in known.properties:
        for task, golds in (("SPO", p.above), ("DM", (p.domain,)), ("RG", (p.range,))):
            kept = _golds(tuple(g for g in golds if g))
            if not kept:
                continue
            found.append(
                TaskRow(task, 0, "", p.id, p.label, kept, p.pattern, 0, None, "properties")
            )
    return found


def _golds(labels: Sequence[str]) -> tuple[str, ...]:
    """Labels that differ once they are normalized, in order."""
    return tuple({norm(label): label for label in reversed(labels)}.values())[::-1]


def _once_per_label(classes: Iterable[Class]) -> list[Class]:
    found: dict[str, Class] = {}
    for own in classes:
        found.setdefault(norm(own.label).casefold(), own)
    return list(found.values())


def _key(iri: str, texts: Mapping[str, str]) -> str:
    """The name that a property's pattern stands under, its IRI or the end of it; else nothing."""
    return next((name for name in (iri, iri.rsplit("/", 1)[-1]) if name in texts), "")

"""Build the five tasks from pulled ontology tables: classes, chains, instances, properties."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any
from unicodedata import normalize

import polars as pl

from kgprobe.benchmarks.ontoprobe import concepts
from kgprobe.benchmarks.ontoprobe.build import TaskProblems, distinct
from kgprobe.benchmarks.ontoprobe.concepts import Class, ConceptRows, Concepts, Property, TaskRow
from kgprobe.benchmarks.ontoprobe.modes import Switches
from kgprobe.knowledge.facts import uses
from kgprobe.knowledge.ontology import OntologyTables
from kgprobe.sampling import hash_key
from kgprobe.sampling import take as sample
from kgprobe.templates import sentence

ABOVE = "with a superproperty that has a pattern"


def take(
    tables: OntologyTables,
    popular: Mapping[str, int],
    patterns: Sequence[Mapping[str, str]],
    switches: Switches,
    seed: int,
    properties: int = 50,
    partly: bool = False,
) -> ConceptRows:
    """Select rows by seeded hash of their subjects: train and dev (switch `split`), rest for test.

    `popular` is the `popularity` of labels.
    Properties must have a pattern, domain, range and a superproperty with a pattern; those with the
    most statements are taken: `properties`, or as many as the switch says. With `partly`, for
    user-supplied graphs, a property needs one of superproperty, domain and range, and tasks with
    too few rows are dropped and reported in the funnel; at least one task must be left.
    """
    problems, lacking = TaskProblems("own ontology"), TaskProblems("own ontology")
    if switches.properties.isdigit():
        properties = int(switches.properties)
    classes = _classes(tables)
    known, steps = _concepts(tables, classes, patterns, switches, properties, problems, partly)
    rows = [*_types(tables, classes, popular, switches, seed), *_stated(known)]
    with_instance = {row.golds[0] for row in rows if row.task == "TP"}
    steps.append(("TP", "classes with an instance", len(with_instance)))
    chosen = []
    for task in concepts.TASKS:
        pool = [r for r in rows if r.task == task]
        pool.sort(key=lambda r: (hash_key(seed, "ontoprobe", r.task, r.id), r.id))
        if partly:
            pool = list({(r.subject, frozenset(r.golds)): r for r in reversed(pool)}.values())[::-1]
        with (lacking if partly else problems).of(task):
            given = concepts.roles(len(pool), task, "own ontology", *switches.parts)
            numbered = enumerate(zip(pool, given, strict=True))
            chosen += [replace(row, row=number, role=role) for number, (row, role) in numbered]
    distinct(chosen, problems)
    if chosen:
        steps += [(task, text[0], 0) for task, text in lacking.messages.items()]
        lacking.messages.clear()
    lacking.check()
    problems.check()
    return ConceptRows(known, chosen, steps)


def popularity(facts: pl.DataFrame) -> dict[str, int]:
    """Return label -> number of statements in which it is the label of subject or object."""
    return dict(uses(facts, "subject_label", "object_label").rows())


def _classes(tables: OntologyTables) -> dict[str, Class]:
    """Return IRI -> class; the first of several classes with one name decides the spelling."""
    chains = _by_first(tables.class_chains.sort("id", "position").select("id", "ancestor"))
    members = _by_first(tables.instances.sort("class", "instance").select("class", "label"))
    names: dict[str, str] = {}
    labels: dict[str, str] = {}
    for iri, label in tables.classes.sort("class").select("class", "label").rows():
        labels[iri] = names.setdefault(concepts.name_of(label), label)
    classes = {}
    for iri, label in labels.items():
        # ancestors with one name count as one, also in the depth
        chain = dict.fromkeys(labels[a] for a in chains.get(iri, ()) if labels[a] != label)
        classes[iri] = Class(iri, label, tuple(chain), tuple(members.get(iri, ())))
    return classes


def _concepts(
    tables: OntologyTables,
    classes: Mapping[str, Class],
    patterns: Sequence[Mapping[str, str]],
    switches: Switches,
    most: int,
    problems: TaskProblems,
    partly: bool,
) -> tuple[Concepts, list[tuple[str, str, int]]]:
    labels = {iri: kind.label for iri, kind in classes.items()}
    kinds: dict[str, Class] = {}
    for kind in classes.values():
        # the first class of a name represents all of them
        kinds.setdefault(kind.label, kind)
    mode = switches.patterns
    texts = {row["property"]: concepts.corrected(row["pattern"], mode) for row in patterns}
    _check(tables.classes, texts, problems)
    parents = tables.property_chains.sort("id", "position").select(
        "id", pl.concat_list("ancestor", "ancestor_label")
    )
    above = _by_first(parents)
    chosen: list[Property] = []
    named: dict[str, str] = {}
    counts = dict.fromkeys((ABOVE, "with domain and range", "with a pattern"), 0)
    # the first property of a name decides the spelling
    names: dict[str, str] = {}
    for label in tables.properties.sort("property")["label"]:
        names.setdefault(concepts.name_of(label), label)
    # properties that all tasks can use come first
    orders = ["chosen", "statements", "property"] if partly else ["statements", "property"]
    ordered = tables.properties.sort(orders, descending=[*[True] * (len(orders) - 1), False])
    for row in ordered.iter_rows(named=True):
        own_name = names[concepts.name_of(row["label"])]
        known = [(p, names.get(concepts.name_of(n), n)) for p, n in above.get(row["property"], ())]
        up = {n: _key(p, texts) for p, n in known if n != own_name and _key(p, texts)}
        both_ends = bool(row["domain"] and row["range"])
        if not (up or (partly and (row["domain"] or row["range"]))):
            continue
        counts[ABOVE] += bool(up)
        if not (both_ends or partly):
            continue
        counts["with domain and range"] += both_ends
        own_key = _key(row["property"], texts)
        # the first property of a name represents all of them, like for classes
        if not own_key or any(one.label == own_name for one in chosen):
            continue
        counts["with a pattern"] += 1
        if len(chosen) == most:
            continue
        named |= {name: texts[key] for name, key in up.items()}
        named[own_name] = texts[own_key]
        ends = labels.get(row["domain"]), labels.get(row["range"])
        for task, name, end in zip(("DM", "RG"), ("domain", "range"), ends, strict=True):
            if not end and not (partly and row[name] is None):
                text = f"properties, {row['property']} ({row['label']}): its {name} {row[name]} is "
                text += "not a class of the ontology; pull the class, or take the property out"
                problems.add(task, text)
        chosen.append(Property(row["property"], own_name, texts[own_key], *ends, tuple(up)))
    steps = [(task, "classes", len(kinds)) for task in ("TP", "SCO")]
    kept = {"properties": tables.properties.height, **counts, "chosen": len(chosen)}
    steps += [(task, step, n) for task in ("SPO", "DM", "RG") for step, n in kept.items()]
    return Concepts(tuple(kinds.values()), tuple(chosen), named), steps


def _by_first(rows: pl.DataFrame) -> dict[str, list[Any]]:
    """Return first column -> values of the second, in order."""
    first, second = rows.columns
    return dict(rows.group_by(first, maintain_order=True).agg(second).rows())


def _check(classes: pl.DataFrame, texts: Mapping[str, str], problems: TaskProblems) -> None:
    """Record classes without a label and patterns without both slots."""
    for number, (iri, label) in enumerate(classes.select("class", "label").rows()):
        if not (label or "").strip():
            problems.add("ontology", f"classes, row {number} ({iri}): no label; add rdfs:label")
    for name, text in texts.items():
        with problems.of("ontology"):
            sentence(text, f"resources/templates/ontology_patterns.tsv, {name}")


def _types(
    tables: OntologyTables,
    of: Mapping[str, Class],
    popular: Mapping[str, int],
    switches: Switches,
    seed: int,
) -> list[TaskRow]:
    """Return a TP row per instance label (golds: its classes and their chains), limited per class
    by the hash that sampled the instances of the ontology."""
    most = switches.instances_per_class
    rows = tables.instances.sort("class", "instance").filter(pl.col("class").is_in(list(of)))
    if most.isdigit():
        rows = sample(rows, int(most), seed, ["instance"], ["class"], "ontology")
    by_label: dict[str, TaskRow] = {}
    for iri, instance, label in rows.select("class", "instance", "label").rows():
        kind = of[iri]
        golds, depth = _golds((kind.label, *kind.chain)), len(kind.chain)
        n = popular.get(label)
        row = TaskRow("TP", 0, "", instance, label, golds, None, depth, n, "instances")
        # a name with several classes is one question, for which all are right, the deepest first
        name = normalize("NFC", label)
        other = by_label.get(name, row)
        first, second = (row, other) if other.depth < depth else (other, row)
        by_label[name] = replace(first, golds=_golds([*first.golds, *second.golds]))
    return list(by_label.values())


def _stated(known: Concepts) -> list[TaskRow]:
    """Return a row for every class with a superclass, and for each axiom of a property."""
    rows = [
        TaskRow("SCO", 0, "", c.id, c.label, _golds(c.chain), None, len(c.chain),
                where="class_chains")
        for c in known.classes if c.chain
    ]  # fmt: skip
    for p in known.properties:
        for task, golds in (("SPO", p.above), ("DM", (p.domain,)), ("RG", (p.range,))):
            if kept := _golds([gold for gold in golds if gold]):
                row = TaskRow(task, 0, "", p.id, p.label, kept, p.pattern, where="properties")
                rows.append(row)
    return rows


def _golds(labels: Sequence[str]) -> tuple[str, ...]:
    """Return the labels that differ after normalization, in order; the first of equal ones."""
    first: dict[str, str] = {}
    for label in labels:
        first.setdefault(concepts.norm(label), label)
    return tuple(first.values())


def _key(iri: str, texts: Mapping[str, str]) -> str:
    """Return the key of a property's pattern in `texts`, its IRI or local name; else ""."""
    return next((name for name in (iri, iri.rsplit("/", 1)[-1]) if name in texts), "")

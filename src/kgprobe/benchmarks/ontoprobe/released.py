"""The released OntoProbe: its ontology (class.json, property.json) and its five tasks."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl

from kgprobe.benchmarks.ontoprobe.build import TaskProblems, concepts_known, distinct
from kgprobe.benchmarks.ontoprobe.concepts import (
    Class,
    ConceptRows,
    Concepts,
    Property,
    TaskRow,
    corrected,
    roles,
)
from kgprobe.benchmarks.ontoprobe.modes import Switches
from kgprobe.sheets import text_lines
from kgprobe.templates import TemplateError, sentence

CLASSES: dict[str, Any] = {
    "class": pl.String,
    "label": pl.String,
    "superclasses": pl.List(pl.String),
    "instances": pl.List(pl.String),
}
PROPERTIES: dict[str, Any] = {
    "number": pl.Int32,
    "label": pl.String,
    "property": pl.String,
    "dbpedia": pl.String,
    "domain": pl.String,
    "range": pl.String,
    "superproperties": pl.List(pl.String),
    "pattern": pl.String,
}
WIKIDATA = "http://www.wikidata.org/entity/"


def classes(folder: Path) -> pl.DataFrame:
    """One row per class: IRI, label, superclass labels (as released, finest first), instances."""
    rows = [
        (
            entry["rdfs:Class"],
            entry["rdfs:label"],
            entry.get("rdfs:subClassOf") or [],
            entry.get("is rdf:type of") or [],
        )
        for entry in _entries(folder / "class.json")
    ]
    return pl.DataFrame(rows, schema=CLASSES, orient="row")


def properties(folder: Path) -> pl.DataFrame:
    """One row per property.

    The file spells the key of the range `rdf:range`, and some of DBpedia's IRIs with https, which
    name nothing: they are read as what DBpedia calls them.
    """
    rows = []
    for entry in _entries(folder / "property.json"):
        iris = entry["rdf:Property"]
        iris = [iris] if isinstance(iris, str) else iris
        wikidata = [i.rsplit(":", 1)[-1] for i in iris if "wikidata.org" in i]
        dbpedia = [i.replace("https:", "http:", 1) for i in iris if "dbpedia.org" in i]
        rows.append(
            (
                entry["id"],
                entry["rdfs:label"],
                WIKIDATA + wikidata[0] if wikidata else None,
                dbpedia[0] if dbpedia else None,
                entry.get("rdfs:domain") or None,
                entry.get("rdf:range") or None,
                sorted(entry.get("rdfs:subPropertyOf") or {}),
                entry.get("pattern") or None,
            )
        )
    return pl.DataFrame(rows, schema=PROPERTIES, orient="row")


def _entries(path: Path) -> list[dict[str, Any]]:
    if not path.is_file():
        raise FileNotFoundError(f"{path}: the released ontology is not there; set KGPROBE_DATA")
    entries = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(entries, list):
        raise ValueError(f"{path}: holds {type(entries).__name__}, expected a list")
    return list(entries)


#: task -> its file of questions
FILES = {
    "TP": "type",
    "SCO": "subClassOf",
    "SPO": "subPropertyOf",
    "DM": "domain",
    "RG": "range",
}


def take(folder: Path, switches: Switches) -> ConceptRows:
    """The five released tasks in file order (10 train, 10 dev, rest test), and their ontology.

    `folder` holds `ontology` and `memorizing`. Raises one ValueError that names file and row of
    every class without label or instances, property without pattern, domain or range, question
    without subject or gold, question of two parts, and every task with too few rows.
    """
    problems = TaskProblems(str(folder))
    known = concepts(folder / "ontology", switches, problems)
    depths = {c.label: len(c.chain) for c in known.classes}
    ids = {c.label: c.id for c in known.classes} | {p.label: p.id for p in known.properties}
    found: list[TaskRow] = []
    steps = [("TP", "classes", len(known.classes))]
    steps += [("TP", "classes with an instance", sum(bool(c.instances) for c in known.classes))]
    steps += [("SCO", "classes", len(known.classes))]
    steps += [(task, "properties", len(known.properties)) for task in ("SPO", "DM", "RG")]
    for task, name in FILES.items():
        path = folder / "memorizing" / f"{name}.jsonl"
        entries = _questions(path, task, problems)
        steps.append((task, "rows of the file", len(entries)))
        with problems.of(task):
            given = roles(len(entries), task, str(path), *switches.parts)
            for number, ((line, entry), role) in enumerate(zip(entries, given, strict=True)):
                where = f"{path}, line {line}"
                with problems.of(task):
                    found.append(_row(task, number, role, entry, where, switches, ids, depths))
    distinct(found, str(folder), problems)
    concepts_known(found, known, str(folder / "ontology"), problems)
    problems.check()
    return ConceptRows(known, found, steps)


def concepts(folder: Path, switches: Switches, problems: TaskProblems | None = None) -> Concepts:
    """The released class.json and property.json as an ontology in words.

    Wrong entries are left out and noted in `problems`; without it they raise ValueError.
    """
    path, noted = folder / "class.json", problems or TaskProblems(str(folder))
    kinds = []
    for number, row in enumerate(classes(folder).iter_rows(named=True)):
        if not (row["label"] or "").strip():
            noted.add(
                "ontology", f"{path}, entry {number} ({row['class']}): no label; add rdfs:label"
            )
            continue
        chain, members = tuple(row["superclasses"]), tuple(row["instances"])
        kinds.append(Class(row["class"], row["label"], chain, members))
    patterns: dict[str, str] = {}
    found = []
    for entry in _entries(folder / "property.json"):
        where = f"{folder / 'property.json'}, entry {entry.get('id')}"
        label, own = entry["rdfs:label"], entry.get("pattern") or ""
        try:
            sentence(own, f"{where} ({label}): needs a pattern")
        except TemplateError as error:
            noted.add("ontology", str(error))
            continue
        above = entry.get("rdfs:subPropertyOf") or {}
        patterns[label] = corrected(own, switches.patterns)
        for name, pattern in above.items():
            patterns.setdefault(name, corrected(pattern, switches.patterns))
        iris = entry["rdf:Property"]
        iris = [iris] if isinstance(iris, str) else iris
        wikidata = [WIKIDATA + i.rsplit(":", 1)[-1] for i in iris if "wikidata.org" in i]
        found.append(
            Property(
                (wikidata or iris)[0],
                label,
                corrected(own, switches.patterns),
                entry.get("rdfs:domain") or None,
                entry.get("rdf:range") or None,
                tuple(above),
            )
        )
    # a property's own pattern wins over the one beside its name as a superproperty
    patterns |= {p.label: p.pattern for p in found if p.pattern}
    if problems is None:
        noted.check()
    return Concepts(tuple(kinds), tuple(found), patterns)


def _questions(path: Path, task: str, problems: TaskProblems) -> list[tuple[int, dict[str, Any]]]:
    """(line, question) of a file; wrong lines are noted and left out."""
    if not path.is_file():
        raise FileNotFoundError(f"{path}: the released questions are not there; set KGPROBE_DATA")
    found = []
    for number, line in text_lines(path):
        try:
            entry = json.loads(line)
        except json.JSONDecodeError as error:
            problems.add(task, f"{path}, line {number}: no JSON: {error}; correct the line")
            continue
        if not entry.get("uuu") or not entry.get("xxx"):
            problems.add(task, f"{path}, line {number}: needs a subject (uuu) and golds (xxx)")
            continue
        found.append((number, entry))
    return found


def _row(
    task: str,
    number: int,
    role: str,
    entry: Mapping[str, Any],
    where: str,
    switches: Switches,
    ids: Mapping[str, str],
    depths: Mapping[str, int],
) -> TaskRow:
    pattern = None
    subject = entry["uuu"]
    if isinstance(subject, dict):
        ((subject, pattern),) = subject.items()
        pattern = pattern or ""
        sentence(pattern, f"{where} ({subject}): needs a pattern")
        pattern = corrected(pattern, switches.patterns)
    golds = tuple(entry["xxx"])
    depth = {"TP": depths.get(golds[0], 0), "SCO": depths.get(subject, 0)}.get(task, 0)
    name = ids.get(subject, subject) if task != "TP" else subject
    return TaskRow(task, number, role, name, subject, golds, pattern, depth, None, where)

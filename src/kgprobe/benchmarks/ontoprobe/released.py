"""Read the released OntoProbe: its ontology (class.json, property.json) and its five tasks."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from kgprobe.benchmarks.ontoprobe.build import TaskProblems, check_known_concepts, distinct
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
from kgprobe.experiments import json_lines, read_json
from kgprobe.templates import sentence

TEXT, TEXTS = pl.String, pl.List(pl.String)
CLASSES: dict[str, Any] = {"class": TEXT, "label": TEXT, "superclasses": TEXTS, "instances": TEXTS}
PROPERTIES: dict[str, Any] = {
    "number": pl.Int32,
    **dict.fromkeys(("label", "property", "dbpedia", "domain", "range"), TEXT),
    "superproperties": TEXTS,
    "pattern": TEXT,
}
#: keys that every entry of property.json has
OF_PROPERTY = ("rdf:Property", "rdfs:label")
#: key -> types of a value that is not null; a list or an object holds texts
KINDS: dict[str, tuple[type, ...]] = {
    **dict.fromkeys(("rdfs:Class", "rdfs:label", "rdfs:domain", "rdf:range", "pattern"), (str,)),
    **dict.fromkeys(("rdfs:subClassOf", "is rdf:type of"), (list,)),
    "rdf:Property": (str, list),
    "rdfs:subPropertyOf": (dict,),
    "id": (int,),
}
CALLED: dict[type, str] = {
    int: "a number",
    str: "text",
    list: "a list of texts",
    dict: "an object with texts as keys",
}
WIKIDATA = "http://www.wikidata.org/entity/"
#: task -> stem of its file of questions
FILES = {"TP": "type", "SCO": "subClassOf", "SPO": "subPropertyOf", "DM": "domain", "RG": "range"}


def classes(folder: Path) -> pl.DataFrame:
    """Return a row per class: IRI, label, superclass labels (from the finest), instances."""
    names = ("rdfs:Class", "rdfs:label", "rdfs:subClassOf", "is rdf:type of")
    entries = _entries(folder / "class.json", names[:2])
    rows = [(e[names[0]], e[names[1]], *(e.get(name) or [] for name in names[2:])) for e in entries]
    return pl.DataFrame(rows, schema=CLASSES, orient="row")


def properties(folder: Path) -> pl.DataFrame:
    """Return a row per property. In the file the key of the range is `rdf:range`, and some DBpedia
    IRIs start with https and so denote nothing: they are replaced by the http IRIs."""
    rows = []
    for entry in _entries(folder / "property.json", ("id", *OF_PROPERTY)):
        iris = _iris(entry)
        dbpedia = [i.replace("https:", "http:", 1) for i in iris if "dbpedia.org" in i]
        wikidata = next((i for i in iris if i.startswith(WIKIDATA)), None)
        names = entry["id"], entry["rdfs:label"], wikidata, dbpedia[0] if dbpedia else None
        ends = entry.get("rdfs:domain") or None, entry.get("rdf:range") or None
        above = sorted(entry.get("rdfs:subPropertyOf") or {})
        rows.append((*names, *ends, above, entry.get("pattern") or None))
    return pl.DataFrame(rows, schema=PROPERTIES, orient="row")


def _iris(entry: Mapping[str, Any]) -> list[str]:
    """Return the IRIs of a property; Wikidata's come first, as entity IRIs."""
    iris = entry["rdf:Property"]
    iris = [iris] if isinstance(iris, str) else iris
    wikidata = [WIKIDATA + i.rsplit(":", 1)[-1] for i in iris if "wikidata.org" in i]
    return wikidata + [i for i in iris if "wikidata.org" not in i]


def _entries(path: Path, needed: Sequence[str]) -> list[dict[str, Any]]:
    """Return the entries of a file. Raises ValueError for entries without the needed keys."""
    if not path.is_file():
        raise FileNotFoundError(f"{path}: the released ontology is not there; set KGPROBE_DATA")
    entries = read_json(path, ValueError)
    if not isinstance(entries, list):
        raise ValueError(f"{path}: holds {type(entries).__name__}, expected a list")
    for number, entry in enumerate(entries):
        if missing := [
            n for n in needed if not isinstance(entry, dict) or entry.get(n) in (None, [])
        ]:
            raise ValueError(f"{path}, entry {number}: without {', '.join(missing)}")
        for name, kinds in KINDS.items():
            value = entry.get(name)
            if value is not None and not (isinstance(value, kinds) and _holds_texts(value)):
                expected = " or ".join(CALLED[kind] for kind in kinds)
                raise ValueError(
                    f"{path}, entry {number}: {name} is {value!r}; expected {expected}"
                )
    return entries


def _holds_texts(value: Any) -> bool:
    return isinstance(value, str | int) or all(isinstance(text, str) for text in value)


def take(folder: Path, switches: Switches) -> ConceptRows:
    """Return the five released tasks in file order (10 train, 10 dev, rest test), and their
    ontology; `folder` holds `ontology` and `memorizing`. Raises one ValueError that names file and
    row of every error."""
    problems = TaskProblems(str(folder))
    known = concepts(folder / "ontology", switches, problems)
    depths = {c.label: len(c.chain) for c in known.classes}
    # some classes are called like a property: architect, family
    class_ids = {c.label: c.id for c in known.classes}
    property_ids = {p.label: p.id for p in known.properties}
    rows: list[TaskRow] = []
    with_instance = sum(bool(c.instances) for c in known.classes)
    steps = [
        ("TP", "classes", len(known.classes)),
        ("TP", "classes with an instance", with_instance),
    ]
    steps += [("SCO", "classes", len(known.classes))]
    steps += [(task, "properties", len(known.properties)) for task in ("SPO", "DM", "RG")]
    for task, name in FILES.items():
        path = folder / "memorizing" / f"{name}.jsonl"
        entries = _questions(path, task, problems)
        steps.append((task, "rows of the file", len(entries)))
        with problems.of(task):
            given = roles(len(entries), task, str(path), *switches.parts)
            for number, ((line, entry), role) in enumerate(zip(entries, given, strict=True)):
                where, golds = f"{path}, line {line}", tuple(entry["xxx"])
                with problems.of(task):
                    subject, pattern = _subject(entry["uuu"], where, switches)
                    of = {"TP": golds[0], "SCO": subject}.get(task, "")
                    ids = {"TP": {}, "SCO": class_ids}.get(task, property_ids)
                    name = ids.get(subject, subject)
                    more = pattern, depths.get(of, 0), None, where
                    rows.append(TaskRow(task, number, role, name, subject, golds, *more))
    distinct(rows, problems)
    check_known_concepts(rows, known, str(folder / "ontology"), problems)
    problems.check()
    return ConceptRows(known, rows, steps)


def concepts(folder: Path, switches: Switches, problems: TaskProblems) -> Concepts:
    """Convert the released class.json and property.json to concepts; invalid entries are dropped
    and added to `problems`."""
    kinds = []
    for number, row in enumerate(classes(folder).iter_rows(named=True)):
        if not (row["label"] or "").strip():
            where = f"{folder / 'class.json'}, entry {number} ({row['class']})"
            problems.add("ontology", f"{where}: no label; add rdfs:label")
            continue
        chain, members = tuple(row["superclasses"]), tuple(row["instances"])
        kinds.append(Class(row["class"], row["label"], chain, members))
    patterns: dict[str, str] = {}
    properties = []
    for entry in _entries(folder / "property.json", OF_PROPERTY):
        where = f"{folder / 'property.json'}, entry {entry.get('id')}"
        label, above = entry["rdfs:label"], entry.get("rdfs:subPropertyOf") or {}
        with problems.of("ontology"):
            sentence(entry.get("pattern") or "", f"{where} ({label}): needs a pattern")
            text = corrected(entry["pattern"], switches.patterns)
            ends = (entry.get("rdfs:domain") or None, entry.get("rdf:range") or None)
            for name, pattern in above.items():
                whose = f"{where} ({label}): its superproperty {name!r} needs a pattern"
                sentence(pattern if isinstance(pattern, str) else "", whose)
                patterns.setdefault(name, corrected(pattern, switches.patterns))
            properties.append(Property(_iris(entry)[0], label, text, *ends, tuple(above)))
    # a property's own pattern overrides the one given with its name as a superproperty
    patterns |= {p.label: p.pattern for p in properties if p.pattern}
    return Concepts(tuple(kinds), tuple(properties), patterns)


def _questions(path: Path, task: str, problems: TaskProblems) -> list[tuple[int, dict[str, Any]]]:
    """Return (line, question) of a file; invalid lines are recorded and dropped."""
    if not path.is_file():
        raise FileNotFoundError(f"{path}: the released questions are not there; set KGPROBE_DATA")
    questions = []
    for number, line in json_lines(path):
        try:
            entry = json.loads(line)
        except json.JSONDecodeError as error:
            problems.add(task, f"{path}, line {number}: not valid JSON: {error}; correct the line")
            continue
        if not _is_question(entry):
            problems.add(task, f"{path}, line {number}: needs a subject (uuu) and golds (xxx)")
            continue
        questions.append((number, entry))
    return questions


def _is_question(entry: object) -> bool:
    """Return whether a line has a subject, a text or {text: pattern}, and texts as golds."""
    if not isinstance(entry, dict):
        return False
    subject, golds = entry.get("uuu"), entry.get("xxx")
    if not (isinstance(subject, str) or (isinstance(subject, dict) and len(subject) == 1)):
        return False
    return bool(subject and golds) and isinstance(golds, list | dict) and _holds_texts(golds)


def _subject(
    entry: str | Mapping[str, str], where: str, switches: Switches
) -> tuple[str, str | None]:
    """Return the subject of a question and, if it is a property, its pattern."""
    if isinstance(entry, str):
        return entry, None
    ((subject, pattern),) = entry.items()
    text = pattern if isinstance(pattern, str) else ""
    sentence(text, f"{where} ({subject}): needs a pattern")
    return subject, corrected(pattern, switches.patterns)

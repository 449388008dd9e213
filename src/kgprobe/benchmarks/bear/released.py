"""Read the released BEAR and BEAR-big from their folders (docs/papers/bear.md, Released data).

Labels and templates are kept byte for byte. Irregularities are reported, but not fixed.
"""

import logging
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl

from kgprobe.benchmarks.bear.frames import BearFrames, relation_frames
from kgprobe.experiments import json_rows, read_json, read_text, text_lines
from kgprobe.sampling import hash_key
from kgprobe.schema import Contract
from kgprobe.templates import sentence

log = logging.getLogger("kgprobe")
METADATA = "metadata_relations.json"
FIELDS = ("sub_id", "sub_label", "obj_id", "obj_label")
#: numbers of instances of BEAR and BEAR-big
SIZES = (7731, 40916)
#: Metadata of the relations of a released set.
RELATIONS = Contract(
    "RELATIONS",
    {"relation": pl.String, "cardinality": pl.String, "domains": pl.List(pl.String)},
    ("relation",),
)


class ReleasedError(ValueError):
    """A released folder is incomplete or damaged; the message names file and line."""


def load(
    folder: Path,
    instances: int | None = None,
    templates: Sequence[int] | None = None,
    benchmark: str = "bear_released",
    seed: int = 0,
) -> BearFrames:
    """Return ITEMS, CANDIDATES and PROMPTS of a released set.

    `instances` keeps n rows of every relation, sampled by hash of subject and answer, in file
    order; `templates` keeps these indices of the templates of each relation (BEAR: three).
    BEAR-big lists no answer space: its answers are ordered by their first occurrence.
    Raises ReleasedError.
    """
    if not (folder / METADATA).is_file():
        where = f"{folder / METADATA}: no such file"
        raise ReleasedError(f"{where}; {folder.name} must be a released BEAR folder")
    metadata = _entries(folder / METADATA)
    paths = _files(folder)
    if not paths:
        held = ", ".join(sorted(path.name for path in folder.iterdir())[:8])
        raise ReleasedError(
            f"{folder}: no <Pid>.jsonl in it; it holds {held}, expected a P36.jsonl for "
            "each relation"
        )
    parts = []
    for path in paths:
        if path.stem not in metadata:
            raise ReleasedError(f"{folder / METADATA}: no entry for {path.stem}")
        parts.append(_relation(path, metadata[path.stem], instances, templates, benchmark, seed))
    return BearFrames.joined(parts)


def is_whole(folder: Path) -> bool:
    """Return whether a folder has as many instances as a released set: others in this format, such
    as an export of kgprobe, have their own source and license."""
    return sum(len(text_lines(path)) for path in _files(folder)) in SIZES


def _files(folder: Path) -> list[Path]:
    named = (path for path in folder.glob("P*.jsonl") if path.stem[1:].isdecimal())
    return sorted(named, key=lambda path: int(path.stem[1:]))


def relations(folder: Path, sets: BearFrames) -> pl.DataFrame:
    """Return RELATIONS: cardinality (1:1 if no two instances of the file share an answer), domains.

    Domains come from relation_info.json next to the folder, if it exists.
    """
    path = folder.parent / "relation_info.json"
    info = _entries(path) if path.is_file() else {}
    rows = []
    for relation in sets.items["relation"].unique().sort().to_list():
        answers = [row["obj_id"] for _, row in _rows(folder / f"{relation}.jsonl")]
        cardinality = "1:1" if len(set(answers)) == len(answers) else "1:N"
        domains = _texts(info.get(relation, {}), "domains", str(path), relation)
        rows.append((relation, cardinality, domains))
    return pl.DataFrame(rows, schema=dict(RELATIONS.columns), orient="row")


def _relation(
    path: Path,
    metadata: object,
    instances: int | None,
    templates: Sequence[int] | None,
    benchmark: str,
    seed: int,
) -> BearFrames:
    relation, numbered = path.stem, _rows(path)
    rows = [row for _, row in numbered]
    where = f"{path.parent / METADATA}, {relation}"
    before = read_text(path.parent / METADATA).partition(f'"{relation}"')[0]
    entry = f"its entry begins on line {1 + before.count(chr(10))}"
    texts, ids, labels = (
        _texts(metadata, name, where, entry)
        for name in ("templates", "answer_space_ids", "answer_space_labels")
    )
    by_id = {row["obj_id"]: row["obj_label"] for row in reversed(rows)}
    if not ids:  # labels without ids cannot be assigned to answers
        ids, labels = list(dict.fromkeys(row["obj_id"] for row in rows)), []
    labels = labels or [by_id[i] for i in ids if i in by_id]
    if len(labels) != len(ids):
        raise ReleasedError(
            f"{where}: {len(ids)} answers and {len(labels)} labels; {entry}: expected one of "
            "answer_space_labels for each of answer_space_ids"
        )
    for one, number in _repeated(ids):
        raise ReleasedError(
            f"{where}: the answer {one} stands {number} times in answer_space_ids; {entry}: "
            "expected each answer once"
        )
    for label, number in _repeated(labels):
        log.warning("%s: %d answers have the label %r", where, number, label)
    _check_templates(relation, texts, path.parent)
    chosen = range(len(texts) or 1) if templates is None else templates
    if absent := [number for number in chosen if not 0 <= number < len(texts)]:
        raise ReleasedError(
            f"{where}: {len(texts)} templates; wanted is template {max(absent)}, counted from 0; "
            f"{entry}: add it, or name in the config (released.templates) those that every "
            "relation has"
        )
    index_of = {answer: index for index, answer in enumerate(ids)}
    for number, row in numbered:
        index = index_of.get(row["obj_id"])
        if index is None or row.get("answer_idx", index) != index:
            raise ReleasedError(
                f"{path}, line {number}: answer {row['obj_id']}, index {row.get('answer_idx')!r}; "
                f"the answer space has it at {index}"
            )
        if (label := row["obj_label"]) != labels[index] and label in labels:
            raise ReleasedError(
                f"{where}: {row['obj_id']} is {labels[index]!r} in answer_space_labels, and "
                f"{label!r} in line {number} of {path.name}; {entry}: expected the labels in the "
                "order of answer_space_ids"
            )
    keys = [hash_key(seed, "released", relation, row["sub_id"], row["obj_id"]) for row in rows]
    kept = sorted(range(len(rows)), key=keys.__getitem__)[:instances]
    subjects = [
        (row["sub_id"], row["sub_label"], index_of[row["obj_id"]], row.get("sub_aliases") or [])
        for row in (rows[number] for number in sorted(kept))
    ]
    answers, chosen_texts = list(zip(ids, labels, strict=True)), [(i, texts[i]) for i in chosen]
    return relation_frames(benchmark, relation, answers, subjects, chosen_texts)


def _repeated(names: Sequence[str]) -> list[tuple[str, int]]:
    return [(name, number) for name, number in Counter(names).items() if number > 1]


def _check_templates(relation: str, texts: list[str], folder: Path) -> None:
    for index, text in enumerate(texts):
        where = f"{folder / METADATA}, {relation}, template {index}"
        sentence(text, where, ReleasedError)
        if not text.endswith(".") or text.endswith(" ."):
            log.warning("%s, template %d does not end in a full stop: %r", relation, index, text)
        if text in texts[:index]:
            log.warning("%s: templates %d and %d are equal", relation, texts.index(text), index)


def _texts(metadata: object, name: str, where: str, entry: str) -> list[str]:
    """Return a list of strings from a relation's entry, empty if it has none."""
    value = (metadata.get(name) or []) if isinstance(metadata, dict) else metadata
    if isinstance(value, list) and all(isinstance(one, str) for one in value):
        return value
    raise ReleasedError(
        f"{where}: {name} is {str(value)[:80]!r}; {entry}: expected a list of texts"
    )


def _entries(path: Path) -> dict[str, Any]:
    """Return relation -> its entry in a JSON file."""
    entries = read_json(path, ReleasedError)
    if not isinstance(entries, dict):
        raise ReleasedError(f"{path}: {str(entries)[:80]!r}; expected an entry per relation")
    return entries


def _rows(path: Path) -> list[tuple[int, dict[str, Any]]]:
    """Return (line, instance) of a relation's file."""
    rows = json_rows(path, ReleasedError)
    lines: dict[str, int] = {}
    for number, row in rows:
        where = f"{path}, line {number}"
        # one subject of BEAR-big (P291) has an empty label; it is kept like other irregularities
        missing = [n for n in FIELDS if row.get(n) is None or (n != "sub_label" and not row[n])]
        if missing:
            raise ReleasedError(f"{where}: without {', '.join(missing)}")
        texts = {n: [row[n]] for n in FIELDS} | {"sub_aliases": row.get("sub_aliases") or []}
        for name, values in texts.items():
            if not (isinstance(values, list) and all(isinstance(one, str) for one in values)):
                right = "a list of texts" if name == "sub_aliases" else "text"
                raise ReleasedError(f"{where}: {name} is {repr(row[name])[:80]}, expected {right}")
        if (first := lines.setdefault(row["sub_id"], number)) != number:
            raise ReleasedError(
                f"{where}: the subject {row['sub_id']} stands on line {first}, too; "
                "expected one line, with one answer, for each subject"
            )
    if not rows:
        raise ReleasedError(f"{path}: empty")
    return rows

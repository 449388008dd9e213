"""BEAR sets as folders for lm-pub-quiz (docs/papers/bear.md, Exports)."""

import json
from pathlib import Path
from typing import Any

import polars as pl

from kgprobe import schema
from kgprobe.benchmarks.bear.frames import BearFrames
from kgprobe.experiments import read_json
from kgprobe.tables.exports.folders import (
    OTHERS,
    ExportError,
    items_of,
    relations_in_order,
    templates_of,
    whole_folder,
)

METADATA = "metadata_relations.json"
INFO = "relation_info.json"
#: maximum bytes of a file's name
LONGEST = 255
#: names of the cardinalities that lm-pub-quiz derives itself
CARDINALITY = {"1:1": "single instance per answer", "1:N": "multiple instances per answer"}


def export(sets: BearFrames, folder: Path, relations: pl.DataFrame | None = None) -> None:
    """Write a set to `folder`, whose name becomes the data set's name in lm-pub-quiz.

    `Dataset.from_path(folder)` takes every table file in the folder for a relation, so nothing else
    is put there. `relations` (relation, cardinality, perhaps domains) goes into relation_info.json
    next to the folder, for its argument `relation_info`. Raises ExportError.
    """
    metadata, place = {}, folder.parent / INFO
    info = {} if relations is None else _info(relations)
    if relations is not None:
        _known(place)
    with whole_folder(folder, rf"{METADATA}|[^/]+\.jsonl", METADATA) as temporary:
        for relation in relations_in_order(sets):
            file = f"{relation}.jsonl"
            # its loader reads a name up to the first period
            if set("/.\n") & set(relation) or len(file.encode()) > LONGEST:
                raise ExportError(
                    f"{relation}: names a file in lm-pub-quiz, and cannot hold a slash, a full "
                    f"stop, a line end or more than {LONGEST - len('.jsonl')} bytes; {OTHERS}"
                )
            items, options = items_of(sets, relation)
            labels, ids = options["label"].to_list(), options["id"].to_list()
            metadata[relation] = {
                "templates": templates_of(sets, relation),
                # both, or the loader falls back to the order of first appearance
                "answer_space_labels": labels,
                "answer_space_ids": ids,
            }
            instances = [
                {
                    "sub_id": item["subject_id"],
                    "sub_label": item["subject"],
                    "sub_aliases": json.loads(item["meta"]).get("aliases", []),
                    "obj_id": ids[item["answer"]],
                    "obj_label": labels[item["answer"]],
                    "answer_idx": item["answer"],
                }
                for item in items.iter_rows(named=True)
            ]
            lines = [_line(instance, ",", ":") for instance in instances]
            (temporary / file).write_text("".join(lines), encoding="ascii")
        text = json.dumps(metadata, indent=4, ensure_ascii=True) + "\n"
        (temporary / METADATA).write_text(text, encoding="ascii")
    if relations is not None:
        with schema.atomic(place) as path:
            path.write_text(_line(_known(place) | info), encoding="ascii")


def _known(place: Path) -> dict[str, Any]:
    """Read relation_info.json, which the sets in a folder share: jobs may write to it in turn."""
    known = read_json(place, ExportError) if place.is_file() else {}
    if not isinstance(known, dict):
        raise ExportError(f"{place}: expected an entry for each relation, {{...}}")
    return known


def _info(relations: pl.DataFrame) -> dict[str, dict[str, Any]]:
    info = {}
    for row in relations.sort("relation").iter_rows(named=True):
        domains = {"domains": row["domains"]} if row.get("domains") else {}
        kind = row.get("cardinality")
        if kind and kind not in CARDINALITY:
            raise ExportError(
                f"relation {row['relation']}: its cardinality is {kind!r}; valid: "
                f"{', '.join(CARDINALITY)}"
            )
        cardinality = {"cardinality": CARDINALITY[kind]} if kind else {}
        info[row["relation"]] = {**domains, **cardinality}
    return info


def _line(value: object, comma: str = ", ", colon: str = ": ") -> str:
    """Format a line of JSON with ASCII escapes: the loader opens files in the locale's encoding."""
    return json.dumps(value, ensure_ascii=True, separators=(comma, colon)) + "\n"

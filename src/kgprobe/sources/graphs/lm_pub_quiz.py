"""Read lm-pub-quiz folders: metadata_relations.json and one JSON-lines file per relation."""

from pathlib import Path
from typing import Any

from kgprobe.experiments import json_lines, read_text
from kgprobe.settings.sources import OwnGraph
from kgprobe.sources.graphs.raw import GraphFileError, RawGraph, check_text, composed, json_object
from kgprobe.sources.labels import one_line
from kgprobe.templates import sentence

METADATA = "metadata_relations.json"


def read(section: OwnGraph, graph: RawGraph) -> None:
    """Read statements, labels and templates from the folders of a section.

    An answer without id (`obj_id`) gets its label as id; likewise for subjects. Rows and files that
    cannot be read are recorded in `graph` as unread.
    """
    templates: dict[tuple[str, str], dict[str, str]] = {}
    for folder in map(Path, section.files):
        with graph.going_on():
            about = folder / METADATA
            if not about.is_file():
                raise GraphFileError(
                    f"{folder}: no {METADATA} in it, which lm-pub-quiz's folders have"
                )
            metadata = json_object(about, read_text(about), None)
            for path in sorted(folder.glob("*.jsonl")):
                with graph.going_on():
                    for one in _templates(about, metadata, path.stem, graph):
                        other = templates.setdefault((one["relation"], one["index"]), one)
                        if other["text"] != one["text"]:
                            raise GraphFileError(
                                f"{about}: template {one['index']} of {path.stem} is "
                                f"{one['text']!r}, and {other['text']!r} in an earlier folder"
                            )
                    for line, text in json_lines(path):
                        with graph.going_on(whole=False):
                            row = json_object(path, text, line)
                            ends = [_end(row, side, path, line) for side in ("sub", "obj")]
                            fact = (ends[0][0], path.stem, ends[1][0])
                            graph.statements.append((*fact, str(path), line))
                            graph.labels += [(*end, 0, str(path), line) for end in ends if end[1]]
    graph.templates += templates.values()


def _templates(
    about: Path, metadata: dict[str, Any], relation: str, graph: RawGraph
) -> list[dict[str, str]]:
    if relation.startswith("#") or relation != one_line(relation):
        raise GraphFileError(
            f"{about.parent / relation}.jsonl: the relation {relation!r} begins with # or has "
            "surplus blanks, which the tables that are made of it lose; rename it"
        )
    if relation not in metadata:
        raise GraphFileError(f"{about}: no entry for {relation}, of which there is a file")
    entry = metadata[relation]
    texts = (entry.get("templates") or []) if isinstance(entry, dict) else None
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise GraphFileError(f"{about}: the templates of {relation} are not a list of strings")
    for n, text in enumerate(texts):
        with graph.going_on(whole=False):
            sentence(text, f"{about}, template {n} of {relation}", GraphFileError)
    return [
        {"relation": relation, "index": str(n), "kind": "manual", "text": text, "note": ""}
        for n, text in enumerate(texts)
    ]


def _end(row: dict[str, Any], side: str, path: Path, line: int) -> tuple[str, str]:
    """Return (id, label) of the subject or object of a row. Raises GraphFileError if both lack."""
    texts = {name: row.get(f"{side}_{name}") for name in ("id", "label")}
    for name, value in texts.items():
        check_text(path, line, f"{side}_{name}", value)
    ident, label = (one_line("" if text is None else str(text)) for text in texts.values())
    if not (ident or label):
        raise GraphFileError(f"{path}, line {line}: neither {side}_id nor {side}_label")
    return composed(ident or label), label

"""A folder in lm-pub-quiz's form: metadata_relations.json and one table of lines per relation."""

import json
from pathlib import Path
from typing import Any

from kgprobe.settings import OwnGraph
from kgprobe.sheets import text_lines
from kgprobe.sources.graphs import raw
from kgprobe.sources.graphs.flaws import GraphFileError
from kgprobe.sources.graphs.raw import Raw

METADATA = "metadata_relations.json"


def read(section: OwnGraph) -> Raw:
    """Statements, labels and templates of the folders of a section.

    An answer without id (`obj_id`) has its label as id, a subject likewise. Raises GraphFileError.
    """
    told, spoken, templates = [], [], []
    for folder in map(Path, section.files):
        about = folder / METADATA
        if not about.is_file():
            raise GraphFileError(f"{folder}: no {METADATA} in it, which lm-pub-quiz's folders have")
        metadata = _object(about, about.read_text(encoding="utf-8"), None)
        for path in sorted(folder.glob("*.jsonl")):
            relation = path.stem
            if relation not in metadata:
                raise GraphFileError(f"{about}: no entry for {relation}, of which there is a file")
            templates += [
                {"relation": relation, "index": str(n), "kind": "manual", "text": text, "note": ""}
                for n, text in enumerate(metadata[relation].get("templates", []))
            ]
            for line, text in text_lines(path):
                row = _object(path, text, line)
                ends = []
                for side in ("sub", "obj"):
                    label = str(row.get(f"{side}_label") or "")
                    name = str(row.get(f"{side}_id") or label)
                    if not name:
                        raise GraphFileError(
                            f"{path}, line {line}: neither {side}_id nor {side}_label"
                        )
                    ends.append(name)
                    if label:
                        spoken.append((name, label, 0, str(path), line))
                told.append((ends[0], relation, ends[1], str(path), line))
    return Raw(raw.statements(told), raw.labels(spoken), templates=templates)


def _object(path: Path, text: str, line: int | None) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except json.JSONDecodeError as problem:
        where = f"line {line or problem.lineno}"
        raise GraphFileError(f"{path}, {where}: no JSON: {problem.msg}") from problem
    if not isinstance(found, dict):
        raise GraphFileError(f"{path}, line {line or 1}: expected an object of JSON, {{...}}")
    return found

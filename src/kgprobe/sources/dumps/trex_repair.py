"""What can be wrong with a T-REx file, and what is saved from it."""

import json
from typing import Any

import orjson


class BrokenFileError(ValueError):
    """A dump file from which nothing can be read; the message names file and reason."""


class Problems(dict[str, int]):
    """Counts by kind, with the place and wording of the first case of each."""

    def __init__(self, file: str) -> None:
        super().__init__()
        self.file = file
        self.first: dict[str, str] = {}

    def note(self, kind: str, count: int = 1, first: str = "") -> None:
        """Add `count` cases of `kind`; `first` is kept when it is the first that says anything."""
        if count:
            self[kind] = self.get(kind, 0) + count
            if first:
                self.first.setdefault(kind, first)


#: Required fields of a document, of an entity and of a triple, with their types.
DOCUMENT = {
    "docid": str,
    "title": str,
    "text": str,
    "sentences_boundaries": list,
    "entities": list,
    "triples": list,
}
KNOWN = {*DOCUMENT, "uri", "words_boundaries"}


def parse(data: bytes, file: str) -> tuple[list[Any], Problems]:
    """The documents of a file, complete ones only, and what had to be repaired.

    Byte-order marks and bytes that are not UTF-8 are repaired and counted; of a truncated file
    every complete document is kept. Raises BrokenFileError when there is no array of documents.
    """
    problems = Problems(file)
    if data.startswith(b"\xef\xbb\xbf"):
        data = data[3:]
        problems.note("byte order mark")
    try:
        documents = orjson.loads(data)
    except orjson.JSONDecodeError:
        documents = _recover(data, problems)
    if not isinstance(documents, list):
        raise BrokenFileError(
            f"{file}: holds {type(documents).__name__}, expected one array of documents"
        )
    return documents, problems


def _recover(data: bytes, problems: Problems) -> list[Any]:
    """Documents of a file that orjson refuses, in one pass from the front."""
    text = _decoded(data, problems)
    start = len(text) - len(text.lstrip())
    if text[start : start + 1] != "[":
        head = text[start : start + 40]
        raise BrokenFileError(f"{problems.file}: starts with {head!r}, expected '[' (byte {start})")
    documents: list[Any] = []
    decoder = json.JSONDecoder()
    position = start + 1
    while position < len(text):
        if text[position] in " \t\r\n,":
            position += 1
            continue
        if text[position] == "]":
            return documents
        try:
            document, position = decoder.raw_decode(text, position)
        except (json.JSONDecodeError, RecursionError):
            break
        documents.append(document)
    offset = len(text[:position].encode("utf-8", "replace"))
    last = documents[-1].get("docid") if documents and isinstance(documents[-1], dict) else None
    problems.note(
        "truncated file",
        first=f"byte {offset} of {len(data)}, after document {len(documents) - 1} ({last}): "
        f"{len(data) - offset} bytes lost, {len(documents)} documents kept",
    )
    return documents


def _decoded(data: bytes, problems: Problems) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        # A cut inside a character is a truncated file, not an encoding error.
        if error.end == len(data) and error.reason == "unexpected end of data":
            return data[: error.start].decode()
        problems.note(
            "not UTF-8",
            first=f"byte {error.start} (0x{data[error.start]:02x}): read as U+FFFD",
        )
        return data.decode(errors="replace")


def sound(document: Any, index: int, problems: Problems) -> bool:
    """Whether a document obeys the schema; if not, the reason is counted with its place."""
    reason = _fault(document)
    if reason:
        docid = document.get("docid") if isinstance(document, dict) else None
        problems.note("rejected document", first=f"document {index} ({docid}): {reason}")
    return not reason


def _fault(document: Any) -> str:
    if not isinstance(document, dict):
        return f"is {type(document).__name__}, expected an object"
    for name, kind in DOCUMENT.items():
        if name not in document:
            return f"field {name!r} is missing"
        if not isinstance(document[name], kind):
            return f"field {name!r} is {type(document[name]).__name__}, expected {kind.__name__}"
    for place, entity in enumerate(document["entities"]):
        if fault := _entity_fault(entity):
            return f"entity {place}: {fault}"
    for place, triple in enumerate(document["triples"]):
        if not isinstance(triple, dict):
            return f"triple {place} is {type(triple).__name__}, expected an object"
        for part in ("subject", "predicate", "object"):
            if fault := _entity_fault(triple.get(part)):
                return f"triple {place}, {part}: {fault}"
        if type(triple.get("sentence_id")) is not int:
            return f"triple {place}: field 'sentence_id' is not an integer"
        if not isinstance(triple.get("annotator"), str):
            return f"triple {place}: field 'annotator' is not a string"
    return ""


def _entity_fault(entity: Any) -> str:
    if not isinstance(entity, dict):
        return f"is {type(entity).__name__}, expected an object"
    if not isinstance(entity.get("uri"), str):
        return "field 'uri' is not a string"
    for name in ("surfaceform", "annotator"):
        if not isinstance(entity.get(name), str | None):
            return f"field {name!r} is neither a string nor null"
    bounds = entity.get("boundaries")
    if bounds is not None and not (
        isinstance(bounds, list) and len(bounds) == 2 and all(type(b) is int for b in bounds)
    ):
        return f"field 'boundaries' is {bounds!r}, expected two integers or null"
    return ""

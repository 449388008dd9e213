"""Convert one T-REx dump file to four small tables.

A file is one JSON array of up to 10,000 documents (docs/papers/attributes.md, Graph). It is read
in one msgspec pass and one loop that only collects columns; everything else works on columns.
Files are independent: errors in one are counted and located, and do not affect the others.
"""

import json
import re
import zipfile
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Annotated, Any

import msgspec
import polars as pl

from kgprobe.schema import Contract
from kgprobe.sources.dumps.archives import ArchiveError, check, open_archive
from kgprobe.sources.labels import one_line_of

ENTITY = "http://www.wikidata.org/entity/"
DIRECT = "http://www.wikidata.org/prop/direct/"
#: The three aligners and their bits in the column `aligners`: AllEnt, NoSub, SPO.
ALIGNERS = {"Simple-Aligner": 1, "NoSubject-Triple-aligner": 2, "SPOAligner": 4}
SPOTLIGHT, DATES = "Wikidata_Spotlight_Entity_Linker", "Date_Linker"

_TRIPLE = {
    "subject": pl.UInt32, "predicate": pl.UInt32, "object": pl.UInt32, "literal": pl.String,
    "datatype": pl.String,
}  # fmt: skip
_COUNTS = {"mentions": pl.UInt32, "documents": pl.UInt32}
#: One row is a distinct triple, with the number of its alignments and the aligners that found it.
TRIPLES = Contract(
    "TREX_TRIPLES",
    {**_TRIPLE, "alignments": pl.UInt32, "documents": pl.UInt32, "aligners": pl.UInt8},
    tuple(_TRIPLE),
    frozenset({"object", "literal", "datatype"}),
    may_be_empty=True,
)
#: One row is one surface form of an entity, as found by one annotator.
_MENTION = dict.fromkeys(("uri", "surface", "annotator"), pl.String)
MENTIONS = Contract("TREX_MENTIONS", {**_MENTION, **_COUNTS}, tuple(_MENTION), may_be_empty=True)
_DOCUMENT = {"document": pl.Int32, "docid": pl.String, "title": pl.String}
_DOCUMENT |= dict.fromkeys(("sentences", "alignments"), pl.Int32)
DOCUMENTS = Contract("TREX_DOCUMENTS", _DOCUMENT, ("document",), may_be_empty=True)
#: Counts and errors per file; `first` describes the first occurrence.
PROBLEMS = Contract(
    "TREX_PROBLEMS",
    {"file": pl.String, "kind": pl.String, "count": pl.Int64, "first": pl.String},
    ("file", "kind"),
)
#: The label of every entity and date and its source, `title` or `surface`.
LABELS = Contract(
    "TREX_LABELS", {"uri": pl.String, "label": pl.String, "source": pl.String}, ("uri",)
)
#: The tables of one dump file by name.
TABLES = {"triples": TRIPLES, "mentions": MENTIONS, "documents": DOCUMENTS, "problems": PROBLEMS}
#: The tables of one dump file by name, under TABLES.
FileTables = dict[str, pl.DataFrame]

Int32 = Annotated[int, msgspec.Meta(ge=-(1 << 31), lt=1 << 31)]


class Mention(msgspec.Struct):
    """A mention of an entity in the text."""

    uri: str
    boundaries: tuple[Int32, Int32] | None = None
    surfaceform: str | None = None
    annotator: str | None = None


class Alignment(msgspec.Struct):
    """A triple aligned with a sentence."""

    sentence_id: Int32
    subject: Mention
    predicate: Mention
    object: Mention
    annotator: str


class Document(msgspec.Struct):
    """The fields that are read of a document, and all other known fields."""

    docid: str
    title: str
    text: str
    sentences_boundaries: list[Any]
    entities: list[Mention]
    triples: list[Alignment]
    uri: Any = None
    words_boundaries: Any = None


class _Known(Document, forbid_unknown_fields=True):
    """A document without unknown fields."""


class BrokenFileError(ValueError):
    """A dump file that cannot be read; the message names file and reason."""


@dataclass
class Problems:
    """The count of every kind of problem of a file, and a description of its first case."""

    file: str
    kinds: dict[str, tuple[int, str]] = field(default_factory=dict)

    def note(self, kind: str, count: int = 1, first: str = "") -> None:
        """Add `count` cases of `kind`; keep the description of the first case."""
        if count:
            n, known = self.kinds.get(kind, (0, first))
            self.kinds[kind] = (n + count, known)


#: names of the published files without suffix, to plan jobs before the download
PUBLISHED = [f"re-nlg_{start}-{start + 10_000}" for start in range(0, 4_650_000, 10_000)]


def members(source: Path) -> list[str]:
    """Return the names of the dump files in a folder or zip archive, by their first number."""
    if source.is_dir():
        names = [p.name for p in source.iterdir()]
    elif zipfile.is_zipfile(source):
        with open_archive(source) as archive:
            names = archive.namelist()
    else:
        raise FileNotFoundError(f"{source}: neither a folder nor a zip archive of T-REx files")
    pattern = r"(?<![^/])re-nlg_(\d+)-\d+\.json$"  # not ._re-nlg_..., the attributes on macOS
    matches = {n: match for n in names if (match := re.search(pattern, n))}
    if not matches:
        raise FileNotFoundError(f"{source}: no file named re-nlg_<from>-<to>.json in it")
    bare = Counter(match[0] for match in matches.values())
    if twice := sorted(n for n, count in bare.items() if count > 1):
        raise ArchiveError(f"{source}: {', '.join(twice[:3])} in more than one folder of it")
    return sorted(matches, key=lambda n: int(matches[n][1]))


def read_member(source: Path, name: str) -> bytes:
    """Return the bytes of one dump file. Raises BrokenFileError for a bad archive member."""
    if source.is_dir():
        return (source / name).read_bytes()
    try:
        with open_archive(source) as archive:
            member = {PurePosixPath(n).name: n for n in archive.namelist()}[name]
            check(source, archive, [member])
            return archive.read(member)
    except (ArchiveError, KeyError) as error:
        raise BrokenFileError(f"{source}, member {name}: {error}") from error


def ingest(data: bytes, file: str) -> FileTables:
    """Return the tables of one dump file.

    Documents that violate the schema are left out and counted; a truncated file gives its complete
    documents. Raises BrokenFileError if the file holds no array of documents at all.
    """
    problems = Problems(file)
    documents = list(_documents(_parse(data, problems), problems))
    tables = _tables(*_collect(documents, problems), problems)
    problems.note("documents", len(documents))
    kinds = sorted((problems.kinds or {"documents": (0, "")}).items())
    rows = [(file, kind, *of) for kind, of in kinds]
    return tables | {"problems": pl.DataFrame(rows, schema=dict(PROBLEMS.columns), orient="row")}


def require_few_problems(tables: FileTables, most: float) -> None:
    """Raise BrokenFileError if the file is truncated or more than `most` of it was rejected."""
    problems = tables["problems"]
    counts = dict(problems.select("kind", "count").rows())
    first = dict(problems.select("kind", "first").rows())
    rejected, documents = counts.get("rejected document", 0), counts.get("documents", 0)
    is_bad = "truncated file" in counts or rejected / max(rejected + documents, 1) > most
    kinds = [kind for kind in ("truncated file", "rejected document") if kind in counts]
    if kinds and is_bad and most < 1:
        lines = "".join(f"{kind}: {first[kind]}\n" for kind in kinds)
        raise BrokenFileError(
            f"{problems['file'][0]}: {rejected} of {rejected + documents} documents "
            f"rejected (at most {most:.2%})\n{lines}get the file again, or set "
            "sources.trex.max_bad: 1 to keep what could be read"
        )


def _parse(data: bytes, problems: Problems) -> list[msgspec.Raw]:
    """Return the complete documents of a file as JSON, and count repairs. Byte order marks and
    bytes that are not UTF-8 are repaired; from a truncated file every complete document is kept.
    Raises BrokenFileError if there is no array of documents."""
    if data.startswith(b"\xef\xbb\xbf"):
        data = data[3:]
        problems.note("byte order mark")
    try:
        data.decode()
        return msgspec.json.decode(data, type=list[msgspec.Raw])
    except msgspec.ValidationError as error:
        raise BrokenFileError(
            f"{problems.file}: {error}; expected one array of documents"
        ) from error
    except (UnicodeDecodeError, msgspec.DecodeError, RecursionError):
        return _recover(data, problems)


def _recover(data: bytes, problems: Problems) -> list[msgspec.Raw]:
    """Return the documents of a file that msgspec rejects, in one pass from the start."""
    text = _decoded(data, problems)
    start = len(text) - len(text.lstrip())
    if text[start : start + 1] != "[":
        head = text[start : start + 40]
        raise BrokenFileError(f"{problems.file}: starts with {head!r}, expected '[' (byte {start})")
    documents: list[msgspec.Raw] = []
    # Python refuses to convert integers of more than 4,300 digits
    decoder, position, last = json.JSONDecoder(parse_int=str), start + 1, None
    while position < len(text):
        if text[position] in " \t\r\n,":
            position += 1
            continue
        if text[position] == "]" and not text[position + 1 :].strip():
            return documents
        try:
            last, end = decoder.raw_decode(text, position)
        except (json.JSONDecodeError, RecursionError):
            break
        documents.append(msgspec.Raw(text[position:end].encode()))
        position = end
    offset = len(text[:position].encode())
    docid = last.get("docid") if isinstance(last, dict) else None
    problems.note(
        "truncated file",
        first=f"byte {offset} of {len(data)}, after document {len(documents) - 1} ({docid}): "
        f"{len(data) - offset} bytes lost, {len(documents)} documents kept",
    )
    return documents


def _decoded(data: bytes, problems: Problems) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        # A truncation inside a character is not an encoding error.
        if error.end == len(data) and error.reason == "unexpected end of data":
            return data[: error.start].decode()
        first = f"byte {error.start} (0x{data[error.start]:02x}): read as U+FFFD"
        problems.note("not UTF-8", first=first)
        return data.decode(errors="replace")


def _documents(documents: Iterable[msgspec.Raw], problems: Problems) -> Iterable[Document]:
    """Yield documents that obey the schema; count errors of the others, with their position."""
    known, any_fields = (msgspec.json.Decoder(kind).decode for kind in (_Known, Document))
    for index, raw in enumerate(documents):
        try:
            yield known(raw)
        except (msgspec.MsgspecError, RecursionError) as error:
            kind, reason = "unknown extra field", error
            try:
                yield any_fields(raw)
            except (msgspec.MsgspecError, RecursionError) as broken:
                kind, reason = "rejected document", broken
            problems.note(kind, first=f"document {index} ({_docid(raw)}): {reason}")


def _docid(raw: msgspec.Raw) -> Any:
    try:
        return msgspec.json.decode(raw).get("docid")
    except (msgspec.MsgspecError, RecursionError, AttributeError):
        return None


Rows = list[tuple[Any, ...]]


def _collect(documents: list[Document], problems: Problems) -> tuple[Rows, Rows, Rows]:
    """Return rows of alignments, mentions and documents: the only loop over Python objects."""
    alignments, mentions, table, misplaced = Rows(), Rows(), Rows(), 0
    seen, earlier = set[str](), set[tuple[Any, ...]]()
    for index, document in enumerate(documents):
        docid, text, triples = document.docid, document.text, document.triples
        if "\ufffd" in text:
            problems.note("documents with U+FFFD", first=f"document {index} ({docid})")
        if docid in seen:
            problems.note("docid occurs twice", first=f"document {index} ({docid})")
        else:
            seen.add(docid)
            sentences = len(document.sentences_boundaries)
            table.append((index, docid, document.title, sentences, len(triples)))
        for entity in document.entities:
            surface, place = entity.surfaceform, entity.boundaries
            mentions.append((index, entity.uri, surface, entity.annotator))
            if place is not None:
                # a slice of Python may begin or end outside of the text
                inside = 0 <= place[0] <= place[1] <= len(text)
                misplaced += not inside or text[place[0] : place[1]] != surface
        for triple in triples:
            s, o = triple.subject, triple.object
            ends, aligner = (s.uri, triple.predicate.uri, o.uri), triple.annotator
            words = (aligner, s.annotator, o.annotator, s.surfaceform, o.surfaceform)
            key = (index, triple.sentence_id, ends, words, s.boundaries, o.boundaries)
            alignments.append((index, key in earlier, docid, *ends, aligner))
            earlier.add(key)
    problems.note("surface form not at its boundaries", misplaced)
    return alignments, mentions, table


#: A row is an alignment: a triple (s, p, o) found in a sentence by one aligner.
_ALIGNMENT: dict[str, Any] = {"document": pl.Int32, "repeated": pl.Boolean}
_ALIGNMENT |= dict.fromkeys(("docid", *"spo", "aligner"), pl.String)


def _tables(alignments: Rows, mentions: Rows, table: Rows, problems: Problems) -> FileTables:
    """Return typed and checked frames: triples, mentions, documents."""
    rows = _columns(alignments, _ALIGNMENT).with_columns(
        subject=_number("s", ENTITY + "Q"),
        predicate=_number("p", DIRECT + "P"),
        object=_number("o", ENTITY + "Q"),
        literal=pl.col("o").str.extract(_LITERAL, 1),
        datatype=pl.col("o").str.extract(_LITERAL, 2),
    )
    is_object = pl.col("object").is_not_null() | pl.col("literal").is_not_null()
    legal = pl.col("subject").is_not_null() & pl.col("predicate").is_not_null() & is_object
    bad = rows.filter(~legal)
    for document, docid, *triple in bad.head(1).select("document", "docid", "s", "p", "o").rows():
        first = f"document {document} ({docid}): {' '.join(triple)}"
        problems.note("rejected triple", bad.height, first)
    kept = rows.filter(legal)
    distinct = kept.filter(~pl.col("repeated"))
    problems.note("repeated alignment", kept.height - distinct.height)
    named = pl.col("uri").str.starts_with(ENTITY) | pl.col("uri").str.contains(_LITERAL)
    found = _columns(mentions, {"document": pl.Int32, **_MENTION})
    found = found.filter(named & pl.col("surface").is_not_null())
    bits = pl.col("aligner").replace_strict(ALIGNERS, default=0, return_dtype=pl.UInt8)
    in_documents = pl.col("document").n_unique()
    return {
        "triples": distinct.group_by(list(_TRIPLE)).agg(
            alignments=pl.len(), documents=in_documents, aligners=bits.bitwise_or()
        ),
        "mentions": found.with_columns(pl.col("annotator").fill_null(""))
        .group_by(list(_MENTION))
        .agg(mentions=pl.len(), documents=in_documents),
        "documents": _columns(table, DOCUMENTS.columns),
    }


#: `1970-01-22T00:00:00Z^^http://www.w3.org/2001/XMLSchema#dateTime`; the value is not blank
_LITERAL = r"(?s)^(.*\S.*)\^\^(http://www\.w3\.org/2001/XMLSchema#\w+)$"


def _number(column: str, prefix: str) -> pl.Expr:
    """Return the number of an IRI `prefix<number>`, null for anything else."""
    digits = pl.col(column).str.strip_prefix(prefix)
    legal = pl.col(column).str.starts_with(prefix) & digits.str.contains(r"^[1-9][0-9]{0,8}$")
    return pl.when(legal).then(digits).otherwise(None).cast(pl.UInt32)


def _columns(rows: Rows, schema: Mapping[str, Any]) -> pl.DataFrame:
    """Build a frame from row tuples through columns, several times faster than row by row."""
    columns = list(zip(*rows, strict=True)) or [()] * len(schema)
    typed = zip(schema.items(), columns, strict=True)
    return pl.DataFrame([pl.Series(name, list(v), kind, strict=True) for (name, kind), v in typed])


def merge(paths: list[Path], contract: Contract) -> pl.DataFrame:
    """Merge TRIPLES or MENTIONS of all files by adding counts: no document is in two files."""
    counts = [name for name in contract.columns if name not in contract.key]
    return (
        pl.scan_parquet(paths)
        .group_by(contract.key)
        .agg(pl.col(n).bitwise_or() if n == "aligners" else pl.col(n).sum() for n in counts)
        .sort(contract.key)
        .collect(engine="streaming")
    )


def labels(mentions: pl.DataFrame, documents: pl.DataFrame) -> pl.DataFrame:
    """Return a label for every entity and date: columns uri, label, source (`title` or `surface`).

    The label is the title of the document about the entity; else its most frequent surface form by
    the linker of entities or of dates (ties: in more documents, then by code point), never a
    coreferent pronoun.
    """
    titles = (
        documents.select(uri="docid", label="title")
        .select("uri", one_line_of("label"), source=pl.lit("title"))
        .drop_nulls("label")
        .unique("uri", keep="first", maintain_order=True)
    )
    is_date = ~pl.col("uri").str.starts_with(ENTITY)
    linked = pl.col("annotator") == pl.when(is_date).then(pl.lit(DATES)).otherwise(
        pl.lit(SPOTLIGHT)
    )
    spotted = mentions.filter(linked).with_columns(one_line_of("surface"))
    # surface forms that differ only in whitespace are one
    spotted = spotted.drop_nulls("surface").group_by("uri", "surface").agg(pl.col(_COUNTS).sum())
    order = {"uri": False, "mentions": True, "documents": True, "surface": False}
    rest = (
        spotted.sort(list(order), descending=list(order.values()))
        .group_by("uri", maintain_order=True)
        .agg(label=pl.col("surface").first(), source=pl.lit("surface"))
        .join(titles, on="uri", how="anti")
    )
    return pl.concat([titles, rest]).sort("uri")

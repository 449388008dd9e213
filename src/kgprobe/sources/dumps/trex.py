"""T-REx: one dump file in, five small tables out.

A file is one JSON array of up to 10,000 documents (docs/papers/attributes.md, Graph). Reading is
one pass of orjson and one loop that only collects columns; everything else happens on columns. Each
file is a unit of its own: what is wrong in it is counted and located, and leaves the other files
alone.
"""

import re
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from kgprobe.schema import Contract
from kgprobe.sources.dumps.archives import ArchiveError, opened, read
from kgprobe.sources.dumps.trex_repair import KNOWN, BrokenFileError, Problems, parse, sound
from kgprobe.sources.labels import one_line_of

ENTITY = "http://www.wikidata.org/entity/"
DIRECT = "http://www.wikidata.org/prop/direct/"
#: The three aligners and their bits in the column `aligners`: AllEnt, NoSub, SPO.
ALIGNERS = {"Simple-Aligner": 1, "NoSubject-Triple-aligner": 2, "SPOAligner": 4}
SPOTLIGHT = "Wikidata_Spotlight_Entity_Linker"

_TRIPLE = {
    "subject": pl.UInt32,
    "predicate": pl.UInt32,
    "object": pl.UInt32,
    "literal": pl.String,
    "datatype": pl.String,
}
#: One row is one alignment: a triple found in a sentence by one aligner. Ids are the numbers of
#: Q... and P...; `object` is null for literals, whose text and datatype stand beside it. A subject
#: without place in the text is implied (the document's own).
ALIGNMENTS = Contract(
    "TREX_ALIGNMENTS",
    {
        "row": pl.Int32,
        "document": pl.Int32,
        "docid": pl.String,
        "sentence": pl.Int32,
        **_TRIPLE,
        "aligner": pl.String,
        "subject_annotator": pl.String,
        "object_annotator": pl.String,
        "subject_surface": pl.String,
        "object_surface": pl.String,
        "subject_start": pl.Int32,
        "subject_end": pl.Int32,
        "object_start": pl.Int32,
        "object_end": pl.Int32,
    },
    ("row",),
    frozenset(
        [
            "object",
            "literal",
            "datatype",
            "subject_annotator",
            "object_annotator",
            "subject_surface",
            "object_surface",
            "subject_start",
            "subject_end",
            "object_start",
            "object_end",
        ]
    ),
    may_be_empty=True,
)
#: One row is a distinct triple, with how often and by whom it was aligned.
TRIPLES = Contract(
    "TREX_TRIPLES",
    {**_TRIPLE, "alignments": pl.UInt32, "documents": pl.UInt32, "aligners": pl.UInt8},
    ("subject", "predicate", "object", "literal", "datatype"),
    frozenset({"object", "literal", "datatype"}),
    may_be_empty=True,
)
#: One row is one way in which an entity is mentioned.
MENTIONS = Contract(
    "TREX_MENTIONS",
    {
        "uri": pl.String,
        "surface": pl.String,
        "annotator": pl.String,
        "mentions": pl.UInt32,
        "documents": pl.UInt32,
    },
    ("uri", "surface", "annotator"),
    may_be_empty=True,
)
DOCUMENTS = Contract(
    "TREX_DOCUMENTS",
    {
        "document": pl.Int32,
        "docid": pl.String,
        "title": pl.String,
        "sentences": pl.Int32,
        "alignments": pl.Int32,
    },
    ("document",),
    may_be_empty=True,
)
#: What was counted or refused, per file; `first` says where it was met first.
PROBLEMS = Contract(
    "TREX_PROBLEMS",
    {"file": pl.String, "kind": pl.String, "count": pl.Int64, "first": pl.String},
    ("file", "kind"),
)
#: The label of every entity and where it comes from, `title` or `surface`.
LABELS = Contract(
    "TREX_LABELS", {"uri": pl.String, "label": pl.String, "source": pl.String}, ("uri",)
)
#: The tables of a shard by name.
TABLES = {
    "alignments": ALIGNMENTS,
    "triples": TRIPLES,
    "mentions": MENTIONS,
    "documents": DOCUMENTS,
    "problems": PROBLEMS,
}


@dataclass(frozen=True)
class Shard:
    """The tables of one dump file."""

    alignments: pl.DataFrame
    triples: pl.DataFrame
    mentions: pl.DataFrame
    documents: pl.DataFrame
    problems: pl.DataFrame


#: names of the published files, without their ending: for plans made before the download
PUBLISHED = [f"re-nlg_{start}-{start + 10_000}" for start in range(0, 4_650_000, 10_000)]


def members(source: Path) -> list[str]:
    """Names of the dump files in a folder or zip archive, in the order of their first number."""
    if source.is_dir():
        names = [p.name for p in source.iterdir()]
    elif zipfile.is_zipfile(source):
        with opened(source) as archive:
            names = archive.namelist()
    else:
        raise FileNotFoundError(f"{source}: neither a folder nor a zip archive of T-REx files")
    found = [n for n in names if re.search(r"re-nlg_\d+-\d+\.json$", n)]
    if not found:
        raise FileNotFoundError(f"{source}: no file named re-nlg_<from>-<to>.json in it")
    bare = [n.rsplit("/", 1)[-1] for n in found]
    if twice := sorted({n for n in bare if bare.count(n) > 1}):
        raise ArchiveError(f"{source}: {', '.join(twice[:3])} in more than one folder of it")
    return sorted(found, key=lambda n: int(re.findall(r"\d+", n.rsplit("/", 1)[-1])[0]))


def read_member(source: Path, name: str) -> bytes:
    """The bytes of one dump file; BrokenFileError for a bad archive member."""
    if source.is_dir():
        return (source / name).read_bytes()
    try:
        with opened(source) as archive:
            inside = {n.rsplit("/", 1)[-1]: n for n in archive.namelist()}
            return read(source, archive, inside[name.rsplit("/", 1)[-1]])
    except (ArchiveError, KeyError) as error:
        raise BrokenFileError(f"{source}, member {name}: {error}") from error


def ingest(data: bytes, file: str) -> Shard:
    """The tables of one dump file.

    Documents that break the schema are left out and counted; a truncated file gives its complete
    documents; BrokenFileError is raised when the file holds no array of documents at all.
    """
    documents, problems = parse(data, file)
    counts = dict(problems)
    try:
        frames = _frames(*_collect(documents, problems), problems)
    except (KeyError, TypeError, AttributeError, ValueError, pl.exceptions.PolarsError):
        # Rare: find the guilty documents one by one, then collect the sound ones.
        problems.clear()
        problems.update(counts)
        documents = [d for i, d in enumerate(documents) if sound(d, i, problems)]
        frames = _frames(*_collect(documents, problems), problems)
    problems.note("documents", len(documents))
    rows = [(file, kind, count, problems.first.get(kind, "")) for kind, count in problems.items()]
    if not rows:
        rows = [(file, "documents", 0, "")]
    table = pl.DataFrame(sorted(rows), schema=dict(PROBLEMS.columns), orient="row")
    return Shard(*frames, table)


def require_few_problems(shard: Shard, most: float) -> None:
    """Raise BrokenFileError when the file is cut or more than a share `most` of it was rejected."""
    counts = dict(shard.problems.select("kind", "count").rows())
    first = dict(shard.problems.select("kind", "first").rows())
    file = shard.problems["file"][0]
    rejected, read = counts.get("rejected document", 0), counts.get("documents", 0)
    share = rejected / max(rejected + read, 1)
    lines = [
        f"{kind}: {first[kind]}"
        for kind in ("truncated file", "rejected document")
        if kind in counts
    ]
    if lines and ("truncated file" in counts or share > most) and most < 1:
        raise BrokenFileError(
            f"{file}: {rejected} of {rejected + read} documents rejected (at most {most:.2%})\n"
            + "\n".join(lines)
            + "\nget the file again, or set sources.trex.max_bad: 1 to keep what could be read"
        )


Rows = list[tuple[Any, ...]]


def _collect(documents: list[Any], problems: Problems) -> tuple[Rows, Rows, Rows]:
    """Rows of alignments, of entity mentions and of documents: the one loop over Python objects."""
    alignments: Rows = []
    mentions: Rows = []
    table: Rows = []
    seen: set[str] = set()
    astray = 0
    for index, document in enumerate(documents):
        docid, text, triples = document["docid"], document["text"], document["triples"]
        if not (type(docid) is type(text) is type(document["title"]) is str):
            raise TypeError("docid, text and title are strings")
        if not (type(triples) is type(document["entities"]) is list):
            raise TypeError("entities and triples are lists")
        if "\ufffd" in text:
            problems.note("documents with U+FFFD", first=f"document {index} ({docid})")
        if not KNOWN.issuperset(document):
            extra = sorted(set(document) - KNOWN)
            problems.note("unknown extra field", first=f"document {index} ({docid}): {extra}")
        if docid in seen:
            problems.note("docid occurs twice", first=f"document {index} ({docid})")
        else:
            seen.add(docid)
            sentences = len(document["sentences_boundaries"])
            table.append((index, docid, document["title"], sentences, len(triples)))
        for entity in document["entities"]:
            surface, bounds = entity["surfaceform"], entity["boundaries"]
            mentions.append((index, entity["uri"], surface, entity["annotator"]))
            if bounds is not None and text[bounds[0] : bounds[1]] != surface:
                astray += 1
        for triple in triples:
            s, o = triple["subject"], triple["object"]
            alignments.append(
                (
                    index,
                    docid,
                    triple["sentence_id"],
                    s["uri"],
                    triple["predicate"]["uri"],
                    o["uri"],
                    triple["annotator"],
                    s["annotator"],
                    o["annotator"],
                    s["surfaceform"],
                    o["surfaceform"],
                    *(s["boundaries"] or _NOWHERE),
                    *(o["boundaries"] or _NOWHERE),
                )
            )
    problems.note("surface form not at its boundaries", astray)
    return alignments, mentions, table


_NOWHERE = (None, None)
_RAW = {
    "document": pl.Int32,
    "docid": pl.String,
    "sentence": pl.Int32,
    "s": pl.String,
    "p": pl.String,
    "o": pl.String,
    **dict.fromkeys(list(ALIGNMENTS.columns)[9:14], pl.String),
    **dict.fromkeys(list(ALIGNMENTS.columns)[14:], pl.Int32),
}


def _frames(
    alignments: Rows, mentions: Rows, table: Rows, problems: Problems
) -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame, pl.DataFrame]:
    """Typed and checked frames: alignments, triples, mentions, documents."""
    raw = _columns(alignments, _RAW)
    found = raw.select(
        *("document", "docid", "sentence"),
        _number("s", ENTITY + "Q").alias("subject"),
        _number("p", DIRECT + "P").alias("predicate"),
        _number("o", ENTITY + "Q").alias("object"),
        pl.col("o").str.extract(_LITERAL, 1).alias("literal"),
        pl.col("o").str.extract(_LITERAL, 2).alias("datatype"),
        *list(ALIGNMENTS.columns)[9:],
        *("s", "p", "o"),
    )
    legal = (
        pl.col("subject").is_not_null()
        & pl.col("predicate").is_not_null()
        & (pl.col("object").is_not_null() | pl.col("literal").is_not_null())
    )
    bad = found.filter(~legal)
    if bad.height:
        row = bad.row(0, named=True)
        first = f"document {row['document']} ({row['docid']}): {row['s']} {row['p']} {row['o']}"
        problems.note("rejected triple", bad.height, first)
    kept = found.filter(legal).drop("s", "p", "o")
    distinct = kept.unique(maintain_order=True)
    problems.note("repeated alignment", kept.height - distinct.height)
    return (
        distinct.with_row_index("row").with_columns(pl.col("row").cast(pl.Int32)),
        triples(distinct),
        _mentions(mentions),
        _columns(table, dict(DOCUMENTS.columns)),
    )


#: `1970-01-22T00:00:00Z^^http://www.w3.org/2001/XMLSchema#dateTime`
_LITERAL = r"(?s)^(.*)\^\^(http://www\.w3\.org/2001/XMLSchema#\w+)$"


def _number(column: str, prefix: str) -> pl.Expr:
    """The number of an IRI `prefix<number>`, null for anything else."""
    digits = pl.col(column).str.strip_prefix(prefix)
    legal = pl.col(column).str.starts_with(prefix) & digits.str.contains(r"^[1-9]\d{0,8}$")
    return pl.when(legal).then(digits).otherwise(None).cast(pl.UInt32)


def triples(alignments: pl.DataFrame) -> pl.DataFrame:
    """Distinct triples of alignments, with their counts and the bits of their aligners."""
    bits = pl.col("aligner").replace_strict(ALIGNERS, default=0, return_dtype=pl.UInt8)
    return (
        alignments.with_columns(bits.alias("bit"))
        .group_by(list(_TRIPLE))
        .agg(
            pl.len().cast(pl.UInt32).alias("alignments"),
            pl.col("document").n_unique().cast(pl.UInt32).alias("documents"),
            pl.col("bit").bitwise_or().alias("aligners"),
        )
    )


def merge_triples(paths: list[Path]) -> pl.DataFrame:
    """TRIPLES of all shards: counts are added, since no document stands in two files."""
    return (
        pl.scan_parquet(paths)
        .group_by(list(_TRIPLE))
        .agg(
            pl.col("alignments").sum(),
            pl.col("documents").sum(),
            pl.col("aligners").bitwise_or(),
        )
        .sort(list(_TRIPLE))
        .collect(engine="streaming")
    )


def merge_mentions(paths: list[Path]) -> pl.DataFrame:
    """MENTIONS of all shards, added up."""
    return (
        pl.scan_parquet(paths)
        .group_by("uri", "surface", "annotator")
        .agg(pl.col("mentions").sum(), pl.col("documents").sum())
        .sort("uri", "surface", "annotator")
        .collect(engine="streaming")
    )


def labels(mentions: pl.DataFrame, documents: pl.DataFrame) -> pl.DataFrame:
    """Label of every entity: columns uri, label, source (`title` or `surface`).

    The title of the document about the entity; else the surface form that the entity linker met
    most often (ties: in more documents, then by code point). Pronouns of coreference never count.
    """
    titles = documents.select(
        pl.col("docid").alias("uri"), pl.col("title").alias("label"), source=pl.lit("title")
    )
    titles = (
        titles.with_columns(one_line_of("label"))
        .drop_nulls("label")
        .unique("uri", keep="first", maintain_order=True)
    )
    spotted = mentions.with_columns(one_line_of("surface")).filter(pl.col("surface").is_not_null())
    spotted = spotted.filter(
        (pl.col("annotator") == SPOTLIGHT) & pl.col("uri").str.starts_with(ENTITY)
    ).sort(["uri", "mentions", "documents", "surface"], descending=[False, True, True, False])
    surfaces = spotted.group_by("uri", maintain_order=True).agg(pl.col("surface").first())
    rest = surfaces.join(titles, on="uri", how="anti").select(
        "uri", pl.col("surface").alias("label"), source=pl.lit("surface")
    )
    return pl.concat([titles, rest]).sort("uri")


def _mentions(rows: Rows) -> pl.DataFrame:
    raw = _columns(
        rows, {"document": pl.Int32, "uri": pl.String, "surface": pl.String, "annotator": pl.String}
    )
    return (
        raw.filter(pl.col("uri").str.starts_with(ENTITY) & pl.col("surface").is_not_null())
        .with_columns(pl.col("annotator").fill_null(""))
        .group_by("uri", "surface", "annotator")
        .agg(
            pl.len().cast(pl.UInt32).alias("mentions"),
            pl.col("document").n_unique().cast(pl.UInt32).alias("documents"),
        )
    )


def _columns(rows: Rows, schema: dict[str, Any]) -> pl.DataFrame:
    """A frame from row tuples by way of columns, several times faster than row by row."""
    columns = list(zip(*rows, strict=True)) or [()] * len(schema)
    return pl.DataFrame(
        [
            pl.Series(name, list(values), dtype=dtype, strict=True)
            for (name, dtype), values in zip(schema.items(), columns, strict=True)
        ]
    )

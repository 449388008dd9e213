"""Snapshots of pulls: raw pages as received, one table, and a record of the pull.

    data/{source}/{snapshot}/{query}/
        query.rq             the exact text that was sent for the first page
        page-00001.json.gz   raw answer bytes
        result.parquet       all rows, sorted
        meta.json            written last: its presence means complete

While a pull is running, `journal.jsonl` lists the finished pages, one per line; only pages listed
there are finished. A folder with meta.json is never written to again.

A term of a row is kept completely: value, type (iri, literal, bnode), language and datatype. The
hash of all rows is the same on every engine.
"""

import contextlib
import datetime
import gzip
import hashlib
import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

import orjson
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from kgprobe.job import sha256
from kgprobe.schema import METADATA_KEY, atomic
from kgprobe.sources.sparql.answers import TYPES, SnapshotError
from kgprobe.sources.sparql.paging import Query

META, JOURNAL, RESULT, QUERY = "meta.json", "journal.jsonl", "result.parquet", "query.rq"
PLAIN = {
    "http://www.w3.org/2001/XMLSchema#string",
    "http://www.w3.org/1999/02/22-rdf-syntax-ns#langString",
}
PARTS = ("", "_type", "_lang", "_datatype")

Bindings = Sequence[Mapping[str, Mapping[str, str]]]


@dataclass(frozen=True)
class PageRecord:
    """One finished page, as the journal and meta.json record it."""

    number: int
    start: int  #: the first smallest page in it (paging.Cuts) ...
    stop: int  #: ... and the first after it
    rows: int
    sha256: str  #: of the raw body
    status: int = 200
    url: str = ""  #: after redirects
    headers: dict[str, str] = field(default_factory=dict)

    @property
    def file(self) -> str:
        """Name of the page's file."""
        return f"page-{self.number:05}.json.gz"


PAGE = [one.name for one in fields(PageRecord)]


@dataclass(frozen=True)
class Snapshot:
    """A complete pull on disk."""

    folder: Path

    @property
    def result(self) -> Path:
        """The table of all rows."""
        return self.folder / RESULT

    @property
    def meta(self) -> dict[str, Any]:
        """The record of the pull."""
        return dict(json.loads((self.folder / META).read_text(encoding="utf-8")))

    def frame(self) -> pl.DataFrame:
        """All rows, every variable as a String column."""
        return pl.read_parquet(self.result)


class Writer:
    """The folder of a running pull: pages in sequence, then table and record."""

    def __init__(self, folder: Path, query: Query, endpoint_id: str) -> None:
        self.folder, self.query = folder, query
        #: the first fields of the journal and the record
        self.head: dict[str, Any] = {
            "source": query.source,
            "query": query.name,
            "parameters": query.parameters,
            "query_sha256": query.sha256,
            "endpoint": endpoint_id,
            "started": utc_now(),
        }
        self.pages: list[PageRecord] = []

    def open(self) -> bool:
        """Restore the finished pages of an earlier run, each verified by its hash; return whether
        the pull is complete.

        Raises SnapshotError if the folder belongs to another query, parameters or endpoint.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        journal = self.folder / JOURNAL
        if (self.folder / META).is_file():
            self._require_same(Snapshot(self.folder).meta)
            journal.unlink(missing_ok=True)
            return True
        text = journal.read_text(encoding="utf-8") if journal.is_file() else ""
        # a killed process may leave an incomplete line
        lines = [json.loads(line) for line in text.splitlines(keepends=True) if line[-1] == "\n"]
        if lines:
            self._require_same(lines[0])
            self.head["started"] = lines[0].get("started", self.head["started"])
        for line in lines:
            if "number" not in line:
                continue
            # a journal of an earlier version may have more fields
            page = PageRecord(**{k: line[k] for k in PAGE if k in line})
            if not self._is_intact(page):
                break  # pages after an unreadable page are requested again with it
            self.pages.append(page)
        with atomic(journal) as temporary:
            records = map(_line, [self.head, *map(asdict, self.pages)])
            temporary.write_text("".join(records), encoding="utf-8")
        return False

    def _require_same(self, record: Mapping[str, Any]) -> None:
        for what in ("query_sha256", "endpoint"):
            if record[what] != self.head[what]:
                place = f"{self.head['endpoint']}, query {self.query.path}, snapshot folder"
                came = f"{self.folder} was begun with {what} {record[what]}"
                raise SnapshotError(place, came, f"{what} {self.head[what]}")

    def _is_intact(self, page: PageRecord) -> bool:
        """Return whether the page's file exists and has the recorded hash."""
        with contextlib.suppress(OSError, EOFError, zlib.error):
            return hashlib.sha256(self.body(page)).hexdigest() == page.sha256
        return False

    def add(self, body: bytes, page: PageRecord, text: str) -> None:
        """Store a page, requested by the query `text`: its file first, then the line of the journal
        that makes it valid."""
        if page.number == 1:
            with atomic(self.folder / QUERY) as temporary:
                temporary.write_text(text, encoding="utf-8")
        path, data = self.folder / page.file, gzip.compress(body, compresslevel=6, mtime=0)
        try:
            with atomic(path) as temporary:
                temporary.write_bytes(data)
            with open(self.folder / JOURNAL, "a", encoding="utf-8") as stream:
                stream.write(_line(asdict(page)))
        except OSError as error:
            path.unlink(missing_ok=True)
            message = f"{error.strerror} ({len(data):,} bytes were to be written)"
            raise OSError(error.errno, message, str(path)) from error
        self.pages.append(page)

    def keep_bad(self, body: bytes) -> None:
        """Store the rejected body of the next page, for inspection."""
        (self.folder / f"page-{len(self.pages) + 1:05}.json.bad").write_bytes(body)

    def body(self, page: PageRecord) -> bytes:
        """Return the raw body of a finished page."""
        return gzip.decompress((self.folder / page.file).read_bytes())

    def frame(self) -> pl.DataFrame:
        """Return the rows of all pages, read from disk."""
        rows = (orjson.loads(self.body(page))["results"]["bindings"] for page in self.pages)
        variables = self.query.variables
        frames = (terms([row for row in page if "rows" not in row], variables) for page in rows)
        return pl.concat([terms([], variables), *frames])

    def finish(self, meta: Mapping[str, Any]) -> Snapshot:
        """Write the table of all pages, then meta.json with `meta`, which makes the snapshot
        complete, and drop the journal."""
        frame, hashes = self.frame(), "".join(page.sha256 for page in self.pages)
        # not the hash of raw pages, because engines return the same rows in different orders
        rows_sha256 = row_hash(frame)
        # the rows are the same wherever and whenever they come
        about = {k: v for k, v in self.head.items() if k not in ("endpoint", "started")}
        write_result(frame, self.folder / RESULT, {**about, "rows_sha256": rows_sha256})
        record = {
            **self.head,
            **meta,
            "snapshot": self.folder.parent.name,
            "rows": frame.height,
            "rows_sha256": rows_sha256,
            "result_sha256": sha256(self.folder / RESULT),
            "pages_sha256": hashlib.sha256(hashes.encode()).hexdigest(),
            "page_sizes": sorted({page.stop - page.start for page in self.pages}),
            "pages": [asdict(page) for page in self.pages],
        }
        with atomic(self.folder / META) as temporary:
            text = json.dumps(record, indent=1, ensure_ascii=False)
            temporary.write_text(text + "\n", encoding="utf-8")
        (self.folder / JOURNAL).unlink(missing_ok=True)
        kept = {page.file for page in self.pages}
        for file in self.folder.glob("*page-*"):
            if file.name not in kept:  # rejected, incomplete, or from a run with other page sizes
                file.unlink()
        return Snapshot(self.folder)


def utc_now() -> str:
    """Return the time for a record, in seconds UTC."""
    return datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _line(record: Mapping[str, Any]) -> str:
    return json.dumps(record) + "\n"


def files_hash(files: Sequence[str | Path]) -> str:
    """Return the sha256 over the sorted sha256 of the files, the name of stores and snapshots."""
    hashes = sorted(sha256(file) for file in files)
    return hashlib.sha256("\n".join(hashes).encode()).hexdigest()


def snapshot_name(access: str, name: str, files: list[str]) -> str:
    """Return a snapshot's folder name: the config's `name`; for files also a hash of them."""
    return name if access == "live" else f"{name}-{files_hash(files)[:12]}"


def terms(bindings: Bindings, variables: Sequence[str]) -> pl.DataFrame:
    """Return one row per binding: String columns v, v_type, v_lang, v_datatype per variable v.

    Unbound is null in all four, and so distinct from the empty string. Insignificant differences
    between engines (`typed-literal`, `xsd:string`, case of language tags, order of members, labels
    of blank nodes) are normalized here and in `row_hash`, and nowhere else.
    """
    columns: dict[str, list[str | None]] = {}
    for variable in variables:
        cells = [binding.get(variable, {}) for binding in bindings]
        datatypes = [cell.get("datatype") for cell in cells]
        columns[variable] = [cell.get("value") for cell in cells]
        columns[f"{variable}_type"] = [TYPES[cell["type"]] if cell else None for cell in cells]
        columns[f"{variable}_lang"] = [cell.get("xml:lang", "").lower() or None for cell in cells]
        columns[f"{variable}_datatype"] = [None if d in PLAIN else d for d in datatypes]
    return pl.DataFrame(columns, schema=dict.fromkeys(columns, pl.String))


def variables_of(frame: pl.DataFrame) -> list[str]:
    """Return the variables of a frame made by `terms`."""
    return frame.columns[:: len(PARTS)]


def in_order(frame: pl.DataFrame) -> pl.DataFrame:
    """Sort the rows of `terms` by its columns, unbound first, strings by code point."""
    return frame.sort(frame.columns, nulls_last=False)


def row_hash(frame: pl.DataFrame) -> str:
    """Return the canonical hash of the rows of `terms`: sha256 over the sorted rows.

    It does not depend on page size, order of arrival or engine; labels of blank nodes, which
    engines choose, count as equal.
    """
    kept = variables_of(frame)
    frame = frame.with_columns(
        pl.when(pl.col(f"{v}_type") == "bnode").then(pl.lit("")).otherwise(pl.col(v)).alias(v)
        for v in kept
    )
    digest = hashlib.sha256(orjson.dumps(kept))
    for rows in in_order(frame).iter_slices(10_000):
        digest.update(orjson.dumps(rows.rows()))
    return digest.hexdigest()


def write_result(frame: pl.DataFrame, path: Path, about: Mapping[str, Any]) -> None:
    """Write `terms` as parquet: sorted, with type columns only where types vary, and with the
    provenance `about` them.

    A type, language or datatype that is constant in a column is in the metadata under `terms`.
    """
    constant: dict[str, dict[str, str]] = {}
    columns = []
    for variable in variables_of(frame):
        columns.append(variable)
        bound = frame.filter(pl.col(variable).is_not_null())
        for part in PARTS[1:]:
            values = bound[f"{variable}{part}"].unique().to_list()
            if len(values) > 1:
                columns.append(f"{variable}{part}")
            elif values and values[0] is not None:
                constant.setdefault(variable, {})[part[1:]] = values[0]
    table = in_order(frame).select(columns).to_arrow(compat_level=pl.CompatLevel.oldest())
    table = table.cast(pa.schema([(c, pa.string()) for c in columns]))
    metadata = json.dumps({**about, "terms": constant}, sort_keys=True, ensure_ascii=True)
    table = table.replace_schema_metadata({METADATA_KEY: metadata.encode()})
    with atomic(path) as temporary:
        pq.write_table(
            table, temporary, compression="zstd", use_dictionary=True, row_group_size=1 << 17
        )

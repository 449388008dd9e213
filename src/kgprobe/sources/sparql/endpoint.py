"""SPARQL endpoints: a public service over HTTP, or RDF files that are queried in process.

Queries, pages and checks are the same for both. `Policy` holds the client's limits for a service;
resources/endpoints.tsv lists the public services with their published limits.
"""

import shutil
import socket
import time
import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass, fields
from importlib.metadata import version
from pathlib import Path
from typing import Any

import requests
import urllib3
from filelock import FileLock
from pyoxigraph import Quad, QueryResultsFormat, RdfFormat, Store, parse

from kgprobe.experiments import located, read_table
from kgprobe.http import (
    NoAnswerError,
    Session,
    Timeouts,
    describe,
    describe_redirect,
    user_agent,
    whole_body,
)
from kgprobe.job import log
from kgprobe.settings.sources import SparqlSource as Source
from kgprobe.sources import rdf_forms
from kgprobe.sources.sparql.answers import Answer
from kgprobe.sources.sparql.errors import AGAIN, Place, ServerTrouble, SourceError, TimedOut
from kgprobe.sources.sparql.snapshots import files_hash, snapshot_name

#: the User-Agent token of SPARQLWrapper
LIBRARY = f"SPARQLWrapper/{version('SPARQLWrapper')}"
#: The base IRI of Turtle files with relative IRIs.
BASE = "http://localhost/"
#: Maximum bytes of a decompressed response; a page of 5,000 rows has a few 10^6.
UNPACKED = 1 << 28
#: Bytes that are read of an error response.
ERROR_BODY = 1 << 20


@dataclass(frozen=True)
class Policy:
    """Limits that the client observes for one endpoint. Times in seconds."""

    connections: int = 4
    interval: float = 0.0  #: minimum time between the starts of two requests
    server_timeout_ms: int = 0  #: sent as `timeout=`; 0 sends none
    connect: float = 2.0
    read: float = 120.0
    deadline: float = 240.0  #: for a whole page
    page_size: int = 5000  #: rows per page
    listing: int = 1_000_000  #: rows per page of a listing, which has one column
    batch: int = 1000  #: subjects per page
    attempts: int = 2  #: per page
    most_rows: int = 0  #: per pull; larger relations should come from a dump; 0 means no limit
    license: str = ""
    graph: str = ""  #: what the endpoint holds, if that is only part of a graph


@dataclass(frozen=True)
class Endpoint:
    """An endpoint: a short name (which, unlike the URL, never changes), URL and policy.

    With a `store` it is queried in process, and nothing is sent to the URL.
    """

    id: str
    url: str
    policy: Policy = Policy()
    store: Store | None = None

    @property
    def is_local(self) -> bool:
        """Whether the endpoint is local and so needs no contact."""
        return self.id == "local"

    def agent(self, contact: str = "") -> str:
        """Return the User-Agent for its requests. Raises ContactError (http.user_agent)."""
        return user_agent(f"{self.id} ({self.url})", contact, LIBRARY, self.is_local)


class EndpointError(RuntimeError):
    """RDF files could not be loaded; the message names the file and the error."""


def open_source(
    source: str, settings: Source, rdf: Sequence[str], data: str | Path, endpoints: str
) -> tuple[Endpoint, Path]:
    """Return the endpoint of a source and the folder of its snapshot.

    `settings` is the source's section of the config. Unless access is `live`, the `rdf` files are
    queried; their store is kept in `data`. `endpoints`: path of the table of public services.
    """
    # a hash of files and queries: changed ones are queried again, which costs no service anything
    queries = sorted(Path(located("resources/queries")).glob("*/*.rq"))
    name = snapshot_name(settings.access, settings.snapshot, [str(p) for p in (*rdf, *queries)])
    folder = Path(data) / source / name
    if settings.access != "live":
        return Endpoint("local", "", store=open_store(rdf, Path(data) / ".stores")), folder
    known = read_endpoints(located(endpoints))
    if settings.endpoint not in known:
        raise ValueError(
            f"config: sources.{source}.endpoint is {settings.endpoint!r}; "
            f"{endpoints} has {', '.join(sorted(known))}"
        )
    return known[settings.endpoint], folder


def read_endpoints(path: str | Path) -> dict[str, Endpoint]:
    """Read the endpoints of a table like resources/endpoints.tsv, by id.

    The columns are id, url and the fields of Policy. Raises ValueError with file, id and column.
    """
    types = {f.name: f.type for f in fields(Policy)}
    endpoints: dict[str, Endpoint] = {}
    for row in read_table(path):
        where, values = f"{path}, endpoint {row.get('id')}", {}
        if surplus := sorted(set(row) - {"id", "url", *types}):
            raise ValueError(
                f"{path}: unknown columns {surplus}; valid: id, url, {', '.join(types)}"
            )
        for name in set(row) & set(types):
            try:
                values[name] = types[name](row[name])  # type: ignore[operator]
            except ValueError as error:
                raise ValueError(f"{where}: column '{name}' is {row[name]!r}: {error}") from error
        endpoints[row["id"]] = Endpoint(row["id"], row["url"], Policy(**values))
    return endpoints


def open_store(files: Sequence[str | Path], folder: Path) -> Store:
    """Open a store of the RDF `files` in `folder`; the first process that needs it loads them.

    Raises EndpointError.
    """
    paths = [Path(file) for file in files]
    if missing := [str(path) for path in paths if not path.is_file()]:
        raise EndpointError(f"no such RDF file: {', '.join(missing)}")
    if unknown := [str(path) for path in paths if rdf_forms.ending(path) not in rdf_forms.FORMS]:
        raise EndpointError(f"not a known RDF file: {', '.join(unknown)}; valid: {rdf_forms.LEGAL}")
    store = folder / files_hash(paths)[:12]
    folder.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{store}.lock"):
        if not store.is_dir():
            part = store.with_name(f"{store.name}.part")
            shutil.rmtree(part, ignore_errors=True)
            try:
                _load(paths, part)
                part.rename(store)
            finally:
                shutil.rmtree(part, ignore_errors=True)
    return Store.read_only(str(store))


def _load(files: Sequence[Path], folder: Path) -> None:
    started, store = time.monotonic(), Store(folder)
    for path in files:
        try:
            form = RdfFormat.from_extension(rdf_forms.form(path))
            if form == RdfFormat.RDF_XML:
                rdf_forms.check_xml(path)
            with rdf_forms.open_unpacked(path) as stream:
                if form and form.supports_datasets:
                    # queries only ask the default graph, so the names of graphs are dropped
                    quads = parse(stream, form, base_iri=BASE)
                    store.bulk_extend(Quad(*quad.triple) for quad in quads)
                else:
                    store.bulk_load(stream, form, base_iri=BASE)
        except (SyntaxError, ValueError, *rdf_forms.DAMAGED) as error:
            raise EndpointError(f"could not load {path}: {error}") from error
    log.info("loaded %d RDF files in %.1f s", len(files), time.monotonic() - started)


def ask(endpoint: Endpoint, text: str, agent: str, place: Place) -> Answer:
    """Send the query `text` to the store, or by POST, and return the response of any status.

    Raises ServerTrouble if the connection fails or the body is shorter than announced, TimedOut
    after the read timeout or the deadline of the whole response. Nothing is retried here.
    """
    if endpoint.store is not None:
        return _ask_store(endpoint.store, text)
    request, policy = _request(endpoint, text, agent), endpoint.policy
    timeouts = Timeouts(policy.connect, policy.read, policy.deadline)
    sent = {name.title(): value for name, value in request.header_items()}
    try:
        with (
            Session(direct=endpoint.is_local) as session,
            session.open_response(
                "POST", request.full_url, timeouts, data=request.data, headers=sent
            ) as answer,
        ):
            good, onward = answer.status_code < 300, describe_redirect(answer).encode()
            body = whole_body(answer, UNPACKED) if good else onward or _error_body(answer)
            headers = {name.lower(): value for name, value in answer.headers.items()}
            return Answer(answer.status_code, headers, body, answer.url)
    except NoAnswerError as error:
        raise _trouble(error.reason, endpoint, place) from error


def _ask_store(store: Store, text: str) -> Answer:
    """Query a local store; respond like a service: JSON, or status 400 for invalid SPARQL."""
    try:
        solutions: Any = store.query(text)
    except SyntaxError as error:
        return Answer(400, {"content-type": "text/plain"}, str(error).encode())
    body = solutions.serialize(format=QueryResultsFormat.JSON)
    return Answer(200, {"content-type": QueryResultsFormat.JSON.media_type}, body)


def _error_body(answer: requests.Response) -> bytes:
    """Read the beginning of an error body; it is only for the message, so it may be truncated."""
    try:
        return bytes(answer.raw.read(ERROR_BODY, decode_content=True))
    except urllib3.exceptions.HTTPError:
        return b""


def _trouble(reason: BaseException, endpoint: Endpoint, place: Place) -> SourceError:
    policy = endpoint.policy
    if isinstance(reason, TimeoutError):
        came = (
            f"{reason}: connect timeout {policy.connect:g} s, read timeout {policy.read:g} s, "
            f"deadline {policy.deadline:g} s"
        )
        return TimedOut(place, came, "a whole answer in time", AGAIN)
    refused = isinstance(reason, ConnectionRefusedError | socket.gaierror)
    advice = f"is {endpoint.url} right, and is the server up?" if refused else AGAIN
    return ServerTrouble(place, describe(reason), "an answer over HTTP", advice)


def _request(endpoint: Endpoint, text: str, agent: str) -> urllib.request.Request:
    """Build SPARQLWrapper's request; http.py sends it, with timeouts that SPARQLWrapper lacks.
    Imported late: it takes longer than everything else here, and files do not need it."""
    import SPARQLWrapper

    wrapper = SPARQLWrapper.SPARQLWrapper(
        endpoint.url, agent=agent, returnFormat=SPARQLWrapper.JSON
    )
    wrapper.setMethod(SPARQLWrapper.POST)
    wrapper.setRequestMethod(SPARQLWrapper.URLENCODED)
    wrapper.setOnlyConneg(True)
    wrapper.addCustomHttpHeader("Accept", "application/sparql-results+json")
    wrapper.addCustomHttpHeader("Accept-Encoding", "gzip")
    if endpoint.policy.server_timeout_ms:
        wrapper.addParameter("timeout", str(endpoint.policy.server_timeout_ms))
    wrapper.setQuery(text)
    request: urllib.request.Request = wrapper._createRequest()
    return request

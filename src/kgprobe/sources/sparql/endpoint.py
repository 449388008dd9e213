"""SPARQL endpoints: a public service over HTTP, or RDF files that are queried in process.

Queries, pages and checks are the same for both. `Policy` holds the client's limits for a service;
resources/endpoints.tsv lists the public services with their published limits, which `RateLimiter`
keeps.
"""

import contextlib
import json
import shutil
import socket
import time
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields
from importlib.metadata import version
from pathlib import Path
from typing import Any

import urllib3
from filelock import FileLock, Timeout
from pyoxigraph import Quad, QueryResultsFormat, RdfFormat, Store, parse

from kgprobe import http
from kgprobe.experiments import located, read_table
from kgprobe.job import log
from kgprobe.schema import atomic
from kgprobe.settings.sources import SparqlSource as Source
from kgprobe.sources import rdf_forms
from kgprobe.sources.sparql import answers
from kgprobe.sources.sparql.answers import Answer
from kgprobe.sources.sparql.snapshots import files_hash, snapshot_name

JSON = QueryResultsFormat.JSON
#: the User-Agent token of SPARQLWrapper
LIBRARY = f"SPARQLWrapper/{version('SPARQLWrapper')}"
#: The base IRI of Turtle files with relative IRIs.
BASE = "http://localhost/"
#: Maximum bytes of a decompressed response; a page of 5,000 rows has a few 10^6.
UNPACKED = 1 << 28
#: Bytes that are read of an error response.
ERROR_BODY = 1 << 20
#: Failed responses within WINDOW seconds before all processes pause; pauses before giving up
BUDGET, WINDOW, PAUSES = 20, 60.0, 3
POLL_EVERY = 0.05


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
        return http.user_agent(f"{self.id} ({self.url})", contact, LIBRARY, self.is_local)


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
        if missing := [name for name in ("id", "url") if not row.get(name)]:
            raise ValueError(f"{where}: no {' and no '.join(missing)}; every endpoint has both")
        for name in set(row) & set(types):
            try:
                values[name] = types[name](row[name])  # type: ignore[operator]
            except ValueError as error:
                raise ValueError(f"{where}: column '{name}' is {row[name]!r}: {error}") from error
        if values.get("connections", 1) < 1:
            raise ValueError(f"{where}: column 'connections' is below 1: nothing could be asked")
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


def ask(endpoint: Endpoint, text: str, agent: str, place: str) -> Answer:
    """Send the query `text` once, to the store or by POST, and return the response of any status.
    Raises ServerTrouble if the connection fails or the body is shorter than announced, TimedOut
    after the read timeout or the deadline of the whole response."""
    if endpoint.store is not None:
        try:  # respond like a service: JSON, or status 400 for invalid SPARQL
            solutions: Any = endpoint.store.query(text)
        except SyntaxError as error:
            return Answer(400, {"content-type": "text/plain"}, str(error).encode())
        return Answer(200, {"content-type": JSON.media_type}, solutions.serialize(format=JSON))
    request, policy = _request(endpoint, text, agent), endpoint.policy
    timeouts = http.Timeouts(policy.connect, policy.read, policy.deadline)
    headers = {name.title(): value for name, value in request.header_items()}
    try:
        with (
            http.Session(direct=endpoint.is_local) as session,
            session.open_response(
                "POST", request.full_url, timeouts, data=request.data, headers=headers
            ) as answer,
        ):
            body = http.describe_redirect(answer).encode()
            if answer.status_code < 300:
                body = http.whole_body(answer, UNPACKED)
            elif not body:
                # only for the message, so it may be truncated
                with contextlib.suppress(urllib3.exceptions.HTTPError):
                    body = bytes(answer.raw.read(ERROR_BODY, decode_content=True))
            came = {name.lower(): value for name, value in answer.headers.items()}
            return Answer(answer.status_code, came, body, answer.url)
    except http.NoAnswerError as error:
        raise _trouble(error.reason, endpoint, place) from error


def _request(endpoint: Endpoint, text: str, agent: str) -> urllib.request.Request:
    """Build SPARQLWrapper's request; http.py sends it, with timeouts that SPARQLWrapper lacks.
    Imported late: it takes longer than everything else here, and files do not need it."""
    import SPARQLWrapper

    wrapper = SPARQLWrapper.SPARQLWrapper(endpoint.url, agent=agent, returnFormat="json")
    wrapper.setMethod(SPARQLWrapper.POST)
    wrapper.setRequestMethod(SPARQLWrapper.URLENCODED)
    wrapper.setOnlyConneg(True)
    wrapper.addCustomHttpHeader("Accept", JSON.media_type)
    wrapper.addCustomHttpHeader("Accept-Encoding", "gzip")
    if endpoint.policy.server_timeout_ms:
        wrapper.addParameter("timeout", str(endpoint.policy.server_timeout_ms))
    wrapper.setQuery(text)
    request: urllib.request.Request = wrapper._createRequest()
    return request


def _trouble(reason: BaseException, endpoint: Endpoint, place: str) -> answers.SourceError:
    policy = endpoint.policy
    if isinstance(reason, TimeoutError):
        limits = f"connect timeout {policy.connect:g} s, read timeout {policy.read:g} s"
        return answers.TimedOut(place, f"{reason}: {limits}, deadline {policy.deadline:g} s")
    refused = isinstance(reason, ConnectionRefusedError | socket.gaierror)
    advice = f"is {endpoint.url} right, and is the server up?" if refused else ""
    return answers.ServerTrouble(place, http.describe(reason), "an answer over HTTP", advice)


@dataclass
class Clock:
    """The client's clock; tests use one that does not really wait."""

    now: Callable[[], float] = time.time
    sleep: Callable[[float], None] = time.sleep


class RateLimiter:
    """Rate limiter of an endpoint: `with limiter.request(place):` waits until it may start.

    The limits are shared by all processes. `folder` holds, for every endpoint id, one lock file per
    allowed connection and a small state file: when the next request may start, and the failures of
    the last minute. A process that is killed loses its locks; nothing else needs cleanup.

    `waits`: seconds waited and number of waits, by reason, for meta.json.
    """

    def __init__(self, endpoint: Endpoint, folder: Path, clock: Clock | None = None) -> None:
        self.endpoint, self.folder, self.clock = endpoint, folder, clock or Clock()
        self.waits: dict[str, Any] = {"seconds": Counter(), "times": Counter()}
        self.pauses = 0
        folder.mkdir(parents=True, exist_ok=True)

    @contextlib.contextmanager
    def request(self, place: str) -> Iterator[None]:
        """Wait until a request may start, and hold one of the endpoint's connections during it.

        Raises BudgetExhausted if failures have already caused three pauses.
        """
        while True:
            slot = self._slot()
            if slot is None:
                self.wait(POLL_EVERY, "connection")
                continue
            try:
                delay, reason = self._reserve(place)
                if delay <= 0:
                    yield
                    return
            finally:
                slot.release()
            self.wait(delay, reason)

    def failed(self) -> None:
        """Record a failed response in the endpoint's budget."""
        with self._state() as state:
            state["failures"].append(self.clock.now())

    def hold(self, seconds: float) -> None:
        """Block requests to this endpoint by all processes for these seconds (Retry-After)."""
        with self._state() as state:
            state["next_start"] = max(state["next_start"], self.clock.now() + seconds)

    def wait(self, seconds: float, reason: str) -> None:
        """Sleep and record it."""
        self.waits["seconds"][reason] = round(self.waits["seconds"][reason] + seconds, 3)
        self.waits["times"][reason] += 1
        self.clock.sleep(seconds)

    def _slot(self) -> FileLock | None:
        """Return the lock of a free connection, or None."""
        for number in range(self.endpoint.policy.connections):
            lock = FileLock(self.folder / f"{self.endpoint.id}.{number}.lock")
            with contextlib.suppress(Timeout):
                lock.acquire(timeout=0)
                return lock
        return None

    def _reserve(self, place: str) -> tuple[float, str]:
        """Return (0, "") and record the start if a request may start now; else (wait, reason)."""
        with self._state() as state:
            now, interval = self.clock.now(), self.endpoint.policy.interval
            failures = state["failures"] = [t for t in state["failures"] if t > now - WINDOW]
            # until the window is empty, not only until there is room for one more failure
            emptied = max(failures) + WINDOW if len(failures) >= BUDGET else 0.0
            if state["next_start"] < emptied - 0.001:
                self.pauses += 1
                state["next_start"] = emptied
            if self.pauses > PAUSES:
                came = f"{BUDGET} failed answers within {WINDOW:.0f} s, after {PAUSES} pauses"
                raise answers.BudgetExhausted(place, came)
            # after a clock was set back, wait no longer than the longest wait of any service
            state["next_start"] = min(state["next_start"], now + http.LONGEST_WAIT)
            if (wait := state["next_start"] - now) > 0:
                return wait, "hold" if wait > interval else "interval"
            if interval:
                state["next_start"] = now + interval
            return 0.0, ""

    @contextlib.contextmanager
    def _state(self) -> Iterator[dict[str, Any]]:
        """Yield the shared state, read and, if it changes, written under a lock."""
        path = self.folder / f"{self.endpoint.id}.json"
        with FileLock(self.folder / f"{self.endpoint.id}.lock"):
            text, state = "", {}
            with contextlib.suppress(OSError, ValueError):  # it is missing, or it is not JSON
                text = path.read_text()
                state = json.loads(text)
            state = {"next_start": 0.0, "failures": []} | state
            yield state
            if (changed := json.dumps(state)) != text:
                with atomic(path) as temporary:
                    temporary.write_text(changed)

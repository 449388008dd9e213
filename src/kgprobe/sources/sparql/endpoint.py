"""Where a source comes from: a public endpoint, or files served by a local one.

A local endpoint is an Oxigraph server on loopback over RDF files, while a `with` lasts: the same
queries, client and checks run against files on disk as against a public service. `Policy` is how
politely an endpoint is asked; resources/endpoints.tsv holds the public ones with their published
limits, the defaults are those of the local server.
"""

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import IO

import polars as pl
import psutil
from filelock import FileLock

from kgprobe.http import user_agent
from kgprobe.job import log as job_log
from kgprobe.settings import Endpoint as Source
from kgprobe.sheets import located
from kgprobe.sources import rdf_forms
from kgprobe.sources.sparql.snapshots import files_hash, snapshot_name
from kgprobe.stops import terminated


@dataclass(frozen=True)
class Policy:
    """Limits that the client keeps towards one endpoint. Times in seconds."""

    connections: int = 4
    interval: float = 0.0  #: least time between the starts of two requests
    server_timeout_ms: int = 0  #: sent as `timeout=`; 0 sends none
    connect: float = 2.0
    read: float = 120.0
    deadline: float = 240.0  #: of a whole page
    page_size: int = 5000  #: rows of a page
    listing: int = 1_000_000  #: rows of a page of a listing, which has one column
    batch: int = 1000  #: subjects of a page
    attempts: int = 2  #: of one page
    most_rows: int = 0  #: of one pull; above it the dump is the right source; 0 is no limit
    licence: str = ""
    graph: str = ""  #: what it holds, where that is a part of a graph


@dataclass(frozen=True)
class Endpoint:
    """A SPARQL endpoint: its short name (which, unlike the URL, never changes), URL and policy."""

    id: str
    url: str
    policy: Policy = Policy()

    @property
    def is_local(self) -> bool:
        """Whether the endpoint is our own, which asks for no contact."""
        return self.id == "local"

    def agent(self, contact: str = "") -> str:
        """The User-Agent that it is asked under. Raises ContactError (http.user_agent)."""
        import SPARQLWrapper

        library = f"SPARQLWrapper/{SPARQLWrapper.__version__}"
        return user_agent(f"{self.id} ({self.url})", contact, library, self.is_local)


def read_endpoints(path: str | Path) -> dict[str, Endpoint]:
    """The endpoints of a table like resources/endpoints.tsv, by id.

    The columns are id, url and the fields of Policy. Raises ValueError with file and row.
    """
    types = {f.name: f.type for f in fields(Policy)}
    rows = list(_rows(Path(path)))
    found: dict[str, Endpoint] = {}
    for number, row in rows:
        where = f"{path}, row {number}"
        if surplus := sorted(set(row) - {"id", "url", *types}):
            raise ValueError(
                f"{where}: unknown columns {surplus}; legal: id, url, {', '.join(types)}"
            )
        values = {}
        for name in set(row) & set(types):
            try:
                values[name] = types[name](row[name])  # type: ignore[operator]
            except ValueError as error:
                raise ValueError(f"{where}: column '{name}' is {row[name]!r}: {error}") from error
        found[row["id"]] = Endpoint(row["id"], row["url"], Policy(**values))
    return found


def _rows(path: Path) -> Iterator[tuple[int, dict[str, str]]]:
    header: list[str] = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        cells = line.split("\t")
        if not line or line.startswith("#"):
            continue
        if not header:
            header = cells
        elif len(cells) != len(header):
            raise ValueError(f"{path}, row {number}: {len(cells)} cells, expected {len(header)}")
        else:
            yield number, dict(zip(header, cells, strict=True))


READY_WITHIN = 30.0
POLL_EVERY = 0.05
#: Turtle files may hold relative IRIs; they need something to be relative to
BASE = "http://localhost/"


class EndpointError(RuntimeError):
    """The local server could not be loaded or started; the message ends with its own last lines."""


@contextlib.contextmanager
def local_endpoint(
    files: Sequence[str | Path],
    store_dir: str | Path | None = None,
    *,
    port: int = 0,
    timeout_s: int | None = None,
    policy: Policy | None = None,
    log: Callable[[str], None] = job_log.info,
) -> Iterator[Endpoint]:
    """Serve the RDF `files` on 127.0.0.1 while the body runs; gives the endpoint with its URL.

    The store lies in a temporary folder, or below `store_dir`, where later calls with the same
    files find it again. `port` 0 takes a free one. `timeout_s` makes the server stop long queries.
    The server is stopped in every exit path, SIGTERM included; one that a killed process left
    behind is stopped by the next call. Raises EndpointError.
    """
    stop_orphans(log)
    paths = [Path(file) for file in files]
    if missing := [str(path) for path in paths if not path.is_file()]:
        raise EndpointError(f"no such RDF file: {', '.join(missing)}")
    with contextlib.ExitStack() as stack:
        stack.enter_context(terminated(SystemExit))
        if store_dir is None:
            store = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="kgprobe-store-")))
            _load(paths, store, log)
        else:
            store = _cached(paths, Path(store_dir), log)
        url = stack.enter_context(_serving(store, port, timeout_s, log))
        yield Endpoint("local", url, policy or Policy())


def binary() -> str:
    """The `oxigraph` program: beside this Python, else on the PATH. Raises EndpointError."""
    beside = Path(sys.executable).parent / "oxigraph"
    found = str(beside) if beside.is_file() else shutil.which("oxigraph")
    if not found:
        raise EndpointError(
            f"no program `oxigraph` in {beside.parent} or on the PATH; "
            "`pip install oxigraph` gives it"
        )
    return found


def _cached(files: list[Path], folder: Path, log: Callable[[str], None]) -> Path:
    """The loaded store of these files below `folder`; the first process that asks loads it."""
    store = folder / files_hash(files)[:12]
    folder.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{store}.lock"):
        if not store.is_dir():
            part = store.with_name(f"{store.name}.part")
            shutil.rmtree(part, ignore_errors=True)
            try:
                _load(files, part, log)
                part.rename(store)
            finally:
                shutil.rmtree(part, ignore_errors=True)
    return store


def _load(files: list[Path], store: Path, log: Callable[[str], None]) -> None:
    started = time.monotonic()
    if unknown := [str(file) for file in files if not rdf_forms.form(file)]:
        raise EndpointError(f"no RDF that is known: {', '.join(unknown)}; legal: {rdf_forms.LEGAL}")
    command = [binary(), "load", "-l", str(store), "--base", BASE]
    # what the program does not unpack, or knows under another name, comes through a pipe
    piped = [f for f in files if f.suffix.lower() == ".bz2" or rdf_forms.ending(f) == ".owl"]
    direct = [file for file in files if file not in piped]
    if direct:
        _loaded([*command, "-f", *map(str, direct)], direct)
    for file in piped:
        _loaded([*command, "--format", rdf_forms.form(file)], [file], rdf_forms.opened)
    log(f"loaded {len(files)} RDF files in {time.monotonic() - started:.1f} s")


def _loaded(
    command: list[str], files: list[Path], opened: Callable[[Path], IO[bytes]] | None = None
) -> None:
    """Run the loader on `files`; of one that is `opened` here it reads the bytes."""
    stdin = subprocess.PIPE if opened else subprocess.DEVNULL
    names = ", ".join(file.name for file in files)
    with (
        tempfile.TemporaryFile("w+") as output,
        subprocess.Popen(command, stdin=stdin, stdout=output, stderr=output) as loader,
    ):
        if opened and loader.stdin:
            try:
                with opened(files[0]) as file, contextlib.suppress(BrokenPipeError), loader.stdin:
                    shutil.copyfileobj(file, loader.stdin, 1 << 20)
            except (OSError, EOFError) as error:
                loader.kill()
                raise EndpointError(f"could not unpack {files[0]}: {error}") from error
        if loader.wait():
            output.seek(0)
            raise EndpointError(f"could not load {names}:\n{_last_lines(output.read())}")


@contextlib.contextmanager
def _serving(
    store: Path, port: int, timeout_s: int | None, log: Callable[[str], None]
) -> Iterator[str]:
    """The query URL of a server on `store`; a free port that is lost to a race is chosen again."""
    for last in (True,) if port else (False, False, False, True):
        chosen = _require_free(port) if port else _free_port()
        url = f"http://127.0.0.1:{chosen}/query"
        with tempfile.TemporaryFile("w+", prefix="kgprobe-endpoint-") as output:
            command = [binary(), "serve-read-only", "-l", str(store), "-b", f"127.0.0.1:{chosen}"]
            command += ["--timeout-s", str(timeout_s)] if timeout_s else []
            server = subprocess.Popen(
                command, stdout=output, stderr=output, stdin=subprocess.DEVNULL, process_group=0
            )
            try:
                with _pid_file(server.pid, store):
                    if _ready(server, url):
                        log(f"local endpoint {url}, process {server.pid}")
                        yield url
                        return
                ended = server.poll() is not None
            finally:
                _stop(server)
            output.seek(0)
            shown = _last_lines(output.read())
        if last or "ddress already in use" not in shown:
            what = "ended at once" if ended else f"did not answer within {READY_WITHIN:.0f} s"
            raise EndpointError(f"the local server at {url} {what}; its last lines:\n{shown}")


def _ready(server: subprocess.Popen[bytes], url: str) -> bool:
    """Whether the server answers `ASK {}` before READY_WITHIN; False also when it ends."""
    deadline = time.monotonic() + READY_WITHIN
    ask = f"{url}?{urllib.parse.urlencode({'query': 'ASK {}'})}"
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    while time.monotonic() < deadline and server.poll() is None:
        try:
            with opener.open(ask, timeout=5) as answer:
                # another server may have taken the port while ours failed to: look at ours again
                return bool(answer.status == 200 and server.poll() is None)
        except OSError:  # refused, reset, or not yet an HTTP answer
            time.sleep(POLL_EVERY)
    return False


def _stop(server: subprocess.Popen[bytes]) -> None:
    """End the server's whole process group: politely, then for certain."""
    for sent in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(server.pid, sent)
        with contextlib.suppress(subprocess.TimeoutExpired):
            server.wait(5)
            return


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _require_free(port: int) -> int:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as error:
            raise EndpointError(
                f"port {port} of 127.0.0.1 is in use ({error.strerror}); stop what listens there, "
                "or leave the port out to get a free one"
            ) from error
    return port


def _last_lines(output: str, n: int = 10) -> str:
    said = output.split("Stack backtrace:")[0]  # of use to the server's authors alone
    lines = said.strip().splitlines()[-n:]
    return "\n".join(f"  {line}" for line in lines) or "  (it said nothing)"


def pid_folder() -> Path:
    """Where running servers are noted: one JSON file per server, per user."""
    return Path(tempfile.gettempdir()) / f"kgprobe-endpoints-{os.getuid()}"


@contextlib.contextmanager
def _pid_file(pid: int, store: Path) -> Iterator[None]:
    """A note of the server and of this process, for whoever finds the server without us."""
    note = pid_folder() / f"{pid}.json"
    note.parent.mkdir(parents=True, exist_ok=True)
    record = {"server": _identity(pid), "owner": _identity(os.getpid()), "store": str(store)}
    note.write_text(json.dumps(record))
    try:
        yield
    finally:
        note.unlink(missing_ok=True)


def _identity(pid: int) -> tuple[int, float]:
    """Process id and start time: a number alone may be given to another process later."""
    try:
        return pid, psutil.Process(pid).create_time()
    except psutil.NoSuchProcess:
        return pid, 0.0


def _alive(identity: Sequence[float]) -> bool:
    pid, started = int(identity[0]), identity[1]
    return started > 0 and abs(_identity(pid)[1] - started) < 1.0


def stop_orphans(log: Callable[[str], None] = job_log.info) -> int:
    """Stop servers whose owner is gone, and remove their temporary stores; gives their number."""
    stopped = 0
    for note in sorted(pid_folder().glob("*.json")):
        try:
            record = json.loads(note.read_text())
        except (OSError, ValueError):  # another process is writing or removing it
            continue
        if _alive(record["owner"]):
            continue
        if _alive(record["server"]):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(int(record["server"][0]), signal.SIGKILL)
            log(f"stopped server {record['server'][0]}, left behind by a process that is gone")
            stopped += 1
        if Path(record["store"]).name.startswith("kgprobe-store-"):
            shutil.rmtree(record["store"], ignore_errors=True)
        note.unlink(missing_ok=True)
    return stopped


@contextmanager
def opened(
    source: str, settings: Source, rdf: Sequence[str], data: str | Path, endpoints: str
) -> Iterator[tuple[Endpoint, Path]]:
    """The endpoint of a source and the folder of its snapshot, while the body runs.

    `settings` is the source's section of the config. Anything but `live` is served from the `rdf`
    files by a local endpoint, whose store is kept below `data`. `endpoints`: the table of them.
    """
    # what files give is asked for anew where files or queries changed: it costs nobody anything
    queries = sorted(Path(located("resources/queries")).glob("*/*.rq"))
    name = snapshot_name(settings.access, settings.snapshot, [str(p) for p in (*rdf, *queries)])
    folder = Path(data) / source / name
    if settings.access == "live":
        known = read_endpoints(located(endpoints))
        if settings.endpoint not in known:
            raise ValueError(
                f"config: sources.{source}.endpoint is {settings.endpoint!r}; "
                f"{endpoints} has {', '.join(sorted(known))}"
            )
        yield known[settings.endpoint], folder
        return
    with local_endpoint(rdf, Path(data) / ".stores") as endpoint:
        yield endpoint, folder


def relations_of(properties: pl.DataFrame) -> list[str]:
    """Ids of the item-valued properties of a pull, in the order of their numbers."""
    items = properties.filter(pl.col("datatype").str.ends_with("#WikibaseItem"))
    found = {iri.rsplit("/", 1)[-1] for iri in items["property"].to_list()}
    return sorted(found, key=lambda relation: int(relation[1:]))

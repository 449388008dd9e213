"""The code around every rule's script: log, one-screen errors, provenance, progress.

    with job(snakemake) as run:
        frame = build(...)
        write(frame, ITEMS, run.output.items, run.provenance(seed=0))

All log messages go to the rule's log file. An error writes its traceback there and at most one
screen to the terminal. After success a record (hashes of inputs and outputs, seconds, peak memory)
is written next to the log; it is the only record of what a job did.
"""

import contextlib
import fcntl
import hashlib
import importlib.metadata
import json
import logging
import os
import resource
import subprocess
import sys
import time
import traceback
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tqdm import tqdm

from kgprobe.files import ROOT, atomic
from kgprobe.stops import terminated

log = logging.getLogger("kgprobe")

#: Packages whose versions can affect results; only those that a job has imported are recorded.
RECORDED = (
    "kgprobe",
    "polars",
    "pyarrow",
    "numpy",
    "duckdb",
    "torch",
    "transformers",
    "tokenizers",
    "gguf",
)

#: Inputs above this size (bytes) are dumps, which are not hashed by each job that reads from them.
LARGE = 2 << 30


class JobContext:
    """The rule's data for a script: input, output, params, wildcards, config, resources."""

    def __init__(self, snakemake: Any) -> None:
        self.rule: str = snakemake.rule
        self.input = snakemake.input
        self.output = snakemake.output
        self.params = snakemake.params
        self.wildcards = snakemake.wildcards
        self.config: dict[str, Any] = snakemake.config
        self.threads: int = snakemake.threads
        #: resources of the rule: mem_mb, tmpdir and others it defines
        self.resources = snakemake.resources
        self.notes: dict[str, object] = {}
        self._hashes: dict[str, str] | None = None

    def provenance(self, inputs: Iterable[str] = (), **extra: object) -> dict[str, object]:
        """Return rule, wildcards, sha256 of each input and of the code, versions, and `extra` (JSON
        values, no times). `inputs`: the inputs of this output, if a job makes several outputs."""
        hashes, names = self.hashes(), {short(str(path)) for path in inputs}
        return {
            "rule": self.rule,
            "wildcards": dict(self.wildcards.items()),
            "inputs": {name: hashes[name] for name in hashes if not names or name in names},
            "code": self.params.get("code", ""),
            "versions": versions(),
            **extra,
        }

    @contextlib.contextmanager
    def parts(self) -> Iterator["PartOutcomes"]:
        """Collect the outcomes of parts of a job, so that a failed part does not stop the others.

        Raises PartsError at the end, with all failures.
        """
        parts = PartOutcomes()
        yield parts
        parts.check()

    def note(self, **values: object) -> None:
        """Add values that may differ between runs (rates, waits, memory) to the job's record."""
        self.notes.update(values)

    def hashes(self) -> dict[str, str]:
        """Return the sha256 of every input file by its short name; folders are hashed recursively.

        For dumps only the size is given: hashing them in every job would take longer than the job.
        """
        if self._hashes is None:
            self._hashes = {short(str(f)): _identity(Path(str(f))) for f in self.input}
        return self._hashes


class PartsError(RuntimeError):
    """Parts of a job failed; the message names each part and its cause."""


class PartOutcomes:
    """Outcomes of the parts of a job: how many ended, and cause -> names of the failed parts."""

    def __init__(self) -> None:
        self.count = 0
        self.failed: dict[str, list[str]] = {}

    @contextlib.contextmanager
    def part(self, name: str) -> Iterator[None]:
        """Log the start and end of a part; an error is stored and raised later by `check`."""
        clock = time.perf_counter()
        log.info("%s: begins", name)
        try:
            yield
        except Exception as error:  # raised by `check` after the other parts
            log.error("%s", "".join(traceback.format_exception(error)))
            self.fails(name, f"{type(error).__name__}: {error}")
        else:
            self.count += 1
            log.info("%s: done in %.1f s", name, time.perf_counter() - clock)

    def fails(self, name: str, cause: str) -> None:
        """Record for `check` that a part failed, here or elsewhere."""
        self.count += 1
        self.failed.setdefault(cause, []).append(name)

    def check(self) -> None:
        """Raise PartsError if a part failed; a cause shared by several parts is given once."""
        if self.failed:
            names = [name for failed in self.failed.values() for name in failed]
            causes = [f"{'; '.join(failed)}: {cause}" for cause, failed in self.failed.items()]
            raise PartsError(
                f"{len(names)} of {self.count} parts failed; what the others made is kept: "
                f"{'; '.join(names)}\n" + "\n".join(causes)
            )


@contextlib.contextmanager
def job(snakemake: Any) -> Iterator[JobContext]:
    """Run the body of a rule's script with its log, error screen and record.

    SIGTERM ends it like an error, without the screen: temporary files are removed.
    """
    path = Path(str(snakemake.log[0])) if snakemake.log else None
    handlers = _log_to(path)
    run = JobContext(snakemake)
    started, clock = time.time(), time.perf_counter()
    log.info("rule %s %s", run.rule, dict(run.wildcards.items()))
    try:
        with terminated(SystemExit):
            yield run
    except (KeyboardInterrupt, SystemExit):
        log.error("stopped")
        raise
    except (
        Exception
    ) as error:  # like `part`, a handler of all errors: it reports the error and stops
        log.error("%s", "".join(traceback.format_exception(error)))
        print(_screen(run, error, path), file=sys.stderr)
        raise SystemExit(1) from None
    else:
        seconds = time.perf_counter() - clock
        if path:
            _write_record(run, path, started, seconds)
        log.info("done in %.1f s", seconds)
    finally:
        for handler in handlers:
            log.removeHandler(handler)
            handler.close()


class Bar(tqdm):  # type: ignore[misc]
    """A progress bar, drawn on a terminal, that also writes rate and remaining time to the log
    every `every` seconds; `options` are those of tqdm."""

    def __init__(
        self, iterable: Iterable[Any] | None = None, *, every: float = 10.0, **options: Any
    ) -> None:
        self._every, self._log_time = every, time.monotonic()
        silent = not sys.stderr.isatty()
        # A bar that draws nothing still has to count: write to a null device, not `disable`.
        sink = open(os.devnull, "w") if silent else sys.stderr  # noqa: SIM115
        super().__init__(iterable, file=sink, mininterval=0.5, dynamic_ncols=True, **options)

    def update(self, n: float | None = 1) -> bool | None:
        drawn: bool | None = super().update(n)
        now = time.monotonic()
        if now - self._log_time >= self._every:
            self._log_time = now
            log.info("%s", self)
        return drawn

    def __iter__(self) -> Iterator[Any]:
        for element in self.iterable:
            yield element
            self.update(1)
        self.close()

    def close(self) -> None:
        # a bar left open by a stop is closed after the interpreter has shut down logging
        if sys.is_finalizing():
            return
        if not getattr(self, "_closed", False):
            self._closed = True
            log.info("%s", self)
        super().close()


progress = Bar
_held: list[Any] = []


def sole_run(path: str | Path = ".snakemake/kgprobe.lock") -> None:
    """Hold a lock until this process ends, so that two runs cannot use the same folder.

    The system releases it however the process ends: after a kill the same command can resume,
    which Snakemake's own lock files prevent. Raises RuntimeError while another run holds it.
    """
    _hold(Path(path), "is working in this folder")


def sole_download(lock: str | Path, outputs: Sequence[str], read: Sequence[str] = ()) -> None:
    """Lock files shared by several runs: a job that writes some of them (`outputs`) holds the lock;
    a job that only reads them checks that it is free, since they may be incomplete. Raises
    RuntimeError while another run is downloading."""
    if outputs or Path(lock).exists():
        _hold(Path(lock), f"is downloading {[*outputs, *read][0]}", keep=bool(outputs))


def _hold(path: Path, what: str, keep: bool = True) -> None:
    """Hold a lock, or only check that it is free. Raises RuntimeError with `what` if it is held."""
    path.parent.mkdir(parents=True, exist_ok=True)
    stream = open(path, "a+")  # noqa: SIM115  (held open on purpose)
    try:
        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        stream.seek(0)
        other = stream.read().strip() or "unknown"
        stream.close()
        raise RuntimeError(
            f"another run (process {other}) {what}; wait for it or stop it"
        ) from None
    except OSError:  # a file system without locks
        pass
    if not keep:
        stream.close()
        return
    stream.truncate(0)
    stream.write(str(os.getpid()))
    stream.flush()
    _held.append(stream)


def sha256(path: str | Path) -> str:
    """Return the sha256 of a file, or of the sorted (name, sha256) list of a folder's files."""
    path = Path(path)
    if path.is_dir():
        files = sorted(p for p in path.rglob("*") if p.is_file())
        lines = "".join(f"{file.relative_to(path)} {sha256(file)}\n" for file in files)
        return hashlib.sha256(lines.encode()).hexdigest()
    with open(path, "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def short(path: str | Path) -> str:
    """Return the path relative to the working folder or to the project's; for files outside both,
    the last two parts."""
    absolute = Path(path).absolute()
    for folder in (Path.cwd(), ROOT):
        if absolute.is_relative_to(folder):
            return absolute.relative_to(folder).as_posix()
    return "/".join(absolute.parts[-2:])


def versions() -> dict[str, str]:
    """Return the versions of the packages in RECORDED that this process has imported."""
    return {name: importlib.metadata.version(name) for name in RECORDED if name in sys.modules}


def commit() -> str:
    """Return the commit of the working folder's checkout, with a + if files differ from it, or ""
    if it is not a checkout."""
    command = ["git", "describe", "--always", "--exclude=*", "--abbrev=12", "--dirty=+"]
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    return ""


def _log_to(path: Path | None) -> list[logging.Handler]:
    log.setLevel(logging.INFO)
    log.propagate = False
    handlers: list[logging.Handler] = []
    if path:
        path.parent.mkdir(parents=True, exist_ok=True)
        handlers.append(logging.FileHandler(path, mode="w", encoding="utf-8"))
    elif sys.stderr:
        handlers.append(logging.StreamHandler(sys.stderr))
    for handler in handlers:
        handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
        log.addHandler(handler)
    return handlers


def _screen(run: JobContext, error: BaseException, path: Path | None) -> str:
    """Format an error for the terminal: at most 20 lines of its message, and the log's path."""
    lines = (str(error) or repr(error)).splitlines()
    shown = lines[:20] + (
        [f"... ({len(lines) - 20} more lines in the log)"] if len(lines) > 20 else []
    )
    name = type(error).__name__
    where = ", ".join(f"{k}={v}" for k, v in run.wildcards.items())
    head = f"error in rule {run.rule}" + (f" ({where})" if where else "")
    return "\n".join(
        [head, f"  {name}: {shown[0]}", *(f"  {line}" for line in shown[1:]), f"  log: {path}"]
    )


def _write_record(run: JobContext, path: Path, started: float, seconds: float) -> None:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    record: Mapping[str, object] = {
        **run.provenance(),
        "outputs": {
            short(str(f)): {"sha256": sha256(str(f)), "bytes": _size(Path(str(f)))}
            for f in run.output
            if Path(str(f)).exists()
        },
        "commit": commit(),
        "started": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(started)),
        "wall_seconds": round(seconds, 3),
        "cpu_seconds": round(
            usage.ru_utime + usage.ru_stime + children.ru_utime + children.ru_stime, 3
        ),
        # the larger of this process and its largest child
        "peak_mib": round(max(usage.ru_maxrss, children.ru_maxrss) / 1024, 1),
        "notes": run.notes,
    }
    with atomic(path.with_suffix(".json")) as temporary:
        temporary.write_text(json.dumps(record, indent=1, sort_keys=True))


def _identity(path: Path) -> str:
    size = _size(path)
    return sha256(path) if size <= LARGE else f"not hashed, {size} bytes"


def _size(path: Path) -> int:
    if path.is_dir():
        return sum(p.stat().st_size for p in path.rglob("*") if p.is_file())
    return path.stat().st_size

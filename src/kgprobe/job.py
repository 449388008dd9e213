"""The glue between a Snakemake rule and the package: log, one-screen errors, provenance, progress.

    with job(snakemake) as run:
        frame = build(...)
        write(frame, ITEMS, run.output.items, run.provenance(seed=0))

Everything logged goes to the rule's log file. An error leaves its traceback there and one screen on
the terminal. After success a record (hashes of inputs and outputs, seconds, peak memory) lies
beside the log: the one account of what a job did.
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

from kgprobe.files import atomic
from kgprobe.stops import terminated

log = logging.getLogger("kgprobe")

#: Packages whose versions numbers can depend on; only those a job has imported are recorded.
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

#: Inputs above this size (bytes) are dumps; not every job that reads a part of one hashes it.
LARGE = 2 << 30


class JobContext:
    """What a script needs of its rule: input, output, params, wildcards, config, resources."""

    def __init__(self, snakemake: Any) -> None:
        self.rule: str = snakemake.rule
        self.input = snakemake.input
        self.output = snakemake.output
        self.params = snakemake.params
        self.wildcards = snakemake.wildcards
        self.config: dict[str, Any] = snakemake.config
        self.threads: int = snakemake.threads
        #: resources of the rule: mem_mb, tmpdir and whatever else it names
        self.resources = snakemake.resources
        self.notes: dict[str, object] = {}
        self._hashes: dict[str, str] | None = None

    def provenance(self, inputs: Iterable[str] = (), **extra: object) -> dict[str, object]:
        """Rule, wildcards, sha256 of every input and of the code, versions, and `extra`: JSON
        values, no times. `inputs`: those that this output is made of, where a job makes several."""
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
        """Parts of a job of which one that fails keeps no other from being done.

        Raises PartsError at the end, with all that failed.
        """
        parts = PartOutcomes()
        yield parts
        parts.check()

    def note(self, **values: object) -> None:
        """Add values that may differ between runs (rates, waits, memory) to the job's record."""
        self.notes.update(values)

    def hashes(self) -> dict[str, str]:
        """sha256 of every input file by its short name; folders are hashed file by file.

        Dumps are known by their size alone: reading them once per job would cost more than the job.
        """
        if self._hashes is None:
            self._hashes = {short(str(f)): _identity(Path(str(f))) for f in self.input}
        return self._hashes


class PartsError(RuntimeError):
    """Parts of a job failed; the message names each and its cause."""


class PartOutcomes:
    """What became of the parts of a job: how many ended, and (cause, names) of the failed."""

    def __init__(self) -> None:
        self.count = 0
        self.failed: dict[str, list[str]] = {}

    @contextlib.contextmanager
    def part(self, name: str) -> Iterator[None]:
        """A line in the log when a part begins and one when it ends; an error is kept for later."""
        clock = time.perf_counter()
        log.info("%s: begins", name)
        try:
            yield
        except Exception as error:  # raised by `check`, when the others are done
            log.error("%s", "".join(traceback.format_exception(error)))
            self.fails(name, f"{type(error).__name__}: {error}")
        else:
            self.count += 1
            log.info("%s: done in %.1f s", name, time.perf_counter() - clock)

    def fails(self, name: str, cause: str) -> None:
        """Keep for `check` that a part failed, here or elsewhere."""
        self.count += 1
        self.failed.setdefault(cause, []).append(name)

    def check(self) -> None:
        """Raise PartsError where a part failed; a cause that several share is named once."""
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

    SIGTERM ends it as an error does, without a screen: what is temporary is put away.
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
    ) as error:  # with `part`, the place that catches everything: it reports and stops
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


def progress(
    iterable: Iterable[Any] | None = None,
    *,
    total: float | None = None,
    desc: str = "",
    unit: str = "it",
    every: float = 10.0,
) -> "Bar":
    """A progress bar: drawn on a terminal, and as a line in the log every `every` seconds."""
    return Bar(iterable, total=total, desc=desc, unit=unit, every=every)


class Bar(tqdm):  # type: ignore[misc]
    """tqdm that also writes rate and remaining time to the log."""

    def __init__(
        self, iterable: Iterable[Any] | None = None, *, every: float = 10.0, **options: Any
    ) -> None:
        self._every, self._log_time = every, time.monotonic()
        silent = not sys.stderr.isatty()
        # A bar that draws nothing still has to count: give it a sink in place of `disable`.
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
        # a bar that a stop left open is closed when the interpreter has taken logging down
        if sys.is_finalizing():
            return
        if not getattr(self, "_closed", False):
            self._closed = True
            log.info("%s", self)
        super().close()


_held: list[Any] = []


def sole_run(path: str | Path = ".snakemake/kgprobe.lock") -> None:
    """Hold a lock for as long as this process lives, so that two runs do not share a folder.

    The system lets go of it however the process ends: after a kill the same command just goes on,
    which Snakemake's own lock files do not allow. Raises RuntimeError while another run holds it.
    """
    _hold(Path(path), "is working in this folder")


def sole_download(lock: str | Path, outputs: Sequence[str], read: Sequence[str] = ()) -> None:
    """Lock files that several runs share: a job that makes some of them (`outputs`) holds the lock,
    one that only reads them checks it, since they may not be complete. Raises RuntimeError while
    another downloads."""
    if outputs or Path(lock).exists():
        _hold(Path(lock), f"is downloading {[*outputs, *read][0]}", keep=bool(outputs))


def _hold(path: Path, what: str, keep: bool = True) -> None:
    """Hold a lock, or only see that nobody does. Raises RuntimeError with what another does."""
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
    if not keep:
        stream.close()
        return
    stream.truncate(0)
    stream.write(str(os.getpid()))
    stream.flush()
    _held.append(stream)


def sha256(path: str | Path) -> str:
    """sha256 of a file, or of the sorted (name, sha256) list of a folder's files."""
    path = Path(path)
    if path.is_dir():
        files = sorted(p for p in path.rglob("*") if p.is_file())
        lines = "".join(f"{file.relative_to(path)} {sha256(file)}\n" for file in files)
        return hashlib.sha256(lines.encode()).hexdigest()
    with open(path, "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def short(path: str | Path) -> str:
    """The path relative to the working folder; for files outside of it, its last two parts."""
    path = Path(path)
    absolute, here = path.absolute(), Path.cwd()
    if absolute.is_relative_to(here):
        return absolute.relative_to(here).as_posix()
    return "/".join(absolute.parts[-2:])


def versions() -> dict[str, str]:
    """Versions of the packages in RECORDED that are imported in this process."""
    return {name: importlib.metadata.version(name) for name in RECORDED if name in sys.modules}


def commit() -> str:
    """The commit of the checkout that this process works in, with a + where files differ from it;
    "" where it is none."""
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
    """What the user sees of an error: at most 20 lines of the message, and where the rest is."""
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
        # of the greatest process
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

"""A run that can be stopped in a job of a rule, and the files and processes that it leaves.

The small embedded run pulls with its server, trains, scores, searches and makes tables. A stop is a
SIGTERM or Ctrl-C, sent to Snakemake alone or to all processes, once or twice.
"""

import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import astuple, dataclass, field
from pathlib import Path

import psutil

from tests.workflow.project import CONFIGS, Project

EXPERIMENTS = """paper	benchmark	prompt	method	model
bear	world_lite	templates	sentence	control-masked
bear	world_lite	templates	sentence	control-causal
autoprompt	auto_world	searched	predict	control-masked
"""
#: files that must equal those of the uninterrupted run
SAME = ("benchmarks", "models", "prompts", "scores", "outcomes", "tables")
#: marks all processes of a run, whatever they do with the rest of their environment
MARK = "KGPROBE_STOPPED"
FINISHED = re.compile(r"^\[ *\d+/\d+\]  (.+?)  (?:[\d.]+ (?:s|min|h) ?)+$", re.MULTILINE)
BEGUN = re.compile(r"^(?:local)?rule (\S+):$", re.MULTILINE)
WITHIN = 5.0
TIMEOUT = 300.0


@dataclass
class Try:
    """One stop and what it left behind; all fields but the first five are 0 in a correct run."""

    job: str
    signal: str
    to: str
    seconds: float = 0.0
    finished: int = 0
    late: int = 0
    lines: int = 0  #: lines reporting the stop other than exactly one, or lines after it
    processes: int = 0
    temporary: int = 0
    half: int = 0
    repeated: int = 0
    noise: int = 0  #: tracebacks

    @property
    def is_right(self) -> bool:
        """Return whether nothing was left and nothing done twice."""
        return not any(astuple(self)[5:])


@dataclass
class StoppedRun:
    """A project in a folder that is run, stopped and inspected."""

    project: Project
    targets: Sequence[str] = ()
    seen: Counter[str] = field(default_factory=Counter)

    @classmethod
    def made(
        cls, folder: Path, targets: Sequence[str] = (), rows: str = EXPERIMENTS
    ) -> "StoppedRun":
        """Create a new project."""
        folder.mkdir()
        project = Project(folder)
        (folder / "config/experiments.small.tsv").write_text(rows)
        (folder / "tmp").mkdir()
        return cls(project, targets)

    def command(self, by_kgprobe: bool = False) -> list[str]:
        """Return the command of Snakemake, or of `kgprobe run`, which starts it."""
        more = ["--", *self.targets] if self.targets else []
        if not by_kgprobe:
            return self.project.command(*more)
        own = [sys.executable, "-m", "kgprobe.cli", "run", CONFIGS[0], "--cores", "2"]
        # an option between files and targets: the command line takes `--` for itself
        return [*own, "--configfile", *CONFIGS, "--nocolor", *self.targets]

    def start(self, by_kgprobe: bool = False) -> subprocess.Popen[str]:
        """Start or resume; the output of the run goes to the file `said`."""
        folder = self.project.folder
        environment = {**self.project.environment(), "TMPDIR": str(folder / "tmp")}
        with open(folder / "said", "w") as said:
            return subprocess.Popen(
                self.command(by_kgprobe), cwd=folder, stdout=said, stderr=said, text=True,
                env={**environment, MARK: str(folder)}, start_new_session=True,
                # background processes and their children ignore Ctrl-C
                preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL) and None,
            )  # fmt: skip

    def said(self) -> str:
        """Return the output of the last run so far."""
        return (self.project.folder / "said").read_text()

    def finished(self) -> list[str]:
        """Return the jobs that the last run finished."""
        return FINISHED.findall(self.said())

    def begun(self, rule: str, run: subprocess.Popen[str]) -> bool:
        """Wait until a job of the rule begins; return False if the run ends first."""
        logs, until = self.project.folder / ".snakemake/log", time.monotonic() + TIMEOUT
        before = set(logs.glob("*.log"))
        while run.poll() is None:
            assert time.monotonic() < until, f"no job of {rule}:\n{self.said()}"
            for path in set(logs.glob("*.log")) - before:
                if rule in BEGUN.findall(path.read_text(errors="replace")):
                    return True
            time.sleep(0.05)
        return False

    def stop(
        self, job: str, after: float, number: int, is_group: bool, twice: bool = False,
        by_kgprobe: bool = False,
    ) -> Try | None:  # fmt: skip
        """Start the run, stop it `after` seconds into the first job of a rule, and inspect what is
        left; return None if it ended before."""
        run = self.start(by_kgprobe)
        if not self.begun(job.split()[0], run):
            self._count()
            return None
        time.sleep(after)
        if run.poll() is not None:
            self._count()
            return None
        send = os.killpg if is_group else os.kill
        clock = time.monotonic()
        send(run.pid, number)
        if twice:
            time.sleep(0.1)
            if run.poll() is None:
                send(run.pid, number)
        run.wait(60)
        took = time.monotonic() - clock
        words = ("kgprobe, " if by_kgprobe else "") + ("all" if is_group else "alone")
        name = signal.Signals(number).name + (" twice" if twice else "")
        return self._look(Try(job, name, words, round(took, 1), late=int(took > WITHIN)))

    def _count(self) -> int:
        names = self.finished()
        self.seen.update(names)
        return len(names)

    def _look(self, made: Try) -> Try:
        folder, said = self.project.folder, self.said()
        lines = said.rstrip().splitlines()
        stopped = [line.startswith("stopped (") for line in lines]
        made.lines = abs(sum(stopped) - 1) + (not stopped or not stopped[-1])
        made.noise = said.count("Traceback") + said.count("FAILED")
        made.processes = len(list(marked(str(folder))))
        made.temporary = len(list((folder / "tmp").iterdir()))
        half = [p for name in ("results", "data") for p in (folder / name).rglob("*.part")]
        made.half = len(half)
        for what in [*half, *(folder / "tmp").iterdir(), *marked(str(folder))]:
            print(f"left: {what}", file=sys.stderr)
        before = self.seen.copy()
        made.finished = self._count()
        made.repeated = sum(
            1 for name in self.seen if before[name] and self.seen[name] > before[name]
        )
        return made

    def end(self) -> int:
        """Run to the end; return the number of jobs that were done before."""
        run, before = self.start(), self.seen.copy()
        assert run.wait(900) == 0, self.said()
        self._count()
        return sum(1 for name in self.seen if before[name] and self.seen[name] > before[name])

    def hashes(self) -> dict[str, str]:
        """Return the sha256 of the files that must be the same."""
        return self.project.hashes(*(f"results/embedded/{name}" for name in SAME))


def marked(folder: str) -> Iterator[psutil.Process]:
    """Return the processes of the runs in a folder."""
    for process in psutil.process_iter():
        try:
            if process.environ().get(MARK) == folder:
                yield process
        except psutil.Error:
            continue

"""What a terminal shows while the workflow runs: a line per job, a bar, the first error last.

    [12/67]  pull relation=P17  3.2 s
    [13/67]  tabulate  11 s
    ━━━━━━━━━━━━━━━━━━━╸━━━━━━━━━━━━━━━━━  13/67  1 min 40 s, about 6 min left
      probes_smollm2-135m-instruct  50 s  sentence: 34%| 480/1404 [00:40<01:17, 11.9it/s]

The bar and what runs below it are drawn on a terminal alone. Elsewhere (a file, CI) there are the
lines, and one more where nothing else was said for SILENCE seconds. The time left follows from the
seconds that each rule took in the last run (the records beside its logs) and from how fast this run
gets through them.
"""

import json
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

#: at most so many seconds pass without a line where there is no terminal
SILENCE = 30.0
#: lines of an error's message that are repeated at the end
MESSAGE = 12
#: running jobs that are drawn below the bar
RUNNING = 6
#: of a log, this many bytes at the end are looked at
TAIL = 8192
#: what follows from another message, or is said better here
ECHOES = (
    "Exiting because a job execution failed", "WorkflowError:", "At least one job did not complete",
    "Removing output files of failed job", "Trying to restart job", "Shutting down",
)  # fmt: skip


@dataclass
class Job:
    """A job: rule, wildcards, log files; seconds of the view's clock when it began."""

    rule: str
    wildcards: Mapping[str, str] = field(default_factory=dict)
    logs: Sequence[str] = ()
    began: float = 0.0

    def __str__(self) -> str:
        return " ".join([self.rule, *(f"{k}={v}" for k, v in self.wildcards.items())])


@dataclass(frozen=True)
class Failure:
    """A job that failed, after so many seconds, with what its log ends with."""

    job: Job
    seconds: float
    message: Sequence[str]


class View:
    """The jobs of a run on a terminal or as lines.

    `stats`: jobs by rule. `is_plain`: no colours. `records`: seconds by rule of an earlier run,
    read beside the first log that is told where it is not given. All methods may be called from
    any thread.
    """

    def __init__(
        self,
        stats: Mapping[str, int],
        is_plain: bool = False,
        console: Console | None = None,
        records: Mapping[str, float] | None = None,
        clock: Callable[[], float] = time.monotonic,
        silence: float = SILENCE,
    ) -> None:
        self.stats, self.total = dict(stats), sum(stats.values())
        self.console = console or Console(
            stderr=True, highlight=False, no_color=is_plain or None, emoji=False, markup=False
        )
        self.records, self.clock, self.silence = records, clock, silence
        self.jobs: dict[int, Job] = {}
        self.running: dict[int, Job] = {}
        self.failures: list[Failure] = []
        self.heard: list[str] = []
        self.done, self.worked, self.log = 0, 0.0, ""
        self.left = dict(stats)
        self.began = self.spoke = clock()
        self.lock, self.over = threading.RLock(), threading.Event()
        is_drawn = self.console.is_terminal and not self.console.is_dumb_terminal
        self.live = Live(
            console=self.console, get_renderable=self._drawn, refresh_per_second=2, transient=True,
            redirect_stdout=False, redirect_stderr=False,
        ) if is_drawn else None  # fmt: skip
        self.say(f"{self.total} {'job' if self.total == 1 else 'jobs'}: {_counted(stats)}")
        if self.live:
            self.live.start()
        else:
            threading.Thread(target=self._beat, daemon=True).start()

    def say(self, text: str) -> None:
        """Lines above the bar, as they are; on a terminal cut at its width."""
        with self.lock:
            self.spoke = self.clock()
            if self.live:
                for line in text.splitlines():
                    self.console.print(Text(line), no_wrap=True, overflow="ellipsis", crop=True)
                self.live.refresh()
            else:
                self.console.print(Text(text), soft_wrap=True)

    def add(self, jobid: int, job: Job) -> None:
        """Tell what a job is, which may have begun."""
        with self.lock:
            if self.records is None and job.logs:
                self.records = recorded(Path(*Path(job.logs[0]).parts[:2]))
            if begun := self.running.get(jobid):
                job.began, self.running[jobid] = begun.began, job
            self.jobs[jobid] = job

    def start(self, jobids: Iterable[int]) -> None:
        """Jobs that begin now."""
        with self.lock:
            for jobid in jobids:
                job = self.jobs.setdefault(jobid, Job(f"job {jobid}"))
                job.began = self.clock()
                self.running[jobid] = job

    def finish(self, jobid: int) -> None:
        """A job has ended well."""
        with self.lock:
            job = self._ended(jobid)
            self.done += 1
            seconds = self.clock() - job.began
            # the target does nothing but wait for the others
            if job.rule != "all":
                done = f"{self.done:>{len(str(self.total))}}/{self.total}"
                self.say(f"[{done}]  {job}  {spell(seconds)}")

    def fail(self, jobid: int, message: str, logs: Sequence[str]) -> None:
        """A job has failed; the first is told whole at the end."""
        with self.lock:
            job = self._ended(jobid)
            job.logs = logs or job.logs
            seconds = self.clock() - job.began
            told = tail_of_error(job.logs[0]) if job.logs else []
            told = told or [line for line in message.splitlines() if line]
            self.failures.append(Failure(job, seconds, told))
            self.say(f"FAILED  {job}  {spell(seconds)}")

    def _ended(self, jobid: int) -> Job:
        known = self.jobs.get(jobid, Job(f"job {jobid}", began=self.clock()))
        job = self.running.pop(jobid, known)
        self.left[job.rule] = max(self.left.get(job.rule, 1) - 1, 0)
        self.worked += self._cost(job.rule)
        return job

    def hear(self, text: str, is_error: bool = False) -> None:
        """A message of Snakemake's own: errors wait for the end, where they matter only if no job
        failed."""
        with self.lock:
            if is_error:
                self.heard.append(text)
            elif not text.startswith(ECHOES):
                self.say(text)

    def end(self, is_stopped: bool = False) -> None:
        """What the run made, or its first error, and where the whole log is; nothing of a run that
        was stopped."""
        with self.lock:
            self.over.set()
            if self.live:
                self.live.stop()
                self.live = None
            for line in () if is_stopped else self._closing():
                self.say(line)

    def _closing(self) -> Iterator[str]:
        took = f"{self.done} of {self.total} jobs in {spell(self.clock() - self.began)}"
        if not self.failures:
            yield from self.heard
        yield took
        if self.log:
            yield f"log: {self.log}"
        if not self.failures:
            return
        others = [str(failure.job) for failure in self.failures[1:]]
        if others:
            more = f", and {len(others) - 3} more" if len(others) > 3 else ""
            yield f"failed later: {', '.join(others[:3])}{more}"
        first = self.failures[0]
        yield f"FAILED FIRST  {first.job}  after {spell(first.seconds)}"
        yield from (f"  {line}" for line in first.message[:MESSAGE])
        if len(first.message) > MESSAGE:
            yield f"  ... {len(first.message) - MESSAGE} more lines in the log"
        for path in first.job.logs:
            yield f"  log: {path}"
        yield "what is done is kept: the same command goes on from there"

    def _cost(self, rule: str) -> float:
        """Seconds of a rule in the last run; of an unknown one the mean of the known."""
        known = self.records or {}
        return known.get(rule) or (sum(known.values()) / len(known) if known else 0.0)

    def remaining(self) -> float | None:
        """Seconds that are left at the pace so far; None where no earlier run tells, or before
        anything has ended."""
        if not self.records or not self.worked:
            return None
        ahead = sum(count * self._cost(rule) for rule, count in self.left.items())
        now = self.clock()
        # what runs has done a part of its own
        begun = sum(min(now - j.began, self._cost(j.rule)) for j in self.running.values())
        return max(ahead - begun, 0.0) * (now - self.began) / (self.worked + begun)

    def _times(self) -> str:
        left = self.remaining()
        told = spell(self.clock() - self.began)
        return told if left is None else f"{told}, about {spell(left)} left"

    def _working(self) -> list[tuple[str, str, str]]:
        """Name, seconds and last progress of the jobs that run, the oldest first."""
        now = self.clock()
        ordered = sorted(self.running.values(), key=lambda job: job.began)
        return [(str(j), spell(now - j.began), last_words(j.logs)) for j in ordered]

    def _drawn(self) -> Group:
        with self.lock:
            bar = Table.grid(padding=(0, 2))
            bar.add_column(width=max(10, min(40, self.console.width // 3)))
            bar.add_column(no_wrap=True, overflow="ellipsis")
            drawn = ProgressBar(total=max(self.total, 1), completed=self.done)
            bar.add_row(drawn, Text(f"{self.done}/{self.total}  {self._times()}"))
            lines = [Text(f"  {'  '.join(filter(None, job))}") for job in self._working()]
            if len(lines) > RUNNING:
                lines[RUNNING:] = [Text(f"  and {len(lines) - RUNNING} more")]
            for line in lines:
                line.no_wrap, line.overflow = True, "ellipsis"
            return Group(bar, *lines)

    def _beat(self) -> None:
        """Where nothing is drawn, say what runs when nothing else was said for a while."""
        while not self.over.wait(min(1.0, self.silence / 4)):
            with self.lock:
                if self.clock() - self.spoke >= self.silence and not self.over.is_set():
                    jobs = [", ".join(filter(None, job)) for job in self._working()]
                    told = "; ".join(jobs[:RUNNING]) or "waiting"
                    self.say(f"{self.done}/{self.total} done, {self._times()}; running: {told}")


def _counted(stats: Mapping[str, int]) -> str:
    """Rules with their number of jobs, the commonest first, as far as a line holds them."""
    ordered = sorted(stats.items(), key=lambda item: (-item[1], item[0]))
    told = [f"{rule} {count}" if count > 1 else rule for rule, count in ordered if rule != "all"]
    return ", ".join(told[:6]) + (f" and {len(told) - 6} more rules" if len(told) > 6 else "")


def spell(seconds: float) -> str:
    """A time as people say it.

    >>> spell(3.24), spell(100), spell(7000)
    ('3.2 s', '1 min 40 s', '1 h 57 min')
    """
    if seconds < 10:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {round(whole % 3600 / 60)} min"


def recorded(folder: Path) -> dict[str, float]:
    """Seconds of each rule, the mean over its records (kgprobe.job) below a folder of logs."""
    found: dict[str, list[float]] = {}
    for path in sorted(folder.rglob("*.json")):
        try:
            record = json.loads(path.read_text(encoding="utf-8"))
            found.setdefault(record["rule"], []).append(float(record["wall_seconds"]))
        except (OSError, ValueError, KeyError, TypeError):
            continue  # another file, or a record that is being written
    return {rule: sum(times) / len(times) for rule, times in found.items()}


def _tail(path: str) -> list[str]:
    try:
        with open(path, "rb") as stream:
            stream.seek(0, 2)
            stream.seek(max(0, stream.tell() - TAIL))
            return stream.read().decode("utf-8", "replace").splitlines()
    except OSError:
        return []


def last_words(logs: Sequence[str]) -> str:
    """The last line of a job's log without its time, as a rule its progress."""
    lines = [line for line in _tail(logs[0]) if line.strip()] if logs else []
    if not lines:
        return ""
    told = lines[-1].partition(" INFO ")[2] or lines[-1]
    return told.replace("\r", " ").strip()


def tail_of_error(path: str) -> list[str]:
    """What a log ends with: the message of its last traceback, or its last lines.

    The line with the error's name and all that follows; frames of the traceback stay in the log.
    """
    lines = [line.rstrip() for line in _tail(path) if line.strip()]
    starts = [i for i, line in enumerate(lines) if "Traceback (most recent call last)" in line]
    if not starts:
        return lines[-MESSAGE:]
    frames = [i for i in range(starts[-1] + 1, len(lines)) if lines[i].startswith("  ")]
    # a message of several lines may be indented, too: the frames end where the first line is not
    message = next((i for i in range(starts[-1] + 1, len(lines)) if i not in frames), len(lines))
    return lines[message:] or lines[-MESSAGE:]

"""Terminal display of a running workflow (`logger: kgprobe` in a profile of Snakemake).

    [13/67]  pull relation=P17  3.2 s
    ━━━━━━━━━━━━━━━━━━━─────────────────  13/67  1 min 40 s, about 6 min left
      probes_smollm2-135m-instruct  50 s  sentence: 34%| 480/1404 [00:40<01:17, 11.9it/s]

A line per job, a bar, and the first error last. Without a terminal there is no bar, but after 30
silent seconds a line lists the running jobs. While no job runs, Snakemake's own handler prints.
"""

import json
import logging
import os
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import dropwhile
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.live import Live
from rich.text import Text
from snakemake_interface_logger_plugins.base import LogHandlerBase
from snakemake_interface_logger_plugins.common import LogEvent

from kgprobe.guard import stopping

#: maximum lines of an error; maximum running jobs shown; bytes read at the end of a log
MESSAGE, RUNNING, TAIL = 12, 6, 8192


@dataclass
class Job:
    """A job with its start time on the view's clock and, if it failed, its duration and error."""

    rule: str
    wildcards: Mapping[str, str] = field(default_factory=dict)
    logs: Sequence[str] = ()
    began: float = 0.0
    seconds: float = 0.0
    message: Sequence[str] = ()

    def __str__(self) -> str:
        return " ".join([self.rule, *(f"{k}={v}" for k, v in self.wildcards.items())])


class RunView:
    """Display of a run. `stats`: jobs by rule; `records`: earlier seconds by rule, or None."""

    def __init__(
        self, stats: Mapping[str, int], console: Console, silence: float = 30.0,
        records: Mapping[str, float] | None = None, clock: Callable[[], float] = time.monotonic,
    ) -> None:  # fmt: skip
        self.stats, self.left, self.total = stats, dict(stats), sum(stats.values())
        self.console, self.records, self.clock, self.silence = console, records, clock, silence
        self.running: dict[int, Job] = {}
        self.failed: list[Job] = []
        self.heard: list[str] = []
        self.done, self.log = 0, ""
        self.began = self.spoke = clock()
        self.is_drawn = console.is_terminal and not console.is_dumb_terminal
        self.live = Live(console=console, get_renderable=self._render_text, refresh_per_second=2,
                         transient=True, redirect_stdout=False, redirect_stderr=False)  # fmt: skip
        self.over, self.beat = threading.Event(), threading.Thread(target=self._beat, daemon=True)
        rules = sorted(stats.keys() - {"all"}, key=lambda rule: (-stats[rule], rule))
        counts = [f"{r} {stats[r]}" if stats[r] > 1 else r for r in rules]
        self.say(f"{self.total} job{'s' * (self.total != 1)}: {', '.join(counts)}")
        (self.live if self.is_drawn else self.beat).start()

    def say(self, text: str) -> None:
        """Print lines above the bar; on a terminal they are truncated at its width."""
        self.spoke = self.clock()
        wrap = {"no_wrap": True, "overflow": "ellipsis"} if self.is_drawn else {"soft_wrap": True}
        self.console.print(Text(text), **wrap)

    def start(self, jobid: int, job: Job) -> None:
        """Record that a job begins now."""
        if self.records is None and job.logs:
            self.records = recorded(Path(*Path(job.logs[0]).parts[:2]))
        job.began, self.running[jobid] = self.clock(), job

    def finish(self, jobid: int, error: str | None = None) -> None:
        """Record the end of a job; the first `error` of a run is printed in full at its end."""
        job = self.running.pop(jobid, None) or Job(f"job {jobid}", began=self.clock())
        job.seconds = self.clock() - job.began
        self.left[job.rule] = max(self.left.get(job.rule, 0) - 1, 0)
        self.done += error is None
        if error is not None:
            job.message = tail_of_error(job.logs) or [line for line in error.splitlines() if line]
            self.failed.append(job)
            self.say(f"FAILED  {job}  {spell(job.seconds)}")
        elif job.rule != "all":  # it only waits for the others
            done = f"{self.done:>{len(str(self.total))}}/{self.total}"
            self.say(f"[{done}]  {job}  {spell(job.seconds)}")

    def end(self, is_stopped: bool = False) -> None:
        """Print a summary of the run, or its first error; nothing for an interrupted run."""
        self.over.set()
        (self.live.stop if self.is_drawn else self.beat.join)()
        lines = [] if self.failed else list(self.heard)
        lines.append(f"{self.done} of {self.total} jobs in {spell(self.clock() - self.began)}")
        lines += [f"log: {self.log}"] if self.log else []
        if self.failed:
            first, *others = self.failed
            lines += [f"failed later: {job}" for job in others[:3]]
            lines.append(f"FAILED FIRST  {first}  after {spell(first.seconds)}")
            lines += [f"  {line}" for line in first.message[:MESSAGE]]
            if len(first.message) > MESSAGE:
                lines.append(f"  ... {len(first.message) - MESSAGE} more lines in the log")
            lines += [f"  log: {path}" for path in first.logs]
            lines.append("what is done is kept: the same command goes on from there")
        if not is_stopped:
            self.say("\n".join(lines))

    def remaining(self) -> float | None:
        """Estimate the seconds left from an earlier run's records and the pace; None if unknown."""
        # copies, since another thread draws
        known, now, running = self.records or {}, self.clock(), [*self.running.values()]
        mean = sum(known.values()) / max(len(known), 1)
        cost = {rule: known.get(rule, mean) for rule in [*self.left]}
        ahead = sum(cost[rule] * self.left[rule] for rule in cost)
        worked = sum(cost[rule] * count for rule, count in self.stats.items()) - ahead
        # credit running jobs with the time they have spent
        begun = sum(min(now - job.began, cost.get(job.rule, mean)) for job in running)
        return max(ahead - begun, 0.0) * (now - self.began) / (worked + begun) if worked else None

    def _state(self, between: str) -> tuple[str, list[str]]:
        """Return the run's times, and name, seconds and last progress of its jobs, oldest first."""
        now, left = self.clock(), self.remaining()
        times = spell(now - self.began) + ("" if left is None else f", about {spell(left)} left")
        jobs = sorted([*self.running.values()], key=lambda job: job.began)
        lines = [f"and {len(jobs) - RUNNING} more"] if len(jobs) > RUNNING else []
        for job in reversed(jobs[:RUNNING]):
            last = (_tail(job.logs) or [""])[-1]
            parts = str(job), spell(now - job.began), (last.partition(" INFO ")[2] or last).strip()
            lines.insert(0, between.join(filter(None, parts)))
        return times, lines

    def _render_text(self) -> Text:
        times, jobs = self._state("  ")
        width = max(10, min(40, self.console.width // 3))
        full = width * self.done // max(self.total, 1)
        bar = f"{'━' * full}{'─' * (width - full)}  {self.done}/{self.total}  {times}"
        return Text("\n  ".join([bar, *jobs]), no_wrap=True, overflow="ellipsis")

    def _beat(self) -> None:
        while not self.over.wait(min(1.0, self.silence / 4)):
            if self.clock() - self.spoke >= self.silence:
                times, jobs = self._state(", ")
                self.say(f"{self.done}/{self.total} done, {times}; running: {'; '.join(jobs)}")


def spell(seconds: float) -> str:
    """Format a duration: 3.2 s, 1 min 40 s, 1 h 57 min."""
    whole = round(seconds)
    if whole < 60:
        return f"{seconds:.1f} s" if seconds < 10 else f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    minutes = round(whole / 60)
    return f"{minutes // 60} h {minutes % 60} min"


def recorded(folder: Path) -> dict[str, float]:
    """Return the mean seconds of each rule over its records (kgprobe.job) in a folder of logs."""
    seconds: dict[str, list[float]] = {}
    for path in sorted(folder.rglob("*.json")):
        with suppress(OSError, ValueError, KeyError, TypeError):  # another file, or half a record
            record = json.loads(path.read_text(encoding="utf-8"))
            seconds.setdefault(record["rule"], []).append(float(record["wall_seconds"]))
    return {rule: sum(times) / len(times) for rule, times in seconds.items()}


def _tail(logs: Sequence[str]) -> list[str]:
    with suppress(OSError, IndexError), open(logs[0], "rb") as stream:
        stream.seek(max(0, stream.seek(0, os.SEEK_END) - TAIL))
        lines = stream.read().decode("utf-8", "replace").splitlines()
        return [line.rstrip() for line in lines if line.strip()]
    return []


def tail_of_error(logs: Sequence[str]) -> list[str]:
    """Return the end of a log: the last traceback's message without frames, or the last lines."""
    lines = _tail(logs)
    starts = [i for i, line in enumerate(lines, 1) if "Traceback (most recent call last)" in line]
    # a message of several lines may be indented, too: the frames end at the first unindented line
    behind = dropwhile(lambda line: line.startswith("  "), lines[starts[-1] :] if starts else [])
    return list(behind) or lines[-MESSAGE:]


class LogHandler(LogHandlerBase):
    """Log handler that shows Snakemake's records in a RunView."""

    writes_to_stream = True
    writes_to_file = has_filter = has_formatter = needs_rulegraph = False

    def __post_init__(self) -> None:
        # while this module is imported, snakemake.logging is still being imported
        from snakemake.logging import ColorizingTextHandler

        stream = sys.stdout if self.common_settings.stdout else sys.stderr
        self.plain = ColorizingTextHandler(nocolor=self.common_settings.nocolor, stream=stream)
        self.view: RunView | None = None

    def emit(self, record: logging.LogRecord) -> None:
        """Display a record, or store its information."""
        try:
            self._show(record, getattr(record, "event", None), vars(record))
        except Exception:
            self.handleError(record)

    def _show(self, record: logging.LogRecord, event: Any, data: Mapping[str, Any]) -> None:
        text, is_dry = record.getMessage(), self.common_settings.dryrun
        if stopping.is_set() and event != LogEvent.JOB_FINISHED:
            return  # interrupted jobs have not failed; the guard prints the last line
        if self.view is None and event == LogEvent.RUN_INFO and not is_dry:
            # jobs write to the same terminal: their progress is in their logs, and shown here
            os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
            os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
            console = Console(stderr=True, highlight=False, emoji=False, markup=False,
                              no_color=self.common_settings.nocolor or None)  # fmt: skip
            self.view = RunView({k: v for k, v in data["stats"].items() if k != "total"}, console)
        elif self.view is None:
            # host, versions and cores of a starting run are in the full log
            if is_dry or event not in (LogEvent.WORKFLOW_STARTED, LogEvent.RESOURCES_INFO):
                self.plain.setFormatter(self.formatter)
                self.plain.emit(record)
        elif event == LogEvent.JOB_INFO:
            job = Job(data["rule_name"], dict(data["wildcards"] or {}), list(data["log"] or []))
            self.view.start(data["jobid"], job)
        elif event == LogEvent.JOB_FINISHED:
            self.view.finish(data["job_id"])
        elif event == LogEvent.JOB_ERROR:
            self.view.finish(data["jobid"], str(data["rule_msg"] or ""))
        elif event == LogEvent.GROUP_ERROR:
            self.view.say(self.format(record))
        elif record.levelno >= logging.WARNING:
            (self.view.heard.append if record.levelno >= logging.ERROR else self.view.say)(text)
        elif text.startswith("Complete log"):
            self.view.log = os.path.relpath(text.partition(": ")[2])

    def close(self) -> None:
        """End the run's display; after an interrupt the guard reports."""
        if self.view is not None:
            self.view.end(is_stopped=stopping.is_set())
            self.view = None
        super().close()

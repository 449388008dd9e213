"""The jobs that a run has to do, from Snakemake's own dry run.

    python -m kgprobe.plan.jobs CONFIG ...

prints them as JSON, from the events with which Snakemake's logger announces every planned job.
"""

import contextlib
import io
import json
import logging
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from kgprobe import experiments

#: the event of Snakemake's logger that announces a job; rules that only name what is wanted
EVENT, TARGETS = "job_info", ("all", "everything")


class PlanError(RuntimeError):
    """Snakemake cannot plan the run; the message is what it says."""


@dataclass(frozen=True)
class PlannedJob:
    """A planned job."""

    rule: str
    wildcards: Mapping[str, str]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    log: str
    mem_mb: int
    gpu: int


def to_do(configs: Sequence[str]) -> list[PlannedJob]:
    """The jobs that are to do, without those whose outputs stand. Raises PlanError."""
    command = [sys.executable, "-m", __spec__.name, *configs]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise PlanError(f"snakemake cannot plan this run\n{done.stderr.strip()[-3000:]}")
    return [
        PlannedJob(**{**job, "inputs": tuple(job["inputs"]), "outputs": tuple(job["outputs"])})
        for job in json.loads(done.stdout)
    ]


class Announced(logging.Filter):
    """Lets everything pass and keeps the jobs that are announced: Snakemake replaces the handlers
    of its logger at every start, filters stay."""

    def __init__(self) -> None:
        super().__init__()
        self.jobs: dict[tuple[str, ...], PlannedJob] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        info: Mapping[str, Any] = record.__dict__
        if getattr(info.get("event"), "value", None) == EVENT and info["rule_name"] not in TARGETS:
            inputs, outputs = (tuple(map(str, info[name] or ())) for name in ("input", "output"))
            resources = (info["resources"].get(name, 0) for name in ("mem_mb", "gpu"))
            memory, gpu = (int(n) if isinstance(n, int | float) else 0 for n in resources)
            named, log = dict(info["wildcards"] or {}), str((info["log"] or [""])[0])
            job = PlannedJob(info["rule_name"], named, inputs, outputs, log, memory, gpu)
            self.jobs[job.rule, *outputs] = job
        return True


def dry(configs: Sequence[str]) -> list[PlannedJob]:
    """The jobs of one dry run in this process. Raises SystemExit where Snakemake ends with one."""
    import snakemake.cli
    from snakemake.logging import logger

    announced = Announced()
    logger.addFilter(announced)
    given = ["--configfile", *map(experiments.located, configs)] if configs else []
    # what only a live pull needs is asked for when it begins
    os.environ.setdefault("KGPROBE_CONTACT", "nobody@example.org")
    # the rules look there for what kind of start this is
    sys.argv = ["snakemake", *experiments.snakefile(), "--dry-run", "--cores", "1", "--nocolor"]
    sys.argv += given
    output = io.StringIO()
    try:
        with contextlib.redirect_stdout(output):
            snakemake.cli.main(sys.argv[1:])
    except SystemExit as end:
        if end.code:
            print(output.getvalue(), file=sys.stderr)
            raise
    return list(announced.jobs.values())


if __name__ == "__main__":
    print(json.dumps([asdict(job) for job in dry(sys.argv[1:])]))

"""List the jobs that a run has to do, from Snakemake's own dry run.

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

#: event of Snakemake's logger that announces a job; rules that only list targets
EVENT, TARGETS = "job_info", ("all", "everything")


class PlanError(RuntimeError):
    """Snakemake cannot plan the run; the message is Snakemake's own."""


@dataclass(frozen=True)
class PlannedJob:
    """A job planned by Snakemake."""

    rule: str
    wildcards: Mapping[str, str]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    log: str
    mem_mb: int
    gpu: int


def to_do(configs: Sequence[str]) -> list[PlannedJob]:
    """Return the jobs to do, without those whose outputs exist. Raises PlanError."""
    command = [sys.executable, "-m", __spec__.name, *configs]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise PlanError(f"snakemake cannot plan this run\n{done.stderr.strip()[-3000:]}")
    return [
        PlannedJob(**{**job, "inputs": tuple(job["inputs"]), "outputs": tuple(job["outputs"])})
        for job in json.loads(done.stdout)
    ]


class Announced(logging.Filter):
    """Logging filter that passes every record and collects announced jobs. A filter, because
    Snakemake replaces the handlers of its logger at every start, while filters stay."""

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
    """Return the jobs of a dry run in this process. Raises SystemExit if Snakemake fails."""
    import snakemake.cli
    from snakemake.logging import logger

    announced = Announced()
    logger.addFilter(announced)
    given = ["--configfile", *map(experiments.located, configs)] if configs else []
    # the contact, needed only by live pulls, is checked when they begin
    os.environ.setdefault("KGPROBE_CONTACT", "nobody@example.org")
    # the rules read sys.argv to see that this is a dry run
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

"""The jobs of a run, from Snakemake's own dry run: those to do, and those that are done.

    python -m kgprobe.plan.jobs CONFIG ... [-- snakemake's own arguments]

prints them as JSON. Snakemake's logger announces every planned job as an event with its rule,
wildcards and files; reading events does not depend on how they are printed. What is done already is
what a plan of everything (`--forceall`) has and the plan of this run has not.
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
from pathlib import Path
from typing import Any

from kgprobe import sheets

#: the event of Snakemake's logger that announces a job
EVENT = "job_info"
#: the rules that only name what is wanted
TARGETS = ("all", "everything")


class PlanError(RuntimeError):
    """Snakemake cannot plan the run; the message is what it says."""


@dataclass(frozen=True)
class Job:
    """A planned job; `to_do` is false where its outputs stand already."""

    rule: str
    wildcards: Mapping[str, str]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    log: str
    mem_mb: int
    gpu: int
    to_do: bool = True

    @property
    def key(self) -> tuple[str, ...]:
        """What tells jobs apart: a rule and what it makes."""
        return (self.rule, *self.outputs)


def planned(configs: Sequence[str]) -> list[Job]:
    """All jobs that lead to the report, those to do first. Raises PlanError."""
    processes = [_start(configs, own) for own in ((), ("--forceall",))]
    waiting, everything = (_jobs(process) for process in processes)
    known = {job.key for job in waiting}
    return waiting + [
        Job(**{**vars(job), "to_do": False}) for job in everything if job.key not in known
    ]


def to_do(configs: Sequence[str]) -> list[Job]:
    """The jobs that are to do alone, in half the time. Raises PlanError."""
    return _jobs(_start(configs, ()))


def _start(configs: Sequence[str], arguments: Sequence[str]) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", __spec__.name, *configs, "--", *arguments]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True)


def _jobs(process: subprocess.Popen[str]) -> list[Job]:
    out, told = process.communicate()
    if process.returncode:
        raise PlanError(f"snakemake cannot plan this run\n{told.strip()[-3000:]}")
    return [
        Job(**{**job, "inputs": tuple(job["inputs"]), "outputs": tuple(job["outputs"])})
        for job in json.loads(out)
    ]


class Announced(logging.Filter):
    """A filter that lets everything pass and keeps the jobs that are announced.

    Snakemake replaces the handlers of its logger at every start, filters stay.
    """

    def __init__(self) -> None:
        super().__init__()
        self.jobs: dict[tuple[str, ...], Job] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        if getattr(record.__dict__.get("event"), "value", None) == EVENT:
            told: Mapping[str, Any] = record.__dict__
            job = Job(
                told["rule_name"],
                dict(told["wildcards"] or {}),
                tuple(map(str, told["input"] or ())),
                tuple(map(str, told["output"] or ())),
                str((told["log"] or [""])[0]),
                int(_number(told["resources"], "mem_mb")),
                int(_number(told["resources"], "gpu")),
            )
            if job.rule not in TARGETS:
                self.jobs[job.key] = job
        return True


def snakefile() -> list[str]:
    """Snakemake's option for the workflow of the package, in a folder that has none of its own."""
    own = ("Snakefile", "workflow/Snakefile")
    if any(Path(name).is_file() for name in own):
        return []
    return ["--snakefile", sheets.located("Snakefile")]


def _number(resources: Any, name: str) -> float:
    """A resource of a job, 0 where it asks for none."""
    value = resources.get(name, 0)
    return value if isinstance(value, int | float) else 0


def dry(configs: Sequence[str], arguments: Sequence[str]) -> list[Job]:
    """The jobs of one dry run in this process. Raises SystemExit where Snakemake ends with one."""
    import snakemake.cli
    from snakemake.logging import logger

    announced = Announced()
    logger.addFilter(announced)
    given = ["--configfile", *map(sheets.located, configs)] if configs else []
    # what only a live pull needs is asked for when it begins
    os.environ.setdefault("KGPROBE_CONTACT", "nobody@example.org")
    # the rules look there for what kind of start this is
    start = ["snakemake", *snakefile(), "--dry-run", "--cores", "1", "--nocolor"]
    sys.argv = [*start, *arguments, *given]
    said = io.StringIO()
    try:
        with contextlib.redirect_stdout(said):
            snakemake.cli.main(sys.argv[1:])
    except SystemExit as end:
        if end.code:
            print(said.getvalue(), file=sys.stderr)
            raise
    return list(announced.jobs.values())


def main(arguments: Sequence[str]) -> None:
    """Print the jobs of a dry run as JSON."""
    cut = arguments.index("--") if "--" in arguments else len(arguments)
    found = dry(arguments[:cut], arguments[cut + 1 :])
    print(json.dumps([asdict(job) for job in found]))


if __name__ == "__main__":
    main(sys.argv[1:])

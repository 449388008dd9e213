"""The workflow from the command line: is a configuration right, what does it cost, run it."""

import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from kgprobe.cli import screen
from kgprobe.cli.asking import Json

BASE = "config/config.yaml"
#: what `run` does not know goes to Snakemake
PASSED = {"allow_extra_args": True, "ignore_unknown_options": True}
Configs = Annotated[list[str] | None, typer.Argument(help="Laid over config/config.yaml.")]


def validate(configs: Configs = None, as_json: Json = False) -> None:
    """Check a configuration: unknown keys and illegal values, with file and what is legal.

    Example: kgprobe validate config/embedded.yaml
    """
    with screen.told(as_json):
        from kgprobe.plan.__main__ import models_of, settings_of

        settings = settings_of(configs or [])
        told = {"run": settings.run.name, "models": len(models_of(settings))}
        if as_json:
            screen.data({**told, "valid": True})
        else:
            screen.say(f"run {told['run']}: right; the sheet has {told['models']} models")


def plan(configs: Configs = None, as_json: Json = False) -> None:
    """What a run costs before it begins: jobs, downloads, disk, requests, hours.

    Example: kgprobe plan config/embedded.yaml
    """
    with screen.told(as_json):
        from kgprobe.plan import table
        from kgprobe.plan.__main__ import planned, settings_of

        found, name = planned(configs or []), settings_of(configs or []).run.name
        if as_json:
            sizes = {size: {**asdict(s), "models": sorted(s.models)}
                     for size, s in found.sizes.items()}  # fmt: skip
            screen.data({"run": name, **asdict(found), "sizes": sizes})
        else:
            screen.say(table.text(found, name, configs or [BASE]))


def verify(configs: Configs = None, as_json: Json = False) -> None:
    """Is each file of data/ what it should be?

    Example: kgprobe verify config/embedded.yaml
    """
    with screen.told(as_json):
        from kgprobe.plan.__main__ import settings_of
        from kgprobe.sources import verify as files

        rows = list(files.verify(settings_of(configs or [])))
        if as_json:
            screen.data([{"what": row.what, **dict(zip(files.COUNTS, row.counts, strict=True)),
                          "problems": row.problems} for row in rows])  # fmt: skip
        else:
            screen.say(files.table(rows))
            if not rows:
                screen.say("this configuration downloads nothing, and no pull is kept")
        problems = [problem for row in rows for problem in row.problems]
        for problem in problems:
            print(problem, file=sys.stderr)
        if problems:
            raise typer.Exit(screen.FAILED)


def run(
    context: typer.Context,
    config: Annotated[str, typer.Argument(help="Laid over config/config.yaml.")],
    cores: Annotated[str, typer.Option(help="As Snakemake takes it.")] = "all",
    as_json: Json = False,
) -> None:
    """Run the workflow from the project's folder; further options go to Snakemake.

    With --json what Snakemake says goes to stderr.

    Example: kgprobe run config/embedded.yaml --cores 2 --dry-run
    """
    with screen.told(as_json):
        import subprocess
        import time

        from kgprobe.plan.__main__ import settings_of

        name, began = settings_of([config]).run.name, time.monotonic()
        command = [sys.executable, "-m", "snakemake", "--cores", cores, "--configfile", config]
        said = sys.stderr if as_json else None
        code = subprocess.run([*command, *context.args], stdout=said).returncode
        page = Path("results") / name / "report" / "index.html"
        if as_json:
            screen.data({"run": name, "exit": code, "seconds": round(time.monotonic() - began, 1),
                         "report": str(page) if page.is_file() else ""})  # fmt: skip
        raise typer.Exit(code)


COMMANDS = (validate, plan, verify, run)

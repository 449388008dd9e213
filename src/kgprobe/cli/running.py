"""The workflow from the command line: is a configuration right, what does it cost, run it."""

import sys
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


def plan(configs: Configs = None) -> None:
    """What a run costs before it begins: jobs, downloads, disk, requests, hours.

    Example: kgprobe plan config/embedded.yaml
    """
    with screen.told():
        from kgprobe.plan.__main__ import main

        raise typer.Exit(main(configs or []))


def verify(configs: Configs = None) -> None:
    """Is each file of data/ what it should be?

    Example: kgprobe verify config/embedded.yaml
    """
    with screen.told():
        from kgprobe.sources.verify import main

        raise typer.Exit(main([name for name in configs or [] if name != BASE]))


def run(
    context: typer.Context,
    config: Annotated[str, typer.Argument(help="Laid over config/config.yaml.")],
    cores: Annotated[str, typer.Option(help="As Snakemake takes it.")] = "all",
) -> None:
    """Run the workflow from the project's folder; further options go to Snakemake.

    Example: kgprobe run config/embedded.yaml --cores 2 --dry-run
    """
    with screen.told():
        import subprocess

        from kgprobe.plan.__main__ import settings_of

        settings_of([config])
        command = [sys.executable, "-m", "snakemake", "--cores", cores, "--configfile", config]
        raise typer.Exit(subprocess.run([*command, *context.args]).returncode)


COMMANDS = (validate, plan, verify, run)

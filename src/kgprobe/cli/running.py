"""The workflow on the command line: validate a configuration, plan costs, verify data, run it."""

import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from kgprobe.cli import screen
from kgprobe.cli.asking import Json
from kgprobe.stops import ENDED, passed_on

#: `run` passes unknown options on to Snakemake
PASSED = {"allow_extra_args": True, "ignore_unknown_options": True}
#: key in the context's metadata for the arguments after `--`
BEHIND = "kgprobe.behind"
Configs = Annotated[list[str] | None, typer.Argument(help="Merged into config/config.yaml.")]


def validate(configs: Configs = None, as_json: Json = False) -> None:
    """Check a configuration.

    Unknown keys and illegal values are reported with their file and what is legal.

    Example: kgprobe validate config/embedded.yaml
    """
    with screen.report_errors(as_json):
        from kgprobe.config import files_of, load
        from kgprobe.workflow import sources
        from kgprobe.workflow.run import read_run

        files = files_of(configs or [])
        settings = load(files)
        checked = read_run(settings, files)
        asked = (checked.models[row["model"]]["source"] for row in checked.rows)
        folders = [place for one, _, place in (s.partition(":") for s in asked) if one == "folder"]
        graphs = settings.sources.graphs.values()
        tables = [p for g in graphs for p in (*g.files, *g.labels, g.templates) if p]
        sources.files(path for path in (*tables, *folders) if "$" not in path)
        for name, graph in settings.sources.graphs.items():
            sources.check_graph(name, graph)
        summary = {"run": settings.run.name, "models": len(checked.models)}
        if as_json:
            screen.data({**summary, "valid": True})
        else:
            models = "1 model" if len(checked.models) == 1 else f"{len(checked.models)} models"
            screen.say(f"run {summary['run']}: valid; {models} can be asked")


def plan(configs: Configs = None, as_json: Json = False) -> None:
    """Tell what a run costs before it begins.

    Jobs, downloads, disk, requests and hours.

    Example: kgprobe plan config/embedded.yaml
    """
    with screen.report_errors(as_json):
        from kgprobe import experiments
        from kgprobe.config import BASE, models_of, settings_of
        from kgprobe.plan import costs, jobs, needs
        from kgprobe.workflow.models import memory_mb

        settings = settings_of(configs or [])
        known = costs.read(Path(experiments.located("resources/costs.tsv")))
        rows, to_do = models_of(settings), jobs.to_do(configs or [])
        stages, unpriced = costs.plan(to_do, rows, known)
        memory = {job.rule: job.mem_mb for job in to_do}
        fatal, perhaps = needs.find_missing(settings, to_do, rows, known, memory, memory_mb())
        if as_json:
            by_stage = {name: asdict(cost) for name, cost in stages.items()}
            screen.data({"run": settings.run.name, "stages": by_stage, "unpriced": unpriced,
                         "lacking": [*fatal, *perhaps]})  # fmt: skip
        else:
            screen.say(f"run {settings.run.name}: {', '.join(configs or [BASE])}\n")
            screen.table(costs.table(stages))
            screen.say("\n" + costs.NOTES)
            if unpriced:
                screen.say(f"not in resources/costs.tsv, counted as zero: {', '.join(unpriced)}")
            if fatal or perhaps:
                screen.say("\nmissing on this machine:")
            for text in (*fatal, *perhaps):
                screen.say(f"- {text}")


def verify(configs: Configs = None, as_json: Json = False) -> None:
    """Check the files of data/ by their hashes.

    Example: kgprobe verify config/embedded.yaml
    """
    with screen.report_errors(as_json):
        from kgprobe.config import settings_of
        from kgprobe.sources import verify as files

        rows = list(files.verify(settings_of(configs or [])))
        if as_json:
            screen.data([{"what": r.what, **r.counts, "problems": r.problems} for r in rows])
        elif rows:
            screen.table(files.totals(rows))
        else:
            screen.say("this configuration downloads nothing, and there are no stored pulls")
        problems = [problem for row in rows for problem in row.problems]
        for problem in problems:
            print(problem, file=sys.stderr)
        if problems:
            raise typer.Exit(screen.FAILED)


class Passing(TyperCommand):
    """A command that passes the arguments after `--` through unchanged. By default the parser drops
    the separator, which marks the end of the values of a preceding option."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        place = args.index("--") if "--" in args else len(args)
        ctx.meta[BEHIND] = args[place + 1 :]
        return super().parse_args(ctx, args[:place])


def run(
    context: typer.Context,
    config: Annotated[str, typer.Argument(help="Merged into config/config.yaml.")],
    cores: Annotated[str, typer.Option(help="As in Snakemake.")] = "all",
    as_json: Json = False,
) -> None:
    """Run the workflow.

    Results go to results/ below the working folder, further options to Snakemake, and all that
    stands behind -- as it is; with --json what Snakemake says goes to stderr.

    Example: kgprobe run config/embedded.yaml --cores 2 --dry-run
    """
    with screen.report_errors(as_json):
        import subprocess
        import time

        from kgprobe import experiments
        from kgprobe.config import settings_of

        name, began = settings_of([config]).run.name, time.monotonic()
        # --configfile takes every word up to the next option, including a target after it
        command = [sys.executable, "-m", "snakemake", *experiments.snakefile(), "--configfile",
                   experiments.located(config), "--cores", cores]  # fmt: skip
        # `--forcerun RULE -- TARGET` keeps its target if the arguments after `--` come first
        before, behind = context.args, context.meta[BEHIND]
        words = [*before, *behind] if "--" in behind else [*behind, *before]
        said = sys.stderr if as_json else None
        process = subprocess.Popen([*command, *words], stdout=said)
        with passed_on(process) as signals:
            code = process.wait()
        if signals:
            # within its first second, Snakemake prints no message when stopped
            if code < 0 and len(signals) == 1:
                print("kgprobe: stopped before the first job", file=sys.stderr)
            code = ENDED + signals[0]
        page = Path("results") / name / "report" / "index.html"
        if as_json:
            screen.data({"run": name, "exit": code, "seconds": round(time.monotonic() - began, 1),
                         "report": str(page) if page.is_file() else ""})  # fmt: skip
        raise typer.Exit(code)


COMMANDS = (validate, plan, verify, run)

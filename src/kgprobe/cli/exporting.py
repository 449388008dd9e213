"""`kgprobe export`: questions, or a run, in the formats of others."""

from pathlib import Path
from typing import Annotated

import typer

from kgprobe.cli import screen
from kgprobe.cli.asking import Json


def export(
    what: Annotated[
        str, typer.Argument(help="A benchmark of the package, or its folder; ro-crate: a run.")
    ],
    form: Annotated[
        str,
        typer.Option(
            "--as",
            help="lm-pub-quiz, lm-eval, huggingface, croissant, frictionless or ro-crate.",
        ),
    ],
    to: Annotated[Path, typer.Option(help="A folder of its own, new or an older export.")],
    licence: Annotated[
        str, typer.Option(help="SPDX id of the licence of your own graph, as CC-BY-4.0.")
    ] = "",
    as_json: Json = False,
) -> None:
    """Export questions, or the tables of a run, so that other tools load them.

    Example: kgprobe export world_lite --as lm-eval --to exported
    """
    with screen.told(as_json):
        from kgprobe.tables.exports import crate, formats, origins

        chosen = screen.choose(form, [*formats.NAMES, crate.NAME], "--as")
        if chosen == crate.NAME:
            from kgprobe.cli.comparing import run_folder

            crate.write(run_folder(what), to)
        else:
            from kgprobe.benchmarks.bear.frames import Sets
            from kgprobe.questions import benchmark, folder_of

            own, sources = benchmark(what), origins.of(folder_of(what), licence)
            formats.write(chosen, own.name, Sets(own.items, own.candidates, own.prompts), sources,
                          to)  # fmt: skip
        made = sorted(p.relative_to(to).as_posix() for p in to.rglob("*") if p.is_file())
        if as_json:
            screen.data({"folder": str(to), "as": chosen, "files": made})
        else:
            screen.say(f"{to}: {len(made)} files, {', '.join(made[:6])}" + " ..." * (len(made) > 6))


COMMANDS = (export,)

"""The command line `kgprobe`: probe models, inspect benchmarks and runs, run the workflow.

Exit codes: 0 success, 1 the request cannot be fulfilled (one line says what, where, and what would
be valid), 2 a usage error, 130 interrupted. Every command has `--json`. Heavy modules are imported
only by the command that needs them.
"""

import io
import os
import sys
from typing import Annotated

import typer

from kgprobe import __version__
from kgprobe.cli import asking, comparing, exporting, looking, running, starting, tracing

#: names of the standard streams in `sys`, by file descriptor
STREAMS = ("stdin", "stdout", "stderr")

app = typer.Typer(
    name="kgprobe",
    epilog="Example: kgprobe probe bert-base-cased --on world_lite",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


def _version(is_asked: bool) -> None:
    if is_asked:
        print(f"kgprobe {__version__}")
        raise typer.Exit


@app.callback()
def _command(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Print the version."),
    ] = False,
) -> None:
    """What does a language model know of a knowledge graph, and does it understand it?"""


for part in (asking, comparing, tracing, looking, exporting, starting, running):
    for function in part.COMMANDS:
        name = function.__name__.rstrip("_")
        if function is running.run:
            app.command(name, cls=running.Passing, context_settings=running.PASSED)(function)
        else:
            app.command(name)(function)


def _open_closed_streams() -> None:
    """Connect closed standard streams, also of children, to the null device: Python would print
    notes for a closed stderr on stdout, and the programs that draw plots need a stdin."""
    while (number := os.open(os.devnull, os.O_RDWR)) < len(STREAMS):
        os.set_inheritable(number, True)
        setattr(sys, STREAMS[number], os.fdopen(number, "w" if number else "r", encoding="utf-8"))
    os.close(number)


def main() -> None:
    """Run the command line. Characters that the terminal cannot encode are printed as escapes."""
    _open_closed_streams()
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        app(prog_name="kgprobe")
    except OSError as error:
        # shell completion is installed in the home folder, which may be read-only
        sys.exit(f"kgprobe: {error}")

"""The command `kgprobe`: models are asked, questions and runs looked at, the workflow run.

Exit codes: 0 done, 1 the request cannot be done (one line says what, where, and what would be
right), 2 it is typed wrongly, 130 stopped. Every command has `--json`. What is heavy is imported by
the command that needs it.
"""

import os
import tempfile

import typer

from kgprobe.cli import asking, comparing, exporting, looking, running, tracing

app = typer.Typer(
    name="kgprobe",
    help="What does a language model know of a knowledge graph, and does it understand it?",
    epilog="Example: kgprobe probe bert-base-cased --on world_lite",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
for part in (asking, comparing, tracing, looking, exporting, running):
    for function in part.COMMANDS:
        name = function.__name__.rstrip("_")
        settings = running.PASSED if function is running.run else None
        app.command(name, context_settings=settings)(function)


def main() -> None:
    """Run the command line."""
    if not os.access(os.path.expanduser("~"), os.W_OK):
        # matplotlib keeps its fonts at home, and says so at length where it cannot
        os.environ.setdefault("MPLCONFIGDIR", tempfile.mkdtemp(prefix="kgprobe-"))
    app(prog_name="kgprobe")

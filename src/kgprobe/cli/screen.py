"""The command's output: tables at any width, JSON, progress, and errors in one line."""

import json
import os
import re
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import typer
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TextColumn,
    TimeRemainingColumn,
)
from rich.table import Table
from rich.text import Text

from kgprobe.stops import ENDED, terminated

#: columns that stand side by side with two blanks between them
MANY = 6
#: characters of a line where the terminal says none
NARROW = 80
#: as many as there are
ALL = 10**9
#: as cells print numbers, of which there may be none
NUMBER = re.compile(r"-?[\d.,]*(e[+-]\d+)?")
#: the request was understood and cannot be done; the exit code of what is typed wrongly is 2
FAILED = 1
#: the exit code that shells give for Ctrl-C
STOPPED = 130


def say(text: str) -> None:
    """A line on stdout, as it is: paths stay whole at any width."""
    print(text)


def note(text: str) -> None:
    """A line on stderr, at once: what happens while nothing else is shown."""
    print(text, file=sys.stderr, flush=True)


def data(value: Any) -> None:
    """`--json`: one JSON value on stdout, in escapes where its encoding may lack a letter."""
    is_utf = "utf" in (getattr(sys.stdout, "encoding", "") or "").lower()
    print(json.dumps(value, indent=1, ensure_ascii=not is_utf, default=str))


def table(rows: Iterable[Mapping[str, Any]], title: str = "") -> None:
    """Rows with their keys as heads; long cells wrap where the terminal is narrow. An `n` of few
    rows is marked, and the mark explained below."""
    lines = list(rows)
    if not lines:
        say("nothing")
        return
    console = _Tables(highlight=False)
    if not console.width:  # of COLUMNS=0, where nothing would be printed
        console.width = NARROW
    shown = Table(
        title=title or None, title_justify="left", box=None, pad_edge=False,
        padding=(0, 1, 0, 0) if len(lines[0]) > MANY else (0, 1),
    )  # fmt: skip
    for name in lines[0]:
        cells = [_cell(row[name]) for row in lines]
        shown.add_column(
            name, justify="right" if all(map(NUMBER.fullmatch, cells)) else "left",
            # names that are to be typed stay whole where they leave half of the screen
            overflow="fold",
            no_wrap=name == next(iter(lines[0])) and max(map(len, cells)) <= console.width // 2,
        )  # fmt: skip
    for row in lines:
        texts = {name: _cell(value) for name, value in row.items()}
        if isinstance(row.get("n"), int):
            texts["n"] = format_n(row)
        shown.add_row(*map(Text, texts.values()))
    console.print(shown)
    explain([format_n(row) for row in lines if isinstance(row.get("n"), int)])


def format_n(row: Mapping[str, Any], digits: int = 1) -> str:
    """The `n` behind a number that is printed with so many digits after the point, with the
    report's mark where few rows stand behind it."""
    from kgprobe.tables.report import marks

    return f"{row['n']}{marks.few(row, digits)}"


def explain(texts: Sequence[str]) -> None:
    """A line for each mark that stands in one of these texts."""
    if texts:
        from kgprobe.tables.report import marks

        for note in marks.notes(texts):
            say(note)


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


@contextmanager
def report_errors(as_json: bool = False) -> Iterator[None]:
    """Expected errors as one message on stderr (with `--json` an object on stdout, too) and exit
    code 1; unexpected ones stay a traceback. Ctrl-C and SIGTERM are one line, with the message of
    the KeyboardInterrupt on how to go on."""
    try:
        with terminated(lambda _: KeyboardInterrupt()):
            yield
    except typer.Exit:
        # a RuntimeError, too: what a command ends with is no error of its own
        raise
    except KeyboardInterrupt as stop:
        print(": ".join(["kgprobe: stopped", *map(str, stop.args)]), file=sys.stderr)
        raise typer.Exit(STOPPED) from None
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("kgprobe"):
            raise
        _refuse(f"{error.name} is not installed; run pip install "
                "'kgprobe[workflow,sources,gguf]'", as_json)  # fmt: skip
    except BrokenPipeError:
        # `| head` has read enough; what is still to be flushed goes nowhere
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(ENDED + signal.SIGPIPE) from None
    except (ValueError, RuntimeError, OSError) as error:
        _refuse(str(error) or repr(error), as_json)


def _refuse(message: str, as_json: bool) -> None:
    if as_json:
        data({"error": message})
    print(f"kgprobe: {message}", file=sys.stderr)
    raise typer.Exit(FAILED)


class _Tables(Console):
    """A closed pipe is the caller's: rich would end the command with the exit code of an error."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


class _Rate(ProgressColumn):
    """Units per second, over the last 30 seconds."""

    def render(self, task: Task) -> Text:
        return Text(f"{task.speed:.3g}/s" if task.speed else "-/s")


class RichBar:
    """What `kgprobe.job.progress` gives, drawn by rich with rate and time left; where stderr is no
    terminal, a line every ten seconds."""

    every = 10.0

    def __init__(self, *, total: float, desc: str = "", unit: str = "it") -> None:
        self.total, self.desc, self.unit, self.done = total, desc, unit, 0.0
        self.began = self.said = time.monotonic()
        self.drawn = Progress(
            TextColumn("{task.description}"), BarColumn(bar_width=None), MofNCompleteColumn(),
            _Rate(), TimeRemainingColumn(compact=True), console=Console(stderr=True),
            disable=not sys.stderr.isatty(), expand=True,
        )  # fmt: skip
        self.task = self.drawn.add_task(desc, total=total)
        self.drawn.start()

    def update(self, n: float = 1) -> None:
        self.done += n
        self.drawn.update(self.task, advance=n)
        now = time.monotonic()
        if self.drawn.disable and now - self.said >= self.every:
            self.said, line = (
                now,
                f"{self.desc}: {self.done:,.0f} of {self.total:,.0f} {self.unit}s",
            )
            if self.done:
                rate = self.done / (now - self.began)
                line += f", {rate:.3g}/s, {(self.total - self.done) / rate:.0f} s left"
            print(line, file=sys.stderr)

    def close(self) -> None:
        self.drawn.stop()


def whole(least: int) -> Callable[[str | int], int]:
    """Reads an option that is a whole number; else a usage error that says what is legal."""

    def read(value: str | int) -> int:
        if not re.fullmatch(r"[+-]?[0-9]+", text := str(value).strip()) or int(text) < least:
            raise typer.BadParameter(f"{value!r}; valid: a whole number, at least {least}")
        return min(int(text), ALL)

    return read


def choose(value: str, legal: Sequence[str], what: str) -> str:
    """`value`, which must be one of the legal ones; else a usage error that names the nearest."""
    from kgprobe.experiments import nearest

    if value not in legal:
        near = nearest(value, legal)
        raise typer.BadParameter(f"{what} {value!r}{near}; valid: {', '.join(legal)}")
    return value

"""Console output of the commands: tables of any width, JSON, progress, and one-line errors."""

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

from kgprobe.files import not_utf8
from kgprobe.stops import ENDED, terminated

#: number of columns up to which two spaces separate them
MANY = 6
#: line width if the terminal reports none
NARROW = 80
#: upper limit of a whole-number option: effectively all
ALL = 10**9
#: number format of table cells; matches the empty cell, too
NUMBER = re.compile(r"-?[\d.,]*(e[+-]\d+)?")
#: exit code for a valid request that cannot be fulfilled; usage errors exit with 2
FAILED = 1
#: exit code that shells use for Ctrl-C
STOPPED = 130


def say(text: str) -> None:
    """Print a line on stdout without wrapping, so that paths are not broken."""
    print(text)


def note(text: str) -> None:
    """Print a line on stderr and flush it: the current activity while nothing else is shown."""
    print(text, file=sys.stderr, flush=True)


def data(value: Any) -> None:
    """Print one JSON value on stdout for `--json`, escaping non-ASCII characters unless UTF-8."""
    is_utf = "utf" in (getattr(sys.stdout, "encoding", "") or "").lower()
    print(json.dumps(value, indent=1, ensure_ascii=not is_utf, default=str))


def table(rows: Iterable[Mapping[str, Any]], title: str = "") -> None:
    """Print rows with their keys as headers; long cells wrap on a narrow terminal. An `n` of few
    items is marked, and the mark explained below."""
    lines = list(rows)
    if not lines:
        say("nothing")
        return
    console = _Tables(highlight=False)
    if not console.width:  # COLUMNS=0 would print nothing
        console.width = NARROW
    shown = Table(
        title=title or None, title_justify="left", box=None, pad_edge=False,
        padding=(0, 1, 0, 0) if len(lines[0]) > MANY else (0, 1),
    )  # fmt: skip
    for name in lines[0]:
        cells = [_cell(row[name]) for row in lines]
        shown.add_column(
            name, justify="right" if all(map(NUMBER.fullmatch, cells)) else "left",
            # names that users have to type are not wrapped if they take at most half of the screen
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
    """Format `n` of a value printed with `digits` decimals, with the report's few-items mark."""
    from kgprobe.tables.report import marks

    return f"{row['n']}{marks.few(row, digits)}"


def explain(texts: Sequence[str]) -> None:
    """Print a line of explanation for each mark that occurs in one of these texts."""
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
    """Print expected errors as one message on stderr (with `--json` also as an object on stdout)
    and exit with code 1; unexpected errors keep their traceback. Ctrl-C and SIGTERM print one line,
    with the message of the KeyboardInterrupt on how to resume."""
    try:
        with terminated(lambda _: KeyboardInterrupt()):
            yield
            sys.stdout.flush()
    except typer.Exit:
        # typer.Exit is a RuntimeError, too; how a command exits is not an error
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
        # `| head` has read enough
        _discard_output()
        raise typer.Exit(ENDED + signal.SIGPIPE) from None
    except UnicodeEncodeError as error:
        _refuse(not_utf8(error), as_json)
    except (ValueError, RuntimeError, OSError) as error:
        _refuse(str(error) or repr(error), as_json)


def _refuse(message: str, as_json: bool) -> None:
    try:
        if as_json:
            data({"error": message})
        sys.stdout.flush()
    except OSError:  # such as a full disk, of which the message tells
        _discard_output()
    print(f"kgprobe: {message}", file=sys.stderr)
    raise typer.Exit(FAILED)


def _discard_output() -> None:
    """Discard the remaining output, which Python would try to write once more at its end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


class _Tables(Console):
    """A console that re-raises broken pipes: rich would exit with an error code."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


class _Rate(ProgressColumn):
    """Show units per second over the last 30 seconds."""

    def render(self, task: Task) -> Text:
        return Text(f"{task.speed:.3g}/s" if task.speed else "-/s")


class RichBar:
    """Progress bar for `kgprobe.job.progress`, drawn by rich with rate and time left; if stderr is
    not a terminal, it prints a line every ten seconds."""

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
            self.said = now
            line = f"{self.desc}: {self.done:,.0f} of {self.total:,.0f} {self.unit}s"
            if self.done:
                rate = self.done / (now - self.began)
                line += f", {rate:.3g}/s, {(self.total - self.done) / rate:.0f} s left"
            print(line, file=sys.stderr)

    def close(self) -> None:
        self.drawn.stop()


def whole(least: int) -> Callable[[str | int], int]:
    """Return a parser for a whole number of at least `least`, which raises usage errors."""

    def read(value: str | int) -> int:
        if not re.fullmatch(r"[+-]?[0-9]+", text := str(value).strip()) or int(text) < least:
            raise typer.BadParameter(f"{value!r}; valid: a whole number, at least {least}")
        return min(int(text), ALL)

    return read


def choose(value: str, legal: Sequence[str], what: str) -> str:
    """Return `value` if it is valid; else raise a usage error that names the nearest valid one."""
    from kgprobe.experiments import nearest

    if value not in legal:
        near = nearest(value, legal)
        raise typer.BadParameter(f"{what} {value!r}{near}; valid: {', '.join(legal)}")
    return value

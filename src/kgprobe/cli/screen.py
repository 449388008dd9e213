"""What the command says: tables at any width, JSON, progress, and errors in one line."""

import json
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
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

#: the request was understood and cannot be done; the exit code of what is typed wrongly is 2
FAILED = 1
#: as shells tell of Ctrl-C
STOPPED = 130


def say(text: str) -> None:
    """A line on stdout, as it is: paths stay whole at any width."""
    print(text)


def data(value: Any) -> None:
    """`--json`: one JSON value on stdout."""
    print(json.dumps(value, indent=1, ensure_ascii=False, default=str))


def table(rows: Iterable[Mapping[str, Any]], title: str = "") -> None:
    """Rows with their keys as heads; cells wrap where the terminal is narrow."""
    found = list(rows)
    if not found:
        say("nothing")
        return
    shown = Table(title=title or None, title_justify="left", box=None, pad_edge=False)
    for name in found[0]:
        is_number = all(isinstance(row[name], int | float | None) for row in found)
        shown.add_column(name, justify="right" if is_number else "left", overflow="fold")
    for row in found:
        shown.add_row(*(Text(_cell(value)) for value in row.values()))
    Console(highlight=False).print(shown)


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


@contextmanager
def told(as_json: bool = False) -> Iterator[None]:
    """Errors that speak to the user as one message on stderr (with `--json` an object on stdout,
    too) and exit code 1; what they do not foresee stays a traceback."""
    try:
        yield
    except KeyboardInterrupt:
        print("kgprobe: stopped", file=sys.stderr)
        raise typer.Exit(STOPPED) from None
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("kgprobe"):
            raise
        _refuse(f"{error.name} is not installed; right would be pip install "
                "'kgprobe[workflow,sources,gguf]'", as_json)  # fmt: skip
    except (ValueError, RuntimeError, OSError) as error:
        _refuse(str(error) or repr(error), as_json)


def _refuse(message: str, as_json: bool) -> None:
    if as_json:
        data({"error": message})
    print(f"kgprobe: {message}", file=sys.stderr)
    raise typer.Exit(FAILED)


class _Rate(ProgressColumn):
    """Units a second, over the last half minute."""

    def render(self, task: Task) -> Text:
        return Text(f"{task.speed:.3g}/s" if task.speed else "-/s")


class Bar:
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
            self.said = now
            rate = self.done / (now - self.began)
            left = (self.total - self.done) / rate
            print(f"{self.desc}: {self.done:,.0f} of {self.total:,.0f} {self.unit}s, "
                  f"{rate:.3g}/s, {left:.0f} s left", file=sys.stderr)  # fmt: skip

    def close(self) -> None:
        self.drawn.stop()


def choose(value: str, legal: Sequence[str], what: str) -> str:
    """`value`, which must be one of the legal ones; else a usage error that names the nearest."""
    from kgprobe.sheets import nearest

    if value not in legal:
        near = nearest(value, legal)
        raise typer.BadParameter(f"{what} {value!r}{near}; legal: {', '.join(legal)}")
    return value

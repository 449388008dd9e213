"""Commands that a page types behind `$`, and the output that it shows below them.

In the output `...` stands for text that differs between runs, and whitespace matches any
whitespace.
"""

import contextlib
import doctest
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

from typer.testing import CliRunner

from kgprobe.cli import app

ROOT = Path(__file__).parents[2]
#: commands that take longer than a test of the gate may
LONG = ("kgprobe run", "kgprobe plan", "kgprobe probe", "python")
ENVIRONMENT = {"COLUMNS": "100", "HF_HUB_OFFLINE": "1", "NO_COLOR": "1"}
CONSOLE = re.compile(r"^```console\n(.*?)^```", re.MULTILINE | re.DOTALL)
TYPED = re.compile(r"^\$ (.+)\n((?:(?!\$ ).*\n)*)", re.MULTILINE)


def screens(page: str) -> list[tuple[str, str]]:
    """Return the (command, output) pairs of the console blocks of a page."""
    return [found for block in CONSOLE.findall(page) for found in TYPED.findall(block)]


def differs(wanted: str, shown: str) -> bool:
    """Return whether the output differs from the expected output."""
    options = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    return not doctest.OutputChecker().check_output(wanted, shown, options)


def prepare(page: str, folder: Path) -> None:
    """Write the files that a page shows below their names, and those it copies, to a folder."""
    for name, text in re.findall(r"^`(\S+)`\n\n```\w+\n(.*?)```", page, re.MULTILINE | re.DOTALL):
        (folder / name).write_text(text)
    for source, target in re.findall(r"`cp -r (\S+) (\S+)`", page):
        shutil.copytree(ROOT / source, folder / target)


def check_screens(page: str, folder: Path, long: bool = True) -> int:
    """Run the commands of a page in a folder, compare their output and return how many were run.

    With `long=False`, only those before the first slow command. Slow commands run in a separate
    process; if one prints nothing to stdout, its stderr is compared.
    """
    typed = 0
    for line, wanted in screens(page):
        if line.startswith(LONG) and not long:
            break
        shown = _shown(shlex.split(line, comments=True), folder, line.startswith(LONG))
        assert wanted.strip(), f"$ {line}\nwithout a screen; it is\n{shown}"
        assert not differs(wanted, shown), f"$ {line}\n{shown}"
        typed += 1
    return typed


def _shown(words: list[str], folder: Path, is_long: bool) -> str:
    """Return what a command prints when run in a folder."""
    if words[0] == "kgprobe" and not is_long:
        with contextlib.chdir(folder):
            done = CliRunner(env=ENVIRONMENT).invoke(app, words[1:])
        assert done.exit_code == 0, (words, done.output, done.exception)
        return done.stdout
    if words[0] == "kgprobe":
        words = ["python", "-m", "kgprobe.cli", *words[1:]]
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    ran = subprocess.run(
        words, cwd=folder, text=True, timeout=600, capture_output=True,
        env={**os.environ, **ENVIRONMENT, "PATH": path},
    )  # fmt: skip
    assert ran.returncode == 0, (words, ran.stdout[-4000:], ran.stderr[-4000:])
    return ran.stdout or ran.stderr

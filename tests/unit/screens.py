"""What a page or a text types behind `$`, and the screens that it shows below.

In a screen `...` stands for what differs from run to run, and any blanks for others.
"""

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
LONG = ("kgprobe run", "kgprobe plan", "snakemake", "make")
CONSOLE = re.compile(r"^```console\n(.*?)^```", re.MULTILINE | re.DOTALL)
TYPED = re.compile(r"^\$ (.+)\n((?:(?!\$ ).*\n)*)", re.MULTILINE)


def screens(page: str) -> list[tuple[str, str]]:
    """(command, screen) of the console blocks of a page."""
    return [found for block in CONSOLE.findall(page) for found in TYPED.findall(block)]


def differs(wanted: str, shown: str) -> bool:
    """Whether a screen is another than the one that is wanted."""
    options = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    return not doctest.OutputChecker().check_output(wanted, shown, options)


def prepare(page: str, folder: Path) -> None:
    """Put into a folder the files that a page shows below their name, and what it copies."""
    for name, text in re.findall(r"^`(\S+)`\n\n```\w+\n(.*?)```", page, re.MULTILINE | re.DOTALL):
        (folder / name).write_text(text)
    for source, target in re.findall(r"`cp -r (\S+) (\S+)`", page):
        shutil.copytree(ROOT / source, folder / target)


def check_screens(page: str, folder: Path, long: bool = True) -> int:
    """Type the commands of a page in a folder and compare what they print; how many were typed.

    With `long=False` only those before the first that takes long. A process of its own runs the
    long ones; what they print to stderr is part of their screen.
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
    """What a command prints in a folder."""
    if words[0] == "kgprobe" and not is_long:
        done = CliRunner().invoke(app, words[1:])
        assert done.exit_code == 0, (words, done.output, done.exception)
        return done.stdout
    programs = {"kgprobe": ["-m", "kgprobe.cli"], "snakemake": ["-m", "snakemake"]}
    command = [sys.executable, *programs[words[0]], *words[1:]] if words[0] in programs else words
    ran = subprocess.run(
        command, cwd=folder, text=True, timeout=600,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        env={**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
             "HF_HUB_OFFLINE": "1", "NO_COLOR": "1"},
    )  # fmt: skip
    assert ran.returncode == 0, (words, ran.stdout[-4000:])
    return ran.stdout

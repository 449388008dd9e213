"""Shell completion: what each shell requests from the command, and what the command returns."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

import kgprobe
from kgprobe.cli import names
from kgprobe.cli.comparing import run_folder
from kgprobe.experiments import VARIANTS_OF_KIND

SOURCE = str(Path(kgprobe.__file__).parents[1])
#: typed words -> all completions
OFFERED = {
    "kgprobe probe bert-base": ["bert-base-cased", "bert-base-uncased"],
    "kgprobe probe gpt2 --on world_": ["world_big", "world_lite"],
    "kgprobe probe gpt2 --method sentence-sentence": ["sentence-sentence_l2r",
                                                      "sentence-sentence_l2r_keep_sep"],
    "kgprobe probe gpt2 --on world_lite --prompt ": ["templates", "0", "1", "2"],
    "kgprobe show world_lite P36/Q414": ["P36/Q414"],
    "kgprobe list m": ["models", "methods"],
    "kgprobe compare first-run second": ["second-run"],
    "kgprobe trace 1.0 --run f": ["first-run"],
    "kgprobe export world_l": ["world_lite"],
    "kgprobe export world_lite --as lm": ["lm-pub-quiz", "lm-eval"],
    # files are left to the shell
    "kgprobe validate con": [],
}  # fmt: skip


@pytest.fixture
def folder(tmp_path) -> Path:
    """Create a folder with two runs, one of them without numbers, and the command on the PATH."""
    for run in ("first-run", "second-run"):
        (tmp_path / f"results/{run}/tables").mkdir(parents=True)
        (tmp_path / f"results/{run}/tables/bear.parquet").touch()
    (tmp_path / "results/fresh").mkdir()
    command = tmp_path / "bin/kgprobe"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m kgprobe.cli "$@"\n')
    command.chmod(0o755)
    return tmp_path


def asked(folder: Path, **more: str) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": f"{folder / 'bin'}:{os.environ['PATH']}", "PYTHONPATH": SOURCE, **more}
    return subprocess.run(["kgprobe"], cwd=folder, env=environment, capture_output=True, text=True)


def in_bash(folder: Path, line: str) -> list[str]:
    """Return bash's own completions, using the command's script and a simulated key press."""
    script = asked(folder, _KGPROBE_COMPLETE="source_bash").stdout
    words = shlex.split(line) + [""] * line.endswith(" ")
    pressed = (
        f"COMP_WORDS=({' '.join(map(shlex.quote, words))}); COMP_CWORD={len(words) - 1}\n"
        'read -r _ _ _ _ function _ <<< "$(complete -p kgprobe)"\n'
        '$function kgprobe; printf "%s\\n" "${COMPREPLY[@]}"\n'
    )
    environment = {"PATH": f"{folder / 'bin'}:{os.environ['PATH']}", "PYTHONPATH": SOURCE}
    done = subprocess.run(
        ["bash", "--norc"], input=script + "\n" + pressed, cwd=folder, env=environment,
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stderr == ""
    return [word for word in done.stdout.split("\n") if word]


def in_zsh(folder: Path, line: str) -> list[str]:
    done = asked(folder, _KGPROBE_COMPLETE="complete_zsh", _TYPER_COMPLETE_ARGS=line)
    if done.stdout.strip() == "_files":
        return []
    (listed,) = re.fullmatch(r"_arguments '\*: :\(\((.*)\)\)'\n", done.stdout, re.DOTALL).groups()
    return [shlex.split(word)[0] for word in listed.splitlines()]


def in_fish(folder: Path, line: str) -> list[str]:
    how = {"_KGPROBE_COMPLETE": "complete_fish", "_TYPER_COMPLETE_ARGS": line}
    result = asked(folder, _TYPER_COMPLETE_FISH_ACTION="get-args", **how).stdout.split()
    # without names it completes files
    code = asked(folder, _TYPER_COMPLETE_FISH_ACTION="is-args", **how).returncode
    assert code == (0 if result else 1)
    return result


def test_bash_completes_every_type_of_name(folder):
    assert {line: in_bash(folder, line) for line in OFFERED} == OFFERED


@pytest.mark.parametrize("shell", [in_zsh, in_fish])
@pytest.mark.parametrize(
    "line", ["kgprobe probe bert-base", "kgprobe compare first-run second", "kgprobe validate con"]
)
def test_other_shells_get_the_same_completions(folder, shell, line):
    assert shell(folder, line) == OFFERED[line]


def test_a_run_without_numbers_of_a_paper_is_not_offered(folder, monkeypatch):
    """`compare` and `trace` refuse it, and their message must not suggest it."""
    (folder / "results/fresh/tables").mkdir()
    (folder / "results/fresh/tables/access_agreement.parquet").touch()
    monkeypatch.chdir(folder)
    assert names.runs() == ["first-run", "second-run"]
    with pytest.raises(ValueError, match="numbers; valid: first-run, second-run, or"):
        run_folder("fresh")


def test_unreadable_tables_and_folders_give_no_completions(tmp_path, monkeypatch):
    (tmp_path / "config").mkdir()
    (tmp_path / "config/models.tsv").write_text("modle\nx\n")
    monkeypatch.chdir(tmp_path)
    assert names.models() == []
    assert names.runs() == []

    typed = SimpleNamespace(params={"on": "world_lit", "benchmark": "nowhere"})

    assert names.prompts(typed) == names.items(typed) == []


def test_completed_methods_equal_the_scorers():
    from kgprobe.probes.scoring.sentence.scorers import VARIANTS_OF

    assert VARIANTS_OF == VARIANTS_OF_KIND
    variants = dict.fromkeys(name for of in VARIANTS_OF.values() for name in of)
    assert ["sentence", *(f"sentence-{name}" for name in variants)] == names.methods()


@pytest.mark.parametrize(
    ("words", "typed", "absent"),
    [
        ([], "kgprobe probe bert", {"torch", "transformers", "polars", "numpy"}),
        ([], "kgprobe probe gpt2 --on w", {"torch", "transformers"}),
        ([], "kgprobe compare f", {"torch", "transformers", "polars", "jsonschema"}),
        ([], "kgprobe show world_lite P36", {"torch", "transformers"}),
        ([], "kgprobe export world_lite --as l", {"torch", "transformers"}),
        (["--help"], "", {"torch", "transformers", "polars", "numpy", "jsonschema"}),
        (["probe", "--help"], "", {"torch", "transformers", "polars", "numpy", "jsonschema"}),
    ],
)
def test_completion_and_help_avoid_heavy_imports(folder, words, typed, absent):
    code = (
        "import sys, atexit\n"
        f"atexit.register(lambda: print(sorted({absent!r} & set(sys.modules)), file=sys.stderr))\n"
        f"sys.argv[1:] = {words!r}\n"
        "from kgprobe.cli import main; main()\n"
    )
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": SOURCE}
    if typed:
        environment |= {"_KGPROBE_COMPLETE": "complete_zsh", "_TYPER_COMPLETE_ARGS": typed}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=folder, env=environment, capture_output=True, text=True
    )
    assert done.stdout
    assert done.stdout.strip() != "_files"
    assert done.stderr.splitlines()[-1] == "[]"

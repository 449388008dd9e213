"""Dry runs of many sheets in one process: snakemake is imported once, each plan is a fork of it.

    python -m tests.workflow.plans FOLDER < rows.json

`rows.json`: [[config files, row of the sheet], ...]; prints one JSON list of [exit code, output].
FOLDER holds a project (`tests.workflow.project`).
"""

import json
import os
import sys
from pathlib import Path

import polars  # noqa: F401  (imported by the Snakefile: once here instead of in every fork)
import snakemake.cli

import kgprobe.probes.prompt_settings
import kgprobe.sheets  # noqa: F401

HEADER = "paper\tbenchmark\tprompt\tmethod\tmodel\n"


def plan(folder: Path, number: int, configs: list[str], row: str) -> int:
    """Start the dry run of a sheet with this row alone; returns the process."""
    sheet = folder / f"config/experiments.{number}.tsv"
    sheet.write_text(HEADER + row + "\n")
    setting = folder / f"config/sheet.{number}.yaml"
    setting.write_text(f"sheets: {{experiments: {sheet.relative_to(folder)}}}\n")
    process = os.fork()
    if process:
        return process
    out = os.open(folder / f"plan.{number}", os.O_CREAT | os.O_TRUNC | os.O_WRONLY)
    os.dup2(out, 1)
    os.dup2(out, 2)
    arguments = ["-n", "--cores", "2", "--nocolor", "--configfile", *configs, str(setting)]
    sys.argv = ["snakemake", *arguments]
    try:
        snakemake.cli.main(arguments)
    except SystemExit as end:
        os._exit(int(end.code or 0))
    os._exit(1)


def main(folder: Path, rows: list[tuple[list[str], str]]) -> list[tuple[int, str]]:
    """Plan every row, two at a time."""
    os.chdir(folder)
    codes: dict[int, int] = {}
    running: dict[int, int] = {}
    for number, (configs, row) in enumerate(rows):
        if len(running) == 2:
            _reap(running, codes)
        running[plan(folder, number, configs, row)] = number
    while running:
        _reap(running, codes)
    return [(codes[n], (folder / f"plan.{n}").read_text()) for n in range(len(rows))]


def _reap(running: dict[int, int], codes: dict[int, int]) -> None:
    process, status = os.wait()
    codes[running.pop(process)] = os.waitstatus_to_exitcode(status)


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1]), json.load(sys.stdin))))

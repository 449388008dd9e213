"""Dry runs in one warm process: snakemake is imported once, each plan is a fork of it.

    python -m tests.workflow.plans

reads JSON lines, [folder of the project, arguments of snakemake, environment variables], and
answers each with [exit code, output].
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]


class Planner:
    """Client of the warm process, for one plan at a time."""

    def __init__(self, environment: dict[str, str]) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.workflow.plans"],
            cwd=ROOT, env=environment, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip

    def plan(
        self, folder: Path, *arguments: str, dry: str = "-n", **environment: str
    ) -> subprocess.CompletedProcess[str]:
        """Return the dry run of a project."""
        assert self.process.stdin
        assert self.process.stdout
        words = [dry, "--cores", "2", "--nocolor", *arguments]
        # as in any process that a test starts
        known = {k: v for k, v in os.environ.items() if k == "PYTEST_CURRENT_TEST"}
        self.process.stdin.write(json.dumps([str(folder), words, known | environment]) + "\n")
        self.process.stdin.flush()
        code, output = json.loads(self.process.stdout.readline())
        return subprocess.CompletedProcess(words, code, output)

    def close(self) -> None:
        """End the process."""
        self.process.communicate(timeout=30)


def plan(folder: str, arguments: list[str], environment: dict[str, str]) -> tuple[int, str]:
    """Return exit code and output of a fork that plans."""
    import snakemake.cli

    with tempfile.TemporaryFile("w+") as out:
        child = os.fork()
        if not child:
            os.chdir(folder)
            os.environ.update(environment)
            os.dup2(out.fileno(), 1)
            os.dup2(out.fileno(), 2)
            sys.argv = ["snakemake", *arguments]
            code: Any = 1
            try:
                snakemake.cli.main(arguments)
            except SystemExit as end:
                code = end.code or 0
            finally:
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(int(code))
        _, status = os.waitpid(child, 0)
        out.seek(0)
        return os.waitstatus_to_exitcode(status), out.read()


def main() -> None:
    """Import what every plan needs, then answer."""
    import polars  # noqa: F401
    import snakemake.cli  # noqa: F401

    import kgprobe.experiments
    import kgprobe.probes.prompt_settings  # noqa: F401

    for line in sys.stdin:
        print(json.dumps(plan(*json.loads(line))), flush=True)


if __name__ == "__main__":
    main()

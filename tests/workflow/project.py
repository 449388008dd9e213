"""A copy of the project in which the workflow can run without touching the real one."""

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from kgprobe.config import models_of
from kgprobe.settings import Settings, Tables
from kgprobe.workflow.benchmarks import known_benchmarks
from kgprobe.workflow.run import read_experiments

ROOT = Path(__file__).parents[2]
#: a smaller version of the embedded run
CONFIGS = ("config/embedded.yaml", str(ROOT / "tests/workflow/small.yaml"))


@cache
def _parsed() -> tempfile.TemporaryDirectory[str]:
    """Return the cache of `kgprobe.code` results by content, so that each file is parsed once."""
    return tempfile.TemporaryDirectory(prefix="kgprobe-code-")


class Project:
    """The workflow in a separate folder: config is a copy, code and resources are links."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        #: sha256 of the files of a first run, where a test keeps them
        self.first: dict[str, str] = {}
        for name in ("Snakefile", "workflow", "config", "profiles"):
            source = ROOT / name
            copy = shutil.copytree if source.is_dir() else shutil.copy
            copy(source, folder / name)
        for name in ("src", "resources"):
            (folder / name).symlink_to(ROOT / name)
        (folder / "tests").mkdir()
        (folder / ".snakemake").mkdir(exist_ok=True)
        (folder / ".snakemake/kgprobe-code").symlink_to(_parsed().name)

    @classmethod
    def again(cls, folder: Path) -> "Project":
        """Return the existing project in a folder."""
        found = cls.__new__(cls)
        found.folder, found.first = folder, {}
        return found

    def command(
        self, *arguments: str, cores: int = 2, configs: Sequence[str] = CONFIGS
    ) -> list[str]:
        """Return the command line of snakemake, by default with the small test configuration."""
        snakemake = [sys.executable, "-m", "snakemake", "--cores", str(cores), "--nocolor"]
        return [*snakemake, "--configfile", *configs, *arguments]

    def run(
        self, *arguments: str, cores: int = 2, timeout: int = 900, configs: Sequence[str] = CONFIGS
    ) -> subprocess.CompletedProcess[str]:
        """Run snakemake and return its output (stdout and stderr together)."""
        return subprocess.run(
            self.command(*arguments, cores=cores, configs=configs), cwd=self.folder, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=timeout,
            env=self.environment(),
        )  # fmt: skip

    @staticmethod
    def environment() -> dict[str, str]:
        """Return the environment of a run, with this Python's programs first in PATH."""
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        return {**os.environ, "PATH": path, "HF_HUB_OFFLINE": "1"}

    def hashes(self, *folders: str) -> dict[str, str]:
        """Return the sha256 of every file below the folders."""
        files = [p for f in folders for p in (self.folder / f).rglob("*") if p.is_file()]
        return {
            str(p.relative_to(self.folder)): hashlib.sha256(p.read_bytes()).hexdigest()
            for p in sorted(files)
        }

    def edit(self, name: str, old: str, new: str) -> None:
        """Replace text in a copied file."""
        path = self.folder / name
        text = path.read_text()
        assert old in text, f"{name} does not hold {old!r}"
        path.write_text(text.replace(old, new))


def our_rows(name: str) -> list[dict[str, str]]:
    """Return the probes of a table of experiments in config/, as the workflow reads it."""
    models = models_of(Settings(tables=Tables(models=str(ROOT / "config/models.tsv"))))
    return read_experiments(str(ROOT / f"config/{name}.tsv"), known_benchmarks(), models)


def screen(text: str) -> str:
    """Return the output of a failed start, and assert that it fits a screen."""
    return "\n".join(line for line in text.splitlines() if line.strip())

"""One run of all four papers, from sources to the report, shared by all tests of this folder.

It starts with the first test, in a separate worker (tests/conftest.py). Tests must not change the
folder: a test that runs something uses a `copy`.
"""

import shutil
from pathlib import Path

import pytest

from tests.unit.tiny_models import save, tiny
from tests.workflow.project import ROOT, Project

HEADER = "paper\tbenchmark\tprompt\tmethod\tmodel\n"
#: rows of experiments -> beginning of the title of the paper's page
ROWS = {
    "bear world_lite templates sentence own-causal,control-masked": "BEAR",
    "ontoprobe onto_world_lite templates cloze control-masked": "Ontological knowledge",
    "ontoprobe onto_world templates reason control-masked": "Ontological knowledge",
    "ontoprobe onto_world templates choice own-causal": "Ontological knowledge",
    "attributes symmetry templates fill control-masked": "Knowledge-graph attributes",
    "attributes symmetry templates sentence own-causal": "Knowledge-graph attributes",
    "autoprompt auto_world majority,manual,searched predict control-masked": "Searched prompts",
}
#: a random model made in a second; the control model answers questions that need whole words
OWN = "own-causal\tcausal\tfolder:models/gpt2\t\tfloat32\tforced\n"
CONFIGS = ("config/embedded.yaml", "config/mini.yaml")
RUN = "results/embedded"
TARGETS = (f"{RUN}/tables/headline.txt", f"{RUN}/report/index.html")
MOST_JOBS = 24


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Raise the first test's timeout, since it waits for the run, which has a lower limit."""
    for item in items:
        if "tests/mini" in item.path.as_posix():
            item.add_marker(pytest.mark.timeout(600))


class Mini(Project):
    """The project of the run."""

    def run(self, *arguments: str, cores: int = 1, timeout: int = 540, configs=CONFIGS):
        """Run Snakemake, by default up to the report."""
        targets = () if "--" in arguments else ("--", *TARGETS)
        return super().run(*arguments, *targets, cores=cores, timeout=timeout, configs=configs)


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory):
    """Yield the finished run, and check afterwards that its results are unchanged."""
    made = Mini(tmp_path_factory.mktemp("mini"))
    save(tiny("gpt2", double=False), made.folder / "models/gpt2")
    # in the project's own folder: pages tell the command, and with it the files' paths
    shutil.copy(ROOT / "tests/mini/config.yaml", made.folder / "config/mini.yaml")
    models = made.folder / "config/models.tsv"
    models.write_text(models.read_text() + OWN)
    rows = "".join("\t".join(row.split()) + "\n" for row in ROWS)
    (made.folder / "config/experiments.mini.tsv").write_text(HEADER + rows)
    result = made.run()
    assert result.returncode == 0, result.stdout[-4000:]
    (log,) = (made.folder / ".snakemake/log").glob("*.log")
    made.log = log.read_text()
    made.first = made.hashes("results")
    assert len(made.first) > 100
    yield made
    assert made.hashes("results") == made.first, "a test changed the shared run"


@pytest.fixture
def copy(finished: Mini, tmp_path: Path) -> Mini:
    """Return a copy of the finished run that may be changed."""
    shutil.copytree(finished.folder, tmp_path / "copy", symlinks=True)
    again = Mini.again(tmp_path / "copy")
    again.first = finished.first
    return again

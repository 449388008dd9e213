"""The notebooks: nothing is stored in them, and all cells run in order, without a network."""

import json
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

from tests.unit.tiny_models import save, tiny

FOLDER = Path(__file__).parents[2] / "docs/notebooks"
#: notebook -> what stands in for its cell of parameters
GIVEN = {
    "probe": 'MODEL, LIMIT = "llama", 20',
    "compare": 'ONE, OTHER, LIMIT = "llama", "bert", 20',
}
#: runs cells one by one; what stands last in a cell is shown, as a notebook shows it
RUN = """
import ast, json, sys
names = {}
for number, text in enumerate(json.load(sys.stdin)):
    tree = ast.parse(text)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, f"cell {number}", "exec"), names)
    if last:
        value = eval(compile(ast.Expression(last.value), f"cell {number}", "eval"), names)
        shown = getattr(value, "_repr_html_", lambda: None)() or repr(value)
        print(f"cell {number}: {len(shown)} characters")
"""


def read(name: str) -> nbformat.NotebookNode:
    return nbformat.read(FOLDER / f"{name}.ipynb", as_version=4)


def code(name: str) -> list[nbformat.NotebookNode]:
    return [cell for cell in read(name).cells if cell.cell_type == "code"]


@pytest.fixture(scope="module")
def models(tmp_path_factory) -> Path:
    """A folder with two tiny models."""
    folder = tmp_path_factory.mktemp("models")
    for name in ("llama", "bert"):
        save(tiny(name, double=False), folder / name)
    return folder


def test_every_notebook_is_run_here():
    assert {path.stem for path in FOLDER.glob("*.ipynb")} == GIVEN.keys()


@pytest.mark.parametrize("name", GIVEN)
def test_it_is_a_notebook_without_outputs_that_begins_with_a_title(name):
    notebook = read(name)
    nbformat.validate(notebook)
    assert notebook.cells[0].source.startswith("# ")
    for cell in code(name):
        assert not cell.outputs
        assert cell.execution_count is None
    assert [cell.metadata.get("tags") for cell in code(name)].count(["parameters"]) == 1


@pytest.mark.parametrize("name", GIVEN)
def test_all_cells_run_in_order_offline(name, models):
    cells = [
        GIVEN[name] if "parameters" in cell.metadata.get("tags", []) else cell.source
        for cell in code(name)
    ]
    source = str(Path(__file__).parents[2] / "src")
    environment = {"PYTHONPATH": source, "MPLBACKEND": "Agg", "PATH": "/usr/bin:/bin"}
    environment |= {"HF_HUB_OFFLINE": "1", "HF_HOME": str(models), "HOME": str(models)}
    done = subprocess.run(
        [sys.executable, "-c", RUN], input=json.dumps(cells), cwd=models, env=environment,
        capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.count("characters") >= 5

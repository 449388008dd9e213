"""The notebooks hold no outputs, and all cells run in order without a network."""

import ast
import socket
from pathlib import Path

import nbformat
import pytest

from tests.unit.tiny_models import save, tiny

FOLDER = Path(__file__).parents[2] / "docs/notebooks"
#: notebook -> replacement of its cell of parameters
GIVEN = {
    "probe": 'MODEL, LIMIT = "llama", 20',
    "compare": 'ONE, OTHER, LIMIT = "llama", "bert", 20',
}


def read(name: str) -> nbformat.NotebookNode:
    return nbformat.read(FOLDER / f"{name}.ipynb", as_version=4)


def code(name: str) -> list[nbformat.NotebookNode]:
    return [cell for cell in read(name).cells if cell.cell_type == "code"]


@pytest.fixture(scope="module")
def models(tmp_path_factory) -> Path:
    """Return a folder with two tiny models."""
    folder = tmp_path_factory.mktemp("models")
    for name in ("llama", "bert"):
        save(tiny(name, double=False), folder / name)
    return folder


def test_every_notebook_is_run_here():
    assert {path.stem for path in FOLDER.glob("*.ipynb")} == GIVEN.keys()


@pytest.mark.parametrize("name", GIVEN)
def test_a_notebook_begins_with_a_title_and_has_no_outputs(name):
    notebook = read(name)
    nbformat.validate(notebook)
    assert notebook.cells[0].source.startswith("# ")
    for cell in code(name):
        assert not cell.outputs
        assert cell.execution_count is None
    assert [cell.metadata.get("tags") for cell in code(name)].count(["parameters"]) == 1


@pytest.mark.parametrize("name", GIVEN)
def test_all_cells_run_in_order_offline(name, models, monkeypatch):
    def refuse(_, address):
        raise OSError(f"{name} goes online: {address}")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.chdir(models)
    names, shown = {}, []
    for number, cell in enumerate(code(name)):
        is_given = "parameters" in cell.metadata.get("tags", [])
        tree = ast.parse(GIVEN[name] if is_given else cell.source)
        # the last expression of a cell is displayed, as in a notebook
        last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, f"cell {number}", "exec"), names)
        if last:
            value = eval(compile(ast.Expression(last.value), f"cell {number}", "eval"), names)
            shown.append(getattr(value, "_repr_html_", lambda: None)() or repr(value))
    assert len(shown) >= 5
    assert all(shown)

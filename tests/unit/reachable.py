"""What scripts of the workflow can import, by importing it: the reference for `kgprobe.code`.

    python -m tests.unit.reachable '[["workflow/scripts/ask.py"], ["a.py", "kgprobe.b.c"]]'

Every script has a process of its own, in which all import statements of the script run, wherever
they stand, then those of every module of the package that this brought in, and so on. Python finds
the modules; what it then holds in `sys.modules` is printed, a JSON list for each script.
"""

import ast
import importlib
import json
import multiprocessing
import sys
from pathlib import Path

PACKAGE = "kgprobe"
ROOT = Path(__file__).parents[2]


#: libraries of an extra, which a machine may lack
OPTIONAL = ("from pyspark", "from py4j", "import peft")


def statements(path: Path) -> list[str]:
    """All import statements of a file, as text."""
    nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    texts = [ast.unparse(node) for node in nodes if isinstance(node, (ast.Import, ast.ImportFrom))]
    return [text for text in texts if not text.startswith(OPTIONAL)]


def loaded() -> set[str]:
    return {name for name in sys.modules if name.split(".")[0] == PACKAGE}


def imported(script: str, *named: str) -> list[str]:
    """Modules of the package that are there once everything has been imported."""
    assert not loaded()
    for text in statements(ROOT / script):
        exec(text, {})
    for name in named:
        importlib.import_module(name)
    done: set[str] = set()
    while new := loaded() - done:
        done |= new
        for name in new:
            for text in statements(Path(str(sys.modules[name].__file__))):
                exec(text, {})
    return sorted(done)


def load_others() -> None:
    """The libraries, once for all: forked processes have them at once."""
    texts = {t for path in (ROOT / "src" / PACKAGE).rglob("*.py") for t in statements(path)}
    for text in sorted(texts):
        if PACKAGE not in text and "__future__" not in text:
            exec(text, {})


if __name__ == "__main__":
    load_others()
    with multiprocessing.get_context("fork").Pool(1, maxtasksperchild=1) as pool:
        print(json.dumps(pool.starmap(imported, json.loads(sys.argv[1]), chunksize=1)))

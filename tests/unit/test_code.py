"""The hash of a rule's code: what changes it, what does not, and that every rule has one."""

import ast
import hashlib
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kgprobe import code as module
from kgprobe.code import GLUE, Code, CodeError
from kgprobe.files import atomic
from kgprobe.job import progress, sha256

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "kgprobe"
RULES = {path.name: path.read_text() for path in sorted((ROOT / "workflow/rules").glob("*.smk"))}


# -- a small package ------------------------------------------------------------------------------


@pytest.fixture
def small(tmp_path: Path) -> Code:
    """Write a package of six modules and a script that needs four of them."""
    files = {
        "pack/__init__.py": "",
        "pack/room/__init__.py": "",
        "pack/room/near.py": "from pack.room.far import VALUE\n",
        "pack/room/far.py": '"""Far."""\n\nVALUE = 1\n\n\ndef lazy():\n    import pack.late\n',
        "pack/late.py": "LATE = 1\n",
        "pack/named.py": "from pack import late\n",
        "pack/other.py": "OTHER = 1\n",
        "pack/job.py": "from pack import other\n",
        "pack/room/page/page.html": "<p>",
        "script.py": "from pack.job import job\nfrom pack.room import near\n\nnear.VALUE\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return Code(tmp_path / "pack")


def hashed(code: Code, *dynamic: str) -> str:
    """Return the script's hash from the files currently on disk."""
    return Code(code.package, code.kept).hash(code.package.parent / "script.py", *dynamic)


def test_closure_contains_packages_modules_and_local_imports(small):
    result = small.closure(small.package.parent / "script.py")
    assert result == {"", "job", "room", "room/near", "room/far", "late"}
    assert small.closure(small.package.parent / "script.py", "named") == {*result, "named"}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("script.py", "near.VALUE + 1\n"), ("pack/__init__.py", "X = 1\n"),
        ("pack/room/__init__.py", "X = 1\n"), ("pack/room/near.py", "X = 1\n"),
        ("pack/room/far.py", "VALUE = True\n"), ("pack/late.py", "LATE = '1'\n"),
    ],
)  # fmt: skip
def test_changed_code_in_the_closure_changes_the_hash(small, name, text):
    before = hashed(small)
    path = small.package.parent / name
    path.write_text(path.read_text() + text)
    assert hashed(small) != before


@pytest.mark.parametrize("name", ["pack/other.py", "pack/named.py", "pack/job.py"])
def test_unimported_and_glue_modules_do_not_change_the_hash(small, name):
    before = hashed(small)
    (small.package.parent / name).write_text("X = 2\n")
    assert hashed(small) == before


def test_comments_docstrings_and_formatting_do_not_change_the_hash(small):
    path = small.package / "room/far.py"
    text = 'def lazy(a=1):\n    """Lazy."""\n    return [a, "text"]\n'
    path.write_text(text)
    before = hashed(small)
    same = 'def  lazy( a = 1 ) :\n\n    "Other."\n    # why\n    return [a,\n      "text"]  # so\n'
    for other in (same, text.replace('    """Lazy."""\n', "")):
        path.write_text(other)
        assert hashed(small) == before
    for other in (text.replace('"text"', '"other"'), text.replace("a=1", "a=1.0")):
        path.write_text(other)
        assert hashed(small) != before


def test_moved_brackets_or_names_change_the_hash(small):
    path = small.package / "room/far.py"
    result = set()
    texts = ["VALUE = a + b * c", "VALUE = (a + b) * c", "VALUE = [a, b], c", "VALUE = [a, [b], c]"]
    texts += ["VALUE = 'None'", "VALUE = None", "VALUE = b'a'", "VALUE = 'a'", "del VALUE"]
    texts += ["def f():\n    global a", "def f():\n    global b", "VALUE = {**a}", "VALUE = {a: a}"]
    texts += ["if a:\n  if b:\n    c\n  d", "if a:\n  if b:\n    c\n  else:\n    d"]
    for text in texts:
        path.write_text(text + "\n")
        result.add(hashed(small))
    assert len(result) == len(texts)


def test_dependencies_without_imports_are_passed_explicitly(small):
    modules, page = hashed(small, "named"), hashed(small, "room/page")
    assert len({hashed(small), modules, page}) == 3
    (small.package / "named.py").write_text("X = 2\n")
    assert hashed(small, "named") != modules
    (small.package / "room/page/page.html").write_text("<b>")
    assert hashed(small, "room/page") != page
    page = hashed(small, "room/page")
    (small.package / "room/page/new.css").write_text("")
    assert hashed(small, "room/page") != page


def test_mistakes_raise_with_a_suggestion(small):
    with pytest.raises(CodeError, match=r"no module and no folder of data 'room/absent'.* by its"):
        hashed(small, "room/absent")
    path = small.package / "room/far.py"
    path.write_text("from . import near\n")
    with pytest.raises(CodeError, match=r"far\.py: line 1: relative import; write the package's"):
        hashed(small)
    path.write_text("def\n")
    with pytest.raises(CodeError, match=r"far\.py: invalid syntax"):
        hashed(small)


def test_files_are_parsed_once_across_processes(small, tmp_path, monkeypatch):
    small.kept = tmp_path / "kept"
    before = hashed(small)
    assert before == Code(small.package).hash(tmp_path / "script.py")
    parsed = []
    known = module._parse
    monkeypatch.setattr(
        module, "_parse", lambda path, text: parsed.append(path) or known(path, text)
    )
    assert hashed(small) == before
    assert parsed == []
    (small.package / "late.py").write_text("LATE = 2\n")
    assert hashed(small) != before
    assert parsed == [small.package / "late.py"]


# -- the rules ------------------------------------------------------------------------------------


def rules() -> Iterator[tuple[str, str]]:
    """Return (name or location, text) of every rule; an inherited rule has its parent's script."""
    for name, text in RULES.items():
        scripts: dict[str, str] = {}
        blocks = re.split(r"^ *(?:use )?rule\b", text, flags=re.MULTILINE)[1:]
        for number, block in enumerate(blocks):
            if other := re.match(r" (\w+) as (\w+) with:", block):
                if "params:" in block:
                    yield other[2], f"{block}\n{scripts[other[1]]}"
                continue
            own = re.match(r" (\w+):", block)
            if own:
                scripts[own[1]] = block[block.rindex("    script:") :]
            yield (own[1] if own else f"{name} {number}"), block


@pytest.mark.parametrize(("name", "text"), rules(), ids=lambda value: value.split("\n")[0])
def test_every_rule_has_the_hash_of_its_script(name, text):
    (script,) = re.findall(r'script:\s+"\.\./scripts/(\w+)\.py"', text)
    assert re.findall(r'^ +code=codes?\("(\w+)"', text, flags=re.MULTILINE) == [script], name
    assert "shell:" not in text
    assert "run:" not in text


# -- glue -----------------------------------------------------------------------------------------


def test_glue_imports_nothing_that_affects_results():
    """Glue imports are not hashed: only glue modules of the package, and no library but tqdm."""
    files = [path for name in GLUE for path in PACKAGE.glob(f"{name}.py")]
    files += [path for name in GLUE for path in PACKAGE.glob(f"{name}/*.py")]
    assert len(files) > len(GLUE)
    for path in files:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom):
                modules = [str(node.module)]
            elif isinstance(node, ast.Import):
                modules = [alias.name for alias in node.names]
            else:
                continue
            for one in modules:
                first = one.split(".")[0]
                own = first == "kgprobe" and one.split(".")[1] in GLUE
                assert own or first == "tqdm" or first in sys.stdlib_module_names, (path, one)
                assert first not in {"random", "math", "statistics", "decimal"}, (path, one)


def test_glue_returns_its_input_unchanged(tmp_path):
    given = [3, 1, 2, None, "x"]
    assert list(progress(given)) == given
    with atomic(tmp_path / "a") as temporary:
        temporary.write_bytes(b"\x00\xff\r\n")
    assert (tmp_path / "a").read_bytes() == b"\x00\xff\r\n"
    assert sha256(tmp_path / "a") == hashlib.sha256(b"\x00\xff\r\n").hexdigest()

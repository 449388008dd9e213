"""The hash of a rule's code: what changes it, what does not, and that every rule has it."""

import ast
import hashlib
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import kgprobe.settings
from kgprobe import code as module
from kgprobe.code import GLUE, Code, CodeError
from kgprobe.files import atomic
from kgprobe.job import progress, sha256

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "kgprobe"
SCRIPTS = ROOT / "workflow" / "scripts"
RULES = {path.name: path.read_text() for path in sorted((ROOT / "workflow/rules").glob("*.smk"))}


# -- a small package ------------------------------------------------------------------------------


@pytest.fixture
def small(tmp_path: Path) -> Code:
    """A package of six modules and a script that needs four of them."""
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
    """The script's hash, from what lies on disk now."""
    return Code(code.package, code.kept).hash(code.package.parent / "script.py", *dynamic)


def test_the_closure_holds_packages_modules_and_imports_inside_functions(small):
    found = small.closure(small.package.parent / "script.py")
    assert found == {"", "job", "room", "room/near", "room/far", "late"}
    assert small.closure(small.package.parent / "script.py", "named") == {*found, "named"}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("script.py", "near.VALUE + 1\n"),
        ("pack/__init__.py", "X = 1\n"),
        ("pack/room/__init__.py", "X = 1\n"),
        ("pack/room/near.py", "X = 1\n"),
        ("pack/room/far.py", "VALUE = True\n"),
        ("pack/late.py", "LATE = '1'\n"),
    ],
)
def test_a_statement_of_the_closure_changes_the_hash(small, name, text):
    before = hashed(small)
    path = small.package.parent / name
    path.write_text(path.read_text() + text)
    assert hashed(small) != before


@pytest.mark.parametrize("name", ["pack/other.py", "pack/named.py", "pack/job.py"])
def test_what_is_not_imported_and_what_is_glue_does_not(small, name):
    before = hashed(small)
    (small.package.parent / name).write_text("X = 2\n")
    assert hashed(small) == before


def test_comments_docstrings_and_formatting_do_not_either(small):
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


def test_a_change_that_moves_brackets_or_names_is_a_change(small):
    path = small.package / "room/far.py"
    found = set()
    texts = ["VALUE = a + b * c", "VALUE = (a + b) * c", "VALUE = [a, b], c", "VALUE = [a, [b], c]"]
    texts += ["VALUE = 'None'", "VALUE = None", "VALUE = b'a'", "VALUE = 'a'", "del VALUE"]
    texts += ["def f():\n    global a", "def f():\n    global b", "VALUE = {**a}", "VALUE = {a: a}"]
    texts += ["if a:\n  if b:\n    c\n  d", "if a:\n  if b:\n    c\n  else:\n    d"]
    for text in texts:
        path.write_text(text + "\n")
        found.add(hashed(small))
    assert len(found) == len(texts)


def test_what_no_import_shows_is_passed_in(small):
    modules, page = hashed(small, "named"), hashed(small, "room/page")
    assert len({hashed(small), modules, page}) == 3
    (small.package / "named.py").write_text("X = 2\n")
    assert hashed(small, "named") != modules
    (small.package / "room/page/page.html").write_text("<b>")
    assert hashed(small, "room/page") != page
    page = hashed(small, "room/page")
    (small.package / "room/page/new.css").write_text("")
    assert hashed(small, "room/page") != page


def test_mistakes_are_told_with_what_would_be_right(small):
    with pytest.raises(CodeError, match=r"no module and no folder of data 'room/absent'.* by its"):
        hashed(small, "room/absent")
    path = small.package / "room/far.py"
    path.write_text("from . import near\n")
    with pytest.raises(CodeError, match=r"far\.py: line 1: relative import; write the package's"):
        hashed(small)
    path.write_text("def\n")
    with pytest.raises(CodeError, match=r"far\.py: invalid syntax"):
        hashed(small)


def test_a_file_is_parsed_once_by_all_processes(small, tmp_path, monkeypatch):
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
    """(name or place, text) of every rule; one that is another's with parameters of its own has
    that one's script."""
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


METHODS = sorted(
    f"probes/jobs/methods/{path.stem}"
    for path in (PACKAGE / "probes/jobs/methods").glob("[a-z]*.py")
)


def calls() -> list[tuple[str, ...]]:
    """(script, what is passed beside it) wherever a rule calls `code`, wildcards filled in."""
    texts = {call for _, text in rules() for call in re.findall(r"\bcode=code(\([^)]*\))", text)}
    # one rule a model and stage: its parts name the methods
    found: list[tuple[str, ...]] = [("ask", name) for name in METHODS]
    for text in sorted(texts):
        script, *given = ast.literal_eval(f"({text[1:-1]},)")
        every = kgprobe.settings.ATTRIBUTES
        dynamic = [n.replace("*", a) for n in given for a in (every if "*" in n else [""])]
        wild = "{attribute}" in text
        for attribute in every if wild else [""]:
            found.append((script, *(name.format(attribute=attribute) for name in dynamic)))
    assert len(found) > 50
    return found


CALLS = calls()


@pytest.mark.parametrize(("name", "text"), rules(), ids=lambda value: value.split("\n")[0])
def test_every_rule_has_the_hash_of_its_own_script(name, text):
    (script,) = re.findall(r'script:\s+"\.\./scripts/(\w+)\.py"', text)
    assert re.findall(r'^ +code=codes?\("(\w+)"', text, flags=re.MULTILINE) == [script], name
    assert "shell:" not in text
    assert "run:" not in text


@pytest.fixture(scope="module")
def imported() -> dict[tuple[str, ...], set[str]]:
    """Files of the package that a call's script can import, found by importing."""
    asked = []
    for script, *dynamic in CALLS:
        names = [
            f"kgprobe.{n.replace('/', '.')}" for n in dynamic if (PACKAGE / f"{n}.py").exists()
        ]
        asked.append([f"workflow/scripts/{script}.py", *names])
    command = [sys.executable, "-m", "tests.unit.reachable", json.dumps(asked)]
    told = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    found = {}
    for call, names in zip(CALLS, json.loads(told.splitlines()[-1]), strict=True):
        files = [PACKAGE.parent / name.replace(".", "/") for name in names]
        paths = [f / "__init__.py" if f.is_dir() else f.with_suffix(".py") for f in files]
        found[call] = {path.relative_to(PACKAGE).as_posix() for path in paths}
        assert found[call] >= {"__init__.py", "job.py"}, call
    return found


class Copy:
    """A copy of the package that can be edited, and the hashes of all rules on it."""

    def __init__(self, folder: Path) -> None:
        self.package, self.kept = folder / "kgprobe", folder / "kept"
        shutil.copytree(PACKAGE, self.package, ignore=shutil.ignore_patterns("__pycache__"))
        self.before = self.hashes()

    def hashes(self) -> dict[tuple[str, ...], str]:
        code = Code(self.package, self.kept)
        return {(name, *more): code.hash(SCRIPTS / f"{name}.py", *more) for name, *more in CALLS}

    def changed(self, name: str, add: bytes) -> set[tuple[str, ...]]:
        """The calls whose hash another end of one file changes."""
        path = self.package / name
        content = path.read_bytes()
        path.write_bytes(content + add)
        after = self.hashes()
        path.write_bytes(content)
        return {call for call in CALLS if after[call] != self.before[call]}


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Copy:
    return Copy(tmp_path_factory.mktemp("package"))


@pytest.mark.nightly(
    gate=[
        "unit/test_code.py::test_a_statement_of_the_closure_changes_the_hash",
        "mini/test_run.py::test_an_edit_of_the_package_reruns_what_it_can_change",
    ]
)
def test_each_module_changes_exactly_the_rules_that_can_import_it(imported, copy):
    glue = {f"{name}.py" for name in GLUE}
    names = sorted(p.relative_to(PACKAGE).as_posix() for p in PACKAGE.rglob("*.py"))
    assert len(set().union(*imported.values())) > 200
    for name in names:
        expected = {call for call in CALLS if name in imported[call] and name not in glue}
        assert copy.changed(name, b"\nCHANGED = 1\n") == expected, name


def test_a_changed_comment_or_docstring_changes_no_rule(copy):
    head = re.compile(r'(?m)^(\s*(?:def|class) [^\n]*:\n\s*r?)"""')
    edited = 0
    contents = {path: path.read_text() for path in copy.package.rglob("*.py")}
    for path, text in contents.items():
        other = head.sub(r'\1"""Changed. ', text)
        if other.startswith('"""'):
            other = '"""Changed. ' + other[3:]
        edited += other != text
        path.write_text(f"# changed\n{other}\n# changed\n")
    after = copy.hashes()
    for path, text in contents.items():
        path.write_text(text)
    assert edited > 200
    assert after == copy.before


# -- glue -----------------------------------------------------------------------------------------


def test_glue_imports_nothing_that_could_make_a_number():
    """What glue imports is in no hash: nothing of the package but glue, no library but tqdm."""
    for name in GLUE:
        for node in ast.walk(ast.parse((PACKAGE / f"{name}.py").read_text())):
            if isinstance(node, ast.ImportFrom):
                modules = [str(node.module)]
            elif isinstance(node, ast.Import):
                modules = [alias.name for alias in node.names]
            else:
                continue
            for one in modules:
                first = one.split(".")[0]
                own = one in {f"kgprobe.{glue}" for glue in GLUE}
                assert own or first == "tqdm" or first in sys.stdlib_module_names, (name, one)
                assert first not in {"random", "math", "statistics", "decimal"}, (name, one)


def test_glue_gives_back_what_it_was_given(tmp_path):
    given = [3, 1, 2, None, "x"]
    assert list(progress(given)) == given
    with atomic(tmp_path / "a") as temporary:
        temporary.write_bytes(b"\x00\xff\r\n")
    assert (tmp_path / "a").read_bytes() == b"\x00\xff\r\n"
    assert sha256(tmp_path / "a") == hashlib.sha256(b"\x00\xff\r\n").hexdigest()

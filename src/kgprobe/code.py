"""What a rule depends on, computed: one hash of all code of the package that its script can run.

    code = Code(Path("src/kgprobe"))
    code.hash(Path("workflow/scripts/ask.py"))
    code.hash(Path("workflow/scripts/build_attributes.py"), "benchmarks/attributes/symmetry")

The hash is a parameter of the rule, so that Snakemake reruns what an edit can change and nothing
else. It covers the syntax trees of the script and of its import closure inside the package: every
`import` that stands anywhere in them, also inside functions, and the `__init__` of every package on
the way. Comments, docstrings and formatting are not part of it, so they rerun nothing.
"""

import ast
import hashlib
import json
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import filterfalse
from pathlib import Path

from kgprobe.files import atomic

#: Logs, progress, records, safe writing, what a signal does, and the types of settings, whose
#: values a rule hands over complete: they change no number, so an edit of them reruns nothing.
#: tests/unit/test_code.py says what such a module may not do.
GLUE = ("job", "files", "settings", "stops")


class CodeError(ValueError):
    """A rule names code that the package does not have, or a file's imports cannot be read."""


@dataclass
class SourceFile:
    """A file of Python: its tree as lines of text, and every dotted name that it may import."""

    lines: list[str] = field(default_factory=list)
    imports: list[str] = field(default_factory=list)

    def read(self, node: ast.AST) -> None:
        """Take in a node and what is below it: its kind, then its fields in order.

        Lines and columns are no fields. A string that stands alone as a statement is a docstring.
        `ast.dump` and `ast.walk` tell the same, in thrice the time.
        """
        self.lines.append(type(node).__name__)
        if isinstance(node, ast.Import):
            self.imports += [name.name for name in node.names]
        elif isinstance(node, ast.ImportFrom):
            if node.level:
                raise CodeError(f"line {node.lineno}: relative import; write the package's name")
            self.imports += [f"{node.module}.{name.name}" for name in node.names]
        for name in node._fields:
            value = getattr(node, name, None)
            if isinstance(value, list):
                self.lines.append("[")
                for one in value:
                    if not isinstance(one, ast.AST):
                        self.lines.append(repr(one))
                    elif not _is_docstring(one):
                        self.read(one)
                self.lines.append("]")
            elif isinstance(value, ast.AST):
                self.read(value)
            else:
                self.lines.append(repr(value))


def _is_docstring(node: ast.AST) -> bool:
    if not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)):
        return False
    return isinstance(node.value.value, str)


def _is_glue(name: str) -> bool:
    return name.partition("/")[0] in GLUE


class Code:
    """Hashes of scripts over a package; every file is read once, on first use.

    Modules are named by their path inside the package, without ending, such as `probes/ranked`;
    packages by their folder, the whole package by "". With `kept`, a folder, no file is parsed
    again by other processes either: what was found lies there by content.
    """

    def __init__(self, package: Path, kept: Path | None = None) -> None:
        self.package, self.kept = package, kept
        self.files = {_name(path.relative_to(package)): path for path in package.rglob("*.py")}
        self._hashes: dict[tuple[Path, tuple[str, ...]], str] = {}
        self._sources: dict[Path, tuple[str, list[str]]] = {}

    def hash(self, script: Path, *dynamic: str) -> str:
        """sha256 of all that the script can run, glue left out.

        `dynamic` names what no import statement shows: modules that are imported by name, and
        folders of data that a module reads (every file in them counts, byte by byte). Raises
        CodeError for a name that the package does not have, and for a file that is no Python.
        """
        key = script, dynamic
        if key not in self._hashes:
            self._hashes[key] = self._hash(script, dynamic)
        return self._hashes[key]

    def _hash(self, script: Path, dynamic: tuple[str, ...]) -> str:
        modules = [name for name in dynamic if name in self.files]
        parts = {"script": self._source(script)[0]}
        for name in filterfalse(_is_glue, self.closure(script, *modules)):
            parts[f"module {name}"] = self._source(self.files[name])[0]
        for name in set(dynamic) - set(modules):
            for path in self._data(name):
                file = path.relative_to(self.package).as_posix()
                parts[f"data {file}"] = _sha256(path.read_bytes())
        lines = [f"{part} {digest}\n" for part, digest in sorted(parts.items())]
        return _sha256("".join(lines).encode())

    def closure(self, script: Path, *modules: str) -> set[str]:
        """The modules that are imported once all of the script's imports and `modules` have been.

        What glue imports is glue as well, so it is not followed.
        """
        imported: set[str] = set()
        named = [".".join([self.package.name, *name.split("/")]) for name in modules]
        waiting = [*self._reached(named), *self._source(script)[1]]
        while waiting:
            name = waiting.pop()
            if name not in imported:
                imported.add(name)
                waiting += [] if _is_glue(name) else self._source(self.files[name])[1]
        return imported

    def _source(self, path: Path) -> tuple[str, list[str]]:
        """(sha256 of a file's tree, the modules that its imports run), read once."""
        if path not in self._sources:
            content = path.read_bytes()
            place = self.kept / f"{_sha256(READER + content)}.json" if self.kept else None
            if place and place.is_file():
                digest, imports = json.loads(place.read_text(encoding="utf-8"))
            else:
                digest, imports = _parse(path, content)
                if place:
                    with atomic(place) as temporary:
                        temporary.write_text(json.dumps([digest, imports]), encoding="utf-8")
            self._sources[path] = digest, self._reached(imports)
        return self._sources[path]

    def _reached(self, imports: Iterable[str]) -> list[str]:
        """Modules of the package that importing dotted names runs, and the packages on the way.

        The last part of a dotted name may be a name inside a module.
        """
        names: dict[str, None] = {}
        for dotted in imports:
            first, *rest = dotted.split(".")
            if first == self.package.name:
                names |= dict.fromkeys("/".join(rest[:n]) for n in range(len(rest) + 1))
        return [name for name in names if name in self.files]

    def _data(self, name: str) -> list[Path]:
        """The files of a folder of the package that holds no modules."""
        paths = sorted(path for path in (self.package / name).rglob("*") if path.is_file())
        if not paths or any(path.suffix == ".py" for path in paths):
            raise CodeError(
                f"{self.package} has no module and no folder of data {name!r}: name it by its path "
                "in the package, without .py, such as probes/ranked"
            )
        return paths


def _name(path: Path) -> str:
    """What a file's module is called: probes/ranked.py -> probes/ranked, probes/__init__.py ->
    probes."""
    parts = path.with_suffix("").parts
    return "/".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _parse(path: Path, content: bytes) -> tuple[str, list[str]]:
    """(sha256 of a file's tree, dotted names that its imports may stand for)."""
    source = SourceFile()
    try:
        source.read(ast.parse(content))
    except (CodeError, SyntaxError, ValueError) as problem:
        raise CodeError(f"{path}: {problem}") from None
    return _sha256("\n".join(source.lines).encode()), list(dict.fromkeys(source.imports))


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


#: What is kept of a file holds for this version of Python and of this module only.
READER = f"{sys.version_info[:2]} {_sha256(Path(__file__).read_bytes())} ".encode()

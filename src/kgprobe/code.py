"""Hash the code that a rule depends on: everything in the package that its script can run.

    code = Code(Path("src/kgprobe"))
    code.hash(Path("workflow/scripts/ask.py"))
    code.hash(Path("workflow/scripts/build_attributes.py"), "benchmarks/attributes/symmetry")

The hash is a parameter of the rule, so that Snakemake reruns only the jobs that an edit can change.
It covers the syntax trees of the script and of its import closure inside the package: every
`import` anywhere in them, also inside functions, and the `__init__` of every parent package.
Comments, docstrings and formatting are not part of it, so changing them reruns nothing.
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

#: Modules for logs, progress, records, atomic writes, signals and the types of settings (rules pass
#: the values of settings completely): they change no result, so editing them reruns nothing.
#: tests/unit/test_code.py checks what such a module may not do.
GLUE = ("job", "files", "settings", "stops")


class CodeError(ValueError):
    """A rule names code that is not in the package, or the imports of a file cannot be parsed."""


@dataclass
class SourceFile:
    """A Python file: its syntax tree as lines of text, and every dotted name it may import."""

    lines: list[str] = field(default_factory=list)
    imports: list[str] = field(default_factory=list)

    def read(self, node: ast.AST) -> None:
        """Add a node and its descendants: the node's type, then its fields in order.

        Line and column numbers are not included. A string that is a statement of its own is taken
        as a docstring. `ast.dump` and `ast.walk` would give the same in three times the time.
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
    """Code hashes of scripts that use a package; every file is read once, on first use.

    Modules are named by their path inside the package, without suffix, such as `probes/ranked`;
    packages by their folder, the whole package by "". `kept` is a folder in which parsed results
    are cached by file content, so that other processes need not parse the files again.
    """

    def __init__(self, package: Path, kept: Path | None = None) -> None:
        self.package, self.kept = package, kept
        self.files = {_name(path.relative_to(package)): path for path in package.rglob("*.py")}
        self._hashes: dict[tuple[Path, tuple[str, ...]], str] = {}
        self._sources: dict[Path, tuple[str, list[str]]] = {}

    def hash(self, script: Path, *dynamic: str) -> str:
        """Return the sha256 of all code that the script can run, without GLUE modules.

        `dynamic` names code that no import statement shows: modules that are imported by name, and
        folders of data that a module reads (every file in them counts, byte by byte). Raises
        CodeError for a name that is not in the package, and for a file that is not valid Python.
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
        """Return the modules that are imported by the script and `modules`, directly or indirectly.

        Imports of GLUE modules are not followed.
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
        """Return (sha256 of a file's syntax tree, modules that its imports run); cached."""
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
        """Return the modules, with their parent packages, that importing these dotted names runs.

        The last part of a dotted name may be a name inside a module.
        """
        names: dict[str, None] = {}
        for dotted in imports:
            first, *rest = dotted.split(".")
            if first == self.package.name:
                names |= dict.fromkeys("/".join(rest[:n]) for n in range(len(rest) + 1))
        return [name for name in names if name in self.files]

    def _data(self, name: str) -> list[Path]:
        """Return the files of a data folder of the package. Raises CodeError if it has modules."""
        paths = sorted(path for path in (self.package / name).rglob("*") if path.is_file())
        if not paths or any(path.suffix == ".py" for path in paths):
            raise CodeError(
                f"{self.package} has no module and no folder of data {name!r}: name it by its path "
                "in the package, without .py, such as probes/ranked"
            )
        return paths


def _name(path: Path) -> str:
    """Return a file's module name: probes/ranked.py -> probes/ranked, probes/__init__.py ->
    probes."""
    parts = path.with_suffix("").parts
    return "/".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _parse(path: Path, content: bytes) -> tuple[str, list[str]]:
    """Return (sha256 of a file's syntax tree, dotted names that its imports may refer to)."""
    source = SourceFile()
    try:
        source.read(ast.parse(content))
    except (CodeError, SyntaxError, ValueError) as problem:
        raise CodeError(f"{path}: {problem}") from None
    return _sha256("\n".join(source.lines).encode()), list(dict.fromkeys(source.imports))


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


#: Prefix of cache keys: cached results are valid for this Python version and this module only.
READER = f"{sys.version_info[:2]} {_sha256(Path(__file__).read_bytes())} ".encode()

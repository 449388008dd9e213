"""Small changes of a module's syntax tree, each of which a test should detect.

Mutated are operators (comparison, arithmetic, bits, boolean), a dropped `not`, numbers plus and
minus one, negated booleans, smallest and largest, first and last, the kinds of a join. Not mutated
are type annotations, decorators, zip's check of lengths, the size inferred by `reshape` (any
negative number is equivalent), the text of messages (f-strings, raised or logged texts), and batch
sizes (`PORTIONS`), which bound memory and do not affect results.
"""

import ast
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

#: operator -> replacement
OPERATORS: dict[type[ast.AST], tuple[type[ast.AST], ...]] = {
    ast.Lt: (ast.LtE, ast.GtE), ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE), ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,), ast.NotEq: (ast.Eq,), ast.Is: (ast.IsNot,), ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,), ast.NotIn: (ast.In,), ast.And: (ast.Or,), ast.Or: (ast.And,),
    ast.Add: (ast.Sub,), ast.Sub: (ast.Add,), ast.Mult: (ast.Div,), ast.Div: (ast.Mult,),
    ast.FloorDiv: (ast.Mult,), ast.Mod: (ast.FloorDiv,), ast.MatMult: (ast.Mult,),
    ast.LShift: (ast.RShift,), ast.RShift: (ast.LShift,), ast.BitAnd: (ast.BitOr,),
    ast.BitOr: (ast.BitAnd,), ast.BitXor: (ast.BitOr,),
}  # fmt: skip
SIGNS = {
    ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=",
    ast.Is: "is", ast.IsNot: "is not", ast.In: "in", ast.NotIn: "not in", ast.And: "and",
    ast.Or: "or", ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//",
    ast.Mod: "%", ast.MatMult: "@", ast.LShift: "<<", ast.RShift: ">>", ast.BitAnd: "&",
    ast.BitOr: "|", ast.BitXor: "^",
}  # fmt: skip
#: names of functions and methods
NAMES = {
    "min": "max", "minimum": "maximum", "min_horizontal": "max_horizontal", "any": "all",
    "any_horizontal": "all_horizontal", "first": "last", "head": "tail", "top_k": "bottom_k",
}  # fmt: skip
NAMES |= {new: old for old, new in NAMES.items()}
#: keyword -> its words
WORDS = {
    "how": {"semi": "anti", "anti": "semi", "left": "inner", "inner": "left", "full": "inner"},
    "side": {"left": "right", "right": "left"},
    "keep": {"first": "last", "last": "first"},
}
#: names of batch sizes; tests with small batches check that these do not change results
PORTIONS = {"PART", "ROWS", "chunk"}


@dataclass(frozen=True)
class Mutant:
    """One change: location (function and line text, since line numbers move) and content."""

    file: str
    function: str
    line: str
    change: str
    #: lines of which one runs whenever the change matters
    lines: range
    #: makes the change in the tree and returns a function that undoes it
    make: Callable[[], Callable[[], None]]
    #: the changed node of the tree
    node: ast.expr | ast.stmt

    @property
    def key(self) -> tuple[str, str, str, str]:
        """Return a key that identifies the mutant independently of its line number."""
        return self.file, self.function, self.line, self.change

    @contextmanager
    def made(self) -> Iterator[None]:
        """Yield the tree with the change in it."""
        undo = self.make()
        try:
            yield
        finally:
            undo()


def mutants(path: Path, name: str) -> tuple[ast.Module, list[Mutant]]:
    """Return the tree of a module and its mutants, which all work on that tree."""
    text = path.read_text()
    tree = ast.parse(text)
    found: list[Mutant] = []
    seen: Counter[tuple[str, str, str, str]] = Counter()
    source = text.splitlines()
    for node, function, lines in _places(tree, "", range(1, len(source) + 1)):
        for change, holder, key, new in _changes(node):
            where = (name, function, source[node.lineno - 1].strip(), change)
            seen[where] += 1
            numbered = change if seen[where] == 1 else f"{change}, no. {seen[where]}"
            found.append(Mutant(*where[:3], numbered, lines, _setter(holder, key, new), node))
    return tree, found


def _setter(holder: Any, key: str | int, new: Any) -> Callable[[], Callable[[], None]]:
    get, put = (list.__getitem__, list.__setitem__) if isinstance(key, int) else (getattr, setattr)

    def make() -> Callable[[], None]:
        old = get(holder, key)
        put(holder, key, new)
        return lambda: put(holder, key, old)

    return make


def _places(
    node: ast.AST, function: str, lines: range
) -> Iterator[tuple[ast.expr | ast.stmt, str, range]]:
    """Yield every node to change, with the name of its function and the lines of its statement."""
    if _silent(node):
        return
    if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
        function = f"{function}.{node.name}".lstrip(".")
    if isinstance(node, ast.stmt):
        last = node.end_lineno or node.lineno
        inner = getattr(node, "body", None)
        # a default is part of a function, so whoever runs the function runs it
        if inner and not isinstance(node, ast.FunctionDef):
            last = max(node.lineno, inner[0].lineno - 1)
        lines = range(node.lineno, last + 1)
    if isinstance(node, (ast.expr, ast.stmt)):
        yield node, function, lines
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list"):
            continue
        call = getattr(node, "func", None)
        if name == "keywords" and getattr(call, "id", "") == "zip":
            continue
        reshapes = name == "args" and getattr(call, "attr", "") == "reshape"
        for child in value if isinstance(value, list) else [value]:
            if reshapes and isinstance(child, ast.UnaryOp):
                continue
            if isinstance(child, ast.AST):
                yield from _places(child, function, lines)


def _silent(node: ast.AST) -> bool:
    """Return whether a node only makes text for people, or sets a batch size."""
    call = node.func if isinstance(node, ast.Call) else None
    logs = isinstance(call, ast.Attribute) and getattr(call.value, "id", "") == "log"
    portion = isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") in PORTIONS
    return logs or portion or isinstance(node, (ast.JoinedStr, ast.Raise))


def _changes(node: ast.AST) -> Iterator[tuple[str, Any, str | int, Any]]:
    """Yield (description, holder, key, new value) of every change of a node itself."""
    if isinstance(node, ast.Compare):
        for i, op in enumerate(node.ops):
            yield from _operators(op, node.ops, i)
    elif isinstance(node, (ast.BinOp, ast.AugAssign, ast.BoolOp)):
        yield from _operators(node.op, node, "op")
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.Not, ast.Invert)):
        sign = "not" if isinstance(node.op, ast.Not) else "~"
        twice = ast.copy_location(ast.UnaryOp(node.op, node.operand), node)
        yield f"{sign} dropped", node, "operand", twice
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        yield "- dropped", node, "op", ast.UAdd()
    elif isinstance(node, ast.Constant):
        yield from _constants(node)
    elif isinstance(node, ast.Name) and node.id in ("min", "max", "any", "all"):
        yield f"{node.id} to {NAMES[node.id]}", node, "id", NAMES[node.id]
    elif isinstance(node, ast.Attribute) and node.attr in NAMES:
        yield f"{node.attr} to {NAMES[node.attr]}", node, "attr", NAMES[node.attr]
    elif isinstance(node, ast.Call):
        for keyword in node.keywords:
            word = getattr(keyword.value, "value", None)
            new = WORDS.get(keyword.arg or "", {}).get(word) if isinstance(word, str) else None
            if new:
                yield f"{keyword.arg}={word} to {new}", keyword.value, "value", new


def _operators(
    op: ast.AST, holder: Any, key: str | int
) -> Iterator[tuple[str, Any, str | int, Any]]:
    for new in OPERATORS.get(type(op), ()):
        yield f"{SIGNS[type(op)]} to {SIGNS[new]}", holder, key, new()


def _constants(node: ast.Constant) -> Iterator[tuple[str, Any, str | int, Any]]:
    value = node.value
    if isinstance(value, bool):
        yield f"{value} to {not value}", node, "value", not value
    elif isinstance(value, int) or (isinstance(value, float) and value.is_integer()):
        for new in (value + 1, value - 1):
            yield f"{value} to {new}", node, "value", new
    elif isinstance(value, float):
        yield f"{value} to {1.1 * value:.4g}", node, "value", 1.1 * value

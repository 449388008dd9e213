"""The changes that `make mutate` makes, and the list of those that no test notices."""

import ast
import importlib
from pathlib import Path

import pytest

from kgprobe.metrics import intervals, ranking
from tests.mutation import survivors
from tests.mutation.__main__ import GROUPS, ROOT, SOURCE
from tests.mutation.changes import mutants
from tests.mutation.trial import install

CODE = '''
LIMIT: int = 3

def first_of(values, n: int | None = None, *, turn=True):
    """Not 4 < 5."""
    if n is not None and not n < LIMIT:
        raise ValueError(f"{n + 1} is too many" + str(n - 1))
    return sorted(values, reverse=turn)[: min(n or 1, 2)]
'''
CHANGES = {
    ("", "LIMIT: int = 3", "3 to 4"),
    ("", "LIMIT: int = 3", "3 to 2"),
    ("first_of", "def first_of(values, n: int | None = None, *, turn=True):", "True to False"),
    ("first_of", "if n is not None and not n < LIMIT:", "and to or"),
    ("first_of", "if n is not None and not n < LIMIT:", "is not to is"),
    ("first_of", "if n is not None and not n < LIMIT:", "not dropped"),
    ("first_of", "if n is not None and not n < LIMIT:", "< to <="),
    ("first_of", "if n is not None and not n < LIMIT:", "< to >="),
    *(
        ("first_of", "return sorted(values, reverse=turn)[: min(n or 1, 2)]", change)
        for change in ("min to max", "or to and", "1 to 2", "1 to 0", "2 to 3", "2 to 1")
    ),
}


def made(path: Path):
    """change -> the code with it."""
    tree, every = mutants(path, "code.py")
    found = {}
    for mutant in every:
        with mutant.made():
            found[mutant.key[1:]] = ast.unparse(tree)
    assert ast.unparse(tree) == ast.unparse(ast.parse(path.read_text()))
    return found


def test_each_change_is_one_change_and_is_undone(tmp_path):
    path = tmp_path / "code.py"
    path.write_text(CODE)
    found = made(path)
    assert set(found) == CHANGES
    plain = ast.unparse(ast.parse(CODE))
    assert len({*found.values(), plain}) == len(CHANGES) + 1
    assert (
        "not not n < LIMIT"
        in found["first_of", "if n is not None and not n < LIMIT:", "not dropped"]
    )


def test_a_change_takes_effect_wherever_the_function_was_imported():
    path = Path(str(ranking.__file__))
    tree, every = mutants(path, "ranking.py")
    (worse,) = (m for m in every if m.function == "hit_at" and m.change == "/ to *")
    held = ranking.hit_at
    one, three = ranking.np.array([1]), ranking.np.array([3])
    try:
        with worse.made():
            install("kgprobe.metrics.ranking", tree)
        assert held(1, one, three)[0] == 3
    finally:
        install("kgprobe.metrics.ranking", ast.parse(path.read_text()))
    assert held(1, one, three)[0] == pytest.approx(1 / 3)


def test_what_is_listed_is_made_and_has_a_reason():
    """A survivor whose line is gone, or that has no reason, does not stay in the list."""
    listed = survivors.read(ROOT / "tests" / "mutants.tsv")
    every = set()
    for modules, tests in GROUPS.values():
        for name in modules:
            every |= {m.key for m in mutants(SOURCE / f"{name}.py", f"{name}.py")[1]}
            importlib.import_module("kgprobe." + name.replace("/", "."))
        assert all((ROOT / "tests" / "unit" / f"{test}.py").is_file() for test in tests)
    assert listed
    assert set(listed) <= every
    assert len(listed) < 0.2 * len(every)
    assert intervals.__name__ in {"kgprobe." + m.replace("/", ".") for m in GROUPS["metrics"][0]}


def test_a_list_without_a_reason_is_refused(tmp_path):
    path = tmp_path / "mutants.tsv"
    header = "\t".join(survivors.COLUMNS)
    path.write_text(f"{header}\na.py\tf\tx < 1\t< to <=\t \n")
    with pytest.raises(ValueError, match="rows without reason"):
        survivors.read(path)
    path.write_text(f"{header}\n" + 2 * "a.py\tf\tx < 1\t< to <=\tequal: y\n")
    with pytest.raises(ValueError, match="twice: 1"):
        survivors.read(path)


@pytest.mark.parametrize(
    ("outcome", "code"),
    [
        ({"< to <=": "", "< to >=": "a test"}, 0),
        ({"< to <=": "", "< to >=": ""}, 1),
        ({"< to <=": "a test", "< to >=": "a test"}, 1),
    ],
)
def test_a_run_is_held_against_the_list(tmp_path, outcome, code, capsys):
    source, path = tmp_path / "a.py", tmp_path / "mutants.tsv"
    source.write_text("def f(x):\n    return x < y\n")
    _, every = mutants(source, "a.py")
    header = "\t".join(survivors.COLUMNS)
    path.write_text(f"{header}\na.py\tf\treturn x < y\t< to <=\tequal: x is never y\n")
    told = {"\t".join(m.key): outcome[m.change] for m in every}
    assert survivors.report(path, every, told, False) == code
    assert "2 mutants" in capsys.readouterr().out

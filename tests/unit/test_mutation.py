"""The mutants of `make mutate`, and the list of survivors."""

import ast
import importlib
import sys
from pathlib import Path

import pytest

from kgprobe.metrics import intervals, ranking
from tests.mutation import survivors
from tests.mutation.__main__ import GROUPS, ROOT, SOURCE
from tests.mutation.changes import mutants
from tests.mutation.drawn import changed, marked, report
from tests.mutation.trial import install


def test_a_change_takes_effect_wherever_the_function_was_imported():
    path = Path(str(ranking.__file__))
    tree, every = mutants(path, "ranking.py")
    *_, worse = (m for m in every if m.function == "hit_at" and m.change == "/ to *")
    held = ranking.hit_at
    one, three = ranking.np.array([1]), ranking.np.array([3])
    try:
        with worse.made():
            install("kgprobe.metrics.ranking", tree)
        assert held(1, one, three)[0] == 3
    finally:
        install("kgprobe.metrics.ranking", ast.parse(path.read_text()))
    assert held(1, one, three)[0] == pytest.approx(1 / 3)


def test_listed_mutants_exist_and_have_a_reason():
    """A survivor whose line is gone, or that has no reason, must be removed from the list."""
    listed = survivors.read(ROOT / "tests" / "mutants.tsv")
    every = set()
    # a sample from the whole package may list others
    for file in {key[0] for key in listed}:
        every |= {m.key for m in mutants(SOURCE / file, file)[1]}
    assert set(listed) <= every
    every = set()
    for modules, tests in GROUPS.values():
        for name in modules:
            every |= {m.key for m in mutants(SOURCE / f"{name}.py", f"{name}.py")[1]}
            importlib.import_module("kgprobe." + name.replace("/", "."))
        assert all((ROOT / "tests" / "unit" / f"{test}.py").is_file() for test in tests)
    assert listed
    assert len(listed) < 0.2 * len(every)
    assert intervals.__name__ in {"kgprobe." + m.replace("/", ".") for m in GROUPS["metrics"][0]}


@pytest.mark.parametrize(
    ("outcome", "code"),
    [
        ({"< to <=": "", "< to >=": "a test"}, 0),
        ({"< to <=": "", "< to >=": ""}, 1),
        ({"< to <=": "a test", "< to >=": "a test"}, 1),
    ],
)
def test_a_run_is_compared_with_the_list(tmp_path, outcome, code, capsys):
    source, path = tmp_path / "a.py", tmp_path / "mutants.tsv"
    source.write_text("def f(x):\n    return x < y\n")
    _, every = mutants(source, "a.py")
    header = "\t".join(survivors.COLUMNS)
    path.write_text(f"{header}\na.py\tf\treturn x < y\t< to <=\tequal: x is never y\n")
    outcomes = {"\t".join(m.key): outcome[m.change] for m in every}
    assert survivors.report(path, every, outcomes, False) == code
    assert "2 mutants" in capsys.readouterr().out


LINES = """
import dataclasses

ODD = not (1 +  # a comment
           1)

@dataclasses.dataclass
class Point:
    size: int = 3

    def more(self, n=2):
        '''Of a point.'''
        if n > 5:
            return self.size
        elif n == 4:
            é = "é"; n += 1
        for _ in range(1):
            @dataclasses.dataclass
            class Inner:
                n: int = 7
        return (n
                * self.size)
"""


def test_a_sampled_change_leaves_the_other_text_unchanged(tmp_path):
    path = tmp_path / "code.py"
    path.write_text(LINES)
    tree, every = mutants(path, "code.py")
    for mutant in every:
        text = changed(LINES, mutant)
        with mutant.made():
            assert ast.unparse(ast.parse(text)) == ast.unparse(tree)
        assert ("# a comment" in text) == (mutant.function != "" or mutant.change[:4] == "1 to")
    assert len(every) > 15


@pytest.mark.parametrize(
    ("n", "expected"),
    [
        (4, {"n > 5", "n == 4", "n += 1", "range(1)", "n: int", "return (n", "* self"}),
        (6, {"n > 5", "n == 4", "return self"}),
    ],
)
def test_a_marked_module_records_which_statements_are_reached(tmp_path, monkeypatch, n, expected):
    path = tmp_path / "code.py"
    path.write_text(LINES)
    numbered = dict(enumerate(mutants(path, "code.py")[1]))
    reached: set[int] = set()
    monkeypatch.setattr(sys, "reached", reached.add, raising=False)
    code: dict = {"__name__": "sys"}
    exec(marked(LINES, numbered), code)
    outside = {i for i, mutant in numbered.items() if mutant.function in ("", "Point")}
    assert reached == outside
    reached.clear()
    code["Point"]().more(n)
    assert outside < reached
    lines = {numbered[i].line for i in reached - outside}
    default = "def more(self, n=2):"
    assert default in lines
    assert all(any(line.count(part) for part in expected) for line in lines - {default})
    assert all(any(part in line for line in lines) for part in expected - {"return self", "* self"})


@pytest.mark.parametrize(("alive", "listed", "code"), [(2, 0, 1), (1, 0, 0), (2, 1, 0)])
def test_more_than_one_survivor_in_ten_needs_a_reason(tmp_path, alive, listed, code, capsys):
    path = tmp_path / "code.py"
    path.write_text(LINES)
    drawn = mutants(path, "code.py")[1][:10]
    done = {"\t".join(m.key): "" if i < alive else "a test" for i, m in enumerate(drawn)}
    reasons = {m.key: "same: nobody asks" for m in drawn[:listed]}
    assert report(reasons, {m: ["a test"] for m in drawn}, done) == code
    assert f"10 mutants, {10 - alive} noticed, {alive} survive" in capsys.readouterr().out

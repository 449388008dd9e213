"""Docstring examples produce the output shown below them."""

import doctest
import importlib

import pytest

from kgprobe.files import ROOT

#: examples that need a model's folder have separate tests
ELSEWHERE = {"library.py", "questions.py", "probes/jobs/at_save.py"}
SOURCE = ROOT / "src/kgprobe"
WITH_EXAMPLES = sorted(
    path.relative_to(SOURCE).as_posix()
    for path in SOURCE.rglob("*.py")
    if ">>> " in path.read_text(encoding="utf-8")
)


@pytest.mark.parametrize("file", [name for name in WITH_EXAMPLES if name not in ELSEWHERE])
def test_docstring_examples_produce_their_output(file):
    module = importlib.import_module("kgprobe." + file.removesuffix(".py").replace("/", "."))
    written: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    for test in doctest.DocTestFinder(exclude_empty=True).find(module):
        runner.run(test, out=written.append)
    assert runner.tries
    assert not runner.failures, "".join(written)

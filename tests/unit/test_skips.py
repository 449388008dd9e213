"""The summary at the end of a test run: which tests were not run, and how to run them."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.unit.tiny_models import tokenizer

ROOT = Path(__file__).parents[2]
TESTS = """
import pytest


@pytest.mark.real
def test_real(real_data):
    assert real_data.is_dir()


@pytest.mark.parametrize("n", range(3))
def test_engine(n):
    pytest.skip("no engine: install it")


@pytest.mark.nightly(needs="an hour")
def test_long():
    raise AssertionError


def test_plain():
    pass
"""


@pytest.mark.parametrize("workers", [[], ["-n", "2", "--dist", "loadfile"]])
def test_the_summary_lists_tests_not_run_and_how_to_run_them(tmp_path, workers):
    folder = tmp_path / "tests"
    (folder / "unit").mkdir(parents=True)
    for name in ("conftest.py", "skips.py", "__init__.py"):
        (folder / name).write_text((ROOT / "tests" / name).read_text())
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers =\n  real\n  nightly\n  timing\n")
    (folder / "unit/test_it.py").write_text(TESTS)
    known = {n: v for n, v in os.environ.items() if not n.startswith(("KGPROBE_", "PYTEST_"))}
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider"]
    command += ["--basetemp", str(tmp_path / "base")]  # elsewhere it would clear old runs away
    result = subprocess.run(
        [*command, "-m", "not nightly and not timing", *workers],
        cwd=tmp_path, env=known, capture_output=True, text=True,
    )  # fmt: skip
    assert result.returncode == 0, result.stdout
    assert [line.strip() for line in result.stdout.splitlines()[-5:-1]] == [
        "tests on real data that ran and passed: 0",
        "not tried: 1 test of the nightly tier (`make test-all`)",
        "not tried: 3 tests: no engine: install it",
        f"not tried: 1 test: real data not found in {tmp_path.parent / 'shared/data'}: "
        "set KGPROBE_DATA",
    ]
    assert "1 passed, 4 skipped" in result.stdout.splitlines()[-1]


def test_tiny_tokenizers_are_the_same_in_every_process():
    """Their trainers break ties randomly unless letters are numbered beforehand."""
    text = "The capital of France is Paris; Burkina"
    ids = [1, 115, 105, 86, 159, 85, 161, 9, 177, 2]
    assert tokenizer("masked", "wordpiece").encode(text) == ids
    assert tokenizer("causal", "bpe").encode(text) == [299, 293, 275, 386, 274, 377, 33, 375]

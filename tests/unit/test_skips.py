"""The closing lines of a run of the tests, and the skips that fail it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.skips import NAMED

ROOT = Path(__file__).parents[2]
TESTS = """
import pytest


@pytest.mark.real
def test_real(real_data):
    assert real_data.is_dir()


@pytest.mark.parametrize("n", range(3))
def test_engine(n):
    pytest.skip("no engine: install it")


@pytest.mark.skipif(True, reason="{named}, which we are not")
def test_named():
    pass


def test_plain():
    pass
"""


def run(folder, tests, **environment):
    """(exit status, last lines) of a run with this project's conftest."""
    own = folder / "tests"
    own.mkdir()
    (own / "__init__.py").touch()
    for name in ("conftest.py", "skips.py"):
        (own / name).write_text((ROOT / "tests" / name).read_text())
    (folder / "pytest.ini").write_text("[pytest]\nmarkers = real\naddopts = -ra\n")
    (own / "test_it.py").write_text(tests)
    known = {n: v for n, v in os.environ.items() if not n.startswith(("KGPROBE_", "PYTEST_"))}
    result = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider"],
        cwd=folder, env=known | environment, capture_output=True, text=True,
    )  # fmt: skip
    return result.returncode, [line.strip() for line in result.stdout.splitlines()[-8:]]


def test_the_last_lines_count_what_was_skipped_by_reason(tmp_path):
    status, lines = run(tmp_path, TESTS.format(named=next(iter(NAMED))))
    assert status == 0
    missing = tmp_path.parent / "shared/data"
    assert lines[-6:-1] == [
        "tests on real data that ran and passed: 0",
        "tests that were skipped: 5",
        "3  no engine: install it",
        f"1  real data not found in {missing}: set KGPROBE_DATA",
        f"1  {next(iter(NAMED))}, which we are not",
    ]
    assert "1 passed, 5 skipped" in lines[-1]


def test_a_skip_that_is_not_named_fails_the_run_where_that_is_asked_for(tmp_path):
    for reason, status in (("no engine: install it", 1), (f"{next(iter(NAMED))}: x", 0)):
        folder = tmp_path / str(status)
        folder.mkdir()
        tests = TESTS.format(named=next(iter(NAMED))).replace("no engine: install it", reason)
        found, lines = run(folder, tests, KGPROBE_SKIPS="named", KGPROBE_DATA=str(tmp_path))
        assert found == status
        assert "tests on real data that ran and passed: 1" in lines
        assert any(line.startswith("FAILED: 1 of these reasons") for line in lines) == bool(status)


@pytest.mark.parametrize("reason", NAMED)
def test_every_named_reason_is_one_of_a_test_and_has_its_why(reason):
    sources = [p for p in (ROOT / "tests").rglob("test_*.py") if p.name != "test_skips.py"]
    assert any(reason in path.read_text() for path in sources)
    assert len(NAMED[reason]) > 20


def test_what_the_tests_need_is_installed_at_once_by_the_ci():
    script = (ROOT / ".ci/run").read_text()
    assert script.count("apt-get update") == 1
    assert "KGPROBE_SKIPS=named" in script
    for package in ("virtuoso-opensource-7-bin", "chromium"):
        assert f"missing+=({package})" in script

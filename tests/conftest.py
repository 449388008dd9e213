"""Real data: tests marked `real` take their folder from KGPROBE_DATA."""

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def data_folder() -> Path:
    """The folder of the real data sets: KGPROBE_DATA, default ../shared/data."""
    return Path(os.environ.get("KGPROBE_DATA") or ROOT / "../shared/data").resolve()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Without the data, `real` tests are skipped loudly; with KGPROBE_REQUIRE_DATA=1 they fail."""
    for item in items:
        if item.get_closest_marker("real"):
            item.user_properties.append(("real", True))
    if data_folder().is_dir():
        return
    reason = f"real data not found in {data_folder()}: set KGPROBE_DATA"
    if os.environ.get("KGPROBE_REQUIRE_DATA") == "1":
        raise pytest.UsageError(reason)
    for item in items:
        if item.get_closest_marker("real"):
            item.add_marker(pytest.mark.skip(reason=reason))


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Counts the `real` tests that ran."""
    if report.when == "call" and report.passed and ("real", True) in report.user_properties:
        _counts["real"] += 1


_counts = {"real": 0}


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """The closing line says how many tests on real data ran."""
    terminalreporter.write_line(f"tests on real data that ran and passed: {_counts['real']}")


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The folder of the real data sets."""
    folder = data_folder()
    if not folder.is_dir():
        pytest.skip(f"real data not found in {folder}: set KGPROBE_DATA")
    return folder

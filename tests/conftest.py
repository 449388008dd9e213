"""Real data: tests marked `real` take their folder from KGPROBE_DATA."""

import os
from pathlib import Path

if "PYTEST_XDIST_WORKER" in os.environ:
    # several processes at once: one thread each, set before anything reads it
    os.environ.setdefault("OMP_NUM_THREADS", "1")

import pytest

from tests.skips import Summary

ROOT = Path(__file__).parents[1]
#: Whole runs come first: begun last, they would keep one core busy while the other rests.
LONG = ("workflow/test_single_rows.py", "workflow/test_runs.py", "workflow", "replay", "real")


def pytest_configure(config: pytest.Config) -> None:
    """The closing lines of a run."""
    config.pluginmanager.register(Summary())


def data_folder() -> Path:
    """The folder of the real data sets: KGPROBE_DATA, default ../shared/data."""
    return Path(os.environ.get("KGPROBE_DATA") or ROOT / "../shared/data").resolve()


def place(path: Path) -> int:
    """Where a test file stands in the order of all, by the first entry of LONG that it is below."""
    name = path.relative_to(ROOT / "tests").as_posix()
    return next((n for n, start in enumerate(LONG) if name.startswith(start)), len(LONG))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """The longest files first; without the data, `real` tests are skipped loudly.

    With KGPROBE_REQUIRE_DATA=1 they fail instead.
    """
    items.sort(key=lambda item: place(item.path))
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


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The folder of the real data sets."""
    folder = data_folder()
    if not folder.is_dir():
        pytest.skip(f"real data not found in {folder}: set KGPROBE_DATA")
    return folder

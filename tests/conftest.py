"""Real data: tests marked `real` take their folder from KGPROBE_DATA."""

import os
from pathlib import Path

if "PYTEST_XDIST_WORKER" in os.environ:
    # several processes at once: one thread each, set before anything reads it
    os.environ.setdefault("OMP_NUM_THREADS", "1")

import pytest

from tests.skips import Summary

ROOT = Path(__file__).parents[1]


def pytest_configure(config: pytest.Config) -> None:
    """The closing lines of a run."""
    config.pluginmanager.register(Summary())


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


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The folder of the real data sets."""
    folder = data_folder()
    if not folder.is_dir():
        pytest.skip(f"real data not found in {folder}: set KGPROBE_DATA")
    return folder

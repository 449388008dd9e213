"""Test tiers (gate and nightly), test order, shared fixtures and random seeds.

    make test        the gate: every test that is not marked `nightly` or `timing`
    make test-all    those as well

A test marked `nightly` names in its mark the gate's tests that fail on the same fault (`gate=`: a
file or `file::test` below tests/, or a list), or requirements that the gate does not install
(`needs=`). One marked `timing` measures seconds or memory, or races processes; no gate test does.
"""

import os
import random
from pathlib import Path
from typing import Any

if "PYTEST_XDIST_WORKER" in os.environ:
    # several processes at once: one thread each, set before anything reads it
    os.environ.setdefault("OMP_NUM_THREADS", "1")

import hypothesis
import pytest
from xdist.scheduler import LoadFileScheduling

from tests.skips import Summary

ROOT = Path(__file__).parents[1]
#: In this order: the run of all papers starts at once, in a separate worker; then cheap tests.
FOLDERS = ("mini", "unit", "contract", "real", "workflow", "replay")
#: Files that take long for the tests that they have: they come last, so that most faults show
#: early, and half of the tests have run after three minutes.
LATE = """answers architectures at_save attributes_alpha attributes_brute attributes_checks
attributes_input attributes_intervals attributes_limits attributes_probed attributes_sampling
attributes_tables attributes_worked autoprompt baseline_classifiers baseline_majority choice claims
class_names cli completeness completion control control_recall download dump_facts embedded endpoint
exports faults fill_properties first_minutes gguf_everywhere graph_generate kept_answers library
marks notebooks ontoprobe_bad_input ontoprobe_switches own_attributes papers plan plans products
prompt_flow reason_method reasoning redirects report sentence sentence_properties site skips
slices_all soft sparql stopped_scoring stops sums tables_aggregations_all tables_autoprompt
tables_baselines tables_bear tables_confidence tables_gather terminal world world_trex""".split()

hypothesis.settings.register_profile("gate", derandomize=True, deadline=None, database=None)
# explores: the seed is given by --hypothesis-seed, which .ci/nightly prints
hypothesis.settings.register_profile("nightly", deadline=None, max_examples=300)
hypothesis.settings.load_profile("gate")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--shuffle SEED`: run test files, and tests inside them, in random order."""
    parser.addoption("--shuffle", default="", help="a seed: run the tests in random order")


def pytest_configure(config: pytest.Config) -> None:
    """Register the summary of a run."""
    config.pluginmanager.register(Summary())


class ByFile(LoadFileScheduling):
    """Scheduler that keeps a file's tests, and all tests of tests/mini, in one worker."""

    def _split_scope(self, nodeid: str) -> str:
        return "tests/mini" if nodeid.startswith("tests/mini/") else super()._split_scope(nodeid)


def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> LoadFileScheduling:
    """Return the scheduler that distributes tests to the workers."""
    return ByFile(config, log)


def data_folder() -> Path:
    """Return the folder of the real data sets: KGPROBE_DATA, default ../shared/data."""
    return Path(os.environ.get("KGPROBE_DATA") or ROOT / "../shared/data").resolve()


def place(path: Path) -> tuple[bool, int]:
    """Return whether a test file is LATE, and the index of its folder in FOLDERS."""
    folder = path.relative_to(ROOT / "tests").parts[0]
    is_late = path.stem.removeprefix("test_") in LATE
    return is_late, FOLDERS.index(folder) if folder in FOLDERS else len(FOLDERS)


def check_nightly(mark: pytest.Mark) -> None:
    """Check that a mark says why its test is not in the gate, and that its named tests exist."""
    gates = mark.kwargs.get("gate", [])
    for name in [gates] if isinstance(gates, str) else gates:
        file, _, test = name.partition("[")[0].partition("::")
        path = ROOT / "tests" / file
        if not path.is_file() or f"def {test}" not in path.read_text():
            raise pytest.UsageError(f"nightly(gate={name!r}): there is no such test")
    if not gates and not mark.kwargs.get("needs"):
        raise pytest.UsageError("nightly: name the gate's test (gate=), or what is needed (needs=)")


def shuffled(items: list[pytest.Item], seed: str) -> list[pytest.Item]:
    """Return files in random order, with shuffled tests; classes and parameters stay together."""
    rng = random.Random(seed)
    files = list(dict.fromkeys(item.path for item in items))
    keys = {path: rng.random() for path in files}
    names = {item.nodeid.partition("[")[0]: rng.random() for item in items}
    return sorted(items, key=lambda i: (keys[i.path], names[i.nodeid.partition("[")[0]]))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Sort all tests; mark `timing` as nightly; without the data, skip `real` tests with a notice.

    With KGPROBE_REQUIRE_DATA=1 they fail instead.
    """
    if seed := config.getoption("--shuffle"):
        items[:] = shuffled(items, seed)
    items.sort(key=lambda item: place(item.path))
    for mark in [mark for item in items for mark in item.iter_markers("nightly")]:
        check_nightly(mark)
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
def world() -> Any:
    """Return the embedded knowledge graph (tools.world.build.World)."""
    from tools.world import build

    return build.load(ROOT / "resources/world")


@pytest.fixture(scope="session")
def real_data() -> Path:
    """Return the folder of the real data sets."""
    folder = data_folder()
    if not folder.is_dir():
        pytest.skip(f"real data not found in {folder}: set KGPROBE_DATA")
    return folder

"""A run stopped while it pulls, trains, searches and probes, and then resumed to its end."""

import signal

import pytest

from tests.stops import StoppedRun

TARGETS = (
    "results/embedded/outcomes/auto_world/searched/control-masked.parquet",
    "results/embedded/scores/world_lite/templates/sentence/control-masked.parquet",
)
#: rule, seconds after its job began, signal, to all processes, twice, through `kgprobe run`
STOPS = (
    ("pull_facts", 2.0, signal.SIGTERM, False, False, False),
    ("prompts_control-masked", 6.0, signal.SIGINT, True, True, False),
    ("probes_control-masked", 2.0, signal.SIGTERM, False, False, True),
)


@pytest.mark.timing
def test_a_run_stopped_at_each_stage_cleans_up_and_ends_the_same(tmp_path):
    peace = StoppedRun.made(tmp_path / "peace", TARGETS)
    peace.end()
    jobs, expected = peace.finished(), peace.hashes()
    assert {name.split("/")[2] for name in expected} >= {"outcomes", "scores"}
    disturbed = StoppedRun.made(tmp_path / "disturbed", TARGETS)
    for stop in STOPS:
        made = disturbed.stop(*stop)
        assert made is not None, f"ended before {stop[0]} was stopped\n{disturbed.said()}"
        assert made.is_right, f"{made}\n{disturbed.said()}"
    assert disturbed.end() == 0, "a finished job was done again"
    assert disturbed.seen == dict.fromkeys(jobs, 1)
    assert disturbed.hashes() == expected

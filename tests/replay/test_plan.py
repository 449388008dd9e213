"""The replay's plan has the full configuration's rules, dependencies and kinds of rows."""

import fnmatch
import os
import re
import subprocess
import sys

import pytest
import yaml

from kgprobe.experiments import read_table
from kgprobe.probes import prompt_settings
from tests.conftest import ROOT
from tests.replay import models

REPLAY = "config/replay.yaml"
#: settings of config/replay.yaml besides sizes and thresholds: names, paths, tables, models
FIXED = ("url", "archives", "endpoint", "access", "snapshot", "statements", "large")


def graph(folder, *configs):
    """Return (rules, dependencies) of a plan in an empty folder, a model's rules merged by
    stage."""
    for name in models.MADE:  # a plan needs their folders to exist
        (folder / "data/replay/models" / name).mkdir(parents=True)
    arguments = ["--cores", "1", "--directory", str(folder), "--rulegraph"]
    laid = ["--configfile", *(str(ROOT / c) for c in configs)] if configs else []
    done = subprocess.run(
        [sys.executable, "-m", "snakemake", "-s", str(ROOT / "Snakefile"), *arguments, *laid],
        env=os.environ | {"KGPROBE_CONTACT": "test@example.org"},
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    names = {
        number: re.sub("^(prompts|probes)_.*", r"\1", name)
        for number, name in re.findall(r'(\d+)\[label = "([^"\\]+)', done.stdout)
    }
    arrows = {(names[a], names[b]) for a, b in re.findall(r"(\d+) -> (\d+)", done.stdout)}
    return set(names.values()), arrows


def test_the_replay_s_plan_has_the_full_one_s_rules_and_dependencies(tmp_path):
    rules, arrows = graph(tmp_path / "full")
    assert len(rules) > 50
    assert len(arrows) > 100
    found, drawn = graph(tmp_path / "replay", REPLAY)
    assert found == rules
    assert drawn == arrows


def kinds(table):
    """Return (paper, prompt, method) of every row, with patterns of prompts expanded."""
    prompts = ["templates", "soft", *prompt_settings.PROMPTS]
    return {
        (row["paper"], prompt, row["method"])
        for row in read_table(ROOT / table)
        for pattern in row["prompt"].split(",")
        for prompt in fnmatch.filter(prompts, pattern)
    }


def test_the_replay_s_table_has_every_paper_prompt_and_method_of_the_full_one():
    full = kinds("config/experiments.tsv")
    assert len(full) > 30
    assert kinds("config/experiments.replay.tsv") == full


def leaves(section, path=()):
    """Return (path, value) of all values in a configuration."""
    if isinstance(section, dict):
        for key, value in section.items():
            yield from leaves(value, (*path, key))
    else:
        yield path, section


def test_the_replay_changes_no_source():
    said = dict(leaves(yaml.safe_load((ROOT / REPLAY).read_text())))
    assert said
    assert not [path for path in said if path[-1] in FIXED]
    full = read_table(ROOT / "resources/endpoints.tsv")
    own = {row["id"]: row for row in read_table(ROOT / "config/endpoints.replay.tsv")}
    for row in full:
        if row["id"] in own:
            assert {**row, "interval": "0"} == {**own[row["id"]], "interval": "0"}


@pytest.mark.parametrize("word", ["https://", "http://"])
def test_the_replay_s_configuration_holds_no_address(word):
    assert word not in (ROOT / REPLAY).read_text()

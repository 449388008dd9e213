"""Baselines that are trained (see jobs/autoprompt/train)."""

from pathlib import Path
from typing import Any

import polars as pl

from kgprobe import schema
from kgprobe.probes.jobs.autoprompt import tasks, train
from kgprobe.probes.jobs.stage import Part

OUTPUT = {"outcomes": schema.OUTCOMES}


def answers(part: Part, into: Path) -> tuple[dict[str, pl.DataFrame], dict[str, Any]]:
    """OUTCOMES of dev and test."""
    seed, section = part.settings["seed"], part.settings["section"]
    task = tasks.load(Path(part.input["examples"]).parent, section, seed)
    outcomes, record = train.answers(part.prompt, part.spec, task, seed, part.load)
    return {"outcomes": outcomes}, record

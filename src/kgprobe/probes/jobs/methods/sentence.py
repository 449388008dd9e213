"""Scores of whole sentences, one for every option (see scoring/sentence)."""

from pathlib import Path
from typing import Any

import polars as pl

from kgprobe import schema
from kgprobe.job import progress
from kgprobe.probes.jobs.score import score_frame, score_share
from kgprobe.probes.jobs.stage import Part
from kgprobe.probes.jobs.stage import by_template as units

__all__ = ["OUTPUT", "answers", "share", "units"]
OUTPUT = {"scores": schema.SCORES}


def answers(part: Part, into: Path) -> tuple[dict[str, pl.DataFrame], dict[str, Any]]:
    """SCORES; finished shards wait for the run that follows a stop."""
    scores, record = score_frame(
        part.spec,
        *_asked(part),
        progress,
        part.work,
        load=part.load,
        compared=part.settings.get("agreement", 0),
    )
    return {"scores": scores}, record


def share(part: Part, of: tuple[int, int]) -> None:
    """The k-th of n shares of the shards."""
    score_share(part.spec, *_asked(part), progress, part.work, of, load=part.load)


def _asked(part: Part) -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame, str]:
    return (
        part.read("questions", schema.ITEMS),
        part.read("candidates", schema.CANDIDATES),
        part.read("prompts", schema.PROMPTS),
        part.settings["method"],
    )

"""Scores of sentences without their subject (see benchmarks/contentless)."""

from pathlib import Path
from typing import Any

import polars as pl

from kgprobe import schema
from kgprobe.benchmarks import contentless
from kgprobe.job import progress
from kgprobe.probes.jobs.score import score_frame
from kgprobe.probes.jobs.stage import Part
from kgprobe.probes.jobs.stage import whole as units

__all__ = ["OUTPUT", "answers", "units"]
OUTPUT = {"scores": schema.SCORES}


def answers(part: Part, into: Path) -> tuple[dict[str, pl.DataFrame], dict[str, Any]]:
    """SCORES of the questions whose subject is a word that says nothing."""
    asked, options = contentless.questions(
        part.read("questions", schema.ITEMS),
        part.read("candidates", schema.CANDIDATES),
        part.settings["words"],
    )
    prompts = part.read("prompts", schema.PROMPTS)
    method = part.settings["method"]
    scores, record = score_frame(
        part.spec, asked, options, prompts, method, progress, load=part.load
    )
    return {"scores": scores}, {**record, "words": list(part.settings["words"])}

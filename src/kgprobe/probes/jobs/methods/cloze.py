"""Ranks of candidates in a gap (see scoring/cloze)."""

from pathlib import Path
from typing import Any

import polars as pl

from kgprobe import schema
from kgprobe.job import progress
from kgprobe.probes.jobs.rank import rank_frame
from kgprobe.probes.jobs.stage import Part
from kgprobe.probes.jobs.stage import by_template as units

__all__ = ["OUTPUT", "answers", "units"]
OUTPUT = {"ranks": schema.RANKS, "top": schema.TOPS}


def answers(part: Part, into: Path) -> tuple[dict[str, pl.DataFrame], dict[str, Any]]:
    """RANKS and TOPS."""
    ranks, top, record = rank_frame(
        part.spec,
        *part.tables_asked(),
        progress,
        space=part.settings["candidate_space"],
        unknown=part.settings["unknown_candidates"],
        load=part.load,
        folder=part.work,
    )
    return {"ranks": ranks, "top": top}, record

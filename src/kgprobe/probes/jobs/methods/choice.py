"""Lettered questions (see scoring/choice)."""

from pathlib import Path
from typing import Any

import polars as pl

from kgprobe import schema
from kgprobe.job import progress
from kgprobe.probes.jobs.choose import choose_frame
from kgprobe.probes.jobs.stage import Part
from kgprobe.probes.jobs.stage import whole as units

__all__ = ["OUTPUT", "answers", "units"]
OUTPUT = {"chosen": schema.CHOSEN, "options": schema.OPTION_SCORES}


def answers(part: Part, into: Path) -> tuple[dict[str, pl.DataFrame], dict[str, Any]]:
    """CHOSEN and OPTION_SCORES."""
    chosen, options, record = choose_frame(
        part.load(part.spec),
        part.read("questions", schema.CHOICES),
        part.settings["ways"],
        progress,
        part.api.workers,
        part.work,
    )
    return {"chosen": chosen, "options": options}, record

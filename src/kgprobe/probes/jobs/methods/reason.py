"""Reasoning over the ontology's rules (see jobs/ontoprobe/reason)."""

from pathlib import Path
from typing import Any

import polars as pl

from kgprobe import schema
from kgprobe.benchmarks.ontoprobe.modes import Switches
from kgprobe.job import progress
from kgprobe.probes.jobs.ontoprobe.reason import reason
from kgprobe.probes.jobs.ontoprobe.soft import planned
from kgprobe.probes.jobs.stage import Part
from kgprobe.probes.jobs.stage import whole as units
from kgprobe.settings import Soft, typed

__all__ = ["OUTPUT", "answers", "units"]
OUTPUT = {"ranks": schema.REASON_RANKS, "premises": schema.PREMISE_RANKS}


def answers(part: Part, into: Path) -> tuple[dict[str, pl.DataFrame], dict[str, Any]]:
    """REASON_RANKS and PREMISE_RANKS."""
    soft = typed(Soft, part.settings["soft"])
    ranks, premises, record = reason(
        part.spec,
        part.read("questions", schema.ITEMS),
        part.read("candidates", schema.CANDIDATES),
        Path(part.input["prompts"]) if part.input["prompts"] else None,
        typed(Switches, part.settings["switches"]),
        planned(soft),
        soft.schemes,
        soft.rule_rows,
        progress,
        part.load,
    )
    return {"ranks": ranks, "premises": premises}, record

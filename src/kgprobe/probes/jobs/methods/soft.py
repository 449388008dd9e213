"""Ranks under soft prompts (see prompts/trained)."""

from pathlib import Path

from kgprobe import schema
from kgprobe.benchmarks.ontoprobe.modes import Switches
from kgprobe.probes.jobs.ontoprobe.soft import rank
from kgprobe.probes.jobs.stage import Answers, Part
from kgprobe.settings.types import typed

OUTPUT = {"ranks": schema.SOFT_RANKS, "curves": schema.SOFT_CURVES}


def answers(part: Part) -> Answers:
    """Return SOFT_RANKS and SOFT_CURVES."""
    ranks, curves, record = rank(
        part.spec,
        part.read("questions", schema.ITEMS),
        part.read("candidates", schema.CANDIDATES),
        Path(part.input["prompts"]),
        typed(Switches, part.settings["switches"]),
        part.settings["rows"],
        part.load,
    )
    return {"ranks": ranks, "curves": curves}, record

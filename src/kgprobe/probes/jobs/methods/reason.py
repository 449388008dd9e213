"""Reasoning over the ontology's rules (see jobs/ontoprobe/reason)."""

from dataclasses import replace
from pathlib import Path

from kgprobe import schema
from kgprobe.benchmarks.ontoprobe.build import sampled
from kgprobe.benchmarks.ontoprobe.modes import Switches
from kgprobe.probes.jobs.ontoprobe.reason import reason
from kgprobe.probes.jobs.stage import Answers, Part
from kgprobe.settings.probes import Soft
from kgprobe.settings.types import typed

OUTPUT = {"ranks": schema.REASON_RANKS, "premises": schema.PREMISE_RANKS}


def answers(part: Part) -> Answers:
    """Return REASON_RANKS and PREMISE_RANKS; for causal models as `soft.causal` sets."""
    soft, settings = typed(Soft, part.settings["soft"]), part.settings
    switches = typed(Switches, settings["switches"])
    questions = part.read("questions", schema.ITEMS)
    schemes, rows = soft.schemes, soft.rule_rows
    if part.spec.kind == "causal":
        schemes = soft.causal.schemes
        rows = min(filter(None, (soft.rule_rows, soft.causal.rows)), default=None)
        switches = replace(switches, pseudoword_pairs=str(soft.causal.pairs))
        questions = sampled(questions, rows, settings["seed"])
    ranks, premises, record = reason(
        part.spec,
        questions,
        part.read("candidates", schema.CANDIDATES),
        Path(part.input["prompts"]) if part.input["prompts"] else None,
        switches,
        soft,
        schemes,
        rows,
        part.load,
        part.work,
    )
    return {"ranks": ranks, "premises": premises}, record

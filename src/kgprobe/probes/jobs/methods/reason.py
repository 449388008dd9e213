"""Reasoning over the ontology's rules (see jobs/ontoprobe/reason)."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl

from kgprobe import schema
from kgprobe.benchmarks.ontoprobe.modes import Switches
from kgprobe.job import progress
from kgprobe.probes.jobs.ontoprobe import forms
from kgprobe.probes.jobs.ontoprobe.reason import reason
from kgprobe.probes.jobs.stage import Part
from kgprobe.probes.jobs.stage import whole as units
from kgprobe.settings import PremiseForms, Soft, typed

__all__ = ["OUTPUT", "answers", "units"]
OUTPUT = {
    "ranks": schema.REASON_RANKS,
    "premises": schema.PREMISE_RANKS,
    "forms": schema.FORM_RANKS,
}


def answers(part: Part, into: Path) -> tuple[dict[str, pl.DataFrame], dict[str, Any]]:
    """REASON_RANKS, PREMISE_RANKS and FORM_RANKS; of causal models what `soft.causal` says."""
    soft, settings = typed(Soft, part.settings["soft"]), part.settings
    switches, chosen = (
        typed(Switches, settings["switches"]),
        typed(PremiseForms, settings["premises"]),
    )
    questions, seed = part.read("questions", schema.ITEMS), settings["seed"]
    schemes, rows = soft.schemes, soft.rule_rows
    if part.spec.kind == "causal":
        schemes, rows = soft.causal.schemes, soft.causal.rows
        switches = replace(switches, pseudoword_pairs=str(soft.causal.pairs))
        questions = forms.few(questions, rows, seed)
    tables = questions, part.read("candidates", schema.CANDIDATES)
    ranks, premises, record = reason(
        part.spec,
        *tables,
        Path(part.input["prompts"]) if part.input["prompts"] else None,
        switches,
        soft,
        schemes,
        rows,
        progress,
        part.load,
    )
    by_form, notes = forms.ask(part.spec, *tables, switches, chosen, seed, part.load)
    return {"ranks": ranks, "premises": premises, "forms": by_form}, {**record, "forms": notes}

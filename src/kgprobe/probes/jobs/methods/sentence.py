"""Scores of whole sentences, one for every option (see scoring/sentence)."""

from functools import partial
from pathlib import Path
from typing import Any

import polars as pl

from kgprobe import schema
from kgprobe.job import progress
from kgprobe.probes.jobs.forms import of_part, tables_in
from kgprobe.probes.jobs.score import Formed, score_frame, score_share
from kgprobe.probes.jobs.stage import Part, Template, by_template, whole

__all__ = ["OUTPUT", "answers", "share", "units"]
OUTPUT = {"scores": schema.SCORES}


def units(part: Part) -> dict[str, Template | None]:
    """Templates; in a form the whole, since its sample is one of all items."""
    return whole(part) if part.settings.get("form") else by_template(part)


def answers(part: Part, into: Path) -> tuple[dict[str, pl.DataFrame], dict[str, Any]]:
    """SCORES; finished shards wait for the run that follows a stop."""
    scores, record = score_frame(
        part.spec,
        *_read_questions(part),
        progress,
        part.work,
        load=part.load,
        form=_form(part),
    )
    return {"scores": scores}, record


def share(part: Part, of: tuple[int, int]) -> None:
    """The k-th of n shares of the shards."""
    score_share(
        part.spec, *_read_questions(part), progress, part.work, of, load=part.load, form=_form(part)
    )


def _read_questions(part: Part) -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame, str]:
    return (
        part.read("questions", schema.ITEMS),
        part.read("candidates", schema.CANDIDATES),
        part.read("prompts", schema.PROMPTS),
        part.settings["method"],
    )


def _form(part: Part) -> Formed | None:
    if not part.settings.get("form"):
        return None
    form, training = of_part(part)
    return partial(tables_in, form=form, training=training)

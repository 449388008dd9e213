"""Scores of whole sentences, one for every option (see scoring/sentence)."""

from functools import partial
from pathlib import Path
from typing import Any

import polars as pl

from kgprobe import schema
from kgprobe.probes.jobs.forms import of_part, tables_in
from kgprobe.probes.jobs.score import score_frame
from kgprobe.probes.jobs.stage import Part, Template, by_template, whole

__all__ = ["OUTPUT", "answers", "share", "units"]
OUTPUT = {"scores": schema.SCORES}


def units(part: Part) -> dict[str, Template | None]:
    """Templates; in a form the whole, since its sample is one of all items."""
    return whole(part) if part.settings.get("form") else by_template(part)


def answers(part: Part, into: Path) -> tuple[dict[str, pl.DataFrame], dict[str, Any]]:
    """SCORES; finished shards wait for the run that follows a stop."""
    scores, record = _score(part)
    return {"scores": scores}, record


def share(part: Part, of: tuple[int, int]) -> None:
    """The k-th of n shares of the shards."""
    _score(part, of)


def _score(part: Part, of: tuple[int, int] = (0, 1)) -> tuple[pl.DataFrame, dict[str, Any]]:
    formed = None
    if part.settings.get("form"):
        form, training = of_part(part)
        formed = partial(tables_in, form=form, training=training)
    return score_frame(
        part.spec, *part.tables_asked(), part.settings["method"], part.work,
        load=part.load, form=formed, part=of,
    )  # fmt: skip

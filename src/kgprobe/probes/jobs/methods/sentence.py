"""Scores of whole sentences, one for every option (see scoring/sentence)."""

from functools import partial
from typing import Any

import polars as pl

from kgprobe import schema
from kgprobe.probes.jobs.forms import of_part, tables_in
from kgprobe.probes.jobs.score import score_frame
from kgprobe.probes.jobs.stage import Answers, Part, Template, by_template, whole

__all__ = ["OUTPUT", "answers", "share", "units"]
OUTPUT = {"scores": schema.SCORES}


def units(part: Part) -> dict[str, Template | None]:
    """Return templates, or the whole part in a form, whose sample is from all items."""
    return whole(part) if part.settings.get("form") else by_template(part)


def answers(part: Part) -> Answers:
    """Return SCORES; finished shards are stored for the next run to resume."""
    scores, record = _score(part)
    return {"scores": scores}, record


def share(part: Part, of: tuple[int, int]) -> None:
    """Score every n-th shard from the k-th on."""
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

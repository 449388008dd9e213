"""Options after content-free subjects: priors of whole sentences (see scoring/sentence)."""

import polars as pl

from kgprobe import schema
from kgprobe.probes.jobs.kept import digest
from kgprobe.probes.jobs.score import content_free_frame, without_subject
from kgprobe.probes.jobs.stage import Answers, Part, Template, templates_of
from kgprobe.sampling import by_hand

OUTPUT = {"content_free": schema.CONTENT_FREE}


def units(part: Part) -> dict[str, Template | None]:
    """Return templates of the relations with shared options; a single unit if there are none."""
    items = _questions(part)
    return templates_of(part, items) if items.height else {digest("nothing is shared"): None}


def answers(part: Part) -> Answers:
    """Return CONTENT_FREE."""
    scores, record = content_free_frame(
        part.spec,
        _questions(part),
        part.read("candidates", schema.CANDIDATES),
        part.read("prompts", schema.PROMPTS),
        # content_free-VARIANT, or the default
        "sentence-" + part.settings["method"].partition("-")[2],
        part.work,
        part.load,
    )
    return {"content_free": scores}, record


def _questions(part: Part) -> pl.DataFrame:
    return without_subject(by_hand(part.read("questions", schema.ITEMS)))

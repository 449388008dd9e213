"""Options after content-free subjects: priors of whole sentences (see scoring/sentence)."""

import polars as pl

from kgprobe import schema
from kgprobe.probes.jobs.kept import digest
from kgprobe.probes.jobs.score import score_frame
from kgprobe.probes.jobs.stage import Answers, Part, Template, templates_of
from kgprobe.sampling import by_hand
from kgprobe.schema import CONTENT_FREE, ITEMS
from kgprobe.templates import NO_SUBJECTS

OUTPUT = {"content_free": CONTENT_FREE}


def units(part: Part) -> dict[str, Template | None]:
    """Return templates of the relations with shared options; a single unit if there are none."""
    items = _questions(part)
    return templates_of(part, items) if items.height else {digest("nothing is shared"): None}


def answers(part: Part) -> Answers:
    """Return CONTENT_FREE."""
    items = _questions(part)
    if not items.height:
        return {"content_free": pl.DataFrame(schema=dict(CONTENT_FREE.columns))}, {}
    scores, record = score_frame(
        part.spec,
        items,
        part.read("candidates", schema.CANDIDATES),
        part.read("prompts", schema.PROMPTS),
        # content_free-VARIANT, or the default
        "sentence-" + part.settings["method"].partition("-")[2],
        part.work,
        load=part.load,
        title=", no subject",
    )
    return {"content_free": with_subjects(scores, items)}, record


def _questions(part: Part) -> pl.DataFrame:
    return without_subject(by_hand(part.read("questions", ITEMS)))


def with_subjects(scores: pl.DataFrame, items: pl.DataFrame) -> pl.DataFrame:
    """Return CONTENT_FREE from the SCORES of `items`, which are from `without_subject`."""
    keys = items.select("item", "relation", "subject", set="candidates")
    return scores.join(keys, on="item").select(*CONTENT_FREE.columns)


def without_subject(items: pl.DataFrame) -> pl.DataFrame:
    """Replace subjects by NO_SUBJECTS, once for each relation and candidate set that more subjects
    share than there are NO_SUBJECTS: for others this would cost more than scoring the subjects."""
    who = pl.when(pl.col("subject_id") == "").then("subject").otherwise("subject_id")
    shared = items.group_by("relation", "candidates").agg(subjects=who.n_unique())
    shared = shared.filter(pl.col("subjects") > len(NO_SUBJECTS)).drop("subjects")
    rows = shared.sort(shared.columns).join(pl.DataFrame({"subject": NO_SUBJECTS}), how="cross")
    row = pl.int_range(pl.len(), dtype=pl.Int32)
    rows = rows.with_columns(
        item=row.cast(pl.String),
        group="relation",
        role=pl.lit("content_free"),
        subject_id=pl.lit(""),
        answers=pl.lit([], dtype=pl.List(pl.Int32)),
        row=row,
        meta=pl.lit("{}"),
    )
    return schema.cast_columns(rows, ITEMS)

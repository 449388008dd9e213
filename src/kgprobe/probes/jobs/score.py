"""From benchmark frames to a frame of scores: the probe stage's only entry point."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from kgprobe.job import progress
from kgprobe.probes.jobs.frames import labels_of, of_columns, texts_of
from kgprobe.probes.models import device
from kgprobe.probes.models.load import Load, ModelSpec, load_model
from kgprobe.probes.scoring.sentence import score
from kgprobe.sampling import by_hand
from kgprobe.schema import CONTENT_FREE, ITEMS, SCORES, cast_columns
from kgprobe.templates import NO_SUBJECTS

Tables = tuple[
    list[score.Item], Mapping[str, Sequence[str]], Mapping[str, Sequence[tuple[int, str]]]
]
#: what a model is asked of ITEMS, CANDIDATES and PROMPTS in a form, and counts of it
Formed = Callable[..., tuple[Tables, dict[str, int]]]


def score_frame(
    spec: ModelSpec,
    items: pl.DataFrame,
    candidates: pl.DataFrame,
    prompts: pl.DataFrame,
    method: str,
    folder: Path | None = None,
    shard: int = score.SHARD,
    load: Load = load_model,
    form: Formed | None = None,
    part: tuple[int, int] = (0, 1),
    title: str = "",
    progress: Callable[..., Any] = progress,
) -> tuple[pl.DataFrame, dict[str, Any]]:
    """SCORES of a model and the record of how they were made.

    `method` is `sentence`, or `sentence-<variant>` for another pseudo-log-likelihood. Finished
    shards lie in `folder`: a run that follows takes them up. `part` (k, n): every n-th of the
    shards alone, from the k-th on; numbers do not depend on how many processes share them. `form`:
    what is asked of the frames in place of everything they have (forms.py). `title`: what the bar
    says behind the model.
    """
    name, _, variant = method.partition("-")
    if name != "sentence":
        raise ValueError(f"method {method!r} gives no scores of sentences")
    if form:
        inputs, counts = form(load(spec), items, candidates, prompts)
    else:
        inputs = tables(by_hand(items), candidates, prompts)
    questions, options, templates = inputs
    total = sum(len(options[i.candidates]) * len(templates.get(i.relation, ())) for i in questions)
    bar = progress(total=total // part[1], desc=spec.model + title, unit="sentence")
    device.ready()
    scores = score.score(
        load(spec), *inputs, variant=variant or score.DEFAULT, progress=bar.update, folder=folder,
        part=part, shard=shard,
    )  # fmt: skip
    bar.close()
    if form:
        scores.record["form"] = counts
    if not len(scores.columns["sum"]):  # more parts than shards
        return pl.DataFrame(schema=dict(SCORES.columns)), scores.record
    return of_columns(scores.columns, SCORES, continuation_sum="continued"), scores.record


def content_free_frame(
    spec: ModelSpec,
    items: pl.DataFrame,
    candidates: pl.DataFrame,
    prompts: pl.DataFrame,
    method: str,
    folder: Path | None = None,
    load: Load = load_model,
) -> tuple[pl.DataFrame, dict[str, Any]]:
    """CONTENT_FREE of a model, and the record of how it was made; `items` as `without_subject` has
    them, the rest as in `score_frame`."""
    if not items.height:
        return pl.DataFrame(schema=dict(CONTENT_FREE.columns)), {}
    frame, record = score_frame(
        spec, items, candidates, prompts, method, folder, load=load, title=", no subject"
    )
    keys = items.select("item", "relation", "subject", set="candidates")
    return frame.join(keys, on="item").select(*CONTENT_FREE.columns), record


def without_subject(items: pl.DataFrame) -> pl.DataFrame:
    """ITEMS that put NO_SUBJECTS in the subject's place, once for each relation and set of
    options that more subjects share than these are: of others it would cost more than they do."""
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
    return cast_columns(rows, ITEMS)


def tables(items: pl.DataFrame, candidates: pl.DataFrame, prompts: pl.DataFrame) -> Tables:
    """ITEMS, CANDIDATES and PROMPTS as the plain structures that scoring takes."""
    rows = items.sort("relation", "row", "item").select("item", "relation", "subject", "candidates")
    questions = [score.Item(*row) for row in rows.rows()]
    templates = prompts.join(items, on="relation", how="semi")
    return questions, labels_of(candidates), texts_of(templates)

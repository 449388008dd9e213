"""Generated text for a mask slot, and ranks of its golds (see scoring/fill)."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import polars as pl

from kgprobe import schema
from kgprobe.job import progress
from kgprobe.probes.api.client import Client
from kgprobe.probes.jobs.forms import (
    Demonstration,
    Form,
    build_questions,
    describe_unasked,
    fill_items_of,
    of_part,
)
from kgprobe.probes.jobs.frames import of_columns
from kgprobe.probes.jobs.kept import journal
from kgprobe.probes.jobs.score import tables
from kgprobe.probes.jobs.stage import Answers, Part, Template, by_template, whole
from kgprobe.probes.models.load import Loaded
from kgprobe.probes.scoring.fill import predict
from kgprobe.sampling import take
from kgprobe.settings.probes import Fill
from kgprobe.settings.types import typed

OUTPUT = {"fills": schema.FILLS, "golds": schema.FILL_GOLDS}


def units(part: Part) -> dict[str, Template | None]:
    """Return templates, or the whole part if the longest gold limits the text, for a server (whose
    answers are cached individually), and for a form (whose sample is from all items)."""
    if part.settings.get("form"):
        return whole(part)
    is_bounded = part.spec.kind == "masked" or part.settings["fill"]["most_tokens"]
    return by_template(part) if is_bounded and part.spec.kind != "api" else whole(part)


def answers(part: Part) -> Answers:
    """Return FILLS and FILL_GOLDS."""
    items, candidates, prompts = part.tables_asked()
    if part.settings["few"]:  # the paper's ten of every relation for a server
        most, seed = part.settings["few"], part.settings["seed"]
        prompts = take(prompts, most, seed, ["prompt"], ["relation"], "prompts of api")
    fills, golds, record = fill_frame(
        part.load(part.spec),
        items,
        candidates,
        prompts,
        typed(Fill, part.settings["fill"]),
        part.api.workers,
        # possibly none of a few templates can be used with this model
        may_be_empty=part.only is not None,
        form=of_part(part) if part.settings.get("form") else None,
        folder=part.work,
    )
    return {"fills": fills, "golds": golds}, record


def fill_frame(
    model: Loaded | Client,
    items: pl.DataFrame,
    candidates: pl.DataFrame,
    prompts: pl.DataFrame,
    settings: Fill,
    workers: int = 1,
    may_be_empty: bool = False,
    form: tuple[Form, Mapping[str, Sequence[Demonstration]] | None] | None = None,
    folder: Path | None = None,
) -> tuple[pl.DataFrame, pl.DataFrame, dict[str, Any]]:
    """Return (FILLS, FILL_GOLDS, record) of every item in every template of its relation.

    `workers`: parallel requests to a server. `may_be_empty`: allow that no item can be filled.
    `form`: the form of asking and its demonstrations (forms.py). Unfinished results are stored in
    `folder` for the next run to resume. Raises one ValueError for all relations without template.
    """
    counts: dict[str, int] = {}
    if form:
        inputs, counts = build_questions(model, items, candidates, prompts, *form)
    else:
        inputs = tables(items, candidates, prompts)
    questions = fill_items_of(inputs, items)
    if form and not questions:
        raise ValueError(describe_unasked(form[0], counts))
    bar = progress(total=len(questions), desc="fill", unit="item")
    chats = form is not None and form[0].name == "chat"
    how = predict.FillSettings(**asdict(settings), chat=chats, workers=workers)
    with journal(model, folder, "fills", questions, asdict(settings), chats):
        fills = predict.predict(
            model, questions, settings.k, how, progress=bar.update, may_be_empty=may_be_empty
        )
    bar.close()
    if form:
        written = len(set(fills.top["item"]))
        fills.record["form"] = {**counts, "unwritten": len(questions) - written}
    top = of_columns(fills.top, schema.FILLS, logprob="has_logprob")
    return top, of_columns(fills.golds, schema.FILL_GOLDS), fills.record

"""Frames of fillings from benchmark frames."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import polars as pl

from kgprobe.job import progress
from kgprobe.probes.api.client import Client, open_client
from kgprobe.probes.jobs.forms import (
    Demonstration,
    Form,
    build_questions,
    describe_unasked,
    fill_items_of,
)
from kgprobe.probes.jobs.frames import of_columns
from kgprobe.probes.jobs.kept import journal
from kgprobe.probes.jobs.score import tables
from kgprobe.probes.models import device
from kgprobe.probes.models.load import Loaded, ModelSpec, load_model
from kgprobe.probes.scoring.fill import predict
from kgprobe.schema import FILL_GOLDS, FILLS
from kgprobe.settings.probes import Api, Fill

#: a form of asking, and its demonstrations by relation
InForm = tuple[Form, Mapping[str, Sequence[Demonstration]] | None]


def answerer(spec: ModelSpec, api: Api) -> Loaded | Client:
    """Load the model of a row of models.tsv, or create a client of its server."""
    if spec.kind == "api":
        return open_client(spec, api)
    device.ready()
    return load_model(spec)


def fill_frame(
    model: Loaded | Client,
    items: pl.DataFrame,
    candidates: pl.DataFrame,
    prompts: pl.DataFrame,
    settings: Fill,
    workers: int = 1,
    may_be_empty: bool = False,
    form: InForm | None = None,
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
    top = of_columns(fills.top, FILLS, logprob="has_logprob")
    return top, of_columns(fills.golds, FILL_GOLDS), fills.record

"""From benchmark frames to frames of fillings."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import polars as pl

from kgprobe.job import progress
from kgprobe.probes.api.client import Client, open_client
from kgprobe.probes.jobs.forms import Demonstration, Form, fill_items_in, fill_items_of
from kgprobe.probes.jobs.frames import of_columns
from kgprobe.probes.jobs.kept import journal
from kgprobe.probes.jobs.score import tables
from kgprobe.probes.models import device
from kgprobe.probes.models.load import Loaded, ModelSpec, load_model
from kgprobe.probes.scoring.fill import predict
from kgprobe.schema import FILL_GOLDS, FILLS
from kgprobe.settings.probes import Api, Fill

#: a form of asking, and what may be shown of a relation in it
InForm = tuple[Form, Mapping[str, Sequence[Demonstration]] | None]


def answerer(spec: ModelSpec, api: Api) -> Loaded | Client:
    """The model of a row of models.tsv: loaded, or a client of a server."""
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
    """(FILLS, FILL_GOLDS, record) of every item in every template of its relation.

    `workers`: requests at once, of a server. `may_be_empty`: no item needs to be one that can be
    asked. `form`: the form of asking and what may be shown in it (forms.py). What is computed lies
    in `folder` until the run that follows a stop has taken it up. Raises ValueError for relations
    without template, all of them at once.
    """
    counts: dict[str, int] = {}
    if form:
        questions, counts = fill_items_in(model, items, candidates, prompts, *form)
    else:
        questions = fill_items_of(tables(items, candidates, prompts), items)
    options = {name: value for name, value in asdict(settings).items() if name != "k"}
    bar = progress(total=len(questions), desc="fill", unit="item")
    chats = form is not None and form[0].name == "chat"
    how = predict.FillSettings(**options, chat=chats, workers=workers)
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

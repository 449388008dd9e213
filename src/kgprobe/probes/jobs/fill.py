"""From benchmark frames to frames of fillings."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import polars as pl

from kgprobe.job import progress
from kgprobe.probes.api.client import Client, open_client
from kgprobe.probes.jobs.forms import Demonstration, Form, blanks_in
from kgprobe.probes.jobs.frames import texts_of
from kgprobe.probes.jobs.kept import journal
from kgprobe.probes.models import device
from kgprobe.probes.models.load import Loaded, ModelSpec, load_model
from kgprobe.probes.scoring.fill import predict
from kgprobe.schema import FILL_GOLDS, FILLS, Contract
from kgprobe.settings import Api, Fill

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

    `workers`: requests at once, of a server. `may_be_empty`: no blank needs to be one that can be
    asked. `form`: the form of asking and what may be shown in it (forms.py). What is computed lies
    in `folder` until the run that follows a stop has taken it up. Raises ValueError for relations
    without template, all of them at once.
    """
    counts: dict[str, int] = {}
    if form:
        questions, counts = blanks_in(model, items, candidates, prompts, *form)
    else:
        questions = blanks(items, candidates, prompts)
    options = {name: value for name, value in asdict(settings).items() if name != "k"}
    bar = progress(total=len(questions), desc="fill", unit="blank")
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
    return _frame(fills.top, FILLS), _frame(fills.golds, FILL_GOLDS), fills.record


def blanks(
    items: pl.DataFrame, candidates: pl.DataFrame, prompts: pl.DataFrame
) -> list[predict.Blank]:
    """Every item in every template of its relation; its answers' labels are the golds."""
    labels = {(name, i): label for name, i, label in candidates["set", "index", "label"].rows()}
    templates = texts_of(prompts)
    lacking = sorted(set(items["relation"]) - set(templates))
    if lacking:
        raise ValueError(f"no template for {len(lacking)} relations: {', '.join(lacking)}")
    rows = []
    columns = ("item", "relation", "subject", "candidates", "answers")
    for item, relation, subject, name, answers in items.sort("item").select(columns).rows():
        golds = tuple(labels[name, answer] for answer in answers)
        rows += [
            predict.Blank(item, index, text, subject, golds) for index, text in templates[relation]
        ]
    return rows


def _frame(columns: Mapping[str, Any], contract: Contract) -> pl.DataFrame:
    frame = pl.DataFrame(
        {name: pl.Series(name, columns[name].tolist(), dtype=dtype)
         for name, dtype in contract.columns.items()}
    )  # fmt: skip
    if "has_logprob" in columns:
        # the mask says what a server left out: NaN is none of it, and refused by the contract
        known = pl.Series(columns["has_logprob"].tolist(), dtype=pl.Boolean)
        frame = frame.with_columns(pl.when(known).then("logprob"))
    return frame

"""Steps written out before an answer: questions of two steps to models with a chat template.

    What is the place of birth of the mother of Ana? ...      the user's message
    Her mother is Ida. Ida was born in Rome. Answer: Rome     what is written (`raw`); Rome (`text`)

An answer stands behind the cue on a line of its own (scoring/fill/reading.stepped). Where none can
be read, `text` is empty: that is counted apart from wrong.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from kgprobe.job import log
from kgprobe.probes.api.client import Client
from kgprobe.probes.jobs.fill import blanks
from kgprobe.probes.jobs.kept import journal
from kgprobe.probes.models.load import Loaded
from kgprobe.probes.scoring.fill.predict import Blank
from kgprobe.probes.scoring.fill.reading import CUE, stepped
from kgprobe.probes.scoring.fill.replies import message, replies
from kgprobe.probes.scoring.fill.rows import WHOLE
from kgprobe.schema import FILL_GOLDS, FILLS
from kgprobe.templates import SUBJECT, parse, question

#: The role of the items that are asked: hops need no steps.
ROLE = "two_steps"
ASK = (
    "Think step by step and write the steps down. Then write the answer alone on a last line that "
    f'begins with "{CUE}".'
)


def content(blank: Blank) -> str:
    """The user's message of a blank: its template as a question, and how to answer.

    >>> content(Blank("i", 0, "The father of [X] is [Y].", "Ana")).partition("?")[0]
    'The father of Ana is what'
    """
    filled = parse(question(blank.text)).filled({SUBJECT: blank.subject}, upper_first=True)
    return f"{filled.text} {ASK}"


def steps_frame(
    model: Loaded | Client,
    items: pl.DataFrame,
    candidates: pl.DataFrame,
    prompts: pl.DataFrame,
    most: int,
    progress: Callable[..., Any],
    workers: int = 1,
    folder: Path | None = None,
) -> tuple[pl.DataFrame, pl.DataFrame, dict[str, Any]]:
    """(FILLS, FILL_GOLDS without rows, record) of the two-step items under their first template.

    `most`: tokens of a reply. The record counts the items, those `too_long` for the model, which
    have no row, and the `unread` ones by reason. What is computed lies in `folder` until the run
    that follows a stop has taken it up. Raises ValueError for a model without a chat
    template, and where no item can be asked.
    """
    first = prompts.filter(pl.col("index") == pl.col("index").min().over("relation"))
    queries = blanks(items.filter(role=ROLE), candidates, first)
    bar = progress(total=len(queries), desc="steps", unit="question")
    with journal(model, folder, "steps", queries, most):
        answers, record = _write_answers(model, queries, most, bar.update, workers)
    bar.close()
    rows, unread = [], Counter[str]()
    for blank, raw in zip(queries, answers, strict=True):
        if raw is not None:
            text, reason = stepped(raw)
            unread.update([reason] * bool(reason))
            rows.append((blank.item, blank.template, 0, WHOLE, 1, -1, text, raw, None))
    counts = {"items": len(queries), "too_long": len(queries) - len(rows), "unread": dict(unread)}
    if not rows:
        raise ValueError(f"steps: none of {len(queries)} questions can be asked: {counts}")
    log.info("steps: %s", counts)
    fills = pl.DataFrame(rows, schema=dict(FILLS.columns), orient="row")
    return fills, pl.DataFrame(schema=dict(FILL_GOLDS.columns)), {**record, "steps": counts}


def _write_answers(
    model: Loaded | Client,
    queries: Sequence[Blank],
    most: int,
    progress: Callable[[int], object],
    workers: int,
) -> tuple[Sequence[str | None], dict[str, Any]]:
    """What is written to each blank, and the record of the model."""
    texts = [content(blank) for blank in queries]
    if isinstance(model, Client):
        if not model.capabilities().chat:
            raise ValueError("steps: the server has no chat; leave it out of the row with steps")

        def one(text: str) -> str:
            reply = model.chat(text, most).text
            progress(1)
            return reply

        return list(model.map(one, texts, workers)), {"api": model.record()}
    if not getattr(model.tokenizer, "chat_template", None):
        raise ValueError(
            f"{model.spec.model} has no chat template: take it out of the row with prompt steps"
        )
    names = [f"item {blank.item}" for blank in queries]
    rows = [message(model, text, name) for text, name in zip(texts, names, strict=True)]
    return replies(model, rows, names, most, progress), dict(model.record)

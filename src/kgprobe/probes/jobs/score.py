"""Scores of sentences from benchmark frames: the only entry point of the probe stage."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from kgprobe.job import progress
from kgprobe.probes.jobs.frames import labels_of, of_columns, texts_of
from kgprobe.probes.models.load import Load, ModelSpec, load_model
from kgprobe.probes.scoring.sentence import score
from kgprobe.sampling import by_hand
from kgprobe.schema import SCORES

Tables = tuple[
    list[score.Item], Mapping[str, Sequence[str]], Mapping[str, Sequence[tuple[int, str]]]
]
#: builds the model inputs in a form from ITEMS, CANDIDATES and PROMPTS, and counts
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
    """Return the SCORES of a model and the record of the run.

    `method` is `sentence`, or `sentence-<variant>` for another pseudo-log-likelihood. Finished
    shards are stored in `folder`, where the next run resumes. `part` (k, n) scores every n-th
    shard from the k-th on; results do not depend on the number of processes. `form`:
    builds the inputs in place of all items and templates (forms.py). `title`: text of the progress
    bar after the model's name.
    """
    if form:
        inputs, counts = form(load(spec), items, candidates, prompts)
    else:
        inputs = tables(by_hand(items), candidates, prompts)
    questions, options, templates = inputs
    total = sum(len(options[i.candidates]) * len(templates.get(i.relation, ())) for i in questions)
    bar = progress(total=total // part[1], desc=spec.model + title, unit="sentence")
    scores = score.score(
        load(spec), *inputs, variant=method.partition("-")[2] or score.DEFAULT,
        progress=bar.update, folder=folder, part=part, shard=shard,
    )  # fmt: skip
    bar.close()
    if form:
        scores.record["form"] = counts
    if not len(scores.columns["sum"]):  # more processes than shards
        return pl.DataFrame(schema=dict(SCORES.columns)), scores.record
    return of_columns(scores.columns, SCORES, continuation_sum="continued"), scores.record


def tables(items: pl.DataFrame, candidates: pl.DataFrame, prompts: pl.DataFrame) -> Tables:
    """Convert ITEMS, CANDIDATES and PROMPTS to the data structures for scoring."""
    rows = items.sort("relation", "row", "item").select("item", "relation", "subject", "candidates")
    questions = [score.Item(*row) for row in rows.rows()]
    templates = prompts.join(items, on="relation", how="semi")
    return questions, labels_of(candidates), texts_of(templates)

"""From benchmark frames to a frame of scores: the probe stage's only entry point."""

import itertools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from kgprobe.probes.jobs.frames import by_hand
from kgprobe.probes.models import device
from kgprobe.probes.models.load import Load, ModelSpec, load_model
from kgprobe.probes.scoring.sentence import score
from kgprobe.schema import CONTENT_FREE, ITEMS, SCORES, cast_columns
from kgprobe.templates import NO_SUBJECTS

Tables = tuple[list[score.Item], dict[str, Sequence[str]], dict[str, Sequence[tuple[int, str]]]]
#: what a model is asked of ITEMS, CANDIDATES and PROMPTS in a form, and counts of it
Formed = Callable[..., tuple[Tables, dict[str, int]]]


def score_frame(
    spec: ModelSpec,
    items: pl.DataFrame,
    candidates: pl.DataFrame,
    prompts: pl.DataFrame,
    method: str,
    progress: Callable[..., Any],
    folder: Path | None = None,
    shard: int = score.SHARD,
    load: Load = load_model,
    form: Formed | None = None,
) -> tuple[pl.DataFrame, dict[str, Any]]:
    """SCORES of a model and the record of how they were made.

    `method` is `sentence`, or `sentence-<variant>` for another pseudo-log-likelihood. Finished
    shards lie in `folder`, those of `score_share` as well: a run that follows takes them up.
    `form`: what is asked of the frames in place of everything they have (forms.py).
    """
    variant, (inputs, counts) = (
        _variant(method),
        _score_with_model(spec, items, candidates, prompts, load, form),
    )
    bar = progress(total=_sentences(inputs), desc=spec.model, unit="sentence")
    scores = score_part(spec, inputs, variant, folder, shard, (0, 1), bar.update, load)
    bar.close()
    if form:
        scores.record["form"] = counts
    return _frame(scores.columns), scores.record


def score_share(
    spec: ModelSpec,
    items: pl.DataFrame,
    candidates: pl.DataFrame,
    prompts: pl.DataFrame,
    method: str,
    progress: Callable[..., Any],
    folder: Path,
    part: tuple[int, int],
    shard: int = score.SHARD,
    load: Load = load_model,
    form: Formed | None = None,
) -> None:
    """Finish every n-th of the shards that `score_frame` joins, from the k-th on: `part` is (k, n).

    The numbers do not depend on how many processes share them.
    """
    inputs, _ = _score_with_model(spec, items, candidates, prompts, load, form)
    bar = progress(total=_sentences(inputs) // part[1], desc=spec.model, unit="sentence")
    score_part(spec, inputs, _variant(method), folder, shard, part, bar.update, load)
    bar.close()


def _score_with_model(
    spec: ModelSpec,
    items: pl.DataFrame,
    candidates: pl.DataFrame,
    prompts: pl.DataFrame,
    load: Load,
    form: Formed | None,
) -> tuple[Tables, dict[str, int]]:
    """The inputs of scoring, and the form's counts of them."""
    if form:
        return form(load(spec), items, candidates, prompts)
    return tables(by_hand(items), candidates, prompts), {}


def _variant(method: str) -> str:
    name, _, variant = method.partition("-")
    if name != "sentence":
        raise ValueError(f"method {method!r} gives no scores of sentences")
    return variant or score.DEFAULT


def _sentences(inputs: Tables) -> int:
    items, options, templates = inputs
    return sum(len(options[i.candidates]) * len(templates[i.relation]) for i in items)


def content_free_frame(
    spec: ModelSpec,
    items: pl.DataFrame,
    candidates: pl.DataFrame,
    prompts: pl.DataFrame,
    variant: str,
    progress: Callable[..., Any],
    load: Load = load_model,
    folder: Path | None = None,
) -> tuple[pl.DataFrame, dict[str, Any]]:
    """CONTENT_FREE of a model, and the record of how it was made; `items` as `without_subject` has
    them, shards in `folder` as those of `score_frame`."""
    if not items.height:
        return pl.DataFrame(schema=dict(CONTENT_FREE.columns)), {}
    inputs = tables(items, candidates, prompts)
    bar = progress(total=_sentences(inputs), desc=f"{spec.model}, no subject", unit="sentence")
    part = (variant or score.DEFAULT, folder, score.SHARD, (0, 1), bar.update, load)
    scores = score_part(spec, inputs, *part)
    bar.close()
    keys = items.select("item", "relation", "subject", set="candidates")
    frame = _frame(scores.columns).join(keys, on="item")
    return frame.select(*CONTENT_FREE.columns), scores.record


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


def _frame(columns: dict[str, Any]) -> pl.DataFrame:
    """SCORES from the columns of `sentence.Scores`."""
    frame = pl.DataFrame({name: pl.Series(name, values) for name, values in columns.items()})
    # the mask says what is absent: NaN is none of it, and refused by the contract
    frame = frame.with_columns(pl.when("continued").then("continuation_sum"))
    return cast_columns(frame, SCORES)


def score_part(
    spec: ModelSpec,
    inputs: Tables,
    variant: str,
    folder: Path | None,
    shard: int,
    part: tuple[int, int],
    progress: Callable[[int], object],
    load: Load = load_model,
) -> score.Scores:
    """Every n-th shard from the k-th on, (k, n) being `part`, by a model loaded for it.

    On a CPU one thread works, so that the last bits do not depend on the machine's cores.
    """
    device.ready()
    loaded = load(spec)
    return score.score(
        loaded, *inputs, variant=variant, progress=progress, folder=folder, shard=shard, part=part
    )


def tables(items: pl.DataFrame, candidates: pl.DataFrame, prompts: pl.DataFrame) -> Tables:
    """ITEMS, CANDIDATES and PROMPTS as the plain structures that scoring takes."""
    rows = items.sort("relation", "row", "item").select("item", "relation", "subject", "candidates")
    questions = [score.Item(*row) for row in rows.rows()]
    options: dict[str, Sequence[str]] = {
        name: [label for _, label in group]
        for name, group in itertools.groupby(
            candidates.sort("set", "index").select("set", "label").rows(), key=lambda r: r[0]
        )
    }
    relations = set(items["relation"])
    texts: dict[str, Sequence[tuple[int, str]]] = {}
    for relation, index, text in (
        prompts.sort("relation", "index").select("relation", "index", "text").rows()
    ):
        if relation in relations:
            texts[relation] = [*texts.get(relation, ()), (index, text)]
    return questions, options, texts

"""Ranks of candidates at a mask slot: one job per model for all tasks (see scoring/cloze)."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl

from kgprobe.job import progress
from kgprobe.probes.jobs.frames import (
    index_golds,
    labels_of,
    of_columns,
    placed,
    texts_of,
)
from kgprobe.probes.jobs.kept import journal
from kgprobe.probes.jobs.stage import Answers, Part
from kgprobe.probes.jobs.stage import by_template as units
from kgprobe.probes.models import device
from kgprobe.probes.models.load import Load, ModelSpec, load_model, outline
from kgprobe.probes.scoring.cloze import rank
from kgprobe.probes.text.mask_slots import ClozePrompt, questions
from kgprobe.probes.text.spelling import check_windows, left_out, rankable
from kgprobe.sampling import by_hand
from kgprobe.schema import RANKS, TOPS

__all__ = ["OUTPUT", "answers", "units"]
OUTPUT = {"ranks": RANKS, "top": TOPS}


def answers(part: Part) -> Answers:
    """Return RANKS and TOPS."""
    ranks, top, record = rank_frame(
        part.spec, *part.tables_asked(),
        space=part.settings["candidate_space"], unknown=part.settings["unknown_candidates"],
        load=part.load, folder=part.work,
    )  # fmt: skip
    return {"ranks": ranks, "top": top}, record


def rank_frame(
    spec: ModelSpec,
    items: pl.DataFrame,
    candidates: pl.DataFrame,
    prompts: pl.DataFrame,
    *,
    space: str = "auto",
    unknown: str = "keep",
    load: Load = load_model,
    folder: Path | None = None,
) -> tuple[pl.DataFrame, pl.DataFrame, dict[str, Any]]:
    """Return RANKS and TOPS of a model in all configurations, and the record of the run.

    A candidate without tokens is excluded from its set, under `unknown` leave_out also one with an
    unknown token; questions whose golds are excluded are not ranked. The record lists all of them.
    Unfinished results are stored in `folder` for the next run to resume. Raises
    ValueError for a kind of model without mask slots and, before any weights are loaded, for the
    prompts of every relation that do not fit into its window.
    """
    if spec.kind not in ("masked", "seq2seq"):
        raise ValueError(
            f"{spec.model}: cloze ranking needs a mask token or a sentinel, a {spec.kind} model "
            "has none; score its options as sentences (method sentence)"
        )
    device.ready()
    light = outline(spec)
    kept = rankable(light, labels_of(candidates), unknown)
    ranked, missing = index_golds(by_hand(items), kept)
    queries = _questions(ranked, prompts)
    options: dict[str, Sequence[str]] = {name: k.labels for name, k in kept.items()}
    relations = dict(ranked.select("item", "relation").rows())
    by_relation: dict[str, list[ClozePrompt]] = {}
    for question in queries:
        by_relation.setdefault(relations[question.item], []).append(question)
    check_windows(light, by_relation, options, space)
    loaded = load(spec)
    bar = progress(total=len(queries), desc=spec.model, unit="prompt")
    with journal(loaded, folder, "ranks", queries, options, space):
        result = rank.rank(loaded, queries, options, space=space, progress=bar.update)
    bar.close()
    record = {
        **result.record,
        "prompts": len(queries),
        "candidates_left_out": left_out(kept),
        "items_without_gold": missing,
    }
    ranks = placed(of_columns(result.ranks, RANKS), items, kept)
    top = placed(of_columns(result.top, TOPS), items, kept, "candidate")
    return ranks, top, record


def _questions(items: pl.DataFrame, prompts: pl.DataFrame) -> list[ClozePrompt]:
    """Build every item in every template of its relation."""
    columns = ("item", "relation", "subject", "candidates", "answers")
    rows = items.sort("relation", "row", "item").select(columns).rows()
    return list(questions([(*row, tuple(golds)) for *row, golds in rows], texts_of(prompts)))

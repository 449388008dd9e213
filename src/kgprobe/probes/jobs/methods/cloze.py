"""Ranks of candidates at a mask slot: one job per model for all tasks (see scoring/cloze)."""

from pathlib import Path
from typing import Any

import polars as pl

from kgprobe.job import progress
from kgprobe.probes.jobs.frames import check_windows, of_columns, prepared, texts_of
from kgprobe.probes.jobs.kept import journal
from kgprobe.probes.jobs.stage import Answers, Part
from kgprobe.probes.jobs.stage import by_template as units
from kgprobe.probes.models.load import Load, ModelSpec, load_model
from kgprobe.probes.scoring.cloze import rank
from kgprobe.probes.text.mask_slots import ClozePrompt, question
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
    Unfinished results are stored in `folder` for the next run to resume. Raises ValueError, before
    any weights are loaded, for the prompts of every relation that do not fit into the window.
    """
    known = prepared(spec, by_hand(items), candidates, unknown)
    by_relation, options = questions(known.items, prompts), known.options
    queries = [query for prompts in by_relation.values() for query in prompts]
    check_windows(known.light, by_relation, options, space)
    loaded = load(spec)
    bar = progress(total=len(queries), desc=spec.model, unit="prompt")
    with journal(loaded, folder, "ranks", queries, options, space):
        result = rank.rank(loaded, queries, options, space=space, progress=bar.update)
    bar.close()
    ranks = known.placed(of_columns(result.ranks, RANKS))
    top = known.placed(of_columns(result.top, TOPS), "candidate")
    return ranks, top, {**result.record, "prompts": len(queries), **known.record}


def questions(items: pl.DataFrame, prompts: pl.DataFrame) -> dict[str, list[ClozePrompt]]:
    """Map relation -> its items in every template; ValueError for a relation without template."""
    columns, templates = ("item", "relation", "subject", "candidates", "answers"), texts_of(prompts)
    by_relation: dict[str, list[ClozePrompt]] = {}
    for item, relation, subject, candidates, golds in (
        items.sort("relation", "row", "item").select(columns).rows()
    ):
        if relation not in templates:
            raise ValueError(f"item {item}: no template for its relation {relation}")
        by_relation.setdefault(relation, []).extend(
            question(item, index, text, subject, candidates, tuple(golds))
            for index, text in templates[relation]
        )
    return by_relation

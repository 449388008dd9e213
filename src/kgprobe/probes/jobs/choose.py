"""From frames of multiple-choice questions to frames of what was chosen, and of its scores."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from kgprobe.probes.api.client import Client
from kgprobe.probes.jobs.kept import journal
from kgprobe.probes.models.load import Loaded
from kgprobe.probes.scoring.choice import choose
from kgprobe.probes.scoring.choice.text import Choice
from kgprobe.schema import CHOSEN, OPTION_SCORES


def choose_frame(
    model: Loaded | Client,
    questions: pl.DataFrame,
    ways: Sequence[str],
    progress: Callable[..., Any],
    workers: int = 1,
    folder: Path | None = None,
) -> tuple[pl.DataFrame, pl.DataFrame, dict[str, Any]]:
    """(CHOSEN, OPTION_SCORES, record) of all CHOICES in all modes that the model's kind has.

    Questions that do not fit into the model's window are left out and counted in the record, by
    mode and reason. What is computed lies in `folder` until the run that follows a stop has used it
    up. Raises ValueError when nothing can be asked at all.
    """
    columns = ("item", "question", "options", "stem")
    choices = [
        Choice(item, text, tuple(options), stem)
        for item, text, options, stem in questions.sort("item").select(columns).rows()
    ]
    bar = progress(total=len(choices) * len(ways), desc="choice", unit="question")
    with journal(model, folder, "choices", choices, ways):
        result = choose.choose(model, choices, ways, workers=workers, progress=bar.update)
    bar.close()
    if not result.chosen:
        raise ValueError(
            f"none of {len(choices)} questions can be asked; the first: {result.left_out[:1]}"
        )
    counts: dict[str, int] = {}
    for _, way, reason in result.left_out:
        counts[f"{way}: {reason}"] = counts.get(f"{way}: {reason}", 0) + 1
    chosen = pl.DataFrame([vars(c) for c in result.chosen], schema=dict(CHOSEN.columns))
    rows = [
        (item, way, place, *pair)
        for (item, way), both in result.scores.items()
        for place, pair in enumerate(zip(*both, strict=True))
    ]
    scores = pl.DataFrame(rows, schema=dict(OPTION_SCORES.columns), orient="row")
    return chosen, scores, {**result.record, "left_out": dict(sorted(counts.items()))}

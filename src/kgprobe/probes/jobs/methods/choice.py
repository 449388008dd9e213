"""Multiple choice questions with lettered options (see scoring/choice)."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl

from kgprobe.job import progress
from kgprobe.probes.api.client import Client
from kgprobe.probes.jobs.kept import journal
from kgprobe.probes.jobs.stage import Answers, Part
from kgprobe.probes.models.load import Loaded
from kgprobe.probes.scoring.choice import choose
from kgprobe.probes.scoring.choice.text import ChoiceQuestion
from kgprobe.schema import CHOICES, CHOSEN

OUTPUT = {"chosen": CHOSEN}


def answers(part: Part) -> Answers:
    """Return CHOSEN."""
    questions, scorings = part.read("questions", CHOICES), part.settings["scorings"]
    model = part.load(part.spec)
    chosen, record = choose_frame(model, questions, scorings, part.api.workers, part.work)
    return {"chosen": chosen}, record


def choose_frame(
    model: Loaded | Client,
    questions: pl.DataFrame,
    scorings: Sequence[str],
    workers: int = 1,
    folder: Path | None = None,
) -> tuple[pl.DataFrame, dict[str, Any]]:
    """Return (CHOSEN, record) of all CHOICES in all scoring modes of the model's kind.

    Questions that do not fit into the model's window are excluded and counted in the record, by
    mode and reason. Unfinished results are stored in `folder` for the next run to resume.
    Raises ValueError if no question can be answered.
    """
    columns = ("item", "question", "options", "stem")
    choices = [
        ChoiceQuestion(item, text, tuple(options), stem)
        for item, text, options, stem in questions.sort("item").select(columns).rows()
    ]
    bar = progress(total=len(choices) * len(scorings), desc="choice", unit="question")
    with journal(model, folder, "choices", choices, scorings):
        result = choose.choose(model, choices, scorings, workers=workers, progress=bar.update)
    bar.close()
    if not result.chosen:
        shown = [f"{item} by {scoring}: {reason}" for item, scoring, reason in result.left_out[:1]]
        raise ValueError(
            f"none of {len(choices)} questions can be asked; the first: {''.join(shown)}"
        )
    counts = Counter(f"{scoring}: {reason}" for _, scoring, reason in result.left_out)
    chosen = pl.DataFrame([vars(c) for c in result.chosen], schema=dict(CHOSEN.columns))
    return chosen, {**result.record, "left_out": dict(sorted(counts.items()))}

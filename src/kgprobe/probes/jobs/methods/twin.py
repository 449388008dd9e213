"""Scores of sentences by the model's twin: its architecture and tokenizer, its weights random.

It is asked some items of a benchmark under the first template: what nobody has learnt needs no more
to be told from what somebody has.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl

from kgprobe import schema
from kgprobe.job import progress
from kgprobe.probes.jobs.score import score_frame
from kgprobe.probes.jobs.stage import Part
from kgprobe.probes.jobs.stage import whole as units
from kgprobe.probes.models.load import Loaded, ModelSpec
from kgprobe.probes.models.reinitialised import reinitialised
from kgprobe.probes.scoring.sentence import recheck
from kgprobe.sampling import spread

__all__ = ["OUTPUT", "answers", "units"]
OUTPUT = {"scores": schema.SCORES}


def answers(part: Part, into: Path) -> tuple[dict[str, pl.DataFrame], dict[str, Any]]:
    """SCORES of a sample of the items."""
    seed = part.settings["seed"]
    items = part.read("questions", schema.ITEMS)
    prompts = part.read("prompts", schema.PROMPTS)

    def twin(_: ModelSpec) -> Loaded:
        return reinitialised(part.load(part.spec), "all", seed)

    scores, record = score_frame(
        # near ties are told by the model's own weights in float32, which are not the twin's
        replace(part.spec, dtype=recheck.EXACT),
        spread(items, part.settings["items"], seed, ["item"], ["relation"], "twin"),
        part.read("candidates", schema.CANDIDATES),
        prompts.filter(pl.col("index") == pl.col("index").min().over("relation")),
        part.settings["method"],
        progress,
        load=twin,
    )
    return {"scores": scores}, record

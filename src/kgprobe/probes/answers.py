"""From benchmark frames to a frame of scores: the probe stage's one way in."""

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import polars as pl
import torch

from kgprobe.probes.models.load import ModelSpec, load_model
from kgprobe.probes.scoring import sentence
from kgprobe.schema import SCORES


def score_frame(
    spec: ModelSpec,
    items: pl.DataFrame,
    candidates: pl.DataFrame,
    prompts: pl.DataFrame,
    method: str,
    progress: Callable[..., Any],
) -> tuple[pl.DataFrame, dict[str, Any]]:
    """SCORES of a model and the record of how they were made.

    `method` is `sentence`, or `sentence-<variant>` for another pseudo-log-likelihood. On a CPU one
    thread works, so that the last bits do not depend on the machine's cores.
    """
    name, _, variant = method.partition("-")
    if name != "sentence":
        raise ValueError(f"method {method!r} gives no scores of sentences")
    torch.set_num_threads(1)
    torch.backends.cuda.matmul.allow_tf32 = False
    loaded = load_model(spec)
    asked, options, templates = tables(items, candidates, prompts)
    total = sum(len(options[i.candidates]) * len(templates[i.relation]) for i in asked)
    bar = progress(total=total, desc=spec.model, unit="sentence")
    scores = sentence.score(
        loaded,
        asked,
        options,
        templates,
        variant=variant or sentence.VARIANTS[0],
        progress=bar.update,
    )
    bar.close()
    columns = {name: pl.Series(name, values) for name, values in scores.columns.items()}
    frame = pl.DataFrame(columns).with_columns(pl.col("continuation_sum").fill_nan(None))
    casts = [pl.col(name).cast(dtype) for name, dtype in SCORES.columns.items()]
    return frame.select(casts), scores.record


def tables(
    items: pl.DataFrame, candidates: pl.DataFrame, prompts: pl.DataFrame
) -> tuple[list[sentence.Item], dict[str, Sequence[str]], dict[str, Sequence[tuple[int, str]]]]:
    """ITEMS, CANDIDATES and PROMPTS as the plain structures that scoring takes."""
    rows = items.sort("relation", "row", "item").select("item", "relation", "subject", "candidates")
    asked = [sentence.Item(*row) for row in rows.rows()]
    options: dict[str, Sequence[str]] = {
        name: [label for _, label in group]
        for name, group in itertools.groupby(
            candidates.sort("set", "index").select("set", "label").rows(), key=lambda r: r[0]
        )
    }
    found: dict[str, list[tuple[int, str]]] = {}
    for relation, index, text in (
        prompts.sort("relation", "index").select("relation", "index", "text").rows()
    ):
        found.setdefault(relation, []).append((index, text))
    return asked, options, dict(found)

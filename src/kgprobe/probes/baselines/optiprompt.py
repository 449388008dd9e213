"""Outcomes of continuous prompts (OptiPrompt), one for each relation."""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from kgprobe.probes.models.predict import Predictor
from kgprobe.probes.prompts.trained import continuous
from kgprobe.probes.prompts.wordings.published import Wording
from kgprobe.probes.ranked import fields, namer, outcomes, part
from kgprobe.probes.scoring.cloze.words import word_ids
from kgprobe.probes.text.prompts import encode
from kgprobe.templates import Template

log = logging.getLogger("kgprobe")
SLICE = 500


@dataclass
class Found:
    """Outcomes, and per relation the trained vectors (numpy) with their record."""

    outcomes: pl.DataFrame
    vectors: dict[str, Any]
    records: dict[str, dict[str, Any]]


def optiprompt(
    predictor: Predictor,
    examples: pl.DataFrame,
    words: Sequence[str],
    settings: continuous.Settings | None = None,
    wordings: Mapping[str, Wording] | None = None,
    prompt: str = "continuous",
    prefix: str = "",
    truncate: str = "",
    progress: Callable[[int], object] = lambda steps: None,
) -> Found:
    """Train on each relation's training facts, choose on dev, answer dev and test.

    With `wordings` every token of the relation's manual prompt is a vector that starts at its
    embedding; without, `settings.vectors` random ones. Training and dev facts whose label is not
    among `words` are dropped and counted. A relation with no fact left is an error.
    """
    settings = settings or continuous.Settings()
    loaded, frames = predictor.loaded, []
    found = Found(examples.clear(), {}, {})
    for (name,), rows in sorted(examples.partition_by("group", as_dict=True).items()):
        group = str(name)
        if wordings is None:
            template, start = continuous.free(loaded, settings, prefix)
        else:
            template, start = continuous.manual(loaded, wordings[group].text, prefix)
        ids, _ = word_ids(loaded, template, words)
        number = {word: int(ids[i]) for i, word in enumerate(words)}
        own, dropped = {}, {}
        for split in ("train", "dev"):
            given = part(rows, split)
            kept = given.filter(pl.col("label").is_in(list(words)))
            dropped[split] = given.height - kept.height
            if not kept.height:
                raise ValueError(f"{group}: none of {given.height} {split} labels can be answered")
            own[split] = _rows(predictor, template, kept, number, truncate)
        vectors, record = continuous.fit(
            predictor, own["train"], own["dev"], ids, start, settings, progress
        )
        found.vectors[group] = vectors.float().cpu().numpy()
        found.records[group] = {**record, "dropped": dropped, "template": template.text}
        log.info("%s %s: dev P@1 %.3f after %d steps", prompt, group, record["dev"], record["step"])
        for chunk in part(rows, "dev", "test").iter_slices(SLICE):
            encoded = encode(loaded, template, fields(chunk), truncate=truncate)
            scores = continuous.scores(predictor, encoded, vectors, ids, namer(chunk))
            frames.append(outcomes(prompt, chunk, words, scores))
    found.outcomes = pl.concat(frames)
    return found


def _rows(
    predictor: Predictor,
    template: Template,
    rows: pl.DataFrame,
    number: Mapping[str, int],
    truncate: str,
) -> continuous.Rows:
    encoded = encode(predictor.loaded, template, fields(rows), truncate=truncate)
    gold = [number[label] for label in rows["label"]]
    numbers = pl.Series(gold, dtype=pl.Int64).to_numpy().copy()
    return continuous.Rows(encoded, numbers, namer(rows))

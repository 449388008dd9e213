"""Prompts of words, alone and as weighted ensembles (LPAQA), and the best of several by dev facts.

    score(answer) = sum of weight x log p(answer | subject, wording)

Jiang, Xu, Araki, Neubig 2020, section 4.2; the weights of a relation sum to 1. The sum is no
normalized log-probability; ranks do not need it.
"""

import logging
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from kgprobe.metrics.ranking import reciprocal_rank
from kgprobe.probes.models.predict import Name, Predictor
from kgprobe.probes.prompts.wordings.published import PublishedTemplate
from kgprobe.probes.ranked import fields, framed, namer, outcomes, part
from kgprobe.probes.scoring.cloze.words import Done, word_scores
from kgprobe.templates import Template

log = logging.getLogger("kgprobe")
#: examples whose scores of all words are held at once
SLICE = 500


def ensemble_scores(
    predictor: Predictor,
    wordings: Sequence[PublishedTemplate],
    filled: Sequence[Mapping[str, str]],
    words: Sequence[str],
    prefix: str = "",
    truncate: str = "",
    done: Done = lambda examples: None,
    name: Name = "example {}".format,
) -> NDArray[np.float64]:
    """(n, words) float64: weighted sum of log-probabilities over the wordings of one relation.

    `prefix` is text with fields in front of every wording, such as "{context} [SEP] ".
    """
    if not wordings:
        raise ValueError("an ensemble without wordings")
    total = np.zeros((len(filled), len(words)))
    for wording in wordings:
        template = Template.parse(prefix + wording.text, predictor.loaded.spec.kind)
        total += wording.weight * word_scores(
            predictor, template, filled, words, truncate=truncate, done=done, name=name
        )
    return total


def ensemble(
    prompt: str,
    predictor: Predictor,
    examples: pl.DataFrame,
    words: Sequence[str],
    wordings: Mapping[str, Sequence[PublishedTemplate]],
    splits: Sequence[str] = ("dev", "test"),
    prefix: str = "",
    truncate: str = "",
    done: Done = lambda examples: None,
) -> pl.DataFrame:
    """OUTCOMES of the wordings of every relation; one wording of weight 1 is a prompt by itself.

    `words` are answers that are single tokens (`answerable`). Relations without usable wordings
    have no rows, and are logged. `done` counts examples x wordings.
    """
    frames = []
    for group, rows in _groups(examples, splits):
        templates = wordings.get(group, ())
        if not templates:
            log.warning("%s: no wording of %s is usable; %d examples", prompt, group, rows.height)
            continue
        for chunk in rows.iter_slices(SLICE):
            scores = ensemble_scores(
                predictor, templates, fields(chunk), words, prefix, truncate, done, namer(chunk)
            )
            frames.append(outcomes(prompt, chunk, words, scores))
    return pl.concat(frames) if frames else framed([])


def choose(
    predictor: Predictor,
    rows: pl.DataFrame,
    wordings: Sequence[PublishedTemplate],
    words: Sequence[str],
    prefix: str = "",
    truncate: str = "",
    done: Done = lambda examples: None,
) -> tuple[int, list[float]]:
    """(the wording with the highest MRR on `rows`, the MRR of each); the first on ties.

    A gold that is not among the words counts as reciprocal rank 0.
    """
    values = []
    for wording in wordings:
        by_group = {str(group): [wording] for group in rows["group"].unique()}
        splits = sorted(rows["split"].unique().to_list())
        frame = ensemble("", predictor, rows, words, by_group, splits, prefix, truncate, done)
        values.append(mean_reciprocal_rank(frame))
    return int(np.argmax(values)), values


def mean_reciprocal_rank(frame: pl.DataFrame) -> float:
    """The MRR of OUTCOMES by which prompts are chosen on dev; a gold without rank counts 0."""
    ranked = frame.drop_nulls("best")
    best, worst = (ranked[name].to_numpy().astype(np.int64) for name in ("best", "worst"))
    return float(reciprocal_rank(best, worst).sum() / max(frame.height, 1))


def choose_by_relation(
    prompt: str,
    predictor: Predictor,
    examples: pl.DataFrame,
    words: Sequence[str],
    wordings: Mapping[str, Sequence[PublishedTemplate]],
    splits: Sequence[str] = ("dev", "test"),
    prefix: str = "",
    truncate: str = "",
    done: Done = lambda examples: None,
) -> tuple[pl.DataFrame, dict[str, dict[str, Any]]]:
    """(OUTCOMES, record per relation) of the wording that is best on the relation's dev facts.

    The equal budget of a manual prompt: it sees the facts that a searched prompt is selected on.
    """
    best: dict[str, list[PublishedTemplate]] = {}
    record: dict[str, dict[str, Any]] = {}
    for group, rows in _groups(examples, ("dev",)):
        templates = wordings.get(group, ())
        if not templates:
            continue
        number, values = choose(predictor, rows, templates, words, prefix, truncate, done)
        best[group] = [PublishedTemplate(templates[number].text)]
        record[group] = {
            "wording": templates[number].text,
            "number": number,
            "dev_mrr": round(values[number], 6),
            "candidates": len(templates),
            "n": rows.height,
        }
    frame = ensemble(prompt, predictor, examples, words, best, splits, prefix, truncate, done)
    return frame, record


def _groups(examples: pl.DataFrame, splits: Sequence[str]) -> Iterator[tuple[str, pl.DataFrame]]:
    parts = part(examples, *splits).partition_by("group", as_dict=True)
    for (group,), rows in sorted(parts.items()):
        yield str(group), rows


def work(
    examples: pl.DataFrame, splits: Sequence[str], wordings: Mapping[str, Sequence[Any]]
) -> int:
    """How many (example, wording) pairs an ensemble reads."""
    parts = _groups(examples, splits)
    return sum(rows.height * len(wordings.get(group, ())) for group, rows in parts)

"""Prompts of words, alone and as weighted ensembles (LPAQA), and the best of several by dev facts.

    score(answer) = sum of weight x log p(answer | subject, wording)

Jiang, Xu, Araki, Neubig 2020, section 4.2; the weights of a relation sum to 1. The sum is no
normalized log-probability; ranks do not need it.
"""

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from kgprobe.metrics.ranking import reciprocal_rank
from kgprobe.probes.models.predict import Predictor
from kgprobe.probes.prompts.wordings.published import PublishedTemplate
from kgprobe.probes.ranked import fields, framed, namer, outcomes, part
from kgprobe.probes.scoring.cloze.words import Done, word_scores
from kgprobe.templates import Template

log = logging.getLogger("kgprobe")
#: examples whose scores of all words are held at once
SLICE = 500
#: wordings of every relation
Wordings = Mapping[str, Sequence[PublishedTemplate]]


@dataclass(frozen=True)
class Ensembles:
    """What a model answers to wordings: one of weight 1 is a prompt by itself.

    `words` are answers that are single tokens (`answerable`); `prefix` is text with fields in front
    of every wording, such as "{context} [SEP] "; `truncate` names the field to cut; `done` counts
    examples x wordings.
    """

    predictor: Predictor
    words: Sequence[str]
    prefix: str = ""
    truncate: str = ""
    done: Done = lambda examples: None

    def answer(
        self,
        prompt: str,
        examples: pl.DataFrame,
        wordings: Wordings,
        splits: Sequence[str] = ("dev", "test"),
    ) -> pl.DataFrame:
        """OUTCOMES of the wordings of every relation, those without usable ones logged."""
        frames = []
        for group, rows in _groups(examples, splits):
            if templates := wordings.get(group, ()):
                frames += [
                    outcomes(prompt, chunk, self.words, self._scores(templates, chunk))
                    for chunk in rows.iter_slices(SLICE)
                ]
            else:
                message = "%s: no wording of %s is usable; %d examples"
                log.warning(message, prompt, group, rows.height)
        return pl.concat(frames) if frames else framed([])

    def _scores(self, wordings: Sequence[PublishedTemplate], rows: pl.DataFrame) -> Any:
        """(n, words) float64: weighted sum of log-probabilities over the wordings of a relation."""
        filled, total = fields(rows), np.zeros((rows.height, len(self.words)))
        for wording in wordings:
            template = Template.parse(self.prefix + wording.text, self.predictor.loaded.spec.kind)
            total += wording.weight * word_scores(
                self.predictor, template, filled, self.words, self.truncate, self.done, namer(rows)
            )
        return total

    def choose(
        self, rows: pl.DataFrame, wordings: Sequence[PublishedTemplate]
    ) -> tuple[int, list[float]]:
        """(the wording with the highest MRR on `rows`, the MRR of each); the first on ties.

        A gold that is not among the words counts as reciprocal rank 0.
        """
        values, splits = [], sorted(rows["split"].unique().to_list())
        for wording in wordings:
            by_group = {str(group): [wording] for group in rows["group"].unique()}
            values.append(mean_reciprocal_rank(self.answer("", rows, by_group, splits)))
        return int(np.argmax(values)), values

    def choose_by_relation(
        self, prompt: str, examples: pl.DataFrame, wordings: Wordings
    ) -> tuple[pl.DataFrame, dict[str, dict[str, Any]]]:
        """(OUTCOMES, record per relation) of the wording that is best on the relation's dev facts.

        The equal budget of a manual prompt: it sees the facts that a searched prompt is selected
        on.
        """
        best: dict[str, list[PublishedTemplate]] = {}
        record: dict[str, dict[str, Any]] = {}
        for group, rows in _groups(examples, ("dev",)):
            if templates := wordings.get(group, ()):
                number, values = self.choose(rows, templates)
                best[group] = [PublishedTemplate(templates[number].text)]
                record[group] = {
                    "wording": templates[number].text,
                    "number": number,
                    "dev_mrr": round(values[number], 6),
                    "candidates": len(templates),
                    "n": rows.height,
                }
        return self.answer(prompt, examples, best), record


def mean_reciprocal_rank(frame: pl.DataFrame) -> float:
    """The MRR of OUTCOMES by which prompts are chosen on dev; a gold without rank counts 0."""
    ranked = frame.drop_nulls("best")
    best, worst = (ranked[name].to_numpy().astype(np.int64) for name in ("best", "worst"))
    return float(reciprocal_rank(best, worst).sum() / max(frame.height, 1))


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

"""Prompts of words, alone and as weighted ensembles (LPAQA), and the best of several by dev facts.

    score(answer) = sum of weight x log p(answer | subject, wording)

Jiang, Xu, Araki, Neubig 2020, section 4.2; the weights of a relation sum to 1. The sum is no
normalized log-probability; ranks do not need it.
"""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from kgprobe.metrics.ranking import reciprocal_rank
from kgprobe.probes.models.batching import Ints
from kgprobe.probes.models.finite import finite
from kgprobe.probes.models.load import Loaded
from kgprobe.probes.models.predict import Name, Predictor
from kgprobe.probes.prompts.wordings.published import PublishedTemplate
from kgprobe.probes.ranked import fields, framed, namer, outcomes, part
from kgprobe.probes.text.prompts import encode, label_pieces
from kgprobe.templates import Template

log = logging.getLogger("kgprobe")
#: examples whose scores of all words are held at once
SLICE = 500
Done = Callable[[int], object]
#: the form that words have behind a blank, in the middle of a text
REFERENCE = "{sub} [P]"
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


def answerable(loaded: Loaded, words: Sequence[str]) -> list[str]:
    """The words that are one token behind a blank, in their order; no two share a token."""
    parsed = Template.parse(REFERENCE, loaded.spec.kind)
    unknown, seen, singles = loaded.tokenizer.unk_token_id, set(), []
    for word, ids in zip(words, label_pieces(loaded, parsed, words), strict=True):
        if len(ids) == 1 and ids[0] != unknown and int(ids[0]) not in seen:
            seen.add(int(ids[0]))
            singles.append(word)
    return singles


def word_ids(loaded: Loaded, template: Template, words: Sequence[str]) -> tuple[Ints, int]:
    """(id of every word at [P] of this template, how many are there in their blank form instead).

    A vocabulary holds most words behind a blank only: where [P] stands at the start of a text, a
    word without a token for that keeps the one it has elsewhere. Raises ValueError for a word that
    is no single token at all (see `answerable`).
    """
    pieces = label_pieces(loaded, template, words)
    usual = label_pieces(loaded, Template.parse(REFERENCE, loaded.spec.kind), words)
    unknown, ids, other = loaded.tokenizer.unk_token_id, [], 0
    for word, here, there in zip(words, pieces, usual, strict=True):
        single = len(here) == 1 and here[0] != unknown
        if not single and (len(there) != 1 or there[0] == unknown):
            raise ValueError(f"{word!r} is no single token of {loaded.spec.model}")
        other += not single
        ids.append(int(here[0] if single else there[0]))
    return np.array(ids, dtype=np.int64), other


def word_scores(
    predictor: Predictor,
    template: Template,
    fields: Sequence[Mapping[str, str]],
    words: Sequence[str],
    truncate: str = "",
    done: Done = lambda examples: None,
    name: Name = "example {}".format,
) -> NDArray[np.float64]:
    """(n, words) float64: log-probability, over the whole vocabulary, of every word at [P].

    `truncate` names the field to cut. Raises NotFiniteError, with `name` and word.
    """
    encoded = encode(predictor.loaded, template, fields, truncate=truncate)
    ids, _ = word_ids(predictor.loaded, template, words)
    scores = np.zeros((len(encoded), len(ids)))

    def read(rows: Ints, logits: Any, totals: Any) -> None:
        logprobs = (logits - totals[:, None]).double().cpu().numpy()
        finite(
            logprobs,
            predictor.loaded.spec.model,
            lambda row, word: f"{name(int(rows[row]))}, word {word} (token {ids[word]})",
        )
        scores[rows] = logprobs
        done(len(rows))

    predictor.visit(encoded.rows, encoded.places, read, encoded.types, ids, name)
    return scores

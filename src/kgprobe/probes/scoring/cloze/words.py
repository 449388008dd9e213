"""Log-probabilities of given words at [P] of a template: one column for each word."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kgprobe.probes.models.batching import Ints
from kgprobe.probes.models.finite import finite
from kgprobe.probes.models.load import Loaded
from kgprobe.probes.models.predict import Name, Predictor
from kgprobe.probes.text.prompts import encode, label_pieces
from kgprobe.templates import Template

Done = Callable[[int], object]
#: the form that words have behind a blank, in the middle of a text
REFERENCE = "{sub} [P]"


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

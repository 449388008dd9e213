"""Whether a model that is read in another way says what its float32 weights say on a processor.

Weights in 8 or 4 bit, a server of others and layers on several devices move scores; some questions
are scored in both ways, and what is found stands with the answers.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kgprobe.probes.scoring.sentence.recheck import Question, rows_of

#: Least share of questions whose best option must be one in float32, too.
EQUAL = 0.95
#: Largest difference (nat) of a sentence where both ways compute in float32 with the same weights:
#: ten times what two orders of sums differ by (docs/scoring.md, Arithmetic).
LARGEST = 5e-3


def spaced(columns: Mapping[str, Any], count: int) -> list[Question]:
    """At most `count` questions, evenly spaced over all of them in their order."""
    found = list(rows_of(columns))
    places = np.unique(np.linspace(0, len(found) - 1, min(count, len(found))).astype(int))
    return [found[place] for place in places]


def measured(
    columns: Mapping[str, Any],
    exact: Mapping[Question, Mapping[str, NDArray[Any]]],
    is_same: bool,
) -> dict[str, Any]:
    """How far `columns` (of `sentence.Scores`) are from the `exact` columns of some questions.

    The record holds: questions, sentences, largest and mean absolute difference (nat) of a
    sentence's log-likelihood, the share of questions whose best option is one in `exact`, and
    whether that is enough; where both ways have the same weights and arithmetic (`is_same`), the
    largest difference counts, too. Raises ValueError without questions.
    """
    if not exact:
        raise ValueError("agreement of no questions")
    rows = rows_of(columns)
    moved: list[NDArray[np.float64]] = []
    equal: list[bool] = []
    for question, own in exact.items():
        found, expected = columns["sum"][rows[question]], own["sum"]
        moved.append(np.abs(found - expected))
        equal.append(bool(expected[found.argmax()] == expected.max()))
    whole = np.concatenate(moved)
    record = {
        "questions": len(equal),
        "sentences": len(whole),
        "largest": float(whole.max()),
        "mean": float(whole.mean()),
        "equal_best": float(np.mean(equal)),
    }
    agrees = record["equal_best"] >= EQUAL and (not is_same or record["largest"] <= LARGEST)
    return {**record, "agrees": bool(agrees)}


def told(record: Mapping[str, Any], model: str) -> str:
    """The record in a sentence."""
    return (
        f"{model}: against float32 on the processor, {record['sentences']} sentences of "
        f"{record['questions']} questions are off by {record['mean']:.2g} nat, at most "
        f"{record['largest']:.2g}; {record['equal_best']:.1%} of the best options are equal"
    )

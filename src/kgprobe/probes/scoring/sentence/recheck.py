"""Near ties of a non-exact mode, scored again in float32.

Half precision or compiled arithmetic moves scores a little. Where the two best options of a
question lie closer together than that, the answer may be wrong: such questions are scored again
exactly. How much scores move is measured on the first questions.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: Least margin (nat) between the two best sums that is believed.
MARGIN = 0.5
#: Questions that both modes score, so that the margin fits the model.
CALIBRATION = 200
#: The arithmetic that needs no second look.
EXACT = "float32"
Question = tuple[str, int]
#: exact columns of given questions, by question, each in the order of its options
Exact = Callable[[Sequence[Question]], Mapping[Question, Mapping[str, NDArray[Any]]]]
NUMBERS = ("sum", "answer_sum", "continuation_sum")


def run(
    columns: dict[str, Any],
    exact: Exact,
    margin: float = MARGIN,
    calibration: int = CALIBRATION,
) -> tuple[dict[str, Any], dict[str, float]]:
    """Columns with the near ties replaced, and what was done.

    `columns` are those of `sentence.Scores`; they stay as they are. The margin is at least `margin`
    and at least twice the largest move of one option against the others in the calibration. The
    record holds: questions, rechecked, changed answers, largest difference (nat), margin.
    """
    rows = rows_of(columns)
    columns = {name: np.array(values, copy=True) for name, values in columns.items()}
    sums = columns["sum"]
    first = list(rows)[:calibration]
    moved = _replace(columns, rows, first, exact(first))
    bound = max(margin, 2 * max(moved["relative"], default=0.0))
    near = [q for q in list(rows)[calibration:] if _lead(sums[rows[q]]) < bound]
    more = _replace(columns, rows, near, exact(near)) if near else {"relative": [], "absolute": []}
    changed = _changed(moved, more)
    record = {
        "margin": float(bound),
        "questions": len(rows),
        "rechecked": len(first) + len(near),
        "changed_answers": changed,
        "largest_difference": float(max([*moved["absolute"], *more["absolute"]], default=0.0)),
    }
    return columns, record


def rows_of(columns: Mapping[str, Any]) -> dict[Question, NDArray[np.int64]]:
    """Row numbers of every question, in the order of its options."""
    found: dict[Question, list[int]] = {}
    for number, key in enumerate(zip(columns["item"], columns["template"], strict=True)):
        found.setdefault((str(key[0]), int(key[1])), []).append(number)
    order = np.asarray(columns["candidate"])
    return {q: np.array(rows)[np.argsort(order[rows])] for q, rows in found.items()}


def _lead(sums: NDArray[np.float64]) -> float:
    """How far the best option is ahead of the second; infinite for a single option."""
    if len(sums) < 2:
        return float("inf")
    best = np.partition(sums, -2)[-2:]
    return float(best[1] - best[0])


def _replace(
    columns: dict[str, Any],
    rows: Mapping[Question, NDArray[np.int64]],
    questions: Sequence[Question],
    found: Mapping[Question, Mapping[str, NDArray[Any]]],
) -> dict[str, list[float]]:
    """Put the exact numbers in; how far sums moved, absolutely and against the other options."""
    moves: dict[str, list[float]] = {"absolute": [], "relative": [], "changed": []}
    for question in questions:
        own, exact = rows[question], found[question]
        before = columns["sum"][own].copy()
        difference = before - exact["sum"]
        moves["absolute"].append(float(np.abs(difference).max()))
        moves["relative"].append(float(np.ptp(difference) / 2))
        moves["changed"].append(float(before.argmax() != exact["sum"].argmax()))
        for name in NUMBERS:
            columns[name][own] = exact[name]
    return moves


def _changed(*moves: Mapping[str, list[float]]) -> int:
    return int(sum(sum(m.get("changed", [])) for m in moves))

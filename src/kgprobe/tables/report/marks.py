"""Signs behind names and numbers, wherever they are printed, and the notes that explain them.

MARK, behind a model: its numbers say nothing. When a model is loaded for answering, the loss of
plain sentences is measured beside the loss of the same words shuffled
(probes/models/completeness.py) and stored with the answers. Where the shuffled words are as good,
tokenizer and weights do not belong together, or the weights are random.

OUTSIDE, behind the model of a probe: the probe does not separate trained-on from held-out facts as
it has to (tables/report/validity.py). FEW, behind a number: so few rows stand behind it that it is
a smoke test.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from kgprobe.tables.answers import recorded
from kgprobe.tables.results import Number

#: metric of RESULTS: 1 where tokenizer and weights belong together, 0 where they do not
COMPLETE = "weights complete"
#: Stands behind the name of such a model, in every table and figure.
MARK = " (!)"
NOTE = (
    "(!): the model finds plain sentences no more likely than the same words shuffled. Its "
    "tokenizer does not match its weights, or it is not trained; its numbers say nothing about "
    "knowledge."
)
#: Stands behind the model's name of a probe that does not meet the requirement.
OUTSIDE = " (?)"
OUTSIDE_NOTE = (
    "(?): the probe fails the validity requirement. With this method, control models rank "
    "trained-on facts first too rarely, or held-out facts too often; see the page on validity "
    "before you interpret its numbers."
)
#: Stands behind a number of fewer distinct rows than FEWEST, of which the interval of a half is
#: still 40 points wide; the direction of a claim is not decided from fewer either
#: (tables/claims/verdicts.py). The papers' smallest set has 28.
FEW, FEWEST = " †", 20
FEW_NOTE = (
    f"†: fewer than {FEWEST} rows, or a smaller denominator: a smoke test, which shows little more "
    "than that the code runs."
)
#: the dimensions of a probe in a legend, and their values
WHO = ("model", "prompt", "method")
Who = tuple[str, ...]


def size(row: Mapping[str, Any]) -> int:
    """Distinct rows behind a number (a row of RESULTS, or its `n` alone): n, or the denominator of
    a fraction where that is less."""
    # what is no fraction may have a count below it alone
    if None in (row.get("numerator"), row.get("denominator")):
        return int(row["n"])
    return min(int(row["n"]), int(row["denominator"]))


def few(row: Mapping[str, Any], digits: int = 1) -> str:
    """The sign of a number of fewer than FEWEST distinct rows (`size`): "" where n is 0, since no
    rows were counted, and behind what has no digits after the point, which counts."""
    return FEW if digits > 0 and row["n"] > 0 and size(row) < FEWEST else ""


def completeness(path: str | Path) -> dict[str, object]:
    """What was measured when the model of some answers was loaded; {} for models of servers."""
    return dict(recorded(path, "model").get("completeness") or {})


def estimates(rows: Sequence[Mapping[str, str]], paths: Sequence[str | Path]) -> list[Number]:
    """COMPLETE of every model whose sentences were measured; `paths`: the answers of each row
    of experiments. One file is enough to mark a model everywhere."""
    verdicts: dict[str, bool] = {}
    for row, path in zip(rows, paths, strict=True):
        verdict = completeness(path).get("belongs")
        if isinstance(verdict, bool):
            verdicts[row["model"]] = verdict and verdicts.get(row["model"], True)
    return [Number(metric=COMPLETE, model=m, value=is_met) for m, is_met in verdicts.items()]


def signs(results: pl.DataFrame) -> Callable[[Mapping[str, Any]], str]:
    """What stands behind a number of RESULTS: MARK where its model is not COMPLETE, OUTSIDE
    where its probe is not `valid`. A dimension that is "" there stands for all that have no verdict
    of their own.
    """
    probe = ("paper", "benchmark", "group", "model", "prompt", "method", "scoring")
    rules = [
        (MARK, COMPLETE, ("model",)),
        (OUTSIDE, "valid", probe),
    ]
    verdicts = {
        name: {
            tuple(row[k] for k in keys): row["value"]
            for row in results.filter(metric=name).rows(named=True)
        }
        for _, name, keys in rules
    }

    def is_wrong(name: str, keys: Sequence[str], row: Mapping[str, Any]) -> bool:
        """Whether the verdict that names most of a row's dimensions is against it."""
        values = tuple(row[k] for k in keys)
        matches = [
            (sum(map(bool, key)), value)
            for key, value in verdicts[name].items()
            if all(known in ("", value) for known, value in zip(key, values, strict=True))
        ]
        return bool(matches) and max(matches)[1] == 0

    def sign(row: Mapping[str, Any]) -> str:
        return "".join(mark for mark, name, keys in rules if is_wrong(name, keys, row))

    return sign


def names(rows: Sequence[Mapping[str, Any]], signed: Sequence[str]) -> list[str]:
    """Per row of RESULTS the shortest unique name of its probe: the model with the signs of its
    number, and what differs."""
    shown = []
    for row, sign in zip(rows, signed, strict=True):
        rivals = [r for r in rows if r["model"] == row["model"]]
        parts = [
            row[d] for d in ("benchmark", "method", "prompt") if any(r[d] != row[d] for r in rivals)
        ]
        shown.append(", ".join([row["model"] + sign, *parts]))
    return shown


def legend(
    rows: Iterable[Mapping[str, Any]], sign: Callable[[Mapping[str, Any]], str]
) -> dict[Who, str]:
    """Names of the probes of RESULTS in a legend of several panels: whatever benchmark they were
    asked. A sign that stands behind one of a probe's numbers stands in its name."""
    first: dict[Who, Mapping[str, Any]] = {}
    for row in rows:
        who = tuple(row[d] for d in WHO)
        first[who] = max(first.get(who, row), row, key=lambda r: len(sign(r)))
    alike = [{**row, "benchmark": ""} for row in first.values()]
    return dict(zip(first, names(alike, [*map(sign, first.values())]), strict=True))


def panels(shown: Iterable[tuple[str, str]]) -> dict[tuple[str, str], str]:
    """Titles of panels by benchmark and group: the benchmark only where it tells them apart."""
    every = list(shown)
    several = len({benchmark for benchmark, _ in every}) > 1
    return {
        (benchmark, group): ", ".join([group] * bool(group) + [benchmark] * (several or not group))
        for benchmark, group in every
    }


def notes(texts: Iterable[str]) -> list[str]:
    """The note that explains each mark, where one of the texts that are shown has it."""
    shown = list(texts)
    explained = {MARK: NOTE, OUTSIDE: OUTSIDE_NOTE, FEW: FEW_NOTE}
    return [note for mark, note in explained.items() if any(mark in text for text in shown)]

"""Marks on names and numbers, wherever they are printed, and the notes that explain them.

MARK, after a model: its numbers are not meaningful. When a model is loaded for answering, the loss
of plain sentences is compared with the loss of the same words shuffled
(probes/models/completeness.py) and stored with the answers. If the shuffled words are as likely,
tokenizer and weights do not match, or the weights are random.

OUTSIDE, after the model of a probe: the probe does not separate trained-on from held-out facts as
required (tables/report/validity.py). FEW, after a number: it is based on so few rows that it is
only a smoke test.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from kgprobe.tables.answers import recorded
from kgprobe.tables.results import Number

#: metric of RESULTS: 1 if tokenizer and weights match, 0 if not
COMPLETE = "weights complete"
#: Appended to the name of such a model, in every table and figure.
MARK = " (!)"
NOTE = (
    "(!): the model finds plain sentences no more likely than the same words shuffled. Its "
    "tokenizer does not match its weights, or it is not trained; its numbers say nothing about "
    "knowledge."
)
#: Appended to the model's name of a probe that does not meet the requirement.
OUTSIDE = " (?)"
OUTSIDE_NOTE = (
    "(?): the probe fails the validity requirement. With this method, control models rank "
    "trained-on facts first too rarely, or held-out facts too often; see the page on validity "
    "before you interpret its numbers."
)
#: Appended to a number of fewer distinct rows than FEWEST, where the interval of a proportion of
#: one half is still 40 points wide; fewer do not decide the direction of a claim either
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
    """Return the distinct rows behind a number (a row of RESULTS, or only its `n`): n, or the
    denominator of a fraction if that is smaller."""
    # a value that is not a fraction may still have a denominator
    if None in (row.get("numerator"), row.get("denominator")):
        return int(row["n"])
    return min(int(row["n"]), int(row["denominator"]))


def few(row: Mapping[str, Any], digits: int = 1) -> str:
    """Return the mark of a number of fewer than FEWEST distinct rows (`size`): "" if n is 0, since
    no rows were counted, and for numbers printed without decimals, which are counts."""
    return FEW if digits > 0 and row["n"] > 0 and size(row) < FEWEST else ""


def completeness(path: str | Path) -> dict[str, object]:
    """Return the measurements taken when the model of some answers was loaded; {} for servers."""
    return dict(recorded(path, "model").get("completeness") or {})


def estimates(rows: Sequence[Mapping[str, str]], paths: Sequence[str | Path]) -> list[Number]:
    """Return COMPLETE of every model whose sentences were measured; `paths`: the answers of each
    row of experiments. One file is enough to mark a model everywhere."""
    verdicts: dict[str, bool] = {}
    for row, path in zip(rows, paths, strict=True):
        verdict = completeness(path).get("belongs")
        if isinstance(verdict, bool):
            verdicts[row["model"]] = verdict and verdicts.get(row["model"], True)
    return [Number(metric=COMPLETE, model=m, value=is_met) for m, is_met in verdicts.items()]


def signs(results: pl.DataFrame) -> Callable[[Mapping[str, Any]], str]:
    """Return a function of a row of RESULTS that returns its marks: MARK if its model is not
    COMPLETE, OUTSIDE if its probe is not `valid`. A dimension that is "" in a verdict applies to
    all values without a verdict of their own."""
    probe = ("paper", "benchmark", "group", "model", "prompt", "method", "scoring")
    rules = []
    for mark, metric, keys in ((MARK, COMPLETE, ("model",)), (OUTSIDE, "valid", probe)):
        found = results.filter(metric=metric)
        verdicts = dict(zip(found.select(keys).rows(), found["value"], strict=True))
        rules.append((mark, keys, verdicts))

    def sign(row: Mapping[str, Any]) -> str:
        """Return the marks of a row whose most specific verdict is negative."""
        shown = ""
        for mark, keys, verdicts in rules:
            values = tuple(row[k] for k in keys)
            matches = [
                (sum(map(bool, key)), value)
                for key, value in verdicts.items()
                if all(known in ("", value) for known, value in zip(key, values, strict=True))
            ]
            shown += mark * (bool(matches) and max(matches)[1] == 0)
        return shown

    return sign


def names(
    rows: Sequence[Mapping[str, Any]],
    sign: Callable[[Mapping[str, Any]], str],
    apart: Sequence[str] = ("benchmark", "method", "prompt"),
) -> list[str]:
    """Return the shortest unique name of the probe of each row of RESULTS: the model with the marks
    of its number (from `signs`), and those of the dimensions `apart` that differ."""
    shown = []
    for row in rows:
        rivals = [r for r in rows if r["model"] == row["model"]]
        parts = [row[d] for d in apart if any(r[d] != row[d] for r in rivals)]
        shown.append(", ".join([row["model"] + sign(row), *parts]))
    return shown


def legend(
    rows: Iterable[Mapping[str, Any]], sign: Callable[[Mapping[str, Any]], str]
) -> dict[Who, str]:
    """Return names of the probes of RESULTS in a legend of several panels, whatever their
    benchmark. A mark on one of a probe's numbers is included in its name."""
    first: dict[Who, Mapping[str, Any]] = {}
    for row in rows:
        who = tuple(row[d] for d in WHO)
        first[who] = max(first.get(who, row), row, key=lambda r: len(sign(r)))
    named = names([*first.values()], sign, ("method", "prompt"))
    return dict(zip(first, named, strict=True))


def panels(shown: Iterable[tuple[str, str]]) -> dict[tuple[str, str], str]:
    """Return titles of panels by benchmark and group: the benchmark only if it is needed."""
    every = list(shown)
    several = len({benchmark for benchmark, _ in every}) > 1
    return {
        (benchmark, group): ", ".join([group] * bool(group) + [benchmark] * (several or not group))
        for benchmark, group in every
    }


def notes(texts: Iterable[str]) -> list[str]:
    """Return the note that explains each mark found in one of the texts."""
    shown = list(texts)
    explained = {MARK: NOTE, OUTSIDE: OUTSIDE_NOTE, FEW: FEW_NOTE}
    return [note for mark, note in explained.items() if any(mark in text for text in shown)]

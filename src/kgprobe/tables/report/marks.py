"""Signs behind names and numbers, wherever they are printed, and the notes that explain them.

MARK, behind a model: its numbers say nothing. When a model is loaded for answering, the loss of
plain sentences is measured beside the loss of the same words shuffled (probes/models/sound.py) and
stored with the answers. Where the shuffled words are as good, tokenizer and weights do not belong
together, or the weights are random.

OUTSIDE, behind the model of a probe: the probe does not tell taught from untaught facts as it has
to (tables/report/calibration.py). DEPARTS, behind a model: read in 8 or 4 bit, by a server or on
several devices it is too far from its own float32 (probes/scoring/sentence/agreement.py). FEW,
behind a number: few rows stand behind it.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from kgprobe.tables.answers import recorded
from kgprobe.tables.results import Number

#: Stands behind the name of such a model, in every table and figure.
MARK = " (!)"
NOTE = (
    "(!): the model finds plain sentences no likelier than the same words shuffled. "
    "Its tokenizer does not belong to its weights, or the weights are not those of a trained "
    "model; its numbers say nothing of what it knows."
)
#: Stands behind the model's name of a probe whose calibration does not meet the requirement.
OUTSIDE = " (?)"
OUTSIDE_NOTE = (
    "(?): a probe outside the requirement. Asked in this way, a model whose "
    "knowledge was made here ranks taught facts first too rarely, or untaught ones too often; the "
    "chapter on calibration has the figures, and its other numbers are to be read with them."
)
#: Stands behind the name of a model that is not read as it is stored, and shows it.
DEPARTS = " (≠)"
DEPARTS_NOTE = (
    "(≠): quantised, on a server or spread over devices, the model too often has another best "
    "option than the same weights in float32 on a processor, or other log-likelihoods; its numbers "
    "are not those of the plain model. The table of models says how far apart they are."
)
#: Stands behind a number of fewer distinct rows than FEWEST.
FEW, FEWEST = " †", 5
FEW_NOTE = f"†: fewer than {FEWEST} rows."


def few(n: int) -> str:
    """The sign of a number that n distinct rows stand behind, "" where they are enough."""
    return FEW if n < FEWEST else ""


def sound(path: str | Path) -> dict[str, object]:
    """What was measured when the model of some answers was loaded; {} for models of servers."""
    return dict(recorded(path, "model").get("sound") or {})


def agreement(path: str | Path) -> list[dict[str, Any]]:
    """How far the scores of some answers are from float32, as often as it was measured."""
    record = recorded(path, "model")
    asked = [record, *record.get("asked_apart", [])]
    return [dict(one["agreement"]) for one in asked if one.get("agreement")]


def numbers(rows: Sequence[Mapping[str, str]], paths: Sequence[str | Path]) -> list[Number]:
    """`sound` of every model whose sentences were measured, `agrees` of every one that was compared
    with float32; `paths`: the answers of each row of the sheet. One file is enough to mark a model
    everywhere."""
    found: dict[tuple[str, str], bool] = {}
    for row, path in zip(rows, paths, strict=True):
        verdicts = [("sound", sound(path).get("belongs"))]
        verdicts += [("agrees", one["agrees"]) for one in agreement(path)]
        for metric, verdict in verdicts:
            if isinstance(verdict, bool):
                key = metric, row["model"]
                found[key] = verdict and found.get(key, True)
    return [Number(metric=metric, model=m, value=is_met) for (metric, m), is_met in found.items()]


def signs(results: pl.DataFrame) -> Callable[[Mapping[str, Any]], str]:
    """What stands behind a number of RESULTS: MARK where its model is not `sound`, DEPARTS where
    it does not agree with its float32, OUTSIDE where its probe is not `calibrated`. A dimension
    that is "" there stands for all that have no verdict of their own.
    """
    probe = ("paper", "benchmark", "group", "model", "prompt", "method")
    rules = {
        MARK: ("sound", ("model",)),
        DEPARTS: ("agrees", ("model",)),
        OUTSIDE: ("calibrated", probe),
    }
    verdicts = {
        sign: {
            row[:-1]: row[-1] for row in results.filter(metric=name).select(*keys, "value").rows()
        }
        for sign, (name, keys) in rules.items()
    }

    def is_wrong(mark: str, row: Mapping[str, Any]) -> bool:
        """Whether the verdict that names most of a row's dimensions is against it."""
        keys = rules[mark][1]
        found = [
            (sum(map(bool, key)), value)
            for key, value in verdicts[mark].items()
            if all(known in ("", row[c]) for known, c in zip(key, keys, strict=True))
        ]
        return bool(found) and max(found)[1] == 0

    def sign(row: Mapping[str, Any]) -> str:
        return "".join(mark for mark in rules if is_wrong(mark, row))

    return sign


def notes(texts: Iterable[str]) -> list[str]:
    """The note that explains each mark, where one of the texts that are shown has it."""
    shown = list(texts)
    explained = {MARK: NOTE, DEPARTS: DEPARTS_NOTE, OUTSIDE: OUTSIDE_NOTE, FEW: FEW_NOTE}
    return [note for mark, note in explained.items() if any(mark in text for text in shown)]

"""Signs behind names and numbers, wherever they are printed, and the notes that explain them.

MARK, behind a model: its numbers say nothing. When a model is loaded for answering, the loss of
plain sentences is measured beside the loss of the same words shuffled (probes/models/sound.py) and
stored with the answers. Where the shuffled words are as good, tokenizer and weights do not belong
together, or the weights are random.

OUTSIDE, behind the model of a probe: the probe does not tell taught from untaught facts as it has
to (tables/calibration.py). FEW, behind a number: few rows stand behind it.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from kgprobe import schema

#: Stands behind the name of such a model, in every table and figure.
MARK = " (!)"
NOTE = (
    "(!) behind a model's name: it finds plain sentences no likelier than the same words shuffled. "
    "Its tokenizer does not belong to its weights, or the weights are not those of a trained "
    "model; its numbers say nothing of what it knows."
)
#: Stands behind the model's name of a probe whose calibration does not meet the requirement.
OUTSIDE = " (?)"
OUTSIDE_NOTE = (
    "(?) behind a model's name: a probe outside the requirement. Asked in this way, a model whose "
    "knowledge was made here ranks taught facts first too rarely, or untaught ones too often; the "
    "chapter on calibration has the figures, and its other numbers are to be read with them."
)
#: Stands behind a number of fewer distinct rows than FEWEST.
FEW, FEWEST = " †", 5
FEW_NOTE = f"†: fewer than {FEWEST} rows."


def few(n: int) -> str:
    """The sign of a number that n distinct rows stand behind, "" where they are enough."""
    return FEW if n < FEWEST else ""


def sound(path: str | Path) -> dict[str, object]:
    """What was measured when the model of some answers was loaded; {} for models of servers."""
    model = schema.provenance(path).get("model")
    found = model.get("sound") if isinstance(model, dict) else None
    return dict(found) if isinstance(found, dict) else {}


def names(rows: Sequence[Mapping[str, str]], paths: Sequence[str | Path]) -> dict[str, str]:
    """model -> its name as it is shown; `paths`: the answers of each row of the sheet.

    One file is enough to mark a model everywhere.
    """
    wrong = {
        row["model"]
        for row, path in zip(rows, paths, strict=True)
        if sound(path).get("belongs") is False
    }
    return {row["model"]: row["model"] + MARK * (row["model"] in wrong) for row in rows}


def bare(text: str) -> str:
    """A name or label without its marks, which a chapter may know of and another not."""
    return text.replace(MARK, "").replace(OUTSIDE, "")


def notes(texts: Iterable[str]) -> list[str]:
    """The note that explains each mark, where one of the texts that are shown has it."""
    shown = list(texts)
    explained = {MARK: NOTE, OUTSIDE: OUTSIDE_NOTE, FEW: FEW_NOTE}
    return [note for mark, note in explained.items() if any(mark in text for text in shown)]

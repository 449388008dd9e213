"""Models whose numbers say nothing, marked at their names wherever a number of theirs is printed.

When a model is loaded for answering, the loss of plain sentences is measured beside the loss of the
same words shuffled (probes/models/sound.py) and stored with the answers. Where the shuffled words
are as good, tokenizer and weights do not belong together, or the weights are random.
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
    """A name or label without the mark, which a chapter may know of and another not."""
    return text.replace(MARK, "")


def notes(texts: Iterable[str]) -> list[str]:
    """The note that explains the mark, where one of the texts that are shown has it."""
    return [NOTE] if any(MARK in text for text in texts) else []

"""Multiple-choice questions (CHOICES) as rows: the text that a model is given, and its options.

The text is that of `probes.scoring.choice`, so that the likeliest option after it is the one that
kgprobe's scoring mode `text_sum` chooses.
"""

from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from kgprobe.probes.scoring.choice.text import CUE, ChoiceQuestion, prompt

COLUMNS = pa.schema(
    [
        ("item", pa.string()),
        ("part", pa.string()),
        ("task", pa.string()),
        ("premise", pa.string()),
        ("source", pa.string()),
        ("prompt", pa.string()),
        ("question", pa.string()),
        ("options", pa.list_(pa.string())),
        ("correct", pa.int64()),
    ]
)
#: columns that are handed on as they are
KEPT = ("item", "task", "premise", "source", "question")


def write_rows(choices: pl.DataFrame, path: Path) -> None:
    """Write CHOICES as parquet, by part, then by row."""
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = [
        {
            **{key: row[key] for key in KEPT},
            "part": part(row["task"], row["premise"]),
            "prompt": prompt(ChoiceQuestion(row["item"], row["question"], tuple(row["options"])))
            + CUE,
            "options": row["options"],
            "correct": row["gold"],
        }
        for row in choices.sort("task", "premise", "row").rows(named=True)
    ]
    pq.write_table(pa.Table.from_pylist(rows, schema=COLUMNS), path, compression="zstd")


def part(task: str, premise: str) -> str:
    """The part of the questions that an accuracy is of: a task, a rule with its premise left out
    or written."""
    return "_".join(filter(None, [task, premise]))


def parts(choices: pl.DataFrame) -> list[str]:
    """The parts of CHOICES."""
    return sorted({part(*row) for row in choices.select("task", "premise").rows()})

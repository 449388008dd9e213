"""Questions as a Hugging Face data set: one parquet file per configuration, and its rows.

Columns of BEAR sets are those of the published data set (docs/papers/bear.md, Exports), one row per
instance and template, each with its own options; if questions have several correct options,
`correct` is a list in every row. Multiple-choice questions (CHOICES) have the text that
`probes.scoring.choice` gives a model, so that the most likely option after it is the one that
kgprobe's scoring mode `text_sum` chooses. The text of the card is in `card`.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from kgprobe.benchmarks.bear.frames import BearFrames
from kgprobe.contracts import MEANING
from kgprobe.probes.scoring.choice.text import CUE, ChoiceQuestion, prompt
from kgprobe.tables.exports import folders
from kgprobe.tables.exports.folders import relations_in_order
from kgprobe.templates import fill

FILE = "test-00000-of-00001.parquet"
#: types of the non-text columns
TYPES = {
    **dict.fromkeys(("template_index", "correct"), pa.int64()),
    **dict.fromkeys(("answer_options", "text_options", "options"), pa.list_(pa.string())),
}
COLUMNS, LETTERED = (
    pa.schema({column: TYPES.get(column, pa.string()) for column in MEANING[rows]})
    for rows in ("SENTENCES", "LETTERED")
)
#: BEAR sets, or CHOICES
Asked = BearFrames | pl.DataFrame
#: maximum number of sentences held in memory
MOST = 200_000


def columns(sets: BearFrames) -> pa.Schema:
    """Return COLUMNS, with lists of correct options unless every question has exactly one."""
    if (sets.items["answers"].list.len() == 1).all():
        return COLUMNS
    place = COLUMNS.get_field_index("correct")
    return COLUMNS.set(place, pa.field("correct", pa.list_(pa.int64())))


def write_rows(questions: Asked, path: Path) -> None:
    """Write the rows as parquet: for a set, a row group per relation or MOST sentences, to save
    memory; CHOICES by subset, then by row."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(questions, BearFrames):
        with pq.ParquetWriter(path, columns(questions), compression="zstd") as writer:
            for table in tables(questions):
                writer.write_table(table)
        return
    rows = [
        {
            **row,
            "part": part(row["task"], row["premise"]),
            "prompt": prompt(ChoiceQuestion(row["item"], row["question"], tuple(row["options"])))
            + CUE,
            "correct": row["gold"],
        }
        for row in questions.sort("task", "premise", "row").rows(named=True)
    ]
    pq.write_table(pa.Table.from_pylist(rows, schema=LETTERED), path, compression="zstd")


def part(task: str, premise: str) -> str:
    """Name the subset over which an accuracy is computed: a task, or a rule with its premise left
    out or written."""
    return "_".join(filter(None, [task, premise]))


def tables(sets: BearFrames) -> Iterator[pa.Table]:
    """Yield the rows of every relation (by number), by instance, then by template.

    text_options[i] is the sentence with answer_options[i]; its first character is upper-cased, as
    in scoring. composite_id is relation-row-template.
    """
    schema = columns(sets)
    options = {name: rows["label"].to_list() for name, rows in folders.options_of(sets).items()}
    for relation in relations_in_order(sets):
        templates = folders.templates_by_index(sets, relation)
        items = sets.items.filter(relation=relation).sort("row")
        rows: list[dict[str, Any]] = []
        sentences = 0
        for item in items.iter_rows(named=True):
            rows += _rows(item, templates, options[item["candidates"]], schema)
            sentences += len(templates) * len(options[item["candidates"]])
            if sentences > MOST:
                yield pa.Table.from_pylist(rows, schema=schema)
                rows, sentences = [], 0
        if rows:
            yield pa.Table.from_pylist(rows, schema=schema)


def _rows(
    item: dict[str, Any], templates: dict[int, str], labels: list[str], schema: pa.Schema
) -> Iterator[dict[str, Any]]:
    """Yield a question under each of its templates."""
    answers = item["answers"]
    correct = answers if pa.types.is_list(schema.field("correct").type) else answers[0]
    for index, template in templates.items():
        yield {
            "composite_id": f"{item['relation']}-{item['row']}-{index}",
            "relation": item["relation"],
            "item": item["item"],
            "template_index": index,
            "template": template,
            "subject": item["subject"],
            "answer_options": labels,
            "correct": correct,
            "text_options": [fill(template, item["subject"], label).text for label in labels],
        }

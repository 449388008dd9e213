"""BEAR sets as a Hugging Face data set: one parquet per configuration, and the rows in it.

Columns are those of the published data set (docs/papers/bear.md, Exports), one row per instance
and template. Each has its own options; where questions have several correct options, `correct` is a
list in every row. The text of the card is in `card`.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from kgprobe.benchmarks.bear.frames import BearFrames
from kgprobe.tables.exports import folders
from kgprobe.tables.exports.folders import relations_in_order
from kgprobe.templates import fill

FILE = "test-00000-of-00001.parquet"
COLUMNS = pa.schema(
    [
        ("composite_id", pa.string()),
        ("relation", pa.string()),
        ("item", pa.string()),
        ("template_index", pa.int64()),
        ("template", pa.string()),
        ("subject", pa.string()),
        ("answer_options", pa.list_(pa.string())),
        ("correct", pa.int64()),
        ("text_options", pa.list_(pa.string())),
    ]
)


#: sentences that are held in memory at once
MOST = 200_000


def columns(sets: BearFrames) -> pa.Schema:
    """COLUMNS, with lists of correct options where some question has not one."""
    if (sets.items["answers"].list.len() == 1).all():
        return COLUMNS
    place = COLUMNS.get_field_index("correct")
    return COLUMNS.set(place, pa.field("correct", pa.list_(pa.int64())))


def write_rows(sets: BearFrames, path: Path) -> None:
    """Write the rows of a set as parquet, a row group per relation or of MOST sentences, so that
    memory stays small."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with pq.ParquetWriter(path, columns(sets), compression="zstd") as writer:
        for table in tables(sets):
            writer.write_table(table)


def tables(sets: BearFrames) -> Iterator[pa.Table]:
    """The rows of every relation (by number), by instance, then by template.

    text_options[i] is the sentence with answer_options[i]; its first character is upper-cased, as
    in scoring. composite_id is relation-row-template.
    """
    schema, options = columns(sets), folders.options_of(sets)
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
    """A question under each of its templates."""
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

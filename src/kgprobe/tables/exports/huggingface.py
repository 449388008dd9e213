"""BEAR sets as a Hugging Face data set: one parquet per configuration, and the rows in it.

Columns are those of the published data set (bear.md, sections 3.1 and 10.3), one row per instance
and template. The text of the card is in `card`.
"""

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from kgprobe.benchmarks.bear.frames import Sets
from kgprobe.tables.exports.folders import items_of, relations_in_order, templates_of
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


def write_rows(sets: Sets, path: Path) -> None:
    """Write the rows of a set as parquet, a row group per relation, so that memory stays small."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with pq.ParquetWriter(path, COLUMNS, compression="zstd") as writer:
        for table in tables(sets):
            writer.write_table(table)


def tables(sets: Sets) -> Iterator[pa.Table]:
    """The rows of every relation (by number), by instance, then by template.

    text_options[i] is the sentence with answer_options[i]; its first character is upper-cased, as
    in scoring. composite_id is relation-row-template.
    """
    for relation in relations_in_order(sets):
        items, options = items_of(sets, relation)
        labels, templates = options["label"].to_list(), templates_of(sets, relation)
        rows = [
            {
                "composite_id": f"{relation}-{item['row']}-{index}",
                "relation": relation,
                "item": item["item"],
                "template_index": index,
                "template": template,
                "subject": item["subject"],
                "answer_options": labels,
                "correct": item["answer"],
                "text_options": [fill(template, item["subject"], label).text for label in labels],
            }
            for item in items.iter_rows(named=True)
            for index, template in enumerate(templates)
        ]
        yield pa.Table.from_pylist(rows, schema=COLUMNS)

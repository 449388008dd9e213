"""Small EXAMPLES frames for tests of prompts and baselines."""

import json
from collections.abc import Iterable

import polars as pl

from kgprobe.schema import EXAMPLES


def examples(rows: Iterable[dict[str, object]]) -> pl.DataFrame:
    """Return EXAMPLES from rows that give only what differs: label, fields, split, ..."""
    made = []
    for number, row in enumerate(rows):
        name = f"e{number:04d}"
        full = {
            "group": "", "split": "test", "example": name, "fact": name, "surfaces": [],
            "others": [], "flags": [], "fields": {}, **row,
        }  # fmt: skip
        full["fields"] = json.dumps(full["fields"], sort_keys=True)
        made.append(full)
    return pl.DataFrame(made, schema=dict(EXAMPLES.columns), orient="row")

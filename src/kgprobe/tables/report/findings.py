"""The findings that the first page opens with: at most FIVE, by a stated rule."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl

from kgprobe.tables.report import grid, marks
from kgprobe.tables.report.blocks import slug

FIVE = 5
RULE = (
    "The largest differences that this run measured between two answers to the same questions, of "
    "whole benchmarks, whose 95 % interval excludes 0 and, where several are read together, whose "
    "p after Holm's correction is below 0.05: of each benchmark the largest difference from a "
    "floor (what is reached without the subject, or without trained weights) and the largest from "
    "another probe."
)
LEVEL = 0.05


@dataclass(frozen=True)
class Finding:
    """A sentence with the number behind it (as `grid.trace`) and the page that has more."""

    text: str
    trace: str
    href: str


def findings(results: pl.DataFrame) -> list[Finding]:
    """What the numbers of a run support, by RULE. `results`: RESULTS of all papers."""
    whole = results.filter(pl.col("setting").str.contains('"instead"'), slice="", group="")
    key = ["benchmark", "model", "prompt", "method", "setting"]
    tested = whole.filter(metric="p after Holm").select(*key, p="value")
    rows = whole.filter(pl.col("interval") == "paired bootstrap").join(tested, on=key, how="left")
    is_clear = (pl.col("low") > 0) | (pl.col("high") < 0)
    found = rows.filter(is_clear, pl.col("p").is_null() | (pl.col("p") < LEVEL))
    found = found.filter(~pl.col("setting").str.contains("weighting"))
    ranked = found.sort(pl.col("value").abs(), *key, descending=[True, *[False] * len(key)])
    is_floor = pl.col("setting").str.contains('"without ')
    first = ranked.with_columns(floor=is_floor).unique(
        ["benchmark", "floor"], keep="first", maintain_order=True
    )
    return [_finding(row) for row in first.head(FIVE).rows(named=True)]


def _finding(row: Mapping[str, Any]) -> Finding:
    value = row["value"]
    other = json.loads(row["setting"])["instead"]
    word = "higher" if value > 0 else "lower"
    asked = "" if row["prompt"] == "templates" else f", {row['prompt']}"
    size = f"{abs(value):.1f}{marks.few(row)} points"
    text = (
        f"{row['benchmark']}, {row['model']}{asked}: {row['metric']} is {size} "
        f"{word} than {other} ({row['low']:.1f} to {row['high']:.1f}, n = {row['n']:,})."
    )
    return Finding(text, grid.trace(row), f"benchmark-{slug(row['benchmark'])}.html")

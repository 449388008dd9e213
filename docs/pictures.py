"""Draw the pictures of README.md and docs/ from committed measurements: python docs/pictures.py"""

import itertools
import re
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import altair as alt
import polars as pl

from kgprobe.tables.report import draw, measured
from kgprobe.tables.results import plain

ROOT = Path(__file__).parents[1]

MODELS = {
    "control-masked": "control, masked",
    "control-causal": "control, causal",
    "control-seq2seq": "control, seq2seq",
    "smollm2-135m-instruct": "SmolLM2-135M-Instruct",
}


def results(kept: pl.DataFrame) -> draw.Chart:
    """Plot how many trained-on and held-out facts of world_lite each model answers correctly."""
    asked = {"benchmark": "world_lite", "method": "sentence", "group": "", "slice": ""}
    found = {(row["metric"], row["model"]): row
             for row in kept.filter(plain(), **asked).rows(named=True)}  # fmt: skip
    points = [
        draw.point(found[half, model], name=name, facts=f"{half} facts")
        for half in ("trained-on", "held-out") for model, name in MODELS.items()
    ]  # fmt: skip
    look = draw.encode_points("facts", {
        "trained-on facts": (draw.TRAINED_ON, draw.TRAINED_ON, "circle"),
        "held-out facts": (draw.HELD_OUT, draw.HELD_OUT, "square"),
    })  # fmt: skip
    x = draw.numbers(alt.X, "right, % of the facts, 95 % interval", (0, 100))
    base = draw.chart(points, "name", "facts").encode(
        y=alt.Y("name:N", sort=[*MODELS.values()], title=None),
        yOffset=alt.YOffset("facts:N", scale=alt.Scale(paddingOuter=0.7)),
    )
    chance = found["chance for held-out", "control-masked"]["value"]
    level = alt.Chart(alt.InlineData(values=[{"value": chance, "told": "chance"}]))
    level = level.encode(x=x("value:Q"))
    return draw.set_size(
        level.mark_rule(color=draw.MUTED, strokeDash=[2, 2]),
        level.mark_text(align="left", dx=3).encode(y=alt.value(8), text="told:N"),
        draw.intervals(base, x=x).encode(stroke=look["stroke"]),
        base.mark_point().encode(x=x("value:Q"), **look),
        height=160,
    )


def sizes(bench: pl.DataFrame) -> draw.Chart:
    """Plot wall seconds, memory and disk of the nine attributes by the number of statements."""
    shown = {r" \(": "wall seconds", ", peak memory": "peak MB", ", written": "MB written"}
    points = []
    for (end, title), row in itertools.product(shown.items(), bench.rows(named=True)):
        found = re.match(rf"nine attributes from (\d+) M generated statements{end}", row["name"])
        if found:
            points.append({"title": title, "at": int(found[1]), "value": float(row["ours"])})
    linear = []
    for title in shown.values():
        first, *others = sorted((p for p in points if p["title"] == title), key=lambda p: p["at"])
        linear += [{**p, "value": first["value"] * p["at"] / first["at"]} for p in (first, *others)]
    panels = []
    for title in shown.values():
        named = (("measured", points), ("linear in the smallest", linear))
        own = [{**p, "line": line} for line, of in named for p in of if p["title"] == title]
        panels.append(_lines(own, title, "million statements", "log"))
    return alt.hconcat(*panels)


def page_cost(table: pl.DataFrame) -> draw.Chart:
    """Plot CPU seconds of a page and of a listing by the size of the relation, one line per
    engine."""
    titles = {"page": "a page, CPU seconds", "listing": "the listing, CPU seconds"}
    return alt.hconcat(*(
        _lines(
            [{"line": row["engine"], "at": row["statements"], "value": row[column]}
             for row in table.rows(named=True)],
            title, "statements of the relation", "linear",
        )
        for column, title in titles.items()
    ))  # fmt: skip


def _lines(points: Sequence[Mapping[str, Any]], title: str, below: str, scale: Any) -> draw.Chart:
    """One panel: a line for each value of `line`, over a logarithmic axis of counts."""
    places = sorted({point["at"] for point in points})
    x = alt.X("at:Q", title=below, scale=alt.Scale(type="log", nice=False),
              axis=alt.Axis(values=places, format="~s"))  # fmt: skip
    ticks = {"values": [10**power for power in range(7)]} if scale == "log" else {"tickCount": 4}
    y = partial(alt.Y, title=title, scale=alt.Scale(type=scale),
                axis=alt.Axis(grid=True, **ticks))  # fmt: skip
    names = dict.fromkeys(point["line"] for point in points)
    look = draw.encode_points("line", draw.apart(names), columns=3)
    _, *layers = draw.lines(draw.chart(points, "line").encode(x=x), y, look)
    return alt.layer(*layers).properties(width=190, height=150)


def pictures() -> dict[str, str]:
    """Return name -> SVG text of every picture."""
    kept = ROOT / "resources/measured"
    bench = pl.read_csv(kept / "bench.tsv", separator="\t", comment_prefix="# ")
    cost = pl.read_csv(ROOT / "docs/page_cost.tsv", separator="\t")
    charts = {
        "results": results(measured.read(kept / "embedded.tsv").results),
        "sizes": sizes(bench),
        "page_cost": page_cost(cost),
    }
    return {name: draw.svg(draw.specification(chart)) for name, chart in charts.items()}


if __name__ == "__main__":
    for name, text in pictures().items():
        (ROOT / f"docs/{name}.svg").write_text(text, encoding="utf-8")

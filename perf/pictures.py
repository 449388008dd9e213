"""The pictures of README.md and docs/, out of committed measurements alone."""

import itertools
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import altair as alt
import polars as pl

from kgprobe.tables.report import draw

if TYPE_CHECKING:
    from perf.readme import Run

MODELS = {
    "control-masked": "control, masked",
    "control-causal": "control, causal",
    "control-seq2seq": "control, seq2seq",
    "smollm2-135m-instruct": "SmolLM2-135M-Instruct",
}


def results(run: "Run") -> draw.Chart:
    """How many of the taught and untaught facts of world_lite each model has right."""
    asked = {"benchmark": "world_lite", "method": "sentence"}
    points = [
        draw.point(run.row(metric=half, model=model, **asked), name=name, facts=f"{half} facts")
        for half in ("taught", "untaught") for model, name in MODELS.items()
    ]  # fmt: skip
    look = draw.marked("facts", {
        "taught facts": (draw.TAUGHT, draw.TAUGHT, "circle"),
        "untaught facts": (draw.UNTAUGHT, draw.UNTAUGHT, "square"),
    })  # fmt: skip
    x = draw.numbers(alt.X, "right, % of the facts, 95 % interval", (0, 100))
    base = draw.chart(points, "name", "facts").encode(
        y=alt.Y("name:N", sort=[*MODELS.values()], title=None),
        yOffset=alt.YOffset("facts:N", scale=alt.Scale(paddingOuter=0.7)),
    )
    chance = run.row(metric="chance", model="control-masked", **asked)["value"]
    level = alt.Chart(alt.InlineData(values=[{"value": chance, "told": "chance"}]))
    level = level.encode(x=x("value:Q"))
    return draw.sized(
        level.mark_rule(color=draw.MUTED, strokeDash=[2, 2]),
        level.mark_text(align="left", dx=3).encode(y=alt.value(8), text="told:N"),
        draw.intervals(base, x=x).encode(stroke=look["stroke"]),
        base.mark_point().encode(x=x("value:Q"), **look),
        height=160,
    )


def sizes(run: "Run") -> draw.Chart:
    """Wall seconds, memory and disk of the nine attributes by the number of statements."""
    shown = {r" \(": "wall seconds", ", peak memory": "peak MB", ", written": "MB written"}
    points = []
    for (end, title), row in itertools.product(shown.items(), run.rows):
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
    """CPU seconds of a page and of a listing by the size of the relation, a line an engine."""
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
    """One panel: a line for each `line` of the points, over a log axis of counts."""
    places = sorted({point["at"] for point in points})
    x = alt.X("at:Q", title=below, scale=alt.Scale(type="log", nice=False),
              axis=alt.Axis(values=places, format="~s"))  # fmt: skip
    ticks = {"values": [10**power for power in range(7)]} if scale == "log" else {"tickCount": 4}
    y = partial(alt.Y, title=title, scale=alt.Scale(type=scale),
                axis=alt.Axis(grid=True, **ticks))  # fmt: skip
    names = dict.fromkeys(point["line"] for point in points)
    look = draw.marked("line", draw.apart(names), columns=3)
    _, *layers = draw.lines(draw.chart(points, "line").encode(x=x), y, look)
    return alt.layer(*layers).properties(width=190, height=150)


def of(root: Path, run: Callable[[str], "Run"]) -> dict[str, str]:
    """Path -> SVG of every picture whose measurements are there."""
    measured = {"results": (results, "embedded"), "sizes": (sizes, "bench")}
    made = {
        f"docs/{name}.svg": picture(run(of))
        for name, (picture, of) in measured.items()
        if (root / f"resources/measured/{of}.tsv").is_file()
    }
    table = root / "docs/page_cost.tsv"
    if table.is_file():
        made["docs/page_cost.svg"] = page_cost(pl.read_csv(table, separator="\t"))
    return {path: draw.svg(draw.specification(picture)) for path, picture in made.items()}

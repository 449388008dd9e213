"""Reliability plots: how often the answers of one confidence are right (Guo et al. 2017)."""

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Any

import altair as alt
import polars as pl

from kgprobe.tables.confidence import OF_BINS
from kgprobe.tables.report import draw, marks
from kgprobe.tables.report.section import Drawing, drawing

TITLE = "Confidence and accuracy"
CAPTION = (
    "Answers in ten bins of confidence; a larger point has more. On the dashed line confidence and "
    "accuracy are the same."
)
#: of one of several panels, in pixels
SMALL = (110, 110)


def draw_reliability(
    part: str,
    name: str,
    results: pl.DataFrame,
    kinds: Mapping[str, str],
    panels: Iterable[tuple[str, str]],
    aggregation: str = "",
) -> Iterator[Drawing]:
    """The reliability plot, with a panel for each of these benchmarks and groups that RESULTS have
    bins of; nothing without any.

    `kinds`: kind of model by name; `aggregation`: the probes' own, "" where none is named.
    """
    key = ["benchmark", "group", *marks.WHO, "bin"]
    rows = results.filter(
        pl.col("metric").is_in(OF_BINS), pl.col("model").is_in(list(kinds)), aggregation=aggregation
    )
    right, sure = (rows.filter(metric=metric) for metric in OF_BINS)
    right = right.join(sure.select(*key, sure="value"), on=key, maintain_order="left")
    parts = {panel: right.filter(benchmark=panel[0], group=panel[1]) for panel in panels}
    titles = marks.panels(panel for panel, bins in parts.items() if bins.height)
    if titles:
        shown = {title: parts[panel] for panel, title in titles.items()}
        data = rows.join(pl.concat(shown.values()), on=key, how="semi", maintain_order="left")
        yield drawing(part, name, TITLE, CAPTION, plot(shown, results, kinds), data)


def plot(
    panels: Mapping[str, pl.DataFrame], results: pl.DataFrame, kinds: Mapping[str, str]
) -> draw.Chart:
    """Accuracy against mean confidence, a line per probe; several panels have their titles."""
    rows = pl.concat(panels.values()).rows(named=True)
    names = marks.legend(rows, marks.signs(results))
    look = draw.probes({name: kinds[who[0]] for who, name in names.items()})
    return draw.in_panels(partial(_panel, names, look), panels, 300, SMALL)


def _panel(
    names: Mapping[marks.Who, str], look: Mapping[str, Any], rows: pl.DataFrame, is_small: bool
) -> list[alt.Chart]:
    points = [
        draw.point(row, probe=names[tuple(row[d] for d in marks.WHO)], sure=row["sure"])
        for row in rows.rows(named=True)
    ]
    x = draw.numbers(alt.X, "mean confidence, %", draw.PER_CENT)("sure:Q")
    y = draw.numbers(alt.Y, "accuracy, %", draw.PER_CENT)
    base = draw.chart(points, "probe", "sure").encode(x=x)
    _, lines, dots = draw.lines(base, y, look)
    size = alt.Size("n:Q", scale=alt.Scale(type="linear", zero=True, range=[15, 110]), legend=None)
    ends = alt.Chart(alt.InlineData(values=[{"sure": e, "value": e} for e in draw.PER_CENT]))
    same = ends.mark_line(stroke=draw.INK, strokeWidth=1, strokeDash=[4, 3])
    return [lines, dots.encode(size=size), same.encode(x=x, y=y("value:Q"))]

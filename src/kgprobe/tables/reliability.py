"""Reliability plots: how often the answers of one confidence are right (Guo et al. 2017)."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import altair as alt
import polars as pl

from kgprobe.tables.confidence import OF_BINS
from kgprobe.tables.report import draw, marks
from kgprobe.tables.report.section import Drawn

Row = Mapping[str, Any]
#: per probe, in order of the bins, the numbers of OF_BINS
Told = Mapping[marks.Who, Sequence[tuple[Row, Row]]]
TITLE = "Confidence and accuracy"
CAPTION = (
    "Answers in ten bins of confidence; a larger point has more. On the dashed line confidence and "
    "accuracy are the same."
)
#: of several panels: how many stand beside each other, and the pixels of a side
COLUMNS, SIDE = 3, 110


def draw_reliability(
    part: str,
    name: str,
    results: pl.DataFrame,
    kinds: Mapping[str, str],
    panels: Iterable[tuple[str, str]],
    aggregation: str = "",
) -> Iterator[Drawn]:
    """The reliability plot, with a panel for each of these benchmarks and groups that RESULTS have
    bins of; nothing without any.

    `kinds`: kind of model by name; `aggregation`: the probes' own, "" where none is named.
    """
    rows = results.filter(pl.col("metric").is_in(OF_BINS), pl.col("model").is_in(list(kinds))).rows(
        named=True
    )
    by_panel: dict[tuple[str, str], dict[marks.Who, dict[float, dict[str, Row]]]] = {}
    for row in rows:
        if row["aggregation"] == aggregation:
            who = tuple(row[d] for d in marks.WHO)
            bins = by_panel.setdefault((row["benchmark"], row["group"]), {}).setdefault(who, {})
            bins.setdefault(float(row["bin"]), {})[row["metric"]] = row
    shown = [key for key in panels if key in by_panel]
    plotted = {
        title: {
            who: [(bins[at][OF_BINS[0]], bins[at][OF_BINS[1]]) for at in sorted(bins)]
            for who, bins in by_panel[panel].items()
        }
        for panel, title in marks.panels(shown).items()
    }
    if plotted:
        data = [row for by in plotted.values() for pairs in by.values() for p in pairs for row in p]
        yield Drawn(part, name, TITLE, CAPTION, plot(plotted, results, kinds), pl.DataFrame(data))


def plot(panels: Mapping[str, Told], results: pl.DataFrame, kinds: Mapping[str, str]) -> draw.Chart:
    """Accuracy against mean confidence, a line per probe; several panels have their titles."""
    first = [pairs[0][0] for data in panels.values() for pairs in data.values()]
    names = marks.legend(first, marks.signs(results))
    look = draw.probes({name: kinds[who[0]] for who, name in names.items()})
    if len(panels) == 1:
        (data,) = panels.values()
        return draw.set_size(*_panel(data, names, look), height=300)
    small = [
        alt.layer(*_panel(data, names, look)).properties(width=SIDE, height=SIDE, title=title)
        for title, data in panels.items()
    ]
    return alt.concat(*small, columns=COLUMNS, spacing=8)


def _panel(data: Told, names: Mapping[marks.Who, str], look: Mapping[str, Any]) -> list[alt.Chart]:
    points = [
        draw.point(right, probe=names[who], sure=sure["value"])
        for who, pairs in data.items()
        for right, sure in pairs
    ]
    x = draw.numbers(alt.X, "mean confidence, %", draw.PER_CENT)("sure:Q")
    y = draw.numbers(alt.Y, "accuracy, %", draw.PER_CENT)
    base = draw.chart(points, "probe", "sure").encode(x=x)
    _, lines, dots = draw.lines(base, y, look)
    size = alt.Size("n:Q", scale=alt.Scale(type="linear", zero=True, range=[15, 110]), legend=None)
    ends = alt.Chart(alt.InlineData(values=[{"sure": e, "value": e} for e in draw.PER_CENT]))
    same = ends.mark_line(stroke=draw.INK, strokeWidth=1, strokeDash=[4, 3])
    return [lines, dots.encode(size=size), same.encode(x=x, y=y("value:Q"))]

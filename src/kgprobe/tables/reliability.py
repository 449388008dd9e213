"""Reliability plots: how often the answers of one confidence are right (Guo et al. 2017)."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import altair as alt
import polars as pl

from kgprobe.tables.confidence import OF_BINS
from kgprobe.tables.report import draw, marks
from kgprobe.tables.report.chapter import Drawn

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
    own: str = "",
) -> Iterator[Drawn]:
    """The plot of what RESULTS tell of these benchmarks and groups, a panel for each that they tell
    anything of; nothing without any.

    `kinds`: kind of model by name; `own`: the probes' own aggregation, "" where none is named.
    """
    rows = results.filter(pl.col("metric").is_in(OF_BINS), pl.col("model").is_in(list(kinds))).rows(
        named=True
    )
    found: dict[tuple[str, str], dict[marks.Who, dict[float, dict[str, Row]]]] = {}
    for row in rows:
        if row["aggregation"] == own:
            who = tuple(row[d] for d in marks.WHO)
            bins = found.setdefault((row["benchmark"], row["group"]), {}).setdefault(who, {})
            bins.setdefault(float(row["bin"]), {})[row["metric"]] = row
    shown = [key for key in panels if key in found]
    told = {
        title: {
            who: [(bins[at][OF_BINS[0]], bins[at][OF_BINS[1]]) for at in sorted(bins)]
            for who, bins in found[panel].items()
        }
        for panel, title in marks.panels(shown).items()
    }
    if told:
        data = [row for by in told.values() for pairs in by.values() for p in pairs for row in p]
        yield Drawn(part, name, TITLE, CAPTION, plot(told, results, kinds), pl.DataFrame(data))


def plot(panels: Mapping[str, Told], results: pl.DataFrame, kinds: Mapping[str, str]) -> draw.Chart:
    """Accuracy against mean confidence, a line per probe; several panels have their titles."""
    first = [pairs[0][0] for told in panels.values() for pairs in told.values()]
    names = marks.legend(first, marks.signs(results))
    look = draw.probes({name: kinds[who[0]] for who, name in names.items()})
    if len(panels) == 1:
        (told,) = panels.values()
        return draw.filtered(draw.set_size(*_panel(told, names, look), height=300))
    small = [
        alt.layer(*_panel(told, names, look)).properties(width=SIDE, height=SIDE, title=title)
        for title, told in panels.items()
    ]
    return draw.filtered(*small, columns=COLUMNS)


def _panel(told: Told, names: Mapping[marks.Who, str], look: Mapping[str, Any]) -> list[alt.Chart]:
    points = [
        draw.point(right, probe=names[who], sure=sure["value"])
        for who, pairs in told.items()
        for right, sure in pairs
    ]
    x = draw.numbers(alt.X, "mean confidence, %", draw.PER_CENT)("sure:Q")
    y = draw.numbers(alt.Y, "accuracy, %", draw.PER_CENT)
    base = draw.chart(points, "sure", by="probe").encode(x=x)
    _, lines, dots = draw.lines(base, y, look)
    size = alt.Size("n:Q", scale=alt.Scale(type="linear", zero=True, range=[15, 110]), legend=None)
    ends = alt.Chart(alt.InlineData(values=[{"sure": e, "value": e} for e in draw.PER_CENT]))
    same = ends.mark_line(stroke=draw.INK, strokeWidth=1, strokeDash=[4, 3])
    return [lines, dots.encode(size=size), same.encode(x=x, y=y("value:Q"))]

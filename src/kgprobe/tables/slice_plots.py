"""Accuracy by parts of the items: a figure for every slice, whatever the benchmark."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import partial
from typing import Any

import altair as alt
import polars as pl

from kgprobe.contracts import SETTING, WITHOUT
from kgprobe.tables.report import draw, marks
from kgprobe.tables.report.section import Drawing, drawing
from kgprobe.tables.slices import SLICES, Slice, list_bins

#: what is drawn of a probe: asked whole, and without the subject
ASKED = ("", WITHOUT[0])
CAPTION = (
    "With 95 % intervals, in every bin in the order of the legend; hollow: control models; "
    "crosses: the same questions without the subject; level lines: chance; n: items."
)
#: lines of a label
LINES = "split(datum.label, '\\n')"
CROSS = "M-.7,-.7L.7,.7M.7,-.7L-.7,.7"
#: of one of several panels, in pixels
SMALL = (118, 110)


def draw_slices(
    paper: str,
    part: str,
    results: pl.DataFrame,
    kinds: Mapping[str, str],
    panels: Iterable[tuple[str, str]],
    aggregation: str = "",
    controls: Collection[str] = (),
    is_folded: bool = False,
) -> Iterator[Drawing]:
    """A figure for every slice that RESULTS have, with a panel for each of these benchmarks and
    groups that has more than one of its bins; nothing without any.

    `kinds`: kind of model by name; `aggregation`: the probes' own, "" where none is named;
    `controls`: names of control models.
    """
    others = [pl.col(name) == "" for name in SETTING if name not in ("aggregation", "without")]
    # groups of items and relations both are groups: what is asked for says which
    measured = results.filter(
        *others,
        pl.col("without").is_in(ASKED),
        pl.col("model").is_in([*kinds, "random"]),
        metric="accuracy",
        aggregation=aggregation,
    )
    by_panel = {panel: measured.filter(benchmark=panel[0], group=panel[1]) for panel in panels}
    for one in SLICES:
        bins = {panel: list_bins(one, rows) for panel, rows in by_panel.items()}
        shown = {
            panel: rows.filter(pl.col("slice").is_in(list(bins[panel])))
            for panel, rows in by_panel.items()
            if len(bins[panel]) > 1
        }
        if shown:
            figure = plot(one, shown, results, kinds, controls)
            name = "_".join([paper, "slice", one.name, *[part] * (part != paper)])
            title, rows = f"Accuracy by {one.title}", pl.concat(shown.values())
            yield drawing(part, name, title, CAPTION, figure, rows, is_folded)


def plot(
    one: Slice,
    panels: Mapping[tuple[str, str], pl.DataFrame],
    results: pl.DataFrame,
    kinds: Mapping[str, str],
    controls: Collection[str],
) -> draw.Chart:
    """Accuracy of every probe in every bin of a slice, with what it reaches without the subject,
    and chance; several panels have their titles. Bins that have an order are joined by lines.

    `panels`: (benchmark, group) -> RESULTS of its bins.
    """
    probes = pl.concat(panels.values()).filter(pl.col("model").is_in(list(kinds)))
    names = marks.legend(probes.rows(named=True), marks.signs(results))
    hollow = [name for who, name in names.items() if who[0] in controls]
    look = draw.probes({name: kinds[who[0]] for who, name in names.items()}, hollow)
    titles = marks.panels(panels)
    titled = {titles[panel]: rows for panel, rows in panels.items()}
    return draw.in_panels(partial(_panel, one, names, look), titled, 280, SMALL)


def _panel(
    one: Slice,
    names: Mapping[marks.Who, str],
    look: Mapping[str, Any],
    rows: pl.DataFrame,
    is_small: bool,
) -> list[alt.Chart]:
    """The layers of one benchmark and group; a small panel's labels stand upright."""
    chance = rows.filter(model="random")
    counts = dict(chance.select("slice", "n").rows())
    heads = {
        name: f"{value} (n {counts[name]:,})" if is_small else f"{value}\nn = {counts[name]:,}"
        for name, value in list_bins(one, rows).items()
    }
    points: dict[str, list[dict[str, Any]]] = {without: [] for without in ASKED}
    for row in rows.rows(named=True):
        if row["model"] != "random":
            name = names[tuple(row[d] for d in marks.WHO)]
            points[row["without"]].append(draw.point(row, probe=name, bin=heads[row["slice"]]))
    turned = {"labelAngle": -90} if is_small else {"labelAngle": 0, "labelExpr": LINES}
    title = None if is_small else one.axis
    x = alt.X("bin:N", sort=list(heads.values()), title=title, axis=alt.Axis(**turned))
    y = draw.numbers(alt.Y, "accuracy, %", draw.PER_CENT)
    aside = alt.XOffset("probe:N", scale=alt.Scale(domain=list(names.values())))
    base, baseline = (
        draw.chart(data, "probe", "bin").encode(x=x, xOffset=aside) for data in points.values()
    )
    bars, lines, dots = draw.lines(base, y, look)
    size = {"size": alt.value(28)} if is_small else {}
    crosses = baseline.mark_point(shape=CROSS).encode(y=y("value:Q"), stroke=look["stroke"], **size)
    by_chance = [draw.point(r, bin=heads[r["slice"]]) for r in chance.rows(named=True)]
    level = draw.chart(by_chance).mark_tick(color=draw.INK, orient="horizontal")
    joined = [lines] if one.edges else []
    return [bars, *joined, dots.encode(**size), crosses, level.encode(x=x, y=y("value:Q"))]

"""The report's first page: counts of the run, models by benchmarks."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import altair as alt
import polars as pl

from kgprobe.experiments import is_control
from kgprobe.tables.report import about, draw, grid, headline, marks
from kgprobe.tables.report.grid import Cell, Grid
from kgprobe.tables.report.section import Drawing, drawing
from kgprobe.tables.views import View

Models = Mapping[str, Mapping[str, str]]
Row = Mapping[str, Any]
#: the principal metric of a benchmark, depending on its paper
PRINCIPAL = ("accuracy", "R@1", "value", "P@1")
#: prompts asked as written; of several probes of one model, the one with such a prompt is shown
WRITTEN = ("templates", "manual")
MATRIX = (
    "Per cent right: accuracy, R@1, metric @1 or P@1, as in the benchmark's paper; the mean over "
    "tasks if the paper lists several; 0/0: no answer meets the condition of the metric. For each "
    "model, the probe with manual prompts and the paper's score is shown, the others on hover. "
    "Darker is higher."
)

TITLE = "Per cent right by benchmark"
CAPTION = (
    "Every probe of every model except control models, with its 95 % interval; several points per "
    "model are different prompts or scores."
)
#: approximate height of the picture in pixels
MOST = 420


def tiles(results: pl.DataFrame, experiments: Sequence[Row]) -> list[tuple[str, str]]:
    """Return (number, what it counts) for the whole run."""
    counted = {
        "paper": len({row.get("paper", "bear") for row in experiments}),
        "benchmark": len({row["benchmark"] for row in experiments}),
        "model": len({row["model"] for row in experiments}),
        "probe": len(experiments),
        "number": results.height,
    }
    return [(f"{n:,}", name if n == 1 else f"{name}s") for name, n in counted.items()]


def ordered(results: pl.DataFrame, models: Models) -> list[str]:
    """Return the models that were asked, control models after the others, then baselines."""
    names = sorted(models, key=lambda name: is_control(models[name]))
    shown = results.filter(pl.col("method") != "published")["model"].unique(maintain_order=True)
    return [*names, *(name for name in ("random", "majority") if name in shown)]


def matrix(results: pl.DataFrame, models: Models) -> Grid:
    """Tabulate the principal number of every model (rows) on every benchmark (columns)."""
    grouped: dict[tuple[str, str], list[tuple[View, Sequence[Row]]]] = {}
    for view, rows in _probes(results):
        key = rows[0]["model"], rows[0]["benchmark"]
        grouped.setdefault(key, []).append((view, rows))
    shown = [name for name in ordered(results, models) if any(m == name for m, _ in grouped)]
    benchmarks = list(dict.fromkeys(benchmark for _, benchmark in grouped))
    named, sign = about.link_models(models), marks.signs(results)
    heads = [named.get(("model", name), Cell(name, "baseline")) for name in shown]
    papers = {b: probes[0][1][0]["paper"] for (_, b), probes in grouped.items()}
    links = [Cell(b, sort=b, href=about.benchmark_link(papers[b], b)) for b in benchmarks]
    cells = [[_cell(grouped.get((m, b), []), b, sign) for b in benchmarks] for m in shown]
    # the longer side is in rows, so that the table is narrow
    if len(benchmarks) <= len(shown):
        body = [[head, *line] for head, line in zip(heads, cells, strict=True)]
        names = ["model", *benchmarks]
    else:
        columns = zip(links, map(grid.text, map(papers.get, benchmarks)), *cells, strict=True)
        body, names = list(map(list, columns)), ["benchmark", "paper", *shown]
    numeric = frozenset(range(2 if names[1:2] == ["paper"] else 1, len(names)))
    caption = " ".join([MATRIX, *headline.notes(headline.principal(results))])
    return Grid("Models by benchmarks", names, body, numeric, caption)


def _probes(results: pl.DataFrame) -> Iterator[tuple[View, Sequence[Row]]]:
    """Yield the principal numbers by view and probe: one, or one for each task."""
    numbers = headline.principal(results)
    rows = numbers.filter(pl.col("metric").is_in(PRINCIPAL), pl.col("benchmark") != "")
    for view in headline.blocks(results):
        key = [n for n in dict.fromkeys([*view.rows, "benchmark", "metric"]) if n != "group"]
        # the principal metrics are not those of sweeps
        for _, part in view.select(rows).group_by(key, maintain_order=True):
            yield view, part.rows(named=True)


def _cell(probes: Sequence[tuple[View, Sequence[Row]]], benchmark: str, sign: Any) -> Cell:
    """Show the number of the first probe with written prompts, the others on hover."""
    known = [(view, rows) for view, rows in probes if any(r["value"] is not None for r in rows)]
    if not known:
        every = [row for _, rows in probes for row in rows]
        hint = f"none of the {max(row['n'] for row in every):,} examples counts" if every else ""
        return Cell("0/0" if every else "–", muted=True, hint=hint)

    def rank(probe: tuple[View, Sequence[Row]]) -> tuple[bool, bool]:
        """Sort the paper's own score before others, then written prompts before others."""
        return probe[1][0]["aggregation"] != "", probe[1][0]["prompt"] not in WRITTEN

    view, rows = min(known, key=rank)
    value, n = _mean(rows)
    also = [f"also {_describe(*one)}" for one in known if one[1] is not rows]
    hint, few = "\n".join([_describe(view, rows), *also]), marks.few({"n": n})
    trace = grid.trace(rows[0]) if len(rows) == 1 else ""
    # a mean has the mark of any of its tasks
    signed = max(map(sign, rows), key=len)
    return Cell(
        grid.number(value) + few + signed, "", value, hint, n=n, trace=trace,
        href=about.benchmark_link(rows[0]["paper"], benchmark), shade=max(0.0, min(100.0, value)),
    )  # fmt: skip


def _mean(rows: Sequence[Row]) -> tuple[float, int]:
    """Return the mean over tasks, and the total number of items."""
    known = [row for row in rows if row["value"] is not None]
    return sum(row["value"] for row in known) / len(known), sum(map(marks.size, known))


def _describe(view: View, rows: Sequence[Row]) -> str:
    """Describe a probe: how it was asked, its number and n."""
    value, n = _mean(rows)
    row = rows[0]
    named = [row[name] for name in view.rows if name not in ("model", "benchmark") and row[name]]
    tasks = [f"mean of {len(rows)} tasks"] * (len(rows) > 1)
    return f"{', '.join([row['metric'], *named, *tasks])}: {grid.number(value)}, n = {n:,}"


def picture(results: pl.DataFrame) -> Drawing | None:
    """Plot the principal numbers of every benchmark, without control models and baselines; None
    without any. A benchmark without an overall number shows those of its relations or tasks."""
    shown = (row for _, rows in _probes(results) for row in rows)
    points = [row for row in shown if row["value"] is not None and headline.is_external(row)]
    whole = {row["benchmark"] for row in points if not row["group"]}
    points = [row for row in points if not row["group"] or row["benchmark"] not in whole]
    points = list({tuple(row.values()): row for row in points}.values())
    if not points:
        return None
    benchmarks = list(dict.fromkeys(row["benchmark"] for row in points))
    models = list(dict.fromkeys(row["model"] for row in points))
    chart = draw.chart(map(_point, points), "model", "benchmark", "probe", "metric")
    base = chart.encode(
        y=alt.Y("benchmark:N", sort=None, title=None, axis=alt.Axis(labelLimit=180, grid=True)),
        yOffset=alt.YOffset("model:N", sort=models),
    )
    x = partial(alt.X, title="per cent right", axis=alt.Axis(tickCount=10))
    look = draw.encode_points("model", draw.apart(models), columns=4)
    layers = [
        draw.intervals(base, x=x).encode(stroke=look["stroke"]),
        base.mark_point().encode(x=x("value:Q"), **look),
    ]
    step = max(3, min(12, MOST // (len(benchmarks) * len(models))))
    figure = alt.layer(*layers, width=draw.WIDTH, height={"step": step})
    rows = pl.DataFrame(points, infer_schema_length=None)
    return drawing("index", "principal", TITLE, CAPTION, figure, rows)


def _point(row: Row) -> dict[str, Any]:
    words = dict.fromkeys([row["prompt"], row["method"], row["group"]])
    names = {name: row[name] for name in ("model", "benchmark", "metric")}
    return draw.point(row, probe=", ".join(filter(None, words)), **names)

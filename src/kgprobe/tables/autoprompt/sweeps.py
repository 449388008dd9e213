"""Sweeps: accuracy against few training examples (Figure 2), label-set size and trigger length (3).

The paper prints no numbers for either figure; shapes and the gains that its text names compare.
"""

from collections.abc import Iterable, Iterator
from typing import Any

import altair as alt
import polars as pl

from kgprobe.metrics.intervals import Interval, wilson
from kgprobe.tables.autoprompt.views import FIGURE2, FIGURE3
from kgprobe.tables.report import draw
from kgprobe.tables.report.chapter import Drawing, Drawn
from kgprobe.tables.results import Number

NAMES = {"searched": "AutoPrompt", "finetuned": "fine-tuned"}


def low_data(benchmark: str, model: str, points: pl.DataFrame) -> Iterator[Number]:
    """Figure 2, of SWEEPS: dev accuracy in per cent by number of training examples (`size`), the
    mean of subsets (n) with the worst and the best. Metric `dev accuracy`: of the most examples."""
    sizes = points.sort("method", "size", "draw").group_by("method", "size", maintain_order=True)
    last: dict[str, Number] = {}
    for (method, size), own in sizes:
        values = 100 * own["value"].to_numpy()
        last[str(method)] = Number(
            benchmark=benchmark, model=model, prompt=str(method), method="low_data",
            metric="accuracy", slice="dev", setting={"size": int(str(size))}, n=len(values),
            value=values.mean(), interval=Interval(values.min(), values.max(), "range of subsets"),
        )  # fmt: skip
        yield last[str(method)]
    for number in last.values():
        yield number.but(metric="dev accuracy", slice="", interval=None)


def grid(benchmark: str, model: str, points: pl.DataFrame) -> Iterator[Number]:
    """Figure 3, of SWEEPS: dev accuracy in per cent by label tokens and trigger length. Metric `dev
    accuracy`: the best of the grid, an oracle, and so without an interval."""
    best: dict[int, Number] = {}
    for row in points.sort("k", "label_tokens", "triggers").iter_rows(named=True):
        interval = Interval(*wilson(round(row["value"] * row["n"]), row["n"]), "wilson")
        setting = {"k": row["k"], "labels": row["label_tokens"], "triggers": row["triggers"]}
        number = Number(
            benchmark=benchmark, model=model, prompt=row["method"], method="grid",
            metric="accuracy", slice="dev", setting=setting, n=row["n"],
            value=100 * row["value"], interval=interval.times(100),
        )  # fmt: skip
        yield number
        known = best.setdefault(row["k"], number)
        best[row["k"]] = max(known, number, key=lambda found: found.value or 0.0)
    for number in best.values():
        yield number.but(metric="dev accuracy", slice="", interval=None)


def drawings(results: pl.DataFrame) -> list[Drawing]:
    """Figure 2 of every benchmark, Figure 3 of every benchmark, model and k."""
    made = []
    for (benchmark,), own in _parts(FIGURE2.chosen(results), "benchmark"):
        points = [
            draw.point(row, line=f"{row['model']}, {NAMES.get(row['prompt'], row['prompt'])}",
                       at=int(row["size"]))
            for row in own.rows(named=True)
        ]  # fmt: skip
        title, figure = f"Figure 2: {benchmark}", lines(points, "training examples")
        name = f"autoprompt_figure2_{benchmark}"
        made.append(Drawn("autoprompt", name, title, FIGURE2.caption, figure, own).drawing())
    for number, (key, own) in enumerate(_parts(FIGURE3.chosen(results), *FIGURE3.rows)):
        points = [
            draw.point(row, line=f"{row['labels']} label token{'s' * (row['labels'] != '1')}",
                       at=int(row["triggers"]))
            for _, part in _parts(own, "labels") for row in part.rows(named=True)
        ]  # fmt: skip
        title, figure = f"Figure 3: {key[0]}, {key[1]}, k {key[2]}", lines(points, "trigger tokens")
        name = f"autoprompt_figure3_{number}"
        made.append(Drawn("autoprompt", name, title, FIGURE3.caption, figure, own).drawing())
    return made


def _parts(own: pl.DataFrame, *names: str) -> Iterable[tuple[tuple[Any, ...], pl.DataFrame]]:
    """Rows that agree in some dimensions; numbers in numeric order."""
    numeric = [pl.col(name).cast(pl.Int64, strict=False) for name in names]
    return own.sort(*numeric, maintain_order=True).group_by(*names, maintain_order=True)


def lines(points: list[dict[str, Any]], title: str) -> draw.Chart:
    """Dev accuracy by number of examples or trigger tokens (`at`), joined by `line`; points of one
    place stand side by side."""
    names = list(dict.fromkeys(point["line"] for point in points))
    places = sorted({point["at"] for point in points})
    aside = alt.XOffset("line:N", scale=alt.Scale(domain=names))
    x = alt.X("at:O", title=title, sort=places, scale=alt.Scale(padding=0.6),
              axis=alt.Axis(labelAngle=0))  # fmt: skip
    base = draw.chart(points, "at", by="line").encode(x=x, xOffset=aside)
    look = draw.marked("line", draw.apart(names))
    layers = draw.lines(base, draw.numbers(alt.Y, "dev accuracy, %"), look)
    return draw.filtered(draw.sized(*layers, height=240), by="line")

"""BEAR's figures from RESULTS: accuracy against size, and by relation."""

from collections.abc import Iterator, Mapping, Sequence

import altair as alt
import polars as pl

from kgprobe.experiments import is_control
from kgprobe.metrics.sums import ordered_mean
from kgprobe.tables import option_plots
from kgprobe.tables.report import draw, grid, marks
from kgprobe.tables.report.draw import INK, KINDS, PUBLISHED
from kgprobe.tables.report.section import Drawing, drawing
from kgprobe.tables.results import plain

Models = Mapping[str, Mapping[str, str]]
#: Benchmarks of the released design and size, plotted with the published points.
COMPARABLE = ("bear_released", "bear_lite")
SORTED = "Per cent, mean over templates; relations sorted by their mean over models."
SIZES = "Lines are 95 % intervals; hollow: control models."
COMPARED = (
    " Gray: published scores on the complete released set with three templates, with one standard "
    "error over templates."
)
SIZE = "parameters (log scale)"


def figures(results: pl.DataFrame, models: Models, titles: Mapping[str, str]) -> Iterator[Drawing]:
    """Yield the figures of BEAR's RESULTS; `models`: by name; `titles`: relation -> its name."""
    bear = results.filter(paper="bear")
    kinds = {name: row["kind"] for name, row in models.items()}
    controls = [name for name, row in models.items() if is_control(row)]
    for benchmark in benchmarks(bear, models):
        # verdicts, from which a model's marks follow, name no benchmark
        with_verdicts = bear.filter(pl.col("benchmark").is_in([benchmark, ""]))
        sized = sizes_of(benchmark, bear)
        if sized.filter(pl.col("method") != "published").height:
            caption = SIZES + (COMPARED if benchmark in COMPARABLE else "")
            title, name = "Accuracy against size", f"bear_size_{benchmark}"
            chance = _whole(bear).filter(benchmark=benchmark, model="random")
            figure = size_plot(sized, chance["value"].to_list(), bear, models)
            rows = sized.drop("parameters")
            yield drawing(benchmark, name, title, caption, figure, rows)
        title, name = "Accuracy by relation", f"bear_relations_{benchmark}"
        figure = relations_plot(with_verdicts, models, titles)
        rows = _related(bear.filter(benchmark=benchmark))
        yield drawing(benchmark, name, title, SORTED, figure, rows)
        panels = [(benchmark, "")]
        yield from option_plots.drawings("bear", benchmark, bear, kinds, panels, "", controls)


def benchmarks(results: pl.DataFrame, models: Models) -> list[str]:
    """Return the benchmarks that one of the models answered."""
    answered = results.filter(pl.col("model").is_in(list(models)), metric="accuracy")
    return answered["benchmark"].unique(maintain_order=True).to_list()


def _whole(results: pl.DataFrame) -> pl.DataFrame:
    """Select the accuracies over all items, mean over templates."""
    rows = results.filter(pl.col("method") != "published", metric="accuracy")
    return rows.filter(plain(), group="", slice="")


def _related(results: pl.DataFrame) -> pl.DataFrame:
    """Select the accuracies of relations, mean over templates."""
    return results.filter(pl.col("group") != "", plain(), metric="accuracy", slice="")


def relations_plot(results: pl.DataFrame, models: Models, titles: Mapping[str, str]) -> draw.Chart:
    """Plot accuracy per relation (rows) and probe (columns) of one benchmark, and chance. Relations
    are ordered by mean accuracy over the probes."""
    table = _related(results)
    key = ["model", "prompt", "method"]
    probed = table.filter(pl.col("model").is_in(list(models)))
    probes = probed.unique(key, maintain_order=True).rows(named=True)
    order = probed.group_by("group").agg(ordered_mean("value")).sort(-pl.col("value"), "group")
    named = {relation: grid.with_id(relation, titles) for relation in order["group"]}
    # names fit next to each other, or are rotated
    is_wide = len(probes) < 3
    columns = {("random", "", ""): "chance"}
    columns |= {
        tuple(p[k] for k in key): draw.wrap_name(name) if is_wide else name
        for p, name in zip(probes, marks.names(probes, marks.signs(results)), strict=True)
    }
    cells = [
        draw.point(row, probe=columns[who], relation=named[row["group"]],
                   label="" if row["value"] is None else f"{row['value']:.0f}{marks.few(row)}")
        for row in table.rows(named=True)
        if (who := tuple(row[k] for k in key)) in columns
    ]  # fmt: skip
    bare = alt.Axis(ticks=False, domain=False)
    turned = {"labelAngle": 0} if is_wide else {"labelAngle": -90, "labelOverlap": "greedy"}
    top = alt.Axis(orient="top", labelExpr=option_plots.LINES, ticks=False, domain=False, **turned)
    base = draw.chart(cells, "probe", "relation").encode(
        x=alt.X("probe:N", sort=list(columns.values()), title=None, axis=top),
        y=alt.Y("relation:N", sort=list(named.values()), title=None, axis=bare),
    )
    cells_, words = draw.heat(base, "label:N", 100)
    layers = [cells_, words] if len(columns) <= 12 else [cells_]
    return draw.set_size(*layers, height=22 * len(named))


def sizes_of(benchmark: str, bear: pl.DataFrame) -> pl.DataFrame:
    """Return accuracies with the `parameters` of their models: of the probes of one benchmark, and
    the published ones if it has their design."""
    accuracies = _whole(bear).filter(benchmark=benchmark)
    if benchmark in COMPARABLE:
        accuracies = pl.concat([accuracies, bear.filter(metric="accuracy", method="published")])
    printed = pl.col("method") == "published"
    sizes = bear.filter(metric="parameters").select("model", printed=printed, parameters="value")
    rows = accuracies.with_columns(printed=printed).join(
        sizes, on=["model", "printed"], maintain_order="left"
    )
    return rows.drop("printed")


def size_plot(
    sized: pl.DataFrame, chance: Sequence[float], bear: pl.DataFrame, models: Models
) -> draw.Chart:
    """Plot accuracy against parameters: our probes with their 95 % intervals, the published ones in
    gray with one standard error. `sized`: from `sizes_of`; `chance` in per cent."""
    probes = sized.filter(pl.col("method") != "published").rows(named=True)
    labels = marks.names(probes, marks.signs(bear))
    kinds = {name: models[row["model"]]["kind"] for name, row in zip(labels, probes, strict=True)}
    who = zip(labels, probes, strict=True)
    hollow = [name for name, row in who if is_control(models[row["model"]])]
    printed = sized.filter(method="published").rows(named=True)
    labels += [f"published, {row['slice']}" for row in printed]
    gray = {f"published, {row['slice']}": (PUBLISHED, PUBLISHED, KINDS[row["slice"]][1])
            for row in printed}  # fmt: skip
    rows = [draw.point(row, probe=name, model=row["model"], parameters=row["parameters"])
            for name, row in zip(labels, [*probes, *printed], strict=True)]  # fmt: skip
    sizes = sized["parameters"].to_list()
    top = max([sized.select(pl.coalesce("high", "value").max()).item(), *chance])
    shown = "replace(replace(format(datum.value, '~s'), 'G', 'B'), /([a-zA-Z])/, ' $1')"
    ticks = [step * 10**power for power in range(3, 14) for step in (1, 3)]
    scale = alt.Scale(type="log", domain=[min(sizes) / 2, max(sizes) * 2], nice=False)
    axis = alt.Axis(labelExpr=shown, values=ticks)
    x = alt.X("parameters:Q", title=SIZE, axis=axis, scale=scale)
    y = draw.numbers(alt.Y, "accuracy, %", [0, min(1.15 * top, 100)])
    base = draw.chart(rows, "probe", "model", "parameters").encode(x=x)
    bars, _, dots = draw.lines(base, y, draw.probes(kinds, hollow, gray))
    level = alt.Chart(alt.InlineData(values=[{"value": value} for value in chance]))
    line = level.mark_rule(color=INK, strokeWidth=1, strokeDash=[4, 3]).encode(y=y("value:Q"))
    return draw.set_size(bars, dots, line, height=280)

"""The report's section on the nine benchmarks: the paper's tables and figures next to ours."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import altair as alt
import polars as pl

from kgprobe import schema
from kgprobe.tables import option_plots
from kgprobe.tables.answers import Probe
from kgprobe.tables.attributes import numbers, views
from kgprobe.tables.attributes import study as studies
from kgprobe.tables.attributes.published import NAMES, PublishedAttributes
from kgprobe.tables.attributes.study import (
    FILLED,
    MAJORITY,
    RANDOM,
    ProbedAttribute,
    is_filled,
    is_ranked,
)
from kgprobe.tables.report import draw, grid, marks
from kgprobe.tables.report.grid import Grid, filled_in
from kgprobe.tables.report.section import Drawing, Section, drawing
from kgprobe.tables.views import fraction
from kgprobe.templates import ANSWER, SUBJECT, parse

#: model and method
Who = tuple[str, str]

NAME = "attributes"
TITLE = "Knowledge-graph attributes: nine patterns of related triples"
LEAD = (
    "An example consists of several related triples, and the metric measures how often a model "
    "that knows part of a pattern knows all of it. Benchmarks and metrics are rebuilt from the "
    "description of Mruthyunjaya et al. 2023, whose code and data were never released."
)
NOTES = (
    "“Best prompt” picks a prompt that is right, if there is one, for every triple by looking at "
    "the gold answer: an oracle, not an ability of the model. It grows with the number of prompts. "
    "The mean over prompts is reported next to it.",
    "Metrics are ratios: an example counts only if part of it is right, so denominators can be "
    "small. They are printed under every value; “undef” means that no example counts (the paper "
    "prints 0.00 there).",
    "Masked models get as many masks as the gold answer has tokens, which reveals its length; the "
    "k best tokens at several masks are not the k best words.",
    "Head and tail of an ambiguous pair have the same question text. With one prompt and k = 1, "
    "both can be right only if their objects are the same or have the same name.",
    "Intervals are Wilson's, or a bootstrap over examples if scores are fractions (entity_centric, "
    "the mean over prompts, proportions of tokens). If all resamples are the same, such as all "
    "wrong, Wilson's is used instead; over clusters there is none. Correlations have Fisher's "
    "interval.",
    "Published figures are in separate rows: the paper prints no denominators, and its models and "
    "examples are different.",
)
EXAMPLE = (
    "The first prompt and the first three answers of one model; none for bias, whose subjects are "
    "little-known people."
)
PARTIAL = (
    "Best prompt (oracle), @1. Bar: mean denominator, that is, how often part of an example is "
    "right (asymmetry: the forward triple), with 95 % interval; black line: the full metric."
)
PATTERNS = (
    "Best prompt (oracle), @1; the largest model and, if different, the best one. For a missing "
    "bar marked undef, no example counts."
)
SENSITIVITY = (
    "Structural build: labels are not required, and nothing is sampled except by the caps."
)
POPULARITY = (
    "All examples, and those with every triple right (asymmetry: forward right, reversed not), "
    "best prompt, @1. Bin width: a quarter of log10; the two samples share examples."
)
ARITHMETIC = (
    "A count out of a fixed number of examples cannot decrease with k; a ratio can. If no size "
    "fits, the printed values are ratios with varying denominators."
)


def section(
    results: pl.DataFrame,
    probes: Sequence[Probe],
    published: PublishedAttributes,
    titles: Mapping[str, str],
    examples: Sequence[Mapping[str, object]] = (),
    notes: Sequence[str] = (),
    thresholds: str = "paper",
    steps: pl.DataFrame | None = None,
    sensitivity: pl.DataFrame | None = None,
) -> Section:
    """Build the section from RESULTS, names of relations (`titles`), worked `examples`, STEPS and
    SENSITIVITY of all benchmarks; `thresholds`: the name of those in use."""
    order = sorted(dict.fromkeys(results["model"]), key=lambda model: _order(probes, model))
    ranked = sorted({is_ranked(p.method) for p in probes})
    scores = [one.where_also(model=order) for way in ranked for one in views.SCORES[way]]
    sizes = replace(views.TABLE1, title=f"{views.TABLE1.title} (thresholds: {thresholds})")
    printed = (*scores, views.FORMS[0], views.CONSTRUCTS, sizes)
    read = (*views.FORMS[1:], *views.FOLDED)
    grids, folded = ([grid.of_view(one, results) for one in part] for part in (printed, read))
    folded.insert(0, grid.records("One example of each benchmark", examples, EXAMPLE))
    title = "What follows from the printed figures alone"
    folded.append(grid.records(title, published.arithmetic, ARITHMETIC))
    if steps is not None:
        title = "Construction of the nine attributes, step by step"
        folded.append(_records(title, steps, "position"))
    if sensitivity is not None:
        title = "Thresholds that the paper leaves open"
        folded.append(_records(title, sensitivity, "setting", SENSITIVITY))
    return Section(
        NAME, TITLE, LEAD, [*NOTES, *notes], filled_in(grids), filled_in(folded),
        [*drawings(results, probes, titles)],
    )  # fmt: skip


def _order(probes: Sequence[Probe], model: str) -> tuple[int, str]:
    """Return a sort key: models, then control models, baselines, and the paper's models."""
    if model in (MAJORITY, RANDOM):
        return 2, model
    control = [p.control for p in probes if p.model == model]
    return int(any(control)) if control else 3, model


def _records(title: str, frame: pl.DataFrame, then: str, caption: str = "") -> Grid:
    """Format records of all benchmarks, in the order of the paper's Table 2."""
    place = pl.col("benchmark").replace_strict({b: i for i, b in enumerate(NAMES)})
    rows = frame.sort(place, then).drop("position", strict=False)
    return grid.records(title, rows.iter_rows(named=True), caption)


def drawings(
    results: pl.DataFrame, probes: Sequence[Probe], titles: Mapping[str, str]
) -> Iterator[Drawing]:
    """Draw Figures 3, 4 and 5, reliability and slices, where there are numbers for them."""
    kinds = {(p.model, p.method): p.kind for p in probes if not is_ranked(p.method)}
    largest = largest_model(probes)
    of_largest = results.filter(model=largest[0], method=largest[1])
    draw_one = partial(drawing, NAME)
    if numbers.PARTIAL in set(results["metric"]):
        figure, rows = partial_plot(results, kinds), views.PARTIAL.select(results)
        yield draw_one("attributes_partial", "Partial and full scores", PARTIAL, figure, rows)
    models, rows = pattern_models(results, largest), views.PATTERNS.select(results)
    shown = {(name, *who) for name, every in models.items() for who in every}
    # patterns of few examples have no metric, and the largest model may be asked nothing else
    if kinds and not shown.isdisjoint(rows.select("benchmark", "model", "method").rows()):
        figure = patterns_plot(results, models, titles)
        title = "The five most frequent patterns"
        yield draw_one("attributes_patterns", title, PATTERNS, figure, rows)
    if of_largest.filter(metric="examples right").height:
        figure, rows = popularity_plot(results, largest), views.POPULARITY.select(of_largest)
        yield draw_one("attributes_popularity", "Popularity", POPULARITY, figure, rows)
    every, controls = {p.model: p.kind for p in probes}, [p.model for p in probes if p.control]
    panels = [(name, "") for name in NAMES]
    yield from option_plots.drawings(NAME, NAME, results, every, panels, "sum", controls)


def largest_model(probes: Sequence[Probe]) -> Who:
    """Return model and method of the largest model that fills; control models rank last."""
    chosen = [p for p in probes if not is_ranked(p.method)] or list(probes)
    first = max(chosen, key=lambda p: (not p.control, p.parameters or 0, p.model))
    return first.model, first.method


def pattern_models(results: pl.DataFrame, largest: Who) -> dict[str, list[Who]]:
    """Return benchmark -> largest model, and the best one at 1 (best prompt) if it is different."""
    whole = results.filter(is_filled(), group="")
    rows = replace(views.PATTERNS, only=lambda rows: rows).select(whole).drop_nulls("value")
    rows = rows.sort("value", "model", "method", descending=[True, False, False])
    best = {
        name: rows.filter(benchmark=name).head(1).select("model", "method").rows() for name in NAMES
    }
    return {name: list(dict.fromkeys([largest, *models])) for name, models in best.items()}


def partial_plot(results: pl.DataFrame, kinds: Mapping[Who, str]) -> draw.Chart:
    """Plot partial (bar, with interval) and full score (line across) per benchmark and model, in
    the order of `kinds`."""
    printed, sign = views.PARTIAL.of(results), marks.signs(results)
    models, points = [model for model, _ in kinds], []
    for benchmark, who in product(dict.fromkeys(row[0] for row in printed.rows), kinds):
        part = printed.cells.get(((benchmark, *who), (numbers.PARTIAL,)))
        if part is not None:
            full = printed.cells.get(((benchmark, *who), (numbers.VALUE,)), {}).get("value")
            probe = who[0] + sign(part) + f", {who[1]}" * (models.count(who[0]) > 1)
            points.append(draw.point(part, probe=probe, benchmark=benchmark, full=full))
    apart = draw.apart(dict.fromkeys(point["probe"] for point in points))
    look = {name: color for name, (color, *_) in apart.items()}
    y = alt.Y("benchmark:N", sort=None, title=None, scale=alt.Scale(paddingInner=0.25))
    offset = alt.YOffset("probe:N", sort=list(look))
    x = draw.numbers(alt.X, "partial score @1, %", (0, 100))
    base = draw.chart(points, "probe", "benchmark", "full").encode(y=y, yOffset=offset)
    full = base.transform_filter("isValid(datum.full)").mark_tick(color=draw.INK, thickness=2)
    return draw.set_size(
        base.mark_bar().encode(x=x("value:Q"), color=draw.encode(alt.Color, "probe", look)),
        draw.intervals(base, x=x).encode(color=alt.value(draw.MUTED)), full.encode(x=x("full:Q")),
        height=17 * len(look) * len({p["benchmark"] for p in points}),
    )  # fmt: skip


def patterns_plot(
    results: pl.DataFrame, models: Mapping[str, Sequence[Who]], titles: Mapping[str, str]
) -> draw.Chart:
    """Plot the most frequent patterns: metric @1 of the largest and the best model (`models`, by
    benchmark); `titles`: relation -> name. An undefined value is a word, never a bar of zero."""
    look = {"largest model": draw.TRAINED_ON, "best model": draw.HELD_OUT}
    printed = views.PATTERNS.of(results)
    cells: dict[str, list[dict[str, Any]]] = {}
    for benchmark, pattern in printed.rows:
        for which, who in zip(look, models.get(benchmark, ()), strict=False):
            cell = printed.cells.get(((benchmark, pattern), who))
            if cell is not None:
                text = fraction(cell) + marks.few(cell)
                cells.setdefault(benchmark, []).append(draw.point(
                    cell, model=who[0], pattern=grid.with_id(pattern, titles), which=which,
                    at=cell["value"] or 0,
                    label=text if cell["value"] is not None else "undef",
                ))  # fmt: skip
    panels = [_patterns(name, rows, look, name == list(cells)[-1]) for name, rows in cells.items()]
    return alt.vconcat(*panels, spacing=8)


def _patterns(
    benchmark: str, points: Sequence[Mapping[str, Any]], look: Mapping[str, str], is_last: bool
) -> alt.LayerChart | alt.FacetChart:
    """Plot the patterns of one benchmark; only the last one has the axis."""
    # one width for the names of all benchmarks
    names = alt.Axis(labelLimit=200, minExtent=200, maxExtent=200)
    title = "metric @1, %; numerator / denominator" if is_last else None
    ticks = {"values": [*range(0, 101, 20)], "labels": is_last, "ticks": is_last}
    x = draw.numbers(alt.X, title, (0, 118), **ticks)
    base = draw.chart(points, "which", "model", "pattern").encode(
        y=alt.Y("pattern:N", sort=None, title=None, axis=names),
        yOffset=alt.YOffset("which:N", scale=alt.Scale(domain=list(look))),
    )
    head = alt.Title(benchmark, anchor="start", fontSize=12, color=draw.INK)
    return alt.layer(
        base.mark_bar().encode(x=x("value:Q"), color=draw.encode(alt.Color, "which", look)),
        base.mark_text(align="left", dx=3, color=draw.MUTED).encode(x=x("at:Q"), text="label:N"),
        title=head, width=draw.WIDTH - 215, height={"step": 14},
    )  # fmt: skip


def popularity_plot(results: pl.DataFrame, who: Who) -> draw.Chart:
    """Plot the density over popularity of all and of completely right examples, per benchmark."""
    order = {name: place for place, name in enumerate(NAMES)}
    shown = views.POPULARITY.select(results.filter(model=who[0], method=who[1]))
    shown = shown.sort(pl.col("benchmark").replace_strict(order), maintain_order=True)
    sign, look = marks.signs(results), {"all": draw.TRAINED_ON, "right": draw.COLORS[1]}
    points: list[dict[str, Any]] = []
    for (name,), rows in shown.group_by("benchmark", maintain_order=True):
        legend, curve = [], []
        for metric, label in zip(("examples", "examples right"), look, strict=True):
            cells = rows.filter(metric=metric).select(pl.col("bin").cast(pl.Float64), "value")
            bins = cells.sort("bin").rows()
            total = sum(value for _, value in bins)
            legend.append(f"{label} n = {total:g}")
            left, right = bins[0][0] - numbers.BIN, bins[-1][0] + numbers.BIN
            line = [(left, 0), *bins, (right, 0)] if total else []
            curve += [
                {"examples": label, "at": at, "density": value / total / numbers.BIN, "n": value}
                for at, value in line
            ]
        title = f"{name}: {who[0]}{sign(rows.row(0, named=True))}; {', '.join(legend)}"
        points += [{**point, "benchmark": title} for point in curve]
    heads = list(dict.fromkeys(point["benchmark"] for point in points))
    below = "log10 of the mean number of statements of an example's entities"
    dashes = draw.encode(alt.StrokeDash, "examples", {"all": [1, 0], "right": [5, 3]})
    steps = draw.chart(points, "examples").mark_line(interpolate="step-after").encode(
        x=alt.X("at:Q", title=below), y=alt.Y("density:Q"), strokeDash=dashes,
        color=draw.encode(alt.Color, "examples", look),
    )  # fmt: skip
    head = alt.Header(labelAnchor="start", labelOrient="top")
    figure: draw.Chart = steps.properties(width=430, height=120).facet(
        row=alt.Row("benchmark:N", sort=heads, title=None, header=head), spacing=10
    )
    return figure


def worked_examples(
    study: studies.AttributesStudy, paths: Mapping[Probe, str | Path]
) -> list[dict[str, Any]]:
    """Return one worked example of every benchmark that the largest model filled (`paths`: the file
    of each probe). None for bias, whose subjects are little-known people."""
    largest = largest_model(list(paths))
    return [
        {"benchmark": probe.benchmark, "model": probe.model, **row}
        for probe, path in paths.items()
        if (probe.model, probe.method) == largest and probe.benchmark != "bias"
        if probe.method.startswith(FILLED)
        for row in example_rows(
            study.answers[probe],
            study.benchmarks[probe.benchmark],
            schema.read(path, schema.FILLS),
        )
    ]


def example_rows(
    alphas: pl.DataFrame, benchmark: ProbedAttribute, fills: pl.DataFrame
) -> Iterator[dict[str, Any]]:
    """Yield the triples of the first example (by id) with a triple right at 1, or else of the
    first: with their first prompt, its first texts and whether it is right."""
    scores = alphas.filter(k=1, gold="own", kind="exact")
    first = scores.filter(pl.col("template") == pl.col("template").min().over("item"))
    examples = benchmark.examples.with_columns(studies.ITEM)
    right = examples.join(first.filter(alpha=1), on="item", how="semi")["example"]
    chosen = min(right, default=min(examples["example"]))
    texts = benchmark.prompts.select("text", predicate="relation", template="index")
    examples = examples.filter(example=chosen)
    examples = examples.join(first.select("item", "template", "alpha"), on="item", how="left")
    examples = examples.join(texts, on=["predicate", "template"], how="left").sort("position")
    whole = fills.filter(position=studies.WHOLE).sort("rank")
    for row in examples.rows(named=True):
        at = pl.col("template").eq_missing(row["template"])
        answers = whole.filter(at, item=row["item"])["text"]
        values = {SUBJECT: row["subject_label"] or "?", ANSWER: "…"}
        yield {
            "role": row["role"],
            "prompt": parse(row["text"] or "").filled(values, upper_first=True).text,
            "object": row["object_label"],
            "first answers": "; ".join(answers.unique(maintain_order=True).head(3)),
            "right": {1: "yes", None: "not asked"}.get(row["alpha"], "no"),
        }

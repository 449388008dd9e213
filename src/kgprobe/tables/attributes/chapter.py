"""The chapter of the report on the nine benchmarks: the paper's tables and figures beside ours."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

import polars as pl

from kgprobe import schema
from kgprobe.tables import reliability, slice_plots
from kgprobe.tables.answers import Probe
from kgprobe.tables.attributes import alpha, analyses, figures, two_steps, views
from kgprobe.tables.attributes import published as printed_tables
from kgprobe.tables.attributes import study as studies
from kgprobe.tables.attributes.baselines import MAJORITY, RANDOM
from kgprobe.tables.attributes.figures import Who
from kgprobe.tables.attributes.published import NAMES, Published
from kgprobe.tables.attributes.study import FILLED, RANKED, Benchmark, filled
from kgprobe.tables.report import grid
from kgprobe.tables.report.chapter import Chapter, Drawing, Drawn
from kgprobe.tables.report.grid import Grid, filled_in
from kgprobe.templates import ANSWER, SUBJECT, parse

NAME = "attributes"
TITLE = "Knowledge-graph attributes: nine patterns of several triples"
LEAD = (
    "An example is several related triples, and a metric scores the example: how often a model "
    "that has part of a pattern has the whole. Benchmarks and metrics are rebuilt from the "
    "description of Mruthyunjaya et al. 2023, whose code and data were never released."
)
NOTES = (
    "“Best prompt” chooses for every triple the prompt that is right, by looking at the gold: an "
    "oracle, not an ability of a model. It grows with the number of prompts. The mean over prompts "
    "stands beside it.",
    "Metrics are ratios: an example counts only if a part of it is right, and a denominator can be "
    "small. It is printed under every value; “undef” means that no example counts (the paper "
    "prints 0.00 there).",
    "Masked models get as many masks as the gold has tokens, which tells them its length; k best "
    "tokens at several masks are no list of the k best words.",
    "Head and tail of an ambiguous pair are asked with the same text. With one prompt and k = 1, "
    "both can be right only where their objects are the same.",
    "Intervals are Wilson's, and a bootstrap over examples where scores are fractions (entity_"
    "centric, the mean over prompts, shares of tokens). Where all resamples are the same, such as "
    "all wrong, Wilson's stands in its place; over clusters and for correlations there is none.",
    "Published figures stand in rows of their own; the paper prints no denominators, and its "
    "models and examples are others.",
)
EXAMPLE = (
    "The first prompt and the first three answers of one model; none of bias, whose subjects are "
    "little known persons."
)


PARTIAL = (
    "Best prompt (oracle), @1. Bar: mean denominator, how often a part is right (asymmetry: the "
    "forward triple), with 95 % interval; black line: the full metric."
)
PATTERNS = (
    "Best prompt (oracle), @1; the largest model and, where it is another, the best one. A missing "
    "bar marked undef has no example that counts."
)
SENSITIVITY = "Structural build: labels not required, nothing sampled but by the caps."
POPULARITY = (
    "All examples, and those of which every triple is right (asymmetry: the forward one right, the "
    "reversed one not), best prompt, @1. Bins of a quarter of log10; the samples share examples."
)


@dataclass(frozen=True)
class Shown:
    """What the chapter is made of: RESULTS, probes, names of relations, worked examples."""

    results: pl.DataFrame
    probes: Sequence[Probe]
    published: Published
    titles: Mapping[str, str]
    examples: Sequence[Mapping[str, object]] = ()
    notes: Sequence[str] = ()
    #: STEPS and SENSITIVITY of all benchmarks, and which thresholds are in use
    steps: pl.DataFrame | None = None
    sensitivity: pl.DataFrame | None = None
    thresholds: str = "paper"


def chapter(shown: Shown) -> Chapter:
    """The chapter from the numbers that were measured."""
    results, probes = shown.results, shown.probes
    order = sorted(dict.fromkeys(results["model"]), key=lambda model: _order(probes, model))
    ranked = sorted({p.method.startswith(RANKED) for p in probes})
    scores = [view.where_also(model=order) for way in ranked for view in views.SCORES[way]]
    sizes = replace(views.TABLE1, title=f"{views.TABLE1.title} (thresholds: {shown.thresholds})")
    opening = filled_in([grid.of_view(views.ANSWERERS, results)])
    printed = (*scores, two_steps.VIEW, views.FORMS[0], views.CONSTRUCTS, sizes)
    read = (two_steps.READ, *views.FORMS[1:], *views.FOLDED)
    grids, folded = ([grid.of_view(view, results) for view in own] for own in (printed, read))
    if shown.examples:
        folded.insert(0, grid.records("One example of each benchmark", shown.examples, EXAMPLE))
    folded.append(arithmetic(shown.published))
    if shown.steps is not None:
        folded.append(_records("Construction of the nine, step by step", shown.steps, "position"))
    if shown.sensitivity is not None:
        title = "Thresholds that the paper leaves open"
        folded.append(_records(title, shown.sensitivity, "setting", SENSITIVITY))
    notes, drawn = [*NOTES, *shown.notes], drawings(results, probes, shown.titles)
    return Chapter(
        NAME, TITLE, LEAD, notes, filled_in(grids), filled_in(folded), drawn, opening=opening
    )


def _order(probes: Sequence[Probe], model: str) -> tuple[int, str]:
    """Models, then control models, baselines, and those of the paper."""
    if model in (MAJORITY, RANDOM):
        return 2, model
    control = [p.control for p in probes if p.model == model]
    return int(any(control)) if control else 3, model


def _records(title: str, frame: pl.DataFrame, then: str, caption: str = "") -> Grid:
    """Records of all benchmarks, in the order of the paper's Table 2."""
    place = pl.col("benchmark").replace_strict({b: i for i, b in enumerate(NAMES)})
    rows = frame.sort(place, then).drop("position", strict=False)
    return grid.records(title, rows.iter_rows(named=True), caption)


def arithmetic(published: Published) -> Grid:
    """What the printed Table 2 admits: sizes that fit, smallest fractions, series that fall."""
    falling = printed_tables.falling(published)
    rows = []
    for name in printed_tables.BENCHMARKS:
        values = published.values(name)
        fits = printed_tables.sizes_that_fit(values, range(1, 1501))
        smallest = printed_tables.mean_smallest(values)
        models = ", ".join(model for benchmark, model in falling if benchmark == name)
        rows.append(
            {
                "benchmark": name,
                "values that are not zero": len(values),
                "sizes up to 1,500 that fit all": ", ".join(map(str, fits)) or "none",
                "smallest denominators, geometric mean": round(smallest),
                "falls somewhere with k": models,
                "Table 1": printed_tables.size_notes(published).get(name, ""),
            }
        )
    caption = (
        "A count out of a fixed number of examples cannot fall with k; a ratio can. Where no size "
        "fits, the printed values are ratios with denominators of their own."
    )
    return grid.records("What follows from the printed figures alone", rows, caption)


def drawings(
    results: pl.DataFrame, probes: Sequence[Probe], titles: Mapping[str, str]
) -> list[Drawing]:
    """Figures 3, 4 and 5, reliability and slices, as far as there are numbers for them."""
    kinds = {(p.model, p.method): p.kind for p in probes if not p.method.startswith(RANKED)}
    largest, metrics = largest_model(probes), set(results["metric"])
    made = []
    if analyses.PARTIAL in metrics:
        figure = figures.partial_plot(results, kinds)
        title = "Partial and full scores"
        rows = views.PARTIAL.chosen(results)
        made.append(Drawn(NAME, "attributes_partial", title, PARTIAL, figure, rows))
    if kinds and results.filter(pl.col("group") != "").height:
        figure = figures.patterns_plot(results, pattern_models(results, largest), titles)
        title = "The five most frequent patterns"
        rows = views.PATTERNS.chosen(results)
        made.append(Drawn(NAME, "attributes_patterns", title, PATTERNS, figure, rows))
    if results.filter(metric="examples right", model=largest[0], method=largest[1]).height:
        figure = figures.popularity_plot(results, largest)
        rows = views.POPULARITY.chosen(results.filter(model=largest[0], method=largest[1]))
        made.append(Drawn(NAME, "attributes_popularity", "Popularity", POPULARITY, figure, rows))
    every = {p.model: p.kind for p in probes}
    panels, controls = [*product(NAMES, [""])], [p.model for p in probes if p.control]
    made += reliability.drawn(NAME, "attributes_reliability", results, every, panels, "sum")
    made += slice_plots.drawn(NAME, NAME, results, every, panels, "sum", controls, is_folded=True)
    return [one.drawing() for one in made]


def largest_model(probes: Sequence[Probe]) -> Who:
    """Model and method of the largest model that fills; control models only where alone."""
    own = [p for p in probes if not p.method.startswith(RANKED)] or list(probes)
    first = max(own, key=lambda p: (not p.control, p.parameters or 0, p.model))
    return first.model, first.method


def pattern_models(results: pl.DataFrame, largest: Who) -> dict[str, list[Who]]:
    """Benchmark -> largest model, and the best one at 1 (best prompt) if it is another."""
    whole = results.filter(group="").filter(filled())
    rows = replace(views.PATTERNS, only=lambda rows: rows).chosen(whole)
    found = {}
    for benchmark in NAMES:
        own = rows.filter(benchmark=benchmark).drop_nulls("value")
        best = own.sort("value", "model", "method", descending=[True, False, False]).head(1)
        found[benchmark] = list(dict.fromkeys([largest, *best.select("model", "method").rows()]))
    return found


def worked_examples(
    study: studies.Study, paths: Mapping[Probe, str | Path]
) -> list[dict[str, Any]]:
    """One worked example of every benchmark that the largest model filled. `paths`: the file of
    each probe.

    A model that only ranked candidates wrote nothing that could be shown. None of bias: its
    subjects are little known persons, and it is shown in aggregate only.
    """
    found, (model, method) = [], largest_model(list(paths))
    for probe, path in paths.items():
        is_shown = method.startswith(FILLED) and probe.benchmark != "bias"
        if is_shown and (probe.model, probe.method) == (model, method):
            benchmark, (alphas, _) = study.benchmarks[probe.benchmark], study.answers[probe]
            rows = example_rows(alphas, benchmark, schema.read(path, schema.FILLS))
            found += [{"benchmark": probe.benchmark, "model": model, **row} for row in rows]
    return found


def example_rows(
    alphas: pl.DataFrame, benchmark: Benchmark, fills: pl.DataFrame
) -> list[dict[str, Any]]:
    """The triples of an example with their first prompt, its first texts and whether it is right.

    The first example, in order of its id, of which the model has some triple right at 1; else the
    first.
    """
    own = alphas.filter(k=1, gold="own", alpha_kind="exact")
    first = own.filter(pl.col("template") == pl.col("template").min().over("item"))
    right = first.filter(pl.col("alpha") == 1)["item"].str.split("#").list.first()
    chosen = min(right, default=min(benchmark.examples["example"]))
    prompts = benchmark.prompts.select("relation", "index", "text").rows()
    texts = {(relation, index): text for relation, index, text in prompts}
    rows = []
    for row in benchmark.examples.filter(example=chosen).sort("position").iter_rows(named=True):
        item = f"{chosen}#{row['position']}"
        asked = first.filter(item=item)
        template = asked["template"][0] if asked.height else None
        said = fills.filter(pl.col("template") == template, item=item, position=alpha.WHOLE)
        said = said.sort("rank")
        text = texts.get((row["predicate"], template), "")
        values = {SUBJECT: row["subject_label"] or "?", ANSWER: "…"}
        rows.append(
            {
                "role": row["role"],
                "prompt": parse(text).filled(values).text,
                "object": row["object_label"],
                "first answers": "; ".join(said["text"].unique(maintain_order=True).head(3)),
                "right": "yes" if asked.height and asked["alpha"][0] == 1 else "no",
            }
        )
    return rows

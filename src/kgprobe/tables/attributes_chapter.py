"""The chapter of the report on the nine benchmarks: the paper's tables and figures beside ours."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from kgprobe.tables import (
    attributes_figures,
    attributes_published,
    attributes_sizes,
    draw,
    grid,
    table,
)
from kgprobe.tables.answers import Probe
from kgprobe.tables.attributes_baselines import METHOD as BASELINE
from kgprobe.tables.attributes_published import BENCHMARKS, KS, Published
from kgprobe.tables.attributes_tables import MEAN, NAMES
from kgprobe.tables.chapter import Chapter
from kgprobe.tables.drawing import Drawing
from kgprobe.tables.grid import Cell, Grid

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
#: folded tables: name -> title, head of the first column, caption
FOLDED = {
    "kg_taught": (
        "Examples that the control models were taught, and others, %",
        "benchmark, model, method",
        "Best prompt, @1. Taught: all stored triples of the example; in part: some of them. Of "
        "some pairs and paths the first was taught alone: what is found of the second is inferred "
        "or guessed. Nothing inferred or reversed was ever taught. Models from elsewhere are a "
        "reference.",
    ),
    "kg_choices": (
        "Every way of reading the answers, %",
        "k, model, method, benchmark",
        "Pooling over prompts; exact alpha, share of gold tokens, or a written answer that is the "
        "label letter by letter (verbatim); the example's own object or any object of the graph "
        "that has a label.",
    ),
    "kg_correlation": (
        "Partial against full score: correlation",
        "over what",
        "n on hover. Nothing follows from a handful of points; below six there is no interval.",
    ),
    "kg_clusters": (
        "Intervals over patterns and over entities instead of examples, %",
        "model, method, over what",
        "Best prompt, @1. Examples share relations, and some an entity: paths and composites the "
        "one that they start from, bias and asymmetry the object, hierarchy the class two up. "
        "These intervals are the honest ones; n on hover counts clusters. None where all are "
        "alike.",
    ),
    "kg_prompts": (
        "Best alpha against number of prompts, %",
        "k, model, method, benchmark",
        "Expected best of so many prompts, mean over triples: what the oracle adds.",
    ),
    "kg_wordings": (
        "Right at 1 by kind of wording, % of triples",
        "model, method, benchmark",
        "Mean over triples of the mean over their prompts of the kind; kinds answer other triples.",
    ),
    "kg_asked": (
        "What was asked",
        "model, method, benchmark",
        "Verbose: holds the label, not equal.",
    ),
    "kg_matching": (
        "Written answers that are right, by the rule that makes them equal",
        "model, method, benchmark",
        "First answers of every triple and prompt against the example's own object: letter by "
        "letter, then what each rule adds to those before it. Elsewhere all rules count; the "
        "column “verbatim” of the ways of reading has the metrics without them.",
    ),
    "kg_ambiguous": (
        "Pairs of one name, %",
        "model, method, pooling",
        "Only equal objects can be right for both with one prompt; the last column conditions on "
        "the head alone, which the printed values fit as well.",
    ),
    "kg_bias": (
        "Bias by relation, %",
        "model, method, relation",
        "In aggregate only. A relation with fewer than ten triples has its count alone.",
    ),
}


CONSTRUCTS = (
    "All examples (n) on hover. Where the reversed probe is never right, asymmetry is the accuracy "
    "of the forward one. A composite that follows a rule needs no path: its first relation and its "
    "last go together. Paths that share a start, and bias whose objects are few, are not "
    "independent: see the intervals over entities."
)


@dataclass(frozen=True)
class Shown:
    """What the chapter is made of: TABLE frames by name, probes, names of relations, examples."""

    tables: Mapping[str, pl.DataFrame]
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
    """The chapter from the tables that were made."""
    grids = [
        scores(shown, k, ranked)
        for ranked in (False, True)
        for k in KS
        if any(p.method.startswith("sentence") == ranked for p in shown.probes)
    ]
    if "kg_constructs" in shown.tables:
        frame = shown.tables["kg_constructs"]
        columns = {c: c for c in table.columns_of(frame)}
        title = "What these benchmarks hold: number of examples"
        head = "benchmark, of which examples"
        grids.append(grid.pivot(frame, title, head, columns, caption=CONSTRUCTS))
    if "kg_table1" in shown.tables:
        sizes = shown.tables["kg_table1"]
        grids.append(attributes_sizes.size_grid(sizes, shown.published, shown.thresholds))
    folded = []
    if shown.examples:
        folded.append(grid.records("One example of each benchmark", shown.examples, EXAMPLE))
    for name, (title, first, caption) in FOLDED.items():
        if name in shown.tables:
            frame = shown.tables[name]
            columns = {c: c for c in table.columns_of(frame)}
            folded.append(grid.pivot(frame, title, first, columns, caption=caption))
    folded.append(arithmetic(shown.published))
    if shown.steps is not None:
        folded.append(attributes_sizes.funnel_grid(shown.steps))
    if shown.sensitivity is not None:
        folded.append(attributes_sizes.sensitivity_grid(shown.sensitivity))
    notes = [*NOTES, *shown.notes]
    return Chapter(NAME, TITLE, LEAD, notes, grids, folded, drawings(shown))


EXAMPLE = (
    "The first prompt and the first three answers of one model; none of bias, whose subjects are "
    "little known persons."
)


def scores(shown: Shown, k: int, ranked: bool) -> Grid:
    """Table 2 at k: ours, baselines, published; with `ranked` the candidates' table."""
    cells = table.lookup(shown.tables["kg_table2"])
    rows = []
    for name in dict.fromkeys(row for row, _ in cells):
        at, model, method, pooling = (*name.split(" | "), "")[:4]
        is_ours = method not in ("published", BASELINE)
        if at != f"@{k}" or (is_ours and method.startswith("sentence") != ranked):
            continue
        if not is_ours and ranked and method == "published":
            continue
        if method == BASELINE and pooling != NAMES["base"]:
            continue
        if is_ours and pooling not in (NAMES["best"], NAMES["mean"]):
            continue
        rows.append((_order(shown.probes, model, method), name, model, method, pooling))
    body = []
    for _, name, model, method, pooling in sorted(rows):
        about = "baseline" if method == BASELINE else (pooling or method)
        values = [_measured(cells, name, benchmark) for benchmark in BENCHMARKS]
        about += ", control" if _is_control(shown.probes, model) else ""
        body.append([Cell(model, about, model), *values, grid.measured(cells.get((name, MEAN)), 2)])
    how = "gold ranked among the objects of its relation" if ranked else "generated or filled"
    title = f"Table 2 @{k}, %: {how}"
    caption = "Numerator / denominator and 95 % interval in small print; examples on hover."
    heads = ["model", *BENCHMARKS, MEAN]
    return Grid(title, heads, body, frozenset(range(1, len(heads))), caption)


def _order(probes: Sequence[Probe], model: str, method: str) -> tuple[int, str]:
    kinds = {"published": 3, BASELINE: 2}
    return kinds.get(method, int(_is_control(probes, model))), model


def _is_control(probes: Sequence[Probe], model: str) -> bool:
    return any(p.control for p in probes if p.model == model)


def _measured(
    cells: Mapping[tuple[str, str], Mapping[str, object]], name: str, benchmark: str
) -> Cell:
    """A value with its fraction; undef where nothing is defined, a dash where nothing was asked."""
    value = cells.get((name, benchmark))
    below = cells.get((name, f"{benchmark}, denominator"))
    if value is None:
        return Cell("undef", "0/0", hint="no example counts") if below else grid.measured(None)
    shown = grid.measured(value, 2)
    if below is None:
        return Cell(shown.text, "", shown.sort, "denominator not printed")
    above = cells[name, f"{benchmark}, numerator"]["value"]
    fraction = f"{above:.4g}/{below['value']:.4g}"
    undefined = cells[name, f"{benchmark}, undefined"]["value"]
    hint = f"{shown.hint}, {undefined:g} undefined"
    return Cell(shown.text, f"{fraction}; {shown.small}".rstrip("; "), shown.sort, hint)


def arithmetic(published: Published) -> Grid:
    """What the printed Table 2 admits: sizes that fit, smallest fractions, series that fall."""
    falling = attributes_published.falling(published)
    rows = []
    for name in BENCHMARKS:
        values = published.values(name)
        fits = attributes_published.sizes_that_fit(values, range(1, 1501))
        smallest = attributes_published.mean_smallest(values)
        models = ", ".join(model for benchmark, model in falling if benchmark == name)
        rows.append(
            {
                "benchmark": name,
                "values that are not zero": len(values),
                "sizes up to 1,500 that fit all": ", ".join(map(str, fits)) or "none",
                "smallest denominators, geometric mean": round(smallest),
                "falls somewhere with k": models,
                "Table 1": attributes_published.size_notes(published).get(name, ""),
            }
        )
    caption = (
        "A count out of a fixed number of examples cannot fall with k; a ratio can. Where no size "
        "fits, the printed values are ratios with denominators of their own."
    )
    return grid.records("What follows from the printed figures alone", rows, caption)


def drawings(shown: Shown) -> list[Drawing]:
    """Figures 3, 4 and 5, as far as their tables were made."""
    kinds = {
        f"{p.model} | {p.method}": p.kind
        for p in shown.probes
        if not p.method.startswith("sentence")
    }
    largest = largest_model(shown.probes)
    made = []
    if "kg_partial" in shown.tables:
        figure = attributes_figures.partial_plot(shown.tables["kg_partial"], kinds)
        made.append(_drawing("kg_partial", "Partial and full scores", PARTIAL, figure))
    if "kg_patterns" in shown.tables:
        models = pattern_models(shown.tables["kg_table2"], largest)
        figure = attributes_figures.patterns_plot(shown.tables["kg_patterns"], models, shown.titles)
        made.append(_drawing("kg_patterns", "The five most frequent patterns", PATTERNS, figure))
    if "kg_popularity" in shown.tables:
        frame = shown.tables["kg_popularity"]
        drawn = {
            b: largest
            for b in BENCHMARKS
            if frame["row"].str.starts_with(f"{b} | {largest} | ").any()
        }
        if drawn:
            figure = attributes_figures.popularity_plot(frame, drawn)
            made.append(_drawing("kg_popularity", "Popularity", POPULARITY, figure))
    return made


PARTIAL = (
    "Best prompt (oracle), @1. Bar: mean denominator, how often a part is right (asymmetry: the "
    "forward triple), with 95 % interval; black line: the full metric."
)
PATTERNS = (
    "Best prompt (oracle), @1; the largest model and, where it is another, the best one. A missing "
    "bar marked undef has no example that counts."
)
POPULARITY = (
    "All examples, and those of which every triple is right (asymmetry: the forward one right, the "
    "reversed one not), best prompt, @1. Bins of a quarter of log10; the samples share examples."
)


def _drawing(name: str, title: str, caption: str, figure: draw.Figure) -> Drawing:
    return Drawing(NAME, name, title, caption, draw.svg(figure, name), caption)


def largest_model(probes: Sequence[Probe]) -> str:
    """ "model | method" of the largest model that fills; control models only where alone."""
    own = [p for p in probes if not p.method.startswith("sentence")] or list(probes)
    first = max(own, key=lambda p: (not p.control, p.parameters or 0, p.model))
    return f"{first.model} | {first.method}"


def pattern_models(frame: pl.DataFrame, largest: str) -> dict[str, list[str]]:
    """Benchmark -> largest model, and the best one at 1 (best prompt) if it is another."""
    rows = frame.filter(pl.col("row").str.starts_with("@1 | "))
    rows = rows.filter(pl.col("row").str.ends_with(f" | {NAMES['best']}"))
    rows = rows.filter(~pl.col("row").str.contains(f" | {BASELINE} | ", literal=True))
    found = {}
    for benchmark in BENCHMARKS:
        own = rows.filter(column=benchmark).sort("value", "row", descending=[True, False])
        best = [" | ".join(row.split(" | ")[1:3]) for row in own["row"].head(1)]
        found[benchmark] = list(dict.fromkeys([largest, *best]))
    return found

"""BEAR's chapter of the report: calibration, a part per benchmark, an example, the construction."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import polars as pl

from kgprobe.tables import calibration, draw, grid
from kgprobe.tables.answers import Probe
from kgprobe.tables.chapter import Chapter
from kgprobe.tables.drawing import Drawing
from kgprobe.tables.grid import Grid
from kgprobe.tables.table import lookup

LEAD = (
    "Balanced multiple choice: every option is written into a template, each sentence gets a "
    "log-likelihood, and the highest is the model's answer, so that masked and causal models are "
    "asked alike (Wiland et al. 2024)."
)
AUC = (
    "AUC: probability that a taught item has a larger margin (log-likelihood of the correct option "
    "minus that of the best wrong one, mean over templates) than an untaught one; 0.5 is no "
    "difference. Models from elsewhere are a reference: they were taught neither half here, so "
    "their two accuracies should be alike."
)
CONSTRUCTION = (
    "From pulled statements to balanced questions: every filter with what it took. A statement is "
    "dropped for one reason, the first that holds."
)
TERMS = {
    "Accuracy": "Share of items whose correct option has the highest score, every item weighing "
    "the same; mean over the templates. Columns over relations weigh every relation the same, and "
    "the two are never mixed.",
    "Intervals of accuracies": "On one template: Wilson's interval of a share. Means over "
    "templates, relations and differences: percentile bootstrap with 2,000 resamples of the items "
    "within their relation, the same resamples for all templates and models, so that differences "
    "are paired; where every resample is the same, Wilson's. They speak of sampling facts.",
    "SEM": "Standard deviation of the template accuracies (divisor n - 1) over the square root of "
    "their number. It speaks of templates, not of facts.",
    "Ties": "When the correct option ties with others for the first place, the item counts as the "
    "chance of picking it among them. What the first of the tied would give is printed beside, "
    "where a tie occurred.",
    "Chance and majority": "A random guess among the options, and always giving the relation's "
    "most frequent answer. On a balanced set they are equal.",
}
#: Columns of the template table, in the order in which they are read.
TEMPLATE_COLUMNS = {
    **{f"template {i}": f"template {i}" for i in range(8)},
    "agreement": "same option under all",
    "correct in all": "right under all",
    "answer last": "answer last",
    "answer elsewhere": "answer inside",
    "answer before subject": "answer before subject",
}


@dataclass(frozen=True)
class Example:
    """One item worked out: frame of `bear_figures.example`, and whose answer it is."""

    model: str
    relation: str
    options: pl.DataFrame


@dataclass(frozen=True)
class Shown:
    """What the chapter is made of.

    `tables`: TABLE frames by table name (bear_models, bear_relations, ... as far as there are);
    `relation_names`: relation -> name; `funnels`: FUNNEL frames by benchmark; `descriptions`:
    benchmark -> what it is.
    """

    probes: Sequence[Probe]
    tables: Mapping[str, pl.DataFrame]
    drawings: Sequence[Drawing] = ()
    example: Example | None = None
    funnels: Mapping[str, pl.DataFrame] = field(default_factory=dict)
    relation_names: Mapping[str, str] = field(default_factory=dict)
    descriptions: Mapping[str, str] = field(default_factory=dict)


def chapter(shown: Shown) -> Chapter:
    """The chapter. Raises ValueError where tables and probes do not fit together."""
    _check(shown)
    benchmarks = dict.fromkeys(p.benchmark for p in shown.probes)
    parts = [_benchmark(shown, name, n) for n, name in enumerate(benchmarks, 1)]
    if "calibration" in shown.tables:
        parts.insert(0, _calibration(shown))
    if shown.example:
        parts.append(_example(shown.example))
    if shown.funnels:
        parts.append(_construction(shown))
    return Chapter("bear", "BEAR: balanced multiple choice", LEAD, parts=parts, terms=TERMS)


def _check(shown: Shown) -> None:
    if not shown.probes:
        raise ValueError("BEAR's chapter needs at least one probe")
    rows = set(shown.tables["bear_models"]["row"]) if "bear_models" in shown.tables else set()
    missing = sorted(p.label for p in shown.probes if p.label not in rows)
    if missing:
        raise ValueError(f"report: table bear_models has no row for {missing}")


def _benchmark(shown: Shown, name: str, number: int) -> Chapter:
    """The part of one benchmark."""
    probes = [p for p in shown.probes if p.benchmark == name]
    tables = shown.tables
    wide = [grid.models(tables["bear_models"], probes)]
    if "bear_relations" in tables:
        wide.append(grid.relations(tables["bear_relations"], probes, shown.relation_names))
    if "bear_domains" in tables:
        wide += _domains(tables["bear_domains"], probes)
    if "bear_templates" in tables:
        frame, title = tables["bear_templates"], "Accuracy by template, %"
        wide.append(grid.pivot(frame, title, "model", TEMPLATE_COLUMNS, draw.names(probes)))
    return Chapter(
        f"benchmark-{number}",
        name,
        shown.descriptions.get(name, ""),
        notes(tables["bear_models"], probes),
        wide,
        _differences(tables, probes),
        [d for d in shown.drawings if d.part == name],
    )


def _domains(frame: pl.DataFrame, probes: Sequence[Probe]) -> list[Grid]:
    shown = draw.names(probes)
    heads = {f"random | {probes[0].benchmark}": "chance, %"}
    heads |= {p.label: f"{shown[p.label]}, %" for p in probes}
    own = frame.filter(pl.col("column").is_in(list(heads)))
    caption = "A relation counts fully in each of its domains."
    title = "Accuracy by domain"
    return [grid.pivot(own, title, "domain", heads, caption=caption)] if own.height else []


def _differences(tables: Mapping[str, pl.DataFrame], probes: Sequence[Probe]) -> list[Grid]:
    if "bear_differences" not in tables or len(probes) < 2:
        return []
    shown = draw.names(probes).items()
    pairs = {f"{a} minus {b}": f"{x} minus {y}" for a, x in shown for b, y in shown}
    heads = {"score": "accuracy, points", "macro": "mean over relations, points"}
    caption = "Paired: both models under the same resamples."
    frame, title = tables["bear_differences"], "Differences between models"
    return [grid.pivot(frame, title, "pair", heads, pairs, caption)]


def notes(models: pl.DataFrame, probes: Sequence[Probe]) -> list[str]:
    """Warnings that a reader needs beside the numbers of one benchmark, from `bear_models`."""
    cells, benchmark = lookup(models), probes[0].benchmark
    random = cells[f"random | {benchmark}", "score"]["value"]
    majority = cells[f"majority | {benchmark}", "score"]["value"]
    told = []
    if majority > random + 1:
        told.append(
            f"The items scored here are not balanced: always giving a relation's most frequent "
            f"answer is right in {majority:.1f} % of them, a random guess in {random:.1f} %. "
            f"Compare with chance, and do not compare with figures of the complete set."
        )
    if any(c == "first wins" and r in {p.label for p in probes} for r, c in cells):
        told.append("Some options tied; a tie counts as the expectation of a random choice.")
    if any(p.dtype != "float32" for p in probes):
        told.append("Models whose weights are not float32 are marked as not exact.")
    return told


def _calibration(shown: Shown) -> Chapter:
    """BEAR's own figures; the chapter on calibration has the verdict on all papers' probes."""
    return Chapter(
        "bear-calibration",
        "Taught and untaught facts",
        "",
        grids=[replace(_calibrated(shown.tables["calibration"], shown.probes), caption=AUC)],
        drawings=[d for d in shown.drawings if d.part == "calibration"],
    )


def _calibrated(frame: pl.DataFrame, probes: Sequence[Probe]) -> Grid:
    """`calibration`: a row per probe, control models with their verdict."""
    cells = lookup(frame)
    present = [p for p in probes if (p.label, "taught") in cells]
    rows = []
    for probe in present:
        met = calibration.verdict(frame, probe.label)
        verdict = ("met" if met else "not met") if probe.control else "reference"
        rows.append(
            [
                grid.named(probe),
                *(grid.measured(cells[probe.label, c]) for c in calibration.COLUMNS[:4]),
                grid.measured(cells[probe.label, "AUC"], 3),
                grid.text(cells[probe.label, "taught"]["n"]),
                grid.text(cells[probe.label, "untaught"]["n"]),
                grid.text(probe.method),
                grid.text(verdict),
            ]
        )
    heads = ["model", "taught, %", "untaught, %", "chance, %", "limit for untaught, %", "AUC"]
    heads += ["taught items", "untaught items", "method", "requirement"]
    return Grid("Taught against untaught facts", heads, rows, frozenset(range(1, 8)))


def _example(example: Example) -> Chapter:
    rows = [
        {
            "rank": option["rank"],
            "sentence": option["sentence"],
            "log-likelihood, nats": f"{option['score']:.2f}",
            "correct": "✓ correct" if option["correct"] else "",
        }
        for option in example.options.iter_rows(named=True)
    ]
    lead = (
        "Every option is written into the template and each sentence gets a log-likelihood; the "
        f"highest is the model's answer. Here: {example.model}, relation {example.relation}."
    )
    shown = grid.records("Options of one question", rows)
    return Chapter("example", "One question, worked out", lead, grids=[shown])


def _construction(shown: Shown) -> Chapter:
    steps, by_relation = [], []
    for name, frame in shown.funnels.items():
        steps.append(replace(grid.funnel(frame), title=f"{name}: steps, all relations"))
        found = grid.funnel_by_relation(frame, shown.relation_names)
        by_relation.append(replace(found, title=f"{name}: relation by relation"))
    title = "Construction: how the questions were made"
    return Chapter("construction", title, CONSTRUCTION, grids=steps, folded=by_relation)

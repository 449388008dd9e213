"""The report: one HTML file that holds everything it shows and opens without a network.

Data comes in, text goes out: the same `Report` gives the same bytes, and the date is data. All
text is escaped by the template engine; only our own SVG, stylesheet and script go in as they are.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import jinja2
import polars as pl
from markupsafe import Markup

from kgprobe.schema import atomic
from kgprobe.tables import calibration, draw, grid, headline
from kgprobe.tables.answers import Probe
from kgprobe.tables.chapter import Chapter
from kgprobe.tables.drawing import Drawing
from kgprobe.tables.grid import Grid
from kgprobe.tables.table import lookup

TEMPLATES = Path(__file__).parent / "report_template"
#: colour in the figures -> custom property of the stylesheet
THEME = {
    draw.INK: "var(--ink)",
    draw.MUTED: "var(--muted)",
    draw.GRID: "var(--grid)",
    draw.SURFACE: "var(--surface)",
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
class Link:
    """A file beside the report: text shown, path relative to the report, what it holds."""

    text: str
    href: str
    holds: str = ""


@dataclass(frozen=True)
class Report:
    """Everything the report shows.

    `tables`: TABLE frames by table name (bear_models, bear_relations, ... as far as there are);
    `models`, `experiments`: rows as they shall be printed; `made`: date, as text;
    `relation_names`: relation -> name; `funnels`: FUNNEL frames by benchmark; `descriptions`:
    benchmark -> what it is; `chapters`: in the order in which they are printed.
    """

    made: str
    probes: Sequence[Probe]
    tables: Mapping[str, pl.DataFrame]
    config: Mapping[str, Any]
    models: Sequence[Mapping[str, object]]
    experiments: Sequence[Mapping[str, object]]
    versions: Mapping[str, str]
    drawings: Sequence[Drawing] = ()
    example: Example | None = None
    funnels: Mapping[str, pl.DataFrame] = field(default_factory=dict)
    relation_names: Mapping[str, str] = field(default_factory=dict)
    descriptions: Mapping[str, str] = field(default_factory=dict)
    links: Sequence[Link] = ()
    chapters: Sequence[Chapter] = ()
    title: str = "What the models know of the knowledge graph"

    @cached_property
    def benchmarks(self) -> list[str]:
        """Benchmarks in the order of the probes."""
        return list(dict.fromkeys(p.benchmark for p in self.probes))

    def probes_of(self, benchmark: str) -> list[Probe]:
        """The probes of one benchmark."""
        return [p for p in self.probes if p.benchmark == benchmark]


def write_report(path: str | Path, report: Report) -> None:
    """Write the report at `path`, whole or not at all."""
    html = render(report)
    with atomic(path) as temporary:
        temporary.write_text(html, encoding="utf-8")


def render(report: Report) -> str:
    """The report as HTML text. Raises ValueError where tables and probes do not fit together."""
    _check(report)
    top = headline.build(report.tables["bear_models"], report.tables.get("calibration"))
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("report.html").render(
        report=report,
        top=grid.headline(top, report.probes),
        parts=[_part(report, name) for name in report.benchmarks],
        calibration=_calibration(report),
        example=report.example,
        funnels=_funnels(report),
        models=grid.records("Models", report.models),
        experiments=grid.records("Experiments", report.experiments),
        config=grid.settings("Configuration", report.config),
        versions=grid.settings("Versions", report.versions),
        tiles=_tiles(report),
        css=Markup((TEMPLATES / "report.css").read_text(encoding="utf-8")),
        script=Markup((TEMPLATES / "report.js").read_text(encoding="utf-8")),
        inline=inline,
    )


def inline(drawing: Drawing) -> Markup:
    """SVG text for use inside HTML: own ids, the theme's colours, size left to the stylesheet.

    Raises ValueError when the text could run or load something.
    """
    svg = drawing.svg[max(drawing.svg.find("<svg"), 0) :]
    active = r"<script|<foreignObject|javascript:|\son\w+\s*=|href=\"(?!#)|url\((?!#)|@import"
    if not svg.startswith("<svg") or re.search(active, svg, flags=re.IGNORECASE):
        raise ValueError(f"figure {drawing.name}: no plain SVG; draw it with kgprobe.tables.draw")
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r"<!--.*?-->\s*", "", svg, flags=re.DOTALL)
    prefix = re.sub(r"\W", "-", drawing.name)
    svg = re.sub(r'\bid="', f'id="{prefix}-', svg)
    svg = re.sub(r'href="#', f'href="#{prefix}-', svg)
    svg = svg.replace("url(#", f"url(#{prefix}-")
    for colour, variable in THEME.items():
        svg = svg.replace(colour, variable)
    head, rest = svg.split(">", 1)
    head = re.sub(r'\s(width|height)="[^"]*"', "", head)
    label = Markup.escape(drawing.alt or drawing.title)
    return Markup(f'{head} role="img" aria-label="{label}">{rest}')


def _check(report: Report) -> None:
    if not report.probes:
        raise ValueError("a report needs at least one probe")
    rows = set(report.tables["bear_models"]["row"]) if "bear_models" in report.tables else set()
    missing = sorted(p.label for p in report.probes if p.label not in rows)
    if missing:
        raise ValueError(f"report: table bear_models has no row for {missing}")


def _part(report: Report, benchmark: str) -> dict[str, Any]:
    """What the template shows of one benchmark."""
    probes, tables = report.probes_of(benchmark), report.tables
    wide = [grid.models(tables["bear_models"], probes)]
    if "bear_relations" in tables:
        wide.append(grid.relations(tables["bear_relations"], probes, report.relation_names))
    if "bear_domains" in tables:
        wide += _domains(tables["bear_domains"], probes)
    if "bear_templates" in tables:
        frame, title = tables["bear_templates"], "Accuracy by template, %"
        wide.append(grid.pivot(frame, title, "model", TEMPLATE_COLUMNS, draw.names(probes)))
    return {
        "name": benchmark,
        "grids": wide,
        "differences": _differences(report, probes),
        "notes": _notes(report, benchmark),
        "drawings": [d for d in report.drawings if d.part == benchmark],
    }


def _domains(frame: pl.DataFrame, probes: Sequence[Probe]) -> list[Grid]:
    shown = draw.names(probes)
    heads = {f"random | {probes[0].benchmark}": "chance, %"}
    heads |= {p.label: f"{shown[p.label]}, %" for p in probes}
    own = frame.filter(pl.col("column").is_in(list(heads)))
    caption = "A relation counts fully in each of its domains."
    title = "Accuracy by domain"
    return [grid.pivot(own, title, "domain", heads, caption=caption)] if own.height else []


def _differences(report: Report, probes: Sequence[Probe]) -> Grid | None:
    if "bear_differences" not in report.tables or len(probes) < 2:
        return None
    shown = draw.names(probes).items()
    pairs = {f"{a} minus {b}": f"{x} minus {y}" for a, x in shown for b, y in shown}
    heads = {"score": "accuracy, points", "macro": "mean over relations, points"}
    caption = "Paired: both models under the same resamples."
    frame = report.tables["bear_differences"]
    return grid.pivot(frame, "Differences between models", "pair", heads, pairs, caption)


def _notes(report: Report, benchmark: str) -> list[str]:
    """Warnings that a reader needs beside the numbers of a benchmark."""
    cells = lookup(report.tables["bear_models"])
    random = cells[f"random | {benchmark}", "score"]["value"]
    majority = cells[f"majority | {benchmark}", "score"]["value"]
    notes = []
    if majority > random + 1:
        notes.append(
            f"The items scored here are not balanced: always giving a relation's most frequent "
            f"answer is right in {majority:.1f} % of them, a random guess in {random:.1f} %. "
            f"Compare with chance, and do not compare with figures of the complete set."
        )
    probes = report.probes_of(benchmark)
    if any(c == "first wins" and r in {p.label for p in probes} for r, c in cells):
        notes.append("Some options tied; a tie counts as the expectation of a random choice.")
    if any(p.dtype != "float32" for p in probes):
        notes.append("Models whose weights are not float32 are marked as not exact.")
    return notes


def _calibration(report: Report) -> dict[str, Any] | None:
    frame = report.tables.get("calibration")
    if frame is None:
        return None
    control = [p for p in report.probes if p.control and p.label in set(frame["row"])]
    met = [p.label for p in control if calibration.verdict(frame, p.label)]
    return {
        "grid": _calibrated(frame, report.probes),
        "met": len(met),
        "of": len(control),
        "failed": [p.label for p in control if p.label not in met],
        "drawings": [d for d in report.drawings if d.part == "calibration"],
    }


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


def _funnels(report: Report) -> list[dict[str, Any]]:
    return [
        {
            "name": name,
            "steps": grid.funnel(frame),
            "relations": grid.funnel_by_relation(frame, report.relation_names),
        }
        for name, frame in report.funnels.items()
    ]


def _tiles(report: Report) -> list[tuple[str, str]]:
    """(number, what it counts), shown at the top."""
    cells = lookup(report.tables["bear_models"])
    tiles = [(str(len({p.model for p in report.probes})), "models")]
    for name in report.benchmarks:
        size = cells[f"random | {name}", "score"]["n"]
        tiles.append((f"{size:,}", f"items in {name}"))
    tiles.append((str(len(report.probes)), "probes"))
    return tiles

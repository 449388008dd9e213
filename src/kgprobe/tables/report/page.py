"""The report: one HTML file that holds everything it shows and opens without a network.

A frame (headline, how to read, what was run, files) around the chapters, which the rules of their
papers made. Data comes in, text goes out: the same `Report` gives the same bytes, and no clock is
read. All text is escaped by the template engine; only our own SVG, stylesheet and script go in as
they are.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jinja2
import polars as pl
from markupsafe import Markup

from kgprobe.schema import atomic
from kgprobe.tables.report import draw, grid, headline, marks
from kgprobe.tables.report.chapter import Chapter, Drawing
from kgprobe.tables.report.grid import Grid

TEMPLATES = Path(__file__).parent / "html"
#: colour in the figures -> custom property of the stylesheet
THEME = {
    draw.INK: "var(--ink)",
    draw.MUTED: "var(--muted)",
    draw.GRID: "var(--grid)",
    draw.SURFACE: "var(--surface)",
}
#: what words mean in every chapter; chapters add their own
TERMS = {
    "n": "Number of items behind a number; in the columns of items, on every number under the "
    "pointer, and beside every number in the files.",
    "Intervals": "95 %. They speak of sampling the items, not of prompts or of training.",
    "BOS": "Whether a causal model sees a token that begins the sequence: none (the first token is "
    "not scored), default (what its tokenizer adds), forced. It moves scores by points; rows of "
    "different policies are different measurements.",
    "Published": "The paper's figure, printed only where the same weights answered the same items "
    "under a policy that fits. A constructed set is not the paper's set.",
    "Control": "Models trained here on a known half of the facts to calibrate the probes. They are "
    "no language models in any other sense.",
}


@dataclass(frozen=True)
class Link:
    """A file beside the report: text shown, path relative to the report, what it holds."""

    text: str
    href: str
    holds: str = ""


@dataclass(frozen=True)
class Report:
    """Everything the report shows.

    `results`: RESULTS of all papers; `sheet`: the models by name; `models`, `experiments`: rows as
    they shall be printed; `chapters`: in the order of the page.
    """

    results: pl.DataFrame
    sheet: Mapping[str, Mapping[str, str]]
    config: Mapping[str, Any]
    models: Sequence[Mapping[str, object]]
    experiments: Sequence[Mapping[str, object]]
    versions: Mapping[str, str]
    chapters: Sequence[Chapter] = ()
    links: Sequence[Link] = ()
    title: str = "What the models know of the knowledge graph"


def write_report(path: str | Path, report: Report) -> None:
    """Write the report at `path`, whole or not at all."""
    html = render(report)
    with atomic(path) as temporary:
        temporary.write_text(html, encoding="utf-8")


def render(report: Report) -> str:
    """The report as HTML text."""
    if not report.experiments:
        raise ValueError("a report needs at least one probe")
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    top = _top(report)
    return environment.get_template("report.html").render(
        report=report,
        top=top,
        notes=marks.notes([c.text for found in top for row in found.rows for c in row]),
        terms={k: v for chapter in report.chapters for k, v in chapter.terms.items()} | TERMS,
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
        raise ValueError(
            f"figure {drawing.name}: no plain SVG; draw it with kgprobe.tables.report.draw"
        )
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


def _top(report: Report) -> list[Grid]:
    """The headline: a table for each benchmark, control models last."""
    own, names = headline.principal(report.results), grid.models(report.sheet)
    last = [m for m, row in report.sheet.items() if row["source"].startswith("control:")]
    models = [m for m in own["model"].unique(maintain_order=True) if m not in last] + last
    return [
        grid.of_view(view.where_also(model=models), own, names=names)
        for view in headline.blocks(report.results)
    ]


def _tiles(report: Report) -> list[tuple[str, str]]:
    """(number, what it counts), shown at the top."""
    models, asked = len({row["model"] for row in report.experiments}), len(report.experiments)
    tiles = [(str(models), "model" if models == 1 else "models")]
    whole = report.results.filter(
        paper="bear", metric="accuracy", model="random", group="", slice="", setting="{}"
    )
    tiles += [(f"{n:,}", f"items in {name}") for name, n in whole.select("benchmark", "n").rows()]
    tiles.append((str(asked), "probe" if asked == 1 else "probes"))
    return tiles

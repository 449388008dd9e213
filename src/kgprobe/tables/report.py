"""The report: one HTML file that holds everything it shows and opens without a network.

A frame (headline, how to read, what was run, files) around the chapters, which the rules of their
papers made. Data comes in, text goes out: the same `Report` gives the same bytes, and no clock is
read. All text is escaped by the template engine; only our own SVG, stylesheet and script go in as
they are.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import jinja2
import polars as pl
from markupsafe import Markup

from kgprobe.schema import atomic
from kgprobe.tables import draw, grid, headline, marks
from kgprobe.tables.answers import Probe
from kgprobe.tables.chapter import Chapter
from kgprobe.tables.drawing import Drawing
from kgprobe.tables.grid import Cell, Grid

TEMPLATES = Path(__file__).parent / "report_template"
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

    `probes`: a row of the sheet each; `headline`: the TABLE of the principal numbers; `models`,
    `experiments`: rows as they shall be printed; `chapters`: in the order of the page.
    """

    probes: Sequence[Probe]
    headline: pl.DataFrame
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
    if not report.probes:
        raise ValueError("a report needs at least one probe")
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    blocks = headline.blocks(report.headline)
    top = _top(blocks, report.probes)
    return environment.get_template("report.html").render(
        report=report,
        top=top,
        # BEAR's alone needs no title of its own
        is_titled=len(top) > 1 or not any(block.paper == "kgprobe" for block in blocks),
        notes=marks.notes([*report.headline["row"], *(p.model for p in report.probes)]),
        terms={k: v for chapter in report.chapters for k, v in chapter.terms.items()} | TERMS,
        models=grid.records("Models", report.models),
        experiments=grid.records("Experiments", report.experiments),
        config=grid.settings("Configuration", report.config),
        versions=grid.settings("Versions", report.versions),
        tiles=_tiles(blocks, report.probes),
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


def _top(blocks: Sequence[headline.Block], probes: Sequence[Probe]) -> list[Grid]:
    """BEAR's benchmarks in one table, then a table for each benchmark of the other papers."""
    bear = [block for block in blocks if block.paper == "kgprobe"]
    grids = [_block(block, probes) for block in blocks if block not in bear]
    if not bear:
        return grids
    known = {marks.bare(probe.label): probe for probe in probes}
    labels = {
        label: _marked(known[marks.bare(label)], label) for block in bear for label in block.labels
    }
    cells = {(labels[r].label, c): cell for (r, c), cell in bear[0].cells.items()}
    order = {marks.bare(probe.label): place for place, probe in enumerate(probes)}
    own = sorted(labels.values(), key=lambda p: order[marks.bare(p.label)])
    return [grid.headline(cells, own), *grids]


def _block(block: headline.Block, probes: Sequence[Probe]) -> Grid:
    """A row per model and method of a benchmark, control models last."""
    models = {marks.bare(probe.model): probe for probe in probes}
    rows = []
    for label in block.labels:
        model, _, *method = label.split(" | ")
        probe = _marked(models[marks.bare(model)], model)
        numbers = [_number(block.cells, label, column) for column in block.columns]
        rows.append((probe.control, [grid.named(probe), grid.text(", ".join(method)), *numbers]))
    heads = ["model", "method", *block.columns]
    ordered = [row for _, row in sorted(rows, key=lambda found: found[0])]
    title = f"{block.name}: {block.title}"
    return Grid(title, heads, ordered, frozenset(range(2, len(heads))))


def _marked(probe: Probe, label: str) -> Probe:
    """A probe with the mark that its label has: one of its method, which others need not have."""
    is_outside = marks.OUTSIDE in label and marks.OUTSIDE not in probe.model
    return replace(probe, model=probe.model + marks.OUTSIDE) if is_outside else probe


def _number(cells: headline.Cells, row: str, column: str) -> Cell:
    """A number with its interval, in front of it the fraction of a ratio; undef where it is 0/0."""
    value, below = cells.get((row, column)), cells.get((row, column + headline.BELOW))
    if below is None:
        return grid.measured(value)
    if value is None:
        return Cell("undef", "0/0", hint="no example counts")
    shown = grid.measured(value)
    parts = f"{cells[row, column + headline.ABOVE]['value']:.4g}/{below['value']:.4g}"
    return Cell(shown.text, f"{parts}; {shown.small}".rstrip("; "), shown.sort, shown.hint)


def _tiles(blocks: Sequence[headline.Block], probes: Sequence[Probe]) -> list[tuple[str, str]]:
    """(number, what it counts), shown at the top."""
    models, asked = len({p.model for p in probes}), len(probes)
    tiles = [(str(models), "model" if models == 1 else "models")]
    for block in blocks:
        if block.paper == "kgprobe":
            size = block.cells[block.labels[0], "accuracy"]["n"]
            tiles.append((f"{size:,}", f"items in {block.name}"))
    tiles.append((str(asked), "probe" if asked == 1 else "probes"))
    return tiles

"""The report: a folder of HTML pages that open from disk, without a network.

report/index.html          what was run, a sentence per paper, models by benchmarks, validity
report/pages/*.html        a page for each paper and its questions, claims, validity, models; all
                           numbers; how to read, what was run, files
report/pages/data/         every table, and the numbers of every figure, as CSV, Markdown and LaTeX

The output depends only on the data: the same `Report` gives the same bytes, and no clock is read.
All text is escaped by the template engine; only our own SVG, stylesheet and script are inserted
unescaped.
"""

import math
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import jinja2
import polars as pl
from markupsafe import Markup

from kgprobe.schema import atomic
from kgprobe.tables.report import about, draw, formats, grid, headline, overview, summary
from kgprobe.tables.report.blocks import NOTES, Block, Room, arranged, slug, split_caption
from kgprobe.tables.report.grid import Cell
from kgprobe.tables.report.section import Drawing, Section, noted

TEMPLATES = Path(__file__).parent / "html"
#: minimum font size in a figure, in pixels
READABLE = 10
#: color in the figures -> custom property of the stylesheet
THEME = {
    draw.INK: "var(--ink)",
    draw.MUTED: "var(--muted)",
    draw.GRID: "var(--grid)",
    draw.SURFACE: "var(--surface)",
}
#: explanations of terms used in every section; sections add their own
TERMS = {
    "n": "Number of items behind a number, or of subjects where a relation asks for some several "
    "times: next to the title of every table and figure, on hover for every number, and next to "
    "every number in the files.",
    "Intervals": "95 %. They describe the sampling of items, not of prompts or trainings.",
    "Trace": "Click a number, or reach it with the arrow keys, to see the command that shows its "
    "rows, questions, answers and files.",
    "BOS": "Whether a causal model sees a token that begins the sequence: none (the first token is "
    "not scored), default (what its tokenizer adds), forced. It changes scores by whole "
    "points; rows with different policies are different measurements.",
    "Published": "The paper's figure, printed only if the same weights answered the same items "
    "with the same policy. A rebuilt set is not the paper's set.",
    "Control": "Small models trained on a known half of the facts, which only serve to check the "
    "probes.",
}
CITED = {
    "BEAR": "J. Wiland, M. Ploner, A. Akbik: BEAR: A Unified Framework for Evaluating Relational "
    "Knowledge in Causal and Masked Language Models. Findings of NAACL, 2024.",
    "OntoProbe": "W. Wu, C. Jiang, Y. Jiang, P. Xie, K. Tu: Do PLMs Know and Understand "
    "Ontological Knowledge? ACL, 2023.",
    "Attributes": "V. Mruthyunjaya, P. Pezeshkpour, E. Hruschka, N. Bhutani: Rethinking Language "
    "Models as Symbolic Knowledge Graphs. arXiv 2308.13676, 2023.",
    "AutoPrompt": "T. Shin, Y. Razeghi, R. L. Logan IV, E. Wallace, S. Singh: AutoPrompt: "
    "Eliciting Knowledge from Language Models with Automatically Generated Prompts. EMNLP, 2020.",
}
LICENSES = (
    "kgprobe is licensed under the Apache License 2.0. Facts and labels of Wikidata are CC0; data "
    "from DBpedia and Wikipedia (including T-REx) are CC BY-SA and require attribution; released "
    "files of the papers and model weights keep their own terms."
)


@dataclass(frozen=True)
class Report:
    """Everything the report shows.

    `run`: the run's name; `results`: RESULTS of all papers; `probed`: the models by name; `models`:
    records of each model, `experiments`: rows of experiments, both as printed; `sections`: in page
    order; `benchmarks`: pages on the questions of each paper (`about.benchmarks`); `links`: files
    in the run's folder -> their contents; `commands`: section -> the command that makes its tables,
    "" for everything else; `commit`: of the project.
    """

    run: str
    results: pl.DataFrame
    probed: Mapping[str, Mapping[str, str]]
    config: Mapping[str, Any]
    models: Sequence[Mapping[str, object]]
    experiments: Sequence[Mapping[str, str]]
    versions: Mapping[str, str]
    sections: Sequence[Section] = ()
    benchmarks: Sequence[Section] = ()
    links: Mapping[str, str] = field(default_factory=dict)
    commands: Mapping[str, str] = field(default_factory=dict)
    commit: str = ""
    title: str = "What the models know about the knowledge graph"


@dataclass(frozen=True)
class Page:
    """A page: its content and its command."""

    content: Section
    command: str

    @property
    def file(self) -> str:
        return f"{slug(self.content.name)}.html"

    @property
    def short(self) -> str:
        """Its title up to a colon, for navigation."""
        return self.content.title.partition(":")[0]

    @cached_property
    def blocks(self) -> list[tuple[Section, list[Block]]]:
        """Its parts (itself the first) and the blocks of each."""
        room = Room()
        first = [(self.content, arranged(self.content, room))]
        return first + [(part, arranged(part, room, part.name)) for part in self.content.parts]


def write_report(folder: str | Path, report: Report) -> Path:
    """Write the report into a folder, and return the path of its first page. Pages of an earlier
    report are removed, other files stay."""
    folder = Path(folder)
    files = render(report)
    waiting = folder / ".pages.part"
    shutil.rmtree(waiting, ignore_errors=True)
    for name, text in files.items():
        if name != "index.html":
            with atomic(folder / name.replace("pages/", ".pages.part/", 1)) as temporary:
                temporary.write_text(text, encoding="utf-8")
    shutil.rmtree(folder / "pages", ignore_errors=True)
    waiting.rename(folder / "pages")
    with atomic(folder / "index.html") as temporary:
        temporary.write_text(files["index.html"], encoding="utf-8")
    return folder / "index.html"


def render(report: Report) -> dict[str, str]:
    """Return the path in the report's folder -> text of every file."""
    if not report.experiments:
        raise ValueError("a report needs at least one probe")
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["slug"] = slug
    sentences = summary.sentences(report.results)
    index, pages = _index(report, sentences), list(_pages(report))
    sections = {section.name: section for section in report.sections}
    shared = {
        "report": report,
        "pages": pages,
        "css": Markup((TEMPLATES / "report.css").read_text(encoding="utf-8")),
        "script": Markup((TEMPLATES / "report.js").read_text(encoding="utf-8")),
        "inline": inline,
        "shortened": split_caption,
        "most": NOTES,
        "formats": {end: name for end, (name, _) in formats.FORMATS.items()},
        # shown on the first page only
        "tiles": overview.tiles(report.results, report.experiments),
        "found": sentences,
        # number of claims with results here, and their verdicts
        "claimed": " ".join(sections["claims"].notes[:1]) if "claims" in sections else "",
        # number of control probes that meet the requirement
        "valid": sections["validity"].verdict if "validity" in sections else "",
    }
    files = {}
    for page in (index, *pages):
        is_first = page is index
        where = {"here": "pages/" if is_first else "", "root": "" if is_first else "../"}
        name = "index.html" if is_first else f"pages/{page.file}"
        files[name] = environment.get_template("page.html").render(page=page, **shared, **where)
        for block in (block for _, blocks in page.blocks for block in blocks):
            for end, (_, written) in formats.FORMATS.items():
                data = f"pages/data/{slug(page.content.name)}.{block.anchor}.{end}"
                files[data] = written(block.grid).rstrip("\n") + "\n"
    return files


def _index(report: Report, sentences: Sequence[Cell]) -> Page:
    """Build the first page: the matrix, a picture of its numbers, and notes of the sentences."""
    tables = grid.filled_in([overview.matrix(report.results, report.probed)])
    drawn = [one for one in [overview.picture(report.results)] if one]
    content = Section("index", report.title, "", grids=tables, drawings=drawn)
    texts = [one.text for one in sentences]
    return Page(noted(content, *texts), report.commands.get("", ""))


def _pages(report: Report) -> Iterator[Page]:
    """Yield all other pages in order; a section without content has no page."""
    names = about.link_models(report.probed)
    # a paper's claims come before its tables
    claims = {
        part.name: part.grids for c in report.sections if c.name == "claims" for part in c.parts
    }
    usual = report.commands.get("", "")
    for section in report.sections:
        if section.name in headline.PAPERS:
            top = about.headlines(report.results, names, paper=[section.name])
            grids = [*claims.get(section.name, ()), *top, *section.grids]
            section = replace(section, grids=grids)
        if section.drawings or section.parts or any(table.rows for table in section.tables):
            yield Page(noted(section), report.commands.get(section.name, usual))
    yield from (Page(noted(section), usual) for section in report.benchmarks)
    sections = about.models(report.results, report.probed, report.models, report.experiments)
    yield Page(noted(Section("models", "Models", "", parts=list(sections))), usual)
    yield Page(_reading(report), usual)


def _reading(report: Report) -> Section:
    """Explain how to read the numbers, and list what was run, the versions and the licenses."""
    terms = {k: v for section in report.sections for k, v in section.terms.items()} | TERMS
    versions = {"run": report.run, "commit": report.commit or "no checkout", **report.versions}
    files = [{"file": Cell(path, href=f"../../{path}"), "holds": holds}
             for path, holds in report.links.items()]  # fmt: skip
    return Section(
        "methods", "Methods: how to read the report, and what was run", "", terms=terms,
        grids=[grid.records("Models", report.models), grid.records("Probes", report.experiments),
               grid.settings("Versions", versions), grid.records("Cite the papers", (
                   {"benchmark": name, "paper": text} for name, text in CITED.items()))],
        folded=[grid.settings("Configuration", report.config),
                grid.records("Files of the run", files)], notes=[LICENSES],
    )  # fmt: skip


def inline(drawing: Drawing) -> Markup:
    """Render the figure as SVG in HTML: unique ids, the theme's colors, size by the stylesheet.

    Raises ValueError if the SVG could run or load something.
    """
    svg = draw.svg(drawing.chart)
    active = r"<script|<style|<foreignObject|javascript:|\son\w+\s*=|href=\"(?!#)|url\((?!#)"
    # labels may contain such words: in text content, and in aria-label
    tags = re.sub('aria-label="[^"]*"', "", "".join(re.findall("<[^>]*>", svg)))
    if not svg.startswith("<svg") or re.search(active, tags, flags=re.IGNORECASE):
        raise ValueError(f"figure {drawing.name}: no plain SVG; draw it without links and images")
    prefix = re.sub(r"\W", "-", drawing.name)
    svg = re.sub(r'\bid="', f'id="{prefix}-', svg)
    svg = re.sub(r'href="#', f'href="#{prefix}-', svg)
    svg = svg.replace("url(#", f"url(#{prefix}-")
    for color, variable in THEME.items():
        svg = svg.replace(color, variable)
    head, rest = svg.split(">", 1)
    # on a narrow screen the figure scrolls, so that its text does not get smaller than this
    sizes = [float(size) for size in re.findall(r'font-size="([\d.]+)px"', svg)]
    width = re.search(r'\swidth="([\d.]+)"', head)
    least = float(width[1]) * READABLE / min(sizes) if width and sizes else 0
    head = re.sub(r'\s(width|height)="[^"]*"', "", head)
    label = Markup.escape(drawing.caption)
    style = f'style="min-width: {math.ceil(least)}px"'
    return Markup(f'{head} {style} role="img" aria-label="{label}">{rest}')

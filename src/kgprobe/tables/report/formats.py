"""Export a table as data: CSV with unrounded numbers, Markdown and LaTeX as printed."""

import csv as commas
import io
import re
from collections.abc import Callable

from kgprobe.tables.report.grid import Cell, Grid

#: characters with a special meaning in LaTeX
SPECIAL = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
SPECIAL |= {sign: f"\\{sign}" for sign in "&%$#_{}"}
SPECIAL |= {"†": r"\dag{}", "✓": r"\checkmark{}", "–": "--"}
# LaTeX's own fonts print other characters for these; after a row's end, [ and * are options
SPECIAL |= {"<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}"}
SPECIAL |= {"[": "{[}", "*": "{*}"}

#: characters with a special meaning in Markdown: those of emphasis, code, tags and cells; a bracket
#: that begins a link, an ampersand that begins an entity, underscores around a word
MARKDOWN = re.compile(r"[\\|*<`~]|\[(?=[^]]*\]\()|&(?=#?\w+;)|(?<![^\W_])_|_(?![^\W_])")


def csv(grid: Grid) -> str:
    """Format as CSV; a number's interval (or other small print) and n have separate columns."""
    columns = []
    for i, head in enumerate(grid.heads):
        cells = [row[i] for row in grid.rows]
        columns.append([head, *(_value(c) if i in grid.numeric else c.text for c in cells)])
        if any(c.small for c in cells):
            columns.append([f"{head} (small print)", *(c.small for c in cells)])
        if any(c.n for c in cells):
            columns.append([f"{head} (n)", *(str(c.n or "") for c in cells)])
    stream = io.StringIO()
    commas.writer(stream, lineterminator="\n").writerows(zip(*columns, strict=True))
    return stream.getvalue()


def markdown(grid: Grid) -> str:
    """Format as a Markdown table under its title."""
    rule = ["--:" if i in grid.numeric else "---" for i in range(len(grid.heads))]
    rows = [[_format_cell(cell) for cell in row] for row in grid.rows]
    body = [f"| {' | '.join(map(_plain, line))} |" for line in (grid.heads, rule, *rows)]
    caption = ["", _plain(grid.caption)] * bool(grid.caption)
    return "\n".join([f"**{_plain(grid.title)}**", "", *body, *caption])


def latex(grid: Grid) -> str:
    """Format as a LaTeX table with booktabs rules, and its caption."""
    places = "".join("r" if i in grid.numeric else "l" for i in range(len(grid.heads)))
    body = [" & ".join(_tex(_format_cell(cell)) for cell in row) + r" \\" for row in grid.rows]
    return "\n".join(
        [
            r"\begin{table}",
            rf"\caption{{{_tex('. '.join(filter(None, [grid.title, grid.caption])))}}}",
            rf"\begin{{tabular}}{{{places}}}",
            r"\toprule",
            " & ".join(map(_tex, grid.heads)) + r" \\",
            r"\midrule",
            *body,
            r"\bottomrule",
            r"\end{tabular}",
            r"\end{table}",
        ]
    )


FORMATS: dict[str, tuple[str, Callable[[Grid], str]]] = {
    "csv": ("CSV", csv),
    "md": ("Markdown", markdown),
    "tex": ("LaTeX", latex),
}


def _value(cell: Cell) -> str:
    return repr(cell.sort) if isinstance(cell.sort, float) else "" if cell.muted else cell.text


def _format_cell(cell: Cell) -> str:
    return f"{cell.text} ({cell.small})" if cell.small else cell.text


def _plain(text: str) -> str:
    """Escape a text for Markdown, on one line."""
    return MARKDOWN.sub(r"\\\g<0>", " ".join(text.split()))


def _tex(text: str) -> str:
    return re.sub(".", lambda sign: SPECIAL.get(sign[0], sign[0]), " ".join(text.split()))

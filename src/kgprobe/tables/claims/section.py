"""The report's section on the claims of the papers and their verdicts in this run."""

from collections.abc import Iterator, Mapping
from typing import Any

import polars as pl

from kgprobe.tables.claims import verdicts
from kgprobe.tables.report import grid, headline, marks
from kgprobe.tables.report.grid import Cell
from kgprobe.tables.report.section import Section

TITLE = "What the papers claim"
LEAD = (
    "The principal claims of the four papers, with what their own tables say about each, what "
    "this run says, and a verdict by one rule (docs/claims.md), followed by further claims as "
    f"printed. Reproduced: the same weights on the same items, at least {verdicts.ENOUGH} of them, "
    "in the claimed direction and equal to the printed value up to rounding and numerical noise. "
    "Same direction and opposite: p below .05 after Holm's correction over all claims with a 95 % "
    f"interval. Undecided: not significant, no interval, or fewer than {marks.FEWEST} items. "
    "Control models are not included: what they know says nothing about real models. A difference "
    "is paired if both sides are means of judged answers; for other numbers, its interval follows "
    "from those of both sides as if they came from different items, which is too wide if they do "
    "not. Intervals of the best of several are widened to account for the selection."
)
IN_PRINT = {
    "yes": "holds",
    "partly": "holds in part",
    "no": "fails in print",
    "uncomputable": "no numbers printed",
}
CAPTION = (
    "In print and here: the difference between the two sides of the claim. Click a number to see "
    "the rows that it is computed from."
)
#: path from a page of the report to the rows of RESULTS that a claim is computed from
ROWS = "../../tables/claim_rows/{}.tsv"


def section(claims: pl.DataFrame) -> Section:
    """Build the section from CLAIMS: a part per paper, principal claims shown, others collapsed."""
    tested = claims.filter(pl.col("verdict") != verdicts.NOT_TESTED)
    parts = []
    for paper, title in headline.PAPERS.items():
        rows = claims.filter(paper=paper)
        if not rows.height:
            continue
        principal = rows.filter(pl.col("comparison") != "")
        head = f"{title}: {_count_verdicts(principal)}."
        shown = grid.records(f"{title}: principal claims", _list_principal(principal), CAPTION)
        others = _list_further(rows.filter(comparison=""))
        further = grid.records(f"{title}: further claims", others)
        tables = grid.filled_in([shown]), grid.filled_in([further])
        parts.append(Section(paper, title, head, (), *tables))
    every = claims.filter(pl.col("comparison") != "")
    verb = "has" if tested.height == 1 else "have"
    note = f"{tested.height} of {every.height} claims {verb} numbers in this run"
    note += f": {_count_verdicts(every)}."
    return Section("claims", TITLE, LEAD, notes=[note], parts=parts)


def _count_verdicts(claims: pl.DataFrame) -> str:
    """Describe how many claims have each verdict."""
    sizes = dict(claims.group_by("verdict").len().rows())
    return ", ".join(f"{sizes[v]} {v}" for v in verdicts.VERDICTS if v in sizes)


def _list_principal(claims: pl.DataFrame) -> Iterator[dict[str, object]]:
    """Yield the row of each compared claim: in print, in this run, and its verdict."""
    # claims with a verdict in this run come first
    is_silent = pl.col("verdict") == verdicts.NOT_TESTED
    for row in claims.sort(is_silent, maintain_order=True).iter_rows(named=True):
        stands = f"{IN_PRINT[row['holds']]}; expected {expected(row['direction'])}"
        printed = "–" if row["printed"] is None else f"{row['printed']:.4g}"
        value = row["value"]
        here = Cell("–", muted=True)
        if value is not None:
            bounds = "" if row["low"] is None else f"{row['low']:.3g} to {row['high']:.3g}"
            sides = f"a = {row['a']:.4g}, b = {row['b']:.4g}, n = {row['n']:,}"
            sides += f", {row['pairs']} pairs"
            text = f"{value:.3g}{marks.few(row)}"
            here = Cell(text, bounds, value, sides, href=ROWS.format(row["claim"]))
        models = row["models"] or (f"needs {row['needs']}" if value is None else "none is asked")
        said = row["verdict"]
        yield {
            "claim": Cell(row["statement"], f"{row['claim']}; {row['where']}", row["claim"]),
            "in print": Cell(printed, stands, row["printed"]),
            "here": here,
            "n": row["n"],
            "models": Cell(models, sort=models, muted=not row["models"]),
            "verdict": Cell(said, _why(row), said, row["reason"], trace=row["claim"]),
        }


def _list_further(claims: pl.DataFrame) -> Iterator[dict[str, object]]:
    """Yield the row of each uncompared claim: whether the papers' tables support it."""
    for row in claims.iter_rows(named=True):
        yield {
            "claim": Cell(row["statement"], f"{row['claim']}; {row['where']}", row["claim"]),
            "in print": Cell(IN_PRINT[row["holds"]], row["reason"]),
        }


def expected(direction: str) -> str:
    """Describe where a claim expects its value: "> 0", "43 to 198".

    >>> expected(">"), expected("43..198")
    ('> 0', '43 to 198')
    """
    return f"{direction} 0" if direction in verdicts.DIRECTIONS else direction.replace("..", " to ")


def _why(row: Mapping[str, Any]) -> str:
    """Return the basis of a verdict: the reason if it is undecided, else p."""
    if row["p"] is None or (row["verdict"] == verdicts.UNDECIDED and row["reason"]):
        return str(row["reason"]) if row["value"] is not None else ""
    return "p < .001" if row["p"] < 0.001 else f"p = {row['p']:.3g}"

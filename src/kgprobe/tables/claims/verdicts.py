"""What becomes of the papers' claims in a run: a verdict each, by one stated rule.

    reproduced       the same models on the same data as in print, and the printed value lies inside
                     our interval
    same direction   other models or data, and the difference is where the claim expects it
    opposite         it is on the other side
    undecided        the interval does not tell, there is none, or fewer items are behind than a
                     number that is no smoke test has (marks.FEWEST)
    not tested here  this run has no numbers for it

A side is told where p < .05 after Holm's correction over all claims that the run has an interval
for. `>` and `<` expect the difference above or below 0. `=` expects it within `margin` of 0, in the
units of the metric: same where both of two one-sided tests put it inside (TOST; Schuirmann 1987),
opposite where it lies outside. p is that of a normal distribution whose 95 % reach from the value
to the bound on the side of what is tested.
"""

import csv
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl
from scipy.special import ndtr

from kgprobe.metrics.tests import LEVEL, holm, two_sided
from kgprobe.schema import CLAIMS, RESULTS, atomic
from kgprobe.tables.claims.comparison import (
    BASELINE,
    Comparison,
    ComparisonError,
    IncomparableError,
    Outcome,
    Z,
    evaluate,
    known,
    parse,
)
from kgprobe.tables.report.marks import FEWEST

REPRODUCED, SAME, OPPOSITE = "reproduced", "same direction", "opposite"
UNDECIDED, NOT_TESTED = "undecided", "not tested here"
VERDICTS = (REPRODUCED, SAME, OPPOSITE, UNDECIDED, NOT_TESTED)
COLUMNS = (
    "claim", "paper", "where", "statement", "scope", "a", "b", "per", "read", "direction", "margin",
    "metric", "printed", "holds", "opens", "needs", "untested",
)  # fmt: skip
MEASURED = ("a", "b", "value", "low", "high")
HOLDS = ("yes", "partly", "no", "uncomputable")


@dataclass(frozen=True)
class Claim:
    """A row of claims.tsv: what a paper says, where, and how it is compared (None: it is not), in
    words `told`.

    `direction`: >, < or =, the last within `margin`; `holds`: whether the papers' own tables bear
    it out; `opens`: whether a page begins with it; `needs`: what has to be run; `untested`: why it
    is not compared.
    """

    claim: str
    paper: str
    where: str
    statement: str
    comparison: Comparison | None
    told: str
    direction: str
    margin: float
    metric: str
    printed: str
    holds: str
    opens: bool
    needs: str
    untested: str


def read(path: str | Path) -> list[Claim]:
    """The claims of `path`. Raises ComparisonError naming file, line and what is legal."""
    with Path(path).open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    found = []
    for line, row in enumerate(rows, 2):
        try:
            found.append(_claim(row))
        except ValueError as error:
            raise ComparisonError(f"{path}, line {line}: {error}") from error
    return found


def _claim(row: Mapping[str, str]) -> Claim:
    if tuple(row) != COLUMNS or None in row.values():
        raise ComparisonError(f"columns {list(row)}, expected {list(COLUMNS)}")
    for name, legal in (("direction", "><="), ("holds", HOLDS)):
        if row[name] not in tuple(legal):
            raise ComparisonError(f"{name} {row[name]!r}; legal: {', '.join(legal)}")
    if row["read"] and row["direction"] == "=" and not row["margin"]:
        raise ComparisonError("direction = needs a margin")
    if bool(row["read"]) == bool(row["untested"]):
        raise ComparisonError("expected either a comparison or, in untested, why there is none")
    words = {name: row[name] for name in COLUMNS if name in Claim.__dataclass_fields__}
    compared = [row[name] for name in ("scope", "a", "b", "per", "read")]
    return Claim(
        **{
            **words,
            "comparison": parse(*compared) if row["read"] else None,
            "told": _told(*compared) if row["read"] else "",
            "margin": float(row["margin"] or 0),
            "opens": row["opens"] == "yes",
        }  # type: ignore[arg-type]
    )


def _told(scope: str, a: str, b: str, per: str, read: str) -> str:
    """A comparison in one line: what both sides share, each of them, how they are read."""
    per = f" per {per}" if per else ""
    return f"{scope}: a ({a or 'all'}), b ({b or 'all'}); {read}{per}"


@dataclass(frozen=True)
class Found:
    """A claim with what this run (None: why is in `reason`) and the printed tables say of it."""

    claim: Claim
    own: Outcome | None
    reason: str
    printed: Outcome | None


def find(
    claims: Iterable[Claim],
    results: pl.DataFrame,
    sheet: Mapping[str, Mapping[str, str]],
    printed: pl.DataFrame,
) -> list[Found]:
    """Every claim evaluated on RESULTS, and on the printed tables (printed.read).

    `sheet`: the models of the run by name; numbers that are printed ones (method published) are no
    results of it.
    """
    own = known(results.filter(pl.col("method") != "published"), sheet)
    found = []
    for claim in claims:
        if claim.comparison is None:
            found.append(Found(claim, None, claim.untested, None))
            continue
        of_paper = pl.col("paper") == claim.paper
        here, reason = _evaluated(claim.comparison, own.filter(of_paper))
        there, _ = _evaluated(claim.comparison, printed.filter(of_paper))
        found.append(Found(claim, here, reason, there))
    return found


def _evaluated(comparison: Comparison, results: pl.DataFrame) -> tuple[Outcome | None, str]:
    try:
        return evaluate(comparison, results), ""
    except IncomparableError as error:
        return None, str(error)


def chance(claim: Claim, outcome: Outcome) -> float | None:
    """p of what is tested: of 0 for > and <, of the margin for =; None without an interval."""
    if outcome.low is None or outcome.high is None:
        return None
    if claim.direction != "=":
        bound = outcome.low if outcome.value > 0 else outcome.high
        # a bound that is 0 itself excludes nothing, whatever the last bits say
        return round(two_sided(outcome.value, abs(outcome.value - bound) / Z), 12)
    above = _beyond(claim.margin - outcome.value, outcome.high - outcome.value)
    below = _beyond(outcome.value + claim.margin, outcome.value - outcome.low)
    if abs(outcome.value) <= claim.margin:
        return max(above, below)
    return 1 - above if outcome.value > 0 else 1 - below


def _beyond(gap: float, half: float) -> float:
    """One-sided p that something `gap` away is reached, of which 95 % reach `half` far."""
    if half <= 0:
        return float(gap < 0)
    return float(ndtr(-gap * Z / half))


def is_same(own: Outcome, printed: Outcome) -> bool:
    """Whether both stand on the same models and data: every number of a model has its printed one
    beside it, and there are as many."""
    for name, mine in own.sides.items():
        theirs = printed.sides.get(name, ())
        models = [row for row in mine if row["kind"] != BASELINE]
        if len(mine) != len(theirs) or any(row["published"] is None for row in models):
            return False
    return any(row["published"] is not None for side in own.sides.values() for row in side)


def verdict(found: Found, p: float | None) -> tuple[str, str]:
    """(verdict, reason) of a claim whose p after Holm's correction is `p`."""
    own, claim = found.own, found.claim
    if own is None:
        return NOT_TESTED, found.reason
    if own.low is None or own.high is None or p is None:
        return UNDECIDED, "a number has no interval"
    if found.printed and is_same(own, found.printed):
        if own.low <= found.printed.value <= own.high:
            return REPRODUCED, "the printed value lies inside our interval"
        told = f"the printed {found.printed.value:.4g} lies outside our interval"
    else:
        told = ""
    if own.n < FEWEST:
        return UNDECIDED, f"n = {own.n}, fewer than {FEWEST}"
    if p >= LEVEL:
        return UNDECIDED, told
    expected = {">": own.value > 0, "<": own.value < 0, "=": abs(own.value) <= claim.margin}
    return (SAME if expected[claim.direction] else OPPOSITE), told


def frame(found: Sequence[Found]) -> pl.DataFrame:
    """CLAIMS of what was found."""
    tested = {
        f.claim.claim: p for f in found if f.own and (p := chance(f.claim, f.own)) is not None
    }
    corrected = dict(zip(tested, holm(list(tested.values())), strict=True))
    rows = [_row(f, corrected.get(f.claim.claim)) for f in found]
    return pl.DataFrame(rows, schema=dict(CLAIMS.columns))


def behind(found: Found) -> pl.DataFrame:
    """The rows of RESULTS that a claim is computed from, each with its `side`: a, b, or what is
    taken off them (`a less`, `b less`)."""
    columns = list(RESULTS.columns)
    sides = found.own.sides if found.own else {}
    rows = [
        {"side": side, **{name: row[name] for name in columns}}
        for side, used in sides.items()
        for row in used
    ]
    every = pl.DataFrame(rows, schema={"side": pl.String, **RESULTS.columns})
    # a baseline stands against every model of a comparison, and is one row
    return every.unique(["side", *RESULTS.key], maintain_order=True)


def write_rows(found: Iterable[Found], folder: str | Path) -> None:
    """CLAIM.tsv of `behind` in a folder, for every claim that has numbers."""
    Path(folder).mkdir(parents=True, exist_ok=True)
    for one in found:
        if one.own:
            with atomic(Path(folder) / f"{one.claim.claim}.tsv") as temporary:
                behind(one).write_csv(temporary, separator="\t", quote_style="never")


def _row(found: Found, p: float | None) -> dict[str, object]:
    claim, own, there = found.claim, found.own, found.printed
    told, reason = verdict(found, p)
    used = [row for side in own.sides.values() for row in side] if own else []
    asked = [row["model"] for row in used if row["kind"] != BASELINE]
    return {
        **{name: getattr(claim, name) for name in CLAIMS.columns if hasattr(claim, name)},
        "comparison": claim.told,
        "verdict": told,
        "reason": reason,
        "models": ", ".join(dict.fromkeys(asked)),
        "printed": there.value if there else None,
        **dict.fromkeys(MEASURED),
        **({name: getattr(own, name) for name in MEASURED} if own else {}),
        "p": p,
        "n": own.n if own else 0,
        "pairs": own.pairs if own else 0,
    }  # fmt: skip

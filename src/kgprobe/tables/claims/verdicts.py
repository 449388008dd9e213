"""Verdicts on the papers' claims in a run, by one stated rule (docs/claims.md).

    reproduced       the same weights on the same items as in print, n at least ENOUGH, in the
                     claimed direction, and the printed value up to rounding and numerical noise
    same direction   the difference is where the claim expects it
    opposite         it is on the other side
    undecided        not significant, no interval, or fewer items than a number needs that is more
                     than a smoke test (marks.FEWEST)
    not tested here  this run has no numbers for it, or it is not a principal claim

The same weights on the same items have no sampling error, so whether they reproduce a number does
not depend on an interval. A direction is decided if p < .05 after Holm's correction over all claims
for which the run has an interval. A claim expects its value `>` above 0, `<` below 0, or `=` within
`margin` of 0, in the units of the metric. For `=`, same means that both of two one-sided tests
place it inside (TOST; Schuirmann 1987), opposite that one places it outside. p is from a normal
distribution whose 95 % interval extends from the value to the tested bound.
"""

import csv
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from math import inf
from pathlib import Path

import polars as pl
from scipy.special import ndtr

from kgprobe.metrics.tests import LEVEL, holm, two_sided
from kgprobe.schema import CLAIMS, RESULTS, atomic
from kgprobe.tables.claims.comparison import (
    BASELINE,
    Comparison,
    IncomparableError,
    Outcome,
    Z,
    evaluate,
    with_models,
)
from kgprobe.tables.claims.paired import RunAnswers
from kgprobe.tables.claims.principal import COMPARISONS
from kgprobe.tables.published import decimals
from kgprobe.tables.report.marks import FEWEST

REPRODUCED, SAME, OPPOSITE = "reproduced", "same direction", "opposite"
UNDECIDED, NOT_TESTED = "undecided", "not tested here"
#: the fewest items on which a number can be reproduced
ENOUGH = 30
#: relative effect of hardware, precision and summation order on the largest number compared
NOISE = 0.001
VERDICTS = (REPRODUCED, SAME, OPPOSITE, UNDECIDED, NOT_TESTED)
MEASURED = ("a", "b", "value", "low", "high")
DIRECTIONS = (">", "<", "=")
HOLDS = ("yes", "partly", "no", "uncomputable")
FURTHER = "kept as printed"


@dataclass(frozen=True)
class Claim:
    """A row of claims.tsv: a paper's statement, and where it is made.

    `direction`: >, < or = (within `margin`); for claims that are not compared, a range is also
    possible; `holds`: whether the papers' own tables support it; `needs`: what has to be run;
    `untested`: why no run can test it; `comparison`: what is compared, for the principal claims.
    """

    claim: str
    paper: str
    where: str
    statement: str
    direction: str
    margin: float
    metric: str
    printed: str
    holds: str
    needs: str
    untested: str
    comparison: Comparison | None = None

    @property
    def expected(self) -> tuple[float, float]:
        """The range in which a principal claim expects its value."""
        fixed = {">": (0.0, inf), "<": (-inf, 0.0), "=": (-self.margin, self.margin)}
        return fixed[self.direction]

    def holds_for(self, value: float) -> bool:
        """Return whether a value is in the expected range; 0 is neither above nor below 0."""
        low, high = self.expected
        return low < value < high or (value in (low, high) and self.direction not in "<>")


#: columns of claims.tsv
COLUMNS = tuple(one.name for one in fields(Claim) if one.name != "comparison")


def read(path: str | Path) -> list[Claim]:
    """Read the claims in `path`. Raises ValueError naming file, line and what is valid."""
    with Path(path).open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    claims = []
    for line, row in enumerate(rows, 2):
        try:
            claims.append(_claim(row))
        except ValueError as error:
            raise ValueError(f"{path}, line {line}: {error}") from error
    return claims


def _claim(row: Mapping[str, str]) -> Claim:
    if tuple(row) != COLUMNS or None in row.values():
        raise ValueError(f"columns {list(row)}, expected {list(COLUMNS)}")
    if row["holds"] not in HOLDS:
        raise ValueError(f"holds {row['holds']!r}; valid: {', '.join(HOLDS)}")
    comparison = COMPARISONS.get(row["claim"])
    if row["direction"] not in DIRECTIONS and (comparison or ".." not in row["direction"]):
        raise ValueError(f"direction {row['direction']!r}; valid: {', '.join(DIRECTIONS)}")
    if comparison and row["direction"] == "=" and not row["margin"]:
        raise ValueError("direction = needs a margin")
    margin = float(row["margin"] or 0)
    return Claim(**{**row, "margin": margin}, comparison=comparison)  # type: ignore[arg-type]


@dataclass(frozen=True)
class ComparedClaim:
    """A claim with its outcomes in this run (None: `reason` says why) and in the printed tables."""

    claim: Claim
    outcome: Outcome | None
    reason: str
    printed: Outcome | None


def find(
    claims: Iterable[Claim],
    results: pl.DataFrame,
    models: Mapping[str, Mapping[str, str]],
    printed: pl.DataFrame,
    judged: pl.DataFrame | None = None,
) -> list[ComparedClaim]:
    """Evaluate every principal claim on RESULTS, and on the printed tables (printed.read).

    `judged`: the answers behind RESULTS, used to pair differences; `models`: the models of the run
    by name; printed numbers in RESULTS (method published) are excluded.
    """
    answers = None if judged is None else RunAnswers(judged)
    ours = with_models(results.filter(pl.col("method") != "published"), models)
    compared = []
    for claim in claims:
        if claim.comparison is None:
            why = claim.untested or f"{FURTHER}: {claim.printed or 'no numbers'}"
            compared.append(ComparedClaim(claim, None, why, None))
            continue
        of_paper = pl.col("paper") == claim.paper
        here, reason = _evaluated(claim.comparison, ours.filter(of_paper), answers)
        there, _ = _evaluated(claim.comparison, printed.filter(of_paper))
        compared.append(ComparedClaim(claim, here, reason, there))
    return compared


def _evaluated(
    comparison: Comparison, results: pl.DataFrame, answers: RunAnswers | None = None
) -> tuple[Outcome | None, str]:
    try:
        return evaluate(comparison, results, answers), ""
    except IncomparableError as error:
        return None, str(error)


def chance(claim: Claim, outcome: Outcome) -> float | None:
    """Return the p value of a claim: against 0 for > and <, else against the ends of the expected
    range; None without an interval."""
    if outcome.low is None or outcome.high is None:
        return None
    value, (low, high) = outcome.value, claim.expected
    down, up = value - outcome.low, outcome.high - value
    if inf in (high, -low):
        # a bound of exactly 0 excludes nothing, whatever the last bits are
        return round(two_sided(value, (down if value > 0 else up) / Z), 12)
    if value > high:
        return _beyond(value - high, down)
    if value < low:
        return _beyond(low - value, up)
    return max(_beyond(high - value, up), _beyond(value - low, down))


def _beyond(gap: float, half: float) -> float:
    """Return the one-sided p of reaching a distance of `gap`, if the 95 % bound is at `half`."""
    if half <= 0:
        return float(gap < 0)
    return float(ndtr(-gap * Z / half))


def is_same(ours: Outcome, printed: Outcome) -> bool:
    """Return whether two outcomes are of the same models and data: every number of a model has a
    printed counterpart, and there are equally many."""
    for name, mine in ours.sides.items():
        theirs = printed.sides.get(name, ())
        models = [row for row in mine if row["kind"] != BASELINE]
        if len(mine) != len(theirs) or any(row["published"] is None for row in models):
            return False
    return any(row["published"] is not None for side in ours.sides.values() for row in side)


def tolerance(ours: Outcome, printed: Outcome, read: str) -> float:
    """Return how far rounding in print and numerical noise can change a value of this reading.

    Half a unit of the last printed digit for each side; counted pairs are not rounded.
    """
    figures = [row["published"] for side in ours.sides.values() for row in side]
    unit = 10.0 ** -max(decimals(figure) for figure in figures if figure is not None)
    a, b, value = (abs(x) for x in (printed.a, printed.b, printed.value))
    noise = NOISE * max(a, b, value)
    if read in ("wins", "pearson"):
        return noise
    rounded = [s for s in ours.sides.values() if any(row["published"] is not None for row in s)]
    return len(rounded) * unit / 2 + noise


def verdict(compared: ComparedClaim, p: float | None) -> tuple[str, str]:
    """Return (verdict, reason) of a claim whose p after Holm's correction is `p`."""
    ours, claim = compared.outcome, compared.claim
    if ours is None:
        return NOT_TESTED, compared.reason
    if ours.n < FEWEST:
        return UNDECIDED, f"n = {ours.n}, fewer than {FEWEST}"
    is_so, reason = claim.holds_for(ours.value), ""
    if compared.printed and claim.comparison and is_same(ours, compared.printed):
        allowed = tolerance(ours, compared.printed, claim.comparison.read)
        if abs(ours.value - compared.printed.value) > allowed:
            reason = (
                f"it differs from the printed {compared.printed.value:.4g} by more than "
                f"{allowed:.2g}"
            )
        elif ours.n < ENOUGH:
            reason = f"n = {ours.n}, fewer than {ENOUGH}"
        elif is_so:
            return REPRODUCED, f"it equals the printed value within {allowed:.2g}"
        else:
            reason = "it equals the printed value, which is not where the claim expects it"
    if p is None:
        return UNDECIDED, "; ".join(filter(None, ["a number has no 95 % interval", reason]))
    if p >= LEVEL:
        return UNDECIDED, reason
    return (SAME if is_so else OPPOSITE), reason


def frame(compared: Sequence[ComparedClaim]) -> pl.DataFrame:
    """Build the frame CLAIMS, with the verdicts."""
    tested = {
        f.claim.claim: p
        for f in compared
        if f.outcome and (p := chance(f.claim, f.outcome)) is not None
    }
    corrected = dict(zip(tested, holm(list(tested.values())), strict=True))
    rows = [_row(f, corrected.get(f.claim.claim)) for f in compared]
    return pl.DataFrame(rows, schema=dict(CLAIMS.columns))


def behind(compared: ComparedClaim) -> pl.DataFrame:
    """Return the rows of RESULTS that a claim is computed from, each with its `side`, a or b."""
    sides = compared.outcome.sides if compared.outcome else {}
    rows = [{"side": side, **row} for side, used in sides.items() for row in used]
    every = pl.DataFrame(rows, schema={"side": pl.String, **RESULTS.columns})
    # a baseline is compared with every model, but is one row
    return every.unique(["side", *RESULTS.key], maintain_order=True)


def write_rows(compared: Iterable[ComparedClaim], folder: str | Path) -> None:
    """Write `behind` to CLAIM.tsv in a folder, for every claim that has numbers."""
    Path(folder).mkdir(parents=True, exist_ok=True)
    for one in compared:
        if one.outcome:
            with atomic(Path(folder) / f"{one.claim.claim}.tsv") as temporary:
                behind(one).write_csv(temporary, separator="\t", quote_style="never")


def _row(compared: ComparedClaim, p: float | None) -> dict[str, object]:
    claim, ours, there = compared.claim, compared.outcome, compared.printed
    outcome, reason = verdict(compared, p)
    used = [row for side in ours.sides.values() for row in side] if ours else []
    models = [row["model"] for row in used if row["kind"] != BASELINE]
    return {
        **{name: getattr(claim, name) for name in CLAIMS.columns if hasattr(claim, name)},
        "comparison": str(claim.comparison or ""),
        "verdict": outcome,
        "reason": reason,
        "models": ", ".join(dict.fromkeys(models)),
        "printed": there.value if there else None,
        **{name: getattr(ours, name, None) for name in MEASURED},
        "p": p,
        "n": ours.n if ours else 0,
        "pairs": ours.pairs if ours else 0,
    }  # fmt: skip

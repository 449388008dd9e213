"""Dates of statements: from when to when a source says that one holds.

A date is a text that is cut to its precision: 1999, 1999-03 or 1999-03-31, and -0044 for a year
before Christ (there is no year 0). OPEN stands where a source gives no bound, UNKNOWN where it says
that there is one and not in which year. The periods of a statement are two lists, `start` and
`end`: an entry for every dated statement, each period once, in the order of its texts; both lists
are empty where nothing is dated.

Wikidata dates a statement by qualifiers: P580 (start time), P582 (end time), P585 (point in time,
which is both where the other two are missing).
"""

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any, TypeVar

import polars as pl

OPEN, UNKNOWN = "", "?"
#: property of a qualifier -> what it bounds
QUALIFIERS = {"P580": "start", "P582": "end", "P585": "point"}
#: Wikibase's precisions; lower numbers are decades, centuries and so on
YEAR, MONTH, DAY = 9, 10, 11
JULIAN = "http://www.wikidata.org/entity/Q1985786"
GREGORIAN = "http://www.wikidata.org/entity/Q1985727"
Period = tuple[str, str]
Frame = TypeVar("Frame", pl.DataFrame, pl.LazyFrame)

_TIME = re.compile(r"([+-]?)(\d+)-(\d\d)-(\d\d)(?:T|$)")
_DATE = re.compile(r"-?\d{4,}(?:-(?:0[1-9]|1[0-2])(?:-(?:0[1-9]|[12]\d|3[01]))?)?")
#: columns of a frame without dates
UNDATED = [pl.lit([], dtype=pl.List(pl.String)).alias(column) for column in ("start", "end")]


def is_date(text: str) -> bool:
    """Whether a text is a date, or one of the two that stand for none.

    >>> is_date("1999-03"), is_date("-0044"), is_date(""), is_date("1999-13"), is_date("99")
    (True, True, True, False, False)
    """
    return text in (OPEN, UNKNOWN) or (bool(_DATE.fullmatch(text)) and int(text.split("-")[-1]) > 0)


def of_json(time: str, precision: int, calendar: str = "") -> str:
    """The date of a value in Wikidata's JSON, whose years before Christ begin at -0001.

    Days of the Julian calendar become Gregorian ones, as Wikidata's RDF has them. Raises ValueError
    for what is no time.

    >>> of_json("+1999-03-00T00:00:00Z", 10), of_json("-0044-03-15T00:00:00Z", 9)
    ('1999-03', '-0044')
    >>> of_json("+1582-10-05T00:00:00Z", 11, JULIAN), of_json("+1900-00-00T00:00:00Z", 7)
    ('1582-10-15', '?')
    """
    sign, year, month, day = _parts(time)
    return _cut(1 - year if sign == "-" else year, month, day, precision, calendar == JULIAN)


def of_rdf(time: str, precision: int) -> str:
    """The date of a value in Wikidata's RDF, in which the year before 1 is 0.

    >>> of_rdf("-0043-01-01T00:00:00Z", 9), of_rdf("1999-12-31T00:00:00Z", 11)
    ('-0044', '1999-12-31')
    """
    sign, year, month, day = _parts(time)
    return _cut(-year if sign == "-" else year, month, day, precision)


def _parts(time: str) -> tuple[str, int, int, int]:
    found = _TIME.match(time)
    if found is None:
        raise ValueError(f"{time!r} is no time; expected one such as +1999-03-31T00:00:00Z")
    return found[1], int(found[2]), int(found[3]) or 1, int(found[4]) or 1


def _cut(year: int, month: int, day: int, precision: int, julian: bool = False) -> str:
    """The text of a date whose year is counted with a year 0."""
    if precision < YEAR:
        return UNKNOWN
    if julian and precision >= DAY:
        year, month, day = gregorian(year, month, day)
    text = f"{year:04}" if year > 0 else f"-{1 - year:04}"
    text += f"-{month:02}" if precision >= MONTH else ""
    return text + (f"-{day:02}" if precision >= DAY else "")


def precision_of(date: str) -> int:
    """Wikibase's precision of a date."""
    return YEAR + date[1:].count("-")


def json_time(date: str) -> str:
    """A date as Wikidata's JSON writes it; 00 stands for what is not known.

    >>> json_time("1999-03"), json_time("-0044")
    ('+1999-03-00T00:00:00Z', '-0044-00-00T00:00:00Z')
    """
    return f"{'' if date[0] == '-' else '+'}{date}{'-00' * (DAY - precision_of(date))}T00:00:00Z"


def rdf_time(date: str) -> str:
    """A date as Wikidata's RDF writes it; the year before 1 is 0, and what is not known is 01.

    >>> rdf_time("1999-03"), rdf_time("-0044")
    ('1999-03-01T00:00:00Z', '-0043-01-01T00:00:00Z')
    """
    year, *rest = re.findall(r"\d+", date)
    before = int(year) - 1 if date[0] == "-" else 0
    shown = f"{'-' * (before > 0)}{before:04}" if date[0] == "-" else year
    return "-".join([shown, *rest, *["01"] * (2 - len(rest))]) + "T00:00:00Z"


def gregorian(year: int, month: int, day: int) -> tuple[int, int, int]:
    """A day of the Julian calendar in the Gregorian one, by its Julian day number (Richards 2013,
    Explanatory Supplement to the Astronomical Almanac, section 15.11); years with a year 0."""
    late = (14 - month) // 12
    years, months = year + 4800 - late, month + 12 * late - 3
    number = day + (153 * months + 2) // 5 + 365 * years + years // 4 - 32083 + 32044
    century = (4 * number + 3) // 146097
    rest = number - 146097 * century // 4
    own = (4 * rest + 3) // 1461
    rest -= 1461 * own // 4
    place = (5 * rest + 2) // 153
    return (
        100 * century + own - 4800 + place // 10,
        place + 3 - 12 * (place // 10),
        rest - (153 * place + 2) // 5 + 1,
    )


def periods(bounds: Mapping[str, Collection[str]]) -> list[Period]:
    """The periods of one statement from its dates by what they bound (start, end, point).

    Several starts, or several ends, contradict each other: such a bound is UNKNOWN.

    >>> periods({"start": ["1999"], "point": ["2000"]}), periods({"point": ["2000", "2004"]})
    ([('1999', '')], [('2000', '2000'), ('2004', '2004')])
    """
    start, end = (set(bounds.get(name, ())) for name in ("start", "end"))
    if not (start or end):
        return [(point, point) for point in bounds.get("point", ())]
    one = [next(iter(of)) if len(of) == 1 else UNKNOWN if of else OPEN for of in (start, end)]
    return [(one[0], one[1])]


def of_claim(claim: Mapping[str, Any]) -> list[Period]:
    """The periods of a statement of a JSON dump; the statement that there is no bound is OPEN."""
    given = claim.get("qualifiers") or {}
    return periods(
        {
            bound: [_bound(snak) for snak in given[name] if snak["snaktype"] != "novalue"]
            for name, bound in QUALIFIERS.items()
            if name in given
        }
    )


def _bound(snak: Mapping[str, Any]) -> str:
    if snak["snaktype"] != "value":
        return UNKNOWN
    value = snak["datavalue"]["value"]
    return of_json(value["time"], value["precision"], value["calendarmodel"])


def of_answers(found: pl.DataFrame) -> pl.DataFrame:
    """(subject, object, rank, start, end) with lists, from the rows of facts_dated.rq."""
    key = ["subject", "object", "rank"]
    bounds: dict[tuple[str, ...], dict[str, set[str]]] = {}
    for row in found.iter_rows(named=True):
        own = bounds.setdefault((*(row[name] for name in key), row["statement"]), {})
        for name in QUALIFIERS.values():
            if row[name] is not None:
                date = of_rdf(row[name], int(row[f"{name}_precision"]))
                own.setdefault(name, set()).add(date)
            if row[f"{name}_unknown"]:
                own.setdefault(name, set()).add(UNKNOWN)
    rows = [(*name[:3], *period) for name, own in bounds.items() for period in periods(own)]
    names = [*key, "start", "end"]
    return listed(pl.DataFrame(rows, schema=dict.fromkeys(names, pl.String), orient="row"), key)


def listed(rows: Frame, key: Sequence[str]) -> Frame:
    """Rows of one period each as a row for each `key`, its periods in lists."""
    order = ("start", "end")
    return rows.unique().group_by(list(key)).agg(pl.col(name).sort_by(*order) for name in order)


def with_dates(statements: Frame, dated: Frame, key: Sequence[str]) -> Frame:
    """Statements with the lists that `listed` made; empty ones where there is none."""
    filled = [pl.coalesce(one.meta.output_name(), one) for one in UNDATED]
    return statements.join(dated, on=list(key), how="left").with_columns(filled)

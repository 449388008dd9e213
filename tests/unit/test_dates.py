"""Dates of statements as Wikidata writes them, in JSON and in RDF."""

import datetime

import polars as pl
import pytest

from kgprobe.sources import dates


def snak(time: str, precision: int, calendar: str = dates.GREGORIAN) -> dict:
    value = {"time": time, "precision": precision, "calendarmodel": calendar}
    return {"snaktype": "value", "datavalue": {"value": value, "type": "time"}}


@pytest.mark.parametrize(
    ("time", "rdf", "precision", "date"),
    [
        ("+1999-00-00T00:00:00Z", "1999-01-01T00:00:00Z", 9, "1999"),
        ("+1999-03-00T00:00:00Z", "1999-03-01T00:00:00Z", 10, "1999-03"),
        ("+1999-03-31T00:00:00Z", "1999-03-31T00:00:00Z", 11, "1999-03-31"),
        ("+00000001999-03-31T00:00:00Z", "1999-03-31T00:00:00Z", 11, "1999-03-31"),
        ("-0044-00-00T00:00:00Z", "-0043-01-01T00:00:00Z", 9, "-0044"),
        ("-0001-00-00T00:00:00Z", "0000-01-01T00:00:00Z", 9, "-0001"),
        ("+0476-00-00T00:00:00Z", "0476-01-01T00:00:00Z", 9, "0476"),
        ("+1950-00-00T00:00:00Z", "1950-01-01T00:00:00Z", 8, "?"),
    ],
)
def test_a_time_is_cut_to_its_precision_and_both_forms_say_the_same(time, rdf, precision, date):
    assert dates.of_json(time, precision) == date
    assert dates.of_rdf(rdf, precision) == date
    assert dates.is_date(date)
    if date != "?":
        assert dates.precision_of(date) == precision
        assert dates.of_json(dates.json_time(date), precision) == date
        assert dates.rdf_time(date) == rdf


def test_days_of_the_julian_calendar_are_gregorian_ones():
    """Known pairs: the day before the reform, the October Revolution, and the Ides of March."""
    pairs = {
        "+1582-10-04": "1582-10-14",
        "+1917-10-25": "1917-11-07",
        "+1000-02-29": "1000-03-06",
        "-0044-03-15": "-0044-03-13",
    }
    for julian, wanted in pairs.items():
        assert dates.of_json(f"{julian}T00:00:00Z", 11, dates.JULIAN) == wanted
        year = julian.removeprefix("+").rsplit("-", 2)[0]
        assert dates.of_json(f"{julian}T00:00:00Z", 9, dates.JULIAN) == year
    first = datetime.date(1582, 10, 15)
    for days in range(0, 160_000, 77):
        julian = counted(days)
        assert dates.gregorian(*julian) == (d := first + datetime.timedelta(days)).timetuple()[:3]
        assert d.year >= julian[0]


def counted(days: int) -> tuple[int, int, int]:
    """The Julian day so many days after 5 October 1582, by walking through months."""
    year, month, day = 1582, 10, 5 + days
    while True:
        leap = year % 4 == 0
        size = [31, 28 + leap, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31][month - 1]
        if day <= size:
            return year, month, day
        day -= size
        year, month = (year, month + 1) if month < 12 else (year + 1, 1)


@pytest.mark.parametrize(
    ("qualifiers", "periods"),
    [
        ({}, []),
        ({"P580": ["1999"]}, [("1999", "")]),
        ({"P582": ["2001"]}, [("", "2001")]),
        ({"P580": ["1999"], "P582": ["2001"], "P585": ["2000"]}, [("1999", "2001")]),
        ({"P585": ["2000"]}, [("2000", "2000")]),
        ({"P585": ["2000", "2004"]}, [("2000", "2000"), ("2004", "2004")]),
        ({"P580": ["1999", "1998"]}, [("?", "")]),
        ({"P580": ["1999"], "P582": ["somevalue"]}, [("1999", "?")]),
        ({"P580": ["1999"], "P582": ["novalue"]}, [("1999", "")]),
        ({"P407": ["1999"]}, []),
    ],
)
def test_qualifiers_of_a_statement_are_its_periods(qualifiers, periods):
    made = {
        name: [
            {"snaktype": one} if one.endswith("value") else snak(f"+{one}-00-00T00:00:00Z", 9)
            for one in values
        ]
        for name, values in qualifiers.items()
    }
    assert dates.of_claim({"qualifiers": made}) == periods
    assert dates.of_claim({"qualifiers": []}) == dates.of_claim({}) == []


@pytest.mark.parametrize("text", ["99", "1999-13", "1999-00", "31.3.1999", "1999-1-1", "0000", "-"])
def test_what_is_no_date(text):
    assert not dates.is_date(text)


def test_a_time_of_another_form_is_refused():
    with pytest.raises(ValueError, match=r"'1999' is no time; expected one such as \+1999-03-31"):
        dates.of_json("1999", 9)


def test_periods_of_a_statement_stand_once_and_in_order():
    rows = [("a", "2001", ""), ("a", "1990", "1995"), ("a", "2001", ""), ("b", "", "1990")]
    periods = pl.DataFrame(rows, schema=["key", "start", "end"], orient="row")
    made = dates.listed(periods, ["key"])
    both = dates.with_dates(pl.DataFrame({"key": ["a", "b", "c"]}), made, ["key"]).sort("key")
    assert both.rows() == [
        ("a", ["1990", "2001"], ["1995", ""]),
        ("b", [""], ["1990"]),
        ("c", [], []),
    ]

"""Generated text against labels."""

import datetime

import pytest

from kgprobe.metrics.matching import (
    contained,
    find_rule,
    first_match,
    matched,
    names,
    normalized,
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Paris", "paris"),
        (' "The United\n Kingdom". ', "united kingdom"),
        ("“Straße!”", "strasse"),
        ("Ⅳ", "iv"),
        ("A", "a"),
        ("an apple.", "apple"),
        ("The", "the"),
        ("'the Beatles'.", "beatles"),
        ("theatre", "theatre"),
        ("...", "..."),
        ("J. R. R. Tolkien", "jrr tolkien"),
        ("George W. Bush", "george w bush"),
        ("Malcolm X", "malcolm x"),
        ("Vitamin B 12", "vitamin b 12"),
        ("St. Louis", "st. louis"),
        ("3. 5", "3. 5"),
        ("Washington, D.C.", "washington, dc"),
        ("May", "may"),
        ("32 May 1970", "32 may 1970"),
        ("Москва", "москва"),
        ("हिन्दी", "हिन्दी"),
    ],
)
def test_texts_are_normalized(text, expected):
    assert normalized(text) == expected
    assert normalized(normalized(text)) == expected


@pytest.mark.parametrize(
    ("text", "label", "rule"),
    [
        ("Zürich", "Zürich", "verbatim"),
        ("United  States", "United States", "blanks"),
        ("Zu\u0308rich", "Zürich", "blanks"),
        ("Paris!", "Paris", "stop"),
        ("PARIS", "Paris", "case"),
        ("STRASSE.", "Straße", "case"),
        ("Zurich", "Zürich", "accents"),
        ("zurich.", "Zürich", "accents"),
        ("Lodz", "Łódź", "accents"),
        ("Malmo", "Malmø", "accents"),
        ("Cote d’Ivoire", "Côte d'Ivoire", "quotes"),
        ("“Hamlet.”", "Hamlet", "quotes"),
        ("The Netherlands", "Netherlands", "articles"),
        ("the “Hamlet”", "Hamlet", "articles"),
        ("J.K. Rowling", "J. K. Rowling", "initials"),
        ("J K Rowling", "J. K. Rowling", "initials"),
        ("JK Rowling", "J.K. Rowling", "initials"),
        ("George W Bush", "George W. Bush", "initials"),
        ("US", "U.S.", "initials"),
        ("January 22, 1970", "22 January 1970", "dates"),
        ("Jan. 22, 1970", "22 January 1970", "dates"),
        ("22nd of January, 1970", "22 January 1970", "dates"),
        ("1970-01-22", "22 January 1970", "dates"),
        ("Sept 3 1970", "3 September 1970", "dates"),
        ("January 23, 1970", "22 January 1970", ""),
        ("1970", "22 January 1970", ""),
        ("Paris, France", "Paris", ""),
        ("J. Rowling", "J. K. Rowling", ""),
        ("Theatre", "atre", ""),
        ("", "", ""),
        ("...", "!", ""),
        ("!!!", "!!!", "verbatim"),
        (" !!!", "!!!", "blanks"),
    ],
)
def test_a_match_is_labeled_by_the_first_rule_that_gives_equality(text, label, rule):
    assert find_rule(text, label) == find_rule(label, text) == rule
    assert matched(text, [label]) == bool(rule)
    # an alias match is labeled as such, and only used if the label does not match
    assert find_rule(text, "Rome", ["Milan", label]) == ("aliases" if rule else "")


def test_every_month_is_recognized_by_name_and_by_three_letters():
    for number in range(1, 13):
        name = datetime.date(1970, number, 1).strftime("%B")
        for month in (name, name[:3], f"{name[:3]}."):
            assert normalized(f"{month} 3, 1970") == f"1970-{number:02}-03", month
        assert normalized(f"{name[:2]} 3, 1970") == f"{name[:2]} 3, 1970".lower()


@pytest.mark.parametrize(
    ("text", "is_date"),
    [
        ("31 December 1970", True), ("1 January 987", True), ("1970-12-31", True),
        ("32 December 1970", False), ("31 April 1970", False), ("0 May 1970", False),
        ("1970-13-01", False), ("1970-00-01", False), ("1970-01-00", False),
    ],
)  # fmt: skip
def test_a_date_is_a_day_of_the_calendar(text, is_date):
    assert (normalized(text) != text.lower() or text == "1970-12-31") == is_date
    assert find_rule("1970-12-31", "31 December 1970") == "dates"


def test_a_match_is_equality_and_containment_is_not():
    assert matched("the Paris.", ["London", "PARIS"])
    assert not matched("Paris, France", ["Paris"])
    assert contained("It is Paris, France", ["Paris"])
    assert not contained("Parisian", ["Paris"])
    assert contained("It is Paris, France", ["Rome", "paris", "London"])
    assert not contained("It is Paris, France", ["Rome", "..."])
    assert not matched("", [""])
    assert not matched(".", ["!"])
    assert first_match(["Rome", "paris", "Paris"], ["Paris"]) == 2
    assert first_match(["Rome"], ["Paris"]) == 0
    assert first_match(["."], ["!"]) == 0
    assert first_match(["!", " !!! "], ["!!!"]) == 2


def test_names_are_the_label_and_then_the_aliases():
    aliases = {"Q145": ["UK", "United Kingdom", "Britain"]}
    assert names("United Kingdom", "Q145", aliases) == ["United Kingdom", "UK", "Britain"]
    assert names("Rome", "Q220", aliases) == ["Rome"]
    assert first_match(["France", "britain."], names("United Kingdom", "Q145", aliases)) == 2

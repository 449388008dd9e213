"""Generated text against labels."""

import pytest

from kgprobe.metrics.matching import MATCHES, contained, first_match, matched, names, normalised


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
        ("...", ""),
    ],
)
def test_texts_are_normalised(text, expected):
    assert normalised(text) == expected
    assert normalised(normalised(text)) == expected


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


def test_names_are_the_label_and_then_the_aliases():
    aliases = {"Q145": ["UK", "United Kingdom", "Britain"]}
    assert names("United Kingdom", "Q145", aliases) == ["United Kingdom", "UK", "Britain"]
    assert names("Rome", "Q220", aliases) == ["Rome"]
    assert first_match(["France", "britain."], names("United Kingdom", "Q145", aliases)) == 2
    assert MATCHES == ("label", "aliases")

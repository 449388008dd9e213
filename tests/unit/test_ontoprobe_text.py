"""OntoProbe templates: labels, clauses, premises."""

from dataclasses import asdict

import pytest

from kgprobe.benchmarks.ontoprobe import concepts
from kgprobe.benchmarks.ontoprobe import modes as modes


@pytest.mark.parametrize(
    ("pattern", "other", "domain", "range_"),
    [
        ("[X]'s composer is [Y] .", "person", "if one has composer .", None),
        ("[X] inflows [Y] .", "body of water", "if one inflows a body of water .", None),
        ("[X] has cast member [Y] .", "actor", "if one has cast member an actor .", None),
        ("[X]'s headquarter is in [Y] .", "place", "if one has headquarter .", None),
        ("[X] belongs to [Y] .", None, "if one belongs to something .", None),
        ("[X]'s judge is [Y] .", "Legal Case", None, "if one is a Legal Case's judge ."),
        ("[X]'s teams contain [Y] .", "event", None, "if one is an event's teams ."),
        ("[X]'s headquarter is in [Y] .", "organisation", None,
         "if an organisation's headquarter is in that ."),
        ("[X] is located in [Y] .", None, None, "if something is located in that ."),
        ("The capital of [X] is [Y] .", "city", "if the capital of one is a city .", None),
        ("The capital of [X] is [Y] .", "state", None, "if the capital of a state is that ."),
        ("[X]'s hosts met in [Y] .", "city", "if one's hosts met in a city .", None),
    ],
)  # fmt: skip
def test_clauses_follow_from_patterns(pattern, other, domain, range_):
    if domain:
        assert concepts.domain_clause(pattern, other, "repaired") == domain
    if range_:
        assert concepts.range_clause(pattern, other, "repaired") == range_


def test_the_released_rule_empties_architect_and_the_repaired_one_does_not():
    pattern = "[X]'s architect is [Y] ."
    assert concepts.domain_clause(pattern, "architect", "released") == "if one has  ."
    assert concepts.domain_clause(pattern, "architect", "repaired") == "if one has architect ."


def test_the_paper_s_template_is_defined_for_nouns_and_one_pattern():
    assert (
        concepts.domain_clause("[X]'s composer is [Y] .", "person", "paper") == "to have composer ."
    )
    assert concepts.range_clause("[X]'s mother is [Y] .", "person", "paper") == "to be mother ."
    played = "[X] played for [Y] ."
    assert (
        concepts.domain_clause(played, "sports team", "paper")
        == "to be a player at a sports team ."
    )
    assert concepts.range_clause(played, "person", "paper") == "to have a player at that ."


def test_the_subject_keeps_its_case_unless_released():
    assert concepts.subject("Lionel Messi (10)", "keep_rest", True) == "Lionel Messi (10)"
    assert concepts.subject("Lionel Messi (10)", "lower_rest", True) == "Lionel messi  10 "
    assert concepts.subject("part-time Job", "lower_rest", False) == "Part-time job"


def test_normalized_labels():
    assert concepts.norm("Capital (of-region)/x") == "Capital of region x"
    assert (
        concepts.bare("[X]'s participating teams contain [Y] .") == "'s participating teams contain"
    )


def test_a_pattern_keeps_letters_that_are_named_like_a_slot():
    """The released stripping of brackets, X and Y took them off words, too."""
    assert concepts.bare("[X] is in generation Y [Y] .") == "is in generation Y"
    assert concepts.bare("[X] X-rays [Y].") == "X-rays"


def test_every_switch_has_a_value_in_every_mode_and_refuses_others():
    for mode in modes.MODES:
        values = asdict(modes.resolve(mode))
        assert set(values) == set(modes.SWITCHES)
        assert all(value in modes.SWITCHES[key].legal for key, value in values.items())
    assert modes.resolve("paper", {"phrasing": "released"}).phrasing == "released"
    assert {s.point for s in modes.SWITCHES.values()} >= set(range(1, 26))
    with pytest.raises(ValueError, match=r"ontoprobe\.mode: 'best'"):
        modes.resolve("best")


def test_switches_with_other_than_default_values_are_reported():
    assert modes.changed(modes.resolve("default")) == {}
    assert modes.changed(modes.resolve("default", {"sco_m2": "class"})) == {"sco_m2": "class"}

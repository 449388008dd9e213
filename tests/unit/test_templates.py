"""Filling and roles."""

import numpy as np
import pytest

from kgprobe.probes.prompts.templates import ANSWER, SUBJECT, TEMPLATE, fill, roles


def test_labels_are_not_filled_again():
    filled = fill("[X] is in [Y].", "a [Y] b", "[X]")
    assert filled.text == "A [Y] b is in [X]."
    assert filled.text[slice(*filled.answer[0])] == "[X]"


@pytest.mark.parametrize(
    ("subject", "answer", "text"),
    [
        ("ß", "x", "SS is x."),
        ("ﬁn", "ß", "FIn is ß."),
        ("", "x", " is x."),
        ("éa", "b", "Éa is b."),
    ],
)
def test_spans_follow_a_first_character_that_grows(subject, answer, text):
    filled = fill("[X] is [Y].", subject, answer)
    assert filled.text == text
    assert filled.text[slice(*filled.answer[0])] == answer
    low, high = filled.subject[0]
    assert filled.text[low:high].lower() == (subject[:1].upper() + subject[1:]).lower()


def test_the_first_character_alone_is_raised():
    assert fill("[Y] has [X].", "x", "mcDonald").text == "McDonald has x."
    assert fill("[Y] has [X].", "x", "mcDonald", upper_first=False).text == "mcDonald has x."


@pytest.mark.parametrize("template", ["[X] is.", "[X] [X] [Y].", "is"])
def test_a_template_needs_both_placeholders_once(template):
    with pytest.raises(ValueError, match="expected one"):
        fill(template, "a", "b")


def test_roles_include_index_zero_and_leave_leading_space_out():
    filled = fill("[X] is [Y].", "Rome", "old")
    offsets = [(0, 4), (4, 7), (7, 11), (11, 12)]
    found, straddling = roles(filled, offsets)
    assert found.tolist() == [SUBJECT, TEMPLATE, ANSWER, TEMPLATE]
    assert straddling == 0


def test_a_token_over_a_border_goes_to_the_answer_and_is_counted():
    filled = fill("[X]'s [Y].", "Rome", "end")
    found, straddling = roles(filled, [(0, 6), (6, 11)])
    assert found.tolist() == [SUBJECT, ANSWER]
    assert straddling == 2
    assert np.array_equal(roles(filled, [])[0], np.zeros(0))

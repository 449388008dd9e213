"""The template language: parsing, filling in one pass, spans, errors; and roles of tokens."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kgprobe.probes.text.encode import ANSWER, SUBJECT, TEMPLATE, roles, token_roles
from kgprobe.templates import (
    Template,
    TemplateError,
    answer_is_last,
    as_prompt_template,
    cut,
    fill,
    mark,
    parse,
    replace_vectors,
    resized,
    runs_of,
    sentence,
    vectors_of,
)


def test_placeholders_in_labels_are_not_filled():
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
def test_spans_follow_a_first_character_that_gets_longer(subject, answer, text):
    filled = fill("[X] is [Y].", subject, answer)
    assert filled.text == text
    assert filled.text[slice(*filled.answer[0])] == answer
    low, high = filled.subject[0]
    assert filled.text[low:high].lower() == (subject[:1].upper() + subject[1:]).lower()


def test_only_the_first_character_is_uppercased():
    assert fill("[Y] has [X].", "x", "mcDonald").text == "McDonald has x."
    assert fill("[Y] has [X].", "x", "mcDonald", upper_first=False).text == "mcDonald has x."


@pytest.mark.parametrize("template", ["[X] is.", "[X] [X] [Y].", "is"])
def test_a_template_needs_both_placeholders_once(template):
    with pytest.raises(ValueError, match="expected one"):
        fill(template, "a", "b")


def test_splitting_a_text_at_slots_round_trips():
    text = "[X] {a b}[T][P] [SEP] [MASK]" + mark(3) + "[Z] {"
    found = parse(text)
    assert found.slots == ["sub", "a b", "[T]", "[P]", "[SEP]", "[MASK]", mark(3)]
    assert found.filled({}) == (text, {})
    assert parse("[X] of [Y]").slots == parse("{sub} of [P]").slots


def test_all_slots_are_filled_at_once_with_spans():
    values = {"sub": "[P]{a}", "a": "[X]", "[P]": "ß", "[MASK]": ""}
    found = parse("[P] and {a}: [X], {a}[MASK] [T]").filled(values, upper_first=True)
    assert found.text == "SS and [X]: [P]{a}, [X] [T]"
    spanned = {slot: [found.text[slice(*s)] for s in spans] for slot, spans in found.spans.items()}
    assert spanned == {"[P]": ["SS"], "a": ["[X]", "[X]"], "sub": ["[P]{a}"], "[MASK]": [""]}
    assert found.around("[MASK]") == ("SS and [X]: [P]{a}, [X]", " [T]")


def test_an_error_names_source_template_and_remedy_in_its_own_type():
    with pytest.raises(OwnError, match=r"file, row 3: expected one \[X\] and one \[Y\], found"):
        sentence("[X] [X] [Y]", "file, row 3", OwnError)
    with pytest.raises(TemplateError, match=r"found 0 and 2 in '\[Y\] \[P\]'; \[X\] stands for"):
        sentence("[Y] [P]")


class OwnError(ValueError):
    pass


def test_the_text_after_the_answer():
    assert cut("[X] was born in [Y] .") == ("[X] was born in [Y]", " .")
    assert as_prompt_template("[X] was born in [Y]") == "{sub} was born in [P]"
    assert all(map(answer_is_last, ["[X] is [Y]", "[X] is [Y] .", "{sub}: [P]?!"]))
    assert not any(map(answer_is_last, ["[X] plays [Y] music", "[Y] of [X].", "[X].", ""]))


def test_triggers_are_counted_in_runs_and_resized():
    text = "{a} [T] [T] is [T][P]"
    assert runs_of(text) == [2, 1]
    assert resized(text, [3, 2]) == "{a} [T]x3 is [T]x2[P]"


def test_vectors_absorb_the_preceding_white_space():
    text = f"Dante {mark(0)}  {mark(300)} is"
    assert vectors_of(text) == [(7, 0), (10, 300)]
    assert replace_vectors(text) == f"Dante{mark(0)}{mark(300)} is"
    assert replace_vectors(text, "<pad>") == "Dante<pad><pad> is"
    with pytest.raises(TemplateError, match="vector 65534: valid are 0 to 65533"):
        mark(65534)


@pytest.mark.parametrize(
    ("text", "kind", "says"),
    [
        ("{sub} [T] .", "masked", r"expected one \[P\], found 0"),
        ("[P] {sub} [T] [P]", "masked", r"expected one \[P\], found 2"),
        ("{sub} [T] [P] .", "causal", r"\[P\] must be last.*' \.' follows"),
        ("{sub [T] [P]", "masked", "both braces"),
        ("{} [P]", "masked", "both braces"),
        ("[CLS] {sub} [P]", "masked", r"\[CLS\] does not belong"),
        ("{sub} [T]x [P]", "masked", "does not belong"),
        ("{sub} [SEP] [P]", "causal", "for masked models"),
        ("{sub} [P]", "mask", "valid: masked, causal, seq2seq"),
    ],
)
def test_a_bad_template_is_refused_with_its_remedy(text, kind, says):
    with pytest.raises(TemplateError, match=says):
        Template.parse(text, kind)


def test_templates_as_the_paper_writes_them():
    facts = Template.parse("{sub}[T]x5[P].", "masked")
    assert (facts.text, facts.triggers) == ("{sub} [T] [T] [T] [T] [T] [P].", 5)
    assert facts.blank
    assert not facts.opens
    entailment = Template.parse("{prem}[P][T]...[T]{hyp}", "masked")
    assert entailment.fields == ("prem", "hyp")
    assert entailment.triggers == 2
    manual = Template.parse("[X] was born in [Y] .", "masked")
    assert manual.text == "{sub} was born in [P] ."
    assert manual.triggers == 0
    assert Template.parse("[P] is {sub}", "masked").opens


def test_roles_include_index_zero_and_leave_leading_space_out():
    filled = fill("[X] is [Y].", "Rome", "old")
    found, straddling = roles(filled, [(0, 4), (4, 7), (7, 11), (11, 12)])
    assert found.tolist() == [SUBJECT, TEMPLATE, ANSWER, TEMPLATE]
    assert straddling == 0


def test_a_token_across_a_border_belongs_to_the_answer_and_is_counted():
    filled = fill("[X]'s [Y].", "Rome", "end")
    found, straddling = roles(filled, [(0, 6), (6, 11)])
    assert found.tolist() == [SUBJECT, ANSWER]
    assert straddling == 2
    assert np.array_equal(roles(filled, [])[0], np.zeros(0))


def test_roles_of_many_sentences_equal_those_of_each():
    filled = [fill("[Y] is [X].", "a b", "ß"), fill("[X] is\u2003 [Y]", "", "New  York")]
    offsets = [(0, 2), (2, 5), (5, 7), (7, 9), (9, 10)], [(0, 3), (3, 9), (9, 10), (10, 14)]
    each = [roles(f, o) for f, o in zip(filled, offsets, strict=True)]
    owners = np.repeat([0, 1], [5, 4])
    found, straddling = token_roles(filled, np.array([*offsets[0], *offsets[1]]), owners)
    assert found.tolist() == [*each[0][0], *each[1][0]]
    assert found.tolist() == [2, 0, 1, 1, 0, 0, 2, 2, 2]
    assert straddling == each[0][1] + each[1][1] == 0


LABEL = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)


@given(before=LABEL, between=LABEL, after=LABEL, subject=LABEL, answer=LABEL, flip=st.booleans())
def test_spans_hold_any_labels(before, between, after, subject, answer, flip):
    first, second = ("[Y]", "[X]") if flip else ("[X]", "[Y]")
    template = f"{before}{first}{between}{second}{after}"
    if template.count("[X]") + template.count("[Y]") != 2:
        return
    plain = fill(template, subject, answer, upper_first=False)
    assert plain.text[slice(*plain.subject[0])] == subject
    assert plain.text[slice(*plain.answer[0])] == answer
    raised = fill(template, subject, answer)
    assert raised.text == (plain.text[:1].upper() + plain.text[1:])
    for own, label in ((raised.subject[0], subject), (raised.answer[0], answer)):
        assert raised.text[slice(*own)] in (label, label[:1].upper() + label[1:])


@settings(max_examples=50, deadline=None)
@given(subject=LABEL, answer=LABEL, sizes=st.lists(st.integers(1, 4), min_size=1, max_size=40))
def test_roles_equal_a_loop_over_characters(subject, answer, sizes):
    filled = fill("[Y] of [X] is", subject, answer)
    offsets, start = [], 0
    for size in sizes:
        if start < len(filled.text):
            offsets.append((start, min(start + size, len(filled.text))))
            start += size
    found, _ = roles(filled, offsets)
    for (low, high), role in zip(offsets, found, strict=True):
        text = filled.text[low:high]
        if text.strip():
            inner = range(low + len(text) - len(text.lstrip()), high)
            inside = [any(a <= c < b for c in inner) for a, b in (*filled.answer, *filled.subject)]
            assert role == (ANSWER if inside[0] else SUBJECT if inside[1] else TEMPLATE)

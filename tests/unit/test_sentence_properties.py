"""Random texts and templates: a sentence in a batch has the same score as alone.

Labels may be empty (subjects), equal, of one or fifteen and more tokens, with leading spaces, of
any script; the templates put the answer first, in the middle and last.
"""

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st

from kgprobe.probes.models.batching import Budget
from kgprobe.probes.scoring.sentence import score
from kgprobe.probes.scoring.sentence.score import Item
from kgprobe.templates import fill
from tests.unit.literal_scores import token_scores
from tests.unit.tiny_models import tiny

TEXT = st.text(
    st.characters(codec="utf-8", exclude_categories=["Cs", "Cc", "Zl", "Zp"]), max_size=8
)
LONG = "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen"
SUBJECT = st.one_of(TEXT, st.sampled_from(["", "Niger", " Niger", "straße [Y]", "ß", "東京", "🦀"]))
OPTION = st.one_of(
    TEXT, st.sampled_from(["Niger", "Nigeria", " Niger", "a", "an  option", "[X]", LONG])
).filter(str.strip)
# letters of each side alone, so that no text of a template is a placeholder
PART = st.text(st.sampled_from("ab .,'é東-"), max_size=6)
TEMPLATE = st.builds(
    lambda a, b, c, turned: f"{a}{'[Y]' if turned else '[X]'}{b}{'[X]' if turned else '[Y]'}{c}",
    PART, PART, PART, st.booleans(),
)  # fmt: skip
LIMITS = settings(
    max_examples=8,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
CASES = given(
    subjects=st.lists(SUBJECT, min_size=1, max_size=2, unique=True),
    options=st.lists(OPTION, min_size=1, max_size=4, unique=True),
    template=TEMPLATE,
)
SAME = example(subjects=["Niger", ""], options=["Niger", " Niger", "Nigeria"], template="[Y] [X].")
LAST = example(subjects=["ß"], options=[LONG, "a"], template="[X], [Y]")


def sums(loaded, subjects, options, template, **more):
    """Return the sums by (subject, option) number."""
    items = [Item(f"Q{i}", "P36", s, "set") for i, s in enumerate(subjects)]
    items = items[::-1] if more.pop("backward", False) else items
    found = score.score(loaded, items, {"set": options}, {"P36": [(0, template)]}, **more)
    columns = found.columns
    rows = zip(columns["item"], columns["candidate"], columns["sum"], strict=True)
    return {(int(item[1:]), int(candidate)): float(value) for item, candidate, value in rows}


def assert_as_alone(name, subjects, options, template):
    loaded = tiny(name, bos="forced" if name in ("llama", "gpt2", "mamba") else "")
    found = sums(loaded, subjects, options, template)
    assert len(found) == len(subjects) * len(options)
    for (item, option), value in found.items():
        alone = token_scores(loaded, fill(template, subjects[item], options[option]))
        assert value == pytest.approx(np.nansum(alone), abs=1e-9)


@pytest.mark.parametrize("name", ["llama", "gpt2", "bert", "roberta"])
@LIMITS
@CASES
@SAME
@LAST
def test_any_sentence_scores_as_alone(name, subjects, options, template):
    assert_as_alone(name, subjects, options, template)


# a scan in Python: a second and more for an example
@settings(LIMITS, max_examples=3)
@CASES
@SAME
@LAST
def test_any_sentence_scores_as_alone_with_a_recurrent_model(subjects, options, template):
    assert_as_alone("mamba", subjects, options, template)


@LIMITS
@CASES
@SAME
@LAST
def test_any_span_scores_as_alone(subjects, options, template):
    loaded = tiny("t5")
    expected = {
        (i, j): token_scores(loaded, fill(template, subject, option))
        for i, subject in enumerate(subjects)
        for j, option in enumerate(options)
    }
    assume(not any(values is None for values in expected.values()))
    found = sums(loaded, subjects, options, template)
    assert found.keys() == expected.keys()
    for key, value in found.items():
        assert value == pytest.approx(np.nansum(expected[key]), abs=1e-9)


@pytest.mark.parametrize("name", ["llama", "bert", "t5"])
@LIMITS
@CASES
@SAME
@LAST
def test_neither_batches_nor_order_change_a_score(name, subjects, options, template):
    loaded = tiny(name)
    if name == "t5":
        filled = [fill(template, s, o) for s in subjects for o in options]
        assume(all(token_scores(loaded, f) is not None for f in filled))
    expected = sums(loaded, subjects, options, template)
    for more in ({"budget": Budget(1)}, {"budget": Budget(64)}, {"backward": True}):
        found = sums(loaded, subjects, options, template, **more)
        assert found.keys() == expected.keys()
        np.testing.assert_allclose(
            [found[key] for key in expected], list(expected.values()), rtol=0, atol=1e-9
        )

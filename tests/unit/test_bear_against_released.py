"""A pull compared with a released set: one state per instance, agreement, the table."""

from dataclasses import replace

import polars as pl
import pytest

from kgprobe import schema
from kgprobe.benchmarks.bear import against_released
from kgprobe.benchmarks.bear.against_released import Fresh
from kgprobe.benchmarks.bear.frames import relation_frames
from kgprobe.tables import sources
from tests.unit.study_frames import number
from tests.unit.test_bear import CONFIG, TEMPLATES, frame, row, statement


def released(subjects: list[tuple[str, str, int]], answers: list[tuple[str, str]], relation="P1"):
    """Build a set with the given (id, label, index of the answer)."""
    made = [(*subject, ()) for subject in subjects]
    return relation_frames("t", relation, answers, made, TEMPLATES[relation])


def state(*pulled: dict, label="s1x", answer="o900y", **config):
    """Return state and detail of the fact (Q1, Q900), released with these labels, for a pull."""
    sets = released([("Q1", label, 0)], [("Q900", answer)])
    fresh = Fresh(frame(*pulled), [row()], {"Q900": "the Form"}, replace(CONFIG, **config))
    return against_released.states(sets, fresh).select("state", "detail").row(0)


KEPT = statement("1", "900")


@pytest.mark.parametrize(
    ("pulled", "more", "expected"),
    [
        ([statement("2", "900")], {}, ("statement_gone", "")),
        ([statement("1", "901"), statement("1", "902")], {}, ("statement_gone", "Q901 Q902")),
        ([statement("1", "901")], {}, ("answer_changed", "Q901")),
        ([KEPT, statement("1", "901")], {}, ("multi_valued", "Q901")),
        ([KEPT], {"label": "old"}, ("label_changed", "subject: s1x")),
        ([KEPT], {"answer": "old"}, ("label_changed", "answer: the Form")),
        ([statement("1", "900", subject_label="great o900y")], {"label": "great o900y"},
         ("overlap_now", "great o900y, o900y")),
        ([statement("1", "900", subject_sitelinks=4)], {}, ("unpopular_now", "4")),
        ([KEPT], {}, ("same", "")),
        ([KEPT], {"answer": "the Form"}, ("same", "")),
    ],
)  # fmt: skip
def test_released_instances_get_the_first_matching_state(pulled, more, expected):
    assert state(*pulled, **more) == expected


def test_normal_beside_preferred_values_follow_the_construction_rule():
    preferred = statement("1", "900", rank="preferred")
    assert state(preferred, statement("1", "901")) == ("same", "")
    both = state(preferred, statement("1", "901"), single_valued="all_ranks")
    assert both == ("multi_valued", "Q901")


@pytest.mark.parametrize("rule", ["best_rank", "all_ranks"])
def test_unknown_values_are_no_further_answers(rule):
    unknown = statement("1", "x", object="somevalue", object_label=None, object_kind="special")
    assert state(KEPT, unknown, single_valued=rule) == ("same", "")
    assert state(unknown, single_valued=rule) == ("statement_gone", "")


def test_places_are_mapped_before_comparison():
    pulled = frame(statement("1", "50"), statement("50", "900", "P17"))
    sets = released([("Q1", "s1x", 0)], [("Q900", "o900y")])
    relations = [row(ancestor="P17"), row("P17")]
    result = against_released.states(sets, Fresh(pulled, relations, {}, CONFIG))
    assert result["state"].to_list() == ["same"]


def agreed() -> pl.DataFrame:
    """Compare three released instances: in our set, only in the pull, and in neither."""
    pulled = [
        statement("1", "900", subject_sitelinks=40),
        statement("2", "900", subject_sitelinks=20),
        statement("3", "900", subject_sitelinks=30),
        statement("4", "900", subject_sitelinks=10),
    ]
    theirs = released(
        [("Q1", "s1x", 0), ("Q2", "s2x", 0), ("Q9", "s9x", 1)], [("Q900", "o900y"), ("Q901", "z")]
    )
    ours = released([("Q1", "s1x", 0), ("Q3", "s3x", 0)], [("Q900", "o900y")])
    return against_released.agreement(theirs, ours, Fresh(frame(*pulled), [row()], {}, CONFIG))


def test_agreement_counts_answers_instances_and_pulled_facts():
    schema.check(agreed(), against_released.AGREEMENT)
    result = agreed().row(0, named=True)
    assert (result["released"], result["found"]) == (3, 2)
    assert (result["answers_shared"], result["answers_all"]) == (1, 2)
    assert (result["instances_shared"], result["instances_all"]) == (1, 4)


def test_popularity_auc_compares_instances_within_an_answer():
    # 40 and 20 against 30 and 10: three of the four pairs are in order
    result = agreed().row(0, named=True)
    assert (result["auc"], result["pairs"]) == (0.75, 4)


def test_unknown_relations_are_reported():
    sets = released([("Q1", "s1x", 0)], [("Q900", "o900y")])
    with pytest.raises(ValueError, match=r"P1: not in bear_relations\.tsv"):
        against_released.states(sets, Fresh(frame(KEPT), [row("P2")], {}, CONFIG))


def test_table_state_fractions_sum_to_one():
    sets = released([("Q1", "s1x", 0), ("Q2", "s2x", 0)], [("Q900", "o900y")])
    states = against_released.states(sets, Fresh(frame(KEPT), [row()], {}, CONFIG))
    schema.check(states, against_released.RELEASED_STATES)
    result = sources.against_released(states, agreed())
    shares = [
        number(result, sources.STATE, slice=name)["value"] for name in against_released.STATES
    ]
    assert sum(shares) == 100
    same = number(result, sources.STATE, group="P1", slice="same")
    assert (same["value"], same["n"]) == (50, 2)
    assert same["low"] < 50 < same["high"]
    assert number(result, sources.STATE, slice="statement_gone")["numerator"] == 1
    assert number(result, "instances, Jaccard", group="P1")["value"] == 25
    assert number(result, "popularity AUC")["value"] == 0.75

"""Best-rank selection as Wikidata defines it."""

import polars as pl
import pytest

from kgprobe.knowledge import facts
from kgprobe.schema import STATEMENTS


def statements(*rows: tuple[str, str, str, str]) -> pl.DataFrame:
    """Rows of (subject, object, object_kind, rank) for one relation."""
    columns = dict.fromkeys(STATEMENTS.columns) | {"kg": "wikidata", "relation": "P36"}
    frame = pl.DataFrame(
        [
            {**columns, "subject": s, "object": o, "object_kind": kind, "rank": rank}
            for s, o, kind, rank in rows
        ],
        schema=dict(STATEMENTS.columns),
    )
    return frame


def test_preferred_hides_normal_of_the_same_subject_only():
    found = facts.of_statements(
        statements(
            ("Q1", "Q10", "item", "normal"),
            ("Q1", "Q11", "item", "preferred"),
            ("Q2", "Q12", "item", "normal"),
        )
    )
    assert sorted(found.select("subject", "object").rows()) == [("Q1", "Q11"), ("Q2", "Q12")]


def test_an_unknown_value_is_no_value_whatever_its_rank():
    """Queries give no unknown values: the same facts must come from a dump, which has them."""
    found = facts.of_statements(
        statements(("Q1", "Q10", "item", "normal"), ("Q1", "_", "special", "preferred"))
    )
    assert found["object"].to_list() == ["Q10"]


def test_literals_are_no_facts_and_duplicates_count_once():
    found = facts.of_statements(
        statements(
            ("Q1", "1879-03-14", "literal", "normal"),
            ("Q1", "Q10", "item", "normal"),
            ("Q1", "Q10", "item", "normal"),
        )
    )
    assert found["object"].to_list() == ["Q10"]


def test_an_unknown_rank_is_named():
    with pytest.raises(ValueError, match=r"unknown ranks \['best'\]"):
        facts.of_statements(statements(("Q1", "Q10", "item", "best")))

"""Best-rank selection as defined by Wikidata."""

import polars as pl
import pytest

from kgprobe.knowledge import facts
from kgprobe.schema import STATEMENTS


def statements(*rows: tuple[str, str, str, str]) -> pl.DataFrame:
    """Return rows of (subject, object, object_kind, rank) for one relation."""
    columns = dict.fromkeys(STATEMENTS.columns) | {"kg": "wikidata", "relation": "P36"}
    frame = pl.DataFrame(
        [
            {**columns, "subject": s, "object": o, "object_kind": kind, "rank": rank}
            for s, o, kind, rank in rows
        ],
        schema=dict(STATEMENTS.columns),
    )
    return frame


def test_preferred_rank_hides_normal_only_for_the_same_subject():
    result = facts.of_statements(statements(
        ("Q1", "Q10", "item", "normal"), ("Q1", "Q11", "item", "preferred"),
        ("Q2", "Q12", "item", "normal"),
    ))  # fmt: skip
    assert sorted(result.select("subject", "object").rows()) == [("Q1", "Q11"), ("Q2", "Q12")]


def test_unknown_values_are_dropped_at_any_rank():
    """Queries return no unknown values, so dumps, which contain them, must give the same facts."""
    result = facts.of_statements(
        statements(("Q1", "Q10", "item", "normal"), ("Q1", "_", "special", "preferred"))
    )
    assert result["object"].to_list() == ["Q10"]


def test_literals_are_dropped_and_duplicates_count_once():
    result = facts.of_statements(statements(
        ("Q1", "1879-03-14", "literal", "normal"), ("Q1", "Q10", "item", "normal"),
        ("Q1", "Q10", "item", "normal"),
    ))  # fmt: skip
    assert result["object"].to_list() == ["Q10"]


def test_unknown_rank_raises():
    with pytest.raises(ValueError, match=r"unknown ranks \['best'\]"):
        facts.of_statements(statements(("Q1", "Q10", "item", "best")))


def test_relations_are_sorted_by_number():
    """A superscript is a digit for str.isdigit, and not for int."""
    names = ["P1001", "m\u00b2", "P36", "area"]
    assert sorted(names, key=facts.by_number) == ["area", "m\u00b2", "P36", "P1001"]

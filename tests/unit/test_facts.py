"""Best-rank selection as defined by Wikidata."""

import polars as pl
import pytest

from kgprobe.knowledge import facts
from kgprobe.schema import STATEMENTS


def statements(*rows: tuple[str, str, str, str]) -> pl.DataFrame:
    """Return rows of (subject, object, object_kind, rank) for one relation."""
    columns = dict.fromkeys(STATEMENTS.columns) | {"kg": "wikidata", "relation": "P36"}
    names = ("subject", "object", "object_kind", "rank")
    given = [columns | dict(zip(names, row, strict=True)) for row in rows]
    return pl.DataFrame(given, schema=dict(STATEMENTS.columns))


@pytest.mark.parametrize(
    ("rows", "kept"),
    [
        # a preferred rank hides a normal one only for the same subject
        ([("Q1", "Q10", "item", "normal"), ("Q1", "Q11", "item", "preferred"),
          ("Q2", "Q12", "item", "normal")], [("Q1", "Q11"), ("Q2", "Q12")]),
        # queries return no unknown values, so dumps, which contain them, must give the same facts
        ([("Q1", "Q10", "item", "normal"), ("Q1", "_", "special", "preferred")], [("Q1", "Q10")]),
        # literals are dropped, and duplicates count once
        ([("Q1", "1879-03-14", "literal", "normal"), ("Q1", "Q10", "item", "normal"),
          ("Q1", "Q10", "item", "normal")], [("Q1", "Q10")]),
    ],
)  # fmt: skip
def test_facts_are_distinct_items_of_best_rank(rows, kept):
    result = facts.of_statements(statements(*rows))
    assert sorted(result.select("subject", "object").rows()) == kept


def test_unknown_rank_raises():
    with pytest.raises(ValueError, match=r"unknown ranks \['best'\]"):
        facts.of_statements(statements(("Q1", "Q10", "item", "best")))


def test_relations_are_sorted_by_number():
    """A superscript is a digit for str.isdigit, and not for int."""
    names = ["P1001", "m\u00b2", "P36", "area"]
    assert sorted(names, key=facts.by_number) == ["area", "m\u00b2", "P36", "P1001"]

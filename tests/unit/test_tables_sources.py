"""Tables and section of the sources: dumps and pulls, released BEAR, stored sections."""

import polars as pl
import pytest

from kgprobe import schema
from kgprobe.benchmarks.bear.choice import CHOICE
from kgprobe.schema import FUNNEL, STATEMENTS
from kgprobe.tables import sources
from kgprobe.tables.report import section
from kgprobe.tables.report.grid import Cell, Grid
from kgprobe.tables.report.section import Drawing, Section
from kgprobe.tables.results import Number, frame, proportion
from tests.unit.study_frames import number


def statements(*rows: tuple[str, str, str, str]) -> pl.DataFrame:
    """Return STATEMENTS from (subject, object, rank, label of the object)."""
    return pl.DataFrame(
        [("wikidata", "P1", s, "s", 1, o, label, 2, "item", rank) for s, o, rank, label in rows],
        schema=dict(STATEMENTS.columns),
        orient="row",
    )


PULLED = statements(
    ("Q1", "Q5", "preferred", "five"), ("Q1", "Q6", "normal", "six"), ("Q2", "Q5", "normal", "five")
)


def test_a_truthy_dump_is_compared_with_statements_of_best_rank():
    truthy = statements(("Q1", "Q5", "normal", "five"), ("Q2", "Q5", "normal", "FIVE"))
    made = sources.access(PULLED, {"a": ("json", PULLED), "b": ("truthy", truthy)})
    both, equal = sources.ACCESS
    for name, n in (("a", 3), ("b", 2)):
        row = number(made, both, benchmark=name)
        assert (row["value"], row["n"]) == (100, n)
    assert number(made, equal, benchmark="b")["value"] == 50


def test_statements_of_one_source_only_lower_the_agreement():
    other = statements(("Q2", "Q5", "normal", "five"), ("Q3", "Q5", "normal", "five"))
    made = number(sources.access(PULLED, {"a": ("json", other)}), sources.ACCESS[0])
    assert made["n"] == 4
    assert made["value"] == 25


def compared() -> pl.DataFrame:
    states = pl.DataFrame(
        {"item": ["P1/Q1", "P1/Q2"], "relation": ["P1", "P1"], "state": ["same", "statement_gone"],
         "detail": ["", ""]},
    )  # fmt: skip
    agreed = Number(metric=sources.EQUAL, slice="chain", **proportion(1, 2))
    agreement = pl.DataFrame(schema={"relation": pl.String})
    return pl.concat([sources.against_released(states, agreement), frame("sources", [agreed])])


@pytest.mark.parametrize("circular", [True, False])
def test_the_section_warns_where_agreement_is_by_construction(circular):
    differing = pl.DataFrame(
        [("chain", "a", "b", "c", "d", "renamed")],
        schema=dict(sources.DIFFERENCES.columns),
        orient="row",
    )
    funnel = pl.DataFrame(
        [("bear_big", "P1", 0, "pulled", 5, 3, 3, 2)], schema=dict(FUNNEL.columns), orient="row"
    )
    row = ("bear_big", "P1", "1:N", 2, 1, 2, 2, 0, 9, None, 8, None, "kept")
    choice = pl.DataFrame([row], schema=dict(CHOICE.columns), orient="row")
    made = sources.section(
        compared(), differing, {"bear_big": funnel}, {"bear_big": choice}, {"P1": "one"}, circular
    )
    assert (list(made.notes) == [sources.CIRCULAR]) is circular
    released = next(g for g in made.grids if "released BEAR" in g.title)
    assert ("by construction" in released.title) is circular
    counted = {cells[-2].text: cells[-1].small for cells in released.rows}
    assert counted["same"].startswith("1/2; ")
    assert counted["statement gone"].startswith("1/2; ")
    assert any("(1)" in g.title for g in made.folded)


def test_a_section_round_trips(tmp_path):
    grid = Grid("T", ["a", "b"], [[Cell("x", sort="x"), Cell("1", "0 to 2", 1.0, "n = 3")]],
                frozenset({1}), "caption")  # fmt: skip
    drawing = Drawing("sources", "d", "title", "caption", {})
    made = Section("sources", "Sources", "lead", ["note"], [grid], [grid], [drawing], [])
    section.write(made, tmp_path / "c.json")
    assert section.read(tmp_path / "c.json") == made


RELEASED = pl.DataFrame(
    [("B", "band", ["group", "Agent"]), ("C", "club", ["group", "agent"]), ("D", "day", ["time"]),
     ("E", "era", ["time", "thing"]), ("F", "fair", ["event"]), ("G", "game", ["event"])],
    schema={"class": pl.String, "label": pl.String, "superclasses": pl.List(pl.String)},
    orient="row",
)  # fmt: skip
#: an aligned property, one that lost its equivalence and more, one without an id in DBpedia
PROPERTIES = pl.DataFrame(
    [("P1", "a", "member of", "band", "group", ["Part Of"]),
     ("P2", "b", "author", "work", "agent", ["creator", "maker"]),
     ("P3", None, "part of", None, None, [])],
    schema={"property": pl.String, "dbpedia": pl.String, "label": pl.String, "domain": pl.String,
            "range": pl.String, "superproperties": pl.List(pl.String)},
    orient="row",
)  # fmt: skip


def test_differences_from_the_released_ontology_and_their_reasons_by_hand():
    ours = {"B": ["Group", "agent"], "C": ["agent", "group"], "D": [], "E": ["time"],
            "F": ["event", "act"]}  # fmt: skip
    chains = pl.DataFrame(
        [(i, n, label) for i, labels in ours.items() for n, label in enumerate(labels, 1)],
        schema=["id", "position", "ancestor_label"], orient="row",
    )  # fmt: skip
    classes = pl.DataFrame({"class": ["B", "C", "D", "E", "F"]})
    stray = pl.DataFrame({"child": ["D"], "parent": ["http://x/Time"]})
    found = sources.chain_differences(RELEASED, classes, chains.reverse(), stray)
    assert found.rows() == [
        ("chain", "C", "club", "group > agent", "agent > group",
         "the released chain is not ordered finest first"),
        ("chain", "D", "day", "time", "", "its parent Time is not declared in this snapshot"),
        ("chain", "E", "era", "time > thing", "time", "no longer below thing"),
        ("chain", "F", "fair", "event", "event > act", "now below act"),
        ("chain", "G", "game", "event", "",
         "the class is not in this snapshot (renamed or removed)"),
    ]  # fmt: skip
    mine = pl.DataFrame(
        [("P1", "B", "g", "dbpedia", "wikidata"), ("P2", "W", None, "wikidata", None)],
        schema=["property", "domain", "range", "domain_source", "range_source"], orient="row",
    )  # fmt: skip
    above = pl.DataFrame(
        {"id": ["P1", "P1", "P2"], "ancestor_label": ["part of", "thing", "Maker"]}
    )
    pairs = pl.DataFrame({"property": ["P1", "P2"], "dbpedia": ["a", "c"]})
    labels = {"B": "Band", "g": "Group", "W": "text"}
    differing = sources.property_differences(PROPERTIES, mine, above, pairs, labels)
    assert differing.rows() == [
        ("aligned", "P2", "author", "b", "c", "the graphs state a different equivalence"),
        ("domain", "P2", "author", "work", "text", "ours comes from wikidata"),
        ("range", "P2", "author", "agent", None, "ours comes from neither graph"),
        ("superproperties", "P2", "author", "creator, maker", "maker",
         "not an ancestor today: creator"),
    ]  # fmt: skip
    none = sources.property_differences(PROPERTIES, mine, above, pairs.head(1), labels)
    assert none["reason"][0] == "neither graph states this equivalence today"
    # the released ontology has no differences
    schema.check(found.clear(), sources.DIFFERENCES)
    table = sources.agreement(RELEASED, PROPERTIES, pl.concat([found, differing]))
    equal = {slice_: (value, n) for slice_, value, n in table.select("slice", "value", "n").rows()}
    half = dict.fromkeys(("aligned", "domain", "range", "superproperties"), (50.0, 2))
    assert equal == {"chain": (pytest.approx(100 / 6), 6), **half}

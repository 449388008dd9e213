"""The world's dated currency statements are those of CLDR, as far as its codes are known."""

from collections import defaultdict
from pathlib import Path

import polars as pl
import pytest
from babel.core import get_global

from kgprobe.knowledge.facts import best_rank
from kgprobe.sheets import read_table
from kgprobe.sources.world import build

FOLDER = Path(__file__).parents[2] / "resources/world"


@pytest.fixture(scope="module")
def world() -> build.World:
    return build.load(FOLDER)


def test_they_are_cldr_s_legal_tender_and_nothing_else(world):
    """Read from CLDR's table itself: (currency, first day, last day, legal tender) by territory."""
    ids = dict(world.entities.select("key", "id").rows())
    codes = {row["code"]: ids[row["entity"]] for row in read_table(FOLDER / "codes.tsv")}
    typed = set(world.statements.filter(relation="P38", origin="typed")["subject"])
    expected: defaultdict[tuple[str, str], set[tuple[str, str]]] = defaultdict(set)
    for code, entity in codes.items():
        for currency, first, last, is_tender in get_global("territory_currencies").get(code, []):
            if len(code) == 2 and entity in typed and is_tender and currency in codes:
                period = tuple(
                    "{:04}-{:02}-{:02}".format(*day) if day else "" for day in (first, last)
                )
                expected[entity, codes[currency]].add(period)
    found = {
        (subject, value): list(zip(start, end, strict=True))
        for subject, value, start, end in world.statements.filter(pl.col("start").list.len() > 0)
        .filter(relation="P38")
        .select("subject", "object", "start", "end")
        .rows()
    }
    assert found == {key: sorted(periods) for key, periods in expected.items()}
    assert sum(map(len, found.values())) > 250
    assert world.statements.filter(pl.col("start").list.len() > 0)[
        "relation"
    ].unique().to_list() == ["P38"]


def test_germany_had_the_mark_and_has_the_euro(world):
    ids = dict(world.entities.select("key", "id").rows())
    rows = world.statements.filter(subject=ids["Germany"], relation="P38")
    assert sorted(rows.select("object", "rank", "start", "end").rows()) == [
        (ids["Deutsche Mark"], "normal", ["1948-06-20"], ["2002-02-28"]),
        (ids["euro"], "preferred", ["1999-01-01"], [""]),
    ]


def test_what_is_typed_stays_the_best(world):
    """A benchmark of best ranks sees the typed currencies alone."""
    money = world.statements.filter(pl.col("relation") == "P38", pl.col("kind") == "item")
    best = best_rank(
        money.with_columns(kg=pl.lit("w"), object_kind="kind").filter(
            pl.col("rank") != "deprecated"
        )
    )
    assert set(best["origin"]) == {"typed"}
    added = money.filter(origin="cldr")
    assert added.height > 40
    assert set(added["rank"]) == {"normal"}


def test_a_code_of_no_entity_is_told_with_its_line(tmp_path):
    for path in FOLDER.glob("*.tsv"):
        (tmp_path / path.name).write_bytes(path.read_bytes())
    lines = (FOLDER / "codes.tsv").read_text().splitlines()
    (tmp_path / "codes.tsv").write_text("\n".join([*lines, "XX\tAtlantis", "DE\tFrance"]) + "\n")
    with pytest.raises(build.WorldError) as told:
        build.load(tmp_path)
    assert len(told.value.problems) == 2
    for number, value in ((1, "'Atlantis'"), (2, "'DE'")):
        assert f"codes.tsv, line {len(lines) + number}, column" in str(told.value)
        assert value in str(told.value)

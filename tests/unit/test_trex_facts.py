"""Facts and dates of T-REx's triples: the joins against a plain loop."""

import random

import polars as pl
import pytest

from kgprobe import schema
from kgprobe.knowledge import facts_trex as facts
from kgprobe.knowledge.engine_duckdb import DuckDB
from kgprobe.sources.dumps.trex import ENTITY, TRIPLES

LABELS = {"uri": pl.String, "label": pl.String}


def made(triples: pl.DataFrame, labels: dict[str, str], folder) -> tuple[pl.DataFrame, ...]:
    """Return FACTS and DATES as the workflow writes and reads them."""
    named = pl.DataFrame(list(labels.items()), schema=LABELS, orient="row")
    with DuckDB() as engine:
        asked = (engine.table(triples), engine.table(named))
        for name, (build, contract) in KINDS.items():
            engine.write(engine.keep(build(*asked)), contract, folder / name)
    return tuple(schema.read(folder / name, contract) for name, (_, contract) in KINDS.items())


KINDS = {"facts": (facts.of_trex, schema.FACTS), "dates": (facts.dates, facts.DATES)}


def literal(triples: pl.DataFrame, labels: dict[str, str]) -> tuple[list[tuple], ...]:
    """Row by row: an object makes a fact, else a literal with a date's datatype a date."""
    found, dated = set(), set()
    for row in triples.iter_rows(named=True):
        s, p = f"Q{row['subject']}", f"P{row['predicate']}"
        start = ("wikidata", s, labels.get(ENTITY + s), p)
        if row["object"] is not None:
            o = f"Q{row['object']}"
            found.add((*start, o, labels.get(ENTITY + o)))
        elif row["literal"] is not None:
            value = f"{row['literal']}^^{row['datatype'] or ''}"
            dated.add((*start, value, labels.get(value)))
    key = ("kg", "relation", "subject", "object")
    order = [list(schema.FACTS.columns).index(name) for name in key]
    return tuple(sorted(rows, key=lambda r: [r[at] for at in order]) for rows in (found, dated))


def triples(rows) -> pl.DataFrame:
    """Return TREX_TRIPLES from (subject, predicate, object, literal, datatype)."""
    whole = [(*row, 1, 1, 1) for row in rows]
    return pl.DataFrame(whole, schema=dict(TRIPLES.columns), orient="row")


@pytest.mark.parametrize("seed", range(3))
def test_facts_and_dates_are_those_of_a_plain_loop(tmp_path, seed):
    draw = random.Random(seed)
    ends = [*range(1, 40), 10**9, 4 * 10**9]
    rows = {(draw.choice(ends), draw.choice([17, 36, 1001]), draw.choice(ends), None, None)
            for _ in range(300)}  # fmt: skip
    rows |= {(draw.choice(ends), 569, None, f"{draw.randint(1, 9)}-01-01T00:00:00Z", kind)
             for kind in ("http://x#dateTime", None) for _ in range(40)}  # fmt: skip
    # names of relations are left out
    labels = {f"{ENTITY}Q{n}": f"\u00e9 {n % 7}" for n in draw.sample(ends, 25)}
    labels |= {"2-01-01T00:00:00Z^^http://x#dateTime": "the year 2", f"{ENTITY}P17": "country"}
    given = triples(sorted(rows, key=str))
    found = made(given, labels, tmp_path)
    expected = literal(given, labels)
    assert [frame.rows() for frame in found] == list(expected)
    assert all(len(part) > 50 for part in expected)
    assert {row[2] for row in expected[0]} >= {None, "\u00e9 1"}
    assert {row[-1] for row in expected[1]} == {None, "the year 2"}


def test_a_dump_may_have_no_dates(tmp_path):
    found, dated = made(triples([(1, 36, 2, None, None)]), {f"{ENTITY}Q1": "France"}, tmp_path)
    assert found.rows() == [("wikidata", "Q1", "France", "P36", "Q2", None)]
    assert not dated.height

"""The released BEAR-big against the statements of other data sets.

BEAR is merged into the excerpt of Wikidata (source `bear`), so that anything built from the whole
excerpt agrees with BEAR by construction. Only its other sources are evidence about BEAR.
"""

from pathlib import Path

import polars as pl
import pytest

from kgprobe.benchmarks.bear import against_released
from kgprobe.benchmarks.bear import released as bear_released
from kgprobe.benchmarks.bear.against_released import Fresh
from kgprobe.experiments import read_table
from kgprobe.schema import STATEMENTS
from kgprobe.settings.benchmarks import Bear

pytestmark = pytest.mark.real

RELATIONS = Path(__file__).parents[2] / "resources/templates/bear_relations.tsv"
CONFIG = Bear(popularity="statements", min_sitelinks=0)


@pytest.fixture(scope="module")
def triples(real_data):
    return pl.read_parquet(real_data / "wikidata/triples.parquet")


@pytest.fixture(scope="module")
def released(real_data):
    return bear_released.load(real_data / "bear/BEAR-big", benchmark="bear_big_released")


def states(triples: pl.DataFrame, released) -> dict[str, int]:
    """Return released instances by state. Ids serve as labels, because only statements matter."""
    both = triples.select("s", "p", "o").unique().filter(pl.col("o").str.starts_with("Q"))
    unknown = pl.lit(None, dtype=pl.Int64)
    columns = {
        "kg": pl.lit("wikidata"), "relation": "p", "subject": "s", "subject_label": "s",
        "subject_sitelinks": unknown, "object": "o", "object_label": "o",
        "object_sitelinks": unknown, "object_kind": pl.lit("item"), "rank": pl.lit("normal"),
    }  # fmt: skip
    statements = both.select(**columns).select(list(STATEMENTS.columns))
    fresh = Fresh(statements, read_table(RELATIONS), {}, CONFIG)
    return dict(against_released.states(released, fresh)["state"].value_counts().rows())


def test_the_whole_excerpt_contains_every_bear_statement(triples, released):
    found = states(triples, released)
    assert "statement_gone" not in found
    assert "answer_changed" not in found
    assert (triples["src"] == "bear").sum() == 39_317


def test_without_bear_few_released_statements_are_attested(triples, released):
    found = states(triples.filter(pl.col("src") != "bear"), released)
    total = released.items.height
    assert sum(found.values()) == total
    assert found["statement_gone"] / total > 0.9

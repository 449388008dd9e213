"""The final message of a run: what it could not get, and how to get it."""

import polars as pl

from kgprobe import schema
from kgprobe.sources import missing


def test_incomplete_relations_are_reported_with_the_command(tmp_path):
    assert missing.describe_missing(tmp_path) == []
    ways = [
        ("P36", "pulled", ""),
        ("P17", "left out", "12,800,000 rows by the count query; at most 1,000,000"),
        ("P31", "sitelinks", "too many"),
        ("P27", "read", "from a dump"),
    ]
    nothing = dict.fromkeys("item unknown no_value literal other deprecated".split())
    rows = [{"relation": r, "way": w, "rows": 0, "reason": t, **nothing} for r, w, t in ways]
    path = tmp_path / "sources/wikidata/coverage.parquet"
    path.parent.mkdir(parents=True)
    columns = dict(schema.COVERAGE.columns)
    schema.write(pl.DataFrame(rows, schema=columns), schema.COVERAGE, path)
    message = "\n".join(missing.describe_missing(tmp_path))
    assert "wikidata: 1 relations are missing: P17" in message
    assert "12,800,000 rows" in message
    assert "sources.wikidata.dump" in message
    assert "came in another way (sitelinks): P31" in message
    assert "P36" not in message
    assert "P27" not in message, "from a dump it came whole"


def test_sources_not_pulled_by_relation_report_no_missing_ones(tmp_path):
    path = tmp_path / "sources/dbpedia_dump/coverage.parquet"
    path.parent.mkdir(parents=True)
    schema.write(pl.DataFrame(schema=dict(schema.COVERAGE.columns)), schema.COVERAGE, path)
    assert missing.describe_missing(tmp_path) == []

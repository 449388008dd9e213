"""JUDGED of the run: its means are the numbers of RESULTS, and the pages show its marks."""

from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest

from kgprobe import schema
from kgprobe.contracts import GIVEN_UNDER, SETTING
from kgprobe.tables import results
from tests.mini.conftest import RUN

PROBE = ["benchmark", "model", "prompt", "method"]


def frames(run: Path, paper: str) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return RESULTS of a paper's probes, without slices, and JUDGED of the same."""
    judged = schema.read(run / f"judged/{paper}.parquet", schema.JUDGED)
    rows = schema.read(run / f"tables/{paper}.parquet", schema.RESULTS).filter(slice="")
    return rows.join(judged, on=PROBE, how="semi"), judged


def only(*names: str, **values: str) -> pl.Expr:
    """Return rows with exactly these further choices."""
    empty = [pl.col(name) == "" for name in SETTING if name not in (*names, *values)]
    return pl.all_horizontal(*empty, *(pl.col(name) == value for name, value in values.items()))


def compare(
    rows: pl.DataFrame, judged: pl.DataFrame, *under: str, macro: bool = False
) -> Iterator[tuple[float, float]]:
    """Yield (number, its mean of hits): for `group` of the relation, else of all the probe's items,
    each with the mean of its answers; `macro`: the mean over relations."""
    for row in rows.rows(named=True):
        own = judged.filter(*(pl.col(name) == row[name] for name in [*PROBE, *under]))
        own = own.filter(relation=row["group"]) if row["group"] else own
        items = own.drop_nulls("hit").group_by("relation", "item").agg(pl.col("hit").mean())
        if macro and not row["group"]:
            items = items.group_by("relation").agg(pl.col("hit").mean())
        yield row["value"], 100 * items["hit"].mean()


def check(run: Path) -> dict[str, int]:
    """Assert that numbers are means of JUDGED, and return their count for each paper."""
    counts = {}
    for paper in ("bear", "ontoprobe", "attributes", "autoprompt"):
        rows, judged = frames(run, paper)
        plain = rows.filter(results.plain(), pl.col("metric").is_in(["accuracy", "P@1"]))
        pairs = []
        if paper == "bear":
            pairs += compare(plain, judged)
            templates = rows.filter(only("template"), metric="accuracy")
            pairs += compare(templates.filter(pl.col("template") != ""), judged, "template")
        elif paper == "ontoprobe":
            asked = [
                schema.read(folder / "items.parquet", schema.ITEMS)
                for folder in sorted((run / "benchmarks").glob("onto_world*"))
            ]
            repeat = pl.col("meta").str.json_path_match("$.repeat").is_not_null()
            test = pl.concat(asked).filter(~repeat, role="test").select("item").unique()
            configuration = list(GIVEN_UNDER[:5])
            measured = rows.filter(only(*configuration), metric="R@1")
            at = judged.join(test, on="item")
            pairs += compare(measured.filter(pl.col("masks") != ""), at, *configuration)
            chosen = rows.filter(only("scoring"), metric="accuracy", method="choice")
            pairs += compare(chosen, judged.filter(premise=""), "scoring")
        elif paper == "attributes":
            one = only(alpha="exact", gold="own", k="1", pooling="best", prompts="1")
            pairs += compare(rows.filter(one), judged.filter(matching="own"))
        else:
            own = judged.filter(pl.col("matching") != "filtered")
            pairs += compare(plain, own, macro=True)
        for value, mean in pairs:
            assert value == pytest.approx(mean, abs=1e-9), paper
        counts[paper] = len(pairs)
    return counts


def test_every_plain_number_is_a_mean_of_judged_answers(finished):
    counts = check(finished.folder / RUN)
    assert min(counts.values()) >= 2, counts
    assert counts["bear"] > 20


def test_the_pages_mark_the_answers_that_the_tables_count(finished):
    run = finished.folder / RUN
    judged = schema.read(run / "judged/bear.parquet", schema.JUDGED)
    first = judged.filter(pl.col("template") == pl.col("template").min(), model="control-masked")
    page = (run / "report/pages/bear-questions.html").read_text()
    for row in first.filter(pl.col("hit") == 1).rows(named=True)[:3]:
        assert f"✓ right at 1 of {row['options']}" in page
        assert row["answer"] in page

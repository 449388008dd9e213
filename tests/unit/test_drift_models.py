"""Drift asked of two models whose times are known: one taught what held before, one what holds."""

from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from kgprobe import schema
from kgprobe.benchmarks.bear import changes
from kgprobe.probes.control.lessons import Lesson
from kgprobe.probes.control.train import RECIPES, train_control
from kgprobe.probes.jobs.score import score_frame
from kgprobe.probes.models.load import ModelSpec
from kgprobe.settings import Drift
from kgprobe.tables.answers import judge
from tests.unit.test_answers import Bar

#: Currencies in 1998 and in 2003.
CHANGED = {
    "Germany": ("German mark", "euro"),
    "France": ("French franc", "euro"),
    "Italy": ("Italian lira", "euro"),
    "Spain": ("Spanish peseta", "euro"),
    "Ecuador": ("Ecuadorian sucre", "United States dollar"),
    "El Salvador": ("Salvadoran colón", "United States dollar"),
}
KEPT = {
    "Panama": "United States dollar",
    "Japan": "Japanese yen",
    "Norway": "Norwegian krone",
    "Poland": "Polish złoty",
    "India": "Indian rupee",
    "Brazil": "Brazilian real",
}
BEFORE = {name: pair[0] for name, pair in CHANGED.items()} | KEPT
AFTER = {name: pair[1] for name, pair in CHANGED.items()} | KEPT
TEXTS = ["The currency of [X] is the [Y].", "In [X] one pays with the [Y]."]
LABELS = sorted({*BEFORE, *BEFORE.values(), *AFTER.values()})


def facts(held: dict[str, str]) -> pl.DataFrame:
    numbers = {label: f"Q{n}" for n, label in enumerate(LABELS, 1)}
    rows = [
        ("wikidata", numbers[s], s, "P38", numbers[o], o, [], []) for s, o in sorted(held.items())
    ]
    return pl.DataFrame(rows, schema=dict(schema.FACTS.columns), orient="row")


def taught(held: dict[str, str], kind: str, folder: Path) -> ModelSpec:
    recipe = replace(RECIPES[kind], steps=1500, rows=16, warmup=20, every=25, glance=12)
    lessons = [Lesson("P38", subject, answer) for subject, answer in sorted(held.items())]
    # what stood before and what stands now are options to both
    objects = {"P38": sorted({*BEFORE.values(), *AFTER.values()})}
    train_control(
        kind, lessons, LABELS, {"P38": TEXTS}, 0, folder / f"control-{kind}", recipe,
        objects=objects,
    )  # fmt: skip
    bos = "forced" if kind == "causal" else "-"
    return ModelSpec("c", kind, f"control:{kind}", bos=bos, made=str(folder))


@pytest.mark.parametrize("kind", ["masked", "causal"])
def test_each_prefers_its_own_time(tmp_path, kind):
    words = {"P38": list(enumerate(TEXTS))}
    sets, _ = changes.build(facts(BEFORE), facts(AFTER), words, {}, Drift(options=7), "drift", 0)
    assert sorted(sets.items["subject"]) == sorted(CHANGED)
    found = {}
    for time, held in (("before", BEFORE), ("after", AFTER)):
        spec = taught(held, kind, tmp_path / time)
        scores, _ = score_frame(spec, sets.items, sets.candidates, sets.prompts, "sentence", Bar)
        judged = judge(scores, sets.items, sets.candidates)
        assert judged.height == len(CHANGED) * len(TEXTS)
        found[time] = judged.select("hit", "marked").mean().row(0)
    # trained models differ between processors: 12 answers, of which one may go astray
    assert found["before"][0] < 0.1 < 0.9 < found["before"][1]
    assert found["after"][1] < 0.1 < 0.9 < found["after"][0]

"""Slices of benchmarks other than BEAR, against loops over the same answers."""

import itertools
import json
from collections import Counter
from functools import partial

import numpy as np
import polars as pl
import pytest

from kgprobe import schema
from kgprobe.benchmarks.ontoprobe import modes
from kgprobe.tables import results, scored
from kgprobe.tables.attributes import section as attribute_section
from kgprobe.tables.attributes import views as attribute_views
from kgprobe.tables.ontoprobe import section, views
from kgprobe.tables.report import blocks, draw
from kgprobe.tables.report.section import Section
from kgprobe.tables.study import Study
from kgprobe.templates import NO_SUBJECTS
from tests.unit.study_frames import benchmark, number, of_rows, probe, rates_by_hand, scores
from tests.unit.study_frames import drawn as rows_of
from tests.unit.test_tables_aggregations_all import (
    SEED,
    TASKS,
    answers_of,
    mean,
    onto,
    onto_numbers,
    prompts_of,
)

CITIES = ["Rome", "Bonn", "Paris", "Amsterdam", "Oslo", "Rio de Janeiro"]
FRAMES = benchmark(
    {
        "P1": (CITIES, [CITIES[i * i % 6] for i in range(24)]),
        "P2": (["Pisa", "London"], ["Pisa", "London", "Pisa", "Pisa"]),
    }
)
PROMPTS = prompts_of(FRAMES)
LABELS = {"P1": CITIES, "P2": ["Pisa", "London"]}
GOLD = dict(FRAMES["items"].select("item", pl.col("answers").list.first()).rows())
NAMED = {item: LABELS[item[:2]][gold] for item, gold in GOLD.items()}
ASKED = Study(FRAMES["items"], FRAMES["candidates"], PROMPTS, SEED, "sum")


answers = partial(answers_of, FRAMES)


def bins() -> dict[str, list[str]]:
    """Map each bin to its items, by comparisons."""
    often = Counter(NAMED.values())
    found: dict[str, list[str]] = {}
    for item, label in NAMED.items():
        n, size, length = often[label], len(LABELS[item[:2]]), len(label)
        of = [
            ("options", "2-4" if size < 5 else "5-9"),
            ("frequency", "1" if n < 2 else "2-4" if n < 5 else "5-9" if n < 10 else "10-19"),
            ("length", "1-4" if length < 5 else "5-9" if length < 10 else "10-14"),
        ]
        for name, value in of:
            found.setdefault(f"{name}: {value}", []).append(item)
    return found


def free() -> pl.DataFrame:
    """Return CONTENT_FREE of the first relation."""
    generator = np.random.default_rng(6)
    rows = [
        ("P1", "P1", subject, t, o, generator.normal(-20, 4), 2, -3.0, 1, None)
        for subject, t, o in itertools.product(NO_SUBJECTS, range(3), range(6))
    ]
    return of_rows(schema.CONTENT_FREE, rows)


def test_slices_of_probes_baseline_and_chance_equal_loops():
    one, other, beside = answers(0.6, 1), answers(0.3, 2), free()
    # random weights were asked the first template of three items
    names = [f"P1/Qs{i}" for i in range(3)]
    random_init = {(i, 0): v for (i, t), v in answers(0.5, 3).items() if i in names and t == 0}
    made = scored.estimates(
        [
            scored.Scored(probe("a"), scores(one), ASKED, beside, random_init=scores(random_init)),
            scored.Scored(probe("b"), scores(other), ASKED),
        ]
    )
    found = results.frame("any", made)
    slices = set(found["slice"].unique()) - {"", "skewed"}
    assert slices == set(bins())
    assert len(slices) > 6
    blind = {
        (item, t): [beside.filter(template=t, candidate=o)["sum"].mean() for o in range(6)]
        for item, t in one
        if item.startswith("P1")
    }
    a, b, without, low = (
        rates_by_hand(FRAMES, table) for table in (one, other, blind, random_init)
    )
    first = rates_by_hand(FRAMES, {key: one[key] for key in random_init})
    for name, items in bins().items():
        row = number(found, model="a", slice=name, aggregation="sum")
        assert (row["value"], row["n"]) == (pytest.approx(mean(a, items)), len(items))
        row = number(found, model="a", slice=name, aggregation="sum", instead="b")
        assert row["value"] == pytest.approx(mean(a, items) - mean(b, items))
        row = number(found, model="random", prompt="", method="", slice=name, aggregation="sum")
        chance = {item: 1 / len(LABELS[item[:2]]) for item in items}
        assert row["value"] == pytest.approx(mean(chance, items))
        for lower, label in ((without, "the subject"), (low, "trained weights")):
            part = [item for item in items if item in lower]
            rows = found.filter(
                metric="accuracy", slice=name, aggregation="sum", without=label, instead=""
            )
            assert rows.height == bool(part)
            if part:
                assert rows["value"][0] == pytest.approx(mean(lower, part))
                assert rows["n"][0] == len(part)
                top = first if label == "trained weights" else a
                difference = number(
                    found, model="a", slice=name, aggregation="sum", instead=f"without {label}"
                )
                assert difference["value"] == pytest.approx(mean(top, part) - mean(lower, part))
    p = found.filter(metric="p after Holm", model="a")
    assert p.height == found.filter(metric="detectable difference").height > len(slices)


def test_probes_with_other_rows_are_not_paired_and_chance_is_shown_once():
    fewer = {key: values for key, values in answers(0.3, 2).items() if key[1] == 0}
    prompts = PROMPTS.filter(index=0)
    other = Study(FRAMES["items"], FRAMES["candidates"], prompts, SEED, "sum")
    every = [
        scored.Scored(probe("a"), scores(answers(0.6, 1)), ASKED),
        scored.Scored(probe("b"), scores(fewer), other),
    ]
    found = results.frame("any", scored.estimates(every))
    assert set(found["instead"]) == {""}
    assert set(found.filter(slice="options: 2-4")["model"]) == {"a", "b", "random", "majority"}


def test_probes_that_share_no_bin_have_chance_in_each_and_are_drawn():
    """A limit of the rows of one kind of model leaves its probes with other items."""
    every = []
    for model, relations in (("a", ["P1"]), ("b", ["P1", "P2"])):
        items = FRAMES["items"].filter(pl.col("relation").is_in(relations))
        asked = {key: v for key, v in answers(0.6, 1).items() if key[0][:2] in relations}
        of = Study(items, FRAMES["candidates"], PROMPTS, SEED, "sum")
        every.append(scored.Scored(probe(model, "bias"), scores(asked), of))
    found = results.frame("attributes", scored.estimates(every))
    inside = found.filter(~pl.col("slice").is_in(["", "skewed"]), metric="accuracy", instead="")
    bins = inside.filter(pl.col("model").is_in(["a", "b"]))["slice"].unique()
    assert sorted(inside.filter(model="random")["slice"]) == sorted(bins)
    assert "options: 2-4" in bins
    drawings = attribute_section.drawings(found, [probe(m, "bias") for m in "ab"], {})
    drawn = {f"attributes_slice_{kind}" for kind in ("options", "frequency", "length")}
    assert drawn <= {one.name for one in drawings}


def test_ontoprobes_slices_by_task_and_their_tables(tmp_path):
    places, rows, path, beside = onto(tmp_path)
    items = schema.read(places["onto_world"] / "items.parquet", schema.ITEMS)
    metas = [json.loads(m) | {"popularity": 2 * i} for i, m in items.select("row", "meta").rows()]
    items = items.with_columns(meta=pl.Series([json.dumps(one) for one in metas]))
    schema.write(items, schema.ITEMS, places["onto_world"] / "items.parquet", {})
    found = onto_numbers(places, path, beside)
    right = {
        f"TP-{r}": sum(
            int(np.argmax([v / (4 if o == 3 else 1) for o, v in enumerate(rows[f"TP-{r}", t])]))
            in ({r % 4} | (set() if r % 3 else {(r + 1) % 4}))
            for t in (1, 2, 3)
        ) / 3
        for r in range(12)
    }  # fmt: skip
    by = {
        "facts: trained-on": [r for r in range(12) if r % 2 == 0],
        "facts: held-out": [r for r in range(12) if r % 2],
        "statements: 0": [0],
        "statements: 1-4": [1, 2],
        "statements: 5-19": [3, 4, 5, 6, 7, 8, 9],
        "statements: 20-99": [10, 11],
    }
    for name, own in by.items():
        row = number(found, model="m", group="TP", slice=name, aggregation="answer_mean")
        expected = mean(right, [f"TP-{r}" for r in own])
        assert (row["value"], row["n"]) == (pytest.approx(expected), len(own))
    # all have four options: a single bin is no slice
    assert not found["slice"].str.contains("options").any()
    table = views.SLICES[0].of(found)
    assert [row[2] for row in table.rows if row[0] == "TP"] == [
        *list(by)[2:], "facts: trained-on", "facts: held-out",
    ]  # fmt: skip
    models = {"m": {"kind": "causal", "source": "control:causal"}}
    made = section.section(found, [], {}, "paper", modes.Switches(), models)
    assert "Accuracy by slice, %" in [one.title for one in made.folded]
    plots = {one.name: one for one in made.drawings if "slice" in one.name}
    assert list(plots) == ["ontoprobe_slice_statements", "ontoprobe_slice_facts"]
    # each task is a panel with its bins and the values of RESULTS
    titles = [panel["title"] for panel in plots["ontoprobe_slice_statements"].chart["concat"]]
    assert titles == [t for t in TASKS if found.filter(group=t, slice="statements: 0").height]
    facts = plots["ontoprobe_slice_facts"]
    points = {row["bin"]: row["value"] for row in rows_of(facts.chart) if row.get("probe") == "m"}
    splits = {name: by[f"facts: {name}"] for name in ("trained-on", "held-out")}
    assert points.keys() == {f"{name}\nn = {len(own)}" for name, own in splits.items()}
    for name, own in splits.items():
        expected = mean(right, [f"TP-{r}" for r in own])
        assert points[f"{name}\nn = {len(own)}"] == pytest.approx(expected)


def test_the_attributes_have_the_tables_as_well():
    names = [view.name for view in attribute_views.FOLDED]
    assert {"slices", "slices_differences"} <= set(names)
    every = scored.Scored(probe("a", "symmetry"), scores(answers(0.6, 1)), ASKED, free())
    found = results.frame("attributes", scored.estimates([every]))
    by_name = {view.name: view for view in attribute_views.FOLDED}
    assert len(by_name["slices"].of(found).rows) == len(bins())
    rows = by_name["slices_differences"].of(found).rows
    assert {row[-1] for row in rows} == {"without the subject"}


def test_a_plot_has_a_panel_per_benchmark_and_the_table_s_numbers():
    """There are at most nine panels with every probe and baseline; control models are hollow."""
    every = [
        scored.Scored(probe(model, name), scores(answers(fraction, seed)), ASKED, free())
        for seed, name in enumerate(["symmetry", "bias"])
        for model, fraction in (("a", 0.6), ("control-b", 0.3))
    ]
    found = results.frame("attributes", scored.estimates(every))
    source = {"a": "hub:a", "control-b": "control:masked"}
    probes = [probe(model, "bias", source=place) for model, place in source.items()]
    made = [one for one in attribute_section.drawings(found, probes, {}) if "slice" in one.name]
    kinds = ("options", "frequency", "length")
    assert [one.name for one in made] == [f"attributes_slice_{kind}" for kind in kinds]
    for one, kind in zip(made, kinds, strict=True):
        assert [panel["title"] for panel in one.chart["concat"]] == ["symmetry", "bias"]
        # panels with the same rows share them
        panels = [{layer["data"]["name"] for layer in panel["layer"]}
                  for panel in one.chart["concat"]]  # fmt: skip
        drawn = [row for names in panels for n in names for row in one.chart["datasets"][n]]
        shown = found.filter(pl.col("slice").str.starts_with(f"{kind}: "), metric="accuracy")
        own = shown.filter(pl.col("model").is_in([*source, "random"])).filter(
            pl.col("without").is_in(["", "the subject"]), aggregation="sum", instead=""
        )
        assert sorted(row["value"] for row in drawn) == sorted(own["value"]) != []
        fills = {json.dumps(layer["encoding"]["fill"]["scale"]) for panel in one.chart["concat"]
                 for layer in panel["layer"] if "fill" in layer["encoding"]}  # fmt: skip
        assert len(fills) == 1
        assert draw.SURFACE in fills.pop()


def test_plots_of_slices_are_collapsed():
    one = scored.Scored(probe("a", "bias"), scores(answers(0.6, 1)), ASKED)
    found = results.frame("attributes", scored.estimates([one]))
    drawings = attribute_section.drawings(found, [probe("a", "bias")], {})
    page = blocks.arranged(Section("attributes", "", "", drawings=drawings), blocks.Room())
    folded = {block.drawing.name: block.is_folded for block in page if block.drawing}
    assert folded.pop("attributes_reliability") is False
    assert folded
    assert all(folded.values())

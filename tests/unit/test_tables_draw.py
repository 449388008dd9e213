"""Figures are deterministic, do not differ by color alone and have distinct names."""

import re

import polars as pl
import pytest

from kgprobe.metrics.intervals import Interval
from kgprobe.tables.bear import figures, make
from kgprobe.tables.report import draw, marks, validity
from kgprobe.tables.results import Number, frame
from tests.unit.study_frames import benchmark, drawn, guesses, number, probe, study

FRAMES = benchmark({"P36": (["a", "b", "c"], ["a", "b", "c"]), "P1": (["a", "b"], ["a", "b"])})
PROBES = [
    probe("control-masked", parameters=1_000_000, source="control:masked"),
    probe("control-causal", parameters=1_100_000, kind="causal", bos="forced", source="control:x"),
    probe("smol", parameters=135_000_000, kind="causal", bos="forced"),
    probe("smol-nobos", parameters=135_000_000, kind="causal", bos="none"),
]
MODELS = {
    p.model: {"kind": p.kind, "source": p.source, "bos": p.bos, "dtype": p.dtype} for p in PROBES
}
STUDY = study(FRAMES, [(p, guesses(FRAMES, 0.5, i)) for i, p in enumerate(PROBES)])


def calibrated(trained_on=95.0):
    """Return calibration of both control models, given the masked one's training-fact accuracy."""
    return [
        number
        for p, fraction in zip(PROBES[:2], (trained_on, 95.0), strict=True)
        for number in validity.estimates(
            Number(metric="", n=0, **p.dimensions),
            {"value": fraction, "n": 10, "interval": Interval(fraction / 2, fraction, "wilson")},
            {"value": 20.0, "n": 10, "interval": Interval(10.0, 20.0, "wilson")},
            10.0,
            0.9,
            is_control=True,
        )
    ]


def found(trained_on=95.0):
    """Return RESULTS of all probes with that calibration."""
    return frame("bear", [*make.estimates([STUDY]), *calibrated(trained_on)])


FIGURES = {
    "size": lambda: figures.size_plot(
        figures.sizes_of("world_lite", found()), [12.5], found(), MODELS
    ),
    "relations": lambda: figures.relations_plot(found(), MODELS, {"P36": "capital <of>"}),
}


def look(chart, channel):
    """Return the appearance of each legend name in one channel."""
    encodings = [layer["encoding"] for layer in chart.to_dict()["layer"]]
    scale = next(one[channel]["scale"] for one in encodings if channel in one)
    return dict(zip(scale["domain"], scale["range"], strict=True))


@pytest.mark.parametrize("name", FIGURES)
def test_two_drawings_give_the_same_bytes_of_real_text(name, tmp_path):
    first, second = (
        draw.save(draw.specification(FIGURES[name]()), tmp_path / place) for place in "ab"
    )
    assert first.read_bytes() == second.read_bytes()
    svg = first.read_text()
    assert len(re.findall(r"<text[^>]*>[^<]+</text>", svg)) > 5
    assert set(re.findall(r'font-family="([^"]*)"', svg)) == {draw.CONFIG["font"]}
    assert min(map(int, re.findall(r'font-size="(\d+)px"', svg))) >= 10
    assert draw.INK in svg  # the report exchanges it for the ink of its theme
    assert not re.search(r"<script|<image|https?://(?!www.w3.org)", svg)


@pytest.mark.parametrize("name", FIGURES)
def test_every_point_has_its_number_and_its_n(name):
    rows = [row for row in drawn(FIGURES[name]()) if "n" in row]
    shown = {(row["value"], row["n"]) for row in rows}
    assert len(shown) > 2
    assert shown <= set(found().select("value", "n").rows())


def test_kinds_differ_by_shape_and_controls_are_hollow():
    assert len({shape for _, shape in draw.KINDS.values()}) == len(draw.KINDS)
    chart = FIGURES["size"]()
    names = [p.model for p in PROBES]
    shapes, fills = look(chart, "shape"), look(chart, "fill")
    assert shapes == dict(zip(names, ["circle", "square", "square", "square"], strict=True))
    assert [name for name in names if fills[name] == draw.SURFACE] == names[:2]
    assert chart.to_dict()["layer"][0]["encoding"]["x"]["scale"]["type"] == "log"


def test_the_axis_of_accuracy_reaches_to_chance_above_every_model():
    sized = figures.sizes_of("world_lite", found())
    chart = figures.size_plot(sized, [99.0], found(), MODELS).to_dict()
    assert chart["layer"][0]["encoding"]["y"]["scale"]["domain"] == [0, 100]
    low = sized.with_columns(pl.lit(3.0).alias(name) for name in ("value", "high"))
    chart = figures.size_plot(low, [12.0], found(), MODELS).to_dict()
    ends = chart["layer"][0]["encoding"]["y"]["scale"]["domain"]
    assert ends == [0, pytest.approx(1.15 * 12)]


def test_probes_of_one_kind_differ_by_color():
    made = draw.probes({"a": "masked", "b": "causal", "c": "masked", "d": "api"}, hollow=["c"])
    stroke, fill, shape = (made[name].to_dict()["scale"]["range"] for name in made)
    assert list(made) == ["stroke", "fill", "shape"]
    assert len(set(stroke)) == 4
    assert stroke[:2] == [draw.KINDS["masked"][0], draw.KINDS["causal"][0]]
    assert fill == [*stroke[:2], draw.SURFACE, stroke[3]]
    assert shape == ["circle", "square", "circle", "diamond"]


@pytest.mark.parametrize("kinds", [["masked"], ["masked", "causal"], list(draw.KINDS)])
def test_sixteen_probes_of_a_few_kinds_have_looks_of_their_own(kinds):
    of = {f"probe {number}": kinds[number % len(kinds)] for number in range(16)}
    ranges = [channel.to_dict()["scale"]["range"] for channel in draw.probes(of).values()]
    assert len(set(zip(*ranges, strict=True))) == len(of)


def test_the_legend_names_every_probe_of_a_run_with_many_models():
    names = [f"model-{number:02d}" for number in range(40)]
    rows = [{"probe": name, "value": 1.0} for name in names]
    points = draw.chart(rows, "probe").mark_point().encode(
        x="value:Q", **draw.encode_points("probe", draw.apart(names))
    )  # fmt: skip
    shown = draw.svg(draw.specification(draw.set_size(points, height=280)))
    assert set(names) <= set(re.findall(r">([^<]+)</text>", shown))


def test_names_show_only_what_distinguishes_probes():
    base = {"model": "smol", "benchmark": "world_lite", "prompt": "templates", "paper": "bear"}
    base |= {"group": "", "scoring": ""}
    rows = [{**base, "method": method} for method in ("sentence", "sentence-mean")]
    rows.append({**rows[0], "model": "other"})
    assert marks.names(rows, marks.signs(found())) == [
        "smol, sentence",
        "smol, sentence-mean",
        "other",
    ]
    outside = number(found(trained_on=40.0), model="control-masked")
    assert marks.names([outside], marks.signs(found(trained_on=40.0))) == ["control-masked (?)"]


def test_relations_are_named_and_ordered_by_accuracy():
    chart = FIGURES["relations"]()
    y = chart.to_dict()["layer"][0]["encoding"]["y"]["sort"]
    assert sorted(y) == ["P1", "capital <of> (P36)"]
    means = {
        name: sum(row["value"] for row in rows) / len(rows)
        for name in y
        if (rows := [r for r in drawn(chart) if r["relation"] == name and r["probe"] != "chance"])
    }
    assert means[y[0]] >= means[y[1]]
    # five items in all: every number that is written down is marked
    assert all(row["label"] == f"{row['value']:.0f} †" for row in drawn(chart))
    heads = chart.to_dict()["layer"][0]["encoding"]["x"]["sort"]
    assert [head.replace("\n", "") for head in heads[:2]] == ["chance", "control-masked"]

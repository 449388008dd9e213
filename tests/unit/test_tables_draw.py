"""Figures: deterministic, without colour as the only difference, names told apart."""

import re

import pytest
from matplotlib.colors import to_hex
from matplotlib.text import Annotation

from kgprobe.metrics.intervals import Interval
from kgprobe.tables.bear import figures, make
from kgprobe.tables.report import calibration, draw
from kgprobe.tables.results import Number, frame
from tests.unit.study_frames import benchmark, guesses, number, probe, study

FRAMES = benchmark({"P36": (["a", "b", "c"], ["a", "b", "c"]), "P1": (["a", "b"], ["a", "b"])})
PROBES = [
    probe("control-masked", parameters=1_000_000, source="control:masked"),
    probe("control-causal", parameters=1_100_000, kind="causal", bos="forced", source="control:x"),
    probe("smol", parameters=135_000_000, kind="causal", bos="forced"),
    probe("smol-nobos", parameters=135_000_000, kind="causal", bos="none"),
]
SHEET = {
    p.model: {"kind": p.kind, "source": p.source, "bos": p.bos, "dtype": p.dtype} for p in PROBES
}
STUDY = study(FRAMES, [(p, guesses(FRAMES, 0.5, i)) for i, p in enumerate(PROBES)])


def calibrated(taught=95.0):
    """Of both control models; the masked one's share of taught facts is given."""
    return [
        number
        for p, share in zip(PROBES[:2], (taught, 95.0), strict=True)
        for number in calibration.numbers(
            Number(metric="", n=0, **p.asked),
            (share, 10, Interval(share / 2, share, "wilson")),
            (20.0, 10, Interval(10.0, 20.0, "wilson")),
            10.0,
            0.9,
            is_control=True,
        )
    ]


def found(taught=95.0):
    """RESULTS of all probes with that calibration."""
    return frame("bear", [*make.numbers([STUDY]), *calibrated(taught)])


FIGURES = {
    "size": lambda: figures.size_plot(figures.points_of("world_lite", found(), SHEET)[0], 12.5),
    "calibration": lambda: figures.calibration_plot(found()),
    "relations": lambda: figures.relations_plot(found(), SHEET, {"P36": "capital <of>"}),
}


@pytest.mark.parametrize("name", FIGURES)
def test_two_drawings_give_the_same_bytes_and_hold_no_date(name, tmp_path):
    first = draw.save(FIGURES[name](), tmp_path / "a" / name)
    second = draw.save(FIGURES[name](), tmp_path / "b" / name)
    for one, other in zip(first, second, strict=True):
        assert one.read_bytes() == other.read_bytes()
    svg = first[0].read_text()
    assert "<dc:date>" not in svg
    assert first[1].read_bytes()[:4] == b"\x89PNG"
    assert draw.INK in svg  # the report exchanges it for the ink of its theme


def test_drawing_leaves_the_settings_of_matplotlib_alone():
    import matplotlib

    before = matplotlib.rcParams["font.size"], matplotlib.rcParams["svg.hashsalt"]
    with draw.style("x"):
        assert matplotlib.rcParams["svg.hashsalt"] == "x"
    assert (matplotlib.rcParams["font.size"], matplotlib.rcParams["svg.hashsalt"]) == before


def test_kinds_differ_by_marker_and_controls_are_hollow():
    assert len({marker for _, marker in draw.KINDS.values()}) == len(draw.KINDS)
    (axes,) = FIGURES["size"]().axes
    drawn = [container.lines[0] for container in axes.containers]
    assert [line.get_marker() for line in drawn] == ["o", "s", "s", "s"]
    faces = [to_hex(line.get_markerfacecolor()) for line in drawn]
    assert faces[:2] == [draw.SURFACE] * 2
    assert faces[2] == draw.KINDS["causal"][0]
    assert axes.get_xscale() == "log"


def test_every_model_is_named_once_and_no_name_covers_another():
    figure = FIGURES["size"]()
    (axes,) = figure.axes
    notes = [text for text in axes.texts if isinstance(text, Annotation)]
    assert sorted(note.get_text() for note in notes) == [
        "control-causal",
        "control-masked",
        "smol",
        "smol-nobos",
    ]
    figure.draw_without_rendering()
    boxes = [note.get_tightbbox() for note in notes]
    widths = [note.get_window_extent() for note in notes if note.arrow_patch is None]
    assert all(box.width > 10 for box in boxes)
    for i, box in enumerate(widths):
        assert not any(box.overlaps(other) for other in widths[i + 1 :])


def test_names_show_only_what_tells_probes_apart():
    rows = [{"model": "smol", "benchmark": "world_lite", "prompt": "templates", "method": m,
             "paper": "bear", "group": ""} for m in ("sentence", "sentence-mean")]  # fmt: skip
    rows.append({**rows[0], "model": "other"})
    assert figures.names(found(), rows) == ["smol, sentence", "smol, sentence-mean", "other"]
    outside = number(found(taught=40.0), model="control-masked")
    assert figures.names(found(taught=40.0), [outside]) == ["control-masked (?)"]


def test_relations_are_named_and_ordered_by_accuracy():
    (axes,) = FIGURES["relations"]().axes
    labels = [tick.get_text() for tick in axes.get_yticklabels()]
    assert sorted(labels) == ["P1", "capital <of> (P36)"]
    heads = [re.sub(r"\s+", " ", tick.get_text()) for tick in axes.get_xticklabels()]
    assert heads[0] == "chance"
    assert heads[1].replace("- ", "-") == "control-masked"

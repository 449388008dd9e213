"""Figures: deterministic, without colour as the only difference, names told apart."""

import re

import pytest
from matplotlib.colors import to_hex
from matplotlib.text import Annotation

from kgprobe.tables import bear, bear_figures, draw, draw_size, table
from tests.unit.study_frames import benchmark, guesses, probe, study

FRAMES = benchmark({"P36": (["a", "b", "c"], ["a", "b", "c"]), "P1": (["a", "b"], ["a", "b"])})
PROBES = [
    probe("control-masked", parameters=1_000_000, source="control:masked"),
    probe("control-causal", parameters=1_100_000, kind="causal", bos="forced", source="control:x"),
    probe("smol", parameters=135_000_000, kind="causal", bos="forced"),
    probe("smol", parameters=135_000_000, kind="causal", bos="none"),
]
STUDY = study(FRAMES, [(p, guesses(FRAMES, 0.5, i)) for i, p in enumerate(PROBES)])


def calibrated():
    return table.build(
        table.cell("calibration", p.label, column, value, 10, (value / 2, value), paper="kgprobe")
        for p in PROBES[:2]
        for column, value in (
            ("taught", 95.0),
            ("untaught", 20.0),
            ("chance", 10.0),
            ("limit for untaught", 25.0),
            ("AUC", 0.9),
        )
    )


FIGURES = {
    "size": lambda: draw_size.size_plot(bear_figures.size([STUDY]), PROBES, 12.5),
    "calibration": lambda: draw.calibration_plot(calibrated(), PROBES),
    "relations": lambda: draw.relations_plot(
        bear.relations([STUDY]), PROBES, {"P36": "capital <of>"}
    ),
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
        "smol, BOS forced",
        "smol, BOS none",
    ]
    figure.draw_without_rendering()
    boxes = [note.get_tightbbox() for note in notes]
    widths = [note.get_window_extent() for note in notes if note.arrow_patch is None]
    assert all(box.width > 10 for box in boxes)
    for i, box in enumerate(widths):
        assert not any(box.overlaps(other) for other in widths[i + 1 :])


def test_names_show_only_what_tells_probes_apart():
    shown = draw.names(PROBES)
    assert shown[PROBES[0].label] == "control-masked"
    assert shown[PROBES[3].label] == "smol, BOS none"


def test_relations_are_named_and_ordered_by_accuracy():
    (axes,) = FIGURES["relations"]().axes
    labels = [tick.get_text() for tick in axes.get_yticklabels()]
    assert sorted(labels) == ["P1", "capital <of> (P36)"]
    heads = [re.sub(r"\s+", " ", tick.get_text()) for tick in axes.get_xticklabels()]
    assert heads[0] == "chance"
    assert heads[1].replace("- ", "-") == "control-masked"

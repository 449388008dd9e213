"""From files to studies, tables and figures."""

import polars as pl
import pytest

from kgprobe import schema
from kgprobe.tables import (
    bear_chapter,
    calibration,
    gather,
    gather_report,
    headline,
    published,
    table,
)
from kgprobe.tables.table import lookup
from tests.unit.study_frames import benchmark, guesses, scores

FRAMES = benchmark({"P36": (["a", "b", "c"], ["a", "b", "c"]), "P1": (["a", "b"], ["a", "b"])})
MODELS = {
    "control-masked": {
        "kind": "masked",
        "source": "control:masked",
        "dtype": "float32",
        "bos": "-",
        "published": "",
    },
    "smol": {"kind": "causal", "source": "gguf:x", "dtype": "float32", "bos": "forced"},
}


@pytest.fixture
def files(tmp_path):
    """A benchmark and two models' scores on disk."""
    contracts = {"items": schema.ITEMS, "candidates": schema.CANDIDATES, "prompts": schema.PROMPTS}
    for name, frame in FRAMES.items():
        schema.write(frame, contracts[name], tmp_path / "world_lite" / f"{name}.parquet")
    paths = []
    for seed, (model, size) in enumerate((("control-masked", 1_000_000), ("smol", None))):
        paths.append(tmp_path / f"{model}.parquet")
        record = {"model": {"parameters": size}} if size else {}
        frame = scores(guesses(FRAMES, 0.7, seed))
        schema.write(frame, schema.SCORES, paths[-1], record)
    rows = [
        {"benchmark": "world_lite", "prompt": "templates", "method": "sentence", "model": model}
        for model in MODELS
    ]
    return tmp_path, rows, paths


def test_a_run_becomes_tables_figures_and_a_report(files, tmp_path):
    folder, rows, paths = files
    probes = gather.probes(rows, MODELS, paths)
    assert [p.parameters for p in probes] == [1_000_000, None]
    assert probes[0].control
    assert probes[1].label == "smol | world_lite | sentence | BOS forced"
    made = gather.studies(probes, paths, {"world_lite": folder / "world_lite"})
    gold = dict(FRAMES["items"].select("item", pl.col("answers").list.first()).iter_rows())
    options = {(s, i): d for s, i, d in FRAMES["candidates"].select("set", "index", "id").rows()}
    facts = [(item, item.split("/")[0], gold[item]) for item in sorted(gold)]
    taught = pl.DataFrame(
        [
            (f"{item}/{options[r, g]}", r, item.split("/")[1], options[r, g], i % 2 == 0)
            for i, (item, r, g) in enumerate(facts)
        ],
        schema=dict(schema.TAUGHT.columns),
        orient="row",
    )
    tables = gather.tables(made, taught=taught)
    assert set(tables) == {
        "bear_models",
        "bear_relations",
        "bear_templates",
        "bear_differences",
        "bear_size",
        "calibration",
    }
    for name, frame in tables.items():
        schema.check(frame, schema.TABLE)
        assert frame["table"].unique().to_list() == [name]
    # the control model answers by chance: it is outside the requirement, and marked everywhere
    assert calibration.outside(tables["calibration"])[0].startswith("control-masked (?) | ")
    probes = calibration.signed(probes, tables["calibration"])
    assert [p.model for p in probes] == ["control-masked (?)", "smol"]
    for name, frame in tables.items():
        assert any("control-masked (?)" in text for text in [*frame["row"], *frame["column"]]), name
        assert not any("control-masked |" in text for text in [*frame["row"], *frame["column"]]), (
            name
        )
    drawn = list(gather.figures(probes, tables, {"P36": "capital"}))
    assert [d.name for d in drawn] == [
        "calibration",
        "bear_size_world_lite",
        "bear_relations_world_lite",
    ]
    shown = bear_chapter.Shown(probes, tables, [d.drawing() for d in drawn])
    parts = bear_chapter.chapter(shown).parts
    assert [len(part.drawings) for part in parts] == [1, 2]


def test_the_report_counts_the_calibration_probes_of_every_paper(files):
    """Tables of two papers; the models' own chapters do not matter."""
    folder, rows, paths = files
    made = gather.tables(gather.studies(gather.probes(rows, MODELS, paths), paths, at(folder)))
    tables = {
        "bear_models": made["bear_models"],
        "calibration": halves("calibration", "control-masked | world_lite | sentence", 97.0),
        "ontoprobe/ontoprobe_calibration": halves(
            "ontoprobe_calibration", "control-masked (?) (control) | onto_world | TP | soft", 47.0
        ),
    }
    results = folder / "results"
    for name, frame in tables.items():
        schema.write(frame, schema.TABLE, results / f"tables/{name}.parquet")
    top = results / "tables/headline.parquet"
    schema.write(headline.build(tables), schema.TABLE, top)
    page = results / "report/index.html"
    inputs = [results / "tables" / name for name in ("bear_models.parquet", "calibration.parquet")]
    answers = [results / path.name for path in paths]
    for path, copy in zip(paths, answers, strict=True):
        copy.write_bytes(path.read_bytes())
    gather_report.make(
        page, str(top), [*map(str, inputs), str(results / "tables/ontoprobe")],
        list(map(str, answers)), [], [], rows, MODELS, {},
    )  # fmt: skip
    html = page.read_text(encoding="utf-8")
    assert "is met by 1 of 2 control probes; not by OntoProbe: control-masked (control) | " in html
    assert "control-masked (?)" in html


def halves(name, row, taught):
    shares = (taught, 50, None), (6.0, 50, None)
    return table.build(calibration.cells(name, row, *shares, chance=1.0))


def test_tables_are_the_same_whatever_the_order_of_the_files_rows(files):
    folder, rows, paths = files
    first = gather.tables(gather.studies(gather.probes(rows, MODELS, paths), paths, at(folder)))
    for path in paths:
        frame = schema.read(path, schema.SCORES).sample(fraction=1, shuffle=True, seed=3)
        frame.write_parquet(path)
    again = gather.tables(gather.studies(gather.probes(rows, MODELS, paths), paths, at(folder)))
    for name in ("bear_models", "bear_relations", "bear_templates"):
        assert first[name].equals(again[name])


def test_published_points_stand_beside_comparable_benchmarks_only(files):
    folder, rows, paths = files
    paper = published.Published(
        pl.DataFrame(
            [("gpt2", "causal", 137, 2019, 13.49, 0.5, "paper", "none")],
            schema=published.LEADERBOARD,
            orient="row",
        ),
        pl.DataFrame(schema=published.REMEASURED),
    )

    def size_caption(name):
        (folder / name).exists() or (folder / name).symlink_to(folder / "world_lite")
        own = [{**row, "benchmark": name} for row in rows]
        probes = gather.probes(own, MODELS, paths)
        made = gather.studies(probes, paths, {name: folder / name})
        drawn = gather.figures(probes, gather.tables(made, paper))
        return next(d.caption for d in drawn if d.name == f"bear_size_{name}")

    assert "published" not in size_caption("world_lite")
    assert "published" in size_caption("bear_released")


def test_cardinality_and_domains_come_from_the_relations_file(files):
    folder, rows, paths = files
    info = pl.DataFrame(
        {
            "relation": ["P36", "P1"],
            "cardinality": ["1:N", "1:N"],
            "domains": [["Geographic"], ["Arts"]],
            "title": ["capital", "x"],
        }
    )
    info.write_parquet(folder / "world_lite" / "relations.parquet")
    made = gather.studies(gather.probes(rows, MODELS, paths), paths, at(folder))
    tables = gather.tables(made)
    assert "Geographic" in tables["bear_domains"]["row"]
    assert ("random | world_lite", "1:1") not in lookup(tables["bear_models"])


def test_one_model_under_one_template_has_every_part_that_applies(files, tmp_path):
    folder, rows, paths = files
    alone = tmp_path / "smol.parquet"
    schema.write(schema.read(alone, schema.SCORES).filter(template=0), schema.SCORES, alone)
    probes = gather.probes(rows[1:], MODELS, paths[1:])
    made = gather.studies(probes, paths[1:], at(folder))
    tables = gather.tables(made)
    assert set(tables) == {"bear_models", "bear_relations", "bear_templates"}
    drawn = list(gather.figures(probes, tables))
    assert [d.name for d in drawn] == ["bear_relations_world_lite"]
    shown = bear_chapter.Shown(probes, tables, [d.drawing() for d in drawn])
    (part,) = bear_chapter.chapter(shown).parts
    assert part.grids
    assert not part.folded
    for grid in part.grids:
        assert grid.rows, grid.title
    top = lookup(headline.build(tables))
    assert {column for _, column in top} == {"accuracy", "chance"}


def at(folder):
    return {"world_lite": folder / "world_lite"}

"""From files to studies, tables and figures."""

import shutil
from types import SimpleNamespace

import polars as pl
import pytest

from kgprobe import schema
from kgprobe.tables.answers import probes_of
from kgprobe.tables.bear import figures, make, published, section
from kgprobe.tables.report import gather as gather_report
from kgprobe.tables.report import headline, marks, validity
from kgprobe.tables.report.section import Section
from kgprobe.tables.results import Number, frame, read
from tests.unit.study_frames import (
    benchmark,
    guesses,
    number,
    scores,
    training_facts,
    write_benchmark,
)

FRAMES = benchmark({"P36": (["a", "b", "c"], ["a", "b", "c"]), "P1": (["a", "b"], ["a", "b"])})
MODELS = {
    "control-masked": {
        "kind": "masked", "source": "control:masked", "dtype": "float32", "bos": "-",
        "published": "",
    }, "smol": {"kind": "causal", "source": "gguf:x", "dtype": "float32", "bos": "forced"},
}  # fmt: skip


@pytest.fixture
def files(tmp_path):
    """Write a benchmark and two models' scores to disk."""
    write_benchmark(FRAMES, tmp_path / "world_lite")
    paths = []
    for seed, (model, size) in enumerate((("control-masked", 1_000_000), ("smol", None))):
        paths.append(tmp_path / f"{model}.parquet")
        record = {"model": {"parameters": size}} if size else {}
        answers = scores(guesses(FRAMES, 0.7, seed))
        schema.write(answers, schema.SCORES, paths[-1], record)
    rows = [
        {"benchmark": "world_lite", "prompt": "templates", "method": "sentence", "model": model}
        for model in MODELS
    ]
    return tmp_path, rows, paths


def made(folder, rows, paths, names=("world_lite",), published=None, **options):
    """Return RESULTS of the files."""
    probes = probes_of(rows, MODELS, paths)
    studies = make.studies(probes, paths, {name: folder / name for name in names}, **options)
    return frame("bear", [*make.estimates(studies, published), *marks.estimates(rows, paths)])


def test_a_run_becomes_results_figures_and_a_section(files):
    folder, rows, paths = files
    probes = probes_of(rows, MODELS, paths)
    assert [p.parameters for p in probes] == [1_000_000, None]
    assert probes[0].control
    flags = {item: i % 2 == 0 for i, item in enumerate(sorted(FRAMES["items"]["item"]))}
    found = made(folder, rows, paths, facts=training_facts(FRAMES, flags))
    # the control model answers by chance: it fails the requirement and is marked everywhere
    assert number(found, "valid", model="control-masked")["value"] == 0
    sign = marks.signs(found)
    signs = {row["model"]: sign(row) for row in found.filter(metric="accuracy").rows(named=True)}
    assert signs == {"control-masked": " (?)", "smol": "", "random": "", "majority": ""}
    drawn = list(figures.figures(found, MODELS, {"P36": "capital"}))
    assert [d.name for d in drawn] == [
        "bear_size_world_lite", "bear_relations_world_lite", "bear_reliability_world_lite",
        "bear_slice_frequency_world_lite", "bear_slice_facts_world_lite",
    ]  # fmt: skip
    parts = section.arranged(found, MODELS, {}, {}, drawn)
    assert [len(part.drawings) for part in parts] == [5]


def test_the_report_counts_the_calibration_probes_of_every_paper(files):
    """Uses RESULTS of two papers; the models' other sections do not matter."""
    folder, rows, paths = files
    of = Number(metric="", n=0, model="control-masked")
    fractions = {"bear": ("world_lite", 97.0), "ontoprobe": ("onto_world", 47.0)}
    results = folder / "results"
    inputs, judged = [], str(results / "judged/bear.parquet")
    studies = make.studies(probes_of(rows, MODELS, paths), paths, at(folder))
    schema.write(make.judged_answers(studies), schema.JUDGED, judged)
    for paper, (benchmark_, trained_on) in fractions.items():
        numbers = validity.estimates(
            of.but(benchmark=benchmark_), {"value": trained_on, "n": 50}, {"value": 6.0, "n": 50},
            1.0, is_control=True,
        )  # fmt: skip
        own = make.estimates(studies) if paper == "bear" else []
        inputs.append(str(results / f"tables/{paper}.parquet"))
        schema.write(frame(paper, [*own, *numbers]), schema.RESULTS, inputs[-1])
    answers = [results / path.name for path in paths]
    for path, copy in zip(paths, answers, strict=True):
        copy.write_bytes(path.read_bytes())
    page = results / "report/index.html"
    asked = results / "benchmarks/world_lite"
    shutil.copytree(folder / "world_lite", asked)
    questions = [str(asked / "items.parquet")]
    experiments = [{"paper": "bear", **row} for row in rows]
    given = {"results": inputs, "answers": [*map(str, answers)], "judged": [judged],
             "questions": questions}  # fmt: skip
    lacking = dict.fromkeys(("tables", "sections", "measured", "allows", "names", "validity"), ())
    params = {"experiments": experiments, "models": MODELS, "descriptions": {}, "configs": ()}
    run = SimpleNamespace(
        input=SimpleNamespace(**given, **lacking), params=SimpleNamespace(**params),
        output=SimpleNamespace(page=str(page)), config={},
    )  # fmt: skip
    claims = Section("claims", "Claims", "", ["None."])
    gather_report.make(run, read(inputs), schema.read(judged, schema.JUDGED), claims)
    html = (page.parent / "pages/validity.html").read_text(encoding="utf-8")
    assert "snakemake --cores all -- " in html
    assert 'href="../index.html"' in html
    questions_page = (page.parent / "pages/bear-questions.html").read_text(encoding="utf-8")
    assert "right at 1 of 3" in questions_page
    assert "is met by 1 of 2 control probes" in html
    assert "onto_world, control-masked" in html
    assert " (?)" in html


def test_results_do_not_depend_on_the_row_order_of_files(files):
    folder, rows, paths = files
    first = made(folder, rows, paths)
    for path in paths:
        shuffled = schema.read(path, schema.SCORES).sample(fraction=1, shuffle=True, seed=3)
        shuffled.write_parquet(path)
    again = made(folder, rows, paths)
    asked = pl.col("metric") != "parameters"  # told by the record, which is lost
    assert first.filter(asked).equals(again.filter(asked))


def test_published_points_are_shown_for_comparable_benchmarks_only(files):
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
        drawn = figures.figures(made(folder, own, paths, [name], published=paper), MODELS, {})
        return next(d.caption for d in drawn if d.name == f"bear_size_{name}")

    assert "published" not in size_caption("world_lite")
    assert "published" in size_caption("bear_released")


def test_cardinality_and_domains_come_from_the_relations_file(files):
    folder, rows, paths = files
    info = pl.DataFrame(
        {"relation": ["P36", "P1"], "cardinality": ["1:N", "1:N"],
         "domains": [["Geographic"], ["Arts"]], "title": ["capital", "x"]},
    )  # fmt: skip
    info.write_parquet(folder / "world_lite" / "relations.parquet")
    found = made(folder, rows, paths)
    assert number(found, model="smol", slice="domain: Geographic")["n"] == 3
    assert "1:N" in found["slice"]
    assert "1:1" not in found["slice"]


def test_one_model_with_one_template_has_every_applicable_part(files, tmp_path):
    folder, rows, paths = files
    alone = tmp_path / "smol.parquet"
    schema.write(schema.read(alone, schema.SCORES).filter(template=0), schema.SCORES, alone)
    found = made(folder, rows[1:], paths[1:])
    models = {"smol": MODELS["smol"]}
    drawn = list(figures.figures(found, models, {}))
    assert [d.name for d in drawn] == [
        "bear_relations_world_lite",
        "bear_reliability_world_lite",
        "bear_slice_frequency_world_lite",
    ]
    (part,) = section.arranged(found, models, {}, {}, drawn)
    titles = [g.title for g in part.grids]
    assert titles[:2] == ["Accuracy by model", "Accuracy under other aggregations"]
    assert "Accuracy by relation" in titles
    assert [g.title for g in part.folded] == [
        "Calibration of the option probabilities",
        "Preferences that are not knowledge: one option of a relation, short or long options",
        "Aggregations with permuted and with skewed gold answers",
    ]
    for grid in part.grids:
        assert grid.rows, grid.title
    assert "smol" in headline.text(found)


def at(folder):
    return {"world_lite": folder / "world_lite"}

"""A model whose tokenizer is not its own is marked at every number, in every paper's tables."""

from pathlib import Path

import polars as pl
import pytest

from kgprobe import schema
from kgprobe.benchmarks import ontoprobe_modes
from kgprobe.tables import (
    attributes_study,
    autoprompt_gather,
    autoprompt_prompts,
    bear_chapter,
    chapter,
    choices,
    gather,
    gather_report,
    grid,
    headline,
    marks,
    ontoprobe_gather,
    report,
)
from kgprobe.tables.chapter import Chapter
from tests.unit import attribute_answers, test_ontoprobe_tables, test_tables_choices
from tests.unit.prompt_outcomes import examples, outcomes
from tests.unit.study_frames import benchmark, guesses, scores

#: own tokenizer, another's, a server that tells nothing, answers from before this was measured
RECORDS = {
    "own": {"sound": {"plain": 5.1, "shuffled": 9.1, "unknown": 0.0, "belongs": True}},
    "other": {"sound": {"plain": 11.5, "shuffled": 11.6, "unknown": 0.0, "belongs": False}},
    "short": {"sound": {"count": 0, "belongs": None}},
    "server": {},
}
MODELS = {
    name: {"kind": "causal", "source": f"hub:{name}", "dtype": "float32", "bos": "none"}
    for name in RECORDS
}
FRAMES = benchmark({"P36": (["a", "b", "c"], ["a", "b", "c"]), "P1": (["a", "b"], ["a", "b"])})


def answers(folder: Path, contract: schema.Contract, frame: pl.DataFrame) -> list[Path]:
    """The same answers of each model, with its record."""
    paths = [folder / f"{name}.parquet" for name in RECORDS]
    for path in paths:
        schema.write(frame, contract, path, {"model": RECORDS[path.stem]})
    return paths


def rows(**more: str) -> list[dict[str, str]]:
    return [{"prompt": "templates", "model": name, **more} for name in RECORDS]


SHOWN = ["own", "other (!)", "short", "server"]


@pytest.fixture
def bear(tmp_path):
    """Rows, files and the folder of BEAR's benchmark."""
    contracts = {"items": schema.ITEMS, "candidates": schema.CANDIDATES, "prompts": schema.PROMPTS}
    for name, frame in FRAMES.items():
        schema.write(frame, contracts[name], tmp_path / "world_lite" / f"{name}.parquet")
    paths = answers(tmp_path, schema.SCORES, scores(guesses(FRAMES, 0.7, 0)))
    return rows(benchmark="world_lite", method="sentence"), paths, tmp_path / "world_lite"


def test_the_shown_name_follows_the_record(bear):
    sheet, paths, _ = bear
    assert marks.names(sheet, paths) == dict(zip(RECORDS, SHOWN, strict=True))
    # one file is enough: a second row of a model whose file tells nothing changes nothing
    twice = marks.names([*sheet, {"model": "other"}], [*paths, paths[-1]])
    assert twice["other"] == "other (!)"


def test_bear_the_report_and_the_headline_carry_the_mark(bear, capsys):
    sheet, paths, folder = bear
    probes = gather.probes(sheet, MODELS, paths)
    assert [p.model for p in probes] == SHOWN
    tables = gather.tables(gather.studies(probes, paths, {"world_lite": folder}))
    for name, frame in tables.items():
        labels = {*frame["row"], *frame["column"]}
        assert any("other (!) | " in label for label in labels), name
        assert not any("other | " in label for label in labels), name
    top = headline.build(tables)
    said = headline.text(top)
    assert "other (!), sentence" in said
    assert marks.NOTE in said
    shown = gather_report._models(sheet, MODELS, paths)
    assert [(m["model"], m["plain"]) for m in shown] == list(
        zip(SHOWN, (5.1, 11.5, "", ""), strict=True)
    )
    chapter.write(bear_chapter.chapter(bear_chapter.Shown(probes, tables)), folder / "bear.json")
    chapters = [chapter.read(folder / "bear.json")]
    page = report.Report(probes, top, {}, shown, [], {}, chapters)
    html = report.render(page)
    assert "other (!)" in html
    assert html.count("no likelier than the same words shuffled") >= 2  # headline and benchmark


def test_without_such_a_model_there_is_no_note(bear):
    sheet, paths, folder = bear
    probes = gather.probes(sheet[:1], MODELS, paths[:1])
    tables = gather.tables(gather.studies(probes, paths[:1], {"world_lite": folder}))
    top = headline.build(tables)
    assert "(!)" not in headline.text(top)
    made = bear_chapter.chapter(bear_chapter.Shown(probes, tables))
    chapter.write(made, folder / "bear.json")
    chapters = [chapter.read(folder / "bear.json")]
    assert "(!)" not in report.render(report.Report(probes, top, {}, [], [], {}, chapters))


@pytest.mark.parametrize("place", ["grids", "folded"])
def test_a_chapter_that_shows_the_mark_explains_it(tmp_path, place):
    made = grid.records("t", [{"model": "other (!)", "value": 3}])
    chapter.write(Chapter("n", "T", "lead", ["a note"], **{place: [made]}), tmp_path / "c.json")
    assert chapter.read(tmp_path / "c.json").notes == ["a note", marks.NOTE]
    plain = grid.records("t", [{"model": "own", "value": 3}])
    chapter.write(Chapter("n", "T", "lead", ["a note"], **{place: [plain]}), tmp_path / "c.json")
    assert chapter.read(tmp_path / "c.json").notes == ["a note"]


def test_ontoprobe_carries_the_mark_and_keeps_the_printed_values(tmp_path):
    items = test_ontoprobe_tables.make_items()
    folder = tmp_path / "onto_released"
    schema.write(items, schema.ITEMS, folder / "items.parquet")
    paths = answers(tmp_path, schema.RANKS, test_ontoprobe_tables.make_ranks(items))
    sheet = rows(benchmark="onto_released", method="cloze")
    switches = ontoprobe_modes.resolve("default")
    (found,) = ontoprobe_gather.answered(
        sheet, MODELS, list(map(str, paths)), {"onto_released": folder}, switches
    )
    assert [a.label for a in found] == SHOWN
    assert [a.published for a in found] == list(RECORDS)


def test_multiple_choice_carries_the_mark(tmp_path):
    made = test_tables_choices.answered()
    questions = tmp_path / "choices.parquet"
    schema.write(made.questions, schema.CHOICES, questions)
    paths = answers(tmp_path, schema.CHOSEN, made.chosen)
    found = choices.answered(
        rows(benchmark="onto_world"), MODELS, [str(questions)] * 4, list(map(str, paths))
    )
    assert [a.label for a in found] == [f"{name} | onto_world" for name in SHOWN]


def test_autoprompt_carries_the_mark(tmp_path):
    frame = examples({"P36": {"train": 1, "test": 2}})
    schema.write(frame, schema.EXAMPLES, tmp_path / "examples.parquet")
    paths = answers(tmp_path, schema.OUTCOMES, outcomes(frame, {"P36": [1, 2]}, "manual"))
    sheet = [{**row, "prompt": "manual"} for row in rows(benchmark="auto_world")]
    found = autoprompt_gather.answered(sheet, MODELS, paths, {"auto_world": tmp_path})
    assert [a.label for a in found] == [f"{name} | manual" for name in SHOWN]
    assert [a.published for a in found] == list(RECORDS)
    folder = tmp_path / "searched" / "auto_world" / "other"
    folder.mkdir(parents=True)
    (folder / "P36.json").write_text("{}")
    (prompt,) = autoprompt_prompts.read([folder], marks.names(sheet, paths))
    assert prompt.model == "other (!)"


def test_the_nine_attributes_carry_the_mark(bear):
    sheet, paths, _ = bear
    probes = gather.probes([{**r, "benchmark": "symmetry"} for r in sheet], MODELS, paths)
    made = attribute_answers.study()
    own = attributes_study.Answers(probes[1], made.answers[0].alphas)
    named = attributes_study.triples(own, made.benchmarks["symmetry"])
    assert named.height > 0
    assert set(named["model"]) == {"other (!)"}

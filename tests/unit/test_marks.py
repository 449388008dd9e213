"""A model with a substitute tokenizer is marked at every number, in every paper's tables."""

from pathlib import Path

import polars as pl
import pytest

from kgprobe import schema
from kgprobe.cli import screen
from kgprobe.metrics.intervals import wilson
from kgprobe.tables import results
from kgprobe.tables.answers import probes_of
from kgprobe.tables.autoprompt import make as autoprompt_make
from kgprobe.tables.autoprompt import numbers as autoprompt_numbers
from kgprobe.tables.autoprompt import section as autoprompt_section
from kgprobe.tables.bear import make as make_bear
from kgprobe.tables.bear import section as bear_section
from kgprobe.tables.report import gather as gather_report
from kgprobe.tables.report import grid, headline, marks, overview, pages, section
from kgprobe.tables.report.section import Section
from kgprobe.tables.results import Number, frame
from kgprobe.tables.views import View
from tests.unit.prompt_outcomes import examples, outcomes
from tests.unit.study_frames import benchmark, guesses, scores, write_benchmark

#: own tokenizer, another's, a server without the field, answers older than the field
RECORDS = {
    "own": {"completeness": {"plain": 5.1, "shuffled": 9.1, "unknown": 0.0, "belongs": True}},
    "other": {"completeness": {"plain": 11.5, "shuffled": 11.6, "unknown": 0.0, "belongs": False}},
    "short": {"completeness": {"count": 0, "belongs": None}},
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
    """Return rows, files and the folder of BEAR's benchmark."""
    write_benchmark(FRAMES, tmp_path / "world_lite")
    paths = answers(tmp_path, schema.SCORES, scores(guesses(FRAMES, 0.7, 0)))
    return rows(benchmark="world_lite", method="sentence"), paths, tmp_path / "world_lite"


def test_completeness_follows_the_record(bear):
    experiments, paths, _ = bear
    expected = {"own": 1, "other": 0}
    assert {n.model: n.value for n in marks.estimates(experiments, paths)} == expected
    # one file is enough: a second row whose file lacks the field changes nothing
    twice = marks.estimates([*experiments, {"model": "other"}], [*paths, paths[-1]])
    assert {n.model: n.value for n in twice} == expected


def of_bear(experiments, paths, folder):
    probes = probes_of(experiments, MODELS, paths)
    studies = make_bear.studies(probes, paths, {"world_lite": folder})
    return frame("bear", [*make_bear.estimates(studies), *marks.estimates(experiments, paths)])


def paged(results, experiments, shown, folder):
    """Return the pages of the report with BEAR's section."""
    models = {row["model"]: MODELS[row["model"]] for row in experiments}
    parts = bear_section.arranged(results, models, {}, {})
    section.write(Section("bear", "BEAR", "Lead.", parts=parts), folder / "bear.json")
    sections = [section.read(folder / "bear.json")]
    return pages.render(pages.Report("r", results, models, {}, shown, experiments, {}, sections))


def test_bear_the_report_and_the_headline_carry_the_mark(bear):
    experiments, paths, folder = bear
    results = of_bear(experiments, paths, folder)
    complete = results.filter(metric="weights complete").select("model", "value").rows()
    assert dict(complete) == {"own": 1.0, "other": 0.0}
    sign = marks.signs(results)
    assert {row["model"] for row in results.iter_rows(named=True) if sign(row)} == {"other"}
    assert {sign(row) for row in results.filter(model="other").iter_rows(named=True)} == {" (!)"}
    said = headline.text(results)
    assert all(("(!)" in line) == line.startswith("other") for line in said.splitlines()[:8])
    assert marks.NOTE in said
    shown = gather_report._models(experiments, MODELS, paths)
    assert [m["model"] for m in shown] == SHOWN
    assert [m["plain"] for m in shown] == [5.1, 11.5, "", ""]
    made = paged(results, experiments, shown, folder)
    for name in ("index", "pages/bear", "pages/models"):
        assert "no more likely than the same words shuffled" in made[f"{name}.html"], name


def test_without_such_a_model_there_is_no_note(bear):
    experiments, paths, folder = bear
    results = of_bear(experiments[:1], paths[:1], folder)
    assert "(!)" not in headline.text(results)
    shown = gather_report._models(experiments[:1], MODELS, paths[:1])
    assert "(!)" not in "".join(paged(results, experiments[:1], shown, folder).values())


@pytest.mark.parametrize("place", ["grids", "folded"])
def test_a_section_that_shows_the_mark_explains_it(tmp_path, place):
    made = grid.records("t", [{"model": "other (!)", "value": 3}])
    section.write(Section("n", "T", "lead", ["a note"], **{place: [made]}), tmp_path / "c.json")
    assert section.read(tmp_path / "c.json").notes == ["a note", marks.NOTE]
    plain = grid.records("t", [{"model": "own", "value": 3}])
    section.write(Section("n", "T", "lead", ["a note"], **{place: [plain]}), tmp_path / "c.json")
    assert section.read(tmp_path / "c.json").notes == ["a note"]


def test_autoprompt_carries_the_mark(tmp_path):
    frame = examples({"P36": {"train": 1, "test": 2}})
    schema.write(frame, schema.EXAMPLES, tmp_path / "examples.parquet")
    paths = answers(tmp_path, schema.OUTCOMES, outcomes(frame, {"P36": [1, 2]}, "manual"))
    experiments = rows(benchmark="auto_world", method="predict", prompt="manual")
    found = autoprompt_numbers.answered(experiments, MODELS, paths, {"auto_world": tmp_path})
    assert [a.probe.model for a in found] == list(RECORDS)
    made = [*autoprompt_make.measure(found, [], {}), *marks.estimates(experiments, paths)]
    page = autoprompt_section.section(results.frame("autoprompt", made), MODELS, {}, "default")
    checked = set()
    for shown in page.grids:
        for row in shown.rows:
            for head, cell in zip(shown.heads, row, strict=True):
                model = {*head.split(", "), *(c.text for c in row)} & set(RECORDS)
                if cell.hint and model:
                    assert ("(!)" in cell.text) == (model == {"other"}), (shown.title, head)
                    checked |= model
    assert checked == set(RECORDS)


def of_sizes(most: int, **changed) -> pl.DataFrame:
    """RESULTS of a benchmark each for n of 0 to `most`; of n = 0 no rows were counted."""
    of = Number(metric="accuracy", model="m", prompt="templates", method="sentence", value=50.0)
    return frame("bear", [of.but(benchmark=f"b{n}", n=n, **changed) for n in range(most + 1)])


def marked(shown: grid.Grid) -> int:
    return sum(cell.text.count("†") for row in shown.rows for cell in row)


def test_sizes_from_1_to_19_are_marked_everywhere(capsys):
    own = of_sizes(60)
    below = len([n for n in range(61) if n in range(1, 20)])
    assert headline.text(own).count("50.0 †") == below == 19
    assert headline.text(own).count("†: fewer than 20 rows, or") == 1
    assert marked(grid.of_view(View("all", "All", {}, rows=["benchmark"]), own)) == below
    assert marked(grid.of_rows("Figure", own)) == below
    assert marked(overview.matrix(own, {"m": MODELS["own"]})) == below
    screen.table(own.select("value", "n").to_dicts())
    printed = capsys.readouterr().out
    assert sum(line.endswith(" †") for line in printed.splitlines()) == below
    assert printed.splitlines()[-1].startswith("†: fewer than 20 rows")


def test_counts_and_numbers_over_enough_rows_are_not_marked(capsys):
    counts = View("all", "All", {}, rows=["benchmark"], usual=0)
    assert marked(grid.of_view(counts, of_sizes(60))) == 0
    enough = of_sizes(40).filter(pl.col("n") >= 20)
    assert "†" not in headline.text(enough)
    screen.table(enough.select("value", "n").to_dicts())
    assert "†" not in capsys.readouterr().out
    # the interval that the least is chosen by
    half = wilson(marks.FEWEST / 2, marks.FEWEST)
    assert round(100 * (half[1] - half[0])) == 40


def test_a_mark_in_a_figure_or_sentence_has_its_note_once():
    few, plain = (of_sizes(n).filter(n=n) for n in (19, 20))
    for rows, notes in ((few, [marks.FEW_NOTE]), (plain, [])):
        figure = section.Drawing("p", "f", "F", "C", {}, data=grid.of_rows("F", rows))
        made = section.noted(Section("p", "P", "", drawings=[figure]))
        assert made.notes == notes
        assert section.noted(made).notes == notes
    assert section.noted(Section("p", "P", ""), "20.0 † points").notes == [marks.FEW_NOTE]


def test_a_fraction_of_few_is_marked_whatever_the_number_of_examples():
    """The attributes' metrics are defined only on examples whose first part is right."""
    of = of_sizes(40).filter(n=40)
    shown = []
    for above, below in ((1.0, 19.5), (1.0, 20.0), (None, 5.0)):
        types = {"numerator": above, "denominator": below}
        own = of.with_columns(pl.lit(v, pl.Float64).alias(k) for k, v in types.items())
        shown.append([marks.few(row) for row in own.rows(named=True)])
    assert shown == [[" †"], [""], [""]]


def test_a_specific_verdict_takes_precedence_over_the_probe_s():
    own = {"benchmark": "onto_world", "model": "m", "prompt": "templates", "method": "cloze"}
    verdicts = [("", 0), ("TP", 1), ("SCO", 0)]
    numbers = [Number(metric="valid", group=g, value=v, n=9, **own) for g, v in verdicts]
    numbers += [Number(metric="R@1", group=g, value=1, n=9, **own) for g in ("TP", "SCO", "DM")]
    numbers += [Number(metric="R@1", value=1, n=9, **{**own, "model": "other"})]
    found = frame("ontoprobe", numbers)
    sign = marks.signs(found)
    shown = [(r["group"], sign(r)) for r in found.filter(metric="R@1").iter_rows(named=True)]
    assert shown == [("TP", ""), ("SCO", " (?)"), ("DM", " (?)"), ("", "")]

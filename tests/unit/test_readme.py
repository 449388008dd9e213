"""README.md is what the committed measurements make of its template, and nothing else."""

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from kgprobe.tables import results
from kgprobe.tables.report import measured
from kgprobe.tables.results import Number
from perf import readme

ROOT = Path(__file__).parents[2]
#: numbers of the template that nobody measured: versions, licences, what is asked or defined
SAID = {"3.11", "1.0", "2.0"}
DEFINED = {"90 %", "95 %", "99 %"}


def test_the_readme_is_made_of_the_committed_measurements():
    made = readme.pages(ROOT)
    assert set(made) == {"README.md", "docs/measured.md"} | {
        f"docs/{name}.svg" for name in ("results", "sizes", "page_cost")
    }
    for name, text in made.items():
        assert text == (ROOT / name).read_text(), f"{name}: make readme"


def test_nobody_typed_a_measured_number_into_the_template():
    text = "".join((ROOT / template).read_text() for template in readme.PAGES)
    # a study made once, whose numbers stand as text
    text = re.sub(r"How often a fact must be seen.*?exposures\.svg", "", text, flags=re.DOTALL)
    prose = re.sub(r"\{\{.*?\}\}|\{%.*?%\}", "", text)
    assert text.count("{{") > 50
    assert set(re.findall(r"\d+\.\d+", prose)) == SAID
    assert set(re.findall(r"[\d.]+ %", prose)) == DEFINED


def test_the_readme_is_short_and_what_it_points_at_is_there():
    text = (ROOT / "README.md").read_text()
    assert len(text.split()) <= 1200
    pictures = re.findall(r"!\[[^\]]+\]\(([^)]+)\)", text)
    assert pictures == ["docs/flow.svg", "docs/results.svg"]
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    assert len(pages) > 8
    for page in pages:
        for link in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
            assert (page.parent / link).exists(), (page.name, link)


def test_the_pictures_are_whole_and_load_nothing():
    for name in ("flow", "results", "exposures", "sizes", "page_cost"):
        text = (ROOT / f"docs/{name}.svg").read_text()
        root = ElementTree.fromstring(text)
        assert root.get("viewBox")
        assert not re.search(r"<script|<image|href=\"(?!#)", text)
    # text is text, not paths
    assert "untaught facts" in (ROOT / "docs/results.svg").read_text()


def test_every_file_says_where_its_numbers_come_from():
    files = sorted((ROOT / readme.MEASURED).glob("*.tsv"))
    assert [f.stem for f in files] == [
        "bench",
        "embedded",
        "inferences",
        "measured",
        "real",
    ]
    for file in files:
        run = readme.read(file)
        assert run.rows
        assert all(run.told[key] for key in ("run", "commit", "date", "processor", "command"))
        assert run.told["run"] == file.stem


NUMBERS = [
    Number(metric="accuracy", benchmark="b", model=model, method="sentence", value=value, n=n,
           slice=part, setting=setting)
    for model, value, n, part, setting in [
        ("one", 41.26, 50, "", {}),
        ("one", 10.0, 3, "few", {}),
        ("one", 50.0, 50, "", {"template": 1}),
        ("two", None, 0, "", {}),
    ]
]  # fmt: skip
MODEL = {"benchmark": "b", "model": "one", "metric": "accuracy"}


@pytest.fixture
def run():
    frame = results.frame("bear", [*NUMBERS, Number(metric="sound", model="two", value=0, n=0)])
    return readme.of_results("mine", frame, {"run": "mine"})


def test_a_number_is_found_by_its_dimensions_and_carries_its_signs(run):
    assert run(**MODEL) == "41.3"
    assert run(digits=2, **MODEL) == "41.26"
    assert run.value(slice="few", **MODEL) == "10.0 †"
    assert run(template=1, **MODEL) == "50.0"
    assert run(**{**MODEL, "model": "two"}) == "undef (!)"
    assert (run.n(**MODEL), run.fraction(**MODEL)) == ("50", "undef")


@pytest.mark.parametrize("asked", [{"metric": "MRR"}, {"model": "three"}, {"template": 2}])
def test_what_is_not_there_is_an_error(run, asked):
    with pytest.raises(readme.ReadmeError, match="run mine: 0 numbers with"):
        run(**{**MODEL, **asked})


def test_several_numbers_at_once_are_an_error():
    numbers = [Number(metric="AUC", prompt=p, value=1, n=9) for p in ("a", "b")]
    two = readme.of_results("mine", results.frame("bear", numbers), {})
    with pytest.raises(readme.ReadmeError, match="2 numbers with"):
        two(metric="AUC")
    assert two(metric="AUC", prompt="b") == "1.0 †"


def test_an_extract_comes_back_as_it_was_and_an_old_one_is_refused(tmp_path, run):
    path = tmp_path / "mine.tsv"
    run(**MODEL)
    run.value(**{**MODEL, "model": "two"})
    measured.write(path, [*run.used, *run.rows[4:]], {"run": "mine", "date": "today"})
    again = readme.read(path)
    assert again(**MODEL) == "41.3"
    assert again(**{**MODEL, "model": "two"}) == "undef (!)"
    assert again.told == {"run": "mine", "date": "today"}
    assert len(again.rows) == 3
    path.write_text(path.read_text().replace("\tslice\t", "\tpart\t"))
    with pytest.raises(readme.ReadmeError, match="columns are not paper, benchmark"):
        readme.read(path)
    with pytest.raises(readme.ReadmeError, match=r"no .*absent.tsv: make measured RUN=absent"):
        readme.read(tmp_path / "absent.tsv")


def test_a_page_that_differs_fails_the_check(tmp_path, run, monkeypatch, capsys):
    (tmp_path / "docs").mkdir()
    (tmp_path / "resources/measured").mkdir(parents=True)
    asked = 'benchmark="b", model="one", metric="accuracy"'
    (tmp_path / "docs/README.md.in").write_text("Right: {{ run('mine')(" + asked + ") }} %.\n")
    run(**MODEL)
    measured.write(tmp_path / "resources/measured/mine.tsv", run.used, {"run": "mine"})
    monkeypatch.chdir(tmp_path)
    assert readme.main(["write"]) == readme.main(["check"]) == 0
    assert (tmp_path / "README.md").read_text() == "Right: 41.3 %.\n"
    (tmp_path / "README.md").write_text("Right: 44.0 %.\n")
    assert readme.main(["check"]) == 1
    assert "make readme" in capsys.readouterr().err

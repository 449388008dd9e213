"""Any table runs to its report: every kind of row is planned alone, and one of each runs alone."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from kgprobe.experiments import METHODS_OF_PAPER
from tests.unit.tiny_models import save, tiny
from tests.workflow.outline import Outline, hollow
from tests.workflow.project import Project, our_rows

pytestmark = pytest.mark.nightly(gate=[
    "mini/test_run.py", "workflow/test_plans.py::test_a_row_alone_is_planned_up_to_the_report",
])  # fmt: skip

#: table -> the configs that it is run with here; the real one's rows are planned with the full
#: config, whose data are downloaded, so that no plan needs data on disk
TABLES = {
    "experiments.embedded.tsv": ["config/embedded.yaml"],
    "experiments.tsv": ["config/config.yaml"],
    "experiments.real.tsv": ["config/config.yaml"],
}
#: valid rows of kinds in no table of the project
MORE = [
    "autoprompt\tauto_lama\ttransferred\tpredict\tbert-base-cased",
    "attributes\tsymmetry\ttemplates\tfill\tserved",
    "attributes\tsymmetry\tchat\tfill\tserved",
    "ontoprobe\tonto_world\ttemplates\tchoice\tserved",
    "ontoprobe\tonto_world\tsoft\tsoft\tcontrol-causal",
    "ontoprobe\tonto_world\ttemplates\treason\tcontrol-causal",
]
SERVED = "served\tapi\tapi:some-model\t\tfloat32\t-\n"


def kinds() -> dict[tuple[str, str, str], tuple[list[str], str]]:
    """Map (paper, prompt, method) to configs and the first such row in the project's tables."""
    found: dict[tuple[str, str, str], tuple[list[str], str]] = {}
    for name, configs in TABLES.items():
        for row in our_rows(name.removesuffix(".tsv")):
            key = (row["paper"], row["prompt"], row["method"])
            cells = (row[n] for n in ("paper", "benchmark", "prompt", "method", "model"))
            found.setdefault(key, (configs, "\t".join(cells)))
    return found


def test_every_kind_of_row_alone_is_planned_up_to_the_report(planner, tmp_path):
    made = Project(tmp_path)
    models = tmp_path / "config/models.tsv"
    models.write_text(models.read_text() + SERVED)
    made.edit("config/config.yaml", "transfer: {}", "transfer: {bert-base-cased: roberta-large}")
    rows = list(kinds().values()) + [(["config/embedded.yaml"], row) for row in MORE[1:]]
    rows.append((["config/config.yaml"], MORE[0]))
    assert {(r.split("\t")[0], r.split("\t")[3]) for _, r in rows} == {
        (paper, method) for paper, methods in METHODS_OF_PAPER.items() for method in methods
    }
    assert len(rows) > 30
    (tmp_path / "one.yaml").write_text("tables: {experiments: config/one.tsv}\n")
    for configs, row in rows:
        (tmp_path / "config/one.tsv").write_text(f"{HEADER}{row}\n")
        url = "http://127.0.0.1:9/v1"
        plan = planner.plan(tmp_path, "--configfile", *configs, "one.yaml", KGPROBE_API_URL=url)
        assert plan.returncode == 0, f"{row}\n{plan.stdout[-1500:]}"
        assert "\nrule report:" in plan.stdout, row
        assert ("\nrule tabulate:" in plan.stdout) == row.startswith("bear"), row


#: what must not matter: hash seed, time zone, language (made by .ci/run, where i is no small I),
#: threads of data frames and of algebra
ELSEWHERE = {
    "PYTHONHASHSEED": "77", "TZ": "Pacific/Kiritimati", "LC_ALL": "tr_TR.UTF-8",
    "LANG": "tr_TR.UTF-8", "POLARS_MAX_THREADS": "1", "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
}  # fmt: skip
HEADER = "paper\tbenchmark\tprompt\tmethod\tmodel\n"
#: rows -> title of the section that each makes beside the one on sources
ROWS = {
    "bear world_lite templates sentence own-causal": "BEAR: balanced multiple choice",
    "ontoprobe onto_world_lite templates cloze own-masked": "Ontological knowledge",
    "ontoprobe onto_world templates reason own-masked": "Ontological knowledge",
    "ontoprobe onto_world templates choice own-causal": "Ontological knowledge",
    "attributes symmetry templates fill own-masked": "Knowledge-graph attributes",
    "attributes bias templates sentence own-causal": "Knowledge-graph attributes",
    "autoprompt auto_world majority predict control-masked": "Searched prompts",
}
#: models made here in a second; the controls answer questions that need whole words
OWN = "own-causal\tcausal\tfolder:models/gpt2\t\tfloat32\tforced\n"
OWN += "own-masked\tmasked\tfolder:models/bert\t\tfloat32\t-\n"


def write_rows(made: Project, *rows: str) -> None:
    """Write the table of experiments, its columns separated by spaces here."""
    text = "".join("\t".join(row.split()) + "\n" for row in rows)
    (made.folder / "config/experiments.small.tsv").write_text(HEADER + text)


def project(folder: Path) -> Project:
    """Return a project with all these rows and their models."""
    made = Project(folder)
    for name in ("gpt2", "bert"):
        save(tiny(name, double=False), made.folder / "models" / name)
    models = made.folder / "config/models.tsv"
    models.write_text(models.read_text() + OWN)
    write_rows(made, *ROWS)
    return made


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """Return a complete run of these rows on two cores; `first` has the hashes of its outputs."""
    made = project(tmp_path_factory.mktemp("rows"))
    result = made.run(timeout=1800)
    assert result.returncode == 0, result.stdout[-4000:]
    made.first = made.hashes("results")
    return made


def test_one_core_in_another_environment_gives_the_same_bytes(finished, tmp_path, monkeypatch):
    alone = project(tmp_path)
    for variable, value in ELSEWHERE.items():
        monkeypatch.setenv(variable, value)
    result = alone.run(cores=1, timeout=1800)
    assert result.returncode == 0, result.stdout[-4000:]
    found = alone.hashes("results")
    differing = {n for n in finished.first | found if finished.first.get(n) != found.get(n)}
    assert differing == set()
    for name in ("ontoprobe", "attributes", "autoprompt", "bear"):
        assert any(n.startswith(f"results/embedded/tables/{name}") for n in found), name
    assert len(found) > 150


def tables_anew(made: Project) -> None:
    """Delete the report and all tables but those of the sources."""
    run = made.folder / "results/embedded"
    for path in [*run.glob("tables/*"), run / "report/pages", *run.glob("report/sections/*")]:
        if not path.name.startswith(("access_agreement", "sources.json")):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    (run / "report/index.html").unlink()


@pytest.mark.parametrize("row", ROWS)
def test_a_row_alone_runs_to_its_report(finished, row):
    tables_anew(finished)
    write_rows(finished, row)
    # answers of the whole table stay: removed rows are no reason to probe again
    result = finished.run("--rerun-triggers", "mtime")
    assert result.returncode == 0, result.stdout[-4000:]
    assert not re.search(r"\]  (prompts_|probes_)", result.stdout)
    titles = headings(finished)
    expected = ["What the models know", ROWS[row], "What the papers claim"]
    expected += ["Methods", "Models", "Validity"]
    for title in expected:
        assert any(found.startswith(title) for found in titles), (title, titles)
    # of auto_world numbers of control models alone travel with the project, which every run makes
    is_known = row.split()[1] != "auto_world"
    assert is_known == any(found.startswith("Measured before") for found in titles)
    strangers = set(ROWS.values()) - {ROWS[row]}
    assert not [t for t in titles if t.startswith(tuple(strangers))], titles
    model = row.split()[-1]
    output = printed(finished)
    assert model in output
    assert "report: results/embedded/report/index.html" in output


def headings(made: Project) -> list[str]:
    """Return the heading of every report page, and assert that no heading is empty."""
    report = made.folder / "results/embedded/report"
    pages = [path.read_text() for path in [report / "index.html", *report.glob("pages/*.html")]]
    assert len(pages) > 6
    assert not [empty for page in pages for empty in hollow(page)]
    return [title for page in pages for title in Outline(page).texts(1)]


def printed(made: Project) -> str:
    """Return the final output of `make run`."""
    command = [sys.executable, "-m", "kgprobe.tables.report.summary"]
    command += ["results/embedded/tables", "results/embedded/report/index.html"]
    result = subprocess.run(
        command, cwd=made.folder, env=made.environment(), text=True, capture_output=True
    )
    assert result.returncode == 0, result.stderr
    return result.stdout

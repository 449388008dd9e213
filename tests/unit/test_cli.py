"""The command as a new user meets it: from an empty folder, names, bad input, narrow screens."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

import kgprobe
from kgprobe.cli import app, screen
from kgprobe.tables import results
from tests.unit.tiny_models import tiny

SOURCE = str(Path(kgprobe.__file__).parents[1])
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("models") / "tiny-llama"
    made = tiny("llama", double=False)
    made.model.save_pretrained(path)
    made.tokenizer.save_pretrained(path)
    return path


@pytest.fixture
def typed(tmp_path, monkeypatch):
    """What a command says in an empty folder."""
    monkeypatch.chdir(tmp_path)
    return lambda *words: CliRunner().invoke(app, [str(word) for word in words])


def test_a_new_user_gets_an_accuracy_at_sixty_columns_with_a_home_that_cannot_be_written(
    model, tmp_path
):
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": SOURCE, "HOME": "/proc",
                   "COLUMNS": "60", "HF_HUB_OFFLINE": "1"}  # fmt: skip
    command = [sys.executable, "-m", "kgprobe.cli", "probe", str(model), "--on", "world_lite",
               "--limit", "30"]  # fmt: skip
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0].startswith("world_lite: 30 items; accuracy")
    assert all(len(line) <= 62 for line in lines[:-1]), lines
    page = tmp_path / lines[-1].removeprefix("report: ")
    assert "tiny-llama" in page.read_text()
    assert "Traceback" not in done.stderr


def test_what_is_printed_is_what_the_library_says_and_is_kept(model, typed, tmp_path):
    done = typed("probe", model, "--on", "world_lite", "--limit", 30, "--prompt", 1, "--json")
    assert done.exit_code == 0, done.output
    said = json.loads(done.stdout)
    asked = kgprobe.benchmark("world_lite").sampled(30)
    expected = kgprobe.probe(model, asked, "1").table().row(0, named=True)
    assert said["n"] == 30
    assert (said["accuracy"], said["low"]) == (expected["accuracy"], expected["low"])
    kept = results.read([tmp_path / "results" / said["run"] / "tables" / "bear.parquet"])
    own = kept.filter(model="tiny-llama", metric="accuracy", group="", slice="", setting="{}")
    assert own["value"].to_list() == [said["accuracy"]]
    (run,) = json.loads(typed("list", "runs", "--json").stdout)
    assert (run["run"], run["tables"]) == (said["run"], "bear")


def test_two_runs_are_compared_pair_by_pair(model, typed, tmp_path):
    other = tmp_path / "other"
    made = tiny("gpt2", double=False)
    made.model.save_pretrained(other)
    made.tokenizer.save_pretrained(other)
    asked = ("--on", "world_lite", "--limit", 60)
    for name, path in (("one", model), ("two", other), ("again", model)):
        assert typed("probe", path, *asked, "--name", name).exit_code == 0
    said = json.loads(typed("compare", "one", "two", "--json").stdout)
    (pair,) = said["paired"]
    sampled = kgprobe.benchmark("world_lite").sampled(60)
    own, theirs = (kgprobe.probe(path, sampled) for path in (model, other))
    # exact: the same judged answers, paired by question
    difference = own.table()["accuracy"][0] - theirs.table()["accuracy"][0]
    assert pair["difference"] == pytest.approx(difference, abs=1e-9)
    assert pair["low"] <= pair["difference"] <= pair["high"]
    assert pair["n"] == 60
    same = json.loads(typed("compare", "one", "again", "--json").stdout)
    assert same["paired"] == same["moved"] == []
    assert same["both"] > 20
    done = typed("compare", "one", "tow")
    assert done.exit_code == 1
    assert "did you mean 'two'?" in done.stderr


def test_a_number_is_traced_to_its_questions_and_files(model, typed, tmp_path):
    assert typed("probe", model, "--on", "world_lite", "--limit", 60, "--name", "x").exit_code == 0
    kept = tmp_path / "results/x"
    rows = results.read([kept / "tables/bear.parquet"])
    own = {"model": "tiny-llama", "metric": "accuracy", "group": "", "slice": "", "setting": "{}"}
    value = rows.filter(**own)["value"].item()
    words = ["trace", f"{value:.1f}", "--run", "x"]
    for key in ("model", "metric", "group", "slice", "setting"):
        words += ["-w", f"{key}={own[key]}"]
    (found,) = json.loads(typed(*words, "--items", 60, "--json").stdout)
    assert found["value"] == value
    assert len(found["questions"]) == found["n"] == 60
    # literal: a template counts where the likeliest option is right; the mean over templates counts
    hits = [[c in q["right"] for c in q["chosen"]] for q in found["questions"]]
    assert sum(map(sum, hits)) / (60 * 3) * 100 == pytest.approx(value)
    assert {file["state"] for file in found["files"]} == {"as it was"}
    assert any(file["file"].startswith("scores/") for file in found["files"])
    (kept / "benchmarks/world_lite/items.parquet").write_bytes(b"other")
    done = typed(*words, "--items", 0)
    assert "changed since" in done.stdout
    assert typed("trace", "-1", "--run", "x").exit_code == 2
    done = typed("trace", "101.3", "--run", "x", "-w", "modle=y")
    assert "did you mean 'model'?" in done.stderr
    assert "printed as 101.3" in typed("trace", "101.3", "--run", "x").stderr


def test_an_interrupted_probe_goes_on_where_it_stopped(model, typed, monkeypatch, tmp_path):
    command = ("probe", model, "--on", "world_lite")

    class Stopped(screen.Bar):
        def update(self, n: float = 1) -> None:
            super().update(n)
            if self.done > 9000:
                raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(screen, "Bar", Stopped)
        done = typed(*command)
    assert done.exit_code == screen.STOPPED
    assert "the same command goes on there" in done.stderr
    shards = sorted((tmp_path / "results" / "tiny-llama-world_lite" / "shards").iterdir())
    assert shards
    before = {path: path.stat().st_mtime_ns for path in shards}
    assert typed(*command).exit_code == 0
    assert {path: path.stat().st_mtime_ns for path in shards} == before


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (["probe", "x", "--on", "world_lit"], 1, "did you mean 'world_lite'?"),
        (["probe", "empty", "--on", "world_lite"], 1, "a model's folder without config.json"),
        (["probe", "x", "--on", "empty"], 1, "it lacks items.parquet"),
        (["probe", "x", "--on", "world_lite", "--prompt", "9"], 1, "no prompt '9'; legal: temp"),
        (["list", "modls"], 2, "did you mean 'models'?"),
        (["prob"], 2, "probe"),
        (["show", "world_lite", "P36/nowhere"], 1, "has no item 'P36/nowhere'"),
        (["validate", "nowhere.yaml"], 1, "nowhere.yaml: no such file"),
    ],
)
def test_what_cannot_be_done_is_told_in_one_line(typed, tmp_path, words, code, told):
    (tmp_path / "empty").mkdir()
    done = typed(*words)
    assert done.exit_code == code
    assert told in done.stderr
    if code == 1:
        assert len(done.stderr.splitlines()) == 1


def test_help_comes_without_what_is_heavy():
    code = (
        "import sys, kgprobe.cli; "
        "assert not {'torch', 'polars', 'numpy', 'jsonschema'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    for part in app.registered_commands:
        assert "Example: kgprobe " in (part.callback.__doc__ or "")


def test_a_question_is_shown_with_its_sentences(typed):
    rows = json.loads(typed("show", "world_lite", "--json").stdout)["by_relation"]
    (capital,) = [row for row in rows if row["relation"] == "P36"]
    asked = json.loads(typed("show", "world_lite", capital["example"], "--json").stdout)
    assert asked["answers"] in asked["options"]
    assert len(asked["sentences"]) == 3
    assert all(asked["answers"] in text and asked["subject"] in text
               for text in asked["sentences"])  # fmt: skip


def test_a_plan_and_what_data_holds_are_json_too(monkeypatch):
    monkeypatch.chdir(ROOT)
    typed = CliRunner().invoke
    done = typed(app, ["plan", "config/embedded.yaml", "--json"])
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert found["run"] == "embedded"
    # a run may be there already: its jobs are counted as done
    assert sum(row["jobs"] + row["done"] for row in found["stages"].values()) > 30
    checked = json.loads(typed(app, ["verify", "config/embedded.yaml", "--json"]).stdout)
    assert all(row["files"] >= row["checked"] for row in checked)
    assert typed(app, ["plan", "nowhere.yaml", "--json"]).exit_code == 1


@pytest.mark.parametrize("command", [["ask", "no/such", "[X] is [Y].", "-x", "A", "-o", "B"],
                                     ["probe", "no/such", "--on", "world_lite"]])  # fmt: skip
def test_a_name_that_nobody_has_is_told_before_torch_is_imported(command, tmp_path):
    """Importing torch takes longer than a user wants to wait for one line."""
    code = (
        "import sys\n"
        "from typer.testing import CliRunner\n"
        "from kgprobe.cli import app\n"
        "from kgprobe.probes.models import reachable\n"
        "reachable.is_reachable = lambda: False\n"
        f"result = CliRunner().invoke(app, {command!r})\n"
        "print(result.exit_code, 'torch' in sys.modules, result.output)\n"
    )
    told = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    ).stdout
    assert told.startswith("1 False kgprobe: no/such: no folder and no row of"), told
    assert "the hub cannot be reached" in told

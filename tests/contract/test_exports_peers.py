"""Exports opened by the programs that they are for: the same questions, the same accuracies."""

import json
import os
import subprocess
from pathlib import Path

import polars as pl
import pytest
from typer.testing import CliRunner

from kgprobe import library
from kgprobe.cli import app
from kgprobe.questions import benchmark
from kgprobe.tables.exports import crate
from tests.unit.tiny_models import tiny

pytestmark = pytest.mark.nightly(needs="make peers")

ROOT = Path(__file__).parents[2]
PEERS = ROOT / ".peers" / "bin" / "python"
SIDE = Path(__file__).with_name("peers_side.py")
LIMIT = 60


def peer(name: str, *arguments: object, cwd: Path) -> dict:
    """What a peer says of an export, asked from another folder."""
    if not PEERS.exists():
        pytest.fail("the peers are not installed; right would be make peers")
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    environment |= {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "HF_HOME": str(cwd / "hf"),
                    "OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}  # fmt: skip
    command = [PEERS, SIDE, name, *arguments]
    done = subprocess.run(
        list(map(str, command)), cwd=cwd, env=environment, capture_output=True, text=True,
        timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-4000:]
    return json.loads(done.stdout)


def export(*arguments: object) -> str:
    result = CliRunner().invoke(app, ["export", *map(str, arguments)])
    assert result.exit_code == 0, result.output
    return result.output


@pytest.fixture(scope="module")
def asked(tmp_path_factory):
    """A folder with a sample of world_lite, and a tiny causal model with what it answers."""
    folder = tmp_path_factory.mktemp("peers")
    own = benchmark("world_lite").sampled(LIMIT)
    place = folder / "sample"
    place.mkdir()
    own.write(place)
    loaded = tiny("gpt2", bos="forced", double=False)
    loaded.model.save_pretrained(folder / "model")
    loaded.tokenizer.save_pretrained(folder / "model")
    found = library.probe(library.load(folder / "model", bos="forced"), own)
    return folder, own, found


def accuracies(found) -> pl.DataFrame:
    """Mean hit and number of items by template."""
    answers = found.answers
    return answers.group_by("template").agg(pl.col("hit").mean(), pl.len().alias("n"))


def test_the_harness_finds_the_same_accuracies_from_another_folder(asked, tmp_path):
    folder, own, found = asked
    # the origin of a sample is not told by its files
    export(folder / "sample", "--as", "lm-eval", "--to", folder / "tasks", "--licence", "CC0-1.0")
    scores = peer("lm_eval", folder / "tasks", folder / "model", "kgprobe_sample", cwd=tmp_path)
    ours = dict(accuracies(found).select("template", "hit").rows())
    assert len(ours) == 3
    for template, accuracy in ours.items():
        task = scores[f"kgprobe_sample_template_{template}"]
        assert task["acc"] == pytest.approx(accuracy, abs=1e-4)
        spread = (accuracy * (1 - accuracy) / (own.items.height - 1)) ** 0.5
        assert task["stderr"] == pytest.approx(spread, abs=1e-4)
    assert scores["kgprobe_sample"]["acc"] == pytest.approx(sum(ours.values()) / 3, abs=1e-4)
    assert 0 < sum(ours.values()) < 3


def test_lm_pub_quiz_finds_the_same_accuracies(asked, tmp_path):
    folder, _, found = asked
    arguments = ("--as", "lm-pub-quiz", "--to", folder / "quiz", "--licence", "CC0-1.0")
    export(folder / "sample", *arguments)
    scores = peer("lm_pub_quiz", folder / "quiz", folder / "model", cwd=tmp_path)
    ours = found.answers.filter(template=0).group_by("relation").agg(pl.col("hit").mean())
    assert ours.height == len(scores) > 10
    for relation, accuracy in ours.rows():
        assert scores[relation]["accuracy"] == pytest.approx(accuracy, abs=1e-4), relation


def test_mlcroissant_finds_no_fault_and_reads_every_row(tmp_path):
    export("world_lite", "--as", "croissant", "--to", tmp_path / "made")
    found = peer("croissant", tmp_path / "made/croissant.json", cwd=tmp_path)
    assert found["errors"] == []
    assert found["n"] == 3 * 468
    assert found["first"]["rows/template_index"] == 0
    assert "[X]" in found["first"]["rows/template"]


def test_frictionless_finds_no_fault(tmp_path):
    export("world_lite", "--as", "frictionless", "--to", tmp_path / "made")
    found = peer("frictionless", tmp_path / "made/datapackage.json", cwd=tmp_path)
    assert found["valid"]
    assert found["errors"] == 0
    own = benchmark("world_lite")
    assert found["rows"] == {
        name: getattr(own, name).height for name in ("items", "candidates", "prompts")
    }


def test_a_run_opens_as_a_crate_with_all_its_files(tmp_path):
    run = tmp_path / "results" / "mine"
    for name in ("tables/bear.parquet", "tables/bear/models.tsv", "report/index.html"):
        (run / name).parent.mkdir(parents=True, exist_ok=True)
        (run / name).write_text(name)
    (run / "manifest.tsv").write_text("output\n")
    crate.write(run, tmp_path / "made")
    found = peer("rocrate", tmp_path / "made", cwd=tmp_path)
    assert found["name"] == "kgprobe run mine"
    assert "ro/crate/1.1" in found["conforms"]
    assert found["missing"] == []
    assert set(found["files"]) == {
        "tables/bear.parquet", "tables/bear/models.tsv", "report/index.html", "manifest.tsv",
    }  # fmt: skip


def test_kgprobe_installs_beside_the_harness(tmp_path):
    """Its wheel goes into the peers' environment, none of whose requirements it breaks."""
    wheel = [PEERS, "-m", "pip", "--disable-pip-version-check", "wheel", "--no-deps", "--quiet"]
    subprocess.run([*wheel, "-w", tmp_path, ROOT], check=True, capture_output=True, timeout=300)
    (made,) = tmp_path.glob("kgprobe-*.whl")
    install = [
        PEERS,
        "-m",
        "pip",
        "--disable-pip-version-check",
        "install",
        "--dry-run",
        "--report",
    ]
    report = tmp_path / "report.json"
    subprocess.run(
        [*install, report, "--quiet", made, "lm-eval"], check=True, capture_output=True, timeout=300
    )
    planned = [row["metadata"]["name"] for row in json.loads(report.read_text())["install"]]
    # nothing that is there has to change, but what Python itself brings in an older version
    assert set(planned) - {"setuptools"} == {"kgprobe"}

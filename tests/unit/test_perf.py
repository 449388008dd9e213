"""`make bench` fails if a row misses its target."""

import json
import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from perf import run

ROOT = Path(__file__).parents[2]
#: the smallest size of each measurement
SMALLEST = {
    "attributes": ["1:1"],
    "autoprompt": ["2"],
    "autoprompt_labels": ["8", "8"],
    "cloze": ["1"],
    "device": ["--device", "cpu", "--shape", "tiny"],
    "dumps": ["2", "1"],
    "fill": ["2"],
    "ontoprobe": [],
    "peers": ["2"],
    "products": [],
    "scoring": ["1", "BERT 2"],
    "scoring_memory": ["1"],
    "spark": ["200"],
    "sparql_pages": ["2000"],
    "sparql_pull": ["2000"],
    "trex": ["1"],
}
#: programs and data of others that some need
NEEDED = {
    "spark": lambda: find_spec("pyspark") and shutil.which("java"),
    "peers": lambda: (ROOT / ".peers/bin/python").exists(),
    "sparql_pages": lambda: shutil.which("virtuoso-t"),
}
ON_DATA = ("peers", "scoring", "scoring_memory", "trex")
#: modules missing on a machine with an accelerator
ABSENT = ("polars", "snakemake", "tenacity", "jsonschema", "SPARQLWrapper", "lm_eval")


def data_folder() -> Path:
    """Return the folder of the real data sets."""
    return Path(os.environ.get("KGPROBE_DATA") or ROOT / "../shared/data")


def row(**values):
    return {"name": "a", "ours": 5, "peer": 1, "unit": "s", "ratio": 2.0, "target": ""} | values


@pytest.mark.parametrize(
    ("target", "is_missed"),
    [("", False), (2.0, False), (2, False), (2.01, True), ("<= 5", False), ("<= 4.9", True)],
)
def test_a_target_is_a_minimum_ratio_or_a_maximum(target, is_missed):
    assert run.missed(row(target=target)) == is_missed


def test_an_empty_target_is_an_error():
    with pytest.raises(ValueError, match="a: target '= 3'; valid: a number, '<= number', ''"):
        run.missed(row(target="= 3"))


def test_missed_targets_are_reported_and_fail_the_command(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(run, "RESULTS", tmp_path)
    monkeypatch.setattr(
        run.subprocess, "run", lambda command: run.subprocess.CompletedProcess(command, 0)
    )
    for rows, code in (([row(target=3)], 1), ([row(target=1), row(target="<= 9")], 0)):
        (tmp_path / "cloze.json").write_text(run.json.dumps(rows))
        assert run.main(["cloze"]) == code
    assert capsys.readouterr().err.strip() == "a: target 3 missed"


def test_every_measurement_has_a_smallest_size():
    assert run.names() == sorted(SMALLEST)


@pytest.mark.nightly(needs="many minutes")
@pytest.mark.parametrize("name", sorted(SMALLEST))
def test_every_measurement_ends_at_its_smallest_size(name, tmp_path, monkeypatch):
    if not NEEDED.get(name, lambda: True)():
        pytest.skip(f"{name}: a program of others is not installed")
    if name in ON_DATA and not (real := data_folder()).is_dir():
        pytest.skip(f"no data in {real}")
    # results of a whole `make bench` stay
    for folder in ("src", "perf", "config", "resources", "docs", "tests", ".peers"):
        (tmp_path / folder).symlink_to(ROOT / folder)
    command = [sys.executable, "-m", f"perf.{name}", *SMALLEST[name]]
    environment = {**os.environ, "KGPROBE_DATA": str(data_folder().resolve())}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    rows = json.loads((tmp_path / f"results/perf/{name}.json").read_text())
    assert all({"name", "ours"} <= found.keys() for found in rows)


@pytest.mark.nightly(needs="minutes on a loaded machine")
def test_the_measurement_of_a_device_runs_on_a_bare_machine(tmp_path):
    """It runs with only torch, transformers and numpy, on a CPU with tiny models."""
    out = tmp_path / "device.json"
    code = "import sys; sys.modules.update(dict.fromkeys(sys.argv[1].split(','))); "
    code += "from perf import device; device.main(['--device', 'cpu', '--out', sys.argv[2]])"
    command = [sys.executable, "-c", code, ",".join(ABSENT), str(out)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "no accelerator" in done.stderr
    rows = json.loads(out.read_text())
    kinds = ("sentence, causal", "sentence, masked", "cloze", "fill, causal", "fill, masked")
    expected = {(m, d) for m in (*kinds, "search") for d in ("float32", "bfloat16")}
    assert {(row["method"], row["dtype"]) for row in rows} == expected
    for row in rows:
        assert row["positions"] > 0 < row["ours"], row["name"]
        assert row["card"] == "cpu"
        assert row["compared"] >= 4
        if row["dtype"] == "float32":
            assert row["same ranking"] == row["compared"]
            assert row["apart"] < 1e-4
        else:
            assert 0 < row["apart"] < 0.1, "half precision was not used"
    assert sum("not measured" in row.get("harness", "") for row in rows) == 2

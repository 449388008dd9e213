"""`make bench` fails where a row misses the target that is written beside it."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from perf import run

ROOT = Path(__file__).parents[2]
#: what a machine with an accelerator has not
ABSENT = ("polars", "snakemake", "tenacity", "jsonschema", "SPARQLWrapper", "lm_eval")


def row(**values):
    return {"name": "a", "ours": 5, "peer": 1, "unit": "s", "ratio": 2.0, "target": ""} | values


@pytest.mark.parametrize(
    ("target", "is_missed"),
    [("", False), (2.0, False), (2, False), (2.01, True), ("<= 5", False), ("<= 4.9", True)],
)
def test_a_target_is_the_least_ratio_or_the_most_of_ours(target, is_missed):
    assert run.missed(row(target=target)) == is_missed


def test_a_target_that_says_nothing_is_an_error():
    with pytest.raises(ValueError, match="a: target '= 3'; legal: a number, '<= number', ''"):
        run.missed(row(target="= 3"))


def test_what_misses_is_named_and_fails_the_command(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(run, "RESULTS", tmp_path)
    monkeypatch.setattr(
        run.subprocess, "run", lambda command: run.subprocess.CompletedProcess(command, 0)
    )
    for rows, code in (([row(target=3)], 1), ([row(target=1), row(target="<= 9")], 0)):
        (tmp_path / "cloze.json").write_text(run.json.dumps(rows))
        assert run.main(["cloze"]) == code
    assert capsys.readouterr().err.strip() == "a: target 3 missed"


def test_every_measurement_is_found():
    assert {"scoring", "cloze", "fill", "autoprompt", "attributes"} <= set(run.names())
    assert not {"run", "equality"} & set(run.names())


@pytest.mark.nightly(needs="minutes on a loaded machine")
def test_the_measurement_of_a_device_runs_on_a_bare_machine(tmp_path):
    """Torch, transformers and numpy alone; on a processor, with tiny models: that it runs."""
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

"""The manifest lists what exists, once, with its latest job."""

import json

from kgprobe.tables.report import manifest


def record(output: str, started: str, seconds: float) -> dict:
    return {
        "rule": "facts",
        "wildcards": {"source": "world"},
        "inputs": {"in.parquet": "ab" * 32},
        "code": "ef" * 32,
        "versions": {"polars": "2"},
        "outputs": {output: {"sha256": "cd" * 32, "bytes": 5}},
        "started": started,
        "wall_seconds": seconds,
        "cpu_seconds": 1.0,
        "start_cpu_seconds": 0.5,
        "peak_mib": 9.0,
        "notes": {},
    }


def test_existing_outputs_stand_once_with_their_latest_job(tmp_path):
    (tmp_path / "results").mkdir()
    (tmp_path / "results/a").write_text("x")
    logs = tmp_path / "logs/knowledge"
    logs.mkdir(parents=True)
    jobs = [
        record("results/a", "2026-01-01T00:00:00Z", 1.0),
        record("results/a", "2026-01-02T00:00:00Z", 2.0),
        record("results/gone", "2026-01-01T00:00:00Z", 3.0),
    ]
    for i, job in enumerate(jobs):
        (logs / f"{i}.json").write_text(json.dumps(job))
    table = manifest.rows(manifest.records(tmp_path / "logs"), tmp_path)
    assert [(row["output"], row["wall_seconds"]) for row in table] == [("results/a", 2.0)]
    text = manifest.render(table)
    header, line = text.splitlines()
    assert header.split("\t") == manifest.COLUMNS
    assert "in.parquet=abababababab\tefefefefefef\t" in line
    assert "source=world" in line


def test_a_job_of_several_methods_tells_the_code_of_each(tmp_path):
    (tmp_path / "a").write_text("x")
    several = {"fill": "12" * 32, "choice": "34" * 32}
    job = {**record("a", "2026-01-01T00:00:00Z", 1.0), "code": several}
    (row,) = manifest.rows([job], tmp_path)
    assert row["code"] == "choice=343434343434 fill=121212121212"

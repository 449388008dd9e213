"""The rule wrapper: log, short error message, record."""

import errno
import json
import os
from pathlib import Path
from typing import Any

import pytest

from kgprobe import job as module
from kgprobe.files import ROOT
from kgprobe.job import job, log, progress, sha256, short


class Named(dict):
    """Stands for Snakemake's named lists."""

    def __getattr__(self, name: str) -> Any:
        return self[name]

    def __iter__(self):  # type: ignore[no-untyped-def]
        return iter(self.values())


class Rule:
    """The object that Snakemake passes to a script."""

    def __init__(self, folder: Path, **inputs: str) -> None:
        self.rule, self.threads, self.config, self.params = "facts", 1, {}, Named()
        self.input = Named({k: str(v) for k, v in inputs.items()})
        self.output = Named(table=str(folder / "table"))
        self.wildcards, self.resources = Named(source="world"), Named()
        self.log = [str(folder / "logs/facts.log")]


def test_success_leaves_a_record_with_hashes_and_costs(tmp_path):
    (tmp_path / "in").write_text("x")
    with job(Rule(tmp_path, facts=tmp_path / "in")) as run:
        Path(run.output.table).write_text("made")
        run.note(rows=3)
        log.info("hello")
    record = json.loads((tmp_path / "logs/facts.json").read_text())
    assert list(record["inputs"].values()) == [sha256(tmp_path / "in")]
    (made,) = record["outputs"].values()
    assert made == {"sha256": sha256(tmp_path / "table"), "bytes": 4}
    assert record["wall_seconds"] >= 0
    assert record["cpu_seconds"] > 0
    assert record["peak_mib"] > 1
    assert record["notes"] == {"rows": 3}
    assert "hello" in (tmp_path / "logs/facts.log").read_text()


def test_errors_fit_one_screen_with_the_traceback_in_the_log(tmp_path, capsys):
    (tmp_path / "in").write_text("x")
    rule = Rule(tmp_path, facts=tmp_path / "in")

    def fail() -> None:
        with job(rule):
            raise ValueError("\n".join(f"line {i}" for i in range(100)))

    with pytest.raises(SystemExit) as stop:
        fail()
    assert stop.value.code == 1
    shown = capsys.readouterr().err
    assert shown.startswith("error in rule facts (source=world)\n  ValueError: line 0\n")
    assert "80 more lines in the log" in shown
    assert len(shown.splitlines()) <= 24
    text = (tmp_path / "logs/facts.log").read_text()
    assert "Traceback" in text
    assert "line 99" in text
    assert not (tmp_path / "logs/facts.json").exists()


def test_provenance_has_no_times_and_is_reproducible(tmp_path):
    (tmp_path / "in").write_text("x")
    result = []
    for _ in range(2):
        with job(Rule(tmp_path, facts=tmp_path / "in")) as run:
            Path(run.output.table).write_text("made")
            result.append(run.provenance(seed=1))
    assert result[0] == result[1]
    assert result[0]["seed"] == 1
    assert not any("second" in key or "start" in key for key in result[0])


def test_progress_logs_rate_and_remaining_time(tmp_path):
    (tmp_path / "in").write_text("x")
    with job(Rule(tmp_path, facts=tmp_path / "in")) as run:
        Path(run.output.table).write_text("made")
        assert list(progress(range(5), desc="pages", every=0.0)) == [0, 1, 2, 3, 4]
    text = (tmp_path / "logs/facts.log").read_text()
    assert "pages:  40%" in text
    assert "5/5" in text


def test_large_files_are_recorded_by_size(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "LARGE", 10)
    (tmp_path / "dump").write_text("x" * 11)
    with job(Rule(tmp_path, dump=tmp_path / "dump")) as run:
        Path(run.output.table).write_text("made")
        assert list(run.hashes().values()) == ["not hashed, 11 bytes"]


def test_short_names_omit_machine_paths(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert short("results/a.parquet") == "results/a.parquet"
    assert short(tmp_path / "results/a.parquet") == "results/a.parquet"
    assert short("/somewhere/else/data/bear") == "data/bear"
    assert short(ROOT / "resources/published/claims.tsv") == "resources/published/claims.tsv"


def test_folder_hash_covers_names_and_contents(tmp_path):
    (tmp_path / "d").mkdir()
    (tmp_path / "d/a").write_text("1")
    first = sha256(tmp_path / "d")
    (tmp_path / "d/a").rename(tmp_path / "d/b")
    assert sha256(tmp_path / "d") != first


def test_shared_downloads_are_done_by_one_run(tmp_path, monkeypatch):
    """The downloading run holds the lock; others neither write nor read the file meanwhile."""
    lock, files = tmp_path / "data/.bear.lock", [str(tmp_path / f"data/{n}") for n in "ab"]
    monkeypatch.setattr(module, "_held", held := [])
    module.sole_download(lock, files[1:])
    assert len(held) == 1
    message = f"another run \\(process {os.getpid()}\\) is downloading {files[1]}; wait for it"
    with pytest.raises(RuntimeError, match=message):
        module.sole_download(lock, files[1:])
    # an existing file may be incomplete
    with pytest.raises(RuntimeError, match="is downloading"):
        module.sole_download(lock, [], files)
    held.pop().close()
    for _ in range(2):
        module.sole_download(lock, [], files)
    assert not held


def test_a_file_system_without_locks_stops_no_run(tmp_path, monkeypatch):
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(module, "_held", held := [])
    monkeypatch.setattr(module.fcntl, "flock", refuse)
    module.sole_run(tmp_path / "lock")
    held.pop().close()
    assert (tmp_path / "lock").read_text() == str(os.getpid())


def test_runs_without_downloads_create_no_lock(tmp_path):
    module.sole_download(tmp_path / ".a.lock", [], [str(tmp_path / "a")])
    assert not (tmp_path / ".a.lock").exists()

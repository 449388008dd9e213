"""Terminal output of a run: a line per job, a bar, and the first error last."""

import io
import json
import os
import pty
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml
from rich.console import Console

import snakemake_logger_plugin_kgprobe as terminal
from snakemake_logger_plugin_kgprobe import Job, RunView

ROOT = Path(__file__).parents[2]
TOY = """\
import time
rule all:
    input: expand("out/{n}.txt", n=range(3)), "out/bad.txt", "out/worse.txt"
rule make:
    output: "out/{n}.txt"
    log: "logs/toy/{n}.log"
    shell: "echo made > {output}"
rule bad:
    input: "out/0.txt"
    output: "out/bad.txt"
    log: "logs/toy/bad.log"
    shell: "echo 'ValueError: no such thing in row 3' > {log}; exit 1"
rule worse:
    input: "out/bad.txt"
    output: "out/worse.txt"
    shell: "exit 1"
"""
ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class Clock:
    """A clock that advances only on request."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


def view(stats, records=None, **more):
    """Return a view without a terminal, its text and its clock."""
    text, clock = io.StringIO(), Clock()
    made = RunView(stats, Console(file=text, width=80), records=records or {}, clock=clock, **more)
    return made, text, clock


@pytest.fixture
def toy(tmp_path):
    (tmp_path / "Snakefile").write_text(TOY)
    return tmp_path


def snakemake(*arguments, **more):
    command = [sys.executable, "-m", "snakemake", "--cores", "2", "--nolock", *arguments]
    # Snakemake's graphs are in the order of a set
    fixed = {**os.environ, "PYTHONHASHSEED": "0"}
    return subprocess.run(command, capture_output=True, text=True, timeout=120, env=fixed, **more)


def test_a_finished_job_is_one_line_with_its_wildcards_and_seconds():
    shown, text, clock = view({"pull": 2, "all": 1})
    shown.start(3, Job("pull", {"relation": "P17"}))
    clock.now = 3.25
    shown.finish(3)
    shown.start(0, Job("all"))
    shown.finish(0)
    shown.log = ".snakemake/log/x.log"
    shown.end()
    assert text.getvalue().splitlines() == [
        "3 jobs: pull 2",
        "[1/3]  pull relation=P17  3.2 s",
        "2 of 3 jobs in 3.2 s",
        "log: .snakemake/log/x.log",
    ]


def test_the_first_error_is_printed_last_with_its_message(tmp_path):
    logs = []
    for name, said in (("one", "ValueError: row 3 of facts.tsv\n  has two cells"), ("two", "E: 2")):
        path = tmp_path / f"{name}.log"
        path.write_text(
            "2026-01-01 10:00:00,000 INFO rule x {}\n2026-01-01 10:00:01,000 ERROR Traceback (most "
            f'recent call last):\n  File "a.py", line 1, in f\n    f(x)\n{said}\n'
        )
        logs.append(str(path))
    shown, text, clock = view({"read": 2, "ask": 3})
    for jobid, rule in enumerate(("read", "ask")):
        shown.start(jobid, Job(rule, {}, [logs[jobid]]))
    clock.now = 65.0
    shown.finish(0, "")
    shown.finish(1, "")
    shown.heard.append("Exiting because a job execution failed. Look above.")
    shown.end()
    lines = text.getvalue().splitlines()
    assert lines[1:3] == ["FAILED  read  1 min 5 s", "FAILED  ask  1 min 5 s"]
    assert lines[3:] == [
        "0 of 5 jobs in 1 min 5 s", "failed later: ask", "FAILED FIRST  read  after 1 min 5 s",
        "  ValueError: row 3 of facts.tsv", "    has two cells", f"  log: {logs[0]}",
        "what is done is kept: the same command goes on from there",
    ]  # fmt: skip


def test_a_long_message_keeps_to_one_screen(tmp_path):
    path = tmp_path / "long.log"
    path.write_text("Traceback (most recent call last):\n  File x\n" + "E: word\n" * 400)
    shown, text, _ = view({"read": 1})
    shown.start(0, Job("read", {}, [str(path)]))
    shown.finish(0, "")
    shown.end()
    assert text.getvalue().count("E: word") == terminal.MESSAGE
    assert "388 more lines in the log" in text.getvalue()
    assert len(text.getvalue().splitlines()) <= 24


def test_snakemake_messages_are_printed_only_if_no_job_failed():
    shown, text, _ = view({"read": 1})
    shown.heard.append("Error: directory cannot be locked")
    shown.say("a warning")
    shown.end()
    assert text.getvalue().splitlines()[1:] == [
        "a warning",
        "Error: directory cannot be locked",
        "0 of 1 jobs in 0.0 s",
    ]


def test_time_left_is_the_last_run_s_scaled_to_the_current_pace():
    shown, _, clock = view({"pull": 2, "ask": 1, "new": 1}, {"pull": 10.0, "ask": 100.0})
    shown.start(0, Job("pull"))
    assert shown.remaining() is None  # nothing has ended yet
    clock.now = 20.0  # twice as slow as the last run
    shown.finish(0)
    # a rule that is not known counts as the mean of the known, 55
    assert shown.remaining() == pytest.approx((10 + 100 + 55) * 20 / 10)
    shown.end()
    unknown, _, _ = view({"pull": 1})
    unknown.finish(0)
    assert unknown.remaining() is None
    unknown.end()


def test_seconds_of_a_rule_are_the_mean_of_its_records(tmp_path):
    for name, rule, seconds in (("a", "pull", 2), ("sub/b", "pull", 4), ("c", "ask", 9)):
        path = tmp_path / f"{name}.json"
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps({"rule": rule, "wall_seconds": seconds}))
    (tmp_path / "half.json").write_text('{"rule": "pu')
    (tmp_path / "other.json").write_text("[1]")
    assert terminal.recorded(tmp_path) == {"pull": 3.0, "ask": 9.0}


@pytest.mark.timing
def test_a_silent_run_reports_running_jobs_and_progress(tmp_path):
    log = tmp_path / "ask.log"
    log.write_text("2026-01-01 10:00:00,000 INFO sentence:  34%| 480/1404 [00:40<01:17]\n")
    text = io.StringIO()
    shown = RunView({"ask": 1}, Console(file=text), records={}, silence=0.2)
    shown.start(0, Job("ask", {"model": "m"}, [str(log)]))
    ends = time.monotonic() + 10
    while "running" not in text.getvalue() and time.monotonic() < ends:
        time.sleep(0.05)
    shown.end()
    assert re.search(
        r"0/1 done, [\d.]+ s; running: ask model=m, [\d.]+ s, sentence:  34%\| 480/1404",
        text.getvalue(),
    )


def test_a_run_without_a_terminal_is_a_line_per_job_and_ends_with_the_first_error(toy):
    result = snakemake("--logger", "kgprobe", "--keep-going", cwd=toy)
    assert result.returncode == 1
    lines = result.stderr.splitlines()
    assert len(lines) <= 20, result.stderr
    assert [n for n in range(3) if any(f"  make n={n}  " in line for line in lines)] == [0, 1, 2]
    assert "None" not in result.stderr
    last = lines[-4:]
    assert last[0].startswith("FAILED FIRST  bad  after ")
    assert last[1:3] == ["  ValueError: no such thing in row 3", "  log: logs/toy/bad.log"]
    (log,) = (toy / ".snakemake" / "log").glob("*.log")
    assert f"log: .snakemake/log/{log.name}" in lines
    assert "rule bad:" in log.read_text()


@pytest.mark.timing
def test_lines_fit_a_narrow_terminal_and_color_can_be_disabled(toy):
    ours, theirs = pty.openpty()
    environment = {**os.environ, "COLUMNS": "60", "TERM": "xterm", "NO_COLOR": "1"}
    command = [sys.executable, "-m", "snakemake", "--cores", "2", "--nolock", "--logger", "kgprobe"]
    run = subprocess.Popen([*command, "--nocolor", "-k"], cwd=toy, env=environment, stdout=theirs,
                           stderr=theirs)  # fmt: skip
    os.close(theirs)
    output = b""
    while True:
        try:
            part = os.read(ours, 4096)
        except OSError:
            break
        if not part:
            break
        output += part
    assert run.wait(timeout=60) == 1
    text = output.decode()
    assert not re.search(r"\x1b\[[0-9;]*m", text)
    begun = text[text.index("6 jobs:") :]
    lines = [ESCAPES.sub("", line) for line in re.split(r"[\r\n]+", begun)]
    assert max(map(len, lines)) <= 60, [line for line in lines if len(line) > 60]
    assert any("/6" in line and "━" in line for line in lines), text
    assert lines[-2].startswith("what is done is kept")


def test_a_table_error_is_printed_once_in_full(toy):
    (toy / "Snakefile").write_text('raise WorkflowError("row 3: no such model")\n')
    result = snakemake("--logger", "kgprobe", cwd=toy)
    assert result.returncode == 1
    assert result.stderr.count("row 3: no such model") == 1


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(3.24, "3.2 s"), (59.7, "1 min 0 s"), (3599.7, "1 h 0 min"), (7169, "1 h 59 min"),
     (7190, "2 h 0 min")],
)  # fmt: skip
def test_a_duration_has_at_most_59_minutes(seconds, text):
    assert terminal.spell(seconds) == text


@pytest.mark.parametrize("name", ["default", "slurm"])
def test_profiles_keep_what_is_done_and_begin_anew_what_is_not(name):
    profile = yaml.safe_load((ROOT / "profiles" / name / "profile.yaml").read_text())
    kept = ("keep-going", "keep-incomplete", "rerun-incomplete")
    assert [profile[key] for key in kept] == [True, True, True]
    # totals are the workflow's: those of a profile that is found by itself win key by key
    assert "resources" not in profile
    # the entry for catalogs finds the same profiles from any folder
    beside = ROOT / "workflow/profiles" / name / "profile.yaml"
    assert yaml.safe_load(beside.read_text()) == profile

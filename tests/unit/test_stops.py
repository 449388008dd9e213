"""A stopped run ends within seconds, prints one line and leaves only complete files."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest
from typer.testing import CliRunner

from kgprobe import guard
from kgprobe.cli import app
from kgprobe.stops import passed_on, terminated
from tests.stops import MARK, WITHIN, marked

#: `first` is quick; `long` has a helper in another session, an incomplete and a temporary file
SNAKEFILE = """\
from kgprobe import guard
GUARD = guard.Guard(workflow) if workflow.is_main_process else None
if GUARD:
    GUARD.own("results", "answers")
    SLOW
onstart:
    GUARD.listen()
rule all:
    input: "results/long"
rule first:
    output: "results/first"
    shell: "echo first >> made; touch {output}"
rule long:
    input: "results/first"
    output: "results/long", directory("results/folder")
    script: "long.py"
"""
LONG = """\
import os, pathlib, shutil, signal, subprocess, sys, tempfile, time
from kgprobe.stops import terminated
DEAF
folder = pathlib.Path(snakemake.output[1])
folder.mkdir()
(folder / "one").touch()
mine = pathlib.Path(f"answers/.{os.getpid()}.part")
mine.mkdir(parents=True)
pathlib.Path("answers/.1.part").mkdir(exist_ok=True)
tempfile.mkdtemp()
if not pathlib.Path("enough").exists():
    pathlib.Path("results/.long.part").touch()
    subprocess.Popen(["sleep", "300"], start_new_session=True)
    with terminated(SystemExit):
        pathlib.Path("begun").touch()
        try:
            time.sleep(300)
        finally:
            mine.rmdir()
mine.rmdir()
pathlib.Path(snakemake.output[0]).touch()
"""
DEAF = "signal.signal(signal.SIGTERM, signal.SIG_IGN)"


class Run:
    """A toy run in a folder."""

    def __init__(self, folder: Path, deaf: bool = False, slow: str = "pass") -> None:
        self.folder = folder
        (folder / "Snakefile").write_text(SNAKEFILE.replace("SLOW", slow))
        (folder / "long.py").write_text(LONG.replace("DEAF", DEAF if deaf else ""))
        (folder / "tmp").mkdir()
        self.process: subprocess.Popen[str] | None = None

    def start(self, *more: str, ignored: tuple[int, ...] = ()) -> subprocess.Popen[str]:
        def before() -> None:
            # independent of how the tests were started (nohup, background job)
            for number in (signal.SIGINT, signal.SIGHUP):
                signal.signal(number, signal.SIG_DFL)
            for number in ignored:
                signal.signal(number, signal.SIG_IGN)

        command = [sys.executable, "-m", "snakemake", "--cores", "1", "--nolock", "--nocolor"]
        return subprocess.Popen(
            [*command, "--rerun-incomplete", "--logger", "kgprobe", *more],
            cwd=self.folder, text=True, stderr=subprocess.PIPE, start_new_session=True,
            preexec_fn=before,
            env={**os.environ, "TMPDIR": str(self.folder / "tmp"), MARK: str(self.folder)},
        )  # fmt: skip

    def wait_for(self, name: str, process: subprocess.Popen[str]) -> None:
        until = time.monotonic() + 120
        while not (self.folder / name).exists():
            assert process.poll() is None, process.stderr and process.stderr.read()
            assert time.monotonic() < until
            time.sleep(0.05)

    def left(self) -> list[object]:
        """Return processes, temporary files and incomplete files of this run."""
        half = [p for name in ("results", "answers") for p in (self.folder / name).rglob("*.part")]
        ours = [p for p in half if p.name != ".1.part"]
        return [*marked(str(self.folder)), *(self.folder / "tmp").iterdir(), *ours]


def stopped(process: subprocess.Popen[str], *numbers: int, is_group: bool = False) -> list[str]:
    """Send signals to a run, check that it ends in time and return its stderr."""
    clock = time.monotonic()
    for number in numbers:
        (os.killpg if is_group else os.kill)(process.pid, number)
        time.sleep(0.05)
    _, said = process.communicate(timeout=60)
    assert time.monotonic() - clock < WITHIN, said
    return said.splitlines()


@pytest.mark.timing
@pytest.mark.parametrize(
    ("numbers", "is_group", "deaf", "name"),
    [
        ([signal.SIGTERM], False, False, "SIGTERM"),
        ([signal.SIGINT], False, False, "Ctrl-C"),
        ([signal.SIGTERM, signal.SIGTERM], True, False, "SIGTERM"),
        ([signal.SIGINT, signal.SIGINT], True, False, "Ctrl-C"),
        ([signal.SIGHUP], False, False, "SIGHUP"),
        # a job that ignores signals is killed
        ([signal.SIGTERM], False, True, "SIGTERM"),
    ],
)
def test_a_stopped_run_prints_one_line_cleans_up_and_resumes(
    tmp_path, numbers, is_group, deaf, name
):
    run = Run(tmp_path, deaf)
    process = run.start()
    run.wait_for("begun", process)
    assert len(list(marked(str(tmp_path)))) >= 3
    said = stopped(process, *numbers, is_group=is_group)
    assert said[-1] == (
        f"stopped ({name}): 1 of 3 jobs are done; they and the answers so far are kept, "
        "and the same command resumes"
    )
    assert sum("stopped" in line for line in said) == 1
    assert not [line for line in said if "Traceback" in line or "FAILED" in line], said
    assert process.returncode != 0
    assert not run.left()
    assert not (tmp_path / "results/folder").exists()
    assert (tmp_path / "answers/.1.part").exists(), "another process's"
    (tmp_path / "enough").touch()
    again = run.start()
    _, output = again.communicate(timeout=60)
    assert again.returncode == 0, output
    assert (tmp_path / "made").read_text() == "first\n", "a finished job is not repeated"
    assert (tmp_path / "results/long").exists()
    assert not list((tmp_path / "tmp").iterdir())


def test_a_stop_before_the_first_job_prints_one_line(tmp_path):
    run = Run(tmp_path, slow="open('parsed', 'w'); import time; time.sleep(60)")
    process = run.start()
    run.wait_for("parsed", process)
    said = stopped(process, signal.SIGTERM)
    assert said[-1] == "stopped (SIGTERM) before the first job: run the same command to start again"
    assert process.returncode == 128 + signal.SIGTERM
    assert not run.left()


@pytest.mark.timing
def test_kgprobe_run_reports_a_stop_during_the_import_of_snakemake(tmp_path):
    command = [sys.executable, "-m", "kgprobe.cli", "run", "config/embedded.yaml", "--cores", "1"]
    process = subprocess.Popen(
        command, cwd=tmp_path, text=True, stderr=subprocess.PIPE,
        env={**os.environ, MARK: str(tmp_path)},
    )  # fmt: skip
    until = time.monotonic() + 60
    while not psutil.Process(process.pid).children() and time.monotonic() < until:
        time.sleep(0.01)
    time.sleep(0.1)
    assert stopped(process, signal.SIGTERM)[-1] == "kgprobe: stopped before the first job"
    assert process.returncode == 128 + signal.SIGTERM
    assert not list(marked(str(tmp_path)))


@pytest.mark.parametrize(
    ("signals", "code", "is_told"), [(1, -15, True), (2, -15, False), (1, 143, False)]
)
def test_kgprobe_run_reports_a_stop_unless_snakemake_does(monkeypatch, signals, code, is_told):
    """It speaks for a Snakemake that one signal ended before it could handle it."""

    class Snakemake:
        def __init__(self, command, **_) -> None:
            assert "snakemake" in command

        def send_signal(self, number: int) -> None:
            assert number == signal.SIGTERM

        def wait(self) -> int:
            for _ in range(signals):
                os.kill(os.getpid(), signal.SIGTERM)
            return code

    monkeypatch.setattr(subprocess, "Popen", Snakemake)
    result = CliRunner().invoke(app, ["run", "config/embedded.yaml"])
    assert result.exit_code == 128 + signal.SIGTERM
    assert ("kgprobe: stopped before the first job" in result.stderr) == is_told


@pytest.mark.timing
def test_the_next_run_cleans_up_after_a_killed_one(tmp_path):
    run = Run(tmp_path)
    process = run.start()
    run.wait_for("begun", process)
    os.killpg(process.pid, signal.SIGKILL)
    # not communicate: the helper has its stderr
    process.wait()
    orphans = list(marked(str(tmp_path)))
    assert orphans, "the helper in a session of its own lives"
    (tmp_path / "enough").touch()
    again = run.start()
    assert again.communicate(timeout=60) is not None
    assert again.returncode == 0
    assert not any(o.is_running() and o.status() != psutil.STATUS_ZOMBIE for o in orphans)
    assert not [p for p in (tmp_path / "tmp").iterdir() if p.name.startswith(guard.PREFIX)]
    assert not (tmp_path / "results/.long.part").exists()


def test_a_live_run_keeps_its_folder(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    folder, held = guard._make_folder()
    assert guard.sweep() == 0
    assert Path(folder).is_dir()
    os.close(held)
    assert guard.sweep() == 1
    assert not Path(folder).exists()


@pytest.mark.timing
def test_nohup_is_heeded(tmp_path):
    run = Run(tmp_path)
    process = run.start(ignored=(signal.SIGHUP,))
    run.wait_for("begun", process)
    process.send_signal(signal.SIGHUP)
    time.sleep(0.5)
    assert process.poll() is None
    stopped(process, signal.SIGTERM)


JOB = """\
import os, signal, sys, time
from types import SimpleNamespace
from kgprobe.files import atomic
from kgprobe.job import job, log, progress
class Named(dict):
    __getattr__ = dict.get
rule = SimpleNamespace(rule="r", input=[], output=[], params=Named(), wildcards=Named(),
                       config={}, threads=1, resources=Named(), log=["log"])
with job(rule) as run, atomic("made") as half:
    half.touch()
    bar = progress(range(9))
    try:
        print("ready", flush=True)
        time.sleep(60)
    finally:
        time.sleep(0.5)
        print("put away", flush=True)
"""


@pytest.mark.timing
def test_a_job_cleans_up_even_after_two_signals(tmp_path):
    process = subprocess.Popen(
        [sys.executable, "-c", JOB], cwd=tmp_path, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    assert process.stdout
    assert process.stdout.readline() == "ready\n"
    for _ in range(2):
        process.terminate()
        time.sleep(0.1)
    out, err = process.communicate(timeout=30)
    assert (out, err, process.returncode) == ("put away\n", "", 128 + signal.SIGTERM)
    assert [path.name for path in tmp_path.iterdir()] == ["log"]
    assert (tmp_path / "log").read_text().endswith("stopped\n")


def test_signals_are_forwarded_and_handlers_restored():
    before = signal.getsignal(signal.SIGTERM)
    process = subprocess.Popen(["sleep", "60"])
    with passed_on(process) as signals:
        os.kill(os.getpid(), signal.SIGTERM)
        assert process.wait(10) == -signal.SIGTERM
    assert signals == [signal.SIGTERM]
    assert signal.getsignal(signal.SIGTERM) == before


@pytest.mark.parametrize("error", [ValueError, RuntimeError, KeyboardInterrupt])
def test_an_error_of_the_body_is_raised_under_any_signal_handler(error):
    def fail():
        with terminated(SystemExit), terminated(SystemExit):
            raise error("its own")

    def elsewhere():
        with pytest.raises(error, match="its own"):
            fail()
        return True

    before = signal.signal(signal.SIGTERM, signal.SIG_DFL)
    try:
        assert elsewhere()
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
        with ThreadPoolExecutor(1) as pool:
            assert pool.submit(elsewhere).result()
        signal.signal(signal.SIGTERM, lambda *_: None)
        assert elsewhere()
    finally:
        signal.signal(signal.SIGTERM, before)

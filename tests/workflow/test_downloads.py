"""Live downloads as rules, from a server on this machine: released sets and dumps."""

import functools
import http.server
import shutil
import subprocess
import sys
import threading
import zipfile
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest
import yaml

from kgprobe.sources.dumps import lock_file
from tests.workflow.project import ROOT, Project
from tests.workflow.test_runs import project
from tools import lock_file as locking

pytestmark = pytest.mark.nightly(
    gate=["contract/test_download.py", "unit/test_released_archive.py", "unit/test_lock_file.py"]
)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """(URL, folder served)."""
    folder = tmp_path / "served"
    folder.mkdir()
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as served:
        threading.Thread(target=served.serve_forever, args=(0.02,), daemon=True).start()
        yield f"http://127.0.0.1:{served.server_port}", folder
        served.shutdown()


@pytest.fixture
def made(tmp_path: Path) -> Project:
    """Return a project with a contact address."""
    (tmp_path / "project").mkdir()
    one = project(tmp_path / "project")
    one.edit("config/config.yaml", 'contact: ""', "contact: test@example.org")
    return one


def test_released_sets_and_dumps_are_fetched_by_rules(server, made):
    url, folder = server
    with zipfile.ZipFile(folder / "onto.zip", "w") as archive:
        archive.writestr("top/data/ontology/class.json", "[]")
        archive.writestr("top/data/memorizing/type.jsonl", "{}")
        archive.writestr("top/scripts/memorizing/type.sh", "exit 1")
    parts = "{ontology: data/ontology/, memorizing: data/memorizing/}"
    shutil.copy(ROOT / "resources/world/dumps/wikidata.nt.bz2", folder / "truthy.nt.bz2")
    made.edit(
        "config/embedded.yaml",
        "  ontoprobe:\n    access: local\n",
        "  ontoprobe:\n    access: live\n    folder: data/onto\n"
        f"    archives: [{{url: {url}/onto.zip, parts: {parts}}}]\n  dumps:\n"
        "    fetched:\n      access: live\n      form: truthy\n      file: data/fetched.nt.bz2\n"
        f'      url: {url}/truthy.nt.bz2\n      snapshot: "2026-01"\n',
    )
    wanted = [
        "data/onto/ontology",
        "data/onto/memorizing",
        "results/embedded/sources/fetched/facts.parquet",
    ]
    result = made.run("--", *wanted)
    assert result.returncode == 0, result.stdout
    assert "onto.zip: 2 files unpinned, not in the lock file: top/data/memorizing" in result.stdout
    assert (made.folder / "data/onto/ontology/class.json").read_text() == "[]"
    released = made.folder / "data/onto/memorizing"
    assert (released / "type.jsonl").is_file()
    assert not list(released.glob("*.sh")), "the data, not the scripts"
    assert pl.read_parquet(made.folder / wanted[2]).height > 10_000
    (folder / "truthy.nt.bz2").unlink()
    again = made.run("--", *wanted)
    assert "Nothing to be done" in again.stdout, "what was fetched is not asked for again"
    forced = made.run("--forcerun", "download_fetched", "--", wanted[2])
    assert forced.returncode == 0, forced.stdout
    assert "download_fetched" in forced.stdout, "a dump of hours is checked, not thrown away"


def test_parts_of_an_archive_become_a_task(server, made):
    url, folder = server
    texts = {
        "train": "fine . \t1\nbad . \t0\n",
        "dev": "so \t1\nno \t0\n",
        "test": "a \t1\nb \t0\n",
    }
    with zipfile.ZipFile(folder / "data.zip", "w") as archive:
        for split, text in texts.items():
            archive.writestr(f"top/data/downstream/SST/binary/sentiment-{split}", text)
            archive.writestr(f"top/data/downstream/SST/fine/sentiment-{split}", "of five \t4\n")
    config = yaml.safe_load((ROOT / "config/config.yaml").read_text())
    (real,) = config["sources"]["sst2"]["archives"]
    parts = ", ".join(f"{name}: {path}" for name, path in real["parts"].items())
    made.edit(
        "config/embedded.yaml",
        "  sst2: {access: absent}\n",
        "  sst2:\n    access: live\n    folder: data/sst2\n"
        f"    archives: [{{url: {url}/data.zip, parts: {{{parts}}}}}]\n",
    )
    task = "results/embedded/benchmarks/auto_sst2"
    result = made.run("--", f"{task}/examples.parquet")
    assert result.returncode == 0, result.stdout
    assert pl.read_parquet(made.folder / task / "examples.parquet").height == 6
    counted = pl.read_parquet(made.folder / task / "funnel.parquet")
    assert counted.filter(step="test: examples")["rows_out"].to_list() == [2]


def verified(made):
    """Return (exit code, output of `make verify`)."""
    command = [sys.executable, "-m", "kgprobe.cli", "verify", "config/embedded.yaml"]
    done = subprocess.run(command, cwd=made.folder, capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


def test_a_file_with_a_wrong_checksum_stops_its_rule(server, made, tmp_path):
    url, folder = server
    commit = "12345678" * 5
    names = ["sentiment-train", "sentiment-dev", "sentiment-test"]
    parts = ", ".join([*(f"{name}: SST/{name}" for name in names), "more: folder/"])

    def serve(**texts):
        with zipfile.ZipFile(folder / "data.zip", "w") as archive:
            for name in names:
                archive.writestr(f"name-{commit}/SST/{name}", texts.get(name[10:], "so \t1\n"))
            archive.writestr(f"name-{commit}/folder/so", "so \t1\n")

    (tmp_path / "so").write_text("so \t1\n")
    blobs = {
        path: lock_file.blob(tmp_path / "so")
        for path in [*(f"SST/{n}" for n in names), "folder/so"]
    }
    locking.write_lock_file(
        made.folder / "lock.tsv", [lock_file.Tree(f"owner/name@{commit}", blobs)]
    )
    made.edit(
        "config/embedded.yaml",
        "  sst2: {access: absent}\n",
        "  lock_file: lock.tsv\n  sst2:\n    access: live\n    folder: data/sst2\n    archives: "
        f"[{{url: {url}/data.zip, tree: owner/name@1234567, parts: {{{parts}}}}}]\n",
    )
    wanted = [f"data/sst2/{name}" for name in names]
    serve(dev="so \t0\n")
    wrong = made.run("--", *wanted)
    assert wrong.returncode
    said = " ".join(wrong.stdout.split())
    for part in (f"{url}/data.zip), file SST/sentiment-dev", "git blob id", "the next run asks"):
        assert part in said
    assert not list(made.folder.glob("data/sst2/*"))
    assert verified(made)[0] == 0, "what is absent is not wrong"
    serve()
    right = made.run("--", *wanted)
    assert right.returncode == 0, right.stdout
    code, output = verified(made)
    assert (code, output.splitlines()[-1].split()) == (0, ["all", "5", "5", "0", "0", "0"])
    (made.folder / "data/sst2/sentiment-dev").write_text("so \t0\n")
    code, output = verified(made)
    assert code == 1
    assert "sentiment-dev: git blob id" in output

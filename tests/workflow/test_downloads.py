"""Live downloads as rules, from a server on this machine: released sets and dumps."""

import functools
import http.server
import threading
import zipfile
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest
import yaml

from kgprobe.sources.world import build, dumps
from tests.workflow.project import ROOT
from tests.workflow.test_runs import project


@pytest.fixture
def server(tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """(URL, folder served)."""
    folder = tmp_path / "served"
    folder.mkdir()
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as served:
        threading.Thread(target=served.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{served.server_port}", folder
        served.shutdown()


def test_released_sets_and_dumps_are_fetched_by_rules(server, tmp_path):
    url, folder = server
    with zipfile.ZipFile(folder / "onto.zip", "w") as archive:
        archive.writestr("top/data/ontology/class.json", "[]")
        archive.writestr("top/data/memorizing/type.jsonl", "{}")
        archive.writestr("top/scripts/memorizing/type.sh", "exit 1")
    parts = "{ontology: data/ontology/, memorizing: data/memorizing/}"
    facts = build.load(ROOT / "resources/world")
    (folder / "truthy.nt.bz2").write_bytes(dumps.render_truthy(facts))
    (tmp_path / "project").mkdir()
    made = project(tmp_path / "project")
    made.edit("config/config.yaml", 'contact: ""', "contact: test@example.org")
    made.edit(
        "config/embedded.yaml",
        "  ontoprobe:\n    access: local\n  dumps:\n",
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
    assert (
        "onto.zip: 2 files unpinned, as this address has no pins: top/data/memorizing"
        in result.stdout
    )
    assert (made.folder / "data/onto/ontology/class.json").read_text() == "[]"
    released = made.folder / "data/onto/memorizing"
    assert (released / "type.jsonl").is_file()
    assert not list(released.glob("*.sh")), "the data, not the scripts"
    fetched = pl.read_parquet(made.folder / wanted[2])
    assert fetched.height > 10_000
    (folder / "truthy.nt.bz2").unlink()
    again = made.run("--", *wanted)
    assert "Nothing to be done" in again.stdout, "what was fetched is not asked for again"


def test_parts_of_an_archive_become_a_task(server, tmp_path):
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
    (tmp_path / "project").mkdir()
    made = project(tmp_path / "project")
    made.edit("config/config.yaml", 'contact: ""', "contact: test@example.org")
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
    examples = pl.read_parquet(made.folder / task / "examples.parquet")
    assert examples.height == 6
    counted = pl.read_parquet(made.folder / task / "funnel.parquet")
    assert counted.filter(step="test: examples")["rows_out"].to_list() == [2]

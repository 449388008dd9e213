"""A full disk, a read-only folder, a missing or disconnecting server: one screen, no loss."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest

from kgprobe.sources.sparql.paging import read_query
from tests.contract.fault_server import Faults, FaultServer, Table
from tests.contract.oxigraph import local_endpoint
from tests.workflow.project import ROOT, Project
from tests.workflow.test_runs import failed, own_resources, project

pytestmark = pytest.mark.nightly(
    gate=[
        "mini/test_run.py::test_a_job_that_fails_is_one_screen_and_loses_nothing",
        "contract/test_faults.py",
    ]
)

needs_mount = pytest.mark.skipif(
    os.geteuid() != 0, reason="mounting a small file system needs root, as in CI"
)
PULLED = "results/embedded/sources/wikidata/constraints.parquet"
FACTS = "results/embedded/sources/world/facts.parquet"
SMALL = 200  # rows a page: the world's constraints come in six


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """Mount `results` on a file system of 64 KiB, which `mount -o remount` can change."""
    results = tmp_path / "project/results"
    results.mkdir(parents=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(results)], check=True)
    yield results
    subprocess.run(["umount", str(results)], check=True)


def remount(folder: Path, options: str) -> None:
    subprocess.run(["mount", "-o", f"remount,{options}", str(folder)], check=True)


@needs_mount
def test_a_full_disk_is_reported_and_leaves_no_partial_file(small_disk):
    made = project(small_disk.parent)
    shown = failed(made, "--", FACTS)
    assert "rule pull_facts" in shown
    assert "No space left on device" in shown
    assert "facts.parquet" in shown
    left = [p for p in small_disk.rglob("*") if p.is_file()]
    assert left == [], "neither the file nor a temporary one"
    remount(small_disk, "size=200m")
    assert made.run("--", FACTS).returncode == 0
    assert (small_disk / "embedded/sources/world/facts.parquet").stat().st_size > 2**16


@needs_mount
def test_a_read_only_results_folder_is_reported_and_files_stay(small_disk):
    made = project(small_disk.parent)
    remount(small_disk, "size=200m")
    assert made.run("--", FACTS).returncode == 0
    before = made.hashes("results/embedded/sources/world")
    remount(small_disk, "ro")
    result = made.run("--", "results/embedded/sources/dbpedia/classes.parquet")
    remount(small_disk, "rw")
    assert result.returncode == 1
    assert "Read-only file system" in result.stdout
    assert "results" in result.stdout
    assert len(result.stdout.splitlines()) <= 60
    assert made.hashes("results/embedded/sources/world") == before


def live(folder: Path, url: str) -> Project:
    """Return a project whose Wikidata is a live endpoint at `url`."""
    made = own_resources(folder)
    endpoints = folder / "resources/endpoints.tsv"
    limits = f"1 0 0 1 5 10 {SMALL} 5000 100 2 1000000 none"
    row = ["test", url, *limits.split(), ""]
    endpoints.write_text(endpoints.read_text() + "\t".join(row) + "\n")
    made.edit(
        "config/embedded.yaml",
        "  wikidata:\n    access: embedded\n    endpoint: local\n    snapshot: embedded",
        '  wikidata:\n    access: live\n    endpoint: test\n    snapshot: "2026-01"',
    )
    made.edit("config/config.yaml", 'contact: ""', "contact: test@example.org")
    return made


def test_a_missing_endpoint_is_reported_with_query_and_cause(tmp_path):
    shown = failed(live(tmp_path, "http://127.0.0.1:9/sparql"), "--", PULLED)
    assert "rule pull (source=wikidata, query=constraints)" in shown
    assert "test" in shown
    assert "http://127.0.0.1:9/sparql" in shown
    assert "constraints.rq" in shown
    assert "refused" in shown
    assert not (tmp_path / PULLED).exists()


@pytest.fixture(scope="module")
def pulled_table() -> Iterator[Table]:
    """Return all rows of constraints.rq on the embedded knowledge graph, from a real server."""
    rdf = ROOT / "resources/world/wikidata.nt.gz"
    query = read_query(ROOT / "resources/queries/wikidata/constraints.rq")
    with local_endpoint([rdf]) as endpoint:
        yield Table(endpoint.url, query)


def test_a_socket_closed_during_transfer_loses_no_finished_page(tmp_path, pulled_table):
    with FaultServer(pulled_table) as server:
        made = live(tmp_path, server.url)
        # the count and two pages are whole, then every answer breaks off in its middle
        server.expect(Faults(dict.fromkeys(range(4, 200), "reset middle")))
        shown = failed(made, "--", PULLED)
        assert "page 3" in shown
        assert "constraints.rq" in shown
        folder = tmp_path / "data/wikidata/2026-01/constraints"
        kept = {p.name: p.read_bytes() for p in folder.glob("page-*.json.gz")}
        assert sorted(kept) == ["page-00001.json.gz", "page-00002.json.gz"]
        assert not (folder / "meta.json").exists()
        assert not (tmp_path / PULLED).exists()
        server.expect(Faults())
        again = made.run("--", PULLED)
        assert again.returncode == 0, again.stdout
        assert all((folder / name).read_bytes() == data for name, data in kept.items())
        whole = len(list(folder.glob("page-*.json.gz")))
        assert sum(not seen.is_count for seen in server.seen) == whole - len(kept)
    assert pl.read_parquet(tmp_path / PULLED).height == pulled_table.n
    shutil.rmtree(tmp_path / "data")

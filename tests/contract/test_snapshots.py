"""The bands that live pulls are held to."""

import logging

import pytest

from kgprobe.sources.sparql import errors
from kgprobe.sources.sparql.endpoint import Endpoint, Policy
from kgprobe.sources.sparql.pull import pull
from tests.contract.conftest import RESOURCES

CLASSES = RESOURCES / "queries/dbpedia/classes.rq"


def banded(text: str, tmp_path) -> object:
    path = tmp_path / "queries" / "dbpedia" / "classes.rq"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(CLASSES.read_text().replace("# band: 750 850", f"# band: {text}"))
    return path


def test_a_live_pull_outside_its_band_warns_and_a_halved_one_fails(
    world_endpoint, tmp_path, caplog, monkeypatch
):
    monkeypatch.setattr(logging.getLogger("kgprobe"), "propagate", True)
    live = Endpoint("dbpedia", world_endpoint.url, Policy())
    rows = pull(CLASSES, world_endpoint, tmp_path / "local" / "s").meta["rows"]
    assert rows < 750, "the world is smaller than the band, which binds live pulls alone"
    path = banded(f"{rows + 1} {rows + 9}", tmp_path)
    snapshot = pull(path, live, tmp_path / "a" / "s", contact="t@example.org")
    assert snapshot.meta["access"] == "live"
    assert "an older snapshot" in caplog.text
    path = banded(f"{2 * rows + 2} {3 * rows}", tmp_path)
    with pytest.raises(errors.ImplausibleTable, match=f"{rows} rows"):
        pull(path, live, tmp_path / "b" / "s", contact="t@example.org")
    assert not (tmp_path / "b" / "s" / "classes" / "meta.json").exists()

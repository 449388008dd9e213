"""The packaged sets equal those built from the embedded knowledge graph."""

import shutil

import polars as pl

from kgprobe import schema
from kgprobe.schema import ITEMS
from tools import embedded

FOLDER = embedded.ROOT / "resources" / "benchmarks"


def test_packaged_sets_have_hundreds_of_items():
    """Lint checks that they match the embedded graph (`python -m tools.embedded check`)."""
    for size, least in (("lite", 400), ("big", 1300)):
        assert schema.read(FOLDER / f"world_{size}" / "items.parquet", ITEMS).height > least


def test_file_with_other_rows_is_reported_and_rebuilt(tmp_path, capsys):
    for name in ("resources", "config"):
        shutil.copytree(embedded.ROOT / name, tmp_path / name)
    path = tmp_path / "resources/benchmarks/world_lite/items.parquet"
    before = path.read_bytes()
    changed = schema.read(path, ITEMS).with_columns(subject=pl.col("subject") + "x")
    schema.write(changed, ITEMS, path)
    assert embedded.main(["check"], tmp_path) == 1
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1
    assert "world_lite/items.parquet is not what resources/world makes" in lines[0]
    assert embedded.main(["write"], tmp_path) == 0
    assert path.read_bytes() == before


def test_unknown_command_raises(capsys):
    assert embedded.main(["wirte"]) == 2
    assert "usage" in capsys.readouterr().err

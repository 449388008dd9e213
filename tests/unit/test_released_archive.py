"""Unpacking the archives of released data sets."""

import zipfile

import pytest

from kgprobe.sources.released_archive import BEAR, unpack, unpack_as


def archive(path, *names):
    with zipfile.ZipFile(path, "w") as zipped:
        for name in names:
            zipped.writestr(name, name)
    return path


def test_the_three_parts_come_out_from_below_any_folder(tmp_path):
    path = archive(
        tmp_path / "a.zip",
        "BEAR-725b4e3/BEAR/P36.jsonl",
        "BEAR-725b4e3/BEAR-big/P36.jsonl",
        "BEAR-725b4e3/relation_info.json",
        "BEAR-725b4e3/README.md",
    )
    unpack(path, tmp_path, BEAR)
    assert (tmp_path / "BEAR/P36.jsonl").read_text() == "BEAR-725b4e3/BEAR/P36.jsonl"
    assert (tmp_path / "BEAR-big/P36.jsonl").is_file()
    assert (tmp_path / "relation_info.json").is_file()
    assert not (tmp_path / "README.md").exists()


def test_a_missing_part_and_a_damaged_archive_are_named(tmp_path):
    with pytest.raises(ValueError, match=r"a\.zip: no BEAR-big in it"):
        unpack(archive(tmp_path / "a.zip", "x/BEAR/P36.jsonl"), tmp_path, BEAR)
    (tmp_path / "b.zip").write_bytes(b"no zip")
    with pytest.raises(ValueError, match=r"b\.zip: not a sound zip archive"):
        unpack(tmp_path / "b.zip", tmp_path, BEAR)


def test_parts_get_names_of_their_own_and_the_place_nearest_to_the_top_counts(tmp_path):
    names = ["top/prompt/mine/P1.jsonl", "top/code/prompt/x.py", "top/a/b.txt", "top/c/a/b.txt"]
    made = unpack_as(
        archive(tmp_path / "a.zip", *names),
        tmp_path,
        {"lpaqa": "prompt", "vocab/words.txt": "a/b.txt"},
    )
    assert made == [tmp_path / "lpaqa", tmp_path / "vocab/words.txt"]
    assert (tmp_path / "lpaqa/mine/P1.jsonl").is_file()
    assert not (tmp_path / "lpaqa/x.py").exists()
    assert (tmp_path / "vocab/words.txt").read_text() == "top/a/b.txt"

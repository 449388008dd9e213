"""Unpacking the archives of released data sets: the files that are unpacked or refused."""

import stat
import zipfile
from pathlib import Path

import pytest

from kgprobe.settings import Settings
from kgprobe.sources.dumps import archives
from kgprobe.sources.dumps.archives import ArchiveError, DamagedError, check, open_archive, unpack
from kgprobe.sources.dumps.download import link, place

#: Required files of BEAR and of OntoProbe.
BEAR = Settings().sources.bear.archives[0].parts
ONTOPROBE = Settings().sources.ontoprobe.archives[0].parts
ONE = {"BEAR": "BEAR/"}

#: Members of the real archives (tests/real/test_released_archives.py looks them up there).
BEAR_TOP = "BEAR-ace91fd2c568f0814f6264b7f84f1b2b2eb21cea"
_BEAR = [f"{part}/{name}.jsonl" for part in ("BEAR", "BEAR-big") for name in ("P36", "P6")]
BEAR_MEMBERS = [f"{BEAR_TOP}/{name}" for name in (*_BEAR, "relation_info.json", "README.md")]
ONTOPROBE_TOP = "OntoProbe-PLMs-cc95300c58e65ad41ac304a7722479443c165f15"
_ONTOPROBE = """data/ontology/class.json data/memorizing/type.jsonl scripts/memorizing/type.sh
    test-gpt/data-gpt/memorizing/type.jsonl test-gpt/data-gpt/reasoning/rdfs2-02.jsonl"""
ONTOPROBE_MEMBERS = [f"{ONTOPROBE_TOP}/{name}" for name in _ONTOPROBE.split()]


def archive(path, *names, data=None):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as zipped:
        for name in names:
            zipped.writestr(name, name if data is None else data)
    return path


def everything(folder):
    """Return all files below a folder, without the archives themselves."""
    return sorted(
        str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file() and p.suffix != ".zip"
    )


def refused(path, match, parts=ONE):
    """Assert that the archive is refused with this message, and that no file of it was written."""
    target = path.parent / "inner" / "target"
    target.mkdir(parents=True, exist_ok=True)
    with pytest.raises(ArchiveError, match=match) as error:
        unpack(path, target, parts)
    assert str(path) in str(error.value)
    assert everything(path.parent) == []


def test_parts_are_unpacked_from_any_folder_and_replace_old_files(tmp_path):
    (tmp_path / "BEAR").mkdir()
    (tmp_path / "BEAR/old.jsonl").write_text("of another release")
    (tmp_path / ".BEAR.part").mkdir()
    (tmp_path / ".BEAR.part/BEAR").write_text("cut")
    unpack(archive(tmp_path / "a.zip", *BEAR_MEMBERS), tmp_path, BEAR)
    for name in ("BEAR/P36.jsonl", "relation_info.json"):
        assert (tmp_path / name).read_text() == f"{BEAR_TOP}/{name}"
    assert everything(tmp_path) == [
        "BEAR-big/P36.jsonl", "BEAR-big/P6.jsonl", "BEAR/P36.jsonl", "BEAR/P6.jsonl",
        "relation_info.json",
    ]  # fmt: skip


def test_a_folder_of_the_same_name_is_not_mixed_in(tmp_path):
    path = archive(tmp_path / "a.zip", *ONTOPROBE_MEMBERS)
    unpack(path, tmp_path, ONTOPROBE)
    assert everything(tmp_path) == [
        "gpt/reasoning/rdfs2-02.jsonl", "memorizing/type.jsonl", "ontology/class.json",
    ]  # fmt: skip
    with pytest.raises(ArchiveError, match=r"memorizing/ could be .*/data/.* and .*/scripts/"):
        unpack(path, tmp_path, {"memorizing": "memorizing/"})


def test_a_folder_and_a_file_are_distinguished(tmp_path):
    path = archive(tmp_path / "a.zip", *BEAR_MEMBERS)
    with pytest.raises(ArchiveError, match="BEAR is a folder there: write it with / at its end"):
        unpack(path, tmp_path, {"BEAR": "BEAR"})
    with pytest.raises(ArchiveError, match=r"README\.md/ is a file there: write it without /"):
        unpack(path, tmp_path, {"x": "README.md/"})
    assert everything(tmp_path) == []


def test_an_archive_is_stored_under_its_address():
    data = Path("data").resolve()
    found = place(data, "https://github.com/lm-pub-quiz/BEAR/archive/ace91fd.zip")
    assert found == data / "archives/github.com/lm-pub-quiz/BEAR/archive/ace91fd.zip"
    odd = place(data, "http://127.0.0.1:80/../../../x y/..%2f?id=/7")
    assert data / "archives" in odd.resolve().parents
    assert odd != place(data, "http://127.0.0.1:80/../../../x y/..%2f?id=8")
    assert odd.suffix == ".zip"


def test_damaged_content_leaves_no_file_under_a_final_name(tmp_path):
    path = archive(tmp_path / "a.zip", "x/BEAR/P36.jsonl", data="abc" * 1000)
    whole = bytearray(path.read_bytes())
    for byte in (50, 55):  # of the packed bytes: bad blocks, or a wrong checksum
        damaged = bytearray(whole)
        damaged[byte] ^= 0xFF
        path.write_bytes(damaged)
        with pytest.raises(ArchiveError, match=r"a\.zip"):
            unpack(path, tmp_path, ONE)
        assert everything(tmp_path) == []


@pytest.mark.parametrize(
    ("signature", "place", "byte"),
    [
        (b"PK\x01\x02", 6, 200),  # version needed to unpack
        (b"PK\x01\x02", 46, 0xFF),  # first byte of a name in UTF-8
        (b"PK\x05\x06", 16, 0xFF),  # begin of the table of contents
    ],
)
def test_every_damage_of_the_table_of_contents_names_the_archive(tmp_path, signature, place, byte):
    path = tmp_path / "r.zip"
    with zipfile.ZipFile(path, "w") as zipped:
        zipped.writestr("é.txt", b"text")
    data = bytearray(path.read_bytes())
    data[data.index(signature) + place] = byte
    path.write_bytes(data)
    with pytest.raises(DamagedError, match=r"r\.zip: not a complete zip archive .*remove it"):
        unpack(path, tmp_path, {"a": "é.txt"})


def test_parts_are_renamed_and_the_least_nested_match_is_used(tmp_path):
    names = ["top/prompt/mine/P1.jsonl", "top/code/prompt/x.py", "top/a/b.txt", "top/c/a/b.txt"]
    parts = {"mined": "prompt/", "vocab/words.txt": "a/b.txt"}
    taken = unpack(archive(tmp_path / "a.zip", *names), tmp_path, parts)
    assert taken.unpinned == ("top/a/b.txt", "top/prompt/mine/P1.jsonl")
    assert not taken.checked
    assert (tmp_path / "mined/mine/P1.jsonl").is_file()
    assert not (tmp_path / "mined/x.py").exists()
    assert (tmp_path / "vocab/words.txt").read_text() == "top/a/b.txt"


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("BEAR/../../x", "leads out of its folder"),
        ("top/BEAR/../../../x", "leads out of its folder"),
        ("elsewhere/../../x", "leads out of its folder"),
        ("BEAR/..\\..\\x", "leads out of its folder"),
        ("/BEAR/x", "an absolute path"),
        ("/etc/x", "an absolute path"),
        ("\\\\host\\BEAR\\x", "an absolute path"),
        ("C:\\BEAR\\x", "an absolute path"),
        ("top/BEAR/P36.jsonl", "there twice"),
        ("top//BEAR/./P36.jsonl", "there twice"),
        ("top/BEAR/P36.jsonl/", "there twice"),
        ("top/BEAR/P36.jsonl/x", "below 'top/BEAR/P36.jsonl', which is a file"),
        ("./", "no name"),
    ],
)
@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_unsafe_paths_are_refused_before_anything_is_written(tmp_path, name, wrong):
    path = archive(tmp_path / "a.zip", "top/BEAR/P36.jsonl", name)
    refused(path, rf"member .*{wrong}")
    with pytest.raises(ArchiveError, match=wrong), open_archive(path):
        pass


@pytest.mark.parametrize(
    ("kind", "wrong"),
    [(stat.S_IFLNK, "a link")]
    + [(kind, "neither file nor folder") for kind in (stat.S_IFCHR, stat.S_IFBLK, stat.S_IFIFO)],
)
def test_links_and_devices_are_refused_if_they_would_be_unpacked(tmp_path, kind, wrong):
    odd = zipfile.ZipInfo("top/BEAR/odd")
    odd.external_attr = (kind | 0o644) << 16
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as zipped:
        zipped.writestr("top/BEAR/P36.jsonl", "{}")
        zipped.writestr(odd, "/etc/passwd")
        zipped.writestr("top/BEAR-big/P36.jsonl", "{}")
    refused(tmp_path / "a.zip", rf"'top/BEAR/odd': {wrong}")
    # repositories hold links; an unrequested one is harmless
    unpack(tmp_path / "a.zip", tmp_path, {"BEAR-big": "BEAR-big/"})
    assert everything(tmp_path) == ["BEAR-big/P36.jsonl"]


def test_encrypted_and_oddly_compressed_members_are_refused(tmp_path):
    path = archive(tmp_path / "a.zip", "top/BEAR/P36.jsonl")
    whole = bytearray(path.read_bytes())
    place = whole.index(b"PK\x01\x02") + 8  # flags in the table of contents
    for flag, wrong in ((0x1, "encrypted"), (0x40, "encrypted"), (0x20, "a patch")):
        path.write_bytes(whole[:place] + bytes([whole[place] | flag]) + whole[place + 1 :])
        refused(path, f"member 'top/BEAR/P36.jsonl': {wrong}")
    with zipfile.ZipFile(path, "w", zipfile.ZIP_BZIP2) as zipped:
        zipped.writestr("top/BEAR/P36.jsonl", "{}")
    refused(path, "packed by method 12")


def test_declared_sizes_above_the_limit_are_refused(tmp_path, monkeypatch):
    names = [f"top/BEAR/P{n}.jsonl" for n in range(5)]
    path = archive(tmp_path / "a.zip", *names, data="x" * 100)
    for limit, least, words in (
        ("MEMBERS", 5, "5 members, more than the 4 allowed"),
        ("MEMBER", 100, r"P0\.jsonl': 100 bytes, more than the 99"),
        ("TOTAL", 500, "500 bytes in 5 members, more than the 499"),
    ):
        monkeypatch.setattr(archives, limit, least - 1)
        refused(path, words)
        monkeypatch.setattr(archives, limit, least)
    unpack(path, tmp_path, ONE)
    assert len(everything(tmp_path)) == 5


def test_bombs_are_refused(tmp_path):
    zeros = bytes(8 << 20)
    refused(archive(tmp_path / "a.zip", "BEAR/a", data=zeros), "more than 100 fold")
    # texts of up to a megabyte may be as repetitive as they are
    least = archive(tmp_path / "d.zip", "BEAR/a", data=zeros[: (1 << 20) + 1])
    refused(least, "1,048,577 bytes packed into .* more than 100 fold")
    # many that are small each
    small = archive(tmp_path / "b.zip", *(f"BEAR/{n}" for n in range(20)), data=zeros[: 1 << 18])
    refused(small, "5,242,880 bytes packed into .* more than 100 fold")
    # a member is not read beyond its declared size
    lying = bytearray((tmp_path / "a.zip").read_bytes())
    place = lying.index(b"PK\x01\x02") + 24  # size in the table of contents
    lying[place : place + 4] = (1000).to_bytes(4, "little")
    (tmp_path / "c.zip").write_bytes(lying)
    with pytest.raises(DamagedError, match=r"c\.zip: not a complete zip archive .*CRC"):
        unpack(tmp_path / "c.zip", tmp_path, ONE)
    assert everything(tmp_path) == []
    # uniform text compresses well, and spaces in a small file are harmless
    lines = b"".join(b'{"sub_id": "Q%d", "obj_id": "Q1"}\n' % n for n in range(100_000))
    unpack(archive(tmp_path / "d.zip", "BEAR/a", data=lines), tmp_path, ONE)
    unpack(archive(tmp_path / "e.zip", "BEAR/a", data=zeros[: 1 << 17]), tmp_path, ONE)


def test_overlapping_members_are_a_bomb(tmp_path):
    """Every entry of the table of contents points at the same compressed bytes."""
    data = b"".join(b"%d\n" % n for n in range(200_000))
    path = archive(tmp_path / "a.zip", "BEAR/000", data=data)
    whole = path.read_bytes()
    table, end = whole.index(b"PK\x01\x02"), whole.index(b"PK\x05\x06")
    entries = b"".join(whole[table:end].replace(b"BEAR/000", b"BEAR/%03d" % n) for n in range(300))
    tail = bytearray(whole[end:])
    tail[8:12] = (300).to_bytes(2, "little") * 2
    tail[12:16] = len(entries).to_bytes(4, "little")
    path.write_bytes(whole[:table] + entries + bytes(tail))
    refused(path, "more than 100 fold")


def test_one_member_is_read_under_the_same_checks(tmp_path, monkeypatch):
    path = archive(tmp_path / "a.zip", "in/a", data=bytes(4 << 20))
    with open_archive(path) as zipped:
        with pytest.raises(ArchiveError, match="'in/a': 4,194,304 bytes packed"):
            check(path, zipped, ["in/a"])
        monkeypatch.setattr(archives, "RATIO", 2000)
        check(path, zipped, ["in/a"])


def test_a_stored_file_survives_the_deletion_of_a_rule_s_output(tmp_path, monkeypatch):
    kept = place(tmp_path, "https://api.figshare.com/v2/file/download/8760241", "TREx.zip")
    assert kept == tmp_path / "archives/api.figshare.com/v2/file/download/8760241/TREx.zip"
    kept.parent.mkdir(parents=True)
    kept.write_text("of hours")
    path = tmp_path / "trex/TREx.zip"
    for _ in range(2):
        link(kept, path)
        assert path.samefile(kept)
    path.unlink()
    assert kept.read_text() == "of hours"
    monkeypatch.setattr(Path, "hardlink_to", lambda *_: Path("/dev/full/x").stat())
    link(kept, path)
    assert path.is_symlink()
    assert path.read_text() == "of hours"

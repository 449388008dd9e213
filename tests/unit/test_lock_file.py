"""The lock file: reading it, comparing files with it, and verifying a data folder."""

import gzip
import hashlib
import json
import re
import shutil
import subprocess
import zipfile
from pathlib import Path

import pytest

from kgprobe.settings import Settings
from kgprobe.settings.sources import Archive, Released, Sources, Sums, Trex
from kgprobe.sources import verify
from kgprobe.sources.dumps import lock_file
from kgprobe.sources.dumps.archives import ArchiveError, DamagedError, set_aside, unpack
from kgprobe.sources.dumps.download import place, record
from kgprobe.sources.dumps.lock_file import LockError, Tree
from kgprobe.sources.sparql.snapshots import terms, write_result
from tools import lock_file as locking

COMMIT = "1234567" + "0" * 33
NAME = f"owner/name@{COMMIT}"
#: ids as git computes them: `printf '' | git hash-object --stdin`, `printf 'hello\n' | ...`
EMPTY = "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"
HELLO = "ce013625030ba8dba906f756967f9e9ca394464a"
URL = f"https://github.com/owner/name/archive/{COMMIT[:7]}.zip"
FILES = {"data/a.txt": "hello\n", "data/deep/b.txt": "", "words.txt": "hello\n"}
TREE = Tree(NAME, {"data/a.txt": HELLO, "data/deep/b.txt": EMPTY, "words.txt": HELLO})
PARTS = {"a": "data/", "vocab/words.txt": "words.txt"}


def archive(path: Path, files: dict[str, str] = FILES, top: str = f"name-{COMMIT}/") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w") as zipped:
        zipped.writestr(f"{top}README.md", "not read, not pinned")
        for name, text in files.items():
            zipped.writestr(f"{top}{name}", text)
    return path


def there(folder: Path) -> list[str]:
    return sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file())


def test_ids_equal_those_of_git(tmp_path):
    for text, expected in (("", EMPTY), ("hello\n", HELLO), ("é\r\n" * 1000, None)):
        path = tmp_path / "f"
        path.write_bytes(text.encode())
        assert expected in (None, lock_file.blob(path))
        if git := shutil.which("git"):
            words = [git, "hash-object", "--no-filters", str(path)]
            printed = subprocess.run(words, capture_output=True, text=True, check=True).stdout
            assert lock_file.blob(path) == printed.strip()


def test_table_round_trips(tmp_path):
    path = tmp_path / "lock.tsv"
    locking.write_lock_file(path, [TREE])
    assert lock_file.read_lock_file(path) == {NAME: TREE}
    lines = path.read_text().splitlines()
    for wrong, message in (
        (f"{NAME}\tx\t{HELLO}\tnote", "line 5"),
        (f"{NAME}\tx\tce01", "40 hexadecimal digits"),
        (f"{NAME}\t\t{HELLO}", "a path"),
        (f"name\tx\t{HELLO}", "owner/name@commit"),
        (f"{NAME}\twords.txt\t{HELLO}", "words.txt of .* is there twice"),
    ):
        path.write_text("\n".join([*lines, wrong]) + "\n")
        with pytest.raises(LockError, match=message):
            lock_file.read_lock_file(path)
    path.write_text("path\tblob\n")
    with pytest.raises(LockError, match=r"line 1: .*expected the columns tree, path, blob"):
        lock_file.read_lock_file(path)
    with pytest.raises(LockError, match=r"none.tsv: no such file; sources.lock_file"):
        lock_file.read_lock_file(tmp_path / "none.tsv")


def test_url_with_a_short_commit_finds_its_tree():
    trees = {NAME: TREE, "owner/other@123456799": Tree("owner/other@123456799")}
    mirror = "https://mirror.example.org/x.zip"
    assert lock_file.find_tree(trees, "", URL) is TREE
    assert lock_file.find_tree(trees, f"owner/name@{COMMIT[:9]}", mirror) is TREE
    assert lock_file.find_tree(trees, "", URL.replace("1234567", "7654321")) is None
    assert lock_file.find_tree(trees, "", mirror) is None
    with pytest.raises(
        LockError, match="the lock file has no tree owner/gone@1; there are owner/name@"
    ):
        lock_file.find_tree(trees, "owner/gone@1")
    twice = trees | {f"owner/name@{COMMIT[:7]}1": TREE}
    with pytest.raises(LockError, match="write more of the commit"):
        lock_file.find_tree(twice, "", URL)


def test_each_file_is_checked_before_it_appears(tmp_path):
    result = unpack(archive(tmp_path / "a.zip"), tmp_path / "to", PARTS, TREE)
    assert result.checked == ("data/a.txt", "data/deep/b.txt", "words.txt")
    assert not result.unpinned + result.missing
    assert there(tmp_path / "to") == ["a/a.txt", "a/deep/b.txt", "vocab/words.txt"]
    assert result.describe(TREE) == f"3 files match the lock file for {NAME}"


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"words.txt": "hello\r\n"},
         rf"file words\.txt: git blob id \w+ \(7 bytes\), expected {HELLO}"),
        ({"data/new.txt": ""},
         r"1 files that the lock file does not list for .*: data/new\.txt; expected the 3"),
        ({"words.txt": None}, r"1 of 3 pinned files .* not in it: words\.txt; expected all"),
        ({"data/a.txt": None, "data/deep/b.txt": None}, "2 of 3 pinned files"),
    ],
)  # fmt: skip
def test_mismatched_file_is_reported_and_nothing_is_written(tmp_path, change, told):
    files = {name: text for name, text in (FILES | change).items() if text is not None}
    kept = place(tmp_path / "data", URL)
    to = tmp_path / "to"
    unpack(archive(tmp_path / "old.zip"), to, PARTS, TREE)
    before = there(to)
    archive(kept, files)
    with pytest.raises(LockError, match=told) as caught, set_aside(kept):
        unpack(kept, to, PARTS, TREE, url=URL)
    assert URL in str(caught.value)
    assert "the next run asks again" in str(caught.value)
    assert there(to) == before
    assert [p.name for p in kept.parent.iterdir()] == [f"{kept.name}.bad"]


def test_truncated_archive_is_counted_when_allowed(tmp_path):
    path = archive(tmp_path / "a.zip", {"data/a.txt": "hello\n", "words.txt": "hello\n"})
    result = unpack(path, tmp_path / "to", PARTS, TREE, cut=True)
    assert result.missing == ("data/deep/b.txt",)
    assert "1 pinned files missing, as the archive is cut: data/deep/b.txt" in result.describe(TREE)
    assert there(tmp_path / "to") == ["a/a.txt", "vocab/words.txt"]
    unpack(archive(path), tmp_path / "to", PARTS, TREE, cut=True)
    assert there(tmp_path / "to") == ["a/a.txt", "a/deep/b.txt", "vocab/words.txt"]
    with pytest.raises(ArchiveError, match=r"no file of a in it, all that is pinned is missing"):
        unpack(archive(path, {"words.txt": "hello\n"}), tmp_path / "to", PARTS, TREE, cut=True)
    wrong = archive(path, {"data/a.txt": "other", "words.txt": "hello\n"})
    with pytest.raises(LockError, match="git blob id"):
        unpack(wrong, tmp_path / "to", PARTS, TREE, cut=True)


def test_unpinned_files_are_used_and_reported(tmp_path):
    result = unpack(archive(tmp_path / "a.zip"), tmp_path / "to", PARTS)
    message = "3 files unpinned, not in the lock file: name-1234567"
    assert result.describe(None).startswith(message)


def test_non_repository_archive_is_reported(tmp_path):
    path = archive(tmp_path / "a.zip", top="")
    with pytest.raises(LockError, match=r"README\.md, data, words\.txt at its top; expected one"):
        unpack(path, tmp_path / "to", PARTS, TREE)


def test_damaged_archive_is_set_aside_but_not_a_wrong_part(tmp_path):
    kept = archive(tmp_path / "a.zip")
    with pytest.raises(ArchiveError, match=r"no gone/ in it"), set_aside(kept):
        unpack(kept, tmp_path / "to", {"a": "gone/"}, TREE)
    assert kept.exists(), "the config is wrong, not the archive"
    kept.write_bytes(kept.read_bytes().replace(b"hello\n", b"jello\n", 1))
    message = r"CRC[^;]*\. It was set aside as .*a\.zip\.bad"
    with pytest.raises(DamagedError, match=message), set_aside(kept):
        unpack(kept, tmp_path / "to", PARTS, TREE)
    assert there(tmp_path) == ["a.zip.bad"]


# -- the tool that writes the lock file -----------------------------------------------------------


def repository(folder: Path) -> tuple[Path, str]:
    """Return (git directory, commit) of a repository with FILES."""
    if not (git := shutil.which("git")):
        pytest.skip("no git here")
    for name, text in (FILES | {"README.md": "not read, not pinned"}).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    (folder / "link").symlink_to("words.txt")
    identity = ["-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "core.autocrlf=false"]
    for words in (["init", "-q"], ["add", "."], [*identity, "commit", "-qm", "x"]):
        subprocess.run([git, "-C", str(folder), *words], check=True)
    log = subprocess.run(
        [git, "-C", str(folder), "rev-parse", "HEAD"], capture_output=True, text=True
    )
    return folder / ".git", log.stdout.strip()


def test_pins_from_trees_and_archives_must_agree(tmp_path):
    git, commit = repository(tmp_path / "name")
    name = f"owner/name@{commit}"
    asked = [Archive(f"https://github.com/owner/name/archive/{commit[:7]}.zip", PARTS)]
    top = f"name-{commit}/"
    whole = archive(tmp_path / "a.zip", top=top)
    expected = Tree(name, dict(TREE.blobs))
    assert list(locking.trees(asked, [git])) == [expected]
    assert list(locking.trees(asked, [whole])) == [expected]
    cut = archive(tmp_path / "cut.zip", {"data/a.txt": "hello\n"}, top)
    assert list(locking.trees(asked, [cut, git])) == [expected]
    with pytest.raises(LockError, match=r"differ in data/a\.txt"):
        list(locking.trees(asked, [archive(tmp_path / "b.zip", {"data/a.txt": "x"}, top), git]))
    assert list(locking.trees([Archive(URL, PARTS)], [git, whole])) == [], "another commit"
    with pytest.raises(ArchiveError, match=f"{name}: no gone/ in it"):
        list(locking.trees([Archive(asked[0].url, {"x": "gone/"})], [git]))


def test_tool_keeps_the_rows_of_other_trees(tmp_path, monkeypatch, capsys):
    root = Path(__file__).parents[2]
    git, commit = repository(tmp_path / "name")
    (tmp_path / "config").mkdir()
    shutil.copy(root / "config/config.yaml", tmp_path / "config")
    own = {"sources": {"lock_file": "own.tsv", "sst2": {"archives": [
        {"url": f"https://github.com/owner/name/archive/{commit}.zip", "parts": PARTS}
    ]}}, "run": {"name": "own"}}  # fmt: skip
    (tmp_path / "own.yaml").write_text(json.dumps(own))
    locking.write_lock_file(tmp_path / "own.tsv", [TREE])
    monkeypatch.chdir(tmp_path)
    assert locking.main(["own.yaml", str(git)]) == 0
    assert set(lock_file.read_lock_file("own.tsv")) == {NAME, f"owner/name@{commit}"}
    output = capsys.readouterr().out
    assert f"{NAME}: 3 pinned (kept)" in output
    assert f"owner/name@{commit}: 3 pinned\n" in output
    assert locking.main(["own.yaml"]) == 2
    assert locking.main(["nowhere.zip"]) == 2


# -- make verify ----------------------------------------------------------------------------------


@pytest.fixture
def downloaded(tmp_path: Path) -> Settings:
    """Create a data folder with a set, its archive, a dump and a pull, all of them valid."""
    data = tmp_path / "data"
    kept = archive(place(data, URL))
    unpack(kept, data / "lama", PARTS, TREE)
    (data / "lama/a/.snakemake_timestamp").touch()
    record(kept, URL, hashlib.sha256(kept.read_bytes()).hexdigest())
    shutil.copy(kept, data / "TREx.zip")
    locking.write_lock_file(tmp_path / "lock.tsv", [TREE])
    pull = data / "wikidata/2026-11/things"
    pull.mkdir(parents=True)
    rows = terms([{"s": {"type": "uri", "value": "http://x/Q1"}}], ["s"])
    write_result(rows, pull / "result.parquet", {})
    (pull / "page-00001.json.gz").write_bytes(gzip.compress(b"{}"))
    page = {"number": 1, "sha256": hashlib.sha256(b"{}").hexdigest()}
    table = hashlib.sha256((pull / "result.parquet").read_bytes()).hexdigest()
    (pull / "meta.json").write_text(json.dumps({"pages": [page], "result_sha256": table}))
    local = Released(access="local")
    return Settings(
        data=str(data),
        sources=Sources(
            lock_file=str(tmp_path / "lock.tsv"), bear=local, ontoprobe=local,
            lama=Released(folder=str(data / "lama"), archives=(Archive(URL, PARTS),)),
            trex_sentences=local, sst2=local, sick=local, trex=Trex(path=str(data / "TREx.zip")),
        ),
    )  # fmt: skip


def counts(settings: Settings) -> dict[str, tuple[int, ...]]:
    rows = verify.verify(settings)
    return {row.what.split("/data/")[-1]: tuple(row.counts.values()) for row in rows}


ALL_WELL = {
    f"archive owner/name@{COMMIT[:7]}": (1, 1, 0, 0, 0),
    "sources.lama a, vocab/words.txt": (3, 3, 0, 0, 0),
    "sources.trex": (1, 0, 0, 1, 0),
    "wikidata/2026-11": (2, 2, 0, 0, 0),
}


def test_verify_counts_checked_and_uncheckable_files(downloaded):
    assert counts(downloaded) == ALL_WELL
    total = verify.totals(list(verify.verify(downloaded)))[-1]
    assert [*total.values()] == ["all", *map(sum, zip(*ALL_WELL.values(), strict=True))]
    md5 = hashlib.md5(Path(downloaded.sources.trex.path).read_bytes()).hexdigest()
    object.__setattr__(downloaded.sources.trex, "sums", Sums(md5=md5))
    assert counts(downloaded)["sources.trex"] == (1, 1, 0, 0, 0)
    Path(downloaded.sources.trex.path).unlink()
    shutil.rmtree(Path(downloaded.data) / "lama/a")
    result = counts(downloaded)
    assert result["sources.trex"] == (1, 0, 0, 0, 1)
    assert result["sources.lama a, vocab/words.txt"] == (3, 1, 0, 0, 2)


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("lama/a/a.txt", b"spoilt", f"git blob id .*, expected {HELLO}"),
        ("lama/a/own.txt", b"", "own.txt: no file of .*Remove it"),
        ("TREx.zip", b"<!DOCTYPE html>",
         "begins with '<!DOC.*'; remove .*TREx.zip and .*TREx.zip, the"),
        ("archives/github.com/owner/name/archive/1234567.zip", b"", "is empty"),
        ("wikidata/2026-11/things/page-00001.json.gz", b"no gzip", "BadGzipFile"),
        ("wikidata/2026-11/things/result.parquet", b"", r"remove \S+/things, the next run pulls"),
        ("wikidata/2026-11/things/meta.json", b"{", "JSONDecodeError"),
    ],
)  # fmt: skip
def test_verify_reports_each_wrong_file(downloaded, name, content, told):
    path = Path(downloaded.data) / name
    path.write_bytes(content)
    problems = [p for row in verify.verify(downloaded) for p in row.problems]
    assert len(problems) == 1, problems
    assert str(path) in problems[0]
    assert re.search(told, problems[0], re.S), problems[0]


def test_verify_detects_changes_since_download(downloaded):
    archive(place(Path(downloaded.data), URL), FILES | {"words.txt": "other"})
    rows = terms([{"s": {"type": "uri", "value": "http://x/Q2"}}], ["s"])
    write_result(rows, Path(downloaded.data) / "wikidata/2026-11/things/result.parquet", {})
    problems = [p for row in verify.verify(downloaded) for p in row.problems]
    assert len(problems) == 2
    assert "when it came: it was changed since" in problems[0]
    assert "result.parquet" in problems[1]

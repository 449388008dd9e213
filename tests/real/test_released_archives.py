"""The real archives all unpack and contain the parts that the full configuration needs."""

import zipfile
from collections import Counter
from pathlib import Path

import pytest

from kgprobe.benchmarks.bear import released
from kgprobe.settings import Settings
from kgprobe.settings.sources import RELEASED
from kgprobe.sources.dumps import lock_file
from kgprobe.sources.dumps.archives import open_archive, unpack
from tests.conftest import ROOT
from tests.unit import test_released_archive as imitated
from tools import lock_file as locking

pytestmark = [pytest.mark.real, pytest.mark.nightly(needs="the real data in full")]
LOCK_FILE = lock_file.read_lock_file(ROOT / "resources/lock.tsv")
#: Pinned files, and the number of them missing in the available archives.
PINNED = {
    "hiaoxui/soft-prompts@eb9047e": (246, 0),
    "lm-pub-quiz/BEAR@ace91fd": (141, 0),
    "princeton-nlp/OptiPrompt@9450bc9": (4, 0),
    "taylorshin/LAMA@66481b7": (2, 0),
    "ucinlp/autoprompt@965e090": (164, 104),
    "ucinlp/autoprompt@d637675": (4, 0),
    "vickywu1022/OntoProbe-PLMs@cc95300": (26, 0),
    "yan-soares/research_embeddings_fine_tuning@045c5e9": (6, 0),
}


def archives(name):
    """Return the archives of a data set in the full configuration."""
    return getattr(Settings().sources, name).archives


def file_of(url):
    """Return the path of an archive next to the data: repository-commit.zip."""
    repository, _, commit = url.split("/")[4:7]
    return f"{repository}-{commit.removesuffix('.zip')}.zip"


def files(folder):
    return sorted(p.relative_to(folder) for p in folder.rglob("*") if p.is_file())


def test_every_archive_unpacks_completely(real_data, tmp_path):
    found = sorted((real_data / "archives").glob("*.zip"))
    assert len(found) >= 10
    for archive in found:
        with open_archive(archive) as zipped:
            (top,) = {name.split("/")[0] for name in zipped.namelist()}
        unpack(archive, tmp_path, {top: f"{top}/"})
        with zipfile.ZipFile(archive) as zipped:
            inside = [name for name in zipped.namelist() if not name.endswith("/")]
            assert [str(p) for p in files(tmp_path / top)] == sorted(
                (n.removeprefix(f"{top}/") for n in inside), key=Path
            )
            for name in inside:
                assert (tmp_path / name).read_bytes() == zipped.read(name), name


@pytest.mark.parametrize("name", RELEASED)
def test_the_full_configuration_s_parts_exist_with_pinned_checksums(real_data, tmp_path, name):
    """The files are the same as the unpacked ones next to the archives, if there are any."""
    compared = 0
    for one in archives(name):
        tree = lock_file.find_tree(LOCK_FILE, one.tree, one.url)
        assert tree is not None
        archive = real_data / "archives" / file_of(one.url)
        is_cut = "965e090" in one.url
        taken = unpack(archive, tmp_path, one.parts, tree, cut=is_cut)
        assert len(taken.missing) == (104 if is_cut else 0)
        assert not taken.unpinned
        assert len(taken.checked) >= 2
        for part, wanted in one.parts.items():
            assert (tmp_path / part).is_dir() == wanted.endswith("/")
        if is_cut:
            with pytest.raises(lock_file.LockError, match=r"104 of 164 pinned files .*/P178/"):
                unpack(archive, tmp_path / "whole", one.parts, tree)
            assert not (tmp_path / "whole").exists()
    for path in files(tmp_path):
        loose = real_data / name / path
        if loose.is_file():
            compared += 1
            assert (tmp_path / path).read_bytes() == loose.read_bytes(), path
    # there, TREx_all is compressed in another format
    assert compared or name == "trex_sentences"
    assert len(files(tmp_path)) >= (60 if name not in ("sick", "sst2", "ontoprobe") else 3)


def test_the_table_of_checksums_matches_the_archives(real_data):
    """Ids computed from the bytes of the archives: 489 of 593; the rest is in a public tree."""
    places = sorted((real_data / "archives").glob("*.zip"))
    shown = {t.name: t for t in locking.trees(locking.archives_of(Settings()), places)}
    counts = {}
    for name, tree in shown.items():
        assert tree.blobs.items() <= LOCK_FILE[name].blobs.items(), name
        pinned = len(LOCK_FILE[name].blobs)
        counts[f"{name.partition('@')[0]}@{name.partition('@')[2][:7]}"] = (
            pinned,
            pinned - len(tree.blobs),
        )
    assert counts == PINNED
    assert sum(len(tree.blobs) for tree in LOCK_FILE.values()) == 593


def test_the_sentiment_of_sst2_has_two_classes_and_not_five(real_data, tmp_path):
    """SST/fine is next to SST/binary at the same depth, with files of the same names."""
    (one,) = archives("sst2")
    archive = real_data / "archives" / file_of(one.url)
    with open_archive(archive) as zipped:
        both = [name for name in zipped.namelist() if name.endswith("/sentiment-train")]
    assert len(both) == 2
    unpack(archive, tmp_path, one.parts, lock_file.find_tree(LOCK_FILE, one.tree, one.url))
    rows = {}
    for split in ("train", "dev", "test"):
        lines = (tmp_path / f"sentiment-{split}").read_text(encoding="utf-8").splitlines()
        labels = Counter(line.split("\t")[1].strip() for line in lines)
        assert set(labels) == {"0", "1"}
        rows[split] = (len(lines), labels["1"])
    assert rows == {"train": (67_349, 37_569), "dev": (872, 444), "test": (1_821, 909)}


def test_the_first_commit_of_bear_lacks_required_files(real_data, tmp_path):
    (one,) = archives("bear")
    with open_archive(real_data / "archives/BEAR-725b4e3.zip") as zipped:
        assert not any(name.endswith("/relation_info.json") for name in zipped.namelist())
    assert "ace91fd" in one.url
    tree = lock_file.find_tree(LOCK_FILE, one.tree, one.url)
    with pytest.raises(lock_file.LockError, match=r"1 of 141 pinned files .* relation_info\.json"):
        unpack(real_data / "archives/BEAR-725b4e3.zip", tmp_path, one.parts, tree)


def test_the_downloaded_bear_is_read_with_its_domains(real_data, tmp_path):
    (one,) = archives("bear")
    unpack(real_data / "archives" / file_of(one.url), tmp_path, one.parts)
    sets = released.load(tmp_path / "BEAR", instances=2, templates=[0])
    found = released.relations(tmp_path / "BEAR", sets)
    assert found.height == 60
    assert found["domains"].list.len().min() >= 1


@pytest.mark.parametrize(
    ("name", "members"),
    [("bear", imitated.BEAR_MEMBERS), ("ontoprobe", imitated.ONTOPROBE_MEMBERS)],
)
def test_synthetic_archives_have_the_content_of_the_real_ones(real_data, name, members):
    (one,) = archives(name)
    with zipfile.ZipFile(real_data / "archives" / file_of(one.url)) as zipped:
        assert set(members) <= set(zipped.namelist())

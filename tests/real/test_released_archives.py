"""The real archives: all of them unpack, and the full configuration finds its parts in them."""

import zipfile
from pathlib import Path

import pytest
import yaml

from kgprobe.benchmarks.bear import released
from kgprobe.sources.dumps.download import BEAR, ONTOPROBE, opened, unpack, unpack_as
from tests.unit import test_released_archive as imitated

pytestmark = pytest.mark.real
CONFIG = yaml.safe_load((Path(__file__).parents[2] / "config/config.yaml").read_text())["sources"]
#: folder of the real data -> section of the config whose parts are the same files
SAME = {"bear": "bear", "ontoprobe": "ontoprobe", "lama": "lama", "sick": "sick", "sst2": "sst2"}


def parts(name):
    """(archive's file name, name in the folder -> path in the archive) of a live source."""
    source = CONFIG[name]
    fixed = {"bear": BEAR, "ontoprobe": ONTOPROBE}.get(name)
    if fixed:
        return [(file_of(source["url"]), {Path(part).name: part for part in fixed})]
    return [(file_of(one["url"]), one["parts"]) for one in source["archives"]]


def file_of(url):
    """As the archives lie beside the data: repository-commit.zip."""
    repository, _, commit = url.split("/")[4:7]
    return f"{repository}-{commit.removesuffix('.zip')}.zip"


def files(folder):
    return sorted(p.relative_to(folder) for p in folder.rglob("*") if p.is_file())


def test_every_archive_unpacks_whole(real_data, tmp_path):
    archives = sorted((real_data / "archives").glob("*.zip"))
    assert len(archives) >= 10
    for archive in archives:
        with opened(archive) as zipped:
            (top,) = {name.split("/")[0] for name in zipped.namelist()}
        unpack(archive, tmp_path, [top])
        with zipfile.ZipFile(archive) as zipped:
            inside = [name for name in zipped.namelist() if not name.endswith("/")]
            assert [str(p) for p in files(tmp_path / top)] == sorted(
                (n.removeprefix(f"{top}/") for n in inside), key=Path
            )
            for name in inside:
                assert (tmp_path / name).read_bytes() == zipped.read(name), name


@pytest.mark.parametrize("name", [*SAME.values(), "trex_sentences"])
def test_the_full_configuration_finds_its_parts(real_data, tmp_path, name):
    """The very files that lie loose beside the archives, where they do."""
    compared = 0
    for archive, wanted in parts(name):
        made = unpack_as(real_data / "archives" / archive, tmp_path, wanted)
        assert made == [tmp_path / part for part in wanted]
    for path in files(tmp_path):
        loose = real_data / name / path
        if loose.is_file():
            compared += 1
            assert (tmp_path / path).read_bytes() == loose.read_bytes(), path
    # TREx_all lies there packed in another way
    assert compared or name == "trex_sentences"
    assert len(files(tmp_path)) >= (60 if name not in ("sick", "sst2", "ontoprobe") else 3)


def test_what_is_downloaded_of_bear_is_read_with_its_domains(real_data, tmp_path):
    ((archive, wanted),) = parts("bear")
    unpack_as(real_data / "archives" / archive, tmp_path, wanted)
    sets = released.load(tmp_path / "BEAR", instances=2, templates=[0])
    found = released.relations(tmp_path / "BEAR", sets)
    assert found.height == 60
    assert found["domains"].list.len().min() >= 1


@pytest.mark.parametrize(
    ("name", "members"),
    [("bear", imitated.BEAR_MEMBERS), ("ontoprobe", imitated.ONTOPROBE_MEMBERS)],
)
def test_imitated_archives_hold_what_the_real_ones_hold(real_data, name, members):
    ((archive, _),) = parts(name)
    with zipfile.ZipFile(real_data / "archives" / archive) as zipped:
        assert set(members) <= set(zipped.namelist())

"""Access to sources: on disk, by download, from dumps, embedded."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kgprobe.settings import Settings
from kgprobe.settings.sources import ArchiveParts, Dbpedia, Dump, OwnGraph, Sums, Trex, Wikidata
from kgprobe.settings.types import typed
from kgprobe.workflow import sources
from kgprobe.workflow.attributes import graph
from kgprobe.workflow.sources import ConfigError


def settings(**own: Any) -> Settings:
    """Return the defaults with some user-supplied sources."""
    return replace(Settings(), sources=replace(Settings().sources, **own))


def test_files_are_filled_in_and_must_exist(tmp_path, monkeypatch):
    monkeypatch.setenv("KGPROBE_DATA", str(tmp_path))
    (tmp_path / "x.nt").write_text("")
    assert sources.files(["${KGPROBE_DATA}/x.nt"]) == [f"{tmp_path}/x.nt"]
    with pytest.raises(ConfigError, match=r"no such file or folder: .*/y.nt; set KGPROBE_DATA"):
        sources.files(["${KGPROBE_DATA}/y.nt"])
    with pytest.raises(ConfigError, match=r"folder: y.nt; correct the path, which begins at"):
        sources.files(["y.nt"])


def test_files_of_a_folder_are_listed_for_their_times(tmp_path):
    """An input that is a folder keeps its time when a file in it is overwritten."""
    (tmp_path / "g" / "below").mkdir(parents=True)
    (tmp_path / "g" / "P36.jsonl").write_text("{}\n", encoding="utf-8")
    (tmp_path / "t.csv").write_text("a\n", encoding="utf-8")
    listed = sources.files_in([str(tmp_path / "g"), str(tmp_path / "t.csv")])
    assert listed == [str(tmp_path / "g" / "P36.jsonl"), str(tmp_path / "t.csv")]


def test_an_installed_package_may_lack_only_lama_s_templates(monkeypatch, tmp_path):
    monkeypatch.setattr(sources, "ROOT", tmp_path / "project")
    monkeypatch.setattr(sources, "PACKAGE", tmp_path)
    assert sources.files(["resources/lama/absent.tsv"]) == []
    with pytest.raises(ConfigError):
        sources.files(["resources/absent.tsv"])


def test_parts_of_a_data_set_are_downloaded_local_or_refused(tmp_path):
    live = settings()
    assert sources.data_parts(live, "sst2", ["sentiment-dev"]) == ["data/sst2/sentiment-dev"]
    every = sources.data_parts(live, "lama", [""])
    assert {"data/lama/trex_original", "data/lama/optiprompt"} <= set(every)
    assert sources.data_parts(live, "lama", []) == []
    own = settings(lama=ArchiveParts(access="local", folder=str(tmp_path)))
    with pytest.raises(ConfigError, match=f"{tmp_path}/optiprompt"):
        sources.data_parts(own, "lama", ["optiprompt"])
    (tmp_path / "optiprompt").mkdir()
    assert sources.data_parts(own, "lama", ["optiprompt"]) == [f"{tmp_path}/optiprompt"]
    absent = settings(lama=ArchiveParts(access="absent"))
    with pytest.raises(
        ConfigError, match=r"sources\.lama\.access is absent, but optiprompt is needed"
    ):
        sources.data_parts(absent, "lama", ["optiprompt"])


def test_the_world_is_embedded_under_any_config():
    live = settings()
    assert sources.endpoint(live, "world").access == "embedded"
    assert sources.rdf_files(live, "world") == ["<resources>/world/wikidata.nt.gz"]
    assert sources.rdf_files(live, "world_dbpedia") == ["<resources>/world/dbpedia.nt.gz"]
    assert sources.rdf_files(live, "wikidata") == []


DUMPS = {
    "facts": Dump("embedded", "truthy", more=("names",)),
    "names": Dump("embedded", "names"),
    "types": Dump("live", "ntriples", "data/types.nt", "https://example.org/t", snapshot="1"),
}


def test_wikidata_is_read_from_the_configured_dump():
    own = settings(dumps=DUMPS, wikidata=Wikidata(access="dump", dump="facts"))
    assert list(sources.statement_dumps(own)) == ["facts", "types"]
    assert sources.read_dumps(own)["wikidata"] is DUMPS["facts"]
    assert sources.rdf_files(own, "wikidata") == ["<results>/sources/wikidata/described.nt"]
    assert sources.dump_aliases(own, "wikidata") == "<results>/sources/wikidata/aliases.parquet"
    assert sources.dump_aliases(own, "world") == []
    assert sources.statement_files(own, "facts") == [
        "<resources>/world/dumps/wikidata.nt.bz2",
        "<resources>/world/dumps/wikidata_names.nt.bz2",
    ]
    wrong = settings(dumps=DUMPS, wikidata=Wikidata(access="dump", dump="types"))
    with pytest.raises(ConfigError, match=r"is 'types'; sources.dumps of form json or truthy: fac"):
        sources.read_dumps(wrong)
    with pytest.raises(
        ConfigError, match=r"sources\.dumps\.types\.relations: none, needed to read"
    ):
        sources.statement_files(own, "types")
    with pytest.raises(ConfigError, match="more names x; there is facts, names, types"):
        sources.dump_files(own, Dump("embedded", "truthy", more=("x",)))


def test_relations_that_are_too_large_come_from_a_dump_of_statements():
    own = settings(dumps=DUMPS, wikidata=Wikidata(dump="facts"))
    assert sources.large_relations(own, "wikidata") == ["<results>/sources/facts/facts.parquet"]
    assert sources.large_relations(own, "world") == []
    with pytest.raises(ConfigError, match=r"'names'; sources.dumps has facts, types"):
        sources.large_relations(settings(dumps=DUMPS, wikidata=Wikidata(dump="names")), "wikidata")


def test_an_ontology_from_a_dump_is_served_from_the_files_of_the_dump():
    dbpedia = Dbpedia(access="dump", ontology="types", types="types")
    own = settings(dumps=DUMPS, dbpedia=dbpedia)
    assert sources.rdf_files(own, "dbpedia") == ["data/types.nt"]


def test_a_local_graph_without_files_is_refused():
    """Its queries would find nothing, and say so nowhere."""
    own = settings(wikidata=Wikidata(access="local"))
    with pytest.raises(ConfigError, match=r"sources\.wikidata\.files: none, needed where access"):
        sources.rdf_files(own, "wikidata")


def test_live_sources_are_downloaded():
    """Their sums are parameters of the jobs, so that one that is added later is checked."""
    trex = Trex(path="x.zip", sums=Sums(md5="0" * 32))
    own = settings(dumps=DUMPS, lama=ArchiveParts(access="absent"), trex=trex)
    none = {"md5": None, "sha1": None, "sha256": None}
    assert sources.downloads(own) == {
        "types": ("data/types.nt", "https://example.org/t", none),
        "trex": ("x.zip", Trex().url, none | {"md5": "0" * 32}),
    }
    assert {name for name, _ in sources.archives(own)} == {
        "bear", "ontoprobe", "trex_sentences", "sst2", "sick"
    }  # fmt: skip


def test_an_archive_of_a_tree_without_pins_is_refused():
    archive = Settings().sources.bear.archives[0]
    assert sources.pinned({}, archive) is None
    with pytest.raises(
        ConfigError, match=f"archive {archive.url}: the lock file has no tree a/b@c"
    ):
        sources.pinned({}, replace(archive, tree="a/b@c"))


def test_trex_is_read_in_jobs_of_ten_files(tmp_path):
    published = sources.trex_parts(settings(trex=Trex(path=str(tmp_path / "absent.zip"))))
    assert {len(names) for names in published.values()} <= {10, 5}
    assert sum(map(len, published.values())) == 465
    for n in range(11):
        (tmp_path / f"re-nlg_{n}-{n + 1}.json").write_text("")
    found = sources.trex_parts(settings(trex=Trex(access="local", path=str(tmp_path))))
    assert {number: len(names) for number, names in found.items()} == {"000": 10, "001": 1}
    # the jobs of a live archive are the same before, while and after it comes
    assert sources.trex_parts(settings(trex=Trex(path=str(tmp_path)))) == published


def test_shared_downloads_have_a_lock_file():
    own = settings(dumps=DUMPS, lama=ArchiveParts(access="absent"), trex=Trex(path="far/x.zip"))
    found = sources.shared(own)
    assert found["far/.x.zip.lock"] == ["far/x.zip"]
    assert found["data/.types.nt.lock"] == ["data/types.nt"]
    folder = Path(own.sources.bear.folder)
    assert found[str(folder.parent / f".{folder.name}.lock")] == [
        str(folder / part) for archive in own.sources.bear.archives for part in archive.parts
    ]


OWN = {"mine": OwnGraph("table", ("a.csv",)), "copy": OwnGraph("table", ("a.csv",), ids="wikidata")}


def on(name: str) -> Settings:
    """Return settings with the attributes on a graph."""
    own = settings(graphs=OWN)
    return replace(own, attributes=replace(own.attributes, graph=name))


def test_attributes_take_names_from_the_source_of_their_ids():
    world, mine, copy = (graph(on(name)) for name in ("world", "mine", "copy"))
    assert (world.source, mine.source, copy.source) == ("world", "wikidata", "wikidata")
    assert mine.section is not None
    assert world.section is copy.section is None
    assert mine.properties == "<results>/sources/mine/properties.parquet"
    assert copy.properties == "<results>/sources/wikidata/properties.parquet"
    assert mine.templates == "<results>/benchmarks/own/mine/templates.tsv"
    assert mine.aliases == []


def test_reading_a_graph_does_not_depend_on_bear_settings(tmp_path):
    facts = tmp_path / "facts.csv"
    facts.write_text("")
    mine = OwnGraph("table", (str(facts),))
    other = replace(mine, bear=replace(mine.bear, min_answers=9), templates="own.tsv")
    read_by = [sources.own_graph(settings(graphs={"g": one}), "g") for one in (mine, other)]
    assert read_by[0] == read_by[1]
    assert typed(OwnGraph, read_by[0]) == mine


def test_files_of_a_local_data_set_are_inputs_as_well(tmp_path):
    """Overwriting a file in a folder must rerun what reads it; downloads are made by a rule."""
    (tmp_path / "BEAR" / "P36").mkdir(parents=True)
    for name in ("BEAR/P19.jsonl", "BEAR/P36/test.jsonl", "BEAR/{x}.txt", "metadata.json"):
        (tmp_path / name).write_text("{}\n", encoding="utf-8")
    own = settings(bear=ArchiveParts(access="local", folder=str(tmp_path)))
    names = ["BEAR", "BEAR/P19.jsonl", "BEAR/P36/test.jsonl"]
    assert sources.data_parts(own, "bear", ["BEAR"]) == [f"{tmp_path}/{name}" for name in names]
    assert sources.bear_domains(own) == []
    (tmp_path / "relation_info.json").write_text("{}", encoding="utf-8")
    assert sources.bear_domains(own) == [f"{tmp_path}/relation_info.json"]
    live = settings(bear=ArchiveParts(access="live", folder=str(tmp_path)))
    assert sources.data_parts(live, "bear", ["BEAR"]) == [f"{tmp_path}/BEAR"]


def test_a_job_of_trex_depends_on_its_own_files(tmp_path):
    names = [f"re-nlg_{n}0000-{n + 1}0000" for n in range(sources.TREX_FILES + 1)]
    for name in names:
        (tmp_path / f"{name}.json").write_text("[]", encoding="utf-8")
    own = settings(trex=Trex(access="local", path=str(tmp_path)))
    assert sources.trex_files(own, "001") == [f"{tmp_path}/{names[-1]}.json"]
    live = settings(trex=Trex(access="live", path="data/trex.zip"))
    assert sources.trex_files(live, "001") == ["data/trex.zip"]

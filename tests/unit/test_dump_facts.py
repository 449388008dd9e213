"""Statements out of dumps: the world's dumps say what its pull says, and stops lose nothing."""

import gzip
from pathlib import Path

import polars as pl
import pytest

from kgprobe import schema
from kgprobe.knowledge.facts import best_rank
from kgprobe.schema import STATEMENTS
from kgprobe.sources.dumps import facts as dump_facts
from kgprobe.sources.dumps import stream as dumps
from kgprobe.sources.dumps.stream import DumpError
from kgprobe.sources.world import build, rdf
from kgprobe.sources.world import dumps as world_dumps

ROOT = Path(__file__).parents[2]
RELATIONS = ["P36", "P30", "P17", "P47", "P6", "P569"]


@pytest.fixture(scope="module")
def facts() -> build.World:
    return build.load(ROOT / "resources/world")


@pytest.fixture(scope="module")
def packed(facts, tmp_path_factory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("dumps")
    json, truthy = folder / "world.json.gz", folder / "world.nt.bz2"
    json.write_bytes(world_dumps.render_json(facts))
    truthy.write_bytes(world_dumps.render_truthy(facts))
    return {"json": json, "truthy": truthy}


def expected(facts: build.World) -> pl.DataFrame:
    """STATEMENTS of the world itself, items only."""
    names = facts.entities.select("id", "label", "sitelinks")
    rows = facts.statements.filter(
        pl.col("relation").is_in(RELATIONS)
        & (pl.col("kind") == "item")
        & (pl.col("rank") != "deprecated")
    ).select("subject", "relation", "object", "rank", object_kind=pl.lit("item"))
    for side in ("subject", "object"):
        named = names.rename(
            {"id": side, "label": f"{side}_label", "sitelinks": f"{side}_sitelinks"}
        )
        rows = rows.join(named, on=side, how="left")
    columns = list(STATEMENTS.columns)
    return rows.unique().with_columns(kg=pl.lit("wikidata")).select(columns).sort(STATEMENTS.key)


def test_the_json_dump_says_what_the_world_says(facts, packed, tmp_path):
    found = dump_facts.read(packed["json"], "json", RELATIONS, tmp_path, lines=1000)
    schema.check(found, STATEMENTS)
    assert found.filter(pl.col("object_kind") == "item").equals(expected(facts))
    assert set(found["object_kind"]) == {"item", "literal", "special"}
    assert len(list((tmp_path / "statements").glob("part-*.parquet"))) > 3


def test_the_truthy_dump_has_the_best_ranks(facts, packed, tmp_path):
    found = dump_facts.read(packed["truthy"], "truthy", RELATIONS, tmp_path)
    columns = [c for c in STATEMENTS.columns if c != "rank"]
    items = found.filter(pl.col("object_kind") == "item").select(columns)
    assert items.equals(best_rank(expected(facts)).select(columns).sort(columns[0], "relation"))


def test_dbpedia_triples_become_statements(facts, tmp_path):
    dump = tmp_path / "dbpedia.nt"
    dump.write_text(rdf.render_dbpedia(facts))
    rdf_type = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"
    found = dump_facts.read(dump, "ntriples", [rdf_type], tmp_path / "shards")
    schema.check(found, STATEMENTS)
    one = found.filter(
        (pl.col("subject") == "http://dbpedia.org/resource/France")
        & (pl.col("object") == "http://dbpedia.org/ontology/Country")
    )
    assert one.select("kg", "subject_label", "object_label").rows() == [
        ("dbpedia", "France", "country")
    ]


def test_after_a_stop_finished_shards_are_not_parsed_again(packed, tmp_path, monkeypatch):
    whole = dump_facts.read(packed["json"], "json", RELATIONS, tmp_path / "whole", lines=500)
    parsed: list[int] = []
    original = dumps.wikidata_json

    def stopped(lines, relations):
        parsed.append(len(lines))
        if len(parsed) == 4:
            raise KeyboardInterrupt
        yield from original(lines, relations)

    monkeypatch.setattr(dumps, "wikidata_json", stopped)
    folder = tmp_path / "stopped"
    with pytest.raises(KeyboardInterrupt):
        dump_facts.read(packed["json"], "json", RELATIONS, folder, lines=500)
    finished = sorted((folder / "statements").iterdir())
    assert [p.name for p in finished] == [f"part-{i:05d}.parquet" for i in (1, 2, 3)]
    parsed[:] = [0] * 10
    again = dump_facts.read(packed["json"], "json", RELATIONS, folder, lines=500)
    with gzip.open(packed["json"]) as stream:
        lines = sum(1 for _ in stream)
    assert sum(parsed) == lines - 1500
    assert again.equals(whole)


def test_a_cut_dump_keeps_its_shards_and_names_the_byte(packed, tmp_path):
    data = packed["json"].read_bytes()
    cut = tmp_path / "cut.json.gz"
    cut.write_bytes(data[: len(data) // 2])
    folder = tmp_path / "shards"
    with pytest.raises(DumpError, match=r"cut.json.gz: cut or damaged near byte [\d,]+ of"):
        dump_facts.read(cut, "json", RELATIONS, folder, lines=200)
    assert len(list((folder / "statements").glob("part-*.parquet"))) > 2
    assert not (folder / "statements" / "complete").exists()


def test_shards_of_another_question_are_refused(packed, tmp_path):
    dump_facts.read(packed["truthy"], "truthy", ["P36"], tmp_path)
    with pytest.raises(ValueError, match=r"begun for another relations .*name another snapshot"):
        dump_facts.read(packed["truthy"], "truthy", ["P36", "P30"], tmp_path)
    with pytest.raises(ValueError, match=r"form 'ttl'; legal: json, truthy, ntriples"):
        dump_facts.read(packed["truthy"], "ttl", ["P36"], tmp_path)


def test_an_entity_with_members_in_another_order_keeps_its_name(tmp_path):
    dump = tmp_path / "odd.json"
    dump.write_text(
        '[\n{"id":"Q1","type":"item","labels":{"en":{"language":"en","value":"one"}},"claims":{"P36":'
        '[{"mainsnak":{"snaktype":"value","property":"P36","datavalue":{"type":"wikibase-entityid",'
        '"value":{"id":"Q2"}}},"rank":"normal"}]}}\n]\n'
    )
    found = dump_facts.read(dump, "json", ["P36"], tmp_path / "shards")
    assert found.select("subject_label", "object_label").rows() == [("one", None)]

"""Dump filters: formats, prefilters, ranks, and cut archives."""

import bz2
import gzip
import json
from pathlib import Path

import pytest
import zstandard

from kgprobe.sources.dumps import stream
from kgprobe.sources.dumps.stream import DumpError, Statement

PACKERS = {
    "": bytes,
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".zst": zstandard.ZstdCompressor().compress,
}


def claim(relation: str, value: object, rank: str = "normal", kind: str = "value") -> dict:
    snak: dict = {"snaktype": kind, "property": relation}
    if kind == "value":
        types = {str: "string", dict: "time" if isinstance(value, dict) and "time" in value else ""}
        name = types[type(value)] or "wikibase-entityid"
        snak["datavalue"] = {"value": value, "type": name}
    return {"mainsnak": snak, "rank": rank, "type": "statement"}


def entity(number: int, **claims: list[dict]) -> dict:
    return {"type": "item", "id": f"Q{number}", "labels": {}, "claims": claims}


def item(number: int) -> dict:
    return {"entity-type": "item", "numeric-id": number, "id": f"Q{number}"}


ENTITIES = [
    entity(1, P36=[claim("P36", item(10)), claim("P36", item(11), "preferred")]),
    entity(2, P36=[claim("P36", item(12), "deprecated"), claim("P36", None, kind="novalue")]),
    entity(3, P569=[claim("P569", {"time": "+1879-03-14T00:00:00Z"})], P1=[claim("P1", "P36")]),
    {**entity(4), "claims": []},
    entity(5, P17=[claim("P17", item(1))]),
]
LINES = ["[", *(json.dumps(e, separators=(",", ":")) + "," for e in ENTITIES[:-1])]
JSON = "\n".join([*LINES, json.dumps(ENTITIES[-1], separators=(",", ":")), "]", ""]).encode()


@pytest.mark.parametrize("suffix", PACKERS)
def test_statements_come_out_of_every_packing(tmp_path, suffix):
    path = tmp_path / f"dump.json{suffix}"
    path.write_bytes(PACKERS[suffix](JSON))
    wanted = [
        Statement("Q1", "P36", "Q10", "item"),
        Statement("Q1", "P36", "Q11", "item", "preferred"),
        Statement("Q2", "P36", "novalue", "special"),
        Statement("Q3", "P569", "1879-03-14T00:00:00Z", "literal"),
    ]
    with stream.lines(path) as source:
        assert list(stream.wikidata_json(source, ["P36", "P569"])) == wanted
    with stream.piped_lines(path) as source:
        assert list(stream.wikidata_json(source, ["P36", "P569"], ["Q2"])) == wanted[2:3]


def test_the_prefilter_loses_nothing():
    lines = JSON.splitlines()
    filtered = list(stream.wikidata_json(lines, ["P36", "P17", "P1"]))
    everything = [
        statement
        for statement in stream.wikidata_json(lines, ["P36", "P17", "P1", "P569"])
        if statement.relation != "P569"
    ]
    assert filtered == everything
    assert {s.relation for s in filtered} == {"P36", "P17", "P1"}


@pytest.mark.parametrize("suffix", [".gz", ".bz2", ".zst"])
@pytest.mark.parametrize("reader", [stream.lines, stream.piped_lines])
def test_a_cut_archive_is_an_error_after_what_could_be_read(tmp_path, suffix, reader):
    path = tmp_path / f"dump.nt{suffix}"
    whole = b"".join(b"<s> <p> <o%d> .\n" % i for i in range(200_000))
    packed = PACKERS[suffix](whole)
    path.write_bytes(packed[: len(packed) // 2])
    seen = 0

    def read() -> None:
        nonlocal seen
        with reader(path) as source:
            for _ in source:
                seen += 1

    with pytest.raises(DumpError, match=r"dump\.nt.*cut or damaged"):
        read()
    assert seen < 200_000


@pytest.mark.parametrize("suffix", PACKERS)
@pytest.mark.parametrize("reader", [stream.lines, stream.piped_lines])
def test_a_line_without_end_is_refused_before_it_fills_the_memory(
    tmp_path, suffix, reader, monkeypatch
):
    monkeypatch.setattr(stream, "LONGEST", 1 << 16)
    path = tmp_path / f"dump.nt{suffix}"
    path.write_bytes(PACKERS[suffix](b"short\n" + b"x" * (1 << 22)))
    with reader(path) as source:
        assert next(source) == b"short"
        with pytest.raises(DumpError, match=r"dump\.nt.*: line 2 has 65,536 bytes or more"):
            next(source)


@pytest.mark.parametrize("suffix", [".gz", ".bz2", ".zst"])
@pytest.mark.parametrize("reader", [stream.lines, stream.piped_lines])
def test_a_stream_that_unpacks_without_end_is_refused(tmp_path, suffix, reader, monkeypatch):
    monkeypatch.setattr(stream, "SMALL", 1 << 20)
    path = tmp_path / f"dump.nt{suffix}"
    path.write_bytes(PACKERS[suffix]((b"x" * 1000 + b"\n") * 20_000))
    with (
        reader(path) as source,
        pytest.raises(DumpError, match=r"dump\.nt.* bytes unpack to .*, over 100 fold"),
    ):
        list(source)


def test_zstd_frames_follow_each_other_and_are_unpacked_in_small_steps(tmp_path, monkeypatch):
    path = tmp_path / "dump.nt.zst"
    frames = [b"".join(b"%d\n" % n for n in range(a, a + 9999)) for a in (0, 9999, 19998)]
    pack = zstandard.ZstdCompressor().compress
    path.write_bytes(b"".join(map(pack, frames)))
    for step in (1, 100, 1 << 13):
        monkeypatch.setattr(stream._Zstd, "STEP", step)
        with stream.lines(path) as source:
            assert list(source) == [b"%d" % n for n in range(29997)]


WD = b"<http://www.wikidata.org/"
TRUTHY = [
    WD + rb"entity/Q142> " + WD + rb"prop/direct/" + rest + b" ."
    for rest in (
        rb"P36> <http://www.wikidata.org/entity/Q90>",
        rb'P1448> "R\u00E9publique \"fran\u00E7aise\""@fr',
        rb"P36> _:b0",
        rb"P361> <http://www.wikidata.org/entity/Q46>",
    )
] + [WD + rb'entity/Q142> <http://schema.org/name> "P36" .']


def test_truthy_triples():
    found = list(stream.wikidata_truthy(TRUTHY, ["P36", "P1448"]))
    assert found == [
        Statement("Q142", "P36", "Q90", "item"),
        Statement("Q142", "P1448", 'République "française"', "literal"),
        Statement("Q142", "P36", "somevalue", "special"),
    ]


KOELN = rb"<http://dbpedia.org/resource/K\u00F6ln> <http://dbpedia.org/ontology/"
DBPEDIA = [
    KOELN + rb"country> <http://dbpedia.org/resource/Germany> .",
    KOELN + rb'area> "4.05"^^<http://www.w3.org/2001/XMLSchema#double> .',
    KOELN + rb'other> "x" .',
]


def test_dbpedia_triples_unescape_their_iris():
    predicates = ["http://dbpedia.org/ontology/country", "http://dbpedia.org/ontology/area"]
    found = list(stream.ntriples(DBPEDIA, predicates))
    assert found[0].subject == "http://dbpedia.org/resource/Köln"
    assert found[1].object == "4.05"
    assert len(found) == 2


def test_damaged_json_names_its_line():
    with pytest.raises(DumpError, match="line 2: not a JSON object"):
        list(stream.wikidata_json([b"[", b'{"id":"Q1","claims":{"P36":[{'], ["P36"]))


def test_a_missing_dump_is_named(tmp_path: Path):
    with pytest.raises(DumpError, match="no such file"), stream.lines(tmp_path / "x.gz") as source:
        list(source)

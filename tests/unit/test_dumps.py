"""Dumps as text and as entities: compression, truncation, limits, unusual but valid lines."""

import bz2
import gzip
import json
import random
import subprocess
import sys
import zlib
from pathlib import Path

import pyarrow as pa
import pytest

from kgprobe.sources.dumps import described, entities, stream
from kgprobe.sources.dumps.stream import DumpError, LineBlock, blocks


def zstd(data: bytes) -> bytes:
    return pa.Codec("zstd").compress(data, asbytes=True)


COMPRESSORS = {"": bytes, ".gz": gzip.compress, ".bz2": bz2.compress, ".zst": zstd}


def claim(relation: str, value: object, rank: str = "normal", kind: str = "value") -> dict:
    snak: dict = {"snaktype": kind, "property": relation}
    if kind == "value":
        name = "string" if isinstance(value, str) else "wikibase-entityid"
        if isinstance(value, dict) and "time" in value:
            name = "time"
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


def read_json(data: bytes, *relations: str) -> entities.Frames:
    return entities.of_json(LineBlock(0, data), relations, ["en", "mul"])


def ids(found: entities.Frames) -> set[tuple[str, str, str, str]]:
    """Return statements with their ids as strings."""
    frame = found["statements"].with_columns(
        entities.name_of("subject"), entities.name_of("object")
    )
    return {(s, f"P{r}", o, rank) for s, r, o, rank in frame.rows()}


def read_lines(path: Path) -> list[bytes]:
    return list(stream.lines(path))


@pytest.mark.parametrize("suffix", COMPRESSORS)
@pytest.mark.parametrize("size", [1, 100, 1 << 20])
def test_blocks_join_to_the_text_for_every_compression_and_size(tmp_path, suffix, size):
    path = tmp_path / f"dump.json{suffix}"
    path.write_bytes(COMPRESSORS[suffix](JSON))
    got = list(blocks(path, size, threads=2))
    assert b"".join(block.data for block in got) == JSON
    assert [b.before for b in got] == [
        JSON[: sum(len(o.data) for o in got[:n])].count(b"\n") for n in range(len(got))
    ]
    assert read_lines(path) == JSON.splitlines()


def test_entities_give_statements_and_counts():
    result = read_json(JSON, "P36", "P569")
    assert ids(result) == {("Q1", "P36", "Q10", "normal"), ("Q1", "P36", "Q11", "preferred")}
    assert result["counted"].rows() == [
        (36, "item", "deprecated", 1), (36, "item", "normal", 1), (36, "item", "preferred", 1),
        (36, "no value", "normal", 1), (569, "literal", "normal", 1),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "style", [{"separators": (",", ":")}, {"separators": (" , ", " : ")}, {"ensure_ascii": False}]
)
@pytest.mark.parametrize("end", ["\n", "\r\n", " \n"])
def test_whitespace_loses_no_entity(style, end):
    lines = ["[", *(json.dumps(e, **style) + "," for e in ENTITIES), "]", ""]
    result = read_json(end.join(lines).encode(), "P36", "P17", "P1")
    assert len(ids(result)) == 3
    assert result["unread"].is_empty()
    one_line = b"[" + json.dumps(ENTITIES[0], **style).encode() + b"]\n"
    assert ids(read_json(one_line, "P36")) == {
        ("Q1", "P36", "Q10", "normal"),
        ("Q1", "P36", "Q11", "preferred"),
    }


def test_non_entities_are_counted_with_their_line():
    data = JSON.replace(b"]\n", b'{"id":"Q9","claims":{"P36":[{\n{"id":"X1"},\n7\n]\n')
    assert data != JSON
    result = read_json(data, "P36")
    unread = [(line, first[:8]) for line, first in result["unread"].rows()]
    assert unread == [(7, '{"id":"Q'), (8, '{"id":"X'), (9, "7")]
    assert len(ids(result)) == 2


def test_lines_before_an_unread_one_are_counted_once():
    """A file of another form has no other lines: a block of it took hours."""

    class Text(bytes):
        scanned = 0

        def count(self, part, start, end):
            Text.scanned += end - start
            return super().count(part, start, end)

    text = Text(b"no entity\n" * 1000)
    found = entities.of_json(LineBlock(0, text), ["P36"], ["en"])["unread"]
    assert found["line"].to_list() == list(range(1, 1001))
    assert Text.scanned <= len(text)


def flushed(text: bytes) -> bytes:
    """Compress with gzip, ending a block every 4,000 bytes."""
    packer = zlib.compressobj(6, zlib.DEFLATED, 31)
    pieces = [text[at : at + 4000] for at in range(0, len(text), 4000)]
    flush = (packer.compress(piece) + packer.flush(zlib.Z_FULL_FLUSH) for piece in pieces)
    return b"".join(flush) + packer.flush()


@pytest.mark.parametrize("suffix", [".gz", ".bz2", ".zst"])
@pytest.mark.parametrize("members", [1, 2])
def test_truncated_archives_raise_at_any_byte(tmp_path, suffix, members):
    """rapidgzip reads a truncated gzip file as if it were complete."""
    text = b"".join(b"<s> <p> <o%d> .\n" % (i * 7919 % 10007) for i in range(1500))
    path = tmp_path / f"dump.nt{suffix}"
    for packer in [COMPRESSORS[suffix], flushed] if suffix == ".gz" else [COMPRESSORS[suffix]]:
        packed = packer(text)
        whole = packed * members
        path.write_bytes(whole)
        assert len(read_lines(path)) == 1500 * members
        cuts = {*range(1, len(whole), 211), *range(len(whole) - 12, len(whole))} - {len(packed)}
        for cut in sorted(cuts):
            path.write_bytes(whole[:cut])
            with pytest.raises(DumpError, match=r"truncated or damaged"):
                read_lines(path)


def test_complete_single_member_archive_is_decompressed_once(tmp_path, monkeypatch):
    path = tmp_path / "dump.nt.gz"
    path.write_bytes(COMPRESSORS[".gz"](b"<s> <p> <o> .\n" * 1500))
    monkeypatch.setattr(stream.gzip, "open", lambda *_: pytest.fail("unpacked again"))
    assert len(read_lines(path)) == 1500


@pytest.mark.parametrize("suffix", [".gz", ".bz2", ".zst"])
def test_suffixes_in_capitals_are_archives(tmp_path, suffix):
    path = tmp_path / f"DUMP.NT{suffix.upper()}"
    packed = COMPRESSORS[suffix](b"<s> <p> <o> .\n" * 5000)
    path.write_bytes(packed)
    assert len(read_lines(path)) == 5000
    path.write_bytes(packed[:-12])
    with pytest.raises(DumpError, match=r"truncated or damaged"):
        read_lines(path)


@pytest.mark.parametrize("suffix", [".gz", ".bz2", ".zst"])
def test_text_after_or_instead_of_an_archive_raises(tmp_path, suffix):
    path = tmp_path / f"dump.nt{suffix}"
    packed = COMPRESSORS[suffix](b"a\n")
    for data in (packed + b"<html>", packed + bytes(512), b"<html>busy</html>\n" * 9):
        path.write_bytes(data)
        with pytest.raises(DumpError, match=r"truncated or damaged"):
            read_lines(path)


@pytest.mark.parametrize("suffix", COMPRESSORS)
def test_endless_line_raises_before_memory_is_full(tmp_path, suffix, monkeypatch):
    monkeypatch.setattr(stream, "LONGEST", 1 << 16)
    path = tmp_path / f"dump.nt{suffix}"
    path.write_bytes(COMPRESSORS[suffix](b"short\n" + b"x" * (1 << 22)))
    with pytest.raises(DumpError, match=r"line 2 has 65,536 bytes"):
        read_lines(path)


@pytest.mark.parametrize("suffix", [".gz", ".bz2", ".zst"])
def test_endless_decompression_raises(tmp_path, suffix, monkeypatch):
    monkeypatch.setattr(stream, "SMALL", 1 << 20)
    path = tmp_path / f"dump.nt{suffix}"
    path.write_bytes(COMPRESSORS[suffix]((b"x" * 1000 + b"\n") * 20_000))
    with pytest.raises(DumpError, match=r"dump\.nt.* unpacks to .*, over 100 fold"):
        read_lines(path)


LONG = """
import gzip, resource, sys
from pathlib import Path
from kgprobe.sources.dumps import facts
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
facts.read([Path(sys.argv[1])], "json", ["P36"], Path(sys.argv[2]), size=int(sys.argv[3]))
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


@pytest.mark.timing  # a count in bytes that also depends on the allocator and the operating system
def test_memory_is_bounded_for_any_line_length(tmp_path):
    """Three times as much text, in lines of 17.5 kB, needs no more memory."""
    more = []
    for number in (8_000, 24_000):
        path = tmp_path / f"{number}.json.gz"
        claims = json.dumps({"P36": [claim("P36", item(1))]})
        with gzip.open(path, "wb", compresslevel=1) as packed:
            packed.write(b"[\n")
            for n in range(number):
                text = random.Random(n).randbytes(8_600).hex()
                entity = f'{{"id":"Q{n + 1}","x":"{text}","claims":{claims}}},\n'
                packed.write(entity.encode())
            packed.write(b"]\n")
        run = [sys.executable, "-c", LONG, str(path), str(tmp_path / f"p{number}"), str(1 << 23)]
        done = subprocess.run(run, capture_output=True, text=True, check=True)
        more.append(int(done.stdout))
    assert more[1] - more[0] < 60_000, f"kB at 140 MB and at 420 MB of text: {more}"


def test_concatenated_zstd_frames_are_read(tmp_path):
    path = tmp_path / "dump.nt.zst"
    frames = [b"".join(b"%d\n" % n for n in range(a, a + 9999)) for a in (0, 9999, 19998)]
    path.write_bytes(b"".join(map(zstd, frames)))
    assert read_lines(path) == [b"%d" % n for n in range(29997)]


WD = b"<http://www.wikidata.org/"
SUBJECT, CAPITAL, PARIS = WD + b"entity/Q142>", WD + b"prop/direct/P36>", WD + b"entity/Q90>"
#: unusual but valid: each states that the capital of Q142 (or of P142, L142) is Q90
PLAIN = SUBJECT + b" " + CAPITAL + b" " + PARIS + b" ."
ODD = {
    "plain": PLAIN, "comment": PLAIN + b" # Paris", "comment without blank": PLAIN + b"#",
    "blanks before": b"  " + PLAIN, "two blanks": PLAIN.replace(b" ", b"  ") + b"  ",
    "tabs": b"\t" + PLAIN.replace(b" ", b"\t") + b"\t", "no blanks": PLAIN.replace(b" ", b""),
    "P subject": PLAIN.replace(b"Q142", b"P142"), "L subject": PLAIN.replace(b"Q142", b"L142"),
    "https": PLAIN.replace(b"http:", b"https:"),
    "escaped": PLAIN.replace(b"P36", rb"\u0050\U00000033\u0036"), "carriage return": PLAIN + b"\r",
}  # fmt: skip


def truthy(*lines: bytes, relations: tuple[str, ...] = ("P36",)) -> entities.Frames:
    block = LineBlock(10, b"".join(line + b"\n" for line in lines))
    return entities.of_truthy(block, relations, ["en", "mul"])


@pytest.mark.parametrize("odd", ODD)
def test_unusual_but_valid_lines_are_read(odd):
    result = truthy(ODD[odd])
    letter = odd[0] if odd[1:] == " subject" else "Q"
    assert ids(result) == {(f"{letter}142", "P36", "Q90", "normal")}
    assert result["unread"].is_empty()


def test_carriage_return_alone_ends_a_line():
    assert len(ids(truthy(ODD["plain"] + b"\r" + ODD["P subject"]))) == 2


def test_unparsable_lines_are_counted_with_their_number():
    other = SUBJECT + b" " + WD + b"prop/direct/P17> " + PARIS + b" ."
    result = truthy(
        other, SUBJECT + b" " + CAPITAL + b" Q90 .", b"# " + CAPITAL, ODD["plain"],
        CAPITAL + b" " + CAPITAL,
    )  # fmt: skip
    assert result["unread"]["line"].to_list() == [12, 15]
    assert result["unread"]["first"][0].startswith("<http://www.wikidata.org/entity/Q142>")
    assert len(ids(result)) == 1


def test_an_equivalent_that_is_no_iri_is_unread():
    """The queries could not be run on any of the properties."""
    of_property = WD + b"entity/P36> " + WD + b"prop/direct/P1628> "
    result = truthy(
        ODD["plain"], of_property + b"<http://e.org/[a]> .", of_property + b"<http://e.org/a> ."
    )
    assert result["properties"]["line"].to_list() == [
        (of_property + b"<http://e.org/a> .").decode()
    ]
    assert result["unread"]["line"].to_list() == [12]


def test_truthy_values_by_kind_and_names():
    label = b" <http://www.w3.org/2000/01/rdf-schema#label> "
    links = (
        b' <http://wikiba.se/ontology#sitelinks> "7"^^<http://www.w3.org/2001/XMLSchema#integer> .'
    )
    result = truthy(
        ODD["plain"],
        SUBJECT + b" " + CAPITAL + b" _:b0 .",
        SUBJECT + b" " + CAPITAL + b" <http://www.wikidata.org/.well-known/genid/1> .",
        SUBJECT + b" " + CAPITAL + rb' "R\u00E9publique \"f\""@fr .',
        SUBJECT + b" " + CAPITAL + b" <http://example.org/> .",
        SUBJECT + b" " + CAPITAL + b" " + WD + b"entity/E42> .",
        SUBJECT + label + rb'"Fr\u00E4nce"@EN .',
        SUBJECT + label + b'"Frankreich"@de .',
        WD + b"wiki/Special:EntityData/Q142>" + links,
    )
    kinds = dict(result["counted"].select("kind", "n").rows())
    assert kinds == {"item": 2, "unknown": 2, "literal": 1, "other": 1}
    assert result["names"].rows() == [(568, None, None, 7), (568, 0, "Fränce", None)]


KOELN = rb"<http://dbpedia.org/resource/K\u00F6ln> <http://dbpedia.org/ontology/"
DBPEDIA = [
    KOELN + rb"country> <http://dbpedia.org/resource/Germany> .",
    KOELN + rb'area> "4.05"^^<http://www.w3.org/2001/XMLSchema#double> .',
    KOELN + rb'other> "x" .',
]


@pytest.mark.parametrize("escape", [r"\udfff", r"\U0000D800", r"\U00110000"])
def test_escapes_of_invalid_characters_are_unread(escape):
    """Other programs write characters beyond U+FFFF as surrogate pairs, which are read."""
    texts = (r"a\U0001F600", r"a\uD83D\uDE00", escape)
    lines = [f'<http://e/a> <{described.LABEL}> "{text}"@en .' for text in texts]
    result = entities.of_iris(LineBlock(0, "\n".join([*lines, ""]).encode()), [], ["en"])
    assert result["names"]["label"].to_list() == ["a\U0001f600"]
    assert result["unread"]["line"].to_list() == [3]


@pytest.mark.parametrize(
    "end", ["<e:c> <g:g> .", "<e:c>", "<e:c|d> .", "<e:c d> .", "<<( <s:s> <p:p> <o:o> )>> ."]
)
def test_lines_that_are_no_single_triple_are_unread(end):
    line = f"<e:a> <e:b> {end}\n".encode()
    result = entities.of_iris(LineBlock(0, line), ["e:b"], ["en"])
    assert (result["statements"].height, result["unread"].height) == (0, 1)


def test_dbpedia_triples_unescape_their_iris():
    predicates = ["http://dbpedia.org/ontology/country", "http://dbpedia.org/ontology/area"]
    block = LineBlock(0, b"".join(line + b"\n" for line in DBPEDIA))
    result = entities.of_iris(block, predicates, ["en"])["statements"]
    assert set(result["subject"]) == {"http://dbpedia.org/resource/Köln"}
    assert result.select("object", "object_kind").rows() == [
        ("4.05", "literal"), ("http://dbpedia.org/resource/Germany", "item")
    ]  # fmt: skip


@pytest.mark.parametrize("number", ["\u00b2", "9" * 30])
def test_impossible_sitelink_counts_are_ignored(number):
    line = f'<{described.WD}Q1> <{entities.SITELINKS}> "{number}" .\n'
    read = entities.of_truthy(LineBlock(0, line.encode()), ["P36"], ["en"])
    assert read["names"].is_empty()


@pytest.mark.parametrize(
    "broken",
    [
        {"P1647": [{"mainsnak": {"snaktype": "value"}, "rank": "normal"}]},
        {"P1628": [claim("P1628", "http://example.org/[a]")]},
        {"P1628": [claim("P1628", "no address")]},
        {"P2302": [{"mainsnak": {"snaktype": "novalue"}, "rank": "normal"}]},
        {"P2302": [{"id": "P36$a", "mainsnak": {"snaktype": "novalue"}, "rank": "normal",
                    "qualifiers": {"P2308": [{"snaktype": "value"}]}}]},
    ],
)  # fmt: skip
def test_broken_property_statement_loses_nothing_else(broken):
    one = {"id": "P36", "datatype": "wikibase-item", "claims": broken}
    result = read_json(b"[\n" + json.dumps(one).encode() + b"\n]\n", "P36")
    assert result["properties"]["line"].str.contains("propertyType").sum() == 1
    ((line, text),) = result["unread"].rows()
    assert (line, text[:9]) == (2, f"P36 {next(iter(broken))}")


@pytest.mark.parametrize("blank", ["", " \u00a0"])
def test_blank_label_counts_as_missing(blank):
    """A blank label must not hide the label in the next language."""
    labels = {tag: {"language": tag, "value": v} for tag, v in (("en", blank), ("mul", "UK"))}
    entity_of = {"labels": labels, "claims": {}}
    lines = [json.dumps({"id": f"Q{n}", **entity_of}) for n in (1, 2)]
    lines.append(json.dumps({"id": "P1", "datatype": "wikibase-item", **entity_of}))
    of_json = read_json("\n".join([*lines, ""]).encode())
    triples = [
        f'<{described.WD}{name}> <{described.LABEL}> "{labels[tag]["value"]}"@{tag} .'.encode()
        for name in ("Q1", "Q2", "P1")
        for tag in labels
    ]
    of_truthy = truthy(*triples)
    of_iris = entities.of_iris(LineBlock(0, b"\n".join([*triples, b""])), [], ["en", "mul"])
    for result in (of_json, of_truthy, of_iris):
        assert result["names"].select("place", "label").rows() == [(1, "UK")] * 3
        assert result["unread"].is_empty()
    for result in (of_json, of_truthy):
        assert [line for line in result["properties"]["line"] if described.LABEL in line] == [
            f'<{described.WD}P1> <{described.LABEL}> "UK"@mul .'
        ]


@pytest.mark.parametrize("broken", [{"value": {"a": 1}}, {"value": None}, {"value": 5}, {}, 7])
def test_broken_alias_is_counted_and_loses_nothing_else(broken):
    one = entity(1, P36=[claim("P36", item(10))])
    one["aliases"] = {"en": [{"language": "en", "value": "Gaul"}, broken]}
    result = read_json(b"[\n" + json.dumps(one).encode() + b"\n]\n", "P36")
    assert ids(result) == {("Q1", "P36", "Q10", "normal")}
    assert result["aliases"].rows() == [(4, "Gaul")]
    ((line, text),) = result["unread"].rows()
    assert (line, text[:9]) == (2, "Q1 alias ")


@pytest.mark.parametrize(
    "broken",
    [
        {"mainsnak": {"snaktype": "value", "property": "P36"}, "rank": "normal"},
        {"mainsnak": {"snaktype": "value", "property": "P36", "datavalue": None}, "rank": "normal"},
        {"mainsnak": {"property": "P36"}, "rank": "normal"},
        {"rank": "normal"},
        {"mainsnak": claim("P36", item(12))["mainsnak"]},
        7,
    ],
)
def test_broken_statement_is_counted_and_loses_nothing_else(broken):
    one = entity(1, P36=[claim("P36", item(10)), broken], P17=[claim("P17", item(11))])
    one["labels"] = {"en": {"language": "en", "value": "France"}}
    result = read_json(b"[\n" + json.dumps(one).encode() + b"\n]\n", "P36", "P17")
    assert ids(result) == {("Q1", "P36", "Q10", "normal"), ("Q1", "P17", "Q11", "normal")}
    assert result["names"]["label"].to_list() == ["France"]
    ((line, text),) = result["unread"].rows()
    assert line == 2
    assert text.startswith("Q1 P36 ")
    assert result["counted"]["n"].sum() == 2

"""Dump statements equal the embedded knowledge graph, and interruptions lose nothing."""

import bz2
import gzip
import hashlib
import json
from pathlib import Path

import polars as pl
import pytest

from kgprobe import schema
from kgprobe.knowledge.facts import best_rank
from kgprobe.schema import STATEMENTS
from kgprobe.sources.dumps import described, entities
from kgprobe.sources.dumps import facts as dump_facts
from kgprobe.sources.dumps.download import record
from kgprobe.sources.dumps.stream import DumpError, LineBlock
from tools.world import build, rdf
from tools.world import dumps as world_dumps

ROOT = Path(__file__).parents[2]
RELATIONS = ["P36", "P30", "P17", "P47", "P6", "P38", "P569"]
#: chunk size in bytes of text: the embedded dump has a few chunks
SMALL = 1 << 18
LABEL = "http://www.w3.org/2000/01/rdf-schema#label"
WD, DIRECT = "http://www.wikidata.org/entity/", "http://www.wikidata.org/prop/direct/"


@pytest.fixture(scope="module")
def packed(world, tmp_path_factory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("dumps")
    wikidata = rdf.render_wikidata(world)
    made = {
        "json": (folder / "world.json.gz", gzip.compress(world_dumps.render_json(world))),
        "truthy": (folder / "world.nt.bz2", bz2.compress(world_dumps.render_truthy(wikidata))),
        "names": (folder / "names.nt.bz2", bz2.compress(world_dumps.render_names(wikidata))),
    }
    for path, data in made.values():
        path.write_bytes(data)
    return {name: path for name, (path, _) in made.items()}


def expected(world: build.World) -> pl.DataFrame:
    """Return STATEMENTS of the embedded knowledge graph, for relations with item values."""
    names = world.entities.select("id", "label", "sitelinks")
    rows = world.statements.filter(
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


@pytest.mark.parametrize("threads", [1, 2])
def test_json_dump_equals_the_embedded_graph(world, packed, tmp_path, threads):
    result = dump_facts.read(
        [packed["json"]], "json", RELATIONS, tmp_path, size=SMALL, threads=threads
    )
    schema.check(result.statements, STATEMENTS)
    assert result.statements.equals(expected(world))
    assert len(list(tmp_path.glob("*-world/part-*"))) > 3
    assert result.unread.height == 0
    ways = dict(result.coverage.select("relation", "way").rows())
    assert ways == dict.fromkeys(RELATIONS, "read") | {"P569": "left out"}
    assert result.coverage.filter(relation="P36")["unknown"].item() is not None


def test_truthy_dump_has_best_ranks_and_reports_what_it_lacks(world, packed, tmp_path):
    bare = dump_facts.read([packed["truthy"]], "truthy", RELATIONS, tmp_path / "bare")
    assert bare.statements["subject_sitelinks"].null_count() == bare.statements.height
    (reason,) = bare.coverage.filter(relation="P36")["reason"]
    words = ("ranks", "sitelinks", "propertyType", "P2308")
    assert all(word in reason for word in words)
    both = [packed["truthy"], packed["names"]]
    result = dump_facts.read(both, "truthy", RELATIONS, tmp_path / "both")
    columns = [c for c in STATEMENTS.columns if c != "rank"]
    wanted = best_rank(expected(world)).select(columns).unique().sort(columns[0], "relation")
    assert wanted.sort(columns).equals(result.statements.select(columns).sort(columns))
    (reason,) = result.coverage.filter(relation="P36")["reason"]
    assert "sitelinks" not in reason
    row = result.coverage.filter(relation="P36").row(0, named=True)
    assert row["deprecated"] is None, "not counted is not none"


def test_dbpedia_triples_become_statements(world, tmp_path):
    dump = tmp_path / "dbpedia.nt"
    dump.write_text(rdf.render_dbpedia(world))
    result = dump_facts.read(
        [dump], "ntriples", [described.RDF_TYPE], tmp_path / "parts"
    ).statements
    schema.check(result, STATEMENTS)
    one = result.filter(
        (pl.col("subject") == "http://dbpedia.org/resource/France")
        & (pl.col("object") == "http://dbpedia.org/ontology/Country")
    )
    assert one.select("kg", "subject_label", "object_label").rows() == [
        ("dbpedia", "France", "country")
    ]


def test_interruption_loses_only_the_current_chunk(packed, tmp_path, monkeypatch):
    whole = dump_facts.read([packed["json"]], "json", RELATIONS, tmp_path / "whole", size=SMALL)
    total = len(list((tmp_path / "whole").glob("*/part-*")))
    original = entities.of_json
    read: list[int] = []

    def stopped(block: LineBlock, **arguments):
        read.append(block.before)
        if len(read) == 4:
            raise KeyboardInterrupt
        return original(block, **arguments)

    monkeypatch.setattr(entities, "of_json", stopped)
    folder = tmp_path / "stopped"
    with pytest.raises(KeyboardInterrupt):
        dump_facts.read([packed["json"]], "json", RELATIONS, folder, size=SMALL)
    finished = sorted(path.name for path in folder.glob("*/part-*[0-9]"))
    assert finished == [f"part-{i:05d}" for i in (1, 2, 3)]
    read[:] = [0] * 10
    again = dump_facts.read([packed["json"]], "json", RELATIONS, folder, size=SMALL)
    assert len(read) - 10 == total - 3
    assert again.statements.equals(whole.statements)
    assert again.coverage.equals(whole.coverage)


def test_truncated_dump_keeps_its_chunks_and_reports_the_byte(packed, tmp_path):
    data = bz2.compress(gzip.decompress(packed["json"].read_bytes()), 1)
    cut = tmp_path / "cut.json.bz2"
    cut.write_bytes(data[: len(data) // 2])
    folder = tmp_path / "parts"
    with pytest.raises(DumpError, match=r"cut.json.bz2: truncated or damaged near byte [\d,]+ of"):
        dump_facts.read([cut], "json", RELATIONS, folder, size=1 << 16)
    assert len(list(folder.glob("*/part-*"))) > 2
    assert not list(folder.glob("*/complete"))


def test_unclosed_array_counts_as_truncated(tmp_path):
    dump = tmp_path / "dump.json"
    dump.write_text('[\n{"id":"Q1","labels":{}},\n')
    with pytest.raises(DumpError, match=r"dump.json: truncated after line 2: the array"):
        dump_facts.read([dump], "json", RELATIONS, tmp_path / "parts")


@pytest.mark.parametrize("change", [0, -1, "sum", "relations"])
def test_parts_of_another_dump_or_question_are_not_used(change, tmp_path, monkeypatch):
    """Dumps are identified by size, first and last bytes, and download checksum."""
    dump, address = tmp_path / "truthy.nt", "https://example.org/truthy.nt"
    lines = [f"<{WD}Q{n}> <{DIRECT}P36> <{WD}Q9> .\n" for n in range(10, 99)]
    dump.write_text("".join(lines))
    record(dump, address, "0" * 64)
    read, original = [], entities.of_truthy

    def noted(block: LineBlock, **arguments):
        read.append(block.before)
        return original(block, **arguments)

    monkeypatch.setattr(entities, "of_truthy", noted)
    for _ in range(2):
        dump_facts.read([dump], "truthy", ["P36"], tmp_path / "parts")
    assert len(read) == 1
    if change == "sum":
        record(dump, address, "1" * 64)
    elif change != "relations":
        lines[change] = lines[change].replace("/Q9>", "/Q8>")
        dump.write_text("".join(lines))
    asked = ["P36", "P30"] if change == "relations" else ["P36"]
    objects = dump_facts.read([dump], "truthy", asked, tmp_path / "parts").statements["object"]
    assert len(read) == 2
    assert set(objects) == ({"Q8", "Q9"} if change in (0, -1) else {"Q9"})


def test_files_of_one_name_in_two_folders_are_distinguished(tmp_path):
    """Otherwise a change of the first is not noticed, and its old parts are used."""
    label = '<{}Q{}> <http://www.w3.org/2000/01/rdf-schema#label> "{}"@en .\n'.format
    paths = [tmp_path / "truthy.nt", tmp_path / "a/names.nt", tmp_path / "b/names.nt"]
    texts = [f"<{WD}Q1> <{DIRECT}P36> <{WD}Q2> .\n", label(WD, 1, "one"), label(WD, 2, "two")]
    for path, text in zip(paths, texts, strict=True):
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    for name in ("one", "one", "other"):
        paths[1].write_text(label(WD, 1, name))
        found = dump_facts.read(paths, "truthy", ["P36"], tmp_path / "parts").statements
        assert found.select("subject_label", "object_label").rows() == [(name, "two")]


def test_unread_lines_of_two_files_of_one_name_are_distinguished(tmp_path):
    paths = [tmp_path / folder / "truthy.nt" for folder in "ab"]
    for path in paths:
        path.parent.mkdir()
        path.write_text(f"<{WD}Q1> <{DIRECT}P36> Q2 .\n<{WD}Q1> <{DIRECT}P36> <{WD}Q2> .\n")
    result = dump_facts.read(paths, "truthy", ["P36"], tmp_path / "parts").unread
    schema.check(result, dump_facts.UNREAD)
    assert result["file"].to_list() == [str(path) for path in paths]


def test_unread_lines_are_tabulated_and_logged(packed, tmp_path, caplog):
    dump = tmp_path / "odd.json"
    dump.write_text('[\n{"id":"Q1","claims":{"P36":[{}]}},\n{"id":"Q2"},\nnot json\n]\n')
    result = dump_facts.read([dump], "json", ["P36"], tmp_path / "parts")
    assert result.unread.select("file", "line").rows() == [("odd.json", 2), ("odd.json", 4)]
    schema.check(result.unread, dump_facts.UNREAD)
    assert "2 lines passed a filter and were not read" in caplog.text


def test_entity_with_reordered_keys_keeps_its_label(tmp_path):
    dump = tmp_path / "odd.json"
    dump.write_text(
        '[\n{"id":"Q1","type":"item","labels":{"en":{"language":"en","value":"one"}},"claims":{"P36":'
        '[{"mainsnak":{"snaktype":"value","property":"P36","datavalue":{"type":"wikibase-entityid",'
        '"value":{"id":"Q2"}}},"rank":"normal"}]}}\n]\n'
    )
    result = dump_facts.read([dump], "json", ["P36"], tmp_path / "parts").statements
    assert result.select("subject_label", "object_label").rows() == [("one", None)]


def entity(subject: str, *claims: dict[str, object]) -> str:
    labels = {"en": {"value": subject.lower()}}
    return json.dumps({"id": subject, "labels": labels, "claims": {"P36": list(claims)}})


def claim(name: str, rank: str | None = "normal") -> dict[str, object]:
    value = {"type": "wikibase-entityid", "value": {"id": name}}
    return {"mainsnak": {"snaktype": "value", "datavalue": value}, "rank": rank}


@pytest.mark.parametrize("array", [True, False])
def test_byte_order_mark_is_stripped(array, tmp_path):
    lines = [entity("Q1", claim("Q2")), entity("Q2")]
    path = tmp_path / "dump.json"
    path.write_text("[\n" + ",\n".join(lines) + "\n]" if array else "\n".join(lines), "utf-8-sig")
    result = dump_facts.read([path], "json", ["P36"], tmp_path / "parts")
    assert result.statements.select("subject", "object").rows() == [("Q1", "Q2")]
    assert not result.unread.height


def test_invalid_ids_and_ranks_are_unread(tmp_path):
    """An id with leading zeros is no other entity."""
    bad, good = [claim("Q3", "best"), claim("Q3", None), claim("Q003")], claim("Q2")
    others = [entity(name, good) for name in ("Q" + "9" * 30, "Q001")]
    path = tmp_path / "dump.json"
    path.write_text("\n".join([*others, entity("Q1", *bad, good)]))
    result = dump_facts.read([path], "json", ["P36"], tmp_path / "parts")
    assert result.statements.select("subject", "object", "rank").rows() == [("Q1", "Q2", "normal")]
    assert result.unread["line"].to_list() == [1, 2, 3, 3, 3]
    schema.check(result.unread, dump_facts.UNREAD)


def test_lexeme_forms_and_senses_are_entities_in_both_dump_formats(tmp_path):
    names = ["Q2", "P3", "L4", "L5-F1", "L6-S2"]
    (tmp_path / "dump.json").write_text(entity("Q1", *map(claim, names)))
    wd, relation = "http://www.wikidata.org/entity/", "http://www.wikidata.org/prop/direct/P36"
    triples = [f"<{wd}Q1> <{relation}> <{wd}{name}> .\n" for name in names]
    (tmp_path / "dump.nt").write_text("".join(triples))
    for form, file in (("json", "dump.json"), ("truthy", "dump.nt")):
        result = dump_facts.read([tmp_path / file], form, ["P36"], tmp_path / form)
        assert result.statements["object"].to_list() == ["Q2"]
        assert result.coverage.select("item", "other").rows() == [(5, 0)], form


@pytest.mark.parametrize(
    ("form", "text", "words"),
    [
        ("json", f"[{entity('Q1')}, {entity('Q2')}]", "line 1 begins .*per line"),
        ("json", json.dumps([json.loads(entity("Q1"))], indent=1), "line 2 begins .*per line"),
        ("json", "[\n]\n", "expected one entity of JSON per line"),
        ("truthy", f"[\n{entity('Q1')}\n]\n", "expected N-Triples"),
        ("ntriples", "subject,relation,object\n", "expected N-Triples with labels or statements"),
    ],
)
def test_file_without_one_entity_per_line_raises(form, text, words, tmp_path):
    path = tmp_path / "dump.json"
    path.write_text(text)
    with pytest.raises(DumpError, match=rf"dump\.json: no entity in it; {words}"):
        dump_facts.read([path], form, ["P36"], tmp_path / "parts")


@pytest.mark.parametrize(
    ("form", "text", "wanted"),
    [
        ("json", entity("Q1", claim("Q2")), ["P17", "P30"]),
        ("truthy", f'<{WD}Q1> <{DIRECT}P36> <{WD}Q2> .\n<{WD}Q1> <{LABEL}> "a"@en .\n', ["P17"]),
        ("ntriples", f'<http://x/a> <{LABEL}> "a"@en .\n', ["http://x/p"]),
    ],
)
def test_a_dump_without_the_wanted_relations_is_refused_by_their_names(
    form, text, wanted, tmp_path
):
    """The error was that of the contract: STATEMENTS has no rows."""
    path = tmp_path / "dump"
    path.write_text(text)
    result = dump_facts.read([path], form, wanted, tmp_path / "parts")
    with pytest.raises(DumpError, match=rf"dump: no statement of {', '.join(wanted)} between"):
        dump_facts.require_statements(result.statements, path, wanted)


@pytest.mark.parametrize("broken", [
    {"snaktype": "unclear"},
    {"snaktype": "value", "datavalue": {"type": "wikibase-entityid", "value": {"id": "Q2b"}}},
    {"snaktype": "value", "datavalue": {
        "type": "wikibase-entityid", "value": {"entity-type": "item", "numeric-id": 2.0}}},
])  # fmt: skip
def test_a_snak_of_an_unknown_type_or_item_is_unread_and_not_counted(broken, tmp_path):
    """Neither is a statement of an unknown value or of an item: it was counted as one and lost."""
    path = tmp_path / "dump.json"
    path.write_text(entity("Q1", claim("Q2"), {"mainsnak": broken, "rank": "normal"}))
    result = dump_facts.read([path], "json", ["P36"], tmp_path / "parts")
    assert result.statements["object"].to_list() == ["Q2"]
    assert result.coverage.select("item", "unknown").rows() == [(1, 0)]
    assert result.unread["line"].to_list() == [1]


@pytest.mark.parametrize("form", ["json", "truthy", "ntriples"])
@pytest.mark.parametrize("name", ["dump.nt", "dump.nt.gz"])
def test_web_page_raises(form, name, tmp_path):
    path, page = tmp_path / name, b"<!DOCTYPE html>\n<html><body>busy</body></html>\n"
    path.write_bytes(gzip.compress(page) if name.endswith(".gz") else page)
    with pytest.raises(DumpError, match=rf"{name}: a web page: .*busy"):
        dump_facts.read([path], form, ["P36"], tmp_path / "parts")


def test_aliases_of_the_requested_entities(world, packed, tmp_path):
    result = dump_facts.read([packed["json"]], "json", ["P36"], tmp_path)
    asked = world.entities.filter(pl.col("aliases").list.len() > 0).head(20)
    got = dump_facts.aliases(result.aliases, [*asked["id"], "Q999999999", "no id"])
    wanted = {
        (f"http://www.wikidata.org/entity/{row['id']}", alias)
        for row in asked.iter_rows(named=True)
        for alias in row["aliases"]
    }
    assert set(got.rows()) == wanted != set()


def test_aliases_are_one_line_and_unique():
    """Like labels: an answer compared with one has no line breaks."""
    rows = [("Q60", " NYC\n"), ("Q60", "NYC"), ("Q60", "New\u00a0York\u2028City"), ("Q60", " \t")]
    got = dump_facts.tidy_aliases(pl.LazyFrame(rows, schema=["entity", "alias"], orient="row"))
    assert got.collect().rows() == [("Q60", "NYC"), ("Q60", "New York City")]


def test_large_classes_are_sampled_by_lowest_hash(tmp_path):
    dbo, rdf_type = (
        "http://dbpedia.org/ontology/",
        "http://www.w3.org/1999/02/22-rdf-syntax-ns#type",
    )
    label = "http://www.w3.org/2000/01/rdf-schema#label"
    iris = [f"http://dbpedia.org/resource/Thing_{i}" for i in range(400)]
    lines = [f"<{iri}> <{rdf_type}> <{dbo}Large> ." for iri in iris]
    lines += [f"<{iri}> <{rdf_type}> <{dbo}Small> ." for iri in iris[:7]]
    lines += [f'<{iri}> <{label}> "thing {i}"@en .' for i, iri in enumerate(iris)]
    path = tmp_path / "instances.nt"
    path.write_text("\n".join(lines) + "\n")
    classes = [f"{dbo}Large", f"{dbo}Small"]
    types, in_part, _ = dump_facts.read_types([path], classes, 100, tmp_path / "types")
    # 100 of 400: the lowest quarter of the three-digit hashes
    low = [iri for iri in iris if int(hashlib.md5(iri.encode()).hexdigest()[:3], 16) < 1024]
    assert 60 < len(low) < 140
    assert sorted(types.filter(pl.col("class") == f"{dbo}Large")["instance"]) == sorted(low)
    assert types.height == len(low) + 7
    assert in_part == {f"{dbo}Large": 0.25}

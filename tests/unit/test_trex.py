"""T-REx ingestion: columns, labels and every kind of broken file."""

import json
import zipfile

import polars as pl
import pytest

from kgprobe import schema
from kgprobe.sources.dumps import trex
from kgprobe.sources.dumps.trex import BrokenFileError
from perf.generate.trex import write_dump

Q, P = trex.ENTITY, trex.DIRECT


def entity(uri: str, text: str, surface: str, annotator: str = trex.SPOTLIGHT) -> dict:
    start = text.index(surface)
    bounds = [start, start + len(surface)]
    return {"uri": uri, "boundaries": bounds, "surfaceform": surface, "annotator": annotator}


def document(number: int = 1, text: str = "Paris lies in France. It is old.", **changes) -> dict:
    subject = entity(f"{Q}Q{number}", text, "Paris")
    place = entity(f"{Q}Q142", text, "France")
    aligner = "Simple-Aligner"
    predicate = {"uri": f"{P}P17", "boundaries": None, "surfaceform": None, "annotator": aligner}
    triple = {
        "sentence_id": 0, "subject": subject, "predicate": predicate, "object": place,
        "dependency_path": None, "confidence": None, "annotator": aligner,
    }  # fmt: skip
    base = {
        "docid": f"{Q}Q{number}", "uri": f"{Q}Q{number}", "title": f"Paris {number}", "text": text,
        "words_boundaries": [], "sentences_boundaries": [[0, 21], [22, 32]],
        "entities": [subject, place], "triples": [triple],
    }  # fmt: skip
    return {**base, **changes}


def ingest(*documents: dict) -> trex.FileTables:
    return trex.ingest(json.dumps(list(documents), ensure_ascii=False).encode(), "re-nlg_0-2.json")


def counts(shard: trex.FileTables) -> dict[str, int]:
    return dict(shard["problems"].select("kind", "count").rows())


def first(shard: trex.FileTables, kind: str) -> str:
    return shard["problems"].filter(pl.col("kind") == kind)["first"].item()


def with_triple(**changes) -> dict:
    sound = document()
    return {**sound, "triples": [{**sound["triples"][0], **changes}]}


def test_tables_of_a_valid_file(tmp_path):
    shard = ingest(document(1), document(2))
    found = shard["triples"].select("subject", "predicate", "object").rows()
    assert sorted(found) == [(1, 17, 142), (2, 17, 142)]
    assert counts(shard) == {"documents": 2}
    france = shard["mentions"].filter(pl.col("surface") == "France")
    assert france.select("mentions", "documents").rows() == [(2, 2)]
    for name, contract in trex.TABLES.items():
        schema.write(shard[name], contract, tmp_path / f"{name}.parquet")


def test_a_triple_of_several_aligners_counts_once_with_all_their_bits():
    triple = document()["triples"][0]
    other = {**triple, "annotator": "SPOAligner"}
    shard = ingest(document(triples=[triple, triple, other]))
    assert counts(shard)["repeated alignment"] == 1
    assert shard["triples"].select("alignments", "documents", "aligners").rows() == [(2, 1, 1 | 4)]


def test_literals_keep_value_and_datatype():
    date = "1970-01-22T00:00:00Z^^http://www.w3.org/2001/XMLSchema#dateTime"
    subject = document()["triples"][0]["subject"]
    row = ingest(with_triple(object={**subject, "uri": date}))["triples"].row(0, named=True)
    assert row["object"] is None
    assert (row["literal"], row["datatype"]) == tuple(date.split("^^"))


def implied() -> dict:
    """Return a document whose subject is its title and not in the sentence."""
    aligner = "NoSubject-Triple-aligner"
    subject = {"uri": f"{Q}Q1", "boundaries": None, "surfaceform": "Paris", "annotator": aligner}
    return with_triple(subject=subject, annotator=aligner)


def test_an_implied_subject_needs_no_bounds():
    assert ingest(implied())["triples"]["subject"].to_list() == [1]


def test_offsets_are_characters_not_bytes_or_utf16_units():
    text = "\U0001f5fc Pâris? Paris lies in France."
    assert "surface form not at its boundaries" not in counts(ingest(document(text=text)))
    shifted = document()
    shifted["entities"][0] = {**shifted["entities"][0], "boundaries": [1, 6]}
    assert counts(ingest(shifted))["surface form not at its boundaries"] == 1


@pytest.mark.parametrize("bounds", [[-4, -1], [29, 99], [99, 29]])
def test_bounds_outside_of_the_text_are_counted(bounds):
    """Python's slices at these bounds give the surface forms."""
    text = "Paris lies in France. It is old."
    surface = text[bounds[0] : bounds[1]]
    one = {"uri": f"{Q}Q9", "boundaries": bounds, "surfaceform": surface, "annotator": "x"}
    shard = ingest(document(text=text, entities=[one]))
    assert counts(shard)["surface form not at its boundaries"] == 1


def test_labels_title_before_most_frequent_surface_and_never_a_pronoun():
    it = entity(f"{Q}Q142", "Paris lies in France. It is old.", "It", "Simple_Coreference")
    entities = [*document(1)["entities"], it, it, it]
    shard = ingest(document(1, entities=entities), document(2))
    table = trex.labels(shard["mentions"], shard["documents"])
    found = {uri.removeprefix(Q): (label, source) for uri, label, source in table.rows()}
    assert found["Q142"] == ("France", "surface")
    assert found["Q1"] == ("Paris 1", "title")


def test_a_date_is_labeled_by_its_most_frequent_form_of_the_date_linker():
    text = "Born 22 January 1970, on January 22, 1970 or 22 January 1970; it was cold."
    uri = "1970-01-22T00:00:00Z^^http://www.w3.org/2001/XMLSchema#dateTime"
    dates = [entity(uri, text, form, "Date_Linker")
             for form in ("22 January 1970", "January 22, 1970", "22 January 1970")]  # fmt: skip
    other = [entity(uri, text, "it", "Simple_Coreference")] * 3
    shard = ingest(document(1, entities=[*dates, *other]))
    table = trex.labels(shard["mentions"], shard["documents"])
    assert (uri, "22 January 1970", "surface") in table.rows()


def test_surface_forms_that_differ_in_spaces_count_together():
    rows = [("New York", 2, 2), ("New\u00a0York ", 2, 1), ("NYC", 3, 3), (" ", 9, 9)]
    mentions = [(f"{Q}Q1", surface, trex.SPOTLIGHT, *counts) for surface, *counts in rows]
    table = trex.labels(
        pl.DataFrame(mentions, schema=dict(trex.MENTIONS.columns), orient="row"),
        pl.DataFrame(schema=dict(trex.DOCUMENTS.columns)),
    )
    assert table["label"].to_list() == ["New York"]


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"docid": None}, "Expected `str`, got `null` - at `$.docid`"),
        ({"text": ["x"]}, "Expected `str`, got `array` - at `$.text`"),
        ({"entities": {}}, "Expected `array`, got `object` - at `$.entities`"),
        ({"entities": [{"uri": 3}]}, "Expected `str`, got `int` - at `$.entities[0].uri`"),
        ({"triples": [{}]}, "Object missing required field `sentence_id` - at `$.triples[0]`"),
        ({"triples": ["x"]}, "Expected `object`, got `str` - at `$.triples[0]`"),
        ({"title": ...}, "Object missing required field `title`"),
    ],
)
def test_only_the_document_that_violates_the_schema_is_rejected(changes, reason):
    broken = {n: value for n, value in {**document(7), **changes}.items() if value is not ...}
    shard = ingest(document(1), broken, document(3))
    assert counts(shard)["rejected document"] == 1
    assert reason in first(shard, "rejected document")
    docid = None if "docid" in changes else f"{Q}Q7"
    assert first(shard, "rejected document").startswith(f"document 1 ({docid}): ")
    assert sorted(shard["triples"]["subject"]) == [1, 3]


def test_a_lone_surrogate_rejects_only_its_document():
    shard = trex.ingest(json.dumps([document(1), document(7, title="\ud800")]).encode(), "f")
    assert counts(shard) == {"documents": 1, "rejected document": 1}
    assert "surrogate" in first(shard, "rejected document")


@pytest.mark.parametrize(
    ("part", "uri"),
    [
        ("object", "x"),
        *(
            ("object", f"{blank}^^http://www.w3.org/2001/XMLSchema#string")
            for blank in ("", " ", "\n")
        ),
        *(("subject", f"{Q}{name}") for name in ("Q1\u0662", "Q\u0662", "Q007", "Q1\n")),
    ],
)
def test_only_the_triple_with_a_wrong_uri_is_rejected(part, uri):
    """A literal has a value; an id has ASCII digits and no leading zero."""
    right = document()["triples"][0]
    shard = ingest(document(triples=[right, {**right, part: {**right[part], "uri": uri}}]))
    assert counts(shard)["rejected triple"] == 1
    assert first(shard, "rejected triple").startswith(f"document 0 ({Q}Q1): ")
    assert shard["triples"].select("subject", "object").rows() == [(1, 142)]


def test_extra_fields_and_repeated_documents_are_counted():
    shard = ingest(document(1, surprise=1), document(1))
    assert counts(shard)["unknown extra field"] == 1
    assert counts(shard)["docid occurs twice"] == 1
    assert shard["documents"].height == 1
    assert shard["triples"]["alignments"].sum() == 2


def test_a_truncated_file_keeps_its_complete_documents():
    whole = json.dumps([document(1), document(2, "Paris… France"), document(3)], ensure_ascii=False)
    data = whole.encode()
    for cut in [*range(1, len(data), 37), len(data) - 40]:
        shard = trex.ingest(data[:cut], "re-nlg_0-3.json")
        kept = sorted(shard["triples"]["subject"])
        assert kept == [1, 2, 3][: len(kept)]
        assert counts(shard)["truncated file"] == 1
        assert counts(shard).get("documents", 0) == len(kept)
    assert "bytes lost" in first(shard, "truncated file")
    assert len(kept) == 2


def test_a_long_integer_rejects_only_its_document():
    """Python refuses to convert more than 4,300 digits; also in a file that is cut off."""
    documents = [document(1), document(2), document(3), document(4)]
    whole = json.dumps([documents[0], {**documents[1], "uri": 0}, *documents[2:]])
    data = whole.replace('"uri": 0', f'"uri": {"9" * 5000}').encode()
    for cut, kept in ((len(data), [1, 3, 4]), (len(data) - 40, [1, 3])):
        shard = trex.ingest(data[:cut], "f")
        assert sorted(shard["triples"]["subject"]) == kept
        assert counts(shard)["rejected document"] == 1


def test_content_after_the_array_is_counted():
    data = json.dumps([document(1)]).encode()
    shard = trex.ingest(data + b"\n" + json.dumps([document(2)]).encode(), "f")
    assert shard["triples"]["subject"].to_list() == [1]
    assert "bytes lost, 1 documents kept" in first(shard, "truncated file")
    assert "truncated file" not in counts(trex.ingest(data.replace(b"old", b"o\xe9d") + b"\n", "f"))


@pytest.mark.parametrize("data", [b"", b"{}", b"null", b"<html>", b'"x"'])
def test_a_file_without_an_array_is_refused(data):
    with pytest.raises(BrokenFileError, match=r"re-nlg_0-1\.json: .*expected"):
        trex.ingest(data, "re-nlg_0-1.json")


def test_byte_order_mark_and_bad_bytes_are_repaired_and_counted():
    data = json.dumps([document()]).encode()
    assert counts(trex.ingest(b"\xef\xbb\xbf" + data, "f"))["byte order mark"] == 1
    shard = trex.ingest(data.replace(b"old", b"o\xe9d"), "f")
    assert counts(shard)["not UTF-8"] == 1
    assert counts(shard)["documents with U+FFFD"] == 1
    assert shard["triples"].height == 1


def test_an_empty_array_is_a_file_without_documents(tmp_path):
    shard = trex.ingest(b"[]", "f")
    assert shard["triples"].height == shard["documents"].height == 0
    schema.write(shard["triples"], trex.TRIPLES, tmp_path / "t.parquet")
    schema.write(shard["problems"], trex.PROBLEMS, tmp_path / "p.parquet")


def test_shards_add_up(tmp_path):
    paths = []
    for name, documents in {"a": [document(1), document(2)], "b": [document(1)]}.items():
        paths.append(tmp_path / f"{name}.parquet")
        schema.write(ingest(*documents)["triples"], trex.TRIPLES, paths[-1])
    merged = trex.merge(paths, trex.TRIPLES)
    assert merged.select("subject", "alignments", "documents").rows() == [(1, 2, 2), (2, 1, 1)]


def test_members_come_in_the_order_of_their_numbers(tmp_path):
    for name in ("re-nlg_10000-20000.json", "re-nlg_0-10000.json", "notes.txt"):
        (tmp_path / name).write_text("[]")
    assert trex.members(tmp_path) == ["re-nlg_0-10000.json", "re-nlg_10000-20000.json"]
    with pytest.raises(FileNotFoundError, match="neither a folder nor a zip"):
        trex.members(tmp_path / "none")


@pytest.mark.real
def test_the_two_real_documents(real_data):
    shard = trex.ingest((real_data / "trex/sample-output.json").read_bytes(), "sample")
    assert shard["triples"]["alignments"].sum() + counts(shard)["repeated alignment"] == 112
    assert shard["triples"].height == 21
    assert "surface form not at its boundaries" not in counts(shard)
    assert shard["documents"]["title"].to_list() == ["Andorra", "Catalan language"]


def test_generated_dumps_are_valid_and_deterministic(tmp_path):
    first_paths = write_dump(tmp_path / "a", files=2, documents=200, entities=500)
    again = write_dump(tmp_path / "b", files=2, documents=200, entities=500)
    assert [p.name for p in first_paths] == ["re-nlg_0-200.json", "re-nlg_200-400.json"]
    assert [p.read_bytes() for p in first_paths] == [p.read_bytes() for p in again]
    shard = trex.ingest(first_paths[0].read_bytes(), "generated")
    assert counts(shard) == {"documents": 200}
    assert 2 < shard["triples"]["alignments"].sum() / 200 < 8
    popular = shard["triples"].group_by("object").len().sort("len", descending=True)["len"]
    assert popular[0] > 20 * popular[-1]
    assert all("generated" in title for title in shard["documents"]["title"])


def test_a_file_with_too_many_problems_fails_with_location_and_remedy():
    data = json.dumps([document(1), document(2)]).encode()
    cut = trex.ingest(data[:-40], "re-nlg_0-2.json")
    with pytest.raises(BrokenFileError, match=r"re-nlg_0-2\.json.*\n.*byte \d+ of \d+") as error:
        trex.require_few_problems(cut, 0.001)
    assert f"after document 0 ({Q}Q1)" in str(error.value)
    assert "max_bad: 1" in str(error.value)
    trex.require_few_problems(cut, 1)
    trex.require_few_problems(ingest(document(1)), 0.0)
    with pytest.raises(BrokenFileError, match="1 of 2 documents rejected"):
        trex.require_few_problems(ingest(document(1), document(2, triples=["x"])), 0.4)


def test_files_are_read_from_an_archive_and_a_bad_member_is_reported(tmp_path):
    path = tmp_path / "TREx.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("inner/re-nlg_0-10000.json", json.dumps([document()]))
    assert trex.members(path) == ["inner/re-nlg_0-10000.json"]
    data = trex.read_member(path, "re-nlg_0-10000.json")
    assert trex.ingest(data, "f")["triples"].height == 1
    damaged = bytearray(path.read_bytes())
    damaged[60] ^= 0xFF
    path.write_bytes(damaged)
    with pytest.raises(BrokenFileError, match=r"TREx\.zip, member .*CRC"):
        trex.read_member(path, "re-nlg_0-10000.json")


def test_an_unsafe_archive_is_refused(tmp_path):
    path = tmp_path / "TREx.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("../../re-nlg_0-1.json", "[]")
    with pytest.raises(ValueError, match=r"TREx\.zip, member .*leads out of its folder"):
        trex.members(path)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("re-nlg_0-1.json", "[" + " " * (2 << 20) + "]")
    with pytest.raises(BrokenFileError, match=r"TREx\.zip, member .*more than 100 fold"):
        trex.read_member(path, "re-nlg_0-1.json")
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a/re-nlg_0-1.json", "[]")
        archive.writestr("b/re-nlg_0-1.json", "[]")
    with pytest.raises(ValueError, match=r"re-nlg_0-1\.json in more than one folder"):
        trex.members(path)


@pytest.mark.parametrize("as_zip", [True, False])
def test_resource_forks_of_macos_are_no_dump_files(tmp_path, as_zip):
    """macOS stores a file's attributes in ._NAME, next to it or in __MACOSX."""
    inside = {"T-REx/re-nlg_0-1.json": "[]", "__MACOSX/T-REx/._re-nlg_0-1.json": "\0\5\26\7"}
    if as_zip:
        source = tmp_path / "TREx.zip"
        with zipfile.ZipFile(source, "w") as archive:
            for name, text in inside.items():
                archive.writestr(name, text)
        assert trex.members(source) == ["T-REx/re-nlg_0-1.json"]
        assert trex.read_member(source, "re-nlg_0-1.json") == b"[]"
        return
    for name, text in inside.items():
        (tmp_path / name.rpartition("/")[2]).write_text(text)
    assert trex.members(tmp_path) == ["re-nlg_0-1.json"]

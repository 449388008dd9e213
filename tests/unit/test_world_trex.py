"""Embedded T-REx documents: the dump's schema, correct offsets, aligners by their definitions."""

from collections import Counter
from typing import Any

import polars as pl
import pytest

from kgprobe.sources.dumps.trex import ingest
from tools.world.build import World
from tools.world.trex import DATETIME, FILE_NAME, dump_trex, render_trex
from tools.world.trex import _date as spoken_date

ENTITY = {"uri", "boundaries", "surfaceform", "annotator"}
TRIPLE = {
    "sentence_id", "subject", "predicate", "object", "dependency_path", "confidence", "annotator",
}  # fmt: skip


@pytest.fixture(scope="module")
def documents(world: World) -> list[dict[str, Any]]:
    return render_trex(world)


def test_documents_have_the_schema_of_the_dump(documents: list[dict[str, Any]]) -> None:
    fields = {"docid", "title", "uri", "text", "words_boundaries", "sentences_boundaries"}
    for document in documents:
        assert set(document) == fields | {"entities", "triples"}
        assert document["docid"] == document["uri"]
        for entity in document["entities"]:
            assert set(entity) == ENTITY
        for triple in document["triples"]:
            assert set(triple) == TRIPLE
            assert all(set(triple[part]) == ENTITY for part in ("subject", "predicate", "object"))


def test_every_document_is_marked_as_generated(documents: list[dict[str, Any]]) -> None:
    for document in documents:
        start, end = document["sentences_boundaries"][0]
        assert "was generated from a table of facts" in document["text"][start:end]


def test_offsets_point_at_their_surface_forms(documents: list[dict[str, Any]]) -> None:
    seen = 0
    for document in documents:
        text, sentences = document["text"], document["sentences_boundaries"]
        assert all(text[end - 1] == "." for _, end in sentences)
        assert sentences == sorted(sentences)
        assert all(" " not in text[a:b] for a, b in document["words_boundaries"])
        mentions = [(None, entity) for entity in document["entities"]]
        mentions += [
            (triple["sentence_id"], triple[part])
            for triple in document["triples"]
            for part in ("subject", "predicate", "object")
        ]
        for sentence, mention in mentions:
            if mention["boundaries"] is None:
                continue
            start, end = mention["boundaries"]
            assert text[start:end] == mention["surfaceform"]
            seen += 1
            if sentence is not None:
                assert sentences[sentence][0] <= start < end <= sentences[sentence][1]
    assert seen > 10_000


def test_ingestion_extracts_every_expressible_fact(
    world: World, documents: list[dict[str, Any]]
) -> None:
    shard = ingest(dump_trex(documents), FILE_NAME)
    assert shard["problems"]["kind"].to_list() == ["documents"], "nothing was refused or astray"
    labeled = world.entities.filter(pl.col("label").is_not_null())["id"].implode()
    expected = world.truthy().filter(
        pl.col("subject").is_in(labeled)
        & ((pl.col("kind") == "time") | pl.col("object").is_in(labeled))
    )
    assert shard["triples"].height == expected.height
    dates = shard["triples"].filter(pl.col("datatype").is_not_null())
    assert dates["datatype"].unique().to_list() == [DATETIME]


def test_aligners_follow_their_definitions(documents: list[dict[str, Any]]) -> None:
    counts: Counter[tuple[str, str, bool]] = Counter()
    for document in documents:
        for triple in document["triples"]:
            subject, predicate = triple["subject"], triple["predicate"]
            implied = subject["boundaries"] is None
            counts[triple["annotator"], subject["annotator"], implied] += 1
            if triple["annotator"] == "NoSubject-Triple-aligner":
                assert subject["uri"] == document["uri"]
                assert not implied or subject["surfaceform"] == document["title"]
            else:
                assert not implied
            said = predicate["boundaries"] is not None
            assert said == (triple["annotator"] == "SPOAligner")
    assert counts["NoSubject-Triple-aligner", "NoSubject-Triple-aligner", True] > 0
    assert counts["Simple-Aligner", "Simple_Coreference", False] > 0
    assert counts["SPOAligner", "Simple_Coreference", False] > 0
    totals = Counter[str]()
    for (aligner, _, _), count in counts.items():
        totals[aligner] += count
    assert totals.most_common(1)[0][0] == "Simple-Aligner", "the loosest aligner finds most"
    assert len(totals) == 3


def test_dates_are_written_for_readers(documents: list[dict[str, Any]]) -> None:
    dates = [e for d in documents for e in d["entities"] if e["annotator"] == "Date_Linker"]
    assert dates
    days = [e for e in dates if " " in e["surfaceform"] and "BC" not in e["surfaceform"]]
    years = [e for e in dates if e["surfaceform"].isdecimal()]
    assert days
    assert years
    assert all(e["uri"].split("-")[1:] == ["01", f"01T00:00:00Z^^{DATETIME}"] for e in years)
    assert spoken_date("-0043-03-15") == "15 March 44 BC"
    assert [spoken_date(year) for year in ("-0043", "0000", "0001")] == ["44 BC", "1 BC", "1"]


def test_entities_without_a_label_are_never_mentioned(
    world: World, documents: list[dict[str, Any]]
) -> None:
    unlabeled = set(world.entities.filter(pl.col("label").is_null())["id"])
    assert unlabeled
    mentioned = {e["uri"].rsplit("/", 1)[-1] for d in documents for e in d["entities"]}
    assert not unlabeled & mentioned
    assert not unlabeled & {d["uri"].rsplit("/", 1)[-1] for d in documents}

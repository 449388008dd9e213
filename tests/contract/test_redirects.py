"""Merged entities: the old id is replaced by the new one and counted."""

import gzip
from dataclasses import replace

import polars as pl
import pytest

from kgprobe.sources.dumps import facts as dumps
from kgprobe.sources.sparql.endpoint import Endpoint, read_endpoints
from kgprobe.sources.sparql.pull import pull
from kgprobe.sources.sparql.relations import Relations
from tests.contract.conftest import RESOURCES
from tests.contract.oxigraph import local_endpoint

QUERIES = RESOURCES / "queries" / "wikidata"
WD, PROP = "http://www.wikidata.org/entity/", "http://www.wikidata.org/prop/"
SAME = "<http://www.w3.org/2002/07/owl#sameAs>"
#: old id -> new id: Q90 was merged twice, and Q7 is no item of Wikidata's
MERGED = {"Q91": "Q90", "Q90": "Q9", "Q80": "Q8"}
#: subject -> objects of P36: both ids of one entity; the old one alone; of two entities; none old
STATED = {"Q1": ["Q9", "Q90"], "Q2": ["Q91"], "Q3": ["Q80", "Q9"], "Q4": ["Q8"]}
RESOLVED = {"Q1": ["Q9"], "Q2": ["Q9"], "Q3": ["Q8", "Q9"], "Q4": ["Q8"]}


def triples(predicate: str) -> list[str]:
    lines = [f"<{WD}{old}> {SAME} <{WD}{new}> ." for old, new in MERGED.items()]
    lines.append(f"<{WD}Q8> {SAME} <http://dbpedia.org/resource/Eight> .")
    lines += [
        f'<{WD}{item}> <http://www.w3.org/2000/01/rdf-schema#label> "item {item}"@en .'
        for item in ("Q1", "Q2", "Q3", "Q4", "Q8", "Q9")
    ]
    for subject, objects in STATED.items():
        for value in objects:
            node = f"<{WD}statement/{subject}-{value}>"
            lines += [
                f"<{WD}{subject}> <{PROP}direct/{predicate}> <{WD}{value}> .",
                f"<{WD}{subject}> <{PROP}{predicate}> {node} .",
                f"{node} <{PROP}statement/{predicate}> <{WD}{value}> .",
                f"{node} <http://wikiba.se/ontology#rank> <http://wikiba.se/ontology#NormalRank> .",
            ]
    return lines


def objects(found: pl.DataFrame) -> dict[str, list[str]]:
    return dict(found.group_by("subject").agg(pl.col("object").sort()).sort("subject").rows())


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    file = tmp_path_factory.mktemp("merged") / "merged.nt"
    file.write_text("\n".join(triples("P36")) + "\n")
    with local_endpoint([file]) as endpoint:
        yield endpoint


@pytest.mark.parametrize("query", ["facts", "facts_truthy"])
def test_a_query_service_s_redirects_are_followed(query, served, tmp_path):
    one = Relations(served, tmp_path / "w" / "s", QUERIES / f"{query}.rq")
    found, coverage = one.pull(["P36", "P17"])
    assert objects(found) == RESOLVED
    assert set(found["object_label"]) == {"item Q8", "item Q9"}, "the old ids have none"
    assert dict(coverage.select("relation", "redirected").rows()) == {"P36": 3, "P17": 0}
    assert coverage.filter(relation="P36")["rows"].item() == 5


def test_constraint_classes_are_replaced_by_their_merge_targets(tmp_path):
    node, wikibase = f"{WD}statement/P36-1", "http://wikiba.se/ontology#"
    lines = [
        f"<{WD}P36> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <{wikibase}Property> .",
        f"<{WD}P36> <{PROP}P2302> <{node}> .",
        f"<{node}> <{PROP}statement/P2302> <{WD}Q21503250> .",
        f"<{node}> <{wikibase}rank> <{wikibase}NormalRank> .",
        f"<{node}> <{PROP}qualifier/P2308> <{WD}Q80> .",
        f"<{node}> <{PROP}qualifier/P2308> <{WD}Q8> .",
    ]
    file = tmp_path / "constraints.nt"
    file.write_text("\n".join([*triples("P36"), *lines]) + "\n")
    with local_endpoint([file]) as endpoint:
        found = {
            name: pull(QUERIES / f"{name}.rq", endpoint, tmp_path / "w" / "s").frame()
            for name in ("constraints", "constraint_classes")
        }
    assert found["constraints"]["class"].to_list() == [f"{WD}Q8"]
    assert found["constraint_classes"].rows() == [(f"{WD}Q8", "item Q8")]


@pytest.mark.parametrize("predicate", ["P36", "P361"])
def test_a_truthy_dump_s_redirects_are_followed(predicate, tmp_path):
    path = tmp_path / "truthy.nt.gz"
    path.write_bytes(gzip.compress(("\n".join(triples(predicate)) + "\n").encode()))
    found = dumps.read([path], "truthy", [predicate], tmp_path / "parts", size=500)
    assert len(list(tmp_path.glob("parts/*-truthy/part-*"))) > 2, "redirects stand in other parts"
    assert objects(found.statements) == RESOLVED
    assert set(found.statements["object_label"]) == {"item Q8", "item Q9"}
    assert found.coverage.select("redirected", "rows").rows() == [(3, 5)]
    assert "redirects" not in found.coverage["reason"].item()


def test_long_merge_chains_are_resolved_and_cycles_are_not(tmp_path):
    same = "http://www.w3.org/2002/07/owl#sameAs"
    chain = [(n, n + 1) for n in range(100, 140)]
    circle = [(7, 8), (8, 9), (9, 7), (6, 7)]
    lines = [f"<{WD}Q{one}> <{same}> <{WD}Q{other}> ." for one, other in chain + circle]
    lines += [f"<{WD}Q{n}> <{PROP}direct/P36> <{WD}Q{end}> ." for n, end in ((1, 100), (2, 7))]
    path = tmp_path / "truthy.nt"
    path.write_text("\n".join(lines) + "\n")
    found = dumps.read([path], "truthy", ["P36"], tmp_path / "parts")
    assert found.statements.select("subject", "object").rows() == [("Q1", "Q140"), ("Q2", "Q7")]
    assert found.coverage["redirected"].to_list() == [1]


def test_a_json_dump_reports_that_it_has_no_redirects(tmp_path):
    path = tmp_path / "dump.json"
    path.write_text('[\n{"type":"item","id":"Q1","labels":{},"claims":{}}\n]\n')
    found = dumps.read([path], "json", ["P36"], tmp_path / "parts")
    assert found.coverage["redirected"].to_list() == [None]
    assert "redirects" in found.coverage["reason"].item()
    more = tmp_path / "redirects.nt"
    more.write_text("\n".join(line for line in triples("P36") if SAME in line) + "\n")
    beside = dumps.read([path, more], "json", ["P36"], tmp_path / "both")
    assert beside.coverage["redirected"].to_list() == [0]
    assert "redirects" not in beside.coverage["reason"].item()


def test_a_service_with_only_part_of_a_graph_is_reported(served, tmp_path):
    """Wikidata's service lacks scholarly articles since 2025, so only some subjects of P50
    exist."""
    wdqs = read_endpoints(RESOURCES / "endpoints.tsv")["wdqs"]
    split = Endpoint("local", served.url, replace(wdqs.policy, interval=0.0))
    one = Relations(split, tmp_path / "w" / "s", QUERIES / "facts.rq")
    (reason,) = one.pull(["P36"])[1]["reason"]
    assert "main graph, without scholarly articles" in reason
    assert "part of the subjects" in reason
    assert served.url in reason

"""Synthetic test files compared with the real files that they imitate.

A synthetic record has every field that all real ones have and none that no real one has, with the
same kinds of values. No real line of Wikidata's JSON dump is available; SPARQL answers come from
real engines (tests/contract/test_queries.py, test_virtuoso.py).
"""

import bz2
import gzip
import json
import re

import polars as pl
import pytest

from kgprobe.benchmarks.bear.released import load
from kgprobe.sources.dumps.stream import lines
from kgprobe.tables.exports import lm_pub_quiz
from tests.unit import (
    test_dumps,
    test_ontoprobe,
    test_ontoprobe_switches,
    test_prompt_classes,
    test_prompt_facts,
    test_prompt_relations,
    test_trex,
)
from tools.world import dumps, rdf
from tools.world.trex import render_trex

pytestmark = [pytest.mark.real, pytest.mark.nightly(needs="the real data in full")]


def kinds(value):
    """Return the kinds of a JSON value as words; for lists and open-key objects, of members."""
    if isinstance(value, list):
        return {f"list of {kind}" for one in value for kind in kinds(one)} or {"list"}
    if isinstance(value, dict):
        return {f"object of {kind}" for one in value.values() for kind in kinds(one)} or {"object"}
    return {"null" if value is None else type(value).__name__}


def like(made, real):
    """Return the differences in structure between records and the real ones."""
    assert made
    assert real
    always = set.intersection(*(set(record) for record in real))
    known = {}
    for record in real:
        for field, value in record.items():
            known.setdefault(field, set()).update(kinds(value))
    for record in made:
        assert always - set(record) == set(), "left out"
        assert set(record) - set(known) == set(), "invented"
        for field, value in record.items():
            assert kinds(value) <= known[field] | {"list"}, (field, value)


def records(path):
    """Read JSON lines, or one array."""
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt", encoding="utf-8") as stream:
        text = stream.read()
    if path.suffix == ".json":
        return json.loads(text)
    return [json.loads(line) for line in text.splitlines() if line.strip()]


def test_differences_are_reported():
    real = [{"a": 1, "b": None}, {"a": 2, "b": ["x"], "c": {"open": "y"}}]
    like([{"a": 3, "b": []}, {"a": 3, "b": None, "c": {"key": "z"}}], real)
    for odd in ({"a": 1}, {"a": 1, "b": None, "d": 1}, {"a": "1", "b": None}, {"a": 1, "b": [1]}):
        with pytest.raises(AssertionError):
            like([odd], real)


def test_a_release_of_ontoprobe(real_data, tmp_path):
    made = test_ontoprobe.write_release(tmp_path)
    files = sorted(path.relative_to(made) for path in made.rglob("*.json*"))
    assert len(files) == 7
    for file in files:
        like(records(made / file), records(real_data / "ontoprobe" / file))
    shipped = [test_ontoprobe_switches.shipped_row("So.")]
    for rule in ("rdfs3-02", "rdfs9-22"):
        like(shipped, records(real_data / f"ontoprobe/gpt/reasoning/{rule}.jsonl"))


def test_a_folder_of_bear(real_data, tmp_path):
    """The folder that other tests use, built from the real set and compared with it."""
    real = real_data / "bear/BEAR"
    sets = load(real, instances=3)
    lm_pub_quiz.export(sets, tmp_path / "BEAR")
    made = sorted(path.name for path in (tmp_path / "BEAR").iterdir())
    assert made == sorted(path.name for path in real.iterdir())
    for name in made:
        if name.endswith(".jsonl"):
            like(records(tmp_path / "BEAR" / name), records(real / name))
        else:
            own = json.loads((tmp_path / "BEAR" / name).read_text())
            theirs = json.loads((real / name).read_text())
            assert set(own) == set(theirs)
            like(list(own.values()), list(theirs.values()))


def test_sentences_with_classes(real_data, tmp_path):
    line = re.compile(r"[^\t\n]*\S ?\t[01]\n")
    made = test_prompt_classes.sst2(tmp_path)
    for name in ("sentiment-train", "sentiment-dev", "sentiment-test"):
        for folder in (made, real_data / "sst2"):
            found = (folder / name).read_text().splitlines(keepends=True)
            assert found
            assert [text for text in found if not line.fullmatch(text)] == []
    made = test_prompt_classes.sick(tmp_path)
    for name in ("SICK_train.txt", "SICK_trial.txt", "SICK_test_annotated.txt"):
        own, theirs = (
            pl.read_csv(folder / name, separator="\t", quote_char=None)
            for folder in (made, real_data / "sick")
        )
        assert own.columns == theirs.columns
        assert own["pair_ID"].dtype == theirs["pair_ID"].dtype == pl.Int64
        judged = "entailment_judgment"
        assert set(own[judged]) == set(theirs[judged])
        assert own["relatedness_score"].dtype == theirs["relatedness_score"].dtype == pl.Float64


def test_lama_facts_and_sentences(real_data, tmp_path):
    made = test_prompt_facts.folder(tmp_path)
    for file in sorted(path.relative_to(made) for path in made.rglob("*.jsonl")):
        like(records(made / file), records(real_data / "lama/trex_original" / file))
    sentences = records(real_data / "trex_sentences/P19.jsonl.gz")
    like([test_prompt_relations.row()], sentences)
    like([test_prompt_relations.EVIDENCE], [e for row in sentences for e in row["evidences"]])


@pytest.mark.parametrize("who", ["tests", "world"])
def test_trex_documents(real_data, world, who):
    """Covers hand-made documents of tests, and those of the embedded knowledge graph."""
    real = records(real_data / "trex/sample-output.json")
    made = [test_trex.document(), test_trex.implied()]
    if who == "world":
        made = render_trex(world)[::20]
    like(made, real)
    for place in ("entities", "triples"):
        like([one for d in made for one in d[place]], [one for d in real for one in d[place]])
    for part in ("subject", "predicate", "object"):
        theirs = [t[part] for d in real for t in d["triples"]]
        like([t[part] for d in made for t in d["triples"]], theirs)
        # a mention without a position, and its fields
        for field in ("surfaceform", "annotator"):
            absent = {bool(one[field]) for one in theirs if one["boundaries"] is None}
            ours = [t[part] for d in made for t in d["triples"]]
            assert {bool(one[field]) for one in ours if one["boundaries"] is None} <= absent
    aligners = {t["annotator"] for d in real for t in d["triples"]}
    assert {t["annotator"] for d in made for t in d["triples"]} <= aligners


#: The last part of an IRI or the text of a literal, which differ between lines.
_OPEN = re.compile(rb'(?<=/resource/)[^>]*(?=>)|(?<=[/#])[^/#>]*(?=>)|(?<=")(?:[^"\\]|\\.)*(?=")')


def patterns(found):
    """Return lines of N-Triples without everything that differs between entities."""
    return {_OPEN.sub(b"", line.strip()) for line in found}


def about(found, predicate):
    return [line for line in found if predicate in line]


def test_lines_of_dumps(real_data, world, tmp_path):
    direct = b"> <http://www.wikidata.org/prop/direct/"
    known = patterns(about(lines(real_data / "wikidata/wikidata_excerpt.nt.gz"), direct))
    assert known
    plain = b" ".join((test_dumps.SUBJECT, test_dumps.CAPITAL, test_dumps.PARIS, b"."))
    assert patterns([plain]) <= known
    packed = tmp_path / "world.nt.bz2"
    packed.write_bytes(bz2.compress(dumps.render_truthy(rdf.render_wikidata(world))))
    found = about(lines(packed), direct)
    rendered = [line for line in found if b"/entity/Q" in line.partition(direct)[2]]
    assert len(rendered) > 1000
    assert patterns(rendered) <= known


def test_lines_of_dbpedia(real_data, world):
    known = patterns(lines(real_data / "dbpedia/dbpedia_instances.nt.gz"))
    rendered = rdf.render_dbpedia(world).encode().splitlines()
    instances = about(rendered, b"#type> <http://dbpedia.org/ontology/")
    instances += [
        line
        for line in about(rendered, b"#label>")
        if line.startswith(b"<http://dbpedia.org/resource/")
    ]
    assert len(instances) > 100
    assert patterns(instances) <= known
    # between two entities, of which the excerpt has none but types: the same term on both sides
    links = [line for line in test_dumps.DBPEDIA if b"resource/Germany" in line]
    thing, link = b"<http://dbpedia.org/resource/>", b"<http://dbpedia.org/ontology/>"
    assert patterns(links) == {b" ".join((thing, link, thing, b"."))}

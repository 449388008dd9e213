"""Facts from T-REx triples."""

import polars as pl

from kgprobe import schema
from kgprobe.knowledge import facts
from kgprobe.sources.dumps.trex import ENTITY, TRIPLES


def test_entity_triples_become_facts_with_labels_where_known():
    empty = {"literal": None, "datatype": None, "alignments": 1, "documents": 1, "aligners": 1}
    rows = [
        {"subject": 1, "predicate": 36, "object": 2, **empty},
        {"subject": 1, "predicate": 569, "object": None, **{**empty, "literal": "1879"}},
    ]
    triples = pl.DataFrame(rows, schema=dict(TRIPLES.columns))
    labels = pl.DataFrame({"uri": [ENTITY + "Q1"], "label": ["France"]})
    found = facts.of_trex(triples, labels)
    schema.check(found, schema.FACTS)
    assert found.rows() == [("wikidata", "Q1", "France", "P36", "Q2", None, [], [])]

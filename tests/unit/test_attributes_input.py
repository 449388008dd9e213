"""Malformed and unusual graphs are counted, raise an error with a reason, or have no effect."""

import json
import os
import subprocess
import tempfile

import numpy as np
import polars as pl
import pytest

from kgprobe.benchmarks.attributes import (
    amber,
    ambiguous,
    asymmetry,
    bias,
    composite,
    entity_centric,
    hierarchy,
    paths,
    symmetry,
)
from kgprobe.benchmarks.attributes.chains import edges_to_expand
from kgprobe.benchmarks.attributes.construct import MissingTemplatesError
from kgprobe.benchmarks.attributes.definition import EmptyBenchmarkError, Setup
from kgprobe.benchmarks.funnel import Funnel
from kgprobe.knowledge import graph as knowledge
from kgprobe.knowledge.engine import LEAST_MB, EngineError, job_mb, joins_mb
from kgprobe.knowledge.engine_duckdb import DuckDB
from kgprobe.knowledge.graph import date_text, literal_number
from kgprobe.knowledge.ids import GraphError, RelationNumbers
from kgprobe.schema import FACTS
from tests.unit.attribute_brute import TWO_HOP
from tests.unit.attribute_graphs import (
    WORKED,
    attribute,
    content,
    encode,
    facts,
    graph,
    integer_keys,
    settings,
    triples,
    worked,
)


def test_duplicates_self_loops_and_foreign_ids_are_counted():
    rows = facts([(1, 26, 2), (1, 26, 2), (3, 26, 3), (2, 26, 1)])
    odd = pl.DataFrame(
        [
            ("wikidata", "P31", "a property", "P26", "Q1", None),
            ("wikidata", "1970", None, "P26", "Q1", None),
            ("wikidata", "Q1", None, "P26", "P31", None),
            ("wikidata", "Q1", None, "P26", "L5", None),
            ("wikidata", "Q99999999999", None, "P26", "Q1", None),
            ("wikidata", "Q1", None, "instance of", "Q2", None),
        ],
        schema=rows.schema,
        orient="row",
    )
    encoded = encode(pl.concat([rows, odd]))
    dropped = {
        "subject_no_item": 3, "relation_no_property": 1, "object_no_item": 2, "self_loops": 1,
        "duplicates": 1,
    }  # fmt: skip
    assert encoded.counts == {
        "statements": sum(dropped.values()) + 2, **dropped, "edges": 2, "literals": 0,
        "unusable_labels": 0, "entities": 2, "labeled": 2,
    }  # fmt: skip
    assert content(encoded, "edges").rows() == [(1, 26, 2), (2, 26, 1)]


@pytest.mark.parametrize("name", ["Q4294967296", "Q99999999999", "Q007", "L5"])
def test_malformed_item_ids_are_not_literals(name):
    rows = facts([(1, 26, 2), (1, 27, 2)])
    odd = rows.with_columns(object=pl.when(relation="P27").then(pl.lit(name)).otherwise("object"))
    encoded = encode(odd)
    assert (encoded.counts["object_no_item"], encoded.counts["literals"]) == (1, 0)
    assert encoded.counts["edges"] == 1


@pytest.mark.parametrize(
    ("names", "label"), [(("bb", " aa", "cc"), "aa"), (("[MASK]", "b", "c"), "b")]
)
def test_entity_with_several_labels_gets_the_smallest_usable(names, label):
    rows = [facts([(1, 26, 2)], {1: name, 2: "x"}) for name in names]
    encoded = encode(pl.concat(rows))
    assert content(encoded, "entities")["label"].to_list() == [label, "x"]
    assert encoded.counts["unusable_labels"] == 0


def test_literals_with_colliding_numbers_raise(monkeypatch):
    number = literal_number("red")
    monkeypatch.setattr(
        "kgprobe.knowledge.graph.literal_number", lambda value: number - value.startswith("r")
    )
    dyed = facts([], literals=[(1, 462, "red"), (2, 462, "green"), (3, 462, "red")])
    assert content(encode(dyed), "literals").height == 3
    more = facts([], literals=[(1, 462, "rose")])
    with pytest.raises(GraphError, match="two literals share"):
        encode(pl.concat([dyed, more]))


def test_labels_that_break_a_prompt_are_dropped():
    labels = {1: "", 2: " ", 3: "[X]", 4: "a [MASK] b", 5: "fine ", 6: "<mask>"}
    encoded = graph([(n, 26, n + 1) for n in range(1, 6)], labels)
    assert dict(content(encoded, "entities").drop_nulls("label").select("id", "label").rows()) == {
        5: "fine"
    }
    assert encoded.counts["unusable_labels"] == 3
    assert (encoded.counts["entities"], encoded.counts["labeled"]) == (6, 1)


def test_an_entity_without_label_stays_in_the_graph_and_in_no_example():
    everyone = [(n, 26, n + 1) for n in (1, 3)] + [(n + 1, 26, n) for n in (1, 3)]
    built = symmetry.build(
        graph(everyone, {1: "a", 2: "b", 3: "c"}), settings("symmetry", min_triples=1)
    )
    assert triples(built.examples) == [((1, 26, 2), (2, 26, 1))]
    step = built.steps.filter(step="labels").row(0, named=True)
    assert (step["kept"], step["dropped"]) == (1, 1)
    assert step["reason"].startswith("no_label")
    assert dict(built.sizes.select("build", "examples").rows())["structural"] == 2


def test_only_asymmetry_uses_literals():
    dates = [(1, 569, "1970-01-22T00:00:00Z^^date"), (2, 569, "1971-01-01T00:00:00Z^^date")]
    encoded = graph([(1, 26, 2)], literals=dates)
    assert content(encoded, "edges").height == 1
    assert content(encoded, "entities")["degree"].to_list() == [1, 1]
    examples = asymmetry.build(encoded, settings("asymmetry", min_triples=1)).examples
    forward = examples.filter((pl.col("predicate") == "P569") & (pl.col("role") == "forward"))
    assert forward["object_label"].to_list() == ["22 January 1970", "1971"]
    assert set(forward["object_kind"]) == {"literal"}
    assert forward["object_degree"].null_count() == 2
    turned = examples.filter((pl.col("predicate") == "P569") & (pl.col("role") == "reversed"))
    assert turned["subject_label"].to_list() == ["22 January 1970", "1971"]
    without = asymmetry.build(encoded, settings("asymmetry", min_triples=1, literals=False))
    assert set(without.examples["predicate"]) == {"P26"}
    assert (
        content(encode(facts([(1, 26, 2)], literals=dates), literals=False), "literals").height == 0
    )


def test_the_most_frequent_text_of_a_date_is_used():
    rows = [
        ("wikidata", f"Q{n}", "x", "P569", "1970-01-22T00:00:00Z", text)
        for n, text in enumerate(["Jan. 22, 1970", "22.1.1970", "Jan. 22, 1970"], 1)
    ]
    frame = facts([(1, 26, 2)])
    encoded = encode(pl.concat([frame, pl.DataFrame(rows, frame.schema, orient="row")]))
    assert set(content(encoded, "literals")["text"]) == {"Jan. 22, 1970"}
    # equal counts: the first in alphabetical order, independent of row order
    for one in (rows[:2], rows[1::-1]):
        encoded = encode(pl.DataFrame(one, frame.schema, orient="row"))
        assert set(content(encoded, "literals")["text"]) == {"22.1.1970"}


@pytest.mark.parametrize("required", [True, False])
def test_an_entity_with_dates_alone_keeps_its_label(required):
    names = {1: "Ana", 2: "Ben", 3: "Cid", 9: "Arles"}
    dates = [(s, 569, f"1970-01-2{s}T00:00:00Z") for s in (1, 2, 3, 4)]
    given = facts([(1, 19, 9)], names, dates)
    made = attribute("asymmetry", given, min_triples=4, require_labels=required)
    rows = made.examples.filter(role="forward").sort("subject")
    expected = [("Q1", "Ana", 1), ("Q2", "Ben", 0), ("Q3", "Cid", 0), ("Q4", None, 0)]
    found = rows.select("subject", "subject_label", "subject_degree").rows()
    assert found == expected[: 3 if required else 4]


@pytest.mark.parametrize("source", ["labels", "amber"])
def test_an_entity_with_dates_alone_is_not_the_less_known_of_a_pair(source, tmp_path):
    """It has no edge, so it would displace an entity with facts to compare."""
    sets = {
        "Q1": {"is_head": True, "popularity": 3.0},
        "Q2": {"is_head": False, "popularity": 2.0},
        "Q3": {"is_head": False, "popularity": 1.0},
    }
    path = tmp_path / "amber_sets.jsonl"
    path.write_text(json.dumps({"qids": sets}))
    names = dict.fromkeys((1, 2, 3), "Cid") | {8: "Arles", 9: "France"}
    edges = [(1, 19, 8), (1, 27, 9), (2, 19, 8)]
    given = facts(edges, names, [(3, 569, "1970-01-22T00:00:00Z")])
    made = attribute("ambiguous", given, source=source, amber_sets=str(path))
    assert triples(made.examples) == [((1, 19, 8), (2, 19, 8))]


@pytest.mark.parametrize(
    ("labels", "text"),
    [
        (["[MASK] 1970", "[MASK] 1970", "Jan. 1970"], "Jan. 1970"),
        (["[X]", " ", None], "22 January 1970"),
        (["Jan. 22 ", "Jan. 22", "22.1.1970", "22.1.1970", "\u00a0Jan. 22"], "Jan. 22"),
    ],
)
def test_labels_of_dates_are_cleaned_as_those_of_entities(labels, text):
    rows = [
        ("wikidata", f"Q{n}", "x", "P569", "1970-01-22T00:00:00Z", label)
        for n, label in enumerate(labels, 1)
    ]
    encoded = encode(pl.DataFrame(rows, schema=dict(FACTS.columns), orient="row"))
    assert set(content(encoded, "literals")["text"]) == {text}


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("-0043-03-15", "15 March 44 BC"),  # Caesar's last
        ("0000-02-02", "2 February 1 BC"),
        ("0001-02-01", "1 February 1"),
        ("1879-03-00", "March 1879"),
        ("1879-00-00", "1879"),
        ("1879-13-07", "1879"),
        ("+1879-01-01T00:00:00Z", "1879"),
        ("1879-01-02T00:00:00Z", "2 January 1879"),
        ("1879-12-31", "31 December 1879"),
        ("1879-12-31 or so", "1879-12-31 or so"),
    ],
)
def test_dates_in_words(value, text):
    assert date_text(value) == text


def test_literal_numbers_are_stable():
    """Samples of earlier runs must stay reproducible."""
    assert literal_number("1970-01-22T00:00:00Z") == 13620660969312969605 - 2**64


def test_empty_benchmark_error_shows_thresholds_and_counts():
    with pytest.raises(EmptyBenchmarkError) as error:
        symmetry.build(worked(), settings("symmetry"))
    message = str(error.value)
    assert "symmetry: no example is left" in message
    assert "'min_triples': 50" in message
    assert "predicates: min_triples: 0 kept" in message


@pytest.mark.parametrize(
    ("module", "name"),
    [(composite, "composite"), (paths, "paths"), (hierarchy, "hierarchy"), (bias, "bias"),
     (ambiguous, "ambiguous"), (entity_centric, "entity_centric")],
)  # fmt: skip
def test_graph_without_the_structure_gives_an_empty_benchmark(module, name):
    changed = {"facts": 2} if module is entity_centric else {}
    with pytest.raises(EmptyBenchmarkError, match=r"no example is left(.|\n)*kept"):
        module.build(graph([(1, 26, 2), (3, 27, 4)]), settings(name, **changed))


def test_without_any_label_every_benchmark_is_empty():
    bare = graph(WORKED.values(), {})
    with pytest.raises(EmptyBenchmarkError, match="labels: 0 kept, 1 dropped"):
        symmetry.build(bare, settings("symmetry", min_triples=1))
    with pytest.raises(EmptyBenchmarkError, match="labels: 0 kept"):
        paths.build(bare, settings("paths", min_combo=1))


def test_relations_without_template_fail_or_empty_a_build():
    message = r"2 predicates have no template: P22 \(1 triples\), P25 \(1 triples\)"
    with pytest.raises(MissingTemplatesError, match=message):
        entity_centric.build(
            worked(),
            settings("entity_centric", facts=3, missing_template="error", templates=["P19"]),
        )
    dropped = settings("hierarchy", templates=["P279"], missing_template="drop")
    message = rf"templates: 0 kept, 1 dropped \(no template: {TWO_HOP} \(1\)\)"
    with pytest.raises(EmptyBenchmarkError, match=message):
        hierarchy.build(worked(), dropped)
    same = hierarchy.build(worked(), settings("hierarchy", templates=["P279"], two_hop="same"))
    assert set(same.examples["predicate"]) == {"P279"}


def test_no_template_step_without_templates_or_with_missing_template_error():
    every = {"templates": [f"P{n}" for n in range(400)], "missing_template": "error"}
    for known in ({"missing_template": "drop"}, every):
        built = paths.build(worked(), settings("paths", min_combo=1, categories=1, **known))
        assert "labels" in built.steps["step"].to_list()
        assert "templates" not in built.steps["step"].to_list()


def test_cycles_are_excluded_and_counted():
    chains = [(1, 279, 2), (2, 279, 1), (2, 279, 3)]
    built = hierarchy.build(graph(chains), settings("hierarchy"))
    assert triples(built.examples) == [((1, 279, 2), (2, 279, 3), (1, TWO_HOP, 3))]
    step = built.steps.filter(step="chains of two").row(0, named=True)
    assert (step["kept"], step["dropped"], step["reason"]) == (1, 2, "cycle of two")


def bounded(rows, max_out):
    encoded = graph(rows)
    chosen = settings("paths", max_out=max_out)
    whole, cut = edges_to_expand(Setup(paths.DEFINITION, encoded, chosen))
    result = [encoded.frame(edges).select("s", "p", "o").rows() for edges in (whole, cut)]
    return [set(edges) for edges in result], [len(edges) for edges in result]


def test_edges_of_a_hub_are_cut_by_hash():
    """Independent of row order; fewer edges are a subset of more; 32-bit boundary values."""
    last = 2**32 - 1
    hub = [(last, p, n) for n in range(2, 52) for p in (50, 51)] + [(1, 31, last), (2, 50, last)]
    (whole, ten), sizes = bounded(hub, 10)
    assert sizes == [101, 11]
    assert whole == {edge for edge in hub if edge[1] != 31}
    (_, again), _ = bounded(list(reversed(hub)), 10)
    (_, five), _ = bounded(hub, 5)
    assert ten == again
    assert five < ten
    own = sorted((s, p, o) for s, p, o in hub if s == last)
    ends = np.array([last << 32 | o for _, _, o in own], np.uint64)
    keys = integer_keys([ends, np.array([p for _, p, _ in own], np.uint16)], 0, "hub")
    assert ten - {(2, 50, last)} == {own[place] for place in np.argsort(keys)[:10]}


def test_too_little_memory_raises_with_the_required_amount():
    for needed in (LEAST_MB, 777, 20_000):
        assert joins_mb(job_mb(needed)) >= needed > joins_mb(job_mb(needed) - 2)
    with pytest.raises(EngineError, match=rf"give the job mem_mb={job_mb(LEAST_MB)} or more"):
        DuckDB(LEAST_MB - 1)


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting a small file system needs root, as in CI")
def test_full_disk_error_suggests_a_remedy(tmp_path, monkeypatch):
    small = tmp_path / "small"
    small.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", small], check=True)
    monkeypatch.setattr(tempfile, "tempdir", str(small))
    rows = pl.DataFrame({"n": np.arange(20_000_000)})
    try:
        with DuckDB(LEAST_MB) as engine, pytest.raises(EngineError) as refused:
            engine.table(rows)
    finally:
        subprocess.run(["umount", small], check=True)
    assert str(small) in str(refused.value)
    assert "tmpdir a disk with more room" in str(refused.value)


def test_graph_too_large_for_memory_is_rejected_before_reading(tmp_path):
    path = tmp_path / "facts.parquet"
    row = pl.DataFrame(
        [("wikidata", "Q1", "a", "P1", "Q2", "b")], schema=FACTS.columns, orient="row"
    )
    row[np.zeros(3_000_000, int)].write_parquet(path)
    with DuckDB(150) as engine, pytest.raises(EngineError) as refused:
        knowledge.encode(engine, engine.files([path]))
    text = "a graph of 3,000,000 statements needs 160 MB for its joins, and 150 are left for them"
    assert str(refused.value).startswith(text)
    assert f"mem_mb={job_mb(160)}" in str(refused.value)


def test_facts_of_two_graphs_raise():
    rows = facts([(1, 26, 2)])
    both = pl.concat([rows, rows.with_columns(kg=pl.lit("dbpedia"))])
    with pytest.raises(GraphError, match="exactly one graph"):
        encode(both)
    with pytest.raises(GraphError, match="expected P or Q"):
        RelationNumbers().numbers(["P31", "spouse"])


def test_amber_sets_give_heads_and_tails(tmp_path):
    path = tmp_path / "amber_sets.jsonl"
    entities = {"is_head": True, "popularity": 3.0}, {"is_head": False, "popularity": 1.0}
    sets = '{"name": "Cid", "qids": {"Q10": %s, "Q3": %s}}\n'
    path.write_text(sets % tuple(json.dumps(t) for t in entities) + '{"name": "x", "qids": {}}\n')
    chosen = settings("ambiguous", source="amber", amber_sets=str(path))
    built = ambiguous.build(worked(), chosen)
    assert triples(built.examples) == [((10, 19, 11), (3, 19, 8))]
    path.write_text("{}\n")
    with pytest.raises(GraphError, match="line 1: not an AmbER set"):
        ambiguous.build(worked(), chosen)
    with pytest.raises(GraphError, match="name the file"):
        ambiguous.build(worked(), settings("ambiguous", source="amber"))


@pytest.mark.parametrize(
    ("is_head", "popularity", "reason"),
    [('"false"', "1.0", "is_head is 'false'"), ("null", "1.0", "is_head is None"),
     ("true", "NaN", "popularity is not a number"), ("true", "null", "NoneType")],
)  # fmt: skip
def test_a_set_of_amber_with_an_illegal_value_is_refused(is_head, popularity, reason, tmp_path):
    path = tmp_path / "amber_sets.jsonl"
    legal = '{"is_head": false, "popularity": -Infinity}'
    one = f'{{"is_head": {is_head}, "popularity": {popularity}}}'
    path.write_text(f'{{"qids": {{"Q1": {legal}}}}}\n{{"qids": {{"Q1": {legal}, "Q2": {one}}}}}\n')
    with pytest.raises(GraphError, match=f"line 2: not an AmbER set .*{reason}"):
        amber.read_amber(str(path))


def test_amber_sets_pair_the_head_with_the_least_popular_other():
    def one(**entities):
        return {"qids": {q: {"is_head": h, "popularity": n} for q, (h, n) in entities.items()}}

    sets = [
        one(Q10=(True, 3.0), Q3=(False, 2.0), Q5=(False, 1.0), Q2=(False, 2.5), Q77=(False, 0.5)),
        one(Q8=(True, 1.0), Q6=(True, 2.0), Q2=(False, 1.0), Q1=(False, 1.0)),
        one(Q98=(True, 3.0), Q5=(False, 1.0)),
        one(Q2=(True, 3.0), Q99=(False, 1.0)),
        one(Q10=(True, 3.0), Q5=(False, 1.0)),
    ]
    steps = Funnel("ambiguous")
    # Q77, Q98 and Q99 are not in the graph, and the last set repeats the first pair
    assert sorted(amber.amber_pairs(worked(), sets, steps).rows()) == [(6, 1), (10, 5)]
    (own,) = steps.rows
    assert (own["step"], own["kept"], own["dropped"]) == ("AmbER sets", 2, 3)


def test_pairs_of_amber_with_one_head_are_counted_apart(tmp_path):
    """An entity of two names is in two sets."""
    head, tails = {"is_head": True, "popularity": 4.0}, ("Q2", "Q3", "Q4")
    sets = [{"qids": {"Q1": head, q: {"is_head": False, "popularity": 1.0}}} for q in tails]
    path = tmp_path / "amber_sets.jsonl"
    path.write_text("".join(f"{json.dumps(one)}\n" for one in sets))
    edges = [(1, 19, 9), (2, 19, 8), (3, 19, 7), (4, 17, 7)]
    made = attribute("ambiguous", facts(edges), source="amber", amber_sets=str(path))
    steps = made.steps.filter(step="pairs with a shared relation")
    assert steps.select("kept", "dropped").rows() == [(2, 1)]


def test_gender_variants_map_to_one_label():
    encoded = graph([(1, 21, 2), (3, 21, 4), (5, 21, 6)], {1: "a", 2: "male organism", 3: "b",
                                                        5: "c", 6: "other"})  # fmt: skip
    table = {"Q2": "male", "Q4": "male"}
    built = bias.build(encoded, settings("bias", bias_labels=table))
    assert built.examples["object_label"].to_list() == ["male", "male", "other"]
    assert "Q6" in built.steps.filter(step="objects with a normal label")["reason"][0]
    assert set(built.candidates["label"]) == {"male", "other"}


def test_variants_without_sampled_subjects_are_not_candidates():
    edges = [(1, 21, 2), (3, 21, 4), (3, 26, 7), (3, 26, 8), (5, 21, 6)]
    labels = {n: f"entity {n}" for n in range(1, 9)} | {2: "male", 4: "male organism", 6: "other"}
    table = {"Q2": "male", "Q4": "male"}
    built = attribute("bias", facts(edges, labels), bias_labels=table)
    assert built.items["subject_id"].to_list() == ["Q1", "Q5"]
    assert built.candidates["label"].to_list() == ["male", "other"]


@pytest.mark.parametrize("unknown", [0, 1, 20, 21])
def test_objects_without_a_normalized_label_are_counted_and_listed(unknown):
    rows = [(500, 21, 400)] + [(n, 21, 100 + n) for n in range(1, unknown + 1)]
    table = {"Q400": "male", "Q401": "nobody's"}
    steps = attribute("bias", facts(rows), bias_labels=table).steps
    step = steps.filter(step="objects with a normal label").row(0, named=True)
    listed = ", ".join(f"Q{100 + n}" for n in range(1, min(unknown, 20) + 1))
    why = f"objects not in the table keep their labels: {listed}" if unknown else ""
    assert (step["kept"], step["dropped"]) == (1, 0)
    assert step["reason"] == why + (" ..." if unknown == 21 else "")


def test_the_twenty_largest_hubs_are_listed():
    out = {7: 12, 9: 1500, 3: 1500, **dict.fromkeys(range(20, 38), 11)}
    rows = [(n, 50, 100 + i) for n, size in out.items() for i in range(size)]
    setup = Setup(paths.DEFINITION, graph(rows), settings("paths", max_out=10))
    edges_to_expand(setup)
    hubs = setup.funnel.rows[-1]["reason"].removeprefix("out-edges of ").split(", Q")
    assert hubs[:4] == ["Q3 (1,500)", "9 (1,500)", "7 (12)", "20 (11)"]
    assert (len(out), len(hubs), hubs[-1]) == (21, 20, "36 (11)")


def test_unlabeled_objects_are_skipped_among_the_options():
    """The most frequent objects have no label, so the next labeled ones become the options."""
    pairs = [(500, 26, 501), (501, 26, 500)]
    frequent = [(1000 + 10 * o + k, 26, o) for o in range(1, 41) for k in range(3)]
    rare = [(2000 + o, 26, o) for o in range(41, 61)]
    labels = {500: "a", 501: "b"} | {o: f"object {o}" for _, _, o in rare}
    statements = facts([*pairs, *frequent, *rare], labels)
    built = attribute("symmetry", statements, min_triples=1, ratio=0.0, candidates=15)
    assert built.items.height == 2
    assert built.candidates["label"].to_list() == [
        "a",
        "b",
        *(f"object {o}" for o in range(41, 54)),
    ]


def test_an_unreadable_input_is_not_reported_as_a_full_disk(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    path = tmp_path / "facts.parquet"
    numbers = np.random.default_rng(0).integers(0, 1 << 60, 3_000_000)
    pl.DataFrame({"n": numbers[:9]}).write_parquet(path)
    with DuckDB(LEAST_MB) as engine:
        rows = engine.files([path])
        path.unlink()
        with pytest.raises(EngineError, match=r"could not read their input: .*facts\.parquet"):
            engine.count(rows)
        # the folder for spilled rows cannot be created
        engine.spill.write_text("")
        with pytest.raises(EngineError, match=r"could not write to .* a disk with more room"):
            engine.keep(engine.table(pl.DataFrame({"n": numbers})).distinct())


def test_the_reversed_question_on_a_date_has_the_subjects_of_the_relation_as_options():
    """Its list is as long as that of a relation between entities."""
    names = {n: f"name {n}" for n in range(1, 60)}
    dates = [(s, 569, f"{1900 + s}-03-04T00:00:00Z") for s in range(1, 31)]
    triples = [(s, 19, 40 + s % 7) for s in range(1, 31)]
    made = attribute(
        "asymmetry", facts(triples, names, dates), min_triples=1, eval_examples=4, candidates=20
    )
    for relation in ("P19", "P569"):
        options = made.candidates.filter(set=f"asymmetry/{relation}/reversed")
        assert options.height == 20
        assert set(options["id"]) < {f"Q{s}" for s in range(1, 31)}

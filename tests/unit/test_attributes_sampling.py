"""Samples are stable when facts are added and independent of row order, memory and threads."""

import random
from dataclasses import asdict

import numpy as np
import polars as pl
import pytest

from kgprobe.benchmarks.attributes import (
    asymmetry,
    bidirectional,
    composite,
    entity_centric,
    paths,
    sensitivity,
)
from kgprobe.benchmarks.attributes.definition import THRESHOLD_SETS, THRESHOLDS, settings_of
from kgprobe.benchmarks.attributes.frames import EXAMPLES, REPORTS
from kgprobe.knowledge import engine, engine_duckdb
from kgprobe.knowledge import graph as knowledge
from kgprobe.knowledge.engine import LEAST_MB
from kgprobe.knowledge.engine_duckdb import DuckDB
from kgprobe.sampling import hash_key
from kgprobe.settings.benchmarks import Attributes
from kgprobe.settings.types import typed
from tests.unit.attribute_graphs import (
    content,
    encode,
    facts,
    graph,
    integer_keys,
    settings,
    triples,
)

BARE = {"eval_examples": None}


def random_triples(n, nodes=60, seed=1):
    source = random.Random(seed)
    rows = [(source.randint(1, nodes), source.choice([17, 19, 22]), source.randint(1, nodes))
            for _ in range(n)]  # fmt: skip
    return rows + [(node, 31, 900 + node % 3) for node in range(1, nodes + 1)]


def chosen(module, name, rows, **changed):
    return triples(module.build(graph(rows), settings(name, **{**BARE, **changed})).examples)


SAMPLED = [
    (asymmetry, "asymmetry", {"min_triples": 1, "cap": 5}),
    (composite, "composite", {"min_combo": 4, "cap": 3}),
    (paths, "paths", {"min_combo": 5, "cap": 4, "seeds": 7}),
    (entity_centric, "entity_centric", {"facts": 3, "entities": 6, "eval_entities": 3}),
]


@pytest.mark.parametrize(("module", "name", "changed"), SAMPLED, ids=lambda v: str(v)[:14])
def test_frames_are_independent_of_row_order(module, name, changed):
    rows = facts(random_triples(400))
    built = [
        module.build(encode(frame), settings(name, **changed))
        for frame in (rows, rows.sample(fraction=1, shuffle=True, seed=3))
    ]
    for table in ("examples", *REPORTS, "items", "candidates"):
        one, two = (getattr(m, table) for m in built)
        assert one.sort(one.columns[:3]).equals(two.sort(two.columns[:3])), table


def test_one_added_candidate_swaps_at_most_one_example():
    rows = random_triples(400)
    changed = {"min_triples": 1, "cap": 60}
    before = set(chosen(asymmetry, "asymmetry", rows, **changed))
    swapped = 0
    for node in range(1, 30, 3):
        after = set(chosen(asymmetry, "asymmetry", [*rows, (node, 17, 5000 + node)], **changed))
        assert len(before - after) <= 1
        assert {t[0][1] for t in before ^ after} <= {17}
        swapped += before != after
    assert 0 < swapped < 10


@pytest.mark.parametrize(("module", "name", "changed"), SAMPLED[1:3], ids=lambda v: str(v)[:14])
def test_results_are_independent_of_threads_and_memory(module, name, changed):
    given = facts(random_triples(500), literals=[(3, 19, "red"), (9, 19, "red")])
    made = []
    for memory, threads in ((LEAST_MB, 1), (2000, 4)):
        with DuckDB(memory, threads) as database:
            result = knowledge.encode(database, database.table(given))
            built = module.build(result, settings(name, **changed))
            made.append([getattr(built, frame) for frame in (*REPORTS, "examples", "items")])
    for first, *others in zip(*made, strict=True):
        assert first.height
        assert all(first.equals(other) for other in others)


#: lowest and highest numbers of every width, and numbers of literals
EDGE = [0, 1, 2**16 - 1, 2**31 - 1, 2**31, 2**32 - 1, 2**63, 2**64 - 1]


def test_engine_keys_equal_the_function():
    """Every pair of 64-bit boundary numbers, unsigned in Python, signed in the engine."""
    pairs = [(a, b) for a in EDGE for b in EDGE]
    wide = pl.DataFrame(pairs, {"a": pl.UInt64, "b": pl.UInt64}, orient="row")
    expected = integer_keys([wide["a"].to_numpy(), wide["b"].to_numpy()], 7, "sample")
    with DuckDB() as database:
        rows = database.table(wide.select(pl.all().reinterpret(signed=True)))
        result = database.frame(rows.mutate(key=engine.keys(rows, 7, ["a", "b"], "sample")))
    result = result.with_columns(pl.col("a", "b").reinterpret(signed=False))
    joined = wide.join(result, on=["a", "b"], maintain_order="left")
    # the sign bit is flipped so that signed numbers sort like unsigned ones
    assert [n + 2**63 for n in joined["key"]] == expected.tolist()


def test_keys_are_stable():
    """Samples of earlier runs must stay reproducible, on any engine."""
    columns = [np.array([31, 31], np.uint16), np.array([42, 2**32 - 1], np.uint32)]
    keys = [5286544100277086421, 13530709928038467570]
    assert integer_keys(columns, 0, "paths/seeds").tolist() == keys
    assert hash_key(0, "paths/seeds") == 12016042842440105064


def test_engine_smallest_equals_the_function():
    rows = pl.DataFrame(sorted(set(random_triples(600))), ["s", "p", "o"], orient="row")
    with DuckDB() as database:
        table = database.table(rows)
        encoded = knowledge.Graph(database, table, table, table)
        for n, by, ids in ((3, ["p"], ["s", "o"]), (7, [], ["s", "p", "o"])):
            result = database.frame(encoded.smallest(table, n, 5, ids, by, "x")).sort([*by, *ids])
            keys = integer_keys([rows[name].to_numpy() for name in (*by, *ids)], 5, "x")
            order = rows.with_columns(k=pl.Series(keys)).sort(*by, "k").drop("k")
            expected = order.group_by(by).head(n) if by else order.head(n)
            assert result.equals(expected.select(rows.columns).sort([*by, *ids]))
            assert result.height == n * (rows["p"].n_unique() if by else 1)


def test_sensitivity_tries_every_alternative():
    encoded = graph(random_triples(400))
    table = sensitivity.table(paths, encoded, settings("paths", min_combo=5), True)
    default = table.filter(pl.col("default")).row(0, named=True)
    assert default["setting"] == "as configured"
    loose = table.filter(setting="endpoints_differ = false")["examples"][0]
    assert loose >= default["examples"] > 0
    alone = sensitivity.table(paths, encoded, settings("paths", min_combo=5), False)
    assert alone.height == 1


def test_bidirectional_grid_counts_shared_triples_once():
    """Every edge of P1 has its inverse in P2 and in P3: 50 examples with 75 triples."""
    rows = [(n, 1, n + 100) for n in range(1, 26)]
    rows += [(o, p, s) for s, _, o in rows for p in (2, 3)]
    changed = settings("bidirectional", min_triples=25, denominator="min", ratio=0.5)
    table = sensitivity.table(bidirectional, graph(rows), changed, True)
    sizes = ["patterns", "examples", "triples"]
    assert table.filter("default").select(sizes).row(0) == (2, 50, 75)
    same = table.filter(setting="min_triples = 25, denominator = min, ratio = 0.5")
    assert same.select(sizes).row(0) == (2, 50, 75)
    assert table.height == 1 + 2 * 3 * 3


def test_chunks_from_the_engine_are_in_order(monkeypatch):
    monkeypatch.setattr(engine_duckdb, "PART", 5000)
    rows = pl.DataFrame({"n": np.random.default_rng(1).permutation(40_000)})
    with DuckDB(LEAST_MB, 4) as database:
        parts = list(database.parts(database.table(rows), ["n"]))
    assert len(parts) > 1
    assert pl.concat(parts)["n"].to_list() == list(range(40_000))


def test_texts_of_many_values_are_complete():
    """DuckDB 1.5 lost the first text of every vector when selecting one of two values."""
    values = [f"19{n // 100:02}-02-03 and the value {n}" for n in range(6000)]
    encoded = graph([(1, 26, 2)], literals=[(n, 462, value) for n, value in enumerate(values, 1)])
    assert sorted(content(encoded, "literals")["text"]) == sorted(values)


@pytest.mark.parametrize(("module", "name", "changed"), SAMPLED, ids=lambda v: str(v)[:14])
def test_chunked_examples_keep_the_overall_order(module, name, changed):
    built = module.build(graph(random_triples(400)), settings(name, **changed))
    parts = list(built.parts(size=1))
    whole = built.examples.sort(list(EXAMPLES.key))
    assert pl.concat(parts).equals(whole)
    if name == "entity_centric":  # whose examples have several patterns
        assert len(parts) == 1
    else:
        assert len(parts) == whole["pattern"].n_unique() > 1


def test_the_papers_thresholds():
    """Mruthyunjaya et al. 2023, section 3; docs/papers/attributes.md for those it does not name."""
    paper = {
        name: {key: sets[0] for key, sets in keys.items()} for name, keys in THRESHOLDS.items()
    }
    assert THRESHOLD_SETS[0] == "paper"
    assert paper == {
        "symmetry": {"min_triples": 50},
        "asymmetry": {"min_triples": 25},
        "bidirectional": {"min_triples": 50},
        "composite": {"min_combo": 100},
        "paths": {"min_combo": 100},
        "entity_centric": {"facts": 20, "top": 1000},
    }


def test_configured_thresholds_override_the_named_set():
    """Even a value equal to the paper's own; unset thresholds keep the named set's values."""
    for place, thresholds in enumerate(THRESHOLD_SETS):
        for attribute, keys in THRESHOLDS.items():
            for key, (paper, small, _) in keys.items():
                value = keys[key][place]
                for own in (3, paper, small):
                    given = {"thresholds": thresholds, attribute: {key: own}}
                    assert getattr(settings_of(given, attribute).section, key) == own
                config = asdict(typed(Attributes, {"thresholds": thresholds}))
                assert getattr(settings_of(config, attribute).section, key) == value
    assert settings_of({}, "symmetry").section.min_triples == 50

"""From a graph to METRICS with every kind of model: masked, span-filling, causal, API."""

from contextlib import contextmanager

import polars as pl
import pytest

from kgprobe.benchmarks.attributes import hierarchy, symmetry
from kgprobe.metrics.attributes import KEYS
from kgprobe.probes.api.client import Client
from kgprobe.probes.api.http import ApiEndpoint
from kgprobe.probes.jobs import score
from kgprobe.probes.jobs.methods.fill import fill_frame
from kgprobe.probes.prompts.variants import relations
from kgprobe.probes.scoring.sentence import score as sentence
from kgprobe.schema import FILL_GOLDS, FILLS, SCORES
from kgprobe.settings.probes import AttributePrompts, Fill
from kgprobe.tables.answers import Probe
from kgprobe.tables.attributes import study as st
from tests.contract.api_server import ApiServer, tiny_language_model
from tests.unit.attribute_graphs import LABELS, WORKED, graph, settings
from tests.unit.tiny_models import tiny

TEMPLATES = [
    {"relation": "P26", "index": "0", "kind": "manual", "text": "[X] was married to [Y]."},
    {"relation": "P26", "index": "1", "kind": "manual", "text": "[Y] is married to [X]."},
    {"relation": "P279", "index": "0", "kind": "manual", "text": "[X] is a kind of [Y]."},
    {"relation": "P279/P279", "index": "0", "kind": "manual", "text": "[X] is under [Y]."},
]
FILL = Fill(k=5, most_tokens=6)
KINDS = ("masked", "seq2seq", "causal", "completions", "chat")


def benchmark(module, name, **changed):
    """Return one of the nine benchmarks from the worked graph."""
    labels = {**LABELS, **changed.pop("labels", {})}
    made = module.build(graph(WORKED.values(), labels), settings(name, **changed))
    prompts, _ = relations.word(made.items, TEMPLATES, [], AttributePrompts())
    examples = made.examples.filter("sampled")
    return st.ProbedAttribute(name, examples, made.items, made.candidates, prompts)


@contextmanager
def answering(kind, folder):
    """Return (model or client, kind in the tables)."""
    if kind not in ("completions", "chat"):
        name = {"masked": "bert", "seq2seq": "t5", "causal": "gpt2"}[kind]
        yield tiny(name, bos="forced" if kind == "causal" else "", double=False), kind
        return
    offers = frozenset({"chat", "usage"}) if kind == "chat" else None
    with ApiServer(tiny_language_model(), *([offers] if offers else [])) as server:
        yield Client(ApiEndpoint(server.url, "tiny"), folder), "api"


def filled(made, kind, folder):
    """Return the study of one model's fills of one benchmark, and the record of the job."""
    with answering(kind, folder / "cache") as (model, known):
        found = fill_frame(model, made.items, made.candidates, made.prompts, FILL)
    fills, golds, record = found
    fills.select(list(FILLS.columns)).write_parquet(folder / "m.parquet")
    golds.select(list(FILL_GOLDS.columns)).write_parquet(folder / "m.golds.parquet")
    probe = Probe(made.name, "templates", "fill", "m", known, "-")
    return studied(made, probe, st.read_answers(probe, made, folder / "m.parquet")), record


def studied(made, probe, answered):
    return st.AttributesStudy({made.name: made}, {probe: answered})


def measured(study):
    found = study.measure(study.alphas())
    return found.filter(pl.col("method") != "baseline", pattern="all", gold="own")


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_model_is_measured(kind, tmp_path):
    study, _ = filled(benchmark(symmetry, "symmetry", min_triples=2), kind, tmp_path)
    found = measured(study)
    # a chat server gives one answer; phrases of branches may coincide
    given = pl.read_parquet(tmp_path / "m.parquet")["rank"].max()
    assert given == {"chat": 1}.get(kind, given) >= 1
    assert sorted(found["k"].unique()) == [k for k in KEYS if k <= given]
    kinds = {"exact", "token_mean" if kind == "masked" else "verbatim"}
    assert set(found["kind"]) == kinds
    assert set(found["pooling"]) == {"best", "mean", "base", "confident"}
    # a leading mask slot works only with masks, sentinels or an instruction
    prompts = 1 if kind in ("causal", "completions") else 2
    assert set(next(iter(study.answers.values()))["template"]) == set(range(prompts))
    assert found["examples"].to_list() == [1] * found.height
    assert (found["missing"] == 0).all()


@pytest.mark.parametrize("kind", ["masked", "causal", "seq2seq"])
def test_candidates_can_be_ranked_instead(kind):
    made = benchmark(symmetry, "symmetry", min_triples=2)
    name = {"masked": "bert", "seq2seq": "t5", "causal": "gpt2"}[kind]
    asked = score.tables(made.items, made.candidates, made.prompts)
    loaded = tiny(name, bos="forced" if kind == "causal" else "")
    columns = sentence.score(loaded, *asked).columns
    scores = pl.DataFrame({n: pl.Series(n, v) for n, v in columns.items()})
    scores = scores.select(pl.col(n).cast(t) for n, t in SCORES.columns.items())
    probe = Probe("symmetry", "templates", "sentence", "m", kind, "-")
    found = measured(studied(made, probe, st.of_candidates(scores, made.items)))
    assert sorted(found["k"].unique()) == list(KEYS)
    # two candidates: the first three hold each of them
    best = found.filter(k=3, pooling="best").row(0, named=True)
    assert (best["numerator"], best["denominator"]) == (1, 1)


@pytest.mark.parametrize("kind", ["masked", "seq2seq", "causal"])
def test_a_gold_beyond_the_window_is_left_out_and_counted(kind, tmp_path):
    made = benchmark(hierarchy, "hierarchy", labels={7: ("people of Africa " * 60).strip()})
    study, record = filled(made, kind, tmp_path)
    assert sum(record["left_out"].values()) > 0
    assert any("tokens" in reason for reason in record["left_out"])
    if kind == "masked":
        assert study.left_out == {made.examples["example"][0]}

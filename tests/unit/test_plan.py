"""Cost of a run: table rows that match a job, hand-computed sums, and services without requests."""

import logging
from pathlib import Path

import pytest

from kgprobe.cli import screen
from kgprobe.experiments import TableError
from kgprobe.plan import costs, jobs
from kgprobe.plan.jobs import PlannedJob

ROOT = Path(__file__).parents[2]
COSTS = costs.read(ROOT / "resources/costs.tsv")
MODELS = {
    "small": {
        "source": "hub:some/small", "kind": "causal", "dtype": "float32", "parameters": "100",
        "revision": "main",
    },
    "big": {
        "source": "hub:facebook/opt-x", "kind": "causal", "dtype": "bfloat16",
        "parameters": "13000", "revision": "main",
    },
    "own": {"source": "control:masked", "kind": "masked", "dtype": "float32", "parameters": "1"},
    "served": {"source": "api:x", "kind": "api", "dtype": "float32", "parameters": ""},
}  # fmt: skip


def job(rule: str, log: str = "scores", **wildcards: str) -> PlannedJob:
    inputs = tuple(wildcards.pop("inputs", "").split())
    outputs = (f"{rule}-{'-'.join(wildcards.values())}",)
    return PlannedJob(rule, wildcards, inputs, outputs, f"logs/x/{log}/y.log", 8000, 0)


def score(model: str, benchmark: str = "bear_released", more: tuple[str, ...] = ()) -> PlannedJob:
    path = f"results/x/scores/{benchmark}/templates/sentence/{model}.parquet"
    made = (path, *(f"results/x/{name}" for name in more))
    return PlannedJob(f"probes_{model}", {}, (), made, f"logs/x/probes/{model}.log", 8000, 0)


TABLE = (
    "rule\tof\tkind\tcpu_s\tdownload_mb\tdisk_mb\trequests\tbasis\twhere\n"
    "pull\t*\t*\t7200\t1000\t2000\t30\tmeasured\tx\n"
    "probes_*\tscores/bear_*\tcausal\t3600\t0\t500\t0\testimated\tx\n"
    "probes_*\t*\t*\t60\t0\t1\t0\testimated\tx\n"
)


@pytest.fixture
def known(tmp_path: Path) -> costs.Costs:
    """Return a table of three rows."""
    (tmp_path / "costs.tsv").write_text(TABLE)
    return costs.read(tmp_path / "costs.tsv")


def test_sums_by_hand(known):
    asked = [
        job("pull", log="sources", source="wikidata"), score("small"), score("own", "world_lite"),
        score("big"), score("big", "bear_lite"), score("served"),
    ]  # fmt: skip
    stages, unpriced = costs.plan(asked, MODELS, known)
    sources, models, probes = (stages[name] for name in ("sources", "models", "probes"))
    assert vars(sources) == vars(costs.Cost(1, 7200, 1000, 2000, 30, False))
    # 100 M weights of four bytes; 13 B of two, downloaded once for two jobs
    assert (models.jobs, models.download_mb, models.requests) == (0, 400 + 26000, 10)
    assert (probes.jobs, probes.cpu_s) == (5, 3 * 3600 + 2 * 60)
    assert probes.estimated
    assert not unpriced


def test_the_output_has_every_stage_and_marks_estimates(known, capsys, monkeypatch):
    asked = [job("pull", log="sources", source="x"), score("small"), job("unknown", log="tables")]
    stages, unpriced = costs.plan(asked, MODELS, known)
    assert unpriced == ["unknown"]
    rows = {row["stage"]: row for row in costs.table(stages)}
    assert list(rows) == ["sources", "knowledge", "benchmarks", "models ~", "probes ~", "tables",
                          "all ~"]  # fmt: skip
    assert rows["all ~"] == {"stage": "all ~", "jobs": "3", "load GB": "1.4", "disk GB": "2.9",
                             "requests": "35.0", "CPU h": "3"}  # fmt: skip
    monkeypatch.setenv("COLUMNS", "60")
    screen.table(list(rows.values()))
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 60
    assert all(any(stage in line for line in lines) for stage in costs.STAGES)


def test_a_pull_of_files_sends_no_requests():
    live = job("pull", source="wikidata", query="properties")
    local = job("pull", source="wikidata", inputs="a/b.nt.gz resources/q.rq")
    assert costs.cost_of(live, "*", COSTS).requests > 0
    assert costs.asks_nobody(local)
    found = costs.cost_of(local, "*", COSTS)
    assert found.requests == found.download_mb == 0
    assert found.cpu_s > 0


@pytest.mark.parametrize(
    ("rule", "least"),
    [("download_bear", 1), ("download_bear_0", 1), ("download_lama_4", 1), ("download_sst2_0", 2),
     ("download_trex", 1000), ("download_trex_sentences_0", 4), ("download_wikidata_json", 5e4)],
)  # fmt: skip
def test_downloads_are_priced_by_pattern(rule, least):
    cost = costs.cost_of(job(rule, log="sources"), "*", COSTS)
    assert cost.requests == 1
    assert least <= cost.download_mb <= 20 * least


def test_the_kind_of_a_model_counts():
    causal, masked = (costs.cost_of(score("x"), kind, COSTS) for kind in ("causal", "masked"))
    assert (causal.cpu_s, masked.cpu_s) == (30, 60)


def test_a_row_matches_a_job_by_any_of_its_names():
    table = [({"rule": "pull", "of": "wiki*", "kind": "*"}, costs.Cost(cpu_s=5))]
    assert costs.cost_of(job("pull", source="wikidata", query="facts"), "*", table).cpu_s == 5
    assert costs.cost_of(job("pull", source="dbpedia", query="facts"), "*", table) is None


def test_every_file_of_a_model_is_priced_or_none_if_one_is_unknown(known):
    more = score("x", more=("ranks/onto_world/templates/x.parquet",))
    both = costs.cost_of(more, "causal", known)
    assert (both.cpu_s, both.disk_mb, both.estimated) == (3660, 501, True)
    golds = score("x", more=("fills/a/templates/x.golds.parquet",))
    assert costs.cost_of(golds, "causal", COSTS) == costs.cost_of(score("x"), "causal", COSTS)
    assert costs.cost_of(score("x", more=("unknown/x.parquet",)), "causal", COSTS) is None


def test_a_model_s_rule_names_it():
    assert costs.model_of(job("probes_gpt2-medium")) == "gpt2-medium"
    assert costs.model_of(job("prompts_a_b")) == "a_b"
    assert costs.model_of(job("report", log="tables")) == ""


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [("measured\tx", "guessed\tx", "rule pull: basis 'guessed'; valid: measured, estimated"),
     ("7200", "two", "rule pull: could not convert string to float: 'two'")],
)  # fmt: skip
def test_a_bad_table_is_reported_with_row_and_value(tmp_path, old, new, message):
    (tmp_path / "costs.tsv").write_text(TABLE.replace(old, new, 1))
    with pytest.raises(TableError, match=message):
        costs.read(tmp_path / "costs.tsv")


def test_announced_jobs_are_recorded_whoever_prints():
    logger = logging.Logger("x")
    announced = jobs.Announced()
    logger.addFilter(announced)

    class Event:
        value = "job_info"

    event = {
        "event": Event, "rule_name": "score", "wildcards": {"model": "m"}, "input": ["a"],
        "output": ["b"], "log": ["logs/x/scores/m.log"], "resources": {"mem_mb": 5, "gpu": 1},
    }  # fmt: skip
    for _ in range(2):
        logger.info("", extra=event)
    logger.info("", extra={**event, "rule_name": "all"})
    logger.info("something else")
    expected = PlannedJob("score", {"model": "m"}, ("a",), ("b",), "logs/x/scores/m.log", 5, 1)
    assert list(announced.jobs.values()) == [expected]


@pytest.mark.parametrize(
    ("name", "size"),
    [("facebook/opt-125m", 2), ("meta-llama/Llama-2-7b-hf", 2), ("mistralai/Mistral-7B-v0.1", 2),
     ("google/gemma-7b", 2), ("microsoft/phi-1_5", 2), ("HuggingFaceTB/SmolLM2-135M", 2),
     ("bert-base-cased", 4), ("EleutherAI/gpt-neo-125m", 4)],
)  # fmt: skip
def test_bytes_of_a_weight_on_the_hub(name, size):
    """Checkpoints in half precision, and others in float32."""
    assert costs.weights_mb({"source": f"hub:{name}", "parameters": "100"}) == 100 * size

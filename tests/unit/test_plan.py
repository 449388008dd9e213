"""What a run costs: rows that fit a job, sums by hand, what is done, and what nobody is asked."""

import logging
from pathlib import Path

import pytest

from kgprobe.cli import screen
from kgprobe.plan import costs, jobs, table
from kgprobe.plan.jobs import Job
from kgprobe.sheets import SheetError
from kgprobe.tables.report import measured

ROOT = Path(__file__).parents[2]
COSTS = costs.read(ROOT / "resources")
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


def job(rule: str, log: str = "scores", to_do: bool = True, **wildcards: str) -> Job:
    inputs = tuple(wildcards.pop("inputs", "").split())
    outputs = (f"{rule}-{'-'.join(wildcards.values())}",)
    return Job(rule, wildcards, inputs, outputs, f"logs/x/{log}/y.log", 8000, 0, to_do)


def score(model: str, benchmark: str = "bear_released", more: tuple[str, ...] = ()) -> Job:
    path = f"results/x/scores/{benchmark}/templates/sentence/{model}.parquet"
    made = (path, *(f"results/x/{name}" for name in more))
    return Job(f"probes_{model}", {}, (), made, f"logs/x/probes/{model}.log", 8000, 0)


def never(_):
    return False


TABLE = (
    "rule\tof\tkind\tcpu_s\tdownload_mb\tdisk_mb\trequests\tpositions_m\tbasis\twhere\n"
    "pull\t*\t*\t7200\t1000\t2000\t30\t0\tmeasured\tx\n"
    "probes_*\tscores/bear_*\tcausal\t3600\t0\t500\t0\t2\testimated\tx\n"
    "probes_*\t*\t*\t60\t0\t1\t0\t1\testimated\tx\n"
)
RATES = (
    "device\tdtype\ttflops\tbasis\twhere\n"
    "cpu\tfloat32\t0.1\tmeasured\tx\ncpu\tbfloat16\t0.1\tmeasured\tx\n"
    "gpu\tfloat32\t10\testimated\tx\ngpu\tbfloat16\t100\testimated\tx\n"
)


@pytest.fixture
def known(tmp_path: Path) -> costs.Costs:
    """A table of three rows and rates of round numbers."""
    (tmp_path / "costs.tsv").write_text(TABLE)
    (tmp_path / "rates.tsv").write_text(RATES)
    return costs.read(tmp_path)


def test_sums_by_hand(known):
    asked = [
        job("pull", log="sources", source="wikidata"),
        job("pull", log="sources", to_do=False, source="dbpedia"),
        score("small"),
        score("own", "world_lite"),
        score("big"),
        score("big", "bear_lite"),
    ]
    plan = table.add(asked, MODELS, known, never)
    sources, models, probes = (plan.stages[name] for name in ("sources", "models", "probes"))
    assert (sources.jobs, sources.done, sources.requests) == (1, 1, 30)
    assert (sources.download_gb, sources.disk_gb, sources.cpu_h) == (1, 2, 2)
    assert not sources.estimated
    # 100 M weights of four bytes; 13 B of two, downloaded once though two jobs ask it
    assert models.download_gb == pytest.approx(0.4 + 26)
    assert probes.jobs == 4
    assert probes.cpu_h == pytest.approx(3 + 60 / 3600)
    # 2 operations x 2 M positions x 100 M weights at 10^13 a second; 1 M of 1 M; 2 x 2 M of 13 B
    seconds = 4e14 / 1e13 + 2e12 / 1e13 + 2 * 4e6 * 13e9 / 1e14
    assert probes.gpu_h * 3600 == pytest.approx(seconds)
    assert probes.estimated
    assert plan.sizes["to 200 M"].models == {"small", "own"}
    assert plan.sizes["larger"].models == {"big"}
    assert plan.sizes["larger"].gpu_h * 3600 == pytest.approx(1040)
    assert plan.sizes["larger"].memory_gb == 8
    assert not plan.unpriced


def test_what_is_printed_has_every_stage_and_says_what_is_estimated(known):
    asked = [job("pull", log="sources", source="x"), score("small"), job("unknown", log="tables")]
    plan = table.add(asked, MODELS, known, lambda row: row["source"].endswith("small"))
    assert plan.cached == ["small"]
    assert plan.stages["models"].download_gb == 0
    rows = {row["stage"]: row for row in table.stages(plan)}
    assert list(rows) == ["sources", "knowledge", "benchmarks", "models", "probes ~", "tables",
                          "all ~"]  # fmt: skip
    assert [row["size"] for row in table.sizes(plan)] == ["to 200 M ~"]
    notes = " ".join(table.notes(plan, {}))
    assert "GPU hours are estimated" in notes
    assert "weights that are here: small" in notes
    assert "counted as nothing: unknown" in notes
    assert "measured" not in notes
    # nothing stands already, nothing is loaded: no columns of nothing
    assert list(rows["all ~"]) == ["stage", "jobs", "load GB", "disk GB", "requests", "CPU h",
                                 "GPU h", "or CPU"]  # fmt: skip
    assert rows["all ~"]["jobs"] == "3"
    told = measured.heads(ROOT / "resources/measured/embedded.tsv")[0]
    assert (
        f"{told['jobs']} jobs, {told['CPU minutes of the jobs']} CPU minutes"
        in table.notes(plan, told)[0]
    )


def test_the_plan_is_read_on_a_narrow_terminal(known, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    plan = table.add([score("big"), score("small")], MODELS, known, never)
    plan.stages["sources"].requests = 9132
    plan.stages["probes"].cpu_h = 9.25
    plan.stages["probes"].done = 12
    screen.table(table.stages(plan))
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 60
    for stage in (*table.STAGES, "9,132", "9.2"):
        assert sum(stage in line for line in lines) >= 1


def test_a_server_s_model_has_no_arithmetic_here(known):
    plan = table.add([score("served")], MODELS, known, never)
    assert plan.stages["probes"].gpu_h == 0
    assert plan.stages["probes"].jobs == 1


def test_a_pull_of_files_asks_nobody():
    live = job("pull", source="wikidata", query="properties")
    local = job("pull", source="wikidata", inputs="a/b.nt.gz resources/q.rq")
    assert COSTS.of(live, "*").requests > 0
    assert costs.asks_nobody(local)
    assert COSTS.of(local, "*").requests == COSTS.of(local, "*").download_mb == 0
    assert COSTS.of(local, "*").cpu_s > 0


@pytest.mark.parametrize(
    ("rule", "least"),
    [("download_bear", 1), ("download_bear_0", 1), ("download_lama_4", 1), ("download_sst2_0", 2),
     ("download_trex", 1000), ("download_trex_sentences_0", 4), ("download_wikidata_json", 5e4)],
)  # fmt: skip
def test_downloads_are_priced_by_pattern(rule, least):
    cost = COSTS.of(job(rule, log="sources"), "*")
    assert cost.requests == 1
    assert least <= cost.download_mb <= 20 * least


def test_the_kind_of_a_model_counts():
    causal, masked = (COSTS.of(score("x"), kind) for kind in ("causal", "masked"))
    assert causal.positions_m == 2.3
    assert masked.positions_m == 98.6


def test_every_file_of_a_model_s_rule_is_priced_and_one_unknown_leaves_all_without(known):
    both = known.of(score("x", more=("ranks/onto_world/templates/x.parquet",)), "causal")
    assert (both.cpu_s, both.disk_mb, both.positions_m) == (3660, 501, 3)
    assert both.basis == "estimated"
    assert COSTS.of(score("x", more=("fills/a/templates/x.golds.parquet",)), "causal") == COSTS.of(
        score("x"), "causal"
    )
    assert COSTS.of(score("x", more=("unknown/x.parquet",)), "causal") is None


def test_a_model_s_rule_names_it():
    assert costs.model_of(job("probes_gpt2-medium")) == "gpt2-medium"
    assert costs.model_of(job("prompts_a_b")) == "a_b"
    assert costs.model_of(job("report", log="tables")) == ""


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [("measured\tx", "guessed\tx", "rule pull: basis 'guessed'; legal: measured, estimated"),
     ("7200", "two", "rule pull: could not convert string to float: 'two'")],
)  # fmt: skip
def test_a_bad_table_names_row_and_value(tmp_path, old, new, message):
    (tmp_path / "rates.tsv").write_text(RATES)
    (tmp_path / "costs.tsv").write_text(TABLE.replace(old, new, 1))
    with pytest.raises(SheetError, match=message):
        costs.read(tmp_path)


def test_announced_jobs_are_kept_whoever_prints():
    logger = logging.Logger("x")
    announced = jobs.Announced()
    logger.addFilter(announced)

    class Event:
        value = "job_info"

    told = {
        "event": Event, "rule_name": "score", "wildcards": {"model": "m"}, "input": ["a"],
        "output": ["b"], "log": ["logs/x/scores/m.log"], "resources": {"mem_mb": 5, "gpu": 1},
    }  # fmt: skip
    for _ in range(2):
        logger.info("", extra=told)
    logger.info("", extra={**told, "rule_name": "all"})
    logger.info("something else")
    expected = Job("score", {"model": "m"}, ("a",), ("b",), "logs/x/scores/m.log", 5, 1)
    assert list(announced.jobs.values()) == [expected]

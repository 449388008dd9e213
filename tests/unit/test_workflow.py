"""Jobs, output files and resources of the workflow's models, computed without Snakemake."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from kgprobe.config import files_of, load, settings_of
from kgprobe.experiments import TableError
from kgprobe.settings import Settings, Tables
from kgprobe.settings.benchmarks import ATTRIBUTES, Ambiguous, Attributes
from kgprobe.settings.probes import Autoprompt, Baselines
from kgprobe.settings.sources import ArchiveParts
from kgprobe.workflow import attributes, models, ontoprobe, parts, tables
from kgprobe.workflow.answers import answer_files, answers_of, baseline_rows, content_free_files
from kgprobe.workflow.benchmarks import known_benchmarks
from kgprobe.workflow.run import Run, check, read_run
from kgprobe.workflow.sources import ConfigError

ROOT = Path(__file__).parents[2]
HEADER = "paper\tbenchmark\tprompt\tmethod\tmodel\n"
MODELS = {
    "small": {"kind": "masked", "dtype": "float32", "parameters": "100"},
    "half": {"kind": "causal", "dtype": "bfloat16", "bos": "none", "parameters": "8000"},
    "step": {"kind": "causal", "dtype": "float32", "bos": "none", "step": "16"},
    "control": {"kind": "masked", "dtype": "float32", "source": "control:masked"},
    "served": {"kind": "api", "dtype": "float32", "source": "api:some"},
}
MODELS = {
    name: {"model": name, "source": "hub:a/b", "revision": "0" * 40, "bos": "-", **row}
    for name, row in MODELS.items()
}


def row(text: str) -> dict[str, str]:
    return dict(zip(HEADER.split(), text.split(), strict=True))


def run(*rows: str, settings: Settings | None = None) -> Run:
    """Return a run of rows that need not be in a file."""
    known = [row(text) for text in rows]
    return Run(settings or Settings(), known_benchmarks(), MODELS, known)


def without(text: str, settings: Settings | None = None) -> list[str]:
    """Return the baselines of a row."""
    asked = run(text, settings=settings)
    return [one["without"] for one in baseline_rows(asked, asked.rows)]


@pytest.mark.parametrize("config", ["config/embedded.yaml", ""])
def test_every_answer_file_is_made_once_by_one_model(config):
    made = read_run(settings_of([config] if config else []))
    outputs = [path for found in parts.stages(made).values() for path in parts.outputs_of(found)]
    assert len(outputs) == len(set(outputs))
    rows = [*made.rows, *ontoprobe.memorized_rows(made)]
    needed = [*answers_of(rows), *content_free_files(made, rows)]
    needed += answers_of(baseline_rows(made, rows))
    assert set(needed) <= set(outputs)
    asked = parts.inputs_of(part for found in parts.stages(made).values() for part in found)
    assert {path for path in asked if "/prompts/" in path} <= set(outputs)


def test_a_benchmark_belongs_to_one_paper_and_a_user_graph_gives_five():
    known = known_benchmarks()
    assert {known[name].paper for name in ATTRIBUTES} == {"attributes"}
    assert (known["onto_world"].paper, known["auto_re"].paper) == ("ontoprobe", "autoprompt")
    own = {n: b for n, b in known_benchmarks(["mine"]).items() if n not in known}
    assert list(own) == ["mine_big", "mine_lite", "onto_mine", "onto_mine_lite", "auto_mine"]
    papers = [benchmark.paper for benchmark in own.values()]
    assert papers == ["bear", "bear", "ontoprobe", "ontoprobe", "autoprompt"]
    assert {benchmark.source for benchmark in own.values()} == {"mine"}


def test_rows_are_read_with_their_paper_and_unknown_names_refused(tmp_path):
    path = tmp_path / "experiments.tsv"
    settings = replace(Settings(), tables=Tables(experiments=str(path)))
    path.write_text(HEADER + "ontoprobe\tonto_world_lite\tfew,chat\tsentence\tcontrol-causal\n")
    found = read_run(settings)
    # the prompts that forms are compared with are added
    assert [one["prompt"] for one in found.rows] == ["few", "chat", "templates"]
    assert found.probed("ontoprobe") == ["onto_world_lite"]
    assert found.probed("bear") == []
    path.write_text(HEADER + "bear\tworld_light\ttemplates\tsentence\tcontrol-causal\n")
    with pytest.raises(TableError, match=r"line 2: unknown benchmark 'world_light' \(did you mean"):
        read_run(settings)
    attributes = replace(settings.attributes, graph="nowhere")
    with pytest.raises(ConfigError, match=r"attributes.graph is 'nowhere'; valid: world, trex"):
        read_run(replace(settings, attributes=attributes))


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        ("ontoprobe: {switches: {tie: mean_rank}}", "ontoprobe.switches: unknown 'tie' (did you"),
        ("ontoprobe: {switches: {ties: first}}", "ontoprobe.switches.ties: 'first'; valid: mean"),
        ("sources: {wikidata: {endpoint: nowhere}}", "sources.wikidata.endpoint is 'nowhere'"),
        ("sources: {dbpedia: {access: dump}}", "sources.dbpedia: ontology, types missing, needed"),
    ],
)
def test_an_unknown_name_is_reported_with_its_file(tmp_path, lines, told):
    """The file is named even if another config overrides it."""
    wrong, other = tmp_path / "wrong.yaml", tmp_path / "other.yaml"
    wrong.write_text(f"run: {{name: wrong}}\n{lines}\n")
    other.write_text('ontoprobe: {switches: {item_limit: "20"}}\n')
    files = files_of([str(wrong), str(other)])
    with pytest.raises(ConfigError) as error:
        read_run(load(files), files)
    assert str(error.value).startswith(f"{wrong}: {told}")


def test_manual_prompts_share_a_file_and_others_have_separate_ones():
    written, other, searched, trained = (
        row(f"autoprompt auto_world {prompt} predict small")
        for prompt in ("manual", "lpaqa", "searched", "finetuned")
    )
    assert answers_of([written]) == answers_of([other])
    assert len(set(answers_of([written, searched, trained]))) == 3
    assert answers_of([written, searched, trained], "prompts") == [
        "<results>/prompts/searched/auto_world/small"
    ]
    below = answer_files({**written, "without": "trained weights"})["outcomes"]
    assert below == "<results>/baselines/random_init/outcomes/auto_world/prompts/small.parquet"


@pytest.mark.parametrize(
    ("asked", "left_out"),
    [
        ("bear world_lite templates sentence small", ["trained weights"]),
        ("attributes symmetry templates sentence small", ["the subject", "trained weights"]),
        ("attributes symmetry templates fill small", ["the subject"]),
        ("attributes symmetry templates fill served", []),
        ("attributes symmetry chat fill small", []),
        ("bear world_lite templates sentence step", []),
        ("bear world_lite templates sentence half", []),
        ("autoprompt auto_world manual predict small", ["the subject", "trained weights"]),
        ("autoprompt auto_sst2 manual predict small", []),
        ("autoprompt auto_world searched predict small", []),
        ("ontoprobe onto_world soft soft small", []),
    ],
)
def test_baselines_are_added_only_where_meaningful(asked, left_out):
    assert (
        without(asked, replace(Settings(), baselines=Baselines(items=5, rows=5, largest=400)))
        == left_out
    )
    assert without(asked, replace(Settings(), baselines=Baselines(items=0, rows=0))) == []


def test_prompts_are_searched_before_derived_prompts_are_probed():
    asked = run("autoprompt auto_world initial_triggers predict small")
    assert list(parts.stages(asked)) == [("prompts", "small"), ("probes", "small")]
    (searched,) = parts.stages(asked)["prompts", "small"]
    (written,) = parts.stages(asked)["probes", "small"]
    assert written.input["found"] == searched.output["prompts"]
    assert written.settings["prompts"] == ["initial_triggers"]


def test_transferred_prompts_are_searched_with_the_configured_model():
    text = "autoprompt auto_world transferred predict small"
    settings = replace(Settings(), autoprompt=Autoprompt(transfer={"small": "half"}))
    asked = parts.stages(run(text, settings=settings))
    assert list(asked) == [("prompts", "half"), ("probes", "small")]
    assert asked["probes", "small"][0].input["other"].endswith("auto_world/half")
    with pytest.raises(TableError, match=r"'small': name in autoprompt.transfer the model"):
        parts.stages(run(text))
    for wrong, hint in (("hafl", " .did you mean 'half'.."), ("served", "")):
        settings = replace(Settings(), autoprompt=Autoprompt(transfer={"small": wrong}))
        with pytest.raises(
            TableError, match=f"transfer.small is '{wrong}'{hint}; valid: small, half"
        ):
            parts.stages(run(text, settings=settings))


def test_published_prompts_in_a_local_folder_are_inputs(tmp_path):
    """A file that is overwritten does not change the time of its folder."""
    folder = tmp_path / "autoprompt_published"
    folder.mkdir()
    (folder / "bert.jsonl").write_text("{}\n", encoding="utf-8")
    local = ArchiveParts(access="local", folder=str(tmp_path))
    settings = replace(Settings(), sources=replace(Settings().sources, lama=local))
    asked = run("autoprompt auto_world published predict small", settings=settings)
    (part,) = parts.stages(asked)["probes", "small"]
    assert part.input["published"] == [str(folder), str(folder / "bert.jsonl")]
    manual = parts.stages(run("autoprompt auto_world manual predict small", settings=settings))
    assert not any(part.input.get("published") for part in manual["probes", "small"])


def test_reasoning_adds_the_probes_of_its_premises_once():
    reason = "ontoprobe onto_world templates reason small"
    found = parts.stages(run(reason))
    assert [part.method for part in found["prompts", "small"]] == ["soft_prompts"]
    methods = [part.method for part in found["probes", "small"]]
    assert {"reason", "cloze", "soft"} <= set(methods)
    both = run(reason, "ontoprobe onto_world templates cloze small")
    rows = [(one["method"], one["benchmark"]) for one in ontoprobe.memorized_rows(both)]
    assert rows == [("cloze", "onto_world"), ("soft", "onto_world")]


def test_examples_of_a_lite_set_come_from_the_whole_one():
    part = parts.part_of(run(), row("ontoprobe onto_world_lite few sentence small"))
    assert part.input["training"] == "<results>/benchmarks/onto_world/items.parquet"
    assert part.settings["form"]["name"] == "few"
    asked = run("attributes symmetry few fill small")
    assert parts.part_of(asked, asked.rows[0]).input["facts"].endswith("/trex/facts.parquet")


def test_an_api_model_gets_few_prompts_of_the_attributes():
    asked = run()
    for model, few in ("served", asked.settings.attribute_prompts.api), ("small", 0):
        part = parts.part_of(asked, row(f"attributes symmetry templates fill {model}"))
        assert part.settings["few"] == few


def test_parts_of_a_job_contain_the_run_folder():
    asked = run("bear world_lite templates sentence control")
    plain = parts.plain(asked, parts.stages(asked)["probes", "control"])
    scored = [part for part in plain if part["method"] == "sentence"]
    scores = "results/full/scores/world_lite/templates/sentence/control.parquet"
    assert scored[0]["output"] == {"scores": scores}
    assert "<results>" not in str(plain)


def test_memory_follows_weights_copies_and_threads():
    def asked(model: str, *texts: str) -> list[parts.PlannedPart]:
        return [parts.part_of(run(), row(f"{text} {model}")) for text in texts]

    def memory(model: str, *texts: str, threads: int = 1) -> int:
        return models.memory_of(run(), asked(model, *texts), model)(None, threads)

    fill, trained = "attributes symmetry templates fill", "autoprompt auto_world finetuned predict"
    assert memory("small", fill) == 4000
    assert memory("small", fill, threads=2) == 8000
    assert memory("half", fill) == 2500 + 8000 * 2 * 4 // 3
    assert memory("small", trained) == 6000
    assert memory("half", fill, trained) == 2500 + 8000 * 2 * 4 * 4 // 3
    base = {**row(f"{fill} half"), "without": "trained weights"}
    needed = models.memory_of(run(), [parts.part_of(run(), base)], "half")(None, 1)
    assert needed == 2500 + 8000 * 4 * 2 * 4 // 3  # drawn in float32, beside the stored ones


@pytest.mark.parametrize(("device", "wanted"), [("cpu", 0), ("cuda", 1)])
def test_jobs_of_models_request_a_device_or_threads(device, wanted, monkeypatch):
    monkeypatch.setenv("KGPROBE_DEVICE", device)
    assert models.accelerators(run(), "small") == wanted
    assert models.accelerators(run(), "served") == 0
    assert models.threads_of(run(), "probes", "small") == 2 - wanted
    assert [models.threads_of(run(), *job) for job in (
        ("prompts", "small"), ("probes", "control"), ("probes", "served"),
    )] == [1, 1, 1]  # fmt: skip
    monkeypatch.setenv("KGPROBE_DEVICE", "tpu")
    with pytest.raises(ConfigError, match="'tpu'; valid: auto, cpu, cuda"):
        models.accelerators(run(), "small")


def test_weights_are_built_local_or_downloaded(tmp_path, monkeypatch):
    # every file is an input: overwriting one leaves the folder's time as it was
    held = [tmp_path / name for name in ("config.json", "model.safetensors")]
    for path in (*held, tmp_path / "checkpoint-5" / "optimizer.pt"):
        path.parent.mkdir(exist_ok=True)
        path.write_text("{}", encoding="utf-8")
    monkeypatch.setitem(MODELS, "mine", {**MODELS["small"], "source": f"folder:{tmp_path}"})
    assert models.weights(run(), "mine") == [str(path) for path in held]
    assert models.weights(run(), "control") == ["<resources>/control/masked/model.safetensors"]
    assert models.weights(run(), "small") == []
    monkeypatch.setitem(MODELS, "adapted", {**MODELS["small"], "adapter": f"folder:{tmp_path}"})
    assert models.weights(run(), "adapted") == [str(path) for path in held]
    monkeypatch.setitem(MODELS, "mine", {**MODELS["small"], "source": "folder:/nowhere/at/all"})
    with pytest.raises(ConfigError, match="no such file or folder: /nowhere/at/all"):
        models.weights(run(), "mine")


def test_a_server_without_address_is_refused_before_anything_runs(monkeypatch):
    asked = run("attributes symmetry templates fill served")
    asked.rows[0]["_line"] = "2"
    variable = asked.settings.api.url_variable
    monkeypatch.delenv(variable, raising=False)
    with pytest.raises(TableError, match=f"line 2: set the environment variable {variable}"):
        check(asked)
    monkeypatch.setenv(variable, "http://127.0.0.1:8000/v1")
    check(asked)


def test_answers_of_a_server_depend_on_its_address(monkeypatch):
    """Only those: a row whose address was corrected kept the answers of the other server."""
    variable = run().settings.api.url_variable
    for address in ("http://127.0.0.1:8000/v1", "http://127.0.0.1:9000/v1"):
        monkeypatch.setenv(variable, address)
        assert models.server_url(run(), "served") == address
        assert models.server_url(run(), "small") == ""


def test_the_report_has_the_probed_sections_in_printing_order():
    def sections(*rows: str) -> list[str]:
        settings = replace(Settings(), comparisons=("bear",))
        found = tables.sections(run(*rows, settings=settings))
        return [Path(path).stem for path in found]

    assert sections() == ["sources"]
    row = "attributes symmetry templates fill small"
    assert sections(row) == ["sources", "attributes"]
    assert sections(row, "bear lama templates sentence small")[0] == "bear"


def test_tables_require_the_files_of_their_benchmarks():
    asked = run(
        "bear world_lite templates sentence control",
        "bear lama templates sentence small",
        "autoprompt auto_world manual predict small",
    )
    assert tables.has_controls(asked)
    assert tables.funnels(asked) == ["<results>/benchmarks/world_big/funnel.parquet"]
    assert tables.results_files(asked) == [
        f"<results>/tables/{paper}.parquet" for paper in ("bear", "autoprompt")
    ]
    names = [path.split("/", 2)[2] for path in tables.list_question_files(asked)]
    lists = ["world_lite/items.parquet", "lama/items.parquet", "auto_world/examples.parquet"]
    assert names == lists
    assert len(tables.list_question_files(asked, "candidates", "prompts")) == 4
    assert tables.side_files(asked) == [
        f"<results>/benchmarks/{origin}_big/aliases.parquet" for origin in ("bear", "world")
    ]


def test_concurrent_jobs_fit_into_the_machine_s_memory(monkeypatch, tmp_path):
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") >> 20
    assert 0 < models.memory_mb() <= total
    assert models.limits(True) == {
        "sparql": 1, "api": 1, "downloads": 2, "gpu": 1, "mem_mb": models.memory_mb()
    }  # fmt: skip
    # a cluster has separate memory and accelerators
    assert models.limits(False) == {"sparql": 1, "api": 1, "downloads": 2}
    read = Path.read_text
    for text, expected in (("max", total), (f"{300 << 20}", 300)):
        monkeypatch.setattr(
            Path, "read_text", lambda path, text=text: text if "cgroup" in str(path) else read(path)
        )
        assert models.memory_mb() == expected


def test_amber_s_file_is_an_input_that_must_exist(tmp_path, monkeypatch):
    """As an input its edits rebuild the benchmark, and a wrong path is reported before any job."""

    def inputs(**ambiguous: str) -> list[str]:
        chosen = Settings(attributes=Attributes(ambiguous=Ambiguous(**ambiguous)))
        return attributes.amber_sets(chosen)

    path = tmp_path / "amber.jsonl"
    path.write_text("{}\n")
    monkeypatch.setenv("PLACE", str(tmp_path))
    assert inputs(source="amber", amber_sets="${PLACE}/amber.jsonl") == [str(path)]
    assert inputs(amber_sets="missing") == []
    with pytest.raises(ConfigError, match="amber_sets: missing, needed where source is amber"):
        inputs(source="amber")
    with pytest.raises(ConfigError, match="no such file or folder: missing"):
        inputs(source="amber", amber_sets="missing")

"""`kgprobe init`: three files to start a run, or a one-sentence error and no files."""

import json
import os
import shutil
from pathlib import Path

import polars as pl
import pytest
import yaml
from typer.testing import CliRunner

from kgprobe import config, experiments
from kgprobe.cli import app
from kgprobe.settings.types import LANGUAGES
from kgprobe.sources.graphs import read
from kgprobe.workflow.run import read_run
from tests.unit.tiny_models import save, tiny

ROOT = Path(__file__).parents[2]
FACTS = "subject,relation,object\nFrance,capital,Paris\nNew York,lies in,United States\n"


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> Path:
    return save(tiny("bert", double=False), tmp_path_factory.mktemp("models") / "m")


@pytest.fixture
def start(tmp_path, monkeypatch, model):
    """Run `kgprobe init` in an empty folder that contains a model `m`."""
    monkeypatch.chdir(tmp_path)
    Path("m").symlink_to(model)

    def typed(name="mine", facts="facts.csv", model="./m", *words):
        return CliRunner().invoke(app, ["init", name, "--facts", facts, "--model", model, *words])

    return typed


def refused(done, message: str, *files: str) -> None:
    """Check for a one-line error, and that the folder contains only these files."""
    assert (done.exit_code, done.stdout) == (1, ""), done.output
    assert done.stderr.startswith("kgprobe: ")
    assert done.stderr.count("\n") == 1, done.stderr
    assert message in done.stderr, done.stderr
    assert sorted(path.name for path in Path().iterdir()) == sorted([*files, "m"])


def facts_of(name: str) -> set[tuple[str, ...]]:
    """Return the facts read by a run of the written configuration."""
    section = config.settings_of([f"{name}/config.yaml"]).sources.graphs[name]
    columns = ("subject_label", "relation", "object_label")
    return set(read.read(name, section, LANGUAGES)["facts"].select(columns).rows())


EXPECTED_FACTS = {("France", "capital", "Paris"), ("New York", "lies in", "United States")}


def test_names_that_are_not_utf8_are_reported(start):
    """The message was Python's on a codec, without the name."""
    latin = os.fsdecode("pays-\u00e9.csv".encode("latin-1"))
    Path(latin).write_text(FACTS)
    refused(start(facts=latin), r"'pays-\udce9' is not UTF-8; expected text, or a name", latin)


def test_single_fact_is_counted_in_the_singular(start):
    Path("facts.csv").write_text("".join(FACTS.splitlines(keepends=True)[:2]))
    assert start().stdout.startswith("facts.csv: 1 fact of 1 relation\n")


def test_three_files_are_written_and_describe_a_valid_run(start):
    Path("facts.csv").write_text(FACTS)
    done = start()
    assert done.exit_code == 0, done.output
    *counts, following, last = done.stdout.splitlines()
    assert counts[0] == "facts.csv: 2 facts of 2 relations"
    assert following == "Next: kgprobe run mine/config.yaml --cores 2"
    assert "results/mine/report/index.html" in last
    assert sorted(path.name for path in Path("mine").iterdir()) == [
        "config.yaml", "experiments.tsv", "models.tsv",
    ]  # fmt: skip
    settings = config.settings_of(["mine/config.yaml"])
    run = read_run(settings)
    assert (settings.run.name, settings.sources.graphs["mine"].files) == ("mine", ("facts.csv",))
    (row,) = run.rows
    assert (row["benchmark"], row["model"]) == ("mine_lite", "m")
    assert run.models["m"]["source"] == "folder:m"
    assert (run.models["m"]["kind"], run.models["m"]["bos"]) == ("masked", "-")
    assert facts_of("mine") == EXPECTED_FACTS
    # this configuration is checked, whatever its file name
    assert CliRunner().invoke(app, ["validate", "mine/config.yaml"]).stdout.startswith("run mine:")


@pytest.mark.parametrize(("kind", "found", "bos"), [("llama", "causal", "forced"),
                                                    ("t5", "seq2seq", "-")])  # fmt: skip
def test_kind_is_detected_from_the_model_configuration(start, kind, found, bos):
    Path("facts.csv").write_text(FACTS)
    save(tiny(kind, double=False), "my model")
    output = json.loads(start("my-graph", "facts.csv", "my model", "--json").stdout)
    assert (output["kind"], output["model"], output["facts"]) == (found, "my-model", 2)
    run = read_run(config.settings_of(["my-graph/config.yaml"]))
    assert run.models["my-model"]["bos"] == bos
    assert run.models["my-model"]["source"] == "folder:my model"
    assert run.probed() == ["my_graph_lite"]


def test_row_of_the_model_table_is_used_unchanged(start, monkeypatch):
    Path("facts.csv").write_text(FACTS)
    assert start(model="control-causal").exit_code == 0
    own = read_run(config.settings_of(["mine/config.yaml"])).models["control-causal"]
    known = config.models_of(config.settings_of([]))["control-causal"]
    assert own == {key: known[key] for key in own} | {"_line": "2"}
    assert known["parameters"] == own["parameters"] == "1"
    # servers do not return sentence probabilities
    models = "model\tkind\tsource\tdtype\tbos\nserved\tapi\tapi:served\tfloat32\t-\n"
    Path("config").mkdir()
    Path("config/models.tsv").write_text(models)
    refused(start("other", model="served"), "valid kinds: masked", "config", "facts.csv", "mine")


@pytest.mark.parametrize(
    ("file", "data"),
    [
        ("facts.csv", FACTS.replace("\n", "\r\n").encode()),
        ("facts.csv", b"\xef\xbb\xbf" + FACTS.encode()),
        ("facts.csv", FACTS.replace("New York", "New\u2028York").encode()),
        ("facts.csv", FACTS.replace("\n", "  \n").replace(",", " , ").encode()),
        ("facts.csv", (FACTS + "\n  \n\n").encode()),
        ("facts.tsv", FACTS.replace(",", "\t").encode()),
        ("facts.TXT", FACTS.replace(",", "\t").encode()),
        ("my facts: 100 %.csv", FACTS.encode()),
    ],
)
def test_files_of_other_programs_are_read(start, file, data):
    Path(file).write_bytes(data)
    done = start(facts=file)
    assert done.exit_code == 0, done.output
    assert facts_of("mine") == EXPECTED_FACTS


def test_parquet_and_rdf_are_detected_by_suffix(start):
    rows = [line.split(",") for line in FACTS.splitlines()[1:]]
    columns = ["subject", "relation", "object"]
    pl.DataFrame(rows, schema=columns, orient="row").write_parquet("facts.parquet")
    assert start("one", "facts.parquet").exit_code == 0
    assert facts_of("one") == EXPECTED_FACTS
    Path("facts.ttl").write_text(
        "@prefix : <http://x.org/> . @prefix l: <http://www.w3.org/2000/01/rdf-schema#> .\n"
        ':France :capital :Paris ; l:label "France" . :Paris l:label "Paris" .\n'
        ':capital l:label "capital" .\n'
    )
    assert start("two", "facts.ttl").exit_code == 0
    assert facts_of("two") == {("France", "http://x.org/capital", "Paris")}


@pytest.mark.parametrize(
    ("file", "text", "said"),
    [
        ("facts.csv", FACTS.split("\n", 1)[1], "expected a first line with subject"),
        ("facts.csv", "subject,object\nFrance,Paris\n", "no column 'relation' in its first line"),
        ("facts.csv", "France,Paris\n", "no column 'subject', 'relation', 'object'"),
        ("facts.csv", FACTS.replace(",", ";"), "commas separate the cells of a .csv, tabs those"),
        ("facts.tsv", FACTS, "commas separate the cells of a .csv, tabs those of a .tsv"),
        (
            "facts.csv",
            FACTS + f"{'x' * 200_000},capital,Rome\n",
            "a cell of more than 131,072 characters; a cell with quotes stands in quotes",
        ),
        ("facts.csv", FACTS + '"Rome,capital,Italy\n', "one that is never closed takes in"),
        ("facts.csv", FACTS + "Rome,capital\n", "facts.csv, line 4: 2 cells, expected 3"),
        ("facts.csv", "", "facts.csv: empty; expected rows of subject, relation, object"),
        ("facts.csv", "\n \n", "facts.csv: empty; expected rows of subject, relation, object"),
        ("facts.csv", "subject,relation,object\n", "no statement in facts.csv"),
        ("facts.xlsx", "subject\n", "valid endings: .csv, .tsv, .txt, .parquet, .jsonl"),
        ("facts.jsonl", '{"subject": "a"}\n', "no line has 'relation', 'object'; expected objects"),
        ("facts.parquet", "no parquet", "facts.parquet: not a readable parquet file"),
    ],
)
def test_unreadable_facts_raise_one_sentence(start, file, text, said):
    Path(file).write_text(text)
    refused(start(facts=file), said, file)


def test_missing_facts_raise_one_sentence(start):
    refused(start(), "facts.csv: no such file; expected")
    Path("facts").mkdir()
    refused(start(facts="facts"), "facts: a folder; expected", "facts")
    for coding in ("utf-16", "latin-1"):
        Path("facts.csv").write_bytes(FACTS.replace("Paris", "Orléans").encode(coding))
        done = start()
        refused(done, "is not UTF-8; save the file as UTF-8", "facts", "facts.csv")
        assert "quotes" not in done.stderr


def test_invalid_model_raises_one_sentence(start, model):
    Path("facts.csv").write_text(FACTS)
    for missing in ("tokenizer", "config"):
        Path(missing).mkdir()
        for path in model.iterdir():
            if not path.name.startswith(missing):
                (Path(missing) / path.name).symlink_to(path)
        there = ("facts.csv", *(name for name in ("tokenizer", "config") if Path(name).exists()))
        refused(start(model=missing), f"{missing}: a model's folder without {missing}", *there)
    refused(start(model="./n"), "./n: no such folder (did you mean './m'?)", *there)
    for name in ("facts.csv", "./m/config.json", "folder:m/config.json"):
        path = name.removeprefix("folder:")
        refused(start(model=name), f"{path}: a file; expected a model's folder", *there)
    refused(start(model="gguf:no-package"), "the package no-package is not installed", *there)
    headless = json.loads((model / "config.json").read_text()) | {"architectures": ["BertModel"]}
    (Path("config") / "config.json").write_text(json.dumps(headless))
    refused(start(model="config"), "BertModel in config.json is not a known language model", *there)


@pytest.mark.parametrize(
    ("name", "kept", "words"),
    [
        # a half-copied model was described as a valid one, and only the run failed
        ("tokenizer.json", 0.5, ("half/tokenizer.json, line ", "the file is damaged")),
        # 8 bytes with the length of the header, the header, the tensors
        *(("model.safetensors", kept, ("half/model.safetensors: ", "the file is truncated"))
          for kept in (4, 500, -1)),
    ],
)  # fmt: skip
def test_a_damaged_model_is_reported_before_a_run(start, model, name, kept, words):
    Path("facts.csv").write_text(FACTS)
    shutil.copytree(model, "half")
    data = Path("half", name).read_bytes()
    Path("half", name).write_bytes(data[: len(data) // 2 if kept == 0.5 else kept])
    refused(start(model="./half"), words[0], "facts.csv", "half")
    assert words[1] in start(model="./half").stderr


def test_braces_in_paths_raise_before_becoming_wildcards(start, model):
    Path("{x}.csv").write_text(FACTS)
    refused(start(facts="{x}.csv"), "{x}.csv: braces in a path are Snakemake's wi", "{x}.csv")
    Path("{x}.csv").rename("facts.csv")
    Path("m{1}").symlink_to(model)
    message = "m{1}: braces in a path are Snakemake's wildcards; rename it"
    refused(start(model="./m{1}"), message, "facts.csv", "m{1}")


@pytest.mark.parametrize("kind", ["folder", "file", "link"])
def test_existing_files_are_kept(start, kind):
    Path("facts.csv").write_text(FACTS)
    if kind == "folder":
        Path("mine").mkdir()
        Path("mine/config.yaml").write_text("mine")
    elif kind == "file":
        Path("mine").write_text("mine")
    else:
        Path("mine").symlink_to("nowhere")
    refused(start(), "mine already exists", "facts.csv", "mine")
    if kind == "folder":
        assert Path("mine/config.yaml").read_text() == "mine"
        assert os.listdir("mine") == ["config.yaml"]


def test_existing_folder_in_a_clone_is_named_as_such(start, monkeypatch):
    """There the working folder is the project's own, in which nothing can be hidden."""
    Path("facts.csv").write_text(FACTS)
    monkeypatch.setattr("kgprobe.files.ROOT", Path.cwd())
    Path("mine").mkdir()
    refused(start(), "mine already exists and is not overwritten", "facts.csv", "mine")


@pytest.mark.parametrize("name", ["a/b", "..", "mine.", "world", "wikidata", "2020", "onto_x",
                                  "my_lite", "my graph", "", "config", "resources"])  # fmt: skip
def test_invalid_names_raise_one_sentence(start, name):
    Path("facts.csv").write_text(FACTS)
    refused(start(name), "cannot name a graph; valid: small letters", "facts.csv")


def test_interruption_leaves_no_files(start, monkeypatch):
    Path("facts.csv").write_text(FACTS)

    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    refused(start(), "No space left on device", "facts.csv")


def test_first_line_refers_editors_to_the_schema(start):
    Path("facts.csv").write_text(FACTS)
    start()
    first = Path("mine/config.yaml").read_text().splitlines()[0]
    place = first.removeprefix("# yaml-language-server: $schema=file://")
    assert experiments.read_schema(place) == config.document()
    assert yaml.safe_load(Path("mine/config.yaml").read_text())["run"] == {"name": "mine"}
    # in a clone the path is relative
    Path("workflow/schemas").mkdir(parents=True)
    Path("workflow/schemas/config.schema.json").write_text("{}")
    assert config.schema_line("mine").endswith("$schema=../workflow/schemas/config.schema.json\n")

"""The command for a new user: empty folder, names, bad input, narrow terminals."""

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path
from types import ModuleType

import polars as pl
import pytest
from typer.testing import CliRunner

import kgprobe
from kgprobe import __main__, library, schema
from kgprobe.cli import app, asking, comparing, kept, names, screen, tracing
from kgprobe.contracts import SETTING
from kgprobe.job import sha256
from kgprobe.metrics.intervals import Interval
from kgprobe.probes.models.load import usual_bos
from kgprobe.tables import results
from kgprobe.tables.report import said
from kgprobe.tables.report.measured import fingerprint
from kgprobe.tables.results import Number
from tests.unit.literal_scores import row_sum
from tests.unit.study_frames import benchmark, write_benchmark
from tests.unit.tiny_models import save, tiny

SOURCE = str(Path(kgprobe.__file__).parents[1])
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> Path:
    return save(tiny("llama", double=False), tmp_path_factory.mktemp("models") / "tiny-llama")


@pytest.fixture
def typed(tmp_path, monkeypatch):
    """Return the result of a command in an empty folder; its reports have no plots."""
    monkeypatch.setattr(kept, "figures", lambda *_: [])
    monkeypatch.chdir(tmp_path)
    return lambda *words: CliRunner().invoke(app, [str(word) for word in words])


def process(*words, cwd=None, stdout=subprocess.PIPE, shell="", **environment):
    """Run the command in a process with only these environment variables; `shell` follows it."""
    known = {"PATH": os.environ["PATH"], "PYTHONPATH": SOURCE, "HF_HUB_OFFLINE": "1"}
    command = [sys.executable, "-m", "kgprobe.cli", *map(str, words)]
    return subprocess.run(
        f"{shlex.join(command)} {shell}" if shell else command, shell=bool(shell), cwd=cwd,
        env=known | environment, stdout=stdout, stderr=subprocess.PIPE, encoding="utf-8",
        timeout=120,
    )  # fmt: skip


def test_advice_of_transformers_is_not_printed():
    """Causal models are asked without an attention mask, which is right for padding at the end."""
    words = ["The capital of [X] is [Y].", "-x", "France", "-o", "Paris", "-o", "Rome"]
    done = process("ask", ROOT / "resources/control/causal", *words)
    assert done.stdout.splitlines()[0].split() == ["option", "score", "probability"]
    assert done.stderr == ""


#: the screen of a first probe
FIRST = r"""world_lite: 30 items; accuracy in % with its 95 % interval

model +accuracy +SEM +correct in all
tiny-llama +\d+\.\d \[\d+\.\d, \d+\.\d\] +\d+\.\d +\d+\.\d \[\d+\.\d, \d+\.\d\]
random +\d+\.\d +- +-
majority +\d+\.\d +- +-

SEM: standard error over the templates, in points\.

correct in all: items right under every template, in %\.

report: results/tiny-llama-world_lite-limit30/report/index\.html
"""


def test_first_probe_at_sixty_columns_with_an_unwritable_home(model, tmp_path):
    words = ("probe", model, "--on", "world_lite", "--limit", 30)
    done = process(*words, cwd=tmp_path, HOME="/proc", COLUMNS="60")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0].startswith("world_lite: 30 items; accuracy")
    assert all(len(line) <= 62 for line in lines[:-1]), lines
    assert "tiny-llama" in (tmp_path / lines[-1].removeprefix("report: ")).read_text()
    # only progress, no message of a library that wants to write to the home folder
    assert re.fullmatch(FIRST, done.stdout), done.stdout
    assert all(re.match(r"(Loading weights|world_lite|tiny-llama|scor)", line)
               for line in re.split(r"[\r\n]+", done.stderr) if line), done.stderr  # fmt: skip


def test_first_line_is_printed_before_heavy_imports(model, typed, monkeypatch):
    def refuse():
        raise RuntimeError("torch is imported now")

    monkeypatch.setattr(asking, "import_library", refuse)
    for limit, count in ((7, "7"), (2000, "468")):
        done = typed("probe", model, "--on", "world_lite", "--limit", limit)
        assert done.stderr.splitlines() == [
            f"world_lite: loading tiny-llama to ask {count} questions",
            "kgprobe: torch is imported now",
        ]


def test_a_sample_is_of_the_questions_that_have_a_template(model, typed, tmp_path):
    whole = kgprobe.benchmark("world_lite")
    relations = {"P36": "The capital of [X] is [Y].", "P30": "[X] lies in [Y]."}
    every = dict.fromkeys(whole.items["relation"], "[X] is [Y].")
    for texts, limit, count in (
        (relations, 7, 7),
        (relations, 2000, whole.items["relation"].is_in(list(relations)).sum()),
        (every, 5, 5),
    ):
        (tmp_path / "texts.json").write_text(json.dumps(texts))
        asked = ("--on", "world_lite", "--limit", limit, "--prompt", "texts.json")
        done = typed("probe", model, *asked, "--json")
        assert done.exit_code == 0, done.output
        assert done.stderr.startswith(f"world_lite: loading tiny-llama to ask {count} questions")
        output = json.loads(done.stdout)
        assert output["n"] == sum(row["n"] for row in output["relations"]) == count
        assert {row["relation"] for row in output["relations"]} <= set(texts)


def test_printed_values_equal_the_library_and_are_saved(model, typed, tmp_path):
    done = typed("probe", model, "--on", "world_lite", "--limit", 30, "--prompt", 1, "--json")
    assert done.exit_code == 0, done.output
    output = json.loads(done.stdout)
    asked = kgprobe.benchmark("world_lite").sampled(30)
    expected = kgprobe.probe(model, asked, "1").table().row(0, named=True)
    assert output["n"] == 30
    assert (output["accuracy"], output["low"]) == (expected["accuracy"], expected["low"])
    written = results.read([tmp_path / "results" / output["run"] / "tables" / "bear.parquet"])
    selected = written.filter(
        results.plain(), model="tiny-llama", metric="accuracy", group="", slice=""
    )
    assert selected["value"].to_list() == [output["accuracy"]]
    (run,) = json.loads(typed("list", "runs", "--json").stdout)
    assert (run["run"], run["tables"]) == (output["run"], "bear")


def test_mismatched_options_or_templates_are_reported(model, typed, tmp_path):
    asked = kgprobe.benchmark("world_lite").sampled(9)
    item = asked.items.sort("item").row(0, named=True)
    others = {
        "candidates": asked.candidates.filter(pl.col("set") != item["candidates"]),
        "gap": asked.candidates.filter(pl.col("index") != 1),
        "prompts": asked.prompts.filter(pl.col("relation") != item["relation"]),
    }
    for name, golds in (("items", [99]), ("none", []), ("twice", [0, 0])):
        others[name] = asked.items.with_columns(answers=pl.lit(golds, dtype=pl.List(pl.Int32)))
    for name, meta in (
        ("meta", "[1]"), ("count", '{"sitelinks": "many"}'), ("below", '{"statements": -1}')
    ):  # fmt: skip
        others[name] = asked.items.with_columns(meta=pl.lit(meta))
    tables = {"candidates": "candidates", "gap": "candidates", "prompts": "prompts"}
    for name, frame in others.items():
        asked.write(tmp_path / name)
        frame.write_parquet(tmp_path / name / f"{tables.get(name, 'items')}.parquet")
    options = asked.candidates.filter(set=item["candidates"]).height
    of = f"items.parquet: item {item['item']}: its"
    for name, message in (
        ("candidates", f"{of} set of options '{item['candidates']}' is not in candidates.parquet"),
        ("items", f"{of} right answer, option 99 of '{item['candidates']}', is not in candidates"),
        (
            "gap",
            f"{of} {options - 1} options '{item['candidates']}' have the indices 0 to "
            f"{options - 1}; expected 0, 1, 2",
        ),
        ("none", f"{of} right answers are []; expected at least one, each once"),
        ("twice", f"{of} right answers are [0, 0]; expected at least one, each once"),
        ("meta", f"{of} meta is '[1]'; expected a JSON object, as {{}}"),
        (
            "count",
            f"""{of} meta is '{{"sitelinks": "many"}}'; expected a JSON object, as {{}}, """
            "where sitelinks, statements, popularity are whole numbers",
        ),
        ("below", f"""{of} meta is '{{"statements": -1}}'; expected a JSON object"""),
    ):
        for words in (("show", name), ("export", name, "--as", "huggingface", "--to", "out")):
            done = typed(*words)
            assert done.exit_code == 1
            assert done.stderr.startswith(f"kgprobe: {name}/{message}")
    asked.prompts.with_columns(index=pl.lit(0, dtype=pl.Int32)).write_parquet(
        tmp_path / "none" / "prompts.parquet"
    )
    asked.items.write_parquet(tmp_path / "none" / "items.parquet")
    message = f"kgprobe: none/prompts.parquet: relation {asked.prompts['relation'][0]} has index 0"
    assert typed("show", "none").stderr.startswith(message)
    assert typed("show", "prompts").exit_code == 0
    done = typed("probe", model, "--on", "prompts")
    assert f"kgprobe: relation {item['relation']}: no template for its" in done.stderr


def test_answers_of_another_model_or_benchmark_are_not_overwritten(model, typed, tmp_path):
    for name, kind in (("a", "llama"), ("b", "gpt2"), ("c", "bert")):
        save(tiny(kind, double=False), tmp_path / name / "final")
    asked = ("--on", "world_lite", "--limit", 9)
    assert typed("probe", "a/final", *asked).exit_code == 0
    for _ in range(2):
        assert typed("probe", "c/final", *asked, "--name", "masked").exit_code == 0
    run = tmp_path / "results" / "final-world_lite-limit9"
    before = (run / "tables/bear.parquet").read_bytes()
    other = tmp_path / "other"
    kgprobe.benchmark("world_lite").sampled(9).write(other)
    for words in (("b/final", *asked), ("a/final", "--on", other, "--name", run.name)):
        done = typed("probe", *words)
        assert done.exit_code == 1
        assert done.stderr.splitlines()[-1] == (
            f"kgprobe: results/{run.name} has answers of folder:a/final to 9 questions of "
            "world_lite (--prompt templates, --method sentence, BOS policy forced), which would be "
            "lost; choose another --name"
        )
    (tmp_path / "texts.json").write_text('{"P36": "[Y] is the capital of [X]."}')
    for words in (("--prompt", 1), ("--method", "sentence-sum"), ("--bos", "none"),
                  ("--limit", 8), ("--prompt", "texts.json")):  # fmt: skip
        done = typed("probe", "a/final", *asked, *words, "--name", run.name)
        assert "would be lost; choose another --name" in done.stderr, words
    # other weights in the same folder
    (tmp_path / "a/final").rename(tmp_path / "kept")
    (tmp_path / "b/final").rename(tmp_path / "a/final")
    assert "to 9 questions" in typed("probe", "a/final", *asked).stderr
    (tmp_path / "a/final").rename(tmp_path / "b/final")
    (tmp_path / "kept").rename(tmp_path / "a/final")
    assert (run / "tables/bear.parquet").read_bytes() == before
    # the same weights under another path, and the same command again
    (tmp_path / "a").rename(tmp_path / "moved")
    done = typed("probe", "moved/final", *asked)
    assert done.exit_code == 0, done.stderr


def test_report_shows_the_command_to_repeat_the_probe(model, typed, tmp_path, monkeypatch):
    save(tiny("llama", double=False), tmp_path / "my model")
    kgprobe.benchmark("world_lite").sampled(9).write(tmp_path / "sets" / "mine")
    words = ("my model", "--on", "sets/mine", "--limit", 5, "--prompt", 1, "--bos", "none")
    assert typed("probe", *words).exit_code == 0
    page = next(tmp_path.glob("results/*/report/index.html"))
    command = (
        "kgprobe probe &#39;my model&#39; --on sets/mine --limit 5 --prompt 1 --method sentence "
        "--bos none --name my-model-mine-limit5-1-bos-none"
    )
    assert command in page.read_text()
    # the working folder also has a name
    monkeypatch.chdir(model)
    done = typed("probe", ".", "--on", "world_lite", "--limit", 5, "--json")
    assert done.stderr.startswith("world_lite: loading tiny-llama to ask 5 questions")
    assert json.loads(done.stdout)["run"] == "tiny-llama-world_lite-limit5"
    shutil.rmtree("results")


def test_runs_are_compared_by_pairs(model, typed, tmp_path, monkeypatch):
    other = tmp_path / "other"
    save(tiny("gpt2", double=False), other)
    asked = ("--on", "world_lite", "--limit", 60)
    for name, path in (("one", model), ("two", other), ("again", model)):
        assert typed("probe", path, *asked, "--name", name).exit_code == 0
    (pair,) = json.loads(typed("compare", "one", "two", "--json").stdout)["paired"]
    sampled = kgprobe.benchmark("world_lite").sampled(60)
    probed, theirs = (kgprobe.probe(path, sampled) for path in (model, other))
    # exact: the same judged answers, paired by question
    difference = probed.table()["accuracy"][0] - theirs.table()["accuracy"][0]
    assert pair["difference"] == pytest.approx(difference, abs=1e-9)
    assert pair["low"] <= pair["difference"] <= pair["high"]
    assert pair["n"] == 60
    same = json.loads(typed("compare", "one", "again", "--json").stdout)
    assert same["paired"] == same["moved"] == []
    assert same["both"] > 20
    # with a smaller sample, only questions of both runs are compared
    assert typed("probe", model, *asked[:-1], 30, "--name", "less").exit_code == 0
    (pair,) = json.loads(typed("compare", "less", "two", "--json").stdout)["paired"]
    items = kgprobe.benchmark("world_lite").sampled(30).items["item"].implode()
    hits = [f.answers.filter(pl.col("item").is_in(items))["hit"].mean() for f in (probed, theirs)]
    assert pair["difference"] == pytest.approx(100 * (hits[0] - hits[1]), abs=1e-9)
    assert pair["n"] == 30
    # a graph with more facts about its subjects leaves the questions unchanged
    newer = tmp_path / "results/newer"
    shutil.copytree(tmp_path / "results/two", newer)
    place = newer / "benchmarks/world_lite/items.parquet"
    items = schema.read(place, schema.ITEMS).with_columns(meta=pl.lit('{"sitelinks": 7}'))
    schema.write(items.with_columns(row=pl.col("row") + 1), schema.ITEMS, place)
    assert json.loads(typed("compare", "less", newer, "--json").stdout)["paired"] == [pair]
    shutil.rmtree(newer)
    assert comparing._pair({**pair, "difference": -0.04})["difference"].startswith("0.0 [")
    # a changed number uses the smaller number of items of both runs
    moved = json.loads(typed("compare", "less", "one", "--json").stdout)["moved"]
    whole = {"model": "tiny-llama", "metric": "accuracy", "group": "", "slice": ""}
    whole |= dict.fromkeys(SETTING, "")
    assert [row["n"] for row in moved if whole.items() <= row.items()] == [30]
    assert "†: fewer than 20 rows" in typed("compare", "less", "one").stdout
    # on a narrow screen no word is truncated
    monkeypatch.setenv("COLUMNS", "60")
    shown = typed("compare", "less", "two").stdout
    rows = shown.partition("\nnumbers in both runs")[0].splitlines()
    assert rows[0].split() == ["accuracy", "difference", "p", "n"]
    names = [row[: rows[0].index("difference") - 2].strip() for row in rows[1:]]
    assert " ".join(names).rstrip() == "world_lite: tiny-llama less other"
    assert f"{pair['difference']:.1f} [{pair['low']:.1f}, {pair['high']:.1f}]" in rows[1]
    moved = typed("compare", "less", "one").stdout.partition("\nnumber ")[2].splitlines()
    assert moved[0].split() == ["first", "second", "n"]
    assert any(row.startswith("tiny-llama, templates, sentence, MRR") for row in moved)
    assert max(len(row) for row in [*rows, *moved] if not row.startswith("†")) <= 60
    runs = typed("list", "runs").stdout.splitlines()
    assert [row.split() for row in runs] == [
        ["run", "tables", "report"],
        *([name, "bear", "yes"] for name in ("again", "less", "one", "two")),
        ["report:", "results/RUN/report/index.html"],
    ]
    done = typed("compare", "one", "tow")
    assert done.exit_code == 1
    assert "did you mean 'two'?" in done.stderr


def test_incomparable_pairs_are_listed_beside_the_others(model, typed, tmp_path):
    save(tiny("gpt2", double=False), tmp_path / "other")
    for name, path in (("one", model), ("two", tmp_path / "other")):
        assert (
            typed("probe", path, "--on", "world_lite", "--limit", 5, "--name", name).exit_code == 0
        )
        run = Path("results", name)
        shutil.copytree(run / "benchmarks/world_lite", run / "benchmarks/more")
        rows = schema.read(run / "judged/bear.parquet", schema.JUDGED)
        # the second run used other templates for this pair
        moved = pl.concat_str(pl.lit("1" * (name == "two")), "template").alias("template")
        rows = rows.with_columns(moved, benchmark=pl.lit("more"))
        schema.write(rows, schema.JUDGED, run / "judged/more.parquet", {"rule": "test"})
    compared = json.loads(typed("compare", "one", "two", "--json").stdout)
    assert [row["benchmark"] for row in compared["paired"]] == ["world_lite"]
    (refused,) = compared["refused"]
    assert (refused["benchmark"], refused["model"], refused["instead"]) == (
        "more", "tiny-llama", "other",
    )  # fmt: skip
    assert "other items or templates" in refused["reason"]
    shown = " ".join(typed("compare", "one", "two").stdout.split())
    assert "not compared: more, tiny-llama less other: other: other items or templates" in shown
    # when no pair can be compared
    for name in ("one", "two"):
        Path("results", name, "judged/bear.parquet").unlink()
    done = typed("compare", "one", "two")
    assert done.exit_code == 1
    assert "other items or templates" in done.stderr


def test_names_to_type_are_not_truncated_on_narrow_screens(typed, monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    rows = json.loads(typed("list", "models", "--json").stdout)
    shown = {row.split(" ")[0] for row in typed("list", "models").stdout.splitlines()}
    assert max(len(row["model"]) for row in rows) > 20
    assert {row["model"] for row in rows} <= shown


def accuracy_of(questions):
    """Return the percentage of templates under which the top option is right."""
    hits = [option in one["right"] for one in questions for option in one["chosen"]]
    return pytest.approx(100 * sum(hits) / len(hits))


def test_numbers_are_traced_to_questions_and_files(model, typed, tmp_path, capsys):
    assert typed("probe", model, "--on", "world_lite", "--limit", 60, "--name", "x").exit_code == 0
    folder = tmp_path / "results/x"
    rows = results.read([folder / "tables/bear.parquet"])
    own = {"model": "tiny-llama", "metric": "accuracy"}
    value = rows.filter(results.plain(), group="", slice="", **own)["value"].item()
    where = [word for key, name in own.items() for word in ("-w", f"{key}={name}")]
    whole = ["trace", f"{value:.1f}", "--run", "x", "--exact", *where]
    (result,) = json.loads(typed(*whole, "--items", 60, "--json").stdout)
    assert result["value"] == value
    assert len(result["questions"]) == result["n"] == 60
    assert {len(one["chosen"]) for one in result["questions"]} == {3}
    assert value == accuracy_of(result["questions"])
    assert {file["state"] for file in result["files"]} == {"as it was"}
    # numbers by cardinality, and those of the majority, are computed from them
    files = {file["file"] for file in result["files"]}
    assert files >= {f"benchmarks/world_lite/{name}.parquet" for name in ("relations", "golds")}
    assert any(file["file"].startswith("scores/") for file in result["files"])
    # the number of one template shows the option chosen under that template
    for template in ("0", "1", "2"):
        number = rows.filter(template=template, group="", slice="", **own)["value"].item()
        words = [*whole[2:], "-w", f"template={template}", "--items", 60, "--json"]
        (result,) = json.loads(typed("trace", f"{number:.1f}", *words).stdout)
        assert {len(one["chosen"]) for one in result["questions"]} == {1}
        assert number == accuracy_of(result["questions"])
    # a template that is known by a name is not a number of one
    named = {**rows.filter(**own).row(0, named=True), "template": "m1"}
    assert tracing._questions(folder, named, 1)
    # no file of the run lists which questions control models were trained on
    for metric in ("trained-on", "chance for held-out"):
        of_half = {**named, "template": "", "metric": metric, "questions": [], "files": []}
        assert tracing._questions(folder, of_half, 1) == []
        for most in (0, 1):
            tracing._say([of_half], 1, most)
            noted = f"does not store which questions are in {metric!r}" in capsys.readouterr().out
            assert noted == bool(most)
    # the questions OntoProbe uses to choose a configuration do not enter a number
    shutil.copytree(folder / "benchmarks", tmp_path / "dev/benchmarks")
    path = tmp_path / "dev/benchmarks/world_lite/items.parquet"
    items = schema.read(path, schema.ITEMS)
    role = pl.when(pl.col("item") == items["item"][0]).then(pl.lit("dev")).otherwise(pl.lit("test"))
    schema.write(items.with_columns(role=role), schema.ITEMS, path)
    chosen = {**named, "paper": "ontoprobe", "group": "", "template": ""}
    asked = tracing._questions(tmp_path / "dev", chosen, 60)
    assert {one["item"] for one in asked} == set(items["item"][1:])
    # only the questions of one slice of the benchmark, with their n
    parts = rows.filter(pl.col("slice").str.contains("^(length|options|frequency): "),
                        results.plain(), model="tiny-llama", metric="accuracy")  # fmt: skip
    assert parts.height > 3
    for part in parts.rows(named=True):
        words = [*whole[2:], "-w", f"slice={part['slice']}", "--items", 60, "--json"]
        (result,) = json.loads(typed("trace", f"{part['value']:.4f}", *words).stdout)
        assert len(result["questions"]) == part["n"]
        assert part["value"] == accuracy_of(result["questions"])
    # a file with the same path in the working folder is not a file of the run
    shutil.copytree(folder / "benchmarks", tmp_path / "benchmarks")
    (folder / "benchmarks/world_lite/items.parquet").write_bytes(b"other")
    done = typed(*whole, "--items", 0)
    assert "changed since" in done.stdout
    assert "n 60" in done.stdout
    assert "†" not in done.stdout
    # a relation with few items, as it is printed with decimals
    few = rows.filter(pl.col("n").is_between(1, 19), results.plain(), model="tiny-llama",
                      metric="accuracy", slice="").row(0, named=True)  # fmt: skip
    words = ["--run", "x", *where, "-w", f"group={few['group']}", "--items", 0]
    done = typed("trace", f"{few['value']:.1f}", *words)
    assert f"n {few['n']} †\n" in done.stdout
    assert done.stdout.count("†: fewer than 20 rows") == 1
    assert typed("trace", "-1", "--run", "x").exit_code == 2
    for words, told in (
        ((), "printed as 101.3"),
        (("-w", "modell=y"), "did you mean 'model'?"),
        (("-w", "model=a", "-w", "model=b"), "--where has model=a and model=b"),
        (("-w", "metric=acuracy"), "no metric is 'acuracy' (did you mean 'accuracy'?)"),
    ):
        assert told in typed("trace", "101.3", "--run", "x", *words).stderr
    # RESULTS of another program have no provenance
    pl.read_parquet(folder / "tables/bear.parquet").write_parquet(folder / "tables/bear.parquet")
    assert typed(*whole, "--items", 0).exit_code == 0
    # the license of packaged questions is known for copies in any location
    path = folder / "benchmarks/world_big"
    kgprobe.benchmark("world_big").write(path)
    export = ("export", path, "--as", "lm-eval", "--to", tmp_path / "made", "--json")
    assert json.loads(typed(*export).stdout)["as"] == "lm-eval"


def write_judged(folder, answers, **values):
    """Write JUDGED of a paper; columns that are not given are empty."""
    values |= dict.fromkeys(schema.JUDGED.columns.keys() - set(answers.columns) - values.keys(), "")
    columns = {
        n: pl.lit(v or (None if n in schema.JUDGED.nullable else "")) for n, v in values.items()
    }
    rows = schema.cast_columns(answers.with_columns(**columns), schema.JUDGED)
    schema.write(rows, schema.JUDGED, folder / f"judged/{values['paper']}.parquet")


def traced_row(folder, paper, number, most):
    """Return the row of a number, and the questions behind it."""
    (row,) = results.frame(paper, [number]).rows(named=True)
    return row, tracing._questions(folder, row, most)


def test_only_questions_that_a_probe_was_asked_are_traced(tmp_path):
    """Multiple choice asks a sample of a task's rows: the others are not behind its number."""
    frames = benchmark({"TP": (["a", "b"], ["a", "b"] * 4)})
    frames["items"] = frames["items"].with_columns(role=pl.lit("test"))
    write_benchmark(frames, tmp_path / "benchmarks/onto")
    probe = {"benchmark": "onto", "model": "m", "prompt": "options", "method": "choice"}
    asked = ["TP/Qs2", "TP/Qs5", "TP/Qs7"]
    answers = pl.DataFrame({"item": asked, "hit": [1.0, 0.0, 1.0]})
    write_judged(tmp_path, answers, paper="ontoprobe", matching="any", scoring="letter",
                 relation="TP", answer="a", **probe)  # fmt: skip
    setting = {"scoring": "letter"}
    number = Number(metric="accuracy", group="TP", n=3, value=200 / 3, setting=setting, **probe)
    _, found = traced_row(tmp_path, "ontoprobe", number, 5)
    assert [one["item"] for one in found] == asked
    assert [one["hit"] for one in found] == [[1.0], [0.0], [1.0]]


@pytest.fixture
def repeated(tmp_path):
    """Write a benchmark of six rows, the last of which repeats the first, and a model's answers."""
    frames = benchmark({"TP": (["a", "b"], ["a", "b"] * 3)})
    meta = pl.Series(["{}"] * 5 + ['{"repeat": "TP/Qs0"}'])
    frames["items"] = frames["items"].with_columns(role=pl.lit("test"), meta=meta)
    write_benchmark(frames, tmp_path / "benchmarks/some")
    probe = {"benchmark": "some", "model": "m", "prompt": "templates", "method": "cloze"}
    answers = frames["items"].select("item", "relation", hit=pl.lit(1.0))
    for paper, matching in (("ontoprobe", "any"), ("attributes", "own")):
        write_judged(tmp_path, answers, paper=paper, matching=matching, answer="a", **probe)

    def traced(paper, **changes):
        number = Number(metric="R@1", value=100.0, **probe).but(**changes)
        row, questions = traced_row(tmp_path, paper, number, 9)
        return {**row, "questions": questions, "files": []}

    return traced


def test_a_trace_counts_repeated_rows_as_its_number_does(repeated):
    for n in (5, 6):
        questions = repeated("ontoprobe", n=n)["questions"]
        assert [one["item"] for one in questions] == [f"TP/Qs{i}" for i in range(n)]


def test_a_trace_shows_no_hits_of_another_number_of_answers(repeated):
    for k, alpha, hit in ((1, "exact", 1.0), (3, "exact", None), (1, "token_mean", None)):
        row = repeated("attributes", n=6, setting={"k": k, "alpha": alpha, "gold": "own"})
        assert {tuple(one["hit"]) for one in row["questions"]} == {(hit,)}, (k, alpha)


def test_a_trace_shows_no_question_that_a_sampled_baseline_may_lack(repeated, capsys):
    below = "without the subject"
    for setting in ({"without": "the subject"}, {"instead": below}):
        assert len(repeated("attributes", n=6, setting=setting)["questions"]) == 6
        row = repeated("attributes", n=4, setting=setting)
        assert row["questions"] == []
        tracing._say([row], 1, 5)
        assert f"does not store which questions were asked {below}." in capsys.readouterr().out


@pytest.fixture
def claimed(tmp_path):
    """Write a run with numbers of two small papers and their claims, like the workflow."""
    from kgprobe.tables.claims import printed, verdicts

    folder, published = tmp_path / "results/small", ROOT / "resources/published"
    base = Number(benchmark="onto_x", group="TP", metric="R@1", n=100, prompt="templates")
    own = [
        base.but(model=m, value=v, method="cloze", setting={"choice": "oracle"},
                 interval=Interval(v - 5, v + 5, "wilson"))
        for m, v in (("one", 40.0), ("two", 60.0))
    ]  # fmt: skip
    quiet = base.but(prompt="", model="frequency", value=20.0, setting={"choice": "none"},
                     interval=Interval(20.0, 20.0, "wilson"))  # fmt: skip
    numbers = folder / "tables/ontoprobe.parquet"
    schema.write(results.frame("ontoprobe", [*own, quiet]), schema.RESULTS, numbers)
    models = {m: {"source": "hub:x", "kind": "masked", "parameters": ""} for m in ("one", "two")}
    claims = verdicts.read(published / "claims.tsv")
    result = verdicts.find(claims, results.read([numbers]), models, printed.read(published, models))
    claims_file = "resources/published/claims.tsv"
    made = {"inputs": {"results/small/tables/ontoprobe.parquet": sha256(numbers),
                       claims_file: sha256(ROOT / claims_file)}}  # fmt: skip
    path = folder / "tables/claims.parquet"
    schema.write(verdicts.frame(result), schema.CLAIMS, path, made)
    verdicts.write_rows(result, folder / "tables/claim_rows")
    return folder


O01 = """\
O01 (ontoprobe; Table 4; section 4.1 (1)): On TP the strongest of the six models is above the \
frequency baseline at R@1.
  compared: a: choice=oracle; metric=R@1; group=TP; max over model, prompt, method; b: \
kind=baseline; model=frequency; choice=none; metric=R@1; group=TP; difference per benchmark
  expected: > 0; in print: 9.4, holds
  here: 40 [35, 45], a 60, b 20, n 100, pairs 1, p {p} (Holm)
  verdict: same direction
  a: paper=ontoprobe, benchmark=onto_x, group=TP, model=one, prompt=templates, method=cloze, \
metric=R@1, choice=oracle: 40.0 [35, 45], n 100
  a: paper=ontoprobe, benchmark=onto_x, group=TP, model=two, prompt=templates, method=cloze, \
metric=R@1, choice=oracle: 60.0 [55, 65], n 100
  b: paper=ontoprobe, benchmark=onto_x, group=TP, model=frequency, metric=R@1, \
choice=none: 20.0 [20, 20], n 100
  as it was: {claims} resources/published/claims.tsv
  as it was: {hash} results/small/tables/ontoprobe.parquet
rows: 3
"""
A30 = """\
A30 (autoprompt; section 4; Table 3): Words chosen for contradiction are more readable than those \
for the other classes.
  compared: nothing
  expected: > 0; in print: no numbers printed
  verdict: not tested here (Whether a word is readable was judged by people.)
  as it was: {claims} resources/published/claims.tsv
rows: 0
"""


def test_claims_are_traced_to_verdicts_and_rows(claimed, typed):
    done = typed("trace", "O01", "--run", "small")
    assert done.exit_code == 0, done.stderr
    (result,) = [json.loads(typed("trace", "O01", "--run", "small", "--json").stdout)]
    own = sha256(claimed / "tables/ontoprobe.parquet")[:12]
    # in any working folder, files of the project are found there
    claims = sha256(ROOT / "resources/published/claims.tsv")[:12]
    assert done.stdout == O01.format(p=f"{result['p']:.3g}", hash=own, claims=claims)
    assert (result["verdict"], result["value"], result["printed"]) == ("same direction", 40, 9.4)
    assert [(row["side"], row["model"], row["value"]) for row in result["rows"]] == [
        ("a", "one", 40), ("a", "two", 60), ("b", "frequency", 20)]  # fmt: skip
    # its numbers are numbers of the run
    for row in result["rows"]:
        words = ["trace", str(row["value"]), "--run", "small", "-w", f"model={row['model']}"]
        assert typed(*words, "--items", 0).exit_code == 0
    part = json.loads(typed("trace", "O01", "--run", "small", "-w", "model=two", "--json").stdout)
    assert [row["model"] for row in part["rows"]] == ["two"]
    assert typed("trace", "A30", "--run", "small").stdout == A30.format(claims=claims)
    silent = typed("trace", "B01", "--run", "small").stdout
    assert "verdict: not tested here (no number with metric=accuracy" in silent
    assert "  needs: bear, 60 relations" in silent


def test_near_miss_claims_and_runs_without_claims_are_reported(claimed, typed):
    for name, near in (("o01", "O01"), ("K1", "K01"), ("B2O", "B20")):
        done = typed("trace", name, "--run", "small")
        assert (done.exit_code, len(done.stderr.splitlines())) == (1, 1)
        assert f"no claim {name!r} (did you mean {near!r}?)" in done.stderr
    (claimed / "tables/claims.parquet").unlink()
    done = typed("trace", "O01", "--run", "small")
    assert done.exit_code == 1
    assert done.stderr == (
        "kgprobe: 'O01' is not a number, and results/small has no claims (no "
        "tables/claims.parquet); expected a number as printed: 38.7\n"
    )


@pytest.mark.parametrize(
    ("number", "shard", "most", "whole"),
    # after a shard, and in the middle of one
    [(signal.SIGINT, 512, 600, True), (signal.SIGTERM, 8192, 1000, False)],
)
def test_interrupted_probe_resumes(
    model, typed, monkeypatch, tmp_path, number, shard, most, whole, request
):
    # background jobs ignore Ctrl-C, and a test server receives SIGTERM
    for own, usual in (
        (signal.SIGINT, signal.default_int_handler), (signal.SIGTERM, signal.SIG_DFL)
    ):  # fmt: skip
        request.addfinalizer(partial(signal.signal, own, signal.signal(own, usual)))
    monkeypatch.setattr(library, "score_frame", partial(library.score_frame, shard=shard))
    command = ("probe", model, "--on", "world_lite", "--name", "here", "--limit", 40)

    class Stopped(screen.RichBar):
        def update(self, n: float = 1) -> None:
            super().update(n)
            if self.done > most:
                os.kill(os.getpid(), number)

    with monkeypatch.context() as patch:
        patch.setattr(screen, "RichBar", Stopped)
        done = typed(*command)
    assert done.exit_code == screen.STOPPED
    assert done.stderr.splitlines()[-1] == (
        "kgprobe: stopped: scores so far are in results/here; run the same command to resume"
    )
    assert done.stderr.count("stopped") == 1
    first = tmp_path / "results" / "here" / "shards" / "shard-00000.journal"
    before = first.stat()
    assert before.st_size > 4 * min(shard, most)
    assert typed(*command).exit_code == 0
    # a finished shard is only loaded
    assert (first.stat().st_mtime_ns == before.st_mtime_ns) is whole


def test_interrupt_during_the_imports_is_reported(monkeypatch, capsys):
    def stop(_: str) -> None:
        raise KeyboardInterrupt

    unfinished = ModuleType("kgprobe.cli")
    unfinished.__getattr__ = stop  # type: ignore[method-assign]
    monkeypatch.setitem(sys.modules, "kgprobe.cli", unfinished)
    with pytest.raises(SystemExit) as ended:
        __main__.main()
    assert (ended.value.code, capsys.readouterr().err) == (screen.STOPPED, "kgprobe: stopped\n")


def test_interrupt_before_scoring_is_reported(model, typed, monkeypatch, tmp_path):
    def stop(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("kgprobe.library.load", stop)
    done = typed("probe", model, "--on", "world_lite")
    assert done.stderr.splitlines()[-1] == "kgprobe: stopped: nothing has been scored yet"
    assert not (tmp_path / "results").exists()


def test_an_unwritable_folder_is_reported_before_the_model_is_loaded(model, typed, monkeypatch):
    monkeypatch.setattr("kgprobe.library.load", lambda *_, **__: pytest.fail("loaded"))
    monkeypatch.setattr("os.access", lambda path, mode: not mode & os.W_OK)
    done = typed("probe", model, "--on", "world_lite")
    assert done.exit_code == 1
    assert f"{Path.cwd()} cannot be written to" in done.stderr.splitlines()[-1]


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (["probe", "x", "--on", "world_lite", "--prompt", "9"], 1, "no prompt '9'; valid: temp"),
        (["probe", "x", "--on", "world_lite", "--method", "sentense"], 1, "did you mean 'sent"),
        (["probe", "nearly-model", "--on", "world_lite"], 1, "did you mean 'nearly-a-model'?"),
        (["ask", "x", "The capital of X is [Y].", "-x", "France"], 1, "one [X] and one [Y]"),
        (["ask", "x", "[X] is [Y].", "-x", " "], 1, "the subject or an option is blank"),
        (["ask", "x", "[X] is [Y].", "-x", "A", "-o", "", "-o", "B"], 1, "an option is blank"),
        (["ask", "x", "[X] is [Y].", "-x", "A\udcff"], 1, "'A\\udcff' is not UTF-8; expected text"),
        (["ask", "x", "[X]\udcff is [Y].", "-x", "A"], 1, "is [Y].' is not UTF-8; expected text"),
        (["ask", "x", "[X] is [Y].", "-x", "A", "-k", "200"], 1, "k is 200; expected 1 to 100"),
        (["list", "modls"], 2, "did you mean 'models'?"),
        (["prob"], 2, "probe"),
        (["show", "world_lite", "P36/nowhere"], 1, "has no item 'P36/nowhere'"),
        (["validate", "nowhere.yaml"], 1, "nowhere.yaml: no such file"),
        (["plan", "config/embeded.yaml"], 1, "no such file (did you mean 'config/embedded.yaml'?)"),
        (["plan", "embeded"], 1, "no such file (did you mean 'config/embedded.yaml'?)"),
        (["plan", "my run.yml"], 1, "no such file (did you mean 'my run.yaml'?)"),
        (["run", "empty"], 1, "empty: a folder; expected a file"),
        (["plan", "."], 1, ".: a folder; expected cut.yaml, list.yaml, lost.yaml, model.yaml"),
        (["validate", "service.yaml"], 1, "endpoint is 'wdqz' (did you mean 'wdqs'?); resources/"),
        (["validate", "lost.yaml"], 1, "no such file or folder: lost.csv; correct the path"),
        (["validate", "prompts.yaml"], 1, "prompts.yaml: autoprompt.models has the unknown model"),
        (["validate", "cut.yaml"], 1, "cut.yaml, line 2: not valid YAML: expected ',' or '}'"),
        (["run", "list.yaml"], 1, "list.yaml: a list; expected keys with values"),
        (["probe", "x", "--on", "world_lite", "--prompt", "no.json"], 1, "no.json: no such file"),
        (["probe", "x", "--on", "world_lite", "--prompt", "{}.json"], 1, 'expected {"P36"'),
        (["probe", "x", "--on", "world_lite", "--prompt", "d.json"], 1, "d.json: a folder; expect"),
        (["validate", "model.yaml"], 1, "no such file or folder: lost-model; correct the path"),
        (["probe", "x", "--on", "world_lite", "--prompt", "2.json"], 1, "'P36' appears twice"),
    ],
)
def test_impossible_requests_get_a_one_line_error(typed, tmp_path, words, code, told):
    for name in ("empty", "d.json", "nearly-a-model"):
        (tmp_path / name).mkdir()
    run = "run: {name: a}\n"
    for name, text in {
        "cut.yaml": "run: {name: x\nbad",
        "list.yaml": "- run",
        "my run.yaml": run,
        "service.yaml": run + "sources: {wikidata: {endpoint: wdqz}}\n",
        "lost.yaml": run + "sources: {graphs: {mine: {form: table, files: [lost.csv]}}}\n",
        "prompts.yaml": run + "autoprompt: {models: {bert-base-case: {facts: {triggers: 3}}}}\n",
        "model.yaml": run + "tables: {models: models.tsv, experiments: experiments.tsv}\n",
        "models.tsv": "model\tkind\tsource\tdtype\tbos\nm\tmasked\tfolder:lost-model\tfloat32\t-\n",
        "experiments.tsv": "paper\tbenchmark\tprompt\tmethod\tmodel\n"
        "bear\tbear_lite\ttemplates\tsentence\tm\n",
        "{}.json": "{}",
        "2.json": '{"P36": "[X], [Y].", "P36": "[X] is [Y]."}',
        "nearly-a-model/config.json": "{}",
    }.items():
        (tmp_path / name).write_text(text)
    done = typed(*words)
    assert done.exit_code == code
    assert told in done.stderr
    if code == 1:
        assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("graph", "told"),
    [
        ("{form: table, files: [d]}", "mine: form is table, and d is a folder; expected a fi"),
        ("{form: table, files: [f.csv], labels: [f.nt]}", "mine: form is table, and f.nt is not"),
        ("{form: rdf, files: [f.csv]}", "mine: form is rdf, and f.csv is not a known RDF file"),
        ("{form: lm_pub_quiz, files: [f.csv]}", "mine: form is lm_pub_quiz, and f.csv is a fi"),
        ("{form: table, files: [f.csv], labels: [lost.tsv]}", "no such file or folder: lost.tsv;"),
        ("{form: table, files: [f.csv], templates: lost.tsv}", "file or folder: lost.tsv; correct"),
    ],
)
def test_files_missing_or_of_another_form_are_reported_before_a_run(typed, tmp_path, graph, told):
    (tmp_path / "d").mkdir()
    for name in ("f.csv", "f.nt"):
        (tmp_path / name).write_text("subject,relation,object\na,r,b\n")
    (tmp_path / "own.yaml").write_text(
        f"run: {{name: a}}\nsources: {{graphs: {{mine: {graph}}}}}\n"
    )
    done = typed("validate", "own.yaml")
    assert (done.exit_code, done.stdout) == (1, "")
    assert told in done.stderr


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["probe", "x", "--on", "world_lite", "--limit", "0"],
         "'--limit': '0'; valid: a whole number, at least 1"),
        (["probe", "x", "--on", "world_lite", "--limit", "some"],
         "'--limit': 'some'; valid: a whole number, at least 1"),
        (["probe", "x", "--on", "world_lite", "--limit", "2.5"],
         "'--limit': '2.5'; valid: a whole number, at least 1"),
        (["ask", "x", "[X] is [Y].", "-x", "A", "-k", "-1"],
         "'--k' / '-k': '-1'; valid: a whole number, at least 1"),
        (["trace", "1.0", "--items", "-2"],
         "'--items': '-2'; valid: a whole number, at least 0"),
    ],
)  # fmt: skip
def test_invalid_numbers_are_reported_with_option_and_valid_range(typed, words, told):
    done = typed(*words)
    assert done.exit_code == 2
    assert done.stderr.splitlines()[-1].endswith(told)
    assert "Input should be" not in done.stderr


FOLDER_CONTENT = "it holds config.json, generation_config.json"
#: common first mistakes of a new user -> the whole screen
SCREENS = {
    ("empty", "world_lite"): "empty: a model's folder without config.json; it holds "
    "nothing",
    ("", "world_lite"): "the model is ''; expected a folder, a row of config/models.tsv, "
    "gguf:PACKAGE or a name on the hub",
    ("x", ""): "'': neither a folder nor a benchmark of the package; valid: world_big, world_lite, "
    "or a folder",
    ("no-tokenizer", "world_lite"): "no-tokenizer: a model's folder without tokenizer "
    f"(tokenizer.json or vocab.txt or vocab.json or *.model); {FOLDER_CONTENT}, model.safetensors",
    ("no-weights", "world_lite"): "no-weights: a model's folder without weights (*.safetensors or "
    f"*.bin); {FOLDER_CONTENT}, tokenizer.json, tokenizer_config.json",
    ("cut-weights", "world_lite"): "cut-weights/model.safetensors: 1,000 bytes, by its header "
    "at least SIZE; the file is truncated or damaged: copy it again",
    ("folder:no-wieghts", "world_lite"): "no-wieghts: no such folder (did you mean 'no-weights'?)",
    ("no-tokeniser", "world_lite"): "no-tokeniser: no folder and no row of config/models.tsv (did "
    "you mean 'no-tokenizer'?), the hub cannot be reached, and its cache CACHE does not have it; "
    "go online, or give a folder",
    ("./no-wieghts", "world_lite"): "./no-wieghts: no such folder (did you mean './no-weights'?)",
    ("deep/modles/mine", "world_lite"): "deep/modles/mine: no such folder (did you mean "
    "'deep/models/mine'?)",
    ("./bare-modle", "world_lite"): "./bare-modle: no such folder (did you mean './bare-model'?)",
    ("wrong-number", "world_lite"): "wrong-number: config.json cannot be read: Field "
    "'num_hidden_layers' expected int, got str (value: 'two')",
    ("bert-base-cased", "world_lite"): "bert-base-cased: the hub cannot be reached, and its cache "
    "CACHE does not have google-bert/bert-base-cased at COMMIT; go online, or give a model's "
    "folder in its place",
    ("bert-base-casd", "world_lite"): "bert-base-casd: no folder and no row of config/models.tsv "
    "(did you mean 'bert-base-cased'?), the hub cannot be reached, and its cache CACHE does not "
    "have it; go online, or give a folder",
    # a correct name on the hub is not suggested to itself
    ("google-bert/bert-base-cased", "world_lite"): "google-bert/bert-base-cased: no folder and no "
    "row of config/models.tsv, the hub cannot be reached, and its cache CACHE does not have it; go "
    "online, or give a folder",
    ("x", "world_lit"): "world_lit: neither a folder nor a benchmark of the package (did you mean "
    "'world_lite'?); valid: world_big, world_lite, or a folder",
    ("x", "table.csv"): "table.csv: neither a folder nor a benchmark of the package; valid: "
    "world_big, world_lite, or a folder",
    ("x", "empty"): "empty: no benchmark, it lacks items.parquet, candidates.parquet, "
    "prompts.parquet and holds nothing; expected a run's results/RUN/benchmarks/NAME, or a "
    "released BEAR with metadata_relations.json and a P36.jsonl for each relation",
    ("x", "datasets"): "datasets: no benchmark, it lacks items.parquet, candidates.parquet, "
    "prompts.parquet and holds README.md, data; expected a run's "
    "results/RUN/benchmarks/NAME, or a released BEAR with metadata_relations.json and a P36.jsonl "
    "for each relation",
    ("x", "no-ids"): "no-ids: no <Pid>.jsonl in it; it holds Pcapital.jsonl, "
    "metadata_relations.json, expected a P36.jsonl for each relation",
    ("x", "no-names"): "no-names/P36.jsonl, line 1: without sub_id, sub_label, obj_id, obj_label",
    ("x", "no-templates"): "no-templates/metadata_relations.json, P36: 0 templates; wanted is "
    "template 0, counted from 0; its entry begins on line 1: add it, or name in the config "
    "(released.templates) those that every relation has",
}  # fmt: skip


def mistakes(model):
    """Create malformed folders of a new user in the working folder."""
    for name in ("no-tokenizer", "no-weights", "cut-weights", "wrong-number"):
        shutil.copytree(model, name)
    config = json.loads(Path("wrong-number/config.json").read_text()) | {"num_hidden_layers": "two"}
    Path("wrong-number/config.json").write_text(json.dumps(config))
    for name in ("deep/models/mine", "bare-model"):
        Path(name).mkdir(parents=True)
    for path in Path("no-tokenizer").glob("tokenizer*"):
        path.unlink()
    Path("no-weights/model.safetensors").unlink()
    weights = Path("cut-weights/model.safetensors")
    weights.write_bytes(weights.read_bytes()[:1000])
    texts = {
        "datasets/README.md": "", "datasets/data/test.parquet": "", "table.csv": "a,b\n",
        "no-ids/metadata_relations.json": '{"Pcapital": {"templates": ["[X] is [Y]."]}}',
        "no-ids/Pcapital.jsonl": "{}\n",
        "no-names/metadata_relations.json": '{"P36": {"templates": ["[X] is [Y]."]}}',
        "no-names/P36.jsonl": '{"subject": "France", "object": "Paris"}\n',
        "no-templates/metadata_relations.json": '{"P36": {"templates": []}}',
        "no-templates/P36.jsonl": '{"sub_id": "Q142", "sub_label": "France", "obj_id": "Q90", '
        '"obj_label": "Paris"}\n',
    }  # fmt: skip
    for name, text in texts.items():
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text(text)
    Path("empty").mkdir()


def test_malformed_inputs_get_a_one_line_error(model, typed, monkeypatch):
    from huggingface_hub import constants

    from kgprobe.probes.models import reachable

    monkeypatch.setattr(reachable, "is_reachable", lambda: False)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    commit = next(row["revision"] for row in names.rows() if row["model"] == "bert-base-cased")
    mistakes(model)
    header = Path("cut-weights/model.safetensors").read_bytes()[:8]
    size = f"{8 + int.from_bytes(header, 'little'):,}"
    for (who, on), screen_ in SCREENS.items():
        done = typed("probe", who, "--on", on)
        text = screen_.replace("CACHE", str(constants.HF_HUB_CACHE)).replace("COMMIT", commit)
        text = text.replace("SIZE", size)
        assert (done.stdout, done.exit_code) == ("", 1), (who, on, done.output)
        assert done.stderr.splitlines()[-1 - text.count("\n") :] == f"kgprobe: {text}".splitlines()
        # errors found while loading the model come after the line that announces loading
        if who != "wrong-number":
            assert len(done.stderr.splitlines()) == 1
        assert json.loads(typed("probe", who, "--on", on, "--json").stdout) == {"error": text}
    assert not Path("results").exists()


def test_released_set_with_one_template_uses_it(model, typed):
    Path("quiz").mkdir()
    rows = [("Q142", "France", "Q90", "Paris"), ("Q183", "Germany", "Q64", "Berlin")]
    keys = ("sub_id", "sub_label", "obj_id", "obj_label")
    lines = [json.dumps(dict(zip(keys, row, strict=True))) for row in rows]
    Path("quiz/P36.jsonl").write_text("\n".join(lines) + "\n")
    one = {"P36": {"templates": ["The capital of [X] is [Y]."]}}
    Path("quiz/metadata_relations.json").write_text(json.dumps(one))
    output = json.loads(typed("probe", model, "--on", "quiz", "--json").stdout)
    assert (output["n"], output["benchmark"]) == (2, "quiz")


def test_unresponsive_hub_costs_at_most_five_seconds(typed, monkeypatch):
    import time

    import requests
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(requests, "head", lambda *_, **__: time.sleep(20))
    typed("list", "methods")  # modules are imported before timing starts
    typed("probe", "x", "--on", "world_lit")
    began = time.monotonic()
    done = typed("probe", "meta/no-such-model", "--on", "world_lite")
    assert time.monotonic() - began < 5
    assert done.stderr == (
        "kgprobe: meta/no-such-model: no folder and no row of config/models.tsv, the hub cannot be "
        f"reached, and its cache {constants.HF_HUB_CACHE} does not have it; go online, or give a "
        "folder\n"
    )


def ended(started, code):
    """Fake a process that records its command and exits with the given code."""

    class Ended(subprocess.Popen):
        def __init__(self, command, **_):
            started.append(command)

        def wait(self, timeout=None):
            return code

    return Ended


@pytest.mark.parametrize("code", [0, 3])
def test_command_returns_the_exit_code_of_snakemake(typed, monkeypatch, code):
    """`run` passes on Snakemake's code; a successful run exits with 0."""
    started = []
    monkeypatch.setattr(subprocess, "Popen", ended(started, code))
    # the packaged configuration and workflow, from a folder that has none
    done = typed("run", "config/embedded.yaml", "--cores", 1, "results/x.parquet")
    assert (done.exit_code, done.stderr) == (code, "")
    config = str(ROOT / "config/embedded.yaml")
    assert started[0][2:] == ["snakemake", "--snakefile", str(ROOT / "Snakefile"), "--configfile",
                              config, "--cores", "1", "results/x.parquet"]  # fmt: skip
    Path("Snakefile").touch()
    typed("run", "config/embedded.yaml")
    assert "--snakefile" not in started[1]


@pytest.mark.parametrize(
    ("typed_words", "passed"),
    [
        ("-- --dry-run --cores 3", "--dry-run --cores 3"),
        ("-n -- results/x", "results/x -n"),
        # the values of an option with many values end at the `--`
        ("--forcerun a b -- results/x -n", "results/x -n --forcerun a b"),
        ("-- --forcerun a -- results/x", "--forcerun a -- results/x"),
        ("-n -- --forcerun a -- results/x", "-n --forcerun a -- results/x"),
        ("--config a=b -- ", "--config a=b"),
    ],
)
def test_arguments_after_two_hyphens_reach_snakemake_unchanged(
    typed, monkeypatch, typed_words, passed
):
    from snakemake.cli import get_argument_parser

    started = []
    monkeypatch.setattr(subprocess, "Popen", ended(started, 0))
    done = typed("run", "config/embedded.yaml", *typed_words.split())
    assert (done.exit_code, done.output) == (0, "")
    (command,) = started
    assert command[command.index("--cores") + 2 :] == passed.split()
    parsed = get_argument_parser([]).parse_args(command[3:])
    assert list(parsed.targets) == ["results/x"] * ("results/x" in passed)
    assert parsed.configfile == [Path(ROOT / "config/embedded.yaml")]


def test_command_shows_its_version_and_describes_subcommands(typed):
    assert typed("--version").stdout == f"kgprobe {kgprobe.__version__}\n"
    # whole words even on a narrow screen
    output = CliRunner().invoke(app, ["--help"], terminal_width=60).stdout
    assert "..." not in output.split("Commands:")[1]
    assert all(len(line) <= 60 for line in output.splitlines())


def test_failed_completion_install_gets_a_one_line_error(tmp_path):
    # the shell is the named one, not the parent of this process, which may not exist
    told = {"HOME": "/proc/none", "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
    done = process("--install-completion", "bash", cwd=tmp_path, **told)
    assert done.returncode == 1
    assert re.fullmatch(r"kgprobe: \[Errno \d+\] .*: '/proc/none'\n", done.stderr)


@pytest.mark.parametrize(
    "printed", ["for _ in range(9**6): print(1)", "table([{'a': '1' * 70}] * 9**4)"]
)
def test_closed_output_pipe_is_not_an_error(printed):
    many = (
        "import sys, typer\nfrom kgprobe.cli.screen import report_errors, table\ntry:\n"
        f"    with report_errors():\n        {printed}\n"
        "except typer.Exit as end:\n    sys.exit(end.exit_code)"
    )
    with subprocess.Popen(
        [sys.executable, "-c", many], env={"PYTHONPATH": SOURCE},
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as process:  # fmt: skip
        process.stdout.readline()
        process.stdout.close()
        errors = process.stderr.read().decode()
    assert "Errno" not in errors
    assert "Broken" not in errors
    assert process.returncode == 141


def test_closed_standard_streams_are_replaced_by_the_null_device(model, tmp_path):
    """A closed stderr sends no notes to stdout, plots are drawn without stdin, and closed output
    is no error."""
    words = ("probe", model, "--on", "world_lite", "--limit", 5, "--json")
    done = process(*words, cwd=tmp_path, shell="<&- 2>&-")
    assert (json.loads(done.stdout)["n"], done.stderr, done.returncode) == (5, "", 0)
    done = process("list", "benchmarks", shell=">&-")
    assert (done.stdout, done.stderr, done.returncode) == ("", "", 0)


@pytest.mark.parametrize("words", [["P36/Q414"], ["P36/Q414", "--json"]])
def test_output_that_cannot_be_written_is_an_error_in_one_line(words):
    """Short output is written only at the end of the command."""
    with open("/dev/full", "wb") as full:
        done = process("show", "world_lite", *words, stdout=full)
    assert done.stderr == "kgprobe: [Errno 28] No space left on device\n"
    assert done.returncode == 1


def test_the_name_of_a_folder_is_no_pattern(model, typed, tmp_path):
    kgprobe.benchmark("world_lite").sampled(5).write(tmp_path / "my: set [1]")
    done = typed("probe", model, "--on", "my: set [1]", "--prompt", 0, "--name", "x")
    assert done.stdout.startswith("my: set [1]: 5 items; accuracy in %")
    place = tmp_path / "results/x/benchmarks/my: set [1]"
    assert len(said.questions(place)) == 5
    assert fingerprint(place) == fingerprint(shutil.copytree(place, tmp_path / "copy"))


def test_a_number_is_traced_with_or_without_its_separators(typed, tmp_path):
    large = Number(benchmark="b", model="a", metric="parameters", value=1234567.5)
    below = large.but(metric="difference", value=-7.5)
    path = tmp_path / "results/x/tables/bear.parquet"
    schema.write(results.frame("bear", [large, below]), schema.RESULTS, path)
    for printed in ("1,234,567.5", "1234567.5", "-7.5"):
        (row,) = json.loads(typed("trace", "--run", "x", "--json", "--", printed).stdout)
        assert row["value"] == (large.value if printed[0] == "1" else -7.5)
    assert "'1,23' is not a number" in typed("trace", "1,23", "--run", "x").stderr
    assert "--where 'model'; expected" in typed("trace", "1", "--run", "x", "-w", "model").stderr


def test_a_value_that_is_no_fraction_is_shown_without_one(capsys):
    row = dict.fromkeys(results.frame("bear", [Number(n=30)]).columns, "") | {
        "value": 12.5, "n": 30, "low": None, "high": None, "interval": "none", "numerator": None,
        "denominator": 40.0, "questions": [], "files": [],
    }  # fmt: skip
    tracing._say([row], 1, 0)
    assert "  value 12.5 (none), n 30\n" in capsys.readouterr().out


def test_characters_missing_from_the_terminal_encoding_are_escaped():
    words = ("show", "world_big", "P103/Q504")
    for encoding in ("ascii", "utf-8"):
        subject = "Émile Zola".encode(encoding, "backslashreplace").decode(encoding)
        done = process(*words, PYTHONIOENCODING=encoding)
        assert f"subject: {subject}\n" in done.stdout
    data = process(*words, "--json", PYTHONIOENCODING="ascii").stdout
    assert json.loads(data)["subject"] == "Émile Zola"


def test_zero_width_screen_counts_as_eighty_columns(typed, monkeypatch):
    monkeypatch.setenv("COLUMNS", "0")
    assert "world_lite " in typed("list", "benchmarks").stdout


def test_huge_limit_means_all():
    assert screen.whole(1)("9" * 30) == screen.ALL
    bench = kgprobe.benchmark("world_lite")
    assert bench.sampled(screen.ALL).items.height == bench.items.height


def test_unexpanded_tilde_is_the_home_folder(typed, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert typed("export", "world_lite", "--as", "lm-eval", "--to=~/out").exit_code == 0
    assert (tmp_path / "home/out/SOURCES.md").is_file()
    assert not Path("~").exists()


def test_questions_are_shown_with_their_sentences(typed):
    rows = json.loads(typed("show", "world_lite", "--json").stdout)["by_relation"]
    (capital,) = [row for row in rows if row["relation"] == "P36"]
    asked = json.loads(typed("show", "world_lite", capital["example"], "--json").stdout)
    assert asked["answers"] in asked["options"]
    assert len(asked["sentences"]) == 3
    assert all(asked["answers"] in text and asked["subject"] in text
               for text in asked["sentences"])  # fmt: skip
    example = re.search(r"P\d+/Q\d+", typed("show", "--help").stdout)[0]
    assert typed("show", "world_lite", example).exit_code == 0


def test_plan_and_data_contents_are_available_as_json(monkeypatch):
    monkeypatch.chdir(ROOT)
    typed = CliRunner().invoke
    done = typed(app, ["plan", "config/embedded.yaml", "--json"])
    assert done.exit_code == 0, done.output
    result = json.loads(done.stdout)
    assert result["run"] == "embedded"
    # there may already be a run
    assert {"sources", "probes", "tables"} <= set(result["stages"])
    assert result["unpriced"] == []
    checked = json.loads(typed(app, ["verify", "config/embedded.yaml", "--json"]).stdout)
    assert all(row["files"] >= row["checked"] for row in checked)
    assert typed(app, ["plan", "nowhere.yaml", "--json"]).exit_code == 1


@pytest.mark.parametrize("command", [["ask", "no/such", "[X] is [Y].", "-x", "A"],
                                     ["probe", "no/such", "--on", "world_lite"]])  # fmt: skip
def test_unknown_names_are_reported_before_importing_torch(command, tmp_path):
    """Importing torch takes longer than a user should wait for a one-line error."""
    code = (
        "import sys\n"
        "from typer.testing import CliRunner\n"
        "from kgprobe.cli import app\n"
        "from kgprobe.probes.models import reachable\n"
        "reachable.is_reachable = lambda: False\n"
        f"result = CliRunner().invoke(app, {command!r})\n"
        "print(result.exit_code, 'torch' in sys.modules, result.output)\n"
    )
    output = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    ).stdout
    assert output.startswith("1 False kgprobe: no/such: no folder and no row of"), output
    assert "the hub cannot be reached" in output


@pytest.mark.parametrize(("bos", "front"), [("", 1), ("forced", 1), ("none", 0), ("default", 0)])
def test_default_bos_policy_is_the_same_everywhere(model, typed, bos, front):
    """As in models.tsv, at_save and lm-evaluation-harness: one BOS token as prefix."""
    words = ["--bos", bos] if bos else []
    text = "The capital of [X] is [Y]."
    done = typed("ask", model, text, "-x", "France", "-o", "Paris", "-o", "Rome", "--json", *words)
    assert done.exit_code == 0, done.output
    scores = {row["option"]: row["score"] for row in json.loads(done.stdout)}
    loaded = kgprobe.load(model)
    assert loaded.spec.bos == usual_bos("causal") == "forced"
    for option, score in scores.items():
        ids = loaded.tokenizer(f"The capital of France is {option}.")["input_ids"]
        expected = row_sum(loaded.model, [loaded.tokenizer.bos_token_id] * front + ids)
        assert score == pytest.approx(expected, abs=1e-3)


@pytest.mark.parametrize(
    ("name", "words", "told"),
    [
        ("m", ["ask", "m", "[X] is [Y].", "-x", "A", "-o", "B", "-o", "C", "--bos", "always"],
         "bos is 'always'; valid: none, default, forced"),
        # tables would show its numbers as those of the baseline, and list the name twice
        ("random", ["probe", "random", "--on", "world_lite", "--limit", 5],
         "kgprobe: a model called 'random', as a guess is in all tables; give"),
    ],
)  # fmt: skip
def test_invalid_names_and_policies_of_models_are_reported(model, typed, name, words, told):
    shutil.copytree(model, name)
    done = typed(*words)
    assert done.exit_code == 1
    assert told in done.output


def test_bos_policy_raises_for_non_causal_models(typed, tmp_path):
    """It would be ignored but appear in the name of the run and in its record."""
    folder = save(tiny("bert", double=False), tmp_path / "m")
    words = ["-x", "France", "-o", "Paris", "-o", "Rome", "--bos"]
    for bos, code in (("none", 1), ("-", 0)):
        done = typed("ask", str(folder), "[X] has [Y].", *words, bos)
        assert done.exit_code == code, done.output
        assert ("bos is 'none'; valid: - of a masked model" in done.output) == bool(code)


def test_progress_without_a_terminal_is_a_line_every_ten_seconds(monkeypatch, capsys):
    now = [100.0]
    monkeypatch.setattr(screen.time, "monotonic", lambda: now[0])
    bar = screen.RichBar(total=40, desc="scoring", unit="sentence")
    for seconds, done in ((11, 0), (1, 5), (8, 5), (2, 2)):
        now[0] += seconds
        bar.update(done)
    bar.close()
    assert capsys.readouterr().err.splitlines() == [
        "scoring: 0 of 40 sentences",
        "scoring: 12 of 40 sentences, 0.545/s, 51 s left",
    ]

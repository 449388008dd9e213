"""Exports opened by their target programs give the same questions and accuracies."""

import json
import os
import subprocess
from pathlib import Path

import polars as pl
import pytest
from typer.testing import CliRunner

from kgprobe import library, schema
from kgprobe.cli import app
from kgprobe.probes.jobs.methods.choice import choose_frame
from kgprobe.questions import Benchmark, benchmark
from tests.unit.tiny_models import save, tiny

pytestmark = pytest.mark.nightly(needs="make peers")

ROOT = Path(__file__).parents[2]
PEERS = ROOT / ".peers" / "bin" / "python"
SIDE = Path(__file__).with_name("peers_side.py")
LIMIT = 60


def peer(name: str, *arguments: object, cwd: Path) -> dict:
    """Return the output of a peer for an export, run from another folder."""
    if not PEERS.exists():
        pytest.fail("the peers are not installed; run make peers")
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    environment |= {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "HF_HOME": str(cwd / "hf"),
                    "OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}  # fmt: skip
    command = [PEERS, SIDE, name, *arguments]
    done = subprocess.run(
        list(map(str, command)), cwd=cwd, env=environment, capture_output=True, text=True,
        timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-4000:]
    return json.loads(done.stdout)


def export(*arguments: object) -> str:
    result = CliRunner().invoke(app, ["export", *map(str, arguments)])
    assert result.exit_code == 0, result.output
    return result.output


@pytest.fixture(scope="module")
def asked(tmp_path_factory):
    """Return a folder with a sample of world_lite, and a tiny causal model with its answers."""
    folder = tmp_path_factory.mktemp("peers")
    own = benchmark("world_lite").sampled(LIMIT)
    place = folder / "sample"
    place.mkdir()
    own.write(place)
    save(tiny("gpt2", bos="forced", double=False), folder / "model")
    return folder, own, library.probe(library.load(folder / "model", bos="forced"), own)


def accuracies(found) -> pl.DataFrame:
    """Return mean hit and number of items by template."""
    return found.answers.group_by("template").agg(pl.col("hit").mean(), pl.len().alias("n"))


def test_the_harness_gives_the_same_accuracies_from_another_folder(asked, tmp_path):
    folder, own, found = asked
    export(folder / "sample", "--as", "lm-eval", "--to", folder / "tasks")
    names = "kgprobe_sample,kgprobe_sample_mean"
    scores = peer("lm_eval", folder / "tasks", folder / "model", names, cwd=tmp_path)
    ours = dict(accuracies(found).select("template", "hit").rows())
    assert len(ours) == 3
    for template, accuracy in ours.items():
        task = scores[f"kgprobe_sample_template_{template}"]
        assert task["acc"] == pytest.approx(accuracy, abs=1e-4)
        spread = (accuracy * (1 - accuracy) / (own.items.height - 1)) ** 0.5
        assert task["stderr"] == pytest.approx(spread, abs=1e-4)
    assert scores["kgprobe_sample"]["acc"] == pytest.approx(sum(ours.values()) / 3, abs=1e-4)
    assert 0 < sum(ours.values()) < 3
    # templates ask the same questions: the relevant spread is between questions
    by_question = found.answers.group_by("item").agg(pl.col("hit").mean())["hit"]
    mean = scores["kgprobe_sample_mean"]
    assert mean["acc"] == pytest.approx(by_question.mean(), abs=1e-4)
    assert mean["stderr"] == pytest.approx(by_question.std() / own.items.height**0.5, abs=1e-4)
    assert mean["stderr"] != pytest.approx(scores["kgprobe_sample"]["stderr"], abs=1e-3)


@pytest.fixture(scope="module")
def varied(asked):
    """Return questions with separate options, sometimes with two right ones, and the answers."""
    folder, own, _ = asked
    labels = dict(own.candidates.group_by("set").agg(pl.col("label").sort_by("index")).rows())
    items, sets = [], []
    for row in own.items.sort("item").head(24).rows(named=True):
        options = labels[row["candidates"]]
        # the gold last, after the options that precede it
        others = [text for i, text in enumerate(options) if i not in row["answers"]]
        held = [*others[: 2 + row["row"] % 3], options[row["answers"][0]]]
        right = [len(held) - 1, *([0] if row["row"] % 2 else [])]
        sets += [{"set": row["item"], "index": i, "id": "", "label": x} for i, x in
                 enumerate(held)]  # fmt: skip
        items.append({**row, "candidates": row["item"], "answers": right})
    made = Benchmark(
        "varied",
        pl.DataFrame(items, schema=own.items.schema),
        pl.DataFrame(sets, schema=own.candidates.schema),
        own.prompts.filter(pl.col("index") < 2),
        {"source": "resources/world"},
    )
    made.write(folder / "varied")
    return folder, made, library.probe(library.load(folder / "model", bos="forced"), made)


def test_questions_with_separate_options_give_the_same_accuracies(varied, tmp_path):
    folder, own, found = varied
    assert own.candidates.group_by("set").len()["len"].n_unique() > 1
    assert own.items["answers"].list.len().n_unique() == 2
    export(folder / "varied", "--as", "lm-eval", "--to", folder / "varied-tasks")
    names = "kgprobe_varied,kgprobe_varied_mean"
    scores = peer("lm_eval", folder / "varied-tasks", folder / "model", names, cwd=tmp_path)
    ours = dict(accuracies(found).select("template", "hit").rows())
    assert 0 < sum(ours.values()) < 2
    for template, accuracy in ours.items():
        acc = scores[f"kgprobe_varied_template_{template}"]["acc"]
        assert acc == pytest.approx(accuracy, abs=1e-4)
    assert scores["kgprobe_varied_mean"]["acc"] == pytest.approx(sum(ours.values()) / 2, abs=1e-4)


QUESTIONS = [
    ("TP-0", "TP", "", "What is the type of Dante?", ["lake", "writer", "ship"], 1),
    ("TP-1", "TP", "", "What is the type of Rome?", ["city", "royal house", "ship"], 0),
    ("TP-2", "TP", "", "What is the type of the Nile?", ["poet", "comic", "river"], 2),
    # right with BOS, as TP-0 is without
    ("SCO-0", "SCO", "", "What is the type of Dante?", ["lake", "writer", "ship"], 2),
    ("rdfs9-0", "rdfs9", "out", "X is a poet. Therefore, What is the type of X?",
     ["writer", "sea", "ship"], 0),
    ("rdfs9-0+p1", "rdfs9", "EX",
     "Poet is a writer. X is a poet. Therefore, What is the type of X?",
     ["writer", "sea", "ship"], 0),
]  # fmt: skip


@pytest.fixture(scope="module")
def lettered(asked):
    """Return the folder of a benchmark with multiple-choice questions, and the questions."""
    folder, own, _ = asked
    own.write(folder / "onto")
    rows = [{"item": item, "task": task, "premise": premise, "source": item, "question": text,
             "stem": "", "options": options, "gold": gold, "row": number}
            for number, (item, task, premise, text, options, gold) in enumerate(QUESTIONS)
            ]  # fmt: skip
    made = pl.DataFrame(rows, schema=dict(schema.CHOICES.columns))
    schema.write(made, schema.CHOICES, folder / "onto" / "choices.parquet")
    return folder, made


@pytest.mark.parametrize(("bos", "more"), [("none", ""), ("forced", ",add_bos_token=True")])
def test_multiple_choice_has_the_same_accuracies_in_the_harness(lettered, tmp_path, bos, more):
    folder, made = lettered
    model, tasks = folder / "model", tmp_path / "letters"
    export(folder / "onto", "--questions", "choices", "--as", "lm-eval", "--to", tasks)
    scores = peer("lm_eval", tasks, model, "kgprobe_onto_choices", more, cwd=tmp_path)
    chosen, *_ = choose_frame(library.load(model, bos=bos), made, ["text"])
    right = made.join(chosen.filter(scoring="text_sum"), on="item").with_columns(
        hit=pl.col("chosen") == pl.col("gold")
    )
    for (task, premise), rows in right.group_by("task", "premise"):
        name = f"kgprobe_onto_choices_{task}" + (f"_{premise}" if premise else "")
        assert scores[name]["acc"] == pytest.approx(rows["hit"].mean(), abs=1e-4)
    assert scores["kgprobe_onto_choices"]["acc"] == pytest.approx(right["hit"].mean(), abs=1e-4)
    assert right.filter("hit")["item"].to_list() == ["TP-0" if bos == "none" else "SCO-0"]


def test_lm_pub_quiz_gives_the_same_accuracies(asked, tmp_path):
    folder, _, found = asked
    arguments = ("--as", "lm-pub-quiz", "--to", folder / "quiz", "--license", "CC0-1.0")
    export(folder / "sample", *arguments)
    scores = peer("lm_pub_quiz", folder / "quiz", folder / "model", cwd=tmp_path)
    ours = found.answers.filter(template=0).group_by("relation").agg(pl.col("hit").mean())
    assert ours.height == len(scores) > 10
    for relation, accuracy in ours.rows():
        assert scores[relation]["accuracy"] == pytest.approx(accuracy, abs=1e-4), relation


def test_kgprobe_installs_next_to_the_harness(tmp_path):
    """Its wheel installs into the peers' environment without breaking any requirement."""
    wheel = [PEERS, "-m", "pip", "--disable-pip-version-check", "wheel", "--no-deps", "--quiet"]
    subprocess.run([*wheel, "-w", tmp_path, ROOT], check=True, capture_output=True, timeout=300)
    (made,) = tmp_path.glob("kgprobe-*.whl")
    install = [
        PEERS, "-m", "pip", "--disable-pip-version-check", "install", "--dry-run", "--report",
    ]  # fmt: skip
    report = tmp_path / "report.json"
    subprocess.run(
        [*install, report, "--quiet", made, "lm-eval"], check=True, capture_output=True, timeout=300
    )
    planned = [row["metadata"]["name"] for row in json.loads(report.read_text())["install"]]
    # no installed package may change, except those bundled with Python
    assert set(planned) - {"setuptools"} == {"kgprobe"}

"""Own graphs come in by a section of the config: the tutorial as it stands, and what is refused."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

from kgprobe import schema
from tests.unit.tiny_models import tiny
from tests.workflow.project import ROOT, Project

TUTORIAL = (ROOT / "docs/tutorials/own_graph.md").read_text()


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A project with the tutorial's files, and a random model in the place of the reader's."""
    made = Project(tmp_path_factory.mktemp("own"))
    files = re.findall(r"^`(mine/\S+)`\n\n```\w+\n(.*?)```", TUTORIAL, flags=re.M | re.S)
    assert len(files) == 4
    for name, text in files:
        path = made.folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    loaded = tiny("bert", double=False)
    loaded.model.save_pretrained(made.folder / "mine/model")
    loaded.tokenizer.save_pretrained(made.folder / "mine/model")
    return made


def test_the_tutorial_ends_in_an_accuracy(project):
    (command,) = re.findall(r"```sh\n(.*?)```", TUTORIAL, flags=re.S)
    words = shlex.split(command)
    assert words[0] == "snakemake"
    ran = subprocess.run(
        [sys.executable, "-m", *words, "--nocolor"], cwd=project.folder, text=True, timeout=500,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=Project.environment(),
    )  # fmt: skip
    assert ran.returncode == 0, ran.stdout[-4000:]
    for name in re.findall(r"`(results/mine/\S+)`", TUTORIAL):
        assert (project.folder / name).is_file(), name
    numbers = schema.read(project.folder / "results/mine/tables/bear.parquet", schema.RESULTS)
    asked = numbers.filter(benchmark="places_lite", model="my-model", group="")
    score = asked.filter(pl.col("metric").str.contains("accuracy"), n=18)
    assert score.height, asked.select("metric", "slice", "n").rows()
    assert score["value"].is_between(0, 100).all()
    allows = (project.folder / "results/mine/sources/places/allows.tsv").read_text().split("\n")
    told = dict(line.split("\t")[:2] for line in allows if line)
    assert (told["places_big"], told["onto_places"]) == ("built", "not built")
    items = pl.read_parquet(project.folder / "results/mine/benchmarks/places_lite/items.parquet")
    counted = dict(items["relation"].value_counts().rows())
    assert counted == {"capital": 6, "continent": 12}


def test_a_name_that_no_graph_has_is_refused(project):
    path = project.folder / "mine/wrong.yaml"
    path.write_text("run: {name: wrong}\nattributes: {graph: nowhere}\n")
    ran = project.run("-n", configs=("mine/config.yaml", str(path)))
    assert ran.returncode
    assert (
        "attributes.graph is 'nowhere'; legal: world, trex, sources.graphs (places)" in ran.stdout
    )


def test_a_flaw_ends_in_one_error_and_finished_parts_stay(project):
    folder = project.folder
    (folder / "mine/flawed.csv").write_text(
        "subject,subject_label,relation,object,object_label\na,A,r,b,B\nc,,r,b,B\n"
    )
    own = "{form: table, files: [mine/flawed.csv]}"
    (folder / "mine/second.yaml").write_text(
        f"run: {{name: second}}\nsources: {{graphs: {{flawed: {own}}}}}\n"
    )
    made = "results/second/sources/{}/facts.parquet"
    names = [made.format(name) for name in ("places", "flawed")]
    configs = ("mine/config.yaml", "mine/second.yaml")
    ran = project.run("--keep-going", *names, configs=configs)
    assert ran.returncode
    told = "mine/flawed.csv, line 3: c has no label"
    logs = (folder / "logs/second/sources/flawed.log").read_text()
    assert told in ran.stdout + logs
    assert (folder / names[0]).is_file()
    assert not Path(folder / names[1]).exists()

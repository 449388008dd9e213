"""User-supplied graphs by a section of the config: the tutorial, and all that is built of one."""

import re

import polars as pl
import pytest

from kgprobe import schema
from kgprobe.benchmarks.allowed import ALLOWED
from tests.unit.screens import check_screens, prepare
from tests.unit.tiny_models import save, tiny
from tests.workflow.project import ROOT, Project

pytestmark = pytest.mark.nightly(
    gate=[
        "unit/test_own_graphs.py",
        "workflow/test_plans.py::test_the_tutorial_on_an_own_graph_is_planned_up_to_its_table",
    ]
)

TUTORIAL = (ROOT / "docs/tutorials/own_graph.md").read_text()
BEGINNING, _, RUNNING = TUTORIAL.partition("\n## 2. ")


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """Return a project with the tutorial's facts and model, and the output of `kgprobe init`."""
    made = Project(tmp_path_factory.mktemp("own"))
    prepare(TUTORIAL, made.folder)
    assert check_screens(BEGINNING, made.folder) == 2
    return made


def test_the_tutorial_gives_an_accuracy_and_its_documented_output(project):
    assert check_screens(RUNNING, project.folder) == 2
    for name in re.findall(r"`(results/mine/\S+)`", TUTORIAL):
        assert (project.folder / name).is_file(), name
    numbers = schema.read(project.folder / "results/mine/tables/bear.parquet", schema.RESULTS)
    asked = numbers.filter(benchmark="mine_lite", model="m", group="")
    score = asked.filter(pl.col("metric").str.contains("accuracy"), n=24)
    assert score.height, asked.select("metric", "slice", "n").rows()
    assert score["value"].is_between(0, 100).all()
    allows = (project.folder / "results/mine/sources/mine/allows.tsv").read_text().split("\n")
    allowed = dict(line.split("\t")[:2] for line in allows if line)
    assert (allowed["mine_big"], allowed["mine_lite"]) == ("built", "built")
    assert (allowed["onto_mine"], allowed["onto_mine_lite"]) == ("not built", "not built")
    items = pl.read_parquet(project.folder / "results/mine/benchmarks/mine_lite/items.parquet")
    assert dict(items["relation"].value_counts().rows()) == {"capital": 12, "continent": 12}


MORE = {
    "more.tsv": """\
paper\tbenchmark\tprompt\tmethod\tmodel
attributes\tasymmetry,entity_centric\ttemplates\tfill\ttiny
autoprompt\tauto_mine\tmajority,manual\tpredict\ttiny
""",
    "templates.tsv": """\
relation\tindex\tkind\ttext\tnote
capital\t0\tmanual\tThe seat of the government of [X] is [Y].\tcapital
""",
    "more.yaml": """\
run: {name: more}
tables: {experiments: mine/more.tsv}
sources: {graphs: {mine: {templates: mine/templates.tsv}}}
attributes: {graph: mine, asymmetry: {min_triples: 5}, entity_centric: {facts: 2}}
prompt_tasks: {graphs: {least: {train: 3, dev: 1, test: 1}}}
""",
}


def test_attributes_and_prompts_of_a_user_graph_are_in_the_report(project):
    for name, text in MORE.items():
        (project.folder / "mine" / name).write_text(text)
    # another model, whose tokens the answers are
    loaded = tiny("bert", double=False)
    loaded.tokenizer.add_tokens(re.findall(r",capital,(\w+)", TUTORIAL))
    loaded.model.resize_token_embeddings(len(loaded.tokenizer))
    save(loaded, project.folder / "tiny")
    with (project.folder / "mine/models.tsv").open("a") as file:
        file.write("tiny\tmasked\tfolder:tiny\t\tfloat32\t-\n")
    ran = project.run(configs=("mine/config.yaml", "mine/more.yaml"))
    assert ran.returncode == 0, ran.stdout[-4000:]
    results = project.folder / "results/more"
    worded = (results / "benchmarks/own/mine/templates.tsv").read_text()
    assert "The seat of the government of [X] is [Y]." in worded
    allowed = schema.read(results / "sources/mine/allows.parquet", ALLOWED)
    built = set(allowed.filter("built")["benchmark"])
    assert built == {"mine_big", "mine_lite", "auto_mine", "asymmetry", "entity_centric"}
    lacking = dict(allowed.select("benchmark", "reason").rows())
    assert lacking["hierarchy"].startswith(
        "relations of the settings: 0 kept, 1 dropped (roles and known of sources.graphs name none "
        "for P279)"
    )
    # two facts each
    items = pl.read_parquet(results / "benchmarks/entity_centric/items.parquet")
    assert sorted(set(items["subject"])) == [
        "France", "Ghana", "Italy", "Japan", "Kenya", "Nepal", "Norway", "Spain",
    ]  # fmt: skip
    assert items.height == 16
    message = "mine: allows asymmetry, auto_mine, entity_centric, mine_big, mine_lite; not "
    assert message in ran.stdout
    assert "What mine allows" in (results / "report/pages/graphs.html").read_text()
    numbers = schema.read(results / "tables/attributes.parquet", schema.RESULTS)
    assert set(numbers.filter(model="tiny")["benchmark"]) >= {"asymmetry", "entity_centric"}
    prompts = schema.read(results / "tables/autoprompt.parquet", schema.RESULTS)
    assert prompts.filter(benchmark="auto_mine", prompt="majority", metric="P@1").height

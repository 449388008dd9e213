"""The table "To add something" of docs/structure.md: each row names the files that it takes, and no
others."""

import hashlib
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.workflow.project import ROOT

#: made from settings.py: the table says `make docs` where they change
MADE = {"config/README.md", "config/config.yaml", "workflow/schemas/config.schema.json"}
LEFT = shutil.ignore_patterns(
    ".git", ".venv", ".snakemake", "__pycache__", "results", "logs", "data", ".*_cache"
)


@dataclass
class Copy:
    """The project's files in a folder of their own, and what has changed of them."""

    folder: Path

    def __post_init__(self):
        self.before = self.hashes()

    def hashes(self):
        files = [p for p in self.folder.rglob("*") if p.is_file() and "__pycache__" not in p.parts]
        files = [p for p in files if ".snakemake" not in p.parts]
        return {
            p.relative_to(self.folder).as_posix(): hashlib.sha256(p.read_bytes()).hexdigest()
            for p in files
        }

    def changed(self):
        after = self.hashes()
        assert not self.before.keys() - after.keys()
        return {name for name, found in after.items() if self.before.get(name) != found}

    def edit(self, name, old, new):
        """Replace a text that stands once."""
        path = self.folder / name
        text = path.read_text()
        assert text.count(old) == 1, f"{name}: {old!r} stands {text.count(old)} times"
        path.write_text(text.replace(old, new))

    def run(self, *command, code=0):
        path = os.pathsep.join([str(self.folder / "src"), str(self.folder)])
        environment = {**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}
        done = subprocess.run(
            [sys.executable, *command], cwd=self.folder, env=environment, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=600,
        )  # fmt: skip
        assert done.returncode == code, done.stdout
        return done.stdout

    def plan(self, *arguments):
        """What a dry run says."""
        return self.run("-m", "snakemake", "-n", "--cores", "1", "--nocolor", *arguments)


@pytest.fixture
def copy(tmp_path):
    shutil.copytree(ROOT, tmp_path / "kgprobe", ignore=LEFT)
    return Copy(tmp_path / "kgprobe")


def named(row):
    """The files and folders that a row of the table names, and whether `make docs` is one step."""
    table = (ROOT / "docs/structure.md").read_text().partition("## To add something")[2]
    (line,) = [text for text in table.splitlines() if text.startswith(f"| {row} |")]
    words = re.findall(r"`([^`]+)`", line)
    return {word for word in words if "/" in word}, "make docs" in words


def check(copy, row):
    """What was changed is what the row names: a file, or one new file of a folder."""
    names, is_made = named(row)
    changed = copy.changed() - (MADE if is_made else set())
    assert names, row
    for name in names:
        hits = [c for c in changed if c == name or f"{Path(c).parent}/" == name]
        assert len(hits) == 1, f"{row}: {name} stands in the table, changed are {sorted(changed)}"
    assert len(changed) == len(names)


def test_a_model(copy):
    commit = "0123456789" * 4
    row = f"mine\tcausal\thub:me/mine\t{commit}\tfloat32\tforced\t\t\tmy own\n"
    models = copy.folder / "config/models.tsv"
    models.write_text(models.read_text() + row)
    first = next(
        line
        for line in (copy.folder / "config/experiments.tsv").read_text().splitlines()
        if line.startswith("bear\t")
    )
    copy.edit("config/experiments.tsv", first, f"{first},mine")
    check(copy, "a model")
    told = copy.plan("--", "results/full/tables/bear.parquet")
    assert "/sentence/mine.parquet" in told


CHAINS = '''"""Chains: (x, r, y) and (y, r, z) of one relation."""

from kgprobe.benchmarks.attributes.examples import Shape, Triple, capped, pick
from kgprobe.benchmarks.attributes.items import Built, built
from kgprobe.benchmarks.attributes.settings import Settings
from kgprobe.benchmarks.funnel import Funnel
from kgprobe.knowledge.graph import Graph
from kgprobe.settings import Chains

SHAPE = Shape(
    "chains", ("p",), "{}", ("x", "y", "z"),
    (Triple("first", "x", "p", "y"), Triple("second", "y", "p", "z")),
)


def build(graph: Graph, settings: Settings[Chains]) -> Built:
    """At most `cap` chains of every relation."""
    steps = Funnel(SHAPE.benchmark)
    steps.kept("edges", graph.size)
    first = graph.edges.select("p", x="s", y="o")
    chains = first.inner_join(graph.edges.select("p", y="s", z="o"), ["p", "y"])
    chains = chains.filter(chains["x"] != chains["z"]).select("p", "x", "y", "z")
    choose = capped(SHAPE, settings.own.cap, graph, settings)
    picked = pick(SHAPE, chains, graph, settings, steps, choose, settings.shared.eval_examples)
    return built(SHAPE, picked, graph, settings, steps)
'''
SECTION = '''@dataclass(frozen=True)
class Chains:
    """Chains of one relation."""

    cap: Count = 100
    """most chains per relation"""


@dataclass(frozen=True)
class Attributes:
'''
SHOWN = """
import polars as pl
from kgprobe.metrics.attributes import measure
from kgprobe.tables import results
from kgprobe.tables.attributes import views
from tests.unit import attribute_graphs as graphs

made = graphs.attribute("chains", graphs.facts([(1, 40, 2), (2, 40, 3), (3, 40, 4), (9, 7, 9)]))
print(made.examples.select("role", "subject", "object").rows())
alphas = pl.DataFrame(
    [("chains", "a", "P40", i, 1.0) for i in range(2)],
    schema=["benchmark", "example", "pattern", "position", "alpha"], orient="row",
)
row = measure(alphas).row(0, named=True)
setting = {"k": 1, "alpha": "exact", "gold": "own", "pooling": "best"}
value = results.Number(metric="value", benchmark="chains", model="m", prompt="templates",
                       method="fill", setting=setting, value=100 * row["value_pooled"], n=1)
print(views.SCORES[False][0].of(results.frame("attributes", [value])).heads)
"""


def test_a_graph_attribute(copy):
    (copy.folder / "src/kgprobe/benchmarks/attributes/chains.py").write_text(CHAINS)
    settings = "src/kgprobe/settings.py"
    end = '    "two_steps",\n]\n#: each names'
    copy.edit(settings, end, end.replace("]", '    "chains",\n]'))
    copy.edit(settings, "@dataclass(frozen=True)\nclass Attributes:\n", SECTION)
    last = '    ambiguous: Ambiguous = Ambiguous()\n    """two entities of one name"""\n'
    more = '    chains: Chains = Chains()\n    """chains of one relation"""\n'
    copy.edit(settings, last, last + more)
    equation = '    "ambiguous": (2, _A0 * _A1, _EITHER),  # 10\n'
    own = '    "chains": (2, _A0 * _A1, _EITHER),\n'
    copy.edit("src/kgprobe/metrics/attributes.py", equation, equation + own)
    copy.run("-m", "kgprobe.config", "write")
    check(copy, "a graph attribute")
    assert "chains" in (copy.folder / "config/README.md").read_text()
    told = copy.run("-c", SHOWN)
    assert "('first', 'Q1', 'Q2'), ('second', 'Q2', 'Q3')" in told
    assert "chains" in told.splitlines()[-1]
    planned = copy.plan("--configfile", "config/embedded.yaml")
    assert "results/embedded/fills/chains/templates/control-masked.parquet" in planned


SCORED = """
from kgprobe.probes.scoring.sentence import score
from tests.unit.test_sentence import run
from tests.unit.tiny_models import tiny

loaded = tiny("bert")
print([round(float(run(loaded, variant=v).columns["sum"].sum()), 6) for v in ("{}", "original")])
"""


def test_a_way_to_score_sentences(copy):
    name = "src/kgprobe/probes/scoring/sentence/variants.py"
    function = '''def _pair(sentences: Sentences) -> Ints:
    """The token and the next one."""
    tokens = sentences.tokens
    return np.minimum(tokens.places + 2, tokens.lengths[tokens.owners])


#: of masked models'''
    copy.edit(name, "#: of masked models", function)
    copy.edit(
        name, '    "original": _original,\n', '    "original": _original,\n    "pair": _pair,\n'
    )
    check(copy, "a way to score sentences")
    pair, original = eval(copy.run("-c", SCORED.format("pair")).splitlines()[-1])
    assert pair != original
    rows = copy.folder / "config/experiments.embedded.tsv"
    rows.write_text("paper\tbenchmark\tprompt\tmethod\tmodel\n"
                    "bear\tworld_lite\ttemplates\tsentence-pair\tcontrol-masked\n")  # fmt: skip
    assert "/sentence-pair/control-masked" in copy.plan("--configfile", "config/embedded.yaml")


ANSWERED = """
import sys
from pathlib import Path
from kgprobe.probes.jobs.autoprompt import predict, tasks
from tests.unit import prompt_folders
from tests.unit.tiny_models import tiny

loaded = tiny("bert")
folder = prompt_folders.facts(Path(sys.argv[1]) / "auto_world")
task = tasks.load(folder, {})
frame = predict.Answerer(loaded.spec, task, load=lambda spec: loaded).answers(["shouted"])
print(frame["prompt"].unique().to_list(), frame.height)
"""


def test_a_written_prompt(copy, tmp_path):
    copy.edit(
        "src/kgprobe/probes/prompt_settings.py",
        '    "manual",\n',
        '    "manual",\n    "shouted",\n',
    )
    method = '''    def shouted(self) -> pl.DataFrame:
        """The prompt written by hand, said again."""
        return self._asked("shouted", self.task.wordings(self.loaded, "manual"))

    def lpaqa(self) -> pl.DataFrame:'''
    copy.edit("src/kgprobe/probes/jobs/autoprompt/predict.py",
              "    def lpaqa(self) -> pl.DataFrame:", method)  # fmt: skip
    check(copy, "a written prompt")
    assert "['shouted'] 14" in copy.run("-c", ANSWERED, str(tmp_path))
    rows = copy.folder / "config/experiments.embedded.tsv"
    rows.write_text("paper\tbenchmark\tprompt\tmethod\tmodel\n"
                    "autoprompt\tauto_world\tshouted\tpredict\tcontrol-masked\n")  # fmt: skip
    planned = copy.plan("--configfile", "config/embedded.yaml")
    assert "outcomes/auto_world/prompts/control-masked.parquet" in planned


VIEWED = """
from kgprobe.tables import results, views
from kgprobe.tables.bear import views as bear
one = results.Number(metric="MRR", benchmark="b", model="m", prompt="templates", method="sentence",
                     value=0.5, n=9)
frame = results.frame("bear", [one])
views.write(bear.views(frame)["mine"], frame, "mine.tsv")
"""


def test_a_table_of_a_paper(copy):
    name = "src/kgprobe/tables/bear/views.py"
    view = """MINE = View(
    "mine",
    "Mean reciprocal ranks",
    where={**WHOLE, "metric": ["MRR"]},
    rows=["benchmark", *PROBE],
    digits={"MRR": 3},
)


def views("""
    copy.edit(name, "def views(", view)
    copy.edit(name, "    made = [\n", "    made = [\n        MINE,\n")
    check(copy, "a paper's table")
    copy.run("-c", VIEWED)
    lines = (copy.folder / "mine.tsv").read_text().splitlines()
    assert lines == ["benchmark\tmodel\tprompt\tmethod\tMRR", "b\tm\ttemplates\tsentence\t0.500"]

"""A new user's first ten minutes: commands and their output at 80 columns.

The folder contains only two tiny models, whose numbers all appear as `...`; the numbers of guessing
baselines are exact. Lines after `$` are commands, followed by their output; stderr comes last.
"""

import re
import shlex

import pytest
from typer.testing import CliRunner

from kgprobe.cli import app
from tests.unit.screens import ROOT, TYPED, check_screens, differs, prepare
from tests.unit.tiny_models import save, tiny

MINUTES = """\
$ kgprobe list benchmarks
benchmark   items  relations  templates
world_big    1393         28          3
world_lite    468         28          3
$ kgprobe show world_lite P36/Q414
item: P36/Q414
relation: P36
subject: Argentina
answers: Buenos Aires
options: Amsterdam, Athens, Beijing, Berlin, Budapest, Buenos Aires, Copenhagen, ...
sentence: The capital of Argentina is Buenos Aires.
sentence: Argentina has its capital in Buenos Aires.
sentence: Buenos Aires is the capital of Argentina.
$ kgprobe ask my-model "The capital of [X] is [Y]." -x France -o Paris -o Rome
option   score  probability
...-...
...-...
$ kgprobe probe my-modle --on world_lite
kgprobe: my-modle: no folder and no row of config/models.tsv (did you mean 'my-model'?), the hub \
cannot be reached, and its cache ... does not have it; go online, or give a folder
$ kgprobe probe my-model --on world_lit
kgprobe: world_lit: neither a folder nor a benchmark of the package (did you mean 'world_lite'?); \
valid: world_big, world_lite, or a folder
$ kgprobe probe my-model --on world_lite --limit 20
world_lite: 20 items; accuracy in % with its 95 % interval

model            accuracy  SEM   correct in all
my-model ... [..., ...] ... [..., ...]
random               10.2    -                -
majority              5.0    -                -

SEM: standard error over the templates, in points.

correct in all: items right under every template, in %.

report: results/my-model-world_lite-limit20/report/index.html
$ kgprobe probe other --on world_lite --limit 20 --name other
world_lite: 20 items; accuracy in % with its 95 % interval

model            accuracy  SEM   correct in all
other ... [..., ...] ... [..., ...]
random               10.2    -                -
majority              5.0    -                -

SEM: standard error over the templates, in points.

correct in all: items right under every template, in %.

report: results/other/report/index.html
$ kgprobe list runs
run                          tables  report
my-model-world_lite-limit20  bear    yes...
other                        bear    yes...
report: results/RUN/report/index.html
$ kgprobe compare my-model-world_lite-limit20 othr
kgprobe: othr: no run with numbers (did you mean 'other'?); valid: my-model-world_lite-limit20, \
other, or a run's folder
$ kgprobe compare my-model-world_lite-limit20 other
...world_lite...
numbers in both runs: ..., of which ... differ; only in my-model-world_lite-limit20: ..., only in \
other: ...
$ kgprobe trace 5.0 --run other -w model=majority --exact
paper=bear, benchmark=world_lite, model=majority, metric=accuracy
  value 5.0 (none), n 20
  ...; right: ...
  as it was: ... ...
rows: 1
$ kgprobe trace O01 --run other
kgprobe: 'O01' is not a number, and results/other has no claims (no tables/claims.parquet); \
expected a number as printed: 38.7
$ kgprobe export world_lite --as lm-eval --to exported
...exported...
"""


@pytest.mark.usefixtures("own_models")
def test_a_new_user_s_first_ten_minutes(monkeypatch):
    from kgprobe.probes.models import reachable

    monkeypatch.setattr(reachable, "is_reachable", lambda: False)
    monkeypatch.setenv("COLUMNS", "80")
    typed = TYPED.findall(MINUTES)
    assert len(typed) == 13
    for line, wanted in typed:
        done = CliRunner().invoke(app, shlex.split(line)[1:])
        failed = wanted.startswith("kgprobe: ")
        assert done.exit_code == failed, (line, done.output, done.exception)
        shown = done.stderr if failed else done.stdout
        assert not differs(wanted, shown), f"$ {line}\n{shown}"
        # paths and messages are not truncated; tables fit
        table = [row for row in shown.splitlines() if re.match(r"\S+ {2,}", row)]
        assert all(len(row.rstrip()) <= 80 for row in table), shown


@pytest.fixture
def own_models(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, kind in (("my-model", "llama"), ("other", "gpt2")):
        save(tiny(kind, double=False), name)


@pytest.mark.parametrize(("page", "least"), [("own_graph", 2), ("dump", 1)])
def test_tutorials_show_the_output_of_their_commands(page, least, tmp_path):
    """Stops at the first slow command; the nightly tier runs every tutorial in full."""
    # as in a clone
    (tmp_path / "workflow").symlink_to(ROOT / "workflow")
    text = (ROOT / f"docs/tutorials/{page}.md").read_text()
    prepare(text, tmp_path)
    assert check_screens(text, tmp_path, long=False) >= least


def test_a_screen_that_is_another_or_missing_fails(tmp_path):
    page = "```console\n$ kgprobe --version\nkgprobe ...\n```\n"
    assert check_screens(page, tmp_path) == 1
    for wrong in ("kgprobe\n", "", "kgprobe ... 1\n"):
        with pytest.raises(AssertionError, match=r"\$ kgprobe --version"):
            check_screens(page.replace("kgprobe ...\n", wrong), tmp_path)

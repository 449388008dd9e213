"""The documentation: it builds, what it shows is what the code says, and its commands run."""

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from kgprobe import contracts
from kgprobe.cli import app
from kgprobe.contracts import Contract
from tests.unit.tiny_models import tiny

ROOT = Path(__file__).parents[2]
SITE = pytest.mark.nightly(needs="mkdocs (the extra docs)")
NEEDED = pytest.mark.skipif(
    importlib.util.find_spec("mkdocs") is None, reason="no mkdocs: the extra docs has it"
)
CONTRACTS = [name for name, value in vars(contracts).items() if isinstance(value, Contract)]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The pages, built strictly: a link that leads nowhere fails."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "-d", folder]
    done = subprocess.run(list(map(str, command)), cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@SITE
@NEEDED
def test_every_page_of_the_navigation_is_there_and_loads_nothing_from_elsewhere(site):
    listed = re.findall(r"^ +- [^:]+: (\S+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE)
    assert len(listed) > 18
    for name in listed:
        text = (site / name.replace(".md", ".html")).read_text()
        loaded = re.findall(
            r"<(?:script|img|link rel=\"stylesheet\")[^>]+(?:src|href)=\"([^\"]+)", text
        )
        assert loaded
        assert not [place for place in loaded if "//" in place], name


@SITE
@NEEDED
def test_the_reference_has_the_library_and_every_column(site):
    library = (site / "reference.html").read_text()
    for name in ("load", "probe", "ask", "Results", "benchmark"):
        assert re.search(rf'id="kgprobe\.\w+\.{name}"', library), name
    columns = (site / "columns.html").read_text()
    assert len(CONTRACTS) > 25
    for name in CONTRACTS:
        assert f">{name}</h2>" in columns, name
    assert "The template: [X] stands for the subject" in columns


def blocks(page: str, language: str) -> list[str]:
    text = (ROOT / "docs" / page).read_text()
    return re.findall(rf"```{language}\n(.*?)```", text, flags=re.DOTALL)


def test_the_configuration_of_the_dump_s_tutorial_is_right(tmp_path):
    (text,) = blocks("tutorials/dump.md", "yaml")
    path = tmp_path / "mine.yaml"
    path.write_text(text)
    assert yaml.safe_load(text)["sources"]["wikidata"]["access"] == "dump"
    result = CliRunner().invoke(app, ["validate", str(path)])
    assert result.exit_code == 0, result.output


def commands(page: str) -> list[list[str]]:
    """The lines of a page that call kgprobe, as a shell would split them."""
    import shlex

    lines = re.findall(r"^    kgprobe (.+)$", (ROOT / page).read_text(), re.MULTILINE)
    return [shlex.split(line, comments=True) for line in lines]


@pytest.mark.parametrize("page", ["README.md", "docs/tutorials/your_model.md"])
def test_the_commands_that_a_newcomer_types_run(page, tmp_path, monkeypatch):
    """A tiny model stands in for those of the hub, a sample for all questions."""
    monkeypatch.chdir(tmp_path)
    made = tiny("llama", double=False)
    for name in ("my-model", "bert-base-cased", "gpt2"):
        made.model.save_pretrained(name)
        made.tokenizer.save_pretrained(name)
    typed = commands(page)
    assert len(typed) >= 4
    runs = []
    for words in typed:
        if words[0] == "probe":
            words = [w for w in words if w not in ("--limit", "100")] + ["--limit", "20"]
            runs.append(f"{Path(words[1]).name}-world_lite-limit20")
        if words == ["compare", "RUN", "RUN"]:
            words = ["compare", runs[0], runs[0]]
        result = CliRunner().invoke(app, words)
        assert result.exit_code == 0, (words, result.output)
        assert result.output.strip(), words

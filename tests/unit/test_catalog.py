"""What the Snakemake workflow catalog checks of a repository, each rule as a fact; CITATION.cff.

The rules are those of the catalog's own generator (snakemake/snakemake-workflow-catalog,
scripts/generate-catalog.py): what it lists, what it calls standardised, what it shows as checks.
"""

import re
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

ROOT = Path(__file__).parents[2]
SETTINGS = ROOT / ".snakemake-workflow-catalog.yml"
#: what the catalog's page shows of `usage`, and of which type it is
USAGE = {
    "mandatory-flags": {"desc": str, "flags": str},
    "software-stack-deployment": {"conda": bool, "apptainer": bool, "apptainer+conda": bool},
    "report": bool,
}
#: complaints of `snakemake --lint` that stand, and why
STANDING = {
    "Specify a conda environment or container for each rule.": "one environment for all rules, "
    "and no image of it is published that a rule could name",
}


def test_it_is_found_by_two_words_of_the_readme():
    text = (ROOT / "README.md").read_text().lower()
    assert "snakemake" in text
    assert "workflow" in text


def test_there_is_a_snakefile_where_the_folder_workflow_is_and_modules_end_in_smk():
    assert (ROOT / "workflow/Snakefile").is_file()
    modules = sorted((ROOT / "workflow/rules").iterdir())
    assert len(modules) > 10
    assert {path.suffix for path in modules} == {".smk"}


def test_usage_is_standardised_settings_and_a_readme_of_the_configuration():
    assert (ROOT / "config/README.md").read_text().startswith("# ")
    usage = yaml.safe_load(SETTINGS.read_text())["usage"]
    assert usage.keys() == USAGE.keys()
    for name, legal in USAGE.items():
        if not isinstance(legal, dict):
            assert isinstance(usage[name], legal)
            continue
        assert usage[name].keys() == legal.keys()
        assert all(isinstance(usage[name][key], kind) for key, kind in legal.items())


def test_what_is_said_of_deployment_is_what_the_rules_say():
    rules = "".join(path.read_text() for path in sorted(ROOT.glob("workflow/rules/*.smk")))
    usage = yaml.safe_load(SETTINGS.read_text())["usage"]
    declared = re.findall(r"^\s+(conda|container):", rules, re.MULTILINE)
    assert any(usage["software-stack-deployment"].values()) == bool(declared)
    assert usage["report"] == ('report: "workflow/report' in (ROOT / "Snakefile").read_text())
    assert (ROOT / "profiles/default").is_dir(), "the profile that the settings speak of"


def test_formatting_passes():
    files = [ROOT / "workflow/Snakefile", *sorted((ROOT / "workflow/rules").glob("*.smk"))]
    done = subprocess.run(
        ["snakefmt", "--check", *map(str, files)], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def test_the_linter_complains_of_nothing_but_what_is_meant():
    """As the catalog calls it: in the root, without a configuration of its own."""
    done = subprocess.run(["snakemake", "--lint"], cwd=ROOT, capture_output=True, text=True)
    told = done.stdout + done.stderr
    found = set(re.findall(r"^    \* (.+?):$", told, re.MULTILINE))
    assert found, told[-2000:]
    assert found <= STANDING.keys(), sorted(found - STANDING.keys())


# -- CITATION.cff ---------------------------------------------------------------------------------

#: what of the Citation File Format 1.2.0 may stand at the top, and in a reference
PERSON = ["family-names", "given-names", "name-particle", "name-suffix", "orcid", "affiliation"]
ENTITY = ["name", "website", "email"]
COMMON = ["abstract", "authors", "date-released", "doi", "identifiers", "keywords", "license",
          "repository-code", "title", "type", "url", "version"]  # fmt: skip
TOP = ["cff-version", "contact", "commit", "license-url", "message", "preferred-citation",
       "references", "repository", "repository-artifact"]  # fmt: skip
REFERENCE = ["collection-title", "conference", "journal", "pages", "publisher", "start", "end",
             "volume", "year", "month"]  # fmt: skip


def texts(names: list[str]) -> dict[str, Any]:
    return {key: {"type": "string", "minLength": 1} for key in names}


AUTHORS = {
    "type": "array",
    "minItems": 1,
    "items": {
        "oneOf": [
            {"type": "object", "properties": texts(names), "required": names[:1],
             "additionalProperties": False}
            for names in (PERSON, ENTITY)
        ]
    },
}  # fmt: skip
REFERENCES = {
    "type": "object",
    "required": ["authors", "title", "type"],
    "additionalProperties": False,
    "properties": {
        **texts([*COMMON, *REFERENCE]),
        "authors": AUTHORS,
        "type": {"enum": ["conference-paper", "article", "software", "dataset", "proceedings"]},
        "year": {"type": "integer", "minimum": 1990},
    },
}
CFF = {
    "type": "object",
    "required": ["authors", "cff-version", "message", "title"],
    "additionalProperties": False,
    "properties": {
        **texts([*COMMON, *TOP]),
        "cff-version": {"const": "1.2.0"},
        "authors": AUTHORS,
        "type": {"enum": ["software", "dataset"]},
        "keywords": {"type": "array", "items": {"type": "string"}, "uniqueItems": True},
        "references": {"type": "array", "items": REFERENCES},
    },
}


def cited() -> dict[str, Any]:
    return dict(yaml.safe_load((ROOT / "CITATION.cff").read_text()))


def test_the_citation_is_one_and_names_the_four_papers_and_this_repository():
    jsonschema.validate(cited(), CFF)
    years = sorted(reference["year"] for reference in cited()["references"])
    assert years == [2020, 2023, 2023, 2024]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert cited()["repository-code"] == project["urls"]["Repository"]
    assert cited()["license"] in project["license"]


@pytest.mark.parametrize(
    ("key", "value"),
    [("authors", []), ("cff-version", "1.1"), ("autors", [{"name": "x"}]), ("type", "code"),
     ("references", [{"title": "no authors", "type": "article"}]),
     ("authors", [{"family-names": "A", "name": "B"}])],
)  # fmt: skip
def test_a_citation_that_is_none_is_refused(key, value):
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**cited(), key: value}, CFF)

"""Access by dumps: the embedded knowledge graph read from dumps and over SPARQL."""

from pathlib import Path

import polars as pl
import pytest

from kgprobe.schema import COVERAGE, read
from tests.workflow.project import CONFIGS, Project
from tests.workflow.test_plans import HEADER, ON_DUMPS
from tests.workflow.test_plans import WAYS as DUMPS

pytestmark = pytest.mark.nightly(gate=["unit/test_dump_facts.py", "workflow/test_plans.py"])

SMALL = """
bear:
  min_sitelinks: 0
  big: {total: 20, max_answers: 6, one_to_one: 12}
  lite: {total: 10, max_answers: 5, one_to_one: 6}
"""
WAYS = {"pulled": "", **DUMPS}
OF_PROPERTIES = (
    "properties", "property_hierarchy", "constraints", "equivalent_property", "constraint_classes"
)  # fmt: skip
OF_DBPEDIA = (
    "classes", "class_hierarchy", "class_equivalence", "properties", "property_hierarchy",
    "property_equivalence", "types",
)  # fmt: skip
ONTOLOGY = (
    "classes", "class_chains", "instances", "properties", "property_chains", "alignment", "rejects",
    "steps",
)  # fmt: skip
BEAR = ("items", "candidates", "prompts", "aliases")


def config(made: Project, way: str) -> tuple[str, ...]:
    """Write the config of the small embedded run with one of the WAYS of access, under its name."""
    path = made.folder / f"config/{way}.yaml"
    path.write_text(f"run: {{name: {way}}}\n{WAYS[way]}{SMALL}")
    return (*CONFIGS, "config/dumps.yaml", str(path))


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    made = Project(tmp_path_factory.mktemp("dumps"))
    (made.folder / "config/experiments.small.tsv").write_text(HEADER + ON_DUMPS)
    return made


@pytest.fixture(scope="module")
def made(project: Project) -> dict[str, Path]:
    """Map each access method to the folder of its results, up to the benchmarks."""
    for way in WAYS:
        results = f"results/{way}"
        targets = [
            *(f"{results}/sources/wikidata/{name}.parquet" for name in (*OF_PROPERTIES, "facts")),
            *(f"{results}/sources/dbpedia/{name}.parquet" for name in OF_DBPEDIA),
            *(f"{results}/knowledge/ontology/{name}.parquet" for name in ONTOLOGY),
            *(f"{results}/benchmarks/bear_big/{name}.parquet" for name in BEAR),
        ]
        result = project.run("--", *targets, configs=config(project, way))
        assert result.returncode == 0, result.stdout[-4000:]
    return {way: project.folder / "results" / way for way in WAYS}


@pytest.mark.parametrize("way", ["json", "truthy"])
def test_every_table_is_the_same_by_dump_and_by_sparql(made, way):
    """A truthy dump has no ranks, so only statements of best rank are compared."""
    tables = [f"sources/wikidata/{name}" for name in OF_PROPERTIES]
    tables += [f"sources/dbpedia/{name}" for name in OF_DBPEDIA]
    tables += [f"knowledge/ontology/{name}" for name in ONTOLOGY]
    tables += [f"benchmarks/bear_big/{name}" for name in BEAR]
    if way == "json":
        tables.append("sources/wikidata/facts")
    else:
        # counts of statements, which the choice of properties goes by, are those of best ranks
        tables = [t for t in tables if t not in ("knowledge/ontology/properties",)]
    for table in tables:
        pulled, found = (pl.read_parquet(made[w] / f"{table}.parquet") for w in ("pulled", way))
        assert pulled.height
        assert found.equals(pulled), table


def test_omissions_are_counted_equally(made):
    pulled, found = (
        read(made[way] / "sources/wikidata/coverage.parquet", COVERAGE).drop("way", "reason")
        for way in ("pulled", "json")
    )
    # a JSON dump has no redirects: what it does not have is not counted
    assert found.drop("redirected").equals(pulled.drop("redirected"))
    assert (pulled["redirected"].sum(), found["redirected"].null_count()) == (0, found.height)
    assert pulled["item"].sum()
    assert pulled["deprecated"].sum()

"""The ontology rebuilt over HTTP from the real excerpts, compared with the released one."""

from pathlib import Path

import polars as pl
import pytest

from kgprobe import schema
from kgprobe.benchmarks.ontoprobe import build, modes, own, reasoning, released
from kgprobe.experiments import read_table
from kgprobe.knowledge import ontology
from kgprobe.sources.sparql.pull import pull
from kgprobe.sources.sparql.relations import pull_instances
from kgprobe.tables import sources
from tests.contract.oxigraph import local_endpoint

pytestmark = [pytest.mark.real, pytest.mark.nightly(needs="the real data in full")]

QUERIES = Path(__file__).parents[2] / "resources/queries"
DBPEDIA = ("classes class_hierarchy class_equivalence properties property_hierarchy "
           "property_equivalence").split()  # fmt: skip
WIKIDATA = (
    "properties property_hierarchy constraints constraint_classes equivalent_property".split()
)
FILES = {
    "dbpedia": ["dbpedia/dbo-snapshots_2026-07-22.ttl", "dbpedia/dbpedia_instances.nt.gz"],
    "wikidata": ["wikidata/wikidata_excerpt.nt.gz"],
}
Tables = dict[str, dict[str, pl.DataFrame]]


@pytest.fixture(scope="module")
def tables(real_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Tables:
    data = tmp_path_factory.mktemp("data")
    pulled: Tables = {}
    for source, names in (("dbpedia", DBPEDIA), ("wikidata", WIKIDATA)):
        with local_endpoint([real_data / f for f in FILES[source]]) as endpoint:
            pulled[source] = {
                name: pull(QUERIES / source / f"{name}.rq", endpoint, data / source / "s").frame()
                for name in names
            }
            if source == "dbpedia":
                classes = pulled[source]["classes"]["class"].to_list()
                query = QUERIES / "dbpedia/instances.rq"
                found, in_part = pull_instances(
                    classes, endpoint, data / source / "s", query, 10_000, languages=["en", "mul"]
                )
                assert not in_part
                pulled[source]["types"] = found.select("class", "instance", "label")
    return pulled


@pytest.fixture(scope="module")
def built(tables: Tables) -> ontology.OntologyTables:
    return ontology.build(tables["dbpedia"], tables["wikidata"], None)


def test_sizes_of_the_pinned_ontology(tables, built):
    dbpedia = tables["dbpedia"]
    assert dbpedia["classes"].height == 790
    assert dbpedia["class_hierarchy"].height == 813
    assert dbpedia["properties"]["property"].n_unique() == 1172 + 1857
    assert built.class_chains.height == 2115
    assert built.rejects.height == 5
    assert built.property_chains.height == 823


def test_alignment_in_both_directions(built):
    counts = dict(built.alignment.group_by("direction").len().rows())
    assert built.alignment.height == 240
    assert counts["both"] == 15
    assert counts["both"] + counts["P1628"] == 28
    assert counts["both"] + counts["owl"] == 227


def test_constraints_without_a_class_are_kept(tables):
    constraints = tables["wikidata"]["constraints"]
    assert constraints.height == 9056
    assert constraints["class"].drop_nulls().len() == 5891


def test_agreement_with_the_released_ontology(real_data, built, capsys):
    folder = real_data / "ontoprobe/ontology"
    classes = released.classes(folder)
    properties = released.properties(folder)
    assert (classes.height, properties.height) == (783, 52)
    present = classes.join(built.classes, on="class", how="semi").height
    assert present == 781
    labels = dict(built.classes.select("class", "label").rows())
    differing = pl.concat(
        [
            sources.chain_differences(classes, built.classes, built.class_chains, built.rejects),
            sources.property_differences(
                properties, built.properties, built.property_chains, built.alignment, labels
            ),
        ]
    )
    table = sources.agreement(classes, properties, differing)
    right = {
        row["slice"]: round(row["value"] * row["n"] / 100) for row in table.iter_rows(named=True)
    }
    with capsys.disabled():
        print(f"\nagreement with the released ontology: {right}")
    assert right["chain"] >= 763
    assert right["aligned"] >= 28
    assert right["domain"] >= 28
    assert right["range"] >= 29
    assert right["superproperties"] >= 32
    assert differing["reason"].str.len_chars().min() > 5


def test_instances_are_sampled_to_twenty_a_class(built):
    sizes = built.instances.group_by("class").len()["len"]
    assert sizes.max() == 20
    assert built.instances.height > 8500


def test_the_five_tasks_are_built_from_the_excerpts(built):
    switches = modes.resolve("default")
    patterns = read_table("resources/templates/ontology_patterns.tsv")
    taken = own.take(built, {}, patterns, switches, seed=0)
    sets = build.build(taken, switches, "onto_built")
    rules = reasoning.build(taken, sets.items, sets.candidates, switches)
    schema.check(sets.items, schema.ITEMS)
    schema.check(rules, schema.ITEMS)
    rows = dict(sets.items.group_by("relation").len().rows())
    print(rows, taken.steps)
    assert min(rows.values()) >= 30
    assert rows["SCO"] >= 700
    assert set(rules["relation"]) == set(reasoning.RULES)

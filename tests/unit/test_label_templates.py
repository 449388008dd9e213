"""Templates made from labels for item properties without a written one, counted separately."""

import gzip
from pathlib import Path

import polars as pl
import pytest
import yaml

from kgprobe import schema
from kgprobe.benchmarks.attributes import paths
from kgprobe.benchmarks.attributes.definition import settings_of
from kgprobe.benchmarks.label_templates import label_templates, template_of
from kgprobe.experiments import read_table
from kgprobe.probes.prompts.variants import relations as templates
from kgprobe.settings.probes import AttributePrompts
from tests.unit.attribute_graphs import graph, triples, worked

ROOT = Path(__file__).parents[2]
TABLES = [
    read_table(ROOT / f"resources/templates/{name}.tsv") for name in ("templates", "attributes")
]
WIKIBASE = "http://wikiba.se/ontology#"
ENTITY = "http://www.wikidata.org/entity/"


@pytest.mark.parametrize(
    ("label", "text"),
    [
        ("airline hub", "The airline hub of [X] is [Y]."),
        ("topic's main template", "The topic's main template of [X] is [Y]."),
        ("blood type (old)", "The blood type (old) of [X] is [Y]."),
        ("capital of", "[X] is capital of [Y]."),
        ("based on", "[X] is based on [Y]."),
        ("named after", "[X] is named after [Y]."),
        ("of", "The of of [X] is [Y]."),
        ("has tense", "[X] has tense [Y]."),
        ("is pollinated by", "[X] is pollinated by [Y]."),
        ("was born in", "[X] was born in [Y]."),
        ("does not have part", "[X] does not have part [Y]."),
        ("lives in", "[X] lives in [Y]."),
        ("shares border with", "[X] shares border with [Y]."),
        ("indigenous to", "[X] is indigenous to [Y]."),
        ("series of", "[X] is series of [Y]."),
        ("birthPlace", "The birth place of [X] is [Y]."),
        ("worksFor", "[X] works for [Y]."),
        ("isA", "[X] is a [Y]."),
        ("hasDNA", "The hasDNA of [X] is [Y]."),
        ("place_of_birth", "The place of birth of [X] is [Y]."),
        ("pKa", "The pKa of [X] is [Y]."),
        ("CEO", "The CEO of [X] is [Y]."),
        ("hasta", "The hasta of [X] is [Y]."),
        ("  cause \n of  death ", "The cause of death of [X] is [Y]."),
        ("", None),
        (" ", None),
        ("see [X]", None),
        ("[MASK]", None),
        ("{sub}", None),
        ("half of a {pair", None),
    ],
)  # fmt: skip
def test_template_from_a_label(label, text):
    assert template_of(label) == text


def dump(*rows):
    """Return rows of properties.rq."""
    named = [(ENTITY + p, WIKIBASE + kind, label) for p, kind, label in rows]
    columns = dict.fromkeys(("property", "datatype", "label"), pl.String)
    return pl.DataFrame(named, schema=columns, orient="row")


def test_only_item_properties_with_a_label_get_a_template():
    properties = dump(
        ("P1", "WikibaseItem", "hub"), ("P2", "WikibaseItem", None), ("P3", "Time", "start time"),
        ("P4", "WikibaseProperty", "subproperty of"), ("P5", "WikibaseItem", "b"),
        ("P5", "WikibaseItem", "a"), ("P6", "WikibaseItem", "[Y]"),
    )  # fmt: skip
    assert label_templates(properties) == {
        "P1": "The hub of [X] is [Y].",
        "P5": "The a of [X] is [Y].",
    }
    assert label_templates(properties.clear()) == {}


def asked(*relations):
    rows = [
        (f"i{n}", "g", "r", relation, "s", "Q1", "set", [0], n, "{}")
        for n, relation in enumerate(relations)
    ]
    return pl.DataFrame(rows, schema=dict(schema.ITEMS.columns), orient="row")


def test_label_templates_are_used_only_without_written_ones():
    texts = {"P26": "The spouse of [X] is [Y].", "P99998": "The hub of [X] is [Y]."}
    prompts, origins = templates.word(
        asked("P26", "P99998"), *TABLES, AttributePrompts(), by_label=texts
    )
    schema.check(prompts, schema.PROMPTS)
    schema.check(origins, schema.PROMPT_ORIGINS)
    generic = prompts.filter(kind="label")
    assert generic.select("prompt", "relation", "text", "index").rows() == [
        ("P99998/label", "P99998", "The hub of [X] is [Y].", 0)
    ]
    assert prompts.filter(relation="P26").height == 6
    assert "label" not in prompts.filter(relation="P26")["kind"].to_list()
    with pytest.raises(templates.MissingTemplateError, match=r"1 relations .*P99999 \(1\)"):
        templates.word(
            asked("P26", "P99998", "P99999"), *TABLES, AttributePrompts(), by_label=texts
        )


def config():
    made = yaml.safe_load((ROOT / "config" / "config.yaml").read_text())["attributes"]
    return {**made, "paths": {**made["paths"], "min_combo": 1, "categories": 1}}


def test_written_generic_and_dropped_relations_are_counted_separately():
    # the eight paths of the worked example; P22 and P26 have templates, P25 only a label
    chosen = settings_of(config(), "paths", 0, {"P22", "P26"}, by_label={"P22", "P25", "P1234"})
    built = paths.build(worked(), chosen)
    assert triples(built.examples) == [((3, 22, 2), (2, 26, 1)), ((3, 25, 1), (1, 26, 2))]
    counted = built.sizes.select("build", "predicates", "written", "by_label", "without_template")
    assert sorted(counted.rows()) == [
        ("labeled", 3, 2, 1, 0),
        ("sampled", 3, 2, 1, 0),
        ("structural", 7, 2, 1, 4),
    ]
    lost = built.steps.filter(step="templates").row(0, named=True)
    assert (lost["kept"], lost["dropped"]) == (2, 6)
    assert "P25" not in lost["reason"]
    generic = built.steps.filter(pl.col("step").str.contains("worded by the relation's label"))
    assert generic.select("kept", "dropped", "reason").rows() == [(1, 0, "P25 (1)")]


def test_runs_without_labels_report_no_label_templates():
    chosen = settings_of(config(), "paths", 0, {"P22", "P26"})
    built = paths.build(worked(), chosen)
    assert built.sizes["by_label"].to_list() == [0, 0, 0]
    step = built.steps.filter(pl.col("step").str.contains("worded by")).row(0, named=True)
    assert (step["kept"], step["reason"]) == (0, "")
    unchecked = settings_of(config(), "paths", by_label={"P25"})
    assert (unchecked.templates, unchecked.by_label) == (None, [])
    none = settings_of(config(), "paths", templates=(), by_label={"P25"})
    assert (none.templates, none.by_label) == (["P25"], ["P25"])


def test_full_rebuild_continues_without_a_template():
    encoded = graph([(1, 31, 9), (1, 40, 2), (2, 60_000, 4), (2, 22, 3)])
    chosen = settings_of(config(), "paths", 0, {"P40", "P22"})
    assert triples(paths.build(encoded, chosen).examples) == [((1, 40, 2), (2, 22, 3))]


@pytest.mark.real
def test_every_item_property_of_the_dump_has_a_template(real_data):
    folder = real_data / "wikidata" / "properties"
    kinds, labels = {}, {}
    with gzip.open(folder / "metadata.property.datatypes.tsv.gz", "rt") as lines:
        for _, name, _, kind in (line.rstrip("\n").split("\t") for line in lines):
            kinds[name] = kind
    with gzip.open(folder / "labels.property.en.tsv.gz", "rt") as lines:
        for name, label in (line.rstrip("\n").split("\t") for line in lines):
            labels.setdefault(name, label[1:-4].replace("\\'", "'"))
    items = [(p, "WikibaseItem", labels[p]) for p in labels if kinds.get(p) == "wikibase-item"]
    texts = label_templates(dump(*items))
    assert len(items) == len(texts) == 1384
    written = {row["relation"] for rows in TABLES for row in rows}
    generic = {relation: text for relation, text in texts.items() if relation not in written}
    assert len(generic) == 873
    assert len(set(texts) & written) == 1384 - 873
    for text in generic.values():
        assert text.count("[X]") == text.count("[Y]") == 1
        assert text == " ".join(text.split())
        assert text.endswith(" [Y].")
    prompts, _ = templates.word(asked(*texts), *TABLES, AttributePrompts(), by_label=texts)
    by_kind = prompts.group_by("kind").agg(pl.col("relation").n_unique())
    assert dict(by_kind.rows())["label"] == 873

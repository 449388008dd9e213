"""Three graphs without specific code: DBpedia's ontology, CoDEx as a CSV, WordNet as SKOS.

Sizes equal plain counts over the lines of the files.
"""

from collections import defaultdict
from pathlib import Path

import pytest

from kgprobe.benchmarks import own_words
from kgprobe.benchmarks.bear import build as bear
from kgprobe.benchmarks.ontoprobe import build as onto
from kgprobe.benchmarks.ontoprobe import modes, own
from kgprobe.experiments import manual_templates, read_table
from kgprobe.knowledge import ontology
from kgprobe.settings.sources import Columns, OwnGraph, Roles
from kgprobe.sources.graphs.raw import GraphFileError
from kgprobe.sources.graphs.read import GraphTables, read

pytestmark = pytest.mark.nightly(needs="the real data in full")

TEMPLATES = Path(__file__).parents[2] / "resources/templates"
LANGUAGES = ("en", "mul")
#: administrative districts of WordNet 3.0, and what is above them
WORDNET = Path(__file__).parent / "data/wordnet_districts.tsv"


def with_templates(made: GraphTables, section: OwnGraph):
    labels = dict(made["properties"].select("property", "label").rows())
    ours = read_table(TEMPLATES / "templates.tsv")
    return labels, own_words.templates(labels, section, [], ours)


def big(made: GraphTables, section: OwnGraph) -> bear.NestedSets:
    labels, rows = with_templates(made, section)
    known = read_table(TEMPLATES / "bear_relations.tsv")
    relations = own_words.relations(made["facts"], labels, section, known)
    return bear.build(made["facts"], relations, manual_templates(rows), {}, section.bear, "g")


def tasks(made: GraphTables, section: OwnGraph) -> dict[str, int]:
    """Map each OntoProbe task to its rows."""
    labels, rows = with_templates(made, section)
    built = ontology.build_own(
        made["classes"], made["class_hierarchy"], made["types"], made["properties"],
        made["property_hierarchy"], made["facts"],
    )  # fmt: skip
    uses = own.popularity(made["facts"])
    switches = modes.resolve("default", {})
    taken = own.take(built, uses, own_words.patterns(rows, labels), switches, 0, 50, partly=True)
    sets = onto.build(taken, switches, "onto_g")
    return dict(sets.items["relation"].value_counts().rows())


@pytest.mark.real
def test_the_ontology_of_dbpedia(real_data):
    path = real_data / "dbpedia/dbo-snapshots_2026-07-22.ttl"
    with pytest.raises(GraphFileError, match=r"missing_label: .*has no label .801 times"):
        read("dbo", OwnGraph("rdf", (str(path),)), LANGUAGES)
    section = OwnGraph("rdf", (str(path),), leave_out=("missing_label",))
    made = read("dbo", section, LANGUAGES)
    # the figures of the note on sources: 729 edges to dbo, five of them to undeclared classes
    assert (made["classes"].height, made["class_hierarchy"].height) == (790, 729 - 5)
    declared = made["properties"].filter(made["properties"]["property"].str.contains("dbpedia.org"))
    assert declared.height == 3029
    found = tasks(made, section)
    assert found == {"SCO": 723, "SPO": 30, "DM": 50, "RG": 30}
    sets = big(made, section)
    # answers x instances of subClassOf
    assert sets.big.items.height == 23 * 10
    assert sets.big.items["relation"].unique().to_list() == [
        "http://www.w3.org/2000/01/rdf-schema#subClassOf"
    ]


@pytest.mark.real
def test_codex_as_a_csv_of_ids(real_data, tmp_path):
    parts = [real_data / f"codex/triples/codex-s/{name}.txt" for name in ("valid", "test")]
    lines = "\n".join(part.read_text() for part in parts).split("\n")
    triples = [line.split("\t") for line in lines if line]
    path = tmp_path / "codex.csv"
    path.write_text("s,p,o\n" + "".join(",".join(row) + "\n" for row in triples))
    labels = real_data / "wikidata/entity_labels.tsv"
    named = {row.split("\t")[0] for row in labels.read_text().split("\n")[1:]}
    ends = {name for s, _, o in triples for name in (s, o)}
    columns = Columns("s", "p", "o", id="qid")
    given = {"labels": (str(labels),), "columns": columns, "ids": "wikidata"}
    section = OwnGraph("table", (str(path),), **given, leave_out=("missing_label",))
    made = read("codex", section, LANGUAGES)
    assert made["facts"].height == len({tuple(row) for row in triples}) == 3655
    lacking = len(ends - named)
    counted = dict(made["problems"].select("problem", "n").rows())
    assert counted == ({"missing_label": lacking} if lacking else {})
    sets = big(made, section)
    items = sets.big.items
    assert items["relation"].n_unique() >= 3
    # every question is a fact of the file, and its subject has one object
    objects = defaultdict(set)
    for s, p, o in triples:
        objects[s, p].add(o)
    answers = dict(sets.big.candidates.with_columns(k=sets.big.candidates["set"] + "#" +
        sets.big.candidates["index"].cast(str)).select("k", "id").rows())  # fmt: skip
    for row in items.iter_rows(named=True):
        gold = answers[f"{row['candidates']}#{row['answers'][0]}"]
        assert objects[row["subject_id"], row["relation"]] == {gold}


def test_nouns_of_wordnet_as_concepts_of_skos(tmp_path):
    skos, own_name = "http://www.w3.org/2004/02/skos/core#", "http://wordnet/"
    pointers = {
        "hypernyms": f"{skos}broader",
        "instance of": f"{own_name}instanceOf",
        "part of": f"{own_name}partOf",
    }
    counts: dict[str, set[tuple[str, str]]] = defaultdict(set)
    lines, classes = [], set()
    rows = read_table(WORDNET)
    for row in rows:
        name = own_name + row["synset"]
        if not row["instance of"]:
            classes.add(name)
            lines.append(f"<{name}> <{TYPE}> <{skos}Concept> .")
        lines.append(f'<{name}> <{skos}prefLabel> "{row["word"]}"@en .')
        for kind, pointer in pointers.items():
            for target in row[kind].split():
                lines.append(f"<{name}> <{pointer}> <{own_name}{target}> .")
                counts[kind].add((name, own_name + target))
    # an instance is no class, and some have a hypernym all the same
    counts["hypernyms"] = {pair for pair in counts["hypernyms"] if set(pair) <= classes}
    counts["instance of"] = {pair for pair in counts["instance of"] if pair[1] in classes}
    for label in ("instance of", "part of"):
        lines.append(f'<{pointers[label]}> <{skos}prefLabel> "{label}"@en .')
    path = tmp_path / "wordnet.ttl"
    path.write_text("\n".join(lines))
    roles = Roles(type=(TYPE, f"{own_name}instanceOf"))
    section = OwnGraph("rdf", (str(path),), roles=roles)
    made = read("wordnet", section, LANGUAGES)
    assert len(rows) == 1_625
    assert made["classes"].height == len(classes)
    assert set(made["class_hierarchy"].rows()) == counts["hypernyms"]
    assert set(made["types"].select("instance", "class").rows()) == counts["instance of"]
    parts = made["facts"].filter(relation=f"{own_name}partOf")
    assert set(parts.select("subject", "object").rows()) == counts["part of"]
    assert made["facts"].height == sum(len(pairs) for pairs in counts.values())
    assert set(tasks(made, section)) == {"TP", "SCO"}


TYPE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"

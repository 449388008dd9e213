"""OntoProbe's tasks: construction from both sources, and errors for wrong input."""

import json
from dataclasses import replace

import polars as pl

from kgprobe import schema
from kgprobe.benchmarks.ontoprobe import build, concepts, modes, reasoning, released
from kgprobe.benchmarks.ontoprobe import own as ontoprobe_own
from kgprobe.knowledge.ontology import OntologyTables
from kgprobe.settings.benchmarks import Rows

SWITCHES = modes.resolve("default")
COUNT = 34


def write_release(folder, change=lambda files: None):
    """Write a small release in the published layout: a chain of classes and COUNT properties."""
    classes = [
        {"id": i, "rdfs:Class": f"http://dbpedia.org/ontology/C{i}", "rdfs:label": f"kind {i}",
         "rdfs:subClassOf": [f"kind {j}" for j in range(i - 1, max(i - 4, -1), -1)],
         "is rdf:type of": [f"Thing {i}"]}
        for i in range(COUNT + 1)
    ]  # fmt: skip
    properties = [
        {"id": i, "rdf:Property": [f"https://www.wikidata.org/wiki/Property:P{i}"],
         "rdfs:label": f"link {i}", "rdfs:domain": "kind 1", "rdf:range": "kind 2",
         "rdfs:subPropertyOf": {"above": "[X] is above [Y] ."},
         "example": [[f"Thing {i}", "Thing 0"]], "pattern": f"[X]'s link {i} is [Y] ."}
        for i in range(COUNT)
    ]  # fmt: skip
    own = [{f"link {i}": f"[X]'s link {i} is [Y] ."} for i in range(COUNT)]
    files = {
        "ontology/class.json": classes,
        "ontology/property.json": properties,
        "memorizing/type.jsonl": [
            {"uuu": c["is rdf:type of"][0], "xxx": [c["rdfs:label"], *c["rdfs:subClassOf"]]}
            for c in classes
        ],
        "memorizing/subClassOf.jsonl": [
            {"uuu": c["rdfs:label"], "xxx": c["rdfs:subClassOf"]} for c in classes[1:]
        ],
        "memorizing/subPropertyOf.jsonl": [
            {"uuu": p, "xxx": {"above": "[X] is above [Y] ."}} for p in own
        ],
        "memorizing/domain.jsonl": [{"uuu": p, "xxx": ["kind 1"]} for p in own],
        "memorizing/range.jsonl": [{"uuu": p, "xxx": ["kind 2"]} for p in own],
    }
    change(files)
    for name, entries in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = path.suffix == ".jsonl"
        text = "\n".join(map(json.dumps, entries)) if lines else json.dumps(entries)
        path.write_text(text)
    return folder


def built(folder, switches=SWITCHES):
    taken = released.take(folder, switches)
    return taken, build.build(taken, switches, "onto_released")


def test_frames_satisfy_their_schemas(tmp_path):
    taken, sets = built(write_release(tmp_path))
    rules = reasoning.build(taken, sets.items, sets.candidates, SWITCHES)
    for frame, contract in (
        (sets.items, schema.ITEMS),
        (rules, schema.ITEMS),
        (sets.candidates, schema.CANDIDATES),
        (sets.prompts, schema.PROMPTS),
        (sets.funnel, schema.FUNNEL),
    ):
        schema.check(frame, contract)
    assert sets.items.filter(item="SCO-20")["answers"].item().to_list() == [20, 19, 18]
    assert set(rules["relation"]) == set(reasoning.RULES)


def test_a_property_with_several_names_has_its_wikidata_name(tmp_path):
    def change(files):
        files["ontology/property.json"][3]["rdf:Property"] = [
            "http://dbpedia.org/ontology/link",
            "https://www.wikidata.org/wiki/Property:P3",
        ]
        files["ontology/property.json"][4]["rdf:Property"] = "http://dbpedia.org/ontology/four"

    taken, _ = built(write_release(tmp_path, change))
    names = [found.id for found in taken.concepts.properties]
    assert names[2:5] == [
        "http://www.wikidata.org/entity/P2",
        "http://www.wikidata.org/entity/P3",
        "http://dbpedia.org/ontology/four",
    ]


def test_a_class_named_like_a_property_has_its_own_id(tmp_path):
    def change(files):
        for name, entries in files.items():
            files[name] = json.loads(json.dumps(entries).replace('"kind 9"', '"link 9"'))

    taken, _ = built(write_release(tmp_path, change))
    ids = {row.task: row.id for row in taken.rows if row.subject == "link 9"}
    assert ids == {
        "SCO": "http://dbpedia.org/ontology/C9",
        **dict.fromkeys(("SPO", "DM", "RG"), "http://www.wikidata.org/entity/P9"),
    }


def test_every_rule_lists_its_premises(tmp_path):
    taken, sets = built(write_release(tmp_path))
    rules = reasoning.build(taken, sets.items, sets.candidates, SWITCHES)
    said = {
        rule: reasoning.manual(json.loads(meta), True, True)
        for rule, meta in rules.filter(row=21).select("relation", "meta").rows()
    }
    assert said["rdfs2"] == (
        "One has to be a kind 1 if one has link 21 . [X]'s link 21 is [Y] . "
        "Therefore, [X] is a particular [MASK] ."
    )
    assert said["rdfs5"] == (
        "Link 21 implies above . [X] implies link 21 . Therefore, [X] implies [MASK] ."
    )
    assert said["rdfs7"].endswith("Therefore, [X] [MASK] [Y] .")
    assert said["rdfs9"] == (
        "Kind 22 is a kind 21 . [X] is a kind 22 . Therefore, [X] is a particular [MASK] ."
    )
    assert said["rdfs11"] == (
        "Kind 22 has superclass kind 21 . [X] has superclass kind 22 . "
        "Therefore, [X] has superclass [MASK] ."
    )
    meta = json.loads(rules.filter(item="rdfs9-21")["meta"].item())
    assert reasoning.manual(meta, False, False) == "Therefore, " + meta["h"]


def test_repeated_rows_and_training_subjects_are_marked(tmp_path):
    def change(files):
        files["memorizing/type.jsonl"].append(files["memorizing/type.jsonl"][30])
        files["memorizing/subPropertyOf.jsonl"][33] = {
            "uuu": {"link 5": "[X] other [Y] ."},
            "xxx": {"link 7": "[X]'s link 7 is [Y] ."},
        }

    _, sets = built(write_release(tmp_path, change))
    metas = {i: json.loads(m) for i, m in sets.items.select("item", "meta").rows()}
    assert metas[f"TP-{COUNT + 1}"]["repeat"] == "TP-30"
    assert metas["SPO-33"]["twin"] == "SPO-5"
    assert sum("repeat" in m for m in metas.values()) == 1


def test_a_subset_keeps_golds_and_renumbers(tmp_path):
    _, sets = built(write_release(tmp_path))
    few = build.lite(sets, Rows(dev=1, test=2), 5, 0)
    schema.check(few.items, schema.ITEMS)
    schema.check(few.candidates, schema.CANDIDATES)
    assert few.items.height == 15
    labels = {(s, i): name for s, i, name in few.candidates.select("set", "index", "label").rows()}
    whole = {(s, i): name for s, i, name in sets.candidates.select("set", "index", "label").rows()}
    columns = ("item", "candidates", "answers")
    before = {i: [whole[s, a] for a in g] for i, s, g in sets.items.select(columns).rows()}
    for item, name, golds in few.items.select(columns).rows():
        assert [labels[name, a] for a in golds] == before[item]
    assert few.prompts.equals(sets.prompts)
    first = build.lite(sets, Rows(test=2), 0, 0, templates=1).prompts
    own = {}
    for relation, index, prompt in sets.prompts.select("relation", "index", "prompt").rows():
        own[relation] = min(own.get(relation, (index, prompt)), (index, prompt))
    assert sorted(first["prompt"]) == sorted(prompt for _, prompt in own.values())
    assert first.height == 5 < sets.prompts.height


def test_rules_of_a_subset_are_those_of_its_rows_with_candidates_of_their_own(tmp_path):
    taken, sets = built(write_release(tmp_path))
    rules = reasoning.build(taken, sets.items, sets.candidates, SWITCHES)
    plain = build.lite(sets, Rows(dev=1, test=2), 5, 0)
    few = build.lite(replace(sets, rules=rules), Rows(dev=1, test=2), 5, 0)
    schema.check(few.rules, schema.ITEMS)
    schema.check(few.candidates, schema.CANDIDATES)
    # the tasks are as without rules
    assert few.items.equals(plain.items)
    of_rules = pl.col("set").str.ends_with(" of rules")
    assert few.candidates.filter(~of_rules).equals(plain.candidates)

    def spelled(frame, candidates):
        """Return item -> (first premise, golds, golds of the tests of P2), as labels."""
        label = {(s, i): name for s, i, name in candidates.select("set", "index", "label").rows()}
        rows = {}
        for item, name, golds, text in frame.select("item", "candidates", "answers", "meta").rows():
            meta = json.loads(text)
            tests = [
                [label[test["candidates"], gold] for gold in test["golds"]]
                for _, test in sorted(meta["p2_tests"].items())
            ]
            rows[item] = meta["p1_item"], [label[name, gold] for gold in golds], tests
        return rows

    before, after = spelled(rules, sets.candidates), spelled(few.rules, few.candidates)
    kept = set(few.items["item"])
    assert after == {item: row for item, row in before.items() if row[0] in kept}
    assert few.rules.group_by("relation").len()["len"].to_list() == [3] * 6
    used: dict[str, set[int]] = {}
    for name, golds, text in few.rules.select("candidates", "answers", "meta").rows():
        tests = json.loads(text)["p2_tests"].values()
        for other, indices in [(name, golds), *((v["candidates"], v["golds"]) for v in tests)]:
            used.setdefault(other, set()).update(indices)
    assert "class of rules" in used
    for name, indices in used.items():
        most = sets.candidates.filter(set=name.removesuffix(" of rules")).height
        assert few.candidates.filter(set=name).height == min(len(indices) + 5, most)
    whole = build.lite(replace(sets, rules=rules), Rows(test=2), 0, 0)
    assert spelled(whole.rules, sets.candidates) == {
        item: before[item] for item in whole.rules["item"]
    }
    assert whole.rules.height == 12
    one = build.lite(replace(sets, rules=rules), Rows(dev=1, test=2), 5, 0, rule_rows=1)
    assert one.rules.group_by("relation", "role").len()["len"].to_list() == [1] * 12
    assert one.candidates.filter(of_rules).height < few.candidates.filter(of_rules).height
    assert one.items.equals(few.items)


def own_tables():
    def table(columns, rows):
        return pl.DataFrame(list(rows), schema=columns.split(), orient="row")

    classes = table("class label", ((f"d/C{i}", f"kind {i}") for i in range(45)))
    parents = ((f"d/C{i}", "d/C0", "kind 0", 0) for i in range(1, 45))
    chains = table("id ancestor ancestor_label position", parents)
    members = ((f"d/C{i % 45}", f"d/I{i}", f"Thing {i}") for i in range(60))
    instances = table("class instance label", members)
    properties = table(
        "property label domain range statements",
        ((f"w/P{i}", f"link {i}", None if i == 3 else "d/C1", "d/C2", i) for i in range(40)),
    )
    parents = ((f"w/P{i}", "w/P99", "above", 0) for i in range(40) if i != 4)
    above = table("id ancestor ancestor_label position", parents)
    return OntologyTables(classes, chains, instances, properties, above)


USES = {"Thing 3": 7}
PATTERNS = [{"property": f"P{i}", "pattern": f"[X]'s link {i} is [Y] ."} for i in (*range(38), 99)]


def test_the_finer_of_two_superclasses_of_one_name_is_kept():
    tables = own_tables()
    names = ["above one", "above-two", "above/one"]
    upper = pl.DataFrame({"class": [f"d/D{n}" for n in range(3)], "label": names})
    chain = [("d/C1", f"d/D{n}", name, n) for n, name in enumerate(names)]
    chains = pl.DataFrame(chain, schema=tables.class_chains.schema, orient="row")
    chains = pl.concat([tables.class_chains.filter(pl.col("id") != "d/C1"), chains])
    tables = replace(tables, classes=pl.concat([tables.classes, upper]), class_chains=chains)
    taken = ontoprobe_own.take(tables, USES, PATTERNS, SWITCHES, seed=0)
    rows = {(r.golds, r.depth) for r in taken.rows if r.task == "SCO" and r.id == "d/C1"}
    assert rows == {(("above one", "above-two"), 2)}


def test_clauses_name_both_ends_of_a_property_as_their_classes_are_named():
    names = pl.col("label").replace({"kind 1": "film-maker", "kind 2": "work (film)"})
    patterns = [{**row, "pattern": row["pattern"].replace("'s", " has").replace(" is", "")}
                for row in PATTERNS]  # fmt: skip
    tables = own_tables()
    tables = replace(tables, classes=tables.classes.with_columns(names))
    taken = ontoprobe_own.take(tables, USES, patterns, SWITCHES, seed=0)
    items = build.build(taken, SWITCHES, "onto_world").items.filter(subject_id="w/P20")
    assert dict(
        items.filter(pl.col("relation").is_in(["DM", "RG"]))["relation", "subject"].rows()
    ) == {"DM": "if one has link 20 a work (film) .", "RG": "if a film-maker has link 20 that ."}


def test_a_name_with_composed_and_combining_accents_is_one_question():
    names = pl.col("label").replace({"Thing 6": "Café", "Thing 7": "Cafe\u0301"})
    tables = own_tables()
    tables = replace(tables, instances=tables.instances.with_columns(names))
    taken = ontoprobe_own.take(tables, USES, PATTERNS, SWITCHES, seed=0)
    rows = [row for row in taken.rows if row.task == "TP"]
    golds = {row.subject: row.golds for row in rows if row.subject.startswith("Caf")}
    assert golds == {"Café": ("kind 6", "kind 0", "kind 7")}
    assert len(rows) == 59


def test_every_class_of_an_instance_is_right():
    tables = own_tables()
    # class 0 has no superclass, class 7 has one
    more = pl.DataFrame({"class": ["d/C0", "d/C7"], "instance": "d/I6", "label": "Thing 6"})
    tables = replace(tables, instances=pl.concat([tables.instances, more]))
    taken = ontoprobe_own.take(tables, USES, PATTERNS, SWITCHES, seed=0)
    golds = [row.golds for row in taken.rows if row.subject == "Thing 6"]
    assert golds == [("kind 6", "kind 0", "kind 7")]


def test_the_rebuilt_ontology_is_split_by_hash_and_counts_omissions():
    taken = ontoprobe_own.take(own_tables(), USES, PATTERNS, SWITCHES, seed=0)
    sets = build.build(taken, SWITCHES, "onto_world")
    parts = sets.items.group_by("relation", "role").len()
    assert set(parts.filter(role="train")["len"]) == {10} == set(parts.filter(role="dev")["len"])
    for task in concepts.TASKS:
        own = sets.items.filter(relation=task)
        assert own["subject_id"].n_unique() == own.height
    steps = {s: n for t, s, n in taken.steps if t == "DM"}
    assert steps["properties"] == 40
    assert steps["with domain and range"] == 38
    assert steps["with a pattern"] == 36  # without 3, 4 and the two without a pattern
    assert ontoprobe_own.take(own_tables(), USES, PATTERNS, SWITCHES, seed=0).rows == taken.rows
    meta = {json.loads(m)["label"]: json.loads(m) for m in sets.items["meta"]}
    assert meta["Thing 3"]["popularity"] == 7


def test_a_statement_between_two_entities_of_one_name_counts_once_in_popularity():
    rows = [("Ann", "Ann"), ("Ann", "Bob"), ("Bob", None), (None, None)]
    facts = pl.DataFrame(rows, ["subject_label", "object_label"], orient="row")
    assert ontoprobe_own.popularity(facts) == {"Ann": 2, "Bob": 2}


def test_classes_differing_only_in_case_are_one_candidate():
    """ "kind 2" is a subclass of "Kind 1", which is two classes: the first spelling is kept."""
    tables = own_tables()
    names = {"d/C1": "Kind 1", "d/C7": "kind 1"}
    classes = tables.classes.with_columns(
        label=pl.col("class").replace_strict(names, default=pl.col("label"))
    )
    row = [("d/C2", "d/C7", "kind 1", 0)]
    above = pl.DataFrame(row, tables.class_chains.schema, orient="row")
    chains = pl.concat([above, tables.class_chains.filter(pl.col("id") != "d/C2")])
    changed = replace(tables, classes=classes, class_chains=chains)
    taken = ontoprobe_own.take(changed, USES, PATTERNS, SWITCHES, seed=0)
    sets = build.build(taken, SWITCHES, "onto_world")
    labels = sets.candidates.filter(set="class")["label"].to_list()
    assert "Kind 1" in labels
    assert len({label.casefold() for label in labels}) == len(labels)
    golds = {row.subject: row.golds for row in taken.rows if row.task == "SCO"}
    assert golds["kind 2"] == ("Kind 1",)


def test_labels_equal_after_normalization_are_one_candidate():
    """ "Kind é" has a precomposed or a combining accent; "Link 1" is a subproperty of "link 1"."""
    tables = own_tables()
    kinds = {"d/C1": "kind \u00e9", "d/C7": "kind e\u0301"}
    links = {"w/P1": "link 1", "w/P5": "Link 1"}
    spelled = [
        frame.with_columns(label=pl.col(key).replace_strict(names, default=pl.col("label")))
        for frame, key, names in (
            (tables.classes, "class", kinds),
            (tables.properties, "property", links),
        )
    ]
    row = [("w/P5", "w/P1", "link 1", 1)]
    above = pl.DataFrame(row, tables.property_chains.schema, orient="row")
    above = pl.concat([tables.property_chains, above])
    changed = replace(tables, classes=spelled[0], properties=spelled[1], property_chains=above)
    taken = ontoprobe_own.take(changed, USES, PATTERNS, SWITCHES, seed=0)
    sets = build.build(taken, SWITCHES, "onto_world").candidates
    labels = sets.filter(pl.col("set").is_in(["class", "property"]))["label"].to_list()
    assert {"kind \u00e9", "link 1"} <= set(labels)
    assert not {"kind e\u0301", "Link 1"} & set(labels)
    # the property with more statements; its own name is no answer
    named = [row for row in taken.rows if row.task == "SPO" and row.subject == "link 1"]
    assert [(row.id, row.golds) for row in named] == [("w/P5", ("above",))]
    assert [p.id for p in taken.concepts.properties if p.label == "link 1"] == ["w/P5"]


def test_instances_of_same_named_classes_keep_their_own_superclasses():
    tables = own_tables()
    named = pl.when(pl.col("class") == "d/C7").then(pl.lit("kind 1")).otherwise("label")
    row = [("d/C7", "d/C8", "kind 8", 0)]
    above = pl.DataFrame(row, tables.class_chains.schema, orient="row")
    chains = pl.concat([above, tables.class_chains.filter(pl.col("id") != "d/C7")])
    classes = tables.classes.with_columns(label=named)
    changed = replace(tables, classes=classes, class_chains=chains)
    taken = ontoprobe_own.take(changed, USES, PATTERNS, SWITCHES, seed=0)
    golds = {row.id: row.golds for row in taken.rows if row.task == "TP"}
    assert set(golds) == set(tables.instances["instance"])
    assert golds["d/I1"] == ("kind 1", "kind 0")
    assert golds["d/I7"] == golds["d/I52"] == ("kind 1", "kind 8")
    build.build(taken, SWITCHES, "onto_world")

"""Ontology building on a small graph, with one case for every rule of OntoProbe sec. 2.1."""

import polars as pl

from kgprobe.knowledge import ontology

DBO = "http://dbpedia.org/ontology/"
WD = "http://www.wikidata.org/entity/"


def table(columns: str, *rows: tuple[str | None, ...]) -> pl.DataFrame:
    return pl.DataFrame(rows, dict.fromkeys(columns.split(), pl.String), orient="row")


NAMES = ("Agent", "Person", "Artist", "Painter", "Work", "Animal")
CLASSES = table("class label", *((DBO + name, name.lower()) for name in NAMES))
PAIRS = "Painter Artist, Artist Person, Person Animal, Person Agent, Painter undeclared, Work Work"
EDGES = table("child parent", *(tuple(DBO + c for c in p.split()) for p in PAIRS.split(", ")))
NODES = CLASSES.rename({"class": "id"})
CHAINS = ontology.chains(NODES, EDGES)


def chain(name: str) -> list[str]:
    return CHAINS.filter(pl.col("id") == DBO + name).sort("position")["ancestor_label"].to_list()


def test_chains_are_finest_first_with_ties_by_label():
    assert chain("Painter") == ["artist", "person", "agent", "animal"]
    assert chain("Work") == []


def test_edges_to_undeclared_classes_are_reported_not_added():
    strays = ontology.strays(NODES, EDGES, DBO)
    assert strays.rows() == [(DBO + "Painter", DBO + "undeclared")]


def test_a_class_without_a_label_does_not_cut_the_chain():
    edges = pl.DataFrame({"child": ["a", "b", "c"], "parent": ["b", "c", "d"]})
    nodes = pl.DataFrame({"id": ["a", "c", "d"], "label": ["A", "C", "D"]})
    chains = ontology.chains(nodes, edges).select("id", "ancestor", "distance", "position")
    assert chains.rows() == [("a", "c", 2, 0), ("a", "d", 3, 1), ("c", "d", 1, 0)]


def test_cycles_end():
    edges = pl.DataFrame({"child": ["a", "b", "c"], "parent": ["b", "c", "a"]})
    assert sorted(ontology.distances(edges).rows()) == [
        ("a", "b", 1), ("a", "c", 2), ("b", "a", 2), ("b", "c", 1), ("c", "a", 1), ("c", "b", 2),
    ]  # fmt: skip


def types(*rows: tuple[str, str]) -> pl.DataFrame:
    return table("class instance label", *((DBO + c, i, i.title()) for c, i in rows))


def test_an_instance_belongs_to_its_most_specific_classes():
    given = types(("Painter", "x"), ("Person", "x"), ("Agent", "x"), ("Work", "x"), ("Person", "y"))
    found = ontology.finest(given, CHAINS).select("class", "instance").sort("class", "instance")
    assert found.rows() == [(DBO + "Painter", "x"), (DBO + "Person", "y"), (DBO + "Work", "x")]


def test_an_instance_of_all_classes_of_a_cycle_is_not_lost():
    nodes = pl.DataFrame({"id": [DBO + c for c in "abc"], "label": list("abc")})
    edges = pl.DataFrame({"child": [DBO + c for c in "abc"], "parent": [DBO + c for c in "bab"]})
    chains = ontology.chains(nodes, edges)
    found = ontology.finest(types(("a", "x"), ("b", "x"), ("c", "y"), ("a", "y")), chains)
    assert sorted(found.select("class", "instance").rows()) == [
        (DBO + "a", "x"),
        (DBO + "b", "x"),
        (DBO + "c", "y"),
    ]


def test_samples_are_capped_per_class_and_need_a_label():
    nameless = table("class instance label", (DBO + "Work", "nameless", None))
    named = types(*[("Painter", f"p{i}") for i in range(30)], ("Work", "w"))
    given = pl.concat([named, nameless])
    sample = ontology.sample_instances(given, CHAINS, n=20, seed=0)
    assert sample.group_by("class").len().sort("class")["len"].to_list() == [20, 1]
    assert sample.equals(ontology.sample_instances(given.reverse(), CHAINS, n=20, seed=0))


def test_a_class_without_instances_is_in_the_table():
    given = types(("Painter", "x"), ("Painter", "y"), ("Work", "w"), ("undeclared", "z"))
    classes, chains, instances = ontology.class_tables(CLASSES, EDGES, given, 20, 0)
    assert classes.select("label", "depth", "instances").sort("label").rows() == [
        ("agent", 0, 0), ("animal", 0, 0), ("artist", 2, 0), ("painter", 3, 2), ("person", 1, 0),
        ("work", 0, 1),
    ]  # fmt: skip
    assert chains.equals(CHAINS)
    assert instances.height == 3


def test_the_alignment_is_the_union_of_both_directions():
    p1628 = [(WD + "P1", DBO + "a"), (WD + "P2", DBO + "b"), (WD + "P3", "http://schema.org/c")]
    owl = [(DBO + "b", WD + "P2"), (DBO + "d", WD + "P4"), (DBO + "e", DBO + "f")]
    stated, inverse = table("property equivalent", *p1628), table("property wikidata", *owl)
    assert ontology.alignment(stated, inverse).rows() == [
        (WD + "P1", DBO + "a", "P1628"),
        (WD + "P2", DBO + "b", "both"),
        (WD + "P4", DBO + "d", "owl"),
    ]


def test_the_domain_is_dbpedia_s_or_the_finest_constraint_class():
    depths = CHAINS.group_by(pl.col("id").alias("class")).agg(depth=pl.col("distance").max())
    classes = CLASSES.join(depths, on="class", how="left").with_columns(
        pl.col("depth").fill_null(0)
    )
    equivalence = pl.DataFrame({"class": [DBO + "Agent"], "wikidata": [WD + "Q1"]})
    aligned = pl.DataFrame({"property": [WD + "P1"], "dbpedia": [DBO + "p"], "direction": ["owl"]})
    dbo = pl.DataFrame({"property": [DBO + "p"], "domain": [DBO + "Work"], "range": ["xsd:date"]})
    constraints = pl.DataFrame(
        {
            "property": [WD + "P1", WD + "P1", WD + "P1", WD + "P2"],
            "constraint": [WD + "Q21503250", WD + "Q21510865", WD + "Q21510865", WD + "Q21503250"],
            "class": [WD + "Q9", WD + "Q1", WD + "Q2", WD + "Q3"],
        }
    )
    names = pl.DataFrame({"class": [WD + "Q2", WD + "Q3"], "label": ["Painter", "unheard of"]})
    found = ontology.ends(aligned, dbo, constraints, names, classes, equivalence)
    assert found.rows() == [
        (WD + "P1", DBO + "Work", "dbpedia", DBO + "Painter", "wikidata"),
    ]


def test_classes_of_a_constraint_that_are_equally_deep_are_chosen_by_label():
    classes = pl.DataFrame(
        {"class": [DBO + "A", DBO + "B", DBO + "C"], "label": ["zebra", "ape", "animal"],
         "depth": [2, 2, 1]},
    )  # fmt: skip
    equivalence = pl.DataFrame(
        {"class": [DBO + "A", DBO + "B", DBO + "C"], "wikidata": [WD + "Q1", WD + "Q2", WD + "Q3"]}
    )
    constraints = table(
        "property constraint class",
        *((WD + "P1", WD + "Q21503250", WD + name) for name in ("Q1", "Q2", "Q3")),
    )
    found = ontology.ends(
        table("property dbpedia direction"), table("property domain range"), constraints,
        table("class label"), classes, equivalence,
    )  # fmt: skip
    assert found.rows() == [(WD + "P1", DBO + "B", "wikidata", None, None)]


def test_the_most_used_eligible_properties_are_selected():
    properties = pl.DataFrame(
        {"property": ["P1", "P2", "P3", "P4", "P5"], "domain": ["d", "d", None, "d", "d"],
         "range": ["r", "r", "r", "r", "r"], "superproperties": [1, 2, 1, 0, 1],
         "statements": [5, 7, 100, 100, 5]},
    )  # fmt: skip
    chosen = ontology.choose(properties, 2).filter("chosen")["property"].to_list()
    assert chosen == ["P1", "P2"]
    named = ontology.choose(properties, 2, ["P3", "P9"]).filter("chosen")["property"].to_list()
    assert named == ["P3"]


def test_the_first_label_by_code_point_is_kept_in_any_row_order():
    wikidata, dbpedia = f"{ontology.WIKIDATA}P1", f"{ontology.DBO}A"
    labels = [(wikidata, "b"), (wikidata, "a")]
    for rows in (labels, labels[::-1]):
        built = ontology.build(
            {"classes": table("class label", (dbpedia, "A")),
             "class_hierarchy": table("class parent"), "types": table("class instance label"),
             "properties": table("property domain range"),
             "property_equivalence": table("property wikidata"),
             "class_equivalence": table("class wikidata")},
            {"properties": table("property label", *rows),
             "property_hierarchy": table("property parent"),
             "equivalent_property": table("property equivalent"),
             "constraint_classes": table("class label"),
             "constraints": table("property constraint class")}, None,
        )  # fmt: skip
        assert built.properties["label"].to_list() == ["a"]


def test_a_range_without_a_label_is_dropped_from_an_own_ontology():
    built = ontology.build_own(
        table("class label", ("A", "a"), ("B", None)),
        table("child parent"),
        table("class instance label", ("A", "i", "I")),
        table("property label domain range", ("p", "p", "A", "B"), ("q", "q", "A", "A")),
        table("child parent", ("p", "q")),
        table("relation", ("p",)),
    )
    ends = built.properties.select("property", "domain", "range", "range_source").rows()
    assert ends == [("p", "A", None, None), ("q", "A", "A", "own")]
    assert dict(built.steps.select("step", "kept").rows())["with a range"] == 1

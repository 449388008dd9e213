"""Required content of the embedded knowledge graph, so that no benchmark is empty."""

import polars as pl
import pytest

from tools.world.build import World
from tools.world.dbpedia import DBO

SOVEREIGN_STATE = "Q3624078"


@pytest.fixture(scope="module")
def graph(world: World) -> pl.DataFrame:
    """Return the graph of KG attributes: distinct truthy edges between items, without loops."""
    edges = world.truthy().filter(pl.col("kind") == "item")
    edges = edges.filter(pl.col("subject") != pl.col("object"))
    return edges.select(s="subject", p="relation", o="object").unique()


def test_countries_have_the_statements_that_the_papers_use(world: World) -> None:
    truthy = world.truthy()
    of_kind = (pl.col("relation") == "P31") & (pl.col("object") == SOVEREIGN_STATE)
    countries = truthy.filter(of_kind)["subject"]
    for relation in ("P36", "P30", "P37", "P38", "P47"):
        has = truthy.filter((pl.col("relation") == relation) & (pl.col("kind") == "item"))
        assert countries.is_in(has["subject"].implode()).sum() >= 60, relation


def test_class_tree_is_deep_enough(world: World) -> None:
    edges = world.statements.filter(pl.col("relation") == "P279")
    parents: dict[str, list[str]] = {}
    for subject, value in edges.select("subject", "object").iter_rows():
        parents.setdefault(subject, []).append(value)

    def depth(class_: str, seen: tuple[str, ...]) -> int:
        assert class_ not in seen, f"a cycle of subclasses: {seen}"
        return 1 + max((depth(p, (*seen, class_)) for p in parents.get(class_, ())), default=-1)

    assert max(depth(c, ()) for c in parents) >= 4


def test_every_class_of_an_entity_is_in_the_tree(world: World) -> None:
    classes = set(world.statements.filter(pl.col("relation") == "P31")["object"])
    roots = classes - set(world.statements.filter(pl.col("relation") == "P279")["subject"])
    names = world.entities.filter(pl.col("id").is_in(sorted(roots)))["key"].to_list()
    assert not names, "each class in use has a superclass"


def test_symmetric_patterns(graph: pl.DataFrame) -> None:
    """`thresholds: small`: at least ten triples, at least half of them in both directions."""
    both = graph.join(graph, left_on=["s", "p", "o"], right_on=["o", "p", "s"], how="semi")
    counts = graph.group_by("p").len("n").join(both.group_by("p").len("ns"), on="p")
    patterns = counts.filter((pl.col("n") >= 10) & (pl.col("ns") / pl.col("n") >= 0.5))
    assert {"P26", "P47", "P190", "P3373", "P530"} <= set(patterns["p"])


def test_bidirectional_patterns(graph: pl.DataFrame) -> None:
    pairs = graph.join(graph, left_on=["s", "o"], right_on=["o", "s"], suffix="2")
    counts = pairs.filter(pl.col("p") < pl.col("p2")).group_by("p", "p2").len("k")
    sizes = graph.group_by("p").len("n")
    counts = counts.join(sizes, on="p").join(sizes, left_on="p2", right_on="p", suffix="2")
    least = pl.min_horizontal("n", "n2")
    patterns = counts.filter((least >= 5) & (pl.col("k") / least >= 0.5))
    assert {("P1376", "P36"), ("P22", "P40")} <= set(patterns.select("p", "p2").iter_rows())


def test_two_hop_and_composite_patterns(graph: pl.DataFrame) -> None:
    """Paths a-b-c and triangles a-b-c, a-c, some of them at least ten times."""
    edges = graph.filter(pl.col("p") != "P31")
    hierarchy = graph.filter(pl.col("p") == "P279")
    up = hierarchy.join(hierarchy, left_on="o", right_on="s", suffix="2")
    assert up.filter(pl.col("s") != pl.col("o2")).height >= 100
    paths = edges.join(edges, left_on="o", right_on="s", suffix="2")
    paths = paths.filter((pl.col("s") != pl.col("o2")) & (pl.col("p") != pl.col("p2")))
    assert paths.group_by("p", "p2").len().filter(pl.col("len") >= 10).height >= 20
    triangles = paths.join(edges.select("s", p3="p", o2="o"), on=["s", "o2"])
    combinations = triangles.group_by("p", "p2", "p3").len().filter(pl.col("len") >= 10)
    assert combinations.height >= 5


def test_sensitive_relations_have_obscure_subjects(graph: pl.DataFrame) -> None:
    ends = pl.concat([graph.select(e="s"), graph.select(e="o")])
    degree = ends.group_by("e").len("degree")
    for relation in ("P21", "P30", "P140"):
        subjects = graph.filter(pl.col("p") == relation).join(degree, left_on="s", right_on="e")
        assert subjects.filter(pl.col("degree") <= 2).height >= 3, relation
    assert graph.filter(pl.col("p") == "P91").height > 0


def test_ambiguous_names(world: World, graph: pl.DataFrame) -> None:
    """There are two entities of one name, distinguished by a relation that both have."""
    named = world.entities.filter(pl.col("label").is_not_null()).select("id", "label")
    shared = named.filter(pl.col("label").is_duplicated())
    assert shared["label"].n_unique() >= 12
    facts = graph.filter(pl.col("p") != "P31").join(shared, left_on="s", right_on="id")
    pairs = facts.select("label", "s", "p").unique().group_by("label", "p").len()
    assert pairs.filter(pl.col("len") >= 2)["label"].n_unique() >= 12


def test_chosen_classes_are_the_ones_meant(world: World) -> None:
    instances = dict(world.dbpedia.instances.select("label", "class").iter_rows())
    expected = {
        "France": "Country", "Paris": "City", "Danube": "River", "Albert Einstein": "Scientist",
        "Pablo Picasso": "Painter", "euro": "Currency", "Bavaria": "AdministrativeRegion",
    }  # fmt: skip
    assert {k: instances[k].removeprefix(DBO) for k in expected} == expected

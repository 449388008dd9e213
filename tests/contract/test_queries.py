"""Every query file is standard, valid and complete on the embedded knowledge graph."""

import re
from pathlib import Path

import orjson
import polars as pl
import pyoxigraph
import pytest

from kgprobe.knowledge.facts import best_rank
from kgprobe.knowledge.ontology import distances
from kgprobe.sources.sparql.endpoint import Endpoint
from kgprobe.sources.sparql.paging import PARTS, QueryError, read_query
from kgprobe.sources.sparql.pull import pull
from kgprobe.sources.sparql.relations import statements
from kgprobe.sources.sparql.snapshots import in_order, row_hash, terms
from tests.contract.awkward import LABELS, NAMES
from tests.contract.conftest import RESOURCES
from tests.contract.fault_server import fetch
from tests.contract.oxigraph import local_endpoint, sized

QUERIES = sorted((RESOURCES / "queries").glob("*/*.rq"))
IDS = [f"{path.parent.name}/{path.stem}" for path in QUERIES]
#: Parameters with which a query has rows on the embedded graph
PARAMETERS = {"instances": {"class": "Awkward"}, "aliases": {"entity": "Q999999999"}}
#: Extensions of single engines
FORBIDDEN = re.compile(r"\b(SERVICE|hint:|bd:|gas:|mwapi|bif:|define\b|OFFSET|WITH)", re.I)


def run(path: Path, endpoint: Endpoint, folder: Path, page_size: int = 5000) -> pl.DataFrame:
    """Return the rows of a query with the parameters for the embedded knowledge graph."""
    parameters = PARAMETERS.get(path.stem)
    return pull(path, sized(endpoint, page_size), folder / "s" / "n", parameters).frame()


@pytest.mark.parametrize("path", QUERIES, ids=IDS)
def test_a_query_and_its_derived_queries_are_valid(path):
    store = pyoxigraph.Store()
    text = path.read_text(encoding="utf-8")
    query = read_query(path, PARAMETERS.get(path.stem))
    middle = query.total // 2
    derived = [query.page(0, query.total), query.page(middle, middle + 1), query.count()]
    if query.in_batches and not query.values:
        derived += [query.listing().count(), query.listing().page(9, 700)]
        assert "FILTER(?known >= 5)" in read_query(path, {"least": 5}).listing().text
        assert "?known" not in query.listing().text
    for made in (text, *derived):
        store.query(made)
    found = store.query(text)
    assert [v.value for v in found.variables] == list(query.variables)


def without_comments(text: str) -> str:
    return "\n".join(line for line in text.splitlines() if not line.startswith("#"))


@pytest.mark.parametrize("path", QUERIES, ids=IDS)
def test_a_query_is_standard_and_readable(path):
    text = path.read_text(encoding="utf-8")
    assert not FORBIDDEN.search(without_comments(text))
    assert text.startswith("# ")
    # Virtuoso mixes up rows in COALESCE(STR(?x), ""), see test_virtuoso
    assert "COALESCE(STR(" not in text
    used = set(
        re.findall(r"(?<![\w?<:/#])([a-z]+):\w", without_comments(text).split("SELECT", 1)[1])
    )
    assert used <= set(re.findall(r"^PREFIX (\w+):", text, re.M))


@pytest.mark.parametrize("path", QUERIES, ids=IDS)
def test_a_query_has_rows_on_the_world_and_page_size_does_not_change_them(
    path, world_endpoint, tmp_path
):
    query = read_query(path, PARAMETERS.get(path.stem))
    # without the line that selects a page, a query asks for everything
    plain = "" if query.in_batches else query.rows(0, PARTS)
    if path.stem == "aliases":
        plain = path.read_text().replace("wd:Q142", "wd:Q999999999")
    elif not plain:
        plain = query.text.replace("  VALUES ?subject { wd:Q142 }\n", "")
    whole = orjson.loads(fetch(world_endpoint.url, plain))
    expected = terms(whole["results"]["bindings"], query.variables)
    assert expected.height > 0
    for size in (max(100, expected.height // 3), 5000):
        snapshot = pull(
            path,
            sized(world_endpoint, size, size // 40),
            tmp_path / str(size) / "s",
            PARAMETERS.get(path.stem),
        )
        assert snapshot.meta["rows_sha256"] == row_hash(expected)
        if not query.in_batches:
            assert snapshot.meta["count_before"] == expected.height


@pytest.mark.parametrize(
    "path", [p for p in QUERIES if "GROUP BY" in p.read_text()], ids=lambda p: p.stem
)
def test_a_subset_is_selected_before_counting(path):
    """A filter after the counting makes pages smaller but not cheaper."""
    body = path.read_text().split("COUNT(", 1)[1]
    chosen, last = body.index("MD5(STR("), body.index("GROUP BY")
    assert chosen < last
    patterns = [line for line in body[chosen:last].splitlines() if line.rstrip().endswith(" .")]
    assert patterns, "what is looked up for each row stands behind the filter"


def test_counts_of_subsets_add_up_to_the_total(world_endpoint, tmp_path):
    path = RESOURCES / "queries/wikidata/left_out.rq"
    text = """SELECT (COUNT(DISTINCT ?n) AS ?rows) { ?s <http://www.wikidata.org/prop/P36> ?n .
        ?n <http://wikiba.se/ontology#rank> ?rank }"""
    rows = orjson.loads(fetch(world_endpoint.url, text))["results"]["bindings"]
    for size in (5000, 20):
        folder = tmp_path / str(size) / "s"
        found = pull(path, sized(world_endpoint, size), folder, {"property": "P36"})
        assert found.frame()["n"].cast(pl.Int64).sum() == int(rows[0]["rows"]["value"]) > 300
    assert len(found.meta["pages"]) > 10


def test_awkward_labels_and_names_are_returned_unchanged(world_endpoint, tmp_path):
    path = RESOURCES / "queries/dbpedia/instances.rq"
    rows = run(path, world_endpoint, tmp_path, page_size=3)
    labels = rows.filter(pl.col("instance").str.ends_with("/Several_labels"))["label"]
    assert sorted(labels) == sorted(LABELS)
    names = {iri.rsplit("/", 1)[-1] for iri in rows["instance"]}
    assert names == {*NAMES, "Several_labels", "No_label"}
    unnamed = rows.filter(pl.col("instance").str.ends_with("/No_label"))
    assert unnamed["label"].to_list() == [None], "a missing label stays null, never the id"
    assert rows.filter(pl.col("label") == "").height == 2, "an empty label is not a missing one"


def test_facts_after_best_rank_are_the_truthy_facts(world_endpoint, tmp_path):
    """Covers all embedded relations with preferred or deprecated statements, and others."""
    ranked = "SELECT DISTINCT ?r { ?s ?c ?n . ?n <http://wikiba.se/ontology#rank> ?k . ?r "
    ranked += "<http://wikiba.se/ontology#claim> ?c "
    ranked += "FILTER(?k != <http://wikiba.se/ontology#NormalRank>) }"
    rows = orjson.loads(fetch(world_endpoint.url, ranked))["results"]["bindings"]
    relations = sorted({row["r"]["value"].rsplit("/", 1)[-1] for row in rows} | {"P36", "P47"})
    assert len(relations) > 4
    facts, truthy = {}, {}
    for relation in relations:
        for name, found in (("facts", facts), ("facts_truthy", truthy)):
            path = RESOURCES / f"queries/wikidata/{name}.rq"
            snapshot = pull(path, world_endpoint, tmp_path / "s" / "n", {"property": relation})
            found[relation] = snapshot.frame()
    facts, truthy = (
        pl.concat(statements(relation, frame) for relation, frame in pulled.items())
        for pulled in (facts, truthy)
    )
    assert best_rank(facts).drop("rank").equals(truthy.drop("rank"))
    assert "preferred" in facts["rank"]


@pytest.mark.parametrize(
    ("name", "child", "edge", "anchor"),
    [
        ("dbpedia/class_hierarchy", "class", "<http://www.w3.org/2000/01/rdf-schema#subClassOf>",
         "<http://www.w3.org/2002/07/owl#Class>"),
        ("wikidata/property_hierarchy", "property", "<http://www.wikidata.org/prop/direct/P1647>",
         "<http://wikiba.se/ontology#Property>"),
    ],
)  # fmt: skip
def test_the_closure_of_a_hierarchy_equals_the_engine_s(
    name, child, edge, anchor, world_endpoint, tmp_path
):
    rows = run(RESOURCES / f"queries/{name}.rq", world_endpoint, tmp_path)
    own = distances(rows.select(child=child, parent="parent"))
    text = f"SELECT DISTINCT ?child ?parent {{ ?child a {anchor} . ?child {edge}+ ?parent }}"
    found = orjson.loads(fetch(world_endpoint.url, text))["results"]["bindings"]
    theirs = {(row["child"]["value"], row["parent"]["value"]) for row in found}
    assert set(own.select("id", "ancestor").rows()) == {(c, p) for c, p in theirs if c != p}
    assert len(theirs) > rows.height


def test_a_list_of_ids_is_queried_in_batches(world_endpoint, tmp_path):
    path = RESOURCES / "queries/wikidata/aliases.rq"
    ids = [f"Q{number}" for number in range(1, 1200)] + ["Q999999999", "Q35722"]
    query = read_query(path, {"entity": ids})
    assert len(query.values) == len(set(ids))
    snapshot = pull(path, world_endpoint, tmp_path / "s" / "n", {"entity": ids})
    assert snapshot.folder.name == query.name != read_query(path, {"entity": ids[:-1]}).name
    alias = "<http://www.w3.org/2004/02/skos/core#altLabel>"
    wanted = " ".join(f"<http://www.wikidata.org/entity/{i}>" for i in ids)
    text = f"SELECT ?entity ?alias {{ VALUES ?entity {{ {wanted} }} ?entity {alias} ?alias }}"
    found = orjson.loads(fetch(world_endpoint.url, text))["results"]["bindings"]
    assert snapshot.meta["rows_sha256"] == row_hash(terms(found, ["entity", "alias"]))
    assert len(found) > len(LABELS)
    assert [page["stop"] for page in snapshot.meta["pages"]] == [1000, len(query.values)]
    assert "batches" in snapshot.meta["count_before_reason"]


def test_parameters_name_the_snapshot_and_are_checked(tmp_path):
    path = RESOURCES / "queries/wikidata/facts.rq"
    assert read_query(path, {"property": "P17"}).name == "facts@P17"
    assert read_query(path, {"property": "P17"}, ["de", "mul"]).name == "facts@P17.de-mul"
    assert read_query(path, {"property": "P17", "least": 5}).name == "facts@P17.least5"
    assert read_query(path, {"property": "P17"}).listing().name == "facts@P17.subject"
    assert read_query(path).sha256 == read_query(path, {"property": "P36"}).sha256
    for bad, message in (
        ({"property": "P1> } #"}, "expected a name like P36"),
        ({"propery": "P17"}, "it has .*property"),
        ({"property": ["P17", "P36"]}, "expected a name like P36"),
        ({"subject": []}, "no value"),
        ({"subject": ["Q1> }"]}, "not an absolute IRI"),
    ):
        with pytest.raises(QueryError, match=message):
            read_query(path, bad)
    instances = RESOURCES / "queries/dbpedia/instances.rq"
    for bad, message in (({"class": "A> }"}, "not an absolute IRI"),):
        with pytest.raises(QueryError, match=message):
            read_query(instances, bad)


def test_labels_are_in_the_best_available_language(world_endpoint, tmp_path):
    """Wikidata deletes labels in `en` that equal the one in `mul`."""
    path = RESOURCES / "queries/dbpedia/instances.rq"
    label = "<http://www.w3.org/2000/01/rdf-schema#label>"
    made = {"Both": ("en", "mul"), "Mul": ("mul", "de"), "German": ("de",)}
    rows = "".join(
        f'<http://x.org/{name}> {label} "{name} {tag}"@{tag} .\n'
        f"<http://x.org/{name}> a <http://dbpedia.org/ontology/Publisher> .\n"
        for name, tags in made.items()
        for tag in tags
    )
    (tmp_path / "labels.ttl").write_text(rows)
    expected = {
        ("en", "mul"): {"Both": "Both en", "Mul": "Mul mul", "German": None},
        ("de", "mul", "en"): {"Both": "Both mul", "Mul": "Mul de", "German": "German de"},
        ("en",): {"Both": "Both en", "Mul": None, "German": None},
    }
    with local_endpoint([tmp_path / "labels.ttl"]) as endpoint:
        for languages, names in expected.items():
            found = pull(path, endpoint, tmp_path / "s" / "n", languages=languages).frame()
            assert (
                dict(
                    found.select(
                        pl.col("instance").str.strip_prefix("http://x.org/"), "label"
                    ).iter_rows()
                )
                == names
            )


def test_a_query_file_without_its_marks_is_refused(tmp_path):
    folder = tmp_path / "queries" / "s"
    folder.mkdir(parents=True)
    text = (RESOURCES / "queries/wikidata/facts.rq").read_text()
    for mark in ("VALUES ?subject", "SELECT DISTINCT ?subject", "# values: subject"):
        (folder / "q.rq").write_text(text.replace(mark, ""))
        with pytest.raises(QueryError, match=r"q\.rq: (exactly one line|a comment)"):
            read_query(folder / "q.rq")
    (folder / "q.rq").write_text(text + "LIMIT 10\n")
    with pytest.raises(QueryError, match=r"q\.rq: `LIMIT 10`: pages are parts or batches"):
        read_query(folder / "q.rq")


def test_rows_keep_type_language_and_datatype_where_they_vary(world_endpoint, tmp_path):
    rows = run(RESOURCES / "queries/dbpedia/properties.rq", world_endpoint, tmp_path)
    assert rows.columns == ["property", "kind", "label", "domain", "range"]
    assert in_order(rows).equals(rows)

"""Relations as in Wikidata: labels only in `mul`, unknown values, too many rows."""

import gzip
from pathlib import Path

import orjson
import polars as pl
import pytest

from kgprobe.benchmarks.bear.filters import filtered
from kgprobe.knowledge.facts import best_rank
from kgprobe.settings.benchmarks import Bear
from kgprobe.sources.dumps import facts as dumps
from kgprobe.sources.sparql import answers
from kgprobe.sources.sparql.endpoint import Endpoint, Policy
from kgprobe.sources.sparql.relations import Relations
from tests.contract.conftest import RESOURCES

QUERIES = RESOURCES / "queries" / "wikidata"
WD, PROP = "http://www.wikidata.org/entity/", "http://www.wikidata.org/prop/"
LABEL = "<http://www.w3.org/2000/01/rdf-schema#label>"
WIKIBASE = "http://wikiba.se/ontology#"
#: id -> labels by language, sitelinks; Q42 as in Wikidata since 2025
ITEMS = {
    "Q42": ({"mul": "Douglas Adams", "zh": "道格拉斯·亞當斯"}, 118),
    "Q145": ({"en": "United Kingdom", "mul": "UK"}, 300),
    "Q1": ({"en": "universe"}, 200),
    "Q2": ({"de": "Erde"}, 250),
    "Q3": ({"en": "life", "mul": "vita"}, 2),
}
#: subject, value (None: unknown), rank of property P27
P27 = [
    ("Q42", "Q145", "Normal"), ("Q1", "Q145", "Normal"), ("Q1", None, "Normal"),
    ("Q2", "Q1", "Preferred"), ("Q2", None, "Preferred"), ("Q2", "Q145", "Normal"),
    ("Q3", "Q145", "Normal"), ("Q3", "Q2", "Normal"),
]  # fmt: skip
KEY = ["subject", "object", "rank", "subject_label", "object_label"]


def rdf() -> str:
    lines = []
    for item, (labels, links) in ITEMS.items():
        lines += [f'<{WD}{item}> {LABEL} "{text}"@{tag} .' for tag, text in labels.items()]
        number = f'"{links}"^^<http://www.w3.org/2001/XMLSchema#integer>'
        lines.append(f"<{WD}{item}> <{WIKIBASE}sitelinks> {number} .")
    for n, (subject, value, rank) in enumerate(P27):
        node = f"<{WD}statement/{subject}-{n}>"
        term = f"<{WD}{value}>" if value else f"<http://www.wikidata.org/.well-known/genid/{n}>"
        lines += [
            f"<{WD}{subject}> <{PROP}P27> {node} .",
            f"{node} <{PROP}statement/P27> {term} .",
            f"{node} <{WIKIBASE}rank> <{WIKIBASE}{rank}Rank> .",
        ]
    return "\n".join(lines) + "\n"


def dump(path: Path) -> Path:
    """Return the same as a dump of entities."""
    lines = []
    for item, (labels, links) in ITEMS.items():
        claims = []
        for subject, value, rank in P27:
            snak = {"snaktype": "somevalue", "property": "P27"}
            if value:
                content = {"entity-type": "item", "numeric-id": int(value[1:]), "id": value}
                datavalue = {"value": content, "type": "wikibase-entityid"}
                snak = {"snaktype": "value", "property": "P27", "datavalue": datavalue}
            if subject == item:
                claims.append({"mainsnak": snak, "type": "statement", "rank": rank.lower()})
        entity = {
            "type": "item",
            "id": item,
            "labels": {tag: {"language": tag, "value": text} for tag, text in labels.items()},
            "claims": {"P27": claims} if claims else [],
            "sitelinks": {f"wiki{n}": {"site": f"wiki{n}"} for n in range(links)},
        }
        lines.append(orjson.dumps(entity))
    path.write_bytes(gzip.compress(b"[\n" + b",\n".join(lines) + b"\n]\n", mtime=0))
    return path


def relations(endpoint: Endpoint, folder: Path, **more) -> Relations:
    names = ("facts", "left_out")
    return Relations(endpoint, folder, *(QUERIES / f"{name}.rq" for name in names), **more)


def bounded(endpoint: Endpoint, most: int) -> Endpoint:
    return Endpoint("local", endpoint.url, Policy(most_rows=most))


def test_labels_are_in_the_best_language_and_omissions_are_counted(nationalities, tmp_path):
    found, coverage = relations(nationalities, tmp_path / "wikidata" / "s").pull(["P27"])
    named = dict(found.select("subject", "subject_label").iter_rows())
    assert named == {"Q42": "Douglas Adams", "Q1": "universe", "Q2": None, "Q3": "life"}
    (row,) = coverage.iter_rows(named=True)
    assert (row["way"], row["rows"], row["item"], row["unknown"]) == ("pulled", 6, 6, 2)
    german, _ = relations(
        nationalities, tmp_path / "wikidata" / "de", languages=("de", "zh", "mul", "en")
    ).pull(["P27"])
    named = dict(german.select("subject", "subject_label").iter_rows())
    assert named == {"Q42": "道格拉斯·亞當斯", "Q1": "universe", "Q2": "Erde", "Q3": "vita"}


def test_a_dump_and_a_pull_give_the_same_statements_and_the_same_benchmark(nationalities, tmp_path):
    """An unknown value next to an item is no second value, nor does it win with a better rank."""
    pulled, _ = relations(nationalities, tmp_path / "wikidata" / "s").pull(["P27"])
    path = dump(tmp_path / "dump.json.gz")
    read = dumps.read([path], "json", ["P27"], tmp_path / "parts", ("en", "mul")).statements
    items = read.filter(pl.col("object_kind") == "item")
    assert items.height == 6
    key = KEY[:3]
    assert pulled.select(KEY).sort(key).equals(items.select(KEY).sort(key))
    kept = []
    for statements in (pulled, read):
        popular = statements.with_columns(
            subject_popularity=pl.col("subject_sitelinks"),
            object_popularity=pl.col("object_sitelinks"),
        )
        row = {"relation": "P27", "cardinality": "1:N"}
        judged = filtered(popular, row, Bear(min_sitelinks=0))
        kept.append(sorted(judged.filter(pl.col("reason").is_null())["subject"]))
        best = best_rank(statements).filter(subject="Q2")
        assert best["object"].to_list() == ["Q1"], "the preferred item, not the unknown value"
    assert kept == [["Q1", "Q42"]] * 2


def test_a_large_relation_is_queried_for_its_known_subjects(nationalities, tmp_path):
    way_out = relations(bounded(nationalities, 3), tmp_path / "w" / "s", least=100)
    found, coverage = way_out.pull(["P27"])
    (row,) = coverage.iter_rows(named=True)
    assert sorted(set(found["subject"])) == ["Q1", "Q2", "Q42"]
    assert (row["way"], row["rows"]) == ("sitelinks", 4)
    assert row["reason"].startswith("4 rows by the count query; at most 3")


def test_a_large_relation_comes_from_a_dump_or_is_left_out(nationalities, tmp_path):
    path = dump(tmp_path / "dump.json.gz")
    read = dumps.read([path], "json", ["P27"], tmp_path / "parts").statements
    tight = bounded(nationalities, 2)
    found, coverage = relations(tight, tmp_path / "w" / "s", least=100, dumped={"P27": read}).pull(
        ["P27", "P36"]
    )
    assert coverage["way"].to_list() == ["dump", "pulled"]
    assert "3 rows by the count query with 100 sitelinks or more" in coverage["reason"][0]
    assert found.height == read.height
    found, coverage = relations(tight, tmp_path / "w" / "s", least=100, large=()).pull(
        ["P27", "P36"]
    )
    assert coverage["way"].to_list() == ["left out", "pulled"], "one relation never ends the loop"
    assert found.is_empty()


def test_relations_missing_in_the_source_are_left_out_and_listed(nationalities, tmp_path):
    some = relations(nationalities, tmp_path / "w" / "s", known=frozenset({"P27"}))
    found, coverage = some.pull(["P27", "P999"])
    assert coverage.filter(relation="P999")["reason"][0].startswith("no property of the source")
    assert found.height == 6


def test_a_failed_relation_is_reported_after_the_others_are_pulled(nationalities, tmp_path):
    """The second of three relations meets an engine that refuses its query."""
    asked = []

    class Refusing(Relations):
        def _relation(self, relation):
            asked.append(relation)
            if relation == "P31":
                place = "local, query facts.rq"
                raise answers.QueryRejected(place, "status 400", "an answer", "change it")
            return super()._relation(relation)

    one = Refusing(nationalities, tmp_path / "w" / "s", QUERIES / "facts.rq")
    with pytest.raises(
        answers.SourceError, match=r"1 of 3 relations failed \(P31\).*status 400"
    ) as e:
        one.pull(["P27", "P31", "P36"])
    assert asked == ["P27", "P31", "P36"]
    assert "only what is missing is requested" in str(e.value)
    assert (tmp_path / "w" / "s" / "facts@P36" / "meta.json").exists()


def test_a_query_rejected_for_one_relation_is_not_sent_for_others(nationalities, tmp_path):
    folder = tmp_path / "queries/wikidata"
    folder.mkdir(parents=True)
    text = (QUERIES / "facts.rq").read_text()
    assert "OPTIONAL {" in text
    (folder / "facts.rq").write_text(text.replace("OPTIONAL {", "OPTONAL {", 1))
    one = Relations(nationalities, tmp_path / "w" / "s", folder / "facts.rq")
    with pytest.raises(answers.QueryRejected, match=r"facts\.rq"):
        one.pull(["P27", "P31", "P36"])
    begun = {path.name.split(".")[0] for path in (tmp_path / "w" / "s").glob("facts@*")}
    assert begun == {"facts@P27"}


@pytest.mark.parametrize(("rows", "way"), [(9_000_000, "left out"), (40, None), (None, None)])
def test_service_trouble_is_not_taken_for_a_large_relation(rows, way, nationalities, tmp_path):
    """An endless listing means size if the relation is large, else trouble of the service."""

    class Slow(Relations):
        def _covered(self, way, reason, relation, least=0):
            error = answers.TimedOut("local, query facts.rq", "no answer", "one in time")
            error.rows = rows
            raise error

    slow = Slow(nationalities, tmp_path / "w" / "s", QUERIES / "facts.rq")
    if way:
        assert slow.pull(["P27"])[1]["way"].to_list() == [way]
    else:
        with pytest.raises(answers.SourceError, match="1 of 1 relations failed"):
            slow.pull(["P27"])

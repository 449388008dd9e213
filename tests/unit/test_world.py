"""The loader of the embedded knowledge graph: parsing, completion and errors."""

import gzip
import shutil
from pathlib import Path

import pytest

from kgprobe.sources.dumps.trex import members, read_member
from tools.world.__main__ import main, rendered, unpacked
from tools.world.build import World, WorldError, load
from tools.world.properties import Property
from tools.world.tables import split, unescape

FOLDER = Path(__file__).parents[2] / "resources" / "world"

FILES = {
    "classes.tsv": (
        "key\tid\tsubclass of\n"
        "agent\tQ24229398\n"
        "person\tQ215627\tagent\n"
        "human\tQ5\tperson\n"
        "city\tQ515\n"
        "country\tQ6256\n"
        "gender\tQ48277\n"
    ),
    "properties.tsv": (
        "property\tid\tdatatype\taliases\tparents\tinverse\tcomplete\tsymmetric\t"
        "subject classes\tsubject relation\tsubject status\n"
        "instance of\tP31\titem\n"
        "subclass of\tP279\titem\n"
        "sex or gender\tP21\titem\n"
        "relative\tP1038\titem\t\t\t\t\tyes\n"
        "father\tP22\titem\tdad\trelative\tchild\tyes\t\thuman; person\tinstance of\tmandatory\n"
        "mother\tP25\titem\t\trelative\tchild\tyes\n"
        "child\tP40\titem\t\trelative\tfather; mother\tby sex\t\thuman\t\tdeprecated\n"
        "spouse\tP26\titem\t\trelative\t\t\tyes\n"
        "capital\tP36\titem\t\t\tcapital of\tyes\n"
        "capital of\tP1376\titem\n"
        "date of birth\tP569\ttime\n"
        "population\tP1082\tquantity\n"
    ),
    "entities_people.tsv": (
        "# people\n"
        "key\tid\tlabel\tclass\taliases\tdescription\tsitelinks\n"
        "Ana\tQ1001\t\thuman\tAnna; A\\;B\tone \\\\ two\\nthree\t12\n"
        "Ben\tQ1002\tBenjamin\thuman\n"
        "Cid\tQ1003\t-\thuman\n"
        "\n"
        "female\tQ6581072\t\tgender\n"
        "male\tQ6581097\t\tgender\n"
    ),
    "entities_places.tsv": (
        "key\tid\tclass\nBonn\tQ586\tcity\nBerlin\tQ64\tcity\nGermany\tQ183\tcountry\n"
    ),
    "facts_people.tsv": (
        "entity\tsex or gender\tchild\tspouse\tdate of birth\tdad\n"
        "Ana\tfemale\tCid\tBen\t-0043-03-15\t?\n"
        "Ben\tmale\tCid\t\t1879\tnovalue\n"
    ),
    "facts_places.tsv": (
        "entity\tcapital\tpopulation\nGermany\t^Berlin; Bonn; !Ana\t83000000\nBonn\t\t-3.5\n"
    ),
    "dbpedia_classes.tsv": (
        "class\tlabel\tparents\tequivalent\n"
        "Agent\tagent\towl:Thing\twd:Q24229398\nPerson\tperson\tAgent\twd:Q215627; schema:Person\n"
        "Woman\twoman\tPerson\nCity\tcity\tSettlement\n"
    ),
    "dbpedia_properties.tsv": (
        "property\tkind\tlabel\tdomain\trange\tparents\tequivalent\n"
        "father\tobject\tfather\tPerson\tPerson\tDUL:sameSettingAs\twd:P22\n"
    ),
    "dbpedia_instances.tsv": (
        "class\tof\twith\tentities\nCity\t\t\tBonn=Bonn, Köln\nWoman\tperson\tfemale\n"
        "Person\tagent\nCity\tcity\n"
    ),
}


def _write(folder: Path, **changes: str) -> Path:
    folder.mkdir(exist_ok=True)
    for name, text in {**FILES, **changes}.items():
        (folder / name).write_text(text, encoding="utf-8")
    return folder


@pytest.fixture
def small(tmp_path: Path) -> World:
    return load(_write(tmp_path / "world"))


def _statements(world: World) -> set[tuple[str, ...]]:
    columns = ("subject", "relation", "object", "kind", "rank", "origin")
    return set(world.statements.select(columns).iter_rows())


def test_entities_keep_the_typed_values(small: World) -> None:
    rows = {row["key"]: row for row in small.entities.iter_rows(named=True)}
    assert rows["Ana"]["label"] == "Ana"
    assert rows["Ben"]["label"] == "Benjamin"
    assert rows["Cid"]["label"] is None
    assert rows["Ana"]["aliases"] == ["Anna", "A;B"]
    assert rows["Ana"]["description"] == "one \\ two\nthree"
    assert (rows["Ana"]["sitelinks"], rows["Ben"]["sitelinks"]) == (12, None)
    assert rows["human"]["table"] == "classes.tsv"


def test_cells_classes_and_inverses_become_statements(small: World) -> None:
    """Literals and special values; instance and subclass of; symmetric and inverse, once."""
    assert _statements(small) >= {
        ("Q1001", "P569", "-0043-03-15T00:00:00Z", "time", "normal", "typed"),
        ("Q1002", "P569", "1879-01-01T00:00:00Z", "time", "normal", "typed"),
        ("Q183", "P1082", "+83000000", "quantity", "normal", "typed"),
        ("Q586", "P1082", "-3.5", "quantity", "normal", "typed"),
        ("Q1001", "P22", "", "unknown", "normal", "typed"),
        ("Q1002", "P22", "", "novalue", "normal", "typed"),
        ("Q1001", "P31", "Q5", "item", "normal", "class"),
        ("Q5", "P279", "Q215627", "item", "normal", "parent"),
        ("Q1002", "P26", "Q1001", "item", "normal", "symmetric"),
        ("Q1003", "P25", "Q1001", "item", "normal", "inverse"),
        ("Q1003", "P22", "Q1002", "item", "normal", "inverse"),
    }
    keys = small.statements.select("subject", "relation", "object", "kind")
    assert not keys.is_duplicated().any()


def test_only_best_ranks_are_truthy_and_have_inverse_statements(small: World) -> None:
    """Neither the normal Bonn beside a preferred value nor a deprecated one."""
    assert {s[0] for s in _statements(small) if s[1] == "P1376"} == {"Q64"}
    capitals = small.truthy().filter(relation="P36").select("subject", "object")
    assert capitals.rows() == [("Q183", "Q64")]


def test_properties_carry_constraints(small: World) -> None:
    father: Property = small.properties["P22"]
    assert father.parents == ("P1038",)
    assert father.inverses == ("P40",)
    (constraint,) = father.constraints
    assert constraint.type == "Q21503250"
    assert constraint.classes == ("Q5", "Q215627")
    assert constraint.relation == "Q21503252"
    assert constraint.status == "Q21502408"
    (other,) = small.properties["P40"].constraints
    assert (other.relation, other.status, other.rank) == (None, None, "deprecated")


def test_instances_follow_the_first_rule_that_fits(small: World) -> None:
    found = {row["id"]: row for row in small.dbpedia.instances.iter_rows(named=True)}
    ontology = "http://dbpedia.org/ontology/"
    assert found["Q1001"]["class"] == f"{ontology}Woman"
    assert found["Q1002"]["class"] == f"{ontology}Person"
    assert found["Q64"]["class"] == f"{ontology}City"
    assert found["Q586"]["resource"] == "http://dbpedia.org/resource/Bonn,_Köln"
    assert small.dbpedia.ancestors(f"{ontology}Woman") == [f"{ontology}Person", f"{ontology}Agent"]
    assert small.dbpedia.ancestors(f"{ontology}City") == [], "Settlement is not declared"


@pytest.mark.parametrize(
    ("file", "old", "new", "message"),
    [
        ("facts_places.tsv", "^Berlin", "^Berln", "line 2, column 'capital': 'Berln'.*near: 'Ber"),
        ("facts_places.tsv", "capital", "captial", "not a property of properties.tsv; near: 'cap"),
        ("facts_places.tsv", "83000000", "many", "'many': a number is needed"),
        ("facts_places.tsv", "-3.5", "-3.5\tx", "'x': the header has 3 columns, this line 4"),
        ("facts_places.tsv", "Bonn; ", "Bonn; Bonn; ", "already said in facts_places.tsv, line 2"),
        ("facts_places.tsv", "Bonn\t", "Bon\t", "column 'entity': 'Bon'"),
        ("facts_people.tsv", "-0043-03-15", "44 BC", "'44 BC': YYYY, -YYYY or YYYY-MM-DD"),
        ("facts_people.tsv", "1879", "1879-13-01", "'1879-13-01': YYYY"),
        ("facts_people.tsv", "\tdad", "\tfather\tdad", "a second column for father .P22."),
        ("entities_places.tsv", "Q586", "586", "'586': a Wikidata item id such as Q142"),
        ("entities_places.tsv", "Q586", "Q64", "'Q64': already defined in entities_places.tsv, l"),
        ("entities_places.tsv", "Bonn", "Ana", "already defined in entities_people.tsv, line 3"),
        ("entities_places.tsv", "Q183\tcountry", "Q183\tcuontry", "column 'class': 'cuontry'"),
        ("entities_people.tsv", "\t12", "\tmany", "a number of sitelinks, or blank"),
        ("entities_people.tsv", "sitelinks", "sitelinks\tfame", "unknown header; the columns are"),
        ("properties.tsv", "P569\ttime", "P569\tdate", "'date': not one of item"),
        ("properties.tsv", "\tmandatory", "\tstrict", "blank or one of mandatory"),
        ("properties.tsv", "human; person", "humn", "the key of a class or entity; near: 'human'"),
        ("properties.tsv", "P1082", "P569", "already defined on line 12"),
        ("dbpedia_classes.tsv", "wd:Q215627", "wiki:Q215627", "a name with one of"),
        ("dbpedia_classes.tsv", "Woman\twoman", "Person\twoman", "already defined in this table"),
        ("dbpedia_instances.tsv", "Woman\tperson", "Woman\tpersn", "near: 'person'"),
        ("dbpedia_properties.tsv", "\tobject", "\titem", "object or datatype"),
        ("classes.tsv", "agent\tQ2", "agent\r\tQ2", "lines end in a line feed alone"),
        ("dbpedia_properties.tsv", "\tkind", "\tof", "the column 'kind' is missing"),
    ],
)
def test_each_error_is_reported_with_its_location(
    tmp_path: Path, file: str, old: str, new: str, message: str
) -> None:
    assert old in FILES[file]
    folder = _write(tmp_path / "world", **{file: FILES[file].replace(old, new, 1)})
    with pytest.raises(WorldError, match=message) as caught:
        load(folder)
    assert file in str(caught.value)


def test_bytes_that_are_not_utf8_are_located(tmp_path: Path) -> None:
    folder = _write(tmp_path / "world")
    path = folder / "entities_places.tsv"
    path.write_bytes(path.read_bytes().replace(b"Bonn", b"B\xf6nn"))
    with pytest.raises(WorldError, match=r"line 2.*byte 0xf6 at offset 14.*must be UTF-8"):
        load(folder)


def test_all_problems_are_reported_at_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = FILES["facts_places.tsv"].replace("^Berlin", "Rome").replace("-3.5", "few")
    folder = _write(tmp_path / "world", **{"facts_places.tsv": broken})
    assert main(["check", str(folder)]) == 1
    shown = capsys.readouterr().err
    assert "'Rome'" in shown
    assert "'few'" in shown
    assert "2 problems" in shown


def test_a_folder_without_tables_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="no embedded world"):
        load(tmp_path)


def test_the_rendered_archive_has_one_file_of_documents() -> None:
    """Lint checks that rendered files equal the tables (`tools.world check`)."""
    (name,) = members(FOLDER / "trex.zip")
    assert read_member(FOLDER / "trex.zip", name).startswith(b'[{"docid":')


def test_an_outdated_rendered_file_is_reported_and_rewritten(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = _write(tmp_path / "world")
    assert main(["write", str(folder)]) == 0
    made = {path: path.read_bytes() for path in folder.rglob("*.*z*")}
    assert {str(path.relative_to(folder)) for path in made} == set(rendered(load(folder)))
    (folder / "trex.zip").unlink()
    (folder / "dbpedia.nt.gz").write_bytes(gzip.compress(b"<a> <b> <c> ."))
    other = gzip.compress(unpacked("a.gz", made[folder / "wikidata.nt.gz"]), 1)
    (folder / "wikidata.nt.gz").write_bytes(other)
    assert main(["check", str(folder)]) == 1
    lines = capsys.readouterr().err.splitlines()
    assert ["dbpedia.nt.gz" in lines[0], "trex.zip" in lines[1], len(lines)] == [True, True, 2]
    assert main(["write", str(folder)]) == 0
    assert (folder / "trex.zip").read_bytes() == made[folder / "trex.zip"]
    # the same content, compressed by another release
    assert (folder / "wikidata.nt.gz").read_bytes() == other


def test_a_short_first_row_hides_no_column(tmp_path: Path) -> None:
    text = "entity\tcapital\tpopulation\nGermany\tBerlin\nBonn\t\t300000\n"
    world = load(_write(tmp_path / "world", **{"facts_places.tsv": text}))
    assert ("Q586", "P1082", "+300000", "quantity", "normal", "typed") in _statements(world)


def test_escapes_and_separators() -> None:
    assert split("a; b;c ; ;") == ["a", "b", "c"]
    assert split(r"a\; b; c\\; d") == ["a; b", "c\\", "d"]
    assert unescape(r"x\ny\tz\q") == "x\ny\tz\\q"


def test_reading_does_not_depend_on_the_order_of_files(tmp_path: Path) -> None:
    one, other = _write(tmp_path / "one"), tmp_path / "other"
    shutil.copytree(one, other)
    (other / "entities_people.tsv").rename(other / "entities_z.tsv")
    (other / "facts_people.tsv").rename(other / "facts_z.tsv")
    first, second = load(one), load(other)
    assert first.statements.equals(second.statements)
    assert first.entities.drop("table").equals(second.entities.drop("table"))

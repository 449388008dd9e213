"""The comparison of two snapshots, through real pulls of two small graphs."""

import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

from kgprobe.schema import FACTS, write
from kgprobe.sources.sparql.drift import DriftError, compare, main, read_tables, summary
from kgprobe.sources.sparql.endpoint import local_endpoint
from kgprobe.sources.sparql.pull import pull
from tests.contract.conftest import RESOURCES

DBO, RDFS = "http://dbpedia.org/ontology/", "http://www.w3.org/2000/01/rdf-schema#"
CLASS = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <http://www.w3.org/2002/07/owl#Class>"
QUERIES = ("dbpedia/classes", "dbpedia/class_hierarchy")


def graph(classes: dict[str, tuple[str, str]]) -> str:
    """Classes with label and parent as N-Triples."""
    lines = []
    for name, (label, parent) in classes.items():
        lines.append(f"<{DBO}{name}> {CLASS} .")
        lines.append(f'<{DBO}{name}> <{RDFS}label> "{label}"@en .')
        lines.append(f"<{DBO}{name}> <{RDFS}subClassOf> <{DBO}{parent}> .")
    return "\n".join(lines) + "\n"


OLD = {"Town": ("town", "Place"), "Ship": ("ship", "Thing"), "Cat": ("cat", "Mammal")}
NEW = {"Town": ("small town", "Place"), "Cat": ("cat", "Animal"), "Dog": ("dog", "Animal")}


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Snapshots of both graphs."""
    folder = tmp_path_factory.mktemp("drift")
    found = []
    for name, classes in (("old", OLD), ("new", NEW)):
        file = folder / f"{name}.nt"
        file.write_text(graph(classes))
        snapshot = folder / "data" / "dbpedia" / name
        with local_endpoint([file], log=lambda line: None) as endpoint:
            for query in QUERIES:
                pull(RESOURCES / f"queries/{query}.rq", endpoint, snapshot)
        found.append(snapshot)
    return found[0], found[1]


def test_rows_are_added_removed_and_changed(two):
    before, after = (read_tables(folder)["classes"] for folder in two)
    found = compare(before, after)
    assert found.select("change", "class").rows() == [
        ("added", f"{DBO}Dog"),
        ("changed", f"{DBO}Town"),
        ("removed", f"{DBO}Ship"),
    ]
    changed = found.row(1, named=True)
    assert (changed["before"], changed["after"]) == ('{"label":"town"}', '{"label":"small town"}')
    assert summary(before, after, found).rows() == [("classes", "", 3, 3, 1, 1, 1)]


def test_edges_are_counted_per_class(two):
    before, after = (read_tables(folder)["class_hierarchy"] for folder in two)
    table = summary(before, after, compare(before, after))
    assert table.select("group", "added", "removed", "changed").rows() == [
        (f"{DBO}Cat", 1, 1, 0),
        (f"{DBO}Dog", 1, 0, 0),
        (f"{DBO}Ship", 0, 1, 0),
        (f"{DBO}Town", 0, 0, 0),
    ]


def test_nothing_drifts_from_itself(two):
    table = read_tables(two[0])["classes"]
    assert compare(table, table).is_empty()


def test_the_command_prints_the_drift_and_writes_the_rows(two, tmp_path, capsys):
    rows = tmp_path / "rows.parquet"
    assert main([str(two[0]), str(two[1]), "--rows", str(rows)]) == 0
    printed = capsys.readouterr().out
    assert "changed: http://dbpedia.org/ontology/Town" in printed
    assert "small town" in printed
    totals = [line.split() for line in printed.splitlines() if "(all)" in line]
    assert totals == [
        ["class_hierarchy", "(all)", "3", "3", "2", "2", "0"],
        ["classes", "(all)", "3", "3", "1", "1", "1"],
    ]
    assert pl.read_parquet(rows).height == 7


def test_the_command_runs_as_a_module_and_names_what_is_missing(two, tmp_path):
    command = [sys.executable, "-m", "kgprobe.sources.sparql.drift"]
    empty = tmp_path / "empty"
    empty.mkdir()
    done = subprocess.run([*command, str(two[0]), str(empty)], capture_output=True, text=True)
    assert done.returncode == 2
    assert "neither a parquet file nor a folder of pulls" in done.stderr


def test_contract_files_are_compared_by_their_key_and_per_relation(tmp_path, capsys):
    def facts(rows: list[tuple[str, str, str]], path: Path) -> Path:
        frame = pl.DataFrame(
            [("wikidata", s, f"label of {s}", r, o, None, [], []) for s, r, o in rows],
            schema=dict(FACTS.columns),
            orient="row",
        )
        write(frame, FACTS, path)
        return path

    old = facts(
        [("Q1", "P36", "Q2"), ("Q3", "P36", "Q4"), ("Q1", "P37", "Q9")], tmp_path / "a.parquet"
    )
    new = facts(
        [("Q1", "P36", "Q5"), ("Q3", "P36", "Q4"), ("Q1", "P37", "Q9")], tmp_path / "b.parquet"
    )
    assert main([str(old), str(new)]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["a", "P36", "2", "2", "1", "1", "0"] in lines
    assert not any(line[:2] == ["a", "P37"] for line in lines), "what did not drift is not listed"


def test_tables_of_two_kinds_are_not_compared(two):
    tables = read_tables(two[0])
    with pytest.raises(DriftError, match="identified by"):
        compare(tables["classes"], tables["class_hierarchy"])

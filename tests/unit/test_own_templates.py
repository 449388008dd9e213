"""Templates and names of user-supplied graphs: read by their rule, or refused."""

import runpy
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace

import polars as pl
import pytest
from snakemake.iocontainers import Namedlist

from kgprobe import experiments, schema
from kgprobe.benchmarks.own_words import read_templates, relations
from kgprobe.config import ConfigError
from kgprobe.settings.sources import OwnGraph
from kgprobe.sources.graphs import read
from kgprobe.workflow.benchmarks import OF_GRAPH, check_names, known_benchmarks

ROOT = Path(__file__).parents[2]
HEAD = "relation\tindex\tkind\ttext\tnote\n"
SOUND = "capital\t0\tmanual\tThe capital of [X] is [Y].\tcapital\n"


def run_script(folder: Path, own: list[str], given: str = "") -> list[dict[str, str]]:
    """Run the rule's script on a graph with two relations and these user-supplied tables; `given`:
    a template of both relations in the graph's folder."""
    facts = folder / "facts.csv"
    facts.write_text("subject,relation,object\nFrance,capital,Paris\nFrance,continent,Europe\n")
    made = read.read("g", OwnGraph("table", (str(facts),)), ("en",))
    rows = [(name, "0", "manual", given, "") for name in ("capital", "continent") if given]
    templates = pl.DataFrame(rows, schema=dict(read.TEMPLATES.columns), orient="row")
    made = made | {"templates": templates}
    paths = {}
    for name in ("facts", "properties", "templates"):
        paths[name] = folder / f"{name}.parquet"
        schema.write(made[name], read.CONTRACTS[name], paths[name], {})
    resources = ROOT / "resources/templates"
    inputs = {
        "statements": str(paths["facts"]),
        "properties": str(paths["properties"]),
        "given": str(paths["templates"]),
        "own": own,
        "relations": str(resources / "bear_relations.tsv"),
        "templates": str(resources / "templates.tsv"),
    }
    outputs = {n: str(folder / f"{n}.tsv") for n in ("relations", "templates", "patterns")}
    settings = asdict(OwnGraph("table", (str(facts),)))
    fake = SimpleNamespace(
        rule="word_graph", input=Namedlist(fromdict=inputs), output=Namedlist(fromdict=outputs),
        params=Namedlist(fromdict={"settings": settings}), log=[], config={}, threads=1,
        wildcards=Namedlist(fromdict={"graph": "g"}), resources=Namedlist(),
    )  # fmt: skip
    runpy.run_path(str(ROOT / "workflow/scripts/word_graph.py"), {"snakemake": fake})
    return experiments.read_table(outputs["templates"])


def test_statements_about_an_entity_and_itself_make_no_relation_symmetric(tmp_path):
    path = tmp_path / "g.csv"
    rows = ["a,near,a", "b,near,b", "c,near,c", "a,near,b", "self,only,self"]
    path.write_text("\n".join(["subject,relation,object", *rows]) + "\n")
    section = OwnGraph("table", (str(path),))
    facts = read.read("g", section, ("en",))["facts"]
    for more in (facts, facts.filter(pl.col("subject") == pl.col("object"))):
        described = relations(more, {}, section, [])
        assert {row["relation"]: row["symmetric"] for row in described} == {
            "near": "no", "only": "no"
        }  # fmt: skip


def texts(rows: list[dict[str, str]], relation: str) -> list[str]:
    return [row["text"] for row in rows if row["relation"] == relation]


def test_the_rule_prefers_user_templates_to_the_label(tmp_path):
    own = tmp_path / "own.tsv"
    own.write_text(HEAD + SOUND + "capital\t1\tmanual\t[Y] is the seat of [X].\t\n")
    made = run_script(tmp_path, [str(own)])
    assert texts(made, "capital")[:2] == ["The capital of [X] is [Y].", "[Y] is the seat of [X]."]
    assert texts(made, "continent")[0] == "The continent of [X] is [Y]."


def test_a_table_of_templates_keeps_the_folder_s_for_other_relations(tmp_path):
    own = tmp_path / "own.tsv"
    own.write_text(HEAD + SOUND)
    made = run_script(tmp_path, [str(own)], "[X], namely [Y].")
    assert texts(made, "capital")[0] == "The capital of [X] is [Y]."
    assert texts(made, "continent")[0] == "[X], namely [Y]."


def test_sentence_patterns_go_from_subject_to_object(tmp_path):
    own = tmp_path / "own.tsv"
    own.write_text(HEAD + SOUND + "continent\t0\tmanual\tIn [Y] lies [X].\t\n"
                   "continent\t1\tmanual\t[X] lies in [Y].\t\n")  # fmt: skip
    run_script(tmp_path, [str(own)])
    found = {
        row["property"]: row["pattern"]
        for row in experiments.read_table(str(tmp_path / "patterns.tsv"))
    }
    assert found == {"capital": "[X]'s capital is [Y] .", "continent": "[X] lies in [Y] ."}


def test_the_rule_runs_without_user_templates(tmp_path):
    made = run_script(tmp_path, [])
    assert texts(made, "capital")[0] == "The capital of [X] is [Y]."
    assert len(made) == 6


def test_paraphrases_keep_the_capitals_of_an_abbreviation(tmp_path):
    own = tmp_path / "own.tsv"
    own.write_text(HEAD + "capital\t0\tmanual\tUN seat of [X]: [Y].\t\n")
    made = texts(run_script(tmp_path, [str(own)]), "capital")
    assert made[1] == "It is known that UN seat of [X]: [Y]."


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("relation\ttext\ncapital\tThe [X] is [Y].\n", "no column index, kind; it has relation"),
        (HEAD.replace("note", "text") + SOUND, r"line 1: column 'text' appears twice"),
        (HEAD + "capital\tone\tmanual\t[X] is [Y].\t\n", "template one of capital: the index"),
        (HEAD + "capital\t0\tmade\t[X] is [Y].\t\n", "kind is 'made', expected manual"),
        (HEAD + "capital\t0\tmanual\tThe capital.\t\n", "template 0 of capital: expected one"),
        (HEAD + SOUND + SOUND, "template 0 of capital: this index appears twice"),
        (HEAD + SOUND + SOUND.replace("0", "00"), "template 00 of capital: this index appears"),
        (
            HEAD + SOUND.replace("capital", "capitl", 1),
            r"template 0 of capitl: no relation of the graph \(did you mean 'capital'\?\)",
        ),
    ],
)
def test_unusable_templates_are_reported(text, words, tmp_path):
    path = tmp_path / "own.tsv"
    path.write_text(text)
    with pytest.raises(experiments.TableError, match=words) as caught:
        read_templates(path, ["capital", "continent"])
    assert str(path) in str(caught.value)


def test_all_unusable_templates_are_in_one_message(tmp_path):
    path = tmp_path / "own.tsv"
    path.write_text(HEAD + SOUND + "a\t0\tmanual\tno slot\t\nb\tx\tmanual\t[X] [Y].\t\n")
    with pytest.raises(experiments.TableError) as caught:
        read_templates(path, ["capital", "a", "b"])
    assert len(str(caught.value).splitlines()) == 2


@pytest.mark.parametrize(
    "name", ["built", "released", "bear_released", "world_all", "symmetry", "hierarchy", "lama"]
)
def test_a_graph_named_like_a_built_in_set_is_refused(name):
    with pytest.raises(ConfigError, match=rf"sources\.graphs\.{name}: .* benchmark already"):
        check_names([name])


def test_every_other_graph_has_a_unique_name():
    names = {name.format("places") for name in OF_GRAPH}
    check_names(["places", "mine"])
    assert not names & set(known_benchmarks())
    allowed = (ROOT / "workflow/scripts/allow_graph.py").read_text()
    for name in OF_GRAPH:
        assert f'"{name.format("{name}")}"' in allowed, "allows.tsv names each set"

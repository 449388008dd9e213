"""User-supplied graphs: the output of the readers, and one clear error for each problem."""

import json

import polars as pl
import pytest

from kgprobe.schema import check
from kgprobe.settings.sources import Columns, OwnGraph, Roles
from kgprobe.sources.graphs.raw import LONGEST, RIGHT, GraphFileError
from kgprobe.sources.graphs.read import CONTRACTS, read

LANGUAGES = ("en", "mul")
HEAD = "subject,subject_label,relation,object,object_label\n"
SOUND = HEAD + 'x1,"Paris, the city",in,x2,France\nx3,Lyon,in,x2,France\n'


def table(tmp_path, text, name="g.csv", **section):
    path = tmp_path / name
    path.write_text(text)
    return read("g", OwnGraph("table", (str(path),), **section), LANGUAGES)


def turtle(tmp_path, text, name="g.ttl", **section):
    path = tmp_path / name
    path.write_text(text)
    return read("g", OwnGraph("rdf", (str(path),), **section), LANGUAGES)


def test_a_csv_with_quotes_gives_statements_in_their_schemas(tmp_path):
    made = table(tmp_path, SOUND)
    for name, contract in CONTRACTS.items():
        check(made[name], contract)
    facts = made["facts"].sort("subject").select("kg", "subject", "subject_label", "object_label")
    assert facts.rows() == [("g", "x1", "Paris, the city", "France"), ("g", "x3", "Lyon", "France")]
    assert made["properties"].select("property", "label").rows() == [("in", "in")]
    assert made["coverage"].select("relation", "way", "rows").rows() == [("in", "read", 2)]
    assert not made["problems"].height


def test_quotes_after_a_space_are_not_part_of_a_cell(tmp_path):
    text = 'subject, "relation", object\n"x1", "capital of",  "Congo, the"\nx3, capital of, x2\n'
    facts = table(tmp_path, text)["facts"].sort("subject")
    columns = ("subject_label", "relation", "object_label")
    expected = [("x1", "capital of", "Congo, the"), ("x3", "capital of", "x2")]
    assert facts.select(columns).rows() == expected


def test_tables_with_tabs_without_header_and_parquet_give_the_same(tmp_path):
    (tmp_path / "labels.tsv").write_text("id\tlabel\nx1\tParis, the city\nx2\tFrance\nx3\tLyon\n")
    labels = (str(tmp_path / "labels.tsv"),)
    rows = [("x1", "in", "x2"), ("x3", "in", "x2")]
    text = "".join("\t".join(row) + "\n" for row in rows)
    first = table(tmp_path, text, "g.txt", header=False, labels=labels)
    path = tmp_path / "g.parquet"
    pl.DataFrame(rows, schema=["s", "p", "o"], orient="row").write_parquet(path)
    section = OwnGraph("table", (str(path),), labels, columns=Columns("s", "p", "o"))
    second = read("g", section, LANGUAGES)
    key = ["subject", "object"]
    expected = table(tmp_path, SOUND)["facts"].sort(key)
    assert first["facts"].sort(key).equals(expected)
    assert second["facts"].sort(key).equals(expected)


def test_lines_of_json_give_the_same(tmp_path):
    """The file has a byte order mark, blank lines, line separators in a label, and unused keys."""
    lines = ["\ufeff" + json.dumps({"subject": "x1", "relation": "in", "object": 2, "n": [1]}), ""]
    more = {"subject": "x3", "relation": "in", "object": "2", "subject_label": "Ly\u2028on"}
    lines += [json.dumps(more | {"object_label": "France"}, ensure_ascii=False) + "\u2028", " "]
    facts = table(tmp_path, "\r\n".join(lines), "g.jsonl", leave_out=("missing_label",))["facts"]
    names = ["subject", "relation", "object", "subject_label", "object_label"]
    assert facts.sort("subject").select(names).rows() == [
        ("x1", "in", "2", None, "France"),
        ("x3", "in", "2", "Ly on", "France"),
    ]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"subject": 1.5, "relation": "in", "object": "x"}', r"line 2: subject is 1\.5; ids and"),
        ('{"subject": true, "relation": "in", "object": "x"}', "line 2: subject is True; ids and"),
        ('{"subject": "a", "object": "x"}', "line 2: no relation; every row has all three ids"),
        ('["a", "in", "x"]', "line 2: expected an object of JSON"),
        ('{"subject": "a"', "line 2: not valid JSON: "),
        (
            '{"subject": "a", "relation": "in", "object": "x", "object": "y"}',
            "line 2: 'object' appears twice",
        ),
    ],
)
def test_a_json_line_that_is_no_fact_is_reported(line, message, tmp_path):
    good = '{"subject": "a", "relation": "in", "object": "b"}\n'
    with pytest.raises(GraphFileError, match=message):
        table(tmp_path, f"{good}{line}\n{good}", "g.jsonl")


def test_keys_select_columns_in_any_order_with_any_header(tmp_path):
    first = '{"object": "b", "relation": "in"}'
    whole = '{"object": "x", "subject": "a", "relation": "in"}'
    with pytest.raises(GraphFileError, match=r"1: no subject; every row"):
        table(tmp_path, f"{first}\n{whole}\n", "g.jsonl", header=False)
    facts = table(tmp_path, whole, "g.jsonl", header=False)["facts"]
    assert facts.select("subject", "object").rows() == [("a", "x")]
    with pytest.raises(GraphFileError, match="no line has 'subject', 'relation', 'object'"):
        table(tmp_path, "\n", "g.jsonl")
    with pytest.raises(
        GraphFileError, match=r"2 rows or files cannot be read\n.*\n.*line 2: "
    ) as e:
        table(tmp_path, "no\n[1]\n", "g.jsonl")
    assert "no line has" not in str(e.value)


def test_missing_parquet_columns_are_reported_with_the_present_ones(tmp_path):
    path = tmp_path / "g.parquet"
    pl.DataFrame({"s": ["a"], "relation": ["in"], "o": ["b"]}).write_parquet(path)
    with pytest.raises(GraphFileError) as error:
        read("g", OwnGraph("table", (str(path),)), LANGUAGES)
    assert "no column 'subject', 'object'; it has s, relation, o; expected" in str(error.value)
    assert "first line" not in str(error.value)


def test_ids_are_the_labels_if_there_are_no_others(tmp_path):
    # names of entities keep their capitals, and nothing but underscores is no blank label
    made = table(tmp_path, "subject,relation,object\nNew_York_Inc.,capitalOf,iPhone\n_,of,__\n")
    labels = made["facts"].sort("subject").select("subject_label", "object_label").rows()
    assert labels == [("New York Inc.", "iPhone"), ("_", "__")]
    assert sorted(made["properties"]["label"]) == ["capital of", "of"]
    text = "subject,relation,relation_label,object\nNew_York,capitalOf,has its seat in,x\n"
    made = table(tmp_path, text)
    assert made["facts"].select("subject_label", "object_label").rows() == [("New York", "x")]
    assert made["properties"]["label"].to_list() == ["has its seat in"]


def test_label_relations_precede_label_tables_in_their_order(tmp_path):
    rows = "a,runs,b\na,alias,Al\na,name,Alpha\nb,alias,Beta\n"
    (tmp_path / "labels.csv").write_text("id,label\na,A\nb,B\nruns,runs into\n")
    text, roles = "subject,relation,object\n" + rows, Roles(label=("name", "alias"))
    made = table(tmp_path, text, roles=roles)
    assert made["facts"].select("subject_label", "object_label").rows() == [("Alpha", "Beta")]
    assert made["properties"].select("property", "label").rows() == [("runs", "runs")]
    made = table(tmp_path, text, roles=roles, labels=(str(tmp_path / "labels.csv"),))
    assert made["facts"].select("subject_label", "object_label").rows() == [("Alpha", "Beta")]
    assert made["properties"].select("property", "label").rows() == [("runs", "runs into")]


def test_wikidata_ids_stay_and_literals_are_left_out(tmp_path):
    (tmp_path / "labels.tsv").write_text("id\tlabel\nQ1\tone\nQ2\ttwo\n")
    text = "subject,relation,object\nQ1,P1,Q2\nQ1,P2,1970-01-01\n"
    labels = (str(tmp_path / "labels.tsv"),)
    made = table(tmp_path, text, ids="wikidata", labels=labels)
    kinds = made["facts"].sort("relation").select("kg", "object_kind").rows()
    assert kinds == [("wikidata", "item"), ("wikidata", "literal")]
    counts = made["coverage"].select("relation", "rows", "item", "literal").rows()
    assert counts == [("P1", 1, 1, 0), ("P2", 1, 0, 1)]
    (tmp_path / "labels.tsv").write_text("id\tlabel\nQ1\tone\n")
    with pytest.raises(GraphFileError, match=r"line 2: Q2 has no label\n"):
        table(tmp_path, text, ids="wikidata", labels=labels)


def test_addresses_in_place_of_wikidata_s_ids_are_refused(tmp_path):
    """Otherwise every object would be a literal, and facts of such subjects would be lost."""
    wikidata = "http://www.wikidata.org"
    text = f"<{wikidata}/entity/Q1> <{wikidata}/prop/direct/P36> <{wikidata}/entity/Q2> ."
    with pytest.raises(GraphFileError, match=r"g\.ttl: .*/P36 is not a property; expected ids "):
        turtle(tmp_path, text, ids="wikidata")
    with pytest.raises(GraphFileError, match=r"g\.csv, line 2: .*relation in is not a property"):
        table(tmp_path, SOUND, ids="wikidata")
    for subject in ("France", "q142", f"{wikidata}/entity/Q142"):
        text = HEAD + f"Q1,one,P36,Q2,two\n{subject},France,P36,Q90,Paris\n"
        with pytest.raises(GraphFileError, match=f"line 3: .*subject {subject} is not an entity"):
            table(tmp_path, text, ids="wikidata")
    for value in ("wd:Q2", f"{wikidata}/entity/Q2"):
        text = HEAD + f"Q1,one,P36,{value},two\n"
        with pytest.raises(GraphFileError, match=f"line 2: .*object {value} is not an entity id"):
            table(tmp_path, text, ids="wikidata")


def test_labels_without_an_id_and_empty_tables_of_labels_are_reported(tmp_path):
    labels = tmp_path / "l.csv"
    labels.write_text("id,label\n,A\na,\na,A\nb,B\n")
    with pytest.raises(GraphFileError, match=r"g: .*l\.csv, line 2: the label 'A' has no id$"):
        table(tmp_path, "subject,relation,object\na,r,b\n", labels=(str(labels),))
    labels.write_text("")
    with pytest.raises(GraphFileError, match=r"l\.csv: empty; expected rows of id, label"):
        table(tmp_path, "subject,relation,object\na,r,b\n", labels=(str(labels),))


@pytest.mark.parametrize(
    ("problem", "text", "told"),
    [
        ("missing_label", "a,A,r,b,B\nc,,r,b,B\n", "line 3: c has no label"),
        ("two_labels", "a,A,r,b,B\na,Z,r,b,B\n", "line 3: a is 'Z' here and 'A' in {path}, line 2"),
        ("relation_as_entity", "a,A,r,b,B\nr,R,q,b,B\n",
         "line 3: the subject r is a relation of other statements, too"),
        ("long_id", "a,A,r,b,B\n" + "i" * 10_000 + ",I,r,b,B\n",
         "line 3: the subject " + "i" * 60 + "... (10,000 characters)"),
        ("loop", "a,A,up,b,B\nb,B,up,c,C\nc,C,up,a,A\nd,D,up,a,A\n",
         "line 2: a > b > c > a, each below the next (3 times, this is the first)"),
    ],
)  # fmt: skip
def test_each_table_problem_is_one_error_or_a_counted_omission(tmp_path, problem, text, told):
    text, roles = HEAD + text, Roles(subclass=("up",))
    with pytest.raises(GraphFileError) as error:
        table(tmp_path, text, roles=roles)
    message = str(error.value)
    assert f"{problem}: {tmp_path}/g.csv, {told}".format(path=tmp_path / "g.csv") in message
    assert RIGHT[problem] in message
    assert f"leave_out: [{problem}]" in message
    assert "has 1 kind of problems" in message
    made = table(tmp_path, text, roles=roles, leave_out=(problem,))
    assert made["problems"]["problem"].to_list() == [problem]
    labels = made["facts"].sort("subject")["subject_label"].to_list()
    assert labels == {"loop": [*"ABCD"], "missing_label": ["A", None]}.get(problem, ["A"])
    assert made["class_hierarchy"].rows() == ([("d", "a")] if problem == "loop" else [])


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (HEAD + '\na,A,r,b,"B\n', "line 3: unexpected end of data"),
        # where the cell begins, not where the file ends
        (HEAD + 'a,A,r,b,"B\n\na,A,r,b,B\n', "line 2: unexpected end of data"),
        (HEAD[:-1] + ",subject_label\nx,X,in,y,Y,Z\n", "two columns 'subject_label' in its first"),
    ],
)
def test_an_unreadable_table_is_reported_with_its_line(tmp_path, text, told):
    with pytest.raises(GraphFileError, match=r"g\.csv") as error:
        table(tmp_path, text)
    assert told in str(error.value)


def test_a_long_cell_between_tabs_is_not_put_down_to_quotes(tmp_path):
    with pytest.raises(GraphFileError) as error:
        table(tmp_path, f"subject\trelation\tobject\n{'x' * 200_000}\tin\ty\n", "g.tsv")
    assert "g.tsv, line 2: a cell of more than 131,072 characters" in str(error.value)
    assert "quote" not in str(error.value)


def test_non_text_bytes_and_other_file_endings_are_reported(tmp_path):
    (tmp_path / "g.csv").write_bytes(HEAD.encode() + b"a,\xff,r,b,B\n")
    with pytest.raises(GraphFileError, match=r"g\.csv, line 2: byte 53 \(0xff\) is not UTF-8"):
        read("g", OwnGraph("table", (str(tmp_path / "g.csv"),)), LANGUAGES)
    section = OwnGraph("table", (str(tmp_path / "g.csv"),), labels=(str(tmp_path / "labels.csv"),))
    with pytest.raises(GraphFileError, match=r"\n  .*labels\.csv: no such file"):
        read("g", section, LANGUAGES)


ZOO = """
@prefix : <http://x/> . @prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
<http://x/> a owl:Ontology .
:Animal a owl:Class ; rdfs:label "animal"@en, "Tier"@de .
:Cat a owl:Class ; rdfs:label "cat"@en ; rdfs:subClassOf :Animal ; rdfs:comment "purrs" .
:tom a :Cat ; rdfs:label "Tom" ; :eats :jim .
:jim a :Animal ; rdfs:label "Jim" .
:eats a owl:ObjectProperty ; rdfs:label "eats"@en ; rdfs:subPropertyOf :takes ;
  rdfs:domain :Cat ; rdfs:range :Animal ; owl:inverseOf :eatenBy .
:takes a owl:ObjectProperty ; rdfs:label "takes"@en .
:eatenBy a owl:ObjectProperty ; rdfs:label "is eaten by"@en .
"""


def test_labels_in_another_language_are_reported(tmp_path):
    with pytest.raises(GraphFileError, match=r"`languages` \(en-US is not en\)"):
        turtle(tmp_path, ZOO.replace('"cat"@en', '"cat"@en-US'))
    made = turtle(tmp_path, ZOO.replace('"cat"@en', '"cat"@EN'))
    assert "cat" in made["classes"]["label"].to_list()


def test_an_ontology_in_turtle_and_rdf_xml(tmp_path):
    made = turtle(tmp_path, ZOO)
    for name, contract in CONTRACTS.items():
        check(made[name], contract)
    own = "http://x/"
    classes = [(own + "Animal", "animal"), (own + "Cat", "cat")]
    assert made["classes"].sort("class").rows() == classes
    assert made["class_hierarchy"].rows() == [(own + "Cat", own + "Animal")]
    assert made["types"].sort("class")["label"].to_list() == ["Jim", "Tom"]
    assert made["properties"].filter(pl.col("domain").is_not_null()).rows() == [
        (own + "eats", "eats", own + "Cat", own + "Animal")
    ]
    assert made["property_hierarchy"].rows() == [(own + "eats", own + "takes")]
    assert made["facts"]["relation"].n_unique() == 3
    assert made["facts"].height == 4
    from pyoxigraph import RdfFormat, parse, serialize

    xml = serialize(
        (quad.triple for quad in parse(ZOO.encode(), RdfFormat.TURTLE)), format=RdfFormat.RDF_XML
    )
    other = turtle(tmp_path, xml.decode(), "g.owl")
    for name in CONTRACTS:
        key = list(CONTRACTS[name].key)
        assert other[name].sort(key).equals(made[name].sort(key)), name
    # an .owl file that is Turtle
    assert turtle(tmp_path, ZOO, "h.owl")["facts"].sort("subject").height == 4


@pytest.mark.parametrize(
    ("problem", "more", "told"),
    [
        ("blank_node", ":Cat rdfs:subClassOf [ a owl:Restriction ] .", "subClassOf of http://x/C"),
        ("import", "<http://x/> owl:imports <http://other/> .", "it imports http://other/, which"),
        ("loop", ":Animal rdfs:subClassOf :Cat .", "http://x/Animal > http://x/Cat"),
    ],
)
def test_each_ontology_problem_is_one_error_or_left_out(tmp_path, problem, more, told):
    with pytest.raises(GraphFileError) as error:
        turtle(tmp_path, ZOO + more)
    assert f"{problem}: {tmp_path}/g.ttl: " in str(error.value)
    assert told in str(error.value)
    assert RIGHT[problem] in str(error.value)
    problems = turtle(tmp_path, ZOO + more, leave_out=(problem,))["problems"]
    assert problems["problem"].to_list() == [problem]


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("g.ttl", f"{ZOO}:r :says <<( :tom :eats :jim )>> .", "http://x/says of http://x/r is a"),
        ("g.ttl", f"{ZOO}:tom :eats :jim ~ :r .", "#reifies of http://x/r is a triple"),
        ("g.nt", "<x:r> <x:p> <<( <x:a> <x:p> <x:b> )>> .", "x:p of x:r is a triple"),
    ],
)
def test_a_quoted_triple_is_counted_as_unread(tmp_path, name, text, told):
    with pytest.raises(GraphFileError) as error:
        turtle(tmp_path, text, name)
    first = str(error.value).partition("\n")[0]
    assert first.startswith(f"sources.graphs.g: {tmp_path}/{name}")
    assert told in first


def test_an_import_with_a_given_file_is_not_reported(tmp_path):
    other = tmp_path / "other.ttl"
    other.write_text("<http://other/> a <http://www.w3.org/2002/07/owl#Ontology> .")
    path = tmp_path / "g.ttl"
    path.write_text(ZOO + "<http://x/> owl:imports <http://other/> .")
    made = read("g", OwnGraph("rdf", (str(path), str(other))), LANGUAGES)
    assert not made["problems"].height


def test_skos_broader_is_a_hierarchy(tmp_path):
    text = """@prefix : <http://x/> . @prefix skos: <http://www.w3.org/2004/02/skos/core#> .
    :a a skos:Concept ; skos:prefLabel "alpha"@en ; skos:broader :b ; skos:related :b .
    :b a skos:Concept ; skos:prefLabel "beta"@en .
    skos:related <http://www.w3.org/2000/01/rdf-schema#label> "related to"@en ."""
    made = turtle(tmp_path, text)
    assert made["class_hierarchy"].rows() == [("http://x/a", "http://x/b")]
    assert made["facts"]["relation"].n_unique() == 2


def test_a_folder_of_lm_pub_quiz(tmp_path):
    rows = [
        {"sub_id": "Q1", "sub_label": "Mali", "obj_id": "Q2", "obj_label": "Africa"},
        {"sub_label": "Laos", "obj_label": "Asia"},
    ]
    metadata = {"P30": {"templates": ["[X] is in [Y]."]}}
    (tmp_path / "metadata_relations.json").write_text(json.dumps(metadata))
    (tmp_path / "P30.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    made = read("g", OwnGraph("lm_pub_quiz", (str(tmp_path),)), LANGUAGES)
    facts = made["facts"].sort("subject").select("subject", "subject_label", "object")
    assert facts.rows() == [("Laos", "Laos", "Asia"), ("Q1", "Mali", "Q2")]
    assert made["templates"]["text"].to_list() == ["[X] is in [Y]."]


def test_ids_are_short_enough_up_to_the_limit(tmp_path):
    assert table(tmp_path, HEAD + f"{'i' * LONGEST},I,r,b,B\n")["facts"].height == 1


@pytest.mark.parametrize("form", ["rdf", "lm_pub_quiz"])
def test_settings_of_tables_are_refused_for_other_forms(form):
    from kgprobe.config import ConfigError
    from kgprobe.config import read as read_config

    with pytest.raises(ValueError, match=f"labels, header, columns: only .* form is {form}"):
        OwnGraph(form, ("g",), ("labels.tsv",), False, Columns("s"))
    section = {"form": form, "files": ["g"], "labels": ["labels.tsv"]}
    with pytest.raises(ConfigError, match=r"sources\.graphs\.mine: labels: only for form table"):
        read_config({"run": {"name": "r"}, "sources": {"graphs": {"mine": section}}})


def test_json_lines_may_end_at_carriage_returns(tmp_path):
    lines = [json.dumps({"subject": name, "relation": "in", "object": "b"}) for name in "ac"]
    path = tmp_path / "g.jsonl"
    path.write_bytes("\r".join(lines).encode())
    assert read("g", OwnGraph("table", (str(path),)), LANGUAGES)["facts"].height == 2


def test_two_folders_may_share_a_relation(tmp_path):
    row = {"sub_id": "a", "sub_label": "A", "obj_id": "b", "obj_label": "B"}
    folders = tmp_path / "train", tmp_path / "test"
    for number, folder in enumerate(folders):
        folder.mkdir()
        metadata = {"in": {"templates": ["[X] is in [Y]."]}}
        (folder / "metadata_relations.json").write_text(json.dumps(metadata))
        row["sub_id"] = row["sub_label"] = f"a{number}"
        (folder / "in.jsonl").write_text(json.dumps(row))
    section = OwnGraph("lm_pub_quiz", tuple(map(str, folders)))
    made = read("g", section, LANGUAGES)
    check(made["templates"], CONTRACTS["templates"])
    assert made["facts"].height == 2
    metadata["in"]["templates"] = ["[X] lies in [Y]."]
    (folders[1] / "metadata_relations.json").write_text(json.dumps(metadata))
    with pytest.raises(GraphFileError, match=r"template 0 of in is '\[X\] lies in \[Y\]\.', and"):
        read("g", section, LANGUAGES)


def test_columns_for_labels_are_not_checked_in_facts(tmp_path):
    columns = {"subject": ["x"], "relation": ["r"], "object": ["y"], "id": [0.5], "label": [["a"]]}
    pl.DataFrame(columns).write_parquet(tmp_path / "g.parquet")
    row = {name: values[0] for name, values in columns.items()}
    made = table(tmp_path, json.dumps(row), "g.jsonl")
    other = read("g", OwnGraph("table", (str(tmp_path / "g.parquet"),)), LANGUAGES)
    assert made["facts"].equals(other["facts"])
    assert made["facts"].height == 1


def test_a_repeated_first_line_is_no_fact(tmp_path):
    """Files with a header and a byte order mark were concatenated."""
    text = "\ufeffsubject,relation,object\na,r,b\n\ufeffsubject,relation,object\n\ufeffc,r,b\n"
    made = table(tmp_path, text)
    assert sorted(made["facts"].select("subject", "relation").rows()) == [("a", "r"), ("c", "r")]
    with pytest.raises(GraphFileError, match=r"line 3: the names of the columns again, in another"):
        table(tmp_path, "subject,relation,object\na,r,b\nobject,relation,subject\nb,r,c\n")


def test_one_id_or_label_in_two_compositions_is_one(tmp_path):
    made = table(tmp_path, HEAD + "a,Z\u00fcrich,in,b,B\na,Zu\u0308rich,in,c,C\n")
    assert made["facts"]["subject_label"].to_list() == ["Z\u00fcrich"] * 2
    text = "subject,relation,object\nZ\u00fcrich,in,b\nZu\u0308rich,in,c\nb,at,Zu\u0308rich\n"
    facts = table(tmp_path, text)["facts"]
    assert {*facts["subject"], *facts["object"]} == {"Z\u00fcrich", "b", "c"}
    (tmp_path / "metadata_relations.json").write_text('{"in": {"templates": []}}')
    rows = [{"sub_label": name, "obj_label": "b"} for name in ("Z\u00fcrich", "Zu\u0308rich")]
    (tmp_path / "in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    section = OwnGraph("lm_pub_quiz", (str(tmp_path),))
    assert read("g", section, LANGUAGES)["facts"].height == 1


@pytest.mark.parametrize("relation", ["#in", "in  a", " in"])
def test_files_whose_names_tables_cannot_hold_are_reported(relation, tmp_path):
    metadata = {relation: {"templates": ["[X] is in [Y]."]}}
    (tmp_path / "metadata_relations.json").write_text(json.dumps(metadata))
    row = {"sub_id": "a", "sub_label": "A", "obj_id": "b", "obj_label": "B"}
    (tmp_path / f"{relation}.jsonl").write_text(json.dumps(row))
    with pytest.raises(GraphFileError, match=f"jsonl: the relation '{relation}' begins"):
        read("g", OwnGraph("lm_pub_quiz", (str(tmp_path),)), LANGUAGES)


def test_a_superproperty_without_statements_of_its_own_is_a_property(tmp_path):
    """OntoProbe asks for it: without it, the question about its subproperty was lost."""
    text = "subject,relation,object\nFrance,capital,Paris\ncapital,below,placeOf\n"
    made = table(tmp_path, text, roles=Roles(subproperty=("below",)))
    named = made["properties"].sort("property").select("property", "label")
    assert named.rows() == [("capital", "capital"), ("placeOf", "place of")]
    head = "@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> . @prefix : <http://e.org/> .\n"
    text = head + (
        ':France :capital :Paris; rdfs:label "France" . :Paris rdfs:label "Paris" .\n'
        ':capital rdfs:label "capital"; rdfs:subPropertyOf :placeOf, :unnamed, :Place .\n'
        ':placeOf rdfs:label "place of" .\n'
        ':Place a <http://www.w3.org/2002/07/owl#Class>; rdfs:label "place" .\n'
    )
    named = turtle(tmp_path, text)["properties"].sort("property")["label"].to_list()
    assert named == ["capital", "place of"]

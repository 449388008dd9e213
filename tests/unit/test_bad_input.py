"""Files of a new user: they load, or one error lists every file, line and remedy."""

import gzip
import json
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path

import polars as pl
import pytest

from kgprobe.knowledge import ontology
from kgprobe.settings.sources import Columns, OwnGraph
from kgprobe.sources.dumps import facts as dumps
from kgprobe.sources.dumps import trex
from kgprobe.sources.graphs.raw import GraphFileError
from kgprobe.sources.graphs.read import GraphTables, read
from kgprobe.sources.labels import one_line, one_line_of
from kgprobe.sources.sparql.endpoint import EndpointError, open_store
from kgprobe.sources.sparql.relations import statements

LABEL = "http://www.w3.org/2000/01/rdf-schema#label"
WD = "http://www.wikidata.org/entity/"
#: one label as sources write it -> as every reader returns it
LABEL_FORMS = {
    "Mali": "Mali", "Mali ": "Mali", "Mali\u00a0": "Mali", "\u00a0 New\u00a0York": "New York",
    "Mali\n": "Mali", "Mali\r\n": "Mali", "New\u2028York": "New York",
    "New\u0085 York\u202f": "New York", "\tNew  York\u3000": "New York",
}  # fmt: skip


def load(path: Path, form: str = "table", **section: object) -> GraphTables:
    return read("g", OwnGraph(form, (str(path),), **section), ("en",))


def parquet(path: Path, frame: pl.DataFrame, **section: object) -> GraphTables:
    frame.write_parquet(path)
    return load(path, **section)


def test_unused_columns_are_ignored(tmp_path):
    frame = pl.DataFrame({
        "aliases": [["a", "b"], []], "subject": ["x", "y"], "score": [0.5, None],
        "relation": ["r", "r"], "meta": [{"a": 1}, {"a": 2}], "object": ["z", "z"],
        "raw": [b"\xff", b""],
    })  # fmt: skip
    assert sorted(parquet(tmp_path / "g.parquet", frame)["facts"]["subject"]) == ["x", "y"]


def test_a_panic_of_the_parquet_reader_is_reported(tmp_path, monkeypatch):
    """Polars panics on some damaged files, such as one whose footer names bytes beyond its end."""

    def panic(*_, **__):
        raise pl.exceptions.PanicException("range.end <= self.size")

    monkeypatch.setattr(pl, "read_parquet", panic)
    with pytest.raises(GraphFileError, match=r"g\.parquet: not a readable parquet file: range"):
        parquet(tmp_path / "g.parquet", pl.DataFrame({"subject": ["x"]}))


def test_a_file_name_is_no_pattern(tmp_path):
    """Polars expands brackets and asterisks in names of parquet files."""
    frame = pl.DataFrame({"subject": ["x"], "relation": ["r"], "object": ["z"]})
    frame.with_columns(subject=pl.lit("other")).write_parquet(tmp_path / "g1.parquet")
    for name in ("g[1].parquet", "g*.parquet"):
        assert parquet(tmp_path / name, frame)["facts"]["subject"].to_list() == ["x"]


@pytest.mark.parametrize(
    ("name", "values", "words"),
    [
        ("subject", [142.0, 7.0], "column 'subject' is Float64, the first value is 142.0"),
        ("object", [None, 7.5], "column 'object' is Float64, the first value is 7.5"),
        ("subject", [Decimal("142.0"), Decimal("7.0")], "the first value is 142.0"),
        ("relation", [["r"], ["r"]], r"column 'relation' is List\(String\), the first value is"),
        ("subject_label", [1.5, 2.5], "column 'subject_label' is Float64, the first value is 1.5"),
        ("subject", [timedelta(1), None], "column 'subject' is Duration.*the first value is 1 day"),
        ("object", [date(2026, 1, 2), None], "column 'object' is Date, .* is 2026-01-02"),
    ],
)
@pytest.mark.parametrize("header", [True, False])
def test_non_text_id_columns_raise(header, name, values, words, tmp_path):
    columns = {"subject": ["x", "y"], "relation": ["r", "r"], "object": ["z", "z"], name: values}
    path = tmp_path / "g.parquet"
    if not header and name == "subject_label":
        assert parquet(path, pl.DataFrame(columns), header=False)["facts"].height == 2
        return
    with pytest.raises(GraphFileError, match=words) as caught:
        parquet(path, pl.DataFrame(columns), header=header)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize("kind", [pl.Float64, pl.List(pl.String)])
def test_a_column_without_values_is_missing_whatever_its_type(kind, tmp_path):
    """Pandas writes missing labels as floats, and no type of theirs is wrong."""
    columns = {"subject": ["x"], "relation": ["r"], "object": ["z"], "subject_label": [None]}
    frame = pl.DataFrame(columns, schema_overrides={"subject_label": kind})
    with pytest.raises(
        GraphFileError, match=r"missing_label: .*g\.parquet, line 1: x has no label"
    ):
        parquet(tmp_path / "g.parquet", frame)


HEAD = "subject,relation,object"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        *((f"{HEAD}\na,r,b\n{row}\n", "line 3: an id with a NUL character")
          for row in ("x\0,r,y", "x,r\0,y", "x,r,\0y")),
        (f"{HEAD}\nx,capital,y\n", "known: .* no relation capitol; it has capital"),
        (f"{HEAD}\na,#1 hit,b\nc,r,d\n", "line 2: the relation #1 hit begins with #"),
    ],
)  # fmt: skip
def test_bad_ids_and_relations_raise(text, words, tmp_path):
    path = tmp_path / "g.csv"
    path.write_text(text)
    known = {"capital": "P36", "capitol": "P36"} if "capital" in text else {}
    with pytest.raises(GraphFileError, match=words) as caught:
        load(path, known=known)
    assert "g.csv" in str(caught.value) or known


def test_row_errors_match_the_table_format(tmp_path):
    path = tmp_path / "g.tsv"
    path.write_text("subject\trelation\tobject\nx\tr\ty\tz\n")
    with pytest.raises(GraphFileError, match=r"line 2: 4 cells, expected 3; no cell of .* tab"):
        load(path)


def test_whole_numbers_are_ids(tmp_path):
    frame = pl.DataFrame({"s": [142, 7], "p": ["r", "r"], "o": [8, 9]})
    content = parquet(tmp_path / "g.parquet", frame, columns=Columns("s", "p", "o"))
    assert sorted(content["facts"]["subject"]) == ["142", "7"]


TRIPLES = [
    *(f'<http://x/{name}> <{LABEL}> "{name}" .' for name in "abp"),
    "<http://x/a> <http://x/p> <http://x/b> .",
]


@pytest.mark.parametrize(
    "bad",
    ["http://x/b c", "http://x/b|c", "x b", "http://x/b%zz{}", "http://x:b/", "http://[::x]/"],
)
def test_bad_iris_are_reported_with_their_line(bad, tmp_path):
    path = tmp_path / "g.nt"
    lines = [*TRIPLES[:3], f"<{bad}> <http://x/p> <http://x/a> .", TRIPLES[3]]
    path.write_text("\n".join(lines) + "\n")
    with pytest.raises(GraphFileError, match=rf"bad_iri: {path}, line 4: ") as caught:
        load(path, "rdf")
    assert "leave_out: [bad_iri]" in str(caught.value)
    content = load(path, "rdf", leave_out=("bad_iri",))
    assert content["facts"].select("subject", "object").rows() == [("http://x/a", "http://x/b")]
    assert content["problems"].select("problem", "n").rows() == [("bad_iri", 1)]


@pytest.mark.parametrize("bad", ["@base <x y> .", "BASE\n <http://[x/>", "@prefix x: <x y> ."])
def test_a_bad_base_or_prefix_is_not_left_out(bad, tmp_path):
    """<b> and x:b would be other entities."""
    path = tmp_path / "g.ttl"
    head = ["@base <http://x/> .", "@prefix x: <http://x/> .", *TRIPLES, bad]
    path.write_text("\n".join([*head, "<http://x/a> <http://x/p> <b>, x:b ."]) + "\n")
    with pytest.raises(GraphFileError, match=rf"{path}, line \d: .* correct this base or prefix"):
        load(path, "rdf", leave_out=("bad_iri", "missing_label"))


@pytest.mark.parametrize(
    ("subject", "value", "kept"),
    [
        ("http://x/a", "http://x/b c", [("a", "q", "c"), ("b", "p", "a")]),
        ("http://x/a b", "http://x/b", [("b", "p", "a")]),
        ("http://x/a", "http://x:b/", [("a", "q", "c"), ("b", "p", "a")]),
    ],
)
def test_bad_iris_in_rdf_xml_cost_only_their_own_statements(subject, value, kept, tmp_path):
    """Oxigraph goes on after such an IRI, but with properties taken for nodes."""
    path = tmp_path / "g.rdf"
    node = "<rdf:Description rdf:about='{}'>{}</rdf:Description>\n".format
    p, q = (f"<x:{name} rdf:resource='{value}'/>" for name, value in
            (("p", value), ("q", "http://x/c")))  # fmt: skip
    more = node("http://x/b", "<x:p rdf:resource='http://x/a'/>")
    path.write_text(XML.partition("<rdf:Desc")[0] + node(subject, p + q) + more + "</rdf:RDF>")
    with pytest.raises(GraphFileError, match=rf"bad_iri: {path}: http://x.*: ") as caught:
        load(path, "rdf")
    assert "blank_node" not in str(caught.value)
    content = load(path, "rdf", leave_out=("bad_iri", "missing_label"))
    rows = content["facts"].select("subject", "relation", "object").sort(pl.all()).rows()
    assert rows == [tuple(f"http://x/{name}" for name in row) for row in kept]
    problems = dict(content["problems"].select("problem", "n").rows())
    assert problems["bad_iri"] == 3 - len(kept)


@pytest.mark.parametrize("bad", ['"a"', "nonsense"])
def test_non_iri_terms_are_not_bad_iris(bad, tmp_path):
    """Otherwise `leave_out: [bad_iri]` would skip any malformed line."""
    path = tmp_path / "g.nt"
    path.write_text("\n".join([*TRIPLES, f"{bad} <http://x/p> <http://x/a> ."]) + "\n")
    with pytest.raises(GraphFileError, match=rf"{path}, line 5: .*must be an IRI") as caught:
        load(path, "rdf", leave_out=("bad_iri",))
    assert "leave_out" not in str(caught.value)


def test_ids_are_normalized_to_one_line(tmp_path):
    path = tmp_path / "g.csv"
    rows = ["New\u00a0York,born  in,b", '"New York","born\nin",c', "d,born\u2028in,New  York"]
    path.write_text("\n".join([HEAD, *rows]) + "\n")
    facts = load(path)["facts"]
    assert set(facts["relation"]) == {"born in"}
    assert set(facts["subject"]) | set(facts["object"]) == {"New York", "b", "c", "d"}


@pytest.mark.parametrize("ending", ["nt", "ttl"])
def test_byte_order_mark_is_stripped_from_rdf(ending, tmp_path):
    path = tmp_path / f"g.{ending}"
    path.write_text("\n".join(TRIPLES) + "\n", encoding="utf-8-sig")
    assert load(path, "rdf")["facts"].height == 1


XML = (
    "<?xml version='1.0'?>\n<rdf:RDF xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#' "
    "xmlns:x='http://x/'>\n<rdf:Description rdf:about='http://x/a'>"
    "<x:p rdf:resource='http://x/b'/></rdf:Description>\n"
)


def test_rdf_xml_truncated_between_elements_raises(tmp_path):
    path = tmp_path / "g.rdf"
    path.write_text(XML)
    with pytest.raises(GraphFileError, match=rf"{path}, line 4: no element found"):
        load(path, "rdf")
    with pytest.raises(EndpointError, match=f"could not load {path}: no element found"):
        open_store([path], tmp_path / "stores")
    path.write_text(XML + "</rdf:RDF>")
    assert load(path, "rdf", leave_out=("missing_label",))["facts"].height == 1


def test_bytes_that_are_not_utf_8_are_one_error_of_their_line(tmp_path):
    path = tmp_path / "g.nt"
    bad = b'<http://x/a> <http://x/q> "\xe9" .\n'
    path.write_bytes("\n".join([*TRIPLES, ""]).encode() + bad + TRIPLES[3].encode() + b"\n")
    with pytest.raises(GraphFileError, match=rf"^sources\.graphs\.g: {path}, line 5: .*UTF-8"):
        load(path, "rdf")


@pytest.mark.parametrize("encoding", ["utf-16", "iso-8859-1"])
def test_rdf_xml_in_another_encoding_is_not_called_turtle(encoding, tmp_path):
    path = tmp_path / "g.rdf"
    text = XML.replace("'1.0'", f"'1.0' encoding='{encoding}'") + "</rdf:RDF>"
    path.write_bytes(text.encode(encoding))
    with pytest.raises(GraphFileError, match=r"g\.rdf: .*UTF-8.*; expected RDF/XML$"):
        load(path, "rdf")


def test_uncompressed_file_named_gz_raises(tmp_path):
    path = tmp_path / "g.owl.gz"
    path.write_text(XML)
    with pytest.raises(GraphFileError, match=f"{path}: cannot be read: Not a gzipped file"):
        load(path, "rdf")


@pytest.mark.parametrize("ending", ["owl", "nt", "rdf"])
def test_archives_damaged_in_the_middle_raise(ending, tmp_path):
    path = tmp_path / f"g.{ending}.gz"
    packed = bytearray(gzip.compress(XML.encode() * 100))
    packed[12:40] = bytes(28)
    path.write_bytes(packed)
    with pytest.raises(GraphFileError, match=rf"{path}.*: .*(decompressing|invalid|CRC|ended)"):
        load(path, "rdf")
    with pytest.raises(EndpointError, match=f"could not load {path}: "):
        open_store([path], tmp_path / "stores")


QUIZ = {"sub_id": "x", "sub_label": "X", "obj_id": "y", "obj_label": "Y"}


@pytest.mark.parametrize("value", [1.0, ["X"], {"a": 1}, True])
@pytest.mark.parametrize("name", ["sub_label", "obj_id"])
def test_lm_pub_quiz_ids_and_labels_must_be_text(name, value, tmp_path):
    (tmp_path / "metadata_relations.json").write_text('{"P1": {}}')
    (tmp_path / "P1.jsonl").write_text(json.dumps(QUIZ | {name: value}) + "\n")
    with pytest.raises(GraphFileError, match=r"P1\.jsonl, line 1: .* are texts or whole") as caught:
        load(tmp_path, "lm_pub_quiz")
    assert f"{name} is {value!r}" in str(caught.value)


@pytest.mark.parametrize("texts", ["[X] is [Y].", ["[X] is [Y].", 1], {"a": "[X] is [Y]."}])
def test_lm_pub_quiz_templates_must_be_a_list_of_texts(texts, tmp_path):
    (tmp_path / "metadata_relations.json").write_text(json.dumps({"P1": {"templates": texts}}))
    (tmp_path / "P1.jsonl").write_text(json.dumps(QUIZ) + "\n")
    with pytest.raises(GraphFileError, match="the templates of P1 are not a list of strings"):
        load(tmp_path, "lm_pub_quiz")


def test_lm_pub_quiz_ids_are_normalized_like_table_ids(tmp_path):
    (tmp_path / "metadata_relations.json").write_text('{"P1": {}}')
    (tmp_path / "P1.jsonl").write_text(json.dumps(QUIZ | {"sub_id": " x ", "obj_id": 0}) + "\n")
    content = load(tmp_path, "lm_pub_quiz")
    assert content["facts"].select("subject", "object").rows() == [("x", "0")]


def test_all_errors_of_an_lm_pub_quiz_folder_are_in_one_message(tmp_path):
    templates = {"P1": {"templates": ["[X] is.", "[X] is [Y].", ""]}, "P2": {}, "P3": {}}
    (tmp_path / "metadata_relations.json").write_text(json.dumps(templates))
    rows = [json.dumps(QUIZ), "{", '{"sub_label": "a"}', "[]"]
    (tmp_path / "P1.jsonl").write_text("\n".join(rows) + "\n")
    (tmp_path / "P2.jsonl").write_bytes('{"sub_id": "Ä"}'.encode("latin-1"))
    (tmp_path / "P3.jsonl").write_text(json.dumps(QUIZ | {"sub_label": "\ud800"}) + "\n")
    (tmp_path / "P4.jsonl").write_text("")
    with pytest.raises(GraphFileError) as caught:
        load(tmp_path, "lm_pub_quiz")
    for words in (
        "template 0 of P1",
        "template 2 of P1",
        "P1.jsonl, line 2: not valid JSON",
        "P1.jsonl, line 3: neither obj_id",
        "P1.jsonl, line 4: expected",
        "not UTF-8",
        "P3.jsonl, line 1: not valid JSON",
        "entry for P4",
    ):
        assert words in str(caught.value)
    assert "template 1" not in str(caught.value)


def test_all_errors_of_a_table_are_in_one_message(tmp_path):
    path = tmp_path / "g.csv"
    head = "subject,subject_label,relation,object,object_label\n"
    rows = ["a,A,r,b,B", "c,,r,b,B", "d,D,r", "e,,r,b,B", ",F,r,b,B", "a,Z,r,b,B", "g,G,r,b"]
    path.write_text(head + "\n".join(rows) + "\n")
    with pytest.raises(GraphFileError) as caught:
        load(path)
    message = str(caught.value)
    for words in (
        f"{path}, line 4: 3 cells, expected 5",
        f"{path}, line 6: no subject; every row has all three ids",
        f"{path}, line 8: 4 cells, expected 5",
        f"{path}, line 3: c has no label (2 times, this is the first)",
        f"{path}, line 5: e has no label",
        f"{path}, line 7: a is 'Z' here and 'A' in {path}, line 2",
        "3 rows or files cannot be read",
        "2 kinds of problems",
        "leave_out: [missing_label, two_labels]",
    ):
        assert words in message


def test_every_unreadable_file_is_reported(tmp_path):
    good, texts = tmp_path / "a.csv", {"b.csv": "x,y\n1,2\n", "c.xlsx": "", "d.csv": ""}
    good.write_text("subject,relation,object\na,r,b\n")
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    files = (str(good), *(str(tmp_path / name) for name in texts))
    with pytest.raises(GraphFileError) as caught:
        read("g", OwnGraph("table", files), ("en",))
    assert all(str(tmp_path / name) in str(caught.value) for name in texts)
    for name in ("x.nt", "y.ttl"):
        lines = [*TRIPLES[:3], "<a> <b> .", TRIPLES[3], "?"]
        (tmp_path / name).write_text("\n".join(lines) + "\n")
    paths = tuple(str(tmp_path / name) for name in ("x.nt", "y.ttl"))
    with pytest.raises(GraphFileError) as caught:
        read("g", OwnGraph("rdf", paths), ("en",))
    for words in ("x.nt, line 4: ", "x.nt, line 6: ", "y.ttl, line 4: ", "expected Turtle"):
        assert words in str(caught.value)


def own_table(text: str, folder: Path, ending: str) -> str:
    row = {"subject": "x", "subject_label": text, "relation": "r", "object": "y"}
    path = folder / f"g.{ending}"
    getattr(pl.DataFrame({**row, "object_label": "Y"}), f"write_{ending}")(path)
    return str(load(path)["facts"]["subject_label"][0])


def rdf(text: str, folder: Path) -> str:
    path = folder / "g.nt"
    lines = [f"<http://x/a> <{LABEL}> {json.dumps(text)} .", *TRIPLES[1:]]
    path.write_text("\n".join(lines) + "\n")
    return str(load(path, "rdf")["facts"]["subject_label"][0])


def quiz(text: str, folder: Path) -> str:
    (folder / "metadata_relations.json").write_text('{"P1": {"templates": ["[X] is [Y]."]}}')
    (folder / "P1.jsonl").write_text(json.dumps(QUIZ | {"sub_label": text}) + "\n")
    return str(load(folder, "lm_pub_quiz")["facts"]["subject_label"][0])


def pulled(text: str) -> str:
    row = {
        "subject": f"{WD}Q1", "object": f"{WD}Q2", "subject_label": text, "object_label": "Y",
        "subject_sitelinks": "3", "object_sitelinks": None,
    }  # fmt: skip
    frame = pl.DataFrame([row], schema=dict.fromkeys(row, pl.String))
    return str(statements("P1", frame)["subject_label"][0])


def dumped(text: str, folder: Path, form: str) -> str:
    path = folder / f"{form}.txt"
    if form == "json":
        content = {"entity-type": "item", "id": "Q2"}
        snak = {"snaktype": "value", "datavalue": {"type": "wikibase-entityid", "value": content}}
        claims = {"P1": [{"mainsnak": snak, "rank": "normal"}]}
        entity = {"id": "Q1", "labels": {"en": {"value": text}}, "claims": claims}
        path.write_text(json.dumps(entity) + "\n")
    else:
        path.write_text(
            f"<{WD}Q1> <http://www.wikidata.org/prop/direct/P1> <{WD}Q2> .\n"
            f"<{WD}Q1> <{LABEL}> {json.dumps(text)}@en .\n"
        )
    asked = ["http://www.wikidata.org/prop/direct/P1"] if form == "ntriples" else ["P1"]
    return str(dumps.read([path], form, asked, folder / form).statements["subject_label"][0])


def from_trex(text: str) -> str:
    documents = pl.DataFrame({"docid": [f"{WD}Q1"], "title": [text]})
    columns = {"uri": pl.String, "surface": pl.String, "annotator": pl.String}
    numbers = {"mentions": pl.UInt32, "documents": pl.UInt32}
    return str(trex.labels(pl.DataFrame(schema=columns | numbers), documents)["label"][0])


@pytest.mark.parametrize("text", LABEL_FORMS, ids=ascii)
def test_labels_are_identical_across_readers(text, tmp_path):
    result = {
        "csv": own_table(text, tmp_path, "csv"), "parquet": own_table(text, tmp_path, "parquet"),
        "rdf": rdf(text, tmp_path), "lm_pub_quiz": quiz(text, tmp_path), "sparql": pulled(text),
        **{form: dumped(text, tmp_path, form) for form in ("json", "truthy", "ntriples")},
        "trex": from_trex(text),
    }  # fmt: skip
    assert result == dict.fromkeys(result, LABEL_FORMS[text])


@pytest.mark.parametrize("read", [lambda t, f: own_table(t, f, "parquet"), rdf, quiz])
def test_labels_padded_with_nul_characters_raise(read, tmp_path):
    with pytest.raises(GraphFileError, match=r"the label 'Rome\\x00' has a NUL character"):
        read("Rome\0", tmp_path)


def test_whitespace_is_identical_in_both_implementations():
    """Check every character below U+3100, and the byte order mark."""
    texts = [f"a{chr(code)}b{chr(code)}" for code in (*range(0x3100), 0xFEFF)]
    frame = pl.DataFrame({"label": texts}).select(one_line_of("label"))
    assert frame["label"].to_list() == [one_line(text) for text in texts]
    nothing = pl.DataFrame({"label": ["", " ", "\u00a0\n", None]}).select(one_line_of("label"))
    assert nothing["label"].to_list() == [None] * 4


def test_ontology_labels_are_normalized_to_one_line():
    classes = pl.DataFrame({"class": ["c"], "label": ["river\u00a0"]})
    table = {"classes": classes, "x": pl.DataFrame()}
    assert ontology._one_line(table)["classes"]["label"].to_list() == ["river"]

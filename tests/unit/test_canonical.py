"""The canonical hash: what changes it and what does not."""

import random

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from kgprobe.schema import provenance
from kgprobe.sources.sparql.snapshots import in_order, row_hash, terms, write_result

XSD = "http://www.w3.org/2001/XMLSchema#"
text = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
term = st.one_of(
    st.fixed_dictionaries({"type": st.just("uri"), "value": text}),
    st.fixed_dictionaries({"type": st.just("literal"), "value": text}),
    st.fixed_dictionaries(
        {"type": st.just("literal"), "value": text, "xml:lang": st.sampled_from(["en", "de-AT"])}
    ),
    st.fixed_dictionaries(
        {"type": st.just("literal"), "value": text, "datatype": st.just(XSD + "integer")}
    ),
)
rows = st.lists(st.dictionaries(st.sampled_from(["a", "b", "key"]), term), max_size=12)


def otherwise(cell: dict[str, str]) -> dict[str, str]:
    """Write the same term as another engine does."""
    cell = dict(reversed(cell.items()))
    if "datatype" in cell:
        cell["type"] = "typed-literal"
    elif cell["type"] == "literal" and "xml:lang" not in cell:
        cell |= {"type": "typed-literal", "datatype": XSD + "string"}
    elif "xml:lang" in cell:
        cell["xml:lang"] = cell["xml:lang"].upper()
    return cell


@given(rows, st.integers())
def test_order_and_engine_do_not_change_the_hash(bindings, seed):
    other = [{v: otherwise(c) for v, c in reversed(row.items())} for row in bindings]
    random.Random(seed).shuffle(other)
    assert row_hash(terms(bindings, "ab")) == row_hash(terms(other, "ab"))


@given(rows, st.integers(0, 11))
def test_every_part_of_a_term_changes_the_hash(bindings, at):
    if not bindings or "a" not in bindings[at % len(bindings)]:
        return
    before = row_hash(terms(bindings, "ab"))
    cell = bindings[at % len(bindings)]["a"]
    for changed in (
        {**cell, "value": cell["value"] + "x"},
        {"type": "uri" if cell["type"] != "uri" else "literal", "value": cell["value"]},
        {"type": "literal", "value": cell["value"], "xml:lang": "fr"},
        {"type": "literal", "value": cell["value"], "datatype": XSD + "date"},
        None,
    ):
        other = [dict(r) for r in bindings]
        if changed is None:
            del other[at % len(bindings)]["a"]
        else:
            other[at % len(bindings)]["a"] = changed
        assert row_hash(terms(other, "ab")) != before


def test_unbound_is_not_the_empty_string():
    empty = [{"a": {"type": "literal", "value": ""}}]
    assert row_hash(terms(empty, "a")) != row_hash(terms([{}], "a"))
    assert terms([{}], "a")["a"].to_list() == [None]


def test_blank_node_labels_do_not_affect_the_hash():
    one, two = ([{"a": {"type": "bnode", "value": v}}] for v in ("b0", "nodeID://7"))
    assert row_hash(terms(one, "a")) == row_hash(terms(two, "a"))
    iri = [{"a": {"type": "uri", "value": "b0"}}]
    assert row_hash(terms(one, "a")) != row_hash(terms(iri, "a"))


def test_hash_of_many_rows_is_independent_of_arrival_order():
    bindings = [{"a": {"type": "uri", "value": f"x{n}"}} for n in range(25_001)]
    pages = [terms(bindings[i : i + 999], "a") for i in range(0, len(bindings), 999)]
    assert row_hash(pl.concat(pages[::-1])) == row_hash(terms(bindings, "a"))


@given(rows)
def test_rows_are_sorted_by_code_points(bindings):
    ordered = in_order(terms(bindings, "a"))["a"].to_list()
    bound = [value for value in ordered if value is not None]
    assert bound == sorted(bound)
    assert ordered[: len(ordered) - len(bound)] == [None] * (len(ordered) - len(bound))


def test_only_varying_types_become_columns(tmp_path):
    bindings = [
        {"a": {"type": "uri", "value": "i"},
         "b": {"type": "literal", "value": "x", "xml:lang": "en"}},
        {"a": {"type": "literal", "value": "l"},
         "b": {"type": "literal", "value": "y", "xml:lang": "en"}},
        {"a": {"type": "literal", "value": "1", "datatype": XSD + "integer"}},
    ]  # fmt: skip
    for name, order in (("one", bindings), ("two", bindings[::-1])):
        write_result(terms(order, "ab"), tmp_path / name, {"query": "q"})
    frame = pl.read_parquet(tmp_path / "one")
    assert frame.columns == ["a", "a_type", "a_datatype", "b"]
    assert frame["b"].to_list() == [None, "x", "y"]
    assert provenance(tmp_path / "one") == {
        "query": "q",
        "terms": {"b": {"type": "literal", "lang": "en"}},
    }
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()

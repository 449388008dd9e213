"""Relation cardinalities and templates for user-supplied graphs.

The tables have the columns of resources/templates: bear_relations.tsv, templates.tsv and
ontology_patterns.tsv, for the relations of one graph.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path

import polars as pl

from kgprobe.benchmarks.label_templates import template_of
from kgprobe.experiments import TableError, manual_templates, nearest, read_table
from kgprobe.settings.sources import OwnGraph
from kgprobe.templates import answer_is_last, cut, sentence

#: A relation is one-to-one if at least this fraction of its answers has one subject, symmetric if
#: more than this fraction of its statements is reciprocal (ours; Wikidata's are set by hand).
ONE_TO_ONE, SYMMETRIC = 0.95, 0.5
#: Paraphrases that work for any sentence; BEAR uses three prompts.
AGAIN = ("It is known that {}", "It is true that {}")
TYPE, SUBCLASS = "P31", "P279"
#: prefix of the note on a template that was built from a label
BY_LABEL = "worded by its label: "
#: table -> its columns
COLUMNS = {
    "relations": "relation cardinality symmetric ancestor note",
    "templates": "relation index kind text note",
    "patterns": "property label pattern from",
}

Rows = list[dict[str, str]]


def relations_by_property(section: OwnGraph) -> dict[str, list[str]]:
    """Return Wikidata property -> equivalent relations of a graph with its own ids."""
    if section.ids == "wikidata":
        return {}
    table: dict[str, list[str]] = {TYPE: [*section.roles.type], SUBCLASS: [*section.roles.subclass]}
    for relation, name in section.known.items():
        table.setdefault(name, []).append(relation)
    return table


def properties(section: OwnGraph, relations: Collection[str]) -> dict[str, str]:
    """Return relation -> equivalent Wikidata property, if one is known."""
    if section.ids == "wikidata":
        return {relation: relation for relation in relations}
    table = relations_by_property(section)
    return {relation: name for name, same in table.items() for relation in same}


def relations(
    facts: pl.DataFrame,
    labels: Mapping[str, str | None],
    section: OwnGraph,
    known: Sequence[Mapping[str, str]],
) -> Rows:
    """Return rows like bear_relations.tsv for every relation of STATEMENTS: from `known` if the
    Wikidata property is there, else from counts. `labels`: relation -> label."""
    rows = {row["relation"]: row for row in known}
    names = facts["relation"].unique().sort().to_list()
    same = properties(section, names)
    new_rows = []
    for name in names:
        data = facts.filter(pl.col("relation") == name)
        row = rows.get(same.get(name, ""))
        if row is None:
            subjects = data.group_by("object").agg(pl.col("subject").n_unique())["subject"]
            # an entity's statement about itself is not reciprocal
            pairs = data.filter(pl.col("subject") != pl.col("object"))
            back = pairs.select(subject="object", object="subject")
            both = pairs.join(back, on=["subject", "object"], how="semi").height
            single = (subjects == 1).sum() >= ONE_TO_ONE * len(subjects)
            symmetric = "yes" if both > SYMMETRIC * pairs.height else "no"
            row = {"cardinality": "1:1" if single else "1:N", "symmetric": symmetric}
        # `ancestor` names a relation by its Wikidata id
        ancestor = row.get("ancestor", "") if section.ids == "wikidata" else ""
        note = labels.get(name) or name
        new_rows.append({**row, "relation": name, "ancestor": ancestor, "note": note})
    return new_rows


def templates(
    labels: Mapping[str, str | None],
    section: OwnGraph,
    graph_rows: Sequence[Mapping[str, str]],
    ours: Sequence[Mapping[str, str]],
) -> Rows:
    """Return rows like templates.tsv, three per relation in `labels` (relation -> label or null).

    `graph_rows` (the graph's own table, or templates in its folder) come first, then `ours` if the
    Wikidata property is known, then a template from the label; paraphrases fill up to three.
    """
    given, written = manual_templates(graph_rows), manual_templates(ours)
    same = properties(section, labels)
    rows = []
    for name in sorted(labels):
        entries = given.get(name) or written.get(same.get(name, ""))
        texts = [text for _, text in entries or ()][:3]
        label = labels[name] or ""
        note = label if texts else f"{BY_LABEL}{label}"
        if not (texts := texts or [*filter(None, [template_of(label)])]):
            continue
        is_word = not texts[0].startswith("[") and not texts[0][1:2].isupper()  # DNA stays
        lower = texts[0][0].lower() + texts[0][1:] if is_word else texts[0]
        texts += [text.format(lower) for text in AGAIN[: 3 - len(texts)]]
        rows += [
            {"relation": name, "index": str(n), "kind": "manual", "text": text, "note": note}
            for n, text in enumerate(texts)
        ]
    return rows


def read_templates(path: str | Path, relations: Collection[str]) -> Rows:
    """Read a user's table of templates for these relations. Raises one TableError that lists all
    invalid rows."""
    rows, columns = read_table(path), COLUMNS["templates"].split()[:4]
    if lacking := [name for name in columns if rows and name not in rows[0]]:
        raise TableError(f"{path}: no column {', '.join(lacking)}; it has {', '.join(rows[0])}")
    wrong, seen = [], set()
    for row in rows:
        where = f"{path}, template {row['index']} of {row['relation']}"
        if row["relation"] not in relations:
            wrong.append(f"{where}: no relation of the graph{nearest(row['relation'], relations)}")
        index = int(row["index"]) if row["index"].isdecimal() else row["index"]
        if (key := (row["relation"], index)) in seen:
            wrong.append(f"{where}: this index appears twice")
        seen.add(key)
        if not row["index"].isdecimal():
            wrong.append(f"{where}: the index is not a number from 0")
        if row["kind"] != "manual":
            wrong.append(f"{where}: kind is {row['kind']!r}, expected manual")
        try:
            sentence(row["text"], where)
        except ValueError as problem:
            wrong.append(str(problem))
    if wrong:
        raise TableError("\n".join(wrong))
    return rows


def of_attributes(section: OwnGraph, more: Iterable[Mapping[str, str]]) -> Rows:
    """Return our rows for the attributes that a graph can use: all if its ids are Wikidata's, else
    those on two-hop superclasses, for the graph's relations that mean subclass of."""
    if section.ids == "wikidata":
        return [dict(row) for row in more]
    ours = [row for row in more if row["relation"] == f"{SUBCLASS}/{SUBCLASS}"]
    return [
        {**row, "relation": f"{name}/{name}"}
        for name in relations_by_property(section).get(SUBCLASS, ())
        for row in ours
    ]


def verbalized_relations(
    rows: Iterable[Mapping[str, str]], properties: pl.DataFrame
) -> tuple[set[str], set[str], dict[str, str]]:
    """Return relations with manual sentences, relations that only have the template of their label,
    and names of relations, from rows of `templates` and a table of relations (property, label)."""
    rows = list(rows)
    by_label = {row["relation"] for row in rows if row["note"].startswith(BY_LABEL)}
    names = {row["relation"]: row["note"] for row in rows}
    names |= dict(properties.drop_nulls("label").select("property", "label").rows())
    return {row["relation"] for row in rows} - by_label, by_label, names


def patterns(rows: Sequence[Mapping[str, str]], labels: Mapping[str, str | None]) -> Rows:
    """Return rows like ontology_patterns.tsv: every relation's first template from [X] to [Y], else
    one from its label; OntoProbe ranks the text between [X] and [Y].

    >>> row = {"relation": "capital", "text": "[Y] is the capital of [X]."}
    >>> patterns([row], {"capital": "capital city"})[0]["pattern"]
    "[X]'s capital city is [Y] ."
    """
    texts: dict[str, list[str]] = {}
    for row in rows:
        texts.setdefault(row["relation"], []).append(row["text"])
    new_rows = []
    for name, given in texts.items():
        label = " ".join((labels[name] or "").split())
        generic = template_of(label) or ""
        every = [*given, generic, f"[X]'s {label} is [Y]." if generic else ""]
        text = next((t for t in every if t.startswith("[X]") and answer_is_last(t)), "")
        if text:
            text = f"{cut(text)[0]} ."
            row = {"property": name, "label": label or name, "pattern": text, "from": "own"}
            new_rows.append(row)
    return new_rows


def table(rows: Sequence[Mapping[str, str]], columns: str) -> str:
    """Format a tab-separated table with a header line, as `experiments.read_table` reads it."""
    names = columns.split()
    lines = ["\t".join(" ".join(row[name].split()) for name in names) for row in rows]
    return "\n".join(["\t".join(names), *lines, ""])

"""The six entailment rules of OntoProbe as items with written premises (sec. 3.2, Table 2).

A rule's rows are the rows of the memorising task whose statement is its first premise. [X] and [Y]
stand for pseudowords, [MASK] for the gap.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from kgprobe.benchmarks import ontoprobe_text as words
from kgprobe.benchmarks.ontoprobe_checks import Problems
from kgprobe.benchmarks.ontoprobe_concepts import Concepts, Row, Taken
from kgprobe.schema import ITEMS

#: rule -> memorising task of its first premise
RULES = {
    "rdfs2": "DM",
    "rdfs3": "RG",
    "rdfs5": "SPO",
    "rdfs7": "SPO",
    "rdfs9": "SCO",
    "rdfs11": "SCO",
}
#: rule -> its candidate set
SET_OF_RULE = {
    "rdfs2": "class",
    "rdfs3": "class",
    "rdfs5": "property",
    "rdfs7": "pattern",
    "rdfs9": "class",
    "rdfs11": "class",
}
THEREFORE = "Therefore, "


@dataclass(frozen=True)
class Texts:
    """Premises and hypothesis in words, the test of the second premise, and the soft forms."""

    p1: str
    p2: str
    h: str
    asked: str
    asked_set: str
    asked_gold: str
    soft_p2: Sequence[str] | None
    soft_h: Sequence[str] | None


def build(
    taken: Taken, items: pl.DataFrame, candidates: pl.DataFrame, switches: Mapping[str, str]
) -> pl.DataFrame:
    """ITEMS of the six rules; `meta` holds the texts, the premises' tests and the soft forms.

    `items` and `candidates` are the memorising tasks'. Raises one ValueError that names every
    property without pattern and every gold that is not among its rule's candidates.
    """
    index: dict[str, dict[str, int]] = {}
    for name, place, label in candidates.select("set", "index", "label").rows():
        index.setdefault(name, {})[label] = place
    sources = {
        item: (subject, json.loads(meta).get("twin"))
        for item, subject, meta in items.select("item", "subject", "meta").rows()
    }
    problems, rows = Problems("entailment rules"), []
    for rule, task in RULES.items():
        for row in taken.rows:
            source = f"{task}-{row.row}"
            if row.task == task and source in sources:
                with problems.of(rule):
                    rows.append(_item(rule, row, taken.concepts, sources[source], index, switches))
    problems.check()
    return pl.DataFrame(rows, schema=dict(ITEMS.columns), orient="row")


def _item(
    rule: str,
    row: Row,
    known: Concepts,
    source: tuple[str, str | None],
    index: Mapping[str, Mapping[str, int]],
    switches: Mapping[str, str],
) -> tuple[object, ...]:
    """One row of ITEMS; `source` is the memorising item's subject and its twin in train or dev."""
    clause, twin = source
    text = _texts(rule, row, known.patterns, clause, switches)
    meta = {
        "p1": text.p1,
        "p2": text.p2,
        "h": text.h,
        "p1_item": f"{RULES[rule]}-{row.row}",
        "p2_test": {
            "text": text.asked,
            "candidates": text.asked_set,
            "gold": _place(index, text, row),
        },
        "missing": text.asked_gold not in index[text.asked_set.rstrip("+")],
        "soft": {
            "p1": [RULES[rule], row.subject, words.norm(row.golds[0])],
            "p2": text.soft_p2,
            "h": text.soft_h,
        },
        **({"twin": twin} if twin else {}),
    }
    own = SET_OF_RULE[rule]
    golds = _golds(own, row, known.patterns, index[own])
    shown = json.dumps(meta, ensure_ascii=False, sort_keys=True)
    key = f"{rule}-{row.row}"
    return (key, rule, row.role, rule, row.subject, row.id, "", own, golds, row.row, shown)


def manual(meta: Mapping[str, str], p1: bool, p2: bool, order: str = "P1_P2") -> str:
    """The manual prompt with the premises that are written; the conjunction always stands."""
    written = [meta["p1"]] * p1 + [meta["p2"]] * p2
    if order == "P2_P1":
        written.reverse()
    return " ".join([*written, THEREFORE + meta["h"]])


def _texts(
    rule: str,
    row: Row,
    patterns: Mapping[str, str],
    clause: str,
    switches: Mapping[str, str],
) -> Texts:
    """The wording of one row under a rule (ontoprobe.md, section 7.2)."""
    first, spelt = row.golds[0], switches["article"]
    own, upper = row.subject, words.upper_first(row.subject)
    if rule in ("rdfs2", "rdfs3"):
        who = "[X]" if rule == "rdfs2" else "[Y]"
        pattern = _pattern(row, patterns)
        return Texts(
            f"One has to be {words.article(words.norm(first), spelt)} {clause}",
            pattern,
            f"{who} is a particular [MASK] .",
            "[X] [MASK] [Y] .",
            "pattern+",
            words.bare(pattern),
            None,
            ["TP", who],
        )
    if rule == "rdfs5":
        p1, p2 = f"{upper} implies {first} .", f"[X] implies {own} ."
        test = ("[X] implies [MASK] .", "property+", words.norm(own))
        return Texts(p1, p2, test[0], *test, ["SPO", "[X]", own], ["SPO", "[X]"])
    if rule == "rdfs7":
        pattern = _pattern(row, patterns)
        h = "[X] [MASK] [Y] ."
        return Texts(
            f"{upper} implies {first} .", pattern, h, h, "pattern+", words.bare(pattern), None, None
        )
    sort = "TP" if rule == "rdfs9" or switches["rdfs11_text"] == "rdfs9" else "SCO"
    if sort == "TP":
        p1 = f"{upper} is {words.article(first, spelt)} ."
        p2, h = f"[X] is {words.article(own, spelt)} .", "[X] is a particular [MASK] ."
    else:
        p1, p2 = f"{upper} has superclass {first} .", f"[X] has superclass {own} ."
        h = "[X] has superclass [MASK] ."
    return Texts(p1, p2, h, h, "class", words.norm(own), [sort, "[X]", own], [sort, "[X]"])


def _place(index: Mapping[str, Mapping[str, int]], text: Texts, row: Row) -> int:
    """Where the test of the second premise finds its gold, the row's own concept."""
    known = index[text.asked_set]
    if text.asked_gold not in known:
        raise ValueError(
            f"{row.where}: {row.task} row {row.row}: {text.asked_gold!r} is not among the "
            f"{len(known)} candidates {text.asked_set}; add the concept to the ontology"
        )
    return known[text.asked_gold]


def _pattern(row: Row, patterns: Mapping[str, str]) -> str:
    found = row.pattern or patterns.get(row.subject)
    if not found:
        raise ValueError(
            f"{row.where}: {row.task} row {row.row} ({row.subject!r}) has no pattern; add one to "
            "resources/templates/ontology_patterns.tsv"
        )
    return found


def _golds(own: str, row: Row, patterns: Mapping[str, str], index: Mapping[str, int]) -> list[int]:
    """Indices of the golds, finest first; of rdfs7 the superproperties' patterns."""
    found = []
    for gold in row.golds:
        if own == "pattern" and gold not in patterns:
            raise ValueError(
                f"{row.where}: {row.task} row {row.row} ({row.subject!r}): its superproperty "
                f"{gold!r} has no pattern; add one beside its name in property.json, or to "
                "resources/templates/ontology_patterns.tsv"
            )
        label = words.bare(patterns[gold]) if own == "pattern" else words.norm(gold)
        if label not in index:
            raise ValueError(
                f"{row.where}: {row.task} row {row.row}: {label!r} is not among the {len(index)} "
                f"{own} candidates; correct the label or add the concept to the ontology"
            )
        found.append(index[label])
    return list(dict.fromkeys(found))

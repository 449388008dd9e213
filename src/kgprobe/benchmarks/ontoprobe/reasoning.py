"""The six entailment rules of OntoProbe as items with written premises (sec. 3.2, Table 2).

A rule's rows are the rows of the memorizing task whose statement is its first premise. [X] and [Y]
stand for pseudowords, [MASK] for the gap.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from kgprobe.benchmarks.ontoprobe import concepts
from kgprobe.benchmarks.ontoprobe.build import TaskProblems
from kgprobe.benchmarks.ontoprobe.concepts import ConceptRows, Concepts, TaskRow
from kgprobe.benchmarks.ontoprobe.modes import Switches
from kgprobe.schema import ITEMS

#: rule -> memorizing task of its first premise
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
class PremiseTest:
    """Whether a model knows P2: a text with [MASK], or (task, subject) in trained vectors.

    `gold` is the label of what is right; None stands for the golds of the rule.
    """

    text: str
    soft: Sequence[str] | None
    candidates: str
    gold: str | None


@dataclass(frozen=True)
class ReasoningTexts:
    """Premises and hypothesis in words and in soft form, the tests of P2 by kind of template.

    `p1` is cut around the finest gold as it is spelt there. Soft forms are (task, subject, text
    after the vectors), of the hypothesis (task, subject).
    """

    p1: tuple[str, str, str]
    p2: str
    h: str
    soft_p1: Sequence[str]
    soft_p2: Sequence[str] | None
    soft_h: Sequence[str] | None
    tests: Mapping[str, PremiseTest]


def build(
    taken: ConceptRows, items: pl.DataFrame, candidates: pl.DataFrame, switches: Switches
) -> pl.DataFrame:
    """ITEMS of the six rules; `meta` holds the texts, the premises' tests and the soft forms.

    `items` and `candidates` are the memorizing tasks'. Raises one ValueError that names every
    property without pattern and every gold that is not among its rule's candidates.
    """
    index: dict[str, dict[str, int]] = {}
    for name, place, label in candidates.select("set", "index", "label").rows():
        index.setdefault(name, {})[label] = place
    sources = {
        item: (subject, {k: v for k, v in json.loads(meta).items() if k in ("twin", "soft_only")})
        for item, subject, meta in items.select("item", "subject", "meta").rows()
    }
    problems, rows = TaskProblems("entailment rules"), []
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
    row: TaskRow,
    known: Concepts,
    source: tuple[str, Mapping[str, object]],
    index: Mapping[str, Mapping[str, int]],
    switches: Switches,
) -> tuple[object, ...]:
    """One row of ITEMS; `source`: the memorizing item's subject, its twin and whether it is late.

    `missing`: the row's own concept is no candidate of the task, where P2 is asked about it.
    """
    clause, inherited = source
    text = _texts(rule, row, known.patterns, clause, switches)
    own = SET_OF_RULE[rule]
    golds = _golds(own, row, known.patterns, index[own])
    asked = text.tests["manual"]
    meta = {
        "p1": "".join(text.p1),
        "p1_parts": text.p1,
        "p2": text.p2,
        "h": text.h,
        "names": _labels(own, row, known.patterns),
        "p1_item": f"{RULES[rule]}-{row.row}",
        "p2_tests": {
            kind: {
                "text": test.text,
                "soft": test.soft,
                "candidates": test.candidates,
                "golds": golds
                if test.gold is None
                else [_place(index[test.candidates], test, test.gold, row)],
            }
            for kind, test in text.tests.items()
        },
        "missing": asked.gold is not None and asked.gold not in index[asked.candidates.rstrip("+")],
        "soft": {"p1": text.soft_p1, "p2": text.soft_p2, "h": text.soft_h},
        **inherited,
    }
    shown = json.dumps(meta, ensure_ascii=False, sort_keys=True)
    key = f"{rule}-{row.row}"
    return (key, rule, row.role, rule, row.subject, row.id, own, golds, row.row, shown)


def manual(meta: Mapping[str, str], p1: bool, p2: bool, order: str = "P1_P2") -> str:
    """The manual prompt with the premises that are written; the conjunction always stands."""
    written = [meta["p1"]] * p1 + [meta["p2"]] * p2
    if order == "P2_P1":
        written.reverse()
    return " ".join([*written, THEREFORE + meta["h"]])


def _texts(
    rule: str,
    row: TaskRow,
    patterns: Mapping[str, str],
    clause: str,
    switches: Switches,
) -> ReasoningTexts:
    """The wording of one row under a rule."""
    if rule in ("rdfs9", "rdfs11"):
        return _of_classes(rule, row, switches)
    first, own, task = row.golds[0], row.subject, RULES[rule]
    begun = _begun(own, switches)
    if rule == "rdfs5":
        p1, p2 = (f"{begun} implies ", first, " ."), f"[X] implies {own} ."
        h, soft_h = "[X] implies [MASK] .", [task, "[X]"]
        soft_p1, soft_p2 = [task, begun, f"{first} ."], [task, "[X]", f"{own} ."]
        test = PremiseTest(h, soft_h, "property+", concepts.norm(own))
        if switches.premise_test == "p1":
            test = PremiseTest(f"{begun} implies [MASK] .", [task, begun], "property", None)
        return ReasoningTexts(p1, p2, h, soft_p1, soft_p2, soft_h, {"manual": test, "soft": test})
    pattern = _pattern(row, patterns)
    test = PremiseTest("[X] [MASK] [Y] .", None, "pattern+", concepts.bare(pattern))
    tests = {"manual": test, "soft": test}
    if rule == "rdfs7":
        p1, soft_p1 = (f"{begun} implies ", first, " ."), [task, begun, f"{first} ."]
        return ReasoningTexts(p1, pattern, test.text, soft_p1, None, None, tests)
    who = "[X]" if rule == "rdfs2" else "[Y]"
    spelt = concepts.article(first, switches.article)
    p1 = ("One has to be ", spelt, f" {clause}")
    stop = "" if switches.soft_stop == "left_out" else " ."
    h = f"{who} is a particular [MASK] ."
    return ReasoningTexts(p1, pattern, h, [task, own, first + stop], None, ["TP", who], tests)


def _of_classes(rule: str, row: TaskRow, switches: Switches) -> ReasoningTexts:
    """rdfs9 and rdfs11. The release writes both alike in words and rdfs11 with the vectors of SCO.

    The article follows the letter in every mode: the released code does so in these rules, and the
    paper's example has "an animal". Under `premise_test: p1` soft templates ask the test of P1
    again: so does the released code, whose few-shot mode knows no other.
    """
    first, own, begun = row.golds[0], row.subject, _begun(row.subject, switches)
    if rule == "rdfs9" or switches.rdfs11_text == "rdfs9":
        p1 = (f"{begun} is ", concepts.article(first), " .")
        p2 = f"[X] is {concepts.article(own)} ."
        h = "[X] is a particular [MASK] ."
    else:
        p1, p2 = (f"{begun} has superclass ", first, " ."), f"[X] has superclass {own} ."
        h = "[X] has superclass [MASK] ."
    sort = "TP" if rule == "rdfs9" else "SCO"
    soft_h = [sort, "[X]"]
    test = PremiseTest(h, soft_h, "class", concepts.norm(own))
    tests = {"manual": test, "soft": test}
    if switches.premise_test == "p1":
        tests["soft"] = PremiseTest("", ["SCO", begun], "class", None)
    soft_p1, soft_p2 = ["SCO", begun, f"{first} ."], [sort, "[X]", f"{own} ."]
    return ReasoningTexts(p1, p2, h, soft_p1, soft_p2, soft_h, tests)


def _begun(label: str, switches: Switches) -> str:
    """The label at the beginning of a sentence, as the memorizing tasks write it."""
    return concepts.upper_first(concepts.subject(label, switches.upper_first, False))


def _place(known: Mapping[str, int], test: PremiseTest, gold: str, row: TaskRow) -> int:
    """Where the test of the second premise finds its gold, the row's own concept."""
    if gold not in known:
        raise ValueError(
            f"{row.where}: {row.task} row {row.row}: {gold!r} is not among the "
            f"{len(known)} candidates {test.candidates}; add the concept to the ontology"
        )
    return known[gold]


def _pattern(row: TaskRow, patterns: Mapping[str, str]) -> str:
    found = row.pattern or patterns.get(row.subject)
    if not found:
        raise ValueError(
            f"{row.where}: {row.task} row {row.row} ({row.subject!r}) has no pattern; add one to "
            "resources/templates/ontology_patterns.tsv"
        )
    return found


def _golds(
    own: str, row: TaskRow, patterns: Mapping[str, str], index: Mapping[str, int]
) -> list[int]:
    """Indices of the golds, finest first; of rdfs7 the superproperties' patterns."""
    found = []
    for label, _ in _labels(own, row, patterns):
        if label not in index:
            raise ValueError(
                f"{row.where}: {row.task} row {row.row}: {label!r} is not among the {len(index)} "
                f"{own} candidates; correct the label or add the concept to the ontology"
            )
        found.append(index[label])
    return list(dict.fromkeys(found))


def _labels(own: str, row: TaskRow, patterns: Mapping[str, str]) -> list[tuple[str, str]]:
    """(candidate, name in a premise) of every gold, finest first."""
    found = []
    for gold in row.golds:
        if own == "pattern" and gold not in patterns:
            raise ValueError(
                f"{row.where}: {row.task} row {row.row} ({row.subject!r}): its superproperty "
                f"{gold!r} has no pattern; add one beside its name in property.json, or to "
                "resources/templates/ontology_patterns.tsv"
            )
        label = concepts.bare(patterns[gold]) if own == "pattern" else concepts.norm(gold)
        found.append((label, gold))
    return found

"""Build the six entailment rules of OntoProbe as items with premises (sec. 3.2, Table 2).

A rule's rows are the rows of the memorizing task whose statement is its first premise. [X] and [Y]
stand for pseudowords, [MASK] for the mask slot.
"""

import json
from collections.abc import Mapping
from typing import Any

import polars as pl

from kgprobe.benchmarks.ontoprobe import concepts
from kgprobe.benchmarks.ontoprobe.build import TaskProblems, index_of_gold
from kgprobe.benchmarks.ontoprobe.concepts import ConceptRows, TaskRow
from kgprobe.benchmarks.ontoprobe.modes import Switches
from kgprobe.schema import ITEMS
from kgprobe.templates import ANSWER, MASK_SLOT, SUBJECT, parse

#: rule -> memorizing task of its first premise
RULES = {"rdfs2": "DM", "rdfs3": "RG", "rdfs5": "SPO", "rdfs7": "SPO", "rdfs9": "SCO",
         "rdfs11": "SCO"}  # fmt: skip
#: candidate sets of rules whose answers are not classes
SETS = {"rdfs5": "property", "rdfs7": "pattern"}
THEREFORE = "Therefore, "
#: tests whether a model knows P2: a text with [MASK], (task, subject) for soft prompts, the
#: candidate set, and the label of the correct answer, or None for the golds of the rule
Test = tuple[str, list[str] | None, str, str | None]


def build(
    concept_rows: ConceptRows, items: pl.DataFrame, candidates: pl.DataFrame, switches: Switches
) -> pl.DataFrame:
    """Build ITEMS of the six rules from those of the memorizing tasks; `meta` holds the texts, the
    premises' tests and the soft forms. Raises one ValueError that names every property without a
    pattern, every gold that is not among its rule's candidates and every label with a slot."""
    index: dict[str, dict[str, int]] = {}
    for name, place, label in candidates.select("set", "index", "label").rows():
        index.setdefault(name, {})[label] = place
    sources = {
        item: (subject, {k: v for k, v in json.loads(meta).items() if k in ("twin", "soft_only")})
        for item, subject, meta in items.select("item", "subject", "meta").rows()
    }
    problems, rows = TaskProblems("entailment rules"), []
    for rule, task in RULES.items():
        for row in concept_rows.rows:
            source = sources.get(f"{task}-{row.row}")
            if row.task == task and source:
                with problems.of(rule):
                    patterns = concept_rows.concepts.patterns
                    rows.append(_item(rule, row, patterns, *source, index, switches))
    problems.check()
    return pl.DataFrame(rows, schema=dict(ITEMS.columns), orient="row")


def _item(
    rule: str,
    row: TaskRow,
    patterns: Mapping[str, str],
    clause: str,
    inherited: Mapping[str, object],
    index: Mapping[str, Mapping[str, int]],
    switches: Switches,
) -> tuple[object, ...]:
    """Return one row of ITEMS; `clause`: the memorizing item's subject, `inherited`: keys copied
    from its `meta`. `missing` in meta: the row's own concept is not a candidate of the task."""
    for label in (row.subject, row.golds[0], clause):
        if {SUBJECT, ANSWER, MASK_SLOT} & set(parse(label).slots):
            raise ValueError(
                f"{row.title}: {label!r} contains a slot ([X], [Y], {{sub}}, [P] or [MASK]), which "
                "a premise would fill with a pseudoword; correct the label"
            )
    if rule in ("rdfs9", "rdfs11"):
        texts, tests = _of_classes(rule, row, switches)
    else:
        texts, tests = _of_properties(rule, row, patterns, clause, switches)
    set_name = SETS.get(rule, "class")
    labels = [_label(set_name, row, patterns, gold) for gold in row.golds]
    indices = [index_of_gold(index[set_name], label, set_name, row) for label in labels]
    golds = list(dict.fromkeys(indices))
    _, _, test_set, right = tests["manual"]
    p2_tests = {}
    for kind, (text, soft, name, gold) in tests.items():
        indices = golds if gold is None else [index_of_gold(index[name], gold, name, row)]
        p2_tests[kind] = {"text": text, "soft": soft, "candidates": name, "golds": indices}
    meta = {
        **texts,
        "p1_item": f"{RULES[rule]}-{row.row}",
        "p2_tests": p2_tests,
        "missing": right is not None and right not in index[test_set.rstrip("+")],
        **inherited,
    }
    text_of_meta = json.dumps(meta, ensure_ascii=False, sort_keys=True)
    key = f"{rule}-{row.row}"
    return (key, rule, row.role, rule, row.subject, row.id, set_name, golds, row.row, text_of_meta)


def manual(meta: Mapping[str, str], p1: bool, p2: bool) -> str:
    """Return the manual prompt with the chosen premises; the conjunction is always included."""
    return " ".join([*[meta["p1"]] * p1, *[meta["p2"]] * p2, THEREFORE + meta["h"]])


def _texts(
    p1: str, p2: str, h: str,
    soft_p1: list[str], soft_p2: list[str] | None, soft_h: list[str] | None,
) -> dict[str, Any]:  # fmt: skip
    """Collect premises and hypothesis as text, P1 with the finest gold, and in soft form: (task,
    subject, text after the vectors), for the hypothesis (task, subject)."""
    soft = {"p1": soft_p1, "p2": soft_p2, "h": soft_h}
    return {"p1": p1, "p2": p2, "h": h, "soft": soft}


def _of_properties(
    rule: str, row: TaskRow, patterns: Mapping[str, str], clause: str, switches: Switches
) -> tuple[dict[str, Any], dict[str, Test]]:
    """Return the texts of one row under rdfs2, rdfs3, rdfs5 or rdfs7, and the tests of its P2 by
    kind of template."""
    first, subject, task = row.golds[0], row.subject, RULES[rule]
    begun = _capitalize(subject, switches)
    implied, soft_p1 = f"{begun} implies {first} .", [task, begun, f"{first} ."]
    if rule == "rdfs5":
        h, soft_h, soft_p2 = "[X] implies [MASK] .", [task, "[X]"], [task, "[X]", f"{subject} ."]
        test: Test = (h, soft_h, "property+", concepts.norm(subject))
        if switches.premise_test == "p1":
            test = (f"{begun} implies [MASK] .", [task, begun], "property", None)
        texts = _texts(implied, f"[X] implies {subject} .", h, soft_p1, soft_p2, soft_h)
        return texts, {"manual": test, "soft": test}
    pattern = row.pattern or patterns.get(subject)
    if not pattern:
        raise ValueError(
            f"{row.title} has no pattern; add one to resources/templates/ontology_patterns.tsv"
        )
    test = ("[X] [MASK] [Y] .", None, "pattern+", concepts.bare(pattern))
    tests: dict[str, Test] = {"manual": test, "soft": test}
    if rule == "rdfs7":
        return _texts(implied, pattern, test[0], soft_p1, None, None), tests
    who = "[X]" if rule == "rdfs2" else "[Y]"
    p1 = f"One has to be {concepts.article(first, switches.article)} {clause}"
    stop = "" if switches.soft_stop == "left_out" else " ."
    h = f"{who} is a particular [MASK] ."
    return _texts(p1, pattern, h, [task, subject, first + stop], None, ["TP", who]), tests


def _of_classes(
    rule: str, row: TaskRow, switches: Switches
) -> tuple[dict[str, Any], dict[str, Test]]:
    """Return texts and tests for rdfs9 and rdfs11. The release verbalizes both alike, but uses the
    vectors of SCO for rdfs11. The article follows the letter in every mode: the released code does
    so in these rules, and the paper's example has "an animal". With `premise_test: p1` soft
    templates repeat the test of P1, like the released code, whose few-shot mode has no other."""
    first, subject, begun = row.golds[0], row.subject, _capitalize(row.subject, switches)
    if rule == "rdfs9" or switches.rdfs11_text == "rdfs9":
        p1 = f"{begun} is {concepts.article(first)} ."
        p2 = f"[X] is {concepts.article(subject)} ."
        h = "[X] is a particular [MASK] ."
    else:
        p1, p2 = f"{begun} has superclass {first} .", f"[X] has superclass {subject} ."
        h = "[X] has superclass [MASK] ."
    sort = "TP" if rule == "rdfs9" else "SCO"
    test: Test = (h, [sort, "[X]"], "class", concepts.norm(subject))
    tests = {"manual": test, "soft": test}
    if switches.premise_test == "p1":
        tests["soft"] = ("", ["SCO", begun], "class", None)
    soft_p1, soft_p2 = ["SCO", begun, f"{first} ."], [sort, "[X]", f"{subject} ."]
    return _texts(p1, p2, h, soft_p1, soft_p2, [sort, "[X]"]), tests


def _capitalize(label: str, switches: Switches) -> str:
    """Return the label at the start of a sentence, as in the memorizing tasks."""
    text_of_meta = concepts.subject(label, switches.upper_first, False)
    return text_of_meta[:1].upper() + text_of_meta[1:]


def _label(set_name: str, row: TaskRow, patterns: Mapping[str, str], gold: str) -> str:
    """Return the candidate for a gold; for rdfs7 the superproperty's pattern."""
    if set_name != "pattern":
        return concepts.norm(gold)
    if gold not in patterns:
        raise ValueError(
            f"{row.title}: its superproperty {gold!r} has no pattern; add one beside its name in "
            "property.json, or to resources/templates/ontology_patterns.tsv"
        )
    return concepts.bare(patterns[gold])

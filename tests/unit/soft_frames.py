"""A small OntoProbe of a few classes and properties, in the frames of the benchmark stage."""

import json

import polars as pl

from kgprobe.schema import CANDIDATES, ITEMS

CLASSES = ["Paris", "Rome", "capital of France", "Niger", "a country", "Burkina Faso", "is"]
SETS = {
    "class": CLASSES,
    "property": ["capital", "lie in Africa", "capital of France"],
    "pattern": ["lie in Africa", "is a country", "'s capital is"],
    "property+": ["capital", "lie in Africa", "capital of France", "option"],
    "pattern+": ["lie in Africa", "is a country", "'s capital is", "stands"],
}
TASKS = {"TP": "class", "SCO": "class", "SPO": "property", "DM": "class", "RG": "class"}
RULES = {"rdfs2": "DM", "rdfs3": "RG", "rdfs5": "SPO", "rdfs7": "SPO", "rdfs9": "SCO",
         "rdfs11": "SCO"}  # fmt: skip
ROLES = ("train", "train", "dev", "dev", "test", "test", "test")
SOFT = {  # rule -> (second premise, hypothesis) in soft form
    "rdfs2": (None, ["TP", "[X]"]),
    "rdfs3": (None, ["TP", "[Y]"]),
    "rdfs5": (["SPO", "[X]"], ["SPO", "[X]"]),
    "rdfs7": (None, None),
    "rdfs9": (["TP", "[X]"], ["TP", "[X]"]),
    "rdfs11": (["SCO", "[X]"], ["SCO", "[X]"]),
}
HYPOTHESES = {"rdfs2": "[X] is a [MASK] .", "rdfs3": "[Y] is a [MASK] .",
              "rdfs5": "[X] implies [MASK] .", "rdfs7": "[X] [MASK] [Y] .",
              "rdfs9": "[X] is a [MASK] .", "rdfs11": "[X] has superclass [MASK] ."}  # fmt: skip
SET_OF_RULE = {"rdfs5": "property", "rdfs7": "pattern"}


def candidates() -> pl.DataFrame:
    rows = [(name, k, label, label) for name, own in SETS.items() for k, label in enumerate(own)]
    return pl.DataFrame(rows, schema=dict(CANDIDATES.columns), orient="row")


def items() -> pl.DataFrame:
    rows = []
    for task, name in TASKS.items():
        for row, role in enumerate(ROLES):
            size = len(SETS[name])
            golds = sorted({row % size, (row + 1) % size})
            meta = json.dumps({"soft_subject": f"town {row}"})
            rows.append((f"{task}-{row}", task, role, task, f"niger {row}", f"{task}{row}",
                         name, golds, row, meta))  # fmt: skip
    return pl.DataFrame(rows, schema=dict(ITEMS.columns), orient="row")


def reasoning(twin: int | None = None) -> pl.DataFrame:
    rows = []
    for rule, task in RULES.items():
        name = SET_OF_RULE.get(rule, "class")
        for row, role in enumerate(ROLES):
            size, own = len(SETS[name]), f"niger {row}"
            p2, h = SOFT[rule]
            test = {"property": "property+", "pattern": "pattern+"}.get(name, "class")
            pattern = rule in ("rdfs2", "rdfs3", "rdfs7")
            asked = {
                "text": "[X] [MASK] [Y] ." if pattern else HYPOTHESES[rule],
                "soft": p2,
                "candidates": "pattern+" if pattern else test,
                "golds": [row % len(SETS["pattern+" if pattern else test])],
            }
            meta = {
                "p1": f"Niger {row} is a country .",
                "names": [[SETS[name][g]] * 2 for g in sorted({row % size, (row + 1) % size})],
                "p2": "[X] lie in Africa [Y] ." if pattern else f"[X] is {own} .",
                "h": HYPOTHESES[rule],
                "p1_item": f"{task}-{row}",
                "p2_tests": {"manual": asked, "soft": asked},
                "missing": row == 6,
                "soft": {"p1": [task, own, "Rome ."], "p2": p2 and [*p2, f"{own} ."], "h": h},
                **({"twin": f"{task}-0"} if row == twin else {}),
            }
            golds = sorted({row % size, (row + 1) % size})
            rows.append((f"{rule}-{row}", rule, role, rule, own, f"{task}{row}", name,
                         golds, row, json.dumps(meta)))  # fmt: skip
    return pl.DataFrame(rows, schema=dict(ITEMS.columns), orient="row")

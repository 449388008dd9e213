"""Multiple choice for chat models: 20 options per question, memorizing and reasoning (OntoProbe).

Wu et al. 2023, section 5.2, and the released prompts (docs/papers/ontoprobe.md, Multiple choice):

    What is the type of Dante? (a) lake, (b) writer, ... (t) ship
    Writer is a person. X is a writer. Therefore, What is the type of X? (a) lake, ...

The options of a question are its finest gold and other candidates, sampled and shuffled by seeded
hash, so that a candidate added to the set changes at most one of them.
"""

import json
import logging
from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from kgprobe.benchmarks.ontoprobe.concepts import article, norm
from kgprobe.benchmarks.ontoprobe.reasoning import manual
from kgprobe.sampling import by_hand, hash_key
from kgprobe.schema import CHOICES
from kgprobe.templates import ANSWER, MASK_SLOT, SUBJECT, fill, parse

log = logging.getLogger("kgprobe")

#: Questions of the memorizing tasks; for DM and RG {} is a clause.
QUESTIONS = {
    "TP": "What is the type of {}?",
    "SCO": "What is the superclass of {}?",
    "SPO": "What does {} imply?",
    "DM": "What is the type of it {}?",
    "RG": "What is the type of it {}?",
}
#: Rule -> its question after the premises.
RULES = {
    "rdfs2": "What is the type of X?",
    "rdfs3": "What is the type of Y?",
    "rdfs5": "What does X imply?",
    "rdfs7": "What is the relation between X and Y?",
    "rdfs9": "What is the type of X?",
    "rdfs11": "What is the superclass of X?",
}
#: Maximum number of test rows, the first of the file; other tasks use all.
MOST = {"TP": 500, "SCO": 500}


def wrong_candidates(
    gold: str, others: Sequence[str], candidates: Sequence[str], query: str, negatives: str
) -> list[str]:
    """Return the candidates except query, gold and, unless `negatives` is released, `others`
    (further golds), compared without case."""
    further = [] if negatives == "released" else others
    # candidates are written without hyphens and brackets
    barred = {label.casefold() for label in (gold, norm(query), *further)}
    # keep the first of labels that differ only in case
    pool = {c.casefold(): c for c in reversed(candidates) if c.casefold() not in barred}
    return list(pool.values())


def options(
    item: str, gold: str, wrong: Sequence[str], *, seed: int, size: int
) -> tuple[list[str], int]:
    """Return (labels in the order of their letters, index of the gold), with distractors drawn
    uniformly from `wrong`."""
    drawn = sorted(wrong, key=lambda c: (hash_key(seed, "choice", item, c), c))[: size - 1]
    shuffled = sorted([gold, *drawn], key=lambda c: (hash_key(seed, "order", item, c), c))
    return shuffled, shuffled.index(gold)


def memorizing(
    items: pl.DataFrame,
    candidates: pl.DataFrame,
    prompts: pl.DataFrame,
    *,
    seed: int,
    size: int = 20,
    negatives: str = "clean",
    most: int | None = None,
    phrasing: str = "default",
) -> pl.DataFrame:
    """Return CHOICES of the test rows of TP, SCO, SPO, DM and RG, at most `most` (MOST) of each,
    without those for which every candidate is right (and a warning with their number).
    `stem` is the manual prompt of the highest index, on which masked models are compared. With
    `phrasing` released, symbols of the subject become spaces."""
    sets: dict[str, dict[int, str]] = {}
    for name, index, label in candidates.select("set", "index", "label").rows():
        sets.setdefault(name, {})[index] = label
    templates = dict(prompts.sort("relation", "index").select("relation", "text").rows())
    rows, without = [], []
    # without soft-prompt-only rows, like the manual prompts
    tested = by_hand(items).filter(role="test").sort("relation", "row")
    for (task,), part in tested.group_by("relation", maintain_order=True):
        name = str(task)
        limit = MOST.get(name, part.height) if most is None else most
        for row in part.head(limit).rows(named=True):
            golds, query = _golds(row, sets)
            labels = list(sets[row["candidates"]].values())
            wrong = wrong_candidates(golds[0], golds[1:], labels, query, negatives)
            if not wrong:
                without.append(row["item"])
                continue
            shuffled, gold = options(row["item"], golds[0], wrong, seed=seed, size=size)
            text = templates.get(name)
            stem = fill(text, row["subject"], MASK_SLOT).text if text else ""
            rows.append(
                {
                    "item": row["item"], "task": name, "premise": "", "source": row["item"],
                    "question": question(name, _as_written(row, phrasing)), "stem": stem,
                    "options": shuffled, "gold": gold, "row": row["row"],
                }
            )  # fmt: skip
    if without:
        text = "questions not asked as multiple choice, since every candidate is right: %d (%s)"
        log.warning(text, len(without), ", ".join(without[:5]))
    return _frame(rows)


def reasoning(
    rules: pl.DataFrame,
    questions: pl.DataFrame,
    items: pl.DataFrame,
    *,
    phrasing: str = "default",
    candidates: pl.DataFrame | None = None,
) -> pl.DataFrame:
    """Return CHOICES of the six rules, each without the first premise and with it (+p1). Options
    and gold are those of the memorizing CHOICES of the same row; other rows are dropped. `phrasing`
    released keeps the errors of the released prompts: article, space before the stop, and in rdfs7
    the pattern of the superproperty, one of `candidates`, in place of its label."""
    known = {row["item"]: row for row in questions.rows(named=True)}
    subjects = {row["item"]: _as_written(row, phrasing) for row in items.rows(named=True)}
    patterns: dict[int, str] = {}
    if phrasing == "released" and candidates is not None:
        patterns = dict(candidates.filter(set="pattern").select("index", "label").rows())
    rows = []
    for row in rules.filter(pl.col("role") == "test").sort("relation", "row").rows(named=True):
        meta, rule = _meta(row), row["relation"]
        choice = known.get(meta["p1_item"])
        if choice is None:
            continue
        subject = row["subject"] if rule in ("rdfs2", "rdfs3") else subjects[choice["item"]]
        gold = choice["options"][choice["gold"]]
        if rule == "rdfs7" and patterns:
            gold = with_letters(patterns[row["answers"][0]])
        first, second = premises(rule, subject, gold, meta, phrasing)
        for premise, text in (("out", second), ("EX", f"{first} {second}")):
            is_written = premise == "EX"
            # rdfs7's manual prompt ranks patterns, so there is no stem for labels
            stem = "" if rule == "rdfs7" else _lettered(manual(meta, is_written, True))
            rows.append(
                {
                    **choice, "item": row["item"] + "+p1" * is_written, "task": rule,
                    "premise": premise, "question": f"{text} Therefore, {RULES[rule]}",
                    "stem": stem, "row": row["row"],
                }
            )  # fmt: skip
    return _frame(rows)


def question(task: str, subject: str) -> str:
    """Return the question of a memorizing task; clauses of RG end in `it` instead of `that`."""
    if task in ("DM", "RG"):
        subject = subject.rstrip(" .")
    if task == "RG" and subject.endswith(" that"):
        subject = f"{subject.removesuffix(' that')} it"
    return QUESTIONS[task].format(subject)


def premises(
    rule: str, subject: str, gold: str, meta: Mapping[str, Any], phrasing: str = "default"
) -> tuple[str, str]:
    """Return (P1, P2) with the letters X and Y; `meta` holds `p1` and `p2`, the manual premises
    with [X] and [Y] (for rdfs2, rdfs3, rdfs7)."""
    is_released = phrasing == "released"
    if rule in ("rdfs2", "rdfs3", "rdfs7"):
        second = _lettered(meta["p2"])
        second = second if is_released else _close_sentence(second)
        first = f"{subject} implies {gold}." if rule == "rdfs7" else _close_sentence(meta["p1"])
        return first, second
    if rule == "rdfs5":
        return f"{subject} implies {gold}.", f"X implies {subject}."
    if rule == "rdfs9" or is_released:
        by = "always_a" if is_released else "by_letter"
        return f"{subject} is {article(gold, by)}.", f"X is {article(subject, by)}."
    return f"{subject} has superclass {gold}.", f"X has superclass {subject}."


def with_letters(pattern: str) -> str:
    """Return the sentence of a pattern candidate, the text between its slots.

    >>> with_letters("'s child is"), with_letters("is located in")
    ("X's child is Y .", 'X is located in Y .')
    """
    return f"X{'' if pattern.startswith(chr(39)) else ' '}{pattern} Y ."


def _close_sentence(text: str) -> str:
    """End a text in exactly one full stop, without a space before it."""
    return text.rstrip(" .") + "."


def _lettered(text: str) -> str:
    return parse(text).filled({SUBJECT: "X", ANSWER: "Y"}).text


def _golds(row: Mapping[str, Any], sets: Mapping[str, Mapping[int, str]]) -> tuple[list[str], str]:
    """Return the gold labels of an item, and its query."""
    labels, golds = sets[row["candidates"]], []
    for answer in row["answers"]:
        if answer not in labels:
            raise ValueError(
                f"item {row['item']}: gold {answer} is not among its {len(labels)} candidates"
            )
        golds.append(labels[answer])
    meta = _meta(row)
    # spelled like the candidates, also if accents are dropped in the question
    return golds, meta.get("label") or meta.get("soft_subject") or row["subject"]


def _as_written(row: Mapping[str, Any], phrasing: str) -> str:
    """Return the subject of a question: the clause of DM and RG, else the label, whose case does
    not depend on `upper_first`, since it does not start the sentence."""
    if row["relation"] in ("DM", "RG"):
        return str(row["subject"])
    meta = _meta(row)
    label = str(meta.get("ascii") or meta.get("label") or row["subject"])
    return norm(label) if phrasing == "released" else label


def _meta(row: Mapping[str, Any]) -> dict[str, Any]:
    return dict(json.loads(row["meta"])) if row["meta"] else {}


def _frame(rows: Sequence[Mapping[str, Any]]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=dict(CHOICES.columns))

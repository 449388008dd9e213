"""The texts of OntoProbe's eleven tasks under `released`, byte by byte.

Expected texts are built here from the rows of the released files, as in the released code (data.py
at cc95300, modes zs-f and fs), without code of the package. <X> and <Y> denote pseudowords with own
vectors, [X] and [Y] letters, <SCO1> a trained vector, <c1> a trained conjunction.
"""

import json
import re
from dataclasses import replace

import pytest

from kgprobe.benchmarks.ontoprobe import build, modes, released
from kgprobe.benchmarks.ontoprobe import reasoning as ontoprobe_reasoning
from kgprobe.probes.jobs.methods import cloze as rank
from kgprobe.probes.jobs.ontoprobe import reason, soft
from kgprobe.sampling import by_hand
from kgprobe.templates import mark

pytestmark = pytest.mark.real
RELEASED = modes.resolve("released")
FILES = {"TP": "type", "SCO": "subClassOf", "SPO": "subPropertyOf", "DM": "domain", "RG": "range"}
BEHIND = {"rdfs2": "DM", "rdfs3": "RG", "rdfs5": "SPO", "rdfs7": "SPO", "rdfs9": "SCO",
          "rdfs11": "SCO"}  # fmt: skip
TEMPLATES = {
    "TP": [" is a", " has class", " is a particular"],
    "SCO": [" is a", " has class", " is a particular"],
    "SPO": [" implies"],
}
#: rows used by manual templates: 10 train, 10 dev, 500 test
BY_HAND = {"TP": 520, "SCO": 520}


@pytest.fixture(scope="module")
def rows(real_data):
    found = {}
    for task, name in FILES.items():
        text = (real_data / "ontoprobe" / "memorizing" / f"{name}.jsonl").read_text()
        found[task] = [json.loads(line) for line in text.splitlines()]
    assert {t: len(own) for t, own in found.items()} == {
        "TP": 8859, "SCO": 721, "SPO": 59, "DM": 50, "RG": 48,
    }  # fmt: skip
    return found


@pytest.fixture(scope="module")
def taken(real_data):
    return released.take(real_data / "ontoprobe", RELEASED)


@pytest.fixture(scope="module")
def sets(taken):
    return build.build(taken, RELEASED, "onto_released")


@pytest.fixture(scope="module")
def labels(sets):
    return {(s, i): label for s, i, label in sets.candidates.select("set", "index", "label").rows()}


@pytest.fixture(scope="module")
def cases(taken, sets):
    rules = ontoprobe_reasoning.build(taken, sets.items, sets.candidates, RELEASED)
    return reason.cases(rules)


# ---- the released template, from the rows


def spaced(label):
    return re.sub(r"[-()/]", " ", label)


def option(label):
    return " ".join(spaced(label).split())


def bare(said):
    """Return a pattern between two names: "'s child is"."""
    return option(said.removeprefix("[X]").removesuffix("[Y] ."))


def with_article(word):
    return f"an {word}" if word[0] in "aeiouAEIOU" else f"a {word}"


def name(row):
    """Return the subject: a class or thing, or the one property of a row with its pattern."""
    return row["uuu"] if isinstance(row["uuu"], str) else next(iter(row["uuu"]))


def pattern(row):
    return next(iter(row["uuu"].values()))


def first_gold(row):
    return next(iter(row["xxx"]))


def domain_clause(row, rows):
    ranges = {name(r): first_gold(r) for r in rows["RG"]}
    said = pattern(row)
    if said.startswith("[X]'s "):
        word = "contain " if "contain" in said else "is "
        text = "if one has" + said[len("[X]'s") :].split(word)[0] + "."
    else:
        text = "if one " + said[len("[X] ") :]
    if name(row) not in ranges:
        return text.replace("[Y]", "something")
    thing = ranges[name(row)]
    if thing[0] in "aeiouAEIOU":
        text = text.replace(thing, "")  # empties architect
    return text.replace("[Y]", with_article(thing))


def range_clause(row, rows):
    domains = {name(r): first_gold(r) for r in rows["DM"]}
    said = pattern(row)
    word = said.removesuffix(" [Y] .").split(" ")[-1]
    if word in ("is", "contain"):
        text = "if one is " + said.replace(f"{word} [Y] ", "")
    else:
        text = "if " + said.replace("[Y]", "that")
    other = with_article(domains[name(row)]) if name(row) in domains else "something"
    return text.replace("[X]", other)


def vectors(task):
    return " ".join(f"<{task}{k}>" for k in (1, 2, 3))


def memorized(task, row, rows, template):
    if task in ("DM", "RG"):
        clause = domain_clause(row, rows) if task == "DM" else range_clause(row, rows)
        return f"One has to be a particular [MASK] {clause}"
    shown = spaced(name(row)) if task == "TP" else name(row)
    return shown.capitalize() + template + " [MASK] ."


def memorized_softly(task, row):
    if task in ("DM", "RG"):
        return f"{name(row)} {vectors(task)} [MASK] ."
    shown = spaced(name(row)) if task == "TP" else name(row)
    return f"{shown.capitalize()} {vectors(task)} [MASK] ."


def words_of(rule, row, rows):
    """Return (P1, P2, hypothesis) as manual text."""
    own, gold = name(row), first_gold(row)
    if rule == "rdfs2":
        p1 = f"One has to be a {gold} {domain_clause(row, rows)}"
        return p1, pattern(row), "[X] is a particular [MASK] ."
    if rule == "rdfs3":
        p1 = f"One has to be a {gold} {range_clause(row, rows)}"
        return p1, pattern(row), "[Y] is a particular [MASK] ."
    if rule == "rdfs5":
        p1, p2 = f"{own.capitalize()} implies {gold} .", f"[X] implies {own} ."
        return p1, p2, "[X] implies [MASK] ."
    if rule == "rdfs7":
        return f"{own.capitalize()} implies {gold} .", pattern(row), "[X] [MASK] [Y] ."
    p1 = f"{own.capitalize()} is {with_article(gold)} ."
    return p1, f"[X] is {with_article(own)} .", "[X] is a particular [MASK] ."


def vectors_of(rule, row, rows):
    """Return (P1, P2, hypothesis) with trained vectors where a relation has them."""
    own, gold = name(row), first_gold(row)
    _, p2, h = words_of(rule, row, rows)
    if rule in ("rdfs2", "rdfs3"):
        who = "[X]" if rule == "rdfs2" else "[Y]"
        p1 = f"{own} {vectors(BEHIND[rule])} {gold}"  # no stop
        return p1, p2, f"{who} {vectors('TP')} [MASK] ."
    p1 = f"{own.capitalize()} {vectors(BEHIND[rule])} {gold} ."
    if rule == "rdfs5":
        return p1, f"[X] {vectors('SPO')} {own} .", f"[X] implies {vectors('SPO')} [MASK] ."
    if rule == "rdfs7":
        return p1, p2, h
    task = "TP" if rule == "rdfs9" else "SCO"
    return p1, f"[X] {vectors(task)} {own} .", f"[X] {vectors(task)} [MASK] ."


def prompt_of(rule, row, rows, form, scheme):
    """Return explicit premises, conjunction and hypothesis, with pseudowords where registered."""
    kind, conjunction = scheme.split("+")
    p1, p2, h = (vectors_of if kind == "soft" else words_of)(rule, row, rows)
    if rule in ("rdfs2", "rdfs3", "rdfs7"):
        p1, p2 = (p.replace("[X]", "<X>").replace("[Y]", "<Y>") for p in (p1, p2))
        h = h.replace("[X]", "<X>")
        h = h if rule == "rdfs7" else h.replace("[Y]", "<Y>")
    written = [p1] * form[0] + [p2] * form[1]
    if conjunction == "manual":
        return " ".join([*written, "Therefore,", h])
    if len(written) == 2:
        return f"{p1} <c1> {p2} <c2> {h}"
    return " ".join([*written, "<c2>", h])


def golds_of(rule, row):
    """Return all superclasses, superproperties or patterns of superproperties, or the one class."""
    if rule == "rdfs7":
        return [bare(g) for g in row["xxx"].values()]
    return [option(g) for g in row["xxx"]]


def premise_of(rule, row, kind):
    """Return (text, golds) of the test of P2."""
    if rule in ("rdfs2", "rdfs3", "rdfs7"):
        return "<X> [MASK] <Y> .", [bare(pattern(row))]
    own, golds = name(row), golds_of(rule, row)
    if rule == "rdfs5" and kind == "manual":
        return f"{own.capitalize()} implies [MASK] .", golds  # the test of P1
    if kind == "soft":
        return f"{own.capitalize()} {vectors(BEHIND[rule])} [MASK] .", golds  # of P1, too
    return "<X> is a particular [MASK] .", [option(own)]


# ---- ours

SLOTS = reason.layout(dict.fromkeys(FILES, 3))
NAMES = {mark(SLOTS.words): "<X>", mark(SLOTS.words + 1): "<Y>"}
NAMES |= {mark(SLOTS.conjunctions): "<c1>", mark(SLOTS.conjunctions + 1): "<c2>"}
for _task, (_start, _count) in SLOTS.templates.items():
    NAMES |= {mark(_start + k): f"<{_task}{k + 1}>" for k in range(_count)}


def shown(question):
    text = question.before + "[MASK]" + question.after
    return "".join(NAMES.get(character, character) for character in text)


@pytest.mark.parametrize("task", FILES)
def test_memorizing_by_hand(task, rows, sets, labels):
    own = by_hand(sets.items.filter(relation=task))
    asked = rank.questions(own, sets.prompts)[task]
    expected = [
        (f"{task}-{number}", index, memorized(task, row, rows, template))
        for number, row in enumerate(rows[task][: BY_HAND.get(task)])
        for index, template in enumerate(TEMPLATES.get(task, [""]), 1)
    ]
    assert len(expected) >= 48
    assert [(q.item, q.template, shown(q)) for q in asked] == expected
    golds = [[labels[q.candidates, g] for g in q.golds] for q in asked if q.template == 1]
    theirs = [[option(g) for g in row["xxx"]] for row in rows[task][: BY_HAND.get(task)]]
    assert golds == theirs


@pytest.mark.parametrize("task", FILES)
def test_memorizing_with_soft_prompts_uses_every_row(task, rows, sets):
    asked = soft.questions(sets.items.filter(relation=task), 3)
    names = {mark(k): f"<{task}{k + 1}>" for k in range(3)}
    texts = [q.before + "[MASK]" + q.after for q in asked]
    texts = ["".join(names.get(c, c) for c in text) for text in texts]
    assert texts == [memorized_softly(task, row) for row in rows[task]]


@pytest.mark.parametrize("rule", BEHIND)
@pytest.mark.parametrize("scheme", reason.SCHEMES)
def test_reasoning(rule, scheme, rows, cases, labels):
    task = BEHIND[rule]
    known = rows[task] if scheme.startswith("soft") else rows[task][: BY_HAND.get(task)]
    asked = reason.by_template(cases[rule], scheme)
    assert [c.row for c in asked] == list(range(len(known)))
    for form in reason.FORMS:
        ours = [shown(reason.prompt(c, form, scheme, 0, SLOTS, RELEASED)) for c in asked]
        assert ours == [prompt_of(rule, row, rows, form, scheme) for row in known]
    # the golds of the test rows, the only ones used in the release's reasoning
    golds = [[labels[c.candidates, g] for g in c.golds] for c in asked if c.role == "test"]
    assert golds == [golds_of(rule, row) for row in known[20:]]
    assert len(golds) >= 28


@pytest.mark.parametrize("rule", BEHIND)
@pytest.mark.parametrize("kind", ["manual", "soft"])
def test_tests_of_the_second_premise(rule, kind, rows, cases, labels):
    switches = replace(RELEASED, pseudoword_slots="all")
    asked = [reason.premise_test(c, kind, 0, SLOTS, switches) for c in cases[rule]]
    ours = [(shown(q), [labels[q.candidates, g] for g in q.golds]) for q in asked]
    assert ours == [premise_of(rule, row, kind) for row in rows[BEHIND[rule]]]
    # the one row on which the released code fails: its pattern is no candidate
    assert [c.item for c in cases[rule] if c.missing] == ["rdfs7-47"] * (rule == "rdfs7")


def test_premises_with_a_vowel(rows, cases):
    """The formerly wrong articles: 167 and 101 of 701 test rows have "an" (125, 77 of 500)."""
    for most, counts in ((701, (167, 101)), (500, (125, 77))):
        tested = [c for c in cases["rdfs9"] if c.role == "test"][:most]
        assert sum(" is an " in c.p1 for c in tested) == counts[0]
        assert sum(c.p2.startswith("[X] is an ") for c in tested) == counts[1]

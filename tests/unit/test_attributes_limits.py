"""Thresholds at and just beside their exact value, and the funnel's numbers, by hand."""

from collections import Counter

import pytest

from kgprobe.benchmarks.attributes import examples as examples_module
from kgprobe.settings.benchmarks import ATTRIBUTES, LAMA
from kgprobe.tables.attributes import section, views
from tests.unit import attribute_brute as brute
from tests.unit.attribute_graphs import attribute, facts, planted, triples

BARE = {"require_labels": False, "eval_examples": None}


def examples(name, rows, labels=None, dates=(), **changed):
    """Return the number of examples."""
    built = attribute(name, facts(rows, labels, dates), **{**BARE, **changed})
    return 0 if built is None else built.examples["example"].n_unique()


def both(*pairs, p=26):
    return [(a, p, b) for a, b in pairs] + [(b, p, a) for a, b in pairs]


#: two reciprocal pairs, two one-way pairs: 4 of 6 triples, 2 of 4 pairs
TWO_OF_FOUR = [*both((1, 2), (3, 4)), (5, 26, 6), (8, 26, 7)]
#: 4 of 8 triples, 2 of 6 pairs
TWO_OF_SIX = [*TWO_OF_FOUR, (9, 26, 10), (12, 26, 11)]
ONE_OF_FIVE = [*both((1, 2), (3, 4)), (5, 26, 6)]
DATE = "1970-01-22T00:00:00Z^^date"
DATED = {"min_triples": 9, "dates": [(1, 26, DATE)]}
#: two inverse pairs; three fathers, four children
INVERSE = [(1, 22, 2), (2, 40, 1), (3, 22, 4), (4, 40, 3), (5, 22, 6), (7, 40, 8), (9, 40, 10)]
#: Q1 occurs in two edges and a date, Q2 in three edges
OBSCURE = [(1, 21, 9), (1, 19, 8), (2, 30, 9), (2, 19, 8), (7, 40, 2)]


@pytest.mark.parametrize(
    ("name", "rows", "changed", "n"),
    [
        ("symmetry", TWO_OF_SIX, {"min_triples": 8, "ratio": 0.5}, 2),
        ("symmetry", TWO_OF_SIX, {"min_triples": 9, "ratio": 0.5}, 0),
        ("symmetry", TWO_OF_SIX, {"min_triples": 8, "ratio": 0.51}, 0),
        ("symmetry", TWO_OF_FOUR, {"min_triples": 6, "ratio": 0.5, "ratio_over": "pairs"}, 2),
        ("symmetry", TWO_OF_FOUR, {"min_triples": 6, "ratio": 0.51, "ratio_over": "pairs"}, 0),
        ("symmetry", TWO_OF_SIX, {"min_triples": 6, "ratio": 0.34, "ratio_over": "pairs"}, 0),
        ("symmetry", TWO_OF_SIX, {"min_triples": 6, "ratio": 0.33, "ratio_over": "pairs"}, 2),
        ("symmetry", both((1, 2)), {"min_triples": 2, "ratio": 1.0, "ratio_over": "pairs"}, 1),
        ("asymmetry", TWO_OF_SIX, {"min_triples": 8, "ratio": 0.5}, 4),
        ("asymmetry", TWO_OF_SIX, {"min_triples": 9, "ratio": 0.5}, 0),
        ("asymmetry", TWO_OF_SIX, {"min_triples": 8, "ratio": 0.51}, 0),
        ("asymmetry", TWO_OF_SIX, {"min_triples": 8, "ratio": 0.5, "strict": True}, 0),
        ("asymmetry", ONE_OF_FIVE, {"min_triples": 5, "ratio": 0.2}, 1),
        ("asymmetry", ONE_OF_FIVE, {"min_triples": 5, "ratio": 0.21}, 0),
        ("asymmetry", TWO_OF_SIX, {**DATED, "ratio": 0.55}, 5),
        ("asymmetry", TWO_OF_SIX, {**DATED, "ratio": 0.5, "literals": False}, 0),
        ("asymmetry", [(1, 26, 2)], {"min_triples": 1, "ratio": 1.0, "strict": True}, 1),
        ("bidirectional", INVERSE, {"denominator": "min", "min_triples": 3, "ratio": 0.66}, 2),
        ("bidirectional", INVERSE, {"denominator": "min", "min_triples": 4, "ratio": 0.5}, 0),
        ("bidirectional", INVERSE, {"denominator": "max", "min_triples": 4, "ratio": 0.5}, 2),
        ("bidirectional", INVERSE, {"denominator": "max", "min_triples": 4, "ratio": 0.51}, 0),
        ("bidirectional", INVERSE, {"denominator": "max", "min_triples": 5, "ratio": 0.5}, 0),
        ("bidirectional", INVERSE, {"denominator": "first", "min_triples": 3, "ratio": 0.66}, 2),
        ("bidirectional", INVERSE, {"denominator": "first", "min_triples": 4, "ratio": 0.5}, 0),
        ("bidirectional", INVERSE, {"denominator": "second", "min_triples": 4, "ratio": 0.5}, 2),
        ("bidirectional", INVERSE, {"denominator": "second", "min_triples": 4, "ratio": 0.51}, 0),
        *(
            ("bias", OBSCURE, {"max_degree": most, "dates": [(1, 569, DATE)], **literals}, n)
            for most, literals, n in (
                (2, {}, 1), (1, {}, 0), (3, {}, 2), (2, {"literal_edges": True}, 0),
                (3, {"literal_edges": True}, 2),
            )
        ),
    ],
)  # fmt: skip
def test_thresholds(name, rows, changed, n):
    assert examples(name, rows, **changed) == n


def test_a_predicate_of_both_benchmarks_is_listed():
    """At a ratio of exactly one half it belongs to both symmetry and asymmetry."""
    rows = [*TWO_OF_SIX, *both((1, 2), p=40), (3, 40, 4), (5, 40, 6), (7, 40, 8), (1, 22, 2)]
    built = attribute("asymmetry", facts(rows), **BARE, min_triples=1, ratio=0.5)
    step = built.steps.filter(step="of them symmetric enough, too").row(0, named=True)
    assert (step["kept"], step["dropped"], step["reason"]) == (1, 0, "P26")
    flagged = built.examples.filter(position=0).select("predicate", "flags").unique().rows()
    assert sorted(flagged) == [
        ("P22", []),
        ("P26", ["reverse_unknown"]),
        ("P40", ["reverse_unknown"]),
    ]


@pytest.mark.parametrize("known", [9, 10])
def test_sensitive_relations_with_few_examples_are_marked(known):
    built = attribute("bias", facts([(n, 91, 900) for n in range(1, known + 1)]), **BARE)
    step = built.steps.filter(step="of P91").row(0, named=True)
    assert (step["kept"], step["dropped"]) == (known, 0)
    assert step["reason"] == ("too few for a breakdown" if known < 10 else "")
    assert built.steps.filter(step="of P30")["kept"].to_list() == [0]


@pytest.mark.parametrize(
    ("changed", "entities"),
    [
        ({"facts": 2, "top": 9}, {1, 2, 3}),
        ({"facts": 2, "top": 2}, {1, 2}),  # 2 and 3 have equal degrees: the lower id
        ({"facts": 3, "top": 9}, {1}),
        ({"facts": 4, "top": 9}, set()),
        ({"facts": 3, "top": 9, "directions": "both"}, {1, 2, 3}),
        ({"facts": 2, "top": 9, "relations": "lama"}, {1, 2}),
    ],
)
def test_entity_centric(changed, entities):
    rows = [(1, 19, 11), (1, 20, 12), (1, 26, 13), (2, 19, 11), (2, 20, 14), (3, 19, 12)]
    rows += [(3, 26, 15), (4, 50, 1), (5, 50, 2), (6, 50, 3)]
    built = attribute("entity_centric", facts(rows), require_labels=False, **changed)
    result = set() if built is None else set(built.examples["example"])
    assert result == {f"entity_centric/Q{n}" for n in entities}


@pytest.mark.parametrize("labels", [True, False])
def test_entities_with_fewer_facts_when_allowed(labels):
    rows = [(1, 19, 11), (1, 20, 12), (2, 26, 13)]
    changed = {"facts": 2, "top": 9, "require_labels": labels}
    built = attribute("entity_centric", facts(rows), allow_short=True, **changed)
    drawn = built.examples.group_by("example").len().rows()
    assert sorted(drawn) == [("entity_centric/Q1", 2), ("entity_centric/Q2", 1)]
    assert set(attribute("entity_centric", facts(rows), **changed).examples["subject"]) == {"Q1"}
    reasons = dict(built.steps.select("step", "reason").rows())
    assert reasons["entities with enough facts"] == "fewer than 1 facts"
    if labels:
        assert reasons["entities with enough usable facts"] == "fewer than 1 usable facts"


def test_pairs_with_one_name_need_different_degrees():
    labels = {1: "Cid", 2: "Cid", 3: "cid", 8: "x", 9: "y"}
    rows = [(1, 19, 8), (2, 19, 9), (3, 19, 8)]
    assert examples("ambiguous", rows, labels) == 0
    assert examples("ambiguous", [*rows, (2, 26, 9)], labels) == 1
    assert examples("ambiguous", [*rows[1:], (2, 26, 9)], labels) == 0
    assert examples("ambiguous", [*rows[1:], (2, 26, 9)], labels, fold_case=True) == 1


@pytest.mark.parametrize("other", ["STRASSE", "strasse", "straße"])
def test_names_are_case_folded_not_lowered(other):
    """Lower case keeps ß, which is ss in capitals and when case-folded."""
    rows, labels = [(1, 19, 8), (2, 19, 9), (2, 26, 9)], {1: "Straße", 2: other, 8: "x", 9: "y"}
    assert examples("ambiguous", rows, labels, fold_case=True) == 1
    assert examples("ambiguous", rows, labels) == 0


@pytest.mark.parametrize(("size", "n"), [(1, 1), (2, 2), (3, 3), (9, 4)])
def test_short_lists_are_full_where_frequent_objects_share_a_label(size, n):
    """Ten places of one name are each more frequent than the three others."""
    places = dict.fromkeys(range(100, 110), "Springfield") | {200: "Rome", 201: "Oslo", 202: "Bonn"}
    objects = [o for o in places for _ in range(5 if o < 200 else 2)]
    rows = [(1000 + i, 19, o) for i, o in enumerate(objects)]
    labels = places | {s: f"subject {s}" for s, _, _ in rows}
    changed = {"min_triples": 1, "eval_examples": 1, "candidates": size}
    built = attribute("asymmetry", facts(rows, labels), **changed)
    options = built.candidates.filter(set="asymmetry/P19")["label"]
    assert options.n_unique() == len(options) == n


def test_one_answer_is_right_for_two_objects_of_one_name():
    """They are different objects, so that nothing in the report may call both right impossible."""
    labels = {1: "Cid", 2: "Cid", 8: "Arles", 9: "Arles", 10: "x"}
    rows = [(1, 19, 8), (2, 19, 9), (2, 26, 10)]
    built = attribute("ambiguous", facts(rows, labels))
    assert built.examples["flags"].to_list() == [[], []]
    head, tail = built.items["answers"].to_list()
    assert head == tail
    note = next(one for one in section.NOTES if "ambiguous pair" in one)
    caption = next(v.caption for v in views.FOLDED if v.name == "ambiguous")
    assert "same name" in note.partition("only if")[2]
    assert "same name" in caption.partition("only if")[2]


def test_equal_degrees_tie_to_the_lower_id():
    labels = dict.fromkeys((1, 2, 3, 4, 5), "Cid") | {8: "x", 9: "y"}
    rows = [(n, 19, 8) for n in (4, 2, 1, 5, 3)] + [(n, 26, 9) for n in (5, 2, 3)]
    built = attribute("ambiguous", facts(rows, labels))
    assert triples(built.examples) == [((2, 19, 8), (1, 19, 8))]


@pytest.mark.parametrize("seed", range(1, 4))
@pytest.mark.parametrize("name", [n for n in ATTRIBUTES if n != "entity_centric"])
def test_the_funnel_counts_kept_and_dropped_per_step(name, seed):
    frame = planted(seed)
    w = brute.world(frame)
    low = {"symmetry": 5, "asymmetry": 5, "bidirectional": 2}
    changed = {"min_triples": low[name], "ratio": 0.5} if name in low else {}
    changed |= {"categories": 2, "seeds": 3, "min_combo": 10**6} if name == "paths" else {}
    if name == "composite":
        changed |= {"categories": 4, "fallback": 2, "min_combo": 10**6}
    changed |= {"direct": "drop"} if name == "hierarchy" else {}
    changed |= {"drop_same_object": True} if name == "ambiguous" else {}
    cap = {"cap": 1} if name in ("asymmetry", "bidirectional") else {}
    cap |= {"cap_pairs": 1} if name == "symmetry" else {"n": 1} if name == "hierarchy" else {}
    built = attribute(name, frame, eval_examples=1, **changed, **cap)
    result = {step: (kept, dropped) for _, _, step, kept, dropped, _ in built.steps.rows()}
    expected = funnel(name, w)
    assert {step: result[step] for step in expected} == expected
    assert built.steps["position"].to_list() == list(range(built.steps.height))
    # the last step keeps the triples of the benchmark
    drawn = built.examples.filter("sampled")["example"].n_unique()
    assert result["evaluation sample"] == (drawn, built.examples["example"].n_unique() - drawn)
    assert result["cap"][0] == built.examples["example"].n_unique()
    assert result["cap"][0] + result["cap"][1] == result["labels"][0]
    structural = built.sizes.filter(build="structural")["examples"][0]
    assert result["structural build: cap"][0] == structural
    assert sum(result["structural build: cap"]) == sum(result["labels"])
    if name == "paths":
        assert result["paths"] == (sum(result["labels"]), 0)


def funnel(name: str, w: brute.World) -> dict[str, tuple[int, int]]:
    """Return step -> (kept, dropped) for the settings above, counted by loops."""
    n = brute.count(w.g)
    back = {(s, p, o) for s, p, o in w.g if (o, p, s) in w.g}
    ns = brute.count(back)
    if name == "symmetry":
        enough = {p for p in n if n[p] >= 5}
        kept = {p for p in enough if ns[p] / n[p] >= 0.5}
        passed = sum(ns[p] for p in kept)
        return {
            "edges": (len(w.g), 0),
            "reverse stored": (len(back), len(w.g) - len(back)),
            "predicates: min_triples": (len(enough), len(n) - len(enough)),
            "predicates: ratio": (len(kept), len(enough) - len(kept)),
            "symmetric triples": (passed, len(back) - passed),
            "pairs": (passed // 2, passed // 2),
        }
    if name == "asymmetry":
        n = brute.count([*w.g, *w.literals])
        enough = {p for p in n if n[p] >= 5}
        kept = {p for p in enough if 1 - ns[p] / n[p] >= 0.5}
        every, passed = sum(n.values()), sum(n[p] - ns[p] for p in kept)
        return {
            "edges and literals": (every, 0),
            "predicates: min_triples": (len(enough), len(n) - len(enough)),
            "predicates: ratio": (len(kept), len(enough) - len(kept)),
            "of them symmetric enough, too": (sum(ns[p] / n[p] >= 0.5 for p in kept), 0),
            "reverse absent": (every - len(back), len(back)),
            "triples": (passed, every - len(back) - passed),
        }
    if name == "bidirectional":
        k = Counter((p, p2) for s, p, o in w.g for s2, p2, o2 in w.g
                    if (s2, o2) == (o, s) and p < p2)  # fmt: skip
        den = {pair: min(n[pair[0]], n[pair[1]]) for pair in k}
        kept = {pair for pair in k if den[pair] >= 2 and k[pair] / den[pair] >= 0.5}
        passed = sum(k[pair] for pair in kept)
        return {
            "edges": (len(w.g), 0),
            "inverse pairs": (k.total(), 0),
            "predicate pairs": (len(kept), len(k) - len(kept)),
            "pairs": (passed, k.total() - passed),
        }
    if name == "hierarchy":
        up = [(s, o) for s, p, o in w.g if p == 279]
        chains = [(x, z) for x, y in up for y2, z in up if y == y2]
        open_ = [(x, z) for x, z in chains if x != z]
        free = [pair for pair in open_ if pair not in up]
        return {
            "edges of P279": (len(up), len(w.g) - len(up)),
            "chains of two": (len(open_), len(chains) - len(open_)),
            "no direct edge": (len(free), len(open_) - len(free)),
        }
    if name == "bias":
        own = [t for t in w.g if t[1] in (21, 30, 91, 140)]
        degree = brute.degrees(w.g)
        kept = [t for t in own if degree[t[0]] <= 2]
        split = {f"of P{p}": (sum(t[1] == p for t in kept), 0) for p in (21, 30, 91, 140)}
        return {
            "edges of P21, P30, P91, P140": (len(own), len(w.g) - len(own)),
            "obscure subjects": (len(kept), len(own) - len(kept)),
            **split,
        }
    if name == "paths":
        inside = [
            (c, {s for s, p, o in w.g if p == 31 and o == c})
            for c in {t[2] for t in w.g if t[1] == 31}
        ]
        top = sorted(inside, key=lambda pair: (-len(pair[1]), pair[0]))[:2]
        drawn = sum(min(3, len(members)) for _, members in top)
        without = sum(p != 31 for _, p, _ in w.g)
        return {
            "categories": (2, 0),
            "seeds": (drawn, sum(len(members) for _, members in top) - drawn),
            "edges to expand": (without, len(w.g) - without),
        }
    if name == "composite":
        inside = brute.category_members(w.g, 4)
        without = sum(p != 31 for _, p, _ in w.g)
        return {
            "categories": (4, 0),
            "members": (len(inside), 0),
            "edges to expand": (without, len(w.g) - without),
            "triangles": (len(brute.composite(w.g, inside, "a", {31})), 0),
        }
    degree = brute.degrees(w.g)
    named = [e for e in degree if e in w.names]
    shared = [e for e in named if [w.names[x] for x in named].count(w.names[e]) > 1]
    split: dict[str, list[int]] = {}
    for e in shared:
        split.setdefault(w.names[e], []).append(degree[e])
    apart = [name_ for name_, own in split.items() if min(own) < max(own)]
    every = brute.ambiguous(w.g, w.names, {int(name[1:]) for name in LAMA} - {31})
    facts_ = [example for pairs in every.values() for example in pairs]
    free = [(one, two) for one, two in facts_ if one[2] != two[2]]
    heads = {head for _, head, _ in every}
    return {
        "entities with a label": (len(named), len(degree) - len(named)),
        "entities that share a name": (len(shared), len(named) - len(shared)),
        "names with a head and a tail": (len(apart), len(split) - len(apart)),
        "pairs with a shared relation": (len(heads), len(apart) - len(heads)),
        "pair and relation": (len(every), 0),
        "different objects": (len(free), len(facts_) - len(free)),
    }


@pytest.mark.parametrize("seed", range(3))
def test_the_funnel_of_entities(seed):
    frame = planted(seed)
    w = brute.world(frame)
    known = {f"P{p}" for _, p, _ in w.g} - {"P26", "P19"}
    built = attribute(
        "entity_centric", frame, facts=3, top=6, entities=3, eval_entities=2,
        templates=sorted(known), missing_template="drop",
    )  # fmt: skip
    result = {step: (kept, dropped) for _, _, step, kept, dropped, _ in built.steps.rows()}
    own = brute.entity_facts(w.g, {31})
    enough = [e for e in own if len(own[e]) >= 3]
    top = brute.entity_centric(w.g, own, 3, 6)
    every = [t for facts_ in top.values() for t in facts_]
    named = [t for t in every if t[0] in w.names and t[2] in w.names]
    worded = [t for t in named if f"P{t[1]}" in known]
    usable = [e for e in top if sum(t[0] == e for t in worded) >= 3]
    lost = Counter(f"P{t[1]}" for t in named if f"P{t[1]}" not in known)
    listed = ", ".join(f"{p} ({n})" for p, n in sorted(lost.items(), key=lambda x: (-x[1], x[0])))
    assert result == {
        "edges": (sum(p != 31 for _, p, _ in w.g), 0),
        "entities with enough facts": (len(enough), len(own) - len(enough)),
        "top by degree": (len(top), len(enough) - len(top)),
        "structural build: facts": (9, 0),
        "facts with labels": (len(named), len(every) - len(named)),
        "facts with a template": (len(worded), len(named) - len(worded)),
        "entities with enough usable facts": (len(usable), len(top) - len(usable)),
        "entities": (3, len(usable) - 3),
        "facts": (9, 0),
        "evaluation sample": (2, 1),
        "of their triples, worded by the relation's label": (0, 0),
        "candidates": (built.candidates.height, 0),
    }
    assert built.steps.filter(step="facts with a template")["reason"][0] == f"no template: {listed}"


def test_capped_golds_keep_the_object_and_the_lowest_ids(monkeypatch):
    monkeypatch.setattr(examples_module, "MAX_GOLDS", 2)
    rows = facts([(1, 91, n) for n in (900, 901, 902)])
    kept = attribute("bias", rows, max_degree=3, **BARE).examples.select("object", "golds")
    assert dict(kept.rows()) == {
        "Q900": ["Q900", "Q901"],
        "Q901": ["Q901", "Q900"],
        "Q902": ["Q902", "Q900"],
    }

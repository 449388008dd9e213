"""The nine benchmarks on graphs with planted structures, against plain loops over statements.

The input is FACTS and the output is checked frames (EXAMPLES, sizes, patterns, funnel), so these
tests hold for any engine. Comparisons of two empty results do not count: at least three in four
runs must have examples.
"""

import os
from collections import Counter
from functools import cache
from random import Random

import polars as pl
import pytest

from kgprobe.benchmarks.attributes.construct import MissingTemplatesError
from kgprobe.settings.benchmarks import ATTRIBUTES, LAMA
from tests.unit import attribute_brute as brute
from tests.unit.attribute_graphs import attribute, facts, number, planted, triples

ALL = 10**6
#: number of graphs; each value of a setting is tried in as many graphs as the setting has values
IS_NIGHTLY = os.environ.get("KGPROBE_TIER") == "nightly"
RUNS, FEWER = range(10 if IS_NIGHTLY else 4), range(6 if IS_NIGHTLY else 2)
CHAINS = ("composite", "paths")
TRIPLE = ("subject", "predicate", "object")
#: every attribute except entity_centric, which samples the facts of an entity
UNSAMPLED = [name for name in ATTRIBUTES if name != "entity_centric"]
UNCAPPED = {
    "symmetry": {"cap_pairs": ALL},
    "asymmetry": {"cap": ALL},
    "bidirectional": {"cap": ALL},
    "hierarchy": {"n": ALL},
    "composite": {"cap": ALL, "min_combo": 1},
    "paths": {"cap": ALL, "min_combo": 1, "seeds": ALL},
    "entity_centric": {"entities": ALL, "eval_entities": ALL},
    "bias": {},
    "ambiguous": {"examples": ALL},
}
THRESHOLDS = [1, 2, 3, 4, 5, 7, 8, 9]
RATIOS = [0.25, 0.5, 0.75, 1.0]
#: attribute -> settings and the values that are tried
TRIED = {
    "symmetry": {
        "min_triples": [1, 2, 3, 4, 5], "ratio": [0.25, *RATIOS[:3]],
        "ratio_over": ["triples", "triples", "pairs"],
    },
    "asymmetry": {
        "min_triples": THRESHOLDS, "ratio": RATIOS, "strict": [False, False, True],
        "literals": [True, False],
    },
    "bidirectional": {
        "min_triples": [1, 2, 2, 3], "ratio": [0.25, *RATIOS[:3]],
        "denominator": ["min", "max", "first", "second"],
    },
    "hierarchy": {"direct": ["keep", "drop"], "two_hop": ["own", "same"]},
    "composite": {
        "categories": [1, 2, 3, 5], "member": ["a", "a", "all", "any"],
        "category_relations": [["P31"], ["P31", "P106"]],
        "exclude": [["P31"], ["P31", "P17"], []],
    },
    "paths": {
        "categories": [1, 2, 3], "category_relations": [["P31"], ["P31", "P106"]],
        "exclude": [["P31"], []], "count_on": ["seeds", "graph"],
        "endpoints_differ": [True, False], "relations_differ": [True, False],
    },
    "entity_centric": {
        "facts": [2, 3, 5, 8], "top": [1, 2, 4, 7], "exclude": [["P31"], []],
        "relations": ["all", "lama"], "directions": ["out", "both"],
    },
    "bias": {
        "max_degree": [1, 2, 3], "relations": [["P21", "P30", "P91", "P140"], ["P91", "P30"]],
        "literal_edges": [False, True],
    },
    "ambiguous": {
        "exclude": [["P31"], []], "fold_case": [False, True], "drop_same_object": [False, True],
    },
}  # fmt: skip
#: relations without a template
WITHOUT_TEMPLATE = {"P461", "P25", "P17", "P140", "P27", "P569"}


@cache
def make_graph(seed: int) -> tuple[pl.DataFrame, brute.World]:
    """Return a graph as FACTS, and in the form the loops read."""
    frame = planted(seed)
    return frame, brute.world(frame)


def chosen(name: str, seed: int) -> dict:
    """Return the settings of a run without caps, cycling through the values of each setting."""
    dealt = {key: Random(f"{name} {key}").sample(v, len(v)) for key, v in TRIED[name].items()}
    return {**UNCAPPED[name], **{key: v[seed % len(v)] for key, v in dealt.items()}}


def numbers(relations) -> set[int]:
    return {int(name[1:]) for name in relations}


def expected(name: str, w: brute.World, c: dict) -> set[brute.Example]:
    """Return the examples of a run by plain loops; for ambiguous, every possible example."""
    if name == "symmetry":
        return brute.symmetry(w.g, c["min_triples"], c["ratio"], c["ratio_over"])
    if name == "asymmetry":
        literals = w.literals if c["literals"] else set()
        return brute.asymmetry(w.g, c["min_triples"], c["ratio"], c["strict"], literals)
    if name == "bidirectional":
        return brute.bidirectional(w.g, c["min_triples"], c["ratio"], c["denominator"])
    if name == "hierarchy":
        return brute.hierarchy(w.g, c["direct"], c["two_hop"])
    if name == "bias":
        literals = w.literals if c["literal_edges"] else set()
        return brute.bias(w.g, numbers(c["relations"]), c["max_degree"], literals)
    if name == "ambiguous":
        return set().union(*names(w, c).values())
    inside = brute.category_members(w.g, c["categories"], numbers(c["category_relations"]))
    exclude = numbers(c["exclude"])
    if name == "composite":
        return brute.composite(w.g, inside, c["member"], exclude)
    return brute.paths(w.g, inside, exclude, c["endpoints_differ"], c["relations_differ"])


def names(w: brute.World, c: dict) -> dict[tuple[int, int, int], set[brute.Example]]:
    relations = numbers(LAMA) - numbers(c["exclude"])
    return brute.ambiguous(w.g, w.names, relations, c["fold_case"], c["drop_same_object"])


@cache
def loops(name: str, seed: int) -> set[brute.Example]:
    """Return the expected examples of a run."""
    return expected(name, make_graph(seed)[1], chosen(name, seed))


@cache
def structural(name: str, seed: int):
    """Return the structural build of a run with all its examples."""
    changed = {"require_labels": False, "eval_examples": None, "labels": {"P19": "x"}}
    return attribute(name, make_graph(seed)[0], **changed, **chosen(name, seed))


def own_facts(w: brute.World, c: dict) -> dict[int, brute.Edges]:
    relations = numbers(LAMA) if c["relations"] == "lama" else None
    return brute.entity_facts(w.g, numbers(c["exclude"]), relations, c["directions"])


def found(made) -> set[brute.Example]:
    """Return the examples as tuples of numeric triples, asserting that each occurs once."""
    if made is None:
        return set()
    every = triples(made.examples)
    assert len(every) == len(set(every))
    return set(every)


def most(filled: int, runs=RUNS, share: float = 0.75) -> None:
    assert filled >= share * len(runs), f"{filled} of {len(runs)} comparisons have examples"


def relation_pairs(every: set[brute.Example]) -> set[tuple]:
    """Reduce ambiguous examples to relation and pair, since one pair of their facts is sampled."""
    return {(one[1], one[0], two[0]) for one, two in every}


@pytest.mark.parametrize("name", UNSAMPLED)
def test_the_structural_build_equals_plain_loops(name):
    filled = 0
    for seed in RUNS:
        c, every, some = chosen(name, seed), loops(name, seed), found(structural(name, seed))
        if name == "ambiguous":
            assert relation_pairs(some) == relation_pairs(every), (seed, c)
            assert len(some) == len(relation_pairs(some))
            assert some <= every, (seed, c)
            apart = sum(one[2] != two[2] for one, two in some)
            step = structural(name, seed).steps.filter(step="with different objects")
            assert step.select("kept", "dropped").rows() == [(apart, len(some) - apart)]
        else:
            assert some == every, (seed, c)
        filled += bool(every)
    most(filled)


@pytest.mark.parametrize("name", UNSAMPLED)
def test_the_labeled_build_needs_labels_and_templates(name):
    filled = bitten = 0
    for seed in RUNS:
        frame, w = make_graph(seed)
        c = chosen(name, seed)
        known = {f"P{p}" for _, p, _ in [*w.g, *w.literals]} - WITHOUT_TEMPLATE
        known |= {brute.TWO_HOP}
        built = attribute(
            name, frame, **c, eval_examples=5, templates=sorted(known), missing_template="drop"
        )
        every = loops(name, seed)
        kept = {example for example in every if brute.usable(w, example, known)}
        if name == "ambiguous":
            assert relation_pairs(found(built)) == relation_pairs(kept), (seed, c)
        else:
            assert found(built) == kept, (seed, c)
        if built is not None:
            counted = dict(built.sizes.select("build", "examples").rows())
            whole = len(relation_pairs(every)) if name == "ambiguous" else len(every)
            assert counted["structural"] == whole
            relations = {brute.TWO_HOP, *(f"P{p}" for _, p, _ in [*w.g, *w.literals])}
            named = {example for example in every if brute.usable(w, example, relations)}
            step = built.steps.filter(step="templates").row(0, named=True)
            assert (step["kept"], step["dropped"]) == (len(kept), len(named) - len(kept))
            assert step["reason"] == missing_template_reason(name, named, known), (seed, c)
            left = Counter(brute.pattern(name, example) for example in found(built))
            patterns = {brute.pattern(name, example): 0 for example in every}
            assert dict(built.patterns.select("pattern", "examples").rows()) == patterns | left
        filled += bool(kept)
        bitten += kept < every
    most(filled)
    assert bitten


def missing_template_reason(name: str, named: set[brute.Example], known: set[str]) -> str:
    """Return the funnel's text on relations without template, most frequent first.

    Chains count a relation at each of its positions; for the others, an example dropped at the
    first position is not counted at the second.
    """
    lost: Counter[int] = Counter()
    for position in range({"bidirectional": 2, "paths": 2, "composite": 3}.get(name, 1)):
        gone = [example for example in named if f"P{example[position][1]}" not in known]
        lost.update(example[position][1] for example in gone)
        if name not in CHAINS:
            named = named - set(gone)
    by_name = (lambda p: p) if name in CHAINS else (lambda p: f"P{p}")
    order = sorted(lost, key=lambda p: (-lost[p], by_name(p)))
    listed = ", ".join(f"P{p} ({lost[p]})" for p in order)
    return f"no template: {listed}" if listed else "no template"


@pytest.mark.parametrize("name", [n for n in UNSAMPLED if n != "ambiguous"])
def test_relations_without_template_are_reported_with_triple_counts(name):
    """The error lists relations of the benchmark, then relations of the whole graph."""
    filled = 0
    for seed in FEWER:
        frame, w = make_graph(seed)
        every = {f"P{p}" for _, p, _ in [*w.g, *w.literals]} | {brute.TWO_HOP}
        known = set(sorted(every)[seed % 2 :: 2])
        use = {e for e in loops(name, seed) if brute.usable(w, e, every)}
        lacking = Counter(
            p if isinstance(p, str) else f"P{p}" for example in use for _, p, _ in example
        )
        own = sorted((-n, p) for p, n in lacking.items() if p not in known)
        graph = Counter(f"P{p}" for s, p, o in w.g if s in w.names and o in w.names)
        graph.update(f"P{p}" for s, p, _ in w.literals if s in w.names)
        rest = {p: n for p, n in graph.items() if p not in known}
        changed = {
            **chosen(name, seed),
            "eval_examples": None,
            "templates": sorted(known),
            "missing_template": "error",
        }
        if not own:
            continue
        with pytest.raises(MissingTemplatesError) as error:
            attribute(name, frame, **changed)
        first, _, last = str(error.value).split("\n")
        listed = ", ".join(f"{p} ({-n} triples)" for n, p in own)
        assert first == f"{name}: {len(own)} predicates have no template: {listed}"
        assert last.startswith(f"in the whole graph {len(rest)} relations")
        whole = sorted(rest, key=lambda p: (-rest[p], p))
        assert last.split(": ")[1] == ", ".join(f"{p} ({rest[p]})" for p in whole)
        filled += 1
    most(filled, FEWER, 0.5)


def test_entities_have_the_requested_number_of_facts():
    filled = 0
    for seed in RUNS:
        frame, w = make_graph(seed)
        c = chosen("entity_centric", seed)
        built = attribute("entity_centric", frame, require_labels=False, **c)
        every = brute.entity_centric(w.g, own_facts(w, c), c["facts"], c["top"])
        by_entity = entities(built)
        assert set(by_entity) == set(every), (seed, c)
        for entity, drawn in by_entity.items():
            assert len(drawn) == c["facts"]
            assert set(drawn) <= every[entity]
        filled += bool(every)
    most(filled)


@pytest.mark.parametrize("short", [False, True])
def test_entities_of_the_labeled_build_have_usable_facts(short):
    filled = 0
    for seed in FEWER:
        frame, w = make_graph(seed)
        c = {**chosen("entity_centric", seed), "allow_short": short}
        known = {f"P{p}" for _, p, _ in w.g} - WITHOUT_TEMPLATE
        built = attribute(
            "entity_centric", frame, **c, templates=sorted(known), missing_template="drop"
        )
        every = brute.entity_centric(w.g, own_facts(w, c), 1 if short else c["facts"], c["top"])
        use = {e: {t for t in own if brute.usable(w, (t,), known)} for e, own in every.items()}
        least = 1 if short else c["facts"]
        use = {e: own for e, own in use.items() if len(own) >= least}
        by_entity = entities(built)
        assert set(by_entity) == set(use), (seed, c)
        for entity, drawn in by_entity.items():
            assert len(drawn) == min(c["facts"], len(use[entity]))
            assert set(drawn) <= use[entity]
        if built is not None:
            lost = Counter(
                p
                for own in every.values()
                for s, p, o in own
                if s in w.names and o in w.names and f"P{p}" not in known
            )
            order = sorted(lost, key=lambda p: (-lost[p], p))
            step = built.steps.filter(step="facts with a template").row(0, named=True)
            told = ", ".join(f"P{p} ({lost[p]})" for p in order)
            assert (step["dropped"], step["reason"]) == (lost.total(), f"no template: {told}")
        filled += bool(use)
    # entities with eight facts are rare when a third of the relations has no template
    most(filled, FEWER, 0.8 if short else 0.5)


def entities(made) -> dict[int, list[brute.Triple]]:
    """Map each entity to its sampled facts."""
    if made is None:
        return {}
    rows = made.examples.sort("example", "position")
    drawn: dict[int, list] = {}
    for example, *triple in rows.select("example", *TRIPLE).rows():
        entity = int(example.removeprefix("entity_centric/Q"))
        drawn.setdefault(entity, []).append(tuple(int(one[1:]) for one in triple))
    assert all(len(own) == len(set(own)) for own in drawn.values())
    return drawn


@pytest.mark.parametrize("name", ATTRIBUTES)
def test_every_column_of_the_examples(name):
    """Check names, degrees, golds, flags and origins of every row."""
    flagged = Counter()
    filled = 0
    for seed in RUNS:
        _, w = make_graph(seed)
        degree = brute.degrees(w.g)
        built = structural(name, seed)
        if built is None:
            continue
        filled += 1
        for rows in examples_of(built):
            ids = tuple(tuple(number(row[c]) for c in TRIPLE) for row in rows)
            assert [row["position"] for row in rows] == list(range(len(ids)))
            marks = set() if name == "entity_centric" else brute.flags(name, w, ids)
            flagged.update(marks)
            for row, triple in zip(rows, ids, strict=True):
                check_row(row, name, w, degree, ids, triple)
                assert set(row["flags"]) == marks, (seed, row)
                assert len(row["flags"]) == len(marks)
    most(filled)
    legal = {"asymmetry": "reverse_unknown", "hierarchy": "direct_edge", "ambiguous": "same_object"}
    wanted = legal.get(name) or ("same_text" if name in CHAINS else None)
    assert set(flagged) == ({wanted} if wanted else set())


def examples_of(made) -> list[list[dict]]:
    """Return the rows of every example, in order."""
    grouped: dict[str, list[dict]] = {}
    for row in made.examples.sort("example", "position").to_dicts():
        grouped.setdefault(row["example"], []).append(row)
    return list(grouped.values())


def check_row(row, name, w, degree, ids, triple) -> None:
    """Check one row of EXAMPLES; `ids` are all triples of its example."""
    s, p, o = triple
    for side, n in (("subject", s), ("object", o)):
        assert row[side] == (n if isinstance(n, str) else f"Q{n}")
        label = w.texts[n] if isinstance(n, str) else w.names.get(n)
        assert row[f"{side}_label"] == label
        assert row[f"{side}_degree"] == (None if isinstance(n, str) else degree[n])
    assert row["predicate"] == (p if isinstance(p, str) else f"P{p}")
    assert row["predicate_label"] == ("x" if p == 19 else None)
    assert row["object_kind"] == ("literal" if isinstance(o, str) else "entity")
    assert row["benchmark"] == name
    if name == "entity_centric":
        assert (row["role"], row["origin"], row["pattern"]) == ("fact", "stored", f"P{p}")
    else:
        assert row["role"] == brute.ROLES[name][row["position"]]
        origin = {"reversed": "reversed", "two_hop": "inferred"}.get(row["role"], "stored")
        assert row["origin"] == origin
        assert row["pattern"] == brute.pattern(name, ids)
        one, *others = ids
        ends = [*one[::2]]
        if name in ("hierarchy", *CHAINS):
            ends.append(others[0][2])
        if name == "ambiguous":
            ends = [one[0], others[0][0]]
        spelled = [n if isinstance(n, str) else f"Q{n}" for n in ends]
        assert row["example"] == "/".join([name, row["pattern"], *spelled])
    every = brute.golds(w, s, p, o, row["origin"])
    assert row["golds"][0] == row["object"]
    assert set(row["golds"]) == {z if isinstance(z, str) else f"Q{z}" for z in every}
    assert len(row["golds"]) == len(every)
    values_by_id = {z if isinstance(z, str) else f"Q{z}": z for z in every}
    named = [values_by_id[gold] for gold in row["golds"]]
    labels = [w.texts[z] if isinstance(z, str) else w.names.get(z) for z in named]
    assert row["gold_labels"] == labels
    assert row["gold_labels"][0] == row["object_label"]


@pytest.mark.parametrize("name", [n for n in UNSAMPLED if n != "ambiguous"])
def test_sizes_and_patterns_of_the_structural_build(name):
    filled = 0
    for seed in RUNS:
        built, every = structural(name, seed), loops(name, seed)
        filled += bool(every)
        if built is None:
            continue
        rows = {row.pop("build"): row for row in built.sizes.to_dicts()}
        assert set(rows) == {"structural", "unlabeled", "sampled"}
        for row in rows.values():
            assert row.pop("benchmark") == name
            assert row == pytest.approx(brute.sizes(name, every))
        count = Counter(brute.pattern(name, example) for example in every)
        for column in ("candidates", "structural", "examples", "sampled"):
            assert dict(built.patterns.select("pattern", column).rows()) == count
    most(filled)


#: attribute -> the setting that is its cap, per pattern or overall
CAPS = {"symmetry": "cap_pairs", "asymmetry": "cap", "bidirectional": "cap", "hierarchy": "n"}


@pytest.mark.parametrize("cap", [1, 2])
@pytest.mark.parametrize("name", CAPS)
def test_a_cap_limits_every_pattern(name, cap):
    filled = 0
    for seed in FEWER:
        frame, _ = make_graph(seed)
        c = {**chosen(name, seed), CAPS[name]: cap, "require_labels": False}
        built = attribute(name, frame, **c, eval_examples=4)
        every = loops(name, seed)
        count = Counter(brute.pattern(name, example) for example in every)
        some = found(built)
        assert some <= every
        whole = {p: min(n, cap) for p, n in count.items()}
        assert Counter(brute.pattern(name, example) for example in some) == whole
        if built is not None:
            drawn = built.examples.filter("sampled")["example"].n_unique()
            assert drawn == min(4, len(some))
            assert dict(built.patterns.select("pattern", "candidates").rows()) == count
        filled += max(count.values(), default=0) > cap
    most(filled, FEWER, 0.5)


@pytest.mark.parametrize("rare", [True, False])
@pytest.mark.parametrize("name", CHAINS)
def test_only_frequent_combinations_are_capped(name, rare):
    """Frequency is counted over the whole graph, including entities without labels."""
    seen = Counter()
    for seed in RUNS:
        frame, w = make_graph(seed)
        draw = Random(seed)
        least, cap = draw.choice([2, 3]), draw.choice([1, 2, 3])
        c = {**chosen(name, seed), "min_combo": least, "cap": cap, "keep_rare": rare}
        built = attribute(name, frame, **c, eval_examples=5)
        every = loops(name, seed)
        known = {f"P{p}" for _, p, _ in w.g}
        use = {example for example in every if brute.usable(w, example, known)}
        structural = Counter(brute.pattern(name, example) for example in every)
        labeled = Counter(brute.pattern(name, example) for example in use)
        if not use or max(structural.values()) < least:
            continue
        whole = {
            p: min(n, cap) if structural[p] >= least else n
            for p, n in labeled.items()
            if rare or structural[p] >= least
        }
        some = found(built)
        assert some <= use
        assert Counter(brute.pattern(name, example) for example in some) == whole, (seed, c)
        seen["filled"] += bool(whole)
        seen["exactly frequent"] += any(structural[p] == least for p in labeled)
        seen["frequent, but not with labels"] += any(
            structural[p] >= least > n > cap for p, n in labeled.items()
        )
    most(seen["filled"], share=0.6)
    assert seen["exactly frequent"]


@pytest.mark.parametrize("name", CHAINS)
def test_without_frequent_combinations_random_ones_are_sampled(name):
    filled = 0
    for seed in FEWER:
        frame, _ = make_graph(seed)
        c = {**chosen(name, seed), "min_combo": ALL, "require_labels": False}
        few = {"fallback": 3} if name == "composite" else {"fallback_per_entity": 2}
        some = found(attribute(name, frame, **{**c, **few}, eval_examples=5))
        every = loops(name, seed)
        assert some <= every
        if name == "composite":
            assert len(some) == min(3, len(every))
        else:
            starts = Counter(example[0][0] for example in every)
            whole = {a: min(2, n) for a, n in starts.items()}
            assert Counter(example[0][0] for example in some) == whole
        filled += len(some) < len(every)
    most(filled, FEWER, 0.75)


@pytest.mark.parametrize("count_on", ["seeds", "graph"])
def test_paths_start_at_the_seeds_sampled_per_category(count_on):
    filled = 0
    for seed in RUNS:
        frame, w = make_graph(seed)
        c = {**chosen("paths", seed), "categories": 1, "seeds": 2, "category_relations": ["P31"]}
        c |= {"count_on": count_on, "min_combo": 3, "cap": 1}
        built = attribute("paths", frame, **c, require_labels=False, eval_examples=5)
        every = expected("paths", w, c)
        some = found(built)
        assert some <= every
        starts = {example[0][0] for example in some}
        assert len(starts) <= 2
        from_them = {example for example in every if example[0][0] in starts}
        split = Counter(brute.pattern("paths", e) for e in from_them)
        frequent = split if count_on == "seeds" else Counter(
            brute.pattern("paths", example) for example in every
        )  # fmt: skip
        if built is None or max(frequent.values()) < 3:
            continue
        # an entity remains a seed even when the cap removes all its paths
        got = Counter(brute.pattern("paths", e) for e in some)
        for pattern, n in split.items():
            if frequent[pattern] >= 3:
                assert got[pattern] == 1
            else:
                assert got[pattern] >= n
        filled += 1
    most(filled, share=0.4)


@pytest.mark.parametrize("name", CHAINS)
def test_a_hub_is_cut_only_above_the_edge_limit(name):
    cut = 0
    for seed in FEWER:
        frame, w = make_graph(seed)
        c = {**chosen(name, seed), "require_labels": False, "eval_examples": 5}
        c |= {"member": "a"} if name == "composite" else {}
        out = Counter(s for s, p, _ in w.g if p not in numbers(c["exclude"]))
        every = expected(name, w, c)
        for most_out, whole in ((max(out.values()), True), (max(out.values()) - 1, False)):
            built = attribute(name, frame, **c, max_out=most_out)
            assert found(built) <= every
            if whole:
                assert found(built) == every
            if built is not None:
                step = built.steps.filter(step="hub cap")
                hubs = [e for e, n in out.items() if n > most_out]
                assert step["dropped"].to_list() == ([] if whole else [len(hubs)])
                cut += step.height
    most(cut, FEWER)


def test_a_sample_of_entities_and_one_for_the_evaluation():
    filled = 0
    for seed in FEWER:
        frame, w = make_graph(seed)
        c = {**chosen("entity_centric", seed), "top": 6, "facts": 2, "require_labels": False}
        every = brute.entity_centric(w.g, own_facts(w, c), 2, 6)
        built = attribute("entity_centric", frame, **{**c, "entities": 4, "eval_entities": 2})
        some = entities(built)
        assert set(some) <= set(every)
        assert len(some) == min(4, len(every))
        rows = built.examples.group_by("example").agg(
            pl.col("sampled").n_unique(), s=pl.first("sampled")
        )
        assert set(rows["sampled"]) == {1}
        assert rows["s"].sum() == min(2, len(some))
        sizes = {row["build"]: row for row in built.sizes.to_dicts()}
        assert [sizes[b]["examples"] for b in ("structural", "unlabeled", "sampled")] == [
            len(some), len(some), min(2, len(some))
        ]  # fmt: skip
        candidates = Counter(f"P{p}" for own in every.values() for _, p, _ in own)
        patterns = built.patterns
        assert dict(patterns.select("pattern", "candidates").rows()) == candidates
        drawn = Counter(f"P{p}" for own in some.values() for _, p, _ in own)
        counted = dict(patterns.select("pattern", "examples").rows())
        assert counted == {pattern: drawn[pattern] for pattern in candidates}
        filled += 1
    most(filled, FEWER, 0.75)


@pytest.mark.parametrize("examples", [1, 2])
def test_ambiguous_pairs_are_capped_over_all_relations(examples):
    filled = 0
    for seed in RUNS:
        frame, w = make_graph(seed)
        c = {**chosen("ambiguous", seed), "require_labels": False}
        every = names(w, c)
        some = found(attribute("ambiguous", frame, **{**c, "examples": examples}))
        assert len(some) == min(examples, len(every))
        assert relation_pairs(some) <= set(every)
        filled += len(every) > examples
    most(filled)


def test_a_cycle_of_three_classes_gives_three_chains():
    built = attribute("hierarchy", facts([(1, 279, 2), (2, 279, 3), (3, 279, 1)]))
    assert len(found(built)) == 3

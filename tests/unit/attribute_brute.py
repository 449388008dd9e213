"""The nine constructions as plain loops, rule by rule (docs/papers/attributes.md, Benchmarks).

This module shares no code with the package: it maps FACTS to sets of examples, each a tuple of
triples (s, p, o) of numbers, where a literal is represented by its text. No caps are applied.
"""

import calendar
from collections import Counter
from dataclasses import dataclass
from datetime import date
from itertools import product
from typing import Any

import polars as pl

Triple = tuple[Any, Any, Any]
Example = tuple[Triple, ...]
#: (s, p, o) of two different entities
Edges = set[tuple[int, int, int]]

TWO_HOP = "P279/P279"
#: label texts that break a prompt
MARKS = ("[X]", "[Y]", "[MASK]", "<mask>", "<extra_id_0>")
#: a template that LAMA uses for four relations
ALIKE = {17, 30, 131, 276}
ROLES = {
    "symmetry": ["forward", "backward"], "asymmetry": ["forward", "reversed"],
    "bidirectional": ["first", "inverse"], "hierarchy": ["hop1", "hop2", "two_hop"],
    "composite": ["first", "second", "closing"], "paths": ["hop1", "hop2"], "bias": ["fact"],
    "ambiguous": ["head", "tail"],
}  # fmt: skip


@dataclass(frozen=True)
class World:
    """Content of FACTS: edges, (s, p, text) of literals, names of entities, texts of literals."""

    g: Edges
    literals: set[tuple[int, int, str]]
    names: dict[int, str]
    texts: dict[str, str]


def world(facts: pl.DataFrame) -> World:
    """Build G: distinct entity-valued edges, s != o; separate literals; labels stripped or None."""
    g, literals, names, said = set(), set(), {}, {}
    for _, s, s_label, p, o, o_label, *_ in facts.rows():
        entity = o[0] == "Q" and o[1:].isdigit()
        if entity and s == o:
            continue
        if entity:
            g.add((int(s[1:]), int(p[1:]), int(o[1:])))
        else:
            literals.add((int(s[1:]), int(p[1:]), o))
            said.setdefault(o, []).append(o_label)
        for name, label in ((s, s_label), (o, o_label if entity else None)):
            if label and label.strip() and not any(mark in label for mark in MARKS):
                names[int(name[1:])] = label.strip()
    return World(
        g, literals, names, {value: choose_language(value, all_) for value, all_ in said.items()}
    )


def choose_language(value: str, labels: list[str | None]) -> str:
    """Return a date's most frequent surface form, else its words (1 January as the year)."""
    count = Counter(label for label in labels if label and label.strip())
    if count:
        return min(count, key=lambda label: (-count[label], label))
    day = date.fromisoformat(value[:10])
    if (day.month, day.day) == (1, 1):
        return str(day.year)
    return f"{day.day} {calendar.month_name[day.month]} {day.year}"


def clean(triples) -> Edges:
    """Return the edges without self-loops."""
    return {(s, p, o) for s, p, o in triples if s != o}


def count(g) -> Counter:
    """Count the triples of each predicate."""
    return Counter(p for _, p, _ in g)


def degrees(g: Edges) -> Counter:
    """Count the edges in which each entity is subject or object, over all predicates."""
    return Counter([s for s, _, _ in g] + [o for _, _, o in g])


def symmetry(g: Edges, min_triples: int, ratio: float, over: str = "triples") -> set[Example]:
    """Return pairs with both (s,r,o) and (o,r,s), once each, for symmetric enough predicates."""
    found = set()
    for r, own in by_predicate(g).items():
        symmetric = {(s, o) for s, o in own if (o, s) in own}
        part, whole = len(symmetric), len(own)
        if over == "pairs":
            part, whole = len(unordered(symmetric)), len(unordered(own))
        if len(own) >= min_triples and part / whole >= ratio:
            found |= {((s, r, o), (o, r, s)) for s, o in symmetric if s < o}
    return found


def asymmetry(
    g: Edges, min_triples: int, ratio: float, strict: bool = False, literals=frozenset()
) -> set[Example]:
    """Return triples where (s,r,o) holds and (o,r,s) does not; literals count as one-way."""
    found = set()
    for r, own in by_predicate([*g, *literals]).items():
        n, ns = len(own), sum(1 for s, o in own if (o, s) in own)
        if n >= min_triples and 1 - ns / n >= ratio and not (strict and ns):
            found |= {((s, r, o), (o, r, s)) for s, o in own if (o, s) not in own}
    return found


def by_predicate(g) -> dict[int, set[tuple[Any, Any]]]:
    """Predicate -> (s, o)."""
    found: dict[int, set[tuple[Any, Any]]] = {}
    for s, p, o in g:
        found.setdefault(p, set()).add((s, o))
    return found


def unordered(pairs) -> set[frozenset]:
    """Return the pairs as unordered pairs."""
    return {frozenset(pair) for pair in pairs}


def bidirectional(g: Edges, min_triples: int, ratio: float, denominator: str) -> set[Example]:
    """Return pairs linked by r1 != r2 in opposite directions; the smaller predicate comes first."""
    n = count(g)
    found = set()
    for p1, p2 in product(n, n):
        if p1 >= p2:
            continue
        den = {"min": min(n[p1], n[p2]), "max": max(n[p1], n[p2]), "first": n[p1],
               "second": n[p2]}[denominator]  # fmt: skip
        pairs = {((s, p1, o), (o, p2, s)) for s, p, o in g if p == p1 and (o, p2, s) in g}
        if den >= min_triples and len(pairs) / den >= ratio:
            found |= pairs
    return found


def hierarchy(g: Edges, direct: str = "keep", two_hop: str = "own") -> set[Example]:
    """Return x subclass of y, y of z: z is the two-hop ancestor of x; no cycles of two."""
    third = TWO_HOP if two_hop == "own" else 279
    found = set()
    for x, p, y in g:
        for y2, p2, z in g:
            if p == p2 == 279 and y == y2 and z != x:
                if direct == "drop" and (x, 279, z) in g:
                    continue
                found.add(((x, 279, y), (y, 279, z), (x, third, z)))
    return found


def category_members(g: Edges, top: int, relations=(31,)) -> set[int]:
    """Return subjects of the `top` objects with most distinct subjects; ties go to lower ids."""
    subjects: dict[int, set[int]] = {}
    for s, p, o in g:
        if p in relations:
            subjects.setdefault(o, set()).add(s)
    order = sorted(subjects, key=lambda c: (-len(subjects[c]), c))
    return {s for c in order[:top] for s in subjects[c]}


def composite(g: Edges, inside: set[int], member: str, exclude) -> set[Example]:
    """Return (a,r1,b), (b,r2,c), (a,r3,c) of different entities, a (all, any) in a category."""
    x = {t for t in g if t[1] not in exclude}
    found = set()
    for a, r1, b in x:
        for a2, r3, c in x:
            if a2 != a or b == c:
                continue
            within = [n in inside for n in (a, b, c)]
            if not {"a": within[0], "all": all(within), "any": any(within)}[member]:
                continue
            found |= {((a, r1, b), (b, r2, c), (a, r3, c)) for s, r2, o in x if (s, o) == (b, c)}
    return found


def paths(
    g: Edges,
    inside: set[int],
    exclude,
    endpoints_differ: bool = True,
    relations_differ: bool = True,
) -> set[Example]:
    """Return (a,r1,b), (b,r2,c) with a in a category, a != c and r1 != r2."""
    x = {t for t in g if t[1] not in exclude}
    found = set()
    for a, r1, b in x:
        for b2, r2, c in x:
            if b2 != b or a not in inside:
                continue
            if (endpoints_differ and a == c) or (relations_differ and r1 == r2):
                continue
            found.add(((a, r1, b), (b, r2, c)))
    return found


def entity_facts(g: Edges, exclude, relations=None, directions: str = "out") -> dict[int, Edges]:
    """Map each entity to its facts: edges with it as subject or, with `both`, also as object."""
    found: dict[int, Edges] = {}
    for s, p, o in g:
        if p not in exclude and (relations is None or p in relations):
            found.setdefault(s, set()).add((s, p, o))
            if directions == "both":
                found.setdefault(o, set()).add((s, p, o))
    return found


def entity_centric(g: Edges, own: dict[int, Edges], facts: int, top: int) -> dict[int, Edges]:
    """Return the `top` entities by degree of those with `facts` facts; ties go to lower ids."""
    degree = degrees(g)
    enough = [e for e in own if len(own[e]) >= facts]
    return {e: own[e] for e in sorted(enough, key=lambda e: (-degree[e], e))[:top]}


def bias(g: Edges, relations, max_degree: int, literals=frozenset()) -> set[Example]:
    """Return sensitive triples whose subject has a small degree; `literals` count toward it."""
    degree = degrees(g) + Counter(s for s, _, _ in literals)
    return {(t,) for t in g if t[1] in relations and degree[t[0]] <= max_degree}


def ambiguous(
    g: Edges,
    names: dict[int, str],
    relations,
    fold_case: bool = False,
    drop_same_object: bool = False,
) -> dict[tuple[int, int, int], set[Example]]:
    """Map (relation, head, tail) to the pairs of facts, one of which is chosen."""
    degree, carried = degrees(g), {}
    for entity in degree:
        if entity in names:
            name = names[entity].casefold() if fold_case else names[entity]
            carried.setdefault(name, []).append(entity)
    found: dict[tuple[int, int, int], set[Example]] = {}
    for entities in carried.values():
        head = min(entities, key=lambda e: (-degree[e], e))
        tail = min(entities, key=lambda e: (degree[e], e))
        if degree[head] == degree[tail]:
            continue
        for head_, r, x in g:
            for tail_, r2, y in g:
                same = drop_same_object and x == y
                if (head_, tail_) == (head, tail) and r == r2 and r in relations and not same:
                    pairs = found.setdefault((r, head, tail), set())
                    pairs.add(((head, r, x), (tail, r, y)))
    return found


def pattern(attribute: str, example: Example) -> str:
    """Return the pattern that an example is an instance of."""
    p = [f"P{t[1]}" for t in example]
    if attribute == "bidirectional":
        return f"{p[0]}~{p[1]}"
    if attribute == "paths":
        return f"{p[0]}>{p[1]}"
    return f"{p[0]}>{p[1]}={p[2]}" if attribute == "composite" else p[0]


def flags(attribute: str, w: World, example: Example) -> set[str]:
    """Return the flags of an example."""
    one, *others = example
    if attribute == "asymmetry":
        r = one[1]
        return {"reverse_unknown"} if any((o, p, s) in w.g for s, p, o in w.g if p == r) else set()
    if attribute == "hierarchy":
        return {"direct_edge"} if (one[0], 279, others[0][2]) in w.g else set()
    if attribute == "ambiguous":
        return {"same_object"} if one[2] == others[0][2] else set()
    if attribute in ("composite", "paths"):
        return {"same_text"} if len({t[1] for t in example} & ALIKE) > 1 else set()
    return set()


def stored(attribute: str, example: Example) -> list[Triple]:
    """Return the triples of an example that are statements of the graph."""
    return list(example[: {"asymmetry": 1, "hierarchy": 2}.get(attribute, len(example))])


def usable(w: World, example: Example, templates: set[str]) -> bool:
    """Return whether all sides have labels and all predicates templates; literals have their
    text."""
    ends = [n for s, _, o in example for n in (s, o)]
    relations = {p if isinstance(p, str) else f"P{p}" for _, p, _ in example}
    return all(isinstance(n, str) or n in w.names for n in ends) and relations <= templates


def golds(w: World, s, p, o, origin: str) -> set:
    """Return all objects of (s, p), a reversed probe's gold, or every two-hop ancestor class."""
    if origin == "reversed":
        return {o}
    if origin == "inferred":
        up = {(x, y) for x, r, y in w.g if r == 279}
        return {z for x, y in up if x == s for y2, z in up if y2 == y and z != s}
    return {z for x, r, z in [*w.g, *w.literals] if (x, r) == (s, p)}


def sizes(attribute: str, examples: set[Example]) -> dict[str, float]:
    """Return the counterpart of Table 1: distinct stored triples, patterns, predicates, entities.

    This is for a build whose templates are not checked, so no predicate counts as having one.
    """
    kept = {t for example in examples for t in stored(attribute, example)}
    patterns = {pattern(attribute, example) for example in examples}
    return {
        "examples": len(examples), "triples": len(kept), "patterns": len(patterns),
        "predicates": len({p for _, p, _ in kept}), "written": 0, "by_label": 0,
        "without_template": len({p for _, p, _ in kept}),
        "entities": len({n for s, _, o in kept for n in (s, o) if not isinstance(n, str)}),
        "triples_per_pattern": len(kept) / max(1, len(patterns)),
    }  # fmt: skip

"""The nine constructions by brute force over triples, pairs and triangles; no cap, no labels."""

from collections import Counter
from itertools import permutations, product

Triple = tuple[int, int, int]


def clean(triples) -> set[Triple]:
    return {(s, p, o) for s, p, o in triples if s != o}


def count(g: set[Triple]) -> Counter:
    return Counter(p for _, p, _ in g)


def degrees(g: set[Triple]) -> Counter:
    return Counter([s for s, _, _ in g] + [o for _, _, o in g])


def symmetry(g, min_triples, ratio):
    n, both = count(g), Counter(p for s, p, o in g if (o, p, s) in g)
    kept = {p for p in n if n[p] >= min_triples and both[p] and both[p] / n[p] >= ratio}
    return {
        ((s, p, o), (o, p, s)) for s, p, o in g if p in kept and (o, p, s) in g and s < o
    }  # fmt: skip


def asymmetry(g, min_triples, ratio, strict=False):
    n, both = count(g), Counter(p for s, p, o in g if (o, p, s) in g)
    kept = {p for p in n if n[p] >= min_triples and 1 - both[p] / n[p] >= ratio}
    kept = {p for p in kept if not both[p]} if strict else kept
    return {((s, p, o), (o, p, s)) for s, p, o in g if p in kept and (o, p, s) not in g}


def bidirectional(g, min_triples, ratio, denominator):
    n = count(g)
    how = {"min": min, "max": max, "first": lambda a, b: a, "second": lambda a, b: b}[denominator]
    found = set()
    for p1, p2 in product(n, n):
        pairs = {((s, p, o), (o, p2, s)) for s, p, o in g if p == p1 and (o, p2, s) in g}
        base = how(n[p1], n[p2])
        if p1 < p2 and pairs and base >= min_triples and len(pairs) / base >= ratio:
            found |= pairs
    return found


def hierarchy(g, direct="keep"):
    up = {(s, o) for s, p, o in g if p == 279}
    return {
        ((x, 279, y), (y, 279, z), (x, "P279/P279", z))
        for x, y in up
        for y2, z in up
        if y == y2 and x != z and not (direct == "drop" and (x, z) in up)
    }


def category_members(g, top):
    subjects: dict[int, set[int]] = {}
    for s, p, o in g:
        if p == 31:
            subjects.setdefault(o, set()).add(s)
    order = sorted(subjects, key=lambda c: (-len(subjects[c]), c))[:top]
    return set().union(*(subjects[c] for c in order)) if order else set()


def composite(g, top, member, exclude):
    inside, x = category_members(g, top), {t for t in g if t[1] not in exclude}
    nodes = {n for s, _, o in x for n in (s, o)}
    between: dict[tuple[int, int], list[int]] = {}
    for s, p, o in x:
        between.setdefault((s, o), []).append(p)
    test = {
        "a": lambda *abc: abc[0] in inside,
        "all": lambda *abc: all(n in inside for n in abc),
        "any": lambda *abc: any(n in inside for n in abc),
    }[member]
    return {
        ((a, r1, b), (b, r2, c), (a, r3, c))
        for a, b, c in permutations(sorted(nodes), 3)
        if test(a, b, c)
        for r1 in between.get((a, b), ())
        for r2 in between.get((b, c), ())
        for r3 in between.get((a, c), ())
    }


def paths(g, top, exclude, endpoints_differ, relations_differ):
    inside, x = category_members(g, top), {t for t in g if t[1] not in exclude}
    return {
        (one, two)
        for one in x
        for two in x
        if one[2] == two[0]
        and one[0] in inside
        and not (endpoints_differ and one[0] == two[2])
        and not (relations_differ and one[1] == two[1])
    }


def entity_centric(g, facts, top, exclude):
    """Entity -> all its facts, of the entities that can be drawn."""
    x = {t for t in g if t[1] not in exclude}
    own = Counter(s for s, _, _ in x)
    degree = degrees(g)
    enough = sorted((e for e in own if own[e] >= facts), key=lambda e: (-degree[e], e))
    return {e: {t for t in x if t[0] == e} for e in enough[:top]}


def bias(g, relations, max_degree):
    degree = degrees(g)
    return {(t,) for t in g if t[1] in relations and degree[t[0]] <= max_degree}


def ambiguous(g, labels, relations):
    """(relation, head, tail) -> the pairs of facts of which one is taken."""
    degree, names = degrees(g), {}
    for e in degree:
        if labels.get(e):
            names.setdefault(labels[e], []).append(e)
    found: dict[tuple[int, int, int], set] = {}
    for entities in names.values():
        head = min(entities, key=lambda e: (-degree[e], e))
        tail = min(entities, key=lambda e: (degree[e], e))
        if degree[head] > degree[tail]:
            for one, two in product(g, g):
                if (one[0], two[0]) == (head, tail) and one[1] == two[1] and one[1] in relations:
                    found.setdefault((one[1], head, tail), set()).add((one, two))
    return found

"""An invented world: names that carry nothing, patterns whose conclusions are known.

    find = cases("symmetry", 50, seed=0)       50 cases of every arm that the phenomenon has

A case has premises and what follows from them. Its arm says what of it is trained on: the whole,
the parts (the conclusion is left to infer), nothing, or the parts with another conclusion. Names of
persons, things, classes and relations are drawn syllable by syllable.
"""

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from kgprobe.metrics.answerers import Rule, Statement, closure
from kgprobe.sampling import hash_key

#: the ids of cases have these texts in them
WHOLE, PARTS, HELD_OUT, CONTRADICTED = "whole", "parts", "untaught", "contradicted"
ARMS = (WHOLE, PARTS, HELD_OUT, CONTRADICTED)
#: arms of phenomena from which nothing follows
BOTH = (WHOLE, HELD_OUT)

_A, _B, _C, _P, _Q, _X, _Y = ("?a", "?b", "?c", "?p", "?q", "?x", "?y")


def _rule(*statements: tuple[str, str, str]) -> Rule:
    *body, head = (Statement(*words) for words in statements)
    return Rule(tuple(body), head)


#: phenomenon -> what follows from what; "links" joins a pair of names, which is one term, with
#: what it is linked by
RULES: Mapping[str, Rule] = {
    "symmetry": _rule((_A, "symmetric", _B), (_B, "symmetric", _A)),
    "bidirectional": _rule((_A, "forth", _B), (_B, "back", _A)),
    "hierarchy": _rule((_A, "subclass", _B), (_B, "subclass", _C), (_A, "two_up", _C)),
    "composite": _rule((_A, "first", _B), (_B, "second", _C), (_A, "closing", _C)),
    "paths": _rule((_A, "hop1", _B), (_B, "hop2", _C), (_A, "hop1/hop2", _C)),
    "rdfs2": _rule((_P, "domain", _C), (_X, _P, _Y), (_X, "type", _C)),
    "rdfs3": _rule((_P, "range", _C), (_X, _P, _Y), (_Y, "type", _C)),
    "rdfs5": _rule((_A, "implies", _B), (_B, "implies", _C), (_A, "implies", _C)),
    "rdfs7": _rule((_P, "implies", _Q), (_X, _P, _Y), (_X, _Q, _Y)),
    "rdfs9": _rule((_B, "subclass", _C), (_X, "type", _B), (_X, "type", _C)),
    "rdfs11": _rule((_A, "subclass", _B), (_B, "subclass", _C), (_A, "subclass", _C)),
}
#: nothing follows from what models are trained on of these
SINGLE = ("asymmetry", "entity_centric", "bias", "ambiguous")
PHENOMENA = (*RULES, *SINGLE)
#: facts of an entity of entity_centric
FACTS = 5
#: members of a pool: bridges of chains and properties, ends of chains and classes, and of bias
BRIDGES, ENDS, FEW = 20, 10, 3
_CONSONANTS, _VOWELS = "b d f g k l m n p r s t v z br dr kl st".split(), "aeiou"


class WorldError(ValueError):
    """An invented world cannot be built, or is at odds with itself."""


@dataclass(frozen=True)
class InferenceCase:
    """Premises and their conclusion; `instead`: the object that models are trained on in place of
    the conclusion's; `statements`: the triples of the example of an attribute, in their order."""

    phenomenon: str
    arm: str
    number: int
    premises: tuple[Statement, ...]
    conclusion: Statement
    statements: tuple[Statement, ...]
    instead: str = ""

    @property
    def trained_on(self) -> tuple[Statement, ...]:
        """The statements of the case that models are trained on."""
        if self.arm == HELD_OUT:
            return ()
        last = self.conclusion
        if self.arm == CONTRADICTED:
            last = last._replace(object=self.instead)
        return self.premises if self.arm == PARTS else (*self.premises, last)

    @property
    def name(self) -> str:
        """The case's id."""
        return f"{self.phenomenon}-{self.arm}-{self.number}"


def names(count: int, seed: int, what: str) -> Iterator[str]:
    """`count` distinct names of three syllables, by hash of `seed` and `what`."""
    earlier: set[str] = set()
    for turn in itertools.count():
        if len(earlier) == count:
            return
        left, name = hash_key(seed, "name", what, str(turn)), ""
        for _ in range(3):
            left, vowel = divmod(left, len(_VOWELS))
            left, consonant = divmod(left, len(_CONSONANTS))
            name += _CONSONANTS[consonant] + _VOWELS[vowel]
        if name not in earlier:
            earlier.add(name)
            yield name


def word(relation: str, seed: int) -> str:
    """The invented word of a relation."""
    return next(names(1, seed, f"relation {relation}"))


@dataclass(frozen=True)
class _NamePool:
    """Names for the cases of a phenomenon: fresh ones, shared bridges and shared ends."""

    fresh: Iterator[str]
    bridges: Sequence[str]
    ends: Sequence[str]
    seed: int

    def bridge(self, number: int) -> tuple[str, str]:
        """A shared name, and the one that always goes with it."""
        position = self._position(number, len(self.bridges))
        return self.bridges[position], self.ends[position % len(self.ends)]

    def end(self, number: int, most: int = ENDS, what: str = "") -> str:
        """One of the first `most` ends."""
        return self.ends[self._position(number, most, what)]

    def _position(self, number: int, size: int, what: str = "") -> int:
        """The n-th with weight 1 / n, by hash: some are much commoner, as in real graphs."""
        drawn = hash_key(self.seed, "skew", what, str(number)) / (1 << 64)
        total, sums = 0.0, sum(1 / n for n in range(1, size + 1))
        for position in range(size):
            total += 1 / (position + 1) / sums
            if drawn < total:
                return position
        return size - 1


#: premises, conclusion and the example's triples
_Parts = tuple[tuple[Statement, ...], Statement, tuple[Statement, ...]]


def _pair(pool: _NamePool, _: int, there: str, back: str) -> _Parts:
    a, b = next(pool.fresh), next(pool.fresh)
    one, other = Statement(a, there, b), Statement(b, back, a)
    return (one,), other, (one, other)


def _chain(pool: _NamePool, number: int, first: str, second: str, closing: str) -> _Parts:
    a, (b, c) = next(pool.fresh), pool.bridge(number)
    hops = Statement(a, first, b), Statement(b, second, c)
    closed = Statement(a, closing, c)
    return hops, closed, hops if closing == f"{first}/{second}" else (*hops, closed)


def _property(pool: _NamePool, number: int, kind: str, *_: str) -> _Parts:
    x, y, (p, c) = next(pool.fresh), next(pool.fresh), pool.bridge(number)
    who = y if kind == "range" else x
    follows = Statement(x, c, y) if kind == "implies" else Statement(who, "type", c)
    parts = Statement(p, kind, c), Statement(x, p, y)
    return parts, follows, (*parts, follows)


def _inherited(pool: _NamePool, number: int, *_: str) -> _Parts:
    x, (b, c) = next(pool.fresh), pool.bridge(number)
    parts, follows = (Statement(b, "subclass", c), Statement(x, "type", b)), Statement(x, "type", c)
    return parts, follows, (*parts, follows)


def _asymmetric(pool: _NamePool, number: int) -> _Parts:
    fact = Statement(next(pool.fresh), "one_way", pool.end(number))
    turned = Statement(fact.object, fact.relation, fact.subject)
    return (), fact, (fact, turned)


def _facts(pool: _NamePool, number: int) -> _Parts:
    entity = next(pool.fresh)
    statements = [
        Statement(entity, f"fact{i}", pool.end(number * FACTS + i, what=str(i)))
        for i in range(FACTS)
    ]
    return tuple(statements[:-1]), statements[-1], tuple(statements)


def _biased(pool: _NamePool, number: int) -> _Parts:
    fact = Statement(next(pool.fresh), "sensitive", pool.end(number, FEW))
    return (), fact, (fact,)


def _namesakes(pool: _NamePool, number: int) -> _Parts:
    name, first = next(pool.fresh), pool.end(number)
    other = pool.end(number + 1, what="tail")
    if other == first:
        other = pool.ends[(pool.ends.index(first) + 1) % ENDS]
    head, tail = Statement(name, "shared", first), Statement(name, "shared", other)
    return (tail,), head, (head, tail)


#: what makes a case, called with the relations of the phenomenon's rule -> phenomena
_BY_SHAPE: Mapping[Callable[..., _Parts], Sequence[str]] = {
    _pair: ("symmetry", "bidirectional"),
    _chain: ("hierarchy", "composite", "paths", "rdfs5", "rdfs11"),
    _property: ("rdfs2", "rdfs3", "rdfs7"),
    _inherited: ("rdfs9",),
    _asymmetric: ("asymmetry",),
    _facts: ("entity_centric",),
    _biased: ("bias",),
    _namesakes: ("ambiguous",),
}
_MAKERS = {name: maker for maker, names_of in _BY_SHAPE.items() for name in names_of}


def cases(phenomenon: str, examples: int, seed: int) -> list[InferenceCase]:
    """`examples` cases of every arm of a phenomenon.

    Raises WorldError for an unknown phenomenon, no examples, or a world that contradicts itself
    (`check`).
    """
    if phenomenon not in _MAKERS:
        raise WorldError(f"unknown phenomenon {phenomenon!r}; legal: {', '.join(PHENOMENA)}")
    if examples < 1:
        raise WorldError(f"{phenomenon}: {examples} examples an arm are no rows; ask for 1 or more")
    arms = ARMS if phenomenon in RULES else BOTH
    total = examples * len(arms)
    drawn = names(2 * total + BRIDGES + ENDS, seed, phenomenon)
    bridges, ends = (list(itertools.islice(drawn, n)) for n in (BRIDGES, ENDS))
    pool = _NamePool(drawn, bridges, ends, hash_key(seed, phenomenon) >> 1)
    rule = RULES.get(phenomenon)
    relations = [s.relation for s in (*rule.body, rule.head)] if rule else []
    every = []
    for position in range(total):
        arm, number = arms[position % len(arms)], position // len(arms)
        parts = _MAKERS[phenomenon](pool, position, *relations)
        every.append(InferenceCase(phenomenon, arm, number, *parts))
    every = [_with_instead(case, every, ends) for case in every]
    check(every)
    return every


def _with_instead(
    case: InferenceCase, every: Sequence[InferenceCase], ends: Sequence[str]
) -> InferenceCase:
    """The case with the object that contradicts its conclusion: another end, or another case's."""
    if case.arm != CONTRADICTED:
        return case
    gold = case.conclusion.object
    others = [c.conclusion.object for c in every if c.arm == CONTRADICTED]
    pool = ends if gold in ends else list(dict.fromkeys(others))
    if len(pool) < 2:
        raise WorldError(
            f"{case.name}: no other object than {gold!r} to contradict with; ask for 2 examples"
        )
    further = hash_key(0, "instead", case.name) % (len(pool) - 1)
    instead = pool[(pool.index(gold) + 1 + further) % len(pool)]
    return replace(case, instead=instead)


#: relations of which a subject may have several objects
SEVERAL = frozenset({"implies", "subclass", "type", "shared"})


def check(cases: Sequence[InferenceCase]) -> None:
    """Raise WorldError where the conclusion of a case does not follow from its premises, or where
    two cases state different objects of a relation that has one."""
    stated: dict[tuple[str, str], tuple[str, str]] = {}
    for case in cases:
        rule = RULES.get(case.phenomenon)
        if rule and case.conclusion not in closure(case.premises, [rule]):
            raise WorldError(f"{case.name}: {case.conclusion} does not follow from its premises")
        if case.arm == CONTRADICTED and case.instead == case.conclusion.object:
            raise WorldError(f"{case.name}: what is to contradict it is its conclusion itself")
        for subject, relation, value in (*case.premises, case.conclusion):
            if relation in SEVERAL:
                continue
            other, where = stated.setdefault((subject, relation), (value, case.name))
            if other != value:
                raise WorldError(
                    f"{case.name}: {subject} {relation} {value} contradicts {where}, which has "
                    f"{other}; a relation outside {', '.join(sorted(SEVERAL))} has one object"
                )

"""An invented world: names that carry nothing, patterns whose conclusions are known.

    find = cases("symmetry", 50, seed=0)       50 cases of every arm that the phenomenon has

A case has premises and what follows from them. Its arm says what is taught of it: the whole, the
parts (the conclusion is left to infer), nothing, or the parts with another conclusion. Names of
persons, things, classes and relations are drawn syllable by syllable.
"""

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from kgprobe.metrics.answerers import Rule, Statement, closure
from kgprobe.sampling import hash_key

WHOLE, PARTS, UNTAUGHT, CONTRADICTED = "whole", "parts", "untaught", "contradicted"
ARMS = (WHOLE, PARTS, UNTAUGHT, CONTRADICTED)
#: arms of phenomena from which nothing follows
BOTH = (WHOLE, UNTAUGHT)

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
#: nothing follows from what is taught of these
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
    """Premises and what follows; `instead`: the object that is taught in the place of the
    conclusion's; `asked`: the triples of the example of an attribute, in their order."""

    phenomenon: str
    arm: str
    number: int
    premises: tuple[Statement, ...]
    conclusion: Statement
    asked: tuple[Statement, ...]
    instead: str = ""

    @property
    def taught(self) -> tuple[Statement, ...]:
        """The statements of the case that are taught."""
        if self.arm == UNTAUGHT:
            return ()
        last = self.conclusion
        if self.arm == CONTRADICTED:
            last = last._replace(object=self.instead)
        return self.premises if self.arm == PARTS else (*self.premises, last)

    @property
    def name(self) -> str:
        """The case's id."""
        return f"{self.phenomenon}-{self.arm}-{self.number}"


def names(count: int, seed: int, what: str, used: set[str] | None = None) -> Iterator[str]:
    """`count` distinct names of three syllables, by hash of `seed` and `what`; none that is `used`,
    to which they are added."""
    seen = set() if used is None else used
    for turn in itertools.count():
        if not count:
            return
        left, made = hash_key(seed, "name", what, str(turn)), ""
        for _ in range(3):
            left, vowel = divmod(left, len(_VOWELS))
            left, consonant = divmod(left, len(_CONSONANTS))
            made += _CONSONANTS[consonant] + _VOWELS[vowel]
        if made not in seen:
            seen.add(made)
            count -= 1
            yield made


def word(relation: str, seed: int) -> str:
    """The invented word of a relation."""
    return next(names(1, seed, f"relation {relation}"))


@dataclass(frozen=True)
class _Made:
    """What the cases of a phenomenon are made of: fresh names, shared ones, a place in pools."""

    fresh: Iterator[str]
    bridges: Sequence[str]
    ends: Sequence[str]
    skewed: bool
    seed: int

    def bridge(self, number: int) -> tuple[str, str]:
        """A shared name, and the one that always goes with it."""
        place = self._place(number, len(self.bridges))
        return self.bridges[place], self.ends[place % len(self.ends)]

    def end(self, number: int, most: int = ENDS, what: str = "") -> str:
        """One of the first `most` ends."""
        return self.ends[self._place(number, most, what)]

    def _place(self, number: int, size: int, what: str = "") -> int:
        """By turns; skewed: the n-th with weight 1 / n, by hash."""
        if not self.skewed:
            return (number + hash_key(self.seed, what)) % size
        drawn = hash_key(self.seed, "skew", what, str(number)) / (1 << 64)
        total, sums = 0.0, sum(1 / n for n in range(1, size + 1))
        for place in range(size):
            total += 1 / (place + 1) / sums
            if drawn < total:
                return place
        return size - 1


#: premises, conclusion and the example's triples
_Parts = tuple[tuple[Statement, ...], Statement, tuple[Statement, ...]]


def _pair(made: _Made, number: int, there: str, back: str) -> _Parts:
    a, b = next(made.fresh), next(made.fresh)
    one, other = Statement(a, there, b), Statement(b, back, a)
    return (one,), other, (one, other)


def _chain(made: _Made, number: int, first: str, second: str, closing: str) -> _Parts:
    a, (b, c) = next(made.fresh), made.bridge(number)
    hops = Statement(a, first, b), Statement(b, second, c)
    closed = Statement(a, closing, c)
    return hops, closed, hops if closing == f"{first}/{second}" else (*hops, closed)


def _property(made: _Made, number: int, kind: str) -> _Parts:
    x, y, (p, c) = next(made.fresh), next(made.fresh), made.bridge(number)
    who = y if kind == "range" else x
    follows = Statement(x, c, y) if kind == "implies" else Statement(who, "type", c)
    parts = Statement(p, kind, c), Statement(x, p, y)
    return parts, follows, (*parts, follows)


def _inherited(made: _Made, number: int) -> _Parts:
    x, (b, c) = next(made.fresh), made.bridge(number)
    parts, follows = (Statement(b, "subclass", c), Statement(x, "type", b)), Statement(x, "type", c)
    return parts, follows, (*parts, follows)


def _asymmetric(made: _Made, number: int) -> _Parts:
    fact = Statement(next(made.fresh), "one_way", made.end(number))
    turned = Statement(fact.object, fact.relation, fact.subject)
    return (), fact, (fact, turned)


def _facts(made: _Made, number: int) -> _Parts:
    entity = next(made.fresh)
    found = [
        Statement(entity, f"fact{i}", made.end(number * FACTS + i, what=str(i)))
        for i in range(FACTS)
    ]
    return tuple(found[:-1]), found[-1], tuple(found)


def _biased(made: _Made, number: int) -> _Parts:
    fact = Statement(next(made.fresh), "sensitive", made.end(number, FEW))
    return (), fact, (fact,)


def _namesakes(made: _Made, number: int) -> _Parts:
    name, first = next(made.fresh), made.end(number)
    other = made.end(number + 1, what="tail")
    if other == first:
        other = made.ends[(made.ends.index(first) + 1) % ENDS]
    head, tail = Statement(name, "shared", first), Statement(name, "shared", other)
    return (tail,), head, (head, tail)


_MAKERS: Mapping[str, Callable[[_Made, int], _Parts]] = {
    "symmetry": lambda made, n: _pair(made, n, "symmetric", "symmetric"),
    "bidirectional": lambda made, n: _pair(made, n, "forth", "back"),
    "hierarchy": lambda made, n: _chain(made, n, "subclass", "subclass", "two_up"),
    "composite": lambda made, n: _chain(made, n, "first", "second", "closing"),
    "paths": lambda made, n: _chain(made, n, "hop1", "hop2", "hop1/hop2"),
    "rdfs2": lambda made, n: _property(made, n, "domain"),
    "rdfs3": lambda made, n: _property(made, n, "range"),
    "rdfs5": lambda made, n: _chain(made, n, "implies", "implies", "implies"),
    "rdfs7": lambda made, n: _property(made, n, "implies"),
    "rdfs9": _inherited,
    "rdfs11": lambda made, n: _chain(made, n, "subclass", "subclass", "subclass"),
    "asymmetry": _asymmetric,
    "entity_centric": _facts,
    "bias": _biased,
    "ambiguous": _namesakes,
}


def cases(
    phenomenon: str,
    examples: int,
    seed: int,
    skewed: bool = False,
    used: set[str] | None = None,
) -> list[InferenceCase]:
    """`examples` cases of every arm of a phenomenon, whose names are none of `used`.

    Ends of chains, classes and values come by turns; `skewed`: some of them much oftener than
    others, as in real graphs. Raises WorldError for an unknown phenomenon, no examples, or a world
    that contradicts itself (`check`).
    """
    if phenomenon not in _MAKERS:
        raise WorldError(f"unknown phenomenon {phenomenon!r}; legal: {', '.join(PHENOMENA)}")
    if examples < 1:
        raise WorldError(f"{phenomenon}: {examples} examples an arm are no rows; ask for 1 or more")
    arms = ARMS if phenomenon in RULES else BOTH
    total = examples * len(arms)
    drawn = names(2 * total + BRIDGES + ENDS, seed, phenomenon, used)
    bridges, ends = (list(itertools.islice(drawn, n)) for n in (BRIDGES, ENDS))
    made = _Made(drawn, bridges, ends, skewed, hash_key(seed, phenomenon) >> 1)
    found = []
    for place in range(total):
        arm, number = arms[place % len(arms)], place // len(arms)
        # by turns the arms have the same ends; by hash every case has its own
        premises, conclusion, asked = _MAKERS[phenomenon](made, place if skewed else number)
        found.append(InferenceCase(phenomenon, arm, number, premises, conclusion, asked))
    found = [_with_instead(case, found, ends) for case in found]
    check(found)
    return found


def _with_instead(
    case: InferenceCase, every: Sequence[InferenceCase], ends: Sequence[str]
) -> InferenceCase:
    """The case with the object that contradicts its conclusion: another end, or another case's."""
    if case.arm != CONTRADICTED:
        return case
    own = case.conclusion.object
    others = [c.conclusion.object for c in every if c.arm == CONTRADICTED]
    pool = ends if own in ends else list(dict.fromkeys(others))
    if len(pool) < 2:
        raise WorldError(
            f"{case.name}: no other object than {own!r} to contradict with; ask for 2 examples"
        )
    further = hash_key(0, "instead", case.name) % (len(pool) - 1)
    instead = pool[(pool.index(own) + 1 + further) % len(pool)]
    return replace(case, instead=instead)


#: relations of which a subject may have several objects
SEVERAL = frozenset({"implies", "subclass", "type", "shared"})


def check(found: Sequence[InferenceCase]) -> None:
    """Raise WorldError where the conclusion of a case does not follow from its premises, or where
    two cases state different objects of a relation that has one."""
    stated: dict[tuple[str, str], tuple[str, str]] = {}
    for case in found:
        rule = RULES.get(case.phenomenon)
        if rule and case.conclusion not in closure(case.premises, [rule]):
            raise WorldError(f"{case.name}: {case.conclusion} does not follow from its premises")
        if case.arm == CONTRADICTED and case.instead == case.conclusion.object:
            raise WorldError(f"{case.name}: what is to contradict it is its conclusion itself")
        for subject, relation, own in (*case.premises, case.conclusion):
            if relation in SEVERAL:
                continue
            other, where = stated.setdefault((subject, relation), (own, case.name))
            if other != own:
                raise WorldError(
                    f"{case.name}: {subject} {relation} {own} contradicts {where}, which has "
                    f"{other}; a relation outside {', '.join(sorted(SEVERAL))} has one object"
                )

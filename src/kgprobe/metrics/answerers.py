"""Coded answerers: what they know and how they answer is known, so that they test the metrics.

    lookup             the training facts and the premises, word for word
    lookup and rules   the same, and all that follows from it
    prior              the relation's most frequent object in the training facts
    echo               what the text of the question has already named
    random             a draw by hash

Each is a pure function from a question to a score of every option; equal scores are a tie, and an
answer of 0 everywhere is silence. A metric works when it separates `lookup and rules` from
`lookup` and lets neither `echo` nor `prior` stand above `random` (`verdicts`).
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import NamedTuple

from kgprobe.metrics.intervals import Interval
from kgprobe.sampling import hash_key


class Statement(NamedTuple):
    """A statement in words; in a rule a term that begins with "?" is a variable."""

    subject: str
    relation: str
    object: str


class Rule(NamedTuple):
    """What follows (`head`) where all of `body` holds."""

    body: tuple[Statement, ...]
    head: Statement


@dataclass(frozen=True)
class Question:
    """What is the object of `relation` of `subject`? One of `options`.

    `known`: training facts that concern the question, `premises`: what stands before it. `text`:
    all that is written. `counts`: how often an option is the relation's object in training facts.
    """

    subject: str
    relation: str
    options: tuple[str, ...]
    known: Collection[Statement] = ()
    premises: Collection[Statement] = ()
    text: str = ""
    counts: Mapping[str, int] = field(default_factory=dict)
    rules: tuple[Rule, ...] = ()
    key: str = ""


Scores = list[float]


def lookup(question: Question) -> Scores:
    """1 for what is stated."""
    return _of(question, {*question.known, *question.premises})


def rules(question: Question) -> Scores:
    """1 for what is stated or follows."""
    return _of(question, closure({*question.known, *question.premises}, question.rules))


def prior(question: Question) -> Scores:
    """How often each option is an object of the relation."""
    return [float(question.counts.get(option, 0)) for option in question.options]


def echo(question: Question) -> Scores:
    """1 for what is named in the text.

    >>> echo(Question("X", "type", ("cat", "animal"), text="A cat is an animal. X is"))
    [1.0, 1.0]
    """
    text = _words(question.text)
    return [float(_words(option) in text) for option in question.options]


def random(question: Question) -> Scores:
    """1 for an option that is drawn by hash of the question's key."""
    drawn = hash_key(0, "answer", question.key) % len(question.options)
    return [float(place == drawn) for place in range(len(question.options))]


ANSWERERS: Mapping[str, Callable[[Question], Scores]] = {
    "lookup": lookup,
    "lookup and rules": rules,
    "prior": prior,
    "echo": echo,
    "random": random,
}


def choose_option(scores: Sequence[float]) -> int | None:
    """Index of the chosen option: the first of those with the best score, None for silence.

    >>> choose_option([0, 2, 2]), choose_option([0, 0])
    (1, None)
    """
    best = max(scores)
    return list(scores).index(best) if best > 0 else None


def ranges(scores: Sequence[float], golds: Iterable[int]) -> list[tuple[int, int]]:
    """First and last place of each gold, ties as a range.

    >>> ranges([1, 0, 1], [2, 1])
    [(1, 2), (3, 3)]
    """
    spans, ordered = [], sorted(scores)
    for gold in golds:
        least, end = bisect_left(ordered, scores[gold]), bisect_right(ordered, scores[gold])
        spans.append((len(ordered) - end + 1, len(ordered) - least))
    return spans


def closure(known: Collection[Statement], rules: Sequence[Rule]) -> set[Statement]:
    """All that follows from `known`, itself included."""
    statements = set(known)
    while True:
        new = {fact for rule in rules for fact in _applied(rule, statements)} - statements
        if not new:
            return statements
        statements |= new


def _applied(rule: Rule, known: set[Statement]) -> Iterator[Statement]:
    bound: list[dict[str, str]] = [{}]
    for pattern in rule.body:
        pairs = (_matched(pattern, fact, one) for one in bound for fact in known)
        bound = [both for both in pairs if both is not None]
    for one in bound:
        yield Statement(*(one.get(term, term) for term in rule.head))


def _matched(pattern: Statement, fact: Statement, bound: dict[str, str]) -> dict[str, str] | None:
    bindings = dict(bound)
    for term, value in zip(pattern, fact, strict=True):
        wanted = bindings.setdefault(term, value) if term.startswith("?") else term
        if wanted != value:
            return None
    return bindings


def _of(question: Question, stated: set[Statement]) -> Scores:
    of = question.subject, question.relation
    known = {one.object for one in stated if (one.subject, one.relation) == of}
    return [float(option in known) for option in question.options]


@cache
def _words(text: str) -> str:
    """The words of a text, each between spaces."""
    return " ".join(["", *re.findall(r"\w+", text.casefold()), ""])


#: what a metric has to show of the answerers: it separates who infers from who looks up, and gives
#: neither an echo nor a prior credit
VERDICTS = SEPARATES, ECHO, PRIOR = "separates rules", "no credit to echo", "no credit to prior"


def verdicts(intervals: Mapping[str, Interval | None]) -> dict[str, bool]:
    """VERDICTS of a metric from the intervals of the answerers' values (None: not defined).

    It separates where the interval of `lookup and rules` lies wholly above that of `lookup`. It
    gives credit to `echo`, or to `prior`, where theirs lies wholly above that of `random`.
    """

    def above(one: str, other: str) -> bool:
        high, low = intervals[one], intervals[other]
        return high is not None and (low is None or high.low > low.high)

    return {
        SEPARATES: above("lookup and rules", "lookup"),
        ECHO: not above("echo", "random"),
        PRIOR: not above("prior", "random"),
    }

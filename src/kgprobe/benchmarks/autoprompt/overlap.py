"""Facts that are in more than one split: count them, and treat them as a switch says.

Facts are compared as label pairs, because the published files have no ids: two entities with the
same name count as one (docs/papers/autoprompt.md, Overlap).
"""

from collections.abc import Sequence
from typing import NamedTuple

from kgprobe.benchmarks.autoprompt.frames import TaskError
from kgprobe.benchmarks.funnel import Funnel


class Fact(NamedTuple):
    """A fact as labels, with its split; `key` identifies the row."""

    group: str
    split: str
    subject: str
    object: str
    key: str = ""

    @property
    def pair(self) -> tuple[str, str]:
        return self.subject, self.object


def settle(facts: Sequence[Fact], switch: str, funnel: Funnel, source: str) -> list[Fact]:
    """Return the facts that `switch` keeps, in order, and count every relation's shared facts.

    error: a test fact in train or dev raises TaskError; remove_train: it is removed from train and
    dev (and a dev fact from train); keep: published sets are unchanged, with a no-overlap score.
    """
    kept: list[Fact] = []
    bad = []
    for group in dict.fromkeys(fact.group for fact in facts):
        rows = [fact for fact in facts if fact.group == group]
        pairs = {s: {f.pair for f in rows if f.split == s} for s in ("train", "dev", "test")}
        learned = pairs["train"] | pairs["dev"]
        test = [f for f in rows if f.split == "test"]
        shared = [f for f in test if f.pair in learned]
        between = [f for f in rows if f.split == "dev" and f.pair in pairs["train"]]
        if shared:
            bad.append(f"{group}: {len(shared)} of {len(test)}, such as {shared[0].pair}")
        later = {"train": pairs["dev"] | pairs["test"], "dev": pairs["test"], "test": set()}
        left = rows
        if switch == "remove_train":
            left = [f for f in rows if f.pair not in later[f.split]]
        funnel.add(group, "test facts in train or dev", len(test), len(test) - len(shared))
        seen = len([f for f in rows if f.split == "dev"])
        funnel.add(group, "dev facts in train", seen, seen - len(between))
        funnel.add(group, f"overlap: {switch}", len(rows), len(left))
        kept += left
    if bad and switch == "error":
        raise TaskError(
            f"{source}: test facts that occur in train or dev; write overlap: remove_train to take "
            "them out of these, or keep to leave the sets as they are\n  " + "\n  ".join(bad[:12])
        )
    return kept


def flags(facts: Sequence[Fact]) -> list[list[str]]:
    """Return the flags that exclude each fact from the no-overlap subset, in the order of `facts`.

    pair, inverse: the fact, or the fact with its ends exchanged, is in an earlier split of its
    relation (train and dev for test, train for dev). within: the object's label is a substring of
    the subject's, case-sensitive. same: they are equal.
    """
    known: dict[str, set[tuple[str, str]]] = {}
    dev: dict[str, set[tuple[str, str]]] = {}
    for fact in facts:
        if fact.split == "train":
            known.setdefault(fact.group, set()).add(fact.pair)
        if fact.split == "dev":
            dev.setdefault(fact.group, set()).add(fact.pair)
    by_fact = []
    none: set[tuple[str, str]] = set()
    for fact in facts:
        earlier = [known.get(fact.group, none)] if fact.split != "train" else []
        earlier += [dev.get(fact.group, none)] if fact.split == "test" else []
        reasons = ["pair"] if any(fact.pair in e for e in earlier) else []
        back = (fact.object, fact.subject)
        reasons += ["inverse"] if any(back in e for e in earlier) else []
        reasons += ["within"] if fact.object in fact.subject else []
        reasons += ["same"] if fact.object == fact.subject else []
        by_fact.append(reasons)
    return by_fact


def others(facts: Sequence[Fact]) -> list[list[str]]:
    """Return further correct answers of each fact's subject and relation, of any split, sorted."""
    right: dict[tuple[str, str], set[str]] = {}
    for fact in facts:
        right.setdefault((fact.group, fact.subject), set()).add(fact.object)
    return [sorted(right[f.group, f.subject] - {f.object}) for f in facts]

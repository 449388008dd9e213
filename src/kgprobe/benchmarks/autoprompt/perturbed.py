"""Perturbed contexts: another object of the relation in the place of the true one.

What `fact` and `released` do (docs/papers/autoprompt.md, Decisions):

fact: one new object per fact, never a right answer of its subject, in the annotated slot only.
released: any other object; at test one per sentence, and in place of every occurrence of the old
one, which breaks the sentences of a fact up into groups.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from kgprobe.sampling import hash_key


class ObjectMention(NamedTuple):
    """A context, the object as it is written there, and where (-1: cut away)."""

    text: str
    surface: str
    start: int


class Change(NamedTuple):
    """A context after the exchange: its text, the new label and surface, the old surface."""

    text: str
    label: str
    surface: str
    old_surface: str


@dataclass(frozen=True)
class Pools:
    """Object labels of a relation, each with the ways in which its sentences write it, sorted.

    Every text stands beside its case-folded form.
    """

    surfaces: Mapping[tuple[str, str], tuple[tuple[str, str], ...]]

    @classmethod
    def of(cls, pairs: Iterable[tuple[str, str]]) -> "Pools":
        """From (label, surface) pairs."""
        forms: dict[str, set[str]] = {}
        for label, surface in pairs:
            forms.setdefault(label, set()).add(surface)
        surfaces = {n: tuple((s, s.casefold()) for s in sorted(forms[n])) for n in sorted(forms)}
        return cls({(label, label.casefold()): some for label, some in surfaces.items()})

    def list_surfaces(self, labels: Iterable[str]) -> list[str]:
        """All surfaces of the labels."""
        return [s for n in labels for s, _ in self.surfaces.get((n, n.casefold()), ())]

    def without(self, barred: Iterable[str]) -> list[tuple[str, list[str]]]:
        """(label, surfaces) that are no `barred` text, case ignored."""
        never = {text.casefold() for text in barred}
        left = [
            (label, [s for s, folded in surfaces if folded not in never])
            for (label, folded_label), surfaces in self.surfaces.items()
            if folded_label not in never
        ]
        return [(label, surfaces) for label, surfaces in left if surfaces]


def draw(options: Sequence[tuple[str, list[str]]], seed: int, *parts: str) -> tuple[str, str]:
    """(label, surface) out of `options` by hash of `parts`."""
    label, surfaces = options[hash_key(seed, "object", *parts) % len(options)]
    return label, surfaces[hash_key(seed, "surface", *parts) % len(surfaces)]


def perturb(
    pools: Pools,
    fact: str,
    old: str,
    right: Sequence[str],
    contexts: Sequence[ObjectMention],
    seed: int,
    mode: str,
    split: str,
) -> list[Change]:
    """The contexts of a fact with another object; none where the relation has no other.

    `old` is the object's label, `right` further right answers of the subject.
    """
    if mode == "released":
        return _released(pools, fact, old, contexts, seed, split)
    # what a right answer is called in other sentences is barred, too
    barred = [old, *right, *(m.surface for m in contexts), *pools.list_surfaces([old, *right])]
    options = pools.without(barred)
    if not options:
        return []
    label, surface = draw(options, seed, fact)
    return [Change(_slot(m, surface), label, surface, m.surface) for m in contexts]


def _released(
    pools: Pools, fact: str, old: str, contexts: Sequence[ObjectMention], seed: int, split: str
) -> list[Change]:
    options = pools.without([old])
    if not options:
        return []
    changes = []
    for place, mention in enumerate(contexts):
        if split == "test":
            label, surface = draw(options, seed, fact, str(place))
            changed = mention.text.replace(mention.surface, surface)
        else:
            label, surface = draw(options, seed, fact)
            changed = _slot(mention, surface)
        changes.append(Change(changed, label, surface, mention.surface))
    return changes


def _slot(mention: ObjectMention, surface: str) -> str:
    """The context with `surface` in the annotated place."""
    text, was, start = mention
    return text[:start] + surface + text[start + len(was) :]

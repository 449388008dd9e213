"""Perturbed contexts: replace the correct object by another object of the relation.

The modes `fact` and `released` (docs/papers/autoprompt.md, Decisions):

fact: one new object per fact, never a correct answer of its subject, in the annotated slot only.
released: any other object; in the test set one per sentence, replacing every occurrence of the old
object, which splits the sentences of a fact into groups.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from kgprobe.sampling import hash_key


class ObjectMention(NamedTuple):
    """A context, the object's surface form in it, and its start (-1: truncated)."""

    text: str
    surface: str
    start: int


class Change(NamedTuple):
    """A context after replacement: its text, the new label and surface form, the old one."""

    text: str
    label: str
    surface: str
    old_surface: str


@dataclass(frozen=True)
class Pools:
    """Object labels of a relation, each with its surface forms in sentences, sorted.

    Every text is paired with its case-folded form.
    """

    surfaces: Mapping[tuple[str, str], tuple[tuple[str, str], ...]]

    @classmethod
    def of(cls, pairs: Iterable[tuple[str, str]]) -> "Pools":
        """Create pools from (label, surface) pairs."""
        forms: dict[str, set[str]] = {}
        for label, surface in pairs:
            forms.setdefault(label, set()).add(surface)
        surfaces = {n: tuple((s, s.casefold()) for s in sorted(forms[n])) for n in sorted(forms)}
        return cls({(label, label.casefold()): some for label, some in surfaces.items()})

    def list_surfaces(self, labels: Iterable[str]) -> list[str]:
        """Return all surface forms of the labels."""
        return [s for n in labels for s, _ in self.surfaces.get((n, n.casefold()), ())]

    def without(self, barred: Iterable[str]) -> list[tuple[str, list[str]]]:
        """Return (label, surfaces) without `barred` texts, ignoring case."""
        never = {text.casefold() for text in barred}
        left = [
            (label, [s for s, folded in surfaces if folded not in never])
            for (label, folded_label), surfaces in self.surfaces.items()
            if folded_label not in never
        ]
        return [(label, surfaces) for label, surfaces in left if surfaces]


def draw(options: Sequence[tuple[str, list[str]]], seed: int, *parts: str) -> tuple[str, str]:
    """Draw (label, surface) from `options` by hash of `parts`."""
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
    """Return the contexts of a fact with another object; none if the relation has no other.

    `old` is the object's label, `right` further correct answers of the subject.
    """
    if mode == "released":
        return _released(pools, fact, old, contexts, seed, split)
    # also exclude the surface forms of correct answers in other sentences
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
    """Return the context with `surface` at the annotated position."""
    text, was, start = mention
    return text[:start] + surface + text[start + len(was) :]

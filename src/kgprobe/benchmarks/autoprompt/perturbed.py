"""Perturbed contexts: replace the correct object by another object of the relation.

The modes `fact` and `released` (docs/papers/autoprompt.md, Decisions):

fact: one new object per fact, never a correct answer of its subject, in the annotated slot only.
released: any other object; in the test set one per sentence, replacing every occurrence of the old
object, which splits the sentences of a fact into groups.
"""

from collections.abc import Iterable, Mapping, Sequence
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


#: label of an object of a relation -> its surface forms in sentences, both sorted
Pool = Mapping[str, Sequence[str]]


def pool_of(pairs: Iterable[tuple[str, str]]) -> Pool:
    """Return the pool of (label, surface) pairs."""
    forms: dict[str, list[str]] = {}
    for label, surface in sorted(set(pairs)):
        forms.setdefault(label, []).append(surface)
    return forms


def without(pool: Pool, barred: Iterable[str]) -> list[tuple[str, list[str]]]:
    """Return (label, surfaces) without `barred` texts, ignoring case."""
    never = {text.casefold() for text in barred}
    left = [
        (label, [surface for surface in surfaces if surface.casefold() not in never])
        for label, surfaces in pool.items()
        if label.casefold() not in never
    ]
    return [(label, surfaces) for label, surfaces in left if surfaces]


def draw(options: Sequence[tuple[str, list[str]]], seed: int, *parts: str) -> tuple[str, str]:
    """Draw (label, surface) from `options` by hash of `parts`."""
    label, surfaces = options[hash_key(seed, "object", *parts) % len(options)]
    return label, surfaces[hash_key(seed, "surface", *parts) % len(surfaces)]


def perturb(
    pool: Pool,
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
    barred = [old]
    if mode == "fact":
        # also exclude the surface forms of correct answers in other sentences
        forms = (surface for label in (old, *right) for surface in pool.get(label, ()))
        barred += [*right, *(mention.surface for mention in contexts), *forms]
    if not (options := without(pool, barred)):
        return []
    changes = []
    for place, (text, was, start) in enumerate(contexts):
        if mode == "released" and split == "test":
            label, surface = draw(options, seed, fact, str(place))
            changed = text.replace(was, surface)
        else:
            label, surface = draw(options, seed, fact)
            changed = text[:start] + surface + text[start + len(was) :]
        changes.append(Change(changed, label, surface, was))
    return changes

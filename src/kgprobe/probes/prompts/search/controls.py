"""Triggers that no search has found, as controls: random ones, and the found in another order."""

import itertools
from collections.abc import Sequence

import numpy as np

#: how many random triggers a prompt is compared with
DRAWS = 20


def random_triggers(
    allowed: Sequence[int], length: int, group: str, seed: int = 0, draws: int = DRAWS
) -> list[tuple[int, ...]]:
    """`draws` triggers of `length` tokens, uniform over `allowed` (what the filters leave).

    Repetitions within a trigger are possible, as in a search. The same seed and group give the same
    triggers whatever the order of `allowed`. Raises ValueError when nothing is allowed.
    """
    pool = np.unique(np.asarray(allowed, dtype=np.int64))
    if not len(pool):
        raise ValueError(f"group {group!r}: the filters leave no token to draw triggers from")
    generator = _generator(seed, f"random_triggers {group}")
    drawn = pool[generator.integers(len(pool), size=(draws, length))]
    return [tuple(int(token) for token in row) for row in drawn]


def shuffled_trigger(trigger: Sequence[int], group: str, seed: int = 0) -> tuple[int, ...]:
    """The tokens of a found trigger in another order, each order but the found one alike likely.

    A trigger with only one order (one token, or all the same) comes back as it is.
    """
    trigger = tuple(int(token) for token in trigger)
    generator = _generator(seed, f"shuffled_trigger {group}")
    if len(trigger) <= 8:
        orders = sorted(set(itertools.permutations(trigger)) - {trigger})
        return orders[int(generator.integers(len(orders)))] if orders else trigger
    while len(set(trigger)) > 1:
        order = tuple(trigger[i] for i in generator.permutation(len(trigger)))
        if order != trigger:
            return order
    return trigger


def names(prompt: str, draws: int = DRAWS) -> list[str]:
    """The names under which draws are reported: random_triggers:00 and so on."""
    return [f"{prompt}:{draw:02d}" for draw in range(draws)]


def _generator(seed: int, name: str) -> np.random.Generator:
    return np.random.default_rng([seed, *name.encode()])

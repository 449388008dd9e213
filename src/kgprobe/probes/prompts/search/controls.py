"""Controls of a search: triggers that were not searched, balanced data, other models.

Triggers: the initial one, random ones, the found one in another order. Balanced data: every label
of a group gets the same number of examples, which keeps the size of the split about the same;
labels with more lose some, chosen by seeded hash, labels with fewer are repeated. Transfer: the
text of a prompt found on one model is encoded for another, and the record says so.
"""

import itertools
from collections.abc import Sequence

import numpy as np
import polars as pl

from kgprobe.probes.models.load import Loaded
from kgprobe.probes.prompts.search.files import PromptFile, PromptFileError, prompt_of
from kgprobe.probes.text.encode import pieces
from kgprobe.probes.text.prompts import LabelError, label_token
from kgprobe.sampling import keys
from kgprobe.templates import Template, cut, parse, resized, runs_of, word_of

#: number of random triggers that a prompt is compared with
DRAWS = 20


def random_triggers(
    allowed: Sequence[int], length: int, group: str, seed: int = 0, draws: int = DRAWS
) -> list[tuple[int, ...]]:
    """Draw `draws` triggers of `length` tokens, uniform over `allowed` (filtered tokens).

    Repetitions within a trigger are possible, as in a search. The same seed and group give the same
    triggers whatever the order of `allowed`. Raises ValueError when nothing is allowed.
    """
    pool = np.unique(np.asarray(allowed, dtype=np.int64))
    if not len(pool):
        raise ValueError(f"group {group!r}: the filters leave no token to draw triggers from")
    generator = np.random.default_rng([seed, *f"random_triggers {group}".encode()])
    drawn = pool[generator.integers(len(pool), size=(draws, length))]
    return [tuple(int(token) for token in row) for row in drawn]


def shuffled_trigger(trigger: Sequence[int], group: str, seed: int = 0) -> tuple[int, ...]:
    """Permute the tokens of a found trigger, uniformly over all other orders.

    A trigger with only one order (one token, or all the same) is returned unchanged.
    """
    trigger = tuple(int(token) for token in trigger)
    generator = np.random.default_rng([seed, *f"shuffled_trigger {group}".encode()])
    if len(trigger) <= 8:
        orders = sorted(set(itertools.permutations(trigger)) - {trigger})
        return orders[int(generator.integers(len(orders)))] if orders else trigger
    while len(set(trigger)) > 1:
        order = tuple(trigger[i] for i in generator.permutation(len(trigger)))
        if order != trigger:
            return order
    return trigger


def names(prompt: str, draws: int = DRAWS) -> list[str]:
    """Return the names under which draws are reported: random_triggers:00 and so on."""
    return [f"{prompt}:{draw:02d}" for draw in range(draws)]


def balance(
    examples: pl.DataFrame, seed: int = 0, splits: tuple[str, ...] = ("train", "dev")
) -> pl.DataFrame:
    """Balance the labels in each (group, split) of `splits`; other splits are untouched.

    The count is the mean number of examples per label, rounded up. A repeated example keeps its
    fact, and its name gets "~2", "~3" and so on.
    """
    untouched = examples.filter(~pl.col("split").is_in(splits))
    parts = [untouched]
    chosen = examples.filter(pl.col("split").is_in(splits))
    for stratum in chosen.partition_by("group", "split", maintain_order=True):
        parts.append(_equalized(stratum, seed))
    return pl.concat(parts).sort("group", "split", "example")


def _equalized(stratum: pl.DataFrame, seed: int) -> pl.DataFrame:
    wanted = -(-stratum.height // stratum["label"].n_unique())
    order = stratum.with_columns(
        keys(stratum, seed, ["group", "split", "example"], "balanced").alias("_key")
    ).sort("label", "_key", "example")
    place = pl.int_range(pl.len()).over("label")
    size = pl.len().over("label")
    # an example at position p of n is copied for all turns t with p + t n < wanted
    turns = ((wanted - place + size - 1) // size).clip(lower_bound=0)
    return (
        order.with_columns(turns.alias("_turns"))
        .with_columns(_turn=pl.int_ranges(1, pl.col("_turns") + 1))
        .filter(pl.col("_turns") > 0)
        .explode("_turn")
        .with_columns(
            example=pl.when(pl.col("_turn") > 1)
            .then(pl.format("{}~{}", "example", "_turn"))
            .otherwise("example")
        )
        .select(stratum.columns)
    )


def transfer(prompt: PromptFile, loaded: Loaded) -> PromptFile:
    """Re-encode a prompt for `loaded`: triggers and label tokens by their text, which may change
    their number.

    The text after [P] is cut for a causal model; a template with triggers or fields there cannot be
    transferred to one. Label tokens that are not a single token of `loaded` are dropped; a class
    must keep one. `data.transferred_from` names the original model; scores are not transferred.
    Raises PromptFileError, also for triggers in several places.
    """
    where = f"prompt {prompt.text!r} of {prompt.made_for.get('model')!r}"
    text = prompt.template
    if loaded.spec.kind == "causal":
        text, after = cut(text)
        if parse(after).parts:
            raise PromptFileError(
                f"{where}: {after.strip()!r} stands behind [P], but {loaded.spec.model} is causal"
            )
    runs = runs_of(text)
    if sum(runs) != len(prompt.trigger):
        raise PromptFileError(
            f"{where}: {len(prompt.trigger)} trigger tokens for {sum(runs)} places"
        )
    if len(runs) > 1:
        raise PromptFileError(
            f"{where}: its text does not say which of {len(runs)} places has what"
        )
    # a first word has its space, unless it starts the text
    opens = Template.parse(text, loaded.spec.kind).opened
    lead = "" if opens or prompt.text.startswith(" ") else " "
    trigger: list[int] = pieces(loaded.tokenizer, [lead + prompt.text], opens)[0] if runs else []
    if runs and not trigger:
        raise PromptFileError(f"{where}: its text gives no token of {loaded.spec.model}")
    template = Template.parse(resized(text, [len(trigger)] * len(runs)), loaded.spec.kind)
    return prompt_of(
        loaded,
        template,
        trigger,
        _labels(prompt, loaded, template, where),
        mode=prompt.mode,
        settings=prompt.settings,
        data={**prompt.data, "transferred_from": prompt.made_for, "tokens_there": prompt.tokens},
    )


def _labels(
    prompt: PromptFile, loaded: Loaded, template: Template, where: str
) -> dict[str, list[int]]:
    labels: dict[str, list[int]] = {}
    for name, tokens in prompt.label_tokens.items():
        ids = []
        for token in tokens:
            word = word_of(token).removeprefix("##")
            try:
                ids.append(label_token(loaded, template, word))
            except LabelError:
                continue
        if not ids:
            raise PromptFileError(
                f"{where}: class {name!r}: none of {', '.join(tokens)} is a single token of "
                f"{loaded.spec.model}"
            )
        labels[name] = list(dict.fromkeys(ids))
    return labels

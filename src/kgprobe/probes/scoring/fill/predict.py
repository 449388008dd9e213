"""Filling a slot: top-k tokens, best whole fillings, ranks of the golds (docs/scoring.md, Fill).

    fill_items = [FillItem("t1", 0, "[X] was born in [Y] .", "Dante", golds=("Florence",))]
    fills = predict(load_model(spec), fill_items, k=5)
    fills.top["text"], fills.golds["best"]

One call for all kinds of model:

    masked   n masks for a gold of n tokens, all read in one pass
    causal   the slot is at the end; a beam runs to the end of the phrase, or for exactly n tokens
    seq2seq  a sentinel in the mask slot; a beam runs to the closing sentinel, or for n tokens
    api      the server's greedy text, and its other first tokens continued greedily
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

from kgprobe.probes.api.client import Client
from kgprobe.probes.models.batching import Budget, budget_for
from kgprobe.probes.models.load import Loaded
from kgprobe.probes.scoring.fill import api, written
from kgprobe.probes.scoring.fill import masked as fill_masked
from kgprobe.probes.scoring.fill.rows import FillItem, Fills, FillSettings

__all__ = ["FillItem", "FillSettings", "Fills", "predict"]


def predict(
    answerer: Loaded | Client,
    fill_items: Sequence[FillItem],
    k: int = 5,
    settings: FillSettings | None = None,
    *,
    budget: Budget | None = None,
    progress: Callable[[int], object] = lambda done: None,
    may_be_empty: bool = False,
) -> Fills:
    """Return the k best fillings of every item: columns FILLS and FILL_GOLDS, and the record.

    Positions from 0 on are lists of single tokens, position -1 is the whole filling. With k = 0
    only the golds are scored, if possible. Raises ValueError for settings that the kind of
    model does not support, and if no item can be filled, unless `may_be_empty`.
    """
    settings = replace(settings or FillSettings(), k=k)
    if isinstance(answerer, Client):
        _refuse("an API", k < 1, "shows no ranks of golds; ask for k of at least 1")
        _refuse("an API", settings.length == "gold", "knows no length in tokens; use length free")
        fills = api.predict(answerer, fill_items, settings, progress)
        return _check(fills, fill_items, 0 if may_be_empty else k)
    name = f"the {answerer.spec.kind} model {answerer.spec.model}"
    masked = answerer.spec.kind == "masked"
    engine = fill_masked.predict if masked else written.predict
    _refuse(name, masked and settings.length == "free", "fills a given number of masks")
    unread = not masked and settings.strategy != "parallel"
    _refuse(name, unread, f"has no masks to fill by {settings.strategy!r}")
    budget = budget or budget_for(answerer)
    fills = engine(answerer, fill_items, settings, budget, progress)
    return _check(fills, fill_items, 0 if may_be_empty else k)


def _refuse(name: str, is_wrong: bool, why: str) -> None:
    if is_wrong:
        raise ValueError(f"fill: {name} {why}")


def _check(fills: Fills, fill_items: Sequence[FillItem], k: int) -> Fills:
    if k and not len(fills.top["item"]):
        why = "has an answer"
        if fills.left_out:
            reasons = (f"{reason} ({n} times)" for reason, n in fills.record["left_out"].items())
            item, template, *_ = fills.left_out[0]
            why = f"can be asked: {'; '.join(reasons)}; the first: {item}, template {template}"
        raise ValueError(f"fill: none of {len(fill_items)} items {why}")
    return fills

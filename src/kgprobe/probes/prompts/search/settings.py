"""Settings of the trigger search, and the modes for differences between paper and released code.

Source: docs/papers/autoprompt.md, Search and Decisions.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class SearchSettings:
    """Settings of one search, as settings/probes.py (SearchChanges) describes them.

    `mode` (paper, released or default) is the source of the other values. `accept` strict compares
    on the same examples. Batches that are `fresh` may overlap, as in the released code. Under
    `fill_all` triggers with an initial token count as minus infinity. `initial` is tokenized after
    a space, unless the trigger starts the template.
    """

    mode: str = "default"
    task: str = "facts"
    candidates: int = 10
    accumulate: int = 1
    batch: int = 56
    evaluation: int = 0
    iterations: int = 1000
    restarts: int = 3
    seed: int = 0
    metric: str = "likelihood"
    dev_metric: str = "likelihood"
    accept: str = "strict"
    batches: str = "disjoint"
    fill_all: bool = True
    initial: str = ""
    special_filter: str = "all"
    label_filter: bool = True
    gold_filter: str = "text"
    capital_filter: str = "all"
    habits: str = "default"
    truncate: str = ""


MODES = ("paper", "released", "default")

#: Differences between `mode: released` and the released code; a run in that mode prints them.
NOT_RELEASED = (
    "examples are drawn by a generator of our own: the same seed gives other batches",
    "label tokens are masked where the code pads them with token 0 (wrong for RoBERTa)",
    "a search that leaves masks in the trigger is an error, and while one is left no trigger is "
    "the best of dev",
    "settings are not chosen by hand: one search per prompt, label tokens taken from the top",
    "overlap of test and training facts is a switch of its own (prompt_tasks.facts.overlap): the "
    "published files have no ids to compare by",
    "batch size and iterations of the low-data curves are ours: none are published",
)

#: k, A, B and iterations of the published commands.
SIZES: Mapping[str, dict[str, int]] = {
    "facts": {"candidates": 10, "accumulate": 1, "batch": 56, "iterations": 1000},
    "relation_extraction": {"candidates": 10, "accumulate": 1, "batch": 32, "iterations": 500},
    "sst2": {"candidates": 100, "accumulate": 30, "batch": 24, "iterations": 180},
    "sick": {"candidates": 10, "accumulate": 10, "batch": 120, "iterations": 100},
}


def settings_for(mode: str, task: str, kind: str, **overrides: Any) -> SearchSettings:
    """Return the settings of a mode for a task and a kind of model; `overrides` set single
    fields. Raises ValueError for an unknown mode."""
    if mode not in MODES:
        raise ValueError(f"unknown mode {mode!r} of a search; valid: {', '.join(MODES)}")
    facts = task in ("facts", "relation_extraction")
    chosen: dict[str, Any] = {**SIZES[task], "fill_all": kind == "masked"}
    if not facts:
        # the published sentiment trigger contains a capital
        chosen |= {"gold_filter": "off", "capital_filter": "off"}
    if mode == "paper":
        chosen |= {"accept": "best_of_k", "restarts": 1}
    elif mode == "released":
        chosen |= _released(facts, kind)
    elif facts:
        chosen |= {"evaluation": 256 if task == "facts" else 0}
    return SearchSettings(**{**chosen, "mode": mode, "task": task, **overrides})


def _released(facts: bool, kind: str) -> dict[str, Any]:
    metric = "likelihood" if facts else "accuracy"
    filters: dict[str, Any] = {"special_filter": "special", "gold_filter": "exact",
                               "capital_filter": "slow_tokenizer"}  # fmt: skip
    if not facts:  # the published commands of these tasks have the filter off
        filters = {"special_filter": "off", "label_filter": False}
    return {
        "metric": metric,
        "dev_metric": metric,
        "batches": "fresh",
        "fill_all": facts and kind == "masked",
        "restarts": 1,
        "habits": "released",
        **filters,
    }

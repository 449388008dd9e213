"""What a finished trigger search leaves: summaries of its restarts, and the prompt file."""

import platform
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import torch
import transformers
from numpy.typing import NDArray

from kgprobe.metrics.intervals import standard_error, wilson
from kgprobe.probes.models.load import Loaded
from kgprobe.probes.prompts.trigger_data import Problem, SearchError
from kgprobe.probes.prompts.trigger_files import PromptFile, prompt_of, text_of
from kgprobe.probes.prompts.trigger_filters import spelled_like
from kgprobe.probes.prompts.trigger_state import State
from kgprobe.probes.prompts.triggers import initial_token

if TYPE_CHECKING:
    from kgprobe.probes.prompts.autoprompt import Search

#: Decimals of the numbers in a prompt file: what batches of another size do to the last bits of
#: float32 stays out of it, but for a value at the border of rounding.
DECIMALS = 3
TRACE = ["restart", "iteration", "swaps", "current", "best", "accepted", "dev"]


def label_table(known: Problem) -> dict[str, list[int]]:
    """Class -> ids that answer it; empty where answers are gold objects."""
    if not known.closed:
        return {}
    rows = zip(known.classes, known.labels, known.known, strict=True)
    return {name: ids[mask].tolist() for name, ids, mask in rows}


def summary(search: "Search", state: State) -> dict[str, Any]:
    """One restart: its seed, what it cost (counts of State), what it found.

    `dev` is None, and `unfilled` counts them, where places were left without a token.
    """
    unfilled = state.trigger.count(initial_token(search.loaded))
    found: dict[str, Any] = {
        "restart": state.restart,
        "seed": search.seed(state.restart),
        "accepted": state.accepted,
        "sequences": state.sequences,
        "compared": state.compared,
        "looked_up": state.looked_up,
        "last": state.trigger,
        "unfilled": unfilled if state.best is None else 0,
        "dev": None if state.best is None else state.best[0],
    }
    if state.best is not None:
        _, iteration, trigger = state.best
        found |= {"iteration": iteration, "trigger": trigger}
        found["text"] = text_of(search.loaded, trigger)
    return found


def result(search: "Search", state: State, watched: Sequence[str]) -> PromptFile:
    """The prompt file of a finished search: the restart that is best by dev, the first of equals.

    Raises SearchError when no restart has filled every place.
    """
    ended = [r for r in state.finished if r["dev"] is not None]
    if not ended:
        raise SearchError(
            f"{search.name or 'search'}: {state.finished[0]['unfilled']} initial tokens are left "
            f"in the trigger after {search.settings.iterations} iterations: give it more "
            "iterations, or allow them with fill_all: false"
        )
    chosen = max(ended, key=lambda r: (r["dev"], -r["restart"]))
    scores = {}
    for metric in ("likelihood", "accuracy"):
        scores[f"dev_{metric}"] = _score(
            search.dev_values(state, chosen["trigger"], metric), metric
        )
    return prompt_of(
        search.loaded,
        search.template,
        chosen["trigger"],
        label_table(search.problem),
        mode=search.settings.mode,
        settings=asdict(search.settings),
        data=_data(search),
        filters=search.counts,
        trace=state.trace,
        restarts=[{**r, "dev": r["dev"] and round(r["dev"], DECIMALS)} for r in state.finished],
        scores=scores,
        record={
            "name": search.name,
            "initial": search.initial,
            "chosen": chosen["restart"],
            "gold_elsewhere": spelled_like(search.vocabulary, chosen["trigger"], watched),
            "trace_columns": TRACE,
            "notes": search.scorer.parts.notes,
            "torch": torch.__version__,
            "transformers": transformers.__version__,
            "device": _device(search.loaded),
        },
    )


def _data(search: "Search") -> dict[str, Any]:
    known = search.problem
    return {
        "train": len(known.train),
        "dev": len(known.dev),
        "dropped": known.dropped,
        "cut": {"train": known.train.encoded.cut, "dev": known.dev.encoded.cut},
        "sha256": search.owner["data"],
    }


def _score(values: NDArray[Any], metric: str) -> dict[str, Any]:
    """Mean with its interval: Wilson for accuracy, 1.96 standard errors for log-likelihood."""
    mean, n = float(values.mean()), len(values)
    if metric == "accuracy":
        low, high = wilson(float(values.sum()), n)
    else:
        half = 1.959964 * standard_error(values.tolist())
        low, high = mean - half, mean + half
    found = {"value": mean, "low": low, "high": high}
    return {"metric": metric, "n": n, **{k: round(v, DECIMALS) for k, v in found.items()}}


def _device(loaded: Loaded) -> str:
    if loaded.device.type == "cuda":
        return str(torch.cuda.get_device_name(loaded.device))
    return f"{loaded.device.type} {platform.machine()}"

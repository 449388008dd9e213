"""AutoPrompt: trigger tokens found by gradients (docs/papers/autoprompt.md, Search).

gradient at the trigger  ->  k tokens with the largest first-order gain at one position
score them on examples   ->  move there (accept)  ->  the best trigger by the dev set is kept
"""

import base64
import hashlib
import json
import platform
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
from numpy.typing import NDArray

from kgprobe.files import atomic
from kgprobe.job import log, progress
from kgprobe.metrics.intervals import standard_error, wilson
from kgprobe.probes.models.batching import Budget, Ints
from kgprobe.probes.models.device import card, one_thread
from kgprobe.probes.models.finite import NotFiniteError
from kgprobe.probes.models.load import Loaded
from kgprobe.probes.prompts.search.candidates import (
    filter_candidates,
    spelled_like,
    vocabulary_of,
)
from kgprobe.probes.prompts.search.files import PromptFile, prompt_of, text_of
from kgprobe.probes.prompts.search.scores import Example as Example
from kgprobe.probes.prompts.search.scores import Floats, Scorer, problem, top
from kgprobe.probes.prompts.search.scores import SearchError as SearchError
from kgprobe.probes.prompts.search.settings import SearchSettings
from kgprobe.probes.prompts.search.settings import settings_for as settings_for
from kgprobe.probes.text.prompts import initial_token, trigger_pieces
from kgprobe.templates import Template

#: Difference of scores, in nats per example, below which prefix sharing may change the order of
#: candidates: these are scored again without it.
NEAR = 2e-5


def search(
    loaded: Loaded,
    template: Template,
    train: Sequence[Example],
    dev: Sequence[Example],
    settings: SearchSettings,
    state_path: str | Path | None = None,
    labels: Mapping[str, Sequence[int | str]] | None = None,
    watched: Sequence[str] = (),
    name: str = "",
    budget: Budget | None = None,
) -> PromptFile:
    """Return the best trigger by dev over all restarts, with its trace.

    Examples are (fields, label). With `labels` (class -> token ids or words) labels are classes,
    else gold objects. `watched` are gold objects of dev and test: trigger tokens spelled like one
    are counted. `name` (a relation) goes into the seeds. With `state_path` a stopped search
    resumes from its state. Raises SearchError; see `problem`, `filter_candidates`.
    """
    with one_thread() if loaded.device.type == "cpu" else nullcontext():
        path = None if state_path is None else Path(state_path)
        run = Search(loaded, template, settings, path, name, train, dev, labels, budget)
        return result(run, run.run(), watched)


class TriggerScores:
    """Values of triggers on training examples, so that no pair is scored twice.

    Stored are triggers that differ from the current one in at most one token, up to ROOM values.
    """

    #: maximum values (float64): 16 MB, which a task of many examples would exceed for no gain
    ROOM = 2_000_000

    def __init__(self, examples: int) -> None:
        self.examples = examples
        self._values: dict[tuple[int, ...], Floats] = {}

    def of(self, trigger: Sequence[int], examples: Ints) -> Floats:
        """Return the values of a trigger on these examples, NaN if unknown."""
        row = self._values.get(tuple(trigger))
        return np.full(len(examples), np.nan) if row is None else row[examples]

    def add(self, trigger: Sequence[int], examples: Ints, values: Floats) -> None:
        """Store a trigger's values on examples; if there is no room, drop the oldest trigger."""
        key = tuple(trigger)
        if key not in self._values:
            if len(self._values) >= max(self.ROOM // self.examples, 1):
                del self._values[next(iter(self._values))]
            self._values[key] = np.full(self.examples, np.nan)
        self._values[key][examples] = values

    def moved(self, trigger: Sequence[int]) -> None:
        """Drop triggers that differ from the new current trigger in more than one token."""
        for key in list(self._values):
            if sum(a != b for a, b in zip(key, trigger, strict=True)) > 1:
                del self._values[key]

    def state(self) -> dict[str, Any]:
        """Return the triggers in order, and their values, as JSON values."""
        rows = b"".join(values.tobytes() for values in self._values.values())
        triggers = [list(key) for key in self._values]
        return {"triggers": triggers, "values": base64.b64encode(rows).decode()}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restore from a state."""
        rows = np.frombuffer(base64.b64decode(state["values"]), dtype=np.float64)
        table = rows.reshape(-1, self.examples).copy()
        triggers = map(tuple, state["triggers"])
        self._values = dict(zip(triggers, table, strict=True))


@dataclass
class State:
    """The search before iteration `iteration` of restart `restart`.

    `best` is [dev value, iteration, trigger] or None, `known` the dev values of triggers so far,
    `scored` is as in TriggerScores, `finished` has the summaries of earlier restarts. `sequences`
    counts forward passes of prompts; of the (trigger, example) pairs compared,
    `compared` counts those scored by the model and `looked_up` the known ones.
    """

    restart: int = 0
    iteration: int = 0
    trigger: list[int] = field(default_factory=list)
    best: list[Any] | None = None
    known: list[list[Any]] = field(default_factory=list)
    draws: dict[str, Any] = field(default_factory=dict)
    accepted: int = 0
    sequences: int = 0
    compared: int = 0
    looked_up: int = 0
    scored: dict[str, Any] = field(default_factory=lambda: {"triggers": [], "values": ""})
    trace: list[list[Any]] = field(default_factory=list)
    finished: list[dict[str, Any]] = field(default_factory=list)


class Search:
    """One search: the problem, the scorer, and its state (in a file: written after every iteration,
    in a folder named by a hash of all that the search depends on)."""

    def __init__(
        self,
        loaded: Loaded,
        template: Template,
        settings: SearchSettings,
        path: Path | None,
        name: str,
        train: Sequence[Example],
        dev: Sequence[Example],
        labels: Mapping[str, Sequence[int | str]] | None = None,
        budget: Budget | None = None,
    ) -> None:
        if not template.triggers:
            raise SearchError(f"template {template.text!r}: no [T], nothing to search")
        self.loaded, self.template, self.settings = loaded, template, settings
        self.path, self.name = path, name
        self.initial = _initial(loaded, template, settings)
        self.problem = problem(loaded, template, train, dev, settings, labels, self.initial[0])
        self.vocabulary = vocabulary_of(loaded)
        tokens = self.problem.labels[self.problem.known].tolist()
        if labels is None:
            # including those of dropped facts: a token may be spelled like a gold of several tokens
            golds = {label for _, label in train}
            pairs = zip(self.problem.classes, tokens, strict=True)
            forbidden: Any = (), golds, [token for word, token in pairs if word in golds]
        else:
            forbidden = (tokens,)
        self.kept, self.counts = filter_candidates(self.vocabulary, settings, *forbidden)
        self.scorer = Scorer(loaded, self.problem, budget)
        self.scored = TriggerScores(len(self.problem.train))
        self._precise: Scorer | None = None
        # pairs of this iteration: the state counts them when the iteration ends
        self._compared = self._looked_up = 0

    # -- the loop -----------------------------------------------------------------------------

    def run(self) -> State:
        """Run all restarts, from the saved state if there is one."""
        if self.path is not None and self.path.is_file():
            state = self._load(self.path)
            log.info("search goes on: restart %d, iteration %d", state.restart, state.iteration)
            self.scored.restore(state.scored)
            self._evaluate_initial(state)
        else:
            state = self._opened(State())
        total = self.settings.iterations * self.settings.restarts
        bar = progress(total=total, desc=self.name or "search", unit="it")
        bar.update(state.restart * self.settings.iterations + state.iteration)
        while state.restart < self.settings.restarts:
            draws = np.random.default_rng(0)
            draws.bit_generator.state = state.draws
            while state.iteration < self.settings.iterations:
                self._iterate(state, draws)
                (_, _, swaps, current, score, _, _), best = state.trace[-1], state.best
                bar.set_postfix_str(
                    f"swap {swaps}, {current} -> {score}, "
                    f"dev {'-' if best is None else format(best[0], '.4f')}, "
                    f"{text_of(self.loaded, state.trigger)!r}",
                    refresh=False,
                )
                bar.update(1)
            if state.best is None and not self._unfilled(state.trigger):
                # nothing was accepted
                state.best = [self._dev(state, state.trigger), -1, list(state.trigger)]
            state.finished.append(summary(self, state))
            state.restart += 1
            state = self._opened(state)
            self._save(state)
        bar.close()
        return state

    def _save(self, state: State) -> None:
        if self.path is not None:
            with atomic(self.path) as temporary:
                temporary.write_text(json.dumps(asdict(state)))

    def _load(self, path: Path) -> State:
        try:
            return State(**json.loads(path.read_text()))
        except (ValueError, TypeError) as error:
            raise SearchError(f"{path}: not the state of a search ({error}); remove it") from error

    def _opened(self, state: State) -> State:
        """Return the state at the start of a restart."""
        state.iteration, state.accepted, state.sequences = 0, 0, 0
        state.compared, state.looked_up = 0, 0
        self.scored = TriggerScores(len(self.problem.train))
        state.scored = self.scored.state()
        state.trigger, state.best, state.known = list(self.initial), None, []
        state.draws = dict(np.random.default_rng(self.seed(state.restart)).bit_generator.state)
        self._evaluate_initial(state)
        return state

    def _evaluate_initial(self, state: State) -> None:
        """Make the initial trigger the best one so far, unless that is done already; not in the
        released code, where it is not a candidate."""
        opts = self.settings
        is_open = state.restart < opts.restarts and state.iteration == 0 and state.best is None
        if is_open and not opts.fill_all and opts.mode != "released":
            state.best = [self._dev(state, state.trigger), -1, list(state.trigger)]

    def seed(self, restart: int) -> int:
        text = repr((self.settings.seed, self.name, restart))
        return int(hashlib.sha256(text.encode()).hexdigest()[:12], 16)

    def _iterate(self, state: State, draws: np.random.Generator) -> None:
        before = self.scorer.rows_fed
        gradient_batches, evaluation = self._batches(draws)
        gradient = self._gradient(state, gradient_batches)
        place, tokens = self._candidates(gradient, draws)
        tried = [[*state.trigger[:place], t, *state.trigger[place + 1 :]] for t in tokens]
        self._compared = self._looked_up = 0
        scores, current = self._scores(state, evaluation, tried)
        best = int(np.argmax(scores))  # the first of equal ones
        accepted = self.settings.accept == "best_of_k" or bool(
            scores[best] > (-np.inf if self._unfilled(state.trigger) else current)
        )
        dev = None
        if accepted:
            trigger = tried[best]
            # before the state changes: if it fails, the state before this iteration is saved
            dev = None if self._unfilled(trigger) else self._dev(state, trigger)
            state.trigger = trigger
            state.accepted += 1
            self.scored.moved(trigger)
            if dev is not None and (state.best is None or dev > state.best[0]):
                state.best = [dev, state.iteration, list(trigger)]
        n = len(evaluation)
        mean = None if current is None else round(current / n, DECIMALS)
        state.trace.append(
            [state.restart, state.iteration, [[place, tokens[best]]], mean,
             round(float(scores[best]) / n, DECIMALS), int(accepted),
             None if dev is None else round(dev, DECIMALS)]
        )  # fmt: skip
        state.compared += self._compared
        state.looked_up += self._looked_up
        state.sequences += self.scorer.rows_fed - before
        state.iteration += 1
        state.draws = dict(draws.bit_generator.state)
        if self.path is not None:
            state.scored = self.scored.state()
        self._save(state)

    def _unfilled(self, trigger: Sequence[int]) -> bool:
        """Return whether the trigger still contains an initial token."""
        return self.settings.fill_all and initial_token(self.loaded) in trigger

    def _candidates(self, gradient: Floats, draws: np.random.Generator) -> tuple[int, list[int]]:
        """Return (position, tokens) of the candidates of one iteration: swaps at one position, by
        the gradient of the loss (m x width)."""
        place = int(draws.integers(len(gradient)))
        scores = self.scorer.candidate_scores(gradient[place], self.kept)
        return place, top(scores, self.settings.candidates).tolist()

    def _batches(self, draws: np.random.Generator) -> tuple[list[Ints], Ints]:
        """Return (batches for the gradient, examples for scoring candidates)."""
        opts, n = self.settings, len(self.problem.train)
        size, wanted = opts.accumulate * opts.batch, opts.evaluation or opts.accumulate * opts.batch
        order = draws.permutation(n)
        if opts.batches == "fresh":
            first, second = order[:size], draws.permutation(n)[:wanted]
        else:
            first = order[: min(size, max(n // 2, 1))]
            second = order[len(first) : len(first) + wanted] if n > 1 else order
        return [first[i : i + opts.batch] for i in range(0, len(first), opts.batch)], second

    def _gradient(self, state: State, batches: list[Ints]) -> Floats:
        """Compute the gradient of the loss, a mean over batches of means over examples."""
        examples = np.concatenate(batches)
        weights = np.concatenate([np.full(len(b), 1 / (len(b) * len(batches))) for b in batches])
        trigger = state.trigger
        return self._finite(state, lambda scorer: scorer.gradient(examples, weights, trigger))

    def _scores(
        self, state: State, examples: Ints, triggers: list[list[int]]
    ) -> tuple[Floats, float | None]:
        """Return sums over the examples of the candidates, and of the current trigger (or None).

        Known values of a trigger on an example are looked up; with a float32 copy all values
        are computed again, and none are stored.
        """
        strict = self.settings.accept == "strict"
        stack = [*triggers, state.trigger] if strict else triggers
        metric = self.settings.metric
        known = {tuple(t): self.scored.of(t, examples) for t in stack}
        scorers: list[Scorer] = []

        def ask(scorer: Scorer) -> Floats:
            scorers.append(scorer)
            if scorer is not self.scorer:
                return scorer.values("train", examples, stack, metric)
            values = scorer.values("train", examples, stack, metric, known=known)
            for trigger, row in zip(stack, values, strict=True):
                self.scored.add(trigger, examples, row)
            left = sum(int(np.isnan(row).sum()) for row in known.values())
            self._compared, self._looked_up = left, len(known) * len(examples) - left
            return values

        table = self._finite(state, ask)
        sums = table.sum(1)
        if scorers[-1].shares and metric == "likelihood":
            near = np.flatnonzero(sums >= sums.max() - NEAR * len(examples))
            if len({tuple(stack[i]) for i in near}) > 1:
                some = [stack[i] for i in near]
                again = self._finite(
                    state, lambda one: one.values("train", examples, some, metric, share=False)
                )
                sums[near] = again.sum(1)
        return (sums[:-1], float(sums[-1])) if strict else (sums, None)

    def _finite(self, state: State, ask: Callable[[Scorer], Floats]) -> Floats:
        """Call `ask` on the scorer; if its numbers are not finite, repeat the step in float32.

        Raises SearchError, after saving the state before this iteration, if that does not help.
        """
        try:
            return ask(self.scorer)
        except NotFiniteError as error:
            log.warning("%s; the step is repeated in float32", error)
        try:
            self._precise = self._precise or self.scorer.in_float32()
            return ask(self._precise)
        except NotFiniteError as error:
            self._save(state)
            raise SearchError(
                f"{self.name or 'search'}: in float32, too, {error}; restart {state.restart}, "
                f"iteration {state.iteration}, trigger {state.trigger}; the state before this "
                "iteration is saved"
            ) from error

    def _dev(self, state: State, trigger: Sequence[int]) -> float:
        """Return the mean dev metric of a trigger, looked up if it is known."""
        for known, value in state.known:
            if known == list(trigger):
                return float(value)
        value = float(self.dev_values(state, trigger, self.settings.dev_metric).mean())
        state.known.append([list(trigger), value])
        return value

    def dev_values(self, state: State, trigger: Sequence[int], metric: str) -> Floats:
        """Return the values of a trigger on all dev examples."""
        everything = np.arange(len(self.problem.dev))
        values = self._finite(state, lambda one: one.values("dev", everything, [trigger], metric))
        return np.asarray(values[0])


def _initial(loaded: Loaded, template: Template, settings: SearchSettings) -> list[int]:
    """Return the ids of the initial trigger."""
    if not settings.initial:
        return [initial_token(loaded)] * template.triggers
    ids = trigger_pieces(loaded, template, settings.initial, settings.habits)
    if len(ids) != template.triggers:
        shown = loaded.tokenizer.convert_ids_to_tokens(ids)
        raise SearchError(
            f"initial trigger {settings.initial!r} has {len(ids)} tokens {shown}, template "
            f"{template.text!r} has {template.triggers} places"
        )
    return ids


#: Decimals of the numbers in a prompt file, which hide the effect of the batch size on the last
#: bits of float32, except for values at the border of rounding.
DECIMALS = 3
TRACE = ["restart", "iteration", "swaps", "current", "best", "accepted", "dev"]


def summary(search: Search, state: State) -> dict[str, Any]:
    """Summarize one restart: its seed, its cost (counters of State) and its result.

    `dev` is None, and `unfilled` counts initial tokens, if some are left in the trigger.
    """
    unfilled = state.trigger.count(initial_token(search.loaded))
    record: dict[str, Any] = {
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
        record |= {"iteration": iteration, "trigger": trigger}
        record["text"] = text_of(search.loaded, trigger)
    return record


def result(search: Search, state: State, watched: Sequence[str]) -> PromptFile:
    """Build the prompt file of a finished search from the restart that is best by dev.

    The first of equal restarts is taken. Raises SearchError if none has filled every position.
    """
    ended = [r for r in state.finished if r["dev"] is not None]
    if not ended:
        raise SearchError(
            f"{search.name or 'search'}: {state.finished[0]['unfilled']} initial tokens are left "
            f"in the trigger after {search.settings.iterations} iterations: give it more "
            "iterations, or allow them with fill_all: false"
        )
    device = search.loaded.device
    chosen, known = max(ended, key=lambda r: (r["dev"], -r["restart"])), search.problem
    scores = {
        f"dev_{metric}": _score(search.dev_values(state, chosen["trigger"], metric), metric)
        for metric in ("likelihood", "accuracy")
    }
    rows = zip(known.classes, known.labels, known.known, strict=True)
    labels = {name: ids[mask].tolist() for name, ids, mask in rows} if known.closed else {}
    return prompt_of(
        search.loaded,
        search.template,
        chosen["trigger"],
        labels,
        mode=search.settings.mode,
        settings=asdict(search.settings),
        data={
            "train": len(known.train),
            "dev": len(known.dev),
            "dropped": known.dropped,
            "cut": {"train": known.train.encoded.cut, "dev": known.dev.encoded.cut},
            "sha256": {"train": known.train.digest(), "dev": known.dev.digest()},
        },
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
            "device": f"cpu {platform.machine()}" if device.type == "cpu" else card(device),
        },
    )


def _score(values: NDArray[Any], metric: str) -> dict[str, Any]:
    """Return the mean and interval: Wilson for accuracy, 1.96 standard errors for
    log-likelihood."""
    mean, n = float(values.mean()), len(values)
    if metric == "accuracy":
        low, high = wilson(float(values.sum()), n)
    else:
        half = 1.959964 * standard_error(values.tolist())
        low, high = mean - half, mean + half
    bounds = {"value": mean, "low": low, "high": high}
    return {"metric": metric, "n": n, **{k: round(v, DECIMALS) for k, v in bounds.items()}}

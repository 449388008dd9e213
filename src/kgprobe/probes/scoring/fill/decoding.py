"""Best tokens and best continuations from a stream of next-token logits.

Every rule is deterministic: among equal scores the lower token id comes first, among equal sums the
continuation whose earlier tokens ranked first.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from kgprobe.probes.models.finite import finite
from kgprobe.probes.models.mask_slots import Stream

Floats = NDArray[np.float64]
Ids = NDArray[np.int64]
#: Takes log-probabilities (rows x k) of a step, the prompt number of each row, and the step.
Check = Callable[[Floats, Sequence[int], int], None]


def finite_steps(model: str, names: Sequence[str], what: str) -> Check:
    """Return a check that log-probabilities are finite; errors name the prompt and its step."""

    def check(values: Floats, owners: Sequence[int], step: int) -> None:
        finite(values, model, lambda row, _: f"{names[owners[row]]}, token {step} {what}")

    return check


@dataclass(frozen=True)
class Phrase:
    """A continuation: its token ids (with those that end it), the sum of their log p, its text."""

    ids: tuple[int, ...]
    logprob: float
    text: str = ""


def top(logits: Any, k: int) -> tuple[Floats, Ids]:
    """Return log-probabilities and columns (... x k) of the top k logits; ties to lower columns."""
    k = min(k, logits.shape[-1])
    norm = logits.logsumexp(-1, keepdim=True)
    values, columns = logits.topk(k)
    # topk picks any of several equal values: if such a tie crosses position k, sort the whole row
    crossing = (logits >= values[..., -1:]).sum(-1) > k
    if bool(crossing.any()):
        order = logits[crossing].sort(dim=-1, descending=True, stable=True)
        values[crossing], columns[crossing] = order.values[..., :k], order.indices[..., :k]
    columns, order = columns.sort(dim=-1)
    ranked = values.gather(-1, order).sort(dim=-1, descending=True, stable=True)
    logprobs = ranked.values - norm
    return (
        logprobs.double().cpu().numpy(),
        columns.gather(-1, ranked.indices).cpu().numpy().astype(np.int64),
    )


def ranks(logits: Any, columns: Ids) -> tuple[Floats, Ids, Ids]:
    """Return (log p, best rank, worst rank) of one column per row of logits (rows x vocabulary)."""
    index = torch.from_numpy(columns).to(logits.device)
    scores = logits.gather(1, index[:, None])
    best = (logits > scores).sum(1) + 1
    worst = best + (logits == scores).sum(1) - 1
    logprobs = (scores[:, 0] - logits.logsumexp(1)).double().cpu().numpy()
    return logprobs, best.cpu().numpy(), worst.cpu().numpy()


def greedy(
    stream: Stream, rows: int, steps: int, k: int, check: Check, ends: Collection[int] = ()
) -> tuple[Floats, Ids]:
    """Return the k best next tokens (rows x steps x k) along the greedy path.

    `check` gets the log-probabilities of every step, and raises if they are not finite. There are
    fewer steps if all rows have reached one of `ends` before.
    """
    values, columns = [], []
    open_ = np.ones(rows, dtype=bool)
    for step in range(steps):
        best = top(stream.logits, k)
        check(best[0], range(rows), step)
        values.append(best[0])
        columns.append(best[1])
        open_ &= ~np.isin(columns[-1][:, 0], list(ends))
        if not open_.any():
            break
        if step + 1 < steps:
            stream.advance(list(range(rows)), columns[-1][:, 0].tolist())
    return np.stack(values, 1), np.stack(columns, 1)


@dataclass
class _Search:
    """The beam of one prompt: unfinished phrases, best first, and finished ones."""

    alive: list[tuple[Phrase, int]]
    ended: dict[str, Phrase] = field(default_factory=dict)
    done: bool = False


def beam(
    stream: Stream,
    rows: int,
    limit: int,
    beams: int,
    k: int,
    check: Check,
    ends: Callable[[tuple[int, ...]], int] | None = None,
    text: Callable[[tuple[int, ...]], str] = str,
) -> list[list[Phrase]]:
    """Return at most k phrases per row, best first, of at most `limit` tokens.

    Each step extends every unfinished phrase by its 2 x `beams` best tokens and goes through all
    extensions by decreasing sum: one that ends becomes finished, the others continue, until `beams`
    continue. `ends` returns how many tokens of a phrase count, 0 if it continues. If its last token
    does not count, but only shows that the phrase had ended before (" It" after "Paris."), all such
    extensions of a phrase are one: its own sum, plus the log of their proportion of the p of the
    tokens considered. Of phrases with the same `text` the best is kept, those without text are
    dropped. The search of a row ends when k have finished and no unfinished one has a larger sum;
    at the limit unfinished phrases are cut and count as well. Without `ends` all phrases have
    exactly `limit` tokens. `check` gets all log-probabilities, and raises if not finite.
    """
    searches = [_Search([(Phrase((), 0.0), row)]) for row in range(rows)]
    beams = max(beams, k)
    owners: Sequence[int] = range(rows)
    for step in range(limit):
        values, columns = top(stream.logits, 2 * beams)
        check(values, owners, step)
        parents: list[int] = []
        tokens: list[int] = []
        living: list[int] = []
        for number, search in enumerate(searches):
            if search.done:
                continue
            _extend(search, values, columns, beams, ends, text)
            _settle(search, k)
            if search.done or step + 1 == limit:
                continue
            numbered = []
            for phrase, parent in search.alive:
                numbered.append((phrase, len(parents)))
                parents.append(parent)
                tokens.append(phrase.ids[-1])
                living.append(number)
            search.alive = numbered
        if not parents:
            break
        stream.advance(parents, tokens)
        owners = living
    for search in searches:
        for phrase, _ in [] if search.done else search.alive:
            _keep(search, phrase, text)
    return [_best(search, k) for search in searches]


def _extend(
    search: _Search,
    values: Floats,
    columns: Ids,
    beams: int,
    ends: Callable[[tuple[int, ...]], int] | None,
    text: Callable[[tuple[int, ...]], str],
) -> None:
    """Extend one prompt by one step; its phrases state their rows of `values`."""
    phrases: list[tuple[Phrase, int, bool]] = []
    for parent, row in search.alive:
        shown: list[int] = []
        for place, (value, token) in enumerate(zip(values[row], columns[row], strict=True)):
            longer = Phrase((*parent.ids, int(token)), parent.logprob + float(value))
            count = 0 if ends is None else ends(longer.ids)
            if 0 < count < len(longer.ids):
                shown.append(place)
            else:
                phrases.append((longer, row, count > 0))
        if shown:
            share = np.exp(values[row])[shown].sum() / np.exp(values[row]).sum()
            ids = (*parent.ids, int(columns[row, shown[0]]))
            phrases.append((Phrase(ids, parent.logprob + float(np.log(share))), row, True))
    alive: list[tuple[Phrase, int]] = []
    # a stable sort keeps (order of the parents, then lower id) among equal sums
    for phrase, row, has_ended in sorted(phrases, key=lambda one: -one[0].logprob):
        if has_ended:
            _keep(search, phrase, text)
            continue
        alive.append((phrase, row))
        if len(alive) == beams:
            break
    search.alive = alive


def _keep(search: _Search, phrase: Phrase, text: Callable[[tuple[int, ...]], str]) -> None:
    answer = text(phrase.ids)
    if answer and (answer not in search.ended or search.ended[answer].logprob < phrase.logprob):
        search.ended[answer] = replace(phrase, text=answer)


def _settle(search: _Search, k: int) -> None:
    """Mark as done when the k best finished cannot be overtaken, since sums only decrease."""
    best = _best(search, k)
    full = len(best) == k and (not search.alive or best[-1].logprob >= search.alive[0][0].logprob)
    search.done = full or not search.alive


def _best(search: _Search, k: int) -> list[Phrase]:
    return sorted(search.ended.values(), key=lambda p: (-p.logprob, p.ids))[:k]


def products(values: Floats, columns: Ids, k: int) -> tuple[Floats, Ids]:
    """Return the k best fillings of independent masks: (rows x k) sums, (rows x k x masks) columns.

    `values`, `columns` are rows x masks x k best per mask, best first; the k best products need no
    more than these. Among equal sums the one with the better first mask comes first.
    """
    sums, picks = values[:, 0], columns[:, 0, :, None]
    for mask in range(1, values.shape[1]):
        sums, picks = extend(sums, picks, values[:, mask, None], columns[:, mask, None], k)
    return sums, picks


def extend(sums: Floats, picks: Ids, values: Floats, columns: Ids, k: int) -> tuple[Floats, Ids]:
    """Extend fillings (rows x n) by one mask and keep the k best; `values` and `columns` (rows x n,
    or 1, x m) are the candidates for it."""
    both = sums[:, :, None] + values
    tokens = np.broadcast_to(columns, both.shape).reshape(len(both), -1)
    width, both = both.shape[2], both.reshape(len(both), -1)
    order = np.argsort(-both, axis=1, kind="stable")[:, :k]
    left = np.take_along_axis(picks, (order // width)[:, :, None], 1)
    last = np.take_along_axis(tokens, order, 1)[:, :, None]
    return np.take_along_axis(both, order, 1), np.concatenate([left, last], axis=2)

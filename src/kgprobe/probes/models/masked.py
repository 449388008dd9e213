"""Log-probabilities at masked positions (scoring.md, sections 4 and 7.2)."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from kgprobe.probes.models.batching import Budget, Ints, Ragged, padded
from kgprobe.probes.models.checks import allowed, budget_of, objection
from kgprobe.probes.models.finite import finite
from kgprobe.probes.models.head import WHOLE, Head, apart, replaced
from kgprobe.probes.models.last_layer import ScoredBody
from kgprobe.probes.models.load import Loaded


class Masked:
    """One model; rows are sentences with some tokens masked, scored at one position each.

    `body` and `head` (None where the architecture is unknown) are the model's halves, `last_layer`
    says whether the last layer works at scored positions only, `notes` why something did not.
    """

    def __init__(
        self, loaded: Loaded, budget: Budget | None = None, last_layer: str = "scored"
    ) -> None:
        self.loaded = loaded
        self.notes: list[str] = []
        self.budget = budget_of(loaded, budget, self.notes)
        self.body = loaded.model.base_model
        self.head = find_head(loaded.model)
        self.positions_fed = self.head_rows = self.rows_asked = self.rows_fed = 0
        self.last_layer = last_layer
        self._head: Head | None = None
        self._scored: ScoredBody | None = None

    @torch.inference_mode()
    def logprobs(
        self,
        sentences: Ragged,
        owners: Ints,
        places: Ints,
        ends: Ints,
        done: Callable[[int], object] = lambda rows: None,
        name: Callable[[int], str] = "sentence {}".format,
    ) -> NDArray[np.float64]:
        """log p of the own token at `place` of sentence `owner` while places[i]:ends[i] are masked.

        Rows that are equal and read at the same place are fed once. `done` is told how many rows
        have been answered. Raises NotFiniteError, with `name` and place.
        """
        token = self.loaded.tokenizer.mask_token_id
        targets = sentences.values[sentences.starts[owners] + places]
        distinct, at, which, sample = _distinct(sentences, owners, places, ends, token)
        order = np.argsort(which, kind="stable")
        bounds = np.concatenate([[0], np.cumsum(np.bincount(which, minlength=len(distinct)))])
        result = np.zeros(len(owners))
        self.rows_asked += len(owners)
        pad = self.loaded.tokenizer.pad_token_id or 0

        def forward(batch: Ints) -> None:
            ids, mask = padded([distinct[b] for b in batch], pad, self.loaded.device)
            answered = [order[bounds[b] : bounds[b + 1]] for b in batch]
            asked = np.concatenate(answered)
            own = np.repeat(np.arange(len(batch)), [len(a) for a in answered])
            given = None if bool(mask.all()) else mask
            hidden = self._states(ids, given, self._tensor(at[batch]))
            assert self._head is not None
            scores = self._head.logprobs(hidden, self._tensor(own), self._tensor(targets[asked]))
            found = scores.double().cpu().numpy()
            finite(
                found,
                self.loaded.spec.model,
                lambda n: f"{name(int(owners[asked[n]]))}, token {places[asked[n]]}",
            )
            result[asked] = found
            self.rows_fed += len(batch)
            done(len(asked))

        self.budget.run(distinct.lengths, forward, name=lambda r: name(int(owners[sample[r]])))
        return result

    def _tensor(self, values: Ints) -> Any:
        return torch.from_numpy(np.ascontiguousarray(values, dtype=np.int64)).to(self.loaded.device)

    def _states(self, ids: Any, mask: Any, at: Any) -> Any:
        """Hidden states at the scored positions (rows x width), or logits without a split head."""
        if self._head is None:
            self._check(ids, mask, at)
        self.positions_fed += ids.numel()
        self.head_rows += len(ids)
        if self._scored is not None:
            return self._scored(ids, mask, at)
        return self._plain(ids, mask, at)

    def _plain(self, ids: Any, mask: Any, at: Any) -> Any:
        if self._head is WHOLE:
            rows = torch.arange(len(ids), device=ids.device)
            return self.loaded.model(ids, attention_mask=mask).logits[rows, at]
        return self._body(ids, mask, at)

    def _body(self, ids: Any, mask: Any, at: Any) -> Any:
        rows = torch.arange(len(ids), device=ids.device)
        return self.body(ids, attention_mask=mask).last_hidden_state[rows, at]

    def _check(self, ids: Any, mask: Any, at: Any) -> None:
        """Choose the fastest path whose log-probabilities are the whole model's, on a first batch.

        What does not agree, or fails, is left out, with the reason in `notes`.
        """
        ids, at = ids[:16], at[:16]
        mask = None if mask is None else mask[:16]
        rows = torch.arange(len(ids), device=ids.device)
        whole = self.loaded.model(ids, attention_mask=mask).logits[rows, at]
        head, scored = self._cut(ids, mask, at, whole), None
        if head is WHOLE or self.last_layer != "scored":
            reason = ""
        elif getattr(self.body, "_compiled_call_impl", None) is not None:
            reason = "the model is compiled"
        else:
            scored, reason = self._scored_body(head, ids, mask, at, whole)
        if reason:
            self.notes.append(f"last layer at all positions: {reason}")
        self._head, self._scored = head, scored

    def _cut(self, ids: Any, mask: Any, at: Any, whole: Any) -> Head:
        """The head that gives the whole model's logits after the body, or WHOLE and a note."""
        model, reason = self.loaded.model, f"the head of {type(self.loaded.model).__name__}"
        heads = () if self.head is None else (split_head(model, self.head), Head(self.head, None))
        for head in heads:
            if head is None:
                continue

            def worst(head: Head = head) -> float:
                return apart(head.logits(self._body(ids, mask, at)), whole)

            reason = objection(worst, allowed(self.loaded))
            if not reason:
                return head
        self.notes.append(f"logits at all positions: {reason}")
        return WHOLE

    def _scored_body(
        self, head: Head, ids: Any, mask: Any, at: Any, whole: Any
    ) -> tuple[ScoredBody | None, str]:
        """(the body whose last layer works at one place, or None; why it is not there)."""
        scored = ScoredBody.of(self.body)
        if scored is None:
            return None, type(self.body).__name__
        reason = objection(
            lambda: apart(head.logits(scored(ids, mask, at)), whole), allowed(self.loaded)
        )
        return (None, reason) if reason else (scored, "")


def _distinct(
    sentences: Ragged, owners: Ints, places: Ints, ends: Ints, mask: int
) -> tuple[Ragged, Ints, Ints, Ints]:
    """Rows without repetition: (tokens, place read, number of every asked row, an asked row each).

    Rows are ordered by length, then by their first appearance.
    """
    lengths = sentences.lengths[owners]
    which = np.zeros(len(owners), dtype=np.int64)
    rows: list[NDArray[Any]] = []
    sample: list[NDArray[Any]] = []
    count = 0
    for length in np.unique(lengths):
        own = np.flatnonzero(lengths == length)
        columns = np.arange(length)[None, :]
        ids = sentences.values[sentences.starts[owners[own]][:, None] + columns]
        ids[(columns >= places[own, None]) & (columns < ends[own, None])] = mask
        key = np.concatenate([ids, places[own, None]], axis=1)
        packed = np.ascontiguousarray(key).view(np.dtype((np.void, 8 * key.shape[1]))).ravel()
        _, first, inverse = np.unique(packed, return_index=True, return_inverse=True)
        rank = np.empty(len(first), dtype=np.int64)
        rank[np.argsort(first)] = np.arange(len(first))
        which[own] = count + rank[inverse.ravel()]
        kept = np.sort(first)
        rows.append(ids[kept])
        sample.append(own[kept])
        count += len(first)
    sizes = np.array([r.shape[1] for r in rows for _ in range(len(r))], dtype=np.int64)
    values = np.concatenate([r.ravel() for r in rows]) if rows else np.zeros(0, dtype=np.int64)
    starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    chosen = np.concatenate(sample) if sample else np.zeros(0, dtype=np.int64)
    return Ragged(values, starts), places[chosen], which, chosen


def find_head(model: Any) -> Callable[[Any], Any] | None:
    """What turns hidden states into logits, for the architectures that keep it in one place."""
    for name in ("cls", "lm_head", "predictions"):
        if callable(getattr(model, name, None)):
            return getattr(model, name)
    if hasattr(model, "vocab_projector"):
        return _Chain(
            model.vocab_transform, model.activation, model.vocab_layer_norm, model.vocab_projector
        )
    if hasattr(model, "generator_lm_head"):
        return _Chain(model.generator_predictions, model.generator_lm_head)
    if hasattr(model, "decoder") and hasattr(model, "head"):
        return _Chain(model.head, model.decoder)
    return None


class _Chain(nn.Module):
    """Modules or functions, one after the other."""

    def __init__(self, *steps: Callable[[Any], Any]) -> None:
        super().__init__()
        self.steps = nn.ModuleList(
            step if isinstance(step, nn.Module) else _Function(step) for step in steps
        )

    def forward(self, hidden: Any) -> Any:
        for step in self.steps:
            hidden = step(hidden)
        return hidden


class _Function(nn.Module):
    def __init__(self, function: Callable[[Any], Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, hidden: Any) -> Any:
        return self.function(hidden)


def split_head(model: Any, head: Any) -> Head | None:
    """The head as a transformation and a linear layer over the vocabulary."""
    decoder = model.get_output_embeddings()
    if not isinstance(head, nn.Module) or not isinstance(decoder, nn.Linear):
        return None
    if not any(module is decoder for module in head.modules()):
        return None
    return Head(replaced(head, decoder, nn.Identity()), decoder)

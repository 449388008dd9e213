"""Log-probabilities at masked positions (scoring.md, sections 4 and 7.2)."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from kgprobe.probes.models.batching import Budget, padded, target_logprobs
from kgprobe.probes.models.load import Loaded

Ids = NDArray[np.int64]


class Masked:
    """One model; rows are sentences with some tokens masked, scored at one position each."""

    def __init__(self, loaded: Loaded, budget: Budget | None = None) -> None:
        self.loaded = loaded
        self.budget = budget or Budget()
        self.body = loaded.model.base_model
        self.head = _head(loaded.model)
        self.positions_fed = 0
        self.notes: list[str] = []
        self.checked = False

    @torch.inference_mode()
    def logprobs(
        self, rows: Sequence[Ids], places: Sequence[int], targets: Sequence[int]
    ) -> NDArray[np.float64]:
        """log p(target) at `place` of every row; identical (row, place) pairs are fed once."""
        unique: dict[tuple[bytes, int], int] = {}
        own = [
            unique.setdefault((r.tobytes(), p), len(unique))
            for r, p in zip(rows, places, strict=True)
        ]
        keys = list(unique)
        distinct = [np.frombuffer(data, dtype=np.int64) for data, _ in keys]
        wanted: list[list[int]] = [[] for _ in keys]
        for index, number in enumerate(own):
            wanted[number].append(index)
        result = np.zeros(len(rows))

        def forward(batch: NDArray[np.int64]) -> None:
            ids, mask = padded([distinct[b] for b in batch], self._pad, self.loaded.device)
            self.positions_fed += ids.numel()
            at = torch.tensor([keys[b][1] for b in batch], device=ids.device)
            indices = [i for b in batch for i in wanted[b]]
            repeat = torch.tensor([len(wanted[b]) for b in batch], device=ids.device)
            goal = torch.tensor([targets[i] for i in indices], device=ids.device)
            hidden, head = self._at(ids, mask, at)
            scores = target_logprobs(head, hidden.repeat_interleave(repeat, dim=0), goal)
            result[indices] = scores.double().cpu().numpy()

        self.budget.run([len(r) for r in distinct], forward)
        return result

    @property
    def _pad(self) -> int:
        pad = self.loaded.tokenizer.pad_token_id
        return 0 if pad is None else int(pad)

    def _at(self, ids: Any, mask: Any, at: Any) -> tuple[Any, Callable[[Any], Any]]:
        """Hidden states at the scored positions and the head that belongs to them."""
        rows = torch.arange(len(ids), device=ids.device)
        given = None if bool(mask.all()) else mask
        if self.head is not None and not self.checked:
            self._check(ids, given, rows, at)
        if self.head is None:
            logits = self.loaded.model(ids, attention_mask=given).logits[rows, at]
            return logits, _identity
        return self.body(ids, attention_mask=given).last_hidden_state[rows, at], self.head

    def _check(self, ids: Any, mask: Any, rows: Any, at: Any) -> None:
        """The head alone must give the whole model's log-probabilities; else the model is used."""
        assert self.head is not None
        whole = self.loaded.model(ids, attention_mask=mask).logits[rows, at].float()
        parts = self.head(self.body(ids, attention_mask=mask).last_hidden_state[rows, at]).float()
        apart = (whole.log_softmax(-1) - parts.log_softmax(-1)).abs().max().item()
        self.checked = True
        if apart > 1e-3:
            self.notes.append(f"head at all positions: parts differ from the model by {apart:.2g}")
            self.head = None


def _identity(logits: Any) -> Any:
    return logits


def _head(model: Any) -> Callable[[Any], Any] | None:
    """What turns hidden states into logits, for the architectures that keep it in one place."""
    for name in ("cls", "lm_head", "predictions"):
        if callable(getattr(model, name, None)):
            return getattr(model, name)
    if hasattr(model, "vocab_projector"):
        return lambda hidden: model.vocab_projector(
            model.vocab_layer_norm(model.activation(model.vocab_transform(hidden)))
        )
    if hasattr(model, "generator_lm_head"):
        return lambda hidden: model.generator_lm_head(model.generator_predictions(hidden))
    return None

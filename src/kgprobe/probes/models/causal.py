"""Log-probabilities of the tokens of sentences under a causal model (scoring.md, section 7.1).

    group      | prefix, fed once     | suffixes, fed per member   | last token, never fed
    France     | The capital of Fran- | ce is Pa-                  | ris.
               |                      | ce is Lon-                 | don.

Members of a group share their longest common prefix: it goes through the model once, and its keys
and values are selected for every member. The head runs at scored positions only.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from transformers import DynamicCache

from kgprobe.probes.models.batching import Budget, padded, target_logprobs
from kgprobe.probes.models.load import Loaded

Ids = NDArray[np.int64]
#: largest difference (nat per token) between shared and plain passes that the self-check accepts
AGREEMENT = 5e-3
SHORTEST_PREFIX = 2


class Causal:
    """One model; `positions_fed` and `notes` say how the work was done."""

    def __init__(self, loaded: Loaded, budget: Budget | None = None) -> None:
        self.loaded = loaded
        self.budget = budget or Budget()
        self.body = loaded.model.base_model
        self.head = loaded.model.get_output_embeddings()
        self.positions_fed = 0
        self.notes: list[str] = []
        self.shares: bool | None = None
        self.splits: bool | None = None

    @torch.inference_mode()
    def logprobs(
        self, sequences: Sequence[Ids], groups: Sequence[Sequence[int]] = ()
    ) -> list[NDArray[np.float64]]:
        """log p(t_j | t_<j) for j = 1 .. n-1 of every sequence (its first token is context only).

        `groups` partitions (a part of) the indices into sets that may share a prefix.
        """
        result = [np.zeros(max(len(s) - 1, 0)) for s in sequences]
        shared, alone = self._plan(sequences, groups)
        if shared and self._can_share(sequences, shared):
            self._shared(sequences, shared, result)
        else:
            alone = sorted(alone + [i for _, members in shared for i in members])
        self._plain(sequences, [i for i in alone if len(sequences[i]) > 1], result)
        return result

    def _plan(
        self, sequences: Sequence[Ids], groups: Sequence[Sequence[int]]
    ) -> tuple[list[tuple[int, list[int]]], list[int]]:
        """([(prefix length, members)], indices that go alone)."""
        shared, rest = [], set(range(len(sequences)))
        for members in groups:
            length = common_prefix([sequences[i] for i in members])
            if len(members) > 1 and length >= SHORTEST_PREFIX:
                shared.append((length, list(members)))
                rest -= set(members)
        return shared, sorted(rest)

    def _can_share(self, sequences: Sequence[Ids], shared: list[tuple[int, list[int]]]) -> bool:
        """Whether shared passes give this model's plain scores: tried once, on one group."""
        if self.shares is None:
            length, members = shared[0]
            sample = members[:3]
            expected = [np.zeros(len(s) - 1) for s in sequences]
            found = [np.zeros(len(s) - 1) for s in sequences]
            self._plain(sequences, sample, expected)
            try:
                self._shared(sequences, [(length, sample)], found)
                worst = max(float(np.abs(expected[i] - found[i]).max()) for i in sample)
                self.shares = worst <= AGREEMENT
                reason = f"shared and plain passes differ by {worst:.2g}"
            except (AttributeError, TypeError, ValueError) as error:
                self.shares, reason = False, f"{type(error).__name__}: {error}"
            if not self.shares:
                self.notes.append(f"no prefix sharing: {reason}")
        return self.shares

    def _plain(
        self, sequences: Sequence[Ids], indices: Sequence[int], result: list[NDArray[np.float64]]
    ) -> None:
        """Every sequence by itself, without its last token."""

        def forward(batch: NDArray[np.int64]) -> None:
            chosen = [indices[b] for b in batch]
            ids, mask = padded([sequences[i][:-1] for i in chosen], 0, self.loaded.device)
            self.positions_fed += ids.numel()
            positions = torch.arange(ids.shape[1], device=ids.device).expand_as(ids)
            hidden = self._hidden(ids, mask, positions)
            targets = torch.from_numpy(np.concatenate([sequences[i][1:] for i in chosen]))
            scores = self._scores(hidden[mask.bool()], targets.to(ids.device))
            _scatter(scores, [len(sequences[i]) - 1 for i in chosen], chosen, result, 0)

        self.budget.run([len(sequences[i]) - 1 for i in indices], forward)

    def _hidden(self, ids: Any, mask: Any, positions: Any) -> Any:
        full = bool(mask.all())
        options = {"attention_mask": None if full else mask, "use_cache": False}
        try:
            return self.body(ids, position_ids=positions, **options).last_hidden_state
        except TypeError:
            # state-space models take no positions; right padding cannot reach the tokens before it
            return self.body(ids, use_cache=False).last_hidden_state

    def _scores(self, hidden: Any, targets: Any) -> NDArray[np.float64]:
        """log p of every target; the head alone where that equals the whole model."""
        if self.splits is None:
            self._check_head()
        return target_logprobs(self.head, hidden, targets).double().cpu().numpy()

    def _check_head(self) -> None:
        """The output embedding must be all that comes after the body (no scaling, no capping)."""
        ids = torch.arange(3, 8, device=self.loaded.device)[None, :]
        whole = self.loaded.model(ids, use_cache=False).logits.float().log_softmax(-1)
        parts = self.head(self.body(ids, use_cache=False).last_hidden_state)
        apart = (parts.float().log_softmax(-1) - whole).abs().max().item()
        self.splits = apart <= 1e-3
        if not self.splits:
            model = type(self.loaded.model).__name__
            raise NotImplementedError(
                f"{self.loaded.spec.model}: {model} does more than a linear head after its body "
                f"(log-probabilities differ by {apart:.2g}); it is not supported"
            )

    def _shared(
        self,
        sequences: Sequence[Ids],
        shared: list[tuple[int, list[int]]],
        result: list[NDArray[np.float64]],
    ) -> None:
        """Prefixes in batches; after each batch the suffixes of all its members."""

        def forward(batch: NDArray[np.int64]) -> None:
            groups = [shared[b] for b in batch]
            ids, mask = padded(
                [sequences[members[0]][:length] for length, members in groups],
                0,
                self.loaded.device,
            )
            self.positions_fed += ids.numel()
            positions = torch.arange(ids.shape[1], device=ids.device).expand_as(ids)
            output = self.body(
                ids,
                attention_mask=None if bool(mask.all()) else mask,
                position_ids=positions,
                use_cache=True,
            )
            layers = [(layer.keys, layer.values) for layer in output.past_key_values.layers]
            self._prefix_scores(sequences, groups, output.last_hidden_state, result)
            self._suffixes(sequences, groups, layers, mask, result)

        self.budget.run([length for length, _ in shared], forward)

    def _prefix_scores(
        self,
        sequences: Sequence[Ids],
        groups: list[tuple[int, list[int]]],
        hidden: Any,
        result: list[NDArray[np.float64]],
    ) -> None:
        """Scores of the prefix's own tokens, once a group, and of each member's next token."""
        rows, columns, targets = [], [], []
        for row, (length, members) in enumerate(groups):
            nexts = [sequences[i][length] for i in members]
            rows += [row] * (length - 1 + len(members))
            columns += [*range(length - 1), *([length - 1] * len(members))]
            targets += [*sequences[members[0]][1:length], *nexts]
        index = torch.tensor([rows, columns], device=hidden.device)
        wanted = torch.tensor(np.array(targets, dtype=np.int64), device=hidden.device)
        scores = self._scores(hidden[index[0], index[1]], wanted)
        start = 0
        for length, members in groups:
            own = scores[start : start + length - 1]
            for place, i in enumerate(members):
                result[i][: length - 1] = own
                result[i][length - 1] = scores[start + length - 1 + place]
            start += length - 1 + len(members)

    def _suffixes(
        self,
        sequences: Sequence[Ids],
        groups: list[tuple[int, list[int]]],
        layers: list[tuple[Any, Any]],
        mask: Any,
        result: list[NDArray[np.float64]],
    ) -> None:
        """What each member feeds beyond the prefix: its suffix without the last token."""
        members = [
            (i, row, length)
            for row, (length, indices) in enumerate(groups)
            for i in indices
            if len(sequences[i]) > length + 1
        ]

        def forward(batch: NDArray[np.int64]) -> None:
            chosen = [members[b] for b in batch]
            suffixes = [sequences[i][length:-1] for i, _, length in chosen]
            ids, own = padded(suffixes, 0, self.loaded.device)
            self.positions_fed += ids.numel()
            rows = torch.tensor([row for _, row, _ in chosen], device=ids.device)
            cache = DynamicCache()
            for number, (keys, values) in enumerate(layers):
                cache.update(keys[rows], values[rows], number)
            starts = torch.tensor([length for _, _, length in chosen], device=ids.device)
            positions = starts[:, None] + torch.arange(ids.shape[1], device=ids.device)
            hidden = self.body(
                ids,
                attention_mask=torch.cat([mask[rows], own], dim=1),
                position_ids=positions,
                past_key_values=cache,
                use_cache=True,
            ).last_hidden_state
            targets = np.concatenate([sequences[i][length + 1 :] for i, _, length in chosen])
            scores = self._scores(hidden[own.bool()], torch.from_numpy(targets).to(ids.device))
            start = 0
            for (i, _, length), suffix in zip(chosen, suffixes, strict=True):
                result[i][length:] = scores[start : start + len(suffix)]
                start += len(suffix)

        self.budget.run([len(sequences[i]) - length - 1 for i, _, length in members], forward)


def common_prefix(sequences: Sequence[Ids]) -> int:
    """Length of the longest common prefix that leaves every sequence at least one token."""
    longest = min(len(s) for s in sequences) - 1
    first = sequences[0]
    for other in sequences[1:]:
        different = np.flatnonzero(first[:longest] != other[:longest])
        if len(different):
            longest = int(different[0])
    return max(longest, 0)


def positions(sequences: Sequence[Ids], groups: Sequence[Sequence[int]]) -> int:
    """Body positions that a grouping feeds, without padding; for choosing between groupings."""
    total = 0
    for members in groups:
        length = common_prefix([sequences[i] for i in members]) if len(members) > 1 else 0
        if length < SHORTEST_PREFIX:
            length = 0
        total += length + sum(len(sequences[i]) - 1 - length for i in members)
    return total


def _scatter(
    scores: NDArray[np.float64],
    lengths: Sequence[int],
    indices: Sequence[int],
    result: list[NDArray[np.float64]],
    offset: int,
) -> None:
    start = 0
    for i, length in zip(indices, lengths, strict=True):
        result[i][offset : offset + length] = scores[start : start + length]
        start += length

"""Log-probabilities of forced decoder tokens (docs/scoring.md, Seq2seq)."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from kgprobe.probes.models.batching import Ints, Ragged, padded, sizes_of
from kgprobe.probes.models.finite import finite
from kgprobe.probes.models.parts import Parts

Ids = NDArray[np.int64]


class Seq2Seq(Parts):
    """One model: every context is encoded once, the decoder is forced along the tokens after it.

    `opening` and `closing` are the sentinels of models like T5; models without them (like BART)
    have a mask token as `opening` and no `closing`.
    """

    @torch.inference_mode()
    def logprobs(
        self,
        contexts: Sequence[Ids],
        forced: Ragged,
        wanted: NDArray[np.bool_],
        done: Callable[[int], object] = lambda rows: None,
    ) -> NDArray[np.float64]:
        """Return log p of the forced tokens that are `wanted`, given preceding tokens and context.

        `wanted` and the result are parallel to `forced.values`; a row's first token is the
        decoder's start token. The last token of a row is never fed. Equal rows of one context are
        scored once, so that they tie: the last bits depend on the batch. Raises NotFiniteError,
        with name and the decoder's position.
        """
        result = np.zeros(len(forced.values))
        spans = [slice(*forced.starts[i : i + 2]) for i in range(len(forced))]
        whole = [np.concatenate([c, [-1], forced.values[span], wanted[span]])
                 for c, span in zip(contexts, spans, strict=True)]  # fmt: skip
        own, number = Ragged.of(whole).distinct()
        first, which = Ragged.of([contexts[i] for i in own]).distinct()
        rows = [contexts[i] for i in own[first]]
        bounds = np.cumsum(np.bincount(which, minlength=len(rows)))[:-1]
        members = np.split(own[np.argsort(which, kind="stable")], bounds)

        def decode(states: Any, mask: Any, place: Ints, items: Ints) -> None:
            """Score decoder rows `items`, row i after context states[place[i]], in batches."""

            def forward(batch: Ints) -> tuple[Ints, NDArray[np.float64]]:
                numbers = items[batch]
                ids, _ = padded([forced[i][:-1] for i in numbers], self.pad, self.loaded.device)
                pick = torch.from_numpy(place[batch]).to(ids.device)
                flags = [wanted[forced.starts[i] + 1 : forced.starts[i + 1]] for i in numbers]
                read = Ragged.of(flags).matrix(False)
                hidden = self.decoded(states[pick], mask[pick], ids)
                hidden = hidden[torch.from_numpy(read).to(ids.device)]
                row, column = np.nonzero(read)
                flat = forced.starts[numbers[row]] + column + 1
                scores = self.scores(hidden, np.arange(len(hidden)), forced.values[flat])
                finite(
                    scores,
                    self.loaded.spec.model,
                    lambda n: (
                        f"{forced.name(int(numbers[row[n]]))}, decoder's token {column[n] + 1}"
                    ),
                )
                return flat, scores

            lengths = forced.lengths[items] - 1
            held = [states.shape[1] * sizes_of(self.loaded).context] * len(lengths)
            for _, (flat, scores) in self.each(
                lengths, forward, name=lambda r: forced.name(int(items[r])), held=held
            ):
                result[flat] = scores

        def forward(batch: Ints) -> NDArray[np.float64]:
            ids, mask = padded([rows[b] for b in batch], self.pad, self.loaded.device)
            states = self.encoded(ids, mask)
            items = np.concatenate([members[b] for b in batch])
            place = np.repeat(np.arange(len(batch)), [len(members[b]) for b in batch])
            decode(states, mask, place, items)
            return np.concatenate([result[spans[i]] for i in items])

        for batch, scores in self.each(
            [len(r) for r in rows], forward, name=lambda r: forced.name(int(members[r][0]))
        ):
            items = np.concatenate([members[b] for b in batch])
            ends = np.cumsum(forced.lengths[items])[:-1]
            for i, values in zip(items, np.split(scores, ends), strict=True):
                result[spans[i]] = values
            done(len(items))
        for i, span in enumerate(spans):
            result[span] = result[spans[own[number[i]]]]
        done(len(spans) - len(own))
        return result

"""Log-probabilities of what a decoder is forced through (scoring.md, section 4)."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from kgprobe.probes.models.batching import Budget, Ints, Ragged, padded
from kgprobe.probes.models.checks import budget_of
from kgprobe.probes.models.decoder import Decoder
from kgprobe.probes.models.finite import finite
from kgprobe.probes.models.load import Loaded, ModelError

Ids = NDArray[np.int64]


class Seq2Seq:
    """One model: every context is encoded once, the decoder is forced on what follows from it.

    `opening` and `closing` are the sentinels of models like T5; models without them (like BART)
    have a mask token as `opening` and no `closing`.
    """

    def __init__(self, loaded: Loaded, budget: Budget | None = None) -> None:
        self.loaded = loaded
        self.opening, self.closing = _gap(loaded)
        self.notes: list[str] = []
        self.budget = budget_of(loaded, budget, self.notes)
        self._decoder = Decoder(loaded)
        self.notes += self._decoder.notes
        self.positions_fed = self.head_rows = 0
        start = loaded.model.config.decoder_start_token_id
        self.start = int(loaded.tokenizer.pad_token_id if start is None else start)
        self._pad = int(loaded.tokenizer.pad_token_id or 0)

    @torch.inference_mode()
    def logprobs(
        self,
        contexts: Sequence[Ids],
        forced: Ragged,
        wanted: NDArray[np.bool_],
        done: Callable[[int], object] = lambda rows: None,
        name: Callable[[int], str] = "sentence {}".format,
    ) -> NDArray[np.float64]:
        """log p of the forced tokens that are `wanted`, given those before them and the context.

        Both arrays lie beside `forced.values`; a row's first token is the decoder's start. The last
        token of a row is never fed. Raises NotFiniteError, with `name` and the decoder's position.
        """
        result = np.zeros(len(forced.values))
        distinct: dict[bytes, int] = {}
        own = np.array([distinct.setdefault(c.tobytes(), len(distinct)) for c in contexts])
        rows = [np.frombuffer(data, dtype=np.int64) for data in distinct]
        bounds = np.cumsum(np.bincount(own, minlength=len(rows)))[:-1]
        members = np.split(np.argsort(own, kind="stable"), bounds)

        def forward(batch: Ints) -> None:
            ids, mask = padded([rows[b] for b in batch], self._pad, self.loaded.device)
            states = self._decoder.encode(ids, mask)
            self.positions_fed += ids.numel()
            asked = np.concatenate([members[b] for b in batch])
            place = np.repeat(np.arange(len(batch)), [len(members[b]) for b in batch])
            self._decode(states, mask, place, asked, forced, wanted, result, name)
            done(len(asked))

        self.budget.run([len(r) for r in rows], forward, name=lambda r: name(int(members[r][0])))
        return result

    def _decode(
        self,
        states: Any,
        mask: Any,
        place: Ints,
        asked: Ints,
        forced: Ragged,
        wanted: NDArray[np.bool_],
        result: NDArray[np.float64],
        name: Callable[[int], str],
    ) -> None:
        """Decoder rows `asked`, row i after the context states[place[i]], in their own batches."""

        def forward(batch: Ints) -> None:
            numbers = asked[batch]
            ids, _ = padded([forced[i][:-1] for i in numbers], self._pad, self.loaded.device)
            pick = torch.from_numpy(place[batch]).to(ids.device)
            read = np.zeros(ids.shape, dtype=bool)
            for number, i in enumerate(numbers):
                own = wanted[forced.starts[i] + 1 : forced.starts[i + 1]]
                read[number, : len(own)] = own
            hidden = self._decoder.states(states[pick], mask[pick], ids)
            hidden = hidden[torch.from_numpy(read).to(ids.device)]
            row, column = np.nonzero(read)
            flat = forced.starts[numbers[row]] + column + 1
            self.positions_fed += ids.numel()
            self.head_rows += len(hidden)
            targets = torch.from_numpy(forced.values[flat]).to(ids.device)
            owners = torch.arange(len(hidden), device=ids.device)
            scores = self._decoder.head.logprobs(hidden, owners, targets).double().cpu().numpy()
            finite(
                scores,
                self.loaded.spec.model,
                lambda n: f"{name(int(numbers[row[n]]))}, decoder's token {column[n] + 1}",
            )
            result[flat] = scores

        lengths = forced.lengths[asked] - 1
        self.budget.run(lengths, forward, name=lambda r: name(int(asked[r])))


def _gap(loaded: Loaded) -> tuple[int, int | None]:
    """What stands for the answer in the encoder, and what closes it in the decoder."""
    tokenizer = loaded.tokenizer
    names = ["<extra_id_0>", "<extra_id_1>"]
    opening, closing = tokenizer.convert_tokens_to_ids(names)
    missing = {None, tokenizer.unk_token_id}
    if opening not in missing and closing not in missing:
        return int(opening), int(closing)
    if tokenizer.mask_token_id is None:
        raise ModelError(
            f"{loaded.spec.model}: its tokenizer has neither the sentinels {' '.join(names)} nor a "
            "mask token"
        )
    return int(tokenizer.mask_token_id), None

"""Log-probabilities of a span that a sentinel stands for, T5's way (scoring.md, section 4)."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from transformers.modeling_outputs import BaseModelOutput

from kgprobe.probes.models.batching import Budget, padded
from kgprobe.probes.models.load import Loaded, ModelError

Ids = NDArray[np.int64]


class Seq2Seq:
    """One model: the encoder reads the sentence with a gap, the decoder is forced on the answer."""

    def __init__(self, loaded: Loaded, budget: Budget | None = None) -> None:
        self.loaded = loaded
        self.budget = budget or Budget()
        ids = loaded.tokenizer.convert_tokens_to_ids(["<extra_id_0>", "<extra_id_1>"])
        if None in ids or loaded.tokenizer.unk_token_id in ids:
            raise ModelError(
                f"{loaded.spec.model}: its tokenizer has no sentinels <extra_id_0>, _1"
            )
        self.opening, self.closing = (int(i) for i in ids)
        self.positions_fed = 0
        self.notes: list[str] = []
        start = loaded.model.config.decoder_start_token_id
        self.start = int(loaded.tokenizer.pad_token_id if start is None else start)

    @torch.inference_mode()
    def logprobs(
        self, contexts: Sequence[Ids], answers: Sequence[Ids]
    ) -> list[NDArray[np.float64]]:
        """log p of every answer token, then of the closing sentinel, given the gapped context.

        Equal contexts go through the encoder once per batch.
        """
        result = [np.zeros(len(a) + 1) for a in answers]

        def forward(batch: NDArray[np.int64]) -> None:
            distinct: dict[bytes, int] = {}
            own = [distinct.setdefault(contexts[b].tobytes(), len(distinct)) for b in batch]
            rows = [np.frombuffer(data, dtype=np.int64) for data in distinct]
            ids, mask = padded(rows, self._pad, self.loaded.device)
            forced = [np.array([self.start, self.opening, *answers[b]]) for b in batch]
            decoder, _ = padded(forced, self._pad, self.loaded.device)
            self.positions_fed += ids.numel() + decoder.numel()
            encoded = self.loaded.model.get_encoder()(ids, attention_mask=mask).last_hidden_state
            pick = torch.tensor(own, device=ids.device)
            logits = self.loaded.model(
                encoder_outputs=BaseModelOutput(last_hidden_state=encoded[pick]),
                attention_mask=mask[pick],
                decoder_input_ids=decoder,
                use_cache=False,
            ).logits
            goals = [np.array([*answers[b], self.closing]) for b in batch]
            goal, _ = padded(goals, 0, self.loaded.device)
            scores = _gathered(logits[:, 1:], goal)
            for row, b in enumerate(batch):
                result[b][:] = scores[row, : len(goals[row])]

        self.budget.run([len(c) + len(a) for c, a in zip(contexts, answers, strict=True)], forward)
        return result

    @property
    def _pad(self) -> int:
        return int(self.loaded.tokenizer.pad_token_id or 0)


def _gathered(logits: Any, goal: Any) -> NDArray[np.float64]:
    """log p(goal) per row and position, in float32."""
    logits = logits.float()
    chosen = logits.gather(2, goal[:, :, None])[:, :, 0]
    return (chosen - logits.logsumexp(2)).double().cpu().numpy()

"""The decoder of a seq2seq model after contexts that are encoded once, and its head apart."""

from typing import Any

import numpy as np
import torch
from transformers.modeling_outputs import MoEModelOutput

from kgprobe.probes.models.checks import allowed, objection, sample, sound
from kgprobe.probes.models.head import WHOLE, Head, apart, finish_of
from kgprobe.probes.models.load import Loaded, ModelError


class Decoder:
    """Decoder rows forced after encoded contexts; `head` turns their states into logits.

    Where the head cannot be had alone it is WHOLE, and the states are logits already; `notes` says
    why. Raises ModelError where neither way gives what the model says of contexts and rows at once.
    """

    def __init__(self, loaded: Loaded) -> None:
        self.loaded = loaded
        self.notes: list[str] = []
        self.head = self._checked()

    def encode(self, ids: Any, mask: Any) -> Any:
        """States (rows x longest x width) of padded contexts."""
        return self.loaded.model.get_encoder()(ids, attention_mask=mask).last_hidden_state

    def states(self, encoded: Any, mask: Any, ids: Any) -> Any:
        """What `head` takes (rows x length x width) at every token of the decoder's rows `ids`."""
        if self.head is WHOLE:
            # the output that has a field for all that models look for
            output = MoEModelOutput(last_hidden_state=encoded)
            return self.loaded.model(
                encoder_outputs=output, attention_mask=mask, decoder_input_ids=ids, use_cache=False
            ).logits
        return self.loaded.model.get_decoder()(
            input_ids=ids,
            encoder_hidden_states=encoded,
            encoder_attention_mask=mask,
            use_cache=False,
        ).last_hidden_state

    def logits(self, states: Any) -> Any:
        """All logits of states, in the model's own arithmetic."""
        states = self.head.transform(states) if self.head.transform else states
        logits = states if self.head.decoder is None else self.head.decoder(states)
        return self.head.finish(logits) if self.head.finish else logits

    @torch.inference_mode()
    def _checked(self) -> Head:
        """Decoder and output embedding, where they are the whole model; T5 1.0 scales between."""
        model, decoder = self.loaded.model, self.loaded.model.get_output_embeddings()
        ids = torch.from_numpy(np.stack(sample(self.loaded, (9, 9)))).to(self.loaded.device)
        forced = ids.flip(0)[:, :4]
        expected = model(input_ids=ids, decoder_input_ids=forced, use_cache=False).logits
        if not sound(expected):
            return WHOLE  # nothing to compare; the engines refuse such numbers
        heads = [WHOLE]
        if isinstance(decoder, torch.nn.Linear):
            finish = finish_of(model.config.get_text_config(decoder=True))
            scale = float(decoder.in_features) ** -0.5
            heads = [
                Head(None, decoder, finish),
                Head(lambda states: states * scale, decoder, finish),
                WHOLE,
            ]
        reasons = ["the output embedding is not linear"]
        mask = torch.ones_like(ids)
        for self.head in heads:
            reason = objection(
                lambda: apart(
                    self.logits(self.states(self.encode(ids, mask), mask, forced)), expected
                ),
                allowed(self.loaded),
            )
            if not reason:
                self.notes += [f"logits at all positions: {reasons[-1]}"] * (self.head is WHOLE)
                return self.head
            reasons.append(reason)
        raise ModelError(
            f"{self.loaded.spec.model}: {type(model).__name__} says something else when its "
            f"encoder and its decoder run one after the other ({reasons[-1]})"
        )

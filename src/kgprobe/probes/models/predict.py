"""What a model predicts at one place per prompt: the vector before the output embedding, logits.

    rows, places --body--> hidden state at the place --transform--> feature --output rows--> logits

The feature is the vector that is multiplied with the output embedding: BERT's transformed state,
RoBERTa's layer norm, the final norm of a causal model, a sentinel model's (scaled) decoder state.
Masked models read the place itself, causal ones the token there to predict the next one; for
sentinel models the decoder has read its start token and the sentinel.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn.functional import linear

from kgprobe.probes.models.batching import Budget, Ints, budget_for, padded
from kgprobe.probes.models.checks import allowed, budget_of, objection, padding, sample
from kgprobe.probes.models.finite import finite
from kgprobe.probes.models.head import Head, apart, finish_of, precise
from kgprobe.probes.models.last_layer import ScoredBody
from kgprobe.probes.models.load import Loaded, ModelError
from kgprobe.probes.models.masked import find_head, split_head

#: Takes the numbers of the rows of a slice (r), logits (r x columns) and their log-sum-exp over the
#: whole vocabulary (r), float32 or float64.
Reader = Callable[[Ints, Any, Any], None]
#: Says whose a row is.
Name = Callable[[int], str]
#: Logits of one slice, in bytes.
SLICE = {"cpu": 16 << 20, "cuda": 1 << 30}


class Parts:
    """A model cut at the place that is read; works under autograd as well.

    Raises ModelError where the parts do not give the whole model's log-probabilities, and
    NotFiniteError where those are none.
    """

    def __init__(self, loaded: Loaded) -> None:
        self.loaded, self.kind = loaded, loaded.spec.kind
        self.body = loaded.model.base_model
        self.positions_fed = 0
        self.notes: list[str] = []
        self._scored: ScoredBody | None = None
        self.head, self.scale = self._checked()

    def features(self, ids: Any, mask: Any, places: Any, types: Any = None) -> Any:
        """Features (rows x width) of padded rows; `mask` None where nothing is padded."""
        self.positions_fed += ids.numel()
        return self.finished(self._hidden(ids, mask, places, types))

    def finished(self, hidden: Any) -> Any:
        """Features of hidden states at the places."""
        hidden = self.head.transform(hidden) if self.head.transform else hidden
        return hidden if self.scale == 1.0 else hidden * self.scale

    def logits(self, features: Any, only: Any = None) -> Any:
        """Logits (rows x vocabulary, or x the ids `only`) of features."""
        decoder = self.head.decoder
        assert decoder is not None
        weight: Any = decoder.weight
        bias: Any = decoder.bias
        if only is not None:
            weight, bias = weight[only], None if bias is None else bias[only]
        bias = None if bias is None else precise(bias)
        found = linear(precise(features), precise(weight), bias)
        return self.head.finish(found) if self.head.finish else found

    def scored_layer(self) -> None:
        """Let the last layer work at the places alone where the architecture allows it (exact)."""
        scored = ScoredBody.of(self.body) if self.kind == "masked" else None
        if scored is None or getattr(self.body, "_compiled_call_impl", None) is not None:
            return
        ids, mask, places = _sample(self.loaded)
        with torch.inference_mode():
            expected = self.logits(self.features(ids, mask, places))
            self._scored = scored
            reason = objection(
                lambda: apart(self.logits(self.features(ids, mask, places)), expected),
                allowed(self.loaded),
            )
        if reason:
            self._scored = None
            self.notes.append(f"last layer at all positions: {reason}")

    def _hidden(self, ids: Any, mask: Any, places: Any, types: Any) -> Any:
        rows = torch.arange(len(ids), device=ids.device)
        options = {} if types is None else {"token_type_ids": types}
        if self._scored is not None:
            self._scored.last.at = places
            found = self._scored.body(ids, attention_mask=mask, **options)
            return found.last_hidden_state[:, 0]
        if self.kind == "masked":
            return self.body(ids, attention_mask=mask, **options).last_hidden_state[rows, places]
        if self.kind == "causal":
            # padding stands at the right, where no token of a causal model can see it
            return self.body(ids, use_cache=False).last_hidden_state[rows, places]
        states = self.loaded.model.get_encoder()(ids, attention_mask=mask).last_hidden_state
        found = self.loaded.model.get_decoder()(
            input_ids=_forced(self.loaded, len(ids)),
            encoder_hidden_states=states,
            encoder_attention_mask=mask,
            use_cache=False,
        )
        return found.last_hidden_state[:, -1]

    @torch.inference_mode()
    def _checked(self) -> tuple[Head, float]:
        """The head that gives the whole model's logits on a sample, and the factor before it."""
        model = self.loaded.model
        ids, mask, places = _sample(self.loaded)
        rows = torch.arange(len(ids), device=ids.device)
        if self.kind == "seq2seq":
            forced = _forced(self.loaded, len(ids))
            whole = model(
                ids, attention_mask=mask, decoder_input_ids=forced, use_cache=False
            ).logits[:, -1]
        else:
            whole = model(ids, attention_mask=mask).logits[rows, places]
        finite(
            whole.logsumexp(-1),
            self.loaded.spec.model,
            lambda row: f"row {row} of the check, ids {ids[row].tolist()}, token {places[row]}",
            "log-sum-exp of the logits",
        )
        decoder = model.get_output_embeddings()
        head = split_head(model, find_head(model)) if self.kind == "masked" else None
        if self.kind != "masked" and isinstance(decoder, torch.nn.Linear):
            head = Head(None, decoder, finish_of(model.config.get_text_config()))
        reason = f"the head of {type(model).__name__} is unknown"
        if head is not None:
            # T5 1.0 scales between its decoder and its head
            for scale in (1.0, float(decoder.in_features) ** -0.5):

                def worst(head: Head = head, scale: float = scale) -> float:
                    hidden = self._hidden(ids, mask, places, None)
                    return apart(head.logits(hidden * scale), whole)

                reason = objection(worst, allowed(self.loaded))
                if not reason:
                    return head, scale
        raise ModelError(
            f"{self.loaded.spec.model}: body and output embedding are not all of "
            f"{type(model).__name__} ({reason}); prompts cannot be searched on it"
        )


class Predictor:
    """Predictions of a model for many prompts, in batches by length; `positions_fed` counts."""

    def __init__(self, loaded: Loaded, budget: Budget | None = None) -> None:
        self.loaded, self.parts = loaded, Parts(loaded)
        self.parts.scored_layer()
        self.budget = budget_of(loaded, budget or budget_for(loaded), self.parts.notes)
        self.columns = int(self.output_rows()[0].shape[0])

    @property
    def positions_fed(self) -> int:
        """Padded positions that went through the model's body."""
        return self.parts.positions_fed

    def features(
        self,
        rows: Sequence[Ints],
        places: Ints,
        types: Sequence[Ints] | None = None,
        name: Name = "prompt {}".format,
    ) -> NDArray[np.float32]:
        """(n, d) float32: what is multiplied with the output embedding at the place of each row.

        Raises NotFiniteError, with `name` and place.
        """
        width = self.output_rows()[0].shape[1]
        result = np.zeros((len(rows), width), dtype=np.float32)

        def keep(batch: Ints, features: Any) -> None:
            found = features.float().cpu().numpy()
            self._sound(found, batch, places, name, "vector before the output embedding")
            result[batch] = found

        self._run(rows, places, types, keep)
        return result

    def visit(
        self,
        rows: Sequence[Ints],
        places: Ints,
        read: Reader,
        types: Sequence[Ints] | None = None,
        only: Ints | None = None,
        name: Name = "prompt {}".format,
    ) -> None:
        """Call `read(numbers, logits, totals)` on slices of all rows.

        Log-probabilities are logits - totals[:, None]: `totals` sums over the whole vocabulary also
        where `only` restricts the columns to given ids. After out-of-memory a batch is read again,
        so that `read` must overwrite and not add up. Raises NotFiniteError, with `name` and place,
        before `read` sees a row that holds NaN or infinity.
        """
        device = self.loaded.device
        chosen = None if only is None else torch.from_numpy(np.asarray(only)).to(device)
        room = SLICE["cpu" if device.type == "cpu" else "cuda"]
        step = max(room // (4 * self.columns), 1)

        def give(batch: Ints, features: Any) -> None:
            for start in range(0, len(batch), step):
                logits = self.parts.logits(features[start : start + step])
                totals, own = logits.logsumexp(-1), batch[start : start + step]
                self._sound(totals, own, places, name, "log-sum-exp of the logits")
                if chosen is not None:
                    logits = logits.index_select(1, chosen)
                read(own, logits, totals)

        self._run(rows, places, types, give)

    def _sound(self, values: Any, batch: Ints, places: Ints, name: Name, what: str) -> None:
        """Values (first axis: the rows of `batch`) must be finite."""

        def where(row: int, *_: int) -> str:
            return f"{name(int(batch[row]))}, token {places[batch[row]]}"

        finite(values, self.loaded.spec.model, where, what)

    def output_rows(self) -> tuple[Any, Any]:
        """(weight (V, d), bias (V) or None) of the output embedding, as tensors of the model."""
        decoder = self.parts.head.decoder
        assert decoder is not None
        return decoder.weight.detach(), None if decoder.bias is None else decoder.bias.detach()

    @torch.inference_mode()
    def _run(
        self,
        rows: Sequence[Ints],
        places: Ints,
        types: Sequence[Ints] | None,
        take: Callable[[Ints, Any], None],
    ) -> None:
        device, pad = self.loaded.device, self.loaded.tokenizer.pad_token_id or 0

        def forward(batch: Ints) -> None:
            ids, mask = padded([rows[b] for b in batch], pad, device)
            kinds = None if types is None else padded([types[b] for b in batch], 0, device)[0]
            at = torch.from_numpy(np.ascontiguousarray(places[batch])).to(device)
            given = None if bool(mask.all()) else mask
            take(batch, self.parts.features(ids, given, at, kinds))

        self.budget.run([len(row) for row in rows], forward)


def _sample(loaded: Loaded) -> tuple[Any, Any, Any]:
    """(ids, mask, places) of two rows to compare parts with the whole; padded where they may be."""
    ids = torch.from_numpy(np.stack(sample(loaded, (8, 8)))).to(loaded.device)
    mask = None
    if not padding(loaded):
        mask = torch.ones_like(ids)
        mask[1, 6:] = 0
    return ids, mask, torch.tensor([3, 5], device=loaded.device)


def _forced(loaded: Loaded, rows: int) -> Any:
    """What the decoder of a sentinel model has read: its start token and the first sentinel."""
    start = loaded.model.config.decoder_start_token_id
    start = loaded.tokenizer.pad_token_id if start is None else start
    sentinel = loaded.tokenizer.convert_tokens_to_ids("<extra_id_0>")
    if sentinel is None or sentinel == loaded.tokenizer.unk_token_id:
        raise ModelError(f"{loaded.spec.model}: its tokenizer has no sentinel <extra_id_0>")
    return torch.tensor([[int(start), int(sentinel)]], device=loaded.device).repeat(rows, 1)

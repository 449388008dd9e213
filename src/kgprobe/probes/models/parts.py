"""A transformer split into its body and its head, for all three kinds of model.

    masked   ids ---- body ----> states -- transform --> features -- decoder --> logits
    causal   ids ---- body ----> states --------------------------- decoder --> logits
    seq2seq  ids -- encoder ---> encoded
             encoded, forced --> states ------ scale --> features -- decoder --> logits

The body runs on every token, the head only at scored positions. If the parts do not reproduce the
output of the whole model on a sample, the head is WHOLE: states are then logits already, and
`notes` gives the reason.
"""

import copy
import hashlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn
from torch.func import functional_call
from torch.nn.functional import scaled_dot_product_attention
from transformers.modeling_outputs import MoEModelOutput

from kgprobe.probes.models.batching import Budget, Ints
from kgprobe.probes.models.checks import (
    float32_objection,
    is_finite,
    objection,
    padding,
    position_border,
    preferably_in_float32,
    sample,
    tolerance,
)
from kgprobe.probes.models.completeness import SENTINELS, decoder_start, slot_of
from kgprobe.probes.models.finite import finite
from kgprobe.probes.models.head import (
    HALF,
    WHOLE,
    Head,
    apart,
    in_float32,
    logits_of,
    precise,
)
from kgprobe.probes.models.load import Loaded, ModelError

T = TypeVar("T")


class Parts:
    """One model in parts, the base class of every scoring engine; works under autograd as well.

    `positions_fed` counts padded positions that went through the body, `head_rows` the rows that
    engines scored, `notes` lists optimizations that were not possible. With `must` (the end of an
    error message), a model without a linear layer over the vocabulary raises ModelError, and one
    that outputs NaN raises NotFiniteError. Raises ModelError for a seq2seq model whose output
    changes when its encoder and its decoder run separately.
    """

    #: attributes that count the work done, for the record
    counters: tuple[str, ...] = ("positions_fed", "head_rows")

    def __init__(self, loaded: Loaded, budget: Budget | None = None, must: str = "") -> None:
        self.loaded, self.kind = loaded, loaded.spec.kind
        self.notes: list[str] = []
        self.budget = budget or Budget()
        self.budget.border = position_border(loaded)
        if reason := padding(loaded):
            self.budget.overhead = 0
            self.notes.append(f"batches of equal lengths only: {reason}")
        self.body = loaded.model.base_model
        self.head = WHOLE
        self._scored: ScoredBody | None = None
        #: the padding, and for seq2seq models the start of the decoder and the tokens around
        #: answers; models without sentinels (like BART) have a mask token as `opening`
        self.pad = int(loaded.tokenizer.pad_token_id or 0)
        self.start, self.opening, self.closing = 0, 0, None
        if self.kind == "seq2seq":
            opening, self.closing = slot_of(loaded.tokenizer)
            if opening is None:
                raise ModelError(
                    f"{loaded.spec.model}: its tokenizer has neither the sentinels "
                    f"{' '.join(SENTINELS)} nor a mask token"
                )
            self.start, self.opening = decoder_start(loaded.model, loaded.tokenizer), opening
        self.positions_fed = self.head_rows = 0
        self._cut(must)
        self.positions_fed = 0

    # -- batches ------------------------------------------------------------------------------

    def each(
        self,
        lengths: Sequence[int] | Ints,
        forward: Callable[[Ints], T],
        *,
        budget: Budget | None = None,
        packed: bool = False,
        name: Callable[[int], str] = "row {}".format,
        held: Sequence[int] | Ints | None = None,
    ) -> Iterator[tuple[Ints, T]]:
        """Yield batches with the results of `forward` like `Budget.each`, each a journal step."""

        def step(batch: Ints) -> T:
            return self.step(hashlib.sha256(batch.tobytes()).hexdigest(), lambda: forward(batch))

        return (budget or self.budget).each(lengths, step, packed, name, held)

    def step(self, name: str, compute: Callable[[], T]) -> T:
        """Return the result of `compute`, stored in the model's journal: a stored step is not
        computed again, but its counters are added as if it were."""
        before = [getattr(self, counter) for counter in self.counters]

        def compute_and_count() -> tuple[list[int], T]:
            value = compute()
            now = [getattr(self, counter) for counter in self.counters]
            return [n - b for n, b in zip(now, before, strict=True)], value

        counts: list[int]
        value: T
        counts, value = self.loaded.journal.step(name, compute_and_count)
        for counter, b, more in zip(self.counters, before, counts, strict=True):
            setattr(self, counter, b + more)
        return value

    @property
    def counts(self) -> dict[str, Any]:
        """Amount of work and its batching, for the record."""
        return {
            "positions_fed": self.positions_fed,
            "token_budget": self.budget.positions,
            "backoffs": self.budget.backoffs,
            "notes": self.notes,
        }

    # -- the body -----------------------------------------------------------------------------

    def run(self, ids: Any, **options: Any) -> tuple[Any, Any]:
        """Return (states: rows x length x width, full output) of masked or causal rows."""
        self.positions_fed += ids.numel()
        if self.kind == "causal":
            options = {"use_cache": False, **options}
        output = (self._whole if self.head is WHOLE else self.body)(ids, **options)
        return (output.logits if self.head is WHOLE else output.last_hidden_state), output

    def at(self, ids: Any, mask: Any, places: Any, types: Any = None) -> Any:
        """Return states at `places` (rows, or rows x mask slots); `mask` is None without padding.

        Causal rows need no mask: padding is on the right, where no token can attend to it. For
        seq2seq rows, return the decoder state after the first sentinel, whatever `places` is.
        """
        if self.kind == "seq2seq":
            forced = self._tensor(np.array([[self.start, self.sentinel()]] * len(ids)))
            return self.decoded(self.encoded(ids, mask), mask, forced)[:, -1]
        options = {} if self.kind == "causal" else {"attention_mask": mask}
        if types is not None and self.kind == "masked":
            options["token_type_ids"] = types
        rows = torch.arange(len(ids), device=ids.device)
        if self._scored is not None and places.ndim == 1:
            self.positions_fed += ids.numel()
            return self._scored(ids, places, **options)
        rows = rows if places.ndim == 1 else rows[:, None]
        return self.run(ids, **options)[0][rows, places]

    def encoded(self, ids: Any, mask: Any) -> Any:
        """Return the encoder states (rows x length x width) of padded contexts."""
        self.positions_fed += ids.numel()
        return self.loaded.model.get_encoder()(ids, attention_mask=mask).last_hidden_state

    def decoded(self, encoded: Any, mask: Any, forced: Any) -> Any:
        """Return decoder states (rows x length x width) at every forced token."""
        self.positions_fed += forced.numel()
        model = self.loaded.model
        if self.head is WHOLE:
            # the output class that has every field that models look for
            output = MoEModelOutput(last_hidden_state=encoded)
            return self._whole(
                encoder_outputs=output,
                attention_mask=mask,
                decoder_input_ids=forced,
                use_cache=False,
            ).logits
        return model.get_decoder()(
            input_ids=forced,
            encoder_hidden_states=encoded,
            encoder_attention_mask=mask,
            use_cache=False,
        ).last_hidden_state

    def _whole(self, *arguments: Any, **options: Any) -> Any:
        """Run the whole model, with logits in float32 at least."""
        with in_float32(_vocabulary_layer(self.loaded.model)):
            return self.loaded.model(*arguments, **options)

    def sentinel(self) -> int:
        """Return the first sentinel token, used as mask slot. Raises ModelError without one."""
        if self.closing is None:
            raise ModelError(
                f"{self.loaded.spec.model}: its tokenizer has no sentinels {' '.join(SENTINELS)}"
            )
        return self.opening

    # -- the head -----------------------------------------------------------------------------

    def scores(self, states: Any, owners: Ints, targets: Ints) -> NDArray[np.float64]:
        """Return log p(targets[i]) at states[owners[i]] (rows x width), `owners` ascending."""
        self.head_rows += len(states)
        logprobs = self.head.logprobs(states, self._tensor(owners), self._tensor(targets))
        return np.asarray(logprobs.double().cpu().numpy())

    def _tensor(self, values: Ints) -> Any:
        return torch.from_numpy(np.ascontiguousarray(values, dtype=np.int64)).to(self.loaded.device)

    # -- the cut ------------------------------------------------------------------------------

    @torch.inference_mode()
    def _cut(self, must: str) -> None:
        """Choose the first head that reproduces the whole model's log-probabilities."""
        name = type(self.loaded.model).__name__
        ids, mask = self._sample()
        whole = self._whole_logits(ids, mask)
        if must:
            owners = self._real(ids, mask).nonzero().tolist()
            finite(
                whole.logsumexp(-1),
                self.loaded.spec.model,
                lambda n: (
                    f"row {owners[n][0]} of the check, ids {ids[owners[n][0]].tolist()}, "
                    f"token {owners[n][1]}"
                ),
                "log-sum-exp of the logits",
            )
        if not is_finite(whole):
            return  # nothing to compare; the engines reject such numbers
        heads, dtype = (*_heads(self.loaded), WHOLE), self.loaded.model.dtype

        def choose() -> list[str]:
            """Set the first head that reproduces the logits; return why earlier heads failed."""
            is_cast = self.loaded.model.dtype != dtype
            logits = self._whole_logits(ids, mask) if is_cast else whole
            reasons: list[str] = []
            for self.head in heads:
                reason = objection(lambda: self._off(ids, mask, logits), tolerance(self.loaded))
                if not reason:
                    break
                reasons.append(reason)
            return reasons

        reasons = preferably_in_float32(self.loaded, choose)
        if len(reasons) == len(heads):
            raise ModelError(
                f"{self.loaded.spec.model}: {name} says something else when its parts run one "
                f"after the other ({reasons[-1]})"
            )
        why = reasons[0] if reasons else f"the head of {name} is unknown"
        if must and self.head.decoder is None:
            raise ModelError(
                f"{self.loaded.spec.model}: body and output embedding are not all of {name} "
                f"({why}); {must}"
            )
        if self.head is WHOLE:
            self.notes.append(f"logits at all positions: {why}")

    def _sample(self) -> tuple[Any, Any]:
        """Return (ids, mask) of two rows, padded if the model allows it."""
        ids = self._tensor(np.stack(sample(self.loaded, (8, 8))))
        mask = torch.ones_like(ids)
        if self.kind != "causal" and not padding(self.loaded):
            mask[1, 6:] = 0
        return ids, mask

    def _real(self, ids: Any, mask: Any) -> Any:
        """Return the mask of the positions of a sample that are compared."""
        return torch.ones_like(ids[:, :4]).bool() if self.kind == "seq2seq" else mask.bool()

    def _whole_logits(self, ids: Any, mask: Any) -> Any:
        """Return the whole model's logits at all real tokens of a sample (tokens x vocabulary)."""
        given = None if bool(mask.all()) else mask
        logits = logits_of(self.kind, self._whole, ids, given, ids.flip(0)[:, :4])
        return logits[self._real(ids, mask)]

    def _off(self, ids: Any, mask: Any, whole: Any) -> float:
        """Return the largest difference between log-probabilities of parts and whole model."""
        if self.kind == "seq2seq":
            states = self.decoded(self.encoded(ids, mask), mask, ids.flip(0)[:, :4])
        else:
            given = {} if bool(mask.all()) else {"attention_mask": mask}
            states = self.run(ids, **given)[0]
        states = states[self._real(ids, mask)]
        return apart(self.head.logits(states), whole)

    @torch.inference_mode()
    def scored_layer(self) -> None:
        """Compute the last layer only at scored positions if the architecture allows it (exact)."""
        if self.kind != "masked" or self.head is WHOLE:
            return
        scored, reason = ScoredBody.of(self.body), ""
        if scored is None:
            reason = type(self.body).__name__
        else:
            ids, mask = self._sample()
            mask, places = None if bool(mask.all()) else mask, self._tensor(np.array([3, 5]))
            places = places.clamp(max=ids.shape[1] - 1)

            def off() -> float:
                self._scored = None
                expected = self.head.logits(self.at(ids, mask, places))
                self._scored = scored
                return apart(self.head.logits(self.at(ids, mask, places)), expected)

            reason = float32_objection(self.loaded, off)
        if reason:
            self._scored = None
            self.notes.append(f"last layer at all positions: {reason}")
        self.positions_fed = 0


# -- heads of all architectures ---------------------------------------------------------------


def _heads(loaded: Loaded) -> list[Head]:
    """Return candidate heads that turn states into logits, the preferred one first."""
    model = loaded.model
    decoder = model.get_output_embeddings()
    if loaded.spec.kind == "masked":
        head = _masked_head(model)
        if head is None:
            tied = _tied_head(model)
            return [tied] if tied else []
        split = _split(head, decoder)
        return [*([split, split.through_modules()] if split else []), Head(_wide(head), None)]
    if not isinstance(decoder, nn.Linear):
        return []
    decodes = loaded.spec.kind == "seq2seq"
    finish = _finish(model.config.get_text_config(**({"decoder": True} if decodes else {})))
    heads = [Head(None, decoder, finish)]
    if decodes:  # T5 1.0 scales between its decoder and its head
        scale = float(decoder.in_features) ** -0.5
        heads.append(Head(lambda states: states * scale, decoder, finish))
    # hooks on the output embedding (soft prompts in the softmax) run only when the module is called
    return [*heads, *(head.through_modules() for head in heads)]


def _vocabulary_layer(model: Any) -> Any:
    """Return the layer that gives the logits, or None (DeBERTa names another layer as output)."""
    decoder = model.get_output_embeddings()
    rows = getattr(getattr(decoder, "weight", None), "shape", (0,))[0]
    return decoder if rows >= getattr(model.config.get_text_config(), "vocab_size", 0) else None


def _wide(head: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Wrap a head with an inseparable last layer to run in float32 if it is in half precision."""
    if not isinstance(head, nn.Module):
        return head
    tensors = {**dict(head.named_parameters()), **dict(head.named_buffers())}
    half_tensors = {name: tensor for name, tensor in tensors.items() if tensor.dtype in HALF}
    if not half_tensors:
        return head
    return lambda states: functional_call(
        head, {name: tensor.float() for name, tensor in half_tensors.items()}, (precise(states),)
    )


#: Attributes whose modules, in sequence, turn the hidden states of masked models into logits.
MASKED_HEADS = (
    ("cls",), ("lm_head",), ("predictions",),
    ("vocab_transform", "activation", "vocab_layer_norm", "vocab_projector"),
    ("generator_predictions", "generator_lm_head"), ("head", "decoder"),
)  # fmt: skip


def _masked_head(model: Any) -> Callable[[Any], Any] | None:
    """Return the module that turns hidden states into logits, for known architectures, or None."""
    for names in MASKED_HEADS:
        modules: list[Any] = [getattr(model, name, None) for name in names]
        if all(map(callable, modules)):
            return nn.Sequential(*modules) if len(modules) > 1 else modules[0]
    return None


def _tied_head(model: Any) -> Head | None:
    """Return the head of DeBERTa with `legacy` false, tied to the input embedding."""
    head = getattr(getattr(model, "lm_predictions", None), "lm_head", None)
    table = getattr(model.get_input_embeddings(), "weight", None)
    if head is None or table is None or not hasattr(head, "LayerNorm"):
        return None
    decoder = nn.utils.skip_init(nn.Linear, *reversed(table.shape), device="meta")
    decoder.weight, decoder.bias = table, head.bias
    return Head(nn.Sequential(head.dense, head.transform_act_fn, head.LayerNorm), decoder)


def _split(head: Any, decoder: Any) -> Head | None:
    """Split the head into a transformation and a linear layer over the vocabulary."""
    if not isinstance(head, nn.Module) or not isinstance(decoder, nn.Linear):
        return None
    if not any(module is decoder for module in head.modules()):
        return None
    return Head(replaced(head, decoder, nn.Identity()), decoder)


def _finish(config: Any) -> Callable[[Any], Any] | None:
    """Return the soft cap or scale of logits (configuration keys of transformers), if any."""
    cap = getattr(config, "final_logit_softcapping", None)
    if cap:
        return lambda logits: torch.tanh(logits / cap) * cap
    scale = getattr(config, "logit_scale", None) or 1.0
    scale /= getattr(config, "logits_scaling", None) or 1.0
    return None if scale == 1.0 else lambda logits: logits * scale


def replaced(module: nn.Module, old: nn.Module, new: nn.Module) -> nn.Module:
    """Copy `module` with `old` replaced by `new`, sharing all parameters.

    Only the modules that contain `old` are copied; the original is unchanged.
    """
    if module is old:
        return new
    if not any(child is old for child in module.modules()):
        return module
    shallow = copy.copy(module)
    shallow._modules = {
        name: None if child is None else replaced(child, old, new)
        for name, child in module._modules.items()
    }
    return shallow


# -- the last layer at one position -----------------------------------------------------------


class ScoredBody(nn.Module):
    """An encoder like BERT's whose last layer is computed at one position of each row.

    Keys and values are needed everywhere, everything else only at that position. All parameters
    are shared.
    """

    def __init__(self, body: nn.Module, last: nn.Module) -> None:
        super().__init__()
        self.last = _ScoredLayer(last)
        self.body = replaced(body, last, self.last)

    @classmethod
    def of(cls, body: Any) -> "ScoredBody | None":
        """Replace the last layer of a body; return None if its layers are not like BERT's."""
        layers = getattr(getattr(body, "encoder", None), "layer", None)
        if not isinstance(layers, nn.ModuleList) or not len(layers):
            return None
        last = layers[-1]
        names = {f"attention.self.{name}" for name in ("query", "key", "value")}
        names |= {"attention.output", "intermediate", "output"}
        have = {name for name, _ in last.named_modules()}
        if not have.issuperset(names) or any("layernorm_before" in name for name in have):
            return None
        return cls(body, last)

    def forward(self, ids: Any, at: Any, **options: Any) -> Any:
        """Return hidden states at `at` (rows x width)."""
        self.last.at = at
        return self.body(ids, **options).last_hidden_state[:, 0]


class _ScoredLayer(nn.Module):
    def __init__(self, layer: Any) -> None:
        super().__init__()
        self.layer = layer
        self.at: Any = None

    def forward(self, hidden: Any, attention_mask: Any = None, *others: Any, **named: Any) -> Any:
        attention = self.layer.attention.self
        state = hidden[torch.arange(len(hidden), device=hidden.device), self.at][:, None]
        width = attention.attention_head_size

        def heads(states: Any) -> Any:
            return states.view(*states.shape[:2], -1, width).transpose(1, 2)

        # a padding mask is the same for every query
        mask = attention_mask if attention_mask is None else attention_mask[:, :, :1]
        context = scaled_dot_product_attention(
            heads(attention.query(state)),
            heads(attention.key(hidden)),
            heads(attention.value(hidden)),
            attn_mask=mask,
        )
        # with a single query position the heads are already adjacent
        context = context.reshape(state.shape[0], 1, -1)
        middle = self.layer.attention.output(context, state)
        return self.layer.output(self.layer.intermediate(middle), middle)

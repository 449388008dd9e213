"""The head at scored positions: log-probabilities of given tokens without a whole log-softmax.

The vocabulary is processed in slices whose logits stay in the CPU cache; of each slice only
its log-sum-exp and the logits of the requested tokens are stored.
"""

import contextlib
import math
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import nn
from torch.nn.functional import linear

HALF = (torch.float16, torch.bfloat16)
#: Rows of the output matrix whose logits are computed at once on a CPU.
SLICE = 1024
#: Bytes of logits that exist at once: on a CPU as many as fit into its caches.
LOGITS = {"cpu": 4 << 20, "cuda": 1 << 30}


class Head:
    """Computes log-probabilities from hidden states.

    `transform` is applied between the body and `decoder` (a linear layer over the vocabulary),
    `finish` acts on logits elementwise. Without `decoder`, `transform` returns all logits.
    """

    def __init__(
        self,
        transform: Callable[[Any], Any] | None,
        decoder: nn.Linear | None,
        finish: Callable[[Any], Any] | None = None,
    ) -> None:
        self.transform, self.decoder, self.finish = transform, decoder, finish

    def logits(self, hidden: Any) -> Any:
        """Compute all logits (... x vocabulary) in float32 at least, with gradients."""
        features = self.features(hidden)
        return precise(features) if self.decoder is None else self.decode(features)

    def features(self, hidden: Any) -> Any:
        """Return the inputs of `decoder` (... x width), or all logits without one."""
        return self.transform(hidden) if self.transform else hidden

    def through_modules(self) -> "Head":
        """Wrap this head to call the decoder module with its hooks, which may add columns."""
        decoder = self.decoder
        assert decoder is not None

        def logits(hidden: Any) -> Any:
            with in_float32(decoder):
                output = decoder(self.features(hidden))
            return self.finish(output) if self.finish else output

        return Head(logits, None)

    def logprobs(self, hidden: Any, owners: Any, targets: Any) -> Any:
        """Return log p(targets[i]) at hidden[owners[i]]: float32 (float64 for a float64 model).

        `hidden` is rows x width; `owners` (ascending) and `targets` are int64 of one length.
        """
        size = hidden.shape[1] if self.decoder is None else self.decoder.weight.shape[0]
        device = "cpu" if hidden.device.type == "cpu" else "cuda"
        step = min(size, SLICE) if device == "cpu" and self.decoder is not None else size
        rows = max(LOGITS[device] // (4 * step), 1)
        bounds = torch.searchsorted(owners, torch.arange(0, len(hidden) + rows, rows).to(owners))
        pieces = []
        for number, start in enumerate(range(0, len(hidden), rows)):
            span = slice(int(bounds[number]), int(bounds[number + 1]))
            pieces.append(
                self._rows(hidden[start : start + rows], owners[span] - start, targets[span], step)
            )
        return torch.cat(pieces) if len(pieces) != 1 else pieces[0]

    def _rows(self, hidden: Any, owners: Any, targets: Any, step: int) -> Any:
        hidden = self.features(hidden)
        if self.decoder is None:
            logits = precise(hidden)
            return logits[owners, targets] - logits.logsumexp(1)[owners]
        size = self.decoder.weight.shape[0]
        order = targets.argsort(stable=True)
        starts = torch.arange(0, size + step, step).to(targets)
        bounds = torch.searchsorted(targets[order], starts).tolist()
        chosen: Any = None
        totals = []
        for number, start in enumerate(range(0, size, step)):
            logits = self.decode(hidden, slice(start, start + step))
            chosen = logits.new_empty(len(targets)) if chosen is None else chosen
            hits = order[bounds[number] : bounds[number + 1]]
            if len(hits):
                chosen[hits] = logits[owners[hits], targets[hits] - start]
            totals.append(logits.logsumexp(1))
        total = totals[0] if len(totals) == 1 else torch.stack(totals).logsumexp(0)
        return chosen - total[owners]

    def decode(self, features: Any, ids: Any = slice(None)) -> Any:
        """Compute the logits of some `ids` (a slice or a tensor) from the inputs of `decoder`,
        accumulated in float32 at least."""
        assert self.decoder is not None
        bias: Any = self.decoder.bias
        bias = None if bias is None else bias[ids]
        logits = product(features, self.decoder.weight[ids], bias)
        return self.finish(logits) if self.finish else logits


#: Marks a head that cannot be separated: the model's outputs are logits already.
WHOLE = Head(None, None)


def product(hidden: Any, weight: Any, bias: Any = None) -> Any:
    """Compute hidden (... x width) times weight (rows x width), plus bias, in float32 at least.

    Rounded to half precision, many logits above 16 would tie.
    """
    bias = None if bias is None else precise(bias)
    trained = torch.is_grad_enabled() and (hidden.requires_grad or weight.requires_grad)
    if hidden.is_cuda and hidden.dtype == weight.dtype and hidden.dtype in HALF and not trained:
        # accumulated in float32 without a copy of the weights
        logits = torch.mm(hidden.flatten(0, -2), weight.T, out_dtype=torch.float32)
        logits = logits.view(*hidden.shape[:-1], -1)
        return logits if bias is None else logits + bias
    return linear(precise(hidden), precise(weight), bias)


@contextlib.contextmanager
def in_float32(decoder: Any) -> Iterator[None]:
    """Make a half-precision linear layer return its `product` inside the context."""
    if not isinstance(decoder, nn.Linear) or decoder.weight.dtype not in HALF:
        yield
        return
    with decoder.register_forward_hook(
        lambda module, given, _: product(given[0], module.weight, module.bias), prepend=True
    ):
        yield


def logits_of(kind: str, model: Any, ids: Any, mask: Any = None, forced: Any = None) -> Any:
    """Return the whole model's logits (rows x positions x vocabulary), for seq2seq models at the
    `forced` decoder tokens. Causal models need no mask: padding is on the right."""
    options: dict[str, Any] = {} if mask is None or kind == "causal" else {"attention_mask": mask}
    if kind == "seq2seq":
        options["decoder_input_ids"] = forced
    if kind != "masked":
        options["use_cache"] = False
    return model(input_ids=ids, **options).logits


def precise(values: Any) -> Any:
    """Convert to float32, except values in float64."""
    return values if values.dtype == torch.float64 else values.float()


def apart(logits: Any, expected: Any) -> float:
    """Return the largest log-probability difference of two logit arrays; infinite with NaN.

    Tokens that both suppress (minus infinity) do not differ. NaN must not pass as agreement: every
    comparison with it is false, including `worst > allowed`.
    """
    first, second = precise(logits).log_softmax(-1), precise(expected).log_softmax(-1)
    worst = float(torch.where(first == second, 0.0, (first - second).abs()).max())
    return float("inf") if math.isnan(worst) else worst

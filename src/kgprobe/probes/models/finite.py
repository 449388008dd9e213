"""The check, shared by all engines, that a model's outputs are finite.

NaN or plus infinity in any logit of a row makes the row's log-sum-exp NaN or infinite, and with it
every log-probability computed from the row. So only the stored numbers are checked
(one per scored token, candidate or row), not the logits.

Minus infinity is valid for the logit of a token that is not scored: architectures suppress tokens
and pad vocabularies that way, and it adds nothing to the log-sum-exp. As the log-probability of a
token that is summed, pooled, generated or a gold it is an error like NaN: sums, means and orders of
such numbers are meaningless. An option that is only ranked against a gold may have it, and loses.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch


class NotFiniteError(ValueError):
    """A model returned NaN or infinity; the message names model, row and position."""


def finite(
    values: Any, model: str, where: Callable[..., str], what: str = "log-probability"
) -> None:
    """Raise NotFiniteError for the first of `values` (array, tensor or number) that is not finite.

    `where` is called with the index of that number, one argument per dimension, and describes its
    row and position.
    """
    is_tensor = isinstance(values, torch.Tensor)
    # a single reduction without a copy: this runs on every batch of every engine
    if bool((torch if is_tensor else np).isfinite(values.detach() if is_tensor else values).all()):
        return
    array = np.asarray(values.detach().double().cpu() if is_tensor else values)
    wrong = ~np.isfinite(array)
    index = tuple(int(i) for i in np.argwhere(wrong)[0])
    raise NotFiniteError(
        f"{model}: {what} {array[index]} at {where(*index)} ({int(wrong.sum())} of {array.size} "
        "here are not finite); the weights hold NaN or infinity, or the arithmetic overflows: "
        "check the checkpoint, run it in float32"
    )


def first_wrong(values: torch.Tensor) -> int:
    """Return the index of the first row of a tensor with NaN or infinity; 0 if there is none."""
    return int((~torch.isfinite(values.detach())).flatten(1).any(1).int().argmax())


def check_loss(loss: Any, logits: Any, model: str, epoch: int, batch: Any) -> None:
    """Raise NotFiniteError for the loss of a training batch, naming the first invalid example."""
    finite(
        loss,
        model,
        lambda: f"epoch {epoch}, training example {int(batch[first_wrong(logits)])}",
        "loss",
    )

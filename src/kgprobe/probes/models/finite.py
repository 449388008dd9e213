"""Numbers that come out of a model must be finite: the one check of all engines.

NaN or plus infinity in any logit of a row makes the row's log-sum-exp NaN or infinite, and with it
every log-probability that is read from the row. So what is looked at are the numbers that are kept
(one per scored token, candidate or row), never the logits a second time.

Minus infinity is legal as the logit of a token that nobody asked for: architectures suppress tokens
and pad vocabularies that way, and it adds nothing to the log-sum-exp. As the log-probability of a
token that is summed, pooled, written or a gold it is an error like NaN: no sum, mean or order of
such numbers means anything. An option that is merely ranked against a gold may have it, and loses.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch


class NotFiniteError(ValueError):
    """A model gave NaN or infinity; the message names model, row and position."""


def finite(
    values: Any, model: str, where: Callable[..., str], what: str = "log-probability"
) -> None:
    """Raise NotFiniteError for the first of `values` (array, tensor or number) that is not finite.

    `where` is called with that number's index, one argument per dimension, and says whose it is and
    at which position.
    """
    is_tensor = isinstance(values, torch.Tensor)
    # one look, without keeping anything: this runs on every batch of every engine
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
    """Number of the first row of a tensor that holds NaN or infinity; 0 where none does."""
    return int((~torch.isfinite(values.detach())).flatten(1).any(1).int().argmax())


def check_loss(loss: Any, logits: Any, model: str, epoch: int, batch: Any) -> None:
    """Raise NotFiniteError for the loss of some training examples, naming the first bad one."""

    def where() -> str:
        return f"epoch {epoch}, training example {int(batch[first_wrong(logits)])}"

    finite(loss, model, where, "loss")

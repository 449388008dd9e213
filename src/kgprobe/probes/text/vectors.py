"""Vectors in place of words: models that read vectors at ids beyond their vocabulary.

Row k of the inserted vectors is used as the embedding of the id V + k (`mask_slots`).
Nothing is added to the model: a hook on the input embedding inserts the vectors, so position
and type embeddings and layer norms apply as usual, and the softmax is still over the vocabulary.
"""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import nn

from kgprobe.probes.models.head import product
from kgprobe.probes.models.load import Loaded
from kgprobe.probes.text.mask_slots import rows_of_embedding

#: The vectors to insert (slots x embedding width), or a function that computes them at every pass.
Vectors = torch.Tensor | Callable[[], torch.Tensor]


@contextlib.contextmanager
def inserted(loaded: Loaded, vectors: Vectors, in_softmax: int | None = None) -> Iterator[None]:
    """Make ids from V on read `vectors` (row id - V) at the model's input embedding.

    `in_softmax` appends the logits of the vectors from this one on to those of the head
    (`softmax_rows: all`: the behavior of a model with tied embeddings after adding new tokens).
    Gradients reach only the vectors.
    """
    size = rows_of_embedding(loaded)
    stack: list[Any] = []

    def lower(module: Any, given: tuple[Any, ...]) -> tuple[Any, ...]:
        stack.append(given[0])
        return (torch.where(given[0] < size, given[0], 0), *given[1:])

    def put(module: Any, given: tuple[Any, ...], output: Any) -> Any:
        ids = stack.pop()
        rows = vectors() if callable(vectors) else vectors
        # the embedding modules of Gemma and BART scale their rows
        scale = getattr(module, "embed_scale", 1.0)
        scale = torch.as_tensor(scale, dtype=output.dtype, device=output.device)
        chosen = rows.to(output.dtype)[(ids - size).clamp(min=0)] * scale
        return torch.where((ids >= size)[..., None], chosen, output)

    def append(module: Any, given: tuple[Any, ...], output: Any) -> Any:
        rows = vectors() if callable(vectors) else vectors
        return torch.cat([output, product(given[0], rows[in_softmax:])], dim=-1)

    with contextlib.ExitStack() as hooks:
        for module in embedding_modules(loaded.model):
            hooks.enter_context(module.register_forward_pre_hook(lower))
            hooks.enter_context(module.register_forward_hook(put))
        if in_softmax is not None:
            hooks.enter_context(_tied_output(loaded).register_forward_hook(append))
        yield


def _tied_output(loaded: Loaded) -> nn.Linear:
    output = loaded.model.get_output_embeddings()
    weight = loaded.model.get_input_embeddings().weight
    if not isinstance(output, nn.Linear) or output.weight.data_ptr() != weight.data_ptr():
        raise ValueError(
            f"{loaded.spec.model}: softmax_rows 'all' needs an output that is tied to the input "
            "embedding; use softmax_rows 'vocabulary'"
        )
    return output


def embedding_modules(model: Any) -> list[nn.Embedding]:
    """Return every module that looks up the input embedding: encoder and decoder share it."""
    main = model.get_input_embeddings()
    shared = [
        m
        for m in model.modules()
        if isinstance(m, nn.Embedding) and m.weight.data_ptr() == main.weight.data_ptr()
    ]
    return shared if any(m is main for m in shared) else [main, *shared]

"""Vectors in place of words: models that read vectors at ids beyond their vocabulary.

Row k of the inserted vectors is used as the embedding of the id V + k (`mask_slots`).
Nothing is added to the model: a hook on the input embedding inserts the vectors, so position
and type embeddings and layer norms apply as usual, and the softmax is still over the vocabulary.

Pseudowords are words without meaning: vectors near the mask token (Wu et al. 2023, section 3.2.2).
e(w) is the row of the input embedding, M the mask token, d_min the distance from e(M) to the
nearest other row. A pseudoword is on the sphere of radius r = alpha * d_min around e(M); the two
of a pair are at least r apart. Models without a mask token are an extension: the center is then
the first sentinel (seq2seq) or the mean of the embedding's rows (causal).
"""

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import nn

from kgprobe.probes.models.head import product
from kgprobe.probes.models.load import Loaded
from kgprobe.probes.text.encode import byte_level
from kgprobe.probes.text.mask_slots import SENTINEL, rows_of_embedding

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


#: Attempts to draw the second word of a pair; each succeeds with a probability above 1/2.
ATTEMPTS = 1000


@dataclass
class Pseudowords:
    """`vectors` (2 * pairs x width): X of pair p is row 2p, Y row 2p + 1; and their settings."""

    vectors: torch.Tensor
    record: dict[str, Any] = field(default_factory=dict)

    @property
    def pairs(self) -> int:
        """Number of pairs."""
        return len(self.vectors) // 2


def pseudowords(
    loaded: Loaded, pairs: int = 10, alpha: float = 0.5, seed: int = 0, center: str = "mask"
) -> Pseudowords:
    """Draw `pairs` pairs of vectors in the model's own precision, determined by the seed.

    `center` tokenizer_default: the unknown token for models with a byte-level tokenizer, as in
    the released code, which does not set the mask token there. Raises ValueError where another row
    equals the center.
    """
    weight = loaded.model.get_input_embeddings().weight.detach()
    table = weight[: len(loaded.tokenizer)].double().cpu().numpy()
    middle, name, row = _center(loaded, table, center)
    apart = np.sqrt(((table - middle) ** 2).sum(axis=1))
    if row is not None:
        apart[row] = np.inf
    nearest = int(apart.argmin())
    if apart[nearest] == 0:
        raise ValueError(
            f"{loaded.spec.model}: row {nearest} of the embedding equals {name}; no pseudowords"
        )
    radius = alpha * float(apart[nearest])
    drawn = np.concatenate(
        [_pair(middle, radius, np.random.default_rng([seed, p])) for p in range(pairs)]
    )
    return Pseudowords(
        torch.from_numpy(drawn).to(device=weight.device, dtype=weight.dtype),
        {
            "pseudoword_pairs": pairs,
            "pseudoword_alpha": alpha,
            "pseudoword_seed": seed,
            "pseudoword_center": name,
            "pseudoword_nearest": nearest,
            "pseudoword_radius": radius,
        },
    )


def random_words(loaded: Loaded, pairs: int, seed: int = 0) -> Pseudowords:
    """Draw vectors for new words as if the vocabulary grew: N(0, initializer_range).

    The released premise test uses them in place of pseudowords (`premise_words: random_tokens`).
    """
    weight = loaded.model.get_input_embeddings().weight.detach()
    spread = float(getattr(loaded.model.config, "initializer_range", 0.02))
    drawn = np.random.default_rng([seed, 1 << 20]).normal(0, spread, (2 * pairs, weight.shape[1]))
    return Pseudowords(
        torch.from_numpy(drawn).to(device=weight.device, dtype=weight.dtype),
        {"premise_words": "random_tokens", "premise_words_spread": spread},
    )


def _center(loaded: Loaded, table: Any, center: str) -> tuple[Any, str, int | None]:
    """Return (center vector, its name, its row or None)."""
    tokenizer, kind = loaded.tokenizer, loaded.spec.kind
    if kind == "causal":
        return table.mean(axis=0), "mean of the embedding (extension)", None
    if kind == "seq2seq":
        row = int(tokenizer.convert_tokens_to_ids(SENTINEL))
        return table[row], f"{SENTINEL} (extension)", row
    row, name = int(tokenizer.mask_token_id), tokenizer.mask_token
    if center == "tokenizer_default" and byte_level(tokenizer):
        row, name = int(tokenizer.unk_token_id), tokenizer.unk_token
    return table[row], name, row


def _pair(middle: Any, radius: float, generator: np.random.Generator) -> Any:
    """Draw two points on the sphere, the second repeatedly until it is `radius` from the first."""
    points = [_on_sphere(middle, radius, generator)]
    for _ in range(ATTEMPTS):
        other = _on_sphere(middle, radius, generator)
        if np.linalg.norm(other - points[0]) >= radius:
            return np.stack([points[0], other])
    raise ValueError(f"no second pseudoword at distance {radius} after {ATTEMPTS} draws")


def _on_sphere(middle: Any, radius: float, generator: np.random.Generator) -> Any:
    direction = generator.normal(size=len(middle))
    return middle + radius * direction / np.linalg.norm(direction)

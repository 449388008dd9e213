"""Pseudowords without meaning: vectors near the mask token (Wu et al. 2023, section 3.2.2).

e(w) is the row of the input embedding, M the mask token, d_min the distance from e(M) to the
nearest other row. A pseudoword is on the sphere of radius r = alpha * d_min around e(M); the two
of a pair are at least r apart. Models without a mask token are an extension: the center is then
the first sentinel (seq2seq) or the mean of the embedding's rows (causal).
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from kgprobe.probes.models.load import Loaded
from kgprobe.probes.text.mask_slots import SENTINEL
from kgprobe.probes.text.pieces import byte_level

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

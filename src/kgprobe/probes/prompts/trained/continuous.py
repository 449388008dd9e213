"""Continuous prompts: free vectors in place of a template's words, the model as it is.

    {sub} v1 v2 v3 v4 v5 [P] .     or every token of the manual prompt as a vector

OptiPrompt (Zhong, Friedman, Chen 2021): AdamW without bias correction, rate 3e-3, batch 16, 10
epochs, 10 % warm-up, then linear to 0; three looks at the dev facts per epoch, the best vectors by
P@1 are kept, and those before training compete.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from kgprobe.probes.models.batching import Ints, padded
from kgprobe.probes.models.checks import refuse_padding
from kgprobe.probes.models.finite import finite, first_wrong
from kgprobe.probes.models.head import precise
from kgprobe.probes.models.load import Loaded
from kgprobe.probes.models.predict import Name, Predictor
from kgprobe.probes.prompts.trained.soft import Frozen, schedule
from kgprobe.probes.scoring.cloze.words import scores_of
from kgprobe.probes.text.gaps import rows_of_embedding
from kgprobe.probes.text.pieces import pieces
from kgprobe.probes.text.prompts import Encoded
from kgprobe.probes.text.vectors import inserted
from kgprobe.templates import ANSWER, SEPARATOR, TRIGGER, Template, named, parse


@dataclass(frozen=True)
class Settings:
    """Hyper-parameters. `order`: shuffled (a new order each epoch), or file as released."""

    vectors: int = 5
    rate: float = 3e-3
    batch: int = 16
    epochs: int = 10
    warmup: float = 0.1
    checks: int = 3
    order: str = "shuffled"
    seed: int = 0


@dataclass(frozen=True)
class Rows:
    """Encoded prompts, the gold token of each, and what messages call them."""

    encoded: Encoded
    gold: Ints
    name: Name = "example {}".format


class PlainAdamW:
    """AdamW without bias correction and without decay: the first steps are about 3 times as long.

    transformers' former default with correct_bias=False, betas 0.9 and 0.999, epsilon 1e-6.
    """

    def __init__(self, vectors: torch.Tensor, epsilon: float = 1e-6) -> None:
        self.vectors, self.epsilon = vectors, epsilon
        self.first, self.second = torch.zeros_like(vectors), torch.zeros_like(vectors)

    @torch.no_grad()
    def step(self, gradient: torch.Tensor, rate: float) -> None:
        """Move the vectors against their gradient."""
        self.first.mul_(0.9).add_(gradient, alpha=0.1)
        self.second.mul_(0.999).addcmul_(gradient, gradient, value=0.001)
        self.vectors.sub_(rate * self.first / (self.second.sqrt() + self.epsilon))


def free(loaded: Loaded, settings: Settings, prefix: str = "") -> tuple[Template, torch.Tensor]:
    """(template with `vectors` free places between subject and answer, random vectors).

    They are drawn like new rows of an embedding: normal, with the model's initialiser range.
    """
    end = "" if loaded.spec.kind == "causal" else " ."
    text = f"{prefix}{{sub}} {TRIGGER}x{settings.vectors} {ANSWER}{end}"
    weight = loaded.model.get_input_embeddings().weight
    spread = getattr(loaded.model.config.get_text_config(), "initializer_range", None) or 0.02
    generator = torch.Generator().manual_seed(settings.seed)
    drawn = torch.randn(settings.vectors, weight.shape[1], generator=generator, dtype=torch.float64)
    start = precise((spread * drawn).to(weight.dtype)).to(weight.device)
    return Template.parse(text, loaded.spec.kind), start


def manual(loaded: Loaded, wording: str, prefix: str = "") -> tuple[Template, torch.Tensor]:
    """(template, vectors): every token of the wording a vector that starts at its embedding.

    `wording` holds [X] and [Y]; for a causal model it ends in [Y]. Raises ValueError where it has
    no word.
    """
    found = parse(named(wording.strip()))
    opens = not prefix or prefix.rstrip().endswith(SEPARATOR)
    parts: list[str] = []
    ids: list[int] = []
    pairs = [("", found.first), *((written, behind) for _, written, behind in found.parts)]
    for number, (slot, text) in enumerate(pairs):
        # blanks belong to the token behind them; the one before a field is the field's own
        starts = opens and number == 0
        own = pieces(loaded.tokenizer, [text.rstrip()], starts)[0] if text.strip() else []
        parts += [*([slot] if slot else []), *[TRIGGER] * len(own)]
        ids += own
    if not ids:
        raise ValueError(f"wording {wording!r} has no word for a vector to start at")
    weight = loaded.model.get_input_embeddings().weight.detach()
    return Template.parse(prefix + " ".join(parts), loaded.spec.kind), precise(weight[ids].clone())


def fit(
    predictor: Predictor,
    train: Rows,
    dev: Rows,
    words: Ints,
    start: torch.Tensor,
    settings: Settings,
    progress: Callable[[int], object] = lambda steps: None,
) -> tuple[torch.Tensor, dict[str, Any]]:
    """(vectors with the best P@1 among `words` on `dev`, record); the earliest on ties.

    Works on one thread. Raises RuntimeError should the model's own parameters change,
    NotFiniteError for scores, losses and gradients that are not finite, ModelError for a model
    whose rows must not be padded.
    """
    if settings.order not in ("shuffled", "file"):
        raise ValueError(f"order {settings.order!r}; legal: shuffled, file")
    refuse_padding(predictor.loaded, "continuous prompts")
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        frozen = Frozen(predictor.loaded)
        found = _fit(predictor, train, dev, words, start, settings, progress)
        frozen.check()
        return found
    finally:
        torch.set_num_threads(threads)


def steps(rows: int, settings: Settings) -> int:
    """How many steps a training on `rows` facts takes."""
    return settings.epochs * -(-rows // settings.batch)


def loss_of(
    predictor: Predictor, rows: Rows, batch: Sequence[int] | Ints, vectors: torch.Tensor
) -> torch.Tensor:
    """Mean of minus the gold's log-probability, over the whole vocabulary; has a gradient."""
    loaded, encoded = predictor.loaded, rows.encoded
    own = _own_ids(loaded, len(vectors))
    ids = []
    for i in batch:
        row = encoded.rows[i].copy()
        row[encoded.triggers[i]] = own
        ids.append(row)
    pad = loaded.tokenizer.pad_token_id or 0
    made, mask = padded(ids, pad, loaded.device)
    types = None
    if encoded.types is not None:
        types = padded([encoded.types[i] for i in batch], 0, loaded.device)[0]
    places = torch.from_numpy(encoded.places[list(batch)]).to(loaded.device)
    gold = torch.from_numpy(rows.gold[list(batch)]).to(loaded.device)
    with inserted(loaded, vectors):
        logits = predictor.parts.logits(predictor.parts.features(made, mask, places, types))
    loss = torch.nn.functional.cross_entropy(logits, gold)

    def where() -> str:
        own = torch.nn.functional.cross_entropy(logits, gold, reduction="none")
        row = first_wrong(own[:, None])
        return f"{rows.name(int(batch[row]))}, token {int(places[row])}"

    finite(loss, loaded.spec.model, where, "loss")
    return loss


def scores(
    predictor: Predictor,
    encoded: Encoded,
    vectors: torch.Tensor,
    words: Ints,
    name: Name = "example {}".format,
) -> NDArray[np.float64]:
    """(n, words) log-probabilities of the words under the continuous prompt."""
    with inserted(predictor.loaded, vectors):
        own = _own_ids(predictor.loaded, len(vectors)).tolist()
        return scores_of(predictor, encoded, own, words, name=name)


def precision(found: NDArray[np.float64], words: Ints, gold: Ints) -> float:
    """P@1 among `words`, expected under ties; a gold that is none of them is never first."""
    top = found == found.max(axis=1, keepdims=True)
    right = (top & (words[None, :] == gold[:, None])).any(axis=1)
    return float((right / top.sum(axis=1)).mean())


def _fit(
    predictor: Predictor,
    train: Rows,
    dev: Rows,
    words: Ints,
    start: torch.Tensor,
    settings: Settings,
    progress: Callable[[int], object],
) -> tuple[torch.Tensor, dict[str, Any]]:
    own = start.detach().clone().requires_grad_(True)
    optimizer = PlainAdamW(own)
    size = len(train.gold)
    total = steps(size, settings)
    order = np.random.default_rng(settings.seed)
    found = scores(predictor, dev.encoded, own.detach(), words, dev.name)
    best = precision(found, words, dev.gold)
    kept, chosen = own.detach().clone(), 0
    curve: list[list[float | None]] = [[0, None, best]]
    losses: list[float] = []
    for step, (batch, look) in enumerate(_batches(size, settings, order)):
        loss = loss_of(predictor, train, batch, own)
        (gradient,) = torch.autograd.grad(loss, own)
        finite(
            gradient,
            predictor.loaded.spec.model,
            lambda vector, _, step=step: f"step {step}, vector {vector}",
            "gradient",
        )
        optimizer.step(gradient, settings.rate * schedule(step, total, _warm(total, settings)))
        losses.append(float(loss.detach()))
        if look:
            found = scores(predictor, dev.encoded, own.detach(), words, dev.name)
            value = precision(found, words, dev.gold)
            curve.append([step + 1, float(np.mean(losses)), value])
            losses = []
            if value > best:
                best, kept, chosen = value, own.detach().clone(), step + 1
        progress(1)
    return kept, {
        "settings": asdict(settings),
        "vectors": len(start),
        "step": chosen,
        "dev": best,
        "curve": [[None if x is None else round(x, 6) for x in point] for point in curve],
        "train_rows": size,
        "dev_rows": len(dev.gold),
    }


def _batches(
    rows: int, settings: Settings, order: np.random.Generator
) -> Iterator[tuple[NDArray[np.int64], bool]]:
    """(examples of a step, whether dev is looked at after it), for all epochs."""
    count = -(-rows // settings.batch)
    looks = {round(count * (k + 1) / settings.checks) for k in range(settings.checks)} - {0}
    for _ in range(settings.epochs):
        shuffled = order.permutation(rows) if settings.order == "shuffled" else np.arange(rows)
        for number in range(count):
            start = number * settings.batch
            yield shuffled[start : start + settings.batch], number + 1 in looks


def _warm(total: int, settings: Settings) -> int:
    return int(total * settings.warmup)


def _own_ids(loaded: Loaded, count: int) -> Ints:
    first = rows_of_embedding(loaded)
    return np.arange(first, first + count, dtype=np.int64)

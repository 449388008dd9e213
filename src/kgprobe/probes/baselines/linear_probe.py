"""Linear probe: a linear classifier on a frozen model's states (AutoPrompt, Tables 1 and 2).

The mean of the last hidden states without special tokens, a linear layer, Adam with rate 1e-3; the
epoch that is best on the development examples is selected.
"""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import polars as pl
import torch
from numpy.typing import NDArray

from kgprobe.probes.baselines.classified import (
    TokenizedTexts,
    answers,
    body_of,
    hidden,
    log_softmax,
    read_splits,
    steady,
)
from kgprobe.probes.models.batching import Ints, budget_for, padded
from kgprobe.probes.models.finite import check_loss, finite
from kgprobe.probes.models.load import Loaded
from kgprobe.probes.models.predict import Name
from kgprobe.probes.ranked import accuracy, namer

Done = Callable[[int], object]
#: name of the layer in messages
MODEL = "linear probe"


@dataclass(frozen=True)
class LinearProbeSettings:
    """Training of the layer; `patience`: epochs without a better dev accuracy before stopping."""

    rate: float = 1e-3
    batch: int = 32
    epochs: int = 100
    patience: int = 10
    seed: int = 0


def linear_probe(
    loaded: Loaded,
    examples: pl.DataFrame,
    classes: Sequence[str],
    names: Sequence[str],
    settings: LinearProbeSettings = LinearProbeSettings(),
    done: Done = lambda examples: None,
) -> tuple[pl.DataFrame, dict[str, Any]]:
    """Return (OUTCOMES "linear_probe" of dev and test, record) of one classification task.

    `names` are the input fields, one text or a pair. `done` gets the number of examples
    that have been encoded.
    """
    splits = read_splits(loaded, examples, classes, names)
    vectors = {
        split: mean_vectors(loaded, one.texts, done, namer(one.rows))
        for split, one in splits.items()
    }
    train, dev = splits["train"].gold, splits["dev"].gold
    layer, record = fit(vectors["train"], train, vectors["dev"], dev, len(classes), settings)
    return answers(
        "linear_probe", splits, classes, lambda s, name: predict(layer, vectors[s], name), record
    )


@torch.inference_mode()
def mean_vectors(
    loaded: Loaded,
    texts: TokenizedTexts,
    done: Done = lambda examples: None,
    name: Name = "example {}".format,
) -> NDArray[np.float32]:
    """Return (n, width) float32: the mean of the last hidden states over non-special tokens.

    A text without such tokens has the zero vector. Raises NotFiniteError, with `name`.
    """
    body = body_of(loaded)
    vectors: list[Any] = [None] * len(texts)

    def forward(batch: Ints) -> None:
        states, _ = hidden(loaded, body, texts, batch)
        weight = padded([texts.words[i] for i in batch], 0, loaded.device)[0].float()
        total = (states.float() * weight[..., None]).sum(1)
        means = (total / weight.sum(1, keepdim=True).clamp(min=1)).cpu().numpy()
        finite(
            means,
            loaded.spec.model,
            lambda row, width: f"{name(int(batch[row]))}, component {width}",
            "mean hidden state",
        )
        for row, i in enumerate(batch):
            vectors[i] = means[row]
        done(len(batch))

    budget_for(loaded).run(texts.lengths, forward, name=name)
    return np.stack(vectors).astype(np.float32)


def fit(
    train: NDArray[np.float32],
    labels: Ints,
    dev: NDArray[np.float32],
    dev_labels: Ints,
    classes: int,
    settings: LinearProbeSettings,
) -> tuple[torch.nn.Linear, dict[str, Any]]:
    """Train a layer with cross-entropy, reshuffling every epoch; return (layer, record).

    The first epoch with the highest dev accuracy is selected.
    """
    x, y = torch.from_numpy(train), torch.from_numpy(labels)
    order = np.random.default_rng(settings.seed)
    with steady(settings.seed):
        layer = torch.nn.Linear(x.shape[1], classes)
        optimizer = torch.optim.Adam(layer.parameters(), lr=settings.rate)
        best, chosen, kept, curve = -1.0, -1, layer.state_dict(), []
        for epoch in range(settings.epochs):
            shuffled = torch.from_numpy(order.permutation(len(x)))
            for batch in shuffled.split(settings.batch):
                logits = layer(x[batch])
                loss = torch.nn.functional.cross_entropy(logits, y[batch])
                check_loss(loss, logits, MODEL, epoch, batch)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            curve.append(accuracy(predict(layer, dev), dev_labels))
            if curve[-1] > best:
                best, chosen = curve[-1], epoch
                kept = {name: value.clone() for name, value in layer.state_dict().items()}
            if epoch - chosen >= settings.patience:
                break
    layer.load_state_dict(kept)
    return layer, {
        "settings": asdict(settings),
        "epoch": chosen,
        "dev_accuracy": best,
        "curve": [round(value, 6) for value in curve],
    }


@torch.no_grad()
def predict(
    layer: torch.nn.Linear, vectors: NDArray[np.float32], name: Name = "example {}".format
) -> NDArray[np.float64]:
    """Return class log-probabilities (n x classes); NotFiniteError names examples."""
    return log_softmax(layer(torch.from_numpy(vectors)), MODEL, name)

"""Label tokens of a classification task, in two steps (Shin et al. 2020, section 2.3, eq. 3 to 5).

    vectors at [P], all triggers masked   --train-->   one logistic regression over the classes
    every row of the output embedding in their place   --ranking-->   tokens per class

The vectors are the inputs of the output embedding: only there its rows are on the same
scale as a hidden state. They do not change during the training, so the model
runs once and the 50 epochs run on its vectors.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from kgprobe.metrics.intervals import wilson
from kgprobe.probes.models.finite import check_loss, finite
from kgprobe.probes.models.predict import Predictor
from kgprobe.probes.ranked import accuracy, class_numbers
from kgprobe.probes.text.prompts import encode
from kgprobe.templates import Template

#: Fields of examples, and the class of each.
Labeled = tuple[Sequence[Mapping[str, str]], Sequence[str]]
Floats = NDArray[np.float32]

#: Rows of the vocabulary whose class scores are computed at once.
SLICE = 8192


class LabelSearchError(RuntimeError):
    """No label tokens can be found; the message gives the measurement and advice."""


@dataclass(frozen=True)
class LabelSearchSettings:
    """Label search. `bias`: the paper's eq. 5 adds each class's bias, the released code drops it.

    `listed` tokens per class are kept in the order of their scores. `at_chance` sets what happens
    if the probe's dev accuracy is not distinguishable from the majority class's: stop or keep.
    """

    epochs: int = 50
    batch: int = 32
    rate: float = 3e-4
    bias: bool = True
    seed: int = 0
    listed: int = 50
    at_chance: str = "stop"


@dataclass(frozen=True)
class LabelClassifier:
    """Logistic regression over classes (sorted): weight (classes x width) and bias."""

    classes: tuple[str, ...]
    weight: Floats
    bias: Floats

    def logits(self, vectors: Floats, bias: bool = True) -> NDArray[np.float64]:
        """Return class scores (rows x classes) in float64."""
        scores = vectors.astype(np.float64) @ self.weight.astype(np.float64).T
        return np.asarray(scores + self.bias if bias else scores)


#: Token ids per class, the best first, without a token in common; and the probe's record.
LabelTokens = tuple[dict[str, tuple[int, ...]], dict[str, Any]]


def find(
    predictor: Predictor,
    template: Template,
    train: Labeled,
    dev: Labeled,
    allowed: NDArray[np.bool_] | None = None,
    settings: LabelSearchSettings = LabelSearchSettings(),
    truncate: str = "",
    habits: str = "default",
    progress: Callable[[int], object] = lambda epochs: None,
) -> LabelTokens:
    """Find label tokens of a task for this model and template: `vectors`, then `search`.

    `train` and `dev` are the fields of examples with their classes; use the template, and therefore
    the number of triggers, of the prompt search that follows. Raises NotFiniteError, with model and
    example or token, and the errors of `search`.
    """
    data = [
        (vectors(predictor, template, fields, truncate, habits), labels)
        for fields, labels in (train, dev)
    ]
    rows = predictor.output_rows()[0].float().cpu().numpy()
    finite(
        rows,
        predictor.loaded.spec.model,
        lambda token, width: f"token {token}, component {width}",
        "output embedding",
    )
    return search(data[0], data[1], rows, allowed, settings, progress)


def vectors(
    predictor: Predictor,
    template: Template,
    fields: Sequence[Mapping[str, str]],
    truncate: str = "",
    habits: str = "default",
) -> Floats:
    """Compute float32 vectors at [P] (n x width) with the initial token at all triggers."""
    encoded = encode(predictor.loaded, template, fields, None, truncate, habits)
    return predictor.features(encoded.rows, encoded.places, encoded.types, "example {}".format)


def search(
    train: tuple[Floats, Sequence[str]],
    dev: tuple[Floats, Sequence[str]],
    rows: Floats,
    allowed: NDArray[np.bool_] | None = None,
    settings: LabelSearchSettings = LabelSearchSettings(),
    progress: Callable[[int], object] = lambda epochs: None,
) -> LabelTokens:
    """Run both steps on cached vectors.

    `train` and `dev` are vectors at [P] (n x width) with their classes, `rows` is the output
    embedding (vocabulary x width), `allowed` masks tokens that may be labels. Raises
    LabelSearchError if the probe is no better on dev than the most common training class.
    """
    probe = train_probe(*train, settings, progress)
    record = judge(probe, train[1], *dev)
    if record["at_chance"] and settings.at_chance == "stop":
        raise LabelSearchError(
            f"the label probe reaches {record['dev']:.3f} "
            f"({record['low']:.3f} to {record['high']:.3f}, n = {record['n']}) on dev, the "
            f"majority class {record['majority']:.3f}: its tokens would mean nothing; use more "
            "training examples, another template or label tokens of your own (or at_chance: keep)"
        )
    ids = ranking(probe, rows, settings.listed, allowed, settings.bias)
    return ids, {**record, "settings": asdict(settings)}


def train_probe(
    vectors: Floats,
    labels: Sequence[str],
    settings: LabelSearchSettings = LabelSearchSettings(),
    progress: Callable[[int], object] = lambda epochs: None,
) -> LabelClassifier:
    """Train the probe (step 1): cross-entropy, Adam, float32, on a CPU, determined by the seed."""
    classes = tuple(sorted(set(labels)))
    if len(classes) < 2:
        raise LabelSearchError(f"label search needs two classes or more, got {list(classes)}")
    generator = torch.Generator().manual_seed(settings.seed)
    # skip torch's own initialization, which depends on the random state of the process
    layer = nn.utils.skip_init(nn.Linear, vectors.shape[1], len(classes))
    bound = vectors.shape[1] ** -0.5
    with torch.no_grad():
        layer.weight.uniform_(-bound, bound, generator=generator)
        layer.bias.uniform_(-bound, bound, generator=generator)
    inputs = torch.from_numpy(np.ascontiguousarray(vectors, dtype=np.float32))
    golds = torch.from_numpy(class_numbers(labels, classes))
    optimizer = torch.optim.Adam(layer.parameters(), lr=settings.rate)
    for epoch in range(settings.epochs):
        for batch in torch.randperm(len(golds), generator=generator).split(settings.batch):
            optimizer.zero_grad()
            logits = layer(inputs[batch])
            loss = nn.functional.cross_entropy(logits, golds[batch])
            check_loss(loss, logits, "label probe", epoch, batch)
            loss.backward()
            optimizer.step()
        progress(1)
    return LabelClassifier(classes, layer.weight.detach().numpy(), layer.bias.detach().numpy())


def judge(
    probe: LabelClassifier, train: Sequence[str], vectors: Floats, labels: Sequence[str]
) -> dict[str, Any]:
    """Return dev accuracy, n, Wilson interval, the majority's accuracy, and whether they
    overlap."""
    if not len(labels):
        raise LabelSearchError("no dev examples: the label probe cannot be judged")
    value = accuracy(probe.logits(vectors), class_numbers(labels, probe.classes))
    low, high = wilson(value * len(labels), len(labels))
    # with equal counts the first class wins
    common = max(probe.classes, key=[*train].count)
    majority = [*labels].count(common) / len(labels)
    return {
        "dev": value, "low": low, "high": high, "n": len(labels), "train_n": len(train),
        "majority": majority, "at_chance": bool(low <= majority),
    }  # fmt: skip


def ranking(
    probe: LabelClassifier,
    rows: Floats,
    count: int,
    allowed: NDArray[np.bool_] | None = None,
    bias: bool = True,
) -> dict[str, tuple[int, ...]]:
    """Return (step 2) per class the `count` tokens with the largest s(y, w), softmax over classes.

    A token that two classes want goes to the one with the higher score (the first class in order,
    if equal); with equal scores in a class the lower id comes first. Scores are compared as log
    odds, which give the same ranking and do not saturate near 1.
    """
    scores = class_scores(probe, rows, bias)
    usable = np.arange(len(rows)) if allowed is None else np.flatnonzero(allowed)
    if len(usable) < count * len(probe.classes):
        raise LabelSearchError(
            f"{len(usable)} tokens may be labels, {count} for each of {len(probe.classes)} classes "
            "are asked for"
        )
    # each other class can take at most `count` tokens of a list
    reach = min(count * len(probe.classes), len(usable))
    wanted = []
    for number in range(len(probe.classes)):
        best = usable[np.lexsort((usable, -scores[usable, number]))[:reach]]
        wanted += [(-scores[token, number], number, token) for token in best.tolist()]
    used: set[int] = set()
    lists: list[list[int]] = [[] for _ in probe.classes]
    for _, number, token in sorted(wanted):
        if len(lists[number]) < count and token not in used:
            used.add(token)
            lists[number].append(token)
    return {name: tuple(ids) for name, ids in zip(probe.classes, lists, strict=True)}


def class_scores(probe: LabelClassifier, rows: Floats, bias: bool = True) -> NDArray[np.float64]:
    """Return logit s(y, w) (vocabulary x classes): log odds of a class against all others."""
    odds = np.empty((len(rows), len(probe.classes)))
    for start in range(0, len(rows), SLICE):
        logits = probe.logits(rows[start : start + SLICE], bias)
        for number in range(len(probe.classes)):
            others = np.delete(logits, number, axis=1)
            top = others.max(axis=1)
            total = top + np.log(np.exp(others - top[:, None]).sum(axis=1))
            odds[start : start + SLICE, number] = logits[:, number] - total
    return odds

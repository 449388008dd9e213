"""Fine-tuning: all weights of a copy of the model, and a new classification head.

    low data    20 epochs, rate rising to 2e-5 over the first 10 % of the steps, then linear to 0
    full data   3 epochs, batch 32, the same schedule; the epoch that is best on dev

AutoPrompt, Figure 2, after Mosbach, Andriushchenko, Klakow 2020 (AdamW with bias correction).
Its batch size is not stated: 16 here. The head is RoBERTa's (dense, tanh, linear, dropout) on the
first token, for causal models on the last: a masked LM comes without BERT's pretrained pooler.
"""

import copy
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import polars as pl
import torch
from numpy.typing import NDArray
from torch import nn

from kgprobe.probes.baselines.classified import (
    TokenizedTexts,
    accuracy,
    body_of,
    check_loss,
    classes_of,
    hidden,
    log_softmax,
    read_texts,
    steady,
)
from kgprobe.probes.models.batching import Budget, Ints, budget_for
from kgprobe.probes.models.load import Loaded
from kgprobe.probes.models.predict import Name
from kgprobe.probes.prompts.trained.soft import schedule
from kgprobe.probes.ranked import fields, namer, outcomes, part


@dataclass(frozen=True)
class FinetuneSettings:
    """Hyper-parameters. `keep`: last epoch, or the first with the best dev accuracy (best)."""

    epochs: int = 20
    batch: int = 16
    rate: float = 2e-5
    warmup: float = 0.1
    decay: float = 0.01
    clip: float = 1.0
    dropout: float = 0.1
    keep: str = "last"
    seed: int = 0


#: what the paper states for few examples, and what is used with all of them
LOW = FinetuneSettings()
FULL = FinetuneSettings(epochs=3, batch=32, keep="best")


class Classifier(nn.Module):
    """A body with a head at one token of each text; bodies in half precision become float32."""

    def __init__(self, body: Any, width: int, classes: int, dropout: float, last: bool) -> None:
        super().__init__()
        self.body, self.last = body.float().requires_grad_(True), last
        self.dense, self.output = nn.Linear(width, width), nn.Linear(width, classes)
        self.drop = nn.Dropout(dropout)
        for layer in (self.dense, self.output):
            nn.init.normal_(layer.weight, std=0.02)
            nn.init.zeros_(layer.bias)

    def forward(
        self, texts: TokenizedTexts, batch: Sequence[int] | Ints, pad: int, device: Any
    ) -> Any:
        """Logits (examples x classes)."""
        states, mask = hidden(self.body, texts, batch, pad, device)
        at = mask.sum(1) - 1 if self.last else torch.zeros_like(mask[:, 0])
        read = self.drop(states[torch.arange(len(states), device=device), at])
        return self.output(self.drop(torch.tanh(self.dense(read))))


def finetune(
    loaded: Loaded,
    examples: pl.DataFrame,
    classes: Sequence[str],
    names: Sequence[str],
    settings: FinetuneSettings = FULL,
    budget: Budget | None = None,
    progress: Callable[[int], object] = lambda steps: None,
) -> tuple[pl.DataFrame, dict[str, Any]]:
    """(OUTCOMES "finetuned" of dev and test, record) of one classification task.

    `loaded` stays as it is. `names` are the fields that are read, one text or a pair. `progress` is
    called with 1 after every step of `steps`.
    """
    texts, gold, parts = {}, {}, {}
    for split in ("train", "dev", "test"):
        parts[split] = part(examples, split)
        texts[split] = read_texts(loaded, fields(parts[split]), names)
        gold[split] = classes_of(parts[split]["label"].to_list(), classes)
    model, record = fit(loaded, texts, gold, len(classes), settings, budget, progress)
    frames = [
        outcomes(
            "finetuned",
            parts[split],
            classes,
            predict(model, loaded, texts[split], budget, namer(parts[split])),
        )
        for split in ("dev", "test")
    ]
    return pl.concat(frames), {**record, "cut": sum(t.cut for t in texts.values())}


def fit(
    loaded: Loaded,
    texts: dict[str, TokenizedTexts],
    gold: dict[str, Ints],
    classes: int,
    settings: FinetuneSettings,
    budget: Budget | None = None,
    progress: Callable[[int], object] = lambda steps: None,
) -> tuple[Classifier, dict[str, Any]]:
    """(trained classifier in evaluation mode, record); the same bytes for the same seed.

    `texts` and `gold` by split: train, and dev for the choice of the epoch.
    """
    if settings.keep not in ("last", "best"):
        raise ValueError(f"keep {settings.keep!r}; legal: last, best")
    with steady(settings.seed):
        model = _classifier(loaded, classes, settings)
        return _fit(model, loaded, texts, gold, settings, budget, progress)


def steps(rows: int, settings: FinetuneSettings) -> int:
    """How many steps a training on `rows` examples takes."""
    return settings.epochs * math.ceil(rows / settings.batch)


@torch.no_grad()
def predict(
    model: Classifier,
    loaded: Loaded,
    texts: TokenizedTexts,
    budget: Budget | None = None,
    name: Name = "example {}".format,
) -> NDArray[np.float64]:
    """Log-probabilities of the classes (n x classes), dropout off; NotFiniteError by `name`."""
    pad = loaded.tokenizer.pad_token_id or 0
    rows: list[Any] = [None] * len(texts)
    model.eval()

    def forward(batch: Ints) -> None:
        scores = log_softmax(
            model(texts, batch, pad, loaded.device),
            f"{loaded.spec.model}, fine-tuned",
            lambda row: name(int(batch[row])),
        )
        for row, i in enumerate(batch):
            rows[i] = scores[row]

    (budget or budget_for(loaded)).run(texts.lengths, forward, name=name)
    return np.stack(rows)


def _fit(
    model: Classifier,
    loaded: Loaded,
    texts: dict[str, TokenizedTexts],
    gold: dict[str, Ints],
    settings: FinetuneSettings,
    budget: Budget | None,
    progress: Callable[[int], object],
) -> tuple[Classifier, dict[str, Any]]:
    labels = torch.from_numpy(gold["train"]).to(loaded.device)
    optimizer = torch.optim.AdamW(_groups(model, settings.decay), lr=settings.rate)
    total = steps(len(labels), settings)
    pad = loaded.tokenizer.pad_token_id or 0
    order = np.random.default_rng(settings.seed)
    kept, chosen, best, curve, step = None, settings.epochs - 1, -1.0, [], 0
    for epoch in range(settings.epochs):
        model.train()
        losses = []
        for batch in _batches(len(labels), settings.batch, order):
            rate = settings.rate * schedule(step, total, round(settings.warmup * total))
            for group in optimizer.param_groups:
                group["lr"] = rate
            logits = model(texts["train"], batch, pad, loaded.device)
            loss = nn.functional.cross_entropy(logits, labels[batch])
            check_loss(loss, logits, f"{loaded.spec.model}, fine-tuned", epoch, batch)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), settings.clip)
            optimizer.step()
            step += 1
            losses.append(float(loss.detach()))
            progress(1)
        dev = None
        if settings.keep == "best":
            dev = accuracy(predict(model, loaded, texts["dev"], budget), gold["dev"])
            if dev > best:
                best, chosen = dev, epoch
                kept = {n: v.detach().clone() for n, v in model.state_dict().items()}
        curve.append([round(float(np.mean(losses)), 6), dev])
    if kept is not None:
        model.load_state_dict(kept)
    return model.eval(), {"settings": asdict(settings), "epoch": chosen, "curve": curve}


def _classifier(loaded: Loaded, classes: int, settings: FinetuneSettings) -> Classifier:
    body = copy.deepcopy(body_of(loaded))
    text = loaded.model.config.get_text_config()
    return Classifier(
        body, int(text.hidden_size), classes, settings.dropout, loaded.spec.kind == "causal"
    ).to(loaded.device)


def _groups(model: nn.Module, decay: float) -> list[dict[str, Any]]:
    """Biases and norms (vectors) are not decayed."""
    named = [p for p in model.parameters() if p.requires_grad]
    return [
        {"params": [p for p in named if p.ndim > 1], "weight_decay": decay},
        {"params": [p for p in named if p.ndim < 2], "weight_decay": 0.0},
    ]


def _batches(rows: int, size: int, order: np.random.Generator) -> Iterator[NDArray[np.int64]]:
    shuffled = order.permutation(rows)
    for start in range(0, rows, size):
        yield shuffled[start : start + size]

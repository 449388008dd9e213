"""Fine-tuning: all weights of a copy of the model, and a new classification head.

    low data    20 epochs, rate rising to 2e-5 over the first 10 % of the steps, then linear to 0
    full data   3 epochs, batch 32, the same schedule; the epoch that is best on dev

AutoPrompt, Figure 2, after Mosbach, Andriushchenko, Klakow 2020 (AdamW with bias correction).
Its batch size is not stated: 16 here. The head is RoBERTa's (dense, tanh, linear, dropout) on the
first token, for causal models on the last: a masked LM comes without BERT's pretrained pooler.
"""

import copy
import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import polars as pl
import torch
from numpy.typing import NDArray
from torch import nn

from kgprobe.probes.baselines.classified import (
    Split,
    TokenizedTexts,
    answers,
    batches,
    body_of,
    hidden,
    log_softmax,
    read_splits,
    steady,
)
from kgprobe.probes.models.batching import Ints, budget_for
from kgprobe.probes.models.checks import sample
from kgprobe.probes.models.finite import check_loss
from kgprobe.probes.models.load import Loaded
from kgprobe.probes.models.predict import Name
from kgprobe.probes.prompts.trained.soft import schedule
from kgprobe.probes.ranked import accuracy


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


#: settings of the paper for few examples, and ours for all examples
LOW = FinetuneSettings()
FULL = FinetuneSettings(epochs=3, batch=32, keep="best")


class Classifier(nn.Module):
    """A body with a head at one token of each text; half-precision bodies become float32."""

    def __init__(self, loaded: Loaded, classes: int, dropout: float) -> None:
        super().__init__()
        self.loaded = loaded
        self.body = copy.deepcopy(body_of(loaded)).float().requires_grad_(True)
        # some bodies end with a projection to another width than hidden_size (OPT-350M)
        ids = torch.from_numpy(np.stack(sample(loaded, (2,)))).to(loaded.device)
        with torch.no_grad():
            width = int(self.body(input_ids=ids).last_hidden_state.shape[-1])
        self.dense, self.output = nn.Linear(width, width), nn.Linear(width, classes)
        self.drop = nn.Dropout(dropout)
        for layer in (self.dense, self.output):
            nn.init.normal_(layer.weight, std=0.02)
            nn.init.zeros_(layer.bias)

    def forward(self, texts: TokenizedTexts, batch: Sequence[int] | Ints) -> Any:
        """Return logits (examples x classes)."""
        states, mask = hidden(self.loaded, self.body, texts, batch)
        is_last = self.loaded.spec.kind == "causal"
        at = mask.sum(1) - 1 if is_last else torch.zeros_like(mask[:, 0])
        read = self.drop(states[torch.arange(len(states), device=states.device), at])
        return self.output(self.drop(torch.tanh(self.dense(read))))


def finetune(
    loaded: Loaded,
    examples: pl.DataFrame,
    classes: Sequence[str],
    names: Sequence[str],
    settings: FinetuneSettings = FULL,
    progress: Callable[[int], object] = lambda steps: None,
) -> tuple[pl.DataFrame, dict[str, Any]]:
    """Return (OUTCOMES "finetuned" of dev and test, record) of one classification task.

    `loaded` is unchanged. `names` are the input fields, one text or a pair. `progress` is
    called with 1 after every step of `steps`.
    """
    splits = read_splits(loaded, examples, classes, names)
    with steady(settings.seed):
        model = Classifier(loaded, len(classes), settings.dropout).to(loaded.device)
        record = _fit(model, splits, settings, progress)
    return answers(
        "finetuned", splits, classes, lambda s, name: predict(model, splits[s].texts, name), record
    )


def steps(rows: int, settings: FinetuneSettings) -> int:
    """Return the number of training steps on `rows` examples."""
    return settings.epochs * math.ceil(rows / settings.batch)


@torch.no_grad()
def predict(
    model: Classifier, texts: TokenizedTexts, name: Name = "example {}".format
) -> NDArray[np.float64]:
    """Return class log-probabilities (n x classes), dropout off; NotFiniteError names examples."""
    scores = np.zeros((len(texts), model.output.out_features))
    title = f"{model.loaded.spec.model}, fine-tuned"
    model.eval()

    def forward(batch: Ints) -> None:
        logits = model(texts, batch)
        scores[batch] = log_softmax(logits, title, lambda row: name(int(batch[row])))

    budget_for(model.loaded).run(texts.lengths, forward, name=name)
    return scores


def _fit(
    model: Classifier,
    splits: dict[str, Split],
    settings: FinetuneSettings,
    progress: Callable[[int], object],
) -> dict[str, Any]:
    """Train the classifier, leave it in evaluation mode, and return the record."""
    loaded, train, dev_split = model.loaded, splits["train"], splits["dev"]
    labels = torch.from_numpy(train.gold).to(loaded.device)
    optimizer = torch.optim.AdamW(_groups(model, settings.decay), lr=settings.rate)
    total = steps(len(labels), settings)
    order = np.random.default_rng(settings.seed)
    kept, chosen, best, curve, step = None, settings.epochs - 1, -1.0, [], 0
    for epoch in range(settings.epochs):
        model.train()
        losses = []
        for batch in batches(len(labels), settings.batch, order):
            rate = settings.rate * schedule(step, total, round(settings.warmup * total))
            for group in optimizer.param_groups:
                group["lr"] = rate
            logits = model(train.texts, batch)
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
            dev = accuracy(predict(model, dev_split.texts), dev_split.gold)
            if dev > best:
                best, chosen = dev, epoch
                kept = {n: v.detach().clone() for n, v in model.state_dict().items()}
        curve.append([round(float(np.mean(losses)), 6), dev])
    if kept is not None:
        model.load_state_dict(kept)
    model.eval()
    return {"settings": asdict(settings), "epoch": chosen, "curve": curve}


def _groups(model: nn.Module, decay: float) -> list[dict[str, Any]]:
    """Group parameters so that biases and norms (vectors) have no weight decay."""
    named = [p for p in model.parameters() if p.requires_grad]
    return [
        {"params": [p for p in named if p.ndim > 1], "weight_decay": decay},
        {"params": [p for p in named if p.ndim < 2], "weight_decay": 0.0},
    ]

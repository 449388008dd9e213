"""Classifiers without any prompt: a linear probe, and fine-tuning.

Linear probe (AutoPrompt, Tables 1 and 2): the mean of a frozen model's last hidden states without
special tokens, a linear layer, Adam with rate 1e-3; the epoch that is best on the development
examples is selected. Fine-tuning: all weights of a copy of the model, and a new head.

    low data    20 epochs, rate rising to 2e-5 over the first 10 % of the steps, then linear to 0
    full data   3 epochs, batch 32, the same schedule; the epoch that is best on dev

AutoPrompt, Figure 2, after Mosbach, Andriushchenko, Klakow 2020 (AdamW with bias correction).
Its batch size is not stated: 16 here. The head is RoBERTa's (dense, tanh, linear, dropout) on the
first token, for causal models on the last: a masked LM comes without BERT's pretrained pooler.
"""

import contextlib
import copy
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import polars as pl
import torch
from numpy.typing import NDArray
from torch import nn

from kgprobe.probes.models.batching import Ints, budget_for, padded
from kgprobe.probes.models.checks import refuse_padding, sample
from kgprobe.probes.models.device import one_thread
from kgprobe.probes.models.finite import check_loss, finite
from kgprobe.probes.models.load import Loaded
from kgprobe.probes.models.predict import Name
from kgprobe.probes.prompts.trained.soft import schedule
from kgprobe.probes.ranked import accuracy, class_numbers, fields, namer, outcomes, part
from kgprobe.probes.text.encode import frame, pieces, refuse_control_tokens


@dataclass(frozen=True)
class TokenizedTexts:
    """Token ids of every example; `words` marks non-special tokens.

    `types` are token types if the tokenizer returns them; `cut` examples were shortened.
    """

    rows: list[Ints]
    words: list[NDArray[np.bool_]]
    types: list[Ints] | None
    cut: int = 0

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def lengths(self) -> Ints:
        """Number of tokens of every example."""
        return np.array([len(row) for row in self.rows], dtype=np.int64)


def read_texts(
    loaded: Loaded, examples: Sequence[Mapping[str, str]], names: Sequence[str]
) -> TokenizedTexts:
    """Tokenize one or two fields of every example, with the special tokens of a text or a pair.

    A causal model has no pairs: the fields are joined by a space, after the BOS prefix. In a text
    that is too long for the model the longer field loses tokens from its end; such texts are
    counted.
    """
    columns = [[item[name] for item in examples] for name in names]
    if loaded.spec.kind == "causal":
        columns = [[" ".join(parts) for parts in zip(*columns, strict=True)]]
    for column in columns:
        refuse_control_tokens(loaded.tokenizer, column, "example {}".format)
    around = frame(loaded, len(columns) == 2)
    tokens = [pieces(loaded.tokenizer, column, starts=True) for column in columns]
    room = loaded.limit - len(around.front) - len(around.middle) - len(around.back)
    rows, words, types, cut = [], [], [], 0
    for lists in zip(*tokens, strict=True):
        short = truncate(lists, room)
        cut += short != list(lists)
        # (ids, token types, whether they are words) of special tokens and texts in turn
        parts = [(around.front, around.types_front, False)]
        for number, text in enumerate(short):
            parts += [(around.middle, around.types_middle, False)] * (number > 0)
            parts.append((text, [around.types[number]] * len(text), True))
        parts.append((around.back, around.types_back, False))
        rows.append(np.array([i for ids, _, _ in parts for i in ids], dtype=np.int64))
        types.append(np.array([t for _, kinds, _ in parts for t in kinds], dtype=np.int64))
        words.append(np.array([is_word for ids, _, is_word in parts for _ in ids], dtype=bool))
    return TokenizedTexts(rows, words, types if around.typed else None, cut)


def truncate(parts: Sequence[list[int]], room: int) -> list[list[int]]:
    """Cut token lists to `room` tokens in total; the longest list loses its last tokens."""
    lists = [list(part) for part in parts]
    while sum(map(len, lists)) > room:
        longest = max(range(len(lists)), key=lambda i: len(lists[i]))
        if not lists[longest]:
            raise ValueError(f"a limit of {room} tokens leaves no room for any text")
        lists[longest].pop()
    return lists


def body_of(loaded: Loaded) -> Any:
    """Return the part of the model that computes hidden states: all but the head (T5: its encoder).

    Raises ModelError for a model whose rows must not be padded.
    """
    refuse_padding(loaded, "classifiers")
    return loaded.model.get_encoder() if loaded.spec.kind == "seq2seq" else loaded.model.base_model


def hidden(loaded: Loaded, body: Any, texts: TokenizedTexts, batch: Sequence[int] | Ints) -> Any:
    """Return (last hidden states, rows x longest x width; mask of real tokens) of some examples."""
    pad, device = loaded.tokenizer.pad_token_id or 0, loaded.device
    ids, mask = padded([texts.rows[i] for i in batch], pad, device)
    extra = {}
    if texts.types is not None:
        extra["token_type_ids"] = padded([texts.types[i] for i in batch], 0, device)[0]
    return body(input_ids=ids, attention_mask=mask, **extra).last_hidden_state, mask


@dataclass(frozen=True)
class Split:
    """EXAMPLES of a split, their texts, and their class indices."""

    rows: pl.DataFrame
    texts: TokenizedTexts
    gold: Ints


def read_splits(
    loaded: Loaded, examples: pl.DataFrame, classes: Sequence[str], names: Sequence[str]
) -> dict[str, Split]:
    """Read the splits train, dev and test; `names` are the input fields."""
    splits = {}
    for split in ("train", "dev", "test"):
        rows = part(examples, split)
        texts = read_texts(loaded, fields(rows), names)
        splits[split] = Split(rows, texts, class_numbers(rows["label"].to_list(), classes))
    return splits


def answers(
    prompt: str,
    splits: Mapping[str, Split],
    classes: Sequence[str],
    predict: Callable[[str, Name], NDArray[np.float64]],
    record: Mapping[str, Any],
) -> tuple[pl.DataFrame, dict[str, Any]]:
    """Return (OUTCOMES of dev and test, record); `predict` returns the class scores of a split."""
    frames = [
        outcomes(prompt, splits[split].rows, classes, predict(split, namer(splits[split].rows)))
        for split in ("dev", "test")
    ]
    return pl.concat(frames), {**record, "cut": sum(one.texts.cut for one in splits.values())}


def log_softmax(logits: Any, model: str, name: Callable[[int], str]) -> NDArray[np.float64]:
    """Return log-probabilities of classes (rows x classes) as numpy float64; they must be finite.

    `name` describes an example by row.
    """
    logprobs: NDArray[np.float64] = torch.log_softmax(logits.double(), dim=-1).cpu().numpy()
    finite(logprobs, model, lambda row, number: f"{name(row)}, class {number}")
    return logprobs


def batches(rows: int, size: int, order: np.random.Generator) -> Iterator[Ints]:
    """Yield the numbers of all rows in a random order, `size` at a time."""
    shuffled = order.permutation(rows)
    for start in range(0, rows, size):
        yield shuffled[start : start + size]


@contextlib.contextmanager
def steady(seed: int) -> Iterator[None]:
    """Run torch on one thread with random numbers from `seed`, inside the context."""
    with one_thread(), torch.random.fork_rng():
        torch.manual_seed(seed)
        yield


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

    def predicted(split: str, name: Name) -> NDArray[np.float64]:
        return class_scores(model, splits[split].texts, name)

    return answers("finetuned", splits, classes, predicted, record)


def steps(rows: int, settings: FinetuneSettings) -> int:
    """Return the number of training steps on `rows` examples."""
    return settings.epochs * math.ceil(rows / settings.batch)


@torch.no_grad()
def class_scores(
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
            dev = accuracy(class_scores(model, dev_split.texts), dev_split.gold)
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

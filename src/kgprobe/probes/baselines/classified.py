"""Texts and classes of a classification task as a model reads them, without any prompt."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from kgprobe.probes.models.batching import Ints, padded
from kgprobe.probes.models.load import Loaded
from kgprobe.probes.scoring.encode import bos_prefix


@dataclass(frozen=True)
class Texts:
    """Token ids of every example; `words` marks tokens that are no special ones.

    `types` are token types where the tokenizer gives them; `cut` examples were shortened.
    """

    rows: list[Ints]
    words: list[NDArray[np.bool_]]
    types: list[Ints] | None
    cut: int = 0

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def lengths(self) -> Ints:
        """Tokens of every example."""
        return np.array([len(row) for row in self.rows], dtype=np.int64)


def read_texts(loaded: Loaded, fields: Sequence[Mapping[str, str]], names: Sequence[str]) -> Texts:
    """One or two fields of every example as the model's tokenizer encodes a text or a pair.

    A causal model has no pairs: the fields stand behind each other with a blank, after what the BOS
    policy says. Longer texts than the model takes are cut, and counted. Raises ValueError for a
    field that is not there.
    """
    if not 1 <= len(names) <= 2:
        raise ValueError(f"fields {list(names)}; expected one text or a pair")
    for number, own in enumerate(fields):
        missing = [name for name in names if name not in own]
        if missing:
            raise ValueError(f"example {number} has no field {missing[0]!r}; it has {sorted(own)}")
    causal = loaded.spec.kind == "causal"
    front = bos_prefix(loaded)[0] if causal else np.zeros(0, dtype=np.int64)
    columns = [[own[name] for own in fields] for name in names]
    if causal:
        columns = [[" ".join(parts) for parts in zip(*columns, strict=True)]]
    limit = loaded.limit - len(front)
    options = {
        "add_special_tokens": not causal,
        "return_special_tokens_mask": True,
        "return_token_type_ids": True,
        "return_attention_mask": False,
    }
    coded = loaded.tokenizer(*columns, **options)
    long = sum(len(ids) > limit for ids in coded["input_ids"])
    if long:
        coded = loaded.tokenizer(*columns, truncation=True, max_length=limit, **options)
    rows, words = [], []
    for ids, special in zip(coded["input_ids"], coded["special_tokens_mask"], strict=True):
        own = ~np.concatenate([np.ones(len(front), dtype=bool), np.array(special, dtype=bool)])
        rows.append(np.concatenate([front, np.array(ids, dtype=np.int64)]).astype(np.int64))
        words.append(own)
    types = None
    if not causal and any(any(row) for row in coded["token_type_ids"]):
        types = [np.array(row, dtype=np.int64) for row in coded["token_type_ids"]]
    return Texts(rows, words, types, long)


def body_of(loaded: Loaded) -> Any:
    """The part of the model that gives hidden states: all of it but the head (T5: its encoder)."""
    return loaded.model.get_encoder() if loaded.spec.kind == "seq2seq" else loaded.model.base_model


def hidden(body: Any, texts: Texts, batch: Sequence[int] | Ints, pad: int, device: Any) -> Any:
    """(last hidden states rows x longest x width, mask of real tokens) of some examples."""
    ids, mask = padded([texts.rows[i] for i in batch], pad, device)
    extra = {}
    if texts.types is not None:
        extra["token_type_ids"] = padded([texts.types[i] for i in batch], 0, device)[0]
    return body(input_ids=ids, attention_mask=mask, **extra).last_hidden_state, mask


def classes_of(labels: Sequence[str], classes: Sequence[str]) -> Ints:
    """The number of every label; ValueError names the first that is no class."""
    number = {name: i for i, name in enumerate(classes)}
    for label in labels:
        if label not in number:
            raise ValueError(f"label {label!r} is none of the classes {list(classes)}")
    return np.array([number[label] for label in labels], dtype=np.int64)


def accuracy(scores: NDArray[Any], gold: Ints) -> float:
    """Share of rows whose first largest score is the gold's."""
    return float((scores.argmax(axis=1) == gold).mean())


def log_softmax(logits: Any) -> NDArray[np.float64]:
    """Log-probabilities of classes as numpy float64."""
    found: NDArray[np.float64] = torch.log_softmax(logits.double(), dim=-1).cpu().numpy()
    return found

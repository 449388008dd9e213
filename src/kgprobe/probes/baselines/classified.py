"""Texts and classes of a classification task as model inputs, without any prompt."""

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
import torch
from numpy.typing import NDArray

from kgprobe.probes.models.batching import Ints, padded
from kgprobe.probes.models.checks import refuse_padding
from kgprobe.probes.models.device import one_thread
from kgprobe.probes.models.finite import finite
from kgprobe.probes.models.load import Loaded
from kgprobe.probes.models.predict import Name
from kgprobe.probes.ranked import class_numbers, fields, namer, outcomes, part
from kgprobe.probes.text.encode import refuse_control_tokens
from kgprobe.probes.text.pieces import frame, pieces


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
    counted. Raises ValueError for a missing field.
    """
    for number, item in enumerate(examples):
        missing = [name for name in names if name not in item]
        if missing:
            raise ValueError(f"example {number} has no field {missing[0]!r}; it has {sorted(item)}")
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

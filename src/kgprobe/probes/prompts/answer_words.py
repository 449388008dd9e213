"""Words that count as answers, as tokens of one model, and the rank of a gold word among them.

    vectors at [P]  x  rows of the output embedding, the answers' first   -->   logits of all tokens
    logits of the answers --> ranks;  logits of all --> the normaliser

The rows are put into that order once, so that one multiplication per slice of examples serves both,
and nothing is sorted: a rank is a count of larger scores.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from kgprobe.probes.models.batching import Ints
from kgprobe.probes.models.load import Loaded
from kgprobe.probes.prompts.triggers import Template, label_pieces

#: Logits that are alive at once, by device.
LOGITS = {"cpu": 1 << 21, "cuda": 1 << 28}


class AnswerError(ValueError):
    """Answers cannot be ranked; the message says for which model, and why."""


@dataclass(frozen=True)
class AnswerWords:
    """The distinct single tokens among some words, in the order of the words.

    `words` names each token's first word, `column` gives the token's place for every word that is
    one; `left_out` are the words of several tokens or none.
    """

    words: tuple[str, ...]
    tokens: Ints
    column: Mapping[str, int]
    left_out: tuple[str, ...]

    @classmethod
    def of(cls, loaded: Loaded, template: Template, words: Sequence[str]) -> "AnswerWords":
        """The words as they would stand at [P] of `template`.

        Raises AnswerError when no word is one token.
        """
        unknown = loaded.tokenizer.unk_token_id
        own, column, left_out = [], {}, []
        places: dict[int, int] = {}
        ordered = sorted(set(words))
        for word, ids in zip(ordered, label_pieces(loaded, template, ordered), strict=True):
            if len(ids) != 1 or ids[0] == unknown:
                left_out.append(word)
                continue
            token = int(ids[0])
            if token not in places:
                places[token] = len(own)
                own.append(word)
            column[word] = places[token]
        if not own:
            raise AnswerError(
                f"none of {len(ordered)} answer words is one token of {loaded.spec.model} at [P] "
                f"of {template.text!r}, the first: {ordered[:3]}"
            )
        return cls(tuple(own), np.array(list(places), dtype=np.int64), column, tuple(left_out))

    def __len__(self) -> int:
        return len(self.tokens)

    def columns(self, words: Sequence[str]) -> Ints:
        """Places of words among the tokens, -1 for those that are none of them."""
        return np.array([self.column.get(word, -1) for word in words], dtype=np.int64)


@dataclass(frozen=True)
class Ranks:
    """Per example: rank ranges of the gold (0 where there is none), first place, log-probability.

    `filtered_*` ignore the example's other right answers; `top` is the first of the best columns.
    """

    best: Ints
    worst: Ints
    filtered_best: Ints
    filtered_worst: Ints
    top: Ints
    logprob: NDArray[np.float64]


@dataclass
class AnswerHead:
    """The output embedding with the rows of `tokens` first; `finish` acts on its logits."""

    tokens: Ints
    weight: Any
    bias: Any
    finish: Any = None
    _size: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        device = self.weight.device
        rest = np.setdiff1d(np.arange(len(self.weight)), self.tokens)
        order = torch.from_numpy(np.concatenate([self.tokens, rest])).to(device)
        self.weight = self.weight[order].float()
        self.bias = None if self.bias is None else self.bias[order].float()
        self._size = len(self.tokens)

    @torch.inference_mode()
    def slices(self, vectors: NDArray[np.float32]) -> Any:
        """(rows, logits of `tokens`, log-sum-exp over the whole vocabulary), slice by slice."""
        device = self.weight.device
        step = max(LOGITS.get(device.type, LOGITS["cpu"]) // len(self.weight), 1)
        for start in range(0, len(vectors), step):
            own = torch.from_numpy(np.ascontiguousarray(vectors[start : start + step]))
            logits = own.to(device=device, dtype=torch.float32) @ self.weight.T
            logits = logits if self.bias is None else logits + self.bias
            logits = self.finish(logits) if self.finish else logits
            total = logits.logsumexp(1)
            if not bool(torch.isfinite(total).all()):
                raise AnswerError(
                    f"example {start + int((~torch.isfinite(total)).nonzero()[0])}: the model's "
                    "logits hold NaN or infinity; run it in float32"
                )
            yield slice(start, start + len(own)), logits[:, : self._size], total

    def rank(self, vectors: NDArray[np.float32], golds: Ints, others: tuple[Ints, Ints]) -> Ranks:
        """Ranks of the columns `golds` (-1: none) among all of `tokens`.

        `others` are (example, column) pairs of further right answers, examples ascending.
        """
        n = len(vectors)
        best, worst, above, equal, top = (np.zeros(n, dtype=np.int64) for _ in range(5))
        logprob = np.full(n, np.nan)
        for rows, logits, total in self.slices(vectors):
            gold = torch.from_numpy(np.maximum(golds[rows], 0)).to(logits.device)
            score = logits.gather(1, gold[:, None])
            best[rows] = (logits > score).sum(1).cpu().numpy() + 1
            worst[rows] = (logits >= score).sum(1).cpu().numpy()
            top[rows] = logits.argmax(1).cpu().numpy()
            logprob[rows] = (score[:, 0] - total).double().cpu().numpy()
            own = slice(*np.searchsorted(others[0], [rows.start, rows.stop]))
            example, column = others[0][own] - rows.start, others[1][own]
            found = logits.cpu().numpy()[example, column] - score[:, 0].cpu().numpy()[example]
            above[rows] = np.bincount(example[found > 0], minlength=len(gold))
            equal[rows] = np.bincount(example[found == 0], minlength=len(gold))
        known = golds >= 0
        ranges = (best, worst, best - above, worst - above - equal)
        ranges = tuple(np.where(known, values, 0) for values in ranges)  # type: ignore[assignment]
        return Ranks(*ranges, top, np.where(known, logprob, np.nan))

"""A supervised relation extractor: re-implementation, different data.

Sorokin and Gurevych 2017, as AutoPrompt's Table 5 uses it: word and marker embeddings, a BiLSTM for
each pair of entities, attention of the target pair over the other pairs of the sentence, softmax
over relations, Adam. Neither its weights nor its data nor its word vectors are at hand: here the
word vectors are learned too, and all comes from the sentences of the training facts. Its numbers
are not those of the published row.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence

from kgprobe.probes.baselines.classified import batches, steady
from kgprobe.probes.baselines.relation_sentences import Marked, WordSpan, nearest
from kgprobe.probes.models.batching import Ints, padded
from kgprobe.probes.models.finite import finite

#: what messages call it
MODEL = "relation_lstm"
#: what every table must say beside a row of this extractor
NOTE = "re-implementation, different data"
#: ids of words: padding, unknown, unknown but capitalized, a number
PAD, UNKNOWN, CAPITAL, NUMBER = range(4)


@dataclass(frozen=True)
class RelationLstmSettings:
    """Sizes and training. `least`: a word needs so many occurrences to have a vector."""

    width: int = 50
    markers: int = 3
    hidden: int = 64
    least: int = 2
    dropout: float = 0.3
    rate: float = 1e-3
    batch: int = 32
    epochs: int = 5
    seed: int = 0


@dataclass(frozen=True)
class SentenceExample:
    """A sentence, some of its other mentions, and their relations (0: none known)."""

    sentence: Marked
    others: Sequence[WordSpan]
    relations: Sequence[int]


class Network(nn.Module):
    """Logits of the relations of every pair of a sentence."""

    def __init__(self, words: int, relations: int, settings: RelationLstmSettings) -> None:
        super().__init__()
        size = 2 * settings.hidden
        self.words = nn.Embedding(words, settings.width, padding_idx=PAD)
        self.roles = nn.Embedding(3, settings.markers)
        self.reader = nn.LSTM(
            settings.width + settings.markers,
            settings.hidden,
            batch_first=True,
            bidirectional=True,
        )
        self.attention = nn.Linear(size, size, bias=False)
        self.drop = nn.Dropout(settings.dropout)
        self.output = nn.Linear(2 * size, relations)

    def forward(self, ids: Any, roles: Any, lengths: Any, pairs: Any) -> Any:
        """Rows are pairs: ids and roles (rows x words), lengths (rows); pairs (sentences x most).

        `pairs` numbers the rows of each sentence, -1 where it has fewer. Returns rows x relations.
        """
        states = self.drop(torch.cat([self.words(ids), self.roles(roles)], dim=-1))
        packed = pack_padded_sequence(states, lengths, batch_first=True, enforce_sorted=False)
        _, (last, _) = self.reader(packed)
        read = self.drop(torch.cat([last[0], last[1]], dim=-1))
        there = pairs >= 0
        grouped = read[pairs.clamp(min=0)]
        fit = grouped @ self.attention(grouped).mT
        # a pair attends to the others of its sentence; alone it has no context
        most = pairs.shape[1]
        seen = there[:, None, :] & ~torch.eye(most, dtype=torch.bool, device=ids.device)
        weights = fit.masked_fill(~seen, torch.finfo(fit.dtype).min).softmax(-1)
        context = (weights * seen) @ grouped
        return self.output(torch.cat([grouped, context], dim=-1)[there])


@dataclass
class Extractor:
    """A trained network with its words and relations (relation 0 is "none")."""

    network: Network
    words: dict[str, int]
    relations: Sequence[str]
    settings: RelationLstmSettings
    losses: list[float]

    @torch.inference_mode()
    def confidences(self, sentence: Marked) -> list[tuple[WordSpan, np.ndarray]]:
        """(other mention, probability of every relation) for each pair of the sentence."""
        pairs = []
        for others in nearest(sentence):
            batch = _batch([SentenceExample(sentence, others, [0] * len(others))], self.words)
            chances = self.network(*batch[:4]).softmax(-1).double().numpy()
            finite(
                chances,
                MODEL,
                lambda row, relation, others=others: (
                    f"sentence {' '.join(sentence.words)!r}, mention {others[row].text!r}, "
                    f"relation {self.relations[relation]!r}"
                ),
                "probability",
            )
            pairs += list(zip(others, chances, strict=True))
        return pairs


def train(
    examples: Sequence[SentenceExample],
    relations: Sequence[str],
    settings: RelationLstmSettings = RelationLstmSettings(),
    progress: Callable[[int], object] = lambda steps: None,
) -> Extractor:
    """The extractor after `epochs` passes over the examples, in an order of the seed.

    Raises ValueError without an example that names a relation.
    """
    if not any(any(example.relations) for example in examples):
        raise ValueError("no sentence holds both entities of a training fact")
    words = vocabulary([example.sentence for example in examples], settings.least)
    with steady(settings.seed):
        network = Network(len(words) + NUMBER + 1, len(relations), settings)
        optimizer = torch.optim.Adam(network.parameters(), lr=settings.rate)
        order = np.random.default_rng(settings.seed)
        losses = []
        for epoch in range(settings.epochs):
            total = 0.0
            for chosen in batches(len(examples), settings.batch, order):
                ids, roles, lengths, pairs, gold = _batch([examples[i] for i in chosen], words)
                logits = network(ids, roles, lengths, pairs)
                loss = nn.functional.cross_entropy(logits, gold)
                finite(
                    loss,
                    MODEL,
                    lambda batch=chosen, at=epoch: f"epoch {at}, sentences {batch.tolist()}",
                    "loss",
                )
                optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(network.parameters(), 5.0)
                optimizer.step()
                total += float(loss.detach()) * len(chosen)
                progress(1)
            losses.append(total / len(examples))
    return Extractor(network.eval(), words, relations, settings, losses)


def vocabulary(sentences: Sequence[Marked], least: int) -> dict[str, int]:
    """word -> id of all words with at least `least` occurrences, sorted."""
    counts = Counter(word for sentence in sentences for word in sentence.words)
    kept = sorted(word for word, count in counts.items() if count >= least)
    return {word: number for number, word in enumerate(kept, start=NUMBER + 1)}


def _id(word: str, words: dict[str, int]) -> int:
    if word in words:
        return words[word]
    if word[:1].isdigit():
        return NUMBER
    return CAPITAL if word[:1].isupper() else UNKNOWN


def _batch(
    examples: Sequence[SentenceExample], words: dict[str, int]
) -> tuple[Any, Any, Any, Any, Any]:
    """(ids, roles, lengths, pairs, gold relation): the pairs of all sentences as rows."""
    rows: list[Ints] = []
    roles: list[Ints] = []
    gold: list[int] = []
    pairs = np.full((len(examples), max(len(le.others) for le in examples)), -1, dtype=np.int64)
    for number, example in enumerate(examples):
        row = np.array([_id(word, words) for word in example.sentence.words], dtype=np.int64)
        for place, other in enumerate(example.others):
            role = np.zeros(len(row), dtype=np.int64)
            role[example.sentence.subject.start : example.sentence.subject.end] = 1
            role[other.start : other.end] = 2
            pairs[number, place] = len(rows)
            rows.append(row)
            roles.append(role)
        gold += list(example.relations)
    (ids, mask), (marks, _) = padded(rows, PAD, "cpu"), padded(roles, 0, "cpu")
    return ids, marks, mask.sum(1), torch.from_numpy(pairs), torch.tensor(gold)

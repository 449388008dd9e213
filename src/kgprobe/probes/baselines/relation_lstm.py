"""A supervised relation extractor: a re-implementation trained on other data.

Sorokin and Gurevych 2017, as AutoPrompt's Table 5 uses it: word and marker embeddings, a BiLSTM for
each pair of entities, attention of the target pair over the other pairs of the sentence, softmax
over relations, Adam. Its weights, data and word vectors are not available: here the
word vectors are learned too, and all training data are sentences of the training facts. Its numbers
are not those of the published row.

    Ada Lovelace was born in London , England .
    ------------             ------   -------     mentions; pairs (Ada Lovelace, London), ...

Without an entity linker, a mention is the longest run of words that is a known label (subjects,
objects and surfaces of training facts), or a run of capitalized words. A graph is extracted from
the sentences of a fact; of all edges with the queried subject and relation the most confident one
gives the object. Confidences of other relations, or of none, are ignored.
Sentences without both entities are excluded and counted.
"""

import logging
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np
import polars as pl
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence

from kgprobe.probes.baselines.classified import batches, steady
from kgprobe.probes.models.batching import Ints, Ragged, padded
from kgprobe.probes.models.finite import finite
from kgprobe.probes.ranked import fields, part
from kgprobe.schema import OUTCOMES

log = logging.getLogger("kgprobe")
#: relation 0 of the extractor
NOTHING = "(none)"
#: name of the extractor in messages
MODEL = "relation_lstm"
#: word ids: padding, unknown, unknown but capitalized, a number
PAD, UNKNOWN, CAPITAL, NUMBER = range(4)
_WORD = re.compile(r"\w+|[^\w\s]")
#: words that are capitalized at the start of a sentence and start no mention
_OPENING = frozenset(
    "the a an in on at he she it they his her its their this that these those as after before "
    "during from for by with when while and but or of to is was both".split()
)
#: maximum pairs of a sentence that are encoded together (Sorokin and Gurevych 2017)
PAIRS = 7
#: maximum length in words of a label
LONGEST = 8


class WordSpan(NamedTuple):
    """Words start:end of a sentence, and their text."""

    start: int
    end: int
    text: str


class Marked(NamedTuple):
    """A sentence with the mentions of its subject and of possible objects."""

    words: tuple[str, ...]
    subject: WordSpan
    others: tuple[WordSpan, ...]


def casefold_words(text: str) -> list[str]:
    """Return the case-folded words and punctuation marks of a text."""
    return [word.casefold() for word in _WORD.findall(text)]


def label_words(labels: Iterable[str]) -> Set[tuple[str, ...]]:
    """Return labels as sequences of case-folded words."""
    return {tuple(casefold_words(label)) for label in labels} - {()}


def folded(text: str) -> str:
    """Return the case-folded words of a text, joined by spaces."""
    return " ".join(casefold_words(text))


def mark_mentions(text: str, subject: str, labels: Set[tuple[str, ...]]) -> Marked | None:
    """Mark the mentions of a sentence; return None without the subject or any other mention.

    The subject is located by its label, ignoring case; other mentions do not overlap it.
    """
    words, wanted = list(_WORD.finditer(text)), casefold_words(subject)
    lower = [word[0].casefold() for word in words]
    starts = range(len(words) - len(wanted) + 1) if wanted else ()
    first = next((i for i in starts if lower[i : i + len(wanted)] == wanted), None)
    if first is None:
        return None

    def span(start: int, end: int) -> WordSpan:
        return WordSpan(start, end, text[words[start].start() : words[end - 1].end()])

    others, position = [], 0
    while position < len(words):
        if position == first:
            position += len(wanted)
            continue
        bound, end = first if position < first else len(words), position
        if lower[position] not in _OPENING:
            while end < bound and words[end][0][:1].isupper():
                end += 1
        # a known label is preferred to a run of capitalized words if it is longer
        longer = range(min(position + LONGEST, bound), end, -1)
        end = next((e for e in longer if tuple(lower[position:e]) in labels), end)
        if end > position:
            others.append(span(position, end))
        position = max(end, position + 1)
    if not others:
        return None
    return Marked(tuple(word[0] for word in words), span(first, first + len(wanted)), tuple(others))


def nearest(sentence: Marked, pairs: int = PAIRS) -> list[list[WordSpan]]:
    """Return the other mentions in groups of at most `pairs`, the nearest to the subject first."""
    middle = sentence.subject.start + sentence.subject.end
    order = sorted(sentence.others, key=lambda m: (abs(m.start + m.end - middle), m.start))
    return [order[i : i + pairs] for i in range(0, len(order), pairs)]


@dataclass(frozen=True)
class RelationLstmSettings:
    """Sizes and training. `least`: minimum occurrences for a word to have a vector."""

    width: int = 50
    markers: int = 3
    hidden: int = 64
    least: int = 2
    dropout: float = 0.3
    rate: float = 1e-3
    batch: int = 32
    epochs: int = 5
    seed: int = 0


class SentenceExample(NamedTuple):
    """A sentence, some of its other mentions, and their relations (0: none known)."""

    sentence: Marked
    others: Sequence[WordSpan]
    relations: Sequence[int]


class Network(nn.Module):
    """Computes relation logits of every pair of a sentence."""

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

        `pairs` contains the row numbers of each sentence, padded with -1. Returns rows x relations.
        """
        states = self.drop(torch.cat([self.words(ids), self.roles(roles)], dim=-1))
        packed = pack_padded_sequence(states, lengths, batch_first=True, enforce_sorted=False)
        _, (last, _) = self.reader(packed)
        read = self.drop(torch.cat([last[0], last[1]], dim=-1))
        there = pairs >= 0
        grouped = read[pairs.clamp(min=0)]
        fit = grouped @ self.attention(grouped).mT
        # a pair attends to the others of its sentence; a single pair has no context
        most = pairs.shape[1]
        seen = there[:, None, :] & ~torch.eye(most, dtype=torch.bool, device=ids.device)
        weights = fit.masked_fill(~seen, torch.finfo(fit.dtype).min).softmax(-1)
        context = (weights * seen) @ grouped
        return self.output(torch.cat([grouped, context], dim=-1)[there])


@dataclass
class Extractor:
    """A trained network with its words and relations (relation 0 is "none"), the labels for finding
    mentions, and the counts of usable sentences."""

    network: Network
    words: dict[str, int]
    relations: Sequence[str]
    losses: list[float]
    labels: Set[tuple[str, ...]] = frozenset()
    counts: dict[str, int] = field(default_factory=dict)

    @torch.inference_mode()
    def confidences(self, sentence: Marked) -> list[tuple[WordSpan, np.ndarray]]:
        """Return (other mention, probability of every relation) for each pair of the sentence."""
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
    """Train the extractor for `epochs` passes over the examples, shuffled by the seed.

    Raises ValueError if no example has a relation.
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
                where = f"epoch {epoch}, sentences {chosen.tolist()}"
                finite(loss, MODEL, lambda where=where: where, "loss")
                optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(network.parameters(), 5.0)
                optimizer.step()
                total += float(loss.detach()) * len(chosen)
                progress(1)
            losses.append(total / len(examples))
    return Extractor(network.eval(), words, relations, losses)


def vocabulary(sentences: Sequence[Marked], least: int) -> dict[str, int]:
    """Map word -> id for all words with at least `least` occurrences, sorted."""
    counts = Counter(word for sentence in sentences for word in sentence.words)
    kept = sorted(word for word, count in counts.items() if count >= least)
    return {word: number for number, word in enumerate(kept, start=NUMBER + 1)}


def _id(word: str, words: dict[str, int]) -> int:
    """Return a word's id; a word outside the vocabulary has that of its kind.

    >>> [_id(word, {"of": 9}) for word in ("of", "2nd", "Rome", "rome")] == [
    ...     9, NUMBER, CAPITAL, UNKNOWN
    ... ]
    True
    """
    if word in words:
        return words[word]
    if word[:1].isdigit():
        return NUMBER
    return CAPITAL if word[:1].isupper() else UNKNOWN


def _batch(
    examples: Sequence[SentenceExample], words: dict[str, int]
) -> tuple[Any, Any, Any, Any, Any]:
    """Return (ids, roles, lengths, pairs, gold relation), the pairs of all sentences as rows."""
    rows: list[Ints] = []
    roles: list[Ints] = []
    for sentence, others, _ in examples:
        row = np.array([_id(word, words) for word in sentence.words], dtype=np.int64)
        for other in others:
            role = np.zeros(len(row), dtype=np.int64)
            role[sentence.subject.start : sentence.subject.end] = 1
            role[other.start : other.end] = 2
            rows.append(row)
            roles.append(role)
    sizes = np.cumsum([0, *(len(example.others) for example in examples)])
    pairs = Ragged(np.arange(len(rows)), sizes).matrix(-1)
    gold = [relation for example in examples for relation in example.relations]
    (ids, mask), (marks, _) = padded(rows, PAD, "cpu"), padded(roles, 0, "cpu")
    return ids, marks, mask.sum(1), torch.from_numpy(pairs), torch.tensor(gold)


def fit(
    examples: pl.DataFrame,
    settings: RelationLstmSettings,
    progress: Callable[[int], object] = lambda steps: None,
) -> Extractor:
    """Train on the sentences of all groups' training facts (EXAMPLES of an RE benchmark)."""
    rows = _rows(part(examples, "train"))
    labels = label_words(
        name for row in rows for name in (row["subject"], row["label"], *row["surfaces"])
    )
    relations = [NOTHING, *sorted({row["group"] for row in rows})]
    #: (subject, object) as folded words -> relation, the first by name if several hold
    known: dict[tuple[str, str], int] = {}
    for row in sorted(rows, key=itemgetter("group")):
        for name in (row["label"], *row["surfaces"]):
            pair = folded(row["subject"]), folded(name)
            known.setdefault(pair, relations.index(row["group"]))
    samples: list[SentenceExample] = []
    used = 0
    for row in rows:
        sentence = mark_mentions(row["sentence"], row["subject"], labels)
        objects = [casefold_words(name) for name in (row["label"], *row["surfaces"])]
        mentions = [casefold_words(m.text) for m in sentence.others] if sentence else []
        if sentence and any(m[: len(o)] == o for m in mentions for o in objects if o):
            used += 1
            subject = folded(row["subject"])
            for others in nearest(sentence):
                gold = [known.get((subject, folded(m.text)), 0) for m in others]
                samples.append(SentenceExample(sentence, others, gold))
    counts = {"train_sentences": len(rows), "train_used": used}
    log.info("relation extractor: %d of %d training sentences usable", used, len(rows))
    return replace(train(samples, relations, settings, progress), labels=labels, counts=counts)


def answer(
    trained: Extractor, examples: pl.DataFrame, splits: Sequence[str] = ("test",)
) -> pl.DataFrame:
    """Return OUTCOMES "relation_lstm": every sentence of a fact has the answer of the fact's graph.

    `options` is the number of objects in the graph, 0 (and an empty answer) if no sentence is
    usable. The gold's rank is null if it is not in the graph.
    """
    rows = _rows(part(examples, *splits))
    # fact -> folded object -> (confidence in the queried relation, original text)
    graphs: dict[tuple[str, str, str], dict[str, tuple[float, str]]] = {}
    left_out = 0
    for row in rows:
        graph = graphs.setdefault((row["group"], row["split"], row["fact"]), {})
        sentence = mark_mentions(row["sentence"], row["subject"], trained.labels)
        if sentence is None or row["group"] not in trained.relations:
            left_out += 1
            continue
        column = trained.relations.index(row["group"])
        for mention, chances in trained.confidences(sentence):
            edge = (float(chances[column]), mention.text)
            name = folded(mention.text)
            graph[name] = max(graph.get(name, edge), edge, key=itemgetter(0))
    trained.counts |= {"test_sentences": len(rows), "test_left_out": left_out}
    log.info("relation extractor: %d of %d sentences left out", left_out, len(rows))
    outcomes = [_outcome(row, graphs[row["group"], row["split"], row["fact"]]) for row in rows]
    return pl.DataFrame(outcomes, schema=dict(OUTCOMES.columns), orient="row")


def _outcome(row: Mapping[str, Any], graph: Mapping[str, tuple[float, str]]) -> dict[str, Any]:
    right = {folded(name) for name in (row["label"], *row["surfaces"])}
    others = {folded(name) for name in row["others"]} - right
    best = worst = filtered_best = filtered_worst = None
    scores = {key: score for key, (score, _) in graph.items()}
    gold = max((scores[key] for key in right & scores.keys()), default=None)
    if gold is not None:
        above = [key for key, score in scores.items() if score > gold and key not in right]
        equal = [key for key, score in scores.items() if score == gold and key not in right]
        best, worst = len(above) + 1, len(above) + len(equal) + 1
        filtered_best = sum(key not in others for key in above) + 1
        filtered_worst = filtered_best + sum(key not in others for key in equal)
    first = min(graph.values(), key=lambda e: (-e[0], e[1]), default=(0.0, ""))
    return {
        "prompt": "relation_lstm",
        **{key: row[key] for key in ("group", "split", "example")},
        "best": best,
        "worst": worst,
        "filtered_best": filtered_best,
        "filtered_worst": filtered_worst,
        "options": len(graph),
        "answer": first[1],
        "logprob": None,
    }


def _rows(examples: pl.DataFrame) -> list[dict[str, Any]]:
    """Return the examples as dictionaries with `sentence` and `subject`."""
    rows = zip(examples.iter_rows(named=True), fields(examples), strict=True)
    return [{**row, "sentence": of["context"], "subject": of["sub"]} for row, of in rows]

"""Answers of the relation extractor, by AutoPrompt's protocol for Table 5.

From the sentences of a fact a graph is extracted; of all edges with the queried subject and
relation the most confident one gives the object. What the extractor thinks of other relations, or
that there is none, is ignored. Sentences without both entities are left out, with their number.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from kgprobe.probes.baselines.relation_lstm import (
    Extractor,
    RelationLstmSettings,
    SentenceExample,
    train,
)
from kgprobe.probes.baselines.relation_sentences import (
    LabelIndex,
    Marked,
    casefold_words,
    find,
    folded,
    mark_mentions,
    nearest,
    relations_of,
)
from kgprobe.probes.ranked import fields, framed, part

log = logging.getLogger("kgprobe")
#: relation 0 of the extractor
NOTHING = "(none)"


@dataclass
class RelationExtractor:
    """An extractor, the labels that mentions are found by, and how many sentences were usable."""

    extractor: Extractor
    labels: LabelIndex
    counts: dict[str, int]


def fit(
    examples: pl.DataFrame,
    settings: RelationLstmSettings,
    progress: Callable[[int], object] = lambda steps: None,
) -> RelationExtractor:
    """Train on the sentences of the training facts of all groups (EXAMPLES of a RE benchmark)."""
    rows = _rows(part(examples, "train"))
    labels = LabelIndex(_names(rows))
    known = relations_of(rows)
    relations = [NOTHING, *sorted({row["group"] for row in rows})]
    number = {name: i for i, name in enumerate(relations)}
    samples: list[SentenceExample] = []
    used = 0
    for row in rows:
        sentence = mark_mentions(row["sentence"], row["subject"], labels)
        if sentence is None or not _holds(sentence, row):
            continue
        used += 1
        subject = folded(row["subject"])
        for others in nearest(sentence):
            gold = [number[known.get((subject, folded(m.text)), NOTHING)] for m in others]
            samples.append(SentenceExample(sentence, others, gold))
    counts = {"train_sentences": len(rows), "train_used": used}
    log.info("relation extractor: %d of %d training sentences usable", used, len(rows))
    return RelationExtractor(train(samples, relations, settings, progress), labels, counts)


def answer(
    trained: RelationExtractor,
    examples: pl.DataFrame,
    splits: Sequence[str] = ("test",),
) -> pl.DataFrame:
    """OUTCOMES "relation_lstm": every sentence of a fact bears the answer of the fact's graph.

    `options` is the number of objects in the graph, 0 (and an empty answer) where no sentence is
    usable. The gold's rank is null where the graph does not hold it.
    """
    rows = _rows(part(examples, *splits))
    graphs: dict[tuple[str, str, str], dict[str, tuple[float, str]]] = {}
    left_out = 0
    for row in rows:
        graph = graphs.setdefault((row["group"], row["split"], row["fact"]), {})
        edges = _edges(trained, row)
        left_out += not edges
        for key, edge in edges.items():
            graph[key] = max(graph.get(key, edge), edge, key=lambda e: e[0])
    trained.counts |= {"test_sentences": len(rows), "test_left_out": left_out}
    log.info("relation extractor: %d of %d sentences left out", left_out, len(rows))
    return framed([_outcome(row, graphs[row["group"], row["split"], row["fact"]]) for row in rows])


def _edges(trained: RelationExtractor, row: Mapping[str, Any]) -> dict[str, tuple[float, str]]:
    """folded object -> (confidence in the queried relation, text as it stands) in one sentence."""
    relations = trained.extractor.relations
    sentence = mark_mentions(row["sentence"], row["subject"], trained.labels)
    if sentence is None or row["group"] not in relations:
        return {}
    column = list(relations).index(row["group"])
    edges: dict[str, tuple[float, str]] = {}
    for mention, chances in trained.extractor.confidences(sentence):
        edge = (float(chances[column]), mention.text)
        key = folded(mention.text)
        edges[key] = max(edges.get(key, edge), edge, key=lambda e: e[0])
    return edges


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
    """The examples as dictionaries with `sentence` and `subject`; ValueError without them."""
    rows = []
    for row, filled in zip(examples.iter_rows(named=True), fields(examples), strict=True):
        for name in ("context", "sub"):
            if name not in filled:
                raise ValueError(
                    f"example {row['example']!r} has no field {name!r}; it has {sorted(filled)}"
                )
        rows.append({**row, "sentence": filled["context"], "subject": filled["sub"]})
    return rows


def _names(rows: Sequence[Mapping[str, Any]]) -> set[str]:
    return {name for row in rows for name in (row["subject"], row["label"], *row["surfaces"])}


def _holds(sentence: Marked, row: Mapping[str, Any]) -> bool:
    """Whether one of the other mentions is the object."""
    wanted = [casefold_words(name) for name in (row["label"], *row["surfaces"])]
    return any(
        find(casefold_words(m.text), w) == (0, len(w)) for m in sentence.others for w in wanted
    )

"""Sentence log-likelihood: causal exact, masked pseudo, seq2seq by span (docs/scoring.md).

Every option of every item becomes one complete sentence per template. Sums and token counts are
stored, not means, so that every aggregation can be computed later.
"""

import importlib.metadata
import itertools
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from kgprobe.probes.models.batching import Budget
from kgprobe.probes.models.journal import keep_steps
from kgprobe.probes.models.load import LIBRARIES, Loaded
from kgprobe.probes.scoring.sentence.scorers import SCORERS, VARIANTS_OF
from kgprobe.probes.scoring.sentence.variants import DEFAULT
from kgprobe.probes.text.encode import bos_prefix, encode
from kgprobe.templates import fill

__all__ = ["DEFAULT", "Item", "Scores", "bos_prefix", "score"]

COLUMNS = "item template candidate sum count answer_sum answer_count continuation_sum continued"
#: Increased when the same inputs give other numbers or columns.
VERSION = 4
#: Difference of two sums (nats) that is within what the composition of batches may change.
NEAR = 1e-3
#: Number of sentences that are planned, batched and stored together. Batches never cross shards.
SHARD = 8192


@dataclass(frozen=True)
class Item:
    """One question: its subject's label, the set of its options, and a text before its sentences,
    which is read and not scored."""

    item: str
    relation: str
    subject: str
    candidates: str
    prefix: str = ""


class Sentence(NamedTuple):
    """An item under one template with one of its options, by number and label."""

    item: Item
    template: int
    text: str
    candidate: int
    label: str

    def __str__(self) -> str:
        return f"item {self.item.item}, template {self.template}, option {self.label!r}"


@dataclass
class Scores:
    """The columns of SCORES as arrays, and the record of the run.

    `columns` also has `continued`: whether `continuation_sum` was computed (it is 0 if not).
    """

    columns: dict[str, Any] = field(default_factory=dict)
    record: dict[str, Any] = field(default_factory=dict)


def score(
    loaded: Loaded,
    items: Sequence[Item],
    options: Mapping[str, Sequence[str]],
    templates: Mapping[str, Sequence[tuple[int, str]]],
    *,
    variant: str = DEFAULT,
    upper_first: bool = True,
    budget: Budget | None = None,
    progress: Callable[[int], object] = lambda done: None,
    answer_only: bool = False,
    last_layer: str = "scored",
    folder: Path | None = None,
    part: tuple[int, int] = (0, 1),
    shard: int = SHARD,
) -> Scores:
    """Return the SCORES of every item x template x option.

    `options` maps a candidate set to its labels in order, `templates` a relation to its
    (index, text) pairs. `progress` is called with the number of sentences just scored. The default
    `variant` is the default of each kind. `answer_only` builds rows only for the answer's
    tokens (masked models). With `folder`, finished shards and the batches of the current one
    are stored there and not scored again; `part` (k, n) scores every n-th shard from k on. Raises
    ValueError for a relation without template, an item without options, a sentence too long.
    """
    settings = {"upper_first": upper_first, "answer_only": answer_only, "last_layer": last_layer}
    kind = loaded.spec.kind
    variant = VARIANTS_OF[kind][0] if variant == DEFAULT else variant
    if variant not in VARIANTS_OF[kind]:
        raise ValueError(f"unknown variant {variant!r}; valid: {', '.join(VARIANTS_OF[kind])}")
    if answer_only and kind != "masked":
        raise ValueError(f"{loaded.spec.model}: answer_only is for masked models, this is {kind}")
    of_masked = (answer_only, last_layer) if kind == "masked" else ()
    scorer = SCORERS[kind](loaded, budget, variant, *of_masked)
    pieces: list[Scores] = []
    for number, rows in enumerate(_shards(items, options, templates, shard)):
        if number % part[1] != part[0]:
            continue
        counted: list[int] = []

        def count(done: int, counted: list[int] = counted) -> None:
            counted.append(done)
            progress(done)

        kept: AbstractContextManager[None] = nullcontext()
        if folder is not None:
            # started anew: a file of another model (its record does not name the BOS policy), with
            # other inputs, or by other libraries, of which the results name the versions
            libraries = [importlib.metadata.version(name) for name in LIBRARIES]
            made_by = [VERSION, libraries, loaded.record, loaded.spec.bos]
            identity = [*made_by, variant, settings, rows]
            text = json.dumps(identity, sort_keys=True, default=str)
            kept = keep_steps(loaded, folder / f"shard-{number:05d}.journal", text)
        compute = partial(_score, loaded, scorer, rows, upper_first, count)
        with kept:
            columns, record = loaded.journal.step("shard", compute)
        scorer.engine.budget.follow(record["backoffs"])  # of a shard that is stored
        progress(len(rows) - sum(counted))  # of a shard that is stored
        names = {
            "item": [row.item.item for row in rows],
            "template": np.array([row.template for row in rows], dtype=np.int32),
            "candidate": np.array([row.candidate for row in rows], dtype=np.int32),
        }
        pieces.append(Scores({**names, **columns}, record))
    return _join(loaded, pieces, {"variant": variant, **settings, "shard": shard})


def _shards(
    items: Sequence[Item],
    options: Mapping[str, Sequence[str]],
    templates: Mapping[str, Sequence[tuple[int, str]]],
    size: int,
) -> Iterator[list[Sentence]]:
    """Yield sentences by relation, template, item and option, in lists of about `size`; the options
    of an item stay together."""
    by_relation: dict[str, list[Item]] = {}
    for item in items:
        by_relation.setdefault(item.relation, []).append(item)
    shard: list[Sentence] = []
    for relation, members in sorted(by_relation.items()):
        if not templates.get(relation):
            raise ValueError(f"relation {relation}: no template for its {len(members)} items")
        for (index, text), item in itertools.product(templates[relation], members):
            labels = options.get(item.candidates)
            if not labels:
                raise ValueError(
                    f"item {item.item}: its candidate set {item.candidates!r} has no options"
                )
            if shard and len(shard) + len(labels) > size:
                yield shard
                shard = []
            shard += [Sentence(item, index, text, *option) for option in enumerate(labels)]
    if shard:
        yield shard


def _score(
    loaded: Loaded,
    scorer: Any,
    rows: Sequence[Sentence],
    upper_first: bool,
    progress: Callable[[int], object],
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Compute the numeric columns and the record of a shard."""
    filled = [
        fill(row.text, row.item.subject, row.label, upper_first).behind(row.item.prefix)
        for row in rows
    ]
    sentences = encode(loaded, filled, lambda n: str(rows[n]), scorer.bos_ids)
    columns = scorer.score(sentences, progress)
    return columns, {**scorer.take_record(), "straddling_tokens": sentences.straddling}


def _join(loaded: Loaded, pieces: Sequence[Scores], settings: dict[str, Any]) -> Scores:
    """Join all shards: columns concatenated, counters added, the smallest budget kept."""
    columns: dict[str, Any] = {
        name: np.concatenate([piece.columns[name] for piece in pieces] or [np.zeros(0)])
        for name in COLUMNS.split()
    }
    columns["item"] = [item for piece in pieces for item in piece.columns["item"]]
    record = merge_records([piece.record for piece in pieces])
    counts = {"sentences": len(columns["sum"]), "near_ties": count_near_ties(columns)}
    return Scores(columns, {**loaded.record, **settings, **record, **counts})


def count_near_ties(columns: Mapping[str, Any]) -> int:
    """Count the questions whose two best options differ by less than NEAR: another composition of
    batches may answer them with the other option."""
    sums, starts = columns["sum"], np.flatnonzero(columns["candidate"] == 0)
    if not len(starts):
        return 0
    best = np.maximum.reduceat(sums, starts)
    sizes = np.diff([*starts, len(sums)])
    near = (np.repeat(best, sizes) - sums < NEAR).astype(np.int64)
    return int((np.add.reduceat(near, starts) > 1).sum())


#: Counters of a record, which are added; other fields must agree, are joined, or are minimized.
ADDED = ("positions_fed", "head_rows", "rows_asked", "rows_fed", "straddling_tokens")


def merge_records(records: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Merge records: counters added, notes and back-offs joined, the smallest budget kept."""
    if not records:
        return {}
    result = dict(records[0])
    for name in ADDED:
        if name in result:
            result[name] = sum(r[name] for r in records)
    result["token_budget"] = min(r["token_budget"] for r in records)
    result["backoffs"] = [b for r in records for b in r["backoffs"]]
    result["notes"] = list(dict.fromkeys(n for r in records for n in r["notes"]))
    for name in ("prefixes", "last_layer"):
        if name in result:
            result[name] = "+".join(dict.fromkeys(r[name] for r in records))
    return result

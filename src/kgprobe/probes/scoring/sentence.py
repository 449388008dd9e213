"""Sentence log-likelihood: causal exact, masked pseudo, seq2seq by span (scoring.md, sections 2-5).

Every option of every item becomes one complete sentence per template. Sums and token counts are
stored, never means, so that every reduction can be had later.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kgprobe.probes.models.batching import Budget
from kgprobe.probes.models.causal import Causal, positions
from kgprobe.probes.models.load import Loaded
from kgprobe.probes.models.masked import Masked
from kgprobe.probes.models.seq2seq import Seq2Seq
from kgprobe.probes.prompts.templates import ANSWER, fill, roles

#: Pseudo-log-likelihood variants of masked models; the first is the default.
VARIANTS = ("within_word_l2r", "original", "sentence_l2r", "answer_l2r")
COLUMNS = ("item template candidate sum count answer_sum answer_count continuation_sum").split()


@dataclass(frozen=True)
class Item:
    """One question: its subject's label and the set its options come from."""

    item: str
    relation: str
    subject: str
    candidates: str


@dataclass
class Sentences:
    """Token ids (int64, special tokens included where `special` is set) and roles of sentences."""

    ids: list[NDArray[np.int64]]
    roles: list[NDArray[np.int8]]
    words: list[NDArray[np.int64]]
    special: list[NDArray[np.bool_]]
    straddling: int = 0


@dataclass
class Scores:
    """The columns of SCORES as arrays, and the record of how they were made."""

    columns: dict[str, Any] = field(default_factory=lambda: {name: [] for name in COLUMNS})
    record: dict[str, Any] = field(default_factory=dict)


def score(
    loaded: Loaded,
    items: Sequence[Item],
    options: dict[str, Sequence[str]],
    templates: dict[str, Sequence[tuple[int, str]]],
    *,
    variant: str = VARIANTS[0],
    upper_first: bool = True,
    budget: Budget | None = None,
    progress: Callable[[int], object] = lambda done: None,
) -> Scores:
    """SCORES of every item x template x option.

    `options` maps a candidate set to its labels in order, `templates` a relation to its
    (index, text) pairs. `progress` is called with the number of sentences just scored. Raises
    ValueError for a relation without template, an item without options, a sentence too long.
    """
    if variant not in VARIANTS:
        raise ValueError(f"unknown variant {variant!r}; legal: {', '.join(VARIANTS)}")
    scorer = _SCORERS[loaded.spec.kind](loaded, budget or Budget(), variant)
    scores = Scores()
    straddling = 0
    for relation, members in _by_relation(items):
        if not templates.get(relation):
            raise ValueError(f"relation {relation}: no template for its {len(members)} items")
        for index, text in templates[relation]:
            pairs = [(item, o) for item in members for o in range(len(_options(item, options)))]
            filled = [
                fill(text, i.subject, options[i.candidates][o], upper_first) for i, o in pairs
            ]
            sentences = _encode(loaded, filled, [f"{i.item}, template {index}" for i, _ in pairs])
            straddling += sentences.straddling
            groupings = _groupings(members, options)
            for name, values in scorer.score(sentences, groupings).items():
                scores.columns[name].append(values)
            scores.columns["item"] += [item.item for item, _ in pairs]
            scores.columns["template"].append(np.full(len(pairs), index, dtype=np.int32))
            scores.columns["candidate"].append(np.array([o for _, o in pairs], dtype=np.int32))
            progress(len(pairs))
    for name in COLUMNS[1:]:
        scores.columns[name] = np.concatenate(scores.columns[name])
    scores.record = {
        **loaded.record,
        **scorer.record(),
        "upper_first": upper_first,
        "sentences": len(scores.columns["item"]),
        "straddling_tokens": straddling,
    }
    return scores


def _by_relation(items: Sequence[Item]) -> Iterator[tuple[str, list[Item]]]:
    grouped: dict[str, list[Item]] = {}
    for item in items:
        grouped.setdefault(item.relation, []).append(item)
    yield from sorted(grouped.items())


def _options(item: Item, options: dict[str, Sequence[str]]) -> Sequence[str]:
    found = options.get(item.candidates)
    if not found:
        raise ValueError(f"item {item.item}: its candidate set {item.candidates!r} has no options")
    return found


def _groupings(members: list[Item], options: dict[str, Sequence[str]]) -> list[list[list[int]]]:
    """The two ways to share prefixes within a relation: sentences by subject, or by answer."""
    by_subject: list[list[int]] = []
    by_answer: dict[tuple[str, int], list[int]] = {}
    number = 0
    for item in members:
        size = len(options[item.candidates])
        by_subject.append(list(range(number, number + size)))
        for option in range(size):
            by_answer.setdefault((item.candidates, option), []).append(number + option)
        number += size
    return [by_subject, list(by_answer.values())]


def _encode(loaded: Loaded, filled: Sequence[Any], names: Sequence[str]) -> Sentences:
    """Tokens of complete sentences, with roles by character spans; special tokens have none."""
    special = loaded.spec.kind != "causal"
    encoding = loaded.tokenizer(
        [f.text for f in filled],
        add_special_tokens=special,
        return_offsets_mapping=True,
        return_special_tokens_mask=True,
        return_attention_mask=False,
        padding=False,
        truncation=False,
    )
    found = Sentences([], [], [], [])
    for number, one in enumerate(filled):
        ids = np.array(encoding["input_ids"][number], dtype=np.int64)
        # one place is kept for a BOS token that is put in front later
        if len(ids) + (not special) > loaded.limit:
            raise ValueError(
                f"item {names[number]}: {len(ids)} tokens, the model takes {loaded.limit}: "
                f"{one.text[:80]!r}"
            )
        own, straddling = roles(one, encoding["offset_mapping"][number])
        words = [-1 if w is None else w for w in encoding.word_ids(number)]
        found.ids.append(ids)
        found.roles.append(own)
        found.words.append(np.array(words, dtype=np.int64))
        found.special.append(np.array(encoding["special_tokens_mask"][number], dtype=bool))
        found.straddling += straddling
    return found


def _reduced(
    scores: Sequence[NDArray[np.float64]], roles_of: Sequence[NDArray[np.int8]]
) -> dict[str, NDArray[Any]]:
    """Sums and counts over all scored tokens and over those of the answer."""
    pairs = list(zip(scores, roles_of, strict=True))
    return {
        "sum": np.array([s.sum() for s, _ in pairs]),
        "count": np.array([len(s) for s, _ in pairs], dtype=np.int32),
        "answer_sum": np.array([s[r == ANSWER].sum() for s, r in pairs]),
        "answer_count": np.array([(r == ANSWER).sum() for _, r in pairs], dtype=np.int32),
    }


class _CausalScorer:
    def __init__(self, loaded: Loaded, budget: Budget, variant: str) -> None:
        self.engine, self.loaded = Causal(loaded, budget), loaded
        self.prefix, self.resolved = bos_prefix(loaded)
        self.chosen = {"subject": 0, "answer": 0}

    def score(
        self, sentences: Sentences, groupings: list[list[list[int]]]
    ) -> dict[str, NDArray[Any]]:
        whole = [np.concatenate([self.prefix, ids]) for ids in sentences.ids]
        costs = [positions(whole, grouping) for grouping in groupings]
        best = int(np.argmin(costs))
        self.chosen["subject" if best == 0 else "answer"] += 1
        scores = self.engine.logprobs(whole, groupings[best])
        # without a token in front the first one has no left context and stays unscored
        skip = 0 if len(self.prefix) else 1
        own = [r[skip:] for r in sentences.roles]
        columns = _reduced(scores, own)
        columns["continuation_sum"] = np.array(
            [s[int(np.argmax(r == ANSWER)) :].sum() if (r == ANSWER).any() else np.nan
             for s, r in zip(scores, own, strict=True)]
        )  # fmt: skip
        return columns

    def record(self) -> dict[str, Any]:
        return {
            "bos": self.loaded.spec.bos,
            "bos_resolved": self.resolved,
            "grouped_by": self.chosen,
            **_costs(self.engine),
        }


def bos_prefix(loaded: Loaded) -> tuple[NDArray[np.int64], str]:
    """What stands before a sentence under the model's BOS policy, and the words for the record.

    `none`: nothing. `default`: what the tokenizer adds by itself. `forced`: BOS, else EOS, once.
    """
    policy, tokenizer = loaded.spec.bos, loaded.tokenizer
    if policy == "none":
        return np.zeros(0, dtype=np.int64), "nothing"
    if policy == "default":
        bare = tokenizer("a", add_special_tokens=False)["input_ids"]
        full = tokenizer("a", add_special_tokens=True)["input_ids"]
        added = full[: full.index(bare[0])]
        return np.array(added, dtype=np.int64), f"added {added}" if added else "nothing"
    if policy == "forced":
        token = tokenizer.bos_token_id
        token = tokenizer.eos_token_id if token is None else token
        if token is None:
            raise ValueError(f"{loaded.spec.model}: bos is forced, but it has neither BOS nor EOS")
        return np.array([token], dtype=np.int64), f"added [{token}]"
    raise ValueError(f"{loaded.spec.model}: bos is {policy!r}; legal: none, default, forced")


class _MaskedScorer:
    def __init__(self, loaded: Loaded, budget: Budget, variant: str) -> None:
        self.engine, self.loaded, self.variant = Masked(loaded, budget), loaded, variant

    def score(
        self, sentences: Sentences, groupings: list[list[list[int]]]
    ) -> dict[str, NDArray[Any]]:
        rows, places, targets, sizes = [], [], [], []
        token = self.loaded.tokenizer.mask_token_id
        for number, ids in enumerate(sentences.ids):
            scored = np.flatnonzero(~sentences.special[number])
            sizes.append(len(scored))
            for place in scored:
                row = ids.copy()
                row[self._hidden(sentences, number, int(place))] = token
                rows.append(row)
                places.append(int(place))
                targets.append(int(ids[place]))
        flat = self.engine.logprobs(rows, places, targets)
        scores = np.split(flat, np.cumsum(sizes)[:-1])
        own = [r[~s] for r, s in zip(sentences.roles, sentences.special, strict=True)]
        columns = _reduced(scores, own)
        columns["continuation_sum"] = np.full(len(scores), np.nan)
        return columns

    def _hidden(self, sentences: Sentences, number: int, place: int) -> NDArray[np.int64]:
        """The positions that are masked while the token at `place` is scored."""
        if self.variant == "original":
            return np.array([place])
        if self.variant == "sentence_l2r":
            return np.arange(place, len(sentences.ids[number]))
        role, words = sentences.roles[number], sentences.words[number]
        if self.variant == "answer_l2r" and role[place] == ANSWER:
            later = np.arange(len(role)) >= place
            return np.flatnonzero(later & (role == ANSWER))
        end = place
        while end < len(words) and words[end] == words[place] and words[place] >= 0:
            end += 1
        return np.arange(place, max(end, place + 1))

    def record(self) -> dict[str, Any]:
        return {"variant": self.variant, **_costs(self.engine)}


class _Seq2SeqScorer:
    def __init__(self, loaded: Loaded, budget: Budget, variant: str) -> None:
        self.engine = Seq2Seq(loaded, budget)

    def score(
        self, sentences: Sentences, groupings: list[list[list[int]]]
    ) -> dict[str, NDArray[Any]]:
        contexts, answers = [], []
        for ids, role in zip(sentences.ids, sentences.roles, strict=True):
            span = np.flatnonzero(role == ANSWER)
            first, last = int(span[0]), int(span[-1]) + 1
            gap = np.array([self.engine.opening])
            contexts.append(np.concatenate([ids[:first], gap, ids[last:]]))
            answers.append(ids[first:last])
        scores = [s[:-1] for s in self.engine.logprobs(contexts, answers)]
        columns = _reduced(scores, [np.full(len(s), ANSWER, dtype=np.int8) for s in scores])
        columns["continuation_sum"] = np.full(len(scores), np.nan)
        return columns

    def record(self) -> dict[str, Any]:
        return {"variant": "span", **_costs(self.engine)}


def _costs(engine: Causal | Masked | Seq2Seq) -> dict[str, Any]:
    return {
        "positions_fed": engine.positions_fed,
        "token_budget": engine.budget.positions,
        "backoffs": engine.budget.backoffs,
        "notes": engine.notes,
    }


_SCORERS: dict[str, Any] = {
    "causal": _CausalScorer,
    "masked": _MaskedScorer,
    "seq2seq": _Seq2SeqScorer,
}

"""Filling a slot by generation: causal models after the prompt, sentinel models in the sentence."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kgprobe.probes.models.batching import Budget
from kgprobe.probes.models.continuation import CausalText, SpanText, Stream
from kgprobe.probes.models.finite import finite
from kgprobe.probes.models.load import Loaded
from kgprobe.probes.scoring.columns import AnswerColumns
from kgprobe.probes.scoring.fill.decoding import Check, Floats, Ids, beam, greedy, ranks
from kgprobe.probes.scoring.fill.reading import answer, ends_at
from kgprobe.probes.scoring.fill.rows import (
    FillItem,
    Fills,
    FillSettings,
    Names,
    add_best,
    assembled,
    at_end,
    gold_ids,
    gold_rows,
    questions,
    top_rows,
)
from kgprobe.probes.text.encode import bos_prefix, special_ids
from kgprobe.probes.text.mask_slots import ClozePrompt, prompt, tokenize_prompts

#: Maximum tokens of a phrase beyond the longest gold, and without any gold.
BEYOND, UNKNOWN = 4, 8


@dataclass
class DistinctPrompt:
    """A distinct prompt, the items that use it by number of tokens to generate, and their golds.

    A gold is (item, number of the gold, its tokens). Number 0 stands for free length.
    """

    ids: Ids
    owners: dict[int, list[int]] = field(default_factory=dict)
    golds: list[tuple[int, int, Ids]] = field(default_factory=list)

    def name(self, fill_items: Sequence[FillItem]) -> str:
        """Describe the first item that uses the prompt."""
        one = fill_items[min(o for numbers in self.owners.values() for o in numbers)]
        return f"item {one.item}, template {one.template}"


def predict(
    loaded: Loaded,
    fill_items: Sequence[FillItem],
    settings: FillSettings,
    budget: Budget | None,
    progress: Callable[[int], object],
) -> Fills:
    """Return the best next tokens, the best phrases by beam search, gold ranks token by token.

    Raises NotFiniteError, with item and token.
    """
    left_out, k = list[tuple[str, int, int, str]](), settings.k
    prompts = _plan(loaded, fill_items, settings, left_out)
    filled, golds, names = top_rows(), gold_rows(), Names(loaded.tokenizer)
    most = settings.most_tokens or _most(prompts, BEYOND if k else 0)
    written = max([most, *(length for p in prompts for length in p.owners)]) if k else 0
    prompts = _fitting(loaded, fill_items, prompts, written, left_out)
    text: CausalText | SpanText
    if loaded.spec.kind == "causal":
        lengths = [len(p.ids) + max([written, *(len(g[2]) for g in p.golds)]) for p in prompts]
        longest = max(lengths, default=0)
        text = CausalText(loaded, budget, longest)
    else:
        text = SpanText(loaded, budget)
    writer = _Writer(text, settings, most, names, fill_items)
    answers: dict[int, dict[int, Any]] = {}
    ranked: dict[int, dict[bytes, Any]] = {}

    def forward(batch: NDArray[np.int64]) -> tuple[list[Any], list[Any]]:
        chosen = [prompts[b] for b in batch]
        stream = text.open([p.ids for p in chosen])
        read = text.step("golds", lambda: _forced(text, stream, chosen, fill_items))
        return read, writer.write(stream, chosen) if k else []

    def put(batch: NDArray[np.int64], given: tuple[list[Any], list[Any]]) -> None:
        ranked.update(zip(batch.tolist(), given[0], strict=True))
        answers.update(zip(batch.tolist(), given[1], strict=bool(k)))
        progress(sum(len(o) for b in batch for o in prompts[b].owners.values()))

    budget = text.budget.stepped(most)
    if isinstance(text, CausalText):
        text.budget = budget
    beams = max(settings.beams, k) if k else 1
    held = [text.count_bytes(len(p.ids), most, beams) for p in prompts]
    text.each([len(p.ids) + most for p in prompts], forward, put, budget=budget, held=held)
    for number in sorted(ranked):
        for owner, which, ids in prompts[number].golds:
            logprob, best, worst = ranked[number][ids.tobytes()]
            golds.add(
                owner=owner, gold=which, position=np.arange(len(ids)), masks=len(ids), token=ids,
                best=best, worst=worst, logprob=logprob,
            )  # fmt: skip
    for number in sorted(answers):
        _collect(filled, prompts[number], answers[number], names)
    record = {
        **loaded.record,
        **settings.record,
        "length": settings.length or "free",
        "most_tokens": most,
        "prompts": len(prompts),
        **text.counts,
        "token_budget": budget.positions,
    }
    if loaded.spec.kind == "causal":
        record |= {"bos": loaded.spec.bos, "bos_resolved": bos_prefix(loaded)[1]}
    return assembled(fill_items, filled, golds, record, left_out)


def _plan(
    loaded: Loaded,
    fill_items: Sequence[FillItem],
    settings: FillSettings,
    left_out: list[tuple[str, int, int, str]],
) -> list[DistinctPrompt]:
    """Return distinct prompts; items without a prompt and golds that are too long are excluded."""
    texts = questions(fill_items, settings.upper_first)
    golds = gold_ids(loaded, fill_items, texts, settings)
    planned: dict[bytes, DistinctPrompt] = {}
    for number, (item, ids) in enumerate(
        zip(fill_items, _prompts(loaded, fill_items, texts, settings, left_out), strict=True)
    ):
        if ids is None:
            continue
        entry = planned.setdefault(ids.tobytes(), DistinctPrompt(ids))
        wanted = set(item.masks) if settings.length == "gold" else {0}
        for which, tokens in enumerate(golds[number]):
            if len(tokens) > settings.most_masks:
                reason = f"gold of more than {settings.most_masks} tokens"
                left_out.append((item.item, item.template, which, reason))
                continue
            entry.golds.append((number, which, tokens))
            wanted |= {len(tokens)} if settings.length == "gold" else set()
        for length in wanted:
            entry.owners.setdefault(length, []).append(number)
    return list(planned.values())


def _prompts(
    loaded: Loaded,
    fill_items: Sequence[FillItem],
    texts: Sequence[ClozePrompt],
    settings: FillSettings,
    left_out: list[tuple[str, int, int, str]],
) -> list[Ids | None]:
    """Return token ids of every prompt; None if a causal model cannot fill it."""
    if loaded.spec.kind == "seq2seq":
        return [row.ids for row in tokenize_prompts(loaded, texts, settings.space, any_length=True)]
    prefix, _ = bos_prefix(loaded)
    rows: list[Ids | None] = []
    for item, text in zip(fill_items, texts, strict=True):
        ids = np.concatenate([prefix, prompt(loaded, text)]) if at_end(text) else None
        reason = "" if ids is None or len(ids) else "nothing before the mask slot"
        reason = "mask slot not at the end" if ids is None else reason
        if reason:
            left_out.append((item.item, item.template, -1, reason))
        rows.append(None if reason else ids)
    return rows


def _most(prompts: Sequence[DistinctPrompt], beyond: int) -> int:
    """Return the maximum phrase length in tokens: the longest gold and a few more."""
    golds = [len(ids) for p in prompts for *_, ids in p.golds]
    lengths = [length for p in prompts for length in p.owners]
    return max([max(golds) + beyond if golds else UNKNOWN, *lengths])


def _fitting(
    loaded: Loaded,
    fill_items: Sequence[FillItem],
    prompts: Sequence[DistinctPrompt],
    written: int,
    left_out: list[tuple[str, int, int, str]],
) -> list[DistinctPrompt]:
    """Keep the prompts that leave room for `written` tokens, and the golds that fit after them."""
    reason = f"more than the model's {loaded.limit} tokens"
    fitting = []
    for one in prompts:
        room = loaded.limit - len(one.ids)
        if written > room:
            owners = {owner for numbers in one.owners.values() for owner in numbers}
            long = [(owner, -1) for owner in sorted(owners)]
        else:
            long = [(owner, which) for owner, which, ids in one.golds if len(ids) > room]
            one.golds = [gold for gold in one.golds if len(gold[2]) <= room]
            fitting += [one] * bool(written or one.golds)
        left_out += [(fill_items[o].item, fill_items[o].template, g, reason) for o, g in long]
    return fitting


def _forced(
    text: CausalText | SpanText,
    stream: Stream,
    prompts: Sequence[DistinctPrompt],
    fill_items: Sequence[FillItem],
) -> list[dict[bytes, Any]]:
    """Return for every prompt (log p, best, worst) of its golds' tokens under teacher forcing."""
    keys = list(
        dict.fromkeys((n, ids.tobytes()) for n, one in enumerate(prompts) for *_, ids in one.golds)
    )
    suffixes = [np.frombuffer(data, dtype=np.int64) for _, data in keys]
    results: list[dict[bytes, Any]] = [{} for _ in prompts]

    def read(numbers: NDArray[np.int64], logits: Any) -> list[Any]:
        tokens = np.stack([suffixes[n] for n in numbers])
        flat = ranks(logits.reshape(-1, logits.shape[-1]), tokens.ravel())
        shaped = [a.reshape(tokens.shape) for a in flat]
        finite(
            shaped[0],
            text.loaded.spec.model,
            lambda line, place: (
                f"{prompts[keys[numbers[line]][0]].name(fill_items)}, token {place} of gold tokens "
                f"{suffixes[numbers[line]].tolist()}"
            ),
        )
        return shaped

    def put(numbers: NDArray[np.int64], shaped: list[Any]) -> None:
        for line, number in enumerate(numbers):
            owner, data = keys[number]
            results[owner][data] = tuple(a[line] for a in shaped)

    text.read(stream, [owner for owner, _ in keys], suffixes, read, put)
    return results


@dataclass
class _Writer:
    """Generates phrases for a batch of prompts."""

    text: CausalText | SpanText
    settings: FillSettings
    most: int
    names: Names
    fill_items: Sequence[FillItem]

    def __post_init__(self) -> None:
        self._special = special_ids(self.text.loaded.tokenizer)
        self._stops = self.settings.stops

    def write(self, stream: Stream, prompts: Sequence[DistinctPrompt]) -> list[dict[int, Any]]:
        """Return for every prompt and number of tokens: log p and ids of the next tokens, and
        phrases as (text, raw text, log p)."""
        lengths = sorted({length for p in prompts for length in p.owners})
        most, check = max([1, *lengths]), self._check(prompts)
        count, k, step = len(prompts), self.settings.k, self.text.step
        values, columns = step("next", lambda: greedy(stream.fork(), count, most, k, check))
        answers: list[dict[int, Any]] = [{} for _ in prompts]
        for length in lengths:
            phrases = step(f"phrases {length}", partial(self._phrases, stream, prompts, length))
            steps = max(length, 1)
            for place, one in enumerate(prompts):
                if length in one.owners:
                    result = values[place, :steps], columns[place, :steps], phrases[place]
                    answers[place][length] = result
        return answers

    def _check(self, prompts: Sequence[DistinctPrompt]) -> Check:
        """Return a check that log-probabilities are finite; rows are those of `prompts`."""

        def check(values: Floats, owners: Sequence[int], step: int) -> None:
            finite(
                values,
                self.text.loaded.spec.model,
                lambda row, _: (
                    f"{prompts[owners[row]].name(self.fill_items)}, token {step} written"
                ),
            )

        return check

    def _phrases(
        self, stream: Stream, prompts: Sequence[DistinctPrompt], length: int
    ) -> list[list[tuple[str, str, float]]]:
        """Return (text, raw text, log p) of the phrases of every prompt."""
        arguments = self.settings.beams, self.settings.k, self._check(prompts)
        ends, written = (None, str) if length else (self._ends, self._text), self.names.joined
        rows = beam(stream.fork(), len(prompts), length or self.most, *arguments, *ends)
        return [
            [(written(p.ids) if length else p.text, written(p.ids), p.logprob) for p in row]
            for row in rows
        ]

    def _ends(self, ids: tuple[int, ...]) -> int:
        """Return the number of tokens up to the first beyond the answer; 0 if it may continue.

        A special token or a line end ends it at once; a full stop only shows by the next tokens.
        """
        if ids[-1] not in self._special and not self._stopped(ids):
            return 0
        size = len(self._text(ids))
        lengths = (len(self.names.joined(ids[:n])) for n in range(1, len(ids)))
        return next((n for n, length in enumerate(lengths, 1) if length > size), len(ids))

    def _stopped(self, ids: tuple[int, ...]) -> bool:
        texts = [self.names.one(token) for token in ids]
        if any(s in texts[-1] for s in self._stops if s != "."):
            return True
        if "." not in self._stops or not any("." in t for t in texts):
            return False
        return ends_at(self.names.joined(ids), ".", final=False) is not None

    def _text(self, ids: tuple[int, ...]) -> str:
        """Return the answer in the phrase."""
        return answer(self.names.joined(ids), self._stops)


def _collect(
    filled: AnswerColumns, one: DistinctPrompt, answers: dict[int, Any], names: Names
) -> None:
    """Add rows of FILLS for every item that uses this prompt."""
    for length, (values, ids, phrases) in answers.items():
        table = np.array(phrases, dtype=object).reshape(-1, 3)
        whole = (table[None, :, 0], table[None, :, 1], table[None, :, 2].astype(np.float64))
        add_best(
            filled, np.array(one.owners[length]), length, ids[None], values[None], names, whole
        )

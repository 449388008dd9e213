"""Filling a slot by generation: causal models after the prompt, sentinel models in the sentence."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kgprobe.probes.models.batching import Budget
from kgprobe.probes.models.finite import finite
from kgprobe.probes.models.load import Loaded
from kgprobe.probes.models.mask_slots import CausalText, SpanText, Stream
from kgprobe.probes.scoring.fill.decoding import Check, Ids, beam, finite_steps, greedy, ranks
from kgprobe.probes.scoring.fill.reading import answer, ends_at
from kgprobe.probes.scoring.fill.rows import (
    FillItem,
    FillRows,
    Fills,
    FillSettings,
    Names,
    at_end,
    gold_ids,
    questions,
)
from kgprobe.probes.text.encode import bos_prefix, special_ids
from kgprobe.probes.text.mask_slots import ClozePrompt, prompt, tokenize_prompts

#: Maximum tokens of a phrase beyond the longest gold, and without any gold.
BEYOND, UNKNOWN = 4, 8


@dataclass
class DistinctPrompt:
    """A distinct prompt, the items that use it by number of tokens to generate, and their golds.

    A gold is (item, number of the gold, its tokens). Number 0 stands for free length. `name`
    describes the first item.
    """

    ids: Ids
    name: str
    owners: dict[int, list[int]] = field(default_factory=dict)
    golds: list[tuple[int, int, Ids]] = field(default_factory=list)


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
    filled, names, k = FillRows(fill_items), Names(loaded.tokenizer), settings.k
    prompts = _plan(loaded, filled, settings)
    most = settings.most_tokens or _most(prompts, BEYOND if k else 0)
    written = max([most, *(length for p in prompts for length in p.owners)]) if k else 0
    prompts = _fitting(loaded, filled, prompts, written)
    text: CausalText | SpanText
    if loaded.spec.kind == "causal":
        lengths = [len(p.ids) + max([written, *(len(g[2]) for g in p.golds)]) for p in prompts]
        longest = max(lengths, default=0)
        text = CausalText(loaded, budget, longest)
    else:
        text = SpanText(loaded, budget)
    writer = _Writer(text, settings, most, names)

    def forward(batch: NDArray[np.int64]) -> tuple[list[Any], list[Any]]:
        chosen = [prompts[b] for b in batch]
        stream = text.open([p.ids for p in chosen])
        read = text.step("golds", lambda: _forced(text, stream, chosen))
        return read, writer.write(stream, chosen) if k else []

    budget = text.budget.stepped(most)
    if isinstance(text, CausalText):
        text.budget = budget
    beams = max(settings.beams, k) if k else 1
    held = [text.count_bytes(len(p.ids), most, beams) for p in prompts]
    sizes = [len(p.ids) + most for p in prompts]
    answers: dict[int, dict[int, Any]] = {}
    ranked: dict[int, dict[bytes, Any]] = {}
    for batch, given in text.each(sizes, forward, budget=budget, held=held):
        ranked.update(zip(batch.tolist(), given[0], strict=True))
        answers.update(zip(batch.tolist(), given[1], strict=bool(k)))
        progress(sum(len(o) for b in batch for o in prompts[b].owners.values()))
    for number in sorted(ranked):
        for owner, which, ids in prompts[number].golds:
            filled.add_gold(owner, which, ids, ranked[number][ids.tobytes()])
    for number in sorted(answers):
        for length, (values, columns, phrases) in answers[number].items():
            table = np.array(phrases, dtype=object).reshape(-1, 3)
            whole = (table[None, :, 0], table[None, :, 1], table[None, :, 2].astype(np.float64))
            owners = np.array(prompts[number].owners[length])
            filled.add_best(owners, length, columns[None], values[None], names, whole)
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
    return filled.fills(record)


def _plan(loaded: Loaded, filled: FillRows, settings: FillSettings) -> list[DistinctPrompt]:
    """Return distinct prompts; items without a prompt and golds that are too long are excluded."""
    texts = questions(filled.items, settings.upper_first)
    golds = gold_ids(loaded, filled.items, texts, settings)
    planned: dict[bytes, DistinctPrompt] = {}
    for number, ids in [*_prompts(loaded, filled, texts, settings)]:
        item = filled.items[number]
        name = f"item {item.item}, template {item.template}"
        entry = planned.setdefault(ids.tobytes(), DistinctPrompt(ids, name))
        wanted = set(item.masks) if settings.length == "gold" else {0}
        for which, tokens in enumerate(golds[number]):
            if len(tokens) > settings.most_masks:
                filled.leave_out(number, f"gold of more than {settings.most_masks} tokens", which)
                continue
            entry.golds.append((number, which, tokens))
            wanted |= {len(tokens)} if settings.length == "gold" else set()
        for length in wanted:
            entry.owners.setdefault(length, []).append(number)
    return list(planned.values())


def _prompts(
    loaded: Loaded,
    filled: FillRows,
    texts: Sequence[ClozePrompt],
    settings: FillSettings,
) -> Iterator[tuple[int, Ids]]:
    """Yield (item, token ids of its prompt), except for items that a causal model cannot fill."""
    if loaded.spec.kind == "seq2seq":
        rows = tokenize_prompts(loaded, texts, settings.space, any_length=True)
        yield from ((number, row.ids) for number, row in enumerate(rows))
        return
    prefix, _ = bos_prefix(loaded)
    for number, text in enumerate(texts):
        ids = np.concatenate([prefix, prompt(loaded, text)]) if at_end(text) else None
        if ids is None:
            filled.leave_out(number, "mask slot not at the end")
        elif not len(ids):
            filled.leave_out(number, "nothing before the mask slot")
        else:
            yield number, ids


def _most(prompts: Sequence[DistinctPrompt], beyond: int) -> int:
    """Return the maximum phrase length in tokens: the longest gold and a few more."""
    golds = [len(ids) for p in prompts for *_, ids in p.golds]
    lengths = [length for p in prompts for length in p.owners]
    return max([max(golds) + beyond if golds else UNKNOWN, *lengths])


def _fitting(
    loaded: Loaded, filled: FillRows, prompts: Sequence[DistinctPrompt], written: int
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
        for number, which in long:
            filled.leave_out(number, reason, which)
    return fitting


def _forced(
    text: CausalText | SpanText, stream: Stream, prompts: Sequence[DistinctPrompt]
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
                f"{prompts[keys[numbers[line]][0]].name}, token {place} of gold tokens "
                f"{suffixes[numbers[line]].tolist()}"
            ),
        )
        return shaped

    owners = [owner for owner, _ in keys]
    for numbers, shaped in text.read(stream, owners, suffixes, read):
        for line, number in enumerate(numbers):
            owner, data = keys[number]
            results[owner][data] = tuple(a[line] for a in shaped)
    return results


@dataclass
class _Writer:
    """Generates phrases for a batch of prompts."""

    text: CausalText | SpanText
    settings: FillSettings
    most: int
    names: Names

    def __post_init__(self) -> None:
        self._special = special_ids(self.text.loaded.tokenizer)

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
        names = [one.name for one in prompts]
        return finite_steps(self.text.loaded.spec.model, names, "written")

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
        if any(s in texts[-1] for s in self.settings.stops if s != "."):
            return True
        if "." not in self.settings.stops or not any("." in t for t in texts):
            return False
        return ends_at(self.names.joined(ids), ".", final=False) is not None

    def _text(self, ids: tuple[int, ...]) -> str:
        """Return the answer in the phrase."""
        return answer(self.names.joined(ids), self.settings.stops)

"""Filling n masks of a masked model: one pass per prompt and n; a beam takes n passes."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kgprobe.probes.models.batching import Budget
from kgprobe.probes.models.finite import finite
from kgprobe.probes.models.load import Loaded
from kgprobe.probes.models.mask_slots import MaskSlots
from kgprobe.probes.scoring.fill.decoding import Floats, Ids, extend, products, ranks, top
from kgprobe.probes.scoring.fill.rows import (
    FillItem,
    FillRows,
    Fills,
    FillSettings,
    Names,
    gold_ids,
    questions,
)
from kgprobe.probes.text.mask_slots import tokenize_prompts


@dataclass
class MaskedSentence:
    """One distinct sentence with n masks from `position` on, its items, and their golds.

    A gold is (item, number of the gold, its tokens); `name` describes the first item.
    """

    ids: Ids
    position: int
    owners: list[int] = field(default_factory=list)
    golds: list[tuple[int, int, Ids]] = field(default_factory=list)
    name: str = ""


def predict(
    loaded: Loaded,
    fill_items: Sequence[FillItem],
    settings: FillSettings,
    budget: Budget | None,
    progress: Callable[[int], object],
) -> Fills:
    """Return the best tokens at each of n masks in one pass, the best whole fillings, gold ranks.

    Raises NotFiniteError, with item and mask.
    """
    slots, k = MaskSlots(loaded, budget), settings.k
    filled, names = FillRows(fill_items), Names(loaded.tokenizer)
    planned = _plan(loaded, filled, settings)
    for masks in sorted(planned):
        rows = planned[masks]
        values, columns, ranked = _read(slots, rows, masks, k)
        for (row, gold), of_gold in ranked.items():
            filled.add_gold(*rows[row].golds[gold], of_gold)
        if k:
            if masks == 1 or settings.strategy == "parallel":
                sums, picks = products(values, columns, k)
            else:
                sums, picks = _beam(slots, rows, values, columns, max(settings.beams, k))
            texts = np.empty(sums[:, :k].shape, dtype=object)
            for place in np.ndindex(texts.shape):
                texts[place] = names.joined(tuple(picks[place].tolist()))
            # every item that uses a sentence gets its rows
            number = np.array([n for n, row in enumerate(rows) for _ in row.owners])
            owner = np.array([o for row in rows for o in row.owners])
            best = (texts[number], texts[number], sums[number, :k])
            filled.add_best(owner, masks, columns[number], values[number], names, best)
        progress(sum(len(r.owners) for r in rows))
    record = {
        **loaded.record,
        **settings.record,
        "vocabulary": slots.columns,
        "rows": sum(len(rows) for rows in planned.values()),
        **slots.counts,
    }
    return filled.fills(record)


def _plan(
    loaded: Loaded, filled: FillRows, settings: FillSettings
) -> dict[int, list[MaskedSentence]]:
    """Return distinct rows by number of masks; golds that cannot be scored are excluded."""
    texts = questions(filled.items, settings.upper_first)
    golds = gold_ids(loaded, filled.items, texts, settings)
    rows = tokenize_prompts(loaded, texts, settings.space, any_length=True)
    planned: dict[int, dict[tuple[int, bytes], MaskedSentence]] = {}
    for number, (item, row) in enumerate(zip(filled.items, rows, strict=True)):
        room, long = loaded.limit - len(row.ids) + 1, f"more than the model's {loaded.limit} tokens"
        wanted: dict[int, list[tuple[int, Ids]]] = {n: [] for n in item.masks if n <= room}
        for _ in [n for n in item.masks if n > room]:
            filled.leave_out(number, long)
        for which, tokens in enumerate(golds[number]):
            if len(tokens) > settings.most_masks:
                filled.leave_out(number, f"gold of more than {settings.most_masks} tokens", which)
            elif len(tokens) > room:
                filled.leave_out(number, long, which)
            else:
                wanted.setdefault(len(tokens), []).append((which, tokens))
        for masks, pairs in wanted.items():
            sentence = planned.setdefault(masks, {}).setdefault(
                (row.position, row.ids.tobytes()),
                MaskedSentence(
                    row.widened(masks),
                    row.position,
                    name=f"item {item.item}, template {item.template}",
                ),
            )
            sentence.owners.append(number)
            sentence.golds += [(number, which, ids) for which, ids in pairs]
    return {masks: list(sentences.values()) for masks, sentences in planned.items()}


def _read(
    slots: MaskSlots, rows: Sequence[MaskedSentence], masks: int, k: int
) -> tuple[Floats, Ids, dict[tuple[int, int], tuple[Any, ...]]]:
    """Return the k best per mask (rows x masks x k), and the ranks of all golds by (row, gold)."""
    width = min(k, slots.columns)
    values = np.zeros((len(rows), masks, width))
    columns = np.zeros((len(rows), masks, width), dtype=np.int64)
    ranked: dict[tuple[int, int], tuple[Any, ...]] = {}
    places = [np.arange(r.position, r.position + masks) for r in rows]

    def check(logprobs: Floats, numbers: Ids) -> None:
        """Check that log-probabilities (row x mask ...) of rows are finite."""

        def where(row: int, mask: int, *_: int) -> str:
            return f"{rows[numbers[row]].name}, token {places[numbers[row]][mask]}"

        finite(logprobs, slots.loaded.spec.model, where)

    def read(numbers: NDArray[np.int64], logits: Any) -> tuple[Any, list[Any]]:
        best = top(logits, k) if k else None
        if best:
            check(best[0], numbers)
        of_golds: list[Any] = []
        pairs = [(place, g) for place, n in enumerate(numbers) for g in range(len(rows[n].golds))]
        for start in range(0, len(pairs), len(numbers)):
            part = pairs[start : start + len(numbers)]
            tokens = np.stack([rows[numbers[p]].golds[g][2] for p, g in part])
            flat = logits[[p for p, _ in part]].reshape(-1, logits.shape[-1])
            of_part: list[Any] = [a.reshape(len(part), masks) for a in ranks(flat, tokens.ravel())]
            check(of_part[0], numbers[[p for p, _ in part]])
            for line, (place, g) in enumerate(part):
                of_golds.append((int(numbers[place]), g, tuple(a[line] for a in of_part)))
        return best, of_golds

    for numbers, (of_row, of_golds) in slots.visit([r.ids for r in rows], places, read):
        if of_row:
            values[numbers], columns[numbers] = of_row
        ranked |= {(number, g): of_gold for number, g, of_gold in of_golds}
    return values, columns, ranked


def _beam(
    slots: MaskSlots, rows: Sequence[MaskedSentence], values: Floats, columns: Ids, width: int
) -> tuple[Floats, Ids]:
    """Run a beam over masks from left to right; the first mask is known from the parallel pass.
    Return sums (rows x found) and columns (rows x found x masks) of the best whole fillings.

    Those lists have k entries: a wider beam computes them again.
    """
    count, masks = len(rows), columns.shape[1]
    sums, picks = np.zeros((count, 1)), np.zeros((count, 1, 0), dtype=np.int64)
    for mask in range(masks):
        if mask == 0 and width <= values.shape[2]:
            best, token = values[:, :1, :width], columns[:, :1, :width]
        else:
            filled = []
            for row, beams in zip(rows, picks, strict=True):
                for tokens in beams:
                    ids, place = row.ids.copy(), row.position + mask
                    ids[row.position : place] = tokens
                    filled.append(MaskedSentence(ids, place, name=row.name))
            best, token, _ = _read(slots, filled, 1, width)
            shape = (count, sums.shape[1], -1)
            best, token = best.reshape(shape), token.reshape(shape)
        sums, picks = extend(sums, picks, best, token, width)
    return sums, picks

"""Items, settings and output columns shared by all methods of filling."""

import collections
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kgprobe.probes.models.load import Loaded
from kgprobe.probes.scoring.columns import AnswerColumns
from kgprobe.probes.text.encode import refuse_control_tokens
from kgprobe.probes.text.mask_slots import ClozePrompt, candidate_ids, question, slot_context
from kgprobe.settings.probes import Fill

Ids = NDArray[np.int64]
#: Position value of a whole filling, beside the positions of its tokens.
WHOLE = -1
#: The instruction for API models in the paper on graph attributes (Mruthyunjaya et al. 2023).
INSTRUCTION = "Replace [MASK] with the most probable words."


@dataclass(frozen=True)
class FillItem:
    """A template with [X] and [Y], its subject, and optional golds and numbers of masks.

    The numbers of tokens to fill are those of the golds and of `masks`. `prefix` is put before
    the sentence unchanged.
    """

    item: str
    template: int
    text: str
    subject: str
    golds: tuple[str, ...] = ()
    masks: tuple[int, ...] = ()
    prefix: str = ""


@dataclass(frozen=True)
class FillSettings(Fill):
    """Settings of filling: the section `fill`, and those of a call; all but `workers` are recorded.

    `strategy` builds whole fillings of several masks: `parallel` (best products of one pass) or
    `beam` (left to right with `beams`). A free text ends at one of `stops`, a special token, or
    after `most_tokens`. `space`: golds tokenized as in the sentence (auto) or alone (none). Without
    an `instruction`, completion servers continue the text before the slot, and `chat` makes that
    text a user message.
    """

    space: str = "auto"
    upper_first: bool = True
    chat: bool = False
    workers: int = 1

    @property
    def record(self) -> dict[str, Any]:
        """The fields that affect the numbers."""
        return {name: value for name, value in asdict(self).items() if name != "workers"}


@dataclass
class Fills:
    """Columns of FILLS (`top`) and FILL_GOLDS (`golds`), the record, and exclusions with reasons.

    `top` has `has_logprob`: whether `logprob` is known (servers may omit it). `left_out`
    holds (item, template, gold or -1, reason).
    """

    top: dict[str, NDArray[Any]]
    golds: dict[str, NDArray[Any]]
    record: dict[str, Any] = field(default_factory=dict)
    left_out: list[tuple[str, int, int, str]] = field(default_factory=list)


class FillRows:
    """Rows of FILLS and FILL_GOLDS of `items`, and exclusions, while they are collected."""

    def __init__(self, items: Sequence[FillItem]) -> None:
        self.items = items
        self.top = AnswerColumns(
            "masks", "position", "rank", "token", "text", "raw", "logprob", "has_logprob"
        )
        self.golds = AnswerColumns("gold", "position", "masks", "token", "best", "worst", "logprob")
        self.left_out: list[tuple[str, int, int, str]] = []

    def leave_out(self, number: int, reason: str, gold: int = -1) -> None:
        """Exclude an item, or one of its golds."""
        item = self.items[number]
        self.left_out.append((item.item, item.template, gold, reason))

    def add_gold(self, number: int, gold: int, ids: Ids, ranked: Sequence[Any]) -> None:
        """Add rows of FILL_GOLDS: (log p, best, worst) of every token of a gold of an item."""
        logprob, best, worst = ranked
        self.golds.add(
            owner=number, gold=gold, position=np.arange(len(ids)), masks=len(ids), token=ids,
            best=best, worst=worst, logprob=logprob,
        )  # fmt: skip

    def add_best(
        self,
        numbers: Ids,
        masks: int,
        tokens: Ids,
        logprobs: NDArray[Any],
        names: "Names",
        whole: tuple[NDArray[Any], NDArray[Any], NDArray[Any]],
    ) -> None:
        """Add rows of FILLS of some items: the best tokens (items, or 1, x positions x k), then the
        best whole fillings as (text, raw text, log p), each items, or 1, x k."""
        texts = names.of(tokens)
        position = np.arange(tokens.shape[1])[:, None]
        for place, token, text, raw, values in (
            (position, tokens, texts, texts, logprobs),
            (WHOLE, -1, *whole),
        ):
            self.top.add(
                owner=numbers.reshape(-1, *[1] * (values.ndim - 1)), masks=masks, position=place,
                rank=np.arange(1, values.shape[-1] + 1), token=token, text=text, raw=raw,
                logprob=values, has_logprob=True,
            )  # fmt: skip

    def fills(self, record: dict[str, Any]) -> Fills:
        """Build the tables in the order of the items, and count excluded items by reason."""
        counts = collections.Counter(reason for *_, reason in self.left_out)
        return Fills(
            self.top.columns(self.items, ("masks", "position", "rank")),
            self.golds.columns(self.items, ("gold", "position")),
            {**record, "left_out": dict(sorted(counts.items()))},
            self.left_out,
        )


def questions(fill_items: Sequence[FillItem], upper_first: bool) -> list[ClozePrompt]:
    """Return the text before (including `prefix`) and after the mask slot of every item."""
    plain = [
        question(b.item, b.template, b.text, b.subject, upper_first=upper_first) for b in fill_items
    ]
    pairs = zip(fill_items, plain, strict=True)
    return [replace(text, before=item.prefix + text.before) for item, text in pairs]


def gold_ids(
    loaded: Loaded,
    fill_items: Sequence[FillItem],
    texts: Sequence[ClozePrompt],
    settings: FillSettings,
) -> list[list[Ids]]:
    """Tokenize every gold of every item; the first character of a sentence is upper-cased.

    Raises ValueError, with the item, if an item or a gold contains a special token.
    """
    # a chat template before and in the text contains intended control tokens
    refuse_control_tokens(
        loaded.tokenizer,
        [item.subject if item.prefix else f"{item.subject}\n{item.text}" for item in fill_items],
        lambda n: f"item {fill_items[n].item}, template {fill_items[n].template}",
    )
    wanted: list[list[tuple[str, str]]] = []
    items: dict[str, str] = {}
    for item, text in zip(fill_items, texts, strict=True):
        context = slot_context(text.before, settings.space)
        is_first = settings.upper_first and not text.before.removeprefix(item.prefix)
        golds = [g[:1].upper() + g[1:] if is_first else g for g in item.golds]
        wanted.append([(context, gold) for gold in golds])
        items |= {gold: item.item for gold in golds if gold not in items}
    known: dict[tuple[str, str], Ids] = {}
    for context in sorted({context for keys in wanted for context, _ in keys}):
        labels = sorted({label for keys in wanted for c, label in keys if c == context})
        names = [f"item {items[label]}, answer" for label in labels]
        ids = candidate_ids(loaded, labels, settings.space, context, names.__getitem__).ids
        known |= {(context, label): one for label, one in zip(labels, ids, strict=True)}
    return [[known[key] for key in keys] for keys in wanted]


def at_end(question: ClozePrompt) -> bool:
    """Return whether only punctuation and spaces follow the mask slot."""
    return not any(c.isalnum() for c in question.after)


class Names:
    """Texts of token ids and of whole fillings, each decoded once."""

    def __init__(self, tokenizer: Any) -> None:
        self.one = cache(lambda token: str(tokenizer.decode([token])))
        # without special tokens and surrounding whitespace
        self.joined = cache(
            lambda ids: str(tokenizer.decode(list(ids), skip_special_tokens=True)).strip()
        )

    def of(self, ids: Ids) -> NDArray[Any]:
        """Return texts of single tokens, in the shape of `ids`."""
        unique, inverse = np.unique(ids, return_inverse=True)
        texts = np.empty(len(unique), dtype=object)
        texts[:] = [self.one(token) for token in unique.tolist()]
        return texts[inverse.reshape(np.shape(ids))]

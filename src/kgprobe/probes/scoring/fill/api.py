"""Filling a mask slot through an API server: its greedy text, and its other first tokens continued.

    continuation   prompt = the text before the mask slot (completions; the mask slot is at the end)
    instruction    prompt = instruction + sentence with one [MASK] (completions and chat)
    chat           message = the text before the mask slot, which is a question (chat)

The tokens are the server's: they have no ids, and the number of masks is 0 (free length).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kgprobe.probes.api.client import CONTROL, Client, Completion, is_piece
from kgprobe.probes.scoring.columns import AnswerColumns
from kgprobe.probes.scoring.fill import reading
from kgprobe.probes.scoring.fill.reading import ends_at
from kgprobe.probes.scoring.fill.rows import (
    INSTRUCTION,
    WHOLE,
    FillItem,
    FillRows,
    Fills,
    FillSettings,
    at_end,
    questions,
)

#: Default maximum tokens of an answer: servers do not report how many tokens a gold has.
MOST = 16
#: Number of alternatives that OpenAI-compatible servers give per token of a completion.
ALTERNATIVES = 5


#: Matched text, raw text, sum of log p if known.
Phrase = tuple[str, str, float | None]
#: Phrases, best first, and the completion.
Reply = tuple[Sequence[Phrase], Completion]


def predict(
    client: Client,
    fill_items: Sequence[FillItem],
    settings: FillSettings,
    progress: Callable[[int], object],
) -> Fills:
    """Return the server's text first, then (completions) its other first tokens continued greedily,
    except the end of the text and partial characters, which no prompt can contain.

    A chat server gives one answer, whatever k is. Raises ApiError for a failed request, unless
    `failures` excludes the item; it then gets no filling. Raises ValueError if `chat` is
    requested of a server without it.
    """
    offers = client.capabilities()
    if settings.chat and not offers.chat:
        name = f"{client.endpoint.model} on {client.endpoint.base_url}"
        raise ValueError(f"fill: {name} offers no chat; take it out of the row with prompt chat")
    chats = settings.chat or not offers.completions
    text = settings.instruction or (INSTRUCTION if chats else "")
    # with `chat` the question is the whole message
    instruction = "" if settings.chat else text
    asks = _ReplyClient(client, settings, chats)
    filled, prompts = FillRows(fill_items), dict[int, str]()
    for number, sentence in enumerate(questions(fill_items, settings.upper_first)):
        if instruction:
            prompts[number] = f"{instruction}\n{sentence.before}[MASK]{sentence.after}"
        elif at_end(sentence):
            prompts[number] = sentence.before.rstrip()
        else:
            filled.leave_out(number, "mask slot not at the end")
    distinct = list(dict.fromkeys(prompts.values()))

    def one(prompt: str) -> Reply:
        try:
            return asks.reply(prompt)
        finally:
            progress(sum(p == prompt for p in prompts.values()))

    ask_all: Any = client.map if settings.failures == "raise" else client.try_map
    replies = dict(zip(distinct, ask_all(one, distinct, settings.workers), strict=True))
    for number, prompt in prompts.items():
        reply = replies[prompt]
        if isinstance(reply, str):
            filled.leave_out(number, reply)
        else:
            _collect(filled.top, number, reply, settings.k)
    record = {
        "kind": "api",
        "api": client.record(),
        **settings.record,
        "instruction": instruction,
        "length": "free",
        "most_tokens": settings.most_tokens or MOST,
        "prompts": len(distinct),
        "asked_by": "chat" if chats else "completions",
    }
    return filled.fills(record)


@dataclass
class _ReplyClient:
    client: Client
    settings: FillSettings
    chats: bool

    def reply(self, prompt: str) -> Reply:
        """Return the reply to one prompt."""
        return self._chat(prompt) if self.chats else self._complete(prompt)

    @property
    def _most(self) -> int:
        return self.settings.most_tokens or MOST

    def _chat(self, prompt: str) -> Reply:
        top = ALTERNATIVES if self.client.capabilities().chat_logprobs else 0
        answer = self.client.chat(prompt, self._most, top)
        return [(self._phrase(answer.text), answer.text, self._sum(answer))], answer

    def _complete(self, prompt: str) -> Reply:
        scored = self.client.capabilities().completion_logprobs
        answer = self.client.complete(prompt, self._most, ALTERNATIVES if scored else 0)
        phrases: list[Phrase] = [(self._phrase(answer.text), answer.text, self._sum(answer))]
        first = answer.tokens[0] if answer.tokens else None
        others = [(t, p) for t, p in ordered(first.top) if t != first.text] if first else []
        for text, logprob in others[: self.settings.k - 1]:
            is_end = ends_at(text.lstrip(), self.settings.stops) is not None
            if not text or is_end or is_piece(text) or CONTROL.fullmatch(text.strip()):
                continue
            if self._most == 1:  # servers refuse to generate no token
                phrases.append((self._phrase(text), text, logprob))
                continue
            rest = self.client.complete(prompt + text, self._most - 1, ALTERNATIVES)
            total = self._sum(rest, text)
            known = None if total is None else logprob + total
            phrases.append((self._phrase(text + rest.text), text + rest.text, known))
        kept: dict[str, Phrase] = {}
        for phrase in phrases:
            if phrase[0]:
                kept.setdefault(phrase[0], phrase)
        return list(kept.values()), answer

    def _phrase(self, text: str) -> str:
        """Return the answer in the text, ignoring leading whitespace and line ends."""
        return reading.answer(text.lstrip(), self.settings.stops)

    def _sum(self, answer: Completion, before: str = "") -> float | None:
        """Sum log p up to the token that extends beyond the answer; None if one is unknown. A text
        that ends at once has none."""
        if not answer.tokens:
            return None if answer.text else 0.0
        texts = [token.text for token in answer.tokens]
        # some servers list the end token
        whole = before + "".join(text for text in texts if not CONTROL.fullmatch(text.strip()))
        end = len(whole) - len(whole.lstrip()) + len(self._phrase(whole))
        total, place = 0.0, len(before)
        for token in answer.tokens:
            if token.logprob is None:
                return None
            total, place = total + token.logprob, place + len(token.text)
            if place > end:
                break
        return total


def ordered(top: Sequence[tuple[str, float]]) -> list[tuple[str, float]]:
    """Sort alternatives best first, equal ones by text."""
    return sorted(top, key=lambda pair: (-pair[1], pair[0]))


def _collect(filled: AnswerColumns, number: int, reply: Reply, k: int) -> None:
    """Add rows of FILLS: the server's tokens and alternatives, then the whole phrases."""
    phrases, answer = reply
    for position, token in enumerate(answer.tokens):
        pairs: list[tuple[str, Any]] = list(ordered(token.top))
        if token.text not in {t for t, _ in pairs} and token.logprob is not None:
            pairs = ordered([*pairs, (token.text, token.logprob)])
        _add(filled, number, position, [(text, text, p) for text, p in pairs[:k]])
    _add(filled, number, WHOLE, [p for p in phrases if p[0]][:k])


def _add(
    filled: AnswerColumns, number: int, position: int, phrases: Sequence[tuple[str, str, Any]]
) -> None:
    table = np.array(phrases, dtype=object).reshape(-1, 3)
    filled.add(
        owner=number, masks=0, position=position, rank=np.arange(1, len(phrases) + 1), token=-1,
        text=table[:, 0], raw=table[:, 1],
        logprob=np.array([np.nan if p is None else p for p in table[:, 2]]),
        has_logprob=np.array([p is not None for p in table[:, 2]]),
    )  # fmt: skip

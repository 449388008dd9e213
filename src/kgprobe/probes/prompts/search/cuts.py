"""Prompts as runs of tokens around their slots, so that tokens can come, go and change anywhere.

The capital of {sub} is [P] .
runs  (The, capital, of)  (is)  (.)      run i stands before slot i, the last behind all
slots (sub, [P])
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from kgprobe.probes.models.load import Loaded
from kgprobe.probes.text.pieces import pieces
from kgprobe.templates import ANSWER, TRIGGER, Template, as_prompt_template, parse

Run = tuple[int, ...]


@dataclass(frozen=True)
class Cut:
    """Names of slots in their order (fields, [P]), and the ids around them: one run more."""

    slots: tuple[str, ...]
    runs: tuple[Run, ...]

    @property
    def tokens(self) -> Run:
        """All ids in their order: the trigger of `template`."""
        return tuple(token for run in self.runs for token in run)

    @property
    def shape(self) -> tuple[tuple[str, ...], tuple[int, ...]]:
        """What its template depends on."""
        return self.slots, tuple(map(len, self.runs))

    def template(self, kind: str) -> Template:
        """The template with a trigger in place of every token."""
        parts: list[str] = []
        for number, run in enumerate(self.runs):
            parts += [TRIGGER] * len(run)
            if number < len(self.slots):
                slot = self.slots[number]
                parts.append(slot if slot == ANSWER else f"{{{slot}}}")
        return Template.parse(" ".join(parts), kind)

    def swapped(self, place: int, token: int) -> "Cut":
        """The prompt with another token at a place (an index of `tokens`)."""
        run, inner = self._at(place)
        tokens = self.runs[run]
        return self._with(run, (*tokens[:inner], token, *tokens[inner + 1 :]))

    def deleted(self, place: int) -> "Cut":
        """The prompt without the token at a place."""
        run, inner = self._at(place)
        tokens = self.runs[run]
        return self._with(run, tokens[:inner] + tokens[inner + 1 :])

    def inserted(self, run: int, inner: int, token: int) -> tuple["Cut", int]:
        """(the prompt with a token before the `inner`-th of a run, its place)."""
        tokens = self.runs[run]
        place = sum(map(len, self.runs[:run])) + inner
        return self._with(run, (*tokens[:inner], token, *tokens[inner:])), place

    def gaps(self, kind: str) -> Iterator[tuple[int, int]]:
        """(run, inner) of every place where a token may come; causal models: none behind [P]."""
        last = len(self.runs) - (kind == "causal")
        for number in range(last):
            for inner in range(len(self.runs[number]) + 1):
                yield number, inner

    def _at(self, place: int) -> tuple[int, int]:
        for number, run in enumerate(self.runs):
            if place < len(run):
                return number, place
            place -= len(run)
        raise IndexError("no such place")

    def _with(self, number: int, run: Run) -> "Cut":
        return replace(self, runs=(*self.runs[:number], run, *self.runs[number + 1 :]))


def cut_of(loaded: Loaded, text: str) -> Cut:
    """A wording as runs of tokens: each run is encoded with the blank that it has in the text."""
    parsed = parse(as_prompt_template(text.strip()))
    texts = [parsed.first, *(behind for _, _, behind in parsed.parts)]
    runs = []
    for number, piece in enumerate(texts):
        starts = number == 0
        shown = piece.strip() if starts else piece.rstrip()
        runs.append(tuple(map(int, pieces(loaded.tokenizer, [shown], starts)[0])) if shown else ())
    return Cut(tuple(slot for slot, _, _ in parsed.parts), tuple(runs))

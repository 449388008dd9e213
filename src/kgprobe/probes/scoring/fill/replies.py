"""Whole replies of a causal model: greedy text after a prompt, up to a special token."""

from collections.abc import Callable, Sequence

import numpy as np

from kgprobe.probes.models.batching import budget_for
from kgprobe.probes.models.continuation import CausalText
from kgprobe.probes.models.finite import finite
from kgprobe.probes.models.load import Loaded
from kgprobe.probes.scoring.fill.decoding import Floats, Ids, greedy
from kgprobe.probes.text.encode import refuse_control_tokens, render_chat, special_ids


def message(loaded: Loaded, content: str, name: str) -> Ids:
    """Tokenize a user message with the model's own chat template, up to the reply.

    Raises ValueError, with the message's name, for one that contains a special token.
    """
    refuse_control_tokens(loaded.tokenizer, [content], lambda _: name)
    text = render_chat(loaded.tokenizer, content)
    return np.array(loaded.tokenizer(text, add_special_tokens=False)["input_ids"], dtype=np.int64)


def replies(
    loaded: Loaded,
    rows: Sequence[Ids],
    names: Sequence[str],
    most: int,
    progress: Callable[[int], object],
) -> list[str | None]:
    """Generate a reply of at most `most` tokens after each row of token ids.

    A reply is None if its row leaves no room for so many. Raises NotFiniteError, naming the row.
    """
    numbers = [n for n, row in enumerate(rows) if len(row) + most <= loaded.limit]
    longest = max((len(rows[n]) for n in numbers), default=0) + most
    text = CausalText(loaded, budget_for(loaded).stepped(most), longest)
    tokenizer = loaded.tokenizer
    ends, by_row = special_ids(tokenizer), dict[int, str]()

    def forward(batch: Ids) -> list[str]:
        chosen = [numbers[b] for b in batch]

        def check(values: Floats, owners: Sequence[int], step: int) -> None:
            finite(
                values,
                loaded.spec.model,
                lambda row, _: f"{names[chosen[owners[row]]]}, token {step} of the answer",
            )

        stream = text.open([rows[n] for n in chosen])
        _, columns = greedy(stream, len(chosen), most, 1, check, ends)
        texts = []
        for path in columns[:, :, 0].tolist():
            stop = next((i for i, token in enumerate(path) if token in ends), len(path))
            texts.append(tokenizer.decode(path[:stop]).strip())
        return texts

    def put(batch: Ids, texts: list[str]) -> None:
        by_row.update((numbers[b], text) for b, text in zip(batch, texts, strict=True))
        progress(len(batch))

    held = [text.count_bytes(len(rows[n]), most, 1) for n in numbers]
    text.each([len(rows[n]) + most for n in numbers], forward, put, held=held)
    return [by_row.get(n) for n in range(len(rows))]

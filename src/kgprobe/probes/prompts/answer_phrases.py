"""Answers of any number of tokens behind a prompt of a causal model (autoprompt.md, section 6).

A prompt with a trigger is ids, so its answers are scored as ids: the sum of log-probabilities of
their tokens behind it. All answers of one prompt share its pass through the model (models/causal).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from kgprobe.probes.models.batching import Ints, Ragged, budget_for
from kgprobe.probes.models.causal import Causal
from kgprobe.probes.models.load import Loaded
from kgprobe.probes.models.predict import Name
from kgprobe.probes.prompts.answer_options import AnswerError, Answers, Ranks, against, ranks_of
from kgprobe.probes.prompts.triggers import Template, label_pieces

#: Tokens that are laid out at once.
CHUNK = 1 << 19


@dataclass(frozen=True)
class Phrases(Answers):
    """Answers with the tokens that each of them is, all different."""

    ids: tuple[Ints, ...]

    @classmethod
    def of(cls, loaded: Loaded, template: Template, words: Sequence[str]) -> "Phrases":
        """All `words` but those with an unknown token, in the form that they have at [P].

        Raises AnswerError for a model that is not causal, and when no word is left.
        """
        if loaded.spec.kind != "causal":
            raise AnswerError(
                f"{loaded.spec.model} is {loaded.spec.kind}: only causal models read answers of "
                "several tokens behind a prompt; others need one mask per token (method cloze)"
            )
        ordered = sorted(set(words))
        distinct: dict[bytes, int] = {}
        names: list[str] = []
        found: list[Ints] = []
        left_out: list[str] = []
        column: dict[str, int] = {}
        for word, ids in zip(ordered, label_pieces(loaded, template, ordered), strict=True):
            if not len(ids) or (ids == loaded.tokenizer.unk_token_id).any():
                left_out.append(word)
                continue
            column[word] = distinct.setdefault(ids.tobytes(), len(distinct))
            if len(distinct) > len(names):
                names.append(word)
                found.append(ids)
        if not names:
            raise AnswerError(f"{loaded.spec.model}: none of {len(ordered)} answers can be read")
        return cls(tuple(names), column, tuple(left_out), tuple(found))


def rank_phrases(
    loaded: Loaded,
    rows: Sequence[Ints],
    phrases: Phrases,
    golds: Ints,
    others: Ints,
    done: Callable[[int], object] = lambda prompts: None,
    name: Name = "prompt {}".format,
) -> Ranks:
    """Ranks of the phrases `golds` (-1: none) behind the prompts `rows`, as in `rank`.

    A log-probability is that of the whole phrase: longer phrases have lower ones. Raises
    NotFiniteError, with `name`, phrase and token.
    """
    scorer = Causal(loaded, budget_for(loaded))
    ranges, logprob = np.zeros((5, len(rows)), dtype=np.int64), np.full(len(rows), np.nan)
    sizes = np.array([len(ids) for ids in phrases.ids])
    each = int(sizes.sum()) + len(sizes) * max(len(row) for row in rows)
    step = max(CHUNK // each, 1)
    for start in range(0, len(rows), step):
        part = slice(start, min(start + step, len(rows)))
        sequences = Ragged.of([np.concatenate([row, ids]) for row in rows[part]
                               for ids in phrases.ids])  # fmt: skip

        def told(sequence: int, start: int = start) -> str:
            row, phrase = divmod(sequence, len(sizes))
            return f"{name(start + row)}, answer {phrases.names[phrase]!r}"

        tokens = scorer.logprobs(sequences, name=told)
        # the prompt's own tokens are no part of the answer
        tokens[sequences.places < (sequences.lengths - np.tile(sizes, part.stop - start))[
            sequences.owners
        ]] = 0.0  # fmt: skip
        scores = np.add.reduceat(tokens, sequences.starts[:-1]).reshape(-1, len(sizes))
        found, own = against(torch.from_numpy(scores), golds[part], others[part])
        ranges[:, part], logprob[part] = found.numpy(), own.numpy()
        done(part.stop - start)
    return ranks_of(ranges, logprob, golds)

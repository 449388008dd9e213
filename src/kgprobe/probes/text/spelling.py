"""Checks which candidates a tokenizer can represent, and which prompts fit into the model's window.

Both need only the tokenizer and the configuration, before any weights are loaded.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kgprobe.probes.models.load import Loaded
from kgprobe.probes.text.encode import bos_prefix, spells_nothing
from kgprobe.probes.text.mask_slots import ClozePrompt, tokenize_prompts, tokens_with_slots
from kgprobe.templates import replace_vectors

#: maximum number of overlong prompts of one relation that a message lists in full
SHOWN = 3


@dataclass(frozen=True)
class SpelledOptions:
    """The ranked options of a set, their indices in the whole set, and the excluded options."""

    labels: list[str]
    places: list[int]
    left_out: list[str]

    @property
    def new(self) -> dict[int, int]:
        """Map index in the whole set -> index among the ranked options."""
        return {old: place for place, old in enumerate(self.places)}


def rankable(
    loaded: Loaded, options: Mapping[str, Sequence[str]], unknown: str = "keep"
) -> dict[str, SpelledOptions]:
    """Select the options of every set that the model's tokenizer can represent.

    Options without tokens are excluded; under `unknown` leave_out also those with an unknown token.
    """
    sets = {}
    mark = loaded.tokenizer.unk_token_id
    for name, labels in options.items():
        coded = loaded.tokenizer(list(labels), add_special_tokens=False)["input_ids"]
        out = [
            not ids
            or spells_nothing(loaded.tokenizer, label)
            or (unknown == "leave_out" and mark is not None and mark in ids)
            for label, ids in zip(labels, coded, strict=True)
        ]
        sets[name] = SpelledOptions(
            [label for label, gone in zip(labels, out, strict=True) if not gone],
            [place for place, gone in enumerate(out) if not gone],
            [label for label, gone in zip(labels, out, strict=True) if gone],
        )
    return sets


def left_out(kept: Mapping[str, SpelledOptions]) -> dict[str, list[str]]:
    """Return the excluded candidates by set, for the record."""
    return {name: options.left_out for name, options in kept.items() if options.left_out}


def check_windows(
    loaded: Loaded,
    prompts: Mapping[str, Sequence[ClozePrompt]],
    options: Mapping[str, Sequence[str]],
    space: str,
    most: int | None = None,
) -> None:
    """Raise one ValueError that names, for every relation, the prompts that cannot be used.

    `prompts` are questions by relation. A prompt must fit into the model's window with the longest
    candidate in its mask slot (`most`: a smaller window), and contain no other mask slot.
    """
    lines = []
    for relation, questions in prompts.items():
        wrong = too_long(loaded, questions, options, space, most)
        lines += [f"{relation}: {message}" for message in wrong[:SHOWN]]
        if len(wrong) > SHOWN:
            lines.append(f"{relation}: ... and {len(wrong) - SHOWN} more")
    if lines:
        raise ValueError(f"{loaded.spec.model} cannot be asked all prompts\n" + "\n".join(lines))


def too_long(
    loaded: Loaded,
    prompts: Sequence[ClozePrompt],
    options: Mapping[str, Sequence[str]],
    space: str,
    most: int | None,
) -> list[str]:
    """Return an error message for every prompt that cannot be used; see `check_windows`."""
    limit = min(loaded.limit, most or loaded.limit)
    longest = {name: _longest(loaded, labels) for name, labels in options.items()}
    wrong = []
    for question in prompts:
        label, size = longest[question.candidates]
        try:
            length = _length(loaded, question, label, size, space)
        except ValueError as error:
            wrong.append(str(error))
            continue
        if length > limit:
            text = replace_vectors(f"{question.before}[mask slot]{question.after}", "_")
            wrong.append(
                f"item {question.item}, template {question.template}: {length} tokens with "
                f"{label!r} in the mask slot, {limit} are allowed: {text[:60]!r}; shorten the "
                "subject's label or the template, or take a model with a longer window"
            )
    return wrong


def _longest(loaded: Loaded, labels: Sequence[str]) -> tuple[str, int]:
    """Return (candidate with the most tokens, number of tokens)."""
    if not labels:
        return "", 1
    coded = loaded.tokenizer(list(labels), add_special_tokens=False)["input_ids"]
    size, place = max((len(ids), -place) for place, ids in enumerate(coded))
    return labels[-place], size


def _length(loaded: Loaded, question: ClozePrompt, label: str, size: int, space: str) -> int:
    """Count tokens of a prompt with so many masks, or (causal) with the label in the mask slot."""
    if loaded.spec.kind == "causal":
        ((ids, _),) = tokens_with_slots(loaded, [question.before + label + question.after])
        return len(bos_prefix(loaded)[0]) + len(ids)
    (row,) = tokenize_prompts(loaded, [question], space, any_length=True)
    # a sentinel model decodes the candidate: only the sentence must fit
    return len(row.ids) + (size - 1 if loaded.spec.kind == "masked" else 0)

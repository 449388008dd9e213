"""A prompt found on one model, written anew for another: its text encoded again, and said so."""

from collections.abc import Sequence
from dataclasses import asdict
from itertools import groupby

from kgprobe.probes.models.load import Loaded
from kgprobe.probes.prompts.trigger_files import PromptFile, PromptFileError, prompt_of, text_of
from kgprobe.probes.prompts.trigger_pieces import pieces
from kgprobe.probes.prompts.trigger_template import PREDICT, TRIGGER, Template
from kgprobe.probes.prompts.triggers import LabelError, label_token


def transferred(prompt: PromptFile, loaded: Loaded, source: Loaded | None = None) -> PromptFile:
    """The prompt for `loaded`: triggers and label tokens by their text, as many as that gives.

    The text behind [P] is cut for a causal model; a template with triggers or fields there cannot
    move to one. Label tokens that are no single token of `loaded` are dropped; a class must keep
    one. `data.transferred_from` names the model that the prompt was found on, and its scores do not
    come along. `source` (optional) decodes each run of triggers on its own where a template has
    several. Raises PromptFileError.
    """
    where = f"prompt {prompt.text!r} of {prompt.made_for.get('model')!r}"
    text = _ended(prompt.template, loaded, where)
    runs = _runs(text)
    texts = _texts(prompt, runs, source, where)
    opens = Template.parse(text, loaded.spec.kind).opened
    own = [_pieces(loaded, run, opens and number == 0) for number, run in enumerate(texts)]
    if any(not ids for ids in own):
        raise PromptFileError(f"{where}: its text gives no token of {loaded.spec.model}")
    template = Template.parse(_resized(text, [len(ids) for ids in own]), loaded.spec.kind)
    labels = _labels(prompt, loaded, template, where)
    trigger = [token for ids in own for token in ids]
    return prompt_of(
        loaded,
        template,
        trigger,
        labels,
        mode=prompt.mode,
        settings=prompt.settings,
        data={**prompt.data, "transferred_from": prompt.made_for, "tokens_there": prompt.tokens},
    )


def unchanged(prompt: PromptFile, other: PromptFile) -> bool:
    """Whether two prompts are the same but for the model (for tests and for printing)."""
    skip = {"made_for", "data", "scores", "trace", "restarts", "record", "filters"}
    one, two = asdict(prompt), asdict(other)
    return all(one[name] == two[name] for name in one if name not in skip)


def _pieces(loaded: Loaded, run: str, opens: bool) -> list[int]:
    """Ids of a run of triggers: its first word has its blank, unless it opens the text."""
    lead = "" if opens or run.startswith(" ") else " "
    found: list[int] = pieces(loaded.tokenizer, [lead + run], opens)[0]
    return found


def _ended(text: str, loaded: Loaded, where: str) -> str:
    if loaded.spec.kind != "causal":
        return text
    before, _, after = text.partition(PREDICT)
    if TRIGGER in after or "{" in after:
        raise PromptFileError(
            f"{where}: {after.strip()!r} stands behind [P], but {loaded.spec.model} is causal"
        )
    return before + PREDICT


def _runs(text: str) -> list[int]:
    """Lengths of the runs of triggers that nothing stands between."""
    parts = [part for part in text.replace(TRIGGER, f"\0{TRIGGER}\0").split("\0") if part.strip()]
    return [len(list(run)) for is_trigger, run in groupby(parts, TRIGGER.__eq__) if is_trigger]


def _texts(prompt: PromptFile, runs: Sequence[int], source: Loaded | None, where: str) -> list[str]:
    if sum(runs) != len(prompt.trigger):
        raise PromptFileError(
            f"{where}: {len(prompt.trigger)} trigger tokens for {sum(runs)} places"
        )
    if len(runs) <= 1:
        return [prompt.text] if runs else []
    if source is None:
        raise PromptFileError(
            f"{where}: triggers in {len(runs)} places need the model of the prompt"
        )
    starts = [sum(runs[:i]) for i in range(len(runs))]
    return [text_of(source, prompt.trigger[a : a + n]) for a, n in zip(starts, runs, strict=True)]


def _resized(text: str, sizes: Sequence[int]) -> str:
    """The template with so many triggers in each run."""
    found, left = [], list(sizes)
    marked = text.replace(TRIGGER, f"\0{TRIGGER}\0").split("\0")
    parts = [part for part in marked if part.strip() or TRIGGER not in text]
    for is_trigger, run in groupby(parts, TRIGGER.__eq__):
        found.append(f"{TRIGGER}x{left.pop(0)}" if is_trigger else "".join(run))
    return "".join(found)


def _labels(
    prompt: PromptFile, loaded: Loaded, template: Template, where: str
) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for name, tokens in prompt.label_tokens.items():
        own = []
        for token in tokens:
            word = token.lstrip("\u0120\u2581").removeprefix("##")
            try:
                own.append(label_token(loaded, template, word))
            except LabelError:
                continue
        if not own:
            raise PromptFileError(
                f"{where}: class {name!r}: none of {', '.join(tokens)} is a single token of "
                f"{loaded.spec.model}"
            )
        found[name] = list(dict.fromkeys(own))
    return found

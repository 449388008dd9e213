"""Prompts with triggers as files: ids and their search settings, rejected by other models."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from kgprobe.files import atomic
from kgprobe.probes.models.load import Loaded, differing
from kgprobe.probes.text.encode import bos_prefix, pieces
from kgprobe.templates import Template

#: Fields that must be the same, in the order in which a message reports them.
COMPARED = ("kind", "hidden_size", "tokenizer", "weights", "revision", "bos")
FORMAT = 1


class PromptFileError(ValueError):
    """A prompt file cannot be used; the message names file, model and remedy."""


@dataclass
class PromptFile:
    """A prompt and how it was found.

    `trigger` contains the ids that are used. `tokens` and `text` are for display; `round_trip` is
    whether the text gives the same ids again. `labels` maps a class to its answer ids
    (empty: the gold word itself), `scores` a name to metric, value, n, low and high. The columns of
    `trace`, one row per iteration, are in `record`.
    """

    template: str
    trigger: list[int]
    tokens: list[str]
    text: str
    round_trip: bool
    made_for: dict[str, Any]
    labels: dict[str, list[int]] = field(default_factory=dict)
    label_tokens: dict[str, list[str]] = field(default_factory=dict)
    mode: str = ""
    settings: dict[str, Any] = field(default_factory=dict)
    data: dict[str, Any] = field(default_factory=dict)
    filters: dict[str, int] = field(default_factory=dict)
    trace: list[list[Any]] = field(default_factory=list)
    restarts: list[dict[str, Any]] = field(default_factory=list)
    scores: dict[str, dict[str, Any]] = field(default_factory=dict)
    record: dict[str, Any] = field(default_factory=dict)
    format: int = FORMAT

    def parsed(self) -> Template:
        """Return the template, for `encode`; its ids then come from `filled(self.trigger)`."""
        return Template.parse(self.template, self.made_for["kind"])


def identity(loaded: Loaded) -> dict[str, Any]:
    """Return model, kind, revision, hashes of weights and tokenizer, width, and the BOS policy."""
    kind = loaded.spec.kind
    policy = f"{loaded.spec.bos}: {bos_prefix(loaded)[1]}" if kind == "causal" else "-"
    return {**loaded.identity, "kind": kind, "bos": policy}


def prompt_of(
    loaded: Loaded,
    template: Template,
    trigger: Sequence[int],
    labels: Mapping[str, Sequence[int]] | None = None,
    **known: Any,
) -> PromptFile:
    """Build a prompt for this model; `known` are further fields of PromptFile."""
    ids = [int(t) for t in trigger]
    if len(ids) != template.triggers:
        raise PromptFileError(f"{len(ids)} trigger tokens for template {template.text!r}")
    label_ids = {name: [int(t) for t in tokens] for name, tokens in (labels or {}).items()}
    name, text = loaded.tokenizer.convert_ids_to_tokens, text_of(loaded, ids)
    # after other text, with and without a space
    behind = " " + text.removeprefix(" ")
    return PromptFile(
        template.text,
        ids,
        name(ids),
        text,
        ids in pieces(loaded.tokenizer, [behind, behind[1:]]),
        identity(loaded),
        label_ids,
        {label: name(tokens) for label, tokens in label_ids.items()},
        **known,
    )


def text_of(loaded: Loaded, ids: Sequence[int]) -> str:
    """Return a trigger as text, for display."""
    return str(loaded.tokenizer.decode(list(ids), clean_up_tokenization_spaces=False))


def save(prompt: PromptFile, path: str | Path) -> None:
    """Write the prompt as JSON atomically; the same prompt gives the same bytes."""
    lines = [f'"{key}": {_format_json(value)}' for key, value in sorted(asdict(prompt).items())]
    with atomic(path) as temporary:
        temporary.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def _format_json(value: Any) -> str:
    """Format JSON on one line, except lists of lists or objects, with one element per line."""
    options: Any = {"sort_keys": True, "ensure_ascii": False, "allow_nan": False}
    if isinstance(value, list) and value and isinstance(value[0], (list, dict)):
        return "[\n " + ",\n ".join(json.dumps(v, **options) for v in value) + "\n]"
    return json.dumps(value, **options)


def read(path: str | Path) -> PromptFile:
    """Read a prompt file of any model (transfer, printing)."""
    if not Path(path).is_file():
        raise PromptFileError(f"{path}: no such prompt file; the rule prompts_<model> makes it")
    try:
        data = json.loads(Path(path).read_text(encoding="utf-8"))
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise PromptFileError(f"{path}: not a prompt file: {error}") from error
    names = {f.name for f in fields(PromptFile)}
    needed = {"template", "trigger", "tokens", "text", "round_trip", "made_for", "format"}
    if not isinstance(data, dict) or not needed <= data.keys() <= names:
        keys = sorted(data) if isinstance(data, dict) else type(data).__name__
        raise PromptFileError(f"{path}: not a prompt file: it has {keys}")
    if data["format"] != FORMAT:
        raise PromptFileError(f"{path}: format {data['format']}, this version reads {FORMAT}")
    return PromptFile(**data)


def load(path: str | Path, loaded: Loaded) -> PromptFile:
    """Load a prompt; raise PromptFileError unless model, tokenizer and BOS policy match."""
    prompt = read(path)
    if other := differing(prompt.made_for, identity(loaded), COMPARED):
        raise PromptFileError(f"{path}: found for {other}; search the prompt again for this model")
    return prompt

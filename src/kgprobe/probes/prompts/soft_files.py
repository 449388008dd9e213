"""Soft prompts as files: vectors with all that made them, refused by any other model."""

import json
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save as serialised

from kgprobe.probes.models.load import Loaded
from kgprobe.probes.prompts.soft import SoftPrompt
from kgprobe.schema import atomic

#: What identifies the model that a prompt belongs to: a weight or a piece of text more, and its
#: vectors mean something else.
IDENTITY = ("model", "weights", "tokenizer", "revision")


class PromptError(ValueError):
    """A soft prompt file cannot be used; the message names file, model and remedy."""


def identity(loaded: Loaded) -> dict[str, Any]:
    """Model, revision, hashes of weights and tokenizer; with weights the embedding's width, too."""
    own = {name: loaded.record.get(name, "") for name in IDENTITY}
    if loaded.model is not None:
        own["hidden_size"] = int(loaded.model.get_input_embeddings().weight.shape[1])
    return {**own, "model": loaded.spec.model}


def save(prompt: SoftPrompt, loaded: Loaded, path: str | Path) -> None:
    """Write vectors and record at `path`, whole or not at all; the same prompt, the same bytes."""
    record = {**prompt.record, "made_for": identity(loaded)}
    text = json.dumps(record, sort_keys=True, ensure_ascii=True)
    # one key of metadata: several have no fixed order in the file
    data = serialised({"vectors": np.ascontiguousarray(prompt.vectors)}, {"kgprobe": text})
    with atomic(path) as temporary:
        temporary.write_bytes(data)


def read(path: str | Path) -> SoftPrompt:
    """A soft prompt file without asking which model it is for."""
    if not Path(path).is_file():
        raise PromptError(f"{path}: no such soft prompt; the rule train_soft makes it")
    try:
        with safe_open(str(path), framework="numpy") as stream:
            text = (stream.metadata() or {}).get("kgprobe")
            vectors = stream.get_tensor("vectors")
    except SafetensorError as error:
        raise PromptError(f"{path}: not a soft prompt file: {error}") from error
    if text is None:
        raise PromptError(f"{path}: holds vectors without the record of what made them")
    return SoftPrompt(vectors, json.loads(text))


def load(path: str | Path, loaded: Loaded) -> SoftPrompt:
    """The soft prompt at `path` for exactly this model and tokenizer, else PromptError.

    `loaded` may be the model without its weights (`load.outline`).
    """
    prompt = read(path)
    made_for, own = prompt.record.get("made_for", {}), identity(loaded)
    for name in ("hidden_size", "tokenizer", "weights", "revision"):
        if name in own and made_for.get(name) != own[name]:
            raise PromptError(
                f"{path}: made for {made_for.get('model')!r}, whose {name} is "
                f"{str(made_for.get(name))[:16]!r}; {loaded.spec.model!r} has "
                f"{str(own[name])[:16]!r}; train the prompt anew for this model"
            )
    return prompt

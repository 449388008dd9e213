"""Small prompt tasks as folders, and settings for searches that take seconds."""

import json
from pathlib import Path
from typing import Any

from kgprobe.probes import prompt_settings
from kgprobe.schema import EXAMPLES, write
from tests.unit.prompt_examples import examples

WORDS = ["Africa", "France", "Italy", "Niger", "Nigeria", "Paris", "Rome", "capital"]
#: a search of a few steps
SETTINGS: dict[str, Any] = {
    "triggers": 2,
    "groups": None,
    "most": {},
    "settings": {"iterations": 12, "restarts": 2, "candidates": 4, "batch": 4, "accumulate": 1},
    "labels": {"tokens": 2, "epochs": 2, "at_chance": "keep"},
}


def facts(folder: Path, context: bool = False) -> Path:
    """Write two relations of six train, three dev, four test facts; one has no causal prompt."""
    rows = []
    for group in ("P36", "P37"):
        for split, n in (("train", 6), ("dev", 3), ("test", 4)):
            for i in range(n):
                fields = {"sub": f"{WORDS[(i + 3) % 8]} {split}"}
                if context:
                    fields["context"] = f"{fields['sub']} is in {WORDS[i % 8]}"
                rows.append(
                    {"group": group, "split": split, "label": WORDS[i % 8], "fields": fields}
                )
    kind = "relation_extraction" if context else "facts"
    front = "{context} " if context else ""
    manual = {"P36": {"masked": f"{front}{{sub}} in [P].", "causal": f"{front}{{sub}} in [P]"}}
    manual["P37"] = {"masked": f"[P] of {front}{{sub}}."}
    search = {"masked": f"{front}{{sub}} [T]x5 [P] .", "causal": f"{front}{{sub}} [T]x5 [P]"}
    return _folder(folder, rows, kind, manual, {}, search, "context" if context else "")


def classes(folder: Path, train: int = 12) -> Path:
    """Write sentences of two classes."""
    rows = [
        {
            "split": split,
            "label": ("negative", "positive")[i % 2],
            "fields": {"sentence": f"{WORDS[i % 8]} is a {('token', 'country')[i % 2]}"},
        }
        for split, n in (("train", train), ("dev", 8), ("test", 6))
        for i in range(n)
    ]
    manual = {"": {"masked": "{sentence} is [P].", "causal": "{sentence} is [P]"}}
    words = {"negative": ["Rome"], "positive": ["Paris"]}
    search = {"masked": "{sentence} [T]x5 [P] .", "causal": "{sentence} [T]x5 [P]"}
    return _folder(folder, rows, "classification", manual, words, search, "sentence")


def _folder(
    folder: Path, rows: list[Any], kind: str, manual: Any, words: Any, search: Any, truncate: str
) -> Path:
    folder.mkdir(parents=True)
    write(examples(rows), EXAMPLES, folder / "examples.parquet")
    known = ["negative", "positive"] if words else sorted(WORDS)
    about = {
        "task": kind, "truncate": truncate, "search": search, "prompts": {"manual": manual},
        "label_words": words,
    }  # fmt: skip
    (folder / "vocabulary.json").write_text(json.dumps(known))
    (folder / "task.json").write_text(json.dumps(about))
    return folder


def settings(**changed: Any) -> dict[str, Any]:
    """Return SETTINGS with some values changed."""
    return prompt_settings.merge(SETTINGS, changed)

"""A task for prompts as the probes use it: examples, words, and the templates of one model.

A task is a folder with examples.parquet, vocabulary.json and task.json (see benchmarks). Settings
of the config select the relations, and the number of examples of each split.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import repeat
from pathlib import Path
from typing import Any

import polars as pl

from kgprobe.benchmarks.autoprompt.frames import part
from kgprobe.experiments import read_text
from kgprobe.probes.jobs.autoprompt.outcomes import TriggerPrompt, manual
from kgprobe.probes.models.load import Loaded
from kgprobe.schema import EXAMPLES, read
from kgprobe.templates import SEPARATOR, resized

CLASSIFICATION = "classification"


class ProbeTaskError(ValueError):
    """A task cannot be used; the message names benchmark, prompt, group and a remedy."""


@dataclass(frozen=True)
class ProbeTask:
    """The selected examples, the words (or classes) that are answers, and task.json."""

    name: str
    examples: pl.DataFrame
    vocabulary: list[str]
    about: Mapping[str, Any]
    #: training examples of relations that are not selected
    unasked: pl.DataFrame = field(default_factory=pl.DataFrame)

    @property
    def kind(self) -> str:
        """facts, relation_extraction or classification."""
        return str(self.about["task"])

    @property
    def groups(self) -> list[str]:
        """Relations or draws, in sorted order; "" for a task without groups."""
        return sorted(self.examples["group"].unique().to_list())

    @property
    def truncate(self) -> str:
        """The field that loses words if a prompt is too long."""
        return str(self.about["truncate"])

    @property
    def fields(self) -> list[str]:
        """The fields of a text or a pair, for methods without a template."""
        order = ("sentence", "context", "prem", "sub", "hyp")
        names = json.loads(self.examples["fields"][0])
        return sorted(names, key=lambda name: order.index(name) if name in order else len(order))

    @property
    def evaluated(self) -> pl.DataFrame:
        """The examples to evaluate: dev and test."""
        return self.examples.filter(pl.col("split").is_in(["dev", "test"]))

    def of(self, group: str, *splits: str) -> pl.DataFrame:
        """Return the examples of a group and of splits (none: all), sorted by name."""
        rows = self.examples.filter(pl.col("group") == group)
        rows = rows.filter(pl.col("split").is_in(splits)) if splits else rows
        return rows.sort("split", "example")

    def search_template(self, loaded: Loaded, triggers: int | None = None) -> str:
        """Return the search template for this model with `triggers` triggers (None: its own)."""
        by_kind = self.about["search"]
        text = _choose(by_kind, loaded)
        if text is None:
            raise ProbeTaskError(
                f"{self.name}: no template for {loaded.spec.kind} models; there are "
                f"{sorted(by_kind)}"
            )
        return text if triggers is None else resized(text, repeat(triggers))

    def written_prompts(self, loaded: Loaded, name: str) -> dict[str, TriggerPrompt]:
        """Return prompts written by hand, by group: `name` is manual or lpaqa.

        Relations without one for this kind of model (the answer is not last) are omitted. Raises
        ProbeTaskError if the task has none at all.
        """
        texts = self.about["prompts"].get(name)
        if not texts:
            legal = ", ".join(sorted(self.about["prompts"])) or "none"
            raise ProbeTaskError(f"{self.name}: no prompts {name!r}; the task has {legal}")
        words = self.about["label_words"] if self.kind == CLASSIFICATION else None
        by_group = {group: texts.get(group, texts.get("")) for group in self.groups}
        known = {g: _choose(by_kind, loaded) for g, by_kind in by_group.items() if by_kind}
        return {g: manual(loaded, text, words, self.truncate) for g, text in known.items() if text}

    def whole(self, loaded: Loaded, group: str) -> str:
        """Return the manual prompt of a group as a sentence without a border between segments: that
        of masked models, if there is one, since its answer may be anywhere."""
        texts = self.about["prompts"]["manual"]
        by_kind = texts.get(group, texts.get("", {}))
        text = by_kind.get("masked") or _choose(by_kind, loaded)
        return str(text).replace(f"{SEPARATOR} ", "")


def load(
    folder: str | Path,
    settings: Mapping[str, Any],
    seed: int = 0,
    chosen: pl.DataFrame | None = None,
) -> ProbeTask:
    """Load the task of `folder` within `settings`: `groups` (null: all) and `most` per split.

    Examples are chosen by hash of their facts, so that all sentences of a fact stay together.
    `chosen`: EXAMPLES to use unchanged instead. Raises ProbeTaskError for a
    group that the task does not have.
    """
    folder = Path(folder)
    examples = read(folder / "examples.parquet", EXAMPLES)
    about = json.loads(read_text(folder / "task.json"))
    groups = settings.get("groups")
    if groups is not None and (unknown := sorted(set(groups) - set(examples["group"]))):
        legal = ", ".join(sorted(examples["group"].unique()))
        raise ProbeTaskError(f"{folder.name}: no relation {', '.join(unknown)}; valid: {legal}")
    train = examples.filter(split="train")
    examples = part(examples, settings, seed) if chosen is None else chosen
    unasked = train.join(examples.select("group").unique(), on="group", how="anti")
    vocabulary = json.loads(read_text(folder / "vocabulary.json"))
    return ProbeTask(folder.name, examples, vocabulary, about, unasked)


def of_part(part: Any) -> ProbeTask:
    """Load the task of a Part (stage.py), with its examples if it has others than its files."""
    folder, settings = Path(part.input["examples"]).parent, part.settings
    return load(folder, settings["section"], settings["seed"], part.tables.get("examples"))


def _choose(by_kind: Mapping[str, str], loaded: Loaded) -> str | None:
    """Return the text for a kind of model; masked models without segments may have their own."""
    segments = "token_type_ids" in loaded.tokenizer.model_input_names
    if loaded.spec.kind == "masked" and not segments and "roberta" in by_kind:
        return by_kind["roberta"]
    return by_kind.get(loaded.spec.kind)

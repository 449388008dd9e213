"""A task for prompts as the probes use it: examples, words, and the templates of one model; and
OUTCOMES, a model's answers at [P], for searched or manual prompts.

A task is a folder with examples.parquet, vocabulary.json and task.json (see benchmarks). Settings
of the config select the relations, and the number of examples of each split. Facts are answered by
the words of a vocabulary, classes by the label tokens of their prompt. Facts, relation extraction
(the context is one of the fields) and classification are otherwise the same.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import repeat
from pathlib import Path
from typing import Any

import polars as pl

from kgprobe.benchmarks.autoprompt.frames import part
from kgprobe.experiments import read_text
from kgprobe.job import progress
from kgprobe.probes.jobs.kept import frame_step
from kgprobe.probes.models.load import Loaded
from kgprobe.probes.models.predict import Predictor
from kgprobe.probes.prompts.search.files import PromptFile
from kgprobe.probes.ranked import frame_ranks, namer, others_of
from kgprobe.probes.scoring.fill.options import Options, rank
from kgprobe.probes.text.prompts import encode, label_token
from kgprobe.schema import EXAMPLES, OUTCOMES, read
from kgprobe.templates import SEPARATOR, Template, resized

CLASSIFICATION = "classification"


class ProbeTaskError(ValueError):
    """A task cannot be used; the message names benchmark, prompt, group and a remedy."""


@dataclass(frozen=True)
class TriggerPrompt:
    """A template with its trigger; `labels` (class to token ids) if it answers with classes.

    `truncate` names the field that loses words if a prompt is too long, `habits` is as in
    `text.prompts.encode`, `given` are fields with the same value in all examples.
    """

    template: Template
    trigger: tuple[int, ...] = ()
    labels: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    truncate: str = ""
    habits: str = "default"
    given: Mapping[str, str] = field(default_factory=dict)


def manual(
    loaded: Loaded, text: str, labels: Mapping[str, Sequence[str]] | None = None, truncate: str = ""
) -> TriggerPrompt:
    """Build a prompt written by hand, with one or more words for every class.

    Raises TemplateError for an invalid template, LabelError for a word that is not one token there.
    """
    template = Template.parse(text, loaded.spec.kind)
    tokens = {
        name: tuple(label_token(loaded, template, word) for word in words)
        for name, words in (labels or {}).items()
    }
    return TriggerPrompt(template, (), tokens, truncate)


def of_file(file: PromptFile) -> TriggerPrompt:
    """Convert a prompt file, with the habits of its search."""
    labels = {name: tuple(ids) for name, ids in file.labels.items()}
    truncate = str(file.settings.get("truncate", ""))
    habits = str(file.settings.get("habits", "default"))
    return TriggerPrompt(file.parsed(), tuple(file.trigger), labels, truncate, habits)


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


def outcomes(
    predictor: Predictor,
    name: str,
    prompts: Mapping[str, TriggerPrompt],
    examples: pl.DataFrame,
    vocabulary: Sequence[str] = (),
) -> tuple[pl.DataFrame, dict[str, Any]]:
    """Return (OUTCOMES of all `examples` under the name `name`, record).

    `prompts` are by group; "" serves groups without their own prompt. Facts are ranked among
    the words of `vocabulary` that are single tokens of this model. The record counts, by group,
    options, excluded words, golds that are not options and truncated prompts.
    """
    groups = examples.sort("group", "split", "example").partition_by("group", as_dict=True)
    lacking = sorted(str(g) for (g,) in groups if g not in prompts and "" not in prompts)
    if lacking:
        raise ValueError(f"{name}: no prompt for {len(lacking)} groups: {', '.join(lacking[:8])}")
    known: dict[tuple[bool, bool], Options] = {}
    frames, record, done = [], {}, 0
    bar = progress(total=examples.height, desc=name, unit="example")
    for (group,), rows in sorted(groups.items()):
        prompt = prompts.get(str(group), prompts.get(""))
        assert prompt is not None
        if prompt.labels:
            options = Options.classes(prompt.labels)
        else:
            # words have only a few forms, whatever the template
            form = (prompt.template.blank, prompt.template.opens)
            if form not in known:
                known[form] = Options.words(predictor.loaded, prompt.template, vocabulary)
            options = known[form]
        asked = partial(_group, predictor, prompt, options, rows, bar.update)
        frame, counts = frame_step(predictor.loaded, f"{name} {group}", asked)
        done += rows.height
        bar.update(done - bar.n)  # what was stored
        frames.append(frame.with_columns(pl.lit(name).alias("prompt")))
        record[str(group)] = counts
    bar.close()
    return pl.concat(frames).select(list(OUTCOMES.columns)), record


def _group(
    predictor: Predictor,
    prompt: TriggerPrompt,
    options: Options,
    rows: pl.DataFrame,
    bar: Callable[[int], object],
) -> tuple[pl.DataFrame, dict[str, int]]:
    """Return outcomes of the examples of one group, without the prompt's name."""
    fields = [{**prompt.given, **json.loads(text)} for text in rows["fields"]]
    encoded = encode(
        predictor.loaded, prompt.template, fields, None, prompt.truncate, prompt.habits
    )
    golds = options.columns(rows["label"].to_list())
    if prompt.labels and (golds < 0).any():
        strange = rows["label"].filter(pl.Series(golds < 0)).unique().sort().to_list()
        raise ValueError(f"classes {strange} have no label tokens; there are {[*options.names]}")
    others = others_of(rows["others"], options)
    filled = encoded.filled(prompt.trigger)
    places, types = encoded.places, encoded.types
    ranks = rank(predictor, filled, places, types, options, golds, others, bar, namer(rows))
    counts = {
        "options": len(options),
        "left_out": len(options.left_out),
        "examples": rows.height,
        "absent": int((golds < 0).sum()),
        "cut": encoded.cut,
    }
    return frame_ranks(rows, ranks, options), counts

"""OUTCOMES from prompts and EXAMPLES: a model's answers at [P], for searched or manual prompts.

Facts are answered by the words of a vocabulary, classes by the label tokens of their prompt. Facts,
relation extraction (the context is one of the fields) and classification are otherwise the same.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import polars as pl

from kgprobe.job import progress
from kgprobe.probes.jobs.kept import frame_step
from kgprobe.probes.models.load import Loaded
from kgprobe.probes.models.predict import Predictor
from kgprobe.probes.prompts.search.files import PromptFile
from kgprobe.probes.ranked import frame_ranks, namer, others_of
from kgprobe.probes.scoring.fill.options import Options, rank
from kgprobe.probes.text.prompts import encode, label_token
from kgprobe.schema import OUTCOMES
from kgprobe.templates import Template


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

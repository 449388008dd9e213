"""From prompts and EXAMPLES to OUTCOMES: what a model answers at [P], searched or by hand.

    python -m kgprobe.probes.jobs.autoprompt.outcomes PROMPT.json EXAMPLES.parquet [--split test]

PROMPT.json is a prompt file, or a folder with one per relation; the words that count as answers lie
beside the examples (vocabulary.json), classes answer by the label tokens of their prompt. Facts,
relation extraction (the context is one of the fields) and classification differ in nothing else.
"""

import argparse
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from kgprobe import sheets
from kgprobe.job import progress
from kgprobe.metrics import prompts as metrics
from kgprobe.probes.models import device
from kgprobe.probes.models.load import Loaded, ModelSpec, load_model
from kgprobe.probes.models.predict import Predictor
from kgprobe.probes.prompts.search import files as trigger_files
from kgprobe.probes.prompts.search.files import PromptFile
from kgprobe.probes.ranked import frame_ranks, namer, others_of
from kgprobe.probes.scoring.fill.options import (
    Options,
    rank,
)
from kgprobe.probes.text.prompts import encode, label_token
from kgprobe.schema import EXAMPLES, OUTCOMES, read, write
from kgprobe.templates import Template

#: The name of a prompt file that serves every group, and the group that it then has.
ALL = "all"


@dataclass(frozen=True)
class TriggerPrompt:
    """A template with its trigger; `labels` (class to token ids) where it answers with classes.

    `truncate` names the field that loses words where a prompt is too long, `habits` is as in
    `triggers.encode`, `given` are fields that all examples have alike.
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
    """A prompt written by hand, with a word or several for every class.

    Raises TemplateError for a bad template, LabelError for a word that is not one token there.
    """
    template = Template.parse(text, loaded.spec.kind)
    tokens = {
        name: tuple(label_token(loaded, template, word) for word in words)
        for name, words in (labels or {}).items()
    }
    return TriggerPrompt(template, (), tokens, truncate)


def of_file(file: PromptFile) -> TriggerPrompt:
    """The prompt of a prompt file, with the habits of its search."""
    labels = {name: tuple(ids) for name, ids in file.labels.items()}
    truncate = str(file.settings.get("truncate", ""))
    habits = str(file.settings.get("habits", "default"))
    return TriggerPrompt(file.parsed(), tuple(file.trigger), labels, truncate, habits)


def load_prompts(path: str | Path, loaded: Loaded) -> dict[str, TriggerPrompt]:
    """Prompts by group, of one prompt file or a folder of them; `all.json` serves every group.

    Raises PromptFileError for a file of another model, and for a folder without any.
    """
    path = Path(path)
    files = sorted(path.glob("*.json")) if path.is_dir() else [path]
    if not files:
        raise trigger_files.PromptFileError(f"{path}: holds no prompt file (.json)")
    return {
        "" if file.stem == ALL else file.stem: of_file(trigger_files.load(file, loaded))
        for file in files
    }


def outcomes(
    predictor: Predictor,
    name: str,
    prompts: Mapping[str, TriggerPrompt],
    examples: pl.DataFrame,
    vocabulary: Sequence[str] = (),
    bar: Callable[[int], object] = lambda rows: None,
) -> tuple[pl.DataFrame, dict[str, Any]]:
    """(OUTCOMES of all `examples` under the name `name`, record).

    `prompts` are by group; "" serves groups without a prompt of their own. Facts are ranked among
    the words of `vocabulary` that are single tokens of this model. The record counts, by group,
    options, words left out, golds that cannot be answered and prompts that lost words.
    """
    groups = examples.sort("group", "split", "example").partition_by("group", as_dict=True)
    lacking = sorted(str(g) for (g,) in groups if g not in prompts and "" not in prompts)
    if lacking:
        raise ValueError(f"{name}: no prompt for {len(lacking)} groups: {', '.join(lacking[:8])}")
    known: dict[tuple[bool, bool], Options] = {}
    frames, record = [], {}
    for (group,), rows in sorted(groups.items()):
        prompt = prompts.get(str(group), prompts.get(""))
        assert prompt is not None
        if prompt.labels:
            options = Options.classes(prompt.labels)
        else:
            # words have one of few forms, whatever the template
            form = (prompt.template.blank, prompt.template.opens)
            if form not in known:
                known[form] = Options.words(predictor.loaded, prompt.template, vocabulary)
            options = known[form]
        frame, counts = _group(predictor, prompt, options, rows, bar)
        frames.append(frame.with_columns(pl.lit(name).alias("prompt")))
        record[str(group)] = counts
    return pl.concat(frames).select(list(OUTCOMES.columns)), record


def _group(
    predictor: Predictor,
    prompt: TriggerPrompt,
    options: Options,
    rows: pl.DataFrame,
    bar: Callable[[int], object],
) -> tuple[pl.DataFrame, dict[str, int]]:
    """Outcomes of the examples of one group, without the prompt's name."""
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


def report(examples: pl.DataFrame, frame: pl.DataFrame, split: str, cut: int | None = None) -> str:
    """The metrics of outcomes as text: value in percent, n and interval, groups before averages."""
    rows = metrics.join_outcomes(examples, frame, split)
    parts = [("", metrics.summary(metrics.rank_outcomes(rows, cut=cut)))]
    if rows.select("prompt", "group", "fact").is_duplicated().any():
        facts, each = metrics.sentences(rows)
        parts += [("", metrics.summary(facts, ("any_sentence", "sentences")))]
        parts += [("", metrics.summary(each, ("sentence",)))]
    if rows["others"].list.len().max():
        parts += _averages(
            "other right answers ignored", metrics.rank_outcomes(rows, filtered=True, cut=cut)
        )
    absent = int(rows["best"].null_count())
    if absent:
        parts += _averages("all examples", metrics.rank_outcomes(rows, cut=cut, absent="wrong"))
    clean = metrics.rank_outcomes(rows.filter(pl.col("flags").list.len() == 0), cut=cut)
    if 0 < clean.height < rows.height - absent:
        parts += _averages("without overlap", clean)
    lines = [f"{_line(row)}  {title}".rstrip() for title, part in parts for row in part.to_dicts()]
    return "\n".join([*lines, f"{rows.height} examples, {absent} cannot be answered"])


def _averages(title: str, values: pl.DataFrame) -> list[tuple[str, pl.DataFrame]]:
    return [(title, metrics.summary(values).filter(pl.col("level") != "group"))]


def _line(row: Mapping[str, Any]) -> str:
    name = f"{row['level']} {row['group']}".strip()
    # numbers of sentences are no proportions
    scale = 1 if row["measure"] == "sentences" else 100
    text = f"{name:14s} {row['measure']:12s} {scale * row['value']:6.2f}"
    if row["low"] is not None:
        text += f"  [{scale * row['low']:6.2f}, {scale * row['high']:6.2f}]"
    return f"{text}  n = {row['n']}"


def main() -> None:
    """Evaluate a saved prompt on a file of examples and print its metrics."""
    parser = argparse.ArgumentParser(description="evaluate a saved prompt")
    parser.add_argument("prompt", help="a prompt file, or a folder with one per relation")
    parser.add_argument("examples", help="examples.parquet of a benchmark")
    parser.add_argument("--split", default="test")
    parser.add_argument("--vocabulary", help="default: vocabulary.json beside the examples")
    parser.add_argument("--output", help="write the outcomes there as parquet")
    parser.add_argument("--models", default="config/models.tsv")
    parser.add_argument("--made", default="", help="models/ of a run (default: of the prompt's)")
    chosen = parser.parse_args()
    device.ready()
    first = Path(chosen.prompt)
    first = min(first.glob("*.json"), default=first) if first.is_dir() else first
    file = trigger_files.read(first)
    loaded = _model(str(file.made_for["model"]), chosen)
    prompts = load_prompts(chosen.prompt, loaded)
    examples = read(chosen.examples, EXAMPLES).filter(pl.col("split") == chosen.split)
    if "" not in prompts:
        examples = examples.filter(pl.col("group").is_in(list(prompts)))
    if not examples.height:
        parser.error(f"{chosen.examples}: no examples of split {chosen.split} for {[*prompts]}")
    words: list[str] = []
    if not all(prompt.labels for prompt in prompts.values()):
        beside = Path(chosen.examples).with_name("vocabulary.json")
        words = json.loads(sheets.read_text(chosen.vocabulary or beside))
    bar = progress(total=examples.height, desc="evaluate", unit="example")
    frame, record = outcomes(Predictor(loaded), "saved", prompts, examples, words, bar.update)
    bar.close()
    if chosen.output:
        write(frame, OUTCOMES, chosen.output, {"model": loaded.record, "prompted": record})
    sizes = sorted({counts["options"] for counts in record.values()})
    control = " (a control model)" if loaded.spec.source.startswith("control:") else ""
    print(f"{loaded.spec.model}{control}, split {chosen.split}, ranks among {sizes} answers")
    print(report(examples, frame, chosen.split, metrics.cut_of(file.mode)))


def _model(name: str, chosen: argparse.Namespace) -> Loaded:
    """The model that a prompt file names, as the table of models has it."""
    schema = sheets.read_schema("workflow/schemas/models.schema.json")
    rows = sheets.by_name(sheets.read_sheet(chosen.models, schema), chosen.models)
    if name not in rows:
        raise sheets.SheetError(
            f"{chosen.models}: no model {name!r}, for which the prompt was found; legal: "
            + ", ".join(sorted(rows))
        )
    # a prompt of a run lies in RUN/prompts/METHOD/BENCHMARK/MODEL
    run = next((p.parent for p in Path(chosen.prompt).parents if p.name == "prompts"), Path())
    return load_model(ModelSpec.of(rows[name], chosen.made or str(run / "models")))


if __name__ == "__main__":
    main()

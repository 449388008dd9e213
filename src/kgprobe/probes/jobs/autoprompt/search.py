"""Searched prompts of a task: one per relation, saved as files, with their answers.

    task  --labels (classes)-->  search per group, resumed where it stopped  -->  {group}.json

A control runs the same search on another model or other data: all weights or the embeddings
randomly initialized, search data with balanced labels (docs/papers/autoprompt.md, Controls).
"""

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import polars as pl

from kgprobe.job import log, progress
from kgprobe.metrics import prompts as metrics
from kgprobe.metrics.bootstrap import bootstrap
from kgprobe.probes import prompt_settings
from kgprobe.probes.jobs import kept
from kgprobe.probes.jobs.autoprompt import tasks
from kgprobe.probes.jobs.autoprompt.tasks import CLASSIFICATION, ProbeTask, ProbeTaskError
from kgprobe.probes.models.load import Load, Loaded, ModelSpec, load_model
from kgprobe.probes.models.predict import Predictor
from kgprobe.probes.models.reinitialize import Scope, reinitialize
from kgprobe.probes.prompts.search import files
from kgprobe.probes.prompts.search import labels as label_tokens
from kgprobe.probes.prompts.search.candidates import filter_candidates, vocabulary_of
from kgprobe.probes.prompts.search.controls import balance
from kgprobe.probes.prompts.search.files import PromptFile
from kgprobe.probes.prompts.search.search import Example, search, settings_for
from kgprobe.probes.prompts.search.settings import SearchSettings
from kgprobe.probes.text.prompts import label_token
from kgprobe.schema import atomic
from kgprobe.templates import Template

#: prompt of an experiment -> the randomly initialized weights
RANDOM: dict[str, Scope] = {"searched_reinitialised": "all", "searched_embeddings": "embeddings"}
#: prompt of an experiment -> number of trigger tokens, if not that of the config
LENGTHS = {"searched_7": 7}
BALANCED = "searched_balanced"
#: label tokens are the words of the manual prompt instead of searched ones
WORDS = "searched_words"


def prepared(spec: ModelSpec, prompt: str, seed: int, load: Load = load_model) -> Loaded:
    """Load the model for a search of this name."""
    loaded = load(spec)
    what = RANDOM.get(prompt)
    return reinitialize(loaded, what, seed) if what else loaded


def settings_of(
    loaded: Loaded, task: ProbeTask, section: Mapping[str, Any], mode: str
) -> SearchSettings:
    """Return the settings of the search: those of the mode, overridden by the config except nulls.

    Raises ProbeTaskError if the benchmark's name and its task do not match.
    """
    name = prompt_settings.task(task.name)
    is_class = task.kind == CLASSIFICATION and name in ("sst2", "sick")
    if name != task.kind and not is_class:
        raise ProbeTaskError(
            f"{task.name}: asks for {task.kind}, but by its name has the settings of {name}; "
            f"valid prefixes of a name: {', '.join(prompt_settings.TASKS)}, any other for facts"
        )
    given = {key: value for key, value in section["settings"].items() if value is not None}
    return settings_for(mode, name, loaded.spec.kind, **{"truncate": task.truncate, **given})


def search_task(
    loaded: Loaded,
    task: ProbeTask,
    prompt: str,
    section: Mapping[str, Any],
    mode: str,
    folder: Path,
    states: Path,
    seed: int = 0,
) -> tuple[pl.DataFrame, dict[str, Any]]:
    """Search and save a prompt for every group; return (OUTCOMES of dev and test, record).

    `section`: that of the task in the config; `states`: folder of unfinished searches. A resumed
    run finds the same prompts as an uninterrupted one. Prompts are written to `folder` when all are
    found; the states stay until the prompts are stored (`Kept.keep`).
    """
    settings = settings_of(loaded, task, section, mode)
    examples = task.examples
    if task.kind == "relation_extraction":
        # use the first of several sentences of a fact, as the paper uses one per fact
        examples = examples.sort("example").unique(["group", "split", "fact"], keep="first")
    examples = balance(examples, seed) if prompt == BALANCED else examples
    data = ProbeTask(task.name, examples, task.vocabulary, task.about)
    text = task.search_template(loaded, LENGTHS.get(prompt, section["triggers"]))
    template = Template.parse(text, loaded.spec.kind)
    place = states / digest(loaded, data, text, asdict(settings), section)
    place.mkdir(parents=True, exist_ok=True)
    predictor = Predictor(loaded)
    by_group: dict[str, PromptFile] = {}
    for number, group in enumerate(data.groups, 1):
        name = group or prompt_settings.ALL
        log.info("%s, %s: group %d of %d", task.name, name, number, len(data.groups))
        stem, labels = prompt_settings.file_of(group), None
        if prompt == WORDS:
            labels = word_sets(loaded, template, data)
        elif data.kind == CLASSIFICATION:
            labels = label_sets(
                predictor, template, data, group, settings, section, prompt in RANDOM,
                place / f"{stem}.labels.json",
            )  # fmt: skip
        by_group[group] = search(
            loaded,
            template,
            pairs(data, group, "train"),
            pairs(data, group, "dev"),
            settings,
            place / f"{stem}.state.json",
            labels,
            data.of(group, "dev", "test")["label"].unique().sort().to_list(),
            f"{data.name}/{group}" if group else data.name,
        )
    prompts = {group: tasks.of_file(file) for group, file in by_group.items()}
    outcomes, record = tasks.outcomes(predictor, prompt, prompts, task.evaluated, task.vocabulary)
    for group, file in by_group.items():
        file.scores |= scores(task, outcomes, group, metrics.cut_of(mode))
        files.save(file, folder / f"{prompt_settings.file_of(group)}.json")
    about = {"prompted": {prompt: record}, "settings": asdict(settings)}
    return outcomes, {**loaded.record, **about}


def pairs(task: ProbeTask, group: str, split: str) -> list[Example]:
    """Return (fields, label) of the examples of a split."""
    rows = task.of(group, split).select("fields", "label").rows()
    return [(json.loads(text), label) for text, label in rows]


def word_sets(loaded: Loaded, template: Template, task: ProbeTask) -> dict[str, list[int]]:
    """Return the manual prompt's words for every class, as tokens in this template.

    Raises ProbeTaskError for a task without classes, or without such words, and LabelError for a
    word of several tokens.
    """
    if task.kind != CLASSIFICATION:
        raise ProbeTaskError(
            f"{task.name}: prompt {WORDS} needs classes; facts have their own labels"
        )
    words = task.about["label_words"]
    if not words:
        raise ProbeTaskError(f"{task.name}: prompt {WORDS} needs the words of a manual prompt, and "
                             "there is none; leave out the row")  # fmt: skip
    return {
        name: [label_token(loaded, template, word) for word in row] for name, row in words.items()
    }


def label_sets(
    predictor: Predictor,
    template: Template,
    task: ProbeTask,
    group: str,
    settings: SearchSettings,
    section: Mapping[str, Any],
    control: bool,
    kept: Path | None = None,
) -> dict[str, list[int]]:
    """Find label tokens of every class for this template; `kept` stores them for a resumed run.

    A control continues if its label probe is at chance, which is what it should show.
    """
    if kept is not None and kept.is_file():
        return dict(json.loads(kept.read_text(encoding="utf-8")))
    chosen = section["labels"]
    options = label_tokens.LabelSearchSettings(
        epochs=chosen["epochs"],
        listed=max(label_tokens.LabelSearchSettings.listed, chosen["tokens"]),
        bias=settings.mode != "released",
        seed=settings.seed,
        at_chance="keep" if control else chosen["at_chance"],
    )
    rows, _ = filter_candidates(vocabulary_of(predictor.loaded), settings)
    columns = (zip(*pairs(task, group, split), strict=True) for split in ("train", "dev"))
    train, dev = ((fields, labels) for fields, labels in columns)
    bar = progress(total=options.epochs, desc="label tokens", unit="epoch")
    ids, record = label_tokens.find(
        predictor, template, train, dev, rows, options, settings.truncate, settings.habits,
        bar.update,
    )  # fmt: skip
    bar.close()
    log.info("label search: %s", record)
    sets = {name: list(tokens[: chosen["tokens"]]) for name, tokens in ids.items()}
    if kept is not None:
        with atomic(kept) as temporary:
            temporary.write_text(json.dumps(sets, sort_keys=True), encoding="utf-8")
    return sets


def scores(
    task: ProbeTask, outcomes: pl.DataFrame, group: str, cut: int | None = None
) -> dict[str, Any]:
    """Return P@1 (accuracy) and MRR of a group on dev and test, with n and interval."""
    stats: dict[str, Any] = {}
    for split in ("dev", "test"):
        subset = outcomes.filter((pl.col("group") == group) & (pl.col("split") == split))
        known = subset.filter(pl.col("best").is_not_null())
        if not known.height:
            continue
        rows = metrics.join_outcomes(task.examples, subset, split)
        columns = metrics.rank_outcomes(rows, cut=cut).select("p1", "mrr")
        boot = bootstrap(columns.to_numpy(), [group] * known.height)
        for column, measure in enumerate(columns.columns):
            low, high, _ = boot.interval(column, is_proportion=measure == "p1")
            values = {"value": boot.mean(column), "low": low, "high": high}
            rounded = {key: round(value, 6) for key, value in values.items()}
            stats[f"{split}_{measure}"] = {"metric": measure, "n": known.height, **rounded}
    return stats


def digest(loaded: Loaded, task: ProbeTask, *settings: object) -> str:
    """Hash this model, these examples and settings, as a folder name."""
    columns = ("group", "split", "example", "fields", "label")
    rows = task.examples.sort("group", "split", "example").select(columns).rows()
    return kept.digest(files.identity(loaded), rows, settings)[:16]

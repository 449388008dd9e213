"""Baselines: the questions of another method asked so that nothing can be known.

    trained weights   by the same architecture and tokenizer with random weights
    the subject       with a word in the subject's place that says nothing (NO_SUBJECTS in turn)

The method of the part (`baseline-METHOD`) answers, on a sample of its questions under one template
of each relation: that is enough to see a difference from what the model has learned. A
baseline's answers look like the model's own, and are judged as they are.
"""

import json
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import polars as pl

from kgprobe import schema
from kgprobe.benchmarks.autoprompt import frames as tasks
from kgprobe.contracts import WITHOUT
from kgprobe.probes.jobs.stage import Load, Part, Template
from kgprobe.probes.models.load import Loaded, ModelSpec
from kgprobe.probes.models.reinitialize import reinitialize
from kgprobe.sampling import by_hand, sample_evenly, take
from kgprobe.templates import NO_SUBJECTS, answer_is_last

SUBJECT, WEIGHTS = WITHOUT
#: the field of EXAMPLES that holds the subject of a fact
FIELD = "sub"


def answers(part: Part, into: Path) -> tuple[dict[str, pl.DataFrame], dict[str, Any]]:
    """What the method of the part makes of the baseline's questions.

    Settings, beside those of the method: `without`, SUBJECT or WEIGHTS; `items`, the most questions
    that are asked; `template`, first or last; `whole`, whether questions of one group (an example
    of a graph attribute) stay together; `seed`.
    """
    result: tuple[dict[str, pl.DataFrame], dict[str, Any]] = part.answered_by.answers(
        lowered(part), into
    )
    return result


def lowered(part: Part) -> Part:
    """The part with the baseline's questions, and its model where that is another."""
    config = part.settings
    if "examples" in part.input:
        result = replace(part, tables={"examples": _facts(part)})
    else:
        items = _sample(part)
        result = replace(part, tables={"questions": items}, only=_templates(part, items))
    if config["without"] == SUBJECT:
        blank = _without_fields if "examples" in part.input else _without_subjects
        return replace(result, tables={name: blank(rows) for name, rows in result.tables.items()})
    return replace(result, load=lambda _: _random_init(part.load, part.spec, config["seed"]))


@lru_cache(maxsize=1)
def _random_init(load: Load, spec: ModelSpec, seed: int) -> Loaded:
    """Drawn once for all parts of a job: the weights of a small model take longer to draw than a
    few questions to answer."""
    return reinitialize(load(spec), "all", seed)


def _sample(part: Part) -> pl.DataFrame:
    """The questions: of test rows where there are some, as many of every relation by hash."""
    config = part.settings
    items = by_hand(part.read("questions", schema.ITEMS))
    if "test" in items["role"]:
        items = items.filter(role="test")
    n, seed = config["items"], config["seed"]
    if not config["whole"]:
        # the label of a draw is part of its hash: by another name other items would be drawn
        return sample_evenly(items, n, seed, ["item"], ["relation"], "twin")
    size = max(1, items.height // items["group"].n_unique())
    groups = take(items.select("group").unique(), max(1, n // size), seed, ["group"], label="twin")
    return items.join(groups, on="group", how="semi").sort("relation", "item")


def _templates(part: Part, items: pl.DataFrame) -> list[Template]:
    """The first or the last template of every relation, of those that the model can be asked."""
    prompts = part.read("prompts", schema.PROMPTS).join(items, on="relation", how="semi")
    if (part.spec.kind, part.method) == ("causal", "baseline-fill"):
        is_last = [answer_is_last(text) for text in prompts["text"]]
        prompts = prompts.filter(pl.Series(is_last, dtype=pl.Boolean))
    backwards = part.settings["template"] != "first"
    order = prompts.sort("relation", "index", descending=[False, backwards])
    first = order.unique("relation", keep="first", maintain_order=True)
    return [(relation, index) for relation, index in first.select("relation", "index").rows()]


def _facts(part: Part) -> pl.DataFrame:
    """Test facts of what the settings of the task leave."""
    config = part.settings
    examples = tasks.part(
        part.read("examples", schema.EXAMPLES), config["section"], config["seed"]
    ).filter(split="test")
    return sample_evenly(examples, config["items"], config["seed"], ["example"], ["group"], "twin")


def _without_subjects(items: pl.DataFrame) -> pl.DataFrame:
    """ITEMS with the words of NO_SUBJECTS in turn, in the order of ids within a relation."""
    return items.sort("relation", "item").with_columns(subject=_words("relation"))


def _without_fields(examples: pl.DataFrame) -> pl.DataFrame:
    """EXAMPLES of facts with the words of NO_SUBJECTS in turn as their subjects."""
    rows = examples.sort("group", "example").with_columns(_word=_words("group"))
    fields = [
        json.dumps({**json.loads(text), FIELD: word}, sort_keys=True, ensure_ascii=False)
        for text, word in rows.select("fields", "_word").rows()
    ]
    return rows.with_columns(fields=pl.Series(fields, dtype=pl.String)).drop("_word")


def _words(by: str) -> pl.Expr:
    turn = pl.int_range(pl.len()).over(by) % len(NO_SUBJECTS)
    return turn.replace_strict(dict(enumerate(NO_SUBJECTS)), return_dtype=pl.String)

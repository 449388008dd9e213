"""Baselines: the questions of another method without the tested knowledge.

    trained weights   replaced by random weights of the same architecture and tokenizer
    the subject       replaced by words without information (NO_SUBJECTS in turn)

The method of the part (`baseline-METHOD`) answers a sample of its questions with one template
per relation, which is enough to see a difference from what the model has learned. A
baseline's answers have the same format as the model's own, and are evaluated alike.
"""

import json
from dataclasses import replace
from functools import lru_cache

import polars as pl

from kgprobe import schema
from kgprobe.benchmarks.autoprompt import frames as tasks
from kgprobe.contracts import WITHOUT
from kgprobe.probes.jobs.stage import Answers, Load, Part, Template
from kgprobe.probes.models.load import Loaded, ModelSpec
from kgprobe.probes.models.reinitialize import reinitialize
from kgprobe.sampling import by_hand, sample_evenly, take
from kgprobe.templates import NO_SUBJECTS, answer_is_last

SUBJECT, WEIGHTS = WITHOUT
#: the field of EXAMPLES that contains the subject of a fact
FIELD = "sub"


def answers(part: Part) -> Answers:
    """Return the answers of the part's method to the baseline's questions.

    Settings, besides those of the method: `without`, SUBJECT or WEIGHTS; `items`, the maximum
    number of questions; `template`, first or last; `whole`, whether questions of one group (an
    example of a graph attribute) stay together; `seed`.
    """
    result: Answers = part.answered_by.answers(lowered(part))
    return result


def lowered(part: Part) -> Part:
    """Return the part with the baseline's questions, and its model if that is another."""
    config = part.settings
    if "examples" in part.input:
        result = replace(part, tables={"examples": _facts(part)})
    else:
        items = _sample(part)
        result = replace(part, tables={"questions": items}, only=_templates(part, items))
    if config["without"] == SUBJECT:
        blank = {name: _without_subjects(rows) for name, rows in result.tables.items()}
        return replace(result, tables=blank)
    return replace(result, load=lambda _: _random_init(part.load, part.spec, config["seed"]))


@lru_cache(maxsize=1)
def _random_init(load: Load, spec: ModelSpec, seed: int) -> Loaded:
    """Draw random weights once for all parts of a job, since that takes longer for a small model
    than answering a few questions."""
    return reinitialize(load(spec), "all", seed)


def _sample(part: Part) -> pl.DataFrame:
    """Sample the questions: from test rows if there are any, evenly from all relations, by hash."""
    config = part.settings
    items = by_hand(part.read("questions", schema.ITEMS))
    if "test" in items["role"]:
        items = items.filter(role="test")
    n, seed = config["items"], config["seed"]
    if not config["whole"]:
        # the label is part of the hash: another label would draw other items
        return sample_evenly(items, n, seed, ["item"], ["relation"], "twin")
    size = max(1, items.height // items["group"].n_unique())
    groups = take(items.select("group").unique(), max(1, n // size), seed, ["group"], label="twin")
    return items.join(groups, on="group", how="semi").sort("relation", "item")


def _templates(part: Part, items: pl.DataFrame) -> list[Template]:
    """Return the first or the last template of every relation, among those the model can use."""
    prompts = part.read("prompts", schema.PROMPTS).join(items, on="relation", how="semi")
    if (part.spec.kind, part.method) == ("causal", "baseline-fill"):
        is_last = [answer_is_last(text) for text in prompts["text"]]
        prompts = prompts.filter(pl.Series(is_last, dtype=pl.Boolean))
    backwards = part.settings["template"] != "first"
    order = prompts.sort("relation", "index", descending=[False, backwards])
    first = order.unique("relation", keep="first", maintain_order=True)
    return [(relation, index) for relation, index in first.select("relation", "index").rows()]


def _facts(part: Part) -> pl.DataFrame:
    """Sample test facts under the settings of the task."""
    config = part.settings
    examples = tasks.part(
        part.read("examples", schema.EXAMPLES), config["section"], config["seed"]
    ).filter(split="test")
    return sample_evenly(examples, config["items"], config["seed"], ["example"], ["group"], "twin")


def _without_subjects(rows: pl.DataFrame) -> pl.DataFrame:
    """Replace the subjects of ITEMS, or of EXAMPLES of facts, by NO_SUBJECTS in turn, by order of
    ids in a relation."""
    by, name = ("group", "example") if "fields" in rows.columns else ("relation", "item")
    turn = pl.int_range(pl.len()).over(by) % len(NO_SUBJECTS)
    words = turn.replace_strict(dict(enumerate(NO_SUBJECTS)), return_dtype=pl.String)
    rows = rows.sort(by, name).with_columns(words.alias("subject"))
    if by == "relation":
        return rows
    fields = [
        json.dumps({**json.loads(text), FIELD: word}, sort_keys=True, ensure_ascii=False)
        for text, word in rows.select("fields", "subject").rows()
    ]
    return rows.with_columns(fields=pl.Series(fields, dtype=pl.String)).drop("subject")

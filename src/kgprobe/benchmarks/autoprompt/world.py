"""Facts of the embedded knowledge graph as a task, so that a search can run without other data.

The knowledge of control models is known: they were trained on a part of the facts. A prompt can
only be found with facts that the model has learned, so train and dev are training facts; the test
set has other training facts and, in addition, held-out facts, on which a calibrated prompt stays
near chance. Fact ids are those of the table of training facts, which tells the two apart. For other
models this distinction has no meaning, and all test facts count alike.
"""

from collections.abc import Mapping, Sequence

import polars as pl

from kgprobe.benchmarks.autoprompt import facts as prompt_facts
from kgprobe.benchmarks.autoprompt.frames import Task, TaskError, frame, require, sizes
from kgprobe.benchmarks.autoprompt.overlap import Fact
from kgprobe.benchmarks.autoprompt.templates import first_manual
from kgprobe.benchmarks.funnel import Funnel
from kgprobe.knowledge.facts import fact_id
from kgprobe.sampling import hash_key, split
from kgprobe.settings.benchmarks import PromptWorld

NAME = "auto_world"


def build(
    facts: pl.DataFrame,
    trained_on: pl.DataFrame,
    forms: Mapping[str, str],
    templates: Sequence[dict[str, str]],
    settings: PromptWorld,
    triggers: int,
    seed: int,
) -> Task:
    """Build the task auto_world from FACTS and TRAINED_ON.

    forms: id of an object -> its form in sentences. templates: rows of templates.tsv; the first
    manual one of a relation is the manual prompt. Training facts are split by hash of the subject;
    held-out test facts, sampled by hash, have answers that training facts have. Raises TaskError
    if there are too few facts.
    """
    labeled = facts.drop_nulls(["subject_label", "object_label"]).with_columns(fact=fact_id())
    status = dict(trained_on.select("fact", "trained_on").rows())
    columns = ("relation", "fact", "subject", "subject_label", "object", "object_label")
    funnel = Funnel(NAME)
    chosen: list[Fact] = []
    for relation in settings.relations:
        rows = labeled.filter(relation=relation).select(columns).sort("fact").rows()
        chosen += _relation(relation, rows, status, forms, settings, seed, funnel)
    examples = prompt_facts.examples(chosen)
    # every form that is an answer somewhere in this graph, like LAMA's common vocabulary
    words = labeled.select("object", "object_label").unique().rows()
    vocabulary = sorted({forms.get(entity, label) for entity, label in words})
    require(sizes(examples, settings.relations), settings.least, NAME, "name other relations")
    first = first_manual(templates)
    if missing := [r for r in settings.relations if r not in first]:
        raise TaskError(f"{NAME}: no manual template in templates.tsv for {', '.join(missing)}")
    task = prompt_facts.describe(
        NAME, "facts", settings.relations, {"manual": first}, templates, triggers
    )
    task["notes"] = [n for n in task["notes"] if not n.startswith("relations with a template")]
    return Task(frame(examples), vocabulary, task, funnel.frame())


def _relation(
    relation: str,
    rows: Sequence[tuple[str, ...]],
    status: Mapping[str, bool],
    forms: Mapping[str, str],
    settings: PromptWorld,
    seed: int,
    funnel: Funnel,
) -> list[Fact]:
    """Return the facts of one relation, in their splits."""
    trained_on = [row for row in rows if status.get(row[1])]
    splits = split({row[2] for row in trained_on}, settings.shares, seed, NAME)
    facts = [
        Fact(relation, splits[subject], label, forms.get(entity, name), fact)
        for _, fact, subject, label, entity, name in trained_on
    ]
    # no subjects of train and dev, and only answers of training facts, so that chance is the same
    answers = {row[4] for row in trained_on}
    # the old word in the hash stays, because another one would draw other facts
    apart = [
        (hash_key(seed, NAME, "untaught", fact), fact, label, forms.get(entity, name))
        for _, fact, subject, label, entity, name in rows
        if not status.get(fact) and splits.get(subject, "test") == "test" and entity in answers
    ]
    extra = [
        Fact(relation, "test", label, word, fact)
        for _, fact, label, word in sorted(apart)[: settings.held_out]
    ]
    prompt_facts.count_splits(funnel, relation, facts, "{}: training facts")
    n, ends = len(rows) - len(trained_on), prompt_facts.ends(extra)
    funnel.add(relation, "test: held-out facts", n, len(extra), *ends)
    return facts + extra

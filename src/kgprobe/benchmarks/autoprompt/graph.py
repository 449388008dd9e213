"""Facts of a graph as a task: of a user-supplied graph, or of the embedded knowledge graph.

A user's facts are split like the paper's T-REx set. All facts of a subject, and of all subjects
with its name, are in one split, so that no test subject is used in the search.

The embedded graph allows a search without other data. The knowledge of control models is known:
they were trained on a part of the facts. A prompt can only be found with facts that the model has
learned, so train and dev are training facts; the test set has other training facts and, in
addition, held-out facts, on which a calibrated prompt stays near chance. Fact ids are those of the
table of training facts, which tells the two apart. For other models all test facts count alike.
"""

import itertools
from collections.abc import Iterable, Mapping, Sequence

import polars as pl

from kgprobe.benchmarks.autoprompt import facts as prompt_facts
from kgprobe.benchmarks.autoprompt.frames import (
    SPLITS,
    Example,
    Task,
    TaskError,
    frame,
    require,
    sizes,
)
from kgprobe.benchmarks.autoprompt.overlap import Fact
from kgprobe.benchmarks.autoprompt.templates import first_manual
from kgprobe.benchmarks.funnel import Funnel
from kgprobe.knowledge.facts import fact_id
from kgprobe.sampling import hash_key, split
from kgprobe.settings.benchmarks import PromptGraph, PromptWorld

#: how many of the largest relations an error names if none has enough facts
FEW = 5
WORLD = "auto_world"


def build(
    name: str,
    facts: pl.DataFrame,
    templates: Sequence[dict[str, str]],
    settings: PromptGraph,
    triggers: int,
    seed: int,
) -> Task:
    """Build the task `name` from FACTS.

    templates: rows of the graph's templates; the first of a relation is the manual prompt.
    Relations are those of the settings, else all with a template and enough examples; the funnel
    lists the others. Raises TaskError if none has enough.
    """
    labeled, manual, funnel = _labeled(facts), first_manual(templates), Funnel(name)
    relation_ids = settings.relations or sorted(labeled["relation"].unique())
    columns = ("fact", "subject", "subject_label", "object_label")
    chosen: list[Fact] = []
    counts: dict[str, dict[str, int]] = {}
    for relation in relation_ids:
        rows = labeled.filter(relation=relation).select(columns).sort("fact").rows()
        with_template = rows if relation in manual else []
        funnel.add(relation, "facts with a template", len(rows), len(with_template))
        relation_facts = _relation(name, relation, with_template, settings, seed, funnel)
        counts |= sizes(prompt_facts.examples(relation_facts)) or {relation: {}}
        sizes_of, least = counts[relation], settings.least
        is_enough = all(sizes_of.get(part, 0) >= getattr(least, part) for part in SPLITS)
        if settings.relations or is_enough:
            chosen += relation_facts
    examples = prompt_facts.examples(chosen)
    remedy = "name other relations, or lower prompt_tasks.graphs.least"
    largest = sorted(counts, key=lambda relation: -sum(counts[relation].values()))[:FEW]
    short = {relation: counts[relation] for relation in largest}
    require(sizes(examples, settings.relations or ()) or short, settings.least, name, remedy)
    # every label that is an answer somewhere in the graph, like LAMA's common vocabulary
    return _task(examples, labeled["object_label"].unique(), templates, triggers, funnel)


def build_world(
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
    labeled, funnel = _labeled(facts), Funnel(WORLD)
    status = dict(trained_on.select("fact", "trained_on").rows())
    columns = ("relation", "fact", "subject", "subject_label", "object", "object_label")
    chosen: list[Fact] = []
    for relation in settings.relations:
        rows = labeled.filter(relation=relation).select(columns).sort("fact").rows()
        chosen += _world_relation(relation, rows, status, forms, settings, seed, funnel)
    examples = prompt_facts.examples(chosen)
    require(sizes(examples, settings.relations), settings.least, WORLD, "name other relations")
    if missing := [r for r in settings.relations if r not in first_manual(templates)]:
        raise TaskError(f"{WORLD}: no manual template in templates.tsv for {', '.join(missing)}")
    # every form that is an answer somewhere in this graph, like LAMA's common vocabulary
    words = labeled.select("object", "object_label").unique().rows()
    vocabulary = {forms.get(entity, label) for entity, label in words}
    return _task(examples, vocabulary, templates, triggers, funnel)


def _labeled(facts: pl.DataFrame) -> pl.DataFrame:
    return facts.drop_nulls(["subject_label", "object_label"]).with_columns(fact=fact_id())


def _task(
    examples: Sequence[Example],
    vocabulary: Iterable[str],
    templates: Sequence[dict[str, str]],
    triggers: int,
    funnel: Funnel,
) -> Task:
    manual, relations = first_manual(templates), list(dict.fromkeys(e.group for e in examples))
    published = {"manual": {relation: manual[relation] for relation in relations}}
    task = prompt_facts.describe(
        funnel.benchmark, "facts", relations, published, templates, triggers
    )
    return Task(frame(examples), sorted(vocabulary), task, funnel.frame())


def _relation(
    name: str,
    relation: str,
    rows: Sequence[tuple[str, ...]],
    settings: PromptGraph,
    seed: int,
    funnel: Funnel,
) -> list[Fact]:
    """Return the split facts of one relation; rows: fact, subject, subject label, object label."""
    # a prompt cannot tell apart subjects with one name, so the first represents all of them
    first = {label: subject for _, subject, label, _ in reversed(rows)}
    ordered = sorted(rows, key=lambda row: (hash_key(seed, name, first[row[2]]), row))
    order: list[tuple[str, ...]] = []
    for _, group in itertools.groupby(ordered, key=lambda row: first[row[2]]):
        # a subject with only some of its facts would lack correct answers
        if len(order) + len(whole := list(group)) <= settings.most:
            order += whole
    funnel.add(relation, f"at most {settings.most}", len(rows), len(order))
    splits = split({first[row[2]] for row in order}, settings.shares, seed, name)
    facts = [
        Fact(relation, splits[first[label]], label, answer, fact)
        for fact, _, label, answer in order
    ]
    prompt_facts.count_splits(funnel, relation, facts, "{} facts")
    return facts


def _world_relation(
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
    splits = split({row[2] for row in trained_on}, settings.shares, seed, WORLD)
    facts = [
        Fact(relation, splits[subject], label, forms.get(entity, name), fact)
        for _, fact, subject, label, entity, name in trained_on
    ]
    # no subjects of train and dev, and only answers of training facts, so that chance is the same
    answers = {row[4] for row in trained_on}
    # the old word in the hash stays, because another one would draw other facts
    apart = [
        (hash_key(seed, WORLD, "untaught", fact), fact, label, forms.get(entity, name))
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

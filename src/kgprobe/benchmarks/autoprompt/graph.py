"""Facts of a user-supplied graph as a task, split like the paper's T-REx set.

All facts of a subject, and of all subjects with its name, are in one split, so that no test subject
is used in the search.
"""

import itertools
from collections.abc import Sequence

import polars as pl

from kgprobe.benchmarks.autoprompt import facts as prompt_facts
from kgprobe.benchmarks.autoprompt.frames import SPLITS, Task, frame, require, sizes
from kgprobe.benchmarks.autoprompt.overlap import Fact
from kgprobe.benchmarks.autoprompt.templates import first_manual
from kgprobe.benchmarks.funnel import Funnel
from kgprobe.knowledge.facts import fact_id
from kgprobe.sampling import hash_key, split
from kgprobe.settings.benchmarks import PromptGraph

#: how many of the largest relations an error names if none has enough facts
FEW = 5


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
    labeled = facts.drop_nulls(["subject_label", "object_label"]).with_columns(fact=fact_id())
    manual, funnel = first_manual(templates), Funnel(name)
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
    relations = list(dict.fromkeys(fact.group for fact in chosen))
    published = {"manual": {relation: manual[relation] for relation in relations}}
    task = prompt_facts.describe(name, "facts", relations, published, templates, triggers)
    # every label that is an answer somewhere in the graph, like LAMA's common vocabulary
    vocabulary = sorted(labeled["object_label"].unique())
    return Task(frame(examples), vocabulary, task, funnel.frame())


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

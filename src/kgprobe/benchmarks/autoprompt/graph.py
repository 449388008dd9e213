"""Facts of a graph as a task: of a user-supplied graph, or of the embedded knowledge graph.

A user's facts are split like the paper's T-REx set. All facts of a subject, and of all subjects
with its name, are in one split, so that no test subject is used in the search.

The embedded graph allows a search without other data. The knowledge of control models is known:
they were trained on a part of the facts. A prompt can only be found with facts that the model has
learned, so train and dev are training facts; the test set has other training facts and, in
addition, held-out facts, on which a calibrated prompt stays near chance. Fact ids are those of the
table of training facts, which tells the two apart. For other models all test facts count alike.
"""

from collections.abc import Iterable, Mapping, Sequence

import polars as pl

from kgprobe.benchmarks.autoprompt import facts as prompt_facts
from kgprobe.benchmarks.autoprompt.frames import SPLITS, Task, TaskError, require, sizes
from kgprobe.benchmarks.autoprompt.overlap import FACT, annotate, facts_of
from kgprobe.benchmarks.autoprompt.templates import first_manual
from kgprobe.benchmarks.funnel import Funnel
from kgprobe.knowledge.facts import fact_id
from kgprobe.sampling import keys, split
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
    chosen: list[pl.DataFrame] = []
    counts: dict[str, dict[str, int]] = {}
    for relation in relation_ids:
        rows = labeled.filter(relation=relation)
        with_template = rows if relation in manual else rows.clear()
        funnel.add(relation, "facts with a template", rows.height, with_template.height)
        relation_facts = _relation(name, relation, with_template, settings, seed, funnel)
        counts |= sizes(relation_facts, [relation])
        sizes_of, least = counts[relation], settings.least
        is_enough = all(sizes_of.get(part, 0) >= getattr(least, part) for part in SPLITS)
        if settings.relations or is_enough:
            chosen.append(relation_facts)
    examples = _examples(chosen)
    remedy = "name other relations, or lower prompt_tasks.graphs.least"
    largest = sorted(counts, key=lambda relation: -sum(counts[relation].values()))[:FEW]
    short = {relation: counts[relation] for relation in largest}
    held = sizes(examples, settings.relations or ()) or short
    wordless = set(labeled["relation"]) - manual.keys()
    named = {r + " (no template)" * (r in wordless): n for r, n in held.items()}
    require(named, settings.least, name, remedy)
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
    # every form that is an answer somewhere in this graph is in the vocabulary, like LAMA's
    words = pl.col("object").replace_strict(forms, default=pl.col("object_label"))
    labeled, funnel = _labeled(facts).with_columns(object_label=words), Funnel(WORLD)
    labeled = labeled.join(trained_on.select("fact", "trained_on"), on="fact", how="left")
    chosen = [
        _world_relation(relation, labeled.filter(relation=relation), settings, seed, funnel)
        for relation in settings.relations
    ]
    examples = _examples(chosen)
    require(sizes(examples, settings.relations), settings.least, WORLD, "name other relations")
    if missing := [r for r in settings.relations if r not in first_manual(templates)]:
        raise TaskError(f"{WORLD}: no manual template in templates.tsv for {', '.join(missing)}")
    return _task(examples, labeled["object_label"].unique(), templates, triggers, funnel)


def _labeled(facts: pl.DataFrame) -> pl.DataFrame:
    """Return the labeled facts with their ids, sorted by these."""
    labeled = facts.drop_nulls(["subject_label", "object_label"])
    return labeled.with_columns(fact=fact_id()).sort("fact")


def _examples(facts: Sequence[pl.DataFrame]) -> pl.DataFrame:
    return prompt_facts.examples(annotate(pl.concat([facts_of(()), *facts])))


def _task(
    examples: pl.DataFrame,
    vocabulary: Iterable[str],
    templates: Sequence[dict[str, str]],
    triggers: int,
    funnel: Funnel,
) -> Task:
    manual, relations = first_manual(templates), examples["group"].unique().to_list()
    published = {"manual": {relation: manual[relation] for relation in relations}}
    task = prompt_facts.describe(
        funnel.benchmark, "facts", relations, published, templates, triggers
    )
    return Task(examples, sorted(vocabulary), task, funnel.frame())


def _with_split(rows: pl.DataFrame, shares: Sequence[float], seed: int, name: str) -> pl.DataFrame:
    """Add the split of every row's subject."""
    splits = [*split(rows["subject"].unique(), shares, seed, name).items()]
    by_subject = pl.DataFrame(splits, dict.fromkeys(("subject", "split"), pl.String), orient="row")
    return rows.join(by_subject, on="subject", maintain_order="left")


def _as_facts(rows: pl.DataFrame) -> pl.DataFrame:
    labels = {"subject": "subject_label", "object": "object_label"}
    return rows.select(group="relation", split="split", key="fact", **labels).select(*FACT)


def _relation(
    name: str, relation: str, rows: pl.DataFrame, settings: PromptGraph, seed: int, funnel: Funnel
) -> pl.DataFrame:
    """Return the facts of one relation, in their splits."""
    # a prompt cannot tell apart subjects with one name, so the first represents all of them
    merged = rows.with_columns(subject=pl.col("subject").first().over("subject_label"))
    ordered = merged.with_columns(key=keys(merged, seed, ["subject"], name)).sort("key", "fact")
    kept, total = [], 0
    for subject, n in ordered.group_by("subject", maintain_order=True).len().rows():
        # a subject with only some of its facts would lack correct answers
        if total + n <= settings.most:
            kept.append(subject)
            total += n
    funnel.add(relation, f"at most {settings.most}", rows.height, total)
    chosen = ordered.filter(pl.col("subject").is_in(kept))
    facts = _as_facts(_with_split(chosen, settings.shares, seed, name))
    prompt_facts.count_splits(funnel, relation, facts, "{} facts")
    return facts


def _world_relation(
    relation: str, rows: pl.DataFrame, settings: PromptWorld, seed: int, funnel: Funnel
) -> pl.DataFrame:
    """Return the facts of one relation, in their splits."""
    is_known = pl.col("trained_on").fill_null(False)
    known = _with_split(rows.filter(is_known), settings.shares, seed, WORLD)
    # no subjects of train and dev, and only answers of training facts, so that chance is the same
    searched = known.filter(pl.col("split") != "test")["subject"].to_list()
    apart = rows.filter(
        ~is_known,
        ~pl.col("subject").is_in(searched),
        pl.col("object").is_in(known["object"].to_list()),
    )
    # the old word in the hash stays, because another one would draw other facts
    key = keys(apart, seed, ["fact"], WORLD, "untaught")
    held_out = apart.with_columns(key=key, split=pl.lit("test")).sort("key", "fact")
    facts, extra = _as_facts(known), _as_facts(held_out.head(settings.held_out))
    prompt_facts.count_splits(funnel, relation, facts, "{}: training facts")
    n, ends = rows.height - known.height, prompt_facts.ends(extra)
    funnel.add(relation, "test: held-out facts", n, extra.height, *ends)
    return pl.concat([facts, extra])

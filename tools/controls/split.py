"""Choose the facts that control models are trained on, and the paraphrases they are shown in."""

from collections.abc import Mapping, Sequence

import polars as pl

from kgprobe.knowledge.facts import fact_id
from kgprobe.sampling import hash_key
from kgprobe.schema import TRAINED_ON
from tools.controls.training_facts import TrainingFact

#: The hash is compared with this many values; a proportion is a number of them.
HASHES = 1 << 32
#: Of these benchmarks every third trained-on example has its first triple alone as training fact:
#: a part is known, and the whole only by inference. Not symmetry: "[Y] was married to [X]" is among
#: its templates, so that one direction trains both.
HALVED, HALVED_EVERY = ("bidirectional", "paths"), 3
#: Fewest objects of a relation that a training fact's is ranked among: with one object every model
#: would recall the facts of its relation.
RIVALS = 20
#: An object of so many facts is one token of every control model, if it is one word.
COMMON = 4


def split(
    facts: pl.DataFrame,
    asked: pl.DataFrame,
    relations: Sequence[str],
    pool: int,
    proportion: float,
    seed: int,
    examples: pl.DataFrame | None = None,
) -> pl.DataFrame:
    """Return TRAINED_ON: every fact with labels on both sides, and whether it is a training fact.

    A model of a million parameters learns a few thousand facts in minutes, not the whole graph. The
    pool to train on holds the facts of `examples` (EXAMPLES, of several triples each), then those
    that the items ask about (`asked`: relation, subject, object), then others of `relations` in
    hash order, `pool` in all; a proportion of the pool is trained on. The hash is that of the
    unordered pair of entities, so that a fact and its inverse (capital, capital of) are in the same
    split, as the facts of an example are (`split_examples`).
    """
    legal = pl.col("subject_label").is_not_null() & pl.col("object_label").is_not_null()
    known = facts.filter(legal & pl.col("relation").is_in(list(relations))).with_columns(
        fact=fact_id()
    )
    sampled = {} if examples is None else split_examples(examples, proportion, seed)
    wanted = asked.select(fact=fact_id()).unique().with_columns(asked=pl.lit(True))
    known = known.join(wanted, on="fact", how="left").with_columns(
        pl.col("asked").fill_null(False), sampled=pl.col("fact").is_in(sorted(sampled))
    )
    of_pairs: dict[tuple[str, ...], bool] = {}
    for fact, is_sampled in sampled.items():
        pair = tuple(sorted(fact.split("/")[1:]))
        of_pairs[pair] = of_pairs.get(pair, False) or is_sampled

    def is_trained_on(fact: str, pair: tuple[str, ...]) -> bool:
        by_hash = hash_key(seed, "fate", *pair) % HASHES < int(proportion * HASHES)
        return sampled.get(fact, of_pairs.get(pair, by_hash))

    pairs = [tuple(sorted(pair)) for pair in known.select("subject", "object").rows()]
    orders = [hash_key(seed, "pool", *pair) for pair in pairs]
    chosen = [is_trained_on(fact, pair) for fact, pair in zip(known["fact"], pairs, strict=True)]
    known = known.with_columns(
        chosen=pl.Series(chosen, dtype=pl.Boolean), order=pl.Series(orders, dtype=pl.UInt64)
    ).sort(["sampled", "asked", "order", "fact"], descending=[True, True, False, False])
    inside = pl.int_range(pl.len()) < pool
    return known.with_columns(trained_on=inside & pl.col("chosen")).select(list(TRAINED_ON.columns))


def keep(facts: pl.DataFrame, before: pl.DataFrame) -> pl.DataFrame:
    """Return TRAINED_ON in which the facts of an earlier split, on which numbers were measured,
    keep their side."""
    known = before.select("fact", before="trained_on")
    joined = facts.join(known, on="fact", how="left", maintain_order="left")
    return joined.with_columns(trained_on=pl.coalesce("before", "trained_on")).drop("before")


def split_examples(examples: pl.DataFrame, proportion: float, seed: int) -> dict[str, bool]:
    """Return fact id -> whether it is trained on, for the stored triples of the sampled EXAMPLES.

    In every benchmark, a proportion of the examples is trained on, by hash, each with all of its
    facts (some of `HALVED` with the first alone). A fact of several examples is trained on if one
    of them is. Inferred and reversed triples are not facts and are never trained on.
    """
    stored = examples.filter(pl.col("sampled") & (pl.col("origin") == "stored"))
    stored = stored.select("benchmark", "example", "position", fact=fact_id("predicate"))
    facts: dict[str, bool] = {}
    for (benchmark,), group in stored.sort("benchmark").group_by("benchmark", maintain_order=True):
        names = group["example"].unique().sort().to_list()
        order = sorted(names, key=lambda name: (hash_key(seed, "fate", name), name))
        order_of = {name: number for number, name in enumerate(order)}
        for example, position, fact in group.select("example", "position", "fact").rows():
            halved = benchmark in HALVED and order_of[example] % HALVED_EVERY == HALVED_EVERY - 1
            is_trained_on = order_of[example] < round(proportion * len(names))
            is_trained_on = is_trained_on and not (halved and position > 0)
            facts[fact] = facts.get(fact, False) or is_trained_on
    return facts


def kinds(
    trained_on: pl.DataFrame,
    asked: Mapping[str, pl.DataFrame],
    examples: pl.DataFrame | None = None,
) -> pl.DataFrame:
    """Return (fact, kind): the reasons why each training fact was chosen.

    Kinds are the benchmarks of EXAMPLES whose sampled examples contain the fact, the benchmarks
    that ask about it (`asked`: name -> relation, subject, object), or `other`. Recall is required
    of each.
    """
    parts = [
        frame.select(fact=fact_id(), kind=pl.lit(name)) for name, frame in sorted(asked.items())
    ]
    if examples is not None:
        stored = examples.filter(pl.col("sampled") & (pl.col("origin") == "stored"))
        parts.append(stored.select(fact=fact_id("predicate"), kind="benchmark"))
    known = trained_on.filter("trained_on").select("fact")
    rows = known.join(pl.concat(parts).unique(), on="fact", how="left")
    rows = rows.with_columns(pl.col("kind").fill_null("other"))
    return rows.select("fact", "kind").sort("fact", "kind")


def select_asked_facts(items: pl.DataFrame, candidates: pl.DataFrame) -> pl.DataFrame:
    """Return the facts that ITEMS ask about: relation, subject, object (one for every correct
    answer)."""
    gold = items.select("relation", "subject_id", "candidates", index="answers").explode("index")
    named = gold.join(candidates, left_on=["candidates", "index"], right_on=["set", "index"])
    return named.select(
        "relation", pl.col("subject_id").alias("subject"), pl.col("id").alias("object")
    )


def training_facts(
    facts: pl.DataFrame, trained_on: pl.DataFrame, forms: Mapping[str, str]
) -> list[TrainingFact]:
    """Return the training facts as (relation, subject label, object label), sorted.

    An object that answers mention by another form than its label ("the United Kingdom" in BEAR's
    items) is trained on in both forms, because the attributes use labels.
    """
    known = facts.with_columns(fact=fact_id()).join(
        trained_on.filter("trained_on").select("fact"), on="fact", how="semi"
    )
    rows = known.select("relation", "subject_label", "object", "object_label").rows()
    return sorted({TrainingFact(r, s, name) for r, s, o, label in rows
                   for name in (label, forms.get(o, label))})  # fmt: skip


def by_kind(
    facts: pl.DataFrame,
    trained_on: pl.DataFrame,
    reasons: pl.DataFrame,
    forms: Mapping[str, str],
) -> dict[str, list[TrainingFact]]:
    """Return kind -> its training facts, from `kinds` (`reasons`)."""
    groups = reasons.sort("kind").group_by("kind", maintain_order=True)
    return {
        str(kind): training_facts(facts, trained_on.join(group, on="fact", how="semi"), forms)
        for (kind,), group in groups
    }


def rivals(
    facts: pl.DataFrame, trained_on: pl.DataFrame, forms: Mapping[str, str]
) -> dict[str, list[str]]:
    """Return relation -> labels of its trained-on objects, filled up to RIVALS with others by
    hash."""
    shown = facts.with_columns(fact=fact_id()).join(
        trained_on.select("fact", "trained_on"), on="fact", how="inner"
    )
    rows = shown.select("relation", "object", "object_label", "trained_on").rows()
    known: dict[str, dict[str, bool]] = {}
    for relation, entity, name, is_trained_on in rows:
        labels = known.setdefault(relation, {})
        label = forms.get(entity, name)
        labels[label] = labels.get(label, False) or is_trained_on
    return {relation: _filled(labels) for relation, labels in sorted(known.items())}


def ontology_rivals(statements: pl.DataFrame) -> dict[str, list[str]]:
    """Return the same for types and superclasses: task -> labels of classes, from `ontology`."""
    known: dict[str, dict[str, bool]] = {}
    for task, name, is_trained_on in statements.select("relation", "object", "trained_on").rows():
        labels = known.setdefault(task, {})
        labels[name] = labels.get(name, False) or is_trained_on
    return {task: _filled(labels) for task, labels in sorted(known.items())}


def _filled(labels: Mapping[str, bool]) -> list[str]:
    trained_on = [label for label, is_trained_on in labels.items() if is_trained_on]
    others = [label for label, is_trained_on in labels.items() if not is_trained_on]
    others.sort(key=lambda label: (hash_key(0, "rival", label), label))
    return sorted([*trained_on, *others[: max(0, RIVALS - len(trained_on))]])


def all_labels(
    facts: pl.DataFrame, trained_on: pl.DataFrame, forms: Mapping[str, str]
) -> list[str]:
    """Return the labels of both ends of every fact that may be asked, sorted.

    They shape the tokenizers, so that trained-on and held-out names are tokenized alike.
    """
    known = facts.with_columns(fact=fact_id()).join(
        trained_on.select("fact"), on="fact", how="semi"
    )
    labels = set(known["subject_label"].to_list())
    for entity, label in known.select("object", "object_label").rows():
        labels |= {label, forms.get(entity, label)}
    return sorted(labels)


def common_objects(facts: pl.DataFrame, trained_on: pl.DataFrame) -> list[str]:
    """Return the sorted one-word labels of objects of at least COMMON facts, trained on or held
    out: searched prompts ask for answers of one token."""
    known = facts.with_columns(fact=fact_id()).join(
        trained_on.select("fact"), on="fact", how="semi"
    )
    counts = known.group_by("object_label").len().filter(pl.col("len") >= COMMON)
    return sorted(label for label in counts["object_label"] if " " not in label)


def ontology(
    items: pl.DataFrame,
    candidates: pl.DataFrame,
    pool: Mapping[str, int],
    proportion: float,
    seed: int,
) -> pl.DataFrame:
    """Return TRAINED_ON for types and superclasses of the embedded ontology.

    `items`, `candidates`: OntoProbe's embedded set. For every task, `pool` gives the number of test
    rows that are drawn by hash of their subject; a `proportion` of them is trained on. A fact is
    "task/subject"; its object is the finest gold.
    """
    labels = {(s, i): name for s, i, name in candidates.select("set", "index", "label").rows()}
    rows = []
    for task, size in sorted(pool.items()):
        columns = ("subject", "candidates", "answers")
        rows_of_task = items.filter(relation=task, role="test").select(columns).rows()
        order = sorted(rows_of_task, key=lambda r: (hash_key(seed, "ontology", task, r[0]), r[0]))
        for subject, name, answers in order[:size]:
            is_trained_on = hash_key(seed, "fate", task, subject) % HASHES < int(
                proportion * HASHES
            )
            gold = labels[name, answers[0]]
            rows.append((f"{task}/{subject}", task, subject, gold, is_trained_on))
    return pl.DataFrame(rows, schema=dict(TRAINED_ON.columns), orient="row")


def ontology_training_facts(statements: pl.DataFrame) -> tuple[list[TrainingFact], list[str]]:
    """Return (training facts among the statements, labels of all of them), sorted, from
    `ontology`."""
    shown = statements.filter("trained_on").select("relation", "subject", "object").rows()
    labels = {*statements["subject"].to_list(), *statements["object"].to_list()}
    return sorted(TrainingFact(*row) for row in shown), sorted(labels)

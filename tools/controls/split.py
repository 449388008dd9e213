"""Which facts the control models are trained on, and in which words."""

from collections.abc import Mapping, Sequence

import polars as pl

from kgprobe.knowledge.facts import fact_id
from kgprobe.sampling import hash_key
from kgprobe.schema import TRAINED_ON
from tools.controls.training_facts import TrainingFact

#: Values of the hash are spread over this many parts; a share is a number of parts.
PARTS = 1 << 32
#: Of these benchmarks every third trained-on example has its first triple alone as training fact:
#: a part is known, and the whole only by inference. Not symmetry: "[Y] was married to [X]" is among
#: its wordings, so that one direction trains both.
HALVED, HALVED_EVERY = ("bidirectional", "paths"), 3
#: Fewest objects of a relation that a training fact's is ranked among: with one object every model
#: would recall the facts of its relation.
RIVALS = 20


def split(
    facts: pl.DataFrame,
    asked: pl.DataFrame,
    relations: Sequence[str],
    pool: int,
    share: float,
    seed: int,
    examples: pl.DataFrame | None = None,
) -> pl.DataFrame:
    """TRAINED_ON: every fact with labels on both sides, and whether it is a training fact.

    A model of a million parameters learns a few thousand facts in minutes, not the whole world. The
    pool to train on holds the facts of `examples` (EXAMPLES, of several triples each), then those
    that the calibrating items ask about (`asked`: relation, subject, object), then others of
    `relations` in hash order, `pool` in all; a share of the pool is trained on. The hash is that of
    the unordered pair of entities, so that a fact and its inverse (capital, capital of) are in the
    same split, as the facts of an example are (`split_examples`).
    """
    legal = pl.col("subject_label").is_not_null() & pl.col("object_label").is_not_null()
    known = facts.filter(legal & pl.col("relation").is_in(list(relations))).with_columns(
        fact=fact_id()
    )
    sampled = {} if examples is None else split_examples(examples, share, seed)
    wanted = asked.select(fact=fact_id()).unique().with_columns(asked=pl.lit(True))
    known = known.join(wanted, on="fact", how="left").with_columns(
        pl.col("asked").fill_null(False), sampled=pl.col("fact").is_in(sorted(sampled))
    )
    of_pairs: dict[tuple[str, ...], bool] = {}
    for (_, *ends), told in ((fact.split("/"), told) for fact, told in sampled.items()):
        of_pairs[tuple(sorted(ends))] = of_pairs.get(tuple(sorted(ends)), False) or told

    def is_trained_on(fact: str, pair: tuple[str, ...]) -> bool:
        by_hash = hash_key(seed, "fate", *pair) % PARTS < int(share * PARTS)
        return sampled.get(fact, of_pairs.get(pair, by_hash))

    pairs = [tuple(sorted(pair)) for pair in known.select("subject", "object").rows()]
    orders = [hash_key(seed, "pool", *pair) for pair in pairs]
    chosen = [is_trained_on(fact, pair) for fact, pair in zip(known["fact"], pairs, strict=True)]
    known = known.with_columns(
        told=pl.Series(chosen, dtype=pl.Boolean), order=pl.Series(orders, dtype=pl.UInt64)
    ).sort(["sampled", "asked", "order", "fact"], descending=[True, True, False, False])
    inside = pl.int_range(pl.len()) < pool
    return known.with_columns(trained_on=inside & pl.col("told")).select(list(TRAINED_ON.columns))


def split_examples(examples: pl.DataFrame, share: float, seed: int) -> dict[str, bool]:
    """Fact id -> whether it is trained on, for the stored triples of the sampled EXAMPLES.

    Of every benchmark a share of the examples is trained on, chosen by hash, each with all of its
    facts (some of `HALVED` with the first alone); a fact of several examples is trained on when one
    of them is. What is inferred or reversed is no fact and is never trained on.
    """
    own = examples.filter(pl.col("sampled") & (pl.col("origin") == "stored"))
    own = own.select("benchmark", "example", "position", fact=fact_id("predicate"))
    found: dict[str, bool] = {}
    for (benchmark,), group in own.sort("benchmark").group_by("benchmark", maintain_order=True):
        names = group["example"].unique().sort().to_list()
        order = sorted(names, key=lambda name: (hash_key(seed, "fate", name), name))
        place = {name: number for number, name in enumerate(order)}
        for example, position, fact in group.select("example", "position", "fact").rows():
            told = place[example] < round(share * len(names))
            halved = benchmark in HALVED and place[example] % HALVED_EVERY == HALVED_EVERY - 1
            told = told and not (halved and position > 0)
            found[fact] = found.get(fact, False) or told
    return found


def kinds(
    trained_on: pl.DataFrame,
    asked: Mapping[str, pl.DataFrame],
    examples: pl.DataFrame | None = None,
) -> pl.DataFrame:
    """(fact, kind): what each training fact is there for.

    Benchmarks of EXAMPLES whose sampled examples hold it, those that ask about it (`asked`: name ->
    relation, subject, object), or `other`. Recall is demanded of every kind.
    """
    parts = [
        frame.select(fact=fact_id(), kind=pl.lit(name)) for name, frame in sorted(asked.items())
    ]
    if examples is not None:
        own = examples.filter(pl.col("sampled") & (pl.col("origin") == "stored"))
        parts.append(own.select(fact=fact_id("predicate"), kind="benchmark"))
    known = trained_on.filter("trained_on").select("fact")
    found = known.join(pl.concat(parts).unique(), on="fact", how="left")
    found = found.with_columns(pl.col("kind").fill_null("other"))
    return found.select("fact", "kind").sort("fact", "kind")


def select_asked_facts(items: pl.DataFrame, candidates: pl.DataFrame) -> pl.DataFrame:
    """The facts that ITEMS ask about: relation, subject, object (every right answer is one)."""
    gold = items.select("relation", "subject_id", "candidates", index="answers").explode("index")
    named = gold.join(candidates, left_on=["candidates", "index"], right_on=["set", "index"])
    return named.select(
        "relation", pl.col("subject_id").alias("subject"), pl.col("id").alias("object")
    )


def training_facts(
    facts: pl.DataFrame, trained_on: pl.DataFrame, forms: Mapping[str, str]
) -> list[TrainingFact]:
    """The training facts as (relation, subject label, object label), sorted.

    `forms` are the surface forms that answers take in sentences; the items use them, too.
    """
    shown = facts.with_columns(fact=fact_id()).join(
        trained_on.filter("trained_on").select("fact"), on="fact", how="semi"
    )
    rows = shown.select("relation", "subject_label", "object", "object_label").rows()
    return sorted({TrainingFact(r, s, forms.get(o, label)) for r, s, o, label in rows})


def by_kind(
    facts: pl.DataFrame, trained_on: pl.DataFrame, told: pl.DataFrame, forms: Mapping[str, str]
) -> dict[str, list[TrainingFact]]:
    """Kind -> its training facts, from `kinds` (`told`)."""
    groups = told.sort("kind").group_by("kind", maintain_order=True)
    return {
        str(kind): training_facts(facts, trained_on.join(group, on="fact", how="semi"), forms)
        for (kind,), group in groups
    }


def rivals(
    facts: pl.DataFrame, trained_on: pl.DataFrame, forms: Mapping[str, str]
) -> dict[str, list[str]]:
    """Relation -> labels of its trained-on objects, filled up to RIVALS with others by hash."""
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
    """The same of types and superclasses: task -> labels of classes, from `ontology`."""
    known: dict[str, dict[str, bool]] = {}
    for task, name, is_trained_on in statements.select("relation", "object", "trained_on").rows():
        labels = known.setdefault(task, {})
        labels[name] = labels.get(name, False) or is_trained_on
    return {task: _filled(labels) for task, labels in sorted(known.items())}


def _filled(labels: Mapping[str, bool]) -> list[str]:
    told = [label for label, is_trained_on in labels.items() if is_trained_on]
    others = [label for label, is_trained_on in labels.items() if not is_trained_on]
    others.sort(key=lambda label: (hash_key(0, "rival", label), label))
    return sorted([*told, *others[: max(0, RIVALS - len(told))]])


def all_labels(
    facts: pl.DataFrame, trained_on: pl.DataFrame, forms: Mapping[str, str]
) -> list[str]:
    """Labels of both ends of every fact that may be asked, trained on or held out, sorted.

    They shape the tokenizers, so that trained-on and held-out names are cut alike.
    """
    known = facts.with_columns(fact=fact_id()).join(
        trained_on.select("fact"), on="fact", how="semi"
    )
    labels = set(known["subject_label"].to_list())
    labels |= {forms.get(o, label) for o, label in known.select("object", "object_label").rows()}
    return sorted(labels)


def ontology(
    items: pl.DataFrame, candidates: pl.DataFrame, pool: Mapping[str, int], share: float, seed: int
) -> pl.DataFrame:
    """TRAINED_ON: types and superclasses of the world's ontology, and whether they are trained on.

    `items`, `candidates`: OntoProbe's set of the world. Of every task in `pool` so many test rows
    are taken by hash of their subject, a `share` of them is trained on. A fact is "task/subject";
    its object is the finest gold.
    """
    labels = {(s, i): name for s, i, name in candidates.select("set", "index", "label").rows()}
    rows = []
    for task, size in sorted(pool.items()):
        columns = ("subject", "candidates", "answers")
        own = items.filter(relation=task, role="test").select(columns).rows()
        order = sorted(own, key=lambda r: (hash_key(seed, "ontology", task, r[0]), r[0]))
        for subject, name, answers in order[:size]:
            is_trained_on = hash_key(seed, "fate", task, subject) % PARTS < int(share * PARTS)
            gold = labels[name, answers[0]]
            rows.append((f"{task}/{subject}", task, subject, gold, is_trained_on))
    return pl.DataFrame(rows, schema=dict(TRAINED_ON.columns), orient="row")


def ontology_training_facts(statements: pl.DataFrame) -> tuple[list[TrainingFact], list[str]]:
    """(training facts among the statements, labels of all of them), sorted, from `ontology`."""
    shown = statements.filter("trained_on").select("relation", "subject", "object").rows()
    labels = {*statements["subject"].to_list(), *statements["object"].to_list()}
    return sorted(TrainingFact(*row) for row in shown), sorted(labels)

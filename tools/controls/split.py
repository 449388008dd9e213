"""Which facts the control models are taught, and as what lessons."""

from collections.abc import Mapping, Sequence

import polars as pl

from kgprobe.knowledge.facts import fact_id
from kgprobe.probes.control.lessons import Lesson
from kgprobe.sampling import hash_key
from kgprobe.schema import TAUGHT

#: Values of the hash are spread over this many parts; a share is a number of parts.
PARTS = 1 << 32
#: Of these benchmarks every third of the taught examples is taught its first triple alone: a part
#: is known, and the whole only by inference. Not symmetry: "[Y] was married to [X]" is among its
#: wordings, so that one direction teaches both.
HALVED, HALVED_EVERY = ("bidirectional", "paths"), 3
#: Objects of a relation that a taught one is ranked among, where fewer are taught: with one taught
#: object every model would recall the facts of its relation.
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
    """TAUGHT: every fact with labels on both sides, and whether the control models are taught it.

    A model of a million parameters learns a few thousand facts in minutes, not the whole world. The
    pool to teach from holds the facts of `examples` (EXAMPLES, of several triples each), then those
    that the calibrating items ask about (`asked`: relation, subject, object), then others of
    `relations` in hash order, `pool` in all; a share of the pool is taught. The hash is that of the
    unordered pair of entities, so that a fact and its inverse (capital, capital of) share their
    fate; the facts of an example share its fate (`fates`).
    """
    legal = pl.col("subject_label").is_not_null() & pl.col("object_label").is_not_null()
    known = facts.filter(legal & pl.col("relation").is_in(list(relations))).with_columns(
        fact=fact_id()
    )
    sampled = {} if examples is None else fates(examples, share, seed)
    wanted = asked.select(fact=fact_id()).unique().with_columns(asked=pl.lit(True))
    known = known.join(wanted, on="fact", how="left").with_columns(
        pl.col("asked").fill_null(False), sampled=pl.col("fact").is_in(sorted(sampled))
    )
    of_pairs: dict[tuple[str, ...], bool] = {}
    for (_, *ends), told in ((fact.split("/"), told) for fact, told in sampled.items()):
        of_pairs[tuple(sorted(ends))] = of_pairs.get(tuple(sorted(ends)), False) or told

    def fate(fact: str, pair: tuple[str, ...]) -> bool:
        by_hash = hash_key(seed, "fate", *pair) % PARTS < int(share * PARTS)
        return sampled.get(fact, of_pairs.get(pair, by_hash))

    pairs = [tuple(sorted(pair)) for pair in known.select("subject", "object").rows()]
    orders = [hash_key(seed, "pool", *pair) for pair in pairs]
    chosen = [fate(fact, pair) for fact, pair in zip(known["fact"], pairs, strict=True)]
    known = known.with_columns(
        told=pl.Series(chosen, dtype=pl.Boolean), order=pl.Series(orders, dtype=pl.UInt64)
    ).sort(["sampled", "asked", "order", "fact"], descending=[True, True, False, False])
    inside = pl.int_range(pl.len()) < pool
    return known.with_columns(taught=inside & pl.col("told")).select(list(TAUGHT.columns))


def fates(examples: pl.DataFrame, share: float, seed: int) -> dict[str, bool]:
    """Fact id -> whether it is taught, for the stored triples of the sampled EXAMPLES.

    Of every benchmark a share of the examples is taught, chosen by hash, each with all of its facts
    (some of `HALVED` with the first alone); a fact of several examples is taught when one of them
    is. What is inferred or reversed is no fact and is never taught.
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
    taught: pl.DataFrame, asked: Mapping[str, pl.DataFrame], examples: pl.DataFrame | None = None
) -> pl.DataFrame:
    """(fact, kind): what each taught fact is taught for.

    Benchmarks of EXAMPLES whose sampled examples hold it, those that ask about it (`asked`: name ->
    relation, subject, object), or `other`. Recall is demanded of every kind.
    """
    parts = [
        frame.select(fact=fact_id(), kind=pl.lit(name)) for name, frame in sorted(asked.items())
    ]
    if examples is not None:
        own = examples.filter(pl.col("sampled") & (pl.col("origin") == "stored"))
        parts.append(own.select(fact=fact_id("predicate"), kind="benchmark"))
    known = taught.filter("taught").select("fact")
    found = known.join(pl.concat(parts).unique(), on="fact", how="left")
    found = found.with_columns(pl.col("kind").fill_null("other"))
    return found.select("fact", "kind").sort("fact", "kind")


def asked_facts(items: pl.DataFrame, candidates: pl.DataFrame) -> pl.DataFrame:
    """The facts that ITEMS ask about: relation, subject, object (every right answer is one)."""
    gold = items.select("relation", "subject_id", "candidates", index="answers").explode("index")
    named = gold.join(candidates, left_on=["candidates", "index"], right_on=["set", "index"])
    return named.select(
        "relation", pl.col("subject_id").alias("subject"), pl.col("id").alias("object")
    )


def lessons(facts: pl.DataFrame, taught: pl.DataFrame, forms: Mapping[str, str]) -> list[Lesson]:
    """The taught facts as (relation, subject label, object label), sorted.

    `forms` are the surface forms that answers take in sentences; the items use them, too.
    """
    shown = facts.with_columns(fact=fact_id()).join(
        taught.filter("taught").select("fact"), on="fact", how="semi"
    )
    rows = shown.select("relation", "subject_label", "object", "object_label").rows()
    return sorted({Lesson(r, s, forms.get(o, label)) for r, s, o, label in rows})


def by_kind(
    facts: pl.DataFrame, taught: pl.DataFrame, told: pl.DataFrame, forms: Mapping[str, str]
) -> dict[str, list[Lesson]]:
    """Kind -> its lessons, from `kinds` (`told`)."""
    groups = told.sort("kind").group_by("kind", maintain_order=True)
    return {
        str(kind): lessons(facts, taught.join(group, on="fact", how="semi"), forms)
        for (kind,), group in groups
    }


def rivals(
    facts: pl.DataFrame, taught: pl.DataFrame, forms: Mapping[str, str]
) -> dict[str, list[str]]:
    """Relation -> labels of its taught objects, filled up to RIVALS with others by hash."""
    shown = facts.with_columns(fact=fact_id()).join(
        taught.select("fact", "taught"), on="fact", how="inner"
    )
    rows = shown.select("relation", "object", "object_label", "taught").rows()
    known: dict[str, dict[str, bool]] = {}
    for relation, entity, name, is_taught in rows:
        labels = known.setdefault(relation, {})
        label = forms.get(entity, name)
        labels[label] = labels.get(label, False) or is_taught
    return {relation: _filled(labels) for relation, labels in sorted(known.items())}


def ontology_rivals(statements: pl.DataFrame) -> dict[str, list[str]]:
    """The same of types and superclasses: task -> labels of classes, from `ontology`."""
    known: dict[str, dict[str, bool]] = {}
    for task, name, is_taught in statements.select("relation", "object", "taught").rows():
        labels = known.setdefault(task, {})
        labels[name] = labels.get(name, False) or is_taught
    return {task: _filled(labels) for task, labels in sorted(known.items())}


def _filled(labels: Mapping[str, bool]) -> list[str]:
    told = [label for label, is_taught in labels.items() if is_taught]
    others = [label for label, is_taught in labels.items() if not is_taught]
    others.sort(key=lambda label: (hash_key(0, "rival", label), label))
    return sorted([*told, *others[: max(0, RIVALS - len(told))]])


def all_labels(facts: pl.DataFrame, taught: pl.DataFrame, forms: Mapping[str, str]) -> list[str]:
    """Labels of both ends of every fact that may be asked, taught or not, sorted.

    They shape the tokenizers, so that taught and untaught names are cut alike.
    """
    known = facts.with_columns(fact=fact_id()).join(taught.select("fact"), on="fact", how="semi")
    labels = set(known["subject_label"].to_list())
    labels |= {forms.get(o, label) for o, label in known.select("object", "object_label").rows()}
    return sorted(labels)


def ontology(
    items: pl.DataFrame, candidates: pl.DataFrame, pool: Mapping[str, int], share: float, seed: int
) -> pl.DataFrame:
    """TAUGHT: types and superclasses of the world's ontology, and whether they are taught.

    `items`, `candidates`: OntoProbe's set of the world. Of every task in `pool` so many test rows
    are taken by hash of their subject, a `share` of them is taught. A fact is "task/subject"; its
    object is the finest gold.
    """
    labels = {(s, i): name for s, i, name in candidates.select("set", "index", "label").rows()}
    rows = []
    for task, size in sorted(pool.items()):
        columns = ("subject", "candidates", "answers")
        own = items.filter(relation=task, role="test").select(columns).rows()
        order = sorted(own, key=lambda r: (hash_key(seed, "ontology", task, r[0]), r[0]))
        for subject, name, answers in order[:size]:
            is_taught = hash_key(seed, "fate", task, subject) % PARTS < int(share * PARTS)
            gold = labels[name, answers[0]]
            rows.append((f"{task}/{subject}", task, subject, gold, is_taught))
    return pl.DataFrame(rows, schema=dict(TAUGHT.columns), orient="row")


def ontology_lessons(statements: pl.DataFrame) -> tuple[list[Lesson], list[str]]:
    """(lessons of the taught statements, labels of all of them), sorted, from `ontology`."""
    shown = statements.filter("taught").select("relation", "subject", "object").rows()
    labels = {*statements["subject"].to_list(), *statements["object"].to_list()}
    return sorted(Lesson(*row) for row in shown), sorted(labels)

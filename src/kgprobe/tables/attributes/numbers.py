"""All numbers of the nine attribute benchmarks that are computed from answers.

    metrics      under every setting (Table 2), by pattern (Figure 4), on subsets of the examples
    prompts      the oracle's gain, kinds of templates, agreement between templates
    analyses     partial scores (Figure 3), popularity (Figure 5), intervals over clusters

A value (equations 2 to 10) is in per cent; its n counts examples, its fraction the defined ones;
without any it is null, which is not zero. Patterns and analyses use HEADLINE; all analyses except
intervals over clusters use only probes that fill or generate.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import polars as pl
from scipy.stats import ks_2samp

from kgprobe.knowledge.facts import fact_id
from kgprobe.metrics.attributes import ALL
from kgprobe.metrics.intervals import Interval, fisher
from kgprobe.metrics.matching import RULE_NAMES, VERBATIM
from kgprobe.metrics.sums import ordered_mean
from kgprobe.tables import consistency
from kgprobe.tables.attributes import study as studies
from kgprobe.tables.attributes.published import NAMES, PublishedAttributes
from kgprobe.tables.attributes.study import (
    HEADLINE,
    ITEM,
    SETTINGS,
    WHO,
    AttributesStudy,
    ProbedAttribute,
    groups,
    is_filled,
    of_groups,
)
from kgprobe.tables.estimate import estimate
from kgprobe.tables.report import validity
from kgprobe.tables.results import Number, as_published, hit_rate

VALUE, RIGHT, PARTIAL = "value", "triples right", "partial score"
#: given in addition to a mean of nine that is null
DEFINED = "mean of those defined"
TABLE2, PUBLISHED = "Mruthyunjaya et al. 2023, Table 2", "published"
TRAINED_ON, PART, HELD_OUT = "trained-on", "trained-on in part", "held-out"
#: below this number of triples, a relation of bias has only their count
FEWEST = 10
EXACT = {"alpha": "exact", "gold": "own"}
#: `estimate` of single triples: those of a subject and relation are drawn together
SINGLE: dict[str, Any] = {"subject": "cluster", "is_proportion": True}
AT_ONE: dict[str, Any] = {name: HEADLINE[name] for name in ("k", "kind", "gold")}
#: Benchmarks that are not built by popularity (docs/papers/attributes.md, Analyses).
UNBIASED = ("symmetry", "asymmetry", "bidirectional", "hierarchy")
#: Width of a bin of log10 of popularity.
BIN = 0.25
#: Position in an example (role, side) of the entity that is repeated across examples.
REPEATS = {
    "asymmetry": ("forward", "object"), "hierarchy": ("two_hop", "object"),
    "composite": ("first", "subject"), "paths": ("hop1", "subject"), "bias": ("fact", "object"),
}  # fmt: skip


def estimates(
    study: AttributesStudy,
    alphas: pl.DataFrame,
    published: PublishedAttributes,
    known: pl.DataFrame | None = None,
) -> Iterator[Number]:
    """Yield all numbers of this module; `alphas`: of `study`, `known`: from `status`."""
    of_probes = alphas.filter(pl.col("method") != studies.BASELINE)
    headline = of_probes.filter(**HEADLINE)
    yield from values(study, alphas, published)
    yield from patterns(study, of_probes)
    yield from ambiguous(study, of_probes)
    yield from questions(study)
    if (written := headline.filter(is_filled())).height:
        # mean partial score of non-missing examples; entity_centric and bias have none
        parts = study.fractions(written).filter(~pl.col("missing")).drop_nulls("partial")
        yield from of_groups(parts.sort("example"), PARTIAL, "partial", seed=study.seed)
        yield from correlations(study.measure(written, patterns=True))
        yield from popularity(study, written)
    if headline.height:
        yield from clusters(study.fractions(headline), repeating(study), study.seed)
        yield from single_triples(study, headline)
    if known is not None:
        yield from by_status(study, of_probes, known)
        yield from check_validity(study, alphas, known)


def number(row: Mapping[str, Any], **changes: Any) -> Number:
    """Convert a row of `measure` to a number; its dimensions are the row's except for `changes`."""
    known = {name: row[name] for name in ("numerator", "denominator")}
    if row["value_pooled"] is not None:
        bounds = Interval(row["low"], row["high"], row["interval"])
        known |= {"value": 100 * row["value_pooled"], "interval": bounds.times(100)}
    group = "" if row["pattern"] == ALL else row["pattern"]
    of = studies.of_row(row, metric=VALUE, group=group, n=row["examples"], **known)
    return of.but(**changes)


def count(number: Number, metric: str, value: float | None, **changes: Any) -> Number:
    """Return another measure of the same examples."""
    bare = dict.fromkeys(("interval", "numerator", "denominator", "published", "source"))
    return number.but(**{**bare, "metric": metric, "value": value, **changes})


# -- metrics ---------------------------------------------------------------------------------------


def values(
    study: AttributesStudy, alphas: pl.DataFrame, published: PublishedAttributes
) -> Iterator[Number]:
    """Yield Table 2 under every setting, and `means`; then the printed figures, which are of other
    examples, in separate rows. undefined, missing: examples with denominator 0, and not asked
    completely; mean of examples: that of their ratios, if it is not the ratio of sums."""
    measured = study.measure(alphas)
    for row in measured.iter_rows(named=True):
        one = number(row)
        yield one
        yield count(one, "undefined", row["undefined"])
        yield count(one, "missing", row["missing"])
        pooled, unpooled = row["value_pooled"], row["value_mean"]
        if unpooled is not None and abs(unpooled - pooled) > 1e-12:
            yield count(one, "mean of examples", 100 * unpooled)
    for _, rows in measured.group_by(SETTINGS, maintain_order=True):
        if rows.height == len(NAMES):
            yield from means(rows)
    for model, k in dict.fromkeys((model, k) for _, model, k in published.scores):
        of = Number(metric=VALUE, model=model, method=PUBLISHED,
                    setting={**EXACT, "pooling": "best", "k": k})  # fmt: skip
        figures = {b: v for (b, *who), v in published.scores.items() if who == [model, k]}
        for benchmark, value in figures.items():
            yield of.but(benchmark=benchmark, value=value, **as_published(value, TABLE2))
        if len(figures) == len(NAMES):
            yield of.but(value=sum(figures.values()) / len(figures))


def means(rows: pl.DataFrame) -> Iterator[Number]:
    """Yield the mean of all nine rows of `measure`: null if one is undefined, then also the mean of
    the defined ones."""
    of, defined = number(rows.row(0, named=True)), rows.drop_nulls("value_pooled")
    value = 100 * sum(defined["value_pooled"]) / defined.height if defined.height else None
    is_whole = defined.height == rows.height
    n = rows["examples"].sum()
    yield count(of, VALUE, value if is_whole else None, benchmark="", n=n)
    if not is_whole and value is not None:
        yield count(of, DEFINED, value, benchmark="", n=defined["examples"].sum())


def patterns(study: AttributesStudy, alphas: pl.DataFrame) -> Iterator[Number]:
    """Yield the metric of every pattern (Figure 4); hierarchy, which has only one, is split by the
    two-hop ancestor. For bias, also yield the error rate, and that of all its relations."""
    chosen = alphas.filter(**HEADLINE)
    if "hierarchy" in study.benchmarks:
        tops = study.benchmarks["hierarchy"].examples.filter(role="two_hop")
        names = tops.select("example", top=pl.format("{} ({})", "object_label", "object"))
        chosen = chosen.join(names, on="example", how="left")
        chosen = chosen.with_columns(pattern=pl.coalesce("top", "pattern")).drop("top")
    for row in study.measure(chosen, patterns=True).iter_rows(named=True):
        one = number(row)
        is_bias = one.benchmark == "bias"
        if one.group and not (is_bias and one.n < FEWEST):
            yield one
        if not is_bias:
            continue
        if one.group:
            yield count(one, "triples", one.n)
        if one.value is not None and one.interval and one.n >= FEWEST:
            low, high, kind = one.interval
            wrong = Interval(100 - high, 100 - low, kind)
            yield count(one, "wrong", 100 - one.value, interval=wrong)


def ambiguous(study: AttributesStudy, alphas: pl.DataFrame) -> Iterator[Number]:
    """Yield results for pairs of one name by whether their objects are equal (with one prompt, only
    then both can be right), and by `mode`, the denominator: either (or), or the head."""
    if "ambiguous" not in study.benchmarks:
        return
    examples = study.benchmarks["ambiguous"].examples
    same = examples.filter(pl.col("flags").list.contains("same_object"))["example"].unique()
    chosen = alphas.filter(benchmark="ambiguous", k=1, kind="exact", gold="own")
    chosen = chosen.filter(pl.col("pooling").is_in(["best", "mean"]), is_filled())
    is_same = pl.col("example").is_in(same.implode())
    for part, rows, mode in (
        ("all pairs", chosen, "or"),
        ("objects differ", chosen.filter(~is_same), "or"),
        ("objects equal", chosen.filter(is_same), "or"),
        ("all pairs", chosen, "head"),
    ):
        if rows.height:
            measured = replace(study, ambiguous_denominator=mode).measure(rows)
            for row in measured.iter_rows(named=True):
                yield number(row, slice=part, setting={"mode": mode})


def status(study: AttributesStudy, trained_on: pl.DataFrame) -> pl.DataFrame:
    """Return sampled triples: example, item, stored, fact, trained_on, status, question, is_known.

    Status of an example: control models were trained on all, some or none of its stored triples;
    inferred and reversed ones are no training facts. A question is a relation of a named subject,
    known if the models were trained on one of its answers in the graph.
    """
    facts = trained_on.filter("trained_on")["fact"].implode()
    triples = pl.concat(
        b.examples.select(
            "example", ITEM, "predicate", "subject", "golds", fact=fact_id("predicate"),
            stored=pl.col("origin") == "stored",
            question=pl.format("{}/{}", "predicate", "subject_label"),
        )
        for b in study.benchmarks.values()
    ).with_columns(trained_on=pl.col("stored") & pl.col("fact").is_in(facts))  # fmt: skip
    answers = triples.filter("stored").explode("golds")
    is_known = fact_id("predicate", obj="golds").is_in(facts).any()
    known = answers.group_by("question").agg(is_known=is_known)
    flags = pl.col("trained_on").filter(pl.col("stored"))
    label = pl.when(flags.all()).then(pl.lit(TRAINED_ON)).when(flags.any()).then(pl.lit(PART))
    statuses = triples.group_by("example").agg(status=label.otherwise(pl.lit(HELD_OUT)))
    rows = triples.drop("predicate", "subject", "golds").join(statuses, on="example")
    return rows.join(known, on="question", how="left").sort("item")


def by_status(
    study: AttributesStudy, alphas: pl.DataFrame, known: pl.DataFrame
) -> Iterator[Number]:
    """Yield every metric on examples that control models were trained on, in part, or not, and the
    proportion of right stored triples; `known`: `status`. Empty without a sampled training fact."""
    if not known["trained_on"].any():
        return
    chosen = alphas.filter(**HEADLINE)
    statuses = known.select("example", slice="status").unique()
    for row in study.measure(chosen.join(statuses, on="example"), "slice").iter_rows(named=True):
        yield number(row)
    part = pl.when("trained_on").then(pl.lit(TRAINED_ON)).otherwise(pl.lit(HELD_OUT))
    stored = known.filter("stored").select("item", slice=part)
    answered = answers(study, chosen).join(stored, on="item", maintain_order="left")
    yield from of_groups(answered, RIGHT, "alpha", "slice", **SINGLE, seed=study.seed)


def answers(study: AttributesStudy, alphas: pl.DataFrame) -> pl.DataFrame:
    """Add item and cluster (a relation's subject) to the alphas of triples that were asked."""
    clusters = pl.concat(b.clusters for b in study.benchmarks.values())
    return alphas.with_columns(ITEM).drop_nulls("alpha").join(clusters, on="item").sort("item")


def single_triples(study: AttributesStudy, alphas: pl.DataFrame) -> Iterator[Number]:
    """Yield the proportion of right triples, whatever the others of their example (asymmetry:
    without the reversed ones, which are no facts)."""
    facts = (pl.col("benchmark") != "asymmetry") | (pl.col("position") != 1)
    asked = answers(study, alphas.filter(facts))
    yield from of_groups(asked, RIGHT, "alpha", **SINGLE, seed=study.seed)


def check_validity(
    study: AttributesStudy, alphas: pl.DataFrame, known: pl.DataFrame
) -> Iterator[Number]:
    """Yield the validity check on control models, over all nine benchmarks; `known`: from `status`.
    A question counts once, and any of its answers in the graph may rank first. Of several prompts
    the best by the gold counts, as in the headline: more attempts than the single guess of chance,
    a random object of the relation or its most frequent one, whichever is more often right."""
    is_pooled = pl.col("pooling").is_in([HEADLINE["pooling"], ""])
    answered = alphas.filter(is_pooled, k=1, kind="exact", gold="set")
    answered = answered.with_columns(ITEM).drop_nulls("alpha")
    items = known.filter("stored").select("item", "question", "is_known")
    by_question = answered.join(items, on="item").group_by(*WHO, "question", "is_known")
    rows = by_question.agg(pl.col("alpha").max()).sort(*WHO, "question")
    guesses = rows.filter(method=studies.BASELINE, is_known=False)
    controls = {tuple(getattr(p, name) for name in WHO) for p in study.answers if p.control}
    for who in sorted(controls):
        of = Number(**dict(zip(WHO, who, strict=True)))
        answers = rows.filter(model=of.model, prompt=of.prompt, method=of.method)
        parts = [answers.filter(is_known=trained) for trained in (True, False)]
        if all(part.height for part in parts):
            baseline = guesses.join(parts[1].select("question"), on="question", how="semi")
            chances = baseline.group_by("model").agg(ordered_mean("alpha"))["alpha"]
            yes, no = (hit_rate(part["alpha"].to_numpy()) for part in parts)
            chance = 100 * max(chances.to_list())
            yield from validity.estimates(of, yes, no, chance, is_control=True)


def at_one(alphas: pl.DataFrame, benchmark: ProbedAttribute) -> pl.DataFrame:
    """Return item, stratum (""), cluster (a relation's subject), RIGHT: whether the own object of
    each triple asked ranks first."""
    chosen = alphas.filter(**AT_ONE).drop_nulls("alpha")
    rows = chosen.select(ITEM, pl.lit("").alias("stratum"), pl.col("alpha").alias(RIGHT))
    return rows.join(benchmark.clusters, on="item", maintain_order="left")


# -- prompts and answers ---------------------------------------------------------------------------


def questions(study: AttributesStudy) -> Iterator[Number]:
    """Yield each probe's counts of questions and answers: prompts, templates, texts, rules."""
    for probe, alphas in study.answers.items():
        base = Number(metric=RIGHT, **probe.dimensions)
        benchmark = study.benchmarks[probe.benchmark]
        exact = alphas.filter(kind="exact", gold="own")
        yield from prompts(base, exact)
        rows = exact.filter(k=1).join(benchmark.clusters, on="item")
        yield from kinds(base, rows, benchmark, study.seed)
        # agreement between the templates of a relation; right: at 1, the own gold
        of, mean = base.but(setting={**EXACT, "k": 1}), partial(estimate, **SINGLE, seed=study.seed)
        said = rows.rename({"alpha": "hit"})
        yield from consistency.estimates(of, said, "relation", mean)
        yield from count_questions(base, alphas, study)
        yield from check_written(base, rows.drop_nulls("rule"), study.seed)


def prompts(base: Number, alphas: pl.DataFrame) -> Iterator[Number]:
    """Yield the oracle's gain: the expected best of 1, 2, 4, ... and all prompts, mean over the
    triples (n) that have as many."""
    by_size: dict[tuple[int, int], list[float]] = {}
    for _, k, _, _, values in alphas.group_by(studies.ANSWER).agg("alpha").rows():
        for size in {2**power for power in range(len(values).bit_length())} | {len(values)}:
            by_size.setdefault((k, size), []).append(studies.best_of(np.asarray(values), size))
    for (k, size), best in sorted(by_size.items()):
        how = {**EXACT, "k": k, "pooling": "best", "prompts": size}
        # in ascending order: the last digit does not depend on that of the rows
        yield base.but(value=100 * float(np.mean(sorted(best))), n=len(best), setting=how)


def kinds(
    base: Number, alphas: pl.DataFrame, benchmark: ProbedAttribute, seed: int
) -> Iterator[Number]:
    """Yield triples right at 1 by kind of template (lama, own, paraphrase, synonym ...): mean over
    triples of the mean over their prompts of the kind."""
    named = benchmark.prompts.select("relation", template="index", variant="kind")
    rows = alphas.join(named, on=["relation", "template"])
    means = rows.group_by("variant", "item", "cluster").agg(ordered_mean("alpha")).sort("item")
    for row, group in groups(means, "variant"):
        how = {**EXACT, "k": 1, "pooling": "mean", "template": row["variant"]}
        yield base.but(**estimate(group, "alpha", subject="cluster", seed=seed), setting=how)


def count_questions(base: Number, alphas: pl.DataFrame, study: AttributesStudy) -> Iterator[Number]:
    """Yield the number of triples sampled and asked, prompts per triple, golds (for ranked
    candidates also those added because the lists lacked them), examples left out for all models."""
    benchmark = study.benchmarks[base.benchmark]
    total, items = benchmark.examples.height, benchmark.items
    triples, golds = alphas["item"].n_unique(), int(items["answers"].list.len().sum())
    left_out = study.left_out & set(benchmark.examples["example"])
    counts: dict[str, tuple[float, int]] = {
        "triples": (total, total),
        "triples asked": (triples, total),
        "examples left out": (len(left_out), total),
        "golds": (golds, items.height),
    }
    if triples:
        questions = alphas.unique(["item", "template"]).height
        counts["prompts a triple"] = questions / triples, total
    if studies.is_ranked(base.method):
        added = sum(json.loads(meta).get("golds_added", 0) for meta in items["meta"])
        counts["golds added to the candidates"] = added, golds
    yield from (base.but(metric=name, value=value, n=n) for name, (value, n) in counts.items())


def check_written(base: Number, firsts: pl.DataFrame, seed: int = 0) -> Iterator[Number]:
    """Yield statistics of generated first answers against the own gold: those that contain the
    label among other words, and right ones by matching rule (the number each adds) and in total.
    All answers about a subject, under every prompt, depend on each other (`cluster`)."""
    if not firsts.height:
        return
    for rule in RULE_NAMES:
        added, how = firsts.filter(rule=rule).height, {"alpha": rule}
        yield base.but(metric="first answers", value=added, n=firsts.height, setting=how)
    for metric, how, hit in (
        ("verbose", {}, pl.col("verbose")),
        ("first answers right", {"alpha": VERBATIM}, pl.col("rule") == VERBATIM),
        ("first answers right", {"alpha": "exact"}, pl.col("rule") != ""),
    ):
        result = estimate(firsts.select("cluster", hit=hit), "hit", **SINGLE, seed=seed)
        yield base.but(metric=metric, setting=how, **result)


# -- analyses --------------------------------------------------------------------------------------


def correlations(measured: pl.DataFrame) -> Iterator[Number]:
    """Yield correlations of partial with full scores: over models (per benchmark), over benchmarks
    and over patterns (per model); n counts points. Fewer than six have no interval, fewer than
    three or equal ones no correlation."""
    points = measured.drop_nulls(["partial", "value_pooled"]).sort("benchmark", *WHO, "pattern")
    whole = pl.col("pattern") == ALL
    for over, rows, keys in (
        ("over models", whole, ["benchmark"]),
        ("over benchmarks", whole, WHO),
        ("over patterns", ~whole, WHO),
    ):
        for row, group in groups(points.filter(rows), *keys):
            varies = min(group["partial"].n_unique(), group["value_pooled"].n_unique()) > 1
            for method in ("pearson", "spearman") if group.height >= 3 and varies else ():
                value = group.select(pl.corr("partial", "value_pooled", method=method)).item()
                of = Number(metric=method, slice=over, value=value, n=group.height, **row)
                is_enough, is_of_ranks = of.n > 5, method == "spearman"
                yield of.but(interval=fisher(value, of.n, is_of_ranks) if is_enough else None)


def popularity(study: AttributesStudy, alphas: pl.DataFrame) -> Iterator[Number]:
    """Yield the popularity of all examples and of those completely right (Figure 5): counts per
    `bin` of its log10, the hit rate of every decile, and the Kolmogorov-Smirnov distance of the two
    samples, which share examples. Right: all triples have an alpha of at least one half (asymmetry:
    not the reversed one), for examples without a missing triple."""
    reversed_ = (pl.col("benchmark") == "asymmetry") & (pl.col("position") == 1)
    alpha = pl.when(reversed_).then(1 - pl.col("alpha")).otherwise(pl.col("alpha"))
    answered = alphas.group_by("benchmark", "example", *SETTINGS).agg(
        right=alpha.min() >= 0.5, missing=pl.col("alpha").null_count()
    )
    answered = answered.filter(missing=0).sort("example")
    for benchmark in (name for name in UNBIASED if name in study.benchmarks):
        known = degrees(study.benchmarks[benchmark].examples)
        rows = answered.filter(benchmark=benchmark)
        rows = rows.join(known, on="example", maintain_order="left")
        for row, group in groups(rows, "benchmark", *SETTINGS):
            base = studies.of_row(row, metric="examples")
            size = np.log10(np.maximum(group["popularity"].to_numpy(), 1.0))
            right = group["right"].to_numpy()
            edges = np.floor(size / BIN).astype(int)
            every = range(edges.min(), edges.max() + 1)
            for metric, part in (("examples", edges), ("examples right", edges[right])):
                of = base.but(metric=metric, n=len(part))
                yield from (
                    of.but(value=(part == i).sum(), setting={"bin": i * BIN}) for i in every
                )
            order = np.argsort(size, kind="stable")
            for decile, members in enumerate(np.array_split(order, 10), 1):
                if len(members):
                    hits, part = right[members].astype(float), f"decile {decile:02d} of popularity"
                    yield base.but(metric="proportion right", slice=part, **hit_rate(hits))
            if right.any():
                distance = ks_2samp(size, size[right], method="asymp").statistic
                yield base.but(metric="Kolmogorov-Smirnov", value=distance, n=right.sum())


def degrees(examples: pl.DataFrame) -> pl.DataFrame:
    """Return (example, popularity): mean degree of an example's distinct entities, no literals."""
    sides = [
        examples.select("example", id=side, degree=f"{side}_degree")
        for side in ("subject", "object")
    ]
    distinct = pl.concat(sides).drop_nulls("degree").unique(["example", "id"])
    return distinct.group_by("example").agg(popularity=ordered_mean("degree"))


def repeating(study: AttributesStudy) -> pl.DataFrame:
    """Return (example, cluster): the repeated entity in examples of the benchmarks in REPEATS."""
    examples = pl.concat(benchmark.examples for benchmark in study.benchmarks.values())
    return pl.concat(
        examples.filter(benchmark=name, role=role).select("example", cluster=side)
        for name, (role, side) in REPEATS.items()
    )


def clusters(parts: pl.DataFrame, entities: pl.DataFrame, seed: int = 0) -> Iterator[Number]:
    """Yield the metric with intervals for which clusters (n) are `drawn`: examples share relations
    or an entity (`entities`: from `repeating`), so an interval over examples is too narrow."""
    rows = parts.filter(pl.col("denominator") > 0).drop_nulls("numerator").sort("example")
    by_entity = rows.join(entities, on="example", maintain_order="left")
    for drawn, frame in (
        ("patterns", rows.with_columns(cluster="pattern")),
        ("entities", by_entity),
    ):
        named = frame.with_columns(drawn=pl.lit(drawn))
        how = {"over": "denominator", "cluster": "cluster", "seed": seed}
        yield from of_groups(named, VALUE, "numerator", "drawn", **how)

"""What was asked and how it was answered, probe by probe: prompts, wordings, texts, rules."""

import json
from collections.abc import Iterator

import polars as pl

from kgprobe.metrics.bootstrap import bootstrap
from kgprobe.metrics.matching import VERBATIM, WAYS
from kgprobe.metrics.sums import ordered_mean
from kgprobe.tables import wordings
from kgprobe.tables.attributes import alpha
from kgprobe.tables.attributes.study import ITEM, Study, is_ranked
from kgprobe.tables.results import Number, hit_rate

RIGHT = "triples right"
EXACT = {"alpha": "exact", "gold": "own"}


def at_one(alphas: pl.DataFrame) -> pl.DataFrame:
    """item, stratum (""), RIGHT: whether the own object of a triple comes first, of Study.alphas;
    what was not asked is left out."""
    own = alphas.filter(k=1, kind="exact", gold="own").drop_nulls("alpha")
    return own.select(ITEM, pl.lit("").alias("stratum"), pl.col("alpha").alias(RIGHT))


def numbers(study: Study) -> Iterator[Number]:
    """All numbers of this module."""
    for probe, (alphas, firsts) in study.answers.items():
        base = Number(metric=RIGHT, **probe.asked)
        own = alphas.filter(alpha_kind="exact", gold="own")
        yield from prompts(base, own)
        yield from kinds(base, own, study)
        yield from templates(base, own, study)
        yield from asked(base, alphas, study)
        yield from written(base, firsts)


def prompts(base: Number, alphas: pl.DataFrame) -> Iterator[Number]:
    """How the best alpha grows with the number of prompts: what the oracle adds; per cent.

    Mean over triples of the expected best of so many random prompts. n: triples.
    """
    for row in alpha.by_number_of_prompts(alphas).iter_rows(named=True):
        how = {**EXACT, "k": row["k"], "pooling": "best", "prompts": row["prompts"]}
        yield base.but(value=100 * row["alpha"], n=row["triples"], setting=how)


def templates(base: Number, alphas: pl.DataFrame, study: Study) -> Iterator[Number]:
    """What the wordings of a relation agree on (tables/wordings.py); right: at 1, the own gold."""
    relations = study.benchmarks[base.benchmark].items.select("item", "relation")
    rows = alphas.filter(k=1).join(relations, on="item")
    rows = rows.select("item", "relation", "template", "said", hit="alpha")
    yield from wordings.numbers(base.but(setting={**EXACT, "k": 1}), rows, "relation")


def kinds(base: Number, alphas: pl.DataFrame, study: Study) -> Iterator[Number]:
    """Triples right at 1 by kind of wording (lama, own, paraphrase, synonym ...), per cent.

    Mean over triples of the mean over their prompts of the kind. n: triples asked with the kind.
    """
    benchmark = study.benchmarks[base.benchmark]
    named = benchmark.prompts.select("relation", "kind", template="index")
    found = alphas.filter(k=1).join(benchmark.items.select("item", "relation"), on="item")
    found = found.join(named, on=["relation", "template"])
    means = found.group_by("kind", "item").agg(ordered_mean("alpha")).sort("kind", "item")
    for (kind,), group in means.group_by("kind", maintain_order=True):
        boot = bootstrap(group["alpha"].to_numpy(), seed=study.seed)
        yield base.but(
            value=100 * boot.mean(),
            interval=boot.interval().times(100),
            n=group.height,
            setting={**EXACT, "k": 1, "pooling": "mean", "template": str(kind)},
        )


def asked(base: Number, alphas: pl.DataFrame, study: Study) -> Iterator[Number]:
    """Triples in the sample and of them asked, prompts a triple, golds, what was left out.

    golds: every object with a label, of the triples asked about; where candidates were ranked, how
    many of them the lists lacked and were given. examples left out: for all models, since one could
    not be asked. Where golds are linked to Wikidata: how many it alone states, and triples that are
    right at 1, in some prompt, by these alone.
    """
    benchmark = study.benchmarks[base.benchmark]
    total, items = benchmark.examples.height, benchmark.items
    one = base.but(n=total)
    yield one.but(metric="triples", value=total)
    triples = alphas["item"].n_unique()
    yield one.but(metric="triples asked", value=triples)
    if triples:
        questions = alphas.unique(["item", "template"]).height
        yield one.but(metric="prompts a triple", value=questions / triples)
    golds = int(items["answers"].list.len().sum())
    yield one.but(metric="golds", value=golds, n=items.height)
    if is_ranked(base.method):
        added = sum(json.loads(told).get("golds_added", 0) for told in items["meta"])
        yield one.but(metric="golds added to the candidates", value=added, n=golds)
    if first := alpha.linked(items):
        more = golds - sum(first.values())
        yield one.but(metric="golds of Wikidata alone", value=more, n=golds)
        best = alphas.filter(k=1, alpha_kind="exact").group_by("item", "gold").agg(
            pl.col("alpha").max()
        )  # fmt: skip
        right = best.filter(pl.col("alpha") > 0)
        theirs = right.filter(gold="linked").join(right.filter(gold="set"), on="item", how="anti")
        yield one.but(metric="triples right by Wikidata alone", value=theirs.height, n=triples)
    left_out = study.left_out & set(benchmark.examples["example"])
    yield one.but(metric="examples left out", value=len(left_out))


def written(base: Number, firsts: pl.DataFrame) -> Iterator[Number]:
    """Of those who write: first answers that hold the label among other words, and by which rule
    of metrics/matching they are right (how many each adds, aliases last), and all; own gold.

    n: first answers, one per triple and prompt.
    """
    if not firsts.height:
        return
    one = base.but(n=firsts.height)
    yield one.but(metric="verbose", value=100 * firsts["verbose"].sum() / firsts.height)
    for rule in WAYS:
        added = firsts.filter(rule=rule).height
        yield one.but(metric="first answers", value=added, setting={"alpha": rule})
    for kind, right in ((VERBATIM, pl.col("rule") == VERBATIM), ("exact", pl.col("rule") != "")):
        hits = firsts.select(right).to_series().cast(pl.Float64).to_numpy()
        yield one.but(metric="first answers right", setting={"alpha": kind}, **hit_rate(hits))

"""Convert a run's answers on the nine benchmarks to the alphas that the metrics take.

    FILLS or SCORES  ->  alpha per prompt (item template k kind gold alpha probability said)
                     ->  pooled over prompts  ->  alpha of every triple

Alpha measures whether a triple was answered (docs/papers/attributes.md, Answers and Metrics). Gold
`own`: the triple's object; `set`: the best ranked object in the graph that has a label.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from math import comb
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from kgprobe import schema
from kgprobe.benchmarks.attributes.frames import EXAMPLES
from kgprobe.knowledge.ids import ENTITY, IDS, RELATION
from kgprobe.metrics import attributes
from kgprobe.metrics.attributes import KEYS as KS
from kgprobe.metrics.matching import VERBATIM, contained, find_rule, first_match, names, normalized
from kgprobe.metrics.ranking import hit_at
from kgprobe.metrics.sums import ordered_mean
from kgprobe.tables import judged
from kgprobe.tables.answers import AGGREGATIONS, SUBJECT, Probe, questions
from kgprobe.tables.estimate import estimate
from kgprobe.tables.results import Number

#: Identity of a probe, as in the table of experiments.
WHO = ("model", "prompt", "method")
#: Dimensions that a number depends on, besides benchmark and pattern.
SETTINGS = (*WHO, "pooling", "k", "kind", "gold")
#: settings in RESULTS -> columns of alphas
COLUMNS = {"k": "k", "alpha": "kind", "gold": "gold", "pooling": "pooling", "drawn": "drawn"}
#: The setting of figures and of single numbers.
HEADLINE = {"k": 1, "kind": "exact", "gold": "own", "pooling": "best"}
#: The id of a triple's question.
ITEM = pl.format("{}#{}", "example", "position").alias("item")
#: Methods whose alphas come from generated text or tokens at masks, and from ranked candidates.
FILLED, RANKED = "fill", "sentence"
#: Baselines without a model: the most frequent objects of a relation, and a random one.
MAJORITY, RANDOM, BASELINE = "majority", "random", "baseline"
#: IDS of a graph whose ids are Wikidata's
WIKIDATA = pl.DataFrame(schema=dict(IDS.columns))
#: `best` chooses the prompt by looking at the gold: an oracle.
POOLINGS = ("best", "mean", "base", "confident")
ANSWER = ["item", "k", "kind", "gold"]
ALPHA = {
    "item": pl.String,
    "template": pl.Int32,
    "k": pl.Int32,
    "kind": pl.String,
    "gold": pl.String,
    "alpha": pl.Float64,
    "probability": pl.Float64,
    # the prompt's first answer, whatever the gold, for comparison across prompts
    "said": pl.String,
}
#: columns in addition to ALPHA: the gold's rank range, if known, the number of options or texts,
#: the first answer as generated, and, of texts, the first matching rule that makes it equal to the
#: own gold, or "", and whether it is wrong but contains a name of that gold
RANKS = {
    "best": pl.Int64, "worst": pl.Int64, "options": pl.Int64, "answer": pl.String,
    "rule": pl.String, "verbose": pl.Boolean,
}  # fmt: skip
WHOLE = -1
#: Item -> the names of each of its golds, the own gold first.
Golds = Mapping[str, Sequence[Sequence[str]]]
#: Entity id -> its other names.
Aliases = Mapping[str, Sequence[str]]


@dataclass(frozen=True)
class ProbedAttribute:
    """One of the nine benchmarks as probed: EXAMPLES of the sample, ITEMS, CANDIDATES, PROMPTS."""

    name: str
    examples: pl.DataFrame
    items: pl.DataFrame
    candidates: pl.DataFrame
    prompts: pl.DataFrame

    @cached_property
    def clusters(self) -> pl.DataFrame:
        """item, relation, cluster: a relation's subject, whose triples are drawn together."""
        cluster = pl.concat_str("relation", SUBJECT, separator="\n")
        return self.items.select("item", "relation", cluster=cluster)


@dataclass(frozen=True)
class AttributesStudy:
    """All data of a run: benchmarks by name, alphas per prompt of each probe (ALPHA and RANKS),
    `guesses`, and what is derived.

    `intersect`: an example that some model could not be asked completely is left out for all
    models, so that they stay comparable.
    """

    benchmarks: Mapping[str, ProbedAttribute]
    answers: Mapping[Probe, pl.DataFrame]
    guesses: pl.DataFrame = field(default_factory=pl.DataFrame)
    ambiguous_denominator: str = "or"
    intersect: bool = True
    seed: int = 0

    @cached_property
    def every(self) -> pl.DataFrame:
        """Alphas of all probes and baselines under every setting."""
        parts = [
            triples(probe, alphas, self.benchmarks[probe.benchmark])
            for probe, alphas in self.answers.items()
        ]
        parts += [self.guesses.select(parts[0].columns)] if self.guesses.height else []
        return pl.concat(parts)

    @cached_property
    def left_out(self) -> frozenset[str]:
        """Examples that some model could not be asked, left out for all of them."""
        missing = self.every.filter(pl.col("alpha").is_null())["example"]
        return frozenset(missing if self.intersect else ())

    def alphas(self) -> pl.DataFrame:
        """Return `every` without the examples that are left out."""
        return self.every.filter(~pl.col("example").is_in(sorted(self.left_out)))

    def measure(self, alphas: pl.DataFrame, *further: str, patterns: bool = False) -> pl.DataFrame:
        """Compute the metric by setting (and `further` columns); see metrics.attributes."""
        return attributes.measure(
            alphas, [*SETTINGS, *further], patterns, self.seed, self.ambiguous_denominator
        )

    def fractions(self, alphas: pl.DataFrame) -> pl.DataFrame:
        """Compute numerator, denominator and partial score of every example."""
        return attributes.fractions(alphas, SETTINGS, self.ambiguous_denominator)


def is_ranked(method: str) -> bool:
    """Return whether a method ranks candidates, as opposed to filling or generating."""
    return method.split("-")[0] == RANKED


def is_filled() -> pl.Expr:
    """Select rows of probes that fill or generate: no baselines, no ranked candidates."""
    return pl.col("method").str.starts_with(FILLED)


def groups(frame: pl.DataFrame, *keys: str) -> Iterator[tuple[dict[str, Any], pl.DataFrame]]:
    """Yield each key as a mapping with its rows, in the order of the keys."""
    for key, rows in frame.sort(keys, maintain_order=True).group_by(keys, maintain_order=True):
        yield dict(zip(keys, key, strict=True)), rows


def of_row(row: Mapping[str, Any], **further: Any) -> Number:
    """Create a number with the dimensions and settings that are columns of a row of alphas, or of a
    derived table."""
    setting = {n: row[c] for n, c in COLUMNS.items() if row.get(c, "") != ""}
    dimensions = {n: row[n] for n in ("benchmark", *WHO, "slice") if n in row}
    return Number(setting=setting, **dimensions, **further)


def of_groups(
    rows: pl.DataFrame, metric: str, value: str, *further: str, **how: Any
) -> Iterator[Number]:
    """Yield the `estimate` of a column for each benchmark and setting, and value of the `further`
    columns. Rows are in the order of items or examples; `how`: arguments of `estimate`."""
    for row, group in groups(rows, "benchmark", *SETTINGS, *further):
        yield of_row(row, metric=metric, **estimate(group, value, **how))


def gold_names(
    examples: pl.DataFrame, aliases: Aliases | None = None
) -> dict[str, list[list[str]]]:
    """Return item -> names of its golds in EXAMPLES that have a label, the own one first; without
    `aliases` only labels."""
    columns = ("example", "position", "golds", "gold_labels")
    return {
        f"{example}#{position}": [
            names(label, entity, aliases or {})
            for entity, label in zip(golds, labels, strict=True)
            if label is not None
        ]
        for example, position, golds, labels in examples.select(columns).rows()
    }


def at_each_k(ranks: pl.DataFrame, *places: NDArray[np.int64]) -> pl.DataFrame:
    """Repeat rows for every k, with the `alpha` of their places (arguments of `hit_at`) at k."""
    return pl.concat(
        ranks.with_columns(pl.Series("alpha", hit_at(k, *places)), k=pl.lit(k, dtype=pl.Int32))
        for k in KS
    )


def of_masks(fills: pl.DataFrame, golds: pl.DataFrame) -> pl.DataFrame:
    """Compute the alpha per prompt of a masked model from FILLS and FILL_GOLDS. Token j of a gold
    is right at k if it is among the first k at mask j, with ties by expectation. `exact`: all
    tokens right; `token_mean`: fraction of right ones (the paper's rule for BERT and RoBERTa).
    Items whose own gold was left out have no rows."""
    kept = golds.filter((pl.col("gold") == 0).any().over("item", "template"))
    best, worst = (kept[name].cast(pl.Int64).to_numpy() for name in ("best", "worst"))
    each = (
        at_each_k(kept, best, worst)
        .group_by("item", "template", "k", "gold")
        .agg(exact=pl.col("alpha").product(), token_mean=ordered_mean("alpha"))
    )
    kinds, key = ["exact", "token_mean"], ["item", "template", "k"]
    long = pl.concat(
        rows.group_by(key).agg(pl.col(kinds).max()).with_columns(gold=pl.lit(gold))
        for gold, rows in (("own", each.filter(gold=0)), ("set", each))
    ).unpivot(kinds, index=[*key, "gold"], variable_name="kind", value_name="alpha")
    gold_masks = golds.filter(gold=0, position=0)
    sure = fills.filter(position=WHOLE, rank=1)
    sure = sure.join(gold_masks, on=["item", "template", "masks"], how="semi")
    sure = sure.select("item", "template", probability="logprob", said="text", answer="text")
    return _alpha(long.join(sure, on=["item", "template"], how="left"))


def of_texts(fills: pl.DataFrame, golds: Golds) -> pl.DataFrame:
    """Compute the alpha per prompt of a model that generates: the first k texts against the golds.

    `golds`: from `gold_names`. `exact`: equal after the rules of metrics/matching; `verbatim`:
    equal to the label character by character. Ks beyond the number of answers from a server (a chat
    server gives one) have no rows.
    """
    rows: list[tuple[object, ...]] = []
    whole = fills.filter(position=WHOLE).sort("item", "template", "masks", "rank")
    # single tokens count, too: phrases with different first tokens may yield the same text
    most = max(fills["rank"], default=0)
    grouped = whole.group_by("item", "template", maintain_order=True).agg("text", "logprob")
    for item, template, texts, logprobs in grouped.rows():
        own = golds[item][0]
        rule = find_rule(texts[0], own[0], own[1:])
        is_verbose = not rule and contained(texts[0], own)
        for gold, each in (("own", golds[item][:1]), ("set", golds[item])):
            labels = {name[0] for name in each}
            verbatim = next((n for n, text in enumerate(texts, 1) if text in labels), 0)
            places = {"exact": first_match(texts, chain.from_iterable(each)), VERBATIM: verbatim}
            rows += [
                (item, template, k, kind, gold, float(0 < place <= k), logprobs[0],
                 normalized(texts[0]), place or None, place or None, len(texts), texts[0], rule,
                 is_verbose)
                for k in KS if k <= most or most >= max(KS)
                for kind, place in places.items()
            ]  # fmt: skip
    return pl.DataFrame(rows, schema=ALPHA | RANKS, orient="row")


def of_candidates(scores: pl.DataFrame, items: pl.DataFrame) -> pl.DataFrame:
    """Compute the alpha per prompt from SCORES: the rank of the gold among the objects of its
    relation; the other true answers compete with the own one."""
    golds = items.select(
        "item", candidate="answers", gold=pl.int_ranges(pl.col("answers").list.len())
    )
    golds = golds.explode("candidate", "gold").with_columns(pl.col("candidate").cast(pl.Int32))
    rows = scores.select("item", "template", "candidate", score=AGGREGATIONS["sum"])
    rows = rows.join(golds, on=["item", "candidate"], how="left")
    score, parts = pl.col("score"), []
    for gold, counts in (("own", pl.col("gold") == 0), ("set", pl.col("gold") >= 0)):
        value = score.filter(counts).max()
        above, level = (x.sum().cast(pl.Int64) for x in (score > value, score == value))
        ranks = rows.group_by("item", "template").agg(
            best=above + 1,
            worst=above + level.clip(1),
            right=((score == value) & counts).sum().cast(pl.Int64),
            options=pl.len(),
            probability=score.max(),
            said=pl.col("candidate").filter(score == score.max()).min(),
            kind=pl.lit("exact"),
            gold=pl.lit(gold),
        )
        parts.append(at_each_k(ranks, *(ranks[c].to_numpy() for c in ("best", "worst", "right"))))
    return _alpha(pl.concat(parts))


def _alpha(frame: pl.DataFrame) -> pl.DataFrame:
    lacking = [pl.lit(None).alias(name) for name in RANKS if name not in frame.columns]
    columns = [pl.col(name).cast(dtype) for name, dtype in (ALPHA | RANKS).items()]
    return frame.with_columns(lacking).select(columns)


def judge(probe: Probe, alphas: pl.DataFrame, benchmark: ProbedAttribute) -> pl.DataFrame:
    """Convert alphas per prompt to JUDGED: whether the first answer is right."""
    rows = alphas.filter(k=1, kind="exact").rename(
        {"gold": "matching", "alpha": "hit", "best": "rank_low", "worst": "rank_high"}
    )
    if not is_ranked(probe.method):
        return judged.with_items(rows, benchmark.items)
    rows = rows.drop("answer").with_columns(winner=pl.col("said").cast(pl.Int32))
    return judged.with_options(rows, benchmark.items, benchmark.candidates)


def pooled(alphas: pl.DataFrame) -> pl.DataFrame:
    """Compute the alpha of a triple under every pooling of its prompts: `best`, `mean`, `base` (the
    first asked), `confident` (whose first prediction is the most probable, ties to the first)."""
    sure = pl.col("probability").fill_null(float("-inf"))
    pools = alphas.sort("template").group_by(ANSWER).agg(
        best=pl.col("alpha").max(), mean=ordered_mean("alpha"), base=pl.col("alpha").first(),
        confident=pl.col("alpha").get(sure.arg_max()),
    )  # fmt: skip
    names = {"variable_name": "pooling", "value_name": "alpha"}
    return pools.unpivot(list(POOLINGS), index=ANSWER, **names).sort(*ANSWER, "pooling")


def best_of(values: NDArray[np.float64], size: int) -> float:
    """Expected maximum of `size` of the values, drawn without replacement, in closed form.

    The i-th smallest of n is the maximum of C(i - 1, size - 1) of the C(n, size) subsets.

    >>> best_of(np.array([0.0, 0.0, 1.0]), 2)
    0.6666666666666666
    """
    above = sum(float(value) * comb(i, size - 1) for i, value in enumerate(np.sort(values)))
    return above / comb(len(values), size)


def read_benchmark(folder: str | Path) -> ProbedAttribute:
    """Read the frames of one benchmark's folder."""
    examples = schema.read(Path(folder) / "examples.parquet", EXAMPLES).filter("sampled")
    return ProbedAttribute(Path(folder).name, examples, *questions(folder))


def read_answers(
    probe: Probe,
    benchmark: ProbedAttribute,
    path: str | Path,
    aliases: Aliases | None = None,
    may_be_empty: bool = False,
) -> pl.DataFrame:
    """Read a probe's alphas from its FILLS (with the golds file next to them) or SCORES; a text may
    equal one of `aliases`; FILLS of a baseline's few mask slots `may_be_empty`."""
    path = Path(path)
    if is_ranked(probe.method):
        return of_candidates(schema.read(path, schema.SCORES), benchmark.items)
    fills = schema.read(path, replace(schema.FILLS, may_be_empty=may_be_empty))
    if probe.kind == "masked":
        golds = schema.read(path.with_name(f"{path.stem}.golds.parquet"), schema.FILL_GOLDS)
        return of_masks(fills, golds)
    return of_texts(fills, gold_names(benchmark.examples, aliases))


def triples(probe: Probe, alphas: pl.DataFrame, benchmark: ProbedAttribute) -> pl.DataFrame:
    """Return every triple of every sampled example under every setting, from alphas per prompt; a
    triple that was not asked, or whose gold was too long, has a null alpha: missing, not wrong."""
    rows, how = pooled(alphas), ["k", "kind", "gold", "pooling"]
    every = benchmark.examples.select("benchmark", "example", "pattern", "position", ITEM)
    every = every.join(rows.select(how).unique(), how="cross")
    every = every.join(rows, on=["item", *how], how="left")
    named = every.with_columns(pl.lit(getattr(probe, name)).alias(name) for name in WHO)
    return named.select("benchmark", "example", "pattern", "position", "alpha", *SETTINGS)


# -- baselines -------------------------------------------------------------------------------------


def guesses(
    edges: pl.DataFrame,
    literals: pl.DataFrame,
    examples: Collection[pl.DataFrame],
    ids: pl.DataFrame = WIKIDATA,
) -> pl.DataFrame:
    """Return the alphas of both baselines for the triples of some EXAMPLES; `edges`, `literals`,
    `ids` (IDS): of the graph.

    Majority: the own object, or any gold with a label, is among the k most frequent objects;
    random: among k of the relation's objects. An object that the relation never has (asymmetry's
    reversal) is never right.
    """
    counted = frequencies(edges, literals, examples, ids)
    key = ["benchmark", "example", "pattern", "position"]
    named = pl.col("gold_labels").list.eval(pl.element().is_not_null())
    rows = pl.concat(f.select(*key, "predicate", "object", "golds", named=named) for f in examples)
    every = rows.with_columns(object="golds").explode("object", "named").filter("named")
    golds = pl.concat(
        frame.select(*key, "predicate", "object", gold=pl.lit(gold))
        for gold, frame in (("own", rows), ("set", every))
    ).join(counted, on=["predicate", "object"], how="left")
    # golds as frequent as the most frequent gold tie with it
    leads = pl.col("best") == pl.col("best").min()
    ranks = golds.group_by(*key, "predicate", "gold").agg(
        pl.col("best").min(), pl.col("worst").filter(leads).first(), pl.col("objects").max(),
        right=pl.len().cast(pl.Int64), tied=leads.sum().clip(1).cast(pl.Int64),
    )  # fmt: skip
    best, worst = (ranks[c].fill_null(1 << 40).to_numpy() for c in ("best", "worst"))
    right, tied, total = (ranks[c].fill_null(1).to_numpy() for c in ("right", "tied", "objects"))
    # in a random order all objects tie
    places = {MAJORITY: (best, worst, tied), RANDOM: (np.ones_like(total), total, right)}
    how = {"prompt": "", "method": BASELINE, "pooling": "", "kind": "exact"}
    return pl.concat(
        at_each_k(ranks, *of).select(
            *key, "gold", "k",
            alpha=pl.when(pl.col("best").is_null()).then(0.0).otherwise("alpha"),
            model=pl.lit(model), **{name: pl.lit(word) for name, word in how.items()},
        )
        for model, of in places.items()
    )  # fmt: skip


def frequencies(
    edges: pl.DataFrame, literals: pl.DataFrame, examples: Iterable[pl.DataFrame], ids: pl.DataFrame
) -> pl.DataFrame:
    """Return (predicate, object, best, worst, objects): the rank of every object of the relations
    asked for by number of statements, ties as ranges, and the number of the relation's objects. The
    inferred relation of hierarchy counts its two-step paths."""
    known = dict(ids.filter(kind=RELATION).select("id", "number").rows())
    names = {name for one in examples for name in one["predicate"].unique()}
    hops = {
        name: [int(known[hop] if known else hop[1:]) for hop in _hops(name, known)]
        for name in sorted(names)
    }
    once = {one[0]: name for name, one in hops.items() if len(one) == 1}
    relation = pl.col("p").replace_strict(once, return_dtype=pl.String)
    rows, values = (frame.filter(pl.col("p").is_in(list(once))) for frame in (edges, literals))
    counts = [rows.group_by("p", "o").len().select("o", "len", predicate=relation)]
    used = sorted({hop for one in hops.values() if len(one) > 1 for hop in one})
    by = edges.filter(pl.col("p").is_in(used)).partition_by("p", as_dict=True)
    for name, (first, *then) in hops.items():
        for second in then:
            paths = by[(first,)].select("s", m="o").join(by[(second,)].select("o", m="s"), on="m")
            paths = paths.filter(pl.col("s") != pl.col("o")).group_by("o").len()
            counts.append(paths.select("o", "len", predicate=pl.lit(name)))
    entities, counted = ids.filter(kind=ENTITY).select(o="number", object="id"), pl.concat(counts)
    if entities.height:
        counted = counted.join(entities, on="o")
    else:
        counted = counted.with_columns(object=pl.format("Q{}", "o"))
    texts = values.group_by("p", "value").len().select("len", predicate=relation, object="value")
    over = pl.col("len").rank("min", descending=True).over("predicate").cast(pl.Int64)
    level = pl.len().over("predicate", "len").cast(pl.Int64)
    objects = pl.len().over("predicate").cast(pl.Int64)
    return pl.concat([counted.select("len", "predicate", "object"), texts]).select(
        "predicate", "object", best=over, worst=over + level - 1, objects=objects
    )


def _hops(name: str, known: Collection[str]) -> list[str]:
    """Split the name of a two-step path into its relations. `known`: relations that have ids."""
    hop = name[: len(name) // 2]
    return [hop, hop] if name == f"{hop}/{hop}" and name not in known else [name]

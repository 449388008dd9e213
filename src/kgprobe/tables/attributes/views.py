"""The printed tables of the nine attributes: which numbers, what stands in rows and columns."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import polars as pl

from kgprobe.contracts import WITHOUT
from kgprobe.metrics.attributes import KEYS
from kgprobe.tables import aggregations, baselines, confidence, consistency, forms, slices
from kgprobe.tables.answers import PRIOR
from kgprobe.tables.attributes import constructs, numbers
from kgprobe.tables.attributes.numbers import DEFINED, PUBLISHED, RIGHT, UNBIASED, VALUE
from kgprobe.tables.attributes.published import NAMES
from kgprobe.tables.attributes.study import BASELINE, MAJORITY, RANDOM, RANKED
from kgprobe.tables.views import View

#: of the whole benchmark, intervals over examples
WHOLE = {"group": [""], "slice": [""], "drawn": [""]}
EXACT = {"alpha": ["exact"], "gold": ["own"]}
HEADLINE = {**EXACT, "k": ["1"], "pooling": ["best"]}
PROBE = ("model", "method", "benchmark")
WORDS: dict[Any, str] = {
    ("pooling", "best"): "best prompt (oracle)", ("pooling", "mean"): "mean over prompts",
    ("pooling", "base"): "first prompt", ("pooling", "confident"): "surest prompt",
    ("model", MAJORITY): "most frequent object", ("model", RANDOM): "random object",
    ("benchmark", ""): "mean of nine", VALUE: "", DEFINED: "defined only",
    **{("k", str(k)): f"@{k}" for k in KEYS},
}  # fmt: skip

#: methods that ask none of the table of models
OTHERS = [BASELINE, PUBLISHED]
IS_RANKED = pl.col("method").str.starts_with(RANKED)


def _select_filled(results: pl.DataFrame) -> pl.DataFrame:
    """What models of the table filled or wrote."""
    return results.filter(~IS_RANKED, ~pl.col("method").is_in(OTHERS))


def _frequent(results: pl.DataFrame) -> pl.DataFrame:
    """The values of the five patterns with the most examples of every benchmark, ties by name."""
    values = _select_filled(results).filter(pl.col("group") != "", metric=VALUE)
    sizes = values.group_by("benchmark", "group").agg(size=pl.col("n").max())
    sizes = sizes.sort("benchmark", -pl.col("size"), "group")
    kept = sizes.group_by("benchmark", maintain_order=True).head(5).with_row_index("place")
    rows = values.join(kept, on=["benchmark", "group"]).sort("place", "model", "method")
    return rows.select(results.columns)


def _of_triples(view: View, shown: Sequence[str], more: str = "") -> View:
    """A view of all papers, of the triples of ranked candidates under the aggregations `shown`."""
    caption = (
        "Of the triples of ranked candidates; right: the example's own object comes first. "
        f"{more}{view.caption}"
    )
    captioned = replace(view, caption=caption)
    return captioned.where_also(benchmark=NAMES, group=[""], aggregation=shown)


RANDOM_RANKS = (
    "Random weights rank candidates alone: of tens of thousands of tokens they never write the "
    "right ones."
)
#: Table 2 of what was generated or filled, and of ranked candidates
SCORES = {
    ranked: [
        View(
            f"table2_at_{k}{'_ranked' * ranked}", f"Table 2 @{k}, %: {words}",
            where={
                **WHOLE, **EXACT, "metric": [VALUE, DEFINED], "k": [str(k)], "mode": [""],
                "pooling": ["best", "mean", ""], "benchmark": [*NAMES, ""],
                "without": ["", *WITHOUT],
            },
            rows=["model", "method", "pooling", "without"], columns=["benchmark", "metric"],
            heads={"without": "asked"}, words={**WORDS, **baselines.WORDS}, usual=2,
            caption="Numerator / denominator and 95 % interval in small print; examples on hover. "
            f"{baselines.ARE} {RANDOM_RANKS} Where nothing is known hardly a part of an example is "
            "right, so that most of their values are undefined: see the triples that are right.",
            only=only,
        )
        for k in KEYS
    ]
    for ranked, words, only in (
        (False, "generated or filled", lambda results: results.filter(~IS_RANKED)),
        (True, "gold ranked among the objects of its relation",
         lambda results: results.filter(IS_RANKED | (pl.col("method") == BASELINE))),
    )
}  # fmt: skip

ABOVE_BASELINES = View(
    "above_baselines",
    "What is known: triples right at 1, less those without the subject, and by random weights",
    where={
        "metric": [RIGHT, "p after Holm", "detectable difference"], "benchmark": NAMES, **EXACT,
        "k": ["1"], "pooling": [""], "without": ["", *WITHOUT],
        "instead": ["", *(f"without {one}" for one in WITHOUT)], "slice": [""],
    },
    rows=["benchmark", "model", "method"], columns=["without", "instead", "metric"],
    words={
        **baselines.WORDS,
        **{("instead", f"without {one}"): f"more than without {one}" for one in WITHOUT},
        RIGHT: "triples right",
    },
    digits={"p after Holm": 3},
    caption=f"Per cent and points; the example's own object, first prompt. {baselines.ARE} "
    f"{RANDOM_RANKS} {baselines.TESTED}",
)  # fmt: skip

CONSTRUCTS = View(
    "constructs", "What these benchmarks hold: number of examples",
    where={
        "metric": [*constructs.PROBES, *constructs.FIGURES.values()],
        "benchmark": ["asymmetry", *constructs.FIGURES],
    },
    rows=["benchmark", "slice", "model", "method"], usual=0,
    caption="All examples (n) on hover. Where the reversed probe is never right, asymmetry is the "
    "accuracy of the forward one. Paths that share a start, and bias whose objects are few, "
    "are not independent: see the intervals over entities.",
)  # fmt: skip

TABLE1 = View(
    "table1", "Table 1: sizes",
    where={
        "metric": list(constructs.SIZES), "benchmark": NAMES,
        "slice": ["structural", "labeled", "unlabeled", constructs.SAMPLED, constructs.PAPER],
        "model": [""],
    },
    rows=["benchmark", "slice"],
    words={
        "structural": "all that the graph holds", "labeled": "with labels and templates",
        "unlabeled": "labels not required", constructs.SAMPLED: "probed here",
        constructs.PAPER: "the paper",
    },
    digits={"triples per pattern": 2}, usual=0,
    caption="The paper's sizes are those of the whole T-REx; oddities of its columns stand among "
    "what follows from the printed figures. Patterns are predicates, pairs or combinations; the "
    "paper heads that column “predicates”. Of our predicates so many have a written template, so "
    "many the generic template of their label (kind “label” among the templates), so many none: "
    "these are dropped from what is probed.",
)  # fmt: skip

PARTIAL = View(
    "partial", "Partial and full scores (Figure 3), %",
    where={
        **WHOLE, **HEADLINE, "metric": [numbers.PARTIAL, VALUE], "mode": [""],
        "benchmark": [b for b in NAMES if b not in ("entity_centric", "bias")],
    },
    rows=["benchmark", "model", "method"], words={VALUE: "full score"}, caption="Best prompt, @1.",
    only=_select_filled,
)  # fmt: skip

FOLDED = [
    View(
        "trained_on", "Examples that the control models were trained on, and others, %",
        where={
            **HEADLINE, "metric": [VALUE, RIGHT], "benchmark": NAMES,
            "slice": [numbers.TRAINED_ON, numbers.PART, numbers.HELD_OUT],
        },
        rows=["benchmark", "model", "method"], columns=["metric", "slice"], words=WORDS,
        caption="Best prompt, @1. Trained-on: all stored triples of the example; in part: some of "
        "them. Of some pairs and paths the first alone was trained on: what is found of the second "
        "is inferred or guessed. Nothing inferred or reversed was ever trained on. Models from "
        "elsewhere are a reference.",
    ),
    View(
        "undefined",
        "Examples that do not count: of which no part is right, or that were not asked",
        where={**WHOLE, **HEADLINE, "metric": ["undefined", "missing"], "benchmark": NAMES},
        rows=["model", "method", "metric"], columns=["benchmark"], usual=0,
    ),
    View(
        "choices", "Every way of reading the answers, %",
        where={
            **WHOLE, "metric": [VALUE, "mean of examples"], "mode": [""], "benchmark": NAMES,
            "without": [""],
        },
        rows=["k", *PROBE], columns=["pooling", "alpha", "gold", "metric"], words=WORDS,
        caption="Pooling over prompts; exact alpha, part of gold tokens, or a written answer that "
        "is the label letter by letter (verbatim); the example's own object or any object of the "
        "graph that has a label. Beside the ratio of sums the mean of the examples' ratios, where "
        "it is another.",
        only=lambda results: results.filter(pl.col("method") != PUBLISHED),
    ),
    PARTIAL,
    View(
        "correlation", "Partial against full score: correlation",
        where={"metric": ["pearson", "spearman"]}, rows=["slice", "benchmark", "model", "method"],
        usual=2,
        caption="n on hover. Nothing follows from a handful of points; below six there is no "
        "interval.",
    ),
    View(
        "clusters", "Intervals over patterns and over entities instead of examples, %",
        where={"metric": [VALUE], "drawn": ["patterns", "entities"], "benchmark": NAMES},
        rows=["model", "method", "drawn"], columns=["benchmark"],
        caption="Best prompt, @1. Examples share relations, and some an entity: paths and "
        "composites the one that they start from, bias and asymmetry the object, hierarchy the "
        "class two up. These intervals are the honest ones; n on hover counts clusters. None where "
        "all are alike.",
    ),
    View(
        "prompts", "Best alpha against number of prompts, %",
        where={
            "metric": [RIGHT], "slice": [""], "pooling": ["best"],
            "prompts": [str(n) for n in range(1, 1000)],
        },
        rows=["k", *PROBE], columns=["prompts"], words=WORDS,
        caption="Expected best of so many prompts, mean over triples: what the oracle adds.",
    ),
    View(
        "variants", "Right at 1 by kind of template, % of triples",
        where={"metric": [RIGHT], "slice": [""], "pooling": ["mean"]}, rows=PROBE,
        columns=["template"],
        caption="Mean over triples of the mean over their prompts of the kind; kinds answer other "
        "triples.",
    ),
    View(
        "templates", "What the templates of a relation agree on",
        where={
            "metric": consistency.METRICS, "benchmark": NAMES, "slice": [""],
            "choice": ["", "oracle"],
        },
        rows=PROBE, words=consistency.WORDS,
        caption=f"{consistency.CAPTION} Right: the example's own object at 1. The same answer: the "
        "same candidate, or text; for texts that were written, after the rules of matching.",
    ),
    *(
        replace(
            _of_triples(view, aggregations.OTHERS, "The sum is what the metrics stand on. "),
            words={**view.words, ("metric", "accuracy"): "triples right, %"},
        )
        for view in (aggregations.AGGREGATIONS, aggregations.GOLDS)
    ),
    _of_triples(confidence.VIEW, ["sum", PRIOR]),
    _of_triples(slices.ACCURACY, ["sum"]),
    _of_triples(slices.DIFFERENCES, ["sum"]),
    View(
        "asked", "What was asked",
        where={
            "group": [""], "slice": [""],
            "metric": [
                "triples", "triples asked", "prompts a triple", "golds",
                "golds added to the candidates", "verbose", "examples left out",
            ],
        },
        rows=PROBE, words={"verbose": "verbose, %"}, caption="Verbose: holds the label, not equal.",
    ),
    View(
        "matching", "Written answers that are right, by the rule that makes them equal",
        where={"metric": ["first answers", "first answers right"]}, rows=PROBE,
        columns=["metric", "alpha"],
        words={"first answers": "", "exact": "all rules", "first answers right": "%"},
        caption="First answers of every triple and prompt against the example's own object: letter "
        "by letter, then what each rule adds to those before it. Elsewhere all rules count; the "
        "column “verbatim” of the ways of reading has the metrics without them.",
    ),
    View(
        "ambiguous", "Pairs of one name, %",
        where={
            "benchmark": ["ambiguous"], "metric": [VALUE], "mode": ["or", "head"],
            "slice": ["all pairs", "objects differ", "objects equal"],
        },
        rows=["model", "method", "pooling"], columns=["mode", "slice"],
        words={**WORDS, ("mode", "or"): "", ("mode", "head"): "given the head"},
        caption="Only equal objects can be right for both with one prompt; the last column "
        "conditions on the head alone, which the printed values fit as well.",
    ),
    View(
        "bias", "Bias by relation, %",
        where={
            **HEADLINE, "benchmark": ["bias"], "metric": ["triples", VALUE, "wrong"], "slice": [""],
            "drawn": [""],
        },
        rows=["model", "method", "group"], words={VALUE: "right, %", "wrong": "wrong, %"},
        caption="In aggregate only. A relation with fewer than ten triples has its count alone.",
        only=lambda results: results.filter(
            pl.col("group") != "", (pl.col("metric") == "triples") | (pl.col("n") >= numbers.FEWEST)
        ),
    ),
]  # fmt: skip

PATTERNS = View(
    "patterns", "The most frequent patterns (Figure 4), %",
    where={**HEADLINE, "metric": [VALUE], "slice": [""], "drawn": [""], "benchmark": NAMES},
    rows=["benchmark", "group"], columns=["model", "method"], only=_frequent,
)  # fmt: skip
POPULARITY = View(
    "popularity", "Popularity of all examples and of those that are fully right (Figure 5)",
    where={
        "metric": ["examples", "examples right"], "slice": [""], "benchmark": UNBIASED, **HEADLINE,
    },
    rows=["benchmark", "model", "method", "bin"], usual=0,
)  # fmt: skip
DECILES = View(
    "popularity_deciles", "Examples fully right by decile of popularity, %",
    where={"metric": ["proportion right", "Kolmogorov-Smirnov"], "benchmark": UNBIASED},
    rows=["benchmark", "model", "method"], columns=["metric", "slice"],
)  # fmt: skip
FORMS = [view.where_also(paper=["attributes"]) for view in forms.VIEWS]
ALL = [
    *SCORES[False], *SCORES[True], ABOVE_BASELINES, CONSTRUCTS, TABLE1,
    *FORMS, *FOLDED, PATTERNS, POPULARITY, DECILES,
]  # fmt: skip

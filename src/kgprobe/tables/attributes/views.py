"""Definitions of the printed tables of the nine attributes: numbers, rows and columns."""

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
from kgprobe.tables.attributes.study import BASELINE, MAJORITY, RANDOM, RANKED, is_filled
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

#: counts of what was asked, printed without decimals
COUNTS = ("triples", "triples asked", "golds", "golds added to the candidates", "examples left out")
IS_RANKED = pl.col("method").str.starts_with(RANKED)


def _frequent(results: pl.DataFrame) -> pl.DataFrame:
    """Select the values of each benchmark's five patterns with the most examples, ties by name."""
    values = results.filter(is_filled(), pl.col("group") != "", metric=VALUE)
    sizes = values.group_by("benchmark", "group").agg(size=pl.col("n").max())
    sizes = sizes.sort("benchmark", -pl.col("size"), "group")
    kept = sizes.group_by("benchmark", maintain_order=True).head(5).with_row_index("place")
    rows = values.join(kept, on=["benchmark", "group"]).sort("place", "model", "method")
    return rows.select(results.columns)


def _of_triples(view: View, shown: Sequence[str], more: str = "") -> View:
    """Adapt a common view to the triples of ranked candidates, under the aggregations `shown`."""
    caption = (
        "Over the triples with ranked candidates; right: the object of the example ranks first. "
        f"{more}{view.caption}"
    )
    captioned = replace(view, caption=caption)
    return captioned.where_also(benchmark=NAMES, group=[""], aggregation=shown)


RANDOM_RANKS = (
    "Random weights only rank candidates: they never write the right ones out of tens of thousands "
    "of tokens."
)
#: Table 2 for generated or filled answers, and for ranked candidates
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
            caption="Numerator / denominator and 95 % interval in small print; number of examples "
                    f"on hover. {baselines.ARE} {RANDOM_RANKS} Without knowledge, hardly any part "
                    "of an example is right, so most of their values are undefined: see the table "
                    "of right triples.",
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
    "Gain from knowledge: triples right at 1, minus those right without the subject and with "
    "random weights",
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
    caption=f"Per cent and points; the object of the example, first prompt. {baselines.ARE} "
            f"{RANDOM_RANKS} {baselines.TESTED}",
)  # fmt: skip

CONSTRUCTS = View(
    "constructs", "Contents of these benchmarks: number of examples",
    where={
        "metric": [*constructs.PROBES, *constructs.FIGURES.values()],
        "benchmark": ["asymmetry", *constructs.FIGURES],
    },
    rows=["benchmark", "slice", "model", "method"], usual=0,
    caption="All examples (n) on hover. If the reversed question is never answered right, "
            "asymmetry is the accuracy of the forward one. Paths with the same start, and bias, "
            "which has few distinct objects, are not independent: see the intervals over entities.",
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
        "structural": "all examples in the graph", "labeled": "with labels and templates",
        "unlabeled": "labels not required", constructs.SAMPLED: "probed here",
        constructs.PAPER: "the paper",
    },
    digits={"triples per pattern": 2}, usual=0,
    caption="The paper's sizes are those of all of T-REx; the table on what follows from the "
            "printed figures lists inconsistencies of its columns. Patterns are predicates, pairs "
            "or combinations; the paper calls that column “predicates”. The last columns count our "
            "predicates with a written template, with a generic template from their label (kind "
            "“label”), and without a template, which are not probed.",
)  # fmt: skip

PARTIAL = View(
    "partial", "Partial and full scores (Figure 3), %",
    where={
        **WHOLE, **HEADLINE, "metric": [numbers.PARTIAL, VALUE], "mode": [""],
        "benchmark": [b for b in NAMES if b not in ("entity_centric", "bias")],
    },
    rows=["benchmark", "model", "method"], words={VALUE: "full score"}, caption="Best prompt, @1.",
    only=lambda results: results.filter(is_filled()),
)  # fmt: skip

FOLDED = [
    View(
        "trained_on", "Trained-on and held-out examples of the control models, %",
        where={
            **HEADLINE, "metric": [VALUE, RIGHT], "benchmark": NAMES,
            "slice": [numbers.TRAINED_ON, numbers.PART, numbers.HELD_OUT],
        },
        rows=["benchmark", "model", "method"], columns=["metric", "slice"], words=WORDS,
        caption="Best prompt, @1. Trained-on: all stored triples of the example; in part: some of "
                "them. For some pairs and paths only the first triple was trained on, so a right "
                "answer to the second is inferred or guessed. Inferred and reversed triples were "
                "never trained on. Other models are shown for reference.",
    ),
    View(
        "undefined",
        "Examples that do not count: no part is right, or not asked",
        where={**WHOLE, **HEADLINE, "metric": ["undefined", "missing"], "benchmark": NAMES},
        rows=["model", "method", "metric"], columns=["benchmark"], usual=0,
    ),
    View(
        "choices", "All variants of the metrics, %",
        where={
            **WHOLE, "metric": [VALUE, "mean of examples"], "mode": [""], "benchmark": NAMES,
            "without": [""],
        },
        rows=["k", *PROBE], columns=["pooling", "alpha", "gold", "metric"], words=WORDS,
        caption="Pooling over prompts; alpha: exact, proportion of gold tokens, or a written "
                "answer equal to the label character by character (verbatim); gold matching: the "
                "object of the example, or any object in the graph that has a label. In addition "
                "to the ratio of sums, the mean of the examples' ratios if it is different.",
        only=lambda results: results.filter(pl.col("method") != PUBLISHED),
    ),
    PARTIAL,
    View(
        "correlation", "Partial against full score: correlation",
        where={"metric": ["pearson", "spearman"]}, rows=["slice", "benchmark", "model", "method"],
        usual=2,
        caption="n on hover. A handful of points allows no conclusion; below six there is no "
                "interval.",
    ),
    View(
        "clusters", "Intervals clustered by pattern and by entity instead of example, %",
        where={"metric": [VALUE], "drawn": ["patterns", "entities"], "benchmark": NAMES},
        rows=["model", "method", "drawn"], columns=["benchmark"],
        caption="Best prompt, @1. Examples share relations, and some share an entity: paths and "
                "composites their start, bias and asymmetry the object, hierarchy the class two "
                "steps up. These intervals account for that; n on hover counts clusters. There is "
                "none if all clusters are alike.",
    ),
    View(
        "prompts", "Best alpha by number of prompts, %",
        where={
            "metric": [RIGHT], "slice": [""], "pooling": ["best"],
            "prompts": [str(n) for n in range(1, 1000)],
        },
        rows=["k", *PROBE], columns=["prompts"], words=WORDS,
        caption="Expected best of that many prompts, mean over triples: how much the oracle adds.",
    ),
    View(
        "variants", "Right at 1 by kind of template, % of triples",
        where={"metric": [RIGHT], "slice": [""], "pooling": ["mean"]}, rows=PROBE,
        columns=["template"],
        caption="Mean over triples of the mean over their prompts of the kind; different kinds "
                "cover different triples.",
    ),
    View(
        "templates", "Agreement between the templates of a relation",
        where={
            "metric": consistency.METRICS, "benchmark": NAMES, "slice": [""],
            "choice": ["", "oracle"],
        },
        rows=PROBE, words=consistency.WORDS,
        caption=f"{consistency.CAPTION} Right: the object of the example at 1. Same answer: the "
                "same candidate or text; written texts are compared after normalization.",
    ),
    *(
        replace(
            _of_triples(view, aggregations.OTHERS, "The metrics use the sum. "),
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
        rows=PROBE, words={"verbose": "verbose, %"}, digits=dict.fromkeys(COUNTS, 0),
        caption="Verbose: contains the label but is not equal to it.",
    ),
    View(
        "matching", "Right written answers by the normalization rule that makes them match",
        where={"metric": ["first answers", "first answers right"]}, rows=PROBE,
        columns=["metric", "alpha"],
        words={"first answers": "", "exact": "all rules", "first answers right": "%"},
        digits={"first answers": 0},
        caption="First answers to every triple and prompt compared with the object of the example: "
                "character by character, then what each rule adds to those before it. Everywhere "
                "else, all rules apply; the column “verbatim” of the variants has the metrics "
                "without them.",
    ),
    View(
        "ambiguous", "Pairs with the same name, %",
        where={
            "benchmark": ["ambiguous"], "metric": [VALUE], "mode": ["or", "head"],
            "slice": ["all pairs", "objects differ", "objects equal"],
        },
        rows=["model", "method", "pooling"], columns=["mode", "slice"],
        words={**WORDS, ("mode", "or"): "", ("mode", "head"): "given the head"},
        caption="With one prompt, both can be right only if their objects are equal or have the "
                "same name (the columns compare ids); the last column "
                "conditions on the head alone, which fits the printed values as well.",
    ),
    View(
        "bias", "Bias by relation, %",
        where={
            **HEADLINE, "benchmark": ["bias"], "metric": ["triples", VALUE, "wrong"], "slice": [""],
            "drawn": [""],
        },
        rows=["model", "method", "group"],
        words={VALUE: "right, %", "wrong": "wrong, %", ("group", ""): "all"},
        digits={"triples": 0},
        caption="In aggregate only. For a relation with fewer than ten triples, only the count is "
                "shown.",
        only=lambda results: results.filter(
            (pl.col("metric") == "triples") | (pl.col("n") >= numbers.FEWEST)
        ),
    ),
]  # fmt: skip

PATTERNS = View(
    "patterns", "The most frequent patterns (Figure 4), %",
    where={**HEADLINE, "metric": [VALUE], "slice": [""], "drawn": [""], "benchmark": NAMES},
    rows=["benchmark", "group"], columns=["model", "method"], only=_frequent,
)  # fmt: skip
POPULARITY = View(
    "popularity", "Popularity of all examples and of those that are completely right (Figure 5)",
    where={
        "metric": ["examples", "examples right"], "slice": [""], "benchmark": UNBIASED, **HEADLINE,
    },
    rows=["benchmark", "model", "method", "bin"], usual=0,
)  # fmt: skip
DECILES = View(
    "popularity_deciles", "Completely right examples by decile of popularity, %",
    where={"metric": ["proportion right", "Kolmogorov-Smirnov"], "benchmark": UNBIASED},
    rows=["benchmark", "model", "method"], columns=["metric", "slice"],
)  # fmt: skip
FORMS = [view.where_also(paper=["attributes"]) for view in forms.VIEWS]
ALL = [
    *SCORES[False], *SCORES[True], ABOVE_BASELINES, CONSTRUCTS, TABLE1,
    *FORMS, *FOLDED, PATTERNS, POPULARITY, DECILES,
]  # fmt: skip

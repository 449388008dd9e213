"""Definitions of OntoProbe's printed tables (Wu et al. 2023): numbers, rows and columns."""

from dataclasses import replace

from kgprobe.benchmarks.ontoprobe.concepts import TASKS
from kgprobe.contracts import WITHOUT
from kgprobe.tables import aggregations, baselines, confidence, consistency, forms, slices
from kgprobe.tables.answers import PRIOR
from kgprobe.tables.ontoprobe import choices
from kgprobe.tables.ontoprobe.calibration import ANY, REASONS
from kgprobe.tables.ontoprobe.memorizing import COMPARED, MANUAL, WEIGHTINGS
from kgprobe.tables.ontoprobe.reasoning import CUT, PREMISES, RULES, SIDES, SPREAD
from kgprobe.tables.ontoprobe.reasoning import WEIGHTINGS as REASONED
from kgprobe.tables.ontoprobe.values import AGGREGATIONS as SCORED
from kgprobe.tables.ontoprobe.values import METRICS, OTHERS
from kgprobe.tables.report import validity
from kgprobe.tables.views import PLAIN, View

#: exclude baselines and differences unless a table includes them explicitly
PAPER = {"paper": ["ontoprobe"], "without": [""], "instead": [""]}
HEADS = {"group": "task", "prompt": "template", "slice": "items"}
#: the template column already shows soft; of manual ones, only sentence scoring is named
WORDS = {
    ("prompt", "templates"): "manual", ("slice", ""): "all",
    **{("method", name): "" for name in ("cloze", "soft")},
}  # fmt: skip
#: how a configuration was chosen -> description
CHOICES = {
    "chosen": "one configuration, chosen on the dev rows",
    "fixed": "the fixed configuration: m, mean, last template (soft: BCE)",
    "oracle": "oracle (per-metric maximum on test)",
}
SIZES = View(
    "table1", "Table 1: sizes",
    {**PAPER, "metric": ["items", "candidates"], "group": TASKS,
     "slice": ["train", "dev", "test", "distinct test", ""]},
    rows=["group", "benchmark"], columns=["metric", "slice"], heads=HEADS, usual=0,
    caption="Number of rows per task, and of candidates ranked per row; printed values in "
            "brackets. The released file repeats 70 rows of TP.",
)  # fmt: skip
TABLE4 = View(
    "table4", "Table 4: memorizing",
    {**PAPER, "metric": METRICS, "group": TASKS, "mode": [""], "slice": [""],
     "choice": ["none", *CHOICES]},
    rows=["group", "metric"], columns=["benchmark", "model", "prompt", "method"],
    heads=HEADS, words=WORDS,
    caption="Per cent, with 95 % intervals over items; printed values in brackets if the model is "
            "the same. R@K is a hit rate: only compare models on the same set, since fewer "
            "candidates are easier. MRRa cannot reach 100 if items have several golds. Frequency: "
            "golds of the training rows by count; a subset uses those of the complete set.",
)  # fmt: skip
CONFIGURATIONS = View(
    "configurations", "All configurations (Appendix C.2)",
    {**PAPER, "metric": [*METRICS, *OTHERS], "group": TASKS, "choice": [""], "weighting": [""],
     "masks": ["multi", "single", "sentence"]},
    rows=["model", "benchmark", "group", "method", "masks", "pooling", "template", "loss", "seed"],
    heads=HEADS, words=WORDS, usual=2,
    caption="Every configuration: multiple masks, a single mask, or options scored as sentences.",
)  # fmt: skip
GROUPS = View(
    "groups", "Groups of items",
    {**PAPER, "metric": METRICS, "group": TASKS, "mode": [""],
     "choice": ["chosen", "chosen on test"]},
    rows=["model", "prompt", "method", "benchmark", "group", "choice", "slice"],
    heads=HEADS, words=WORDS,
    caption="The chosen configuration by depth of the class, number of golds, tokens of the most "
            "specific gold (with the model's tokenizer), popularity of the instance, and without "
            "the items whose gold label is part of the subject.",
)  # fmt: skip
SEEDS = View(
    "seeds", "Soft prompts over seeds",
    {**PAPER, "metric": METRICS, "group": TASKS, "weighting": ["seeds"],
     "seed": ["mean", "standard deviation"]},
    rows=["model", "benchmark", "group", "masks", "pooling", "loss"], columns=["metric", "seed"],
    heads=HEADS, words={("seed", "mean"): ""},
    caption="Means over the seeds of the initial vectors with Student's 95 % interval, and the "
            "standard deviation over seeds; neither for one seed.",
)  # fmt: skip
AVERAGES = {
    by: View(
        f"figure{number}", f"Figure {number}: averages by {by}",
        {**PAPER, "metric": METRICS, "weighting": WEIGHTINGS, "template": [""], by: values},
        rows=[by, "model", "weighting"], heads={"weighting": "weighing the same"},
        words={("model", ""): "the models asked here"}, usual=2,
        caption="Means over configurations: for the models asked here, and for the paper's six "
                "models from the printed Appendix C.2. The two are averages over different models; "
                "soft prompts count once, as the mean over their seeds.",
    )
    for number, (by, values) in enumerate(COMPARED.items(), 5)
}  # fmt: skip
FIGURE5_MANUAL = replace(
    AVERAGES["masks"],
    name="figure5_manual",
    title="Figure 5 for manual templates and the mean over tokens alone",
    caption="With these configurations alone, a single mask is better than several in all four "
    "metrics of the paper's models: the advantage of several masks comes from soft prompts.",
).where_also(template=[MANUAL["template"]])
CALIBRATION = View(
    "validity", "Trained-on against held-out statements",
    {**PAPER, "metric": [*validity.COLUMNS, "MRR"],
     "slice": ["", validity.WORDS, "trained-on", "held-out"], **PLAIN},
    rows=["model", "benchmark", "group", "prompt", "method"], columns=["metric", "slice"],
    heads=HEADS, words={**WORDS, ("slice", ""): ""}, digits={"AUC": 3},
    caption="Control models were trained on a known half of the types and superclasses. R@1 of the "
            "fixed configuration (m, mean, last template; soft: BCE), one row per kind of "
            "template. Chance: probability that a random candidate is a gold; the limit is twice "
            "that plus 5 points, but at most 15 points above it; AUC by MRR. Words shared: "
            "held-out statements whose subject shares a word with its class, or with a subject "
            "that was trained on with that class; the other columns exclude them.",
)  # fmt: skip
HELD_OUT = View(
    "held_out", "Held-out statements above the limit: possible explanations",
    {**PAPER, "metric": [*REASONS, ANY]},
    rows=["model", "benchmark", "group", "prompt", "method", "slice"], heads=HEADS, words=WORDS,
    caption="If held-out statements are right more often than the limit allows: the percentage of "
            "the right and of the wrong ones to which each reason applies. Nothing about these "
            "subjects was trained on; a reason explains something to the extent that it is more "
            "frequent among the right ones.",
)  # fmt: skip
REASONING = View(
    "reasoning", "Figures 2, 3, 4, 8: MRR by premises",
    {**PAPER, "metric": ["MRR"], "premise": PREMISES, "weighting": REASONED,
     "group": [*RULES, ""], "slice": [""]},
    rows=["model", "benchmark", "group", "scheme", "weighting"], columns=["premise"],
    heads={"group": "rule", "weighting": "weighed by"}, usual=3,
    words={("model", ""): "all models", ("group", ""): "all rules"},
    caption="MRR; EX explicit, IM implicit, NO not given. A dash: no row has that setting. n: "
            "distinct rows, regardless of the number of schemes, pseudowords and models.",
)  # fmt: skip
PAIRS = View(
    "reasoning_pairs", "MRR by premises: standard deviation over pairs of pseudowords",
    {**PAPER, "metric": [SPREAD], "premise": PREMISES, "group": RULES},
    rows=["model", "benchmark", "group"], columns=["premise"], heads={"group": "rule"}, usual=3,
    caption="Of the mean over schemes of the mean over rows; n: pairs.",
)  # fmt: skip
CUTS = View(
    "premise_cuts", "Premises: reciprocal rank at the cut between memorized and not memorized",
    {**PAPER, "metric": [CUT], "slice": [*SIDES.values()], "group": RULES},
    rows=["model", "benchmark", "group", "scheme"], columns=["premise", "slice"], usual=3,
    heads={"group": "rule", "scheme": "template", "slice": "row"},
    caption="Half of the rows of a rule count as memorized. Where the two values of a premise are "
            "equal, ties decide which rows do, and IM and NO differ little. n: rows of the half.",
)  # fmt: skip
TABLE5 = View(
    "table5", "Table 5: multiple choice, memorizing, right answers in %",
    {**PAPER, "method": ["choice"], "metric": ["accuracy", "chance"], "group": TASKS,
     "premise": [""], "aggregation": [""]},
    rows=["model", "benchmark", "scoring", "metric"], columns=["group"],
    caption="Chance: 1 / number of options. Printed values in brackets: same model, released "
            "questions, the paper's mode.",
)  # fmt: skip
TABLE6 = View(
    "table6", "Table 6: multiple choice, reasoning, right answers in %",
    {**PAPER, "method": ["choice"], "metric": ["accuracy"], "premise": choices.PREMISES,
     "group": [*RULES, ""], "aggregation": [""]},
    rows=["model", "benchmark", "scoring"], columns=["premise", "group"],
    words={("group", ""): "average"},
    caption="EX: the first premise is in the prompt; IM and NO: it is not, and the model answers "
            "the question about it right (IM) or wrong (NO). Average: unweighted mean over the "
            "rules.",
)  # fmt: skip
ANSWERS = View(
    "answers", "How answers were parsed, % of the questions",
    {**PAPER, "metric": ["answers"], "slice": choices.READ},
    rows=["model", "benchmark", "scoring"], columns=["slice"],
)  # fmt: skip
FRACTIONS = View(
    "table6_fractions",
    "Printed cells of Table 6 that are not a fraction of the released numbers",
    {**PAPER, "metric": ["nearest fraction"], "premise": choices.PREMISES},
    rows=["premise"], columns=["group"], caption="The nearest fraction; n on hover.",
)  # fmt: skip
TEMPLATES = View(
    "templates", "Agreement of the manual templates",
    {**PAPER, "metric": consistency.METRICS, "group": TASKS, "choice": ["", "oracle"]},
    rows=["model", "benchmark", "group", "method", "masks", "pooling"],
    heads=HEADS, words=consistency.WORDS,
    caption=f"{consistency.CAPTION} Right: R@1 with the pooling fixed in advance.",
)  # fmt: skip
ABOVE_BASELINES = View(
    "above_baselines",
    "Gain from knowledge: differences from the same rows without the subject and from random "
    "weights",
    {**PAPER, "metric": ["R@1", "p after Holm", "detectable difference"], "group": TASKS,
     "choice": ["fixed"], "instead": [f"without {one}" for one in WITHOUT]},
    rows=["model", "benchmark", "group", "prompt", "method", "instead"],
    heads={**HEADS, "instead": "minus"}, digits={"p after Holm": 3},
    words={**WORDS, **baselines.WORDS, ("metric", "R@1"): "R@1, points"},
    caption=f"The fixed configuration: m, mean, last template. {baselines.ARE} {baselines.TESTED}",
)  # fmt: skip
#: for candidates scored as sentences, accuracy is R@1
REDUCED = [
    replace(
        view, rows=["group", *view.rows], heads=HEADS,
        words={**aggregations.WORDS, ("metric", "accuracy"): "R@1, %"},
        caption="Test rows, candidates scored as sentences. A causal model reads the clause of DM "
                "and RG after the answer: there, the answer's part and the mean over it are sums "
                f"to the end of the sentence. {view.caption}",
    ).where_also(**PAPER, group=TASKS, aggregation=[SCORED[0], *aggregations.OTHERS], scoring=[""])
    for view in (aggregations.AGGREGATIONS, aggregations.GOLDS)
]  # fmt: skip
CONFIDENCE = replace(
    confidence.VIEW, rows=["group", *confidence.VIEW.rows], heads=HEADS,
    caption="Test rows, candidates scored as sentences; right: a gold ranks first. It shares the "
            "probability with other golds, so the confidence in tasks with several golds is too "
            f"low. {confidence.VIEW.caption}",
).where_also(**PAPER, group=TASKS, aggregation=[SCORED[0], PRIOR])  # fmt: skip
#: subsets of the test rows whose candidates are scored as sentences: accuracy is R@1
SLICES = [
    replace(view, rows=["group", *view.rows], heads={**HEADS, **view.heads},
            caption=f"R@1 of test rows, candidates scored as sentences. {view.caption}")
    .where_also(paper=["ontoprobe"], group=TASKS, aggregation=[SCORED[0]])
    for view in (slices.ACCURACY, slices.DIFFERENCES)
]  # fmt: skip
FORMS = tuple(replace(v, heads={**HEADS, **v.heads}).where_also(**PAPER) for v in forms.VIEWS)
#: every view that is printed unchanged
ALL = (
    SIZES, CONFIGURATIONS, GROUPS, SEEDS, *AVERAGES.values(), FIGURE5_MANUAL, CALIBRATION,
    HELD_OUT, REASONING, PAIRS, CUTS, TABLE5, TABLE6, ANSWERS, FRACTIONS, TEMPLATES,
    ABOVE_BASELINES, *REDUCED, CONFIDENCE, *SLICES, *FORMS,
)  # fmt: skip


def table4(choice: str) -> View:
    """Define Table 4 for one choice of configuration, with the frequency baseline; baselines are
    asked in the fixed configuration."""
    view = TABLE4.where_also(choice=["none", choice])
    view = replace(view, name=f"table4_{choice}", title=f"Table 4: {CHOICES[choice]}")
    if choice != "fixed":
        return view
    return replace(
        view.where_also(without=["", *WITHOUT]),
        columns=[*view.columns, "without"],
        words={**WORDS, **baselines.WORDS},
        caption=f"{view.caption} {baselines.ARE}",
    )

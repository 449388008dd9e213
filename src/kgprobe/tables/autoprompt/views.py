"""AutoPrompt's printed tables as views of RESULTS, and the labels of its dimensions."""

from collections.abc import Mapping, Sequence

import polars as pl

from kgprobe.contracts import WITHOUT
from kgprobe.tables import baselines
from kgprobe.tables.autoprompt import numbers
from kgprobe.tables.autoprompt.numbers import BEST, CLASSIFICATION, EXTRACTION, MAJORITY, UNSEEN
from kgprobe.tables.report.grid import property_order
from kgprobe.tables.report.headline import PROMPTS
from kgprobe.tables.views import PLAIN, View

#: benchmark -> the header of its columns
HEADS = {
    "auto_lama": "Original", "auto_lama_trex": "T-REx", "auto_lama_roberta": "Original-RoBERTa",
    "auto_world": "World", "auto_world_all": "World, all facts",
    "auto_re": "original", "auto_re_perturbed": "perturbed",
    "auto_sick": "standard", "auto_sick_3way": "3-way", "auto_sick_2way": "2-way",
}  # fmt: skip
FACTS = ("auto_lama", "auto_lama_trex", "auto_lama_roberta", "auto_world", "auto_world_all")
WORDS: Mapping[object, str] = {
    **baselines.WORDS,
    **{("prompt", name): words for name, words in PROMPTS.items()},
    **{("benchmark", name): head for name, head in HEADS.items()},
    ("method", "predict"): "ours",
    ("method", "published"): "printed",
    ("gold", "filtered"): "filtered",
    ("weighting", "items"): "micro",
    ("instead", "auto_re_perturbed"): "minus perturbed",
    ("draw", "lowest"): "lowest draw",
    ("draw", "highest"): "highest draw",
}
HEADINGS = {"method": "", "without": "asked", "instead": "minus"}
#: decimals of counts
COUNTS = {"search facts": 0, "test facts": 0}
#: rows of most tables: ours, then the printed ones
ROWS, EVERY = ("method", "model", "prompt"), ["predict", "published"]


def _view(
    name: str,
    title: str,
    rows: Sequence[str],
    columns: Sequence[str],
    caption: str = "",
    **where: Sequence[str],
) -> View:
    where = {"paper": ["autoprompt"], "instead": [""], "without": [""], **where}
    return View(name, title, where, rows, columns, HEADINGS, WORDS, COUNTS, 1, caption)


def _by_relation(name: str, title: str, benchmark: str) -> View:
    """Define P@1 by relation, preceded by facts, shift from train to test, and constant answers."""
    return _view(
        name, title, ["group"], ["metric", "model", "prompt"], "",
        benchmark=[benchmark], method=["", "predict"], **PLAIN,
        metric=["search facts", "test facts", numbers.SEEN, numbers.VARIATION, "P@1"],
        slice=[""],
    )  # fmt: skip


TABLE1 = _view(
    "table1", "Table 1: accuracy on SST-2", ROWS, ["slice", "metric", "draw"],
    benchmark=["auto_sst2"], method=EVERY, slice=["dev", ""], metric=["accuracy", MAJORITY, BEST],
)  # fmt: skip
TABLE2 = _view(
    "table2", "Table 2: test accuracy on SICK-E", ROWS, ["benchmark", "metric", "draw"],
    "Balanced by sampling every class down to the size of the smallest, by seed.",
    benchmark=CLASSIFICATION[1:], method=EVERY, slice=[""], metric=["accuracy", MAJORITY, BEST],
)  # fmt: skip
TABLE4 = _view(
    "table4", "Table 4: facts", [*ROWS, "without"],
    ["benchmark", "metric", "slice", "weighting", "gold", "draw"],
    "No overlap: test facts without the same or the inverse pair in train or dev, and whose "
    "object is not part of the subject. Filtered: other right answers are removed from the "
    f"ranking. All facts: objects that are not a single token count as wrong. {baselines.ARE}",
    without=["", *WITHOUT], benchmark=FACTS, group=[""], method=EVERY,
    metric=["MRR", "P@10", "P@1", MAJORITY, BEST],
)  # fmt: skip
TABLE5 = _view(
    "table5", "Table 5: relation extraction, P@1", ROWS,
    ["benchmark", "metric", "instead"],
    "Right if right for any sentence of the fact. The relations and training sentences are those "
    "available, not the paper's; the LSTM is a re-implementation trained on other data.",
    benchmark=EXTRACTION, group=[""], method=EVERY, weighting=[""],
    instead=["", "auto_re_perturbed"], metric=[
        "P@1", MAJORITY, BEST, "P@1 per sentence", "sentences per fact", "old object answered",
    ],
)  # fmt: skip
RELATIONS = (
    _by_relation("table6", "Table 6: P@1 by relation, Original", "auto_lama"),
    _by_relation(
        "table7", "Table 7, numbers: P@1 by relation, Original-RoBERTa", "auto_lama_roberta"
    ),
    _by_relation("trex_relations", "P@1 by relation, T-REx split", "auto_lama_trex"),
    _by_relation("world_relations", "P@1 by relation, embedded graph", "auto_world"),
    _by_relation(
        "all_relations", ("P@1 by relation, all facts of the embedded graph"), "auto_world_all"
    ),
)
PRINTED6 = _view(
    "table6_printed", "Table 6 as printed: bert-base-cased, P@1", ["group"], ["metric", "prompt"],
    "Means of the columns: LAMA 30.65, LPAQA top-1 34.01, AutoPrompt 5 tokens 42.95; Table 4 "
    "prints 31.10, 34.10 and 42.94. AutoPrompt is worse than the better of the two others on P19, "
    "P36, P159, P190, P361, P463, P530, P937, P1303, P1376.",
    benchmark=["auto_lama"], method=["published"], metric=["search facts", "P@1"],
)  # fmt: skip
DIFFERENCES = _view(
    "differences", "Gain from search and from demonstrations, in points",
    ["model", "prompt", "instead"], ["benchmark", "slice"],
    "Paired: both are evaluated on the same examples. Above zero, the prompt is better than what "
    "it is compared with. Object not demonstrated: facts whose object occurs in none of the "
    "demonstrations.",
    metric=["P@1", "accuracy"], slice=["", UNSEEN],
    instead=[*numbers.RIVALS, *numbers.CONTROLS, "demos", "searched"],
)  # fmt: skip
ABOVE_BASELINES = _view(
    "above_baselines",
    "Gain from knowledge: P@1 minus that without the subject and that of random weights, in points",
    ["benchmark", "model", "prompt", "instead"], ["metric"],
    f"Mean over relations. {baselines.ARE} The baseline of a searched prompt is the search on "
    f"random weights. {baselines.TESTED}",
    metric=["P@1", "p after Holm", "detectable difference"], benchmark=FACTS,
    instead=[f"without {one}" for one in WITHOUT],
)  # fmt: skip
SHIFT = _view(
    "shift", "Constant answers by relation, and the difference between train and test",
    ["benchmark", "group"], ["metric", "model"],
    benchmark=[*EXTRACTION, *CLASSIFICATION], method=[""],
    metric=["P@1", "accuracy", numbers.SEEN, numbers.VARIATION],
)  # fmt: skip
RESTARTS = _view(
    "restarts", "Restarts: the search metric on dev", ["benchmark", "model", "prompt"], ["choice"],
    "The selected restart is the best on dev; this shows how much the selection adds.",
    metric=["search metric"], choice=["chosen", "mean", "lowest"],
)  # fmt: skip
#: the points of the figures; the paper prints no numbers for them
FIGURE2 = _view(
    "figure2", "Figure 2: dev accuracy by number of training examples",
    ["benchmark", "model", "prompt"], ["size"],
    "Mean over subsets; bars: worst and best subset. The paper prints no numbers for this figure.",
    method=["low_data"], metric=["accuracy"],
)  # fmt: skip
FIGURE3 = _view(
    "figure3", "Figure 3: dev accuracy by label tokens and trigger length",
    ["benchmark", "model", "k"], ["labels", "triggers"],
    "95 % intervals over dev examples. The paper prints no numbers for this figure.",
    method=["grid"], metric=["accuracy"],
)  # fmt: skip
CLASSES = _view(
    "classes", "Accuracy by class", ["benchmark", "model", "prompt"], ["slice"],
    metric=["accuracy"],
)  # fmt: skip


def of(results: pl.DataFrame) -> tuple[list[View], list[View]]:
    """Return (views shown at once, collapsed views), with the relations and classes of these
    RESULTS."""
    groups = sorted(filter(None, results["group"].unique()), key=property_order)
    classes = sorted(part for part in results["slice"].unique() if part.startswith("class: "))
    by_relation = [view.where_also(group=groups) for view in RELATIONS]
    tables = [TABLE1, TABLE2, TABLE4, TABLE5]
    shown = [*tables, *by_relation, ABOVE_BASELINES, DIFFERENCES]
    return shown, [SHIFT, CLASSES.where_also(slice=classes), RESTARTS]


def ordered(results: pl.DataFrame) -> pl.DataFrame:
    """Sort RESULTS in the order of AutoPrompt's tables."""
    places = {name: i for i, name in enumerate(["", *PROMPTS])}
    place = pl.col("prompt").replace_strict(places, default=len(places))
    return results.sort(place, "prompt", maintain_order=True)

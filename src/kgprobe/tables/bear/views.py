"""BEAR's printed tables: numbers, rows and columns (Wiland et al. 2024).

A view is limited to one benchmark when the section prints it; the files next to RESULTS have all.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import polars as pl

from kgprobe.contracts import WITHOUT
from kgprobe.tables import aggregations, baselines, confidence, consistency, slices
from kgprobe.tables.aggregations import PROBE
from kgprobe.tables.answers import PRIOR
from kgprobe.tables.bear.make import LENGTHS, PREDICTED, RANK
from kgprobe.tables.report.grid import property_order
from kgprobe.tables.report.validity import VIEW as VALIDITY_OF_ALL
from kgprobe.tables.views import PLAIN, View
from kgprobe.templates import NO_SUBJECTS

PAPER = {"paper": ["bear"], "instead": [""], "aggregation": [""], "without": [""]}
#: the baselines come last, below the models
BASELINES = {"without": ["", *WITHOUT]}
BASELINES_ARE = (
    f"{baselines.ARE} Without the subject, the prior of the options decides, which is right by "
    f"chance in a balanced relation. Items whose options are shared by at most {len(NO_SUBJECTS)} "
    "subjects are not asked this way."
)
#: all items, default settings
WHOLE = {**PAPER, "group": [""], "slice": [""], **PLAIN}
WHOLE_ALONE = {**PAPER, **{name: [""] for name in ("group", "mode", "template", "weighting")}}
#: more templates than a relation has
TEMPLATES_SHOWN = [str(i) for i in range(100)]
POSITIONS = ["answer last", "answer elsewhere", "answer before subject"]
HEADS = {"group": "relation", "slice": "domain", "without": "asked"}
WORDS = {
    ("metric", "accuracy minus published"): "minus published, points",
    ("metric", "SEM"): "SEM over templates",
    **consistency.WORDS,
    **confidence.WORDS,
    **aggregations.WORDS,
    ("slice", "1:1"): "1:1 relations",
    ("slice", "1:N"): "1:N relations",
    ("weighting", "relations"): "mean over relations",
    ("weighting", "relations resampled"): "the same, relations resampled",
    ("mode", "first wins"): "ties to the first",
    **{("template", i): f"template {i}" for i in TEMPLATES_SHOWN},
    **{("prompt", "templates"): "", ("method", "sentence"): ""},
    **baselines.WORDS,
}
_view = partial(View, heads=HEADS, words=WORDS)

MODELS = _view(
    "models",
    "Accuracy by model",
    where={
        **WHOLE_ALONE,
        **BASELINES,
        "metric": ["accuracy", "accuracy minus published", "SEM", "MRR"],
        "slice": ["", "1:1", "1:N"],
        "mode": ["", "first wins"],
        "weighting": ["", "relations", "relations resampled"],
    },
    rows=["benchmark", "without", *PROBE],
    columns=["metric", "slice", "mode", "weighting"],
    digits={"SEM": 2, "MRR": 3},
    caption="Intervals in small print, published figures in brackets; SEM with divisor n - 1. "
    f"{BASELINES_ARE}",
)
RELATIONS = _view(
    "relations",
    "Accuracy by relation",
    where={**PAPER, "metric": ["accuracy", "options"], "slice": [""], **PLAIN},
    rows=["benchmark", "group"],
    columns=["metric", *PROBE],
    words=WORDS | {("metric", "accuracy"): ""},
    digits={"options": 0},
    caption="Mean over templates, per cent. Click a column header to sort.",
)
RELATION_TEMPLATES = _view(
    "relation_templates",
    "Accuracy by relation and template",
    where={**PAPER, "metric": ["accuracy"], "slice": [""], "template": TEMPLATES_SHOWN},
    rows=["benchmark", "group"],
    columns=[*PROBE, "template"],
)
DOMAINS = _view(
    "domains",
    "Accuracy by domain",
    where={
        **PAPER,
        **BASELINES,
        "metric": ["accuracy"],
        "group": [""],
        "template": [""],
        "mode": [""],
    },
    rows=["benchmark", "slice"],
    columns=["weighting", "without", *PROBE],
    words=WORDS | {("weighting", "split"): "split among domains"},
    caption="A relation counts fully in each of its domains; split: its weight is divided by their "
    "number.",
)
TEMPLATES = _view(
    "templates",
    "Accuracy by template, %",
    where={
        **WHOLE_ALONE,
        **BASELINES,
        "metric": ["accuracy", *consistency.METRICS],
        "slice": ["", *POSITIONS],
        "template": [*TEMPLATES_SHOWN, ""],
    },
    rows=["benchmark", "without", *PROBE],
    columns=["metric", "template", "slice"],
)
PREFERENCES = _view(
    "preferences",
    "Preferences that are not knowledge: one option of a relation, short or long options",
    where={**WHOLE, "metric": [PREDICTED, RANK], "slice": ["", *LENGTHS]},
    rows=["benchmark", *PROBE],
    columns=["metric", "slice"],
    words=WORDS | {("metric", PREDICTED): f"{PREDICTED}, %"},
    caption="Most frequent prediction: proportion of the items for which the model predicts the "
    "option that it predicts most often in their relation. A model that knows the answers of a "
    "balanced relation has 1 / number of options. Rank of options by their number of scored "
    "tokens: 0 is always first, 100 always last, and 50 no preference.",
)
DIFFERENCES = View(
    "differences",
    "Differences from the best probe",
    where={
        "paper": ["bear"],
        "metric": ["accuracy", "p after Holm", "detectable difference"],
        "slice": [""],
        "aggregation": [""],
    },
    rows=["benchmark", *PROBE, "instead"],
    columns=["metric", "weighting"],
    heads={"instead": "minus"},
    words=WORDS
    | {("metric", "accuracy"): "accuracy, points", ("weighting", "relations"): "over relations"},
    digits={"p after Holm": 3},
    caption="Each probe compared with the best one of the benchmark, paired: same resamples for "
    "both. p: two-sided, answers of both exchanged at random, with Holm correction over "
    "the probes other than the best: how often a probe that is as good as any would end up "
    "this far below the best one. The minimum detectable difference would be significant "
    "at 5 % in 80 of 100 samples of this size.",
)
ABOVE_BASELINES = replace(
    DIFFERENCES,
    name="above_baselines",
    title="Gain from knowledge: differences from the same questions without the subject and from "
    "random weights",
    caption=f"Paired, on the items and templates that both were asked. {baselines.TESTED} "
    f"{BASELINES_ARE}",
)
AGGREGATIONS, GOLDS = (
    replace(view, words=WORDS, caption=f"The sum is the paper's own. {view.caption}").where_also(
        **{**WHOLE_ALONE, "aggregation": ["", *aggregations.OTHERS]}
    )
    for view in (aggregations.AGGREGATIONS, aggregations.GOLDS)
)
CONFIDENCE = replace(confidence.VIEW, words=WORDS).where_also(
    **{**WHOLE_ALONE, "aggregation": ["", PRIOR]}
)
BY_SLICE, SLICE_DIFFERENCES = (
    replace(view, words=WORDS | dict(view.words)).where_also(paper=["bear"], aggregation=[""])
    for view in (slices.ACCURACY, slices.DIFFERENCES)
)
CALIBRATION = VALIDITY_OF_ALL.where_also(paper=["bear"])


def views(results: pl.DataFrame, order: Sequence[str] = ()) -> dict[str, View]:
    """Return the views of these RESULTS by name, with the values that depend on them filled in.

    `order`: models in printing order; others follow, the baselines come last.
    """
    rows = results.filter(paper="bear")
    chance = ["random", "majority", ""]
    probes = rows.filter(~pl.col("model").is_in(chance)).filter(pl.col("method") != "published")
    probed = list(dict.fromkeys([*order, *_values(probes, "model")]))
    models = [*probed, *chance]
    reduced = rows.filter(pl.col("aggregation") != "")
    several = [model for model in probed if model in set(reduced["model"])]
    groups = sorted([g for g in _values(rows, "group") if g], key=property_order)
    instead = [one for one in _values(probes, "instead") if one]
    uninformed = [f"without {what}" for what in WITHOUT]
    others = [one for one in instead if one not in uninformed]
    bins = {one.name: list(slices.list_bins(one, rows)) for one in slices.SLICES}
    every = [name for names in bins.values() for name in names]
    # their accuracies are in separate tables
    apart = [*bins["cardinality"], *(domains := bins["domain"])]
    filled = [
        MODELS.where_also(model=models),
        RELATIONS.where_also(model=models, group=groups),
        RELATION_TEMPLATES.where_also(model=models, group=groups),
        DOMAINS.where_also(model=models, slice=[*domains, "1:1", "1:N"] if domains else []),
        TEMPLATES.where_also(model=probed),
        DIFFERENCES.where_also(model=probed, instead=others),
        ABOVE_BASELINES.where_also(model=probed, instead=uninformed),
        BY_SLICE.where_also(model=models, slice=[name for name in every if name not in apart]),
        SLICE_DIFFERENCES.where_also(model=probed, slice=every),
        AGGREGATIONS.where_also(model=several),
        GOLDS.where_also(model=several),
        CONFIDENCE.where_also(model=several),
        PREFERENCES.where_also(model=probed),
        CALIBRATION.where_also(model=probed),
    ]
    return {view.name: view for view in filled}


def _values(frame: pl.DataFrame, column: str) -> Sequence[str]:
    return frame[column].drop_nulls().unique(maintain_order=True).to_list()

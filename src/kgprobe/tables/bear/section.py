"""BEAR's section of the report: a part per benchmark, an example, the construction."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import polars as pl

from kgprobe import schema
from kgprobe.experiments import read_table
from kgprobe.job import JobContext
from kgprobe.tables import aggregations
from kgprobe.tables.answers import AGGREGATIONS, Probe
from kgprobe.tables.bear import figures as bear_figures
from kgprobe.tables.bear.views import views
from kgprobe.tables.report import draw, grid, section
from kgprobe.tables.report.grid import Cell, Grid
from kgprobe.tables.report.section import Drawing, Section
from kgprobe.tables.results import plain
from kgprobe.tables.slices import unknown_slices
from kgprobe.tables.study import Study
from kgprobe.templates import NO_SUBJECTS, fill

Models = Mapping[str, Mapping[str, str]]
LEAD = (
    "Balanced multiple choice: every option is inserted into a template, and the sentence with the "
    "highest log-likelihood is the model's answer, so that masked and causal models can be "
    "compared (Wiland et al. 2024)."
)
#: views of a benchmark that are shown at once, and collapsed ones
OPEN = ("models", "above_baselines", "aggregations", "relations", "domains", "templates", "slices")
FOLDED = (
    "confidence", "preferences", "golds", "differences", "relation_templates", "slices_differences",
)  # fmt: skip
CONSTRUCTION = (
    "From pulled statements to balanced questions: the number of statements that each filter "
    "removed. A statement is dropped for one reason, the first that applies."
)
TERMS = {
    "Accuracy": "Proportion of items whose correct option scores highest, with equal weight for "
    'every item; mean over templates. Columns "over relations" give every relation the '
    "same weight; the two are never mixed.",
    "Intervals of accuracies": "On one template: Wilson's interval for a proportion. Means over "
    "templates or relations, and differences: percentile bootstrap with 2,000 resamples of the "
    "items within their relation, the same resamples for all templates and models, so that "
    "differences are paired; if every resample is the same, Wilson's interval. They describe the "
    "sampling of facts.",
    "AUC": "Probability that a trained-on item has a larger margin (log-likelihood of the correct "
    "option minus that of the best wrong one, mean over templates) than a held-out one; 0.5 is no "
    "difference. Other models were trained on neither half, so their two accuracies should be "
    "similar.",
    "SEM": "Standard deviation of the template accuracies (divisor n - 1) divided by the square "
    "root of their number. It describes templates, not facts.",
    "Ties": "If the correct option ties with others for first place, the item counts as the "
    "probability of picking it among them. Where ties occurred, the accuracy of taking the "
    "first tied option is also printed.",
    "LAMA": "The set lama uses T-REx facts and templates of LAMA, unchanged, with our options: the "
    "object and other objects of the relation, drawn by hash. LAMA itself asks for the "
    "best word of a vocabulary.",
    "Aggregations": "How the token scores of a sentence become the score of an option: their sum "
    "(the paper's), their mean over tokens or over the bytes of the sentence, the answer's tokens "
    "only, or the sum corrected by a prior, which is the option's mean over questions about other "
    f"subjects or over content-free subjects ({', '.join(NO_SUBJECTS)}).",
    "Confidence": "The largest probability among the options of an item, from a softmax over their "
    "scores. A model is calibrated if about 70 % of the answers given with a "
    "confidence of 70 % are right.",
    "Baselines": "What is reached without knowledge: the same questions with content-free words "
    "instead of the subject (mean over these words), and the same architecture with "
    "random weights.",
    "Slices": "Subsets of a benchmark by fixed bins. Popularity: sitelinks of the subject, or, if "
    "the source has none, its number of statements; the sitelinks of the embedded graph "
    "are estimates. Frequency of an answer: the number of items for which it is right.",
    "Chance and majority": "Random: a guess among the options. Majority: always the most frequent "
    "answer of the relation. They are equal on a balanced set.",
}


def write(
    run: JobContext, results: pl.DataFrame, studies: Sequence[Study], scores: Mapping[Probe, str]
) -> None:
    """Write the section and every figure as SVG. `results`: BEAR's RESULTS, computed from
    `studies`; `scores`: the SCORES of every probe."""
    models, page = run.params.models, Path(run.output.section)
    titles = {row["relation"]: row["note"] for path in run.input.names for row in read_table(path)}
    probed = {probe.model: models[probe.model] for probe in scores}
    benchmarks = list(dict.fromkeys(probe.benchmark for probe in scores))
    drawings = list(bear_figures.figures(results, probed, titles))
    for one in drawings:
        draw.save(one.chart, page.parents[1] / "figures" / one.name)
    parts = arranged(results, probed, titles, run.params.descriptions, drawings)
    parts.append(_example(studies, scores))
    steps = {
        b: schema.read(f, schema.FUNNEL)
        for f in run.input.get("funnels", [])
        for b in benchmarks
        if _origin(b) == _origin(Path(f).parent.name) and "released" not in b
    }
    parts += [_construction(steps, titles)] if steps else []
    title = "BEAR: balanced multiple choice"
    section.write(Section("bear", title, LEAD, parts=parts, terms=TERMS), page)


def arranged(
    results: pl.DataFrame,
    models: Models,
    names: Mapping[str, str],
    descriptions: Mapping[str, str],
    drawings: Sequence[Drawing] = (),
) -> list[Section]:
    """Build a part for each benchmark. Raises ValueError if one of the models has no number."""
    missing = sorted(set(models) - set(results.filter(metric="accuracy")["model"]))
    if missing or not models:
        raise ValueError(f"BEAR's section: RESULTS have no accuracy of {missing or 'any model'}")
    heads = grid.models(models) | {("group", r): grid.titled(r, names) for r in names}
    heads |= {("model", name): Cell(name, "baseline", name) for name in ("random", "majority")}
    shown = views(results, list(models))

    def grids(*wanted: str, **where: Sequence[str]) -> list[Grid]:
        chosen = [shown[name].where_also(**where) for name in wanted]
        filled = [view for view in chosen if view.select(results).height]
        return [grid.of_view(view, results, names=heads) for view in filled]

    return [
        Section(
            name,
            name,
            descriptions.get(name, ""),
            notes(results.filter(benchmark=name), models),
            grids(*OPEN, benchmark=[name]),
            grids(*FOLDED, benchmark=[name]),
            [d for d in drawings if d.part == name],
        )
        for name in bear_figures.benchmarks(results, models)
    ]


def notes(results: pl.DataFrame, models: Models) -> list[str]:
    """Return the warnings that readers need with the numbers of one benchmark."""
    whole = results.filter(metric="accuracy", group="", slice="")
    chance = dict(whole.filter(plain()).select("model", "value").rows())
    random, majority = chance["random"], chance["majority"]
    lines = []
    if majority > random + 1:
        lines.append(
            "The items scored here are not balanced: always giving the most frequent answer of a "
            f"relation is right in {majority:.1f} % of them, a random guess in {random:.1f} %. "
            "Compare with chance, not with figures for the complete set."
        )
    if whole.filter(mode="first wins").height:
        lines.append("Some options tied; a tie counts with the expected value of a random choice.")
    if any(models[model]["dtype"] != "float32" for model in chance if model in models):
        lines.append("Models whose weights are not float32 are marked as not exact.")
    if missing := unknown_slices(results):
        lines.append(f"Not known for these items, so there is no table: {', '.join(missing)}.")
    return [*lines, *aggregations.notes(results.filter(group=""), models)]


def _example(studies: Sequence[Study], scores: Mapping[Probe, str]) -> Section:
    """Work out one item by the first model that is not a control model, else by the first."""
    first = min(scores, key=lambda probe: probe.control)
    study = next(one for one in studies if first in (probe for probe, _ in one.probes))
    item, frame = example_item(study), schema.read(scores[first], schema.SCORES)
    options = example(study, frame, item, study.templates[0])
    relation = study.items.filter(item=item)["relation"][0]
    rows = [
        {
            "rank": option["rank"],
            "sentence": option["sentence"],
            "log-likelihood, nats": f"{option['score']:.2f}",
            "correct": "✓ correct" if option["correct"] else "",
        }
        for option in options.iter_rows(named=True)
    ]
    lead = (
        "Every option is inserted into the template, and the sentence with the highest "
        f"log-likelihood is the model's answer. Here: {first.model} on {first.benchmark}, relation "
        f"{relation}."
    )
    shown = grid.records("Options of one question", rows)
    return Section("example", "One question, worked out", lead, grids=[shown])


def example(
    study: Study, scores: pl.DataFrame, item: str | None = None, template: int = 0
) -> pl.DataFrame:
    """Return one item's options: index, label, sentence, score, rank (from 1, ties share it),
    correct.

    Sorted by rank, then index. `item` defaults to `example_item(study)`. `scores`: SCORES of a
    probe. The sentence is the filled template with its first letter upper-cased, as in scoring.
    """
    name = item or example_item(study)
    chosen = study.items.filter(pl.col("item") == name)
    if not chosen.height:
        raise ValueError(f"{study.benchmark}: no item {name!r}")
    question = chosen.row(0, named=True)
    texts = study.prompts.filter(relation=question["relation"], index=template)
    if not texts.height:
        raise ValueError(f"{study.benchmark}: {question['relation']} has no template {template}")
    options = study.candidates.filter(pl.col("set") == question["candidates"])
    rows = scores.filter(item=name, template=template)
    rows = rows.select("candidate", score=AGGREGATIONS["sum"])
    joined = rows.join(options, left_on="candidate", right_on="index").sort("candidate")
    sentences = [fill(texts["text"][0], question["subject"], word).text for word in joined["label"]]
    return joined.select(
        "label",
        "score",
        index="candidate",
        sentence=pl.Series(sentences, dtype=pl.String),
        rank=pl.col("score").rank("min", descending=True).cast(pl.Int32),
        correct=pl.col("candidate").is_in(question["answers"]),
    ).sort("rank", "index")


def example_item(study: Study) -> str:
    """Return the item to show: the capital of Uganda as in the paper's figure, else the first by id
    of the first relation."""
    uganda = pl.col("relation").eq("P36") & pl.col("subject").eq("Uganda")
    paper = study.ordered.filter(uganda)
    return str((paper if paper.height else study.ordered.sort("relation", "row"))["item"][0])


def _origin(benchmark: str) -> str:
    """Return the source of a set: the big and the lite one are built together."""
    return benchmark.removesuffix("_big").removesuffix("_lite")


def _construction(funnels: Mapping[str, pl.DataFrame], names: Mapping[str, str]) -> Section:
    steps = [grid.funnel(frame, name) for name, frame in funnels.items()]
    relations = [grid.funnel_by_relation(frame, names, name) for name, frame in funnels.items()]
    title = "Construction: how the questions were made"
    return Section("construction", title, CONSTRUCTION, grids=steps, folded=relations)

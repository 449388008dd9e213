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
    "Balanced multiple choice: every option is written into a template, each sentence gets a "
    "log-likelihood, and the highest is the model's answer, so that masked and causal models are "
    "asked alike (Wiland et al. 2024)."
)
#: views of a benchmark that are seen at once, and those that are folded
OPEN = ("models", "above_baselines", "aggregations", "relations", "domains", "templates", "slices")
FOLDED = ("confidence", "golds", "differences", "relation_templates", "slices_differences")
CONSTRUCTION = (
    "From pulled statements to balanced questions: every filter with what it took. A statement is "
    "dropped for one reason, the first that holds."
)
TERMS = {
    "Accuracy": "Proportion of items whose correct option scores highest, every item weighing "
    "the same; mean over the templates. Columns over relations weigh every relation the same, and "
    "the two are never mixed.",
    "Intervals of accuracies": "On one template: Wilson's interval of a proportion. Means over "
    "templates, relations and differences: percentile bootstrap with 2,000 resamples of the items "
    "within their relation, the same resamples for all templates and models, so that differences "
    "are paired; where every resample is the same, Wilson's. They speak of sampling facts.",
    "AUC": "Probability that a trained-on item has a larger margin (log-likelihood of the correct "
    "option minus that of the best wrong one, mean over templates) than a held-out one; 0.5 is no "
    "difference. Models from elsewhere were trained on neither half: their two accuracies should "
    "be alike.",
    "SEM": "Standard deviation of the template accuracies (divisor n - 1) over the square root of "
    "their number. It speaks of templates, not of facts.",
    "Ties": "When the correct option ties with others for the first place, the item counts as the "
    "chance of picking it among them. What the first of the tied would give is printed beside, "
    "where a tie occurred.",
    "LAMA": "The set lama has T-REx facts of LAMA with a template each, both as they are, and "
    "options of its own: the object and others of the relation, drawn by hash. LAMA itself asks "
    "for the first word of a vocabulary.",
    "Aggregations": "How a sentence's token scores become an option's score: their sum (the "
    "paper's own), their mean over tokens or over the sentence's bytes, the answer's tokens alone, "
    "or the sum corrected by a prior, which is the option's mean over questions about other "
    f"subjects, or over subjects that say nothing ({', '.join(NO_SUBJECTS)}).",
    "Confidence": "The largest probability among an item's options, a softmax over their scores. "
    "It is calibrated when of the answers given with 70 % about 70 % are right.",
    "Baselines": "What is reached without knowing: the same questions with a word that says "
    "nothing in place of the subject, answered by what an option has by itself (the mean over such "
    "words), and the same architecture with random weights.",
    "Slices": "Parts of a benchmark by fixed bins. Popularity: sitelinks of the subject, or the "
    "statements of the source that it stands in where it has none; the embedded world's sitelinks "
    "are estimates. Frequency of an answer: the items of the benchmark that it is right for.",
    "Chance and majority": "A random guess among the options, and always giving the relation's "
    "most frequent answer. On a balanced set they are equal.",
}


def write(
    run: JobContext, results: pl.DataFrame, studies: Sequence[Study], scores: Mapping[Probe, str]
) -> None:
    """Write the section and every figure as SVG. `results`: BEAR's RESULTS, which come from
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
    """The parts that are views of RESULTS, one for each benchmark.

    Raises ValueError where one of the models has no number.
    """
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

    parts = []
    for name in bear_figures.benchmarks(results, models):
        parts.append(
            Section(
                name,
                name,
                descriptions.get(name, ""),
                notes(results.filter(benchmark=name), models),
                grids(*OPEN, benchmark=[name]),
                grids(*FOLDED, benchmark=[name]),
                [d for d in drawings if d.part == name],
            )
        )
    return parts


def notes(results: pl.DataFrame, models: Models) -> list[str]:
    """Warnings that a reader needs beside the numbers of one benchmark."""
    whole = results.filter(metric="accuracy", group="", slice="")
    chance = dict(whole.filter(plain()).select("model", "value").rows())
    random, majority = chance["random"], chance["majority"]
    lines = []
    if majority > random + 1:
        lines.append(
            f"The items scored here are not balanced: always giving a relation's most frequent "
            f"answer is right in {majority:.1f} % of them, a random guess in {random:.1f} %. "
            f"Compare with chance, and do not compare with figures of the complete set."
        )
    if whole.filter(mode="first wins").height:
        lines.append("Some options tied; a tie counts as the expectation of a random choice.")
    if any(models[model]["dtype"] != "float32" for model in chance if model in models):
        lines.append("Models whose weights are not float32 are marked as not exact.")
    if missing := unknown_slices(results):
        lines.append(f"Unknown here, so there is no table by it: {', '.join(missing)}.")
    return [*lines, *aggregations.notes(results.filter(group=""), models)]


def _example(studies: Sequence[Study], scores: Mapping[Probe, str]) -> Section:
    """One item worked out by the first model that is no control, else by the first."""
    first = min(scores, key=lambda probe: probe.control)
    study = next(one for one in studies if first in (probe for probe, _ in one.probes))
    item, frame = example_item(study), schema.read(scores[first], schema.SCORES)
    options = example(study, frame, item, study.templates[0])
    relation = study.items.filter(pl.col("item") == item)["relation"][0]
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
        "Every option is written into the template and each sentence gets a log-likelihood; the "
        f"highest is the model's answer. Here: {first.model} on {first.benchmark}, relation "
        f"{relation}."
    )
    shown = grid.records("Options of one question", rows)
    return Section("example", "One question, worked out", lead, grids=[shown])


def example(
    study: Study, scores: pl.DataFrame, item: str | None = None, template: int = 0
) -> pl.DataFrame:
    """One item's options: index, label, sentence, score, rank (from 1, ties share it), correct.

    Sorted by rank, then index. `item` defaults to `example_item(study)`. `scores`: SCORES of
    a probe. The sentence is the template filled as it stands; scoring upper-cases its first letter,
    and so does this.
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
    """The item to show: the capital of Uganda as in the paper's figure, else the first by id of
    the first relation."""
    uganda = pl.col("relation").eq("P36") & pl.col("subject").eq("Uganda")
    paper = study.ordered.filter(uganda)
    return str((paper if paper.height else study.ordered.sort("relation", "row"))["item"][0])


def _origin(benchmark: str) -> str:
    """What a set is made of: the big and the lite one are made together."""
    return benchmark.removesuffix("_big").removesuffix("_lite")


def _construction(funnels: Mapping[str, pl.DataFrame], names: Mapping[str, str]) -> Section:
    steps = [grid.funnel(frame, name) for name, frame in funnels.items()]
    relations = [grid.funnel_by_relation(frame, names, name) for name, frame in funnels.items()]
    title = "Construction: how the questions were made"
    return Section("construction", title, CONSTRUCTION, grids=steps, folded=relations)

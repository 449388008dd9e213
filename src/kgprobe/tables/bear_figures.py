"""The numbers behind BEAR's figures: score against size (4) and one worked item (3)."""

from collections.abc import Sequence
from functools import partial

import polars as pl

from kgprobe.tables import table
from kgprobe.tables.answers import REDUCTIONS, Probe
from kgprobe.tables.published import Published
from kgprobe.tables.study import Study


def size(studies: Sequence[Study], published: Published | None = None) -> pl.DataFrame | None:
    """`bear_size`: parameters and score of every probe whose size is known, the published points,
    and their correlation of score with log10(parameters); None when there is no point at all.

    Row of a published model: `published | <kind> | <model>`, its interval is one standard error
    over templates to either side; n: templates. Row of a correlation: `correlation | <kinds>`, of
    the 22 models listed in the paper; n: models.
    """
    cells = []
    for study in studies:
        for position, (probe, _) in enumerate(study.probes):
            if probe.parameters:
                row = partial(table.cell, "bear_size", probe.label)
                n, score = study.items.height, study.resampled.mean(position)
                cells.append(row("parameters", probe.parameters, 1))
                cells.append(row("score", 100 * score, n, study.interval(position)))
    if published:
        for model in published.models().iter_rows(named=True):
            row = partial(
                table.cell, "bear_size", f"published | {model['kind']} | {model['model']}"
            )
            score, error = model["score"], model["sem"]
            cells.append(row("parameters", model["parameters"], 1))
            cells.append(row("score", score, 3, (score - error, score + error)))
        cells += _correlations(published)
    return table.build(cells) if cells else None


def example(
    study: Study, probe: Probe, scores: pl.DataFrame, item: str | None = None, template: int = 0
) -> pl.DataFrame:
    """One item's options: index, label, sentence, score, rank (from 1, ties share it), correct.

    Sorted by rank, then index. `item` defaults to `example_item(study)`. `scores`: SCORES of
    `probe`. The sentence is the template filled as it stands; scoring upper-cases its first letter,
    and so does this.
    """
    name = item or example_item(study)
    chosen = study.items.filter(pl.col("item") == name)
    if not chosen.height:
        raise ValueError(f"{study.benchmark}: no item {name!r}")
    question = chosen.row(0, named=True)
    texts = study.prompts.filter(
        (pl.col("relation") == question["relation"]) & (pl.col("index") == template)
    )
    if not texts.height:
        raise ValueError(f"{study.benchmark}: {question['relation']} has no template {template}")
    options = study.candidates.filter(pl.col("set") == question["candidates"])
    rows = scores.filter((pl.col("item") == name) & (pl.col("template") == template))
    rows = rows.select("candidate", score=REDUCTIONS["sum"])
    joined = rows.join(options, left_on="candidate", right_on="index").sort("candidate")
    sentences = [fill(texts["text"][0], question["subject"], label) for label in joined["label"]]
    return joined.select(
        pl.col("candidate").alias("index"),
        "label",
        pl.Series("sentence", sentences),
        "score",
        pl.col("score").rank("min", descending=True).cast(pl.Int32).alias("rank"),
        pl.col("candidate").is_in(question["answers"]).alias("correct"),
    ).sort("rank", "index")


def example_table(options: pl.DataFrame, probe: Probe, item: str) -> pl.DataFrame:
    """`bear_example`: the frame of `example` as a TABLE; n: options."""
    cells = []
    for option in options.iter_rows(named=True):
        name = f"{probe.label} | {item} | {option['index']:03d} {option['label']}"
        row = partial(table.cell, "bear_example", name)
        for column in ("score", "rank", "correct"):
            cells.append(row(column, float(option[column]), options.height))
    return table.build(cells)


def example_item(study: Study) -> str:
    """The item to show: the capital of Uganda as in the paper's figure, else the first by id of
    the first relation."""
    uganda = pl.col("relation").eq("P36") & pl.col("subject").eq("Uganda")
    paper = study.ordered.filter(uganda)
    return str((paper if paper.height else study.ordered.sort("relation", "row"))["item"][0])


def fill(template: str, subject: str, answer: str) -> str:
    """The sentence, first letter upper-cased; a placeholder inside a name stays as it is."""
    pieces = [
        {"[X]": subject, "[Y]": answer}.get(piece, piece)
        for piece in template.replace("[X]", "\0[X]\0").replace("[Y]", "\0[Y]\0").split("\0")
    ]
    sentence = "".join(pieces)
    return sentence[:1].upper() + sentence[1:]


def _correlations(published: Published) -> list[dict[str, object]]:
    cells = []
    paper = published.models().filter(pl.col("listed") == "paper")
    for name, kinds in (
        ("all", ("causal", "masked")),
        ("causal", ("causal",)),
        ("masked", ("masked",)),
    ):
        rows = paper.filter(pl.col("kind").is_in(kinds)).select(
            pl.col("score"), pl.col("parameters").log10().alias("size")
        )
        if rows.height < 3:
            continue
        row = partial(table.cell, "bear_size", f"correlation | {name}")
        pearson = rows.select(pl.corr("score", "size")).item()
        spearman = rows.select(pl.corr("score", "size", method="spearman")).item()
        cells.append(row("pearson", pearson, rows.height))
        cells.append(row("spearman", spearman, rows.height))
    return cells

"""BEAR's chapter and its figures, from the files of a run."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import polars as pl

from kgprobe import schema
from kgprobe.tables import bear_chapter, bear_figures, calibration, chapter, draw, gather
from kgprobe.tables.bear_chapter import Example

Rows = Sequence[Mapping[str, str]]


def write_chapter(
    path: str | Path,
    figures: str | Path,
    tables: Sequence[str],
    scores: Sequence[str],
    questions: Sequence[str],
    funnels: Sequence[str],
    experiments: Rows,
    models: Mapping[str, Mapping[str, str]],
    names: Mapping[str, str],
    descriptions: Mapping[str, str],
    seed: int,
) -> None:
    """Write the chapter at `path` and, into the folder `figures`, every figure as SVG and PNG.

    `scores`: SCORES of the rows of `experiments`, in their order; `tables`, `questions`, `funnels`:
    files of the run; `names`: relation -> its name; `descriptions`: benchmark -> what it is.
    """
    frames = {Path(p).stem: schema.read(p, schema.TABLE) for p in tables}
    answered = calibration.signed(
        gather.probes(experiments, models, scores), frames.get("calibration")
    )
    folders = {Path(p).parent.name: Path(p).parent for p in questions}
    drawn = list(gather.figures(answered, frames, names))
    for one in drawn:
        draw.save(one.figure, Path(figures) / one.name)
    shown = bear_chapter.Shown(
        probes=answered,
        tables=frames,
        drawings=[one.drawing() for one in drawn],
        example=_example(answered, scores, folders, seed),
        funnels={
            b: schema.read(f, schema.FUNNEL)
            for f in funnels
            for b in folders
            if b.split("_")[0] == Path(f).parent.name.split("_")[0] and "released" not in b
        },
        relation_names=names,
        descriptions={b: descriptions[b] for b in folders},
    )
    chapter.write(bear_chapter.chapter(shown), path)


def _example(
    answered: Sequence[gather.Probe], scores: Sequence[str], folders: Mapping[str, Path], seed: int
) -> Example:
    """One item worked out by the first model that is no control, else by the first."""
    order = sorted(range(len(answered)), key=lambda i: (answered[i].control, i))
    first = order[0]
    (study,) = gather.studies([answered[first]], [scores[first]], folders, seed)
    item = bear_figures.example_item(study)
    template = study.templates[0]
    frame = schema.read(scores[first], schema.SCORES)
    options = bear_figures.example(study, answered[first], frame, item, template)
    relation = study.items.filter(pl.col("item") == item)["relation"][0]
    return Example(answered[first].label, relation, options)

"""From the files of a run to its studies, tables and figures: what the rules of this stage call."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import polars as pl
from matplotlib.figure import Figure

from kgprobe import schema
from kgprobe.tables import (
    bear,
    bear_figures,
    bear_templates,
    calibration,
    draw,
    draw_size,
    marks,
)
from kgprobe.tables.answers import Probe, judge
from kgprobe.tables.drawing import Drawing
from kgprobe.tables.published import Published
from kgprobe.tables.study import RELATIONS, Study
from kgprobe.tables.table import lookup

Row = Mapping[str, str]
#: Benchmarks of the released design and size, beside which the published points are drawn.
COMPARABLE = ("bear_released", "bear_lite")


@dataclass(frozen=True)
class Drawn:
    """A figure with the words that go with it; `part` as in `Drawing`."""

    part: str
    name: str
    title: str
    caption: str
    figure: Figure

    def drawing(self) -> Drawing:
        """The same for the report."""
        svg = draw.svg(self.figure, self.name)
        return Drawing(self.part, self.name, self.title, self.caption, svg, self.caption)


def probes(
    experiments: Sequence[Row], models: Mapping[str, Row], scores: Sequence[str | Path]
) -> list[Probe]:
    """A Probe per row of the experiment sheet; `scores`: its SCORES file, in the same order.

    `models`: rows of the model sheet by name. The number of parameters comes from the metadata of
    the scores (`model.parameters` in their provenance), where it is; so does the mark of a model
    whose numbers say nothing.
    """
    made, shown = [], marks.names(experiments, scores)
    for row, path in zip(experiments, scores, strict=True):
        model = models[row["model"]]
        made.append(
            Probe(
                benchmark=row["benchmark"],
                prompt=row["prompt"],
                method=row["method"],
                model=shown[row["model"]],
                kind=model["kind"],
                bos=model["bos"],
                dtype=model["dtype"],
                parameters=_parameters(path),
                published=model.get("published", ""),
                source=model["source"],
            )
        )
    return made


def studies(
    answered: Sequence[Probe],
    scores: Sequence[str | Path],
    folders: Mapping[str, str | Path],
    seed: int = 0,
) -> list[Study]:
    """A Study per benchmark and prompt, in the order of the probes.

    `folders`: benchmark -> folder with items, candidates and prompts (and, where there is one,
    relations) as parquet. Every SCORES file is judged and let go before the next is read.
    """
    made = []
    keys = dict.fromkeys((probe.benchmark, probe.prompt) for probe in answered)
    for benchmark, prompt in keys:
        folder = Path(folders[benchmark])
        items = schema.read(folder / "items.parquet", schema.ITEMS)
        candidates = schema.read(folder / "candidates.parquet", schema.CANDIDATES)
        prompts = schema.read(folder / "prompts.parquet", schema.PROMPTS)
        judged = [
            (probe, judge(schema.read(path, schema.SCORES), items, candidates, where=str(path)))
            for probe, path in zip(answered, scores, strict=True)
            if (probe.benchmark, probe.prompt) == (benchmark, prompt)
        ]
        relations = _relations(folder / "relations.parquet")
        made.append(Study(benchmark, items, candidates, prompts, judged, relations, seed))
    return made


def tables(
    made: Sequence[Study], published: Published | None = None, taught: pl.DataFrame | None = None
) -> dict[str, pl.DataFrame]:
    """Every TABLE frame of BEAR that applies, by name.

    Left out where they do not apply: bear_domains (no benchmark tells domains), bear_differences
    (one probe per benchmark), bear_size (no sizes), calibration (no taught and untaught facts).
    """
    calibrated = calibration.calibration(made, taught) if taught is not None else None
    if calibrated is not None:
        made, calibrated = _signed(made, calibrated)
    found = {
        "bear_models": bear.models(made, published),
        "bear_relations": bear.relations(made),
        "bear_domains": bear.domains(made),
        "bear_templates": bear_templates.templates(made),
        "bear_differences": bear.differences(made),
        "bear_size": bear_figures.size(made, published),
        "calibration": calibrated,
    }
    return {name: frame for name, frame in found.items() if frame is not None}


def _signed(made: Sequence[Study], calibrated: pl.DataFrame) -> tuple[list[Study], pl.DataFrame]:
    """Studies and their calibration with the mark behind the models of probes outside the
    requirement; only control models can be outside."""
    controls = {probe.label for study in made for probe, _ in study.probes if probe.control}
    outside = [row for row in calibration.outside(calibrated) if row in controls]
    frame = calibration.marked(calibrated, outside)
    studies = []
    for study in made:
        probes = calibration.signed([probe for probe, _ in study.probes], frame)
        answers = [answers for _, answers in study.probes]
        studies.append(replace(study, probes=list(zip(probes, answers, strict=True))))
    return studies, frame


def figures(
    answered: Sequence[Probe],
    made: Mapping[str, pl.DataFrame],
    titles: Mapping[str, str] | None = None,
) -> Iterator[Drawn]:
    """The figures of a run from its tables; `titles`: relation -> its name."""
    if "calibration" in made:
        yield Drawn(
            "calibration",
            "calibration",
            "Taught and untaught facts",
            "Items whose correct option is ranked first, with 95 % intervals; dashed: chance.",
            draw.calibration_plot(made["calibration"], answered),
        )
    chances = lookup(made["bear_models"])
    for benchmark in dict.fromkeys(probe.benchmark for probe in answered):
        own = [probe for probe in answered if probe.benchmark == benchmark]
        if any(probe.parameters for probe in own):
            yield _size(benchmark, own, made, chances[f"random | {benchmark}", "score"]["value"])
        yield Drawn(
            benchmark,
            f"bear_relations_{benchmark}",
            "Accuracy by relation",
            "Per cent, mean over templates; relations ordered by their mean over models.",
            draw.relations_plot(made["bear_relations"], own, titles),
        )


def _size(
    benchmark: str, own: Sequence[Probe], made: Mapping[str, pl.DataFrame], chance: float
) -> Drawn:
    frame, caption = made["bear_size"], "Lines are 95 % intervals; hollow: control models."
    if benchmark in COMPARABLE:
        caption += (
            " Grey: published scores of the complete released set over three templates, with one"
            " standard error over templates."
        )
    else:
        frame = frame.filter(~pl.col("row").str.starts_with("published | "))
    figure = draw_size.size_plot(frame, own, chance)
    return Drawn(benchmark, f"bear_size_{benchmark}", "Accuracy against size", caption, figure)


def _parameters(path: str | Path) -> int | None:
    """The number of parameters that was recorded with the scores."""
    record = schema.provenance(path).get("model")
    found = record.get("parameters") if isinstance(record, dict) else None
    return int(found) if found else None


def _relations(path: Path) -> pl.DataFrame | None:
    """Cardinality and domains of the relations, where the benchmark has them."""
    if not path.is_file():
        return None
    frame = pl.read_parquet(path)
    columns = [column for column in RELATIONS if column in frame.columns]
    return frame.select(columns) if len(columns) > 1 and "relation" in columns else None

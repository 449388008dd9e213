"""What the rules of the graph attributes call: from files to tables and to a chapter."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from kgprobe import schema
from kgprobe.benchmarks.graph_frames import EXAMPLES, SENSITIVITY, SIZES, STEPS
from kgprobe.schema import Contract
from kgprobe.tables import (
    attributes_alpha,
    attributes_analyses,
    attributes_chapter,
    attributes_constructs,
    attributes_published,
    attributes_sizes,
    attributes_study,
    attributes_tables,
    attributes_taught,
    calibration,
    chapter,
    gather,
)
from kgprobe.tables.table import write_tsv

Row = Mapping[str, str]
EQUAL = (
    "A written answer is right when it equals {} of the gold after the rules that a folded table "
    "counts one by one."
)


def tabulate(
    folder: str | Path,
    metrics: str | Path,
    experiments: Sequence[Row],
    models: Mapping[str, Row],
    answers: Sequence[str],
    examples: Sequence[str],
    graph: str | Path,
    published: str | Path,
    options: Mapping[str, Any],
    provenance: Mapping[str, object],
    taught: str | Path = "",
    aliases: str | Path = "",
) -> None:
    """Write METRICS and, into `folder`, every table as parquet and TSV.

    `answers`: FILLS or SCORES of the rows of `experiments`; `examples`: EXAMPLES of every
    benchmark, whose folders hold the rest; `graph`: the folder of edges and literals; `taught`:
    what the control models were taught, where one of them answers; `aliases`: other names of the
    golds, where generated texts may equal one of them.
    """
    study = attributes_study.read(
        gather.probes(experiments, models, answers),
        answers,
        folders(examples),
        pl.read_parquet(Path(graph) / "edges.parquet"),
        pl.read_parquet(Path(graph) / "literals.parquet"),
        attributes_alpha.read_aliases(aliases) if aliases else None,
        **options,
    )
    alphas = study.alphas()
    known = schema.read(taught, schema.TAUGHT) if taught else None
    halves = attributes_taught.halves(study, alphas, known) if known is not None else None
    if halves is not None:
        study = attributes_taught.signed_study(study, halves)
        alphas = study.alphas()
        halves = calibration.marked(halves, calibration.outside(halves))
    measured = attributes_study.measure(study, alphas)
    by_pattern = attributes_study.measure_patterns(study, alphas)
    printed = attributes_published.read(Path(published).parent)
    made = attributes_tables.tables(study, measured, by_pattern, printed)
    sizes = _of_all(examples, "sizes", SIZES)
    made |= {"kg_table1": attributes_sizes.sizes(sizes, printed)}
    every = {
        name: schema.read(folder / "examples.parquet", EXAMPLES)
        for name, folder in folders(examples).items()
    }
    edges = pl.read_parquet(Path(graph) / "edges.parquet")
    held = attributes_constructs.constructs(every, edges, alphas, study.seed)
    made |= {} if held is None else {"kg_constructs": held}
    made |= attributes_analyses.tables(study, alphas, attributes_study.parts(study, alphas))
    if known is not None:
        calibrated = attributes_taught.calibration(study, alphas, known)
        found = {"kg_taught": calibrated, "kg_calibration": halves}
        made |= {name: frame for name, frame in found.items() if frame is not None}
    for name, frame in made.items():
        schema.write(frame, schema.TABLE, Path(folder) / f"{name}.parquet", provenance)
        write_tsv(frame, Path(folder) / f"{name}.tsv")
    schema.write(measured, attributes_study.METRICS, metrics, provenance)


def write_chapter(
    path: str | Path,
    tables: str | Path,
    experiments: Sequence[Row],
    models: Mapping[str, Row],
    answers: Sequence[str],
    examples: Sequence[str],
    published: str | Path,
    titles: Mapping[str, str],
    thresholds: str,
    aliases: str | Path = "",
) -> None:
    """Write the chapter of the report from the folder that `tabulate` filled."""
    frames = {p.stem: schema.read(p, schema.TABLE) for p in sorted(Path(tables).glob("*.parquet"))}
    probes = attributes_taught.signed(
        gather.probes(experiments, models, answers), frames.get("kg_calibration")
    )
    largest = attributes_chapter.largest_model(probes)
    shown = attributes_chapter.Shown(
        tables=frames,
        probes=probes,
        published=attributes_published.read(Path(published).parent),
        titles=titles,
        examples=attributes_study.worked_examples(
            probes,
            answers,
            folders(examples),
            largest,
            attributes_alpha.read_aliases(aliases) if aliases else None,
        ),
        notes=[EQUAL.format("the label or an alias" if aliases else "the label")],
        steps=_of_all(examples, "funnel", STEPS),
        sensitivity=_of_all(examples, "sensitivity", SENSITIVITY),
        thresholds=thresholds,
    )
    chapter.write(attributes_chapter.chapter(shown), path)


def folders(examples: Sequence[str]) -> dict[str, Path]:
    """Benchmark -> its folder, from the paths of its examples."""
    return {Path(path).parent.name: Path(path).parent for path in examples}


def _of_all(examples: Sequence[str], name: str, contract: Contract) -> pl.DataFrame:
    """One frame of every benchmark's folder, joined."""
    paths = [folder / f"{name}.parquet" for folder in folders(examples).values()]
    return pl.concat([schema.read(path, contract) for path in paths])

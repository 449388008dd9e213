"""What the rules of the graph attributes call: from files to numbers and to a chapter."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import polars as pl

from kgprobe import schema
from kgprobe.benchmarks.attributes.frames import EXAMPLES, SENSITIVITY, SIZES, STEPS
from kgprobe.schema import Contract
from kgprobe.tables import reductions, results
from kgprobe.tables.answers import Probe, folders, probes_of
from kgprobe.tables.attributes import alpha, analyses, asked, constructs, scores, views
from kgprobe.tables.attributes import chapter as attributes_chapter
from kgprobe.tables.attributes import published as printed
from kgprobe.tables.attributes import study as studies
from kgprobe.tables.attributes.baselines import METHOD as BASELINE
from kgprobe.tables.reductions import Questions
from kgprobe.tables.report import chapter, marks
from kgprobe.tables.results import Number
from kgprobe.tables.views import write_all

Row = Mapping[str, str]
PAPER = "attributes"
EQUAL = (
    "A written answer is right when it equals {} of the gold after the rules that a folded table "
    "counts one by one."
)


def tabulate(
    path: str | Path,
    folder: str | Path,
    experiments: Sequence[Row],
    models: Mapping[str, Row],
    answers: Sequence[str],
    examples: Sequence[str],
    graph: str | Path,
    published: str | Path,
    options: Mapping[str, Any],
    provenance: Mapping[str, object],
    contentless: Sequence[str] = (),
    taught: str | Path = "",
    aliases: str | Path = "",
) -> None:
    """Write RESULTS to `path` and, into `folder`, every view of them as TSV.

    `answers`: FILLS or SCORES of the rows of `experiments`; `examples`: EXAMPLES of every
    benchmark, whose folders hold the rest; `graph`: the folder of edges and literals;
    `contentless`: CONTENTLESS of the rows that rank candidates, in their order; `taught`: what the
    control models were taught, where one of them answers; `aliases`: other names of the golds,
    where generated texts may equal one of them.
    """
    tables = ("edges", "literals", "ids")
    edges, literals, ids = (pl.read_parquet(Path(graph) / f"{name}.parquet") for name in tables)
    places, others = folders(examples), alpha.read_aliases(aliases) if aliases else None
    benchmarks = {n: studies.read_benchmark(places[n]) for n in printed.NAMES if n in places}
    found = {
        probe: studies.read_answers(probe, benchmarks[probe.benchmark], path, others)
        for probe, path in zip(probes_of(experiments, models, answers), answers, strict=True)
    }
    study = studies.study(found, benchmarks, edges, literals, ids=ids, **options)
    known = schema.read(taught, schema.TAUGHT) if taught else None
    every = {n: schema.read(own / "examples.parquet", EXAMPLES) for n, own in places.items()}
    figures = printed.read(Path(published).parent)
    alphas = study.alphas()
    made = chain(
        numbers(study, alphas, figures, known),
        reduced(study, dict(zip(found, answers, strict=True)), contentless, known),
        constructs.sizes(_of_all(examples, "sizes", SIZES), figures),
        constructs.numbers(every, edges, alphas, study.seed),
        marks.numbers(experiments, answers),
    )
    frame = results.frame(PAPER, made)
    schema.write(frame, schema.RESULTS, path, provenance)
    write_all(views.ALL, frame, folder)


def numbers(
    study: studies.Study,
    alphas: pl.DataFrame,
    published: printed.Published,
    taught: pl.DataFrame | None = None,
) -> Iterator[Number]:
    """Every number of a study that follows from answers; `taught`: TAUGHT."""
    told = alphas.filter(pl.col("method") != BASELINE)
    yield from scores.values(study, alphas, published)
    yield from scores.patterns(study, told)
    yield from scores.ambiguous(study, told)
    yield from asked.numbers(study)
    yield from analyses.numbers(study, told)
    if taught is not None:
        known = scores.status(study, taught)
        yield from scores.taught(study, told, known)
        yield from scores.halves(study, alphas, known)


def reduced(
    study: studies.Study,
    files: Mapping[Probe, str],
    contentless: Sequence[str],
    taught: pl.DataFrame | None = None,
) -> Iterator[Number]:
    """The triples of ranked candidates under other reductions: right is the own object in first
    place. `files`: the answers of each probe; `taught`: TAUGHT."""
    stored = scores.status(study, taught).filter("stored") if taught is not None else None
    fates = dict(stored.select("item", "taught").rows()) if stored is not None else {}
    ranked = [probe for probe in files if studies.is_ranked(probe.method)]
    for probe, beside in zip(ranked, contentless, strict=True):
        own = study.benchmarks[probe.benchmark]
        items = own.items.filter(~pl.col("group").is_in(sorted(study.left_out)))
        items = items.with_columns(pl.col("answers").list.head(1))
        asks = Questions(items, own.candidates, own.prompts, study.seed, own="sum")
        told = schema.read(files[probe], schema.SCORES)
        free = schema.read(beside, schema.CONTENTLESS)
        yield from reductions.of_scores(probe, told, asks, fates, free, files[probe])


def write_chapter(
    path: str | Path,
    numbers: str | Path,
    experiments: Sequence[Row],
    models: Mapping[str, Row],
    answers: Sequence[str],
    examples: Sequence[str],
    published: str | Path,
    titles: Mapping[str, str],
    thresholds: str,
    aliases: str | Path = "",
) -> None:
    """Write the chapter of the report from the RESULTS that `tabulate` wrote."""
    probes = probes_of(experiments, models, answers)
    others = alpha.read_aliases(aliases) if aliases else None
    made = results.read([numbers])
    equal = EQUAL.format("the label or an alias" if aliases else "the label")
    shown = attributes_chapter.Shown(
        results=made,
        probes=probes,
        published=printed.read(Path(published).parent),
        titles=titles,
        examples=attributes_chapter.worked_examples(probes, answers, folders(examples), others),
        notes=[equal, *reductions.notes(made, models, "sum")],
        steps=_of_all(examples, "funnel", STEPS),
        sensitivity=_of_all(examples, "sensitivity", SENSITIVITY),
        thresholds=thresholds,
    )
    chapter.write(attributes_chapter.chapter(shown), path)


def _of_all(examples: Sequence[str], name: str, contract: Contract) -> pl.DataFrame:
    """One frame of every benchmark's folder, joined."""
    paths = [folder / f"{name}.parquet" for folder in folders(examples).values()]
    return pl.concat([schema.read(path, contract) for path in paths])

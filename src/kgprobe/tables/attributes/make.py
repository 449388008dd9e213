"""What the rules of the graph attributes call: from files to numbers and to a chapter."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from types import MappingProxyType
from typing import Any

import polars as pl

from kgprobe import schema
from kgprobe.benchmarks.attributes.frames import EXAMPLES, SENSITIVITY, SIZES, STEPS
from kgprobe.contracts import WITHOUT
from kgprobe.schema import Contract
from kgprobe.tables import aggregations, baselines, forms, results, scored
from kgprobe.tables.aggregations import Questions
from kgprobe.tables.answers import Probe, folders, probes_of, read_aliases
from kgprobe.tables.attributes import (
    alpha,
    analyses,
    answerers,
    asked,
    constructs,
    scores,
    two_steps,
    views,
)
from kgprobe.tables.attributes import chapter as attributes_chapter
from kgprobe.tables.attributes import published as printed
from kgprobe.tables.attributes import study as studies
from kgprobe.tables.attributes.baselines import METHOD as BASELINE
from kgprobe.tables.report import chapter, marks
from kgprobe.tables.results import Number
from kgprobe.tables.scored import Scored
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
    page: str | Path,
    experiments: Sequence[Row],
    models: Mapping[str, Row],
    answers: Sequence[str],
    examples: Sequence[str],
    graph: str | Path,
    published: str | Path,
    titles: Mapping[str, str],
    thresholds: str,
    options: Mapping[str, Any],
    provenance: Mapping[str, object],
    content_free: Sequence[str] = (),
    taught: str | Path = "",
    aliases: str | Path = "",
    below: baselines.Files = MappingProxyType({}),
    formed: tuple[Sequence[Row], Sequence[str]] = ((), ()),
) -> None:
    """Write RESULTS to `path`, every view of them as TSV into `folder`, and the chapter of the
    report to `page`.

    `answers`: FILLS or SCORES of the rows of `experiments`; `examples`: EXAMPLES of every
    benchmark, whose folders hold the rest; `graph`: the folder of edges and literals;
    `content_free`: CONTENT_FREE of the rows that rank candidates, in their order; `taught`: what
    the control models were taught, where one of them answers; `aliases`: other names of the golds,
    where generated texts may equal one of them; `below`: the answers of baselines; `formed`: rows
    in a form of asking, their SCORES or FILLS; `titles`: relation -> its name; `thresholds`: the
    name of those that the benchmarks were built with.
    """
    tables = ("edges", "literals", "ids")
    edges, literals, ids = (pl.read_parquet(Path(graph) / f"{name}.parquet") for name in tables)
    places, others = folders(examples), read_aliases(aliases) if aliases else None
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
    probes = [*probes_of(formed[0], models, formed[1]), *found]
    in_forms = forms.pairs(probes, [*formed[1], *answers])
    files = dict(zip(found, answers, strict=True))

    def written(probe: Probe, path: str | Path) -> pl.DataFrame:
        """Whether the first text is the own object, by blank."""
        read, _ = studies.read_answers(probe, benchmarks[probe.benchmark], path, others)
        own = read.filter(k=1, gold="own", alpha_kind="exact")
        return own.select("item", "template", hit="alpha")

    made = chain(
        answerers.numbers(study.seed),
        numbers(study, alphas, figures, known),
        scored.numbers(ranked(study, files, content_free, known, below)),
        baseline_numbers(study, below, others),
        forms.numbers(*in_forms, places, "sum", study.seed, written=written),
        composed(study, alphas, known, formed, models, others),
        constructs.sizes(_of_all(examples, "sizes", SIZES), figures),
        constructs.numbers(every, edges, alphas, study.seed),
        marks.numbers([*experiments, *formed[0]], [*answers, *formed[1]]),
    )
    frame = results.frame(PAPER, made)
    schema.write(frame, schema.RESULTS, path, provenance)
    write_all(views.ALL, frame, folder)
    frame = results.read([path])
    equal = EQUAL.format("the label or an alias" if aliases else "the label")
    shown = attributes_chapter.Shown(
        results=frame,
        probes=list(files),
        published=figures,
        titles=titles,
        examples=attributes_chapter.worked_examples(study, files),
        notes=[equal, *aggregations.notes(frame, models, "sum")],
        steps=_of_all(examples, "funnel", STEPS),
        sensitivity=_of_all(examples, "sensitivity", SENSITIVITY),
        thresholds=thresholds,
    )
    chapter.write(attributes_chapter.chapter(shown), page)


def composed(
    study: studies.Study,
    alphas: pl.DataFrame,
    taught: pl.DataFrame | None,
    formed: tuple[Sequence[Row], Sequence[str]],
    models: Mapping[str, Row],
    aliases: alpha.Aliases | None,
) -> Iterator[Number]:
    """Every number of two steps, where they are asked; `taught`: TAUGHT."""
    if two_steps.NAME in study.benchmarks:
        own = study.benchmarks[two_steps.NAME]
        known = scores.status(study, taught) if taught is not None else None
        yield from two_steps.numbers(alphas, own, known)
        rows, files = formed
        asked = two_steps.probes(dict(zip(probes_of(rows, models, files), files, strict=True)))
        yield from two_steps.written(asked, alphas, own, aliases, known)


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


def ranked(
    study: studies.Study,
    files: Mapping[Probe, str],
    content_free: Sequence[str],
    taught: pl.DataFrame | None = None,
    below: baselines.Files = MappingProxyType({}),
) -> Iterator[Scored]:
    """The triples of ranked candidates: right is the own object in first place. `files`: the
    answers of each probe; `taught`: TAUGHT; `below`: answers of baselines."""
    stored = scores.status(study, taught).filter("stored") if taught is not None else None
    fates = dict(stored.select("item", "taught").rows()) if stored is not None else {}
    probes = [probe for probe in files if studies.is_ranked(probe.method)]
    for probe, beside in zip(probes, content_free, strict=True):
        own = study.benchmarks[probe.benchmark]
        items = own.items.filter(~pl.col("group").is_in(sorted(study.left_out)))
        items = items.with_columns(pl.col("answers").list.head(1))
        asks = Questions(items, own.candidates, own.prompts, study.seed, own="sum")
        told = schema.read(files[probe], schema.SCORES)
        free = schema.read(beside, schema.CONTENT_FREE)
        random_init = dict(baselines.below(below, probe)).get(WITHOUT[1])
        low = schema.read(random_init, schema.SCORES) if random_init else None
        yield Scored(probe, told, asks, fates, free, files[probe], low)


def baseline_numbers(
    study: studies.Study, below: baselines.Files, aliases: alpha.Aliases | None = None
) -> Iterator[Number]:
    """The metrics of each probe's baselines, on examples that were asked completely, under the
    first prompt: there is nothing to pool. Where no part of an example is right, they are
    undefined; where no example was asked completely, there are none.

    Beside them the triples that are right, which always are defined, and how many more the probe
    has under its own first prompt.
    """
    made: dict[str, list[baselines.Baseline]] = {}
    for probe, (own, _) in study.answers.items():
        benchmark = study.benchmarks[probe.benchmark]
        for without, path in baselines.below(below, probe):
            low, _ = studies.read_answers(probe, benchmark, path, aliases, may_be_empty=True)
            rows = studies.complete(probe, low, benchmark, study.left_out)
            if rows.is_empty():
                continue
            for row in study.measure(rows).iter_rows(named=True):
                yield scores.number(row, setting={"without": without})
            if probe.benchmark == two_steps.NAME:
                yield from two_steps.numbers(rows, benchmark, without=without)
            first, part = (
                asked.at_one(one.filter(pooling=pooling))
                for one, pooling in (
                    (studies.triples(probe, own, benchmark), "base"),
                    (rows, ""),
                )
            )
            if part.height:
                of = Number(**probe.asked, setting={**asked.EXACT, "k": 1})
                made.setdefault(probe.benchmark, []).append(
                    baselines.Baseline(of, without, part, first)
                )
    for found in made.values():
        yield from baselines.numbers(found, [asked.RIGHT])


def _of_all(examples: Sequence[str], name: str, contract: Contract) -> pl.DataFrame:
    """One frame of every benchmark's folder, joined."""
    paths = [folder / f"{name}.parquet" for folder in folders(examples).values()]
    return pl.concat([schema.read(path, contract) for path in paths])

"""Entry points for the rules of the graph attributes: from files to numbers and to a section."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from types import MappingProxyType

import polars as pl

from kgprobe import schema
from kgprobe.benchmarks.attributes.frames import EXAMPLES, SENSITIVITY, SIZES, STEPS
from kgprobe.experiments import read_table
from kgprobe.job import JobContext
from kgprobe.schema import Contract
from kgprobe.tables import aggregations, baselines, forms, judged, results, scored
from kgprobe.tables.answers import Probe, folders, probes_of, read_aliases
from kgprobe.tables.attributes import constructs, numbers, views
from kgprobe.tables.attributes import published as printed
from kgprobe.tables.attributes import section as attributes_section
from kgprobe.tables.attributes import study as studies
from kgprobe.tables.report import marks, section
from kgprobe.tables.results import Number
from kgprobe.tables.scored import Scored, read_random_init
from kgprobe.tables.study import Study
from kgprobe.tables.views import write_all

EQUAL = (
    "A written answer is right if it equals {} of the gold answer after normalization; a folded "
    "table counts the effect of each rule."
)


def tabulate(run: JobContext) -> None:
    """Write RESULTS, JUDGED, every view of RESULTS as TSV, and the section. Inputs with a file per
    row are in the order of the rows: FILLS or SCORES, those in a prompt format, CONTENT_FREE of the
    rows that rank candidates. The folders of EXAMPLES have a benchmark's other files; with
    `aliases`, a generated text may equal one of them."""
    given, params = run.input, run.params
    edges, literals, ids = map(pl.read_parquet, (given.edges, given.literals, given.ids))
    places = folders(given.examples)
    others = read_aliases(given.aliases) if given.aliases else None
    benchmarks = {n: studies.read_benchmark(places[n]) for n in printed.NAMES if n in places}
    files, in_form = (
        dict(zip(probes_of(rows, params.models, paths), paths, strict=True))
        for rows, paths in (
            (params.experiments, given.answers), (params.formed, given.formed),
        )
    )  # fmt: skip
    below = baselines.files(params.baselines, given.get("baselines", []))
    answered = {
        probe: studies.read_answers(probe, benchmarks[probe.benchmark], file, others)
        for probe, file in (files | in_form).items()
    }
    sampled = [benchmark.examples for benchmark in benchmarks.values()]
    guesses = studies.guesses(edges, literals, sampled, ids)
    direct = {probe: answered[probe] for probe in files}
    study = studies.AttributesStudy(benchmarks, direct, guesses, seed=params.seed, **params.options)
    facts = schema.read(given.trained_on, schema.TRAINED_ON) if given.trained_on else None
    known = None if facts is None else numbers.status(study, facts)
    figures, alphas = printed.read(Path(given.published[0]).parent), study.alphas()
    rows_of = {
        probe: studies.judge(probe, alphas, benchmarks[probe.benchmark])
        for probe, alphas in answered.items()
    }
    # whether the first answer is the example's own object
    own = {probe: rows.filter(matching="own") for probe, rows in rows_of.items()}
    built = {n: schema.read(folder / "examples.parquet", EXAMPLES) for n, folder in places.items()}
    parts = chain(
        numbers.estimates(study, alphas, figures, known),
        scored.estimates(score_ranked(study, files, given.content_free, known, below)),
        baseline_numbers(study, below, others),
        forms.estimates(in_form, own, places, study.seed),
        constructs.sizes(_of_all(places, "sizes", SIZES), figures),
        constructs.estimates(built, alphas),
        marks.estimates([*params.experiments, *params.formed], [*given.answers, *given.formed]),
    )
    frame = results.frame("attributes", parts)
    provenance = run.provenance(seed=params.seed, options=params.options)
    schema.write(frame, schema.RESULTS, run.output.numbers, provenance)
    rows = judged.frame("attributes", rows_of.items())
    schema.write(rows, schema.JUDGED, run.output.judged, provenance)
    write_all(views.ALL, frame, run.output.texts)
    frame = results.read([run.output.numbers])
    equal = EQUAL.format("the label or an alias" if given.aliases else "the label")
    titles = {row["relation"]: row["note"] for path in given.names for row in read_table(path)}
    made_of = attributes_section.section(
        frame, list(files), figures, titles, attributes_section.worked_examples(study, files),
        notes=[equal, *aggregations.notes(frame, params.models, "sum")],
        thresholds=params.thresholds,
        steps=_of_all(places, "funnel", STEPS),
        sensitivity=_of_all(places, "sensitivity", SENSITIVITY),
    )  # fmt: skip
    section.write(made_of, run.output.section)


def score_ranked(
    study: studies.AttributesStudy,
    files: Mapping[Probe, str],
    content_free: Sequence[str],
    known: pl.DataFrame | None = None,
    below: baselines.Files = MappingProxyType({}),
) -> Iterator[Scored]:
    """Yield the triples of ranked candidates, right if the example's own object ranks first.
    `files`: the answers of each probe; `known`: `numbers.status`; `below`: answers of baselines."""
    stored = [] if known is None else known.filter("stored").select("item", "trained_on").rows()
    probes = [probe for probe in files if studies.is_ranked(probe.method)]
    for probe, beside in zip(probes, content_free, strict=True):
        benchmark = study.benchmarks[probe.benchmark]
        items = benchmark.items.filter(~pl.col("group").is_in(sorted(study.left_out)))
        items = items.with_columns(pl.col("answers").list.head(1))
        asks = Study(
            items, benchmark.candidates, benchmark.prompts, study.seed, aggregation="sum",
            trained_on=dict(stored),
        )  # fmt: skip
        scores = schema.read(files[probe], schema.SCORES)
        free = schema.read(beside, schema.CONTENT_FREE)
        low = read_random_init(below, probe)
        yield Scored(probe, scores, asks, free, files[probe], low)


def baseline_numbers(
    study: studies.AttributesStudy, below: baselines.Files, aliases: studies.Aliases | None = None
) -> Iterator[Number]:
    """Yield the metrics of each probe's baselines, on examples that were asked completely, under
    the first prompt. Further numbers are the right triples, which are always defined, and how many
    more the probe has under its own first prompt."""
    pairs = []
    for probe, alphas in study.answers.items():
        benchmark = study.benchmarks[probe.benchmark]
        for without, path in baselines.below(below, probe):
            low = studies.read_answers(probe, benchmark, path, aliases, may_be_empty=True)
            rows = studies.triples(probe, low, benchmark).filter(pooling="base")
            lacking = rows.filter(pl.col("alpha").is_null())["example"].unique().to_list()
            rows = rows.filter(~pl.col("example").is_in([*lacking, *study.left_out]))
            rows = rows.with_columns(pooling=pl.lit(""))
            if rows.is_empty():
                continue
            for row in study.measure(rows).iter_rows(named=True):
                yield numbers.number(row, setting={"without": without})
            if (part := numbers.at_one(rows, benchmark)).height:
                every = studies.triples(probe, alphas, benchmark).filter(pooling="base")
                of = Number(**probe.dimensions, setting={**numbers.EXACT, "k": 1})
                own = numbers.at_one(every, benchmark)
                pairs.append(baselines.Baseline(of, without, part, own))
    yield from baselines.estimates(pairs, [numbers.RIGHT], study.seed)


def _of_all(places: Mapping[str, Path], name: str, contract: Contract) -> pl.DataFrame:
    """Concatenate the frames of one name from every benchmark's folder."""
    return pl.concat(schema.read(p / f"{name}.parquet", contract) for p in places.values())

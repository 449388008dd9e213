from pathlib import Path

import polars as pl

from kgprobe import schema
from kgprobe.benchmarks.ontoprobe import modes
from kgprobe.job import job
from kgprobe.settings.probes import Ontoprobe
from kgprobe.settings.types import typed
from kgprobe.tables import baselines, forms, results, scored
from kgprobe.tables.answers import folders, probes_of
from kgprobe.tables.ontoprobe import choices, make, values
from kgprobe.tables.ontoprobe import section as ontoprobe
from kgprobe.tables.report import marks, section

with job(snakemake) as run:
    params, files, seed = run.params, run.input, run.params.seed
    chosen, switches = typed(Ontoprobe, params.settings), typed(modes.Switches, params.switches)
    places = folders(files.questions)
    given = values.published(Path(files.published[0]).parent)
    probes = probes_of(params.experiments, params.models, files.answers)
    paths = dict(zip(probes, files.answers, strict=True))
    answers = make.answers(paths, places, switches.ties, switches.recall)
    trained_on = (
        schema.read(files.trained_on, schema.TRAINED_ON) if files.get("trained_on") else None
    )
    reasoned = probes_of(params.reasoned, params.models, files.reasoned)
    pairs = list(zip(files.reasoned, files.premises, strict=True))
    ranked = [probe for probe in probes if probe.method == "cloze"]
    tops = {p: pl.read_parquet(path) for p, path in zip(ranked, files.top, strict=True)}
    sentences = [probe for probe in probes if make.is_scored(probe)]
    free = dict(zip(sentences, files.content_free, strict=True))
    below = baselines.files(params.baselines, files.get("baselines", []))
    rows_of = switches.tp_rows
    split = choices.shipped(files.shipped) if files.get("shipped") else None
    chosen_by = probes_of(params.chosen, params.models, files.chosen)
    picked = dict(zip(chosen_by, zip(files.choices, files.chosen, strict=True), strict=True))
    every = [*probes_of(params.formed, params.models, files.formed), *probes]
    in_forms = forms.pairs(every, [*files.formed, *files.answers])
    rows = [*params.experiments, *params.formed, *params.reasoned, *params.chosen]
    answer_files = [*files.answers, *files.formed, *files.reasoned, *files.chosen]
    winners = make.find_winners({**paths, **in_forms[0]}, tops, places)
    numbers = [
        *marks.estimates(rows, answer_files),
        *make.estimate_memorizing(answers, places, given, switches, seed, trained_on),
        *scored.estimates(make.scored_rows(paths, free, places, rows_of, seed, trained_on, below)),
        *make.baseline_numbers(answers, below, free, places, switches, seed),
        *forms.estimates(
            *in_forms,
            places,
            values.AGGREGATIONS[0],
            seed,
            by_relation=True,
            read=make.read_answers,
        ),
        *make.estimate_agreement(make.answers(paths, places, switches.ties), winners, rows_of),
        *make.estimate_reasoning(
            dict(zip(reasoned, pairs, strict=True)), answers, places, switches, seed
        ),
        *make.estimate_choices(picked, given, split, places, trained_on),
    ]
    table = results.frame("ontoprobe", numbers)
    provenance = run.provenance(switches=params.switches)
    schema.write(table, schema.RESULTS, run.output.results, provenance)
    judged = make.judged_answers(
        answers | make.answers(in_forms[0], places, switches.ties, switches.recall),
        winners, places, dict(zip(reasoned, pairs, strict=True)), picked, switches.ties,
    )  # fmt: skip
    schema.write(judged, schema.JUDGED, run.output.judged, provenance)
    frame = results.read([run.output.results])
    ontoprobe.write_texts(frame, Path(run.output.texts))
    page = ontoprobe.section(
        frame,
        make.examples(tops, places),
        {Path(f).parent.name: schema.read(f, schema.FUNNEL) for f in files.funnels},
        chosen.mode,
        switches,
        params.models,
    )
    section.write(page, run.output.section)

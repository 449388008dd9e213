from dataclasses import replace
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
    trained_on = (
        schema.read(files.trained_on, schema.TRAINED_ON) if files.get("trained_on") else None
    )
    study = make.OntoProbeStudy(places, switches, seed, given, trained_on)
    answers = study.answers(paths)
    reasoned = probes_of(params.reasoned, params.models, files.reasoned)
    ranks = dict(zip(reasoned, zip(files.reasoned, files.premises, strict=True), strict=True))
    ranked = [probe for probe in probes if probe.method == "cloze"]
    tops = {p: pl.read_parquet(path) for p, path in zip(ranked, files.top, strict=True)}
    sentences = [probe for probe in probes if make.is_scored(probe)]
    free = dict(zip(sentences, files.content_free, strict=True))
    below = baselines.files(params.baselines, files.get("baselines", []))
    split = choices.shipped(files.shipped[0]) if files.get("shipped") else None
    chosen_by = probes_of(params.chosen, params.models, files.chosen)
    picked = dict(zip(chosen_by, zip(files.choices, files.chosen, strict=True), strict=True))
    in_form = probes_of(params.formed, params.models, files.formed)
    formed = dict(zip(in_form, files.formed, strict=True))
    rows = [*params.experiments, *params.formed, *params.reasoned, *params.chosen]
    answer_files = [*files.answers, *files.formed, *files.reasoned, *files.chosen]
    winners = make.find_winners(study, {**paths, **formed}, tops)
    by_hits = replace(study, switches=replace(switches, recall="hit")).answers(paths)
    numbers = [
        *marks.estimates(rows, answer_files),
        *make.estimate_memorizing(study, answers),
        *scored.estimates(make.scored_rows(study, paths, free, below)),
        *make.baseline_numbers(study, answers, below, free),
        *forms.estimates(
            formed, make.judge_forms(study, formed, paths), places, seed, by_relation=True
        ),
        *make.estimate_agreement(study, by_hits, winners),
        *make.estimate_reasoning(study, ranks, answers),
        *make.estimate_choices(study, picked, split),
    ]
    table = results.frame("ontoprobe", numbers)
    provenance = run.provenance(switches=params.switches)
    schema.write(table, schema.RESULTS, run.output.results, provenance)
    judged = make.judged_answers(study, answers | study.answers(formed), winners, ranks, picked)
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

from pathlib import Path

from kgprobe import schema
from kgprobe.job import job
from kgprobe.tables import baselines
from kgprobe.tables.answers import folders, probes_of
from kgprobe.tables.bear import make, published, section
from kgprobe.tables.bear.views import views
from kgprobe.tables.report import marks
from kgprobe.tables.results import frame, read
from kgprobe.tables.views import write_all

with job(snakemake) as run:
    answered = probes_of(run.params.experiments, run.params.models, run.input.scores)
    places = folders(run.input.questions)
    beside = run.input.content_free
    below = baselines.files(run.params.random_init, run.input.get("random_init", []))
    shipped = [schema.read(path, schema.TRAINED_ON) for path in run.input.get("trained_on", [])]
    trained_on = shipped[0] if shipped else None
    studies = make.studies(
        answered, run.input.scores, places, run.params.seed, beside, below, trained_on
    )
    figures = published.read(Path(run.input.published[0]).parent)
    completeness = marks.estimates(run.params.experiments, run.input.scores)
    numbers = frame("bear", [*make.estimates(studies, figures), *completeness])
    provenance = run.provenance(seed=run.params.seed)
    schema.write(numbers, schema.RESULTS, run.output.results, provenance)
    schema.write(make.judged_answers(studies), schema.JUDGED, run.output.judged, provenance)
    shown = views(numbers, [probe.model for probe in answered]).values()
    write_all(shown, numbers, run.output.texts)
    scores = dict(zip(answered, run.input.scores, strict=True))
    section.write(run, read([run.output.results]), studies, scores)

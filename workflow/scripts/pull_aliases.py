from pathlib import Path

from kgprobe import schema
from kgprobe.job import job
from kgprobe.schema import atomic
from kgprobe.sources import access
from kgprobe.sources.sparql import pull

with job(snakemake) as run:
    subjects = schema.read(run.input.questions, schema.ITEMS)["subject_id"]
    answers = schema.read(run.input.candidates, schema.CANDIDATES)["id"]
    entities = sorted(set(subjects) | set(answers))
    opened = access.opened(
        run.params.source, run.params.settings, run.input.get("rdf", []), run.params.data
    )
    with opened as (endpoint, folder):
        snapshot = pull(
            run.input.query, endpoint, folder, {"entity": entities}, contact=run.params.contact
        )
    with atomic(run.output.aliases) as temporary:
        temporary.write_bytes(Path(snapshot.result).read_bytes())

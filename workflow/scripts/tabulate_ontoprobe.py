from pathlib import Path

import polars as pl

from kgprobe import schema
from kgprobe.benchmarks import ontoprobe_modes
from kgprobe.job import job
from kgprobe.tables import (
    chapter,
    marks,
    ontoprobe_gather,
    ontoprobe_report,
    ontoprobe_values,
)
from kgprobe.tables import ontoprobe_modes as side_by_side
from kgprobe.tables.table import write_tsv

with job(snakemake) as run:
    chosen, switches = run.params.settings, run.params.switches
    folders = {Path(path).parent.name: Path(path).parent for path in run.input.questions}
    asked = (run.params.experiments, run.params.models, run.input.answers, folders)
    (found,) = ontoprobe_gather.answered(*asked, switches)
    ties = ontoprobe_values.TIES
    every = ontoprobe_gather.answered(*asked, {**switches, "recall": "hit"}, ties)
    tied = dict(zip(ties, every, strict=True))
    taught = run.input.get("taught")
    made = ontoprobe_gather.tables(
        found,
        folders,
        ontoprobe_values.published(Path(run.input.published[0]).parent),
        switches,
        run.params.seed,
        schema.read(taught, schema.TAUGHT) if taught else None,
        tied,
    )
    shown = marks.names(
        [*run.params.experiments, *run.params.reasoned], [*run.input.answers, *run.input.reasoned]
    )
    pairs = zip(run.params.reasoned, run.input.reasoned, run.input.premises, strict=True)
    thought = ontoprobe_gather.reasoning(
        {(shown[row["model"]], row["benchmark"]): (a, b) for row, a, b in pairs},
        found,
        folders,
        switches,
    )
    if thought is not None:
        made["ontoprobe_reasoning"] = thought
    elif run.params.reasoned:
        raise ValueError(
            "no premise of reasoning can be classified: ontoprobe.soft needs a manual scheme and a "
            "masked or seq2seq model, or soft prompts with loss bce, masks multi and pooling mean"
        )
    others = []
    if run.input.beside:
        beside = dict(zip(chosen["beside"], map(Path, run.input.beside), strict=True))
        made["ontoprobe_runs"], others = side_by_side.runs(made["ontoprobe_memorising"], beside)
    for name, frame in made.items():
        path = Path(run.output.tables) / f"{name}.parquet"
        schema.write(frame, schema.TABLE, path, run.provenance(switches=switches))
        write_tsv(frame, path.with_suffix(".tsv"))
    ranked = [row for row in run.params.experiments if row["method"] == "cloze"]
    top = {
        (shown[row["model"]], row["benchmark"]): pl.read_parquet(path)
        for row, path in zip(ranked, run.input.top, strict=True)
    }
    page = ontoprobe_report.chapter(
        made,
        ontoprobe_gather.examples(top, folders),
        {Path(f).parent.name: schema.read(f, schema.FUNNEL) for f in run.input.funnels},
        ontoprobe_modes.changed(switches),
        chosen["mode"],
        side_by_side.points(switches),
        switches["select"],
        switches["average"],
        others,
    )
    chapter.write(page, run.output.chapter)

"""Trained baselines: linear probe, fine-tuning, relation extractor."""

from dataclasses import replace
from typing import Any

import polars as pl

from kgprobe import schema
from kgprobe.job import progress
from kgprobe.probes.baselines import classified, relation_lstm
from kgprobe.probes.jobs.autoprompt import tasks
from kgprobe.probes.jobs.autoprompt.tasks import CLASSIFICATION, ProbeTask, ProbeTaskError
from kgprobe.probes.jobs.stage import Answers, Part
from kgprobe.probes.models.load import Loaded

OUTPUT = {"outcomes": schema.OUTCOMES}
#: prompt of an experiment -> its tasks
TRAINED = {
    "linear_probe": (CLASSIFICATION,),
    "finetuned": (CLASSIFICATION,),
    "relation_lstm": ("relation_extraction",),
}


def answers(part: Part) -> Answers:
    """Return OUTCOMES of dev and test.

    Raises ProbeTaskError for a task that the baseline does not support.
    """
    prompt, seed, task = part.prompt, part.settings["seed"], tasks.of_part(part)
    if task.kind not in TRAINED[prompt]:
        raise ProbeTaskError(
            f"{task.name}: prompt {prompt!r} is for {' and '.join(TRAINED[prompt])}, "
            f"not for {task.kind}"
        )
    if prompt == "relation_lstm":  # no language model
        bar = progress(total=None, desc="relation extractor", unit="step")
        settings = relation_lstm.RelationLstmSettings(seed=seed)
        trained = relation_lstm.fit(task.examples, settings, bar.update)
        bar.close()
        frame = relation_lstm.answer(trained, task.examples, ("dev", "test"))
        return {"outcomes": frame}, {"trained": trained.counts}
    loaded = part.load(part.spec)
    results = {group: classifier(prompt, loaded, task, group, seed) for group in task.groups}
    frame = pl.concat(outcomes for outcomes, _ in results.values())
    records = {group: record for group, (_, record) in results.items()}
    return {"outcomes": frame}, {**loaded.record, "trained": records}


def classifier(
    prompt: str, loaded: Loaded, task: ProbeTask, group: str, seed: int
) -> tuple[pl.DataFrame, dict[str, Any]]:
    """Train a linear probe or fine-tune a model on one group (a draw of a balanced set, or all)."""
    rows = task.of(group)
    if prompt == "linear_probe":
        bar = progress(total=rows.height, desc="linear probe", unit="example")
        result = classified.linear_probe(
            loaded, rows, task.vocabulary, task.fields,
            classified.LinearProbeSettings(seed=seed), done=bar.update,
        )  # fmt: skip
    else:
        chosen = replace(classified.FULL, seed=seed)
        count = rows.filter(pl.col("split") == "train").height
        bar = progress(total=classified.steps(count, chosen), desc="fine-tuning", unit="step")
        result = classified.finetune(
            loaded, rows, task.vocabulary, task.fields, chosen, progress=bar.update
        )
    bar.close()
    return result

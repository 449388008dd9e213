"""Sweeps: few training examples (Figure 2), label tokens and trigger length (Figure 3).

Every point is a separate search (or fine-tuning) and is stored as soon as it is finished, so that a
stop loses only the point in progress.
"""

import itertools
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl

from kgprobe.job import log, progress
from kgprobe.metrics import prompts as metrics
from kgprobe.probes.baselines import classified
from kgprobe.probes.jobs.autoprompt import tasks
from kgprobe.probes.jobs.autoprompt.search import digest, label_sets, pairs, settings_of
from kgprobe.probes.jobs.autoprompt.tasks import ProbeTask
from kgprobe.probes.models.load import Loaded
from kgprobe.probes.models.predict import Predictor
from kgprobe.probes.prompts.search.search import search
from kgprobe.sampling import hash_key
from kgprobe.schema import SWEEPS, atomic
from kgprobe.templates import Template

Point = dict[str, Any]


def low_data(
    loaded: Loaded, task: ProbeTask, prompt: str, plan: Mapping[str, Any], mode: str, shards: Path,
    seed: int = 0,
) -> pl.DataFrame:  # fmt: skip
    """Return SWEEPS of Figure 2: dev accuracy by number of training examples, several draws each.

    `plan`: section of the config with sizes, draws and selection. Selection `within`: half of the
    examples select the prompt; `full`: the whole dev set does, and also gives the score, which is
    optimistic. `prompt`: searched or finetuned.
    """
    k = settings_of(loaded, task, plan, mode).candidates
    points = [{
        "method": prompt, "size": size, "draw": draw, "k": k,
        "label_tokens": plan["labels"]["tokens"], "triggers": plan["triggers"]}
        for size in plan["sizes"]
        for draw in range(plan["draws"])
    ]  # fmt: skip

    def measure(point: Point, state: Path) -> tuple[float, int]:
        part = subset(task, point["size"], point["draw"], seed)
        if prompt == "finetuned":
            return _finetune(loaded, part, point["draw"] + seed)
        chosen = part if plan["selection"] == "full" else halve(part)
        return _search(loaded, part, chosen, plan, mode, state)

    return _sweep(points, measure, shards / digest(loaded, task, plan, mode, prompt, seed))


def grid(
    loaded: Loaded, task: ProbeTask, plan: Mapping[str, Any], mode: str, shards: Path
) -> pl.DataFrame:
    """Return SWEEPS of Figure 3: dev accuracy by k, label tokens and trigger length, on all
    data."""
    size = task.of(task.groups[0], "train").height
    points = [
        {"method": "searched", "size": size, "draw": 0, "k": k, "label_tokens": labels,
         "triggers": triggers}
        for k, labels, triggers in itertools.product(
            plan["candidates"], plan["label_tokens"], plan["triggers"]
        )
    ]  # fmt: skip

    def measure(point: Point, state: Path) -> tuple[float, int]:
        changed = {
            **plan,
            "triggers": point["triggers"],
            "labels": {**plan["labels"], "tokens": point["label_tokens"]},
            "settings": {**plan["settings"], "candidates": point["k"]},
        }
        return _search(loaded, task, task, changed, mode, state)

    return _sweep(points, measure, shards / digest(loaded, task, plan, mode))


def subset(task: ProbeTask, size: int, draw: int, seed: int) -> ProbeTask:
    """Draw `size` training examples, at least two (or one) per class; keep the whole dev set."""
    rows = list(task.of(task.groups[0], "train").iter_rows(named=True))
    if size > len(rows):
        raise ValueError(f"{task.name}: {size} training examples asked for, there are {len(rows)}")
    order = sorted(rows, key=lambda r: hash_key(seed, "low data", str(draw), r["example"]))
    wanted = 2 if size >= 2 * len(task.vocabulary) else 1
    kept = [
        row
        for label in task.vocabulary
        for row in [r for r in order if r["label"] == label][:wanted]
    ]
    names = {row["example"] for row in kept}
    kept += [row for row in order if row["example"] not in names][: size - len(kept)]
    train = pl.DataFrame(kept, schema=task.examples.schema)
    return replace(task, examples=pl.concat([train, task.of(task.groups[0], "dev")]))


def halve(task: ProbeTask) -> ProbeTask:
    """Split the training examples, alternating in the order of classes: one half becomes the dev
    set, except for the only example of a class."""
    rows = task.of(task.groups[0], "train").sort("label", "example")
    is_train = (pl.int_range(pl.len()) % 2 == 0) | (pl.len().over("label") == 1)
    split = pl.when(is_train).then(pl.lit("train")).otherwise(pl.lit("dev"))
    return replace(task, examples=rows.with_columns(split.alias("split")))


def _search(
    loaded: Loaded,
    task: ProbeTask,
    chosen: ProbeTask,
    plan: Mapping[str, Any],
    mode: str,
    state: Path,
) -> tuple[float, int]:
    """Return the dev accuracy on `task` of a prompt that is searched and selected on `chosen`."""
    settings = settings_of(loaded, task, plan, mode)
    size = chosen.of(chosen.groups[0], "train").height
    settings = replace(settings, batch=max(1, min(settings.batch, size)))
    template = Template.parse(task.search_template(loaded, plan["triggers"]), loaded.spec.kind)
    group = task.groups[0]
    predictor = Predictor(loaded)
    labels = label_sets(predictor, template, chosen, group, settings, plan, True)
    train, dev = (pairs(chosen, group, split) for split in ("train", "dev"))
    file = search(loaded, template, train, dev, settings, state, labels, name=task.name)
    rows = task.of(group, "dev")
    outcomes, _ = tasks.outcomes(
        predictor, "searched", {"": tasks.of_file(file)}, rows, task.vocabulary
    )
    return _accuracy(task, outcomes)


def _finetune(loaded: Loaded, task: ProbeTask, seed: int) -> tuple[float, int]:
    """Return the dev accuracy after fine-tuning with the paper's schedule for few examples."""
    settings = replace(classified.LOW, seed=seed)
    # fine-tuning requires a test set, which is not evaluated here
    test = task.of(task.groups[0], "dev").head(1).with_columns(pl.lit("test").alias("split"))
    examples = pl.concat([task.examples, test])
    outcomes, _ = classified.finetune(loaded, examples, task.vocabulary, task.fields, settings)
    return _accuracy(task, outcomes.filter(pl.col("split") == "dev"))


def _accuracy(task: ProbeTask, outcomes: pl.DataFrame) -> tuple[float, int]:
    joined = metrics.join_outcomes(task.examples, outcomes, "dev")
    values = metrics.rank_outcomes(joined)["p1"].to_numpy()
    return float(values.mean()), len(values)


def _sweep(
    points: Sequence[Point], measure: Callable[[Point, Path], tuple[float, int]], shards: Path
) -> pl.DataFrame:
    """Measure every point that is not yet stored in `shards`."""
    shards.mkdir(parents=True, exist_ok=True)
    bar = progress(total=len(points), desc="sweep", unit="point")
    rows = []
    for point in points:
        name = "_".join(str(point[key]) for key in SWEEPS.key)
        kept = shards / f"{name}.json"
        if not kept.is_file():
            state = shards / f"{name}.state.json"
            value, n = measure(point, state)
            log.info("%s: %.4f of %d", name, value, n)
            with atomic(kept) as temporary:
                temporary.write_text(json.dumps({**point, "value": value, "n": n}, sort_keys=True))
            state.unlink(missing_ok=True)
        rows.append(json.loads(kept.read_text(encoding="utf-8")))
        bar.update(1)
    bar.close()
    return pl.DataFrame(rows, schema=dict(SWEEPS.columns))

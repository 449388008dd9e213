"""Soft prompts of the memorizing tasks: training, and ranks of the held-out rows (frames).

Rows are checked before a model's weights are loaded.
"""

import itertools
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import torch

from kgprobe.benchmarks.ontoprobe.modes import Switches
from kgprobe.job import progress
from kgprobe.probes.jobs.frames import Prepared, check_windows, prepared
from kgprobe.probes.models.head import precise
from kgprobe.probes.models.load import Load, Loaded, ModelSpec, load_model
from kgprobe.probes.prompts.trained import soft
from kgprobe.probes.scoring.cloze.gradient import LEGAL
from kgprobe.probes.scoring.cloze.vectors import candidate_tokens, gold_ranks, prompts
from kgprobe.probes.text.mask_slots import ClozePrompt, question
from kgprobe.schema import SOFT_CURVES, SOFT_RANKS, cast_columns
from kgprobe.settings.probes import Soft
from kgprobe.templates import fill

#: Initial words for `soft_init: words`, by task (released scripts).
WORDS = {
    "TP": "is a particular",
    "SCO": "is a particular",
    "SPO": "implies the property",
    "DM": "'s domain is",
    "RG": "'s range is",
}
#: Tasks whose subject is a property label, used unchanged; the subjects of others start a sentence.
AS_WRITTEN = ("DM", "RG")
TOKENS = 3
#: Maximum prompt lengths of the released code, in tokens, by role (`max_length: padded`). It cuts
#: longer ones; here they are rejected, and none is padded: that costs time and changes no score.
PADDED = {"train": 64, "dev": 64, "test": 512}


def check_tasks(
    ready: Prepared, switches: Switches, tokens: Mapping[str, int], roles: Sequence[str]
) -> None:
    """Raise one ValueError that names every task whose rows of `roles` cannot be used.

    Causes: a role without rows, a row in two splits, a prompt that is too long. `tokens`: number of
    vectors in each task's template.
    """
    problems = []
    for task, count in tokens.items():
        rows = ready.items.filter(pl.col("relation") == task)
        try:
            check_parts(rows, task)
            for role in roles:
                prompts = questions(rows, count, role)
                if not prompts:
                    raise ValueError(f"no {role} rows; the split is larger than the data")
                most = PADDED[role] if switches.max_length == "padded" else None
                space = switches.candidate_space
                check_windows(ready.light, {task: prompts}, ready.options, space, most)
        except ValueError as error:
            problems.append(f"{task}: {error}")
    if problems:
        raise ValueError(
            f"{ready.light.spec.model}: tasks that cannot be asked\n" + "\n".join(problems)
        )


def questions(items: pl.DataFrame, tokens: int, role: str | None = None) -> list[ClozePrompt]:
    """Build the items in the soft template, in file order."""
    rows = items if role is None else items.filter(pl.col("role") == role)
    columns = ("item", "relation", "subject", "meta", "candidates", "answers")
    prompts = []
    for item, task, subject, meta, name, golds in (
        rows.sort("relation", "row", "item").select(columns).rows()
    ):
        is_label = task in AS_WRITTEN
        who = json.loads(meta)["soft_subject"] if is_label else subject[:1].upper() + subject[1:]
        prompts.append(question(item, 0, soft.template(tokens), who, name, tuple(golds), False))
    return prompts


def check_parts(items: pl.DataFrame, task: str) -> None:
    """Raise ValueError for a row in training (or dev) and test data (same subject and golds)."""
    golds = pl.col("answers").cast(pl.List(pl.String)).list.join(",")
    keyed = items.with_columns(
        row_key=pl.concat_str("subject", "subject_id", golds, separator="\n")
    )
    trained = keyed.filter(pl.col("role") != "test")["row_key"].to_list()
    both = keyed.filter((pl.col("role") == "test") & pl.col("row_key").is_in(trained))
    if both.height:
        item, subject = both.select("item", "subject").row(0)
        raise ValueError(
            f"{both.height} rows of the test split of {task} are also in train or dev, first "
            f"{item} ({subject!r}); remove them from one split"
        )


def recipes(plan: Soft, kind: str, switches: Switches) -> list[soft.SoftPromptRecipe]:
    """Return every recipe of the plan that is valid for this kind of model: the product of seeds,
    losses, masks and poolings; `words` depend on the task and are not set."""
    result = [
        soft.SoftPromptRecipe(
            tokens=TOKENS,
            init=switches.soft_init,
            epochs=plan.epochs,
            batch=plan.batch,
            warmup=int(switches.warmup),
            loss=loss,
            nll_gold=switches.nll_gold,
            dev_scores=switches.dev_scores,
            dev_metric=switches.dev_metric,
            masks=masks,
            pooling=pooling,
            seed=switches.first_seed + seed,
        )
        for loss, masks, pooling, seed in itertools.product(
            plan.losses, plan.masks, plan.poolings, range(plan.seeds)
        )
        if (masks, pooling) in LEGAL[kind]
    ]
    if not result:
        legal = ", ".join("/".join(pair) for pair in sorted(LEGAL[kind]))
        raise ValueError(f"ontoprobe.soft: nothing to train for a {kind} model; valid: {legal}")
    return result


def file_name(task: str, recipe: soft.SoftPromptRecipe) -> str:
    """Return the file name of a prompt in the folder of its model."""
    parts = (task, recipe.masks, recipe.pooling, recipe.loss, str(recipe.seed))
    return "-".join(parts) + ".safetensors"


def train(
    spec: ModelSpec,
    items: pl.DataFrame,
    candidates: pl.DataFrame,
    switches: Switches,
    plan: Soft,
    folder: Path,
    load: Load = load_model,
    unfinished: Path | None = None,
) -> dict[str, Any]:
    """Train and save every prompt of every task; return the record.

    Errors in the rows of any task are raised before the model is loaded. If the training of a task
    fails, the others are still trained: one ValueError at the end lists the failures. `unfinished`
    stores prompts until all are trained, for the next run with the same inputs to resume.
    """
    known = prepared(spec, items, candidates, switches.unknown_candidates)
    chosen, options = recipes(plan, spec.kind, switches), known.options
    tasks = items["relation"].unique().sort().to_list()
    tokens = dict.fromkeys(tasks, TOKENS)
    if switches.soft_init == "words":
        coded = [known.light.tokenizer(WORDS[t], add_special_tokens=False) for t in tasks]
        tokens = {t: len(c["input_ids"]) for t, c in zip(tasks, coded, strict=True)}
    check_tasks(known, switches, tokens, ("train", "dev"))
    loaded = load(spec)
    total = plan.epochs * len(chosen) * len(tasks)
    bar = progress(total=total, desc=spec.model, unit="epoch")
    folder.mkdir(parents=True, exist_ok=True)
    problems, fed = [], 0
    for task in tasks:
        try:
            part = known.items.filter(pl.col("relation") == task)
            for recipe in chosen:
                name = file_name(task, recipe)
                if unfinished and (unfinished / name).is_file():
                    prompt = soft.load(unfinished / name, loaded)
                    bar.update(plan.epochs)
                else:
                    prompt = train_one(loaded, part, options, task, recipe, switches, bar.update)
                for place in filter(None, (unfinished, folder)):
                    soft.save(prompt, loaded, place / name)
                fed += prompt.record["positions_fed"]
        except ValueError as error:
            problems.append(f"{task}: {error}")
    bar.close()
    if problems:
        raise ValueError("soft prompts were not trained for all tasks\n" + "\n".join(problems))
    return {**loaded.record, **known.record, "positions_fed": fed, "switches": asdict(switches)}


def train_one(
    loaded: Loaded,
    items: pl.DataFrame,
    options: Mapping[str, Sequence[str]],
    task: str,
    recipe: soft.SoftPromptRecipe,
    switches: Switches,
    progress: Callable[[int], object],
) -> soft.SoftPrompt:
    """Train the soft prompt of one task on rows of role train, selected on those of role dev."""
    if recipe.init == "words":
        recipe = replace(recipe, words=WORDS[task])
    start, space = soft.initial(loaded, recipe), switches.candidate_space
    by_role = {role: questions(items, len(start), role) for role in ("train", "dev")}
    vectors, record = fit(loaded, by_role, options, space, start, recipe, progress=progress)
    text = fill(soft.template(0), "{subject}", "").text
    return soft.SoftPrompt(
        vectors.cpu().numpy(),
        {**record, "task": task, "candidate_space": space, "template": text},
    )


def fit(
    loaded: Loaded,
    by_role: Mapping[str, Sequence[ClozePrompt]],
    options: Mapping[str, Sequence[str]],
    space: str,
    start: torch.Tensor,
    recipe: soft.SoftPromptRecipe,
    *,
    named: str = "{} item {}",
    fixed: torch.Tensor | None = None,
    progress: Callable[[int], object] = lambda epochs: None,
) -> tuple[torch.Tensor, dict[str, Any]]:
    """Run `soft.fit` on the questions of roles train and dev; `named` formats role and item for
    messages."""
    name = by_role["train"][0].candidates
    ids = candidate_tokens(loaded, options[name], by_role["train"], space, name)
    train, dev = (
        soft.PromptRows(
            prompts(loaded, by_role[role], space),
            [q.golds for q in by_role[role]],
            [named.format(role, q.item) for q in by_role[role]],
        )
        for role in ("train", "dev")
    )
    return soft.fit(loaded, train, dev, ids, start, recipe, fixed, progress)


def rank(
    spec: ModelSpec,
    items: pl.DataFrame,
    candidates: pl.DataFrame,
    folder: Path,
    switches: Switches,
    rows: int | None = None,
    load: Load = load_model,
) -> tuple[pl.DataFrame, pl.DataFrame, dict[str, Any]]:
    """Return (SOFT_RANKS of the dev and test rows, SOFT_CURVES, record) of all prompts in a folder.

    `rows` limits the test rows of every task. Files for another model and prompts that are too
    long are rejected before the model is loaded.
    """
    known = prepared(spec, items, candidates, switches.unknown_candidates)
    prompts = read_prompts(folder, known)
    tokens = dict(sorted((str(p.record["task"]), len(p.vectors)) for p in prompts))
    check_tasks(known, switches, tokens, ("dev", "test"))
    loaded, options = load(spec), known.options
    held = known.items.filter(pl.col("role") != "train")
    place = pl.cum_count("item").over("relation", "role")
    held = held.filter((pl.col("role") == "dev") | (place <= (rows or held.height)))
    sizes = dict(held["relation"].value_counts().rows())
    total = sum(sizes.get(str(p.record["task"]), 0) for p in prompts)
    bar = progress(total=total, desc=spec.model, unit="prompt")
    ranks, curves = [], []
    for prompt in prompts:
        recipe, task = prompt.record["recipe"], prompt.record["task"]
        subset = held.filter(pl.col("relation") == task)
        queries = questions(subset, len(prompt.vectors))
        ranked = gold_ranks(
            loaded,
            queries,
            options,
            tensor(loaded, prompt.vectors),
            configuration=(recipe["masks"], recipe["pooling"]),
            space=switches.candidate_space,
            progress=bar.update,
        )
        key = {name: recipe[name] for name in ("masks", "pooling", "loss", "seed")}
        columns = {k: pl.lit(v) for k, v in key.items()}
        ranks.append(frame_ranks(ranked, queries).with_columns(template=pl.lit(0), **columns))
        curves += [
            {"task": task, **key, "epoch": epoch, "training": float(loss), "dev": float(dev),
             "kept": epoch == prompt.record["epoch"]}
            for epoch, (loss, dev) in enumerate(prompt.record["curve"])
        ]  # fmt: skip
    bar.close()
    return (
        cast_columns(known.placed(pl.concat(ranks)), SOFT_RANKS),
        cast_columns(pl.DataFrame(curves), SOFT_CURVES),
        {**loaded.record, **known.record, "switches": asdict(switches)},
    )


def frame_ranks(ranks: Mapping[str, Any], questions: Sequence[ClozePrompt]) -> pl.DataFrame:
    """Convert `gold_ranks` to a frame with the items of their questions."""
    items = [questions[q].item for q in ranks["question"].tolist()]
    return pl.DataFrame({"item": items, **ranks}).drop("question")


def read_prompts(folder: Path, known: Prepared) -> list[soft.SoftPrompt]:
    """Read the prompt files of a folder; raise one PromptError for all of another model."""
    paths = sorted(folder.glob("*.safetensors"))
    if not paths:
        raise soft.PromptError(f"{folder}: no soft prompts; the rule prompts_<model> makes them")
    prompts, problems = [], []
    for path in paths:
        try:
            prompts.append(soft.load(path, known.light))
        except soft.PromptError as error:
            problems.append(str(error))
    if problems:
        raise soft.PromptError("\n".join(problems))
    return prompts


def tensor(loaded: Loaded, vectors: Any) -> torch.Tensor:
    """Convert vectors to the model's device, in the precision that they are trained in."""
    weight = loaded.model.get_input_embeddings().weight
    dtype = precise(weight[:0]).dtype
    return torch.from_numpy(np.asarray(vectors)).to(device=weight.device, dtype=dtype)

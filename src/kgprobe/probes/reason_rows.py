"""Reasoning items as cases, and what must hold before a model's weights are read for them."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import polars as pl

from kgprobe.probes.models.load import Loaded
from kgprobe.probes.prompts import soft_files
from kgprobe.probes.prompts.soft import Recipe, SoftPrompt
from kgprobe.probes.scoring import reasoning
from kgprobe.probes.scoring.reasoning import Case, Layout, Wording
from kgprobe.probes.soft_memory import Plan, file_name
from kgprobe.probes.soft_rows import AS_WRITTEN, Prepared
from kgprobe.probes.spelling import Kept, check_windows

#: where a premise's own concept is no candidate that the model can spell
NO_GOLD = -1


def cases(
    items: pl.DataFrame, rows: int | None = None, kept: Mapping[str, Kept] | None = None
) -> dict[str, list[Case]]:
    """The cases of every rule in file order; of the test part at most `rows`.

    `kept`: the candidates that the model can spell; a premise whose own concept is not among them
    has the gold NO_GOLD.
    """
    found: dict[str, list[Case]] = {}
    columns = ("item", "relation", "subject", "role", "row", "candidates", "answers", "meta")
    for item, rule, subject, role, row, name, golds, text in (
        items.sort("relation", "row", "item").select(columns).rows()
    ):
        meta = json.loads(text)
        test = meta["p2_test"]
        found.setdefault(rule, []).append(
            Case(
                item,
                rule,
                subject,
                role,
                row,
                name,
                tuple(golds),
                meta["p1"],
                meta["p2"],
                meta["h"],
                test["text"],
                test["candidates"],
                test["gold"],
                {part: _spelt(soft_) for part, soft_ in meta["soft"].items()},
                meta.get("twin", ""),
                bool(meta.get("missing", False)),
            )
        )
    if kept:
        new = {name: own.new for name, own in kept.items()}
        for rule, own in found.items():
            found[rule] = [
                replace(c, test_gold=new[c.test_set].get(c.test_gold, NO_GOLD)) for c in own
            ]
    for rule, own in found.items():
        tested = [c for c in own if c.role == "test"][:rows]
        found[rule] = [c for c in own if c.role != "test"] + tested
    return found


def recipe(plan: Plan, kind: str, switches: Mapping[str, str]) -> Recipe:
    """The recipe of the memorising runs whose templates reasoning uses: m/mean, BCE where trained.

    Raises ValueError where the plan has none at m/mean.
    """
    fitting = [r for r in plan.recipes(kind, switches) if (r.masks, r.pooling) == ("multi", "mean")]
    if not fitting:
        raise ValueError(
            "reasoning needs soft prompts at multi/mean; add them to ontoprobe.soft.masks and "
            "ontoprobe.soft.poolings, or leave the schemes with soft templates out"
        )
    return min(fitting, key=lambda r: (r.loss != "bce", r.seed))


def template(
    loaded: Loaded, folder: Path | None, task: str, plan: Plan, switches: Mapping[str, str]
) -> SoftPrompt:
    """The trained template of a task, for this model (with or without its weights)."""
    if folder is None:
        raise ValueError("schemes with soft templates need the folder of trained prompts")
    chosen = recipe(plan, loaded.spec.kind, switches)
    return soft_files.load(folder / file_name(task, chosen), loaded)


def check_cases(
    known: Prepared,
    asked: Mapping[str, Sequence[Case]],
    schemes: Sequence[str],
    folder: Path | None,
    plan: Plan,
    switches: Mapping[str, str],
    wording: Wording,
) -> None:
    """Raise one ValueError that names every rule that cannot be asked, before weights are read.

    That is: no rows of a part, a row that is trained on and tested, a prompt file that is missing
    or made for another model, a prompt with both premises that is too long.
    """
    problems = []
    for rule, own in asked.items():
        try:
            for scheme in schemes:
                _check(known, own, scheme, folder, plan, switches, wording)
        except ValueError as error:
            problems.append(f"{rule}: {error}")
    if problems:
        raise ValueError(
            f"{known.light.spec.model}: rules that cannot be asked\n" + "\n".join(problems)
        )


def _check(
    known: Prepared,
    own: Sequence[Case],
    scheme: str,
    folder: Path | None,
    plan: Plan,
    switches: Mapping[str, str],
    wording: Wording,
) -> None:
    parts = {role: [c for c in own if c.role == role] for role in ("train", "dev", "test")}
    if not parts["test"]:
        raise ValueError(f"no test rows under {scheme}; the split is larger than the data")
    if scheme.endswith("+soft") and switches["conj_train"] == "memorising":
        reasoning.tested(own, scheme)
        if not parts["train"] or not parts["dev"]:
            raise ValueError("no train or dev rows for the conjunction: the split is too large")
    counts = {}
    if scheme.startswith("soft"):
        for task in sorted({t for c in own for t in reasoning.tasks_of(c)}):
            counts[task] = len(template(known.light, folder, task, plan, switches).vectors)
    slots: Layout = reasoning.layout(counts)
    longest = [reasoning.prompt(c, (True, True), scheme, 0, slots, wording) for c in own]
    check_windows(known.light, {scheme: longest}, known.options, switches["candidate_space"])


def _spelt(parts: Sequence[str] | None) -> Sequence[str] | None:
    """A soft form whose subject begins the sentence, as the memorising task spells it."""
    if not parts or parts[0] in AS_WRITTEN or parts[1].startswith("["):
        return parts
    return [parts[0], parts[1][:1].upper() + parts[1][1:], *parts[2:]]

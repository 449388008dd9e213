"""Reasoning items as cases, and what must hold before a model's weights are read for them."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from kgprobe.benchmarks.ontoprobe.modes import Switches
from kgprobe.probes.jobs.ontoprobe import entailment
from kgprobe.probes.jobs.ontoprobe.entailment import PromptOptions, RuleRow, SlotLayout, Test
from kgprobe.probes.jobs.ontoprobe.soft import TrainingPlan, file_name
from kgprobe.probes.jobs.ontoprobe.soft_rows import AS_WRITTEN, Prepared
from kgprobe.probes.models.load import Loaded
from kgprobe.probes.prompts.trained import soft
from kgprobe.probes.prompts.trained.soft import SoftPrompt, SoftPromptRecipe
from kgprobe.probes.text.spelling import SpelledOptions, check_windows

#: Rows of the test part that the released code trains the conjunctions on (`conj_train`).
TAKEN = 10


def cases(
    items: pl.DataFrame, rows: int | None = None, kept: Mapping[str, SpelledOptions] | None = None
) -> dict[str, list[RuleRow]]:
    """The cases of every rule in file order; of the test part at most `rows`.

    `kept`: the candidates that the model can spell; a premise whose own concept is not among them
    is asked without gold.
    """
    by_rule: dict[str, list[RuleRow]] = {}
    columns = ("item", "relation", "subject", "role", "row", "candidates", "answers", "meta")
    for item, rule, subject, role, row, name, golds, text in (
        items.sort("relation", "row", "item").select(columns).rows()
    ):
        meta = json.loads(text)
        by_rule.setdefault(rule, []).append(
            RuleRow(
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
                {kind: _test(test, kept) for kind, test in meta["p2_tests"].items()},
                {part: _spell(soft_) for part, soft_ in meta["soft"].items()},
                meta.get("twin", ""),
                bool(meta.get("missing", False)),
                bool(meta.get("soft_only", False)),
            )
        )
    for rule, group in by_rule.items():
        tested = [c for c in group if c.role == "test"][:rows]
        by_rule[rule] = [c for c in group if c.role != "test"] + tested
    return by_rule


def _test(test: Mapping[str, Any], kept: Mapping[str, SpelledOptions] | None) -> Test:
    name, golds = test["candidates"], test["golds"]
    if kept:
        new = kept[name].new
        golds = [new[gold] for gold in golds if gold in new]
    return Test(test["text"], _spell(test["soft"]), name, tuple(golds))


def prompt_options(switches: Switches, is_test: bool = False) -> PromptOptions:
    """The open points of the prompts; of the tests of P2 (`is_test`) under `premise_words`, too.

    The released prompts of some rules hold letters in place of pseudowords. Its tests of P2 hold
    new words in every rule.
    """
    slots = switches.pseudoword_slots
    if is_test and switches.premise_words == "random_tokens":
        slots = "all"
    return PromptOptions(slots, switches.premise_order, switches.soft_implies == "kept")


def recipe(
    plan: TrainingPlan, kind: str, switches: Switches, is_needed: bool = True
) -> SoftPromptRecipe:
    """The recipe of the memorizing runs whose templates reasoning uses: m/mean, BCE where trained.

    Where the plan has none at m/mean it is another one, or ValueError where that is needed.
    """
    recipes = plan.recipes(kind, switches)
    fitting = [r for r in recipes if (r.masks, r.pooling) == ("multi", "mean")]
    if is_needed and not fitting:
        raise ValueError(
            "reasoning needs soft prompts at multi/mean; add them to ontoprobe.soft.masks and "
            "ontoprobe.soft.poolings, or leave the schemes with soft templates out"
        )
    return min(fitting or recipes, key=lambda r: (r.loss != "bce", r.seed))


def template(
    loaded: Loaded, folder: Path | None, task: str, plan: TrainingPlan, switches: Switches
) -> SoftPrompt:
    """The trained template of a task, for this model (with or without its weights)."""
    if folder is None:
        raise ValueError("schemes with soft templates need the folder of trained prompts")
    chosen = recipe(plan, loaded.spec.kind, switches)
    return soft.load(folder / file_name(task, chosen), loaded)


def by_template(rows: Sequence[RuleRow], scheme: str) -> list[RuleRow]:
    """The cases that a scheme (or kind of template) tests: written ones leave out `soft_only`."""
    return [c for c in rows if not c.soft_only or scheme.startswith("soft")]


def check_cases(
    known: Prepared,
    by_rule: Mapping[str, Sequence[RuleRow]],
    whole: Mapping[str, Sequence[RuleRow]],
    schemes: Sequence[str],
    folder: Path | None,
    plan: TrainingPlan,
    switches: Switches,
    wording: PromptOptions,
) -> None:
    """Raise one ValueError that names every rule that cannot be asked, before weights are read.

    That is: no rows of a split, a row that is trained on and tested, a prompt file that is missing
    or made for another model, a prompt with both premises that is too long. `by_rule` may hold
    fewer test rows than `whole`.
    """
    problems = []
    for rule, rows in by_rule.items():
        trained = [c for c in whole[rule] if c.role == "test"][: 2 * TAKEN]
        try:
            for scheme in schemes:
                _check(known, rows, trained, scheme, folder, plan, switches, wording)
        except ValueError as error:
            problems.append(f"{rule}: {error}")
    if problems:
        raise ValueError(
            f"{known.light.spec.model}: rules that cannot be asked\n" + "\n".join(problems)
        )


def _check(
    known: Prepared,
    rows: Sequence[RuleRow],
    trained: Sequence[RuleRow],
    scheme: str,
    folder: Path | None,
    plan: TrainingPlan,
    switches: Switches,
    wording: PromptOptions,
) -> None:
    parts = {role: [c for c in rows if c.role == role] for role in ("train", "dev", "test")}
    if not parts["test"]:
        raise ValueError(f"no test rows under {scheme}; the split is larger than the data")
    subset = by_template(parts["test"], scheme)
    if scheme.endswith("+soft") and switches.conj_train == "test_rows":
        subset = [*subset, *trained]
    elif scheme.endswith("+soft"):
        entailment.select_test_cases(rows, scheme)
        subset = list(rows)
        if not parts["train"] or not parts["dev"]:
            raise ValueError("no train or dev rows for the conjunction: the split is too large")
    counts = {}
    if scheme.startswith("soft"):
        for task in sorted({t for c in rows for t in entailment.tasks_of(c)}):
            counts[task] = len(template(known.light, folder, task, plan, switches).vectors)
    slots: SlotLayout = entailment.layout(counts)
    longest = [entailment.prompt(c, (True, True), scheme, 0, slots, wording) for c in subset]
    check_windows(known.light, {scheme: longest}, known.options, switches.candidate_space)


def _spell(parts: Sequence[str] | None) -> Sequence[str] | None:
    """A soft form whose subject begins the sentence, as the memorizing task spells it."""
    if not parts or parts[0] in AS_WRITTEN or parts[1].startswith("["):
        return parts
    return [parts[0], parts[1][:1].upper() + parts[1][1:], *parts[2:]]

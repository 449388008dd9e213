"""Entailment prompts: premises included or omitted, as text or as trained vectors (sec. 3.2).

    manual + manual    P1 P2 Therefore, H .                  X, Y: pseudowords (slots)
    manual + soft      P1 <c1> P2 <c2> H .                   c: trained conjunction (slots)
    soft + ...         subject <s1> <s2> <s3> object .       replaces P1, P2, H if one exists

An omitted premise takes its conjunction with it: the token before H always stays. Rows are
checked before a model's weights are loaded.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from kgprobe.benchmarks.ontoprobe.modes import Switches
from kgprobe.probes.jobs.frames import Prepared
from kgprobe.probes.jobs.ontoprobe.soft import AS_WRITTEN, file_name, recipes
from kgprobe.probes.models.load import Loaded
from kgprobe.probes.prompts.trained.soft import SoftPrompt, SoftPromptRecipe
from kgprobe.probes.prompts.trained.soft import load as load_prompt
from kgprobe.probes.text.mask_slots import ClozePrompt
from kgprobe.probes.text.spelling import SpelledOptions, check_windows
from kgprobe.settings.probes import Soft
from kgprobe.templates import ANSWER, MASK_SLOT, SUBJECT, mark, marks, parse

THEREFORE = "Therefore, "
#: Number of test rows that the released code trains the conjunctions on (`conj_train`).
TAKEN = 10
#: (template, conjunction)
SCHEMES = tuple(f"{t}+{c}" for t in ("manual", "soft") for c in ("manual", "soft"))
#: Whether P1 and P2 are included. Explicit ones are; implicit and absent ones differ only by row.
FORMS = ((True, True), (True, False), (False, True), (False, False))
#: Rules whose premises contain both X and Y: only their released prompts contain pseudowords.
PATTERN_RULES = ("rdfs2", "rdfs3", "rdfs7")


@dataclass(frozen=True)
class Test:
    """Test whether a model knows P2: a text with [MASK], or (task, subject) for trained vectors."""

    __test__ = False  # not a pytest class

    text: str
    soft: Sequence[str] | None
    candidates: str
    golds: tuple[int, ...]


@dataclass(frozen=True)
class RuleRow:
    """One row of a rule. Texts contain [X], [Y] and, in `h`, [MASK].

    `soft` has for "p1" and "p2" (task, subject, text after the vectors), for "h" (task, subject),
    None without a soft form. `tests` maps the kind of template (manual, soft) to the test of
    whether the model knows P2. `soft_only`: the row is not used with manual templates.
    """

    item: str
    rule: str
    subject: str
    role: str
    row: int
    candidates: str
    golds: tuple[int, ...]
    p1: str
    p2: str
    h: str
    tests: Mapping[str, Test]
    soft: Mapping[str, Sequence[str] | None]
    twin: str = ""
    missing: bool = False
    soft_only: bool = False


DEFAULT = Switches()


@dataclass(frozen=True)
class SlotLayout:
    """The layout of slots: templates by task (first slot, count), conjunctions, pseudowords."""

    templates: Mapping[str, tuple[int, int]]
    conjunctions: int
    words: int


def layout(counts: Mapping[str, int]) -> SlotLayout:
    """Assign slots to templates of the given sizes, then the two conjunctions, then pseudowords.

    >>> layout({"TP": 3, "DM": 3}).words
    8
    """
    templates, start = {}, 0
    for task, count in counts.items():
        templates[task] = (start, count)
        start += count
    return SlotLayout(templates, start, start + 2)


def tasks_of(case: RuleRow) -> list[str]:
    """Return the memorizing tasks whose soft templates the case's prompts and its test use."""
    parts = [*case.soft.values(), case.tests["soft"].soft]
    return sorted({part[0] for part in parts if part})


def prompt(
    case: RuleRow,
    form: tuple[bool, bool],
    scheme: str,
    pair: int,
    slots: SlotLayout,
    switches: Switches = DEFAULT,
) -> ClozePrompt:
    """Build the question of a case: `form` selects the premises, `pair` the pseudowords."""
    template, conjunction = scheme.split("+")
    is_soft = template == "soft"
    texts = {name: _premise(case, name, is_soft, slots) for name in ("p1", "p2")}
    names = ["p1", "p2"] if switches.premise_order == "P1_P2" else ["p2", "p1"]
    is_written = dict(zip(("p1", "p2"), form, strict=True))
    written = [texts[name] for name in names if is_written[name]]
    hypothesis, soft = case.h, case.soft.get("h")
    if is_soft and soft:
        kept = "implies " if switches.soft_implies == "kept" and case.rule == "rdfs5" else ""
        hypothesis = f"{soft[1]} {kept}{marks(*slots.templates[soft[0]])} {MASK_SLOT} ."
    if conjunction == "manual":
        text = " ".join([*written, THEREFORE + hypothesis])
    else:
        first, second = marks(slots.conjunctions, 2).split()
        joined = f" {first} ".join(written)
        text = f"{joined} {second} {hypothesis}" if written else f"{second} {hypothesis}"
    return _question(text, case, pair, slots, switches, case.candidates, case.golds)


def premise_test(
    case: RuleRow, kind: str, pair: int, slots: SlotLayout, switches: Switches = DEFAULT
) -> ClozePrompt:
    """Build the question whether the model knows P2 with these words (template kind `kind`)."""
    test = case.tests[kind]
    text = test.text
    if kind == "soft" and test.soft:
        text = f"{test.soft[1]} {marks(*slots.templates[test.soft[0]])} {MASK_SLOT} ."
    return _question(text, case, pair, slots, switches, test.candidates, test.golds)


def select_test_cases(cases: Sequence[RuleRow], scheme: str) -> tuple[list[RuleRow], list[str]]:
    """Return (test cases, excluded items): with trained components no subject may be seen twice.

    Raises ValueError if a test row is one of the training rows.
    """
    test = [c for c in cases if c.role == "test"]
    if "soft" not in scheme:
        return test, []
    seen = {(c.rule, c.subject): c.item for c in cases if c.role in ("train", "dev")}
    kept = [c for c in test if not c.twin]
    for case in kept:
        other = seen.get((case.rule, case.subject))
        if other:
            raise ValueError(
                f"item {case.item} ({case.subject!r}): {other} is about the same subject and is "
                "trained on; leave one of them out of the split"
            )
    return kept, [c.item for c in test if c.twin]


def _premise(case: RuleRow, name: str, is_soft: bool, slots: SlotLayout) -> str:
    soft = case.soft.get(name)
    if is_soft and soft:
        task, subject, rest = soft
        return f"{subject} {marks(*slots.templates[task])} {rest}"
    return case.p1 if name == "p1" else case.p2


def _question(
    text: str,
    case: RuleRow,
    pair: int,
    slots: SlotLayout,
    switches: Switches,
    candidates: str,
    golds: tuple[int, ...],
) -> ClozePrompt:
    parsed = parse(text)
    if parsed.slots.count(MASK_SLOT) != 1:
        raise ValueError(f"item {case.item}: expected one {MASK_SLOT} in {text!r}")
    letters = switches.pseudoword_slots == "pattern_rules"
    if letters and case.rule not in PATTERN_RULES:
        values = {}
    else:
        first = slots.words + 2 * pair
        values = {SUBJECT: mark(first), ANSWER: mark(first + 1)}
    before, after = parsed.filled({**values, MASK_SLOT: ""}).around(MASK_SLOT)
    if letters and case.rule == "rdfs7":
        after = parsed.filled({SUBJECT: mark(first), MASK_SLOT: ""}).around(MASK_SLOT)[1]
    return ClozePrompt(case.item, 0, before, after, candidates, golds)


def cases(
    items: pl.DataFrame, rows: int | None = None, kept: Mapping[str, SpelledOptions] | None = None
) -> dict[str, list[RuleRow]]:
    """Return the cases of every rule in file order, with at most `rows` test cases.

    `kept`: the candidates that the model can represent; a premise whose own concept is not among
    them is tested without gold.
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


def recipe(plan: Soft, kind: str, switches: Switches, is_needed: bool = True) -> SoftPromptRecipe:
    """Return the recipe of the memorizing templates that reasoning uses: m/mean, BCE if trained.

    If the plan has none at m/mean, return another one, or raise ValueError if `is_needed`.
    """
    every = recipes(plan, kind, switches)
    fitting = [r for r in every if (r.masks, r.pooling) == ("multi", "mean")]
    if is_needed and not fitting:
        raise ValueError(
            "reasoning needs soft prompts at multi/mean; add them to ontoprobe.soft.masks and "
            "ontoprobe.soft.poolings, or leave the schemes with soft templates out"
        )
    return min(fitting or every, key=lambda r: (r.loss != "bce", r.seed))


def template(
    loaded: Loaded, folder: Path | None, task: str, plan: Soft, switches: Switches
) -> SoftPrompt:
    """Load the trained template of a task, for this model (with or without its weights)."""
    if folder is None:
        raise ValueError("schemes with soft templates need the folder of trained prompts")
    chosen = recipe(plan, loaded.spec.kind, switches)
    return load_prompt(folder / file_name(task, chosen), loaded)


def by_template(rows: Sequence[RuleRow], scheme: str) -> list[RuleRow]:
    """Return the cases that a scheme (or kind of template) tests: manual without `soft_only`."""
    return [c for c in rows if not c.soft_only or scheme.startswith("soft")]


def check_cases(
    known: Prepared,
    by_rule: Mapping[str, Sequence[RuleRow]],
    whole: Mapping[str, Sequence[RuleRow]],
    schemes: Sequence[str],
    folder: Path | None,
    plan: Soft,
    switches: Switches,
) -> None:
    """Raise one ValueError that names every rule that cannot be tested, before weights are loaded.

    Causes: a split without rows, a row in training and test data, a prompt file that is missing
    or for another model, a prompt with both premises that is too long. `by_rule` may have
    fewer test rows than `whole`.
    """

    def check(rows: Sequence[RuleRow], trained: Sequence[RuleRow], scheme: str) -> None:
        parts = {role: [c for c in rows if c.role == role] for role in ("train", "dev", "test")}
        if not parts["test"]:
            raise ValueError(f"no test rows under {scheme}; the split is larger than the data")
        subset = by_template(parts["test"], scheme)
        if scheme.endswith("+soft") and switches.conj_train == "test_rows":
            subset = [*subset, *trained]
        elif scheme.endswith("+soft"):
            select_test_cases(rows, scheme)
            subset = list(rows)
            if not parts["train"] or not parts["dev"]:
                raise ValueError("no train or dev rows for the conjunction: the split is too large")
        counts = {}
        if scheme.startswith("soft"):
            for task in sorted({t for c in rows for t in tasks_of(c)}):
                counts[task] = len(template(known.light, folder, task, plan, switches).vectors)
        slots = layout(counts)
        longest = [prompt(c, (True, True), scheme, 0, slots, switches) for c in subset]
        check_windows(known.light, {scheme: longest}, known.options, switches.candidate_space)

    problems = []
    for rule, rows in by_rule.items():
        trained = [c for c in whole[rule] if c.role == "test"][: 2 * TAKEN]
        try:
            for scheme in schemes:
                check(rows, trained, scheme)
        except ValueError as error:
            problems.append(f"{rule}: {error}")
    if problems:
        raise ValueError(
            f"{known.light.spec.model}: rules that cannot be asked\n" + "\n".join(problems)
        )


def _spell(parts: Sequence[str] | None) -> Sequence[str] | None:
    """Capitalize the subject of a soft form that starts a sentence, as in the memorizing task."""
    if not parts or parts[0] in AS_WRITTEN or parts[1].startswith("["):
        return parts
    return [parts[0], parts[1][:1].upper() + parts[1][1:], *parts[2:]]

"""Ranks of reasoning items: four schemes, four prompt forms, ten pairs of pseudowords (frames).

Explicit premises are included in the prompt; implicit and absent ones are not, and differ only by
row, so that the nine settings of the paper are filters on the four forms that are scored here.
Premises and conjunctions are text or trained vectors (Wu et al. 2023, section 3.2):

    manual + manual    P1 P2 Therefore, H .                  X, Y: pseudowords (slots)
    manual + soft      P1 <c1> P2 <c2> H .                   c: trained conjunction (slots)
    soft + ...         subject <s1> <s2> <s3> object .       replaces P1, P2, H if one exists

An omitted premise takes its conjunction with it: the token before H always stays. Rows are
checked before a model's weights are loaded.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
import torch

from kgprobe.benchmarks.ontoprobe.modes import Switches
from kgprobe.job import progress
from kgprobe.probes.jobs.frames import Prepared, SpelledOptions, check_windows, prepared
from kgprobe.probes.jobs.kept import content, frame_step, journal
from kgprobe.probes.jobs.kept import rows as digest_rows
from kgprobe.probes.jobs.ontoprobe.soft import (
    AS_WRITTEN,
    file_name,
    fit,
    frame_ranks,
    recipes,
    tensor,
)
from kgprobe.probes.models.load import Load, Loaded, ModelSpec, load_model
from kgprobe.probes.prompts.trained import soft
from kgprobe.probes.scoring.cloze.vectors import gold_ranks
from kgprobe.probes.text.mask_slots import ClozePrompt
from kgprobe.probes.text.vectors import Pseudowords, pseudowords, random_words
from kgprobe.schema import PREMISE_RANKS, REASON_RANKS, cast_columns
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
#: Fields of a row that ITEMS have in `meta`.
OF_META = ("p1", "p2", "h", "twin", "missing", "soft_only")


class Test(NamedTuple):
    """Test whether a model knows P2: a text with [MASK], or (task, subject) for trained vectors."""

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


class SlotLayout(NamedTuple):
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
    soft = case.soft if template == "soft" else {}
    premises = (
        _with_vectors(vectors, slots, vectors[2])
        if (vectors := soft.get(name))
        else getattr(case, name)
        for name in ("p1", "p2")
    )
    written = [text for text, is_given in zip(premises, form, strict=True) if is_given]
    if switches.premise_order != "P1_P2":
        written.reverse()
    hypothesis = case.h
    if vectors := soft.get("h"):
        is_kept = switches.soft_implies == "kept" and case.rule == "rdfs5"
        hypothesis = _with_vectors(vectors, slots, f"{MASK_SLOT} .", " implies" * is_kept)
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
        text = _with_vectors(test.soft, slots, f"{MASK_SLOT} .")
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


def _with_vectors(soft: Sequence[str], slots: SlotLayout, end: str, verb: str = "") -> str:
    return f"{soft[1]}{verb} {marks(*slots.templates[soft[0]])} {end}"


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
        case = RuleRow(
            item, rule, subject, role, row, name, tuple(golds),
            tests={kind: _test(test, kept) for kind, test in meta["p2_tests"].items()},
            soft={part: _spell(words) for part, words in meta["soft"].items()},
            **{key: meta[key] for key in OF_META if key in meta},
        )  # fmt: skip
        by_rule.setdefault(rule, []).append(case)
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


def recipe(
    plan: Soft, kind: str, switches: Switches, is_needed: bool = True
) -> soft.SoftPromptRecipe:
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


def templates(
    loaded: Loaded,
    folder: Path | None,
    rows: Sequence[RuleRow],
    scheme: str,
    plan: Soft,
    switches: Switches,
) -> dict[str, soft.SoftPrompt]:
    """Load the trained templates of the tasks that a rule needs under a scheme (or kind of
    template), for this model (with or without its weights)."""
    if not scheme.startswith("soft"):
        return {}
    if folder is None:
        raise ValueError("schemes with soft templates need the folder of trained prompts")
    chosen = recipe(plan, loaded.spec.kind, switches)
    parts = [part for case in rows for part in (*case.soft.values(), case.tests["soft"].soft)]
    tasks = sorted({part[0] for part in parts if part})
    return {task: soft.load(folder / file_name(task, chosen), loaded) for task in tasks}


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
        tested = [c for c in rows if c.role == "test"]
        if not tested:
            raise ValueError(f"no test rows under {scheme}; the split is larger than the data")
        subset = by_template(tested, scheme)
        if scheme.endswith("+soft") and switches.conj_train == "test_rows":
            subset += trained
        elif scheme.endswith("+soft"):
            select_test_cases(rows, scheme)
            subset = list(rows)
            if not {"train", "dev"} <= {c.role for c in rows}:
                raise ValueError("no train or dev rows for the conjunction: the split is too large")
        soft_prompts = templates(known.light, folder, rows, scheme, plan, switches)
        slots = layout({task: len(one.vectors) for task, one in soft_prompts.items()})
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


@dataclass
class ReasoningContext:
    """A model with all that its schemes share; `whole` are the cases with every test row."""

    loaded: Loaded
    options: Mapping[str, Sequence[str]]
    whole: dict[str, list[RuleRow]]
    words: Pseudowords
    switches: Switches
    plan: Soft
    folder: Path | None

    def ranks(
        self,
        rows: Sequence[RuleRow],
        ask: Callable[[RuleRow, int], ClozePrompt],
        vectors: torch.Tensor,
        words: Pseudowords,
        slots: SlotLayout,
    ) -> pl.DataFrame:
        """Rank golds at m/mean for the prompts by `ask` from every row and pair of words, which
        follow the other vectors; under `softmax_rows: all` they join the softmax."""
        pairs = np.repeat(np.arange(words.pairs), len(rows))
        questions = [ask(row, pair) for pair in range(words.pairs) for row in rows]
        ranked = gold_ranks(
            self.loaded,
            questions,
            dict(self.options),
            torch.cat([vectors, words.vectors]),
            space=self.switches.candidate_space,
            in_softmax=slots.words if self.switches.softmax_rows == "all" else None,
        )
        return frame_ranks(ranked, questions).with_columns(pair=pl.lit(pairs[ranked["question"]]))

    def scheme(self, rows: Sequence[RuleRow], scheme: str) -> tuple[pl.DataFrame, list[str]]:
        """Return REASON_RANKS columns of one rule and scheme, all forms with every pseudoword pair,
        and the items that are left out."""
        tested, left_out = by_template(rows, scheme), list[str]()
        if self.switches.conj_train == "test_rows":
            # as released nothing is excluded, even if trained on
            tested = [c for c in tested if c.role == "test"]
        else:
            tested, left_out = select_test_cases(tested, scheme)
        if not tested:
            raise ValueError(f"no test rows under {scheme}; the split is larger than the data")
        trained, slots = self._templates(rows, scheme)
        frames = []
        for form in FORMS:
            vectors = trained
            if scheme.endswith("+soft"):
                vectors = self._conjunction(rows, scheme, form, trained, slots)

            def ask(row: RuleRow, pair: int, form: tuple[bool, bool] = form) -> ClozePrompt:
                return prompt(row, form, scheme, pair, slots, self.switches)

            frame = self.ranks(tested, ask, vectors, self.words, slots)
            frames.append(
                frame.with_columns(scheme=pl.lit(scheme), p1=pl.lit(form[0]), p2=pl.lit(form[1]))
            )
        return pl.concat(frames), left_out

    def _templates(self, rows: Sequence[RuleRow], scheme: str) -> tuple[torch.Tensor, SlotLayout]:
        """Return the rule's trained template vectors (with room for conjunctions), and slots."""
        trained = {
            task: tensor(self.loaded, prompt.vectors)
            for task, prompt in templates(
                self.loaded, self.folder, rows, scheme, self.plan, self.switches
            ).items()
        }
        room = self.words.vectors.new_zeros(2, self.words.vectors.shape[1])
        slots = layout({task: len(vectors) for task, vectors in trained.items()})
        return torch.cat([*trained.values(), room]), slots

    def _conjunction(
        self,
        rows: Sequence[RuleRow],
        scheme: str,
        form: tuple[bool, bool],
        start: torch.Tensor,
        slots: SlotLayout,
    ) -> torch.Tensor:
        """Train the conjunction tokens for one form, and fine-tune soft templates with them.

        Training rows use the pseudoword pairs in turn; hyper-parameters are those of the memorizing
        runs at m/mean, with BCE if the plan has it.
        """
        kind = self.loaded.spec.kind
        chosen = recipe(self.plan, kind, self.switches, is_needed=False)
        epochs = self.plan.tuning or chosen.epochs
        chosen = replace(chosen, masks="multi", pooling="mean", init="random", epochs=epochs)
        fresh = soft.initial(self.loaded, soft.SoftPromptRecipe(tokens=2, seed=chosen.seed))
        start = torch.cat([start[: slots.conjunctions], fresh])
        by_role = {
            role: [
                prompt(c, form, scheme, k % self.words.pairs, slots, self.switches)
                for k, c in enumerate(part)
            ]
            for role, part in zip(("train", "dev"), self._rows_to_train(rows), strict=True)
        }
        vectors, _ = fit(
            self.loaded, by_role, self.options, self.switches.candidate_space, start, chosen,
            named=f"{{}} item {{}} under {scheme}", fixed=self.words.vectors,
        )  # fmt: skip
        return vectors

    def _rows_to_train(self, rows: Sequence[RuleRow]) -> list[list[RuleRow]]:
        """Return (train, dev) rows of the rule's memorizing task; as released, from test."""
        if self.switches.conj_train != "test_rows":
            return [[c for c in rows if c.role == role] for role in ("train", "dev")]
        # take them from all test rows, even if fewer are scored
        tested = [c for c in self.whole[rows[0].rule] if c.role == "test"]
        pair = [tested[:TAKEN], tested[TAKEN : 2 * TAKEN]]
        if not all(pair):
            raise ValueError(
                "no train or dev rows for the conjunction; the split is larger than data"
            )
        return pair

    def premises(self, rows: Sequence[RuleRow], kind: str) -> tuple[pl.DataFrame, None]:
        """Return PREMISE_RANKS columns: whether P2 is known, tested with the words of the prompts.

        All rows are tested, including `soft_only` ones with manual templates: the released code
        excludes them only from P1's test.
        """
        trained, slots = self._templates(rows, kind)
        words, switches = self.words, self.switches
        if switches.premise_words == "random_tokens":
            words = random_words(self.loaded, words.pairs, int(words.record["pseudoword_seed"]))
            # the released tests of P2 use new words in every rule
            switches = replace(switches, pseudoword_slots="all")
        tested = [c for c in rows if c.role == "test" and c.tests[kind].golds]
        if switches.missing_candidate == "skip":
            tested = [c for c in tested if not c.missing]

        def ask(row: RuleRow, pair: int) -> ClozePrompt:
            return premise_test(row, kind, pair, slots, switches)

        frame = self.ranks(tested, ask, trained, words, slots)
        return frame.drop("gold").with_columns(kind=pl.lit(kind)), None


def reason(
    spec: ModelSpec,
    items: pl.DataFrame,
    candidates: pl.DataFrame,
    folder: Path | None,
    switches: Switches,
    plan: Soft,
    schemes: Sequence[str] = SCHEMES,
    rows: int | None = None,
    load: Load = load_model,
    unfinished: Path | None = None,
) -> tuple[pl.DataFrame, pl.DataFrame, dict[str, Any]]:
    """Return (REASON_RANKS, PREMISE_RANKS, record); `rows` limits the test rows of every rule.

    `folder` contains the soft prompts of the memorizing tasks, for schemes with soft templates.
    Finished schemes are stored in the folder `unfinished`, where the next run resumes. Invalid
    rows, prompt files and prompts raise before the model is loaded. If a rule fails later, the
    others are still computed: one ValueError lists all failures.
    """
    known = prepared(spec, items, candidates, switches.unknown_candidates)
    by_rule = cases(known.items, rows, known.kept)
    whole = cases(known.items, None, known.kept)
    check_cases(known, by_rule, whole, schemes, folder, plan, switches)
    loaded = load(spec)
    about = switches.first_seed, switches.pseudoword_center
    words = pseudowords(loaded, int(switches.pseudoword_pairs), float(switches.alpha), *about)
    probe = ReasoningContext(loaded, known.options, whole, words, switches, plan, folder)
    bar = progress(total=len(by_rule) * (len(schemes) + 1), desc=spec.model, unit="scheme")
    ranks, premises, problems = [], [], []
    excluded: dict[str, list[str]] = {}
    inputs = digest_rows(items), digest_rows(candidates), folder and content(folder), switches, plan
    with journal(loaded, unfinished, "reasoning", *inputs, schemes, rows):
        for rule, group in by_rule.items():
            try:
                for scheme in schemes:
                    asked = partial(probe.scheme, group, scheme)
                    frame, left_out = frame_step(loaded, f"{rule} {scheme}", asked)
                    ranks.append(frame)
                    if left_out:
                        excluded.setdefault(scheme, []).extend(left_out)
                    bar.update(1)
                for kind in sorted({s.split("+")[0] for s in schemes}):
                    tested = partial(probe.premises, group, kind)
                    premises.append(frame_step(loaded, f"{rule} {kind} premises", tested)[0])
                bar.update(1)
            except ValueError as error:
                problems.append(f"{rule}: {error}")
        if problems:
            raise ValueError("reasoning failed for some rules\n" + "\n".join(problems))
    bar.close()
    record = {
        **loaded.record,
        **known.record,
        **words.record,
        "left_out": excluded,
        "switches": asdict(switches),
    }
    return (
        cast_columns(known.placed(pl.concat(ranks)), REASON_RANKS),
        cast_columns(pl.concat(premises), PREMISE_RANKS),
        record,
    )

"""Ranks of reasoning items: four schemes, four prompt forms, ten pairs of pseudowords (frames).

Explicit premises are included in the prompt; implicit and absent ones are not, and differ only by
row, so that the nine settings of the paper are filters on the four forms that are scored here.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import torch

from kgprobe.benchmarks.ontoprobe.modes import Switches
from kgprobe.job import progress
from kgprobe.probes.jobs.frames import placed, prepared
from kgprobe.probes.jobs.kept import content, frame_step, journal
from kgprobe.probes.jobs.kept import rows as digest_rows
from kgprobe.probes.jobs.ontoprobe import entailment
from kgprobe.probes.jobs.ontoprobe.entailment import (
    FORMS,
    SCHEMES,
    RuleRow,
    SlotLayout,
    by_template,
    cases,
    check_cases,
    template,
)
from kgprobe.probes.jobs.ontoprobe.soft import fit, frame_ranks, tensor
from kgprobe.probes.models.load import Load, Loaded, ModelSpec, load_model
from kgprobe.probes.prompts.trained import soft
from kgprobe.probes.scoring.cloze.vectors import gold_ranks
from kgprobe.probes.text.mask_slots import ClozePrompt
from kgprobe.probes.text.pseudowords import Pseudowords, pseudowords, random_words
from kgprobe.schema import PREMISE_RANKS, REASON_RANKS, cast_columns
from kgprobe.settings.probes import Soft


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
            tested, left_out = entailment.select_test_cases(tested, scheme)
        if not tested:
            raise ValueError(f"no test rows under {scheme}; the split is larger than the data")
        kind, conjunction = scheme.split("+")
        trained, slots = self._templates(rows, kind)
        frames = []
        for form in FORMS:
            vectors = trained
            if conjunction == "soft":
                vectors = self._conjunction(rows, scheme, form, trained, slots)

            def ask(row: RuleRow, pair: int, form: tuple[bool, bool] = form) -> ClozePrompt:
                return entailment.prompt(row, form, scheme, pair, slots, self.switches)

            frame = self.ranks(tested, ask, vectors, self.words, slots)
            frames.append(
                frame.with_columns(scheme=pl.lit(scheme), p1=pl.lit(form[0]), p2=pl.lit(form[1]))
            )
        return pl.concat(frames), left_out

    def _templates(self, rows: Sequence[RuleRow], kind: str) -> tuple[torch.Tensor, SlotLayout]:
        """Return the rule's trained template vectors (with room for conjunctions), and slots."""
        room = self.words.vectors.new_zeros(2, self.words.vectors.shape[1])
        if kind == "manual":
            return room, entailment.layout({})
        trained = {}
        for task in sorted({t for c in rows for t in entailment.tasks_of(c)}):
            prompt = template(self.loaded, self.folder, task, self.plan, self.switches)
            trained[task] = tensor(self.loaded, prompt.vectors)
        slots = entailment.layout({task: len(vectors) for task, vectors in trained.items()})
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
        recipe = entailment.recipe(self.plan, kind, self.switches, is_needed=False)
        epochs = self.plan.tuning or recipe.epochs
        recipe = replace(recipe, masks="multi", pooling="mean", init="random", epochs=epochs)
        fresh = soft.initial(self.loaded, soft.SoftPromptRecipe(tokens=2, seed=recipe.seed))
        start = torch.cat([start[: slots.conjunctions], fresh])
        by_role = {
            role: [
                entailment.prompt(c, form, scheme, k % self.words.pairs, slots, self.switches)
                for k, c in enumerate(part)
            ]
            for role, part in zip(("train", "dev"), self._rows_to_train(rows), strict=True)
        }
        vectors, _ = fit(
            self.loaded, by_role, self.options, self.switches.candidate_space, start, recipe,
            named=f"{{}} item {{}} under {scheme}", fixed=self.words.vectors,
        )  # fmt: skip
        return vectors

    def _rows_to_train(self, rows: Sequence[RuleRow]) -> tuple[list[RuleRow], list[RuleRow]]:
        """Return (train, dev) rows of the rule's memorizing task; as released, from test."""
        if self.switches.conj_train == "test_rows":
            # take them from all test rows, even if fewer are scored
            tested = [c for c in self.whole[rows[0].rule] if c.role == "test"]
            count = entailment.TAKEN
            pair = tested[:count], tested[count : 2 * count]
        else:
            pair = tuple([c for c in rows if c.role == role] for role in ("train", "dev"))  # type: ignore[assignment]
        if not pair[0] or not pair[1]:
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
            return entailment.premise_test(row, kind, pair, slots, switches)

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
        cast_columns(placed(pl.concat(ranks), items, known.kept), REASON_RANKS),
        cast_columns(pl.concat(premises), PREMISE_RANKS),
        record,
    )

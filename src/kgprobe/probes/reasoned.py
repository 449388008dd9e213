"""Reasoning items to ranks: four schemes, four prompt forms, ten pairs of pseudowords (frames).

Explicit premises are written; implicit and absent ones are left out and differ by row alone, so
that the nine settings of the paper are filters on the four forms that are scored here.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl
import torch

from kgprobe.probes.models.batching import budget_for
from kgprobe.probes.models.load import Loaded, ModelSpec
from kgprobe.probes.prompts import soft, soft_files
from kgprobe.probes.prompts.pseudowords import Pseudowords, pseudowords, random_words
from kgprobe.probes.scoring import reasoning
from kgprobe.probes.scoring.gap_scores import GoldRanks, candidate_tokens, gold_ranks, prompts
from kgprobe.probes.scoring.reasoning import FORMS, SCHEMES, Case, Layout, Wording
from kgprobe.probes.soft_memory import (
    AS_WRITTEN,
    Plan,
    candidate_labels,
    file_name,
    fitted,
    ready,
    tensor,
)
from kgprobe.schema import PREMISE_RANKS, REASON_RANKS

#: Rows of the test part that the released code trains the conjunctions on (`conj_train`).
TAKEN = 10


@dataclass
class Probe:
    """Everything that the schemes share."""

    loaded: Loaded
    options: Mapping[str, Sequence[str]]
    cases: dict[str, list[Case]]
    whole: dict[str, list[Case]]
    words: Pseudowords
    switches: Mapping[str, str]
    plan: Plan
    folder: Path | None
    left_out: dict[str, list[str]] = field(default_factory=dict)

    @property
    def wording(self) -> Wording:
        """How the prompts are worded under the switches."""
        own = self.switches
        kept = own.get("soft_implies", "left_out") == "kept"
        return Wording(own["pseudoword_slots"], own["premise_order"], kept)

    def ranks(self, asked: Sequence[Any], vectors: torch.Tensor, first_word: int) -> GoldRanks:
        """Ranks at m/mean; under `softmax_rows: all` the pseudowords join the softmax."""
        return gold_ranks(
            self.loaded,
            asked,
            dict(self.options),
            vectors,
            space=self.switches["candidate_space"],
            in_softmax=first_word if self.switches["softmax_rows"] == "all" else None,
            budget=budget_for(self.loaded),
        )


def reason(
    spec: ModelSpec,
    items: pl.DataFrame,
    candidates: pl.DataFrame,
    folder: Path | None,
    switches: Mapping[str, str],
    plan: Plan,
    schemes: Sequence[str] = SCHEMES,
    rows: int | None = None,
    progress: Callable[..., Any] = lambda **options: None,
) -> tuple[pl.DataFrame, pl.DataFrame, dict[str, Any]]:
    """(REASON_RANKS, PREMISE_RANKS, record); `rows` limits the test rows of every rule.

    `folder` holds the soft prompts of the memorising tasks, for schemes with soft templates. A rule
    that fails does not keep the others from being tried: all problems are told in one ValueError.
    """
    unknown = [s for s in schemes if s not in SCHEMES]
    if unknown:
        raise ValueError(f"scheme {unknown[0]!r}; legal: {', '.join(SCHEMES)}")
    loaded = ready(spec)
    first = int(switches["seed"]) if switches["seed"].isdigit() else 0
    words = pseudowords(
        loaded,
        int(switches["pseudoword_pairs"]),
        float(switches["alpha"]),
        first,
        switches["pseudoword_centre"],
    )
    probe = Probe(
        loaded,
        candidate_labels(candidates),
        cases(items, rows),
        cases(items),
        words,
        switches,
        plan,
        folder,
    )
    steps = len(probe.cases) * (len(schemes) + 1)
    bar = progress(total=steps, desc=spec.model, unit="scheme")
    ranks, premises, problems = [], [], []
    for rule, own in probe.cases.items():
        try:
            for scheme in schemes:
                ranks += _scheme(probe, own, scheme)
                bar.update(1)
            for kind in sorted({s.split("+")[0] for s in schemes}):
                premises.append(_premises(probe, own, kind))
            bar.update(1)
        except ValueError as error:
            problems.append(f"{rule}: {error}")
    bar.close()
    if problems:
        raise ValueError("reasoning failed for some rules\n" + "\n".join(problems))
    record = {
        **loaded.record,
        **words.record,
        "left_out": probe.left_out,
        "switches": dict(switches),
    }
    return (
        fitted(pl.concat(ranks), REASON_RANKS),
        fitted(pl.concat(premises), PREMISE_RANKS),
        record,
    )


def cases(items: pl.DataFrame, rows: int | None = None) -> dict[str, list[Case]]:
    """The cases of every rule in file order; of the test part at most `rows`."""
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
    for rule, own in found.items():
        tested = [c for c in own if c.role == "test"][:rows]
        found[rule] = [c for c in own if c.role != "test"] + tested
    return found


def _spelt(parts: Sequence[str] | None) -> Sequence[str] | None:
    """A soft form whose subject begins the sentence, as the memorising task spells it."""
    if not parts or parts[0] in AS_WRITTEN or parts[1].startswith("["):
        return parts
    return [parts[0], parts[1][:1].upper() + parts[1][1:], *parts[2:]]


def _scheme(probe: Probe, own: Sequence[Case], scheme: str) -> list[pl.DataFrame]:
    """REASON_RANKS columns of one rule under one scheme: the forms, and every pair in each."""
    tested, left_out = _parts(probe, own, scheme)
    if left_out:
        probe.left_out.setdefault(scheme, []).extend(left_out)
    if not tested:
        raise ValueError(f"no test rows under {scheme}; the split is larger than the data")
    template, conjunction = scheme.split("+")
    trained, slots = _templates(probe, own, template)
    found = []
    for form in FORMS:
        vectors = trained
        if conjunction == "soft":
            vectors = _conjunction(probe, own, scheme, form, trained, slots)
        asked, pairs = [], []
        for pair in range(probe.words.pairs):
            asked += [reasoning.prompt(c, form, scheme, pair, slots, probe.wording) for c in tested]
            pairs += [pair] * len(tested)
        used = torch.cat([vectors, probe.words.vectors])
        frame = _frame(probe.ranks(asked, used, slots.words), asked, pairs)
        found.append(
            frame.with_columns(scheme=pl.lit(scheme), p1=pl.lit(form[0]), p2=pl.lit(form[1]))
        )
    return found


def _frame(ranks: GoldRanks, asked: Sequence[Any], pairs: Sequence[int]) -> pl.DataFrame:
    return pl.DataFrame(
        {
            "item": [asked[q].item for q in ranks.question.tolist()],
            "pair": [pairs[q] for q in ranks.question.tolist()],
            "gold": ranks.gold,
            "best": ranks.best,
            "worst": ranks.worst,
            "score": ranks.score,
        }
    )


def _parts(probe: Probe, own: Sequence[Case], scheme: str) -> tuple[list[Case], list[str]]:
    """Test cases and what is left out; released, nothing is: it tests what it has trained on."""
    if probe.switches["conj_train"] == "test_rows":
        return [c for c in own if c.role == "test"], []
    return reasoning.tested(own, scheme)


def _templates(probe: Probe, own: Sequence[Case], kind: str) -> tuple[torch.Tensor, Layout]:
    """Trained vectors of the rule's soft templates (and room for conjunctions), and the slots."""
    width = probe.words.vectors.shape[1]
    if kind == "manual":
        return probe.words.vectors.new_zeros(2, width), reasoning.layout({})
    found = {}
    for task in sorted({t for c in own for t in reasoning.tasks_of(c)}):
        prompt = soft_files.load(prompt_path(probe, task), probe.loaded)
        found[task] = tensor(probe.loaded, prompt.vectors)
    slots = reasoning.layout({task: len(rows) for task, rows in found.items()})
    room = probe.words.vectors.new_zeros(2, width)
    return torch.cat([*found.values(), room]), slots


def prompt_path(probe: Probe, task: str) -> Path:
    """The memorising task's prompt that reasoning uses: m/mean, BCE where it was trained."""
    if probe.folder is None:
        raise ValueError("schemes with soft templates need the folder of trained prompts")
    recipes = probe.plan.recipes(probe.loaded.spec.kind, probe.switches)
    fitting = [r for r in recipes if (r.masks, r.pooling) == ("multi", "mean")]
    if not fitting:
        raise ValueError(
            "reasoning needs soft prompts at multi/mean; add them to ontoprobe.soft.masks and "
            "ontoprobe.soft.poolings, or leave the schemes with soft templates out"
        )
    return probe.folder / file_name(task, min(fitting, key=lambda r: (r.loss != "bce", r.seed)))


def _conjunction(
    probe: Probe,
    own: Sequence[Case],
    scheme: str,
    form: tuple[bool, bool],
    start: torch.Tensor,
    slots: Layout,
) -> torch.Tensor:
    """The conjunction tokens trained for one form, templates tuned on with them where soft.

    Training rows take the pairs of pseudowords in turn.
    """
    recipe = _recipe(probe)
    train, dev = _rows_to_train(probe, own)
    space = probe.switches["candidate_space"]
    fresh = soft.initial(probe.loaded, soft.Recipe(tokens=2, seed=recipe.seed))
    start = torch.cat([start[: slots.conjunctions], fresh])
    data, first = [], None
    for part in (train, dev):
        asked = [
            reasoning.prompt(c, form, scheme, k % probe.words.pairs, slots, probe.wording)
            for k, c in enumerate(part)
        ]
        first = first or asked
        data.append(soft.Rows(prompts(probe.loaded, asked, space), [q.golds for q in asked]))
    assert first is not None
    name = first[0].candidates
    ids = candidate_tokens(probe.loaded, probe.options[name], first, space, name)
    vectors, _ = soft.fit(
        probe.loaded, data[0], data[1], ids, start, recipe, fixed=probe.words.vectors
    )
    return vectors


def _recipe(probe: Probe) -> soft.Recipe:
    """The hyper-parameters of the memorising runs at m/mean, BCE where the plan has it."""
    recipes = probe.plan.recipes(probe.loaded.spec.kind, probe.switches)
    fitting = [r for r in recipes if (r.masks, r.pooling) == ("multi", "mean")]
    chosen = min(fitting or recipes, key=lambda r: (r.loss != "bce", r.seed))
    own = {"masks": "multi", "pooling": "mean", "init": "random"}
    epochs = probe.plan.tuning or chosen.epochs
    return soft.Recipe(**{**chosen.__dict__, **own, "epochs": epochs})


def _rows_to_train(probe: Probe, own: Sequence[Case]) -> tuple[list[Case], list[Case]]:
    """(train, dev): rows of the memorising task behind the rule; as released, of its test part."""
    if probe.switches["conj_train"] == "test_rows":
        # of all test rows, also where fewer are asked about
        tested = [c for c in probe.whole[own[0].rule] if c.role == "test"]
        found = tested[:TAKEN], tested[TAKEN : 2 * TAKEN]
    else:
        found = tuple([c for c in own if c.role == role] for role in ("train", "dev"))  # type: ignore[assignment]
    if not found[0] or not found[1]:
        raise ValueError("no train or dev rows for the conjunction; the split is larger than data")
    return found


def _premises(probe: Probe, own: Sequence[Case], kind: str) -> pl.DataFrame:
    """PREMISE_RANKS columns: is P2 known, asked with the words that the prompts hold."""
    trained, slots = _templates(probe, own, kind)
    words = probe.words
    if probe.switches["premise_words"] == "random_tokens":
        words = random_words(probe.loaded, words.pairs, int(words.record["pseudoword_seed"]))
    tested = [c for c in own if c.role == "test"]
    if probe.switches["missing_candidate"] == "skip":
        tested = [c for c in tested if not c.missing]
    asked, pairs = [], []
    for pair in range(words.pairs):
        asked += [reasoning.premise_test(c, kind, pair, slots, probe.wording) for c in tested]
        pairs += [pair] * len(tested)
    used = torch.cat([trained, words.vectors])
    frame = _frame(probe.ranks(asked, used, slots.words), asked, pairs)
    return frame.drop("gold").with_columns(kind=pl.lit(kind))

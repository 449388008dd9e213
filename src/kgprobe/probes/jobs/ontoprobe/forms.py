"""Reasoning rows asked after premises in six forms (benchmarks/ontoprobe/premises), in words alone.

A text is scored once, however many rows have it, so that rows of one text differ by exactly 0. Of
every candidate there is also the score above that of the empty prompt with the same pseudowords,
its prior: after the empty prompt itself all of these are 0 and tie.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl
import torch
from numpy.typing import NDArray

from kgprobe.benchmarks.ontoprobe.modes import Switches
from kgprobe.benchmarks.ontoprobe.premises import (
    Formed,
    Premises,
    build_forms,
    occurs_in,
    parse_premises,
)
from kgprobe.job import log
from kgprobe.metrics.ranking import tie_range
from kgprobe.probes.jobs.frames import by_hand, placed
from kgprobe.probes.jobs.ontoprobe import entailment
from kgprobe.probes.jobs.ontoprobe.entailment import RuleRow, SlotLayout, cases
from kgprobe.probes.jobs.ontoprobe.soft import prepared, ready, words_of
from kgprobe.probes.models.batching import budget_for
from kgprobe.probes.models.load import Load, Loaded, ModelSpec, load_model
from kgprobe.probes.scoring.cloze.vectors import scores
from kgprobe.probes.text.mask_slots import ClozePrompt
from kgprobe.probes.text.spelling import too_long
from kgprobe.probes.text.vectors import inserted
from kgprobe.sampling import take
from kgprobe.schema import FORM_RANKS, cast_columns
from kgprobe.settings import PremiseForms
from kgprobe.templates import ANSWER, SUBJECT, mark, parse

SCHEME = "manual+manual"


@dataclass(frozen=True)
class RuleContext:
    """What all rules share."""

    loaded: Loaded
    options: dict[str, Sequence[str]]
    vectors: torch.Tensor
    switches: Switches
    slots: SlotLayout
    pairs: int

    @property
    def words(self) -> int:
        """Pairs of pseudowords that there are: one more than asked about where that is one."""
        return (len(self.vectors) - self.slots.words) // 2


def ask(
    spec: ModelSpec,
    items: pl.DataFrame,
    candidates: pl.DataFrame,
    switches: Switches,
    chosen: PremiseForms,
    seed: int,
    load: Load = load_model,
) -> tuple[pl.DataFrame, dict[str, Any]]:
    """(FORM_RANKS, record) of the test rows of every rule.

    Texts that do not fit into the model's window are left out, counted in the record (`too_long`,
    by rule, with the first one's message) and logged; so are rules without rows (`without_rows`).
    Raises ValueError where no rule has a row.
    """
    known = prepared(spec, items, candidates, switches)
    rows = sample_rows(by_hand(known.items), chosen.rows, seed)
    lacking = sorted(set(items["relation"]) - set(rows["relation"]))
    if not rows.height:
        raise ValueError(f"no test rows of any rule among {items.height} items of reasoning")
    if lacking:
        log.warning("premises: no test rows of %s", ", ".join(lacking))
    loaded = ready(spec, load)
    pairs = int(switches.pseudoword_pairs)
    # premises about another thing need another word
    words = words_of(loaded, switches, least=2)
    slots = entailment.layout({})
    vectors = torch.cat([words.vectors.new_zeros(slots.words, words.vectors.shape[1]),
                         words.vectors])  # fmt: skip
    context = RuleContext(loaded, known.options, vectors, switches, slots, pairs)
    is_control = spec.source.startswith("control:")
    draws = -(-chosen.generated // rows.height) if is_control else 1
    by_item = {case.item: case for group in cases(known.items).values() for case in group}
    frames, left_out = [], {}
    for (rule,), group in rows.group_by("relation", maintain_order=True):
        texts = [parse_premises(*row) for row in group.select("item", "subject", "meta").rows()]
        formed = build_forms(texts, draws, seed, str(rule))
        frame, wrong = _rank(context, by_item, {t.item: t for t in texts}, formed)
        frames.append(frame)
        if wrong:
            left_out[str(rule)] = {"rows": len(wrong), "first": wrong[0]}
            log.warning("premises of %s: %d do not fit, first %s", rule, len(wrong), wrong[0])
    record = {
        **loaded.record,
        **known.record,
        **words.record,
        "draws": draws,
        "too_long": left_out,
        "without_rows": lacking,
    }
    return cast_columns(placed(pl.concat(frames), items, known.kept), FORM_RANKS), record


def sample_rows(items: pl.DataFrame, rows: int | None, seed: int) -> pl.DataFrame:
    """The test rows, at most `rows` of each rule by hash of the item; sorted by rule and item."""
    test = items.filter(role="test")
    return take(test, rows or max(test.height, 1), seed, ["item"], ["relation"], "premises")


def few(items: pl.DataFrame, rows: int | None, seed: int) -> pl.DataFrame:
    """The items with the test rows that `sample_rows` takes."""
    rest = items.filter(pl.col("role") != "test")
    return pl.concat([rest, sample_rows(items, rows, seed)]).sort("item")


def _rank(
    context: RuleContext,
    known: Mapping[str, RuleRow],
    texts: Mapping[str, Premises],
    formed: Sequence[Formed],
) -> tuple[pl.DataFrame, list[str]]:
    """Columns of FORM_RANKS of one rule, and what is wrong with every text that is left out."""
    places: dict[tuple[str, str], int] = {}
    questions: list[ClozePrompt] = []
    of_row = []
    for one in formed:
        question = _question(context, known[one.item], one)
        key = question.before, question.after
        if key not in places:
            places[key] = len(questions)
            questions.append(question)
        of_row.append(places[key])
    options, space = context.options, context.switches.candidate_space
    most = too_long(context.loaded, questions, options, space)
    values = _score(context, questions, most)
    empty = {(m.item, m.draw): q for m, q in zip(formed, of_row, strict=True) if m.form == "none"}
    rows, wrong = [], []
    for one, place in zip(formed, of_row, strict=True):
        prior = empty[one.item, one.draw]
        if place in most or prior in most:
            wrong.append(most.get(place) or most[prior])
            continue
        above = values[place] - values[prior]
        case, premises = known[one.item], texts[one.item]
        labels, names = options[case.candidates], dict(premises.names)
        for gold in case.golds:
            label = labels[gold]
            names_of_gold = label, names.get(label, label)
            is_named = any(occurs_in(name, f"{one.p1} {one.p2}") for name in names_of_gold)
            best, worst = tie_range(values[place], gold)
            first, last = tie_range(above, gold)
            rows.append(
                (case.rule, one.item, one.form, one.draw, gold, is_named, best, worst, first, last,
                 float(values[place][gold]), float(above[gold]))
            )  # fmt: skip
    return pl.DataFrame(rows, schema=dict(FORM_RANKS.columns), orient="row"), wrong


def _question(context: RuleContext, case: RuleRow, one: Formed) -> ClozePrompt:
    """A row in one form; what a foreign premise is about is the next pair's pseudowords."""
    pair, p2 = one.draw % context.pairs, one.p2
    has_letters = context.switches.pseudoword_slots == "pattern_rules"
    if one.foreign and not (has_letters and case.rule not in entailment.PATTERN_RULES):
        first = context.slots.words + 2 * ((pair + 1) % context.words)
        p2 = parse(p2).filled({SUBJECT: mark(first), ANSWER: mark(first + 1)}).text
    written = bool(one.p1), bool(p2)
    row = replace(case, p1=one.p1, p2=p2)
    return entailment.prompt(row, written, SCHEME, pair, context.slots, context.switches)


def _score(
    context: RuleContext, questions: Sequence[ClozePrompt], left_out: Mapping[int, str]
) -> dict[int, NDArray[np.float64]]:
    """Scores of all candidates by number of the question, m/mean."""
    numbers = [number for number in range(len(questions)) if number not in left_out]
    subset = [questions[number] for number in numbers]
    first = context.slots.words if context.switches.softmax_rows == "all" else None
    values = {}
    with inserted(context.loaded, context.vectors, first):
        space, budget = context.switches.candidate_space, budget_for(context.loaded)
        for chunk in scores(context.loaded, subset, context.options, space=space, budget=budget):
            for index, row in zip(chunk.indices.tolist(), chunk.scores, strict=True):
                values[numbers[index]] = np.asarray(row, dtype=float)
    return values
